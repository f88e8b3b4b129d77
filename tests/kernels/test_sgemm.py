"""The ladder of float32 matrix products: right on the sizes each rung promises, at the costs its docstring implies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.kernels import sgemm, sgemm_fast, sgemm_pipelined, sgemm_registers
from lanewise.trace import Trace, trace

SQUARE, WIDE = sgemm.BLOCK_16, sgemm.BLOCK_32
ANY_SIZE = {
    "naive 16": (sgemm.naive, 16),
    "naive 32": (sgemm.naive, 32),
    "tiled 16": (sgemm.tiled_16, 16),
    "pitch 17": (sgemm.padded_16, 16),
    "columns 16": (sgemm.columns_16, 16),
    "columns 17": (sgemm.columns_17, 16),
    "tiled 32": (sgemm.tiled_32, 32),
}
REGISTERS = {
    "4x4": (sgemm_registers.registers_4x4, 64),
    "8x8": (sgemm_registers.registers_8x8, 128),
    "adjacent": (sgemm_registers.fragments_adjacent, 128),
    "split": (sgemm_registers.fragments_split, 128),
    "132": (sgemm_registers.fragments_132, 128),
    "double": (sgemm_pipelined.double_buffered, 128),
    "async": (sgemm_pipelined.async_copies, 128),
}


def wholes(*shape: int) -> np.ndarray:
    """Random whole numbers, so that products are exact in any order."""
    return np.random.default_rng(0).integers(-8, 9, shape).astype(np.float32)


def launch(
    kernel: Any, tile: int, block: tuple[int, int], m: int, n: int, k: int, turned: bool = False
) -> Trace:
    """Trace a product of whole numbers and check it; `turned` puts the rows along x."""
    A, B, C = wholes(m, k), wholes(k, n), np.full((m, n), np.nan, np.float32)
    t = trace(kernel, sgemm.grid_of(C.T if turned else C, tile), block, A, B, C)
    np.testing.assert_array_equal(C, A @ B)
    np.testing.assert_array_equal(C, sgemm.reference(A, B))
    assert t.hazards == []
    assert t.warnings == []
    return t


def costs(t: Trace, array: str, op: str = "load") -> tuple[float, ...]:
    """Wavefronts (shared) or sectors (global) of a request, site by site."""
    sites = [site for site in t.sites if site.array == array and site.op == op]
    return tuple(
        (site.wavefronts if site.space == "shared" else site.sectors) / site.requests for site in sites
    )


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 40), st.sampled_from(sorted(ANY_SIZE)))
def test_rungs_with_one_element_a_thread_take_any_size(m: int, n: int, k: int, rung: str) -> None:
    kernel, tile = ANY_SIZE[rung]
    launch(kernel, tile, (tile, tile), m, n, k)


@settings(max_examples=5, deadline=None)
@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 20), st.sampled_from((16, 32)))
def test_the_exchanged_product_takes_any_size(m: int, n: int, k: int, tile: int) -> None:
    launch(sgemm.exchanged, tile, (tile, tile), m, n, k, turned=True)


def test_every_element_meets_its_own_row_and_column() -> None:
    """A holds its row's number and B its column's, each in one column or row that C = A @ B must find."""
    row, col = np.arange(40, dtype=np.float32), np.arange(50, dtype=np.float32)
    A, B = np.zeros((40, 33), np.float32), np.zeros((33, 50), np.float32)
    A[:, 3], B[3], A[:, 32], B[32] = 64 * row, 1, 1, col
    for kernel, tile in ANY_SIZE.values():
        C = np.full((40, 50), np.nan, np.float32)
        trace(kernel, sgemm.grid_of(C, tile), (tile, tile), A, B, C)
        np.testing.assert_array_equal(C, 64 * row[:, None] + col)


@pytest.mark.parametrize("rung", REGISTERS)
def test_rungs_with_a_register_tile_take_multiples_of_it(rung: str) -> None:
    kernel, tile = REGISTERS[rung]
    launch(kernel, tile, SQUARE, 2 * tile, tile, 48)


@pytest.mark.parametrize("tile", sgemm_registers.TILES)
def test_tile_of_takes_multiples_of_its_tile(tile: int) -> None:
    for depth in sgemm_registers.DEPTHS:
        launch(sgemm_registers.tile_of(tile, depth), tile, SQUARE, tile, 2 * tile, 2 * depth)


def test_naive_products_read_rows_of_b_and_single_elements_of_a() -> None:
    t = launch(sgemm.naive, 16, SQUARE, 64, 64, 16)
    assert (costs(t, "A"), costs(t, "B"), costs(t, "C", "store")) == ((2,), (2,), (4,))
    t = launch(sgemm.naive, 32, WIDE, 64, 64, 16)
    assert (costs(t, "A"), costs(t, "B"), costs(t, "C", "store")) == ((1,), (4,), (4,))


def test_exchanged_indices_scatter_a_and_c() -> None:
    t = launch(sgemm.exchanged, 16, SQUARE, 64, 64, 16, turned=True)
    assert (costs(t, "A"), costs(t, "B"), costs(t, "C", "store")) == ((16,), (1,), (16,))
    t = launch(sgemm.exchanged, 32, WIDE, 64, 64, 16, turned=True)
    assert (costs(t, "A"), costs(t, "B"), costs(t, "C", "store")) == ((32,), (1,), (32,))


@pytest.mark.parametrize(
    ("rung", "read_a", "read_b", "store_a", "store_b"),
    [
        ("tiled 16", 1, 1, 1, 1),
        ("pitch 17", 1, 1, 2, 2),  # padding made it worse
        ("columns 16", 8, 1, 1, 1),
        ("columns 17", 1, 1, 2, 1),
        ("tiled 32", 1, 1, 1, 1),
    ],
)
def test_only_columns_conflict(rung: str, read_a: int, read_b: int, store_a: int, store_b: int) -> None:
    kernel, tile = ANY_SIZE[rung]
    t = launch(kernel, tile, (tile, tile), 64, 64, 32)
    assert (costs(t, "a_tile"), costs(t, "b_tile")) == ((read_a,), (read_b,))
    assert (costs(t, "a_tile", "store"), costs(t, "b_tile", "store")) == ((store_a,), (store_b,))


def test_vectors_move_the_same_bytes_in_a_quarter_of_the_requests() -> None:
    scalar, vector = (launch(kernel, 32, WIDE, 64, 32, 64) for kernel in (sgemm.tiled_32, sgemm.vectors_32))
    assert 4 * vector.global_.load.requests == scalar.global_.load.requests
    assert vector.global_.load.sectors == scalar.global_.load.sectors
    assert vector.shared.store.wavefronts == scalar.shared.store.wavefronts


def test_fragments_are_free_once_columns_are_split() -> None:
    read = {
        rung: launch(REGISTERS[rung][0], 128, SQUARE, 128, 128, 16) for rung in ("adjacent", "split", "132")
    }
    assert {rung: costs(t, "b_tile") for rung, t in read.items()} == {
        "adjacent": (8, 8),
        "split": (4, 4),
        "132": (4, 4),
    }
    assert {rung: costs(t, "a_tile") for rung, t in read.items()} == {
        "adjacent": (2, 2),  # 16 lanes read the same 16 bytes: neighbouring groups fuse
        "split": (2, 2),
        "132": (2, 2),
    }
    assert {rung: costs(t, "a_tile", "store") for rung, t in read.items()} == {
        "adjacent": (2,),
        "split": (2,),
        "132": (1,),
    }


def test_the_best_pitch_depends_on_the_depth() -> None:
    got = {
        (depth, pitch): costs(
            launch(sgemm_registers.transposed_of(depth, pitch), 128, SQUARE, 128, 128, 16), "a_tile", "store"
        )
        for depth in (8, 16)
        for pitch in sgemm_registers.PITCHES
    }
    assert got == {
        (8, 128): (2,), (8, 130): (2,), (8, 132): (1,),
        (16, 128): (4,), (16, 130): (1,), (16, 132): (2,),
    }  # fmt: skip


def test_register_tiles_need_fewer_reads_for_a_multiply_add() -> None:
    """Requests of shared memory for each warp-wide multiply-add: 2 / side, then a quarter by 16-byte reads."""
    per_fma = {}
    for rung, (kernel, tile) in REGISTERS.items():
        t = launch(kernel, tile, SQUARE, 128, 128, 16)
        per_fma[rung] = t.shared.load.requests / (128 * 128 * 16 / 32)
    assert per_fma == {
        "4x4": 1 / 2,
        "8x8": 1 / 4,
        "adjacent": 1 / 16,
        "split": 1 / 16,
        "132": 1 / 16,
        "double": 1 / 16,
        "async": 1 / 16,
    }


@pytest.mark.parametrize("kernel", [sgemm_fast.warp_tiles, sgemm_fast.prefetched])
@pytest.mark.parametrize(("m", "n", "k"), [(128, 256, 16), (256, 128, 32), (128, 128, 80)])
def test_warp_tiles_take_multiples_of_the_tile_and_read_fused(kernel: Any, m: int, n: int, k: int) -> None:
    A, B, C = wholes(m, k), wholes(k, n), np.full((m, n), np.nan, np.float32)
    t = trace(kernel, sgemm_fast.n_blocks_of(C), sgemm_fast.BLOCK, A, B, C)
    np.testing.assert_array_equal(C, A @ B)
    assert t.hazards == []
    assert t.warnings == []
    assert set(costs(t, "a_tiles")) == set(costs(t, "b_tiles")) == {2}
    assert set(costs(t, "C", "store")) == {16}


@pytest.mark.parametrize(("tiles_down", "tiles_across"), [(1, 1), (8, 3), (11, 5), (3, 17), (16, 2)])
def test_the_order_of_the_blocks_leaves_no_tile_out(tiles_down: int, tiles_across: int) -> None:
    n_rows, n_cols = tiles_down * sgemm_fast.TILE, tiles_across * sgemm_fast.TILE
    corners = [sgemm_fast.corner_of.py_func(i, n_rows, n_cols) for i in range(tiles_down * tiles_across)]
    assert sorted(corners) == [
        (row, col) for row in range(0, n_rows, sgemm_fast.TILE) for col in range(0, n_cols, sgemm_fast.TILE)
    ]
    assert {col for _, col in corners[: min(tiles_down, sgemm_fast.GROUP)]} == {0}


@pytest.mark.parametrize("n_rounds", [0, 1, 5])
def test_the_roof_sums_its_chains(n_rounds: int) -> None:
    dst = np.full(96, np.nan, np.float32)
    t = trace(sgemm.fma_roof, 3, 32, dst, np.float32(0.5), n_rounds)
    np.testing.assert_allclose(dst, sgemm.reference_fma_roof(96, 0.5, n_rounds), rtol=1e-6)
    assert (t.hazards, t.global_.load.requests) == ([], 0)
