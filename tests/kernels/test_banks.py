"""Kernels of the topic banks: right results, what their docstrings promise, and laws of their patterns."""

from math import gcd
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise import records
from lanewise.experiments import experiments_of
from lanewise.kernels import banks, banks_repeated, banks_widths
from lanewise.trace import Trace, trace
from tests.kernels.launches import poisoned

WHOLE = {"scale_by_rows": 1, "scale_by_columns": 32, "scale_padded": 1}  # wavefronts of a full warp's load


def warp(kernel: Any, dst: np.ndarray, *arguments: Any) -> Trace:
    """Trace one warp; `arguments` come before and after `dst` where the kernel has them."""
    names = kernel.py_func.__code__.co_varnames
    given_ = list(arguments)
    given_.insert(names.index("dst"), dst)
    return trace(kernel, 1, 32, *given_)


def traced(name: str, *arguments: Any) -> tuple[np.ndarray, Trace]:
    dst = poisoned(32)
    return dst, trace(getattr(banks, name), 1, 32, dst, *arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "expected", "wavefronts"),
    [
        ("read_own", (), banks.reference_stride(1), 1),
        ("read_stride", (2,), banks.reference_stride(2), 2),
        ("read_stride", (33,), banks.reference_stride(33), 1),
        ("read_first", (), banks.reference_stride(0), 1),
        ("read_pair", (), np.arange(32) % 2, 1),
        ("read_column", (), banks.reference_tile(1, 0), 32),
        ("read_diagonal", (), banks.reference_tile(1, 1), 1),
    ],
)
def test_a_read_gets_the_words_it_names(name: str, arguments: Any, expected: Any, wavefronts: int) -> None:
    dst, t = traced(name, *arguments)
    np.testing.assert_array_equal(dst, expected)
    assert t.shared.load.wavefronts == wavefronts
    assert not t.hazards


def test_stores_to_one_word_are_cheap_and_a_race() -> None:
    _, first = traced("store_first")
    assert (first.shared.store.wavefronts, [hazard.kind for hazard in first.hazards]) == (1, ["shared_race"])
    dst, apart = traced("store_stride", 32)
    np.testing.assert_array_equal(dst, np.arange(32))
    assert (apart.shared.store.wavefronts, apart.hazards) == (32, [])


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("n", [64, 70])
def test_whole_kernels_double_any_size(name: str, n: int) -> None:
    src = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
    dst = np.full_like(src, np.nan)
    n_blocks = -(-n // 32)
    t = trace(getattr(banks, name), (n_blocks, n_blocks), banks.SCALE_BLOCK, src, dst)
    expected = banks.reference_scale(src)
    np.testing.assert_array_equal(dst, expected if name == "scale_by_rows" else expected.T)
    assert not t.hazards
    if n % 32 == 0:
        assert t.shared.load.wavefronts == WHOLE[name] * t.shared.load.requests


@pytest.mark.parametrize(
    "row", records.record("h200", "bank_times").rows("kernels"), ids=lambda row: row["kernel"]
)
def test_the_timed_kernel_is_the_kernel_of_today(row: Any) -> None:
    assert records.code_hash(getattr(banks, row["kernel"])) == row["code_hash"], (
        f"{row['kernel']} has changed since it was timed: time it again with probes/kernels/times.py"
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 33), st.integers(0, 32))
def test_where_a_stride_starts_changes_nothing(stride: int, base: int) -> None:
    dst = poisoned(32)
    t = warp(banks.read_shifted, dst, stride, base)
    np.testing.assert_array_equal(dst, banks.reference_stride(stride) + base)
    assert t.shared.load.wavefronts == (gcd(stride, 32) if stride else 1)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 33), st.integers(0, 32))
