"""Data layouts: the same numbers from every layout, and what each costs per request."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.kernels import data_layouts as dl
from lanewise.kernels import padding
from lanewise.trace import Trace, trace
from tests.kernels.launches import assert_clean, normal, numbered, poisoned, sectors_per_request


def run(kernel: Any, grid: Any, block: Any, *arguments: Any) -> Trace:
    return assert_clean(trace(kernel, grid, block, *arguments))


def costs(kernel: Any, src: np.ndarray, *shape: int) -> tuple[set[float], set[float]]:
    t = run(kernel, 2, 32, src, poisoned(*shape))
    return sectors_per_request(t, "load"), sectors_per_request(t, "store")


@pytest.mark.parametrize("make", [numbered, normal])
def test_records_are_doubled_in_every_layout(make: Any) -> None:
    n = 333
    for kernel, shape in (
        (dl.scale_fields, (n, 4)),
        (dl.scale_vectors, (n, 4)),
        (dl.scale_arrays, (4, n)),
        (dl.scale_triples, (n, 3)),
    ):
        src, dst = make(*shape), poisoned(*shape)
        run(kernel, 2, dl.THREADS, src, dst)
        np.testing.assert_array_equal(dst, dl.reference(src))
    for n_fields in (3, 4, 5):
        src, dst = make(n, n_fields), poisoned(n)
        run(dl.scale_one_field, 2, dl.THREADS, src, dst)
        np.testing.assert_array_equal(dst, dl.reference(src[:, 0]))
    src, dst = make(4, n), poisoned(n)
    run(dl.scale_one_array, 2, dl.THREADS, src, dst)
    np.testing.assert_array_equal(dst, dl.reference(src[0]))


def test_what_records_cost() -> None:
    assert costs(dl.scale_fields, numbered(64, 4), 64, 4) == ({16}, {16})
    assert costs(dl.scale_vectors, numbered(64, 4), 64, 4) == ({16}, {16})
    assert costs(dl.scale_arrays, numbered(4, 64), 4, 64) == ({4}, {4})
    assert costs(dl.scale_one_field, numbered(64, 4), 64) == ({16}, {4})
    assert costs(dl.scale_one_array, numbered(4, 64), 64) == ({4}, {4})
    fields, vectors = (
        run(kernel, 2, 32, numbered(64, 4), poisoned(64, 4)) for kernel in (dl.scale_fields, dl.scale_vectors)
    )
    assert fields.global_.load.requests == 4 * vectors.global_.load.requests


def test_records_of_12_bytes_cost_a_sector_more_from_the_middle_of_one() -> None:
    """96 floats are 12 sectors; a first address of 12, 16, .. 28 bytes into a sector makes them 13."""
    assert costs(dl.scale_triples, numbered(64, 3), 64, 3) == ({12}, {12})
    for skipped in range(1, 9):
        loads, _ = costs(dl.scale_one_field, numbered(72, 3)[skipped : skipped + 64], 64)
        assert loads == {13 if 12 * skipped % 32 >= 12 else 12}


@pytest.mark.parametrize("make", [numbered, normal])
@pytest.mark.parametrize(("n_rows", "n_cols"), [(64, 64), (33, 70), (5, 1)])
def test_a_permuted_view_gives_the_same_by_strides_and_through_a_tile(
    make: Any, n_rows: int, n_cols: int
) -> None:
    src = make(n_cols, n_rows)
    expected = dl.reference(src).T
    grid = padding.grid_of(expected)
    by_strides, through_tile, contiguous = (poisoned(n_rows, n_cols) for _ in range(3))
    strided = run(dl.scale_view, grid, dl.BLOCK_2D, src.reshape(-1), by_strides, 1, n_rows)
    tiled = run(dl.scale_transposed, grid, dl.BLOCK_2D, src, through_tile)
    run(dl.scale_view, grid, dl.BLOCK_2D, src.T.copy().reshape(-1), contiguous, n_cols, 1)
    for dst in (by_strides, through_tile, contiguous):
        np.testing.assert_array_equal(dst, expected)
    if (n_rows, n_cols) == (64, 64):
        assert (sectors_per_request(strided, "load"), sectors_per_request(strided, "store")) == ({32}, {4})
        assert (sectors_per_request(tiled, "load"), sectors_per_request(tiled, "store")) == ({4}, {4})
        assert tiled.shared.total.excess == 0


@pytest.mark.parametrize(("n_images", "n_channels", "n_pixels"), [(1, 64, 96), (2, 5, 49)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_images_in_both_orders(n_images: int, n_channels: int, n_pixels: int, dtype: Any) -> None:
    src = normal(n_images * n_channels * n_pixels).astype(dtype)
    full, sizes = n_channels == 64, (n_pixels, n_channels)
    near = np.dtype(dtype).itemsize
    for kernel, grid, near_stride in (
        (dl.by_pixel, dl.grid_by_pixel(n_images, n_channels, n_pixels), 0),
        (dl.by_channel, dl.grid_by_channel(n_images, n_channels, n_pixels), 1),
    ):
        for strides in ((1, n_pixels), (n_channels, 1)):  # NCHW, NHWC
            dst = poisoned(src.size, dtype=dtype)
            t = run(kernel, grid, dl.THREADS, src, dst, *sizes, *strides)
            np.testing.assert_array_equal(dst, src)
            if full:
                assert sectors_per_request(t, "load") == {near if strides[near_stride] == 1 else 32}


@pytest.mark.parametrize("shuffled", [False, True])
def test_the_cache_is_gathered_row_by_row_and_lane_by_lane(shuffled: bool) -> None:
    n_tokens, n_heads = 80, 3
    cache = normal(n_tokens, n_heads, dl.HALVES).astype(np.float16)
    pages = np.arange(n_tokens // dl.PAGE, dtype=np.int32)
    if shuffled:
        np.random.default_rng(1).shuffle(pages)
    expected = dl.reference_rows(cache, pages)
    rows, paged = (poisoned(n_heads, n_tokens, dl.HALVES, dtype=np.float16) for _ in range(2))
    columns = poisoned(n_heads, dl.HALVES, n_tokens, dtype=np.float16)
    by_row = (-(-n_tokens // 8), n_heads)
    t = run(dl.gather_rows, by_row, dl.BLOCK_2D, cache, rows)
    assert (sectors_per_request(t, "load"), sectors_per_request(t, "store")) == ({8}, {8})
    t = run(dl.gather_pages, by_row, dl.BLOCK_2D, cache, pages, paged)
    assert (sectors_per_request(t, "load"), sectors_per_request(t, "store")) == (
        {1, 8},
        {8},
    )  # the page table, and a row
    t = run(dl.gather_lanes, (1, n_heads), dl.THREADS, cache, pages, columns)
    np.testing.assert_array_equal(paged, expected)
    np.testing.assert_array_equal(columns, expected.transpose(0, 2, 1))
    (row_loads,) = (s for s in t.sites if s.op == "load" and s.requests > n_heads * 3)
    assert row_loads.sectors == n_heads * n_tokens * dl.HALVES  # each lane a sector of its own
    if not shuffled:
        np.testing.assert_array_equal(rows, expected)
