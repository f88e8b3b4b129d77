"""Make the students' notebooks of the labs from their sources, and bring both into normal form.

    python -m tools.labs                     every lab: run source and student's notebook, write both
    python -m tools.labs padding_transpose   that one
    python -m tools.labs --check             change nothing; exit with 1 where a file is not what it would be

A source is labs/source/LAB/LAB.ipynb and holds the solution; the student's notebook is labs/LAB.ipynb. To
write a lab, see labs/README.md.
"""

import argparse
import copy
import sys
from collections.abc import Iterator
from pathlib import Path

from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from lanewise.errors import Error
from lanewise.grading.student import annotated, student_notebook
from tools.notebooks import ROOT, normalise, read, run, text_of, with_setup_cell

LABS = ROOT / "labs"
SOURCES = LABS / "source"


def source_path(name: str) -> Path:
    """Where the source of a lab lies."""
    return SOURCES / name / f"{name}.ipynb"


def student_path(name: str) -> Path:
    """Where the student's notebook of a lab lies."""
    return LABS / f"{name}.ipynb"


def lab_names() -> list[str]:
    """The labs that have a source, in the order of the alphabet."""
    return sorted(path.parent.name for path in SOURCES.glob("*/*.ipynb"))


def made(name: str, *, execute: bool) -> Iterator[tuple[Path, str]]:
    """Path and text of a lab's two notebooks; without `execute`, outputs are those stored now."""
    source = annotated(with_setup_cell(read(source_path(name)), source_path(name)))
    for path, notebook in ((source_path(name), source), (student_path(name), student_notebook(source))):
        if execute:
            finished = run(notebook, path.parent)
        elif path.is_file():
            finished = with_outputs_of(notebook, read(path))
        else:
            finished = notebook
        yield path, text_of(normalise(finished, path))


def with_outputs_of(notebook: NotebookNode, stored: NotebookNode) -> NotebookNode:
    """A copy of `notebook` with the stored outputs of the cells that have the same source."""
    result = copy.deepcopy(notebook)
    for cell, old in zip(result.cells, stored.cells, strict=False):
        if cell.cell_type == old.cell_type == "code" and cell.source.rstrip() == old.source:
            cell.outputs, cell.execution_count = old.outputs, old.execution_count
    return result


def refresh(name: str, *, execute: bool = True, write: bool = True) -> list[Path]:
    """Bring one lab up to date; returns the files that differ from what they would be."""
    changed = []
    for path, text in made(name, execute=execute):
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            changed.append(path)
            if write:
                path.write_text(text, encoding="utf-8")
    return changed


def main(arguments: list[str] | None = None) -> int:
    """Refresh the named labs, or all, and say which files changed."""
    parser = argparse.ArgumentParser(prog="python -m tools.labs", description=__doc__.partition("\n")[0])
    parser.add_argument("labs", nargs="*", help="names of labs (default: all)")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file would change")
    options = parser.parse_args(arguments)
    n_changed = 0
    for name in options.labs or lab_names():
        try:
            changed = refresh(name, execute=not options.check, write=not options.check)
        except (CellExecutionError, Error) as error:
            print(f"{name}: left as it was.\n{error}", file=sys.stderr)
            return 1
        n_changed += len(changed)
        for path in changed:
            print(f"{path.relative_to(ROOT)}: {'not what it would be' if options.check else 'written'}")
        if not changed:
            print(f"{name}: unchanged")
    return int(options.check and n_changed > 0)


if __name__ == "__main__":
    sys.exit(main())
