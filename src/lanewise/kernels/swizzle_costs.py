"""What a swizzle costs where it gains nothing: a 3 x 3 filter whose warps read rows alone.

Menu: `filter_plain` and `filter_swizzled`, the mean of each pixel and its eight neighbours; past the edge,
the nearest pixel counts. They differ in the XOR alone.

Launch with `BLOCK` = (32, 8) threads and `grid_of(src)` blocks; float32 images of any size. Reference:
`reference(src)`.
"""

import numpy as np
from numba import cuda, float32

COLS = 32
ROWS = 8
BLOCK = (COLS, ROWS)
HALO_ROWS = ROWS + 2
HALO_COLS = COLS + 2
PITCH = 64  # a swizzle needs a power of two that holds 34 columns


def reference(src: np.ndarray) -> np.ndarray:
    """The mean of each pixel's 3 x 3 neighbourhood, added in the kernels' order."""
    n_rows, n_cols = src.shape
    edged = np.pad(src, 1, mode="edge")
    total = np.zeros_like(src)
    for row_step in range(3):
        for col_step in range(3):
            total += edged[row_step : row_step + n_rows, col_step : col_step + n_cols]
    return total * np.float32(1 / 9)


def grid_of(src: np.ndarray) -> tuple[int, int]:
    """The grid that covers `src` with a thread for each pixel, x first.

    >>> grid_of(np.zeros((64, 33), np.float32))
    (2, 8)
    """
    n_rows, n_cols = src.shape
    return -(-n_cols // COLS), -(-n_rows // ROWS)


@cuda.jit
def filter_plain(src, dst):
    """The baseline: a block's pixels and the ring around them go through a tile, and every read is a row."""
    tile = cuda.shared.array((HALO_ROWS, PITCH), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    n_rows, n_cols = src.shape
    for row_step in range(0, HALO_ROWS - y, ROWS):
        for col_step in range(0, HALO_COLS - x, COLS):
            from_row = min(max(row + row_step - 1, 0), n_rows - 1)
            from_col = min(max(col + col_step - 1, 0), n_cols - 1)
            tile[y + row_step, x + col_step] = src[from_row, from_col]
    cuda.syncthreads()  # the tile is full before anyone reads a neighbour
    if row < n_rows and col < n_cols:
        acc = float32(0)
        for row_step in range(3):
            for col_step in range(3):
                acc += tile[y + row_step, x + col_step]
        dst[row, col] = acc * float32(1 / 9)


@cuda.jit
def filter_swizzled(src, dst):
    """Changed: a row's columns are permuted by XOR, which no read of a row needs."""
    tile = cuda.shared.array((HALO_ROWS, PITCH), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    n_rows, n_cols = src.shape
    for row_step in range(0, HALO_ROWS - y, ROWS):
        for col_step in range(0, HALO_COLS - x, COLS):
            from_row = min(max(row + row_step - 1, 0), n_rows - 1)
            from_col = min(max(col + col_step - 1, 0), n_cols - 1)
            tile[y + row_step, (x + col_step) ^ (y + row_step)] = src[from_row, from_col]
    cuda.syncthreads()  # the tile is full before anyone reads a neighbour
    if row < n_rows and col < n_cols:
        acc = float32(0)
        for row_step in range(3):
            for col_step in range(3):
                acc += tile[y + row_step, (x + col_step) ^ (y + row_step)]
        dst[row, col] = acc * float32(1 / 9)
