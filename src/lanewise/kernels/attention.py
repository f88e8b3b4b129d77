"""Attention: softmax(Q K^T / sqrt(128)) V, with the scores in global memory, and without.

Menu: three kernels with the scores in global memory, `scores`, `softmax`, `values`; then one kernel that
never stores them, `attention_fused`. On Tensor Cores: `lanewise.kernels.attention_flash`.

`q`, `k`, `v` and `dst` are float16 of shape (heads, n, 128), for any n; `s` and `p` are (heads, n, n),
float16 too. Arithmetic is in float32. Launch with these grids and blocks:

- `scores`: `grid_of_scores(q)`, `TILE_BLOCK`; `values`: `grid_of_values(q)`, `TILE_BLOCK`
- `softmax`: `grid_of_rows(q)`, `BLOCK`; `attention_fused`: `grid_of(q)`, `BLOCK`

References: `reference_scores`, `reference_softmax`, `reference_values`; of the whole, `reference`.

The online softmax: with the maximum m and the sum l of what has been seen, and the next scores s,
m' = max(m, s), p = exp(s - m'), a = exp(m - m'), l' = a l + sum p, and the output so far is multiplied by a.
"""

import math

import numpy as np
from numba import cuda, float32

SIZE = 128  # of a head: the columns of Q, K, V
SCALE = 1 / math.sqrt(SIZE)

TILE = 32
PADDED = TILE + 1
TILE_BLOCK = (TILE, TILE)

LANES = 32
WARPS = 8
BLOCK = (LANES, WARPS)
PER_WARP = 4  # query rows of attention_fused
ROWS = PER_WARP * WARPS
KEYS = LANES  # of a tile: lane = key
PARTS = SIZE // LANES  # columns of a row that one lane keeps
PITCH = SIZE + 2  # halves; 65 words, an odd number


def reference_scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """What `scores` writes: Q K^T / sqrt(128), float16."""
    products = [a.astype(np.float32) @ b.astype(np.float32).T for a, b in zip(q, k, strict=True)]
    return (np.stack(products) * np.float32(SCALE)).astype(np.float16)


def reference_softmax(s: np.ndarray) -> np.ndarray:
    """What `softmax` writes: the softmax of every row, float16."""
    return np.stack([_softmax(head.astype(np.float32)) for head in s]).astype(np.float16)


