"""From a lab's source notebook to what a student gets, and to the key of a variant.

A source notebook is ordinary: it holds the solution between nbgrader's markers, and calls `load` and
`lab.check`. The notebook's lab, its seed, and each cell's part in grading follow from that and are written as
metadata, which the grader and nbgrader read.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable
from typing import Any

import nbformat
from nbformat import NotebookNode

from lanewise.errors import Error
from lanewise.labs import Answers, Lab, load
from lanewise.labs.variant import PUBLIC

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
STUB = "...  # your code"
# A region that assigns constants becomes `NAME = ...` for each; any other becomes the stub.
_REGION = re.compile(rf"^([ \t]*){BEGIN}\n(.*?)^[ \t]*{END}$", re.MULTILINE | re.DOTALL)
_CONSTANT = re.compile(r"([A-Z][A-Z0-9_]*) = .*")
_LOAD = re.compile(r"""\bload\(\s*(["'])(?P<name>\w+)\1\s*(?:,\s*seed\s*=\s*(?P<seed>[0-9]{1,10})\s*)?\)""")
_CHECK = re.compile(r"""\blab\.check\(\s*(["'])(?P<task>\w+)\1""")


class InvalidSource(Error):
    """A lab's source notebook lacks a part, or names a task that the lab does not have."""


def lab_of(notebook: NotebookNode) -> tuple[str, int]:
    """The name and seed of the lab that a source notebook loads. Raises `InvalidSource` if it loads none."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and (found := loads(cell.source)):
            return found
    raise InvalidSource('source: no cell has load("LAB"). Add: lab = load("LAB")')


def loads(text: str) -> tuple[str, int] | None:
    """The name and seed of the lab that a cell's text loads, if it loads one.

    >>> loads('lab = load("padding_transpose", seed=7)')
    ('padding_transpose', 7)
    """
    found = _LOAD.search(text)
    return (found["name"], int(found["seed"] or PUBLIC)) if found else None


def annotated(source: NotebookNode) -> NotebookNode:
    """A copy of a source notebook with the metadata that says which lab and which tasks its cells are."""
    result = copy.deepcopy(source)
    name, seed = lab_of(result)
    lab = load(name, seed)
    result.metadata["lanewise"] = {"lab": name, "seed": seed}
    solved, checked = [], []
    for cell in result.cells:
        cell.metadata.pop("nbgrader", None)
        if cell.cell_type != "code":
            continue
        if BEGIN in cell.source:
            solved.append(_task_solved_in(cell, lab))
            cell.metadata["nbgrader"] = _part(solved[-1], solution=True)
        elif found := _CHECK.search(cell.source):
            checked.append(found["task"])
            task = lab.task(found["task"])
            cell.metadata["nbgrader"] = _part(f"check_{task.name}", points=task.points)
    wanted = sorted(task.name for task in lab.tasks)
    for what, there_are in (("solution cell", solved), ("check cell", checked)):
        if sorted(there_are) != wanted:
            raise InvalidSource(
                f"{name}: each task needs one {what}; tasks {wanted}, found {sorted(there_are)}."
            )
    return result


def _task_solved_in(cell: NotebookNode, lab: Lab) -> str:
    names = _names_defined(cell.source) & {task.name for task in lab.tasks}
    if len(names) != 1:
        raise InvalidSource(
            f"{lab.name}: a solution cell defines {sorted(names) or 'no task'}; it defines exactly one of"
            f" {', '.join(task.name for task in lab.tasks)}."
        )
    return names.pop()


def _names_defined(source: str) -> set[str]:
    statements = ast.parse(source).body
    defined = {one.name for one in statements if isinstance(one, ast.FunctionDef)}
    targets = (target for one in statements if isinstance(one, ast.Assign) for target in one.targets)
    return defined | {target.id for target in targets if isinstance(target, ast.Name)}


def _part(grade_id: str, *, solution: bool = False, points: float = 0) -> NotebookNode:
    """The metadata of nbgrader's format 3 for a cell that holds an answer, or checks one."""
    part: dict[str, Any] = {
        "grade": not solution,
        "grade_id": grade_id,
        "locked": not solution,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    if not solution:
        part["points"] = points
    return nbformat.from_dict(part)


def student_notebook(source: NotebookNode, seed: int = PUBLIC) -> NotebookNode:
    """What a student gets: the source without its solution and without outputs, for one variant."""
    return _made(source, seed, lambda lab, name, text: given_text(lab, name, text))


def key_notebook(source: NotebookNode, seed: int) -> NotebookNode:
    """The source with the answers of one variant. Kernels stay: a solution serves every variant."""

    def solved(lab: Lab, name: str, text: str) -> str:
        task = lab.task(name)
        return f"{BEGIN}\n{task.key()}\n{END}" if isinstance(task, Answers) else text

    return _made(source, seed, solved)


def given_text(lab: Lab, task_name: str, solved: str) -> str:
    """The cell that a student starts from: blanks, the kernel to repair, or a kernel with gaps."""
    task = lab.task(task_name)
    if isinstance(task, Answers):
        return task.blank()
    if task.starter:
        return task.starter_source
    return _REGION.sub(_gap, solved)


def _gap(region: re.Match[str]) -> str:
    lines = region[2].rstrip().splitlines()
    constants = [_CONSTANT.fullmatch(line) for line in lines]
    if all(constants):
        return "\n".join(f"{constant[1]} = {STUB}" for constant in constants if constant)
    return region[1] + STUB


def _made(source: NotebookNode, seed: int, text_for: Callable[[Lab, str, str], str]) -> NotebookNode:
    name, _ = lab_of(source)
    lab = load(name, seed)
    result = annotated(source)
    result.metadata["lanewise"]["seed"] = seed
    argument = "" if seed == PUBLIC else f", seed={seed}"
    for cell in result.cells:
        if cell.cell_type != "code":
            continue
        cell.outputs, cell.execution_count = [], None
        cell.source = _LOAD.sub(f'load("{name}"{argument})', cell.source)
        part = cell.metadata.get("nbgrader")
        if part and part.solution:
            cell.source = text_for(lab, part.grade_id, cell.source)
    return result
