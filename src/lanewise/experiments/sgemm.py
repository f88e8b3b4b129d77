"""Experiments with the product of float32 matrices: from one element a thread to a library's speed."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from lanewise.experiments.h200 import SMS
from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import sgemm, sgemm_fast, sgemm_pipelined, sgemm_registers

SIZE = 4096  # where rungs are compared by time
SMALL, LARGE = (64, 96, 64), (256, 128, 64)  # where they are counted: m, n, k
ROOF_THREADS = 512  # of a block; 4 blocks fill a multiprocessor
ROOF_BLOCKS, ROOF_ROUNDS = SMS * 4 * 2, 1024

Totals = Mapping[str, int]
Size = tuple[int, int, int]


def _inputs(m: int, n: int, k: int, rng: np.random.Generator) -> Mapping[str, Any]:
    return {"A": rng.standard_normal((m, k), np.float32), "B": rng.standard_normal((k, n), np.float32)}


def _outputs(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"C": sgemm.reference(values["A"], values["B"])}


def product_of(m: int, n: int, k: int) -> Problem:
    """Multiply an m x k by a k x n matrix of float32, standard normal numbers.

    An element sums k products in float32, so its error grows with sqrt(k) and does not shrink where the sum
    happens to be small.
    """
    return Problem(
        f"sgemm {m}x{n}x{k}",
        partial(_inputs, m, n, k),
        _outputs,
        relative_tolerance=1e-5,
        absolute_tolerance=1e-5 * k**0.5,
    )


def _global(loads: int, load_sectors: int, stores: int, store_sectors: int) -> Totals:
    return {
        "global_.load.requests": loads,
        "global_.load.sectors": load_sectors,
        "global_.store.requests": stores,
        "global_.store.sectors": store_sectors,
    }


def _shared(loads: int, load_wavefronts: int, stores: int, store_wavefronts: int) -> Totals:
    return {
        "shared.load.requests": loads,
        "shared.load.wavefronts": load_wavefronts,
        "shared.store.requests": stores,
        "shared.store.wavefronts": store_wavefronts,
    }


def plain_arithmetic(size: Size, of_a: int, of_b: int, of_c: int) -> Totals:
    """One thread an element, no tile: a warp reads A and B at each k, from so many sectors."""
    m, n, k = size
    warps = m * n // 32
    return _global(2 * warps * k, (of_a + of_b) * warps * k, warps, of_c * warps)


def tiled_arithmetic(
    size: Size, tile: int, loads: tuple[int, int], stores: tuple[int, int], of_c: int = 4
) -> Totals:
    """One thread an element, square tiles: wavefronts of a read and of a store of A's tile and of B's.

    A warp fills 32 elements of each tile out of 4 sectors, and reads each tile once for every k.
    """
    m, n, k = size
    warps = m * n // 32
    fills = warps * (k // tile)
    return {
        **_global(2 * fills, 8 * fills, warps, of_c * warps),
        **_shared(2 * warps * k, sum(loads) * warps * k, 2 * fills, sum(stores) * fills),
    }


def vectors_arithmetic(size: Size) -> Totals:
    """`vectors_32`: a fill is a quarter of the requests, each of 16 sectors and 4 wavefronts."""
    m, n, k = size
    warps = m * n // 32
    fills = warps * (k // 32) // 4
    return {
        **_global(2 * fills, 32 * fills, warps, 4 * warps),
        **_shared(2 * warps * k, 2 * warps * k, 2 * fills, 8 * fills),
    }


def registers_arithmetic(size: Size, tile: int, depth: int, width: int = 4) -> Totals:
    """`(tile / 16)^2` elements a thread, scalar reads of shared memory, `width` elements in each fill.

    The two rows of a warp lie `depth` words apart in A's tile: in one bank if that is 32.
    """
    m, n, k = size
    tiles = (m // tile) * (n // tile)
    fills = tiles * (k // depth) * tile * depth // 32 // width  # of one of the two tiles
    reads = tiles * k * 8 * (tile // 16)  # by 8 warps, of one of the two tiles
    stores = m * n // 32
    return {
        **_global(2 * fills, 2 * fills * 4 * width, stores, 4 * stores),
        **_shared(2 * reads, (3 if depth == 32 else 2) * reads, 2 * fills, 2 * fills * width),
    }


def fragments_arithmetic(
    size: Size, store_of_a: int, load_of_b: int = 4, of_c: int = 16, reads_of_a: tuple[int, int] = (2, 2)
) -> Totals:
    """8 x 8 elements a thread, A's tile transposed.

    `store_of_a` wavefronts for each of the 4 scalars that a thread stores to A's tile, `load_of_b` for each
    of its 2 reads of B's, `of_c` sectors a store of C; reads of A's tile: how many, and wavefronts of each.
    """
    m, n, k = size
    tiles = (m // 128) * (n // 128)
    fills = tiles * k  # of 32 x 4 elements, of one of the two tiles
    warps = tiles * k * 8
    n_reads, of_read = reads_of_a
    stores = m * n // 32 // 4
    return {
        **_global(2 * fills, 32 * fills, stores, of_c * stores),
        **_shared(
            warps * (n_reads + 2),
            warps * (n_reads * of_read + 2 * load_of_b),
            5 * fills,
            (4 * store_of_a + 4) * fills,
        ),
    }


def copies_arithmetic(size: Size) -> Totals:
    """`async_copies`: reads of the tiles and stores of C are as in the rungs before.

    A warp copies 32 elements of A for one wavefront; the counters show nothing of the 16-byte copies of B.
    """
    m, n, k = size
    whole = fragments_arithmetic(size, 1)
    kept = {name: whole[name] for name in whole if name.startswith(("shared.load", "global_.store"))}
    return {**kept, "shared.async_copy.wavefronts": (m // 128) * (n // 128) * k * 128 // 32}


def warp_tiles_arithmetic(size: Size, reads_before: int = 0) -> Totals:
    """The rungs with 64 x 64 elements a warp: 16 reads of A's tile and 8 of B's for every four steps of k.

    Each takes 2 wavefronts. `reads_before` are those of a warp before its loop. The counters show nothing of
    copies of 16 bytes.
    """
    m, n, k = size
    warps = (m // 64) * (n // 64)
    reads = warps * (k // 4 * 24 + reads_before)
    stores = m * n // 32 // 4
    return {
        "shared.load.requests": reads,
        "shared.load.wavefronts": 2 * reads,
        "global_.store.requests": stores,
        "global_.store.sectors": 16 * stores,
    }


def _case(label: str, kernel: Any, size: Size, tile: int, block: tuple[int, int], arithmetic: Totals) -> Case:
    m, n, k = size
    return Case(
        label,
        kernel,
        product_of(*size),
        (-(-n // tile), -(-m // tile)),
        block,
        useful_bytes=4 * (m * k + k * n + m * n),
        flops=2 * m * n * k,
        arithmetic=arithmetic,
    )


def mappings(size: Size) -> tuple[Case, ...]:
    """The naive kernel, by the shape of its block and by which index runs along x. m and n must be equal."""
    wide, square = sgemm.BLOCK_32, sgemm.BLOCK_16
    return (
        _case("16x16", sgemm.naive, size, 16, square, plain_arithmetic(size, 2, 2, 4)),
        _case("32x32", sgemm.naive, size, 32, wide, plain_arithmetic(size, 1, 4, 4)),
        _case("exchanged, 16x16", sgemm.exchanged, size, 16, square, plain_arithmetic(size, 16, 1, 16)),
        _case("exchanged, 32x32", sgemm.exchanged, size, 32, wide, plain_arithmetic(size, 32, 1, 32)),
    )


def tiled_rungs(size: Size) -> tuple[Case, ...]:
    """The rungs with one element a thread."""
    wide, square = sgemm.BLOCK_32, sgemm.BLOCK_16
    free = tiled_arithmetic(size, 16, (1, 1), (1, 1))
    return (
        _case("16x16 tiles", sgemm.tiled_16, size, 16, square, free),
        _case("pitch 17", sgemm.padded_16, size, 16, square, tiled_arithmetic(size, 16, (1, 1), (2, 2))),
        _case(
            "columns, pitch 16", sgemm.columns_16, size, 16, square,
            tiled_arithmetic(size, 16, (8, 1), (1, 1), of_c=16),
        ),
        _case(
            "columns, pitch 17", sgemm.columns_17, size, 16, square,
            tiled_arithmetic(size, 16, (1, 1), (2, 1), of_c=16),
        ),
        _case("32x32 tiles", sgemm.tiled_32, size, 32, wide, tiled_arithmetic(size, 32, (1, 1), (1, 1))),
        _case("16 bytes a load", sgemm.vectors_32, size, 32, wide, vectors_arithmetic(size)),
    )  # fmt: skip


def register_rungs(size: Size) -> tuple[Case, ...]:
    """The rungs with several elements a thread."""
    block, last = sgemm_registers.BLOCK, fragments_arithmetic(size, 1)
    adjacent = fragments_arithmetic(size, 2, load_of_b=8, of_c=32)
    whole = 128
    return (
        _case("4x4", sgemm_registers.registers_4x4, size, 64, block, registers_arithmetic(size, 64, 16)),
        _case("8x8", sgemm_registers.registers_8x8, size, whole, block, registers_arithmetic(size, 128, 8)),
        _case("fragments", sgemm_registers.fragments_adjacent, size, whole, block, adjacent),
        _case("split", sgemm_registers.fragments_split, size, whole, block, fragments_arithmetic(size, 2)),
        _case("pitch 132", sgemm_registers.fragments_132, size, whole, block, last),
        _case("double buffer", sgemm_pipelined.double_buffered, size, whole, block, last),
        _case("async copies", sgemm_pipelined.async_copies, size, whole, block, copies_arithmetic(size)),
    )


def fast_rungs(size: Size) -> tuple[Case, ...]:
    """The rungs with 64 x 64 elements a warp."""
    m, n, k = size
    arithmetic = {
        sgemm_fast.warp_tiles: warp_tiles_arithmetic(size),
        sgemm_fast.prefetched: warp_tiles_arithmetic(size, reads_before=10),
    }
    return tuple(
        Case(
            label,
            kernel,
            product_of(*size),
            (m // sgemm_fast.TILE) * (n // sgemm_fast.TILE),
            sgemm_fast.BLOCK,
            useful_bytes=4 * (m * k + k * n + m * n),
            flops=2 * m * n * k,
            arithmetic=totals,
        )
        for label, (kernel, totals) in zip(("warp tiles", "prefetched"), arithmetic.items(), strict=True)
    )


def pitches(size: Size) -> tuple[Case, ...]:
    """What a store to the transposed tile costs, by its depth and pitch."""
    wavefronts = {(8, 128): 2, (8, 130): 2, (8, 132): 1, (16, 128): 4, (16, 130): 1, (16, 132): 2}
    return tuple(
        _case(
            f"depth {depth}, pitch {pitch}",
            sgemm_registers.transposed_of(depth, pitch),
            size,
            128,
            sgemm_registers.BLOCK,
            fragments_arithmetic(size, of_store, reads_of_a=(4, 1)),
        )
        for (depth, pitch), of_store in wavefronts.items()
    )


def tile_sizes(size: Size) -> tuple[Case, ...]:
    """One kernel with every tile and depth."""
    return tuple(
        _case(
            f"tile {tile}, depth {depth}",
            sgemm_registers.tile_of(tile, depth),
            size,
            tile,
            sgemm_registers.BLOCK,
            registers_arithmetic(size, tile, depth, width=1),
        )
        for tile in sgemm_registers.TILES
        for depth in sgemm_registers.DEPTHS
    )


def _roof_inputs(rng: np.random.Generator) -> Mapping[str, Any]:
    return {"factor": np.float32(0.5)}


def _roof_outputs(n_threads: int, n_rounds: int, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": sgemm.reference_fma_roof(n_threads, float(values["factor"]), n_rounds)}


def roof(n_blocks: int, n_rounds: int) -> Case:
    """Multiply-adds in registers alone."""
    n_threads = n_blocks * ROOF_THREADS
    return Case(
        "float32 FMA",
        sgemm.fma_roof,
        Problem(
            f"fma {n_threads} threads, {n_rounds} rounds",
            _roof_inputs,
            partial(_roof_outputs, n_threads, n_rounds),
            relative_tolerance=1e-5,
        ),
        n_blocks,
        ROOF_THREADS,
        scalars={"n_rounds": n_rounds},
        flops=2 * n_threads * n_rounds * sgemm.N_STEPS * sgemm.N_CHAINS,
        arithmetic={
            "global_.load.requests": 0,
            "global_.store.requests": n_threads // 32,
            "global_.store.sectors": n_threads // 8,
        },
    )


def experiments() -> tuple[Experiment, ...]:
    """E-30: who reads what; E-31: the ladder; E-32: tiles; E-41: the roof above them."""
    full = (SIZE, SIZE, SIZE)
    profiled = tuple(replace(case, profiled=True) for case in mappings((2048,) * 3))
    return (
        Experiment(
            "E-30",
            "What limits the naive product, and what does it cost to exchange its indices?",
            timed=(*mappings((1024,) * 3), *profiled, *mappings(full)[:2]),
            counted=mappings((64, 64, 64)),
            ceiling=Ceiling("matmul"),
        ),
        Experiment(
            "E-31",
            "What does each rung of the ladder bring, up to a library's speed?",
            timed=(*mappings(full)[:2], *tiled_rungs(full), *register_rungs(full), *fast_rungs(full)),
            counted=(*tiled_rungs(SMALL), *register_rungs(LARGE), *fast_rungs(LARGE)),
            ceiling=Ceiling("matmul"),
            speed="speed:sgemm",
        ),
        Experiment(
            "E-31-pitch",
            "Does the pitch of the transposed tile matter?",
            timed=pitches(full),
            counted=pitches(LARGE),
            ceiling=Ceiling("matmul"),
        ),
        Experiment(
            "E-32",
            "Which tile is best, and what does it cost in occupancy?",
            timed=tile_sizes(full),
            counted=tile_sizes((128, 128, 64)),
            ceiling=Ceiling("matmul"),
        ),
        Experiment(
            "E-41-fma",
            "How many multiply-adds a second can the float32 units do?",
            timed=(roof(ROOF_BLOCKS, ROOF_ROUNDS),),
            counted=(roof(2, 3),),
        ),
    )