def reference_values(p: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What `values` writes: P V, float16."""
    products = [a.astype(np.float32) @ b.astype(np.float32) for a, b in zip(p, v, strict=True)]
    return np.stack(products).astype(np.float16)


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What attention writes to `dst`: float16 of q's shape; nothing is rounded to float16 on the way."""
    dst = np.empty(q.shape, np.float16)
    for head in range(len(q)):
        keys, held = k[head].astype(np.float32).T, v[head].astype(np.float32)
        for row in range(0, q.shape[1], 512):  # so many that a strip of scores stays in the cache
            rows = q[head, row : row + 512].astype(np.float32) * np.float32(SCALE)
            dst[head, row : row + 512] = _softmax(rows @ keys) @ held
    return dst


def _softmax(s: np.ndarray) -> np.ndarray:
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def grid_of_scores(q: np.ndarray) -> tuple[int, int, int]:
    """The grid that covers the scores of `q` with tiles, x first.

    >>> grid_of_scores(np.zeros((2, 65, 128), np.float16))
    (3, 3, 2)
    """
    tiles = -(-q.shape[1] // TILE)
    return tiles, tiles, len(q)


def grid_of_rows(q: np.ndarray) -> tuple[int, int]:
    """The grid that gives every row of the scores a warp, x first.

    >>> grid_of_rows(np.zeros((2, 65, 128), np.float16))
    (9, 2)
    """
    return -(-q.shape[1] // WARPS), len(q)


def grid_of_values(q: np.ndarray) -> tuple[int, int, int]:
    """The grid that covers the output with tiles, x first.

    >>> grid_of_values(np.zeros((2, 65, 128), np.float16))
    (4, 3, 2)
    """
    return SIZE // TILE, -(-q.shape[1] // TILE), len(q)


def grid_of(q: np.ndarray) -> tuple[int, int]:
    """The grid that gives every 32 query rows a block, x first.

    >>> grid_of(np.zeros((2, 65, 128), np.float16))
    (3, 2)
    """
    return -(-q.shape[1] // ROWS), len(q)


# --- The scores in global memory.


@cuda.jit
def scores(q, k, s):
    """The baseline, first of three: every score is written to global memory."""
    q_tile = cuda.shared.array((TILE, PADDED), float32)
    k_tile = cuda.shared.array((TILE, PADDED), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    head, last = cuda.blockIdx.z, q.shape[1] - 1
    key = min(TILE * cuda.blockIdx.x + y, last)
    acc = float32(0)
    for first in range(0, SIZE, TILE):
        q_tile[y, x] = q[head, min(row, last), first + x]
        k_tile[y, x] = k[head, key, first + x]
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for step in range(TILE):
            acc += q_tile[y, step] * k_tile[x, step]
        cuda.syncthreads()  # everyone is done before the tiles change
    if row <= last and col <= last:
        s[head, row, col] = acc * float32(SCALE)


@cuda.jit
def softmax(s, p):
    """The baseline, second: every score is read, and a weight is written in its place. A warp per row."""
    lane = cuda.threadIdx.x
    row, head = WARPS * cuda.blockIdx.x + cuda.threadIdx.y, cuda.blockIdx.y
    if row < s.shape[1]:
        top = float32(-math.inf)
        for col in range(lane, s.shape[2], LANES):
            top = max(top, float32(s[head, row, col]))
        top = warp_max(top)
        total = float32(0)
        for col in range(lane, s.shape[2], LANES):
            total += math.exp(float32(s[head, row, col]) - top)
        total = warp_sum(total)
        for col in range(lane, s.shape[2], LANES):
            p[head, row, col] = math.exp(float32(s[head, row, col]) - top) / total


@cuda.jit
def values(p, v, dst):
    """The baseline, third: every weight is read again, for the mean of the values."""
    p_tile = cuda.shared.array((TILE, PADDED), float32)
    v_tile = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    head, n = cuda.blockIdx.z, v.shape[1]
    acc = float32(0)
    for first in range(0, n, TILE):
        p_tile[y, x] = p[head, row, first + x] if row < n and first + x < n else float32(0)
        v_tile[y, x] = v[head, min(first + y, n - 1), col]
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for step in range(TILE):
            acc += p_tile[y, step] * v_tile[step, x]
        cuda.syncthreads()  # everyone is done before the tiles change
    if row < n:
        dst[head, row, col] = acc


# --- The scores in registers.


@cuda.jit(device=True)
def warp_max(value):
    """The largest value of a warp, in all its lanes."""
    for step in (16, 8, 4, 2, 1):
        value = max(value, cuda.shfl_xor_sync(0xFFFFFFFF, value, step))
    return value


@cuda.jit(device=True)
def warp_sum(value):
    """The sum over a warp, in all its lanes."""
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, step)
    return value


@cuda.jit
def attention_fused(q, k, v, dst):
    """Changed: one kernel; a tile of scores lives in registers, and the softmax is brought up to date.

    A warp owns four query rows. Lane = key for the scores, lane = column for the values.
    """
    q_tile = cuda.shared.array((ROWS, SIZE), float32)
    k_tile = cuda.shared.array((KEYS, PITCH), np.float16)
    v_tile = cuda.shared.array((KEYS, SIZE), np.float16)
    acc = cuda.local.array((PER_WARP, PARTS), float32)
    weight = cuda.local.array(PER_WARP, float32)
    top, total = cuda.local.array(PER_WARP, float32), cuda.local.array(PER_WARP, float32)
    lane, warp, head, n = cuda.threadIdx.x, cuda.threadIdx.y, cuda.blockIdx.y, q.shape[1]
    first_row = ROWS * cuda.blockIdx.x + PER_WARP * warp
    for r in range(PER_WARP):
        top[r], total[r] = float32(-math.inf), float32(0)
        for part in range(PARTS):
            acc[r, part] = float32(0)
            col = LANES * part + lane
            held = float32(q[head, min(first_row + r, n - 1), col])
            q_tile[PER_WARP * warp + r, col] = held * float32(SCALE)
    for first in range(0, n, KEYS):
        for row in range(warp, KEYS, WARPS):
            for col in range(lane, SIZE, LANES):
                k_tile[row, col] = k[head, min(first + row, n - 1), col]
                v_tile[row, col] = v[head, min(first + row, n - 1), col]
        cuda.syncthreads()  # both tiles are full before anyone reads a key of another warp
        for r in range(PER_WARP):
            weight[r] = float32(0)
        for col in range(SIZE):
            held = float32(k_tile[lane, col])
            for r in range(PER_WARP):
                weight[r] += q_tile[PER_WARP * warp + r, col] * held
        for r in range(PER_WARP):
            s = weight[r] if first + lane < n else float32(-math.inf)
            new_top = max(top[r], warp_max(s))
            shrink, weight[r] = math.exp(top[r] - new_top), math.exp(s - new_top)
            top[r], total[r] = new_top, total[r] * shrink + warp_sum(weight[r])
            for part in range(PARTS):
                acc[r, part] *= shrink
        for key in range(KEYS):
            for part in range(PARTS):
                held = float32(v_tile[key, LANES * part + lane])
                for r in range(PER_WARP):
                    acc[r, part] += cuda.shfl_sync(0xFFFFFFFF, weight[r], key) * held
        cuda.syncthreads()  # everyone is done before the tiles change
    for r in range(PER_WARP):
        if first_row + r < n:
            for part in range(PARTS):
                dst[head, first_row + r, LANES * part + lane] = acc[r, part] / total[r]
