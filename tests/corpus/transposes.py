"""Matrix transposes: naive, through a tile, and the ways to lay the tile out.

Menu: transpose_naive, transpose_tiled_of (any pitch, any element type), transpose_swizzled, transpose_rotated,
transpose_ragged (any size), transpose_square_of (16x16 threads), transpose_square_swizzled.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction, poisoned

TILE = 32
PADDED = TILE + 1
ROWS = 8
HALF = 16


def transposed(src, dst, *_):
    return {1: src.T}


@cuda.jit
def transpose_naive(src, dst):
    col, row = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        dst[col, row] = src[row, col]


def transpose_tiled_of(pitch, dtype):
    """Through a 32x32 tile whose rows are `pitch` elements apart."""

    @cuda.jit
    def transpose_tiled(src, dst):
        tile = cuda.shared.array((TILE, pitch), dtype)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        for step in range(0, TILE, ROWS):
            tile[y + step, x] = src[row + step, col]
        # The tile must be full before anyone reads a column of it.
        cuda.syncthreads()
        col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        for step in range(0, TILE, ROWS):
            dst[row + step, col] = tile[x, y + step]

    return transpose_tiled


@cuda.jit
def transpose_swizzled(src, dst):
    """A dense tile; column and row number are XORed, so that columns spread over the banks as rows do."""
    tile = cuda.shared.array((TILE, TILE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, ROWS):
        tile[y + step, x ^ (y + step)] = src[row + step, col]
    # The tile must be full before anyone reads a column of it.
    cuda.syncthreads()
    col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    for step in range(0, TILE, ROWS):
        dst[row + step, col] = tile[x, (y + step) ^ x]


@cuda.jit
def transpose_rotated(src, dst):
    """A dense tile; each row is rotated by its number."""
    tile = cuda.shared.array((TILE, TILE), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, ROWS):
        tile[y + step, (x + y + step) & 31] = src[row + step, col]
    # The tile must be full before anyone reads a column of it.
    cuda.syncthreads()
    col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    for step in range(0, TILE, ROWS):
        dst[row + step, col] = tile[x, (x + y + step) & 31]


@cuda.jit
def transpose_ragged(src, dst):
    """Any matrix size: threads outside the matrix neither load nor store, but all meet at the barrier."""
    tile = cuda.shared.array((TILE, PADDED), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < src.shape[0] and col < src.shape[1]:
            tile[y + step, x] = src[row + step, col]
    # The tile must be full before anyone reads a column of it.
    cuda.syncthreads()
    col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < dst.shape[0] and col < dst.shape[1]:
            dst[row + step, col] = tile[x, y + step]


def transpose_square_of(pitch):
    """16x16 threads: a warp holds two rows of the tile."""

    @cuda.jit
    def transpose_square(src, dst):
        tile = cuda.shared.array((HALF, pitch), np.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        tile[y, x] = src[cuda.blockIdx.y * HALF + y, cuda.blockIdx.x * HALF + x]
        # The tile must be full before anyone reads a column of it.
        cuda.syncthreads()
        dst[cuda.blockIdx.x * HALF + y, cuda.blockIdx.y * HALF + x] = tile[x, y]

    return transpose_square


@cuda.jit
def transpose_square_swizzled(src, dst):
    """16x16 threads, dense tile, column XOR row: free on both sides, which no padding reaches."""
    tile = cuda.shared.array((HALF, HALF), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x ^ y] = src[cuda.blockIdx.y * HALF + y, cuda.blockIdx.x * HALF + x]
    # The tile must be full before anyone reads a column of it.
    cuda.syncthreads()
    dst[cuda.blockIdx.x * HALF + y, cuda.blockIdx.y * HALF + x] = tile[x, y ^ x]


def _tiled(pitch, dtype, id_, store, load, ideal, sectors):
    return Case(
        transpose_tiled_of(pitch, dtype),
        grid=1,
        block=(TILE, ROWS),
        arguments=lambda fill: (fill((32, 32), dtype), poisoned((32, 32), dtype)),
        reference=transposed,
        variant=f"{np.dtype(dtype)}, pitch {pitch}",
        simulator="" if pitch <= TILE + 1 else "the same kernel as with a pitch of 32 and 33",
        predictions=(
            Prediction("tile[y + step, x] =", "store", wavefronts=store, ideal=ideal, id=id_),
            Prediction("= tile[x, y + step]", "load", wavefronts=load, ideal=ideal, id=id_),
            Prediction("src[row + step, col]", "load", sectors=sectors, id=id_),
            Prediction("dst[row + step, col]", "store", sectors=sectors, id=id_),
        ),
    )


def _dense_tile(kernel, id_):
    return Case(
        kernel,
        grid=(2, 1),
        block=(TILE, ROWS),
        arguments=lambda fill: (fill((32, 64), np.float32), poisoned((64, 32), np.float32)),
        reference=transposed,
        predictions=(
            Prediction("tile[y + step, ", "store", wavefronts=1, ideal=1, id=id_),
            Prediction("= tile[x, ", "load", wavefronts=1, ideal=1, id=id_),
        ),
    )


def _square(kernel, variant, id_, store, load):
    return Case(
        kernel,
        grid=(2, 1),
        block=(HALF, HALF),
        arguments=lambda fill: (fill((16, 32), np.float32), poisoned((32, 16), np.float32)),
        reference=transposed,
        variant=variant,
        predictions=(
            Prediction("tile[y, x", "store", wavefronts=store, ideal=1, id=id_),
            Prediction("= tile[x, y", "load", wavefronts=load, ideal=1, id=id_),
            Prediction("src[", "load", sectors=4, id=id_),
            Prediction("dst[", "store", sectors=4, id=id_),
        ),
    )


CASES = [
    Case(
        transpose_naive,
        grid=(2, 4),
        block=(TILE, ROWS),
        arguments=lambda fill: (fill((32, 64), np.float32), poisoned((64, 32), np.float32)),
        reference=transposed,
        predictions=(
            Prediction("src[row, col]", "load", sectors=4, id="K-pd-2"),
            Prediction("dst[col, row]", "store", sectors=32, id="K-pd-2"),
        ),
    ),
    Case(
        transpose_naive,
        grid=(2, 3),
        block=(TILE, ROWS),
        arguments=lambda fill: (fill((19, 45), np.float32), poisoned((45, 19), np.float32)),
        reference=transposed,
        variant="19 by 45",
    ),
    _tiled(32, np.float32, "K-pd-3", 1, 32, 1, 4),
    _tiled(33, np.float32, "K-pd-4", 1, 1, 1, 4),
    # gcd(32 + pad, 32) for the pads that the two rungs above leave out.
    *(
        _tiled(32 + pad, np.float32, "K-pd-5", 1, degree, 1, 4)
        for pad, degree in zip(range(2, 17), (2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1, 16), strict=True)
    ),
    _tiled(32, np.float64, "K-pd-8", 2, 32, 2, 8),
    _tiled(33, np.float64, "K-pd-8", 2, 2, 2, 8),
    _dense_tile(transpose_swizzled, "K-sw-1"),
    _dense_tile(transpose_rotated, "K-sw-2"),
    Case(
        transpose_ragged,
        grid=(2, 2),
        block=(TILE, ROWS),
        arguments=lambda fill: (fill((37, 50), np.float32), poisoned((50, 37), np.float32)),
        reference=transposed,
    ),
    *(
        _square(transpose_square_of(HALF + pad), f"pitch {HALF + pad}", "K-pd-7", store, load)
        for pad, store, load in ((0, 1, 8), (1, 2, 2), (2, 2, 1), (4, 2, 2), (8, 2, 4), (16, 2, 16))
    ),
    _square(transpose_square_swizzled, "", "K-sw-4", 1, 1),
]
