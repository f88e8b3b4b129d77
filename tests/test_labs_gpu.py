"""Every solution of every lab on a GPU: the reference's result, and the tracer's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.grading.reading import IMPORTS, read_answer
from lanewise.grading.student import key_notebook
from lanewise.labs import KernelTask, Lab, load, names
from lanewise.labs.gpu import RTOL, launchable, launched, measured, require_right
from lanewise.labs.kernels import traced_run
from tools.labs import source_path
from tools.notebooks import read

pytestmark = pytest.mark.gpu

CASES = [
    pytest.param(name, task.name, id=f"{name}-{task.name}")
    for name in names()
    for task in load(name).tasks
    if isinstance(task, KernelTask)
]


def solution_text(name: str, task_name: str) -> str:
    notebook = key_notebook(read(source_path(name)), 0)
    parts = {cell.metadata.get("nbgrader", {}).get("grade_id"): cell.source for cell in notebook.cells}
    return str(parts[task_name])


def live(lab: Lab, task_name: str, text: str) -> Any:
    """The solution as numba compiles it; the text is our own."""
    names_there: dict[str, Any] = dict(lab.given)
    exec(IMPORTS, names_there)
    exec(text, names_there)
    return names_there[task_name]


@pytest.mark.parametrize(("name", "task_name"), CASES)
def test_a_solution_gives_the_same_on_the_gpu(name: str, task_name: str) -> None:
    lab = load(name)
    task = lab.task(task_name)
    assert isinstance(task, KernelTask)
    text = solution_text(name, task_name)
    kernel, function = live(lab, task_name, text), read_answer(lab, task_name, text)
    sizes = (*task.sizes, *task.hidden(np.random.default_rng(7)))
    for number, size in enumerate(sizes):
        run = task.run(np.random.default_rng(number), size)
        outputs = launched(launchable(task, kernel), run)
        require_right(run, outputs)
        traced_run(task.wrap(function) if task.wrap else function, run, task.machine)
        for output, found in outputs.items():
            np.testing.assert_allclose(run.arguments[output], found, max(run.rtol, RTOL), run.atol)


@pytest.mark.parametrize(("name", "task_name"), CASES)
def test_a_solution_is_timed(name: str, task_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is run here and has no file, so that nothing is left to fill in is known from its source."""
    lab = load(name)
    task = lab.task(task_name)
    assert isinstance(task, KernelTask)
    text = solution_text(name, task_name)
    monkeypatch.setattr("lanewise.labs.gpu.function_of", lambda answer: read_answer(lab, task_name, text))
    said = str(measured(task, live(lab, task_name, text)))
    assert "Right result." in said
