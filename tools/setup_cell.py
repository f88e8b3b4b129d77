"""The first code cell of a notebook: it makes a copy that was opened elsewhere, in Colab say, able to run.

Where Lanewise is installed a chapter's cell does nothing, and the page does not show it. Elsewhere it
installs a wheel that lies beside the notebook, or what the repository's address (in _config.yml) leads to,
without dependencies: whatever else is installed stays as it is. A lab's cell also prints what the machine is
and can do, everywhere; no output of it is stored. tools/notebooks.py writes the cell.
"""

from pathlib import Path

import yaml
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "_config.yml"
TAGS = ("remove-cell",)
LAB_TAGS = ("remove-cell", "nbval-ignore-output")

MARK = "# Set-up for a copy of this notebook. Where Lanewise is, it does nothing."
_CELL = f"""\
{MARK}
from importlib.util import find_spec

if find_spec("lanewise") is None:
    from glob import glob

    address = "ADDRESS"
    if origin := max(glob("lanewise-*.whl"), default=address):
        %pip install --quiet --no-deps {{origin}}
        from lanewise.measure.here import mode

        print(mode())
    else:
        print("Put Lanewise's wheel, lanewise-*.whl, beside this notebook.")"""

LAB_MARK = "# Set-up. It changes no package that is installed, and says what this machine can do."
_LAB_CELL = f"""\
{LAB_MARK}
from importlib.util import find_spec

if find_spec("lanewise") is None:
    from glob import glob

    address = "ADDRESS"
    origin = max(glob("lanewise-*.whl"), default=address)
    assert origin, "Put Lanewise's wheel, lanewise-*.whl, beside this notebook."
    %pip install --quiet --no-deps {{origin}}
from lanewise.measure.here import mode

print(mode())"""


def address(config: Path = CONFIG) -> str:
    """What pip installs from the repository named in a _config.yml; '' while it names none."""
    repository = yaml.safe_load(config.read_text(encoding="utf-8")).get("repository", {})
    url = (repository.get("url") or "").rstrip("/").removesuffix(".git")
    return f"git+{url}@{repository.get('branch') or 'main'}" if url else ""


def source(address: str, *, lab: bool = False) -> str:
    """The cell's text, with the address that it installs from.

    >>> 'address = "git+https://github.com/OWNER/NAME@main"' in source("git+https://github.com/OWNER/NAME@main")
    True
    """
    return (_LAB_CELL if lab else _CELL).replace("ADDRESS", address)


def is_setup(cell: NotebookNode) -> bool:
    """Whether a cell is a set-up cell, of this address or another."""
    return bool(cell.cell_type == "code" and cell.source.startswith((MARK, LAB_MARK)))
