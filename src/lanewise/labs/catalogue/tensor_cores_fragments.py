"""Fragments, guided: predict who holds, gives and gets what, then fetch both operands of a product.

Variants change the elements asked for, the pitches, and the shape of the tile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, float32
from numba.types import float16

from lanewise import ptx, results
from lanewise.access import WarpAccess
from lanewise.fragments import A_ROW_MAJOR, M16N8K8, M16N8K16, MATRIX, MatrixMove
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import by_matrices, free_matrices, no_hazards, shared_bytes
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost

LOAD = "ldmatrix.x4"
HALF_BYTES = 2
COLS = 16  # columns of C that a block makes
DENSE = 64  # pitch of the tile that `by_halves` fills


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    rows, depth = variant.choice((64, 32), (32, 64), (64, 64), (32, 32))
    return Lab(
        name="tensor_cores_fragments",
        title="Deal a tile out to the lanes",
        chapter="tensor_cores",
        level="guided",
        kinds=("predict", "write"),
        minutes=35,
        tasks=(_owners(variant), _pitches(variant), _multiply(rows, depth)),
        given={"ROWS": rows, "COLS": COLS, "DEPTH": depth},
        seed=variant.seed,
    )


# -- who holds what ---------------------------------------------------------------------------------


def _owners(variant: Variant) -> Answers:
    row, col = variant.choice((11, 12), (13, 10), (10, 13), (14, 9))
    depth, n = variant.choice((6, 5), (13, 2), (5, 6), (10, 3))
    matrix, r, c = variant.choice((1, 3, 5), (2, 6, 2), (3, 1, 4), (1, 5, 7))
    asked = (*_held(row, col), *_held_of_b(depth, n), *_moved(matrix, r, c), _shallow())
    return Answers("owners", asked)


def _held(row: int, col: int) -> tuple[Question, ...]:
    lane, register, _ = M16N8K16.a.owner(row, col)
    where = f"element ({row}, {col}) of operand A, 16 x 16, of m16n8k16"
    return (
        Question(
            "a_lane",
            f"Which lane holds {where}?",
            lane,
            "Take the place of the element within its block of 8 x 8. Four lanes share a row of a block.",
            "Row within the block times 4, plus the number of the pair.",
        ),
        Question(
            "a_register",
            f"And in which of its registers, 0 to 3, is {where}?",
            register,
            "The blocks of 8 x 8 are numbered down first: upper left, lower left, upper right, lower right.",
            "Down first, then to the right.",
        ),
    )


def _held_of_b(depth: int, n: int) -> tuple[Question, ...]:
    lane, _, half = M16N8K16.b.owner(depth, n)
    return (
        Question(
            "b_lane",
            f"Which lane holds element ({depth}, {n}) of operand B, 16 x 8: row {depth}, column {n}?",
            lane,
            "B lies on its side: four lanes share a column, and each has two neighbours of it.",
            "Column times 4, plus the number of the pair within its block of 8 rows.",
        ),
        Question(
            "b_half",
            "Is that the low half (0) or the high half (1) of its register?",
            half,
            "The pair runs down the column. Is this the first or the second of its pair?",
            "The row with the even number is in the low half.",
        ),
    )


def _moved(matrix: int, row: int, col: int) -> tuple[Question, ...]:
    move = MatrixMove.from_name(LOAD)
    points = int(np.flatnonzero((move.address_matrix == matrix) & (move.address_row == row))[0])
    return (
        Question(
            "gives",
            f"ldmatrix.x4: which lane gives the address of row {row} of matrix {matrix}?",
            points,
            "The lanes give addresses in order: eight rows of matrix 0, then eight of matrix 1, and so on.",
            "Lane 8 * m + r points at row r of matrix m.",
        ),
        Question(
            "gets",
            f"Which lane gets column {col} of that row?",
            _receiver(row, col),
            "Who receives has nothing to do with who pointed. Each matrix is dealt out to all the lanes.",
            "Row times 4, plus the number of the pair; the matrix chooses the register.",
        ),
    )


def _receiver(row: int, col: int) -> int:
    """The lane that an 8 x 8 matrix's element goes to: the upper left block of an operand A."""
    return int(M16N8K16.a.owner(row, col)[0])


def _shallow() -> Question:
    return Question(
        "registers",
        "The T4 has no m16n8k16, only m16n8k8. How many registers is a lane's part of its operand A?",
        M16N8K8.a.n_registers,
        "A is 16 x 8 now. How many halves are that for each lane, and how many fit in a register?",
        "Two blocks of 8 x 8, a register for each: half of the deeper instruction's A.",
    )


# -- what a fetch costs -----------------------------------------------------------------------------


