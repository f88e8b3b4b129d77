"""Experiments with the transpose ladder: what a tile's layout costs."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from math import gcd
from typing import Any

import numpy as np

from lanewise.experiments.banks import FULL, repeated_reads
from lanewise.experiments.h200 import SMS
from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import padding, padding_reads, swizzle

PADS = range(17)
COPY_GRID = SMS * 2  # two blocks for each multiprocessor


def experiments() -> tuple[Experiment, ...]:
    """E-04, E-06, E-08, E-18, E-20 and E-45."""
    return (
        Experiment(
            "E-04",
            "What does each rung of the transpose ladder cost?",
            timed=(
                *(case for n in (1024, 4096, 8192) for case in _rungs(n)),
                _transpose(*LADDER[0], 16384),
                *_pads(8192),
                *_doubles(8192),
            ),
            counted=(*_rungs(1024), *_pads(128), *_doubles(128)),
            ceiling=Ceiling("device_copy"),
        ),
        Experiment(
            "E-04-large",
            "How fast is a transpose that no cache holds?",
            timed=_rungs(16384)[1:],
            ceiling=Ceiling("device_copy"),
            speed="speed:transpose",
        ),
        Experiment(
            "E-06",
            "Which padding serves 16 x 16 threads?",
            timed=_small(4096),
            counted=_small(128),
            ceiling=Ceiling("device_copy"),
        ),
        Experiment("E-08", "Which pitch serves columns of 8 and 16 bytes?", counted=_columns()),
        Experiment(
            "E-18",
            "What does padding cost that drives a block from the SM?",
            timed=_copies(COPY_GRID, 32),
            counted=_copies(2, 2),
            ceiling=Ceiling("device_copy"),
        ),
        Experiment(
            "E-20",
            "Do both families of counters agree when other traffic is about?",
            timed=(*_quiet(), *(_transpose(*rung, 4096, profiled=True) for rung in LADDER[2:4])),
        ),
        Experiment(
            "E-45",
            "What does a profiler call busy where shared memory is the limit?",
            timed=tuple(_transpose(*rung, 8192, profiled=True) for rung in LADDER[2:4]),
        ),
    )


# --- The ladder. Every warp request of a coalesced side moves 128 bytes: four sectors.

LADDER: tuple[tuple[str, Any, int, int], ...] = (  # with wavefronts a shared load, and sectors a global store
    ("copy", padding.copy_rows, 0, 4),
    ("naive", padding.transpose_naive, 0, 32),
    ("tiled", padding.transpose_tiled, 32, 4),
    ("padded", padding.transpose_padded, 1, 4),
    ("swizzled", padding.transpose_swizzled, 1, 4),
    ("rotated", swizzle.transpose_rotated, 1, 4),
)


@cache
def transpose_of(n: int, dtype: Any = np.float32, turned: bool = True) -> Problem:
    """Transpose an n x n matrix, or copy it."""

    def inputs(rng: np.random.Generator) -> Mapping[str, Any]:
        return {"src": rng.random((n, n), dtype)}

    def outputs(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
        src = values["src"]
        return {"dst": padding.reference(src) if turned else src.copy()}

    suffix = "" if dtype is np.float32 else f" {np.dtype(dtype)}"
    return Problem(f"{'transpose' if turned else 'copy'} {n}x{n}{suffix}", inputs, outputs)


def _transpose(label: str, kernel: Any, ways: int, sectors: int, n: int, profiled: bool = False) -> Case:
    requests = n * n // 32
    arithmetic = {"global_.load.sectors": 4 * requests, "global_.store.sectors": sectors * requests}
    if ways:
        arithmetic |= {
            "shared.store.wavefronts": requests,
            "shared.load.wavefronts": ways * requests,
            "shared.load.ideal": requests,
        }
    return Case(
        f"{label} {n}",
        kernel,
        transpose_of(n, turned=label != "copy"),
        (n // 32, n // 32),
        padding.BLOCK,
        useful_bytes=8 * n * n,
        arithmetic=arithmetic,
        profiled=profiled,
    )


def _wide(n: int) -> Case:
    """16 bytes a lane: a quarter of the requests, each of 16 sectors and 4 wavefronts."""
    requests = n * n // 128
    return Case(
        f"wide {n}",
        swizzle.transpose_wide,
        transpose_of(n),
        (n // swizzle.WIDE, n // swizzle.WIDE),
        swizzle.WIDE_BLOCK,
        useful_bytes=8 * n * n,
        arithmetic={
            "global_.load.requests": requests,
            "global_.load.sectors": 16 * requests,
            "global_.store.sectors": 16 * requests,
            "shared.store.wavefronts": 4 * requests,
            "shared.load.wavefronts": 4 * requests,
        },
    )


def _rungs(n: int) -> tuple[Case, ...]:
    return (*(_transpose(*rung, n) for rung in LADDER), _wide(n))


def _pads(n: int) -> tuple[Case, ...]:
    return tuple(
        _transpose(f"pad {pad},", padding.transpose_pitched(32 + pad), gcd(32 + pad, 32), 4, n)
        for pad in PADS
    )


def _doubles(n: int) -> tuple[Case, ...]:
    """8 bytes a lane: two wavefronts a request at least, one for each half of the warp."""
    requests = n * n // 32
    return tuple(
        Case(
            f"double, pad {pitch - 32}, {n}",
            padding.transpose_doubles(pitch),
            transpose_of(n, np.float64),
            (n // 32, n // 32),
            padding.BLOCK,
            useful_bytes=16 * n * n,
            arithmetic={
                "global_.load.sectors": 8 * requests,
                "global_.store.sectors": 8 * requests,
                "shared.store.wavefronts": 2 * requests,
                "shared.load.wavefronts": ways * requests,
                "shared.load.ideal": 2 * requests,
            },
        )
        for pitch, ways in ((32, 32), (33, 2))
    )


# --- Blocks of 16 x 16 threads: a warp is two rows of the block.


def _small(n: int) -> tuple[Case, ...]:
    families = [(f"pad {pad}", padding.transpose_small(pad), *_small_ways(pad)) for pad in PADS]
    families.append(("swizzled", swizzle.transpose_small_swizzled, 1, 1))
    requests = n * n // 32
    return tuple(
        Case(
            f"{label}, {n}",
            kernel,
            transpose_of(n),
            (n // 16, n // 16),
            padding.SMALL_BLOCK,
            useful_bytes=8 * n * n,
            arithmetic={
                "global_.load.sectors": 4 * requests,
                "global_.store.sectors": 4 * requests,
                "shared.store.wavefronts": store * requests,
                "shared.load.wavefronts": load * requests,
            },
        )
        for label, kernel, store, load in families
    )


def _small_ways(pad: int) -> tuple[int, int]:
    """Wavefronts a store and a load of `transpose_small(pad)`.

    The store covers two rows of 16 banks, the second `pad` banks past the end of the first: they overlap for
    every pad but 0. The load covers two neighbouring columns: 16 rows of one meet 32 / gcd banks, the other
    column falls between them, unless the pitch is odd and both share all banks.
    """
    shared = gcd(16 + pad, 32)
    return 1 if pad == 0 else 2, 2 if shared == 1 else shared // 2


# --- One warp: columns of 32 x 32 tiles, 32 rows of 128 bytes filled in order.


def _square(dtype: Any, rng: np.random.Generator) -> Mapping[str, Any]:
    return {"src": rng.random((32, 32), dtype)}


def _same(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": values["src"].copy()}


def _columns() -> tuple[Case, ...]:
    """The conflicts of a column of wide elements.

    A group of 32 / w lanes reads words `pitch` apart, w words each: gcd(pitch, 32) / w lanes meet in a bank
    (the pitch is a multiple of w), but no more than there are in the group.
    """
    reads = padding_reads
    shapes = (
        *((f"float4, pitch {p}", reads.vector_columns(p), 4, p, np.float32) for p in (32, 36, 40, 48)),
        *((f"float2, pitch {p}", reads.pair_columns(p), 2, p, np.float32) for p in (32, 34, 36, 40, 48)),
        *((f"double, pitch {p}", reads.double_columns(p), 2, 2 * p, np.float64) for p in (32, 33)),
    )
    return tuple(_column(*shape) for shape in shapes)


def _column(label: str, kernel: Any, words: int, pitch_words: int, dtype: Any) -> Case:
    n_words = 32 * 32 * np.dtype(dtype).itemsize // 4
    requests = n_words // (32 * words)
    ways = min(32 // words, gcd(pitch_words, 32) // words)
    return Case(
        label,
        kernel,
        Problem(f"32x32 {np.dtype(dtype)}", partial(_square, dtype), _same),
        grid=1,
        block=32,
        arithmetic={
            "shared.store.wavefronts": words * requests,
            "shared.load.wavefronts": words * ways * requests,
            "shared.load.ideal": words * requests,
        },
    )


# --- A copy through a tile that fills shared memory.


def _line(n: int, rng: np.random.Generator) -> Mapping[str, Any]:
    return {"src": rng.random(n, np.float32)}


def _copies(n_blocks: int, n_tiles: int) -> tuple[Case, ...]:
    n = padding_reads.COPY_ROWS * padding_reads.COPY_COLS * n_blocks * n_tiles
    problem = Problem(f"copy {n}", partial(_line, n), _same)
    return tuple(
        Case(
            f"pitch {pitch}, {padding_reads.copy_bytes(pitch)} bytes",
            padding_reads.copy_persistent(pitch),
            problem,
            n_blocks,
            padding_reads.COPY_BLOCK,
            dynamic_shared_bytes=padding_reads.copy_bytes(pitch),
            useful_bytes=8 * n,
            arithmetic={
                "global_.load.sectors": n // 8,
                "global_.store.sectors": n // 8,
                "shared.store.wavefronts": n // 32,
                "shared.load.wavefronts": n // 32,
            },
        )
        for pitch in (128, 129, 132)
    )


# --- Shared memory alone, to compare with a transpose.


def _quiet() -> tuple[Case, ...]:
    found = []
    for stride in (32, 1):
        case = repeated_reads(stride, FULL, n_rounds=64)
        problem = replace(case.problem, name=f"quiet stride {stride}")
        found.append(replace(case, label=f"quiet, stride {stride}", problem=problem, profiled=True))
    return tuple(found)
