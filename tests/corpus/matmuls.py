"""Matrix products C = A B: naive, tiled, and what each tile layout costs.

Menu: matmul_naive, matmul_exchanged, matmul_tiled_of (tile side and pitch), matmul_column_of, matmul_ragged,
matmul_registers_of (4x4 per thread), split_columns_of.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction, poisoned

SIDE = 16


@cuda.jit
def matmul_naive(A, B, C):
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = np.float32(0)
        for k in range(A.shape[1]):
            acc += A[row, k] * B[k, col]
        C[row, col] = acc


@cuda.jit
def matmul_exchanged(A, B, C):
    """Neighbouring lanes take neighbouring rows."""
    row, col = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = np.float32(0)
        for k in range(A.shape[1]):
            left = A[row, k]
            right = B[k, col]
            acc += left * right
        C[row, col] = acc


def matmul_tiled_of(side, pitch):
    """Square tiles of A and B; rows of a tile are `pitch` words apart."""

    @cuda.jit
    def matmul_tiled(A, B, C):
        a_tile = cuda.shared.array((side, pitch), np.float32)
        b_tile = cuda.shared.array((side, pitch), np.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = np.float32(0)
        for first in range(0, A.shape[1], side):
            a_tile[y, x] = A[row, first + x]
            b_tile[y, x] = B[first + y, col]
            # Both tiles must be full before anyone multiplies.
            cuda.syncthreads()
            for k in range(side):
                left = a_tile[y, k]
                right = b_tile[k, x]
                acc += left * right
            # All must have multiplied before the tiles are overwritten.
            cuda.syncthreads()
        C[row, col] = acc

    return matmul_tiled


def matmul_column_of(pitch):
    """The roles of x and y exchanged inside the tile: lanes read a column of A's tile."""

    @cuda.jit
    def matmul_column(A, B, C):
        a_tile = cuda.shared.array((SIDE, pitch), np.float32)
        b_tile = cuda.shared.array((SIDE, pitch), np.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.grid(2)
        acc = np.float32(0)
        for first in range(0, A.shape[1], SIDE):
            a_tile[x, y] = A[row, first + y]
            b_tile[x, y] = B[first + x, col]
            # Both tiles must be full before anyone multiplies.
            cuda.syncthreads()
            for k in range(SIDE):
                left = a_tile[x, k]
                right = b_tile[k, y]
                acc += left * right
            # All must have multiplied before the tiles are overwritten.
            cuda.syncthreads()
        C[row, col] = acc

    return matmul_column


@cuda.jit
def matmul_ragged(A, B, C):
    """Any sizes: places outside the matrices count as zero, and nobody leaves before the barriers."""
    a_tile = cuda.shared.array((8, 8), np.float32)
    b_tile = cuda.shared.array((8, 8), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = np.float32(0)
    for first in range(0, A.shape[1], 8):
        a_tile[y, x] = A[row, first + x] if row < A.shape[0] and first + x < A.shape[1] else np.float32(0)
        b_tile[y, x] = B[first + y, col] if first + y < B.shape[0] and col < B.shape[1] else np.float32(0)
        # Both tiles must be full before anyone multiplies.
        cuda.syncthreads()
        for k in range(8):
            acc += a_tile[y, k] * b_tile[k, x]
        # All must have multiplied before the tiles are overwritten.
        cuda.syncthreads()
    if row < C.shape[0] and col < C.shape[1]:
        C[row, col] = acc


def matmul_registers_of(pitch):
    """Each thread computes 4x4 elements; A's tile is stored transposed, rows `pitch` words apart."""

    @cuda.jit
    def matmul_registers(A, B, C):
        a_tile = cuda.shared.array((8, pitch), np.float32)
        b_tile = cuda.shared.array((8, 32), np.float32)
        acc = cuda.local.array((4, 4), np.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        thread = y * 8 + x
        first_row, first_col = cuda.blockIdx.y * 32, cuda.blockIdx.x * 32
        for i in range(4):
            for j in range(4):
                acc[i, j] = 0
        for first in range(0, A.shape[1], 8):
            for row in range(thread // 8, 32, 8):
                a_tile[thread % 8, row] = A[first_row + row, first + thread % 8]
            for k in range(thread // 32, 8, 2):
                b_tile[k, thread % 32] = B[first + k, first_col + thread % 32]
            # Both tiles must be full before anyone multiplies.
            cuda.syncthreads()
            for k in range(8):
                for i in range(4):
                    left = a_tile[k, 4 * y + i]
                    for j in range(4):
                        acc[i, j] += left * b_tile[k, 4 * x + j]
            # All must have multiplied before the tiles are overwritten.
            cuda.syncthreads()
        for i in range(4):
            for j in range(4):
                C[first_row + 4 * y + i, first_col + 4 * x + j] = acc[i, j]

    return matmul_registers


def transposed_store_of(depth, pitch):
    """Rows of A, `depth` wide, become columns of a tile whose rows are `pitch` words apart; a lane moves four."""
    lanes_per_row = depth // 4

    @cuda.jit
    def transposed_store(A, dst):
        a_tile = cuda.shared.array((depth, pitch), np.float32)
        lane = cuda.threadIdx.x
        k, m = 4 * (lane % lanes_per_row), lane // lanes_per_row
        for i in range(4):
            a_tile[k + i, m] = A[m, k + i]
        for i in range(4):
            dst[m, k + i] = a_tile[k + i, m]

    return transposed_store


def product(A, B, C):
    return {2: A @ B}


def _product(kernel, grid, block, shapes, variant="", predictions=(), simulator=""):
    m, k, n = shapes
    return Case(
        kernel,
        grid,
        block,
        lambda fill: (fill((m, k), np.float32), fill((k, n), np.float32), poisoned((m, n), np.float32)),
        product,
        variant,
        predictions=predictions,
        simulator=simulator,
    )


def _tiles(side, pitch, store, left, right, id_):
    grid = (2, 1) if side == SIDE else (1, 1)
    return _product(
        matmul_tiled_of(side, pitch),
        grid,
        (side, side),
        (side * grid[1], side * 2 if side == SIDE else side, side * grid[0]),
        f"side {side}, pitch {pitch}",
        (
            Prediction("a_tile[y, x] =", "store", wavefronts=store, ideal=1, id=id_),
            Prediction("b_tile[y, x] =", "store", wavefronts=store, ideal=1, id=id_),
            Prediction("left = a_tile", "load", wavefronts=left, ideal=1, id=id_),
            Prediction("right = b_tile", "load", wavefronts=right, ideal=1, id=id_),
        ),
        "" if side == SIDE else "1,024 threads take the simulator too long; side 16 is the same kernel",
    )


def _naive(block, a, b, c):
    grid = (32 // block[0], 32 // block[1])
    return _product(
        matmul_naive,
        grid,
        block,
        (32, 24, 32),
        f"{block[0]} by {block[1]} threads",
        (
            Prediction("A[row, k] * B[k, col]", "load", sectors=(a + b) / 2, id="K-co-16"),
            Prediction("C[row, col] =", "store", sectors=c, id="K-co-16"),
        ),
        "" if block == (16, 16) else "1,024 threads take the simulator too long; 16 by 16 is the same kernel",
    )


CASES = [
    _naive((16, 16), 2, 2, 4),
    _naive((32, 32), 1, 4, 4),
    _product(matmul_naive, (2, 2), (8, 8), (13, 5, 11), "13 by 5 by 11"),
    _product(
        matmul_exchanged,
        (2, 2),
        (16, 16),
        (32, 16, 32),
        predictions=(
            Prediction("left = A[", "load", sectors=16, id="K-co-16"),
            Prediction("right = B[", "load", sectors=1, id="K-co-16"),
        ),
    ),
    _tiles(16, 16, 1, 1, 1, "K-cs-1"),
    _tiles(16, 17, 2, 1, 1, "K-cs-1"),
    _tiles(32, 32, 1, 1, 1, "K-cs-1"),
    *(
        _product(
            matmul_column_of(pitch),
            (1, 2),
            (SIDE, SIDE),
            (16, 32, 32),
            f"pitch {pitch}",
            (
                Prediction("left = a_tile[x, k]", "load", wavefronts=degree, ideal=1, id="K-cs-2"),
                Prediction("right = b_tile[k, y]", "load", wavefronts=1, ideal=1, id="K-cs-2"),
            ),
        )
        for pitch, degree in ((16, 8), (17, 1))
    ),
    _product(matmul_ragged, (3, 2), (8, 8), (13, 21, 18)),
    *(
        _product(matmul_registers_of(pitch), (1, 1), (8, 8), (32, 16, 32), f"pitch {pitch}")
        for pitch in (32, 33)
    ),
    *(
        Case(
            transposed_store_of(depth, pitch),
            1,
            32,
            lambda fill, depth=depth: (
                fill((128 // depth, depth), np.float32),
                poisoned((128 // depth, depth), np.float32),
            ),
            lambda A, dst: {1: A},
            f"depth {depth}, pitch {pitch}",
            predictions=(
                Prediction("a_tile[k + i, m] = A", "store", wavefronts=degree, ideal=1, id="K-cs-4"),
            ),
        )
        for depth, degrees in ((8, (2, 2, 1)), (16, (4, 1, 2)))
        for pitch, degree in zip((128, 130, 132), degrees, strict=True)
    ),
]
