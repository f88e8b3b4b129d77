"""Labs on coalescing and layouts: every fault that they can plant is told, and a way around the lesson is not
paid for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from lanewise.grading.reading import read_answer
from lanewise.labs import KernelTask, Verdict, load
from lanewise.labs.catalogue import coalescing_structs

DETOURS = {
    "a lane for each row": (
        "coalescing_sectors",
        """
@cuda.jit
def row_sums(src, dst):
    thread = cuda.threadIdx.y * LANES + cuda.threadIdx.x
    row = cuda.blockIdx.x * ROWS + thread
    if thread < ROWS and row < src.shape[0]:
        total = float32(0)
        for col in range(src.shape[1]):
            total += src[row, col]
        dst[row] = total
""",
    ),
    "one thread sums all": (
        "coalescing_sectors",
        """
@cuda.jit
def row_sums(src, dst):
    if cuda.grid(1) == 0 and cuda.threadIdx.y == 0:
        for row in range(src.shape[0]):
            total = float32(0)
            for col in range(src.shape[1]):
                total += src[row, col]
            dst[row] = total
""",
    ),
    "a scattered store of records": (
        "coalescing_structs",
        """
@cuda.jit
def to_arrays(src, dst):
    first = cuda.blockIdx.x * FLOATS
    for k in range(first + cuda.threadIdx.x, first + FLOATS, THREADS):
        if k < src.size:
            dst[k % FIELDS, k // FIELDS] = src[k]
""",
    ),
    "every lane reads the whole record": (
        "coalescing_structs",
        """
@cuda.jit
def centre(src, dst):
    first = cuda.blockIdx.x * FLOATS
    for k in range(first + cuda.threadIdx.x, first + FLOATS, THREADS):
        if k < src.size:
            total = float32(0)
            for field in range(FIELDS):
                total += src[k // FIELDS * FIELDS + field]
            dst[k] = float32(FIELDS) * src[k] - total
""",
    ),
    "a gather of channels": (
        "layouts_in_ai_permute",
        """
@cuda.jit
def to_nhwc(src, dst):
    image, n_channels = cuda.blockIdx.y, src.shape[1]
    for k in range(cuda.threadIdx.x, PIXELS * n_channels, THREADS):
        pixel = cuda.blockIdx.x * PIXELS + k // n_channels
        if pixel < src.shape[2]:
            dst[image, pixel, k % n_channels] = src[image, k % n_channels, pixel]
""",
    ),
}


def judged(lab_name: str, text: str, **given: int) -> Verdict:
    lab = load(lab_name)
    lab = replace(lab, given={**lab.given, **given})
    task = text.partition("def ")[2].partition("(")[0]
    return lab.judge(task, read_answer(lab, task, text), hidden_seed=1)


@pytest.mark.parametrize("detour", DETOURS)
def test_a_detour_earns_the_result_and_nothing_of_the_lesson(detour: str) -> None:
    verdict = judged(*DETOURS[detour])
    earned = {one.name: one.earned for one in verdict.judged}
    assert verdict.head == "Right result, wrong pattern."
    assert earned["sectors"] == earned["no bank conflicts"] == 0
    assert verdict.points < verdict.max_points / 2
    assert "sectors; at most" in verdict.sentences[0]


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("padded", "ld.shared.b32: 4 wavefronts where 1 would do"),
        ("own_record", "12 sectors in 3 lines"),
        ("unordered", "nothing orders the two"),
        ("early", "got nan"),
    ],
)
def test_a_fault_of_the_records_is_told(fault: str, told: str) -> None:
    lab = load("coalescing_structs")
    task: Any = lab.task("to_arrays")
    assert isinstance(task, KernelTask)
    kernel = coalescing_structs.starters(lab.given["FIELDS"], lab.given["THREADS"])[fault]
    verdict = judged(lab.name, replace(task, starter=kernel).starter_source + "\n    return\n")
    assert told in verdict.sentences[0]
    assert verdict.points < verdict.max_points
