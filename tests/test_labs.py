"""Every lab: its solution passes in every variant, what a student gets is unfinished, planted faults are found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.grading.reading import read_answer
from lanewise.grading.student import given_text, key_notebook, student_notebook
from lanewise.labs import Answers, KernelTask, Lab, load, names
from tools.labs import lab_names, refresh, source_path, student_path
from tools.notebooks import read

SEEDS = (0, 1, 2, 3, 4, 5)


def solution_cells(notebook: Any) -> dict[str, str]:
    """The text of each solution cell by its task."""
    parts = ((cell, cell.metadata.get("nbgrader")) for cell in notebook.cells)
    return {part.grade_id: cell.source for cell, part in parts if part and part.solution}


def kernel_tasks() -> list[Any]:
    return [
        pytest.param(name, task.name, id=f"{name}-{task.name}")
        for name in names()
        for task in load(name).tasks
        if isinstance(task, KernelTask)
    ]


def test_each_lab_has_a_module_a_source_and_a_students_notebook() -> None:
    assert list(names()) == lab_names()
    assert all(student_path(name).is_file() for name in names())


@pytest.mark.parametrize("name", names())
def test_the_notebooks_are_what_their_source_makes(name: str) -> None:
    assert refresh(name, execute=False, write=False) == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", names())
def test_the_solution_passes_in_every_variant(name: str, seed: int) -> None:
    lab = load(name, seed)
    solved = solution_cells(key_notebook(read(source_path(name)), seed))
    for task in lab.tasks:
        verdict = lab.judge(task.name, read_answer(lab, task.name, solved[task.name]), hidden_seed=1)
        assert verdict, str(verdict)
        assert verdict.points == task.points > 0


@pytest.mark.parametrize("name", names())
def test_the_answers_in_the_source_are_the_key(name: str) -> None:
    lab, solved = load(name), solution_cells(read(source_path(name)))
    for task in lab.tasks:
        if isinstance(task, Answers):
            assert lab.check(task.name, read_answer(lab, task.name, solved[task.name]))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", names())
def test_what_a_student_gets_is_unfinished_and_scores_nothing(name: str, seed: int) -> None:
    lab = load(name, seed)
    given = solution_cells(student_notebook(read(source_path(name)), seed))
    for task in lab.tasks:
        verdict = lab.judge(task.name, read_answer(lab, task.name, given[task.name]), hidden_seed=1)
        assert (verdict.state, verdict.points) == ("unfinished", 0), str(verdict)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "task_name"), kernel_tasks())
def test_a_kernel_to_repair_has_a_fault_that_costs_points(name: str, task_name: str, seed: int) -> None:
    """A comment makes no difference; one more statement that does nothing makes the starter count as changed."""
    lab = load(name, seed)
    task = lab.task(task_name)
    assert isinstance(task, KernelTask)
    if not task.starter:
        assert "..." in given_text(lab, task_name, solution_cells(read(source_path(name)))[task_name])
        return
    untouched = read_answer(lab, task_name, task.starter_source + "\n    # mine\n")
    assert lab.judge(task_name, untouched).state == "unfinished"
    touched = read_answer(lab, task_name, task.starter_source + "\n    return\n")
    verdict = lab.judge(task_name, touched)
    assert verdict.state != "passed"
    assert verdict.points < task.points
    assert verdict.sentences


@pytest.mark.parametrize("name", names())
def test_variants_differ(name: str) -> None:
    source = read(source_path(name))
    texts = set()
    for seed in range(12):
        lab = load(name, seed)
        student = student_notebook(source, seed)
        questions = [str(task.questions()) for task in lab.tasks if isinstance(task, Answers)]
        texts.add(repr([solution_cells(student), questions, dict(lab.given)]))
    assert len(texts) >= 3


@pytest.mark.parametrize(("name", "task_name"), kernel_tasks())
def test_hidden_sizes_follow_the_seed_and_differ_from_those_shown(name: str, task_name: str) -> None:
    task = load(name).task(task_name)
    assert isinstance(task, KernelTask)
    drawn = [task.hidden(np.random.default_rng(seed)) for seed in (0, 0, 1, 2, 3)]
    assert drawn[0] == drawn[1]
    assert len({repr(sizes) for sizes in drawn}) > 2
    assert not set(map(repr, drawn[0])) <= set(map(repr, task.sizes))


def assert_texts_are_complete(lab: Lab) -> None:
    for task in lab.tasks:
        for question in task.asked if isinstance(task, Answers) else ():
            assert question.text.endswith(("?", "."))
            assert question.nudge.endswith((".", "?"))
            assert question.why.endswith(".")
            assert not question.wrong(question.answer)


@pytest.mark.parametrize("name", names())
def test_every_question_has_a_nudge_and_a_reason(name: str) -> None:
    assert_texts_are_complete(load(name))
