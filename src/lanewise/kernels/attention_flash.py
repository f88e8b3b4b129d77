"""Attention on Tensor Cores: one kernel, the scores in registers, keys and values a tile ahead.

Menu: `flash_row_major` (the tiles lie row after row: the eight rows of a matrix share their banks), and
`flash_swizzled` (the 16-byte chunks of a row are permuted by XOR with the row's number).

`q`, `k`, `v` and `dst` are float16 of shape (heads, n, 128), n a multiple of 128. Launch with `THREADS`
threads, `grid_of(q)` blocks and `SHARED_BYTES` of dynamic shared memory, more than 48 KB
(`ptx.allow_dynamic_shared`). Needs sm_80. Reference: `lanewise.kernels.attention.reference`.

A block holds 128 query rows, a warp 32 of them, as two tiles of 16: so each matrix of keys and values that a
warp loads is used twice, and no softmax crosses a warp. In an accumulator of m16n8k16 lane l holds columns
2 (l % 4) and the next of rows l // 4 and l // 4 + 8. Two accumulators side by side, packed to halves, are the
A operand of the next product: the weights never leave their lanes.
"""

import math

import numpy as np
from numba import cuda, float32, int32, uint32

from lanewise import ptx

SIZE = 128  # of a head: the columns of Q, K, V
WARPS = 4
THREADS = 32 * WARPS
WARP_ROWS = 32
ROWS = WARP_ROWS * WARPS
KEYS = 64  # of a tile
AT_ONCE = THREADS // 16  # rows that the block copies at once, 16 bytes a thread
STAGE = 2 * KEYS * SIZE  # halves: a tile of keys and one of values
FIRST = ROWS * SIZE  # where the stages start, after the queries
SHARED_BYTES = 2 * (FIRST + 2 * STAGE)

CHUNK_STEP = 16  # halves: two chunks, the depth of one m16n8k16
MATRIX_ROWS = 16 * SIZE  # halves: 16 rows
N_SCORES = 2 * KEYS // 8 * 4  # of a lane: two tiles of rows, KEYS / 8 accumulators of four
N_PAIRS = N_SCORES // 2
N_OUT = 2 * SIZE // 8 * 4
HALF_SCORES = N_SCORES // 2
HALF_PAIRS = N_PAIRS // 2
HALF_OUT = N_OUT // 2
LOG2_SCALE = math.log2(math.e) / math.sqrt(SIZE)  # exp(s / sqrt(128)) = 2 ** (s * LOG2_SCALE)
SLACK = 8.0  # the weights may grow to 2 ** 8 before the sums are rescaled


def grid_of(q: np.ndarray) -> tuple[int, int]:
    """The grid that gives every 128 query rows a block, x first.

    >>> grid_of(np.zeros((2, 256, 128), np.float16))
    (2, 2)
    """
    return q.shape[1] // ROWS, len(q)


@cuda.jit(device=True)
def place(row, col, mask):
    """Where the chunk of a tile that starts at (row, col) lies: its number is changed by XOR with the row's.

    mask 0 leaves it in place; mask 7 spreads eight rows over all banks.
    """
    return int32(SIZE * row + (col ^ ((row & mask) << 3)))


@cuda.jit(device=True)
def copy_rows(tile, start, src, head, first, n_rows, mask):
    """Start the copy of rows into the tile at `start`."""
    row, col = int32(cuda.threadIdx.x >> 4), int32((cuda.threadIdx.x & 15) << 3)
    put = start + place(row, col, mask)
    for step in range(0, n_rows, AT_ONCE):
        ptx.cp_async_cg_16(tile, put + SIZE * step, src, (head, first + row + step, col))


@cuda.jit(device=True)
def multiply(acc, j, a, b0, b1):
    """Add the product of two fragments to the accumulator that starts at `acc[j]`."""
    c = (acc[j], acc[j + 1], acc[j + 2], acc[j + 3])
    acc[j], acc[j + 1], acc[j + 2], acc[j + 3] = ptx.mma_m16n8k16_f16(a, (b0, b1), c)


