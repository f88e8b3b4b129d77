"""Swizzle, guided: read `Swizzle<B,M,S>`, then write two functions that say where an element of a tile lies.

The learner writes the layout, the kernel around it is given. Variants change the swizzles to read, the width
of the tile of floats, and how many rows of the second tile share a line of 128 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import ptx, results
from lanewise.access import WarpAccess
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals_tiles import free_layout, own_places
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost
from lanewise.swizzles import Swizzle, xor_tile

LANES = 32
ROWS = 32  # of a tile
THREADS = 128
WARPS = THREADS // LANES
QUAD = 4  # floats of a 16-byte access


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    cols, narrow = variant.choice(64, 32, 128), variant.choice(8, 16)
    return Lab(
        name="swizzle_xor",
        title="Where each element lies",
        chapter="swizzle",
        level="guided",
        kinds=("predict", "layout", "write"),
        minutes=35,
        tasks=(_notation(variant, cols), _slot(cols), _quad(narrow)),
        given={"ROWS": ROWS, "COLS": cols, "NARROW": narrow},
        seed=variant.seed,
    )


# -- reading a swizzle ------------------------------------------------------------------------------


def _notation(variant: Variant, cols: int) -> Answers:
    swizzle = variant.choice(Swizzle(2, 3, 3), Swizzle(3, 2, 4), Swizzle(2, 2, 3))
    offset = variant.choice(0b1101_0101, 0b1010_1011, 0b1011_0110)
    halves = variant.choice(Swizzle(3, 3, 4), Swizzle(2, 3, 3), Swizzle(1, 3, 3))
    mask = variant.choice(7, 3, 15)
    column = WarpAccess.from_layout("ld.shared.b32", xor_tile(32, 32, mask), range(LANES), 0)
    return Answers(
        "notation",
        (
            Question(
                "run",
                f"How many neighbouring offsets stay together under {swizzle}?",
                1 << swizzle.base,
                "Which of the three numbers counts the low bits that stay as they are?",
                "The lowest M bits are left alone.",
            ),
            Question(
                "sent",
                f"Where does {swizzle} send offset {offset}, which is {offset:b} in binary?",
                swizzle(offset),
                "Cut out B bits, starting at bit M + S. Move them down by S places, and XOR them in there.",
                "The bits that were read have not changed, so the same swizzle leads back.",
            ),
            Question(
                "period",
                f"After how many offsets does the pattern of {swizzle} begin anew?",
                swizzle.period,
                "Which is the highest bit that it looks at?",
                "A tile that is a whole number of such blocks stays within its own memory.",
            ),
            Question(
                "bytes_base",
                f"{halves} works on offsets that count halves, of 2 bytes. What is M of the same swizzle on"
                " offsets in bytes?",
                halves.in_units_of(1, was=2).base,
                "The same bytes stay together. How many are they, as a power of two?",
                "Only M depends on the unit.",
            ),
            Question(
                "ways",
                f"A tile has rows of 32 floats, and (row, col) lies in column `col ^ (row & {mask})`. How"
                " many wavefronts does a column of floats take?",
                shared_cost(column).wavefronts,
                "How many different numbers does the mask leave? How many of the 32 rows share each?",
                "Rows with the same masked bits still meet.",
                access=column,
            ),
            Question(
                "shift",
                f"A tile has rows of {cols} floats, and (row, col) lies in column `col ^ (row & 31)`. Which S"
                " has that as a swizzle of offsets in floats?",
                xor_tile(ROWS, cols, 31).as_swizzle().shift,
                "At which bit of the offset does the row begin? How far is that from the lowest bit that is"
                " changed?",
                "S follows from the length of the row.",
            ),
        ),
    )


# -- floats, by rows and by columns -----------------------------------------------------------------


def turn(slot: Any, COLS: int) -> Callable[..., None]:
    """The kernel that asks `slot`: fill a tile by rows, read it by columns, store rows of the transpose."""
    ROOM = ROWS * COLS

    def kernel(src, dst):
        tile = cuda.shared.array(ROOM, float32)
        lane, warp = cuda.threadIdx.x % LANES, cuda.threadIdx.x // LANES
        first = cuda.blockIdx.x * ROWS
        for row in range(warp, ROWS, WARPS):
            for col in range(lane, COLS, LANES):
                tile[slot(row, col)] = src[first + row, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        for col in range(warp, COLS, WARPS):
            dst[col, first + lane] = tile[slot(lane, col)]

    return kernel


def _slot(cols: int) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        src = rng.random((ROWS * size, cols), dtype=np.float32)
        return Run(
            size=f"{size} tiles of {ROWS} x {cols} floats",
            grid=size,
            block=THREADS,
            arguments={"src": src, "dst": poisoned((cols, ROWS * size))},
            expected={"dst": np.ascontiguousarray(src.T)},
        )

    @cuda.jit(device=True)
    def dense(row, col):
        return row * cols + col

    return KernelTask(
        name="slot",
        parameters=("row", "col"),
        run=run,
        sizes=(2, 1),
        hidden=lambda rng: tuple(int(size) for size in rng.permutation([3, 4, 5, 6])[:2]),
        right=2,
        goals=(own_places(2), free_layout(4)),
        wrap=lambda slot: turn(slot, cols),
        timed=1 << 14,
        before=turn(dense, cols),
        worth=_worth,
    )


def _worth() -> str:
    measured = results.experiment("h200", "E-10")
    gain = measured.ratio("float, 0 bits, 8192", "float, 5 bits, 8192")
    return (
        f"In a transpose of 8192 x 8192 floats the dense tile takes {gain:.2f} times as long as the swizzled"
        f" one. {measured.caption}"
    )


# -- sixteen bytes a lane, in short rows ------------------------------------------------------------


def regroup(quad: Any, COLS: int) -> Callable[..., None]:
    """The kernel that asks `quad`: fill by rows, fetch a row a lane, 16 bytes each; group by columns."""
    ROOM, PER_ROW = ROWS * COLS, COLS // QUAD

    def kernel(src, dst):
        tile = cuda.shared.array(ROOM, float32)
        lane, warp = cuda.threadIdx.x % LANES, cuda.threadIdx.x // LANES
        first = cuda.blockIdx.x * ROWS
        for number in range(cuda.threadIdx.x, ROWS * PER_ROW, THREADS):
            row, col = number // PER_ROW, number % PER_ROW * QUAD
            a, b, c, d = ptx.load4(src, (first + row, col))
            ptx.store4(tile, quad(row, col), a, b, c, d)
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        for column in range(warp, PER_ROW, WARPS):
            a, b, c, d = ptx.load4(tile, quad(lane, column * QUAD))
            ptx.store4(dst, (column, first + lane, 0), a, b, c, d)

    return kernel


def _quad(cols: int) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        src = rng.random((ROWS * size, cols), dtype=np.float32)
        columns = src.reshape(ROWS * size, cols // QUAD, QUAD).swapaxes(0, 1)
        return Run(
            size=f"{size} tiles of {ROWS} x {cols} floats",
            grid=size,
            block=THREADS,
            arguments={"src": src, "dst": poisoned(columns.shape)},
            expected={"dst": np.ascontiguousarray(columns)},
        )

    @cuda.jit(device=True)
    def dense(row, col):
        return row * cols + col

    return KernelTask(
        name="quad",
        parameters=("row", "col"),
        run=run,
        sizes=(2, 1),
        hidden=lambda rng: tuple(int(size) for size in rng.permutation([3, 4, 5, 6])[:2]),
        right=2,
        goals=(own_places(2), free_layout(6)),
        wrap=lambda quad: regroup(quad, cols),
        timed=1 << 14,
        before=regroup(dense, cols),
    )
