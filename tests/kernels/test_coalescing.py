"""Coalescing: right results at odd sizes, and what each pattern costs per request."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.kernels import coalescing as co
from lanewise.trace import Trace, trace
from tests.kernels.launches import assert_clean, normal, numbered, poisoned, sectors_per_request

COPIES = ((co.copy, 1, 4), (co.copy2, 2, 8), (co.copy4, 4, 16), (co.copy4_ahead, 16, 16))
ODD = 1003


def run(kernel: Any, grid: Any, *arguments: Any, block: Any = co.THREADS) -> Trace:
    return assert_clean(trace(kernel, grid, block, *arguments))


@pytest.mark.parametrize("make", [numbered, normal])
def test_every_pattern_is_right_at_odd_sizes(make: Any) -> None:
    src = make(ODD)
    doubled, grid = co.reference(src), co.grid_of(ODD)
    for kernel, more in ((co.scale, ()), (co.scale_swapped, (31,)), (co.scale_swapped, (21,))):
        dst = poisoned(ODD)
        run(kernel, grid, src, dst, *more)
        np.testing.assert_array_equal(dst, doubled)
    for stride in (1, 2, 3, 8, 64):
        n_lanes = -(-ODD // stride)
        dst = poisoned(ODD)
        run(co.scale_passes, (co.grid_of(n_lanes), stride), src, dst, stride)
        np.testing.assert_array_equal(dst, doubled)
        dst = poisoned(ODD)
        expected = co.reference_every(src, dst, stride)
        run(co.scale_every, co.grid_of(n_lanes), src, dst, stride)
        np.testing.assert_array_equal(dst, expected)
        dst = poisoned(n_lanes)
        run(co.gather_every, co.grid_of(n_lanes), src, dst, stride)
        np.testing.assert_array_equal(dst, doubled[::stride])
    dst = poisoned(ODD - 31)
    run(co.scale_from, grid, src, dst, 31)
    np.testing.assert_array_equal(dst, doubled[31:])
    dst = poisoned(32 * ODD)
    run(co.repeat, co.grid_of(32 * ODD), src, dst)
    np.testing.assert_array_equal(dst, np.repeat(doubled, 32))
    matrix, dst = src[: 17 * 59].reshape(17, 59), poisoned(17, 59)
    run(co.scale_columns, (1, 8), matrix, dst, block=co.BLOCK_2D)
    np.testing.assert_array_equal(dst, co.reference(matrix))


@pytest.mark.parametrize("make", [numbered, normal])
def test_every_stream_is_right(make: Any) -> None:
    for kernel, elems, _ in COPIES:
        n = 2 * co.THREADS * 16 if elems == 16 else ODD // elems * elems
        src, dst = make(n), poisoned(n)
        run(kernel, co.grid_of(n // elems), src, dst)
        np.testing.assert_array_equal(dst, src)
    n = ODD // 4 * 4
    left, right, dst = make(n), make(n)[::-1].copy(), poisoned(n)
    run(co.triad4, co.grid_of(n // 4), left, right, dst, np.float32(0.5))
    np.testing.assert_allclose(dst, left + np.float32(0.5) * right, rtol=1e-6, atol=1e-6)
    dst = poisoned(n)
    run(co.fill4, co.grid_of(n // 4), dst, np.float32(7))
    np.testing.assert_array_equal(dst, np.full(n, 7, np.float32))
    dst = poisoned(64)
    run(co.sum4, 2, left, dst, block=32)
    groups = np.pad(left, (0, -n % 256)).reshape(-1, 64, 4)
    np.testing.assert_allclose(dst, groups.sum(axis=(0, 2), dtype=np.float64), rtol=1e-5)
    for run_length in (8, 17):
        src, dst = make(40 * run_length), poisoned(40)
        run(co.sum_runs, 1, src, dst, run_length)
        np.testing.assert_array_equal(dst, co.reference_runs(src, run_length))
        dst = poisoned(40)
        run(co.sum_columns, 1, src, dst)
        np.testing.assert_array_equal(dst, co.reference_columns(src, run_length))


@pytest.mark.parametrize("stride", range(1, 65))
def test_a_stride_costs_its_sectors(stride: int) -> None:
    """4 sectors for each float between neighbours, until each lane has a sector of its own."""
    src, dst = numbered(64 * stride), poisoned(64 * stride)
    t = run(co.scale_passes, (1, stride), src, dst, stride, block=64)
    assert sectors_per_request(t, "load") == sectors_per_request(t, "store") == {min(4 * stride, 32)}
    t = run(co.gather_every, 1, src, poisoned(64), stride, block=64)
    assert (sectors_per_request(t, "load"), sectors_per_request(t, "store")) == ({min(4 * stride, 32)}, {4})


@pytest.mark.parametrize("start", range(32))
def test_an_offset_costs_a_sector_unless_it_is_whole_sectors(start: int) -> None:
    t = run(co.scale_from, 1, numbered(96), poisoned(64), start, block=64)
    assert (sectors_per_request(t, "load"), sectors_per_request(t, "store")) == (
        {4 if start % 8 == 0 else 5},
        {4},
    )


@pytest.mark.parametrize("mask", range(32))
def test_the_order_of_lanes_within_a_line_costs_nothing(mask: int) -> None:
    t = run(co.scale_swapped, 1, numbered(64), poisoned(64), mask, block=64)
    assert sectors_per_request(t, "load") == sectors_per_request(t, "store") == {4}


def test_one_address_is_one_sector_and_columns_are_32() -> None:
    t = run(co.repeat, 1, numbered(8), poisoned(256))
    assert (sectors_per_request(t, "load"), sectors_per_request(t, "store")) == ({1}, {4})
    t = run(co.scale_columns, (2, 4), numbered(64, 32), poisoned(64, 32), block=co.BLOCK_2D)
    assert sectors_per_request(t, "load") == sectors_per_request(t, "store") == {32}


def test_wider_lanes_make_fewer_requests_of_the_same_sectors() -> None:
    n = 1 << 12
    for kernel, elems, sectors in COPIES:
        t = run(kernel, co.grid_of(n // elems), numbered(n), poisoned(n))
        assert sectors_per_request(t, "load") == sectors_per_request(t, "store") == {sectors}
        assert t.global_.load.sectors == t.global_.store.sectors == n // 8
        assert t.global_.load.excess == 0


def test_runs_read_each_sector_eight_times() -> None:
    src = numbered(64 * 8)
    runs, columns = (
        run(kernel, 1, src, poisoned(64), *more, block=64)
        for kernel, more in ((co.sum_runs, (8,)), (co.sum_columns, ()))
    )
    assert runs.global_.load.sectors == 8 * columns.global_.load.sectors == 8 * len(src) // 8
