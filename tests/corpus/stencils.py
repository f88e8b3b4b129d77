"""Stencils: each output needs its neighbours.

Menu: moving_average, heat_2d, heat_tiled, laplace_3d, life.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, poisoned

THREADS = 64
RADIUS = 3
WITH_HALO = THREADS + 2 * RADIUS
SIDE = 8
WITH_BORDER = SIDE + 2


@cuda.jit
def moving_average(src, dst):
    """A tile with its halo in shared memory; places outside the array count as zero."""
    tile = cuda.shared.array(WITH_HALO, np.float32)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[thread + RADIUS] = src[i] if i < src.size else np.float32(0)
    if thread < RADIUS:
        left = i - RADIUS
        right = i + THREADS
        tile[thread] = src[left] if left >= 0 else np.float32(0)
        tile[thread + RADIUS + THREADS] = src[right] if right < src.size else np.float32(0)
    # The halo must be in before a thread reads its neighbours' values.
    cuda.syncthreads()
    if i < dst.size:
        total = np.float32(0)
        for offset in range(-RADIUS, RADIUS + 1):
            total += tile[thread + RADIUS + offset]
        dst[i] = total


@cuda.jit
def heat_2d(src, dst):
    """Five points; the border keeps its values."""
    col, row = cuda.grid(2)
    n_rows, n_cols = src.shape
    if row >= n_rows or col >= n_cols:
        return
    if row == 0 or col == 0 or row == n_rows - 1 or col == n_cols - 1:
        dst[row, col] = src[row, col]
        return
    around = src[row - 1, col] + src[row + 1, col] + src[row, col - 1] + src[row, col + 1]
    dst[row, col] = src[row, col] + (around - 4 * src[row, col]) / 8


@cuda.jit
def heat_tiled(src, dst):
    """The sum of the four neighbours, through a tile with a border; the array wraps around at its edges."""
    tile = cuda.shared.array((WITH_BORDER, WITH_BORDER), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    n_rows, n_cols = src.shape
    first_row, first_col = cuda.blockIdx.y * SIDE - 1, cuda.blockIdx.x * SIDE - 1
    for row in range(y, WITH_BORDER, SIDE):
        for col in range(x, WITH_BORDER, SIDE):
            tile[row, col] = src[(first_row + row) % n_rows, (first_col + col) % n_cols]
    # The border must be in before a thread reads its neighbours' values.
    cuda.syncthreads()
    dst[first_row + 1 + y, first_col + 1 + x] = (
        tile[y, x + 1] + tile[y + 2, x + 1] + tile[y + 1, x] + tile[y + 1, x + 2]
    )


@cuda.jit
def laplace_3d(src, dst):
    """Seven points, marching along z with the last two planes in registers."""
    x, y = cuda.grid(2)
    n_z, n_y, n_x = src.shape
    if 0 < x < n_x - 1 and 0 < y < n_y - 1:
        below, here = src[0, y, x], src[1, y, x]
        for z in range(1, n_z - 1):
            above = src[z + 1, y, x]
            around = src[z, y, x - 1] + src[z, y, x + 1] + src[z, y - 1, x] + src[z, y + 1, x]
            dst[z, y, x] = above + below + around - np.float32(6) * here
            below, here = here, above


@cuda.jit
def life(board, after):
    """Conway's game on a board that wraps around."""
    col, row = cuda.grid(2)
    n_rows, n_cols = board.shape
    if row < n_rows and col < n_cols:
        alive = 0
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                if down == 0 and right == 0:
                    continue
                alive += board[(row + down) % n_rows, (col + right) % n_cols]
        after[row, col] = 1 if alive == 3 or (alive == 2 and board[row, col] == 1) else 0


def averaged(src, dst):
    padded = np.pad(src, RADIUS)
    return {1: sum(padded[k : k + src.size] for k in range(2 * RADIUS + 1))}


def heated(src, dst):
    dst[:] = src
    around = src[:-2, 1:-1] + src[2:, 1:-1] + src[1:-1, :-2] + src[1:-1, 2:]
    dst[1:-1, 1:-1] += (around - 4 * src[1:-1, 1:-1]) / 8
    return {1: dst}


def neighbours(src, dst):
    return {1: sum(np.roll(src, shift, axis) for shift in (1, -1) for axis in (0, 1))}


def laplaced(src, dst):
    core = (slice(1, -1),) * 3
    moved = sum(np.roll(src, shift, axis) for shift in (1, -1) for axis in (0, 1, 2))
    dst[core] = (moved - 6 * src)[core]
    return {1: dst}


def lived(board, after):
    alive = sum(
        np.roll(board, (down, right), (0, 1)) for down in (-1, 0, 1) for right in (-1, 0, 1) if down or right
    )
    return {1: (alive == 3) | ((alive == 2) & (board == 1))}


CASES = [
    Case(
        moving_average, 3, THREADS, lambda fill: (fill(150, np.float32), poisoned(150, np.float32)), averaged
    ),
    Case(
        heat_2d,
        (2, 3),
        (8, 4),
        lambda fill: (fill((11, 13), np.float64), poisoned((11, 13), np.float64)),
        heated,
    ),
    Case(
        heat_tiled,
        (3, 2),
        (SIDE, SIDE),
        lambda fill: (fill((16, 24), np.float32), poisoned((16, 24), np.float32)),
        neighbours,
    ),
    Case(
        laplace_3d,
        (2, 2),
        (8, 4),
        lambda fill: (fill((5, 7, 9), np.float32), poisoned((5, 7, 9), np.float32)),
        laplaced,
    ),
    Case(
        life,
        (2, 3),
        (8, 4),
        lambda fill: (np.abs(fill((9, 14), np.int8)) % 2, poisoned((9, 14), np.int8)),
        lived,
    ),
]
