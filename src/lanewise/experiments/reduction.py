"""Experiments with reductions: what each step of a tree costs, and how fast an array can be summed."""

from collections.abc import Callable, Mapping
from functools import partial
from math import gcd
from typing import Any

import numpy as np

from lanewise.experiments.h200 import SMS
from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import reduction

GRID = SMS * 4  # blocks of the sums of the whole array: four for each multiprocessor
SMALL_GRID = 6
BLOCKS = (256, 512, 1024)
TREES = {
    "divergent": reduction.sum_divergent,
    "interleaved": reduction.sum_interleaved,
    "sequential": reduction.sum_sequential,
    "shuffled": reduction.sum_shuffled,
}
Outputs = Callable[[np.ndarray], Mapping[str, np.ndarray]]


def _inputs(n: int, rng: np.random.Generator) -> Mapping[str, Any]:
    """Small whole numbers: every order of adding them gives the same float32."""
    return {"src": rng.integers(-8, 9, n, np.int8).astype(np.float32), "n_done": np.zeros(1, np.uint32)}


def _problem(name: str, n: int, outputs: Outputs) -> Problem:
    return Problem(f"{name} of {n}", partial(_inputs, n), lambda values: outputs(values["src"]))


def tiles_of(n: int, block: int) -> Problem:
    """Sum each tile of `block` elements."""
    return _problem(
        f"sums of tiles of {block}", n, lambda src: {"dst": reduction.reference_tiles(src, block)}
    )


def strided_of(n: int, grid: int) -> Problem:
    """Sum what each of `grid` blocks takes of an array, tile by tile."""
    return _problem(f"sums of {grid} blocks", n, lambda src: {"dst": reduction.reference_strided(src, grid)})


def whole_of(n: int, grid: int) -> Problem:
    """Sum an array by `grid` blocks."""
    return _problem(
        f"sum by {grid} blocks",
        n,
        lambda src: {
            "partials": reduction.reference_partials(src, grid),
            "dst": reduction.reference(src),
        },
    )


def _tree(label: str, n: int, block: int, problem: Problem, arithmetic: Mapping[str, int]) -> Case:
    return Case(
        f"{label}, {block} threads",
        TREES[label],
        problem,
        n // block,
        block,
        useful_bytes=4 * n,
        arithmetic=arithmetic,
    )


def _strided(n: int, grid: int, arithmetic: Mapping[str, int]) -> Case:
    kernel, block = reduction.sum_strided, reduction.BLOCK
    return Case(
        "strided", kernel, strided_of(n, grid), grid, block, useful_bytes=4 * n, arithmetic=arithmetic
    )


def _whole(n: int, grid: int, arithmetic: Mapping[str, int]) -> Case:
    kernel, block = reduction.sum_whole, reduction.BLOCK
    return Case("whole", kernel, whole_of(n, grid), grid, block, useful_bytes=4 * n, arithmetic=arithmetic)


def interleaved_step(block: int, step: int) -> tuple[int, int]:
    """The requests of one access in a step of `sum_interleaved`, and the wavefronts of them all.

    Lanes touch words 2 * step apart: they share 32 / gcd(2 * step, 32) banks.

    >>> [interleaved_step(256, step) for step in (1, 4, 16, 128)]
    [(4, 8), (1, 8), (1, 8), (1, 1)]
    """
    active = block // (2 * step)
    banks = 32 // gcd(2 * step, 32)
    requests = -(-active // 32)
    return requests, requests * -(-min(active, 32) // banks)


def sequential_step(half: int) -> int:
    """The requests, and so the wavefronts, of one access in a step of `sum_sequential`."""
    return -(-half // 32)


def _tree_arithmetic(label: str, n: int, block: int) -> Mapping[str, int]:
    warps = block // 32
    steps = [1 << k for k in range(block.bit_length() - 1)]
    wavefronts = {
        "divergent": sum(min(warps, block // (2 * step)) for step in steps),
        "interleaved": sum(interleaved_step(block, step)[1] for step in steps),
        "sequential": sum(sequential_step(step) for step in steps),
        "shuffled": 0,
    }[label]
    filled = warps  # the tile, or a word for each warp
    return {
        "global_.load.sectors": n // 8,
        "global_.store.sectors": n // block,
        "shared.load.wavefronts": n // block * (2 * wavefronts + 1),
        "shared.store.wavefronts": n // block * (wavefronts + filled),
    }


def _steps(block: int) -> tuple[Case, ...]:
    """Each step alone, on four tiles."""
    n, warps, found = 4 * block, block // 32, []
    for step in (1 << k for k in range(block.bit_length() - 1)):
        requests, wavefronts = interleaved_step(block, step)
        for name, kernel, cost, least in (
            ("step", reduction.step_interleaved, wavefronts, requests),
            ("half", reduction.step_sequential, sequential_step(step), sequential_step(step)),
        ):
            interleaved = kernel is reduction.step_interleaved
            problem = _problem(
                f"{'interleaved' if interleaved else 'sequential'} step {step} in tiles of {block}",
                n,
                partial(_one_step, interleaved, step, block),
            )
            arithmetic = {
                "shared.load.wavefronts": 4 * (2 * cost + warps),
                "shared.load.ideal": 4 * (2 * least + warps),
                "shared.store.wavefronts": 4 * (cost + warps),
                "shared.store.ideal": 4 * (least + warps),
            }
            label = f"{'interleaved' if interleaved else 'sequential'}, {name} {step}"
            found.append(Case(label, kernel, problem, 4, block, scalars={name: step}, arithmetic=arithmetic))
    return tuple(found)


def _one_step(interleaved: bool, step: int, block: int, src: np.ndarray) -> Mapping[str, np.ndarray]:
    if interleaved:
        return {"dst": reduction.reference_interleaved(src, step)}
    return {"dst": reduction.reference_sequential(src, step, block)}


def _ladder(n: int, grid: int, arithmetic: bool) -> tuple[Case, ...]:
    warps = reduction.BLOCK // 32
    trees = [
        _tree(label, n, block, problem, _tree_arithmetic(label, n, block) if arithmetic else {})
        for block in BLOCKS
        for problem in [tiles_of(n, block)]
        for label in TREES
    ]
    strided = {
        "global_.load.sectors": n // 8,
        "shared.load.wavefronts": grid,
        "shared.store.wavefronts": grid * warps,
    }
    # Each block: its warps' sums, and the word that says whether it is the last, read by all warps.
    whole = {
        "global_.load.sectors": n // 8 + -(-grid // 8),
        "global_.store.sectors": grid + 1,
        "shared.load.wavefronts": grid * (1 + warps) + 1,
        "shared.store.wavefronts": grid * (warps + 1) + warps,
    }
    return (
        *trees,
        _strided(n, grid, strided if arithmetic else {}),
        _whole(n, grid, whole if arithmetic else {}),
    )


def experiments() -> tuple[Experiment, ...]:
    """E-36, the part on reductions: the ladder step by step, and the fastest sum."""
    return (
        Experiment(
            "E-36",
            "What does each step of a reduction cost in shared memory, and the whole in time?",
            timed=_ladder(1 << 24, GRID, arithmetic=False),
            counted=(*_steps(256), *_ladder(1 << 14, SMALL_GRID, arithmetic=True)),
            ceiling=Ceiling("sum"),
        ),
        Experiment(
            "E-36-sum",
            "How near does a sum come to the speed of memory?",
            timed=(_whole(1 << 28, GRID, {}),),
            ceiling=Ceiling("sum"),
            speed="speed:reduction",
        ),
    )
