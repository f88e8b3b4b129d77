"""Padding: a transpose through shared memory, and what the tile's layout costs.

Menu: `copy_rows` (what is reached without turning anything), `transpose_naive` (no tile), `transpose_tiled`
(a dense 32 x 32 tile, read by columns), `transpose_padded` (one unused element at the end of each row),
`transpose_swizzled` (a dense tile whose columns are permuted by XOR). Families: `transpose_pitched(pitch)`
(any padding), `transpose_small(pad)` (blocks of 16 x 16 threads), `transpose_doubles(pitch)` (float64).

Launch with `BLOCK` = (32, 8) threads and `grid_of(src)` blocks, the small ones with `SMALL_BLOCK` threads
and `grid_of(src, SMALL)` blocks. `src` is a float32 matrix of any size; `dst` has its shape reversed and
must not overlap it. Reference: `reference(src)`. Single warps that read a padded tile:
`lanewise.kernels.padding_reads`.
"""

import numpy as np
from numba import cuda, float32, float64, uint32

TILE = 32
PADDED = TILE + 1
ROWS = 8  # of threads; each thread moves TILE / ROWS elements
BLOCK = (TILE, ROWS)
SMALL = 16
SMALL_BLOCK = (SMALL, SMALL)


def reference(src: np.ndarray) -> np.ndarray:
    """What every rung writes to `dst`: the transpose, `(n_cols, n_rows)`."""
    return np.ascontiguousarray(src.T)


def grid_of(src: np.ndarray, tile: int = TILE) -> tuple[int, int]:
    """The grid that covers `src` with square tiles, x first.

    >>> grid_of(np.zeros((64, 33), np.float32))
    (2, 2)
    """
    n_rows, n_cols = src.shape
    return -(-n_cols // tile), -(-n_rows // tile)


@cuda.jit
def copy_rows(src, dst):
    """The baseline: nothing is transposed; rows are read and written along. `dst` has the shape of `src`."""
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < src.shape[0] and col < src.shape[1]:
            dst[row + step, col] = src[row + step, col]


@cuda.jit
def transpose_naive(src, dst):
    """Changed: rows are read along, columns are written down."""
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


# --- Families: one layout parameter, and less to do around it. An index past the edge is moved to the edge,
# --- where a guard would make a thread finish one load before it asks for the next; and indices are unsigned,
# --- so that no instruction asks whether they count from the end of the array.


def transpose_pitched(pitch):
    """Changed from `transpose_padded`: rows `pitch` floats apart; a column's conflict is gcd(pitch, 32)."""

    @cuda.jit
    def transpose(src, dst):
        tile = cuda.shared.array((TILE, pitch), float32)
        x, y = uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y)
        last_row, last_col = uint32(src.shape[0] - 1), uint32(src.shape[1] - 1)
        col, row = uint32(cuda.blockIdx.x * TILE + x), uint32(cuda.blockIdx.y * TILE + y)
        for step in range(0, TILE, ROWS):
            tile[y + step, x] = src[min(uint32(row + step), last_row), min(col, last_col)]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = uint32(cuda.blockIdx.y * TILE + x), uint32(cuda.blockIdx.x * TILE + y)
        for step in range(0, TILE, ROWS):
            if row + step <= last_col and col <= last_row:
                dst[row + step, col] = tile[x, y + step]

    return transpose


def transpose_small(pad):
    """Changed from `transpose_padded`: 16 x 16 threads: a warp is two rows, and reads two columns."""
    pitch = SMALL + pad

    @cuda.jit
    def transpose(src, dst):
        tile = cuda.shared.array((SMALL, pitch), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * SMALL + x, cuda.blockIdx.y * SMALL + y
        if row < src.shape[0] and col < src.shape[1]:
            tile[y, x] = src[row, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = cuda.blockIdx.y * SMALL + x, cuda.blockIdx.x * SMALL + y
        if row < dst.shape[0] and col < dst.shape[1]:
            dst[row, col] = tile[x, y]

    return transpose


def transpose_doubles(pitch):
    """Changed from `transpose_pitched`: elements of 8 bytes, so a warp is served in two halves."""

    @cuda.jit
    def transpose(src, dst):
        tile = cuda.shared.array((TILE, pitch), float64)
        x, y = uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y)
        last_row, last_col = uint32(src.shape[0] - 1), uint32(src.shape[1] - 1)
        col, row = uint32(cuda.blockIdx.x * TILE + x), uint32(cuda.blockIdx.y * TILE + y)
        for step in range(0, TILE, ROWS):
            tile[y + step, x] = src[min(uint32(row + step), last_row), min(col, last_col)]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = uint32(cuda.blockIdx.y * TILE + x), uint32(cuda.blockIdx.x * TILE + y)
        for step in range(0, TILE, ROWS):
            if row + step <= last_col and col <= last_row:
                dst[row + step, col] = tile[x, y + step]

    return transpose
