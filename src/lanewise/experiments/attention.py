"""Experiments with attention: the scores written to memory, kept in registers, and on Tensor Cores."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import attention, attention_flash
from lanewise.kernels.attention import LANES, PARTS, PER_WARP, ROWS, SIZE, TILE, WARPS
from lanewise.kernels.attention_flash import KEYS, WARP_ROWS

HEADS = 4
LENGTHS = (1024, 2048, 4096, 8192)
PROFILED = (1024, 4096, 8192)  # scores that fit the L2 cache, and that do not
FULL_HEADS = 32


def _inputs(heads: int, n: int, rng: np.random.Generator) -> Mapping[str, Any]:
    return {name: rng.standard_normal((heads, n, SIZE), np.float32).astype(np.float16) for name in "qkv"}


def _score_inputs(heads: int, n: int, rng: np.random.Generator) -> Mapping[str, Any]:
    """Scores as queries and keys of spread 1 would give them."""
    return {"s": rng.standard_normal((heads, n, n), np.float32).astype(np.float16)}


def _weight_inputs(heads: int, n: int, rng: np.random.Generator) -> Mapping[str, Any]:
    """Weights near 1 / n, and values."""
    weights = rng.random((heads, n, n), np.float32) * np.float32(2 / n)
    return {
        "p": weights.astype(np.float16),
        "v": rng.standard_normal((heads, n, SIZE), np.float32).astype(np.float16),
    }


def _scores(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"s": attention.reference_scores(values["q"], values["k"])}


def _softmax(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"p": attention.reference_softmax(values["s"])}


def _values(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": attention.reference_values(values["p"], values["v"])}


def _attention(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": attention.reference(values["q"], values["k"], values["v"])}


def _tiles(heads: int, n: int) -> dict[str, dict[str, int]]:
    """The three simple kernels; n is a multiple of 32.

    A tile step of a block of 32 warps stores two tiles, 32 rows each, and reads two words 32 times a warp. A
    warp's 32 halves are two sectors.
    """
    tiles, n_rows, per_row = n // TILE, heads * n, n // LANES
    score_steps, value_steps = heads * tiles * tiles * (SIZE // TILE), heads * tiles * (SIZE // TILE) * tiles
    return {
        "scores": {
            "shared.load.wavefronts": score_steps * 2 * TILE * TILE,
            "shared.store.wavefronts": score_steps * 2 * TILE,
            "global_.load.sectors": score_steps * 2 * TILE * 2,
            "global_.store.sectors": n_rows * per_row * 2,
        },
        "softmax": {
            "global_.load.sectors": 3 * n_rows * per_row * 2,
            "global_.store.sectors": n_rows * per_row * 2,
        },
        "values": {
            "shared.load.wavefronts": value_steps * 2 * TILE * TILE,
            "shared.store.wavefronts": value_steps * 2 * TILE,
            "global_.load.sectors": value_steps * 2 * TILE * 2,
            "global_.store.sectors": n_rows * SIZE // LANES * 2,
        },
    }


def _carried_out(n_warps: int, n_cols: int, degree: int = 1) -> dict[str, int]:
    """32 rows a warp, put into shared memory by words, eight rows of four at a time, and carried out by loads
    and stores of 16 bytes a lane. `degree`: what the words' rows cost that start in the same bank.
    """
    n_words, n_wide = WARP_ROWS * n_cols // 2 // LANES, WARP_ROWS * n_cols // 8 // LANES
    return {
        "shared.load.requests": n_warps * n_wide,
        "shared.load.wavefronts": n_warps * n_wide * 4,
        "shared.store.requests": n_warps * n_words,
        "shared.store.wavefronts": n_warps * n_words * degree,
        "global_.store.requests": n_warps * n_wide,
        "global_.store.sectors": n_warps * WARP_ROWS * n_cols // 16,
    }


def _with_matrices(carried_out: dict[str, int], n_loads: int, degree: int = 1) -> dict[str, int]:
    """The counts with those of `ldmatrix` x4: four passes of eight rows, of `degree` wavefronts each."""
    more = {"shared.load.requests": n_loads, "shared.load.wavefronts": 4 * degree * n_loads}
    return {name: count + more.get(name, 0) for name, count in carried_out.items()}


def _matrices(heads: int, n: int) -> dict[str, dict[str, int]]:
    """The same three for Tensor Cores; n is a multiple of 128.

    A warp has 32 rows. Its scores with 64 keys take 8 steps along a head, of 2 loads of queries and 4 of
    keys; its values of 128 keys 8 steps of 2 loads of weights and 8 of values.
    """
    warps = heads * n // WARP_ROWS
    parts = warps * n // KEYS
    return {
        "scores": _with_matrices(_carried_out(parts, KEYS), parts * 8 * (2 + 4)),
        "softmax": {
            "global_.load.sectors": 3 * heads * n * n // 16,
            "global_.store.sectors": heads * n * n // 16,
        },
        "values": _with_matrices(_carried_out(warps, SIZE), warps * n // 128 * 8 * (2 + 8)),
    }


def unfused_cases(heads: int, n: int) -> tuple[Case, ...]:
    """The scores in global memory: three simple kernels, three for Tensor Cores; n is a multiple of 128."""
    square, n_rows = heads * n * n, heads * n
    shape = f"{heads}x{n}x{SIZE}"
    of_scores = Problem(f"scores {shape}", partial(_inputs, heads, n), _scores, 4e-3, 2e-3)
    of_softmax = Problem(f"softmax {shape}", partial(_score_inputs, heads, n), _softmax, 4e-3, 1e-6)
    of_values = Problem(f"values {shape}", partial(_weight_inputs, heads, n), _values, 4e-3, 5e-4)
    simple, matrices = _tiles(heads, n), _matrices(heads, n)
    q = np.empty((heads, n, SIZE), np.float16)  # for its shape

    def case(
        label: str, kernel: Any, problem: Problem, grid: Any, block: Any, arithmetic: Any, n_bytes: int = 0
    ) -> Case:
        known: dict[str, Any] = {"arithmetic": arithmetic, "profiled": n in PROFILED}
        if problem is of_softmax:
            known["useful_bytes"] = 4 * square
        else:
            known |= {"useful_bytes": 2 * (2 * n_rows * SIZE + square), "flops": 2 * square * SIZE}
        return Case(f"{label} n={n}", kernel, problem, grid, block, n_bytes, **known)

    tile, warps = attention.TILE_BLOCK, attention.BLOCK
    threads, n_bytes = attention_flash.THREADS, attention_flash.PAIR_BYTES
    score_grid, value_grid = attention.grid_of_scores(q), attention.grid_of_values(q)
    score_blocks, value_blocks = attention_flash.grid_of_scores(q), attention_flash.grid_of(q)
    scores_mma, values_mma = attention_flash.scores_mma, attention_flash.values_mma
    softmax_wide, by_row = attention_flash.softmax_wide, attention.grid_of_rows(q)
    return (
        case("scores", attention.scores, of_scores, score_grid, tile, simple["scores"]),
        case("softmax", attention.softmax, of_softmax, by_row, warps, simple["softmax"]),
        case("values", attention.values, of_values, value_grid, tile, simple["values"]),
        case("scores mma", scores_mma, of_scores, score_blocks, threads, matrices["scores"], n_bytes),
        case("softmax wide", softmax_wide, of_softmax, by_row, warps, matrices["softmax"]),
        case("values mma", values_mma, of_values, value_blocks, threads, matrices["values"], n_bytes),
    )


def attention_of(heads: int, n: int) -> Problem:
    """Attention of some heads over n tokens, 128 columns a head."""
    return Problem(f"attention {heads}x{n}x{SIZE}", partial(_inputs, heads, n), _attention, 1e-2, 5e-4)


def _fused(heads: int, n: int) -> dict[str, int]:
    """Per block: 32 query rows go in once. Per tile of 32 keys: keys and values go in, 4 warp accesses a row;
    each warp reads 128 columns of its key and, for each, four queries; then 32 keys of values, 4 parts each.
    """
    blocks, tiles = heads * n // ROWS, n // LANES
    return {
        "shared.load.wavefronts": blocks * tiles * WARPS * (SIZE * (1 + PER_WARP) + LANES * PARTS),
        "shared.store.wavefronts": blocks * (ROWS * PARTS + tiles * 2 * LANES * PARTS),
        "global_.load.sectors": blocks * (ROWS * PARTS + tiles * 2 * LANES * PARTS) * 2,
        "global_.store.sectors": heads * n * PARTS * 2,
    }


def _flash(heads: int, n: int, degree: int) -> dict[str, int]:
    """Per warp and tile of 64 keys: 8 steps along a head, of 2 loads of queries and 4 of keys; 4 steps along
    the keys, of 8 loads of values. `degree`: the rows of a matrix that start in the same bank.
    """
    warps = heads * n // WARP_ROWS
    n_loads = warps * n // KEYS * (8 * (2 + 4) + 4 * 8)
    return _with_matrices(_carried_out(warps, SIZE, degree), n_loads, degree)


def _known(heads: int, n: int) -> dict[str, Any]:
    return {
        "useful_bytes": 2 * 4 * heads * n * SIZE,
        "flops": 4 * heads * n * n * SIZE,
        "profiled": n in PROFILED,
    }


def fused_case(heads: int, n: int) -> Case:
    """The online softmax without Tensor Cores; n is a multiple of 32."""
    return Case(
        f"fused n={n}",
        attention.attention_fused,
        attention_of(heads, n),
        (n // ROWS, heads),
        attention.BLOCK,
        arithmetic=_fused(heads, n),
        **_known(heads, n),
    )


def flash_cases(heads: int, n: int) -> tuple[Case, ...]:
    """On Tensor Cores; n is a multiple of 128."""
    return tuple(
        Case(
            f"flash, {label} n={n}",
            kernel,
            attention_of(heads, n),
            (n // attention_flash.ROWS, heads),
            attention_flash.THREADS,
            attention_flash.SHARED_BYTES,
            arithmetic=_flash(heads, n, degree),
            **_known(heads, n),
        )
        for label, kernel, degree in (
            ("row-major", attention_flash.flash_row_major, 8),
            ("swizzled", attention_flash.flash_swizzled, 1),
        )
    )


def experiments() -> tuple[Experiment, ...]:
    """E-38: what the scores cost in memory traffic and time, and how fast one kernel gets."""
    return (
        Experiment(
            "E-38",
            "What does one kernel that keeps the scores cost, with and without bank conflicts?",
            timed=tuple(case for n in LENGTHS for case in (fused_case(HEADS, n), *flash_cases(HEADS, n))),
            counted=(fused_case(1, 32), *flash_cases(1, 128)),
            ceiling=Ceiling("attention"),
        ),
        Experiment(
            "E-38-unfused",
            "What do three kernels with the scores in global memory cost, without and with Tensor Cores?",
            timed=tuple(case for n in LENGTHS for case in unfused_cases(HEADS, n)),
            counted=unfused_cases(1, 128),
        ),
        Experiment(
            "E-38-heads",
            "How fast is attention when it fills the GPU?",
            timed=flash_cases(FULL_HEADS, LENGTHS[-1]),
            ceiling=Ceiling("attention"),
            speed="speed:attention",
        ),
    )
