"""Experiments with swizzles: every direction through a tile, every width, and what the arithmetic costs."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from lanewise.experiments.padding import transpose_of
from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import padding, padding_reads, swizzle, swizzle_costs, swizzle_reads

FILL = 32  # stores of one wavefront, or of four for eight rows: a row of 128 bytes is a wavefront
DIRECTIONS = {"row": (0, 1, 0), "column": (1, 0, 0), "diagonal": (1, 1, 0), "anti-diagonal": (1, -1, 31)}


def experiments() -> tuple[Experiment, ...]:
    """E-07, E-10 and E-17."""
    return (
        Experiment("E-07", "Which layout serves which direction?", counted=_walks()),
        Experiment(
            "E-10",
            "How many bits must a swizzle move, for elements of 4, 8 and 16 bytes?",
            timed=tuple(_bits(n_bits, 8192) for n_bits in range(6)),
            counted=(
                *(_bits(n_bits, 128) for n_bits in range(6)),
                *(_doubles(n_bits) for n_bits in range(5)),
                *(_vectors(n_bits) for n_bits in range(4)),
                _scalar_column(),
                _unmapped(),
            ),
            ceiling=Ceiling("device_copy"),
        ),
        Experiment(
            "E-17",
            "What does a swizzle cost where it gains nothing?",
            timed=_filters(8192),
            counted=_filters(128),
            ceiling=Ceiling("device_copy"),
        ),
    )


# --- One warp, one tile.


def _steps(steps: tuple[int, int, int], rng: np.random.Generator) -> Mapping[str, Any]:
    names = ("row_step", "col_step", "first_col")
    return {"src": rng.random((32, 32), np.float32), **dict(zip(names, steps, strict=True))}


def _walked(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    src, *steps = (values[name] for name in ("src", "row_step", "col_step", "first_col"))
    return {"dst": padding_reads.reference_walk(src, *steps)}


def _walks() -> tuple[Case, ...]:
    """Wavefronts of each direction: where lane l is, modulo the 32 banks.

    Pitch 32: the bank is the column, one for a column and all 32 for both diagonals. Pitch 33: row + column,
    which is 2l on one diagonal and 31 on the other. XOR: the diagonal is l ^ l = 0, the other one
    l ^ (31 - l) = 31. A rotation does what pitch 33 does.
    """
    layouts = {
        "pitch 32": (padding_reads.walk(32), (1, 32, 1, 1)),
        "pitch 33": (padding_reads.walk(33), (1, 1, 2, 32)),
        "XOR": (swizzle_reads.walk_swizzled, (1, 1, 32, 32)),
        "rotation": (swizzle_reads.walk_rotated, (1, 1, 2, 32)),
    }
    return tuple(
        Case(
            f"{layout}, {direction}",
            kernel,
            Problem(f"walk along a {direction}", partial(_steps, steps), _walked),
            grid=1,
            block=32,
            arithmetic={"shared.store.wavefronts": FILL, "shared.load.wavefronts": load},
        )
        for layout, (kernel, loads) in layouts.items()
        for (direction, steps), load in zip(DIRECTIONS.items(), loads, strict=True)
    )


def _matrix(shape: tuple[int, int], dtype: Any, rng: np.random.Generator) -> Mapping[str, Any]:
    return {"src": rng.random(shape, dtype)}


def _same(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": values["src"].copy()}


def _diagonal(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": swizzle_reads.reference_unmapped(values["src"])}


def _tile(label: str, kernel: Any, problem: Problem, load: int, ideal: int) -> Case:
    return Case(
        label,
        kernel,
        problem,
        grid=1,
        block=32,
        arithmetic={
            "shared.store.wavefronts": FILL,
            "shared.load.wavefronts": load,
            "shared.load.ideal": ideal,
        },
    )


def _doubles(n_bits: int) -> Case:
    """32 rows of 16 doubles: each bit halves the 16 lanes that meet, in each half of the warp."""
    problem = Problem("32x16 float64", partial(_matrix, (32, 16), np.float64), _same)
    columns, ways = 16, 32 >> n_bits
    return _tile(
        f"double, {n_bits} bits", swizzle_reads.double_columns(n_bits), problem, columns * ways, columns * 2
    )


def _vectors(n_bits: int) -> Case:
    """Rows of eight units of 16 bytes: each bit halves the 8 lanes that meet, in each quarter of the warp."""
    problem = Problem("32x32 float32", partial(_matrix, (32, 32), np.float32), _same)
    columns, ways = 8, 32 >> n_bits
    return _tile(
        f"float4, {n_bits} bits", swizzle_reads.vector_columns(n_bits), problem, columns * ways, columns * 4
    )


def _scalar_column() -> Case:
    """32 rows in eight units: four rows meet in each."""
    problem = Problem("32x32 float32", partial(_matrix, (32, 32), np.float32), _same)
    return _tile("float4 tile, read by floats", swizzle_reads.scalar_column, problem, 4 * 32, 32)


def _unmapped() -> Case:
    """Column 0 of a swizzled tile, unswizzled: the wrong values, and every lane in bank 0."""
    problem = Problem("32x32 unmapped", partial(_matrix, (32, 32), np.float32), _diagonal)
    return _tile("read without the map", swizzle_reads.read_unmapped, problem, 32, 1)


# --- Whole kernels.


def _bits(n_bits: int, n: int) -> Case:
    requests = n * n // 32
    return Case(
        f"float, {n_bits} bits, {n}",
        swizzle.transpose_bits(n_bits),
        transpose_of(n),
        (n // 32, n // 32),
        padding.BLOCK,
        useful_bytes=8 * n * n,
        arithmetic={
            "global_.load.sectors": 4 * requests,
            "global_.store.sectors": 4 * requests,
            "shared.store.wavefronts": requests,
            "shared.load.wavefronts": (32 >> n_bits) * requests,
        },
    )


@cache
def _image(n: int) -> Problem:
    def outputs(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
        return {"dst": swizzle_costs.reference(values["src"])}

    return Problem(f"filter {n}x{n}", partial(_matrix, (n, n), np.float32), outputs, 1e-6, 1e-6)


def _filters(n: int) -> tuple[Case, ...]:
    """Each warp loads its row twice, 32 columns and then 2 more; two warps of a block load a second row."""
    n_blocks = (n // 32) * (n // 8)
    fill = n_blocks * (8 + 2) * 2
    return tuple(
        Case(
            f"{label} {n}",
            kernel,
            _image(n),
            (n // 32, n // 8),
            swizzle_costs.BLOCK,
            useful_bytes=8 * n * n,
            flops=9 * n * n,
            arithmetic={
                "shared.store.wavefronts": fill,
                "shared.load.wavefronts": n_blocks * 8 * 9,
                "shared.load.ideal": n_blocks * 8 * 9,
                "global_.store.sectors": n * n // 8,
            },
        )
        for label, kernel in (
            ("plain", swizzle_costs.filter_plain),
            ("swizzled", swizzle_costs.filter_swizzled),
        )
    )
