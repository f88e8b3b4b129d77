"""Re-execute and normalise the notebooks of book/ and labs/.

    python -m tools.notebooks                    every notebook: run it, then write its normal form
    python -m tools.notebooks book/banks.ipynb   that one
    python -m tools.notebooks --no-run           write the normal form, keep the stored outputs
    python -m tools.notebooks --check            change nothing; exit with 1 if a file is not in normal form

The normal form holds nothing that differs from one run to the next: cell ids count the cells, metadata is
what the book or Colab reads and no more, outputs carry no times, errors no traceback. Running a notebook
twice therefore changes nothing. Each figure's text (its `text/plain`, written from the figure's data) becomes
the alternative text of its image on the page. The first code cell is the set-up cell of tools/setup_cell.py.
Labs are made of their sources by tools/labs.py, which uses what is here.
"""

import argparse
import copy
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from tools import setup_cell

ROOT = setup_cell.ROOT
FOLDERS = ("book", "labs")
CELL_TIMEOUT_S = 120

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python"}
# Colab reads these two and opens the notebook on a GPU.
COLAB_GPU = {"accelerator": "GPU", "colab": {"gpuType": "T4", "provenance": []}}
METADATA_KEPT = ("lanewise",)  # which lab it is, for the grader
CELL_METADATA_KEPT = ("cellView", "deletable", "editable", "jupyter", "mystnb", "nbgrader", "tags")
# What nbgrader writes beside the sources.
NBGRADER_FOLDERS = frozenset({"release", "submitted", "autograded", "feedback"})
IMAGE_TYPES = ("image/svg+xml", "image/png", "image/jpeg")


def find_notebooks(root: Path = ROOT) -> list[Path]:
    """Every notebook of the course, in a fixed order."""
    found = (path for folder in FOLDERS for path in (root / folder).rglob("*.ipynb"))
    unwanted = NBGRADER_FOLDERS | {".ipynb_checkpoints"}
    return sorted(path for path in found if unwanted.isdisjoint(path.parts))


def find_pages(root: Path = ROOT) -> list[Path]:
    """The notebooks that are pages of the book; the sources of labs are not, since they hold solutions."""
    return [path for path in find_notebooks(root) if path.parent in {root / folder for folder in FOLDERS}]


def is_lab(path: Path) -> bool:
    """Whether the notebook at `path` is a lab, which learners open in Colab, rather than a chapter."""
    return next((part for part in reversed(path.parts) if part in FOLDERS), None) == "labs"


def read(path: Path) -> NotebookNode:
    """The notebook at `path`, in version 4 of the format."""
    return nbformat.read(path, as_version=4)


