"""Padding, one warp at a time: rows, columns and diagonals of a padded tile; and what a large tile costs.

Menu: `walk(pitch)` (32 lanes walk a tile in any direction), `double_columns(pitch)` (float64),
`pair_columns(pitch)` and `vector_columns(pitch)` (columns 8 and 16 bytes wide). Launch them with one block
of 32 threads; `src` is 32 x 32. References: `reference_walk`, and `src` itself for the columns.

`copy_persistent(pitch)` is a copy whose blocks stay and hold a tile of 224 rows in dynamic shared memory:
launch with `COPY_BLOCK` threads, any number of blocks and `copy_bytes(pitch)` bytes, more than 48 KB
(`ptx.allow_dynamic_shared`). It writes what it reads.
"""

import numpy as np
from numba import cuda, float32, float64

from lanewise import ptx

LANES = 32
COPY_BLOCK = 256
COPY_ROWS = 224
COPY_COLS = 128


def reference_walk(src: np.ndarray, row_step: int, col_step: int, first_col: int) -> np.ndarray:
    """What 32 lanes read: `src[row_step * lane, first_col + col_step * lane]`."""
    lane = np.arange(LANES)
    return src[row_step * lane, first_col + col_step * lane]


def copy_bytes(pitch: int) -> int:
    """The dynamic shared memory of `copy_persistent(pitch)`.

    >>> copy_bytes(128), copy_bytes(129), copy_bytes(132)
    (114688, 115584, 118272)
    """
    return 4 * COPY_ROWS * pitch


def walk(pitch):
    """The baseline: a tile of `pitch` floats a row, filled by rows, is read in steps of rows and columns.

    Steps (0, 1) are a row, (1, 0) a column, (1, 1) the diagonal, (1, -1) from column 31 the other one.
    """

    @cuda.jit
    def read(src, dst, row_step, col_step, first_col):
        tile = cuda.shared.array((LANES, pitch), float32)
        lane = cuda.threadIdx.x
        for row in range(LANES):
            tile[row, lane] = src[row, lane]
        cuda.syncthreads()  # the tile is full before anyone walks through it
        dst[lane] = tile[row_step * lane, first_col + col_step * lane]

    return read


def double_columns(pitch):
    """Changed: columns alone, and elements of 8 bytes."""

    @cuda.jit
    def read(src, dst):
        tile = cuda.shared.array((LANES, pitch), float64)
        lane = cuda.threadIdx.x
        for row in range(LANES):
            tile[row, lane] = src[row, lane]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        for col in range(LANES):
            dst[lane, col] = tile[lane, col]

    return read


def pair_columns(pitch):
    """Changed: floats again, two by one instruction; the pitch must be even, for 8-byte alignment."""

    @cuda.jit
    def read(src, dst):
        tile = cuda.shared.array((LANES, pitch), float32)
        lane = cuda.threadIdx.x
        for first in range(0, LANES, 2):  # half a warp fills a row
            row, col = first + lane // 16, 2 * (lane % 16)
            a, b = ptx.load2(src, (row, col))
            ptx.store2(tile, (row, col), a, b)
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        for col in range(0, LANES, 2):
            a, b = ptx.load2(tile, (lane, col))
            ptx.store2(dst, (lane, col), a, b)

    return read


def vector_columns(pitch):
    """Changed: four floats by one instruction; the pitch must be a multiple of four, or the GPU faults."""

    @cuda.jit
    def read(src, dst):
        tile = cuda.shared.array((LANES, pitch), float32)
        lane = cuda.threadIdx.x
        for first in range(0, LANES, 4):  # eight lanes fill a row
            row, col = first + lane // 8, 4 * (lane % 8)
            a, b, c, d = ptx.load4(src, (row, col))
            ptx.store4(tile, (row, col), a, b, c, d)
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        for col in range(0, LANES, 4):
            a, b, c, d = ptx.load4(tile, (lane, col))
            ptx.store4(dst, (lane, col), a, b, c, d)

    return read


def copy_persistent(pitch):
    """A copy through a tile as large as shared memory allows: a little padding may cost the second block.

    `src` and `dst` are float32, one-dimensional, of a multiple of 224 * 128 elements.
    """

    @cuda.jit
    def copy(src, dst):
        tile = cuda.shared.array(0, float32)
        thread = cuda.threadIdx.x
        first, step = cuda.blockIdx.x * COPY_ROWS * COPY_COLS, cuda.gridDim.x * COPY_ROWS * COPY_COLS
        for base in range(first, src.size, step):
            for i in range(thread, COPY_ROWS * COPY_COLS, COPY_BLOCK):
                tile[i // COPY_COLS * pitch + i % COPY_COLS] = src[base + i]
            cuda.syncthreads()  # the tile is full before anyone copies it out
            for i in range(thread, COPY_ROWS * COPY_COLS, COPY_BLOCK):
                dst[base + i] = tile[i // COPY_COLS * pitch + i % COPY_COLS]
            cuda.syncthreads()  # everyone has read the tile before it is filled again

    return copy
