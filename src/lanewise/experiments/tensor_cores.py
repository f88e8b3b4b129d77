"""Experiments with one tile: what the fragments of Tensor Cores cost to fetch from shared memory."""

from collections.abc import Callable, Mapping
from functools import partial
from math import gcd
from typing import Any

import numpy as np

from lanewise.experiments.h200 import SMS
from lanewise.experiments.plan import Case, Experiment, Problem
from lanewise.kernels import tensor_cores

CHUNK = 16  # bytes: a row of an 8x8 matrix of halves, and an access of the fill
GROUP = 8  # lanes that such accesses are served for together: 8 x 16 bytes fill the 32 banks once
REPEATS = 2048
BLOCKS = SMS * 8

# Label, arguments, wavefronts of a fetch, wavefronts of a store of the fill.
Row = tuple[str, Mapping[str, Any], int, int]


def _random(name: str, shape: tuple[int, int], rng: np.random.Generator) -> Mapping[str, Any]:
    halves = rng.standard_normal(shape, np.float32).astype(np.float16)
    return {name: halves.view(np.uint32) if name == "words" else halves}


def _fragments(
    name: str, reference: Callable[[np.ndarray], np.ndarray], values: Mapping[str, Any]
) -> Mapping[str, np.ndarray]:
    return {"dst": reference(values[name].view(np.float16))}


def fragments_of(
    what: str, shape: tuple[int, int], reference: Callable[[np.ndarray], np.ndarray], name: str = "src"
) -> Problem:
    """Fetch the fragments of a matrix of halves (called `"words"`: given as pairs of halves)."""
    return Problem(
        f"{what} {shape[0]}x{shape[1]} {name}",
        partial(_random, name, shape),
        partial(_fragments, name, reference),
    )


A_TILE, B_TILE = (64, 32), (32, 64)
WORDS = fragments_of("fragments of A", A_TILE, tensor_cores.a_fragments, "words")
A_OPERAND = fragments_of("fragments of A", A_TILE, tensor_cores.a_fragments)
B_OPERAND = fragments_of("fragments of B", B_TILE, tensor_cores.b_fragments)
ROWS = fragments_of("rows", (128, 8), tensor_cores.row_fragments)
ROWS_TRANSPOSED = fragments_of(
    "transposed rows", (128, 8), partial(tensor_cores.row_fragments, transposed=True)
)


def swizzle(bits: int, base: int, shift: int) -> Mapping[str, int]:
    """A swizzle as the kernels take it."""
    return {"bits": bits, "base": base, "shift": shift}


def pitch(halves: int) -> Mapping[str, int]:
    """A pitch as the kernels take it."""
    return {"pitch": halves}


def _case(kernel: Any, problem: Problem, shape: tuple[int, int], row: Row, fetches: int, fills: int) -> Case:
    label, scalars, per_fetch, per_fill = row
    return Case(
        label,
        kernel,
        problem,
        1,
        tensor_cores.BLOCK,
        dynamic_shared_bytes=tensor_cores.tile_bytes(shape[0], scalars.get("pitch", shape[1])),
        scalars=scalars,
        arithmetic={
            "shared.load.requests": fetches,
            "shared.load.wavefronts": fetches * per_fetch,
            "shared.store.requests": fills,
            "shared.store.wavefronts": fills * per_fill,
        },
    )


