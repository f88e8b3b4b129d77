"""Kernels of the topic padding: any size, any pitch, and what must be refused."""

from importlib import import_module
from math import gcd
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import float32, types

from lanewise.errors import InvalidLaunch
from lanewise.kernels import padding, padding_reads
from lanewise.lowering import why_unavailable
from lanewise.lowering.toolchain import DoesNotCompile, compile_kernel
from lanewise.machine import occupancy
from lanewise.trace import Trace, trace
from tests.kernels.launches import assert_clean, numbered, poisoned

cuda: Any = import_module("numba.cuda")
sizes = st.integers(1, 70)
PITCHED = {pitch: padding.transpose_pitched(pitch) for pitch in (32, 35, 40, 48)}
SMALL = {pad: padding.transpose_small(pad) for pad in (0, 1, 2, 16)}
DOUBLES = {pitch: padding.transpose_doubles(pitch) for pitch in (32, 33)}


def launch(kernel: Any, src: np.ndarray, block: tuple[int, int] = padding.BLOCK) -> Trace:
    """Trace a transpose, and check its result and its manners."""
    dst = poisoned(*src.shape[::-1], dtype=src.dtype)
    t = trace(kernel, padding.grid_of(src, block[0]), block, src, dst)
    np.testing.assert_array_equal(dst, padding.reference(src))
    return assert_clean(t)


@settings(max_examples=12, deadline=None)
@given(
    sizes, sizes, st.sampled_from(sorted(PITCHED)), st.sampled_from(sorted(SMALL)), st.sampled_from((32, 33))
)
def test_every_family_transposes_any_size(
    n_rows: int, n_cols: int, pitch: int, pad: int, double: int
) -> None:
    launch(PITCHED[pitch], numbered(n_rows, n_cols))
    launch(SMALL[pad], numbered(n_rows, n_cols), padding.SMALL_BLOCK)
    launch(DOUBLES[double], numbered(n_rows, n_cols, dtype=np.float64))


@settings(max_examples=8, deadline=None)
@given(sizes, sizes)
def test_the_baseline_copies_any_size(n_rows: int, n_cols: int) -> None:
    src, dst = numbered(n_rows, n_cols), poisoned(n_rows, n_cols)
    t = trace(padding.copy_rows, padding.grid_of(src), padding.BLOCK, src, dst)
    np.testing.assert_array_equal(dst, src)
    assert t.hazards == []


@pytest.mark.parametrize("pitch", PITCHED)
def test_a_column_meets_the_common_divisor_of_pitch_and_banks(pitch: int) -> None:
    t = launch(PITCHED[pitch], numbered(32, 64))
    (load,) = [site for site in t.sites if (site.space, site.op) == ("shared", "load")]
    assert load.wavefronts == gcd(pitch, 32) * load.requests


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([32, 33]), st.integers(0, 1), st.sampled_from([(-1, 31), (0, 0), (0, 17), (1, 0)]))
def test_a_walk_costs_its_step_modulo_the_banks(pitch: int, row_step: int, cols: tuple[int, int]) -> None:
    src, dst = numbered(32, 32), poisoned(32)
    col_step, first_col = cols
    t = trace(padding_reads.walk(pitch), 1, 32, src, dst, row_step, col_step, first_col)
    np.testing.assert_array_equal(dst, padding_reads.reference_walk(src, row_step, col_step, first_col))
    step = row_step * pitch + col_step
    assert t.shared.load.wavefronts == (gcd(step, 32) if step else 1)


@pytest.mark.parametrize(
    ("kernel", "n_bytes"), [(padding_reads.vector_columns(33), 16), (padding_reads.pair_columns(33), 8)]
)
def test_a_pitch_that_breaks_alignment_is_found(kernel: Any, n_bytes: int) -> None:
    """An H200 stops such a launch with "misaligned address" (recorded: misaligned.json), so none is measured."""
    src, dst = numbered(32, 32), np.zeros((32, 32), np.float32)
    fill, read = trace(kernel, 1, 32, src, dst).hazards
    assert {fill.kind, read.kind} == {"misaligned"}
    assert f"writes {n_bytes} bytes at tile[1, 0]" in fill.message
    assert f"reads {n_bytes} bytes at tile[1, 0]" in read.message


@cuda.jit
def too_large(src, dst):  # type: ignore[no-untyped-def]
    tile = cuda.shared.array((128, 128), float32)
    lane = cuda.threadIdx.x
    tile[lane, lane] = src[lane]
    dst[lane] = tile[lane, lane]


def test_a_static_tile_of_64_kb_is_refused() -> None:
    with pytest.raises(
        InvalidLaunch, match=r"65,536 bytes; the compiler allows 49,152 .* dynamic_shared_bytes"
    ):
        trace(too_large, 1, 32, np.zeros(32, np.float32), np.zeros(32, np.float32))


@pytest.mark.skipif(bool(why_unavailable()), reason="needs the compiler wheels (lanewise[sass])")
def test_the_compiler_refuses_it_too() -> None:
    line = types.float32[::1]
    with pytest.raises(DoesNotCompile, match="too much shared data"):
        compile_kernel(too_large.py_func, (line, line), "sm_90", {})


def test_a_little_padding_costs_the_second_block() -> None:
    resident = {
        pitch: occupancy("sm_90", padding_reads.COPY_BLOCK, 32, padding_reads.copy_bytes(pitch)).blocks_per_sm
        for pitch in (128, 129, 132)
    }
    assert resident == {128: 2, 129: 2, 132: 1}


@pytest.mark.parametrize("pitch", [128, 129, 132])
def test_the_persistent_copy_copies_more_tiles_than_it_has_blocks(pitch: int) -> None:
    src = np.random.default_rng(pitch).random(
        3 * padding_reads.COPY_ROWS * padding_reads.COPY_COLS, np.float32
    )
    dst = np.full_like(src, np.nan)
    size = padding_reads.copy_bytes(pitch)
    t = trace(
        padding_reads.copy_persistent(pitch), 2, padding_reads.COPY_BLOCK, src, dst, dynamic_shared_bytes=size
    )
    np.testing.assert_array_equal(dst, src)
    assert (t.hazards, t.shared.load.excess, t.shared.store.excess) == ([], 0, 0)
