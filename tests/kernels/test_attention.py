"""Attention, with and without the scores in memory: right outputs, and what each tile costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.kernels import attention, attention_flash
from lanewise.trace import Trace, trace
from tests.kernels.launches import assert_clean, poisoned

SIZE = attention.SIZE
FLASH = (attention_flash.flash_row_major, attention_flash.flash_swizzled)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32).astype(np.float16)


def heads_of(heads: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, k, v = (normal(heads, n, SIZE, seed=seed) for seed in range(3))
    return q, k, v


def rising(heads: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys that fit every query better and better, so that each tile brings a new maximum; values count up."""
    q, k = np.full((heads, n, SIZE), 0.5, np.float16), np.empty((heads, n, SIZE), np.float16)
    k[:] = (np.arange(n) * (6 / n)).astype(np.float16)[:, None]
    v = np.resize(np.arange(n * SIZE) % 251 / 8, (heads, n, SIZE)).astype(np.float16)
    return q, k, v


def unwritten(*shape: int) -> np.ndarray:
    return poisoned(*shape, dtype=np.float16)


def near(got: np.ndarray, expected: np.ndarray, absolute: float = 1e-3) -> None:
    np.testing.assert_allclose(got.astype(np.float32), expected.astype(np.float32), rtol=5e-3, atol=absolute)


def flash(kernel: Any, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, Trace]:
    dst = unwritten(*q.shape)
    module = attention_flash
    t = trace(
        kernel, module.grid_of(q), module.THREADS, q, k, v, dst, dynamic_shared_bytes=module.SHARED_BYTES
    )
    return dst, assert_clean(t)


def oracle(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention in float64 by its definition, one query at a time."""
    q, k, v = (array.astype(np.float64) for array in (q, k, v))
    dst = np.empty(q.shape)
    for head in range(len(q)):
        for row in range(q.shape[1]):
            weights = np.exp([float(q[head, row] @ key) / np.sqrt(SIZE) for key in k[head]])
            dst[head, row] = (weights / weights.sum()) @ v[head]
    return dst


def test_the_references_are_attention() -> None:
    q, k, v = heads_of(2, 19)
    near(attention.reference(q, k, v), oracle(q, k, v))
    p = attention.reference_softmax(attention.reference_scores(q, k))
    near(attention.reference_values(p, v), oracle(q, k, v))


@pytest.mark.parametrize("n", [1, 37])
def test_three_kernels_give_attention_of_any_length(n: int) -> None:
    q, k, v = heads_of(2, n)
    s, p, dst = unwritten(2, n, n), unwritten(2, n, n), unwritten(2, n, SIZE)
    assert_clean(trace(attention.scores, attention.grid_of_scores(q), attention.TILE_BLOCK, q, k, s))
    near(s, attention.reference_scores(q, k))
    assert_clean(trace(attention.softmax, attention.grid_of_rows(q), attention.BLOCK, s, p))
    near(p, attention.reference_softmax(s), 1e-6)
    assert_clean(trace(attention.values, attention.grid_of_values(q), attention.TILE_BLOCK, p, v, dst))
    near(dst, attention.reference_values(p, v))
    near(dst, attention.reference(q, k, v), 2e-3)


@pytest.mark.parametrize("inputs", [heads_of, rising])
@pytest.mark.parametrize("n", [1, 37])
def test_one_kernel_gives_attention_of_any_length(inputs: Any, n: int) -> None:
    q, k, v = inputs(1, n)
    dst = unwritten(*q.shape)
    assert_clean(trace(attention.attention_fused, attention.grid_of(q), attention.BLOCK, q, k, v, dst))
    near(dst, attention.reference(q, k, v))


@pytest.mark.parametrize("kernel", FLASH)
def test_tensor_cores_give_attention(kernel: Any) -> None:
    """Random heads, then scores that rise so far that the sums must be rescaled."""
    for q, k, v in (heads_of(2, 128), rising(1, 256)):
        dst, _ = flash(kernel, q, k, v)
        near(dst, attention.reference(q, k, v), 2e-3)
    q, k, v = rising(1, 256)
    s = q[0].astype(np.float32) @ k[0].astype(np.float32).T * attention_flash.LOG2_SCALE
    assert s[:, 64:].max() > s[:, :64].max() + attention_flash.SLACK


def test_tensor_cores_give_scores_and_values() -> None:
    q, k, v = heads_of(2, 128)
    s, dst = unwritten(2, 128, 128), unwritten(*q.shape)
    module = attention_flash
    for kernel, grid, arrays in (
        (module.scores_mma, module.grid_of_scores(q), (q, k, s)),
        (
            module.values_mma,
            module.grid_of(q),
            (attention.reference_softmax(attention.reference_scores(q, k)), v, dst),
        ),
    ):
        t = assert_clean(trace(kernel, grid, module.THREADS, *arrays, dynamic_shared_bytes=module.PAIR_BYTES))
        assert t.shared.total.excess == 0
    p = unwritten(*s.shape)
    assert_clean(trace(module.softmax_wide, attention.grid_of_rows(q), attention.BLOCK, s, p))
    near(p, attention.reference_softmax(s), 1e-6)
    near(s, attention.reference_scores(q, k), 2e-3)
    near(dst, attention.reference(q, k, v))


def test_tiles_of_scalars_are_free_of_conflicts() -> None:
    q, k, v = heads_of(1, 32)
    n = q.shape[1]
    s, dst = unwritten(1, n, n), unwritten(1, n, SIZE)
    traces = [
        trace(attention.scores, attention.grid_of_scores(q), attention.TILE_BLOCK, q, k, s),
        trace(attention.attention_fused, attention.grid_of(q), attention.BLOCK, q, k, v, dst),
    ]
    for t in traces:
        assert t.shared.total.wavefronts == t.shared.total.requests > 0


def test_the_swizzle_takes_ldmatrix_from_32_wavefronts_to_4() -> None:
    for kernel, degree in zip(FLASH, (8, 1), strict=True):
        _, t = flash(kernel, *heads_of(1, 128))
        loads = [site for site in t.sites if site.instruction.startswith("ldmatrix.x4")]
        assert len(loads) == 4
        for site in loads:
            assert (site.wavefronts / site.requests, site.ideal / site.requests) == (4 * degree, 4)


def test_the_scores_are_most_of_the_traffic() -> None:
    """K-cs-10: per head, the scores go to memory and back as S, and again as weights; the fused do not."""
    n = 128
    q, k, v = heads_of(1, n)
    s, p, dst = unwritten(1, n, n), unwritten(1, n, n), unwritten(1, n, SIZE)
    three = [
        trace(attention.scores, attention.grid_of_scores(q), attention.TILE_BLOCK, q, k, s),
        trace(attention.softmax, attention.grid_of_rows(q), attention.BLOCK, s, p),
        trace(attention.values, attention.grid_of_values(q), attention.TILE_BLOCK, p, v, dst),
    ]
    _, one = flash(attention_flash.flash_swizzled, q, k, v)
    assert sum(t.global_.store.bytes_requested for t in three) == 2 * (2 * n * n + n * SIZE)
    assert one.global_.store.bytes_requested == 2 * n * SIZE
