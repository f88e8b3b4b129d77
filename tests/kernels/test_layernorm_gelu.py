"""GELU and LayerNorm: right rows, and what walking along them costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.kernels import layernorm_gelu as ladder
from lanewise.trace import Trace, trace
from tests.kernels.launches import assert_clean, normal, poisoned

COLUMNS = ladder.COLUMNS
BY_WARP = (ladder.row_per_warp, ladder.row_per_warp4, ladder.row_in_registers)
WALKS = (
    (ladder.rows_walked, COLUMNS),
    (ladder.rows_walked, COLUMNS + 1),
    (ladder.rows_walked, COLUMNS + 4),
    (ladder.rows_walked4, COLUMNS),
    (ladder.rows_walked4, COLUMNS + 4),
)


def walk(kernel: Any, src: np.ndarray, dst: np.ndarray, pitch: int) -> Trace:
    grid, n_bytes = ladder.grid_of_tiles(src), ladder.tile_bytes(pitch)
    return trace(kernel, grid, ladder.TILE_BLOCK, src, dst, pitch, dynamic_shared_bytes=n_bytes)


def per_request(t: Trace, instruction: str) -> set[tuple[float, float]]:
    """(wavefronts, ideal) per request of the shared loads of one kind."""
    return {
        (site.wavefronts / site.requests, site.ideal / site.requests)
        for site in t.sites
        if site.instruction == instruction
    }


@pytest.mark.parametrize("n_rows", [1, 33])
def test_every_rung_normalises_any_number_of_rows(n_rows: int) -> None:
    """Rows that differ in mean and spread, the first along its own address."""
    src = normal(n_rows, COLUMNS) * np.linspace(0.1, 9, n_rows, dtype=np.float32)[:, None] + np.float32(0.5)
    src[0] = np.arange(COLUMNS)
    expected = ladder.reference(src)
    for kernel, pitch in WALKS:
        dst = poisoned(n_rows, COLUMNS)
        t = walk(kernel, src, dst, pitch)
        np.testing.assert_allclose(dst, expected, rtol=1e-4, atol=1e-5)
        assert_clean(t)
    for kernel in BY_WARP:
        dst = poisoned(n_rows, COLUMNS)
        t = trace(kernel, ladder.grid_of_rows(src), ladder.BLOCK, src, dst)
        np.testing.assert_allclose(dst, expected, rtol=1e-4, atol=1e-5)
        assert_clean(t)


def test_the_reference_normalises() -> None:
    rows = ladder.reference(normal(5, COLUMNS)).astype(np.float64)
    np.testing.assert_allclose(rows.mean(axis=1), 0, atol=1e-6)
    np.testing.assert_allclose(rows.std(axis=1), 1, rtol=1e-3)


def test_a_walk_along_rows_costs_what_their_pitch_says() -> None:
    """K-cs-9. The walks are the loads that differ from one wavefront a request."""
    src = normal(32, COLUMNS)
    traces = {
        (kernel.py_func.__name__, pitch): walk(kernel, src, poisoned(32, COLUMNS), pitch)
        for kernel, pitch in WALKS
    }
    scalar, wide = "ld.shared.b32", "ld.shared.b128"
    assert per_request(traces["rows_walked", 1024], scalar) == {(1, 1), (32, 1)}
    assert per_request(traces["rows_walked", 1025], scalar) == {(1, 1)}
    assert per_request(traces["rows_walked", 1028], scalar) == {(1, 1), (4, 1)}
    assert per_request(traces["rows_walked4", 1024], wide) == {(4, 4), (32, 4)}
    assert per_request(traces["rows_walked4", 1028], wide) == {(4, 4)}


def test_a_pitch_of_1025_floats_misaligns_four_at_a_time() -> None:
    t = walk(ladder.rows_walked4, normal(32, COLUMNS), poisoned(32, COLUMNS), COLUMNS + 1)
    assert "misaligned" in {hazard.kind for hazard in t.hazards}


def test_lane_equals_column_is_free() -> None:
    src = normal(8, COLUMNS)
    one, four, none = (trace(kernel, 1, ladder.BLOCK, src, poisoned(8, COLUMNS)) for kernel in BY_WARP)
    assert per_request(one, "ld.shared.b32") == {(1, 1)}
    assert per_request(four, "ld.shared.b128") == {(4, 4)}
    assert none.shared.total.requests == 0


@pytest.mark.parametrize("n", [1, 255, 1000])
def test_one_kernel_gives_what_two_give_and_moves_less(n: int) -> None:
    """K-cs-12: 12 bytes an element where the two need 20."""
    a, b, total, twice, once = normal(n), normal(n)[::-1].copy(), poisoned(n), poisoned(n), poisoned(n)
    grid = ladder.grid_of(a)
    two = [
        trace(ladder.add, grid, ladder.THREADS, a, b, total),
        trace(ladder.activate, grid, ladder.THREADS, total, twice),
    ]
    fused = trace(ladder.add_activate, grid, ladder.THREADS, a, b, once)
    np.testing.assert_array_equal(once, twice)
    np.testing.assert_allclose(once, ladder.reference_gelu(a + b), rtol=1e-5, atol=1e-6)
    assert fused.hazards == [hazard for t in two for hazard in t.hazards] == []
    assert sum(t.global_.total.bytes_requested for t in two) == 20 * n
    assert fused.global_.total.bytes_requested == 12 * n
