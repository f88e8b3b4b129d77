"""HGEMM, continued: tiles that arrive while others are multiplied.

Menu: `hgemm_async_2`, `hgemm_async_3`, `hgemm_async_4`, the swizzled rung of `hgemm` with 2, 3 or 4 tiles in
flight or in use; and `hgemm_async_3_row_major` and `hgemm_async_3_padded`, three stages of the other layouts.

Launch as `launch_of(kernel, c)` says: grid, threads of a block and bytes of dynamic shared memory, which must
be allowed first where they exceed 48 KB (`ptx.allow_dynamic_shared`). Matrices as in `hgemm`. Needs sm_80
(cp.async). Reference: `hgemm.reference(a, b)`.
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
    LIMITS,
    N_ACC,
    N_FRAG_A,
    N_FRAG_B,
    PADDED_A,
    PADDED_B,
    PITCH_A,
    PITCH_B,
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
PADDED_STAGE = PADDED_A + PADDED_B
# Where B's tile begins in a stage; of A, then of B, the pitch, and the bits of the pair of rows (A) or of the
# row (B) that permute the chunks of eight halves.
SWIZZLED = (TILE_A, BK, 3, BN, 7)
ROW_MAJOR = (TILE_A, BK, 0, BN, 0)
PADDED = (PADDED_A, PITCH_A, 0, PITCH_B, 0)


@cuda.jit(device=True, inline="always")
def start_tiles(tile, at, layout, a, b, row0, col0, k0, thread):
    """Start to copy both tiles of step k0 to the stage at `at`, and close the group; nothing past the end."""
    at_b, pitch_a, mask_a, pitch_b, mask_b = layout
    if k0 < a.shape[1]:
        for part in range(TILE_A // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BK // 8), chunk % (BK // 8) * 8
            index = at + row * pitch_a + (col ^ (row >> 1 & mask_a) << 3)
            ptx.cp_async_cg_16(tile, index, a, (row0 + row, k0 + col))
        for part in range(TILE_B // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BN // 8), chunk % (BN // 8) * 8
            index = at + at_b + row * pitch_b + (col ^ (row & mask_b) << 3)
            ptx.cp_async_cg_16(tile, index, b, (k0 + row, col0 + col))
    ptx.cp_async_commit()


@cuda.jit(device=True, inline="always")
def use_tiles(tile, at, layout, acc, fa, fb, warp_row, warp_col, lane):
    """Multiply the tiles of the stage at `at`."""
    at_b, pitch_a, mask_a, pitch_b, mask_b = layout
    for k in range(0, BK, 16):
        for i in range(WM // 16):
            row, col = warp_row + 16 * i + lane % 16, k + lane // 16 * 8
            index = at + row * pitch_a + (col ^ (row >> 1 & mask_a) << 3)
            keep(fa, 4 * i, ptx.ldmatrix_x4(tile, index))
        for j in range(WN // 16):
            row, col = k + lane % 16, warp_col + 16 * j + lane // 16 * 8
            index = at + at_b + row * pitch_b + (col ^ (row & mask_b) << 3)
            keep(fb, 4 * j, ptx.ldmatrix_x4_trans(tile, index))
        multiply(acc, fa, fb)


@cuda.jit(launch_bounds=LIMITS)
def hgemm_async_2(a, b, c):
    """Changed from `hgemm_swizzled`: the next tiles are under way, past the registers, during this step."""
    tile = cuda.shared.array(0, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    start_tiles(tile, 0, SWIZZLED, a, b, row0, col0, 0, thread)
    for step in range(a.shape[1] // BK):
        ptx.cp_async_wait(0)  # this thread's copies of this step have arrived
        cuda.syncthreads()  # and those of the others; and nobody reads the stage that is filled next
        at, k0 = (step + 1) % 2 * STAGE, (step + 1) * BK
        start_tiles(tile, at, SWIZZLED, a, b, row0, col0, k0, thread)
        use_tiles(tile, step % 2 * STAGE, SWIZZLED, acc, fa, fb, warp_row, warp_col, lane)
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


@cuda.jit(launch_bounds=LIMITS)
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
        start_tiles(tile, step * STAGE, SWIZZLED, a, b, row0, col0, step * BK, thread)
    for step in range(a.shape[1] // BK):
        ptx.cp_async_wait(1)  # all but the latest group: this thread's copies of this step have arrived
        cuda.syncthreads()  # and those of the others; and nobody reads the stage that is filled next
        at, k0 = (step + 2) % 3 * STAGE, (step + 2) * BK
        start_tiles(tile, at, SWIZZLED, a, b, row0, col0, k0, thread)
        use_tiles(tile, step % 3 * STAGE, SWIZZLED, acc, fa, fb, warp_row, warp_col, lane)
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


@cuda.jit(launch_bounds=LIMITS)
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
        start_tiles(tile, step * STAGE, SWIZZLED, a, b, row0, col0, step * BK, thread)
    for step in range(a.shape[1] // BK):
        ptx.cp_async_wait(2)  # all but the latest two groups: this thread's copies of this step have arrived
        cuda.syncthreads()  # and those of the others; and nobody reads the stage that is filled next
        at, k0 = (step + 3) % 4 * STAGE, (step + 3) * BK
        start_tiles(tile, at, SWIZZLED, a, b, row0, col0, k0, thread)
        use_tiles(tile, step % 4 * STAGE, SWIZZLED, acc, fa, fb, warp_row, warp_col, lane)
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


@cuda.jit(launch_bounds=LIMITS)
def hgemm_async_3_row_major(a, b, c):
    """Changed from `hgemm_async_3`: dense tiles, all conflicts."""
    tile = cuda.shared.array(0, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    for step in range(2):
        start_tiles(tile, step * STAGE, ROW_MAJOR, a, b, row0, col0, step * BK, thread)
    for step in range(a.shape[1] // BK):
        ptx.cp_async_wait(1)  # all but the latest group: this thread's copies of this step have arrived
        cuda.syncthreads()  # and those of the others; and nobody reads the stage that is filled next
        at, k0 = (step + 2) % 3 * STAGE, (step + 2) * BK
        start_tiles(tile, at, ROW_MAJOR, a, b, row0, col0, k0, thread)
        use_tiles(tile, step % 3 * STAGE, ROW_MAJOR, acc, fa, fb, warp_row, warp_col, lane)
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


@cuda.jit(launch_bounds=LIMITS)
def hgemm_async_3_padded(a, b, c):
    """Changed from `hgemm_async_3`: no swizzle but 16 unused bytes after each row."""
    tile = cuda.shared.array(0, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    for step in range(2):
        start_tiles(tile, step * PADDED_STAGE, PADDED, a, b, row0, col0, step * BK, thread)
    for step in range(a.shape[1] // BK):
        ptx.cp_async_wait(1)  # all but the latest group: this thread's copies of this step have arrived
        cuda.syncthreads()  # and those of the others; and nobody reads the stage that is filled next
        at, k0 = (step + 2) % 3 * PADDED_STAGE, (step + 2) * BK
        start_tiles(tile, at, PADDED, a, b, row0, col0, k0, thread)
        use_tiles(tile, step % 3 * PADDED_STAGE, PADDED, acc, fa, fb, warp_row, warp_col, lane)
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


def launch_of(kernel: Any, c: np.ndarray) -> tuple[Any, int, int]:
    """Grid, threads of a block, and bytes of dynamic shared memory, to compute `c` with `kernel`."""
    name = kernel.py_func.__name__
    stage = PADDED_STAGE if "padded" in name else STAGE
    stages = 2 if "async_2" in name else 4 if "async_4" in name else 3
    return hgemm.grid_of(c), BLOCK, 2 * stage * stages
