"""Swizzles: transposes through tiles that need no padding, because each row is permuted in its own way.

Menu: `transpose_rotated` (a row's columns move on by its number), `transpose_bits(n_bits)` (XOR with that
many bits of the row), `transpose_small_swizzled` (16 x 16 threads), `scale_swizzled` (the whole kernel of
`lanewise.kernels.banks`, 32 x 32 threads), `transpose_wide` (16 bytes a lane everywhere). The XOR of all
five bits is `transpose_swizzled` in `lanewise.kernels.padding`; single warps are in `swizzle_reads`, and
what the extra arithmetic costs is in `swizzle_costs`.

Launch as in `lanewise.kernels.padding`, `transpose_wide` with `WIDE_BLOCK` threads and `wide_grid_of(src)`
blocks. All take float32 matrices of any size; `dst` has the shape of `src` reversed. Reference:
`padding.reference`, doubled for `scale_swizzled`.
"""

import numpy as np
from numba import cuda, float32, uint32

from lanewise import ptx
from lanewise.kernels.padding import ROWS, SMALL, TILE

WIDE = 64  # elements: a row of 256 bytes on either side
UNITS = 16  # of four elements in such a row
WIDE_BLOCK = 256


def wide_grid_of(src: np.ndarray) -> tuple[int, int]:
    """The blocks of `transpose_wide`: x goes down the rows of tiles, y along them.

    >>> wide_grid_of(np.zeros((640, 65), np.float32))
    (10, 2)
    """
    n_rows, n_cols = src.shape
    return -(-n_rows // WIDE), -(-n_cols // WIDE)


@cuda.jit
def transpose_rotated(src, dst):
    """Changed from `padding.transpose_pitched(32)`: a row is rotated by its number. Any width would do."""
    tile = cuda.shared.array((TILE, TILE), float32)
    x, y = uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y)
    last_row, last_col = uint32(src.shape[0] - 1), uint32(src.shape[1] - 1)
    col, row = uint32(cuda.blockIdx.x * TILE + x), uint32(cuda.blockIdx.y * TILE + y)
    for step in range(0, TILE, ROWS):
        tile[y + step, (x + (y + step)) % TILE] = src[min(uint32(row + step), last_row), min(col, last_col)]
    cuda.syncthreads()  # the tile is full before anyone reads a column of it
    col, row = uint32(cuda.blockIdx.y * TILE + x), uint32(cuda.blockIdx.x * TILE + y)
    for step in range(0, TILE, ROWS):
        if row + step <= last_col and col <= last_row:
            dst[row + step, col] = tile[x, (y + step + x) % TILE]


def transpose_bits(n_bits):
    """Changed: XOR with `n_bits` bits of the row alone, in the form of `padding.transpose_pitched`.

    Each bit halves the conflict of a column.
    """
    mask = (1 << n_bits) - 1

    @cuda.jit
    def transpose(src, dst):
        tile = cuda.shared.array((TILE, TILE), float32)
        x, y = uint32(cuda.threadIdx.x), uint32(cuda.threadIdx.y)
        last_row, last_col = uint32(src.shape[0] - 1), uint32(src.shape[1] - 1)
        col, row = uint32(cuda.blockIdx.x * TILE + x), uint32(cuda.blockIdx.y * TILE + y)
        for step in range(0, TILE, ROWS):
            tile[y + step, x ^ ((y + step) & mask)] = src[
                min(uint32(row + step), last_row), min(col, last_col)
            ]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = uint32(cuda.blockIdx.y * TILE + x), uint32(cuda.blockIdx.x * TILE + y)
        for step in range(0, TILE, ROWS):
            if row + step <= last_col and col <= last_row:
                dst[row + step, col] = tile[x, (y + step) ^ (x & mask)]

    return transpose


