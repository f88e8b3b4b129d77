"""nbgrader on our labs, for real: assignments, marks, export and feedback; its marks are those of our grader.

Needs nbgrader, a third of a gigabyte that instructors alone install: `make nbgrader` has an environment for it.
"""

from __future__ import annotations

import copy
import csv
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from lanewise.grading.student import student_notebook
from tools.labs import source_path, student_path
from tools.notebooks import ROOT, read

pytestmark = [
    pytest.mark.nbgrader,
    pytest.mark.skipif(find_spec("nbgrader") is None, reason="nbgrader is not installed: make nbgrader"),
]

LAB = "padding_transpose"


def run(course: Path, *arguments: str) -> str:
    """One command of nbgrader in a course; it calls other programs of its environment by their bare names."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    python_path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=course, capture_output=True, text=True, check=False,
        env={**os.environ, "PATH": path, "PYTHONPATH": python_path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stderr


def solved() -> NotebookNode:
    """A student's notebook with every solution filled in."""
    return read(source_path(LAB))


def untouched() -> NotebookNode:
    return student_notebook(solved())


def without_padding() -> NotebookNode:
    """Right, but with bank conflicts: part of the points."""
    notebook = solved()
    for cell in notebook.cells:
        cell.source = cell.source.replace("PITCH = TILE + 1", "PITCH = TILE")
    return notebook


def with_an_edited_check() -> NotebookNode:
    """Nothing solved, but the check says 12 points."""
    notebook = untouched()
    for cell in notebook.cells:
        if cell.source.startswith('lab.check("transpose"'):
            cell.source = "12"
    return notebook


def with_a_cell_twice() -> NotebookNode:
    notebook = solved()
    twin = next(cell for cell in notebook.cells if "def transpose" in cell.source)
    notebook.cells.append(copy.deepcopy(twin))
    notebook.cells[-1].id = "twin"
    return notebook


SUBMISSIONS: dict[str, Callable[[], NotebookNode]] = {
    "solved": solved,
    "untouched": untouched,
    "without-padding": without_padding,
    "edited-check": with_an_edited_check,
}
MAX_SCORE = 16.0


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in which every submission was marked."""
    folder = tmp_path_factory.mktemp("course")
    shutil.copy(ROOT / "labs" / "nbgrader_config.py", folder)
    shutil.copytree(source_path(LAB).parent, folder / "source" / LAB)
    run(folder, "generate_assignment", LAB, "--create")
    for student, make in SUBMISSIONS.items():
        path = folder / "submitted" / student / LAB / f"{LAB}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(make(), path)
    run(folder, "autograde", LAB, "--create")
    run(folder, "export")
    return folder


def marks(course: Path) -> dict[str, tuple[float, float]]:
    with (course / "grades.csv").open(encoding="utf-8") as file:
        return {
            row["student_id"]: (float(row["score"]), float(row["max_score"])) for row in csv.DictReader(file)
        }


def test_an_assignment_is_the_students_notebook(course: Path) -> None:
    released = read(course / "release" / LAB / f"{LAB}.ipynb")
    ours = read(student_path(LAB))
    assert [cell.source for cell in released.cells] == [cell.source for cell in ours.cells]


def test_marks_are_ours_partial_ones_too(course: Path) -> None:
    assert marks(course) == {
        "solved": (MAX_SCORE, MAX_SCORE),
        "untouched": (0.0, MAX_SCORE),
        "without-padding": (MAX_SCORE - 3, MAX_SCORE),
        "edited-check": (0.0, MAX_SCORE),
    }


def test_feedback_shows_the_sentence(course: Path) -> None:
    run(course, "generate_feedback", LAB)
    page = course / "feedback" / "without-padding" / LAB / f"{LAB}.html"
    assert "Right result, wrong pattern." in page.read_text(encoding="utf-8")
    assert "excess wavefronts" in page.read_text(encoding="utf-8")


def test_a_cell_that_is_there_twice_is_named_by_our_grader(course: Path, tmp_path: Path) -> None:
    path = course / "submitted" / "twice" / LAB / f"{LAB}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(with_a_cell_twice(), path)
    from typer.testing import CliRunner

    from lanewise.__main__ import app

    table = tmp_path / "grades.csv"
    CliRunner().invoke(app, ["grade", str(path.parent.parent.parent), "-o", str(table)])
    with table.open(encoding="utf-8") as file:
        rows = {row["student"]: row for row in csv.DictReader(file)}
    assert rows["twice"]["status"] == "duplicated cell"
    assert float(rows["solved"]["score"]) == MAX_SCORE
