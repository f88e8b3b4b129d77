"""The scan ladder: right prefix sums at any length, no hazards, and the cost of each step up a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.kernels import scan
from lanewise.trace import Trace, trace

LENGTHS = (1, 31, 512, 5001)


def inputs(n: int) -> list[np.ndarray]:
    """Whole numbers that name their place, and random ones, whose sums float32 holds exactly."""
    random = np.random.default_rng(n).integers(-64, 65, n)
    return [(np.arange(n) % 128).astype(np.float32), random.astype(np.float32)]


def poisoned(n: int) -> np.ndarray:
    return np.full(n, np.nan, np.float32)


def assert_clean(t: Trace) -> None:
    assert t.hazards == []
    assert t.warnings == []


@pytest.mark.parametrize(
    ("kernel", "block", "tile"),
    [
        (scan.scan_tree, 32, 64),
        (scan.scan_tree, 256, 512),
        (scan.scan_padded, 256, 512),
        (scan.scan_padded, 512, 1024),
        (scan.scan_shuffled, 32, 32),
        (scan.scan_shuffled, 1024, 1024),
        (scan.scan_wide, scan.BLOCK, scan.TILE),
    ],
    ids=lambda value: getattr(getattr(value, "py_func", None), "__name__", str(value)),
)
def test_each_rung_scans_the_tiles_of_any_array(kernel: Any, block: int, tile: int) -> None:
    for n in LENGTHS:
        for src in inputs(n):
            dst = poisoned(n)
            assert_clean(trace(kernel, scan.grid_of(src, tile), block, src, dst))
            np.testing.assert_array_equal(dst, scan.reference_tiles(src, tile))


@pytest.mark.parametrize("n", [1, 31, scan.TILE, 5 * scan.TILE + 3, 40 * scan.TILE - 1])
def test_an_array_of_any_length_is_scanned_again_and_again(n: int) -> None:
    n_tiles = -(-n // scan.TILE)
    state, n_drawn = np.zeros(n_tiles, np.int64), np.zeros(1, np.uint32)
    for launch, src in enumerate(inputs(n)):
        dst = poisoned(n)
        assert_clean(trace(scan.scan_whole, n_tiles, scan.BLOCK, src, state, n_drawn, dst))
        np.testing.assert_array_equal(dst, scan.reference(src))
        assert n_drawn[0] == (launch + 1) * n_tiles
        later = np.int64(2 * launch) << np.int64(32)  # launches count in the upper half
        np.testing.assert_array_equal(state, scan.reference_state(src) + later)


def test_published_sums_round_little() -> None:
    src = np.random.default_rng(1).random(100_003, np.float32)
    n_tiles, dst = scan.grid_of(src), poisoned(src.size)
    state, n_drawn = np.zeros(n_tiles, np.int64), np.zeros(1, np.uint32)
    trace(scan.scan_whole, n_tiles, scan.BLOCK, src, state, n_drawn, dst)
    np.testing.assert_allclose(dst, np.cumsum(src, dtype=np.float64), rtol=1e-6)


def one_step(distance: int, pad: int) -> list[tuple[int, int, int]]:
    """Requests, wavefronts and ideal of both loads and the store of one step up, on a tile of 512."""
    src = inputs(512)[1]
    dst = poisoned(512)
    t = trace(scan.step_up, 1, 256, src, dst, distance, pad)
    assert_clean(t)
    np.testing.assert_array_equal(dst, scan.reference_up(src, distance))
    sites = [site for site in t.sites if "+=" in site.source]
    assert sorted(site.op for site in sites) == ["load", "load", "store"]
    return [(site.requests, site.wavefronts, site.ideal) for site in sites]


def test_steps_up_512_elements_cost_what_their_strides_say_and_one_when_padded() -> None:
    degrees = []
    for distance in (1 << k for k in range(9)):
        requests = max(1, 8 // distance)
        plain, padded = one_step(distance, 0), one_step(distance, 1)
        assert plain[0] == plain[1] == plain[2]
        assert plain[0][::2] == (requests, requests)
        assert padded == [(requests, requests, requests)] * 3
        degrees.append(plain[0][1] // requests)
    assert degrees == [2, 4, 8, 16, 16, 8, 4, 2, 1]  # K-cs-7


@pytest.mark.parametrize("tile", [64, 256, 512, 1024])
def test_padding_takes_every_conflict_out_of_the_tree(tile: int) -> None:
    src = inputs(2 * tile)[1]
    plain, padded = (
        trace(kernel, 2, tile // 2, src, poisoned(src.size)) for kernel in (scan.scan_tree, scan.scan_padded)
    )
    assert plain.shared.total.excess > 0
    assert padded.shared.total.excess == 0
    assert plain.shared.total.requests == padded.shared.total.requests


def test_wide_rows_move_whole_lines() -> None:
    src = inputs(2 * scan.TILE)[1]
    t = trace(scan.scan_wide, 2, scan.BLOCK, src, poisoned(src.size))
    moved = [site for site in t.sites if "ptx." in site.source]
    assert [site.op for site in moved] == ["load", "store"]
    assert {site.sectors / site.requests for site in moved} == {16}
    assert t.global_.total.bytes_moved == 8 * src.size
