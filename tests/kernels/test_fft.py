"""The ladders of Fourier transforms: right against float64, no hazards, and the cost of each stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.kernels import fft, fft_fast
from lanewise.trace import Trace, trace
from tests.kernels.launches import assert_clean, name_of, poisoned

LADDER = {
    fft.fft_split: (fft.POINTS, fft.BLOCK),
    fft.fft_padded: (fft.POINTS, fft.BLOCK),
    fft.fft_pairs: (fft.POINTS, fft.BLOCK),
    fft.fft_sorted: (fft.POINTS, fft.BLOCK),
    fft.fft_radix4: (fft.POINTS, fft.BLOCK_4),
    fft_fast.fft_radix8: (fft_fast.POINTS, fft_fast.BLOCK_8),
    fft_fast.fft_radix16: (fft_fast.POINTS, fft_fast.BLOCK_16),
}
BATCH = 3


def signals(points: int) -> list[np.ndarray]:
    """Each value names its place; random numbers; and one point alone, whose transform is a wave."""
    n = 2 * BATCH * points
    random = np.random.default_rng(points).standard_normal(n).astype(np.float32)
    alone = np.zeros((BATCH, 2 * points), np.float32)
    alone[0, 2], alone[1, 2 * points - 1], alone[2, points + 5] = 1, 1, 1
    return [np.arange(n, dtype=np.float32).reshape(BATCH, -1), random.reshape(BATCH, -1), alone]


def launch(kernel: Any, src: np.ndarray, *scalars: int) -> tuple[np.ndarray, Trace]:
    points, block = LADDER.get(kernel, (fft.POINTS, fft.BLOCK))
    dst = poisoned(*src.shape)
    roots = () if kernel is fft.reverse_split else (fft.roots_of_unity(points),)
    return dst, assert_clean(trace(kernel, len(src), block, src, *roots, dst, *scalars))


@pytest.mark.parametrize("kernel", LADDER, ids=name_of)
def test_each_rung_transforms_a_batch(kernel: Any) -> None:
    points, _ = LADDER[kernel]
    for src in signals(points):
        dst, _ = launch(kernel, src)
        expected = fft.points_of(fft.reference(src))
        largest = np.abs(expected).max(axis=1, keepdims=True)
        np.testing.assert_allclose(fft.points_of(dst) / largest, expected / largest, rtol=0, atol=6e-7)


@pytest.mark.parametrize("kernel", LADDER, ids=name_of)
def test_rounding_stays_near_that_of_one_number(kernel: Any) -> None:
    src = signals(LADDER[kernel][0])[1]
    dst, _ = launch(kernel, src)
    expected = np.fft.fft(fft.points_of(src).astype(np.complex128))
    error = np.linalg.norm(fft.points_of(dst) - expected) / np.linalg.norm(expected)
    assert error < 4e-7


def degrees(t: Trace, op: str, text: str) -> set[float]:
    """Wavefronts for each request at the sites of shared memory whose line has `text`."""
    sites = [site for site in t.sites if site.space == "shared" and site.op == op and text in site.source]
    assert sites
    return {site.wavefronts / site.requests for site in sites}


def test_stages_cost_what_their_distances_say() -> None:
    src = signals(fft.POINTS)[1]
    split, pairs = {}, {}
    for distance in (1 << k for k in range(fft.BITS)):
        expected = fft.reference_stage(src, distance)
        dst, t = launch(fft.stage_split, src, distance)
        np.testing.assert_allclose(dst, expected, rtol=0, atol=2e-6)
        split[distance] = degrees(t, "load", "= complex(re[")
        assert split[distance] == degrees(t, "store", "re[low]") | degrees(t, "store", "re[high]")
        dst, t = launch(fft.stage_pairs, src, distance)
        np.testing.assert_allclose(dst, expected, rtol=0, atol=2e-6)
        pairs[distance] = degrees(t, "load", "ptx.load2(s")
        assert pairs[distance] == degrees(t, "store", "ptx.store2(s")
    assert split == {distance: {2 if distance <= 16 else 1} for distance in split}  # K-cs-8
    assert pairs == {distance: {4 if distance <= 8 else 2} for distance in pairs}  # K-cs-8


def test_bit_reversed_places_lie_in_one_bank_and_padded_in_all() -> None:
    for src in signals(fft.POINTS):
        for pad, degree in ((0, 32), (1, 1)):  # K-cs-8
            dst, t = launch(fft.reverse_split, src, pad)
            np.testing.assert_array_equal(dst, fft.reference_reversed(src))
            assert degrees(t, "store", "re[place]") == {degree}


def test_fewer_passes_move_less_and_chosen_pitches_never_collide() -> None:
    moved = {}
    for kernel, (points, _) in LADDER.items():
        _, t = launch(kernel, signals(points)[1])
        moved[kernel] = t.shared.total.wavefronts / (BATCH * points)
        assert (t.shared.total.excess == 0) == (points == fft_fast.POINTS)
    assert list(moved.values())[2:] == sorted(list(moved.values())[2:], reverse=True)
    # Each of two exchanges stores and loads 8 bytes a point: 16 points in 128 bytes.
    assert moved[fft_fast.fft_radix16] == 2 * 2 / 16


def test_global_memory_is_read_and_written_in_whole_sectors() -> None:
    for kernel, (points, _) in LADDER.items():
        _, t = launch(kernel, signals(points)[1])
        assert t.global_.store.excess == 0
        assert t.global_.store.bytes_moved == 8 * BATCH * points
