"""Experiments with prefix sums: what each step up a tree costs, and how fast a whole array can be scanned."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.experiments.reduction import interleaved_step
from lanewise.kernels import scan

TILES = (256, 512, 1024)  # elements of the trees
TREES = {"tree": scan.scan_tree, "padded": scan.scan_padded}


def _inputs(n: int, n_tiles: int, rng: np.random.Generator) -> Mapping[str, Any]:
    """Small whole numbers: every order of adding them gives the same float32."""
    src = rng.integers(-8, 9, n, np.int8).astype(np.float32)
    return {"src": src, "state": np.zeros(n_tiles, np.int64), "n_drawn": np.zeros(1, np.uint32)}


def _tiles(tile: int, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": scan.reference_tiles(values["src"], tile)}


def _whole(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    src = values["src"]
    n_drawn = np.array([scan.grid_of(src)], np.uint32)
    return {"dst": scan.reference(src), "state": scan.reference_state(src), "n_drawn": n_drawn}


def _up(distance: int, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": scan.reference_up(values["src"], distance)}


def tiles_of(n: int, tile: int) -> Problem:
    """Scan each tile of an array."""
    return Problem(f"prefix sums of {n} in tiles of {tile}", partial(_inputs, n, 0), partial(_tiles, tile))


def whole_of(n: int) -> Problem:
    """Scan an array. The counter and the published sums are 0 before each launch."""
    return Problem(f"prefix sums of {n}", partial(_inputs, n, -(-n // scan.TILE)), _whole)


def _case(
    label: str, kernel: Any, problem: Problem, n: int, tile: int, block: int, shared: Mapping[str, int]
) -> Case:
    """A launch with one block for each tile. `shared` is what a block costs, if that is on paper."""
    n_tiles = -(-n // tile)
    arithmetic = {name: n_tiles * wavefronts for name, wavefronts in shared.items()}
    if shared and kernel is scan.scan_whole:  # two published words; how many are read is a matter of timing
        arithmetic |= {"global_.store.sectors": n // 8 + 2 * n_tiles}
    elif shared:
        arithmetic |= {"global_.load.sectors": n // 8, "global_.store.sectors": n // 8}
    return Case(label, kernel, problem, n_tiles, block, useful_bytes=8 * n, arithmetic=arithmetic)


def _tree_arithmetic(label: str, tile: int) -> Mapping[str, int]:
    """Per step up two loads and a store, per step down two of each; the tile in and out, and the root."""
    steps = [interleaved_step(tile, 1 << k) for k in range(tile.bit_length() - 1)]
    wavefronts = sum(step[0 if label == "padded" else 1] for step in steps)
    warps = tile // 64
    return {
        "shared.load.wavefronts": 4 * wavefronts + 2 * warps,
        "shared.store.wavefronts": 3 * wavefronts + 2 * warps + 1,
    }


def _warp_totals(warps: int, drawn: int) -> Mapping[str, int]:
    """Each warp leaves a word and reads one, the first warp handles them all; `drawn` words of all warps."""
    return {
        "shared.load.wavefronts": 1 + warps + drawn * warps,
        "shared.store.wavefronts": warps + 1 + drawn,
    }


def _ladder(n: int, arithmetic: bool) -> tuple[Case, ...]:
    cases = []
    for tile in TILES:
        problem = tiles_of(n, tile)
        for label, kernel in TREES.items():
            cost = _tree_arithmetic(label, tile) if arithmetic else {}
            cases.append(_case(f"{label} of {tile}", kernel, problem, n, tile, tile // 2, cost))
        cost = _warp_totals(tile // 32, 0) if arithmetic else {}
        cases.append(_case(f"shuffled, {tile}", scan.scan_shuffled, problem, n, tile, tile, cost))
    warps = scan.WARPS
    for label, kernel, problem, drawn in (
        ("wide", scan.scan_wide, tiles_of(n, scan.TILE), 0),
        ("whole", scan.scan_whole, whole_of(n), 2),
    ):
        cost = _warp_totals(warps, drawn) if arithmetic else {}
        cases.append(_case(label, kernel, problem, n, scan.TILE, scan.BLOCK, cost))
    return tuple(cases)


def _steps(tile: int) -> tuple[Case, ...]:
    """Each step up alone, on two tiles, plain and padded."""
    found = []
    for distance in (1 << k for k in range(tile.bit_length() - 1)):
        name = f"step {distance} up in tiles of {tile}"
        problem = Problem(name, partial(_inputs, 2 * tile, 0), partial(_up, distance))
        requests, wavefronts = interleaved_step(tile, distance)
        for label, pad, cost in (("plain", 0, wavefronts), ("padded", 1, requests)):
            scalars = {"distance": distance, "pad": pad}
            copied = tile // 32
            arithmetic = {
                "shared.load.wavefronts": 2 * (2 * cost + copied),
                "shared.load.ideal": 2 * (2 * requests + copied),
                "shared.store.wavefronts": 2 * (cost + copied),
                "shared.store.ideal": 2 * (requests + copied),
            }
            label = f"{label}, distance {distance}"
            case = Case(label, scan.step_up, problem, 2, tile // 2, scalars=scalars, arithmetic=arithmetic)
            found.append(case)
    return tuple(found)


def experiments() -> tuple[Experiment, ...]:
    """E-36, the part on scans: the ladder step by step, and the fastest scan."""
    n = 1 << 26
    whole = _case("whole", scan.scan_whole, whole_of(n), n, scan.TILE, scan.BLOCK, {})
    return (
        Experiment(
            "E-36-scan",
            "What does each step of a scan cost in shared memory, and the whole in time?",
            timed=_ladder(1 << 24, arithmetic=False),
            counted=(*_steps(512), *_ladder(1 << 14, arithmetic=True)),
            ceiling=Ceiling("cumsum"),
        ),
        Experiment(
            "E-36-cumsum",
            "How near does a scan in one pass come to the speed of memory?",
            timed=(whole,),
            ceiling=Ceiling("cumsum"),
            speed="speed:scan",
        ),
    )
