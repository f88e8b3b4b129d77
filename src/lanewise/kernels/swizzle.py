"""Swizzles: transposes through tiles that need no padding, because each row is permuted in its own way.

Menu: `transpose_rotated` (a row's columns move on by its number), `transpose_bits(n_bits)` (XOR with that many
bits of the row), `transpose_small_swizzled` (16 x 16 threads), `scale_swizzled` (the whole kernel of
`lanewise.kernels.banks`, 32 x 32 threads), `transpose_wide` (16 bytes a lane everywhere). The XOR of all five
bits is `transpose_swizzled` in `lanewise.kernels.padding`; single warps are in `swizzle_reads`, and what the
extra arithmetic costs is in `swizzle_costs`.

Launch as in `lanewise.kernels.padding`, `transpose_wide` with `WIDE_BLOCK` threads and `wide_grid_of(src)`
blocks. All take float32 matrices of any size; `dst` has the shape of `src` reversed. Reference: `reference`.
"""

import numpy as np
from numba import cuda, float32

from lanewise import ptx

TILE = 32
ROWS = 8  # of threads; each thread moves TILE / ROWS elements
SMALL = 16
WIDE = 64  # elements: a row of 256 bytes on either side
UNITS = 16  # of four elements in such a row
WIDE_BLOCK = 256
GROUP = 16  # tiles: blocks that run together lie in a strip this wide, so both sides fill whole DRAM pages


def reference(src: np.ndarray) -> np.ndarray:
    """What every rung writes to `dst`: the transpose, `(n_cols, n_rows)`."""
    return np.ascontiguousarray(src.T)


def wide_grid_of(src: np.ndarray) -> int:
    """The blocks of `transpose_wide`, one for each 64 x 64 tile.

    >>> wide_grid_of(np.zeros((64, 65), np.float32))
    2
    """
    n_rows, n_cols = src.shape
    return -(-n_cols // WIDE) * -(-n_rows // WIDE)


@cuda.jit
def transpose_rotated(src, dst):
    """Changed from `transpose_tiled`: a row is rotated by its number. Any width would do, not only powers of two."""
    tile = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < src.shape[0] and col < src.shape[1]:
            tile[y + step, (x + y + step) % TILE] = src[row + step, col]
    cuda.syncthreads()  # the tile is full before anyone reads a column of it
    col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    for step in range(0, TILE, ROWS):
        if row + step < dst.shape[0] and col < dst.shape[1]:
            dst[row + step, col] = tile[x, (y + step + x) % TILE]


def transpose_bits(n_bits):
    """Changed: XOR with the lowest `n_bits` bits of the row alone. Each bit halves the conflict of a column."""
    mask = (1 << n_bits) - 1

    @cuda.jit
    def transpose(src, dst):
        tile = cuda.shared.array((TILE, TILE), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        for step in range(0, TILE, ROWS):
            if row + step < src.shape[0] and col < src.shape[1]:
                tile[y + step, x ^ ((y + step) & mask)] = src[row + step, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        for step in range(0, TILE, ROWS):
            if row + step < dst.shape[0] and col < dst.shape[1]:
                dst[row + step, col] = tile[x, (y + step) ^ (x & mask)]

    return transpose


@cuda.jit
def transpose_small_swizzled(src, dst):
    """Changed: 16 x 16 threads. A warp is two rows of the block, and no padding serves both directions; XOR does."""
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
    """Changed from `banks.scale_by_columns`: a row's columns are permuted by XOR. `dst` is the doubled transpose."""
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
