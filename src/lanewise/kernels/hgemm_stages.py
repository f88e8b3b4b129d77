"""HGEMM, continued: tiles that arrive while others are multiplied, and a kernel for speed.

Menu: `hgemm_async_2`, `hgemm_async_3`, `hgemm_async_4`, the swizzled rung of `hgemm` with 2, 3 or 4 tiles in
flight or in use.

Launch as `launch_of(kernel, c)` says: grid, threads of a block and bytes of dynamic shared memory, which must
be allowed first where they exceed 48 KB. Matrices as in `hgemm`. Reference: `hgemm.reference(a, b)`.
"""

from typing import Any

import numpy as np
from numba import cuda, float32
from numba.types import float16, uint32

from lanewise import ptx
from lanewise.kernels import hgemm
from lanewise.kernels.hgemm import (
    BK,
    BLOCK,
    BM,
    BN,
    N_ACC,
    N_FRAG_A,
    N_FRAG_B,
    TILE_A,
    TILE_B,
    WARPS_N,
    WM,
    WN,
    clear,
    keep,
    multiply,
    put_tile,
)

STAGE = TILE_A + TILE_B  # halves of one stage: a tile of A, then one of B


@cuda.jit(device=True, inline="always")
def start_tiles(tile, at, a, b, row0, col0, k0, thread):
    """Start to copy both tiles of step k0 to the stage at `at`, and close the group; nothing past the end."""
    if k0 < a.shape[1]:
        for chunk in range(thread, TILE_A // 8, BLOCK):
            row, col = chunk // (BK // 8), chunk % (BK // 8) * 8
            index = at + row * BK + (col ^ (row >> 1 & 3) << 3)
            ptx.cp_async_cg_16(tile, index, a, (row0 + row, k0 + col))
        for chunk in range(thread, TILE_B // 8, BLOCK):
            row, col = chunk // (BN // 8), chunk % (BN // 8) * 8
            index = at + TILE_A + row * BN + (col ^ (row & 7) << 3)
            ptx.cp_async_cg_16(tile, index, b, (k0 + row, col0 + col))
    ptx.cp_async_commit()


@cuda.jit(device=True, inline="always")
def use_tiles(tile, at, acc, fa, fb, warp_row, warp_col, lane):
    """Multiply the tiles of the stage at `at`."""
    for k in range(0, BK, 16):
        for i in range(WM // 16):
            row, col = warp_row + 16 * i + lane % 16, k + lane // 16 * 8
            keep(fa, 4 * i, ptx.ldmatrix_x4(tile, at + row * BK + (col ^ (row >> 1 & 3) << 3)))
        for j in range(WN // 16):
            row, col = k + lane % 16, warp_col + 16 * j + lane // 16 * 8
            keep(fb, 4 * j, ptx.ldmatrix_x4_trans(tile, at + TILE_A + row * BN + (col ^ (row & 7) << 3)))
        multiply(acc, fa, fb)


@cuda.jit
def hgemm_async_2(a, b, c):
    """Changed: the next tiles are on their way, past the registers, while these are multiplied."""
    tile = cuda.shared.array(0, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    start_tiles(tile, 0, a, b, row0, col0, 0, thread)
    for step in range(a.shape[1] // BK):
        ptx.cp_async_wait(0)  # this thread's copies of this step have arrived
        cuda.syncthreads()  # and those of the others; and nobody reads the stage that is filled next
        start_tiles(tile, (step + 1) % 2 * STAGE, a, b, row0, col0, (step + 1) * BK, thread)
        use_tiles(tile, step % 2 * STAGE, acc, fa, fb, warp_row, warp_col, lane)
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


@cuda.jit
def hgemm_async_3(a, b, c):
    """Changed: a third stage; a copy has the time of two steps to arrive."""
    tile = cuda.shared.array(0, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    for step in range(2):
        start_tiles(tile, step * STAGE, a, b, row0, col0, step * BK, thread)
    for step in range(a.shape[1] // BK):
        ptx.cp_async_wait(1)  # all but the latest group: this thread's copies of this step have arrived
        cuda.syncthreads()  # and those of the others; and nobody reads the stage that is filled next
        start_tiles(tile, (step + 2) % 3 * STAGE, a, b, row0, col0, (step + 2) * BK, thread)
        use_tiles(tile, step % 3 * STAGE, acc, fa, fb, warp_row, warp_col, lane)
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


@cuda.jit
def hgemm_async_4(a, b, c):
    """Changed: a fourth stage; more than 48 KB of shared memory."""
    tile = cuda.shared.array(0, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    for step in range(3):
        start_tiles(tile, step * STAGE, a, b, row0, col0, step * BK, thread)
    for step in range(a.shape[1] // BK):
        ptx.cp_async_wait(2)  # all but the latest two groups: this thread's copies of this step have arrived
        cuda.syncthreads()  # and those of the others; and nobody reads the stage that is filled next
        start_tiles(tile, (step + 3) % 4 * STAGE, a, b, row0, col0, (step + 3) * BK, thread)
        use_tiles(tile, step % 4 * STAGE, acc, fa, fb, warp_row, warp_col, lane)
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


def launch_of(kernel: Any, c: np.ndarray) -> tuple[Any, int, int]:
    """Grid, threads of a block, and bytes of dynamic shared memory, to compute `c` with `kernel`."""
    stages = {"hgemm_async_2": 2, "hgemm_async_3": 3, "hgemm_async_4": 4}
    return hgemm.grid_of(c), BLOCK, 2 * STAGE * stages[kernel.py_func.__name__]