def _pitches(variant: Variant) -> Answers:
    pitches = {
        "dense": variant.choice(64, 128, 192),
        "odd": variant.choice(72, 88, 104),
        "even": variant.choice(80, 112, 144),
        "wide": variant.choice(96, 160, 32),
    }
    return Answers("wavefronts", tuple(_pitch(name, pitch) for name, pitch in pitches.items()))


def _pitch(name: str, pitch: int) -> Question:
    access = WarpAccess.from_tile(LOAD, A_ROW_MAJOR.row, A_ROW_MAJOR.col, pitch, HALF_BYTES)
    return Question(
        name,
        f"Rows begin {pitch} halves apart. How many wavefronts does one ldmatrix.x4 of an operand A take?",
        shared_cost(access).wavefronts,
        "How many chunks of 16 bytes is the pitch? Of the eight rows of one matrix, how many start in the"
        " same eighth of the banks? And there are four matrices.",
        f"The pitch is {pitch // MATRIX} chunks; eight of them go once around the banks.",
        access=access,
    )


# -- the kernel -------------------------------------------------------------------------------------


def _multiply(rows: int, depth: int) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        m, n, k = size
        a, bt = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (n, k)))
        return Run(
            size=f"{m} x {n} results, {k} deep",
            grid=(n // COLS, m // rows),
            block=2 * rows,
            arguments={"a": a, "bt": bt, "c": poisoned((m, n))},
            expected={"c": a.astype(np.float32) @ bt.astype(np.float32).T},
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        blocks = rng.permutation([(2, 2, 1), (1, 3, 1), (1, 1, 3), (2, 1, 2), (1, 2, 2)])[:2]
        return tuple((rows * int(m), COLS * int(n), depth * int(k)) for m, n, k in blocks)

    return KernelTask(
        name="multiply",
        parameters=("a", "bt", "c"),
        run=run,
        sizes=((rows, COLS, depth), (rows, 2 * COLS, 2 * depth)),
        hidden=hidden,
        right=4,
        goals=(
            by_matrices(3, most=_fetches),
            free_matrices(3),
            shared_bytes(1, **_tile_bytes(rows, depth)),
            no_hazards(2),
        ),
        timed=(4096, 4096, 512),
        before=by_halves,
        worth=_worth,
    )


def _tile_bytes(rows: int, depth: int) -> dict[str, int]:
    """Both tiles at least, and a chunk more for each row at most."""
    n_rows = HALF_BYTES * (rows + COLS)
    return {"least": n_rows * depth, "most": n_rows * (depth + MATRIX)}


def _fetches(run: Run) -> int:
    """Per warp and 16 columns of k, one fetch of A and one of B, for 16 x 16 results."""
    (m, k), n = run.arguments["a"].shape, run.arguments["bt"].shape[0]
    return int(2 * (m // 16) * (n // 16) * (k // 16))


def _worth() -> str:
    measured = results.experiment("h200", "E-14")
    return (
        "Without conflicts on either side, the loop that collects its fragments word by word takes"
        f" {measured.ratio('words', 'matrices'):.2f} times as long as the one with ldmatrix."
        f" {measured.caption}"
    )


@cuda.jit
def by_halves(a, bt, c):
    """A product without fragments: each thread makes 8 results, half by half, from dense tiles."""
    tile_a = cuda.shared.array((64, DENSE), float16)
    tile_b = cuda.shared.array((16, DENSE), float16)
    thread = cuda.threadIdx.x
    n_rows = cuda.blockDim.x // 2
    row0, col0 = cuda.blockIdx.y * n_rows, cuda.blockIdx.x * 16
    row, col = thread // 2, thread % 2 * 8
    acc = cuda.local.array(8, float32)
    for i in range(8):
        acc[i] = 0
    for k0 in range(0, a.shape[1], 32):
        for at in range(thread, n_rows * 4, cuda.blockDim.x):
            h0, h1, h2, h3, h4, h5, h6, h7 = ptx.load8(a, (row0 + at // 4, k0 + at % 4 * 8))
            ptx.store8(tile_a, (at // 4, at % 4 * 8), h0, h1, h2, h3, h4, h5, h6, h7)
        for at in range(thread, 64, cuda.blockDim.x):
            h0, h1, h2, h3, h4, h5, h6, h7 = ptx.load8(bt, (col0 + at // 4, k0 + at % 4 * 8))
            ptx.store8(tile_b, (at // 4, at % 4 * 8), h0, h1, h2, h3, h4, h5, h6, h7)
        cuda.syncthreads()  # the tiles are full before a thread reads the rows of others
        for k in range(32):
            for i in range(8):
                acc[i] += float32(tile_a[row, k]) * float32(tile_b[col + i, k])
        cuda.syncthreads()  # every thread is done before the tiles are overwritten
    for i in range(8):
        c[row0 + row, col0 + col + i] = acc[i]
