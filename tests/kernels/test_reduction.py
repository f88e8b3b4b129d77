"""The reduction ladder: right sums at any length, no hazards, and the cost of each step of a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.experiments.reduction import interleaved_step
from lanewise.kernels import reduction
from lanewise.trace import trace
from tests.kernels.launches import assert_clean, poisoned

TREES = ("divergent", "interleaved", "sequential", "shuffled")
LENGTHS = (1, 31, 4096, 5000)


def inputs(n: int) -> list[np.ndarray]:
    """Each value names its place; and whole numbers at random. Float32 adds both exactly."""
    random = np.random.default_rng(n).integers(-64, 65, n)
    return [np.arange(n, dtype=np.float32), random.astype(np.float32)]


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize("block", [32, 256, 1024])
def test_each_tree_sums_the_tiles_of_any_array(tree: str, block: int) -> None:
    for n in LENGTHS:
        for src in inputs(n):
            dst = poisoned(reduction.grid_of(src, block))
            t = trace(getattr(reduction, f"sum_{tree}"), dst.size, block, src, dst)
            np.testing.assert_array_equal(dst, reduction.reference_tiles(src, block))
            assert_clean(t)


@pytest.mark.parametrize("grid", [1, 3, 20])
def test_an_array_of_any_length_is_summed_again_and_again(grid: int) -> None:
    n_done = np.zeros(1, np.uint32)
    for n in (*LENGTHS, reduction.CHUNK * 4 + 3):
        for src in inputs(n)[1:]:
            dst = poisoned(grid)
            assert_clean(trace(reduction.sum_strided, grid, reduction.BLOCK, src, dst))
            np.testing.assert_array_equal(dst, reduction.reference_strided(src, grid))
            partials, dst = poisoned(grid), poisoned(1)
            assert_clean(trace(reduction.sum_whole, grid, reduction.BLOCK, src, partials, n_done, dst))
            np.testing.assert_array_equal(partials, reduction.reference_partials(src, grid))
            np.testing.assert_array_equal(dst, reduction.reference(src))
            assert n_done[0] == 0, "the next launch would not know its last block"


def test_many_partial_sums_round_little() -> None:
    src = np.random.default_rng(1).random(100_003, np.float32)
    partials, dst = poisoned(7), poisoned(1)
    trace(reduction.sum_whole, 7, reduction.BLOCK, src, partials, np.zeros(1, np.uint32), dst)
    np.testing.assert_allclose(dst, src.sum(dtype=np.float64), rtol=3e-7)


def one_step(kernel: Any, block: int, step: int) -> list[tuple[int, int, int]]:
    """Requests, wavefronts and ideal of both loads and the store of one step, on one tile."""
    src = inputs(block)[1]
    dst = poisoned(block)
    t = trace(kernel, 1, block, src, dst, step)
    assert_clean(t)
    expected = (
        reduction.reference_interleaved(src, step)
        if kernel is reduction.step_interleaved
        else reduction.reference_sequential(src, step, block)
    )
    np.testing.assert_array_equal(dst, expected)
    sites = [site for site in t.sites if "+=" in site.source]
    assert [site.op for site in sites].count("load") == 2
    assert len(sites) == 3
    return [(site.requests, site.wavefronts, site.ideal) for site in sites]


STEPS = [1 << k for k in range(8)]


def test_steps_of_256_threads_cost_what_their_strides_say() -> None:
    degrees = []
    for step in STEPS:
        load, other, store = one_step(reduction.step_interleaved, 256, step)
        assert load == other == store
        requests, wavefronts, ideal = load
        assert ideal == requests
        degrees.append(wavefronts // requests)
    assert degrees == [2, 4, 8, 8, 8, 4, 2, 1]  # K-cs-6


def test_sequential_steps_never_collide() -> None:
    for half in STEPS:
        requests = -(-half // 32)
        assert one_step(reduction.step_sequential, 256, half) == [(requests, requests, requests)] * 3


@pytest.mark.parametrize("block", [64, 256, 512, 1024])
def test_a_whole_tree_costs_the_sum_of_its_steps(block: int) -> None:
    src, steps = inputs(block)[1], [1 << k for k in range(block.bit_length() - 1)]
    found = {}
    for tree in TREES:
        t = trace(getattr(reduction, f"sum_{tree}"), 1, block, src, poisoned(1))
        found[tree] = sum(site.wavefronts for site in t.sites if "+=" in site.source)
        assert (t.shared.total.excess > 0) == (tree == "interleaved")
    assert found["interleaved"] == 3 * sum(interleaved_step(block, step)[1] for step in steps)
    assert found["sequential"] == 3 * sum(-(-half // 32) for half in steps)
    assert found["divergent"] == 3 * sum(min(block // 32, block // (2 * step)) for step in steps)
    assert found["shuffled"] == 0


def test_sixteen_bytes_a_load_make_a_quarter_of_the_requests() -> None:
    src = inputs(4 * reduction.CHUNK)[1]
    strided = trace(reduction.sum_strided, 2, reduction.BLOCK, src, poisoned(2))
    arguments = src, poisoned(2), np.zeros(1, np.uint32), poisoned(1)
    whole = trace(reduction.sum_whole, 2, reduction.BLOCK, *arguments)
    wide = [site for site in whole.sites if "load4_nc" in site.source]
    assert sum(site.sectors for site in wide) == strided.global_.load.sectors == src.size // 8
    assert sum(site.requests for site in wide) * 4 == strided.global_.load.requests
