"""Kernels of the topic swizzle: any size, agreement with the swizzle algebra, and what the arithmetic costs."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import types

from lanewise.kernels import banks, padding, padding_reads, swizzle, swizzle_costs, swizzle_reads
from lanewise.lowering import why_unavailable
from lanewise.lowering.toolchain import Compiled, compile_kernel
from lanewise.swizzles import Swizzle, rotation_tile, xor_tile
from lanewise.trace import Trace, trace
from tests.kernels.launches import assert_clean, numbered, poisoned

sizes = st.integers(1, 70)
BITS = {n_bits: swizzle.transpose_bits(n_bits) for n_bits in (0, 3, 5)}
needs_compiler = pytest.mark.skipif(
    bool(why_unavailable()), reason="needs the compiler wheels (lanewise[sass])"
)


def launch(kernel: Any, grid: Any, block: Any, src: np.ndarray, expected: np.ndarray) -> Trace:
    dst = poisoned(*expected.shape)
    t = trace(kernel, grid, block, src, dst)
    np.testing.assert_array_equal(dst, expected)
    return assert_clean(t)


@settings(max_examples=10, deadline=None)
@given(sizes, sizes)
def test_every_rung_transposes_any_size(n_rows: int, n_cols: int) -> None:
    src = numbered(n_rows, n_cols)
    grid, expected = padding.grid_of(src), padding.reference(src)
    for kernel in (*BITS.values(), swizzle.transpose_rotated):
        launch(kernel, grid, padding.BLOCK, src, expected)
    small = padding.grid_of(src, padding.SMALL)
    launch(swizzle.transpose_small_swizzled, small, padding.SMALL_BLOCK, src, expected)
    launch(swizzle.scale_swizzled, grid, banks.SCALE_BLOCK, src, banks.reference_scale(expected))


@pytest.mark.parametrize(
    "shape", [(64, 64), (128, 192), (4, 4), (68, 132), (1, 200), (37, 45), (66, 64), (64, 1), (1028, 20)]
)
def test_the_wide_transpose_takes_any_size(shape: tuple[int, int]) -> None:
    src = np.random.default_rng(1).random(shape, np.float32)
    t = launch(
        swizzle.transpose_wide, swizzle.wide_grid_of(src), swizzle.WIDE_BLOCK, src, padding.reference(src)
    )
    assert t.shared.load.excess + t.shared.store.excess == 0
    whole = shape[0] % 4 == 0 and shape[1] % 4 == 0
    assert {site.instruction.rpartition(".")[2] for site in t.sites if site.requests} == {
        "b128" if whole else "b32"
    }


def test_the_wide_tile_is_a_swizzle_of_offsets() -> None:
    row, unit = np.divmod(np.arange(swizzle.WIDE * swizzle.UNITS), swizzle.UNITS)
    moved = swizzle.WIDE * row + 4 * (unit ^ (row // 4 & 7))
    np.testing.assert_array_equal(moved, Swizzle(3, 2, 6)(swizzle.WIDE * row + 4 * unit))


@pytest.mark.parametrize(
    ("kernel", "tile"),
    [(swizzle_reads.walk_swizzled, xor_tile(32, 32)), (swizzle_reads.walk_rotated, rotation_tile(32, 32))],
)
@pytest.mark.parametrize("steps", [(0, 1, 0), (1, 0, 5), (1, 1, 0), (1, -1, 31)])
def test_a_walk_costs_what_the_tile_map_says(kernel: Any, tile: Any, steps: tuple[int, int, int]) -> None:
    src, dst = numbered(32, 32), poisoned(32)
    t = trace(kernel, 1, 32, src, dst, *steps)
    np.testing.assert_array_equal(dst, padding_reads.reference_walk(src, *steps))
    row_step, col_step, first_col = steps
    banks_hit = [tile(row_step * lane, first_col + col_step * lane) % 32 for lane in range(32)]
    assert t.shared.load.wavefronts == max(np.bincount(banks_hit))
    assert t.shared.store.excess == 0


def test_reading_without_the_map_gives_the_diagonal() -> None:
    src, dst = numbered(32, 32), poisoned(32)
    t = trace(swizzle_reads.read_unmapped, 1, 32, src, dst)
    np.testing.assert_array_equal(dst, np.diagonal(src))
    assert np.flatnonzero(dst == src[:, 0]).tolist() == [0]
    assert t.hazards == []  # every word was written, so only the values tell


@settings(max_examples=8, deadline=None)
@given(sizes, sizes)
def test_both_filters_are_right_on_any_size(n_rows: int, n_cols: int) -> None:
    src = np.random.default_rng(n_rows).random((n_rows, n_cols), np.float32)
    for kernel in (swizzle_costs.filter_plain, swizzle_costs.filter_swizzled):
        dst = np.full_like(src, np.nan)
        t = trace(kernel, swizzle_costs.grid_of(src), swizzle_costs.BLOCK, src, dst)
        np.testing.assert_allclose(dst, swizzle_costs.reference(src), rtol=1e-6)
        assert (t.hazards, t.shared.load.excess, t.shared.store.excess) == ([], 0, 0)


def compiled(kernel: Any) -> Compiled:
    matrix = types.float32[:, ::1]
    return compile_kernel(kernel.py_func, (matrix, matrix), "sm_90", {})


def n_instructions(kernel: Any) -> int:
    return sum(one.opcode != "NOP" for one in compiled(kernel).code.instructions)


@needs_compiler
def test_a_swizzle_costs_a_few_instructions_and_no_memory() -> None:
    padded, swizzled = padding.transpose_padded, padding.transpose_swizzled
    assert 1.0 < n_instructions(swizzled) / n_instructions(padded) <= 1.25
    plain = n_instructions(swizzle_costs.filter_plain)
    assert 1.0 < n_instructions(swizzle_costs.filter_swizzled) / plain <= 1.25
    assert compiled(swizzled).shared_bytes == 4096 < compiled(padded).shared_bytes == 4224


@needs_compiler
def test_the_wide_transpose_stays_in_registers() -> None:
    wide = compiled(swizzle.transpose_wide)
    assert wide.spill_bytes == wide.stack_bytes == 0
    opcodes = {one.opcode for one in wide.code.instructions}
    assert {"LDG.E.128", "STS.128", "LDS.128", "STG.E.128"} <= opcodes
