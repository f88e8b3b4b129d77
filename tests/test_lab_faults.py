"""Every fault that a pipeline or attention lab can plant: what it costs, and what the learner is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from lanewise.grading.reading import read_answer
from lanewise.labs import KernelTask, Lab, Verdict, load
from lanewise.labs.catalogue import async_pipelines_hunt as hunt
from lanewise.labs.catalogue import attention_tiles as tiles

IN_FLIGHT, RACE = "may still be writing it", "nothing orders the two"
HUNTED = [
    ("mirror", hunt.groups_lost, IN_FLIGHT),
    ("mirror", hunt.one_group_short, IN_FLIGHT),
    ("mirror", hunt.refilled_early, RACE),
    ("mirror", hunt.met_before_the_wait, RACE),
    ("mirror", hunt.drained, "at most 1,024 bytes of later tiles are under way; it could be 2,048"),
    ("product", hunt.wrong_order, IN_FLIGHT),
    ("product", hunt.committed_late, IN_FLIGHT),
    ("product", hunt.own_copies_only, RACE),
    ("product", hunt.never_released, RACE),
    ("product", hunt.too_many_barriers, "barriers in all; 33 are enough"),
]


def judged(lab: Lab, name: str, starter: Callable, **given: int) -> Verdict:
    """The verdict on a starter with one more statement that does nothing."""
    task = lab.task(name)
    assert isinstance(task, KernelTask)
    text = replace(task, starter=starter).starter_source + "\n    return\n"
    lab = replace(lab, given={**lab.given, **given})
    return lab.judge(name, read_answer(lab, name, text), hidden_seed=1)


def name_of(value: Any) -> str | None:
    return value.py_func.__name__ if hasattr(value, "py_func") else None


@pytest.mark.parametrize(("task", "starter", "told"), HUNTED, ids=name_of)
def test_a_hunted_fault_gives_the_right_result_and_is_told(task: str, starter: Any, told: str) -> None:
    verdict = judged(load("async_pipelines_hunt"), task, starter)
    assert verdict.head == "Right result, wrong pattern."
    assert told in verdict.sentences[0]
    assert verdict.points <= 9 < verdict.max_points


def test_overlap_and_barriers_count_only_without_hazards() -> None:
    verdict = judged(load("async_pipelines_hunt"), "product", hunt.never_released)
    by_name = {one.name: one for one in verdict.judged}
    assert by_name["overlap"].earned == by_name["barriers"].earned == by_name["no hazards"].earned == 0
    assert by_name["wide copies"].holds


@pytest.mark.parametrize(
    ("starter", "width", "op"),
    [
        (tiles.pitched, 64, "ld"),
        (tiles.pitched, 65, "ld"),
        (tiles.pitched, 68, "ld"),
        (tiles.pad_unused, 66, "ld"),
        (tiles.transposed_store, 64, "st"),
    ],
)
def test_a_bad_tile_of_keys_is_told_where_it_costs(starter: Any, width: int, op: str) -> None:
    verdict = judged(load("attention_tiles"), "scores", starter, WIDTH=width, ROOM=32 * width)
    assert verdict.head == "Right result, wrong pattern."
    assert f"{op}.shared.b16" in verdict.sentences[0]
    assert verdict.points <= 4


def test_the_pitch_that_is_asked_for_is_the_one_that_repairs() -> None:
    verdict = judged(load("attention_tiles"), "scores", tiles.pitched, WIDTH=66, ROOM=32 * 66)
    assert verdict


@pytest.mark.parametrize(
    ("calls", "left"),
    [
        ("copy, copy", 2),
        ("copy, wait(0)", 1),
        ("copy, commit, wait(0)", 0),
        ("copy, commit, wait(1)", 1),
        ("copy, commit, wait(3)", 1),
        ("copy, commit, commit, wait(1)", 0),
        ("copy, commit, wait(0), copy, copy, commit, wait(1)", 2),
    ],
)
def test_groups_are_counted(calls: str, left: int) -> None:
    assert hunt.still_under_way(calls) == left
