"""Attention on Tensor Cores: one kernel, the scores in registers, keys and values a tile ahead.

Menu: `scores_mma`, `softmax_wide` and `values_mma` (three kernels, the scores in global memory),
`flash_row_major` (one kernel; its tiles lie row after row, so the eight rows of a matrix share their banks),
`flash_swizzled` (the 16-byte chunks of a row are permuted by XOR with the row's number).

`q`, `k`, `v` and `dst` are float16 of shape (heads, n, 128), `s` and `p` (heads, n, n), n a multiple of 128.
Launch with `THREADS` threads, `grid_of(q)` blocks (`scores_mma`: `grid_of_scores(q)`) and `SHARED_BYTES`
(`scores_mma`, `values_mma`: `PAIR_BYTES`) of dynamic shared memory, more than 48 KB
(`ptx.allow_dynamic_shared`); `softmax_wide` as `attention.softmax`. Needs sm_80. References: those of
`lanewise.kernels.attention`.

A block holds 128 query rows, a warp 32 of them, as two tiles of 16: so each matrix of keys and values that a
warp loads is used twice, and no softmax crosses a warp. In an accumulator of m16n8k16 lane l holds columns
2 (l % 4) and the next of rows l // 4 and l // 4 + 8. Two accumulators side by side, packed to halves, are the
A operand of the next product: the weights never leave their lanes.
"""

import math

import numpy as np
from numba import cuda, float32, int32, uint32

from lanewise import ptx
from lanewise.kernels.attention import warp_max, warp_sum

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
PAIR_BYTES = 2 * 2 * ROWS * SIZE  # two tiles of 128 rows
SWIZZLE = 7

CHUNK_STEP = 16  # halves: two chunks, the depth of one m16n8k16
MATRIX_ROWS = 16 * SIZE  # halves: 16 rows
N_SCORES = 2 * KEYS // 8 * 4  # of a lane: two tiles of rows, KEYS / 8 accumulators of four
N_PAIRS = N_SCORES // 2
N_OUT = 2 * SIZE // 8 * 4
HALF_SCORES = N_SCORES // 2
HALF_PAIRS = N_PAIRS // 2
HALF_OUT = N_OUT // 2
SCALE = 1 / math.sqrt(SIZE)
LOG2_SCALE = math.log2(math.e) / math.sqrt(SIZE)  # exp(s / sqrt(128)) = 2 ** (s * LOG2_SCALE)
SLACK = 8.0  # the weights may grow to 2 ** 8 before the sums are rescaled


def grid_of(q: np.ndarray) -> tuple[int, int]:
    """The grid that gives every 128 query rows a block, x first.

    >>> grid_of(np.zeros((2, 256, 128), np.float16))
    (2, 2)
    """
    return q.shape[1] // ROWS, len(q)


def grid_of_scores(q: np.ndarray) -> tuple[int, int, int]:
    """The grid that gives every 128 query rows and 64 keys a block, x first.

    >>> grid_of_scores(np.zeros((2, 256, 128), np.float16))
    (2, 2, 4)
    """
    return q.shape[1] // ROWS, len(q), q.shape[1] // KEYS


@cuda.jit(device=True)
def place(row, col, mask):
    """Where the chunk of a tile that starts at (row, col) lies: its number is changed by XOR with the row's.

    mask 0 leaves it in place; mask 7 spreads eight rows over all banks.
    """
    return int32(SIZE * row + (col ^ ((row & mask) << 3)))