@cuda.jit(device=True)
def score(tile, queries, keys, s):
    """S = Q K^T of a tile of keys, in registers."""
    for j in range(N_SCORES):
        s[j] = float32(0)
    for step in range(0, SIZE, CHUNK_STEP):
        upper = ptx.ldmatrix_x4(tile, queries ^ step)
        lower = ptx.ldmatrix_x4(tile, (queries + MATRIX_ROWS) ^ step)
        for key in range(0, KEYS, 16):
            b0, b1, b2, b3 = ptx.ldmatrix_x4(tile, (keys ^ step) + SIZE * key)
            multiply(s, key // 2, upper, b0, b1)
            multiply(s, key // 2 + 4, upper, b2, b3)
            multiply(s, HALF_SCORES + key // 2, lower, b0, b1)
            multiply(s, HALF_SCORES + key // 2 + 4, lower, b2, b3)


@cuda.jit(device=True)
def weigh(s, weights, top, total, shrink):
    """The online softmax: weights of the tile as pairs of halves, and what the sums so far shrink by.

    All in powers of two. `top` is replaced only where it has grown by more than `SLACK`: until then no weight
    passes 2 ** SLACK, and nothing has to be rescaled. True if a lane's rows shrink.
    """
    grown = False
    for r in range(4):  # rows l // 4, + 8, + 16, + 24
        at = HALF_SCORES * (r // 2) + 2 * (r % 2)
        largest = s[at]
        for j in range(at, at + HALF_SCORES, 4):
            largest = max(largest, max(s[j], s[j + 1]))
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, 1))
        largest = max(largest, cuda.shfl_xor_sync(0xFFFFFFFF, largest, 2)) * float32(LOG2_SCALE)
        grows = largest > top[r] + float32(SLACK)
        new_top = largest if grows else top[r]
        grown = grown or grows
        shrink[r] = ptx.exp2_approx(top[r] - new_top)
        top[r] = new_top
        added = float32(0)
        for j in range(at, at + HALF_SCORES, 4):
            even = ptx.exp2_approx(s[j] * float32(LOG2_SCALE) - new_top)
            odd = ptx.exp2_approx(s[j + 1] * float32(LOG2_SCALE) - new_top)
            weights[j // 2] = ptx.pack_half2(even, odd)
            added += even + odd
        total[r] = total[r] * shrink[r] + added
    return grown


@cuda.jit(device=True)
def rescale(out, shrink):
    """Bring the output so far to the new maximum."""
    for r in range(4):
        at = HALF_OUT * (r // 2) + 2 * (r % 2)
        for j in range(at, at + HALF_OUT, 4):
            out[j], out[j + 1] = out[j] * shrink[r], out[j + 1] * shrink[r]


@cuda.jit(device=True)
def mix(tile, weights, values, out):
    """O += P V of a tile of values; the weights of 16 keys are an A operand as they are."""
    for key in range(0, KEYS, 16):
        p = key // 4
        upper = (weights[p], weights[p + 1], weights[p + 2], weights[p + 3])
        p += HALF_PAIRS
        lower = (weights[p], weights[p + 1], weights[p + 2], weights[p + 3])
        for col in range(0, SIZE, 16):
            b0, b1, b2, b3 = ptx.ldmatrix_x4_trans(tile, (values ^ col) + SIZE * key)
            multiply(out, col // 2, upper, b0, b1)
            multiply(out, col // 2 + 4, upper, b2, b3)
            multiply(out, HALF_OUT + col // 2, lower, b0, b1)
            multiply(out, HALF_OUT + col // 2 + 4, lower, b2, b3)


@cuda.jit(device=True)
def write(dst, head, row, col, out, total):
    """Divide by the sums of the weights and store."""
    for r in range(4):
        t = total[r]
        t += cuda.shfl_xor_sync(0xFFFFFFFF, t, 1)
        t += cuda.shfl_xor_sync(0xFFFFFFFF, t, 2)
        inverse = float32(1) / t
        for j in range(0, HALF_OUT, 4):
            at = HALF_OUT * (r // 2) + 2 * (r % 2) + j
            dst[head, row + 8 * r, col + 2 * j] = out[at] * inverse
            dst[head, row + 8 * r, col + 2 * j + 1] = out[at + 1] * inverse


@cuda.jit(device=True)
def attend(q, k, v, dst, mask):
    """What both rungs do; `mask` says which bits of a row's number move its chunks."""
    tile = cuda.shared.array(0, np.float16)
    s, weights = cuda.local.array(N_SCORES, float32), cuda.local.array(N_PAIRS, uint32)
    out, shrink = cuda.local.array(N_OUT, float32), cuda.local.array(4, float32)
    top, total = cuda.local.array(4, float32), cuda.local.array(4, float32)
    lane, warp = int32(cuda.threadIdx.x & 31), int32(cuda.threadIdx.x >> 5)
    head, first_row, n = cuda.blockIdx.y, ROWS * cuda.blockIdx.x, int32(k.shape[1])
    for j in range(N_OUT):
        out[j] = float32(0)
    for r in range(4):
        top[r], total[r] = float32(-math.inf), float32(0)
    copy_rows(tile, 0, q, head, first_row, ROWS, mask)
    copy_rows(tile, FIRST, k, head, 0, KEYS, mask)
    copy_rows(tile, FIRST + KEYS * SIZE, v, head, 0, KEYS, mask)
    ptx.cp_async_commit()
    queries = place(WARP_ROWS * warp + (lane & 15), (lane >> 4) << 3, mask)
    keys = place((lane & 7) + ((lane >> 4) << 3), ((lane >> 3) & 1) << 3, mask)
    values = place(lane & 15, (lane >> 4) << 3, mask)
    stage = int32(FIRST)
    first = int32(0)
    while first < n:
        first = int32(first + KEYS)
        ptx.cp_async_wait_all()
        cuda.syncthreads()  # this stage has arrived for all, and all are done with the other
        other = int32(2 * FIRST + STAGE - stage)
        if first < n:
            copy_rows(tile, other, k, head, first, KEYS, mask)
            copy_rows(tile, other + KEYS * SIZE, v, head, first, KEYS, mask)
        ptx.cp_async_commit()
        score(tile, queries, keys + stage, s)
        grown = weigh(s, weights, top, total, shrink)
        if cuda.any_sync(0xFFFFFFFF, grown):
            rescale(out, shrink)
        mix(tile, weights, values + stage + KEYS * SIZE, out)
        stage = other
    write(dst, head, first_row + WARP_ROWS * warp + (lane >> 2), 2 * (lane & 3), out, total)


@cuda.jit(launch_bounds=(THREADS, 2))
def flash_row_major(q, k, v, dst):
    """The baseline: rows of 256 bytes, so ldmatrix finds the eight rows of a matrix in the same banks."""
    attend(q, k, v, dst, 0)


@cuda.jit(launch_bounds=(THREADS, 2))
def flash_swizzled(q, k, v, dst):
    """Changed: the chunks of a row are permuted by XOR, and the eight rows lie in all banks."""
    attend(q, k, v, dst, 7)
