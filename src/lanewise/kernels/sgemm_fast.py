"""SGEMM: four warps, each with 64 x 64 elements of C in its registers.

Menu: `warp_tiles` (16 x 8 elements a thread; lanes arranged so that neighbours read the same words),
`prefetched` (the operands of the next steps are read from shared memory while these are multiplied).

Launch with `BLOCK` threads and `n_blocks_of(C)` blocks. A, B and C are float32 matrices of `(m, k)`, `(k, n)`
and `(m, n)` elements, rows contiguous; m and n must be multiples of `TILE`, k of `DEPTH`. Needs `cp.async`
(from sm_80). Reference: `sgemm.reference(A, B)`.

A's tile lies in shared memory as it does in global memory, so both tiles arrive by copies of 16 bytes. A
thread then reads 4 steps of k at once: 16 bytes along a row of A's tile, and 8 columns of 4 rows of B's.

    lane  0  1  2  3  4  5 ..  14 15 | 16 17 18 ..     row of the warp's tile, + 4 for the next of 16
    row   0  1  0  1  0  1 ..   0  1 |  2  3  2 ..     lanes i and i ^ 2 read the same words of A
    col   0  0  4  4  8  8 ..  28 28 |  0  0  4 ..     lanes i and i ^ 1 read the same words of B

So every read of 16 bytes takes 2 wavefronts, not 4: neighbouring groups of lanes fuse.
"""

import numpy as np
from numba import cuda, float32, int32

from lanewise import ptx

TILE, DEPTH, STAGES = 128, 16, 3
BLOCK = 128
GROUP = 8  # rows of tiles that neighbouring blocks take together, so that they find each other's tiles in L2
A_SLOT, B_SLOT = TILE * DEPTH, DEPTH * TILE  # elements of a stage
A_ELEMS, B_ELEMS = STAGES * A_SLOT, STAGES * B_SLOT
N_ACC = 16 * 8


