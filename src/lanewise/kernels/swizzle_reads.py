"""Swizzles, one warp at a time: every direction through a tile, columns 8 and 16 bytes wide, and one mistake.

Menu: `walk_swizzled` and `walk_rotated` (32 lanes walk a 32 x 32 tile in any direction),
`double_columns(n_bits)` (32 x 16 float64) and `vector_columns(n_bits)` (32 x 32 float32, 16 bytes a lane):
the columns of a tile whose units are XORed with that many bits of the row. `scalar_column` reads one float
a lane of the latter; `read_unmapped` forgets the swizzle when it reads.

Launch every kernel with one block of 32 threads. References: `padding_reads.reference_walk`, `src` itself for
the columns, `reference_unmapped`.
"""

import numpy as np
from numba import cuda, float32, float64

from lanewise import ptx

LANES = 32
DOUBLES = 16  # in a row of 128 bytes
VECTOR_MASK = 7  # a row of 128 bytes has eight units of 16 bytes


def reference_unmapped(src: np.ndarray) -> np.ndarray:
    """What `read_unmapped` gives: the elements that the swizzle moved into column 0."""
    lane = np.arange(LANES)
    return src[lane, lane]


@cuda.jit
def walk_swizzled(src, dst, row_step, col_step, first_col):
    """Changed from `padding_reads.walk`: no padding; element (row, col) lies in column col ^ row."""
    tile = cuda.shared.array((LANES, LANES), float32)
    lane = cuda.threadIdx.x
    for row in range(LANES):
        tile[row, lane ^ row] = src[row, lane]
    cuda.syncthreads()  # the tile is full before anyone walks through it
    row, col = row_step * lane, first_col + col_step * lane
    dst[lane] = tile[row, col ^ row]


@cuda.jit
def walk_rotated(src, dst, row_step, col_step, first_col):
    """Changed: element (row, col) lies in column (col + row) % 32."""
    tile = cuda.shared.array((LANES, LANES), float32)
    lane = cuda.threadIdx.x
    for row in range(LANES):
        tile[row, (lane + row) % LANES] = src[row, lane]
    cuda.syncthreads()  # the tile is full before anyone walks through it
    row, col = row_step * lane, first_col + col_step * lane
    dst[lane] = tile[row, (col + row) % LANES]


@cuda.jit
def read_unmapped(src, dst):
    """Changed from `walk_swizzled`: a mistake, the reads do not follow the writes.

    Column 0 then holds the diagonal.
    """
    tile = cuda.shared.array((LANES, LANES), float32)
    lane = cuda.threadIdx.x
    for row in range(LANES):
        tile[row, lane ^ row] = src[row, lane]
    cuda.syncthreads()  # the tile is full before anyone reads a column of it
    dst[lane] = tile[lane, 0]


def double_columns(n_bits):
    """Changed from `walk_swizzled`: units of 8 bytes.

    A row of 128 bytes has 16 of them, so four bits are all there are to use.
    """
    mask = (1 << n_bits) - 1

    @cuda.jit
    def read(src, dst):
        tile = cuda.shared.array((LANES, DOUBLES), float64)
        lane = cuda.threadIdx.x
        for first in range(0, LANES, 2):  # half a warp fills a row
            row, col = first + lane // DOUBLES, lane % DOUBLES
            tile[row, col ^ (row & mask)] = src[row, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        for col in range(DOUBLES):
            dst[lane, col] = tile[lane, col ^ (lane & mask)]

    return read


def vector_columns(n_bits):
    """Changed: units of 16 bytes. A row of 128 bytes has eight, and three bits make every column free."""
    mask = (1 << n_bits) - 1

    @cuda.jit
    def read(src, dst):
        tile = cuda.shared.array((LANES, LANES), float32)
        lane = cuda.threadIdx.x
        for first in range(0, LANES, 4):  # eight lanes fill a row
            row, unit = first + lane // 8, lane % 8
            a, b, c, d = ptx.load4(src, (row, 4 * unit))
            ptx.store4(tile, (row, 4 * (unit ^ (row & mask))), a, b, c, d)
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        for unit in range(8):
            a, b, c, d = ptx.load4(tile, (lane, 4 * (unit ^ (lane & mask))))
            ptx.store4(dst, (lane, 4 * unit), a, b, c, d)

    return read


@cuda.jit
def scalar_column(src, dst):
    """Changed from `vector_columns(3)`: read by floats. Eight units for 32 rows, so four meet."""
    tile = cuda.shared.array((LANES, LANES), float32)
    lane = cuda.threadIdx.x
    for first in range(0, LANES, 4):  # eight lanes fill a row
        row, unit = first + lane // 8, lane % 8
        a, b, c, d = ptx.load4(src, (row, 4 * unit))
        ptx.store4(tile, (row, 4 * (unit ^ (row & VECTOR_MASK))), a, b, c, d)
    cuda.syncthreads()  # the tile is full before anyone reads a column of it
    for col in range(LANES):
        dst[lane, col] = tile[lane, 4 * (col // 4 ^ (lane & VECTOR_MASK)) + col % 4]
