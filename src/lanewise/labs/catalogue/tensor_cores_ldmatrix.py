"""Bug hunt: a product whose tiles lie wrongly for `ldmatrix`, and a layout for rows that no pad serves.

Challenge. Variants change the planted fault, the layouts to judge, and the length of the rows. Each fault was
published or reported: a pad of two halves against conflicts, an XOR of the wrong unit, an XOR with too few
bits (all three in an article on Tensor Core kernels), a forgotten `.trans` and a swizzle on one side only
(what beginners ask about).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda, float32
from numba.types import float16

from lanewise import ptx, results
from lanewise.access import WarpAccess
from lanewise.checks import Check
from lanewise.errors import Misaligned
from lanewise.fragments import A_ROW_MAJOR, MATRIX
from lanewise.kernels.tensor_cores import a_fragments
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import Goal, by_matrices, free_matrices, no_hazards, shared_bytes
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost

HALF_BYTES = 2
ROWS, COLS, DEPTH = 16, 64, 64  # the product's tiles: A is ROWS x DEPTH, B is DEPTH x COLS
ROOM_A, ROOM_B = ROWS * (DEPTH + MATRIX), DEPTH * (COLS + MATRIX)
HEIGHT = 32  # rows of the tile to lay out
SIZE = "hgemm 4096x4096x4096"


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    starter = variant.choice(padded_by_two, no_transpose, torn, one_sided, few_bits)
    width = variant.choice(96, 160, 224)
    given = {"ROWS": ROWS, "COLS": COLS, "DEPTH": DEPTH, "ROOM_A": ROOM_A, "ROOM_B": ROOM_B}
    return Lab(
        name="tensor_cores_ldmatrix",
        title="A tile that ldmatrix cannot read",
        chapter="tensor_cores",
        level="challenge",
        kinds=("hunt", "repair", "layout"),
        minutes=45,
        tasks=(_forecast(variant), _product(starter), _fragments(width)),
        given=given | {"HEIGHT": HEIGHT, "WIDTH": width},
        seed=variant.seed,
    )


# -- which layouts can be read ----------------------------------------------------------------------


def _forecast(variant: Variant) -> Answers:
    cols, small = variant.choice(64, 192), variant.choice(2, 4, 6)
    large = variant.choice(16, 32)
    few = variant.choice(3, 1)
    layouts: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
        "small_pad": (f"row * {cols + small} + col", lambda r, c: r * (cols + small) + c),
        "large_pad": (f"row * {cols + large} + col", lambda r, c: r * (cols + large) + c),
        "chunk_pad": (f"row * {cols + MATRIX} + col", lambda r, c: r * (cols + MATRIX) + c),
        "by_fours": (f"row * {cols} + (col ^ (row & 7) << 2)", lambda r, c: r * cols + (c ^ (r & 7) << 2)),
        "by_eights": (f"row * {cols} + (col ^ (row & 7) << 3)", lambda r, c: r * cols + (c ^ (r & 7) << 3)),
    }
    asked = (_fate(name, cols, *layout) for name, layout in layouts.items())
    short = _access(lambda r, c: r * cols + (c ^ (r & few) << 3))
    formula = f"row * {cols} + (col ^ (row & {few}) << 3)"
    return Answers("forecast", (*asked, _wavefronts(formula, short)))


def _access(place: Callable[[Any, Any], Any]) -> WarpAccess:
    return WarpAccess.from_layout("ldmatrix.x4", place, A_ROW_MAJOR.row, A_ROW_MAJOR.col, HALF_BYTES)


def _fate_of(place: Callable[[Any, Any], Any]) -> str:
    try:
        cost = shared_cost(_access(place))
    except Misaligned:
        return "fault"
    return "conflict" if cost.excess else "free"


def _fate(name: str, cols: int, formula: str, place: Callable[[Any, Any], Any]) -> Question:
    return Question(
        name,
        f"A tile has {cols} columns; (row, col) lies at `{formula}`. How does a fetch of an operand A end:"
        ' "fault", "conflict" or "free"?',
        _fate_of(place),
        "First, do all eight halves of a chunk stay together, at a multiple of 16 bytes? Only then: in which"
        " eighth of the banks does the chunk of each of rows 0 to 7 lie?",
        "Alignment comes first, the banks come second.",
    )


def _wavefronts(formula: str, access: WarpAccess) -> Question:
    return Question(
        "wavefronts",
        f"And with `{formula}`: how many wavefronts does the ldmatrix.x4 take?",
        shared_cost(access).wavefronts,
        "How many of rows 0 to 7 have the same number behind the XOR? They meet, in each matrix.",
        "Rows with the same bits meet, and each matrix pays for itself.",
        access=access,
    )


# -- the product to repair --------------------------------------------------------------------------


def _product(starter: Callable[..., None]) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        m, n, k = size
        a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
        return Run(
            size=f"{m} x {n} results, {k} deep",
            grid=(n // COLS, m // ROWS),
            block=128,
            arguments={"a": a, "b": b, "c": poisoned((m, n))},
            expected={"c": a.astype(np.float32) @ b.astype(np.float32)},
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        blocks = rng.permutation([(2, 2, 1), (1, 3, 1), (1, 1, 3), (3, 1, 2), (2, 1, 3)])[:2]
        return tuple((ROWS * int(m), COLS * int(n), DEPTH * int(k)) for m, n, k in blocks)

    return KernelTask(
        name="product",
        parameters=("a", "b", "c"),
        run=run,
        sizes=((ROWS, COLS, DEPTH), (2 * ROWS, COLS, 2 * DEPTH)),
        hidden=hidden,
        right=4,
        goals=(
            by_matrices(1, most=_fetches),
            _both_sides(4),
            shared_bytes(1, most=HALF_BYTES * (ROOM_A + ROOM_B), least=HALF_BYTES * (ROWS + COLS) * DEPTH),
            no_hazards(1),
        ),
        starter=starter,
        before=starter if starter is few_bits else None,
        worth=lambda: _gain("padded"),
        timed=(4096, 4096, 512),
    )


def _both_sides(points: int) -> Goal:
    """Fetch and fill are free: half of a cure moves the conflict to the other side."""

    def claim(check: Check, run: Run) -> Check:
        return free_matrices(points).claim(check, run).shared_excess(max=0)

    return Goal("both sides", points, claim)


def _fetches(run: Run) -> int:
    """Per warp and 16 columns of k, one fetch of A and one of B, for 16 x 16 results."""
    (m, k), n = run.arguments["a"].shape, run.arguments["b"].shape[1]
    return int(2 * (m // 16) * (n // 16) * (k // 16))


def _gain(label: str) -> str:
    measured = results.experiment("h200", "E-15")
    return (
        f"In a whole product of 4096 x 4096, dense tiles take {measured.ratio('row-major', label, SIZE):.1f}"
        f" times as long as {label} ones. {measured.caption}"
    )


# -- the layout to choose ---------------------------------------------------------------------------


def _fragments(width: int) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        src = rng.standard_normal((HEIGHT * size, width)).astype(np.float16)
        expected = a_fragments(src)
        return Run(
            size=f"a {src.shape[0]} x {width} matrix",
            grid=size,
            block=2 * HEIGHT,
            arguments={"src": src, "dst": poisoned(expected.shape, np.uint32)},
            expected={"dst": expected},
        )

    return KernelTask(
        name="fragments",
        parameters=("src", "dst"),
        run=run,
        sizes=(1, 2),
        hidden=lambda rng: tuple(int(size) for size in rng.permutation([3, 4, 5, 6])[:2]),
        right=3,
        goals=(
            by_matrices(1, most=lambda run: run.arguments["src"].size // 256),
            _both_sides(6),
            shared_bytes(1, most=HALF_BYTES * HEIGHT * width, least=HALF_BYTES * HEIGHT * width),
            no_hazards(1),
        ),
        timed=4096,
        worth=lambda: _gain("swizzled"),
    )


# -- the faults -------------------------------------------------------------------------------------


@cuda.jit
def padded_by_two(a, b, c):
    """Fault: rows padded by two halves do not start at multiples of 16 bytes."""
    tile_a = cuda.shared.array(ROOM_A, float16)
    tile_b = cuda.shared.array(ROOM_B, float16)
    thread = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * ROWS, cuda.blockIdx.x * COLS
    lane, warp = thread % 32, thread // 32
    zero = float32(0)
    left, right = (zero, zero, zero, zero), (zero, zero, zero, zero)
    for k0 in range(0, a.shape[1], DEPTH):
        row, col = thread // 8, thread % 8 * 8
        chunk = ptx.load8(a, (row0 + row, k0 + col))
        ptx.store8(tile_a, row * (DEPTH + 2) + col, chunk)
        for row in range(thread // 8, DEPTH, 16):
            chunk = ptx.load8(b, (k0 + row, col0 + col))
            ptx.store8(tile_b, row * (COLS + 2) + col, chunk)
        cuda.syncthreads()  # the tiles are full before a warp reads them
        for k in range(0, DEPTH, 16):
            row, col = lane % 16, k + lane // 16 * 8
            at = row * (DEPTH + 2) + col
            a0, a1, a2, a3 = ptx.ldmatrix_x4(tile_a, at)
            row, col = k + lane % 16, 16 * warp + lane // 16 * 8
            at = row * (COLS + 2) + col
            b0, b1, b2, b3 = ptx.ldmatrix_x4_trans(tile_b, at)
            left = ptx.mma_m16n8k8_f16((a0, a1), b0, left)
            left = ptx.mma_m16n8k8_f16((a2, a3), b1, left)
            right = ptx.mma_m16n8k8_f16((a0, a1), b2, right)
            right = ptx.mma_m16n8k8_f16((a2, a3), b3, right)
        cuda.syncthreads()  # all are done before the tiles are refilled
    row, col = row0 + lane // 4, col0 + 16 * warp + lane % 4 * 2
    for i in range(2):
        c[row, col + i], c[row + 8, col + i] = left[i], left[2 + i]
        c[row, col + 8 + i], c[row + 8, col + 8 + i] = right[i], right[2 + i]


@cuda.jit
def no_transpose(a, b, c):
    """Fault: B lies in its rows, and the fetch does not transpose it."""
    tile_a = cuda.shared.array(ROOM_A, float16)
    tile_b = cuda.shared.array(ROOM_B, float16)
    thread = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * ROWS, cuda.blockIdx.x * COLS
    lane, warp = thread % 32, thread // 32
    zero = float32(0)
    left, right = (zero, zero, zero, zero), (zero, zero, zero, zero)
    for k0 in range(0, a.shape[1], DEPTH):
        row, col = thread // 8, thread % 8 * 8
        chunk = ptx.load8(a, (row0 + row, k0 + col))
        ptx.store8(tile_a, row * (DEPTH + 8) + col, chunk)
        for row in range(thread // 8, DEPTH, 16):
            chunk = ptx.load8(b, (k0 + row, col0 + col))
            ptx.store8(tile_b, row * (COLS + 8) + col, chunk)
        cuda.syncthreads()  # the tiles are full before a warp reads them
        for k in range(0, DEPTH, 16):
            row, col = lane % 16, k + lane // 16 * 8
            at = row * (DEPTH + 8) + col
            a0, a1, a2, a3 = ptx.ldmatrix_x4(tile_a, at)
            row, col = k + lane % 16, 16 * warp + lane // 16 * 8
            at = row * (COLS + 8) + col
            b0, b1, b2, b3 = ptx.ldmatrix_x4(tile_b, at)
            left = ptx.mma_m16n8k8_f16((a0, a1), b0, left)
            left = ptx.mma_m16n8k8_f16((a2, a3), b1, left)
            right = ptx.mma_m16n8k8_f16((a0, a1), b2, right)
            right = ptx.mma_m16n8k8_f16((a2, a3), b3, right)
        cuda.syncthreads()  # all are done before the tiles are refilled
    row, col = row0 + lane // 4, col0 + 16 * warp + lane % 4 * 2
    for i in range(2):
        c[row, col + i], c[row + 8, col + i] = left[i], left[2 + i]
        c[row, col + 8 + i], c[row + 8, col + 8 + i] = right[i], right[2 + i]


@cuda.jit
def torn(a, b, c):
    """Fault: the XOR moves groups of four halves, so it tears the chunks of eight apart."""
    tile_a = cuda.shared.array(ROOM_A, float16)
    tile_b = cuda.shared.array(ROOM_B, float16)
    thread = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * ROWS, cuda.blockIdx.x * COLS
    lane, warp = thread % 32, thread // 32
    zero = float32(0)
    left, right = (zero, zero, zero, zero), (zero, zero, zero, zero)
    for k0 in range(0, a.shape[1], DEPTH):
        row, col = thread // 8, thread % 8 * 8
        chunk = ptx.load8(a, (row0 + row, k0 + col))
        ptx.store8(tile_a, row * DEPTH + (col ^ (row & 7) << 2), chunk)
        for row in range(thread // 8, DEPTH, 16):
            chunk = ptx.load8(b, (k0 + row, col0 + col))
            ptx.store8(tile_b, row * COLS + (col ^ (row & 7) << 2), chunk)
        cuda.syncthreads()  # the tiles are full before a warp reads them
        for k in range(0, DEPTH, 16):
            row, col = lane % 16, k + lane // 16 * 8
            at = row * DEPTH + (col ^ (row & 7) << 2)
            a0, a1, a2, a3 = ptx.ldmatrix_x4(tile_a, at)
            row, col = k + lane % 16, 16 * warp + lane // 16 * 8
            at = row * COLS + (col ^ (row & 7) << 2)
            b0, b1, b2, b3 = ptx.ldmatrix_x4_trans(tile_b, at)
            left = ptx.mma_m16n8k8_f16((a0, a1), b0, left)
            left = ptx.mma_m16n8k8_f16((a2, a3), b1, left)
            right = ptx.mma_m16n8k8_f16((a0, a1), b2, right)
            right = ptx.mma_m16n8k8_f16((a2, a3), b3, right)
        cuda.syncthreads()  # all are done before the tiles are refilled
    row, col = row0 + lane // 4, col0 + 16 * warp + lane % 4 * 2
    for i in range(2):
        c[row, col + i], c[row + 8, col + i] = left[i], left[2 + i]
        c[row, col + 8 + i], c[row + 8, col + 8 + i] = right[i], right[2 + i]


@cuda.jit
def one_sided(a, b, c):
    """Fault: the fetch of B forgets the swizzle that the fill has."""
    tile_a = cuda.shared.array(ROOM_A, float16)
    tile_b = cuda.shared.array(ROOM_B, float16)
    thread = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * ROWS, cuda.blockIdx.x * COLS
    lane, warp = thread % 32, thread // 32
    zero = float32(0)
    left, right = (zero, zero, zero, zero), (zero, zero, zero, zero)
    for k0 in range(0, a.shape[1], DEPTH):
        row, col = thread // 8, thread % 8 * 8
        chunk = ptx.load8(a, (row0 + row, k0 + col))
        ptx.store8(tile_a, row * DEPTH + (col ^ (row & 7) << 3), chunk)
        for row in range(thread // 8, DEPTH, 16):
            chunk = ptx.load8(b, (k0 + row, col0 + col))
            ptx.store8(tile_b, row * COLS + (col ^ (row & 7) << 3), chunk)
        cuda.syncthreads()  # the tiles are full before a warp reads them
        for k in range(0, DEPTH, 16):
            row, col = lane % 16, k + lane // 16 * 8
            at = row * DEPTH + (col ^ (row & 7) << 3)
            a0, a1, a2, a3 = ptx.ldmatrix_x4(tile_a, at)
            row, col = k + lane % 16, 16 * warp + lane // 16 * 8
            at = row * COLS + col
            b0, b1, b2, b3 = ptx.ldmatrix_x4_trans(tile_b, at)
            left = ptx.mma_m16n8k8_f16((a0, a1), b0, left)
            left = ptx.mma_m16n8k8_f16((a2, a3), b1, left)
            right = ptx.mma_m16n8k8_f16((a0, a1), b2, right)
            right = ptx.mma_m16n8k8_f16((a2, a3), b3, right)
        cuda.syncthreads()  # all are done before the tiles are refilled
    row, col = row0 + lane // 4, col0 + 16 * warp + lane % 4 * 2
    for i in range(2):
        c[row, col + i], c[row + 8, col + i] = left[i], left[2 + i]
        c[row, col + 8 + i], c[row + 8, col + 8 + i] = right[i], right[2 + i]


@cuda.jit
def few_bits(a, b, c):
    """Fault: two bits of the row are too few for B's rows of 128 bytes: rows 4 apart still meet."""
    tile_a = cuda.shared.array(ROOM_A, float16)
    tile_b = cuda.shared.array(ROOM_B, float16)
    thread = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * ROWS, cuda.blockIdx.x * COLS
    lane, warp = thread % 32, thread // 32
    zero = float32(0)
    left, right = (zero, zero, zero, zero), (zero, zero, zero, zero)
    for k0 in range(0, a.shape[1], DEPTH):
        row, col = thread // 8, thread % 8 * 8
        chunk = ptx.load8(a, (row0 + row, k0 + col))
        ptx.store8(tile_a, row * DEPTH + (col ^ (row & 7) << 3), chunk)
        for row in range(thread // 8, DEPTH, 16):
            chunk = ptx.load8(b, (k0 + row, col0 + col))
            ptx.store8(tile_b, row * COLS + (col ^ (row & 3) << 3), chunk)
        cuda.syncthreads()  # the tiles are full before a warp reads them
        for k in range(0, DEPTH, 16):
            row, col = lane % 16, k + lane // 16 * 8
            at = row * DEPTH + (col ^ (row & 7) << 3)
            a0, a1, a2, a3 = ptx.ldmatrix_x4(tile_a, at)
            row, col = k + lane % 16, 16 * warp + lane // 16 * 8
            at = row * COLS + (col ^ (row & 3) << 3)
            b0, b1, b2, b3 = ptx.ldmatrix_x4_trans(tile_b, at)
            left = ptx.mma_m16n8k8_f16((a0, a1), b0, left)
            left = ptx.mma_m16n8k8_f16((a2, a3), b1, left)
            right = ptx.mma_m16n8k8_f16((a0, a1), b2, right)
            right = ptx.mma_m16n8k8_f16((a2, a3), b3, right)
        cuda.syncthreads()  # all are done before the tiles are refilled
    row, col = row0 + lane // 4, col0 + 16 * warp + lane % 4 * 2
    for i in range(2):
        c[row, col + i], c[row + 8, col + i] = left[i], left[2 + i]
        c[row, col + 8 + i], c[row + 8, col + 8 + i] = right[i], right[2 + i]