@cuda.jit(device=True)
def copy_rows(tile, start, src, head, first, first_col, n_rows, mask):
    """Start the copy of rows, 128 columns each, into the tile at `start`."""
    row, col = int32(cuda.threadIdx.x >> 4), int32((cuda.threadIdx.x & 15) << 3)
    put = start + place(row, col, mask)
    for step in range(0, n_rows, AT_ONCE):
        ptx.cp_async_cg_16(tile, put + SIZE * step, src, (head, first + row + step, first_col + col))


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
def mix(tile, upper, lower, values, out):
    """O += P V of 16 keys; `upper` and `lower` are the weights of the warp's two tiles of rows."""
    for col in range(0, SIZE, 16):
        b0, b1, b2, b3 = ptx.ldmatrix_x4_trans(tile, values ^ col)
        multiply(out, col // 2, upper, b0, b1)
        multiply(out, col // 2 + 4, upper, b2, b3)
        multiply(out, HALF_OUT + col // 2, lower, b0, b1)
        multiply(out, HALF_OUT + col // 2 + 4, lower, b2, b3)


@cuda.jit(device=True)
def four(pairs, at):
    """Four registers of an array, an A operand."""
    return pairs[at], pairs[at + 1], pairs[at + 2], pairs[at + 3]


@cuda.jit(device=True)
def keep_row(acc, half, r, factor, mask):
    """Put what a lane holds of its row `r` of four, times `factor`, into the tile of queries.

    `half` of `acc` is one tile of rows. The warp has read its queries: their rows are free, and its own.
    """
    words = cuda.shared.array(0, uint32)  # the tile, as words
    lane, warp = int32(cuda.threadIdx.x & 31), int32(cuda.threadIdx.x >> 5)
    put = (place(WARP_ROWS * warp + 8 * r + (lane >> 2), 0, mask) >> 1) + (lane & 3)
    for j in range(0, half, 4):
        at = half * (r // 2) + 2 * (r % 2) + j
        words[uint32(put ^ j)] = ptx.pack_half2(acc[at] * factor, acc[at + 1] * factor)


@cuda.jit(device=True)
def write_rows(tile, dst, head, first_row, first_col, n_cols, mask):
    """Carry the warp's rows out, 16 bytes a lane."""
    lane, warp = int32(cuda.threadIdx.x & 31), int32(cuda.threadIdx.x >> 5)
    cuda.syncwarp()  # all lanes have put their parts of the rows into the tile
    for step in range(lane, WARP_ROWS * n_cols // 8, 32):
        row, col = WARP_ROWS * warp + step // (n_cols // 8), 8 * (step % (n_cols // 8))
        a, b, c, d, e, f, g, h = ptx.load8(tile, place(row, col, mask))
        ptx.store8(dst, (head, first_row + row, first_col + col), a, b, c, d, e, f, g, h)


@cuda.jit(device=True)
def attend(q, k, v, dst, mask):
    """What both rungs do; `mask` says which bits of a row's number move its chunks."""
    if q.shape[2] != SIZE or k.shape[2] != SIZE or v.shape[2] != SIZE or dst.shape[2] != SIZE:
        return  # nobody's case; but a width that the compiler knows makes the copies' addresses constants
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
    copy_rows(tile, 0, q, head, first_row, 0, ROWS, mask)
    copy_rows(tile, FIRST, k, head, 0, 0, KEYS, mask)
    copy_rows(tile, FIRST + KEYS * SIZE, v, head, 0, 0, KEYS, mask)
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
            copy_rows(tile, other, k, head, first, 0, KEYS, mask)
            copy_rows(tile, other + KEYS * SIZE, v, head, first, 0, KEYS, mask)
        ptx.cp_async_commit()
        score(tile, queries, keys + stage, s)
        grown = weigh(s, weights, top, total, shrink)
        if cuda.any_sync(0xFFFFFFFF, grown):
            rescale(out, shrink)
        for key in range(0, KEYS, 16):
            upper, lower = four(weights, key // 4), four(weights, HALF_PAIRS + key // 4)
            mix(tile, upper, lower, values + (stage + KEYS * SIZE + SIZE * key), out)
        stage = other
    for r in range(4):
        t = total[r]
        t += cuda.shfl_xor_sync(0xFFFFFFFF, t, 1)
        t += cuda.shfl_xor_sync(0xFFFFFFFF, t, 2)
        keep_row(out, HALF_OUT, r, float32(1) / t, mask)
    write_rows(tile, dst, head, first_row, 0, SIZE, mask)


@cuda.jit(launch_bounds=(THREADS, 2))
def scores_mma(q, k, s):
    """The baseline, first of three: `attention.scores` on Tensor Cores."""
    tile = cuda.shared.array(0, np.float16)
    acc = cuda.local.array(N_SCORES, float32)
    lane, warp = int32(cuda.threadIdx.x & 31), int32(cuda.threadIdx.x >> 5)
    head, first_row, first = cuda.blockIdx.y, ROWS * cuda.blockIdx.x, KEYS * cuda.blockIdx.z
    copy_rows(tile, 0, q, head, first_row, 0, ROWS, SWIZZLE)
    copy_rows(tile, FIRST, k, head, first, 0, KEYS, SWIZZLE)
    ptx.cp_async_wait_all()
    cuda.syncthreads()  # both tiles have arrived for all
    queries = place(WARP_ROWS * warp + (lane & 15), (lane >> 4) << 3, SWIZZLE)
    keys = place((lane & 7) + ((lane >> 4) << 3), ((lane >> 3) & 1) << 3, SWIZZLE)
    score(tile, queries, FIRST + keys, acc)
    cuda.syncwarp()  # all lanes have read the warp's queries
    for r in range(4):
        keep_row(acc, HALF_SCORES, r, float32(SCALE), SWIZZLE)
    write_rows(tile, s, head, first_row, first, KEYS, SWIZZLE)


@cuda.jit(device=True)
def load_scores(s, head, row, col, held):
    """Eight neighbouring scores as float32."""
    a, b, c, d, e, f, g, h = ptx.load8(s, (head, row, col))
    held[0], held[1], held[2], held[3] = float32(a), float32(b), float32(c), float32(d)
    held[4], held[5], held[6], held[7] = float32(e), float32(f), float32(g), float32(h)


@cuda.jit
def softmax_wide(s, p):
    """The baseline, second: `attention.softmax`, 16 bytes a lane."""
    held = cuda.local.array(8, float32)
    lane, head, n = cuda.threadIdx.x, cuda.blockIdx.y, s.shape[2]
    row = cuda.blockDim.y * cuda.blockIdx.x + cuda.threadIdx.y
    top, total = float32(-math.inf), float32(0)
    for col in range(8 * lane, n, 8 * 32):
        load_scores(s, head, row, col, held)
        for j in range(8):
            top = max(top, held[j])
    top = warp_max(top)
    for col in range(8 * lane, n, 8 * 32):
        load_scores(s, head, row, col, held)
        for j in range(8):
            total += math.exp(held[j] - top)
    inverse = float32(1) / warp_sum(total)
    for col in range(8 * lane, n, 8 * 32):
        load_scores(s, head, row, col, held)
        for j in range(8):
            held[j] = math.exp(held[j] - top) * inverse
        a, b, c, d = np.float16(held[0]), np.float16(held[1]), np.float16(held[2]), np.float16(held[3])
        e, f, g, h = np.float16(held[4]), np.float16(held[5]), np.float16(held[6]), np.float16(held[7])
        ptx.store8(p, (head, row, col), a, b, c, d, e, f, g, h)


@cuda.jit(launch_bounds=(THREADS, 2))
def values_mma(p, v, dst):
    """The baseline, third: `attention.values` on Tensor Cores."""
    tile = cuda.shared.array(0, np.float16)
    out = cuda.local.array(N_OUT, float32)
    lane, warp = int32(cuda.threadIdx.x & 31), int32(cuda.threadIdx.x >> 5)
    head, first_row = cuda.blockIdx.y, ROWS * cuda.blockIdx.x
    weights = place(WARP_ROWS * warp + (lane & 15), (lane >> 4) << 3, SWIZZLE)
    values = FIRST + place(lane & 15, (lane >> 4) << 3, SWIZZLE)
    for j in range(N_OUT):
        out[j] = float32(0)
    for first in range(0, v.shape[1], ROWS):
        copy_rows(tile, 0, p, head, first_row, first, ROWS, SWIZZLE)
        copy_rows(tile, FIRST, v, head, first, 0, ROWS, SWIZZLE)
        ptx.cp_async_wait_all()
        cuda.syncthreads()  # both tiles have arrived for all
        for step in range(0, SIZE, CHUNK_STEP):
            upper = ptx.ldmatrix_x4(tile, weights ^ step)
            lower = ptx.ldmatrix_x4(tile, (weights + MATRIX_ROWS) ^ step)
            mix(tile, upper, lower, values + SIZE * step, out)
        cuda.syncthreads()  # all are done before the tiles change
    for r in range(4):
        keep_row(out, HALF_OUT, r, float32(1), SWIZZLE)
    write_rows(tile, dst, head, first_row, 0, SIZE, SWIZZLE)


@cuda.jit(launch_bounds=(THREADS, 2))
def flash_row_major(q, k, v, dst):
    """Changed from these three: one kernel; the scores stay in registers.

    The tiles' rows of 256 bytes all start in bank 0.
    """
    attend(q, k, v, dst, 0)


@cuda.jit(launch_bounds=(THREADS, 2))
def flash_swizzled(q, k, v, dst):
    """Changed: the chunks of a row are permuted by XOR, and the eight rows lie in all banks."""
    attend(q, k, v, dst, SWIZZLE)
