"""Experiments with GELU and LayerNorm: who walks along a shared row, and what one kernel less saves."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import layernorm_gelu as ladder
from lanewise.kernels.layernorm_gelu import BLOCK, COLUMNS, LANES, SLICE, THREADS, TILE_BLOCK, WARPS

PITCHES = (COLUMNS, COLUMNS + 1, COLUMNS + 4)


def _rows(n: int, rng: np.random.Generator) -> Mapping[str, Any]:
    return {"src": rng.normal(size=(n, COLUMNS)).astype(np.float32)}


def _normalised(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": ladder.reference(values["src"])}


def _terms(n: int, rng: np.random.Generator) -> Mapping[str, Any]:
    return {name: rng.normal(size=n).astype(np.float32) for name in ("a", "b", "src")}


def _added(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": values["a"] + values["b"]}


def _activated(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": ladder.reference_gelu(values["src"])}


def _fused(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": ladder.reference_gelu(values["a"] + values["b"])}


def layernorm_of(n: int) -> Problem:
    """GELU and LayerNorm of n rows of 1,024 float32."""
    return Problem(f"gelu, layernorm {n}x{COLUMNS}", partial(_rows, n), _normalised, 1e-4, 1e-5)


def _walked(n: int, pitch: int, width: int) -> dict[str, int]:
    """Lane = row, `width` floats at a time, n a multiple of 32.

    Per block of 32 rows and 32 warps: each row goes in and comes out, 32 words a lane; each lane walks twice
    over 32 columns; each warp stores two rows of sums and reads all 64. Rows `pitch` words apart start in
    32 / gcd(pitch, 32) banks, so gcd of the lanes meet in each; 16 bytes a lane take four passes at least.
    """
    words = n * COLUMNS // LANES
    steps, sums = 2 * n * SLICE // width, n * 2 * LANES
    degree = max(math.gcd(pitch, 32), width)
    return {
        "shared.load.requests": steps + sums + words // width,
        "shared.load.wavefronts": steps * degree + sums + words,
        "shared.store.requests": words // width + 2 * n,
        "shared.store.wavefronts": words + 2 * n,
        "global_.load.requests": words // width,
        "global_.load.sectors": n * COLUMNS // 8,
        "global_.store.sectors": n * COLUMNS // 8,
    }


def _shared_by_warp(n: int, width: int, passes: int) -> dict[str, int]:
    """A warp per row: one pass of stores and `passes` of loads, no bank conflict, every sector once."""
    words = n * COLUMNS // LANES
    return {
        "shared.load.requests": passes * words // width,
        "shared.load.wavefronts": passes * words,
        "shared.store.wavefronts": words if passes else 0,
        "global_.load.requests": words // width,
        "global_.load.sectors": n * COLUMNS // 8,
        "global_.store.sectors": n * COLUMNS // 8,
    }


def layernorm_cases(n: int) -> tuple[Case, ...]:
    """The ladder on n rows, n a multiple of 32."""
    problem = layernorm_of(n)
    moved = 8 * n * COLUMNS
    walked = [
        Case(
            f"lane = row, {'float4, ' if width == 4 else ''}pitch {pitch}, {n} rows",
            kernel,
            problem,
            -(-n // LANES),
            TILE_BLOCK,
            ladder.tile_bytes(pitch),
            scalars={"pitch": pitch},
            useful_bytes=moved,
            arithmetic=_walked(n, pitch, width),
        )
        for kernel, width in ((ladder.rows_walked, 1), (ladder.rows_walked4, 4))
        for pitch in PITCHES
        if pitch % width == 0
    ]
    by_warp = [
        Case(
            f"{label}, {n} rows",
            kernel,
            problem,
            -(-n // WARPS),
            BLOCK,
            useful_bytes=moved,
            arithmetic=_shared_by_warp(n, width, passes),
        )
        for label, kernel, width, passes in (
            ("lane = column", ladder.row_per_warp, 1, 3),
            ("lane = column, float4", ladder.row_per_warp4, 4, 3),
            ("registers, float4", ladder.row_in_registers, 4, 0),
        )
    ]
    return (*walked, *by_warp)


def fusion_cases(n: int) -> tuple[Case, ...]:
    """Add and activate n elements, n a multiple of 256, by two kernels or by one."""

    def case(label: str, kernel: Any, outputs: Any, n_read: int) -> Case:
        problem = Problem(f"{label} {n}", partial(_terms, n), outputs, 1e-4, 1e-5)
        sectors = n // 8
        return Case(
            label,
            kernel,
            problem,
            n // THREADS,
            THREADS,
            useful_bytes=4 * (n_read + 1) * n,
            arithmetic={"global_.load.sectors": n_read * sectors, "global_.store.sectors": sectors},
        )

    return (
        case("add", ladder.add, _added, 2),
        case("activate", ladder.activate, _activated, 1),
        case("add and activate", ladder.add_activate, _fused, 2),
    )


def experiments() -> tuple[Experiment, ...]:
    """E-37: the ladder; and two elementwise kernels against one."""
    return (
        Experiment(
            "E-37",
            "What does it cost when each lane walks along a row of its own in shared memory?",
            timed=(*layernorm_cases(8192), *layernorm_cases(65536)),  # two rounds of blocks, and many
            counted=layernorm_cases(64),
            ceiling=Ceiling("device_copy"),
        ),
        Experiment(
            "E-37-fusion",
            "What does one kernel in place of two save?",
            timed=fusion_cases(1 << 26),
            counted=fusion_cases(1 << 14),
            ceiling=Ceiling("device_copy"),
        ),
    )
