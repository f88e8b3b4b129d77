"""Lower bounds: no recorded time beats them, and the largest is the resource that the profiler found busy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lanewise import results, trace
from lanewise.bottleneck import InvalidWork, Work, lower_bounds, recorded_bounds
from lanewise.kernels import banks, coalescing, padding
from lanewise.machine import product

# With float32 sums in registers mma.sync reaches less than the published peak, which needs wgmma.
MEASURED = replace(
    product("H200"), tensor_tflop_per_s=results.experiment("h200", "E-14").tflop_per_s("registers")
)
CASES = recorded_bounds("h200", "H200")


def test_there_are_many_cases() -> None:
    assert len(CASES) > 90


def test_no_recorded_time_beats_a_bound() -> None:
    assert [case.label for case in CASES if case.bounds.share(case.us) > 1] == []


def test_bounds_agree_with_what_the_profiler_calls_busy() -> None:
    """Shares of the time, against the profiler's own throughputs, for launches long enough to have no edges."""
    pairs = {"issue": "sm_busy", "DRAM": "dram_throughput", "shared memory": "l1_throughput"}
    for case in CASES:
        for bound in case.bounds.bounds:
            if case.us < 100 or bound.resource not in pairs:
                continue
            busy = case.metrics[pairs[bound.resource]]
            # The L1 cache and other pipes have work besides; a clock below the highest makes cycles longer.
            assert bound.us / case.us < busy + 0.03, f"{case.label}: {bound} but {busy}"
            if bound.resource == "DRAM":
                assert bound.us / case.us == pytest.approx(busy, abs=0.05), case.label


def transposed(kernel: Any, n: int) -> Any:
    """A few blocks of a full-size transpose; pages that nobody touches take no memory."""
    src, dst = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
    return trace(kernel, padding.grid_of(src), padding.BLOCK, src, dst, blocks=[0, 1])


RUNGS = {
    "naive": padding.transpose_naive,
    "tiled": padding.transpose_tiled,
    "padded": padding.transpose_padded,
    "swizzled": padding.transpose_swizzled,
}


@pytest.mark.parametrize("n", [1024, 4096, 8192])
@pytest.mark.parametrize("rung", RUNGS)
def test_traced_bounds_hold_for_the_transpose_ladder(rung: str, n: int) -> None:
    us = results.experiment("h200", "E-04").us(f"{rung} {n}")
    bounds = lower_bounds(Work.of_trace(transposed(RUNGS[rung], n), useful_bytes=8 * n * n), "H200")
    assert 0.1 < bounds.share(us) < 1
    if n > 1024:
        guilty = {"naive": "L1 cache", "tiled": "shared memory"}.get(rung, "DRAM")
        assert bounds.largest.resource == guilty


def test_the_trace_of_some_blocks_stands_for_all() -> None:
    n = 256
    src, dst = np.ones((n, n), np.float32), np.zeros((n, n), np.float32)
    launch = (banks.scale_by_columns, padding.grid_of(src), banks.SCALE_BLOCK, src, dst)
    some, whole = (Work.of_trace(trace(*launch, blocks=blocks)) for blocks in ([0, 3, 9], None))
    assert some == whole
    assert whole.shared_wavefronts == 33 * n * n / 32
    assert whole.global_lines == 2 * n * n / 32


def test_lines_of_a_strided_walk() -> None:
    """A request that touches 32 lines takes 32 cycles of the L1 cache, eight times what its sectors fill."""
    src, dst = np.zeros(1 << 12, np.float32), np.zeros(1 << 7, np.float32)
    t = trace(coalescing.sum_runs, 1, 128, src, dst, 32)
    assert t.global_.load.lines == 32 * t.global_.load.requests


def test_bounds_are_sorted_and_say_what_they_are() -> None:
    bounds = lower_bounds(Work(dram_bytes=4.8e6, shared_wavefronts=132 * 1980 * 3, flops=33.45e6), "H200")
    assert [(bound.resource, round(bound.us, 9)) for bound in bounds.bounds] == [
        ("shared memory", 3.0), ("DRAM", 1.0), ("float32 units", 0.5),
    ]  # fmt: skip
    assert bounds.share(6.0) == 0.5
    assert bounds.share(4.0, "DRAM") == 0.25
    shown = repr(bounds.table(us=6.0, note="Where from."))
    assert "784,080 wavefronts" in shown
    assert shown.endswith("Where from.")
    assert "of the time" not in repr(bounds.table())


@pytest.mark.parametrize(
    ("us", "words"),
    [
        (3.1, "Limited by shared memory: at least 3.00 of 3.10 µs, 0.97 of the time."),
        (5.0, "Not at a limit; shared memory comes nearest"),
        (30.0, "Nothing counted here limits it; shared memory comes nearest"),
        (2.0, "Impossible: shared memory needs at least 3.00 of 2.00 µs"),
    ],
)
def test_verdicts(us: float, words: str) -> None:
    assert words in lower_bounds(Work(shared_wavefronts=132 * 1980 * 3), "H200").verdict(us)


def test_a_measured_ceiling_explains_what_a_published_one_does_not() -> None:
    """The swizzled product waits for the Tensor Cores, as fast as mma.sync drives them."""
    row = results.experiment("h200", "E-16").row("3 bits")
    work = Work(tensor_flops=row["flops"])
    assert lower_bounds(work, "H200").share(row["us"][1]) < 0.5
    assert 0.7 < lower_bounds(work, MEASURED).share(row["us"][1]) < 0.8


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Work(flops=-1), "flops is -1"),
        (lambda: Work(dram_bytes=float("nan")), "dram_bytes is nan"),
        (lambda: lower_bounds(Work(), "H200"), "asks for nothing"),
        (lambda: lower_bounds(Work(flops=1), "H200").share(0), "the time is 0"),
        (
            lambda: lower_bounds(Work(flops=1), "H200").share(1, "DRAM"),
            "no bound of 'DRAM'; there are float32",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Any, words: str) -> None:
    with pytest.raises(InvalidWork) as error:
        make()
    assert words in str(error.value)
