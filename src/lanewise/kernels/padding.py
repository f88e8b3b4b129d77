"""Padding: a transpose through shared memory, and what the tile's layout costs.

Menu: `transpose_naive` (no tile), `transpose_tiled` (a dense 32 x 32 tile, read by columns),
`transpose_padded` (one unused element at the end of each row), `transpose_swizzled` (a dense tile whose
columns are permuted by XOR).

Launch with `BLOCK` = (32, 8) threads and `grid_of(src)` blocks. `src` is a float32 matrix of any size; `dst`
has its shape reversed and must not overlap it. Reference: `reference(src)`.
"""

import numpy as np
from numba import cuda, float32

TILE = 32
PADDED = TILE + 1
ROWS = 8  # of threads; each thread moves TILE / ROWS elements
BLOCK = (TILE, ROWS)


def reference(src: np.ndarray) -> np.ndarray:
    """What every rung writes to `dst`: the transpose, `(n_cols, n_rows)`."""
    return np.ascontiguousarray(src.T)


def grid_of(src: np.ndarray) -> tuple[int, int]:
    """The grid that covers `src` with tiles, x first.

    >>> grid_of(np.zeros((64, 33), np.float32))
    (2, 2)
    """
    n_rows, n_cols = src.shape
    return -(-n_cols // TILE), -(-n_rows // TILE)


@cuda.jit
def transpose_naive(src, dst):
    """The baseline: rows are read along, columns are written down."""
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < src.shape[0] and col < src.shape[1]:
            dst[col, row + step] = src[row + step, col]


@cuda.jit
def transpose_tiled(src, dst):
    """Changed: through a tile; global memory is read and written in rows."""
    tile = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < src.shape[0] and col < src.shape[1]:
            tile[y + step, x] = src[row + step, col]
    cuda.syncthreads()  # the tile is full before anyone reads a column of it
    col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < dst.shape[0] and col < dst.shape[1]:
            dst[row + step, col] = tile[x, y + step]


@cuda.jit
def transpose_padded(src, dst):
    """Changed: each row of the tile ends in one unused element."""
    tile = cuda.shared.array((TILE, PADDED), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < src.shape[0] and col < src.shape[1]:
            tile[y + step, x] = src[row + step, col]
    cuda.syncthreads()  # the tile is full before anyone reads a column of it
    col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < dst.shape[0] and col < dst.shape[1]:
            dst[row + step, col] = tile[x, y + step]


@cuda.jit
def transpose_swizzled(src, dst):
    """Changed: no unused element; a row's columns are permuted by XOR."""
    tile = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < src.shape[0] and col < src.shape[1]:
            tile[y + step, x ^ (y + step)] = src[row + step, col]
    cuda.syncthreads()  # the tile is full before anyone reads a column of it
    col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < dst.shape[0] and col < dst.shape[1]:
            dst[row + step, col] = tile[x, (y + step) ^ x]
