"""HGEMM for speed: what is left to do when no shared memory access conflicts.

Menu: `hgemm_fast`, and `hgemm_fast_bits`, the same with some or none of its swizzle: what conflicts cost
where nothing else is slow. Against `hgemm_stages`: a block makes 128 x 256 results and each of its 8 warps
64 x 64, so that a fragment is used more often; the fragments of the next 16 columns are fetched while these
are multiplied; blocks that run together lie close together, so that L2 serves them.

Every row of a tile is 128 bytes, so that one swizzle serves both: A is 128 rows of 64 halves, B is four
panels of 64 columns, 64 rows of 64 halves each.

Launch as `launch_of(c)` says: grid, block and bytes of dynamic shared memory, which must be allowed first
(`ptx.allow_dynamic_shared`). Needs sm_80 (cp.async). Matrices as in `hgemm`, of other sizes: m must be a
multiple of 128, n of 256, k of 64 and at least 256. Reference: `hgemm.reference(a, b)`.
"""

import numpy as np
from numba import cuda, float32
from numba.types import float16, uint32

from lanewise import ptx
from lanewise.kernels.hgemm import clear, keep, multiply, put_matrix

BM, BN, BK = 128, 256, 64  # a block's tile of C, and how much of k it takes at a time
BLOCK = 256
STAGES = 4
PENDING = STAGES - 2  # groups of copies that may be under way while a stage is read
GROUP = 8  # tile rows whose blocks run together
WM, WN = 64, 64  # a warp's share of the tile: in each panel of B its own PART columns
PANELS = BN // 64
WARPS_N = BN // WN
PART = 64 // WARPS_N
N_ACC = WM * WN // 32
N_FRAG_A, N_FRAG_B = WM // 16 * 4, WN // 16 * 4
ROWS = BLOCK // 8  # rows of 128 bytes that the block copies at once
TILE_A, PANEL = BM * 64, 64 * 64
STAGE = TILE_A + PANELS * PANEL
RING = STAGES * STAGE


def launch_of(c: np.ndarray) -> tuple[int, int, int]:
    """Grid, threads of a block, and bytes of dynamic shared memory, to compute `c`.

    >>> launch_of(np.zeros((256, 256), np.float16))
    (2, 256, 196608)
    """
    n_rows, n_cols = c.shape
    return n_rows // BM * (n_cols // BN), BLOCK, 2 * RING


@cuda.jit(device=True, inline="always")
def place_of(block, tiles_m, tiles_n):
    """The tile of a block, (row, column): GROUP rows of tiles are walked down, column by column."""
    first = block // (GROUP * tiles_n) * GROUP
    size = min(GROUP, tiles_m - first)
    within = block % (GROUP * tiles_n)
    return first + within % size, within // size


@cuda.jit(device=True, inline="always")
def start_tiles(tile, at, a, b, row0, col0, k0, thread, mask):
    """Start to copy both tiles of step k0 to the stage at `at`: 8 lanes a row, one chunk of 16 bytes each."""
    row, chunk = thread >> 3, thread & 7
    index = at + 64 * row + ((chunk ^ row & mask) << 3)
    for i in range(0, BM, ROWS):
        ptx.cp_async_cg_16(tile, index + 64 * i, a, (row0 + row + i, k0 + 8 * chunk))
    for panel in range(PANELS):
        for i in range(0, 64, ROWS):
            to = index + TILE_A + panel * PANEL + 64 * i
            ptx.cp_async_cg_16(tile, to, b, (k0 + row + i, col0 + 64 * panel + 8 * chunk))