def test_only_the_lanes_that_take_part_meet(stride: int, n_lanes: int) -> None:
    dst = poisoned(32)
    t = warp(banks.read_partly, dst, stride, n_lanes)
    np.testing.assert_array_equal(dst, banks.reference_partly(stride, n_lanes))
    period = 32 // gcd(stride, 32)  # lanes so far apart meet
    assert t.shared.load.wavefronts == -(-n_lanes // period)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["bytes", "halves", "doubles"]), st.integers(1, 33))
def test_the_trace_of_any_width_agrees_with_the_model(name: str, stride: int) -> None:
    kernel, dtype, width = {
        "bytes": (banks_widths.read_bytes, np.int8, 8),
        "halves": (banks_widths.read_halves, np.float16, 16),
        "doubles": (banks_widths.read_doubles, np.float64, 64),
    }[name]
    src, dst = np.arange(banks_widths.N_ELEMS).astype(dtype), poisoned(32, dtype=dtype)
    t = warp(kernel, dst, src, stride)
    np.testing.assert_array_equal(dst, banks_widths.reference_stride(src, stride))
    addresses = stride * np.arange(32)[None] * np.dtype(dtype).itemsize
    wavefronts, ideal = lw.memory.shared_wavefronts(f"ld.shared.b{width}", addresses)
    assert (t.shared.load.wavefronts, t.shared.load.ideal) == (wavefronts[0], ideal[0])


@pytest.mark.parametrize(("kernel", "width"), [(banks_widths.read_twos, 2), (banks_widths.read_fours, 4)])
def test_groups_join_only_where_neighbours_share(kernel: Any, width: int) -> None:
    src = np.arange(banks_widths.N_ELEMS, dtype=np.float32)
    ideal = {}
    for sharing in (1, 2, 4, 8):
        dst = poisoned(32, width)
        t = warp(kernel, dst, src, width, sharing)
        np.testing.assert_array_equal(dst, banks_widths.reference_vectors(src, width, width, sharing))
        assert t.shared.load.excess == 0
        ideal[sharing] = t.shared.load.ideal
    assert ideal == {1: width, 2: width // 2, 4: width // 2, 8: width // 2}


def test_a_missing_barrier_is_found_although_the_values_are_right() -> None:
    dst = poisoned(32)
    (hazard,) = warp(banks.read_too_early, dst).hazards
    np.testing.assert_array_equal(dst, banks.reference_tile(1, 0))
    assert (hazard.kind, hazard.severity, hazard.count) == ("shared_race", "lock_step", 31)
    assert "reads tile[1, 0]" in hazard.message


@pytest.mark.parametrize("stride", [8, 33])
def test_repeated_reads_keep_their_conflicts_when_they_wrap_around(stride: int) -> None:
    n_rounds = banks_repeated.SPAN // banks_repeated.UNROLL + 1
    starts, dst = (stride * np.arange(32)).astype(np.int32), poisoned(banks_repeated.BLOCK)
    t = trace(banks_repeated.repeat_stride, 1, banks_repeated.BLOCK, starts, dst, n_rounds)
    expected = banks_repeated.reference_repeat_stride(starts, n_rounds)
    np.testing.assert_array_equal(dst.reshape(-1, 32), np.tile(expected, (banks_repeated.BLOCK // 32, 1)))
    assert t.shared.load.wavefronts == (gcd(stride, 32) if stride else 1) * t.shared.load.requests
    assert t.hazards == []


def test_a_chase_through_global_memory_visits_every_word() -> None:
    """What the experiment chases through is one ring, so no cache is met twice on the way."""
    (case,) = (
        case
        for experiment in experiments_of("banks")
        for case in experiment.counted
        if case.kernel is banks_repeated.chase_global
    )
    nexts = case.problem.inputs(np.random.default_rng(0))["nexts"]
    visited, at = set(), 0
    for _ in range(nexts.size):
        visited.add(at)
        at = int(nexts[at])
    assert (len(visited), at) == (nexts.size, 0)
    dst = poisoned(1, dtype=np.uint32)
    trace(banks_repeated.chase_global, 1, 1, nexts, dst, 37)
    np.testing.assert_array_equal(dst, banks_repeated.reference_chase(nexts, 37, 1))
