"""The product of half matrices: exact on whole numbers, clean, and as costly as its layout says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.experiments import hgemm as measured
from lanewise.kernels import hgemm, hgemm_fast, hgemm_stages
from lanewise.trace import Trace, trace
from tests.kernels.launches import assert_clean, name_of, poisoned

LADDER = tuple(kernel for kernel, *_ in measured.COSTS.values())
STAGED = tuple(kernel for kernel, *_ in measured.STAGES.values())


def whole(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Whole numbers so small that every sum is a half, exactly."""
    return rng.integers(-2, 3, shape).astype(np.float16)


def multiply(kernel: Any, m: int, n: int, k: int, *scalars: int) -> Trace:
    rng = np.random.default_rng(m + n + k)
    a, b, c = whole(rng, m, k), whole(rng, k, n), poisoned(m, n, dtype=np.float16)
    grid: Any
    if kernel in LADDER:
        grid, block, n_bytes = hgemm.grid_of(c), hgemm.BLOCK, 0
    elif kernel in STAGED:
        grid, block, n_bytes = hgemm_stages.launch_of(kernel, c)
    else:
        grid, block, n_bytes = hgemm_fast.launch_of(c)
    t = trace(kernel, grid, block, a, b, c, *scalars, dynamic_shared_bytes=n_bytes)
    np.testing.assert_array_equal(c, hgemm.reference(a, b))
    return assert_clean(t)


@pytest.mark.parametrize("kernel", LADDER + STAGED, ids=name_of)
@pytest.mark.parametrize(("m", "n", "k"), [(128, 256, 32), (384, 128, 96)])
def test_every_rung_multiplies_matrices_of_any_shape_in_tiles(kernel: Any, m: int, n: int, k: int) -> None:
    multiply(kernel, m, n, k)


@pytest.mark.parametrize("k", [256, 320])
def test_the_fast_rung_multiplies_tiles_of_its_own(k: int) -> None:
    multiply(hgemm_fast.hgemm_fast, hgemm_fast.BM * (k // 256), hgemm_fast.BN, k)


@pytest.mark.parametrize(("tiles_m", "tiles_n"), [(1, 1), (8, 3), (11, 5), (3, 17)])
def test_the_order_of_the_blocks_leaves_no_tile_out(tiles_m: int, tiles_n: int) -> None:
    place_of = hgemm_fast.place_of.py_func
    places = [place_of(block, tiles_m, tiles_n) for block in range(tiles_m * tiles_n)]
    assert sorted(places) == [(row, col) for row in range(tiles_m) for col in range(tiles_n)]
    assert {col for _, col in places[: min(tiles_m, hgemm_fast.GROUP)]} == {0}


def test_the_totals_of_a_4096_product_are_the_ones_on_paper() -> None:
    """For 4096 x 4096 x 4096: 1,024 tiles, 128 steps, 8 warps, 2 x (4 + 2) fetches each."""
    totals = {
        label: measured.ladder_arithmetic(4096, 4096, 4096, *costs)["shared.load.wavefronts"]
        for label, (_, *costs) in measured.COSTS.items()
    }
    assert totals["row-major"] == 268_435_456
    assert totals["padded"] == totals["swizzled"] == 50_331_648
    assert totals["wrong XOR"] == 83_886_080
    staged = measured.stages_arithmetic(4096, 4096, 4096, 4, 4)
    assert staged["shared.load.wavefronts"] == totals["swizzled"]


def test_larger_shares_need_fewer_wavefronts_for_the_same_products() -> None:
    """A warp's 64 x 64 takes 8 fetches for 64 x 64 x 16 products, its 64 x 32 takes 6 for half of them."""
    n = 4096
    small = measured.stages_arithmetic(n, n, n, 4, 4)["shared.load.wavefronts"]
    large = measured.fast_arithmetic(n, n, n, 1)["shared.load.wavefronts"]
    assert large / small == pytest.approx(8 / 12, rel=0.01)