@cuda.jit(device=True, inline="always")
def fetch(tile, at_a, at_b, chunk_b, fa, fb):
    """Fetch a warp's fragments of 16 columns of A, from `at_a` on, and 16 rows of B, from `at_b` on."""
    for i in range(WM // 16):
        keep(fa, 4 * i, ptx.ldmatrix_x4(tile, at_a + 1024 * i))
    for panel in range(PANELS):
        for j in range(PART // 16):
            four = ptx.ldmatrix_x4_trans(tile, at_b + panel * PANEL + (chunk_b ^ 16 * j))
            keep(fb, 4 * (panel * (PART // 16) + j), four)


@cuda.jit(device=True, inline="always")
def put_tile(acc, c, row, col, lane):
    """Write a warp's results: WM rows, PART columns of each panel."""
    for i in range(WM // 16):
        for panel in range(PANELS):
            for j in range(PART // 8):
                at = 4 * (i * (WN // 8) + panel * (PART // 8) + j)
                put_matrix(acc, at, c, row + 16 * i, col + 64 * panel + 8 * j, lane)


@cuda.jit(device=True, inline="always")
def multiply_all(a, b, c, mask):
    """The whole kernel, with a swizzle by the bits of the row that are in `mask`."""
    tile = cuda.shared.array(0, float16)
    acc = cuda.local.array(N_ACC, float32)
    fa0, fb0 = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    fa1, fb1 = cuda.local.array(N_FRAG_A, uint32), cuda.local.array(N_FRAG_B, uint32)
    thread, n_steps = cuda.threadIdx.x, a.shape[1] // BK
    lane, warp = thread & 31, thread >> 5
    tile_row, tile_col = place_of(cuda.blockIdx.x, c.shape[0] // BM, c.shape[1] // BN)
    row0, col0 = tile_row * BM, tile_col * BN
    warp_row, warp_col = warp // WARPS_N * WM, warp % WARPS_N * PART
    # All fragments of a lane begin in rows whose last three bits are its own: its swizzle is computed once.
    high, flip = lane >> 4, lane & mask
    at_a, at_b = 64 * (warp_row + lane % 16), TILE_A + 64 * (lane % 16)
    chunk_b = ((warp_col // 8 + high) ^ flip) << 3
    a0, a1 = at_a + ((0 + high ^ flip) << 3), at_a + ((2 + high ^ flip) << 3)
    a2, a3 = at_a + ((4 + high ^ flip) << 3), at_a + ((6 + high ^ flip) << 3)
    clear(acc)
    for step in range(STAGES - 1):
        start_tiles(tile, step * STAGE, a, b, row0, col0, step * BK, thread, mask)
        ptx.cp_async_commit()
    ptx.cp_async_wait(PENDING)
    cuda.syncthreads()  # the first stage is full
    used, free = 0, (STAGES - 1) * STAGE
    fetch(tile, a0, at_b, chunk_b, fa0, fb0)
    for step in range(n_steps):
        fetch(tile, used + a1, used + at_b + 1024, chunk_b, fa1, fb1)
        if step + STAGES - 1 < n_steps:
            start_tiles(tile, free, a, b, row0, col0, (step + STAGES - 1) * BK, thread, mask)
        ptx.cp_async_commit()
        multiply(acc, fa0, fb0)
        fetch(tile, used + a2, used + at_b + 2048, chunk_b, fa0, fb0)
        multiply(acc, fa1, fb1)
        fetch(tile, used + a3, used + at_b + 3072, chunk_b, fa1, fb1)
        multiply(acc, fa0, fb0)
        ptx.cp_async_wait(PENDING)
        cuda.syncthreads()  # the next stage is full, and every warp has fetched all of this one
        free = used
        used = used + STAGE if used + STAGE < RING else 0
        fetch(tile, used + a0, used + at_b, chunk_b, fa0, fb0)  # after the last step, for nothing
        multiply(acc, fa1, fb1)
    put_tile(acc, c, row0 + warp_row, col0 + warp_col, lane)


# 128 sums and two sets of 32 fragment registers a lane leave room for one block a multiprocessor.
@cuda.jit(launch_bounds=(BLOCK, 1))
def hgemm_fast(a, b, c):
    """Changed from `hgemm_async_4`: larger tiles, fragments fetched ahead, an order of blocks for L2."""
    multiply_all(a, b, c, 7)


@cuda.jit(launch_bounds=(BLOCK, 1))
def hgemm_fast_bits(a, b, c, mask):
    """Changed: only some bits of the row in the swizzle; with mask 0, 1, 3 there collide 8, 4, 2 rows."""
    multiply_all(a, b, c, mask)