@cuda.jit
def transpose_small_swizzled(src, dst):
    """Changed from `padding.transpose_small(0)`: XOR. A warp is two rows of the block.

    No padding serves both directions, and XOR does.
    """
    tile = cuda.shared.array((SMALL, SMALL), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * SMALL + x, cuda.blockIdx.y * SMALL + y
    if row < src.shape[0] and col < src.shape[1]:
        tile[y, x ^ y] = src[row, col]
    cuda.syncthreads()  # the tile is full before anyone reads a column of it
    col, row = cuda.blockIdx.y * SMALL + x, cuda.blockIdx.x * SMALL + y
    if row < dst.shape[0] and col < dst.shape[1]:
        dst[row, col] = tile[x, y ^ x]


@cuda.jit
def scale_swizzled(src, dst):
    """Changed from `banks.scale_by_columns`: XOR permutes a row's columns. `dst` is the doubled transpose."""
    tile = cuda.shared.array((TILE, TILE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        tile[ty, tx ^ ty] = src[row, col]
    cuda.syncthreads()  # the tile is full before any thread reads it
    row = TILE * cuda.blockIdx.x + ty
    col = TILE * cuda.blockIdx.y + tx
    if row < dst.shape[0] and col < dst.shape[1]:
        dst[row, col] = tile[tx, ty ^ tx] * float32(2)


@cuda.jit(device=True)
def transpose_by_floats(src, dst, tile, first_row, first_col):
    """A 64 x 64 tile by single floats, for rows that do not start on 16 bytes."""
    x, y = cuda.threadIdx.x % WIDE, cuda.threadIdx.x // WIDE
    for row in range(y, WIDE, WIDE_BLOCK // WIDE):
        if first_row + row < src.shape[0] and first_col + x < src.shape[1]:
            tile[row, x ^ row] = src[first_row + row, first_col + x]
    cuda.syncthreads()  # the tile is full before anyone reads a column of it
    for row in range(y, WIDE, WIDE_BLOCK // WIDE):
        if first_col + row < src.shape[1] and first_row + x < src.shape[0]:
            dst[first_col + row, first_row + x] = tile[x, row ^ x]


@cuda.jit
def transpose_wide(src, dst):
    """Changed: 16 bytes a lane everywhere, through 64 x 64 tiles; neighbouring blocks write side by side.

    A thread reads a piece of 4 x 4 elements, transposes it in its registers, which costs nothing, and stores
    its columns as rows of the transposed tile. A row's units of four elements are XORed with row // 4, which
    is `Swizzle<3,2,6>` on the offsets.
    """
    tile = cuda.shared.array((WIDE, WIDE), float32)
    n_rows, n_cols = src.shape
    first_row, first_col = cuda.blockIdx.x * WIDE, cuda.blockIdx.y * WIDE
    if n_rows % 4 != 0 or n_cols % 4 != 0:
        transpose_by_floats(src, dst, tile, first_row, first_col)
        return
    unit, piece = cuda.threadIdx.x % UNITS, cuda.threadIdx.x // UNITS
    row, col, at = first_row + 4 * piece, first_col + 4 * unit, 4 * (piece ^ (unit & 7))
    if row < n_rows and col < n_cols:
        a = ptx.load4(src, (row, col))
        b = ptx.load4(src, (row + 1, col))
        c = ptx.load4(src, (row + 2, col))
        d = ptx.load4(src, (row + 3, col))
        ptx.store4(tile, (4 * unit, at), a[0], b[0], c[0], d[0])
        ptx.store4(tile, (4 * unit + 1, at), a[1], b[1], c[1], d[1])
        ptx.store4(tile, (4 * unit + 2, at), a[2], b[2], c[2], d[2])
        ptx.store4(tile, (4 * unit + 3, at), a[3], b[3], c[3], d[3])
    cuda.syncthreads()  # the tile is full before anyone reads a row of the transpose
    for step in range(0, WIDE, UNITS):
        row, col = first_col + piece + step, first_row + 4 * unit
        if row < n_cols and col < n_rows:
            four = ptx.load4(tile, (piece + step, 4 * (unit ^ ((piece + step) // 4 & 7))))
            ptx.store4(dst, (row, col), four[0], four[1], four[2], four[3])
