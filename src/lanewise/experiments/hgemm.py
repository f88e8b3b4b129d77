"""Experiments with the product of half matrices: what the tiles' layout is worth in a whole kernel."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lanewise.experiments.plan import NOTHING, Case, Ceiling, Experiment, Problem
from lanewise.kernels import hgemm, hgemm_fast, hgemm_stages

SIZES = (2048, 4096, 8192)
PROFILED = 4096
WARPS = 8  # of every kernel here

# Wavefronts of an ldmatrix.x4 of A and of one of B, and of a 16-byte store of the fill of A.
# B's fill is free in all of them: 8 lanes always store 128 contiguous bytes, or a permutation of them.
COSTS = {
    "row-major": (hgemm.hgemm_row_major, 16, 32, 4),
    "padded": (hgemm.hgemm_padded, 4, 4, 8),
    "wrong XOR": (hgemm.hgemm_wrong_xor, 8, 4, 4),
    "swizzled": (hgemm.hgemm_swizzled, 4, 4, 4),
    "swizzled, m16n8k8": (hgemm.hgemm_sm75, 4, 4, 4),
}
# The same of the rungs whose tiles arrive by cp.async: the counters show nothing of their fill.
STAGES = {
    "2 stages": (hgemm_stages.hgemm_async_2, 4, 4),
    "3 stages": (hgemm_stages.hgemm_async_3, 4, 4),
    "4 stages": (hgemm_stages.hgemm_async_4, 4, 4),
    "3 stages, row-major": (hgemm_stages.hgemm_async_3_row_major, 16, 32),
    "3 stages, padded": (hgemm_stages.hgemm_async_3_padded, 4, 4),
}


def _inputs(m: int, n: int, k: int, rng: np.random.Generator) -> Mapping[str, Any]:
    return {
        "a": rng.standard_normal((m, k), np.float32).astype(np.float16),
        "b": rng.standard_normal((k, n), np.float32).astype(np.float16),
    }


def _outputs(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"c": hgemm.reference(values["a"], values["b"])}


def product_of(m: int, n: int, k: int) -> Problem:
    """Multiply an m x k by a k x n matrix of halves; the result is rounded to a half, 11 bits."""
    return Problem(
        f"hgemm {m}x{n}x{k}",
        partial(_inputs, m, n, k),
        _outputs,
        relative_tolerance=2e-3,
        absolute_tolerance=2e-2,
    )


def _shared_loads(requests: int, wavefronts: int) -> Mapping[str, int]:
    return {"shared.load.requests": requests, "shared.load.wavefronts": wavefronts}


def ladder_arithmetic(m: int, n: int, k: int, of_a: int, of_b: int, fill_of_a: int) -> Mapping[str, int]:
    """Totals of the rungs that fill their tiles through registers.

    For every tile of C and every 32 columns of A each warp fetches two steps of 4 + 2 times four matrices,
    and the block stores 512 chunks of 16 bytes of A and as many of B: 16 requests of 32 lanes each, from 16
    sectors of global memory. A result tile of 16 x 8 is one request: 16 rows of 16 bytes.
    """
    tiles = m // hgemm.BM * (n // hgemm.BN)
    steps = tiles * (k // hgemm.BK)
    return {
        **_shared_loads(steps * WARPS * 12, steps * WARPS * (8 * of_a + 4 * of_b)),
        "shared.store.requests": steps * 32,
        "shared.store.wavefronts": steps * 16 * (fill_of_a + 4),
        "global_.load.requests": steps * 32,
        "global_.load.sectors": steps * 32 * 16,
        "global_.store.requests": tiles * WARPS * 16,
        "global_.store.sectors": tiles * WARPS * 16 * 16,
    }


def stages_arithmetic(m: int, n: int, k: int, of_a: int, of_b: int) -> Mapping[str, int]:
    """Totals of the rungs whose tiles arrive by `cp.async`: the same fetches, and no stores to count."""
    whole = ladder_arithmetic(m, n, k, of_a, of_b, 0)
    return {name: whole[name] for name in whole if name.startswith(("shared.load", "global_.store"))}


def fast_arithmetic(m: int, n: int, k: int, rows_per_bank: int) -> Mapping[str, int]:
    """Totals of the fast kernel, where `rows_per_bank` rows of 128 bytes meet in a bank at each fetch.

    Each warp fetches 4 + 4 times four matrices for every 16 columns of A, and once more at the end.
    """
    tiles = m // hgemm_fast.BM * (n // hgemm_fast.BN)
    fetches = tiles * WARPS * (k // 16 + 1) * 8
    return {
        **_shared_loads(fetches, 4 * rows_per_bank * fetches),
        "global_.store.requests": tiles * WARPS * 32,
        "global_.store.sectors": tiles * WARPS * 32 * 16,
    }


def _case(
    label: str,
    kernel: Any,
    size: tuple[int, int, int],
    launch: tuple[Any, int, int],
    arithmetic: Mapping[str, int],
    scalars: Mapping[str, Any] = NOTHING,
) -> Case:
    m, n, k = size
    grid, block, dynamic_shared_bytes = launch
    return Case(
        label,
        kernel,
        product_of(m, n, k),
        grid,
        block,
        dynamic_shared_bytes,
        scalars,
        useful_bytes=2 * (m * k + k * n + m * n),
        flops=2 * m * n * k,
        arithmetic=arithmetic,
        profiled=m == PROFILED,
    )


def _empty(m: int, n: int) -> np.ndarray:
    """A matrix of that shape that takes no memory, to ask for its launch."""
    return np.broadcast_to(np.float16(0), (m, n))


def _ladder(m: int, n: int, k: int) -> tuple[Case, ...]:
    grid = hgemm.grid_of(_empty(m, n))
    return tuple(
        _case(label, kernel, (m, n, k), (grid, hgemm.BLOCK, 0), ladder_arithmetic(m, n, k, *costs))
        for label, (kernel, *costs) in COSTS.items()
    )


def _staged(m: int, n: int, k: int) -> tuple[Case, ...]:
    return tuple(
        _case(
            label,
            kernel,
            (m, n, k),
            hgemm_stages.launch_of(kernel, _empty(m, n)),
            stages_arithmetic(m, n, k, *costs),
        )
        for label, (kernel, *costs) in STAGES.items()
    )


def _fast(m: int, n: int, k: int) -> Case:
    launch = hgemm_fast.launch_of(_empty(m, n))
    return _case("fast", hgemm_fast.hgemm_fast, (m, n, k), launch, fast_arithmetic(m, n, k, 1))


def _masked(m: int, n: int, k: int, all_bits: Iterable[int]) -> tuple[Case, ...]:
    """With 0, 1, 2 or 3 bits of the row in the swizzle, 8, 4, 2 or 1 rows meet in a bank."""
    launch = hgemm_fast.launch_of(_empty(m, n))
    return tuple(
        _case(
            f"{bits} bits",
            hgemm_fast.hgemm_fast_bits,
            (m, n, k),
            launch,
            fast_arithmetic(m, n, k, 8 >> bits),
            {"mask": (1 << bits) - 1},
        )
        for bits in all_bits
    )


def experiments() -> tuple[Experiment, ...]:
    """E-15 and E-16: the ladder against the library; speed against the share of excess wavefronts."""
    return (
        Experiment(
            "E-15",
            "What is each rung of the half-precision product worth?",
            timed=tuple(
                case for n in SIZES for case in (*_ladder(n, n, n), *_staged(n, n, n), _fast(n, n, n))
            ),
            counted=(*_ladder(256, 128, 64), *_staged(256, 128, 160), _fast(128, 256, 256)),
            ceiling=Ceiling("matmul"),
            speed="speed:hgemm",
        ),
        Experiment(
            "E-16",
            "Which share of the peak is left when a swizzle takes only some bits of the row?",
            timed=_masked(PROFILED, PROFILED, PROFILED, range(4)),
            counted=_masked(128, 256, 256, (0, 2)),
            ceiling=Ceiling("matmul"),
        ),
    )
