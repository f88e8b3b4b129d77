"""The labs on padding and swizzles: every fault that they can plant, and kernels that ignore the lesson."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lanewise.grading.reading import read_answer
from lanewise.labs import KernelTask, Verdict, load
from lanewise.labs.catalogue import padding_hunt, swizzle_hunt
from lanewise.swizzles import xor_tile

ROWS, PITCH, TILE = 8, 33, 32
PADDED = padding_hunt.starters(TILE, ROWS, PITCH, TILE * PITCH, 16, 17)
SWIZZLED = swizzle_hunt.starters(64, 64 * 32, ROWS)

FAULTS = [
    ("padding_hunt", "transpose", PADDED["row_too_many"], "32 wavefronts where 1 would do"),
    ("padding_hunt", "transpose", PADDED["shift_by_banks"], "32 wavefronts where 1 would do"),
    ("padding_hunt", "transpose", PADDED["store_alone"], "which no thread has written"),
    ("padding_hunt", "transpose", PADDED["pad_twice"], "past its 1056 elements"),
    ("padding_hunt", "small", PADDED["columns_out"], "st.shared.b32: 2 wavefronts where 1 would do"),
    ("padding_hunt", "small", PADDED["columns_in"], "st.shared.b32: 2 wavefronts where 1 would do"),
    ("swizzle_hunt", "product", SWIZZLED["four_bits"], "past its 2048 elements"),
    ("swizzle_hunt", "product", SWIZZLED["unmapped"], "32 wavefronts where 4 would do"),
    ("swizzle_hunt", "product", SWIZZLED["half_units"], "Wrong result"),
    ("swizzle_hunt", "product", SWIZZLED["binds_otherwise"], "16 wavefronts where 4 would do"),
    ("swizzle_hunt", "transpose", SWIZZLED["thread_row"], "4 wavefronts where 1 would do"),
    ("swizzle_hunt", "transpose", SWIZZLED["wrong_row"], "32 wavefronts where 1 would do"),
    ("swizzle_hunt", "transpose", SWIZZLED["wrong_way"], "Wrong result"),
    ("swizzle_hunt", "transpose", SWIZZLED["padded_too"], "4,224 bytes of shared memory"),
]

ALONE = """
@cuda.jit
def transpose(src, dst):
    tile = cuda.shared.array((TILE, TILE), float32)
    if cuda.threadIdx.x == 0 and cuda.threadIdx.y == 0:
        for y in range(TILE):
            for x in range(TILE):
                row, col = cuda.blockIdx.y * TILE + y, cuda.blockIdx.x * TILE + x
                if row < src.shape[0] and col < src.shape[1]:
                    tile[y, x] = src[row, col]
                    dst[col, row] = tile[y, x]
"""
NAIVE = """
@cuda.jit
def transpose(src, dst):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, cuda.blockDim.y):
        if row + step < src.shape[0] and col < src.shape[1]:
            dst[col, row + step] = src[row + step, col]
"""


def judged(name: str, task: str, text: str, seed: int = 0) -> Verdict:
    lab = load(name, seed)
    return lab.judge(task, read_answer(lab, task, text))


def name_of(value: Any) -> str | None:
    return value.py_func.__name__ if hasattr(value, "py_func") else None


@pytest.mark.parametrize(("name", "task", "starter", "told"), FAULTS, ids=name_of)
def test_a_fault_costs_points_and_is_told(name: str, task: str, starter: Any, told: str) -> None:
    asked = load(name).task(task)
    assert isinstance(asked, KernelTask)
    verdict = judged(name, task, replace(asked, starter=starter).starter_source + "\n    return\n")
    assert told in str(verdict)
    assert verdict.points <= 6 < verdict.max_points


@pytest.mark.parametrize("text", [ALONE, NAIVE], ids=["one lane alone", "no tile"])
@pytest.mark.parametrize("name", ["padding_transpose", "padding_hunt", "swizzle_hunt"])
def test_a_transpose_that_ignores_the_lesson_reaches_none_of_its_goals(name: str, text: str) -> None:
    verdict = judged(name, "transpose", text)
    earned = {one.name: one.earned for one in verdict.judged}
    assert earned["result"] > 0
    assert earned["no bank conflicts"] == earned["coalesced"] == 0


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("col ^ row", "Two elements share a place"),
        ("row * (COLS + 1) + col", "A place lies outside of the tile"),
        ("row * COLS + col", "32 wavefronts where 1 would do"),
        ("row * COLS + (col ^ (row & 15))", "2 wavefronts where 1 would do"),
    ],
)
def test_a_layout_is_told_what_is_wrong_with_it(formula: str, told: str) -> None:
    text = f"@cuda.jit(device=True)\ndef slot(row, col):\n    return {formula}\n"
    assert told in " ".join(judged("swizzle_xor", "slot", text).sentences)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Swizzle<3,3,5>", ""),
        ("swizzle<3,3,5>", ""),
        ("Swizzle<3,3,6>", "takes 8 wavefronts where 4 would do"),
        ("Swizzle<3,2,6>", "misaligned"),
        ("Swizzle<3,3,2>", "Use a shift of at least 3"),
        ("3 3 5", "cannot read"),
    ],
)
def test_a_chosen_swizzle_is_judged_by_what_it_does(text: str, reason: str) -> None:
    tile = xor_tile(64, 256, mask=7, shift=3)
    said = swizzle_hunt.objection(text, tile, 2, swizzle_hunt.MATRICES)
    assert reason in said
    assert bool(said) == bool(reason)


def test_the_public_tiles_end_in_all_four_ways() -> None:
    asked = load("swizzle_hunt").task("fates").asked  # type: ignore[union-attr]
    assert {question.answer for question in asked} == {"lost", "fault", "slow", "free"}
