"""HGEMM: C = A @ B on Tensor Cores, halves in and out, float32 sums, and what the tiles' layout is worth.

Menu, all with 128 x 128 tiles of C, 32 columns of A at a time, 8 warps that make 64 x 32 results each:
`hgemm_row_major` (dense tiles), `hgemm_padded` (16 unused bytes after each row), `hgemm_wrong_xor` (a swizzle
of A that misses half of the conflicts), `hgemm_swizzled` (the right one), `hgemm_sm75` (for GPUs without
`mma.m16n8k16`). The rungs that copy asynchronously are in `hgemm_stages`, the fast one in `hgemm_fast`.

Launch with `BLOCK` threads and `grid_of(c)` blocks. A is m x k, B is k x n, C is m x n, all row-major
float16; m and n must be multiples of 128, k of 32. Reference: `reference(a, b)`.
"""

import numpy as np
from numba import cuda, float32
from numba.types import float16, uint32

from lanewise import ptx
from lanewise.kernels.tensor_cores import copy_chunk, keep

BM, BN, BK = 128, 128, 32  # a block's tile of C, and how much of k it takes at a time
BLOCK = 256
LIMITS = (BLOCK, 2)  # two blocks a multiprocessor, one to multiply while the other waits: 128 registers
WM, WN = 64, 32  # a warp's share of the tile
WARPS_N = BN // WN
N_ACC = WM * WN // 32  # float32 results per lane
N_FRAG_A, N_FRAG_B = WM // 16 * 4, WN // 16 * 4  # registers of two halves each
TILE_A, TILE_B = BM * BK, BK * BN
PITCH_A, PITCH_B = BK + 8, BN + 8  # with 16 unused bytes: an odd number of 16-byte chunks
PADDED_A, PADDED_B = BM * PITCH_A, BK * PITCH_B
FULL = 0xFFFFFFFF


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A @ B, rounded once to float16."""
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)


def grid_of(c: np.ndarray) -> tuple[int, int]:
    """The grid that covers `c` with tiles, x first.

    >>> grid_of(np.zeros((256, 128), np.float16))
    (1, 2)
    """
    n_rows, n_cols = c.shape
    return n_cols // BN, n_rows // BM


@cuda.jit(device=True, inline="always")
def clear(acc):
    """Start all sums at zero."""
    for register in range(acc.size):
        acc[register] = 0


@cuda.jit(device=True, inline="always")
def multiply(acc, fa, fb):
    """Multiply a column of A fragments by a row of B fragments: every pair of 16 x 16 and 16 x 8."""
    n_tiles = fb.size // 2
    for row in range(fa.size // 4):
        a = fa[4 * row], fa[4 * row + 1], fa[4 * row + 2], fa[4 * row + 3]
        for col in range(n_tiles):
            at = 4 * (row * n_tiles + col)
            d = acc[at], acc[at + 1], acc[at + 2], acc[at + 3]
            keep(acc, at, ptx.mma_m16n8k16_f16(a, (fb[2 * col], fb[2 * col + 1]), d))


@cuda.jit(device=True, inline="always")
def multiply_in_halves(acc, fa, fb):
    """The same by `mma.m16n8k8`: 16 x 8 times 8 x 8, twice."""
    n_tiles = fb.size // 2
    for row in range(fa.size // 4):
        left, right = (fa[4 * row], fa[4 * row + 1]), (fa[4 * row + 2], fa[4 * row + 3])
        for col in range(n_tiles):
            at = 4 * (row * n_tiles + col)
            d = acc[at], acc[at + 1], acc[at + 2], acc[at + 3]
            d = ptx.mma_m16n8k8_f16(left, fb[2 * col], d)
            keep(acc, at, ptx.mma_m16n8k8_f16(right, fb[2 * col + 1], d))


@cuda.jit(device=True, inline="always")
def put_matrix(acc, at, c, row, col, lane):
    """Write a warp's 16 x 8 results to `c[row, col]`, four neighbours a lane.

    An `mma` leaves each lane two neighbours in row `lane // 4` and two in the row 8 below. Lanes 2l and
    2l + 1 exchange one pair, so that the first has four neighbours of the upper row, the second of the lower.
    """
    odd = lane & 1
    up0, up1, low0, low1 = acc[at], acc[at + 1], acc[at + 2], acc[at + 3]
    got0 = cuda.shfl_xor_sync(FULL, up0 if odd else low0, 1)
    got1 = cuda.shfl_xor_sync(FULL, up1 if odd else low1, 1)
    c0, c1 = got0 if odd else up0, got1 if odd else up1
    c2, c3 = low0 if odd else got0, low1 if odd else got1
    ptx.store4(c, (row + lane // 4 + 8 * odd, col + lane % 4 // 2 * 4), c0, c1, c2, c3)


@cuda.jit(device=True, inline="always")
def put_tile(acc, c, row, col, lane):
    """Write a warp's WM x WN results to `c[row, col]`."""
    for i in range(WM // 16):
        for j in range(WN // 8):
            put_matrix(acc, 4 * (i * (WN // 8) + j), c, row + 16 * i, col + 8 * j, lane)


@cuda.jit(launch_bounds=LIMITS)
def hgemm_row_major(a, b, c):
    """The baseline: both tiles dense and row-major; `ldmatrix` fetches fragments, B's transposed."""
    tile_a, tile_b = cuda.shared.array(TILE_A, float16), cuda.shared.array(TILE_B, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    for k0 in range(0, a.shape[1], BK):
        for part in range(TILE_A // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BK // 8), chunk % (BK // 8) * 8
            copy_chunk(tile_a, row * BK + col, a, row0 + row, k0 + col)
        for part in range(TILE_B // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BN // 8), chunk % (BN // 8) * 8
            copy_chunk(tile_b, row * BN + col, b, k0 + row, col0 + col)
        cuda.syncthreads()  # both tiles are full before a warp reads the rows of others
        for k in range(0, BK, 16):
            for i in range(WM // 16):
                row, col = warp_row + 16 * i + lane % 16, k + lane // 16 * 8
                keep(fa, 4 * i, ptx.ldmatrix_x4(tile_a, row * BK + col))
            for j in range(WN // 16):
                row, col = k + lane % 16, warp_col + 16 * j + lane // 16 * 8
                keep(fb, 4 * j, ptx.ldmatrix_x4_trans(tile_b, row * BN + col))
            multiply(acc, fa, fb)
        cuda.syncthreads()  # every warp has its fragments before the tiles are overwritten
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


@cuda.jit(launch_bounds=LIMITS)
def hgemm_padded(a, b, c):
    """Changed: 16 unused bytes end each row of a tile; no conflict is left, but the fill of A gets some."""
    tile_a, tile_b = cuda.shared.array(PADDED_A, float16), cuda.shared.array(PADDED_B, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    for k0 in range(0, a.shape[1], BK):
        for part in range(TILE_A // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BK // 8), chunk % (BK // 8) * 8
            copy_chunk(tile_a, row * PITCH_A + col, a, row0 + row, k0 + col)
        for part in range(TILE_B // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BN // 8), chunk % (BN // 8) * 8
            copy_chunk(tile_b, row * PITCH_B + col, b, k0 + row, col0 + col)
        cuda.syncthreads()  # both tiles are full before a warp reads the rows of others
        for k in range(0, BK, 16):
            for i in range(WM // 16):
                row, col = warp_row + 16 * i + lane % 16, k + lane // 16 * 8
                keep(fa, 4 * i, ptx.ldmatrix_x4(tile_a, row * PITCH_A + col))
            for j in range(WN // 16):
                row, col = k + lane % 16, warp_col + 16 * j + lane // 16 * 8
                keep(fb, 4 * j, ptx.ldmatrix_x4_trans(tile_b, row * PITCH_B + col))
            multiply(acc, fa, fb)
        cuda.syncthreads()  # every warp has its fragments before the tiles are overwritten
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


@cuda.jit(launch_bounds=LIMITS)
def hgemm_wrong_xor(a, b, c):
    """Changed: dense again, chunks of eight halves permuted; rows of A that lie 4 apart still collide."""
    tile_a, tile_b = cuda.shared.array(TILE_A, float16), cuda.shared.array(TILE_B, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    for k0 in range(0, a.shape[1], BK):
        for part in range(TILE_A // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BK // 8), chunk % (BK // 8) * 8
            copy_chunk(tile_a, row * BK + (col ^ (row & 3) << 3), a, row0 + row, k0 + col)
        for part in range(TILE_B // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BN // 8), chunk % (BN // 8) * 8
            copy_chunk(tile_b, row * BN + (col ^ (row & 7) << 3), b, k0 + row, col0 + col)
        cuda.syncthreads()  # both tiles are full before a warp reads the rows of others
        for k in range(0, BK, 16):
            for i in range(WM // 16):
                row, col = warp_row + 16 * i + lane % 16, k + lane // 16 * 8
                keep(fa, 4 * i, ptx.ldmatrix_x4(tile_a, row * BK + (col ^ (row & 3) << 3)))
            for j in range(WN // 16):
                row, col = k + lane % 16, warp_col + 16 * j + lane // 16 * 8
                keep(fb, 4 * j, ptx.ldmatrix_x4_trans(tile_b, row * BN + (col ^ (row & 7) << 3)))
            multiply(acc, fa, fb)
        cuda.syncthreads()  # every warp has its fragments before the tiles are overwritten
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


@cuda.jit(launch_bounds=LIMITS)
def hgemm_swizzled(a, b, c):
    """Changed: two rows of A fill the 32 banks once, so A's chunks move by the number of the pair of rows."""
    tile_a, tile_b = cuda.shared.array(TILE_A, float16), cuda.shared.array(TILE_B, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    for k0 in range(0, a.shape[1], BK):
        for part in range(TILE_A // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BK // 8), chunk % (BK // 8) * 8
            copy_chunk(tile_a, row * BK + (col ^ (row >> 1 & 3) << 3), a, row0 + row, k0 + col)
        for part in range(TILE_B // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BN // 8), chunk % (BN // 8) * 8
            copy_chunk(tile_b, row * BN + (col ^ (row & 7) << 3), b, k0 + row, col0 + col)
        cuda.syncthreads()  # both tiles are full before a warp reads the rows of others
        for k in range(0, BK, 16):
            for i in range(WM // 16):
                row, col = warp_row + 16 * i + lane % 16, k + lane // 16 * 8
                keep(fa, 4 * i, ptx.ldmatrix_x4(tile_a, row * BK + (col ^ (row >> 1 & 3) << 3)))
            for j in range(WN // 16):
                row, col = k + lane % 16, warp_col + 16 * j + lane // 16 * 8
                keep(fb, 4 * j, ptx.ldmatrix_x4_trans(tile_b, row * BN + (col ^ (row & 7) << 3)))
            multiply(acc, fa, fb)
        cuda.syncthreads()  # every warp has its fragments before the tiles are overwritten
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


@cuda.jit(launch_bounds=LIMITS)
def hgemm_sm75(a, b, c):
    """Changed from `hgemm_swizzled`: each product in two halves, for GPUs without `mma.m16n8k16`."""
    tile_a, tile_b = cuda.shared.array(TILE_A, float16), cuda.shared.array(TILE_B, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa, fb = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
    lane, warp = thread & 31, thread >> 5
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * WN
    clear(acc)
    for k0 in range(0, a.shape[1], BK):
        for part in range(TILE_A // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BK // 8), chunk % (BK // 8) * 8
            copy_chunk(tile_a, row * BK + (col ^ (row >> 1 & 3) << 3), a, row0 + row, k0 + col)
        for part in range(TILE_B // 8 // BLOCK):
            chunk = part * BLOCK + thread
            row, col = chunk // (BN // 8), chunk % (BN // 8) * 8
            copy_chunk(tile_b, row * BN + (col ^ (row & 7) << 3), b, k0 + row, col0 + col)
        cuda.syncthreads()  # both tiles are full before a warp reads the rows of others
        for k in range(0, BK, 16):
            for i in range(WM // 16):
                row, col = warp_row + 16 * i + lane % 16, k + lane // 16 * 8
                keep(fa, 4 * i, ptx.ldmatrix_x4(tile_a, row * BK + (col ^ (row >> 1 & 3) << 3)))
            for j in range(WN // 16):
                row, col = k + lane % 16, warp_col + 16 * j + lane // 16 * 8
                keep(fb, 4 * j, ptx.ldmatrix_x4_trans(tile_b, row * BN + (col ^ (row & 7) << 3)))
            multiply_in_halves(acc, fa, fb)
        cuda.syncthreads()  # every warp has its fragments before the tiles are overwritten
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)
