"""Pack what a teacher hands out: the package's wheel, the learners' notebooks and a README, in one zip.

    python -m tools.lab_kit            writes _build/lanewise-labs.zip

The kit holds no solution. Unzipped on a machine with Python and pip it needs a package index, no more.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from lanewise.labs import Lab, load
from tools.labs import lab_names, student_path
from tools.notebooks import ROOT

KIT = ROOT / "_build" / "lanewise-labs.zip"
FOLDER = "lanewise-labs"
PROJECT_FILES = ("pyproject.toml", "README.md", "LICENSE", "LICENSE-text")
_COMPILED = shutil.ignore_patterns("__pycache__")
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # one time for all files: the same content gives the same zip

README = """\
# Lanewise labs

Exercises on GPU memory access patterns. You need Python 3.11, 3.12 or 3.13. You do not need a GPU.

## On your machine

In this folder:

    python3 -m venv .venv
    .venv/bin/pip install "./{wheel}[lab]"
    .venv/bin/jupyter lab

On Windows, write `.venv\\Scripts\\` for `.venv/bin/`, and `python` for `python3`. With an NVIDIA GPU, write
`[lab,gpu]` for `[lab]`: then the labs can launch your kernels, too.

## In Colab

Upload a notebook, then upload `{wheel}` with the folder symbol on the left. Run the cells. The first one
installs the wheel, changes no package that Colab has, and says what the machine can do.

## The labs

{labs}

Hand in the notebook itself. Keep its cells as they are, and write your answers where `...` stands: the marker
reads those cells. Where the check says "Passed." you have all points; it gives part of them for less.
"""


def build_wheel(folder: Path) -> Path:
    """Build the package's wheel into `folder`; CalledProcessError has pip's own words where it fails.

    A copy is built: in the tree, setuptools leaves a folder behind, and packs what lies there from before.
    """
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(ROOT / "src" / "lanewise", Path(copy) / "src" / "lanewise", ignore=_COMPILED)
        for name in PROJECT_FILES:
            shutil.copy(ROOT / name, copy)
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, copy]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
    (wheel,) = folder.glob("lanewise-*.whl")
    return wheel


def readme(wheel: str, labs: list[Lab]) -> str:
    """The kit's README: how to start, and which labs there are."""
    lines = (
        f"- `{lab.name}.ipynb`: {lab.title}. {lab.minutes} minutes, {lab.points:g} points." for lab in labs
    )
    return README.format(wheel=wheel, labs="\n".join(lines))


def pack(path: Path = KIT, wheel: Path | None = None) -> Path:
    """Write the kit to `path`, with a wheel built now unless one is given."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = wheel or build_wheel(Path(folder))
        files = {wheel.name: wheel.read_bytes()}
        files |= {f"{name}.ipynb": student_path(name).read_bytes() for name in lab_names()}
        files["README.md"] = readme(wheel.name, [load(name) for name in lab_names()]).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as kit:
        for name, content in sorted(files.items()):
            kit.writestr(zipfile.ZipInfo(f"{FOLDER}/{name}", _EARLIEST), content, zipfile.ZIP_DEFLATED)
    return path


if __name__ == "__main__":
    print(f"The kit is packed: {pack()}")