def run(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """A copy of `notebook` with the outputs of a fresh run in `folder`; raises where a cell raises.

    A cell that is meant to raise has the tag `raises-exception`.
    """
    executed = copy.deepcopy(notebook)
    client = NotebookClient(
        executed,
        kernel_name=KERNEL["name"],
        timeout=CELL_TIMEOUT_S,
        coalesce_streams=True,
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return executed


def normalise(notebook: NotebookNode, path: Path) -> NotebookNode:
    """A copy of `notebook` in normal form; `path` names it and decides whether Colab opens it on a GPU."""
    normal = with_setup_cell(notebook, path)
    normal.nbformat, normal.nbformat_minor = 4, 5
    kept = {key: normal.metadata[key] for key in METADATA_KEPT if key in normal.metadata}
    for_colab = COLAB_GPU if is_lab(path) else {}
    normal.metadata = nbformat.from_dict(
        {"kernelspec": KERNEL, "language_info": LANGUAGE, **for_colab, **kept}
    )
    slug = re.sub(r"[^a-z0-9]+", "-", path.stem.lower()).strip("-")
    for position, cell in enumerate(normal.cells):
        cell.id = f"{slug}-{position:03d}"
        cell.metadata = _kept_metadata(cell)
        cell.source = cell.source.rstrip()
        if cell.cell_type == "code":
            for output in cell.outputs:
                _normalise_output(output)
            _carry_alternative_text(cell)
    return normal


def with_setup_cell(notebook: NotebookNode, path: Path, address: str | None = None) -> NotebookNode:
    """A copy of `notebook` whose first code cell, if it has code, is the set-up cell.

    `address` is what that cell installs from, by default what _config.yml says. The cell shows nothing where
    the notebooks are run, so in a notebook that was run in order, a new one counts as run.
    """
    result = copy.deepcopy(notebook)
    old = [cell for cell in result.cells if setup_cell.is_setup(cell)]
    result.cells = [cell for cell in result.cells if not setup_cell.is_setup(cell)]
    coded = [cell for cell in result.cells if cell.cell_type == "code"]
    if not coded:
        return result
    cell = old[0] if old else new_code_cell()
    if not old and [one.execution_count for one in coded] == list(range(1, len(coded) + 1)):
        cell.execution_count = 1
        for later in coded:
            for counted in (later, *later.outputs):
                if counted.get("execution_count"):
                    counted.execution_count += 1
    lab = is_lab(path)
    cell.source = setup_cell.source(setup_cell.address() if address is None else address, lab=lab)
    cell.metadata = nbformat.from_dict({"tags": [*(setup_cell.LAB_TAGS if lab else setup_cell.TAGS)]})
    cell.outputs = []
    result.cells.insert(result.cells.index(coded[0]), cell)
    return result


def figures(cell: NotebookNode) -> list[NotebookNode]:
    """The outputs of a code cell that are images."""
    outputs = cell.get("outputs", [])
    return [output for output in outputs if any(kind in output.get("data", {}) for kind in IMAGE_TYPES)]


def stored_alternative_text(cell: NotebookNode) -> str | None:
    """The alternative text that the page will give to this cell's figure."""
    alt: str | None = cell.metadata.get("mystnb", {}).get("image", {}).get("alt")
    return alt


def _normalise_output(output: NotebookNode) -> None:
    """Drop metadata, and all of an error but its message: a traceback holds paths and teaches little."""
    if "metadata" in output:
        output.metadata = NotebookNode()
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}"]


def _kept_metadata(cell: NotebookNode) -> NotebookNode:
    kept = {key: cell.metadata[key] for key in CELL_METADATA_KEPT if cell.metadata.get(key)}
    return nbformat.from_dict(kept)


def _carry_alternative_text(cell: NotebookNode) -> None:
    """Set the cell's `mystnb.image.alt` to the text of its figure, or remove it where no figure is left."""
    options: dict[str, Any] = dict(cell.metadata.get("mystnb", {}))
    image = {key: value for key, value in options.pop("image", {}).items() if key != "alt"}
    for figure in figures(cell)[:1]:
        if text := figure.data.get("text/plain"):
            image["alt"] = text
    if image:
        options["image"] = image
    cell.metadata.pop("mystnb", None)
    if options:
        cell.metadata["mystnb"] = nbformat.from_dict(options)


def text_of(notebook: NotebookNode) -> str:
    """The bytes that are written for `notebook`, as text."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook, version=nbformat.NO_CONVERT) + "\n"


def refresh(path: Path, *, execute: bool = True, write: bool = True) -> bool:
    """Bring one notebook file up to date; returns whether its text changed."""
    notebook = with_setup_cell(read(path), path)
    if execute:
        notebook = run(notebook, path.parent)
    text = text_of(normalise(notebook, path))
    changed = text != path.read_text(encoding="utf-8")
    if changed and write:
        path.write_text(text, encoding="utf-8")
    return changed


def main(arguments: list[str] | None = None) -> int:
    """Refresh the named notebooks, or all, and say which changed."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks", description=__doc__.partition("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="notebook files (default: all)")
    parser.add_argument("--no-run", action="store_true", help="keep the stored outputs")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if not in normal form")
    options = parser.parse_args(arguments)
    for path in options.notebooks:
        if not path.is_file():
            parser.error(f"{path}: no such file. Name a notebook, or none for all of {', '.join(FOLDERS)}.")
    execute = not (options.no_run or options.check)
    n_changed = 0
    for path in options.notebooks or find_notebooks():
        try:
            changed = refresh(path.resolve(), execute=execute, write=not options.check)
        except CellExecutionError as error:
            print(f"{path}: left as it was, since a cell failed.\n{error}", file=sys.stderr)
            return 1
        n_changed += changed
        verdict = ("not in normal form" if options.check else "rewritten") if changed else "unchanged"
        print(f"{path}: {verdict}")
    return int(options.check and n_changed > 0)


if __name__ == "__main__":
    sys.exit(main())