def n_blocks_of(C: np.ndarray) -> int:
    """The number of blocks that cover C.

    >>> n_blocks_of(np.zeros((256, 384), np.float32))
    6
    """
    n_rows, n_cols = C.shape
    return (n_rows // TILE) * (n_cols // TILE)


@cuda.jit(device=True, inline=True)
def corner_of(block, n_rows, n_cols):
    """The first row and column of a block's tile: `GROUP` tiles down, then the next column of tiles."""
    n_group = GROUP * (n_cols // TILE)
    above = block // n_group * GROUP
    height = min(n_rows // TILE - above, GROUP)
    within = block % n_group
    return int32((above + within % height) * TILE), int32(within // height * TILE)


@cuda.jit(device=True, inline=True)
def copy_tiles(a_tiles, b_tiles, slot, A, B, first_row, first_col, k):
    """Start copying the tiles that begin at `k` to a slot, as one group."""
    thread = int32(cuda.threadIdx.x)
    a_row, a_k = int32(thread // 4), int32(thread % 4 * 4)
    b_k, b_col = int32(thread // 32), int32(thread % 32 * 4)
    a_put, b_put = int32(slot * A_SLOT + 4 * thread), int32(slot * B_SLOT + 4 * thread)  # rows end to end
    for i in range(0, TILE, BLOCK // 4):
        ptx.cp_async_cg_16(a_tiles, a_put + i * DEPTH, A, (first_row + a_row + i, k + a_k))
    for i in range(0, DEPTH, BLOCK // 32):
        ptx.cp_async_cg_16(b_tiles, b_put + i * TILE, B, (k + b_k + i, first_col + b_col))
    ptx.cp_async_commit()


@cuda.jit(device=True, inline=True)
def read_rows(a_tiles, at, pair, a):
    """4 steps of two of a thread's 16 rows."""
    for i in range(2):
        index = at + (2 * pair + i) * 4 * DEPTH
        a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3] = ptx.load4(a_tiles, index)


@cuda.jit(device=True, inline=True)
def read_cols(b_tiles, at, k, b):
    """A thread's 8 columns at one step."""
    for j in range(0, 8, 4):
        index = at + k * TILE + 8 * j
        place = 8 * k + j
        b[place], b[place + 1], b[place + 2], b[place + 3] = ptx.load4(b_tiles, index)


@cuda.jit(device=True, inline=True)
def multiply(acc, a, pair, b):
    """4 steps of two rows and 8 columns: 64 multiply-adds. Every other row runs backwards, to reuse b."""
    for k in range(4):
        for i in range(2):
            for step in range(8):
                j = 7 - step if i % 2 else step
                acc[(2 * pair + i) * 8 + j] += a[4 * i + k] * b[8 * k + j]


@cuda.jit(device=True, inline=True)
def write_tile(C, row, col, acc):
    """A thread's 16 x 8 elements."""
    for i in range(16):
        for j in range(0, 8, 4):
            place = 8 * i + j
            values = acc[place], acc[place + 1], acc[place + 2], acc[place + 3]
            ptx.store4(C, (row + 4 * i, col + 8 * j), values)


@cuda.jit(device=True, inline=True)
def four_steps(acc, a_tiles, a_at, b_tiles, b_at, a0, a1, b):
    """Read and multiply; the rows are written out since the compiler keeps a loop this large."""
    for k in range(4):
        read_cols(b_tiles, b_at, k, b)
    read_rows(a_tiles, a_at, 0, a0)
    read_rows(a_tiles, a_at, 1, a1)
    multiply(acc, a0, 0, b)
    read_rows(a_tiles, a_at, 2, a0)
    multiply(acc, a1, 1, b)
    read_rows(a_tiles, a_at, 3, a1)
    multiply(acc, a0, 2, b)
    read_rows(a_tiles, a_at, 4, a0)
    multiply(acc, a1, 3, b)
    read_rows(a_tiles, a_at, 5, a1)
    multiply(acc, a0, 4, b)
    read_rows(a_tiles, a_at, 6, a0)
    multiply(acc, a1, 5, b)
    read_rows(a_tiles, a_at, 7, a1)
    multiply(acc, a0, 6, b)
    multiply(acc, a1, 7, b)


@cuda.jit(launch_bounds=(BLOCK, 2))
def warp_tiles(A, B, C):
    """Changed from `sgemm_pipelined.async_copies`: 64 x 64 elements a warp, 16 x 8 a thread; see above."""
    a_tiles = cuda.shared.array(A_ELEMS, float32)
    b_tiles = cuda.shared.array(B_ELEMS, float32)
    acc = cuda.local.array(N_ACC, float32)
    a0 = cuda.local.array(8, float32)
    a1 = cuda.local.array(8, float32)
    b = cuda.local.array(32, float32)
    lane, warp = int32(cuda.threadIdx.x % 32), int32(cuda.threadIdx.x // 32)
    first_row, first_col = corner_of(int32(cuda.blockIdx.x), int32(C.shape[0]), int32(C.shape[1]))
    row = int32(warp // 2 * 64 + lane % 2 + lane // 16 * 2)
    col = int32(warp % 2 * 64 + lane // 2 % 8 * 4)
    for i in range(N_ACC):
        acc[i] = float32(0)
    last = int32(A.shape[1] - DEPTH)
    copy_tiles(a_tiles, b_tiles, int32(0), A, B, first_row, first_col, int32(0))
    copy_tiles(a_tiles, b_tiles, int32(1), A, B, first_row, first_col, min(int32(DEPTH), last))
    k = min(int32(2 * DEPTH), last)
    slot, spare = int32(0), int32(2)
    for _ in range(int32(A.shape[1] // DEPTH)):
        ptx.cp_async_wait(1)
        cuda.syncthreads()  # everyone's copies of these tiles have arrived, and everyone is done with spare
        copy_tiles(a_tiles, b_tiles, spare, A, B, first_row, first_col, k)
        k = min(int32(k + DEPTH), last)  # at the end the last tiles come again: cheaper than a branch
        a_at, b_at = int32(slot * A_SLOT + row * DEPTH), int32(slot * B_SLOT + col)
        for step in range(0, DEPTH, 4):
            four_steps(acc, a_tiles, a_at + step, b_tiles, b_at + step * TILE, a0, a1, b)
        spare = slot
        slot = int32(0) if slot == STAGES - 1 else int32(slot + 1)
    write_tile(C, first_row + row, first_col + col, acc)


@cuda.jit(device=True, inline=True)
def four_steps_ahead(acc, a_tiles, a_at, a_next, b_tiles, b_next, a0, a1, b, b_ahead):
    """Multiply with `b`, and with rows of which the first two are in `a0`; read what comes next meanwhile."""
    read_rows(a_tiles, a_at, 1, a1)
    read_cols(b_tiles, b_next, 0, b_ahead)
    multiply(acc, a0, 0, b)
    read_rows(a_tiles, a_at, 2, a0)
    multiply(acc, a1, 1, b)
    read_rows(a_tiles, a_at, 3, a1)
    read_cols(b_tiles, b_next, 1, b_ahead)
    multiply(acc, a0, 2, b)
    read_rows(a_tiles, a_at, 4, a0)
    multiply(acc, a1, 3, b)
    read_rows(a_tiles, a_at, 5, a1)
    read_cols(b_tiles, b_next, 2, b_ahead)
    multiply(acc, a0, 4, b)
    read_rows(a_tiles, a_at, 6, a0)
    multiply(acc, a1, 5, b)
    read_rows(a_tiles, a_at, 7, a1)
    read_cols(b_tiles, b_next, 3, b_ahead)
    multiply(acc, a0, 6, b)
    read_rows(a_tiles, a_next, 0, a0)
    multiply(acc, a1, 7, b)


@cuda.jit(launch_bounds=(BLOCK, 2))
def prefetched(A, B, C):
    """Changed: shared memory is read four steps ahead, across tiles too, so three tiles are on their way."""
    a_tiles = cuda.shared.array(A_ELEMS, float32)
    b_tiles = cuda.shared.array(B_ELEMS, float32)
    acc = cuda.local.array(N_ACC, float32)
    a0 = cuda.local.array(8, float32)
    a1 = cuda.local.array(8, float32)
    b0 = cuda.local.array(32, float32)
    b1 = cuda.local.array(32, float32)
    lane, warp = int32(cuda.threadIdx.x % 32), int32(cuda.threadIdx.x // 32)
    first_row, first_col = corner_of(int32(cuda.blockIdx.x), int32(C.shape[0]), int32(C.shape[1]))
    row = int32(warp // 2 * 64 + lane % 2 + lane // 16 * 2)
    col = int32(warp % 2 * 64 + lane // 2 % 8 * 4)
    for i in range(N_ACC):
        acc[i] = float32(0)
    last = int32(A.shape[1] - DEPTH)
    copy_tiles(a_tiles, b_tiles, int32(0), A, B, first_row, first_col, int32(0))
    copy_tiles(a_tiles, b_tiles, int32(1), A, B, first_row, first_col, min(int32(DEPTH), last))
    k = min(int32(2 * DEPTH), last)
    slot, spare = int32(0), int32(2)
    a_at, b_at = int32(row * DEPTH), col
    ptx.cp_async_wait(1)
    cuda.syncthreads()  # everyone's copies of the first tiles have arrived
    for step in range(4):
        read_cols(b_tiles, b_at, step, b0)
    read_rows(a_tiles, a_at, 0, a0)
    for _ in range(int32(A.shape[1] // DEPTH)):
        four_steps_ahead(acc, a_tiles, a_at, a_at + 4, b_tiles, b_at + 4 * TILE, a0, a1, b0, b1)
        four_steps_ahead(acc, a_tiles, a_at + 4, a_at + 8, b_tiles, b_at + 8 * TILE, a0, a1, b1, b0)
        four_steps_ahead(acc, a_tiles, a_at + 8, a_at + 12, b_tiles, b_at + 12 * TILE, a0, a1, b0, b1)
        ptx.cp_async_wait(0)
        cuda.syncthreads()  # the next tiles have arrived, and everyone is done with those before these
        copy_tiles(a_tiles, b_tiles, spare, A, B, first_row, first_col, k)
        k = min(int32(k + DEPTH), last)  # at the end the last tiles come again: cheaper than a branch
        spare = slot
        slot = int32(0) if slot == STAGES - 1 else int32(slot + 1)
        a_next, b_at = int32(slot * A_SLOT + row * DEPTH), int32(slot * B_SLOT + col)
        four_steps_ahead(acc, a_tiles, a_at + 12, a_next, b_tiles, b_at, a0, a1, b1, b0)
        a_at = a_next
    write_tile(C, first_row + row, first_col + col, acc)