def _operand_case(kernel: Any, problem: Problem, shape: tuple[int, int], row: Row) -> Case:
    """An ldmatrix.x4 for every 16 x 16 block; the fill stores 16 bytes a lane."""
    n = shape[0] * shape[1]
    return _case(kernel, problem, shape, row, n // 256, n // (32 * 8))


def _sweep() -> tuple[Case, ...]:
    """Every pitch from 16 to 288 bytes, fetched by one, two and four matrices and transposed."""
    kernels = {
        "x1": (tensor_cores.rows_x1, ROWS, 1),
        "x2": (tensor_cores.rows_x2, ROWS, 2),
        "x4": (tensor_cores.rows_x4, ROWS, 4),
        "x4.trans": (tensor_cores.rows_x4_trans, ROWS_TRANSPOSED, 4),
    }
    cases = []
    for label, (kernel, problem, matrices) in kernels.items():
        for n_bytes in range(CHUNK, 288 + CHUNK, CHUNK):
            rows_per_bank = gcd(n_bytes // CHUNK, GROUP)
            row = (f"{label} {n_bytes} B", pitch(n_bytes // 2), matrices * rows_per_bank, 4 * rows_per_bank)
            # 128 rows are 16 matrices, stored by 4 warps.
            cases.append(_case(kernel, problem, (128, n_bytes // 2), row, 16 // matrices, 4))
    return tuple(cases)


def _operands() -> tuple[Case, ...]:
    """A's and B's tiles, and narrower and wider ones of A, by pitch and by swizzle."""
    narrow, wide = (64, 16), (64, 128)
    narrow_a = fragments_of("fragments of A", narrow, tensor_cores.a_fragments)
    wide_a = fragments_of("fragments of A", wide, tensor_cores.a_fragments)
    by_pitch: tuple[tuple[Any, Problem, tuple[int, int], Row], ...] = (
        (tensor_cores.a_matrices, A_OPERAND, A_TILE, ("A dense", pitch(32), 16, 4)),
        (tensor_cores.a_matrices, A_OPERAND, A_TILE, ("A pitch 40", pitch(40), 4, 8)),
        (tensor_cores.a_matrices, narrow_a, narrow, ("A 32-byte rows dense", pitch(16), 8, 4)),
        (tensor_cores.a_matrices, wide_a, wide, ("A 256-byte rows dense", pitch(128), 32, 4)),
        (tensor_cores.b_matrices, B_OPERAND, B_TILE, ("B dense", pitch(64), 32, 4)),
        (tensor_cores.b_matrices, B_OPERAND, B_TILE, ("B pitch 72", pitch(72), 4, 4)),
        (tensor_cores.b_matrices, B_OPERAND, B_TILE, ("B pitch 80", pitch(80), 8, 4)),
    )
    a, b = tensor_cores.a_matrices_swizzled, tensor_cores.b_matrices_swizzled
    by_swizzle: tuple[tuple[Any, Problem, tuple[int, int], Row], ...] = (
        (a, A_OPERAND, A_TILE, ("A Swizzle<2,3,2>", swizzle(2, 3, 2), 8, 4)),
        (a, A_OPERAND, A_TILE, ("A Swizzle<2,3,3>", swizzle(2, 3, 3), 4, 4)),
        (a, narrow_a, narrow, ("A 32-byte rows Swizzle<1,3,3>", swizzle(1, 3, 3), 4, 4)),
        (a, wide_a, wide, ("A 256-byte rows Swizzle<3,3,3>", swizzle(3, 3, 3), 8, 4)),
        (a, wide_a, wide, ("A 256-byte rows Swizzle<3,3,4>", swizzle(3, 3, 4), 4, 4)),
        (b, B_OPERAND, B_TILE, ("B Swizzle<2,3,3>", swizzle(2, 3, 3), 8, 4)),
        (b, B_OPERAND, B_TILE, ("B Swizzle<3,3,3>", swizzle(3, 3, 3), 4, 4)),
    )
    return tuple(_operand_case(*case) for case in by_pitch + by_swizzle)


def _words() -> tuple[Case, ...]:
    """A's fragments by 4-byte loads; a store of the fill covers two rows of 16 words."""
    by_pitch = (
        ("32 halves", pitch(16), 4, 1),
        ("34 halves", pitch(17), 2, 2),
        ("36 halves", pitch(18), 2, 2),
        ("40 halves", pitch(20), 1, 2),
    )
    # In words: a half's bit k is a word's bit k - 1.
    by_swizzle = (
        ("Swizzle<2,2,3> of halves", swizzle(2, 1, 3), 2, 1),
        ("Swizzle<2,3,2> of halves", swizzle(2, 2, 2), 2, 1),
        ("Swizzle<2,3,3> of halves", swizzle(2, 2, 3), 1, 1),
    )
    shape = (64, 32)  # of halves; 4 registers for each of 8 blocks, 1,024 words
    return tuple(
        Case(
            label,
            kernel,
            WORDS,
            1,
            tensor_cores.BLOCK,
            dynamic_shared_bytes=4 * shape[0] * int(scalars.get("pitch", 16)),
            scalars=scalars,
            arithmetic={
                "shared.load.requests": 32,
                "shared.load.wavefronts": 32 * per_fetch,
                "shared.store.wavefronts": 32 * per_fill,
            },
        )
        for kernel, rows in (
            (tensor_cores.a_words, by_pitch),
            (tensor_cores.a_words_swizzled, by_swizzle),
        )
        for label, scalars, per_fetch, per_fill in rows
    )


def _whole_numbers(rng: np.random.Generator) -> Mapping[str, Any]:
    side, depth = tensor_cores.SIDE, tensor_cores.DEPTH
    a, bt = (rng.integers(-4, 5, (side, depth)).astype(np.float16) for _ in range(2))
    return {"a": a, "bt": bt, "a_words": a.view(np.uint32), "bt_words": bt.view(np.uint32)}


def _products(blocks: int, repeats: int, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    one = tensor_cores.product(values["a"], values["bt"], repeats)
    return {"c": np.repeat(one[np.newaxis], blocks, axis=0)}


def product_of(blocks: int, repeats: int) -> Problem:
    """Multiply one tile by another `repeats` times in each block; whole numbers, so the sums are exact."""
    return Problem(
        f"tile product {blocks} blocks {repeats} times", _whole_numbers, partial(_products, blocks, repeats)
    )


def _product_cases(blocks: int, repeats: int) -> tuple[Case, ...]:
    problem = product_of(blocks, repeats)
    side, depth = tensor_cores.SIDE, tensor_cores.DEPTH
    # Per warp and step of 16: 4 + 16 loads of one wavefront, or 1 + 4 of four.
    steps = blocks * tensor_cores.WARPS * repeats * (depth // 16)
    kernels = {
        "words": (tensor_cores.product_by_words, steps * 20, steps * 20),
        "matrices": (tensor_cores.product_by_matrices, steps * 5, steps * 20),
        "matrices, m16n8k8": (tensor_cores.product_by_matrices_sm75, steps * 5, steps * 20),
        "registers": (tensor_cores.product_in_registers, steps // repeats * 5, steps // repeats * 20),
    }
    return tuple(
        Case(
            label,
            kernel,
            problem,
            blocks,
            tensor_cores.BLOCK,
            scalars={"repeats": repeats},
            flops=2 * side * side * depth * repeats * blocks,
            arithmetic={"shared.load.requests": requests, "shared.load.wavefronts": wavefronts},
        )
        for label, (kernel, requests, wavefronts) in kernels.items()
    )


def experiments() -> tuple[Experiment, ...]:
    """E-11 to E-14: pitches, one tile's layouts, fragments by words, words against matrices."""
    return (
        Experiment("E-11", "Which pitches let ldmatrix read eight rows at once?", counted=_sweep()),
        Experiment(
            "E-12", "Which layouts are free for the fetch, and which also for the fill?", counted=_operands()
        ),
        Experiment("E-13", "What do fragments cost that every lane collects itself?", counted=_words()),
        Experiment(
            "E-14",
            "With no conflict left, is ldmatrix still worth it, and how far is it from mma alone?",
            timed=_product_cases(BLOCKS, REPEATS),
            counted=_product_cases(2, 3),
        ),
    )
