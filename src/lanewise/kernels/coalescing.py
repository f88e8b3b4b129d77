"""Coalescing: what the addresses of a warp's 32 lanes cost in global memory.

Menu of patterns, each doubling its elements: `scale` (neighbours), `scale_every` and `scale_passes` (a
stride between lanes), `gather_every` (a stride in the load only), `scale_from` (a base that is off by
some elements), `scale_swapped` (lanes in another order), `repeat` (all lanes on one element),
`scale_columns` (a matrix walked down).

Menu of copies: `copy`, `copy2`, `copy4` (4, 8 and 16 bytes per lane), `copy4_ahead` (four loads in
flight). Other streams: `fill4`, `triad4` and `sum4` (write only, two reads and a write, read only).

Menu of the cache that looks good: `sum_columns` (lanes on neighbours) and `sum_runs` (each lane in a run
of its own, whose sectors the L1 keeps).

All arrays are float32. Launch with blocks of any size, `THREADS` of them as a rule, and `grid_of(n)`
blocks for n threads. Sizes are free unless a docstring says otherwise.
"""

import numpy as np
from numba import cuda, float32

from lanewise import ptx

THREADS = 256
AHEAD = 4  # loads in flight per thread of copy4_ahead
BLOCK_2D = (32, 8)


def reference(src: np.ndarray) -> np.ndarray:
    """What the patterns write where they write: the doubled elements."""
    return src * np.float32(2)


def reference_every(src: np.ndarray, dst: np.ndarray, stride: int) -> np.ndarray:
    """What `scale_every` leaves in `dst`: every stride-th element doubled, the others as they were."""
    left = dst.copy()
    left[::stride] = reference(src[::stride])
    return left


def reference_runs(src: np.ndarray, run: int) -> np.ndarray:
    """What `sum_runs` writes: the sum of each run, added in order."""
    return np.add.accumulate(src.reshape(-1, run), axis=1)[:, -1].copy()


def reference_columns(src: np.ndarray, n_rows: int) -> np.ndarray:
    """What `sum_columns` writes: `src` as n_rows rows, added in order."""
    total = np.zeros(len(src) // n_rows, np.float32)
    for row in src.reshape(n_rows, -1):
        total += row
    return total


def grid_of(n: int, threads: int = THREADS) -> int:
    """The blocks that hold n threads.

    >>> grid_of(1000)
    4
    """
    return -(-n // threads)


# -- patterns --------------------------------------------------------------------------------------


@cuda.jit
def scale(src, dst):
    """The baseline: 32 lanes on 32 neighbours. n threads."""
    i = cuda.grid(1)
    if i < src.size:
        dst[i] = float32(2) * src[i]


@cuda.jit
def scale_every(src, dst, stride):
    """Changed: a stride between lanes, and the elements between are left. ceil(n / stride) threads."""
    i = cuda.grid(1) * stride
    if i < src.size:
        dst[i] = float32(2) * src[i]


@cuda.jit
def scale_passes(src, dst, stride):
    """Changed: further passes (grid y, 0 to stride - 1) take the elements between. The work is `scale`'s."""
    i = cuda.grid(1) * stride + cuda.blockIdx.y
    if i < src.size:
        dst[i] = float32(2) * src[i]


@cuda.jit
def gather_every(src, dst, stride):
    """Changed: one pass, and only the load has the stride. `src` has stride times the size of `dst`."""
    i = cuda.grid(1)
    if i < dst.size:
        dst[i] = float32(2) * src[i * stride]


@cuda.jit
def scale_from(src, dst, start):
    """Changed: neighbours again, but the load starts `start` elements into `src`."""
    i = cuda.grid(1)
    if i < dst.size:
        dst[i] = float32(2) * src[i + start]


@cuda.jit
def scale_swapped(src, dst, mask):
    """Changed: `scale` with the lanes in another order: `mask`, below 32, is XORed to each number."""
    i = cuda.grid(1) ^ mask
    if i < src.size:
        dst[i] = float32(2) * src[i]


@cuda.jit
def repeat(src, dst):
    """Changed: the 32 lanes of a warp read one element. `dst` has 32 times the size of `src`."""
    i = cuda.grid(1)
    if i < dst.size:
        dst[i] = float32(2) * src[i >> 5]


@cuda.jit
def scale_columns(src, dst):
    """Changed: lanes go down the columns of a matrix. Grid x covers the rows, grid y the columns."""
    row, col = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        dst[row, col] = float32(2) * src[row, col]


# -- copies ----------------------------------------------------------------------------------------


@cuda.jit
def copy(src, dst):
    """The baseline: 4 bytes per lane. n threads."""
    i = cuda.grid(1)
    if i < src.size:
        dst[i] = src[i]


@cuda.jit
def copy2(src, dst):
    """Changed: 8 bytes per lane. n / 2 threads; n a multiple of 2."""
    i = 2 * cuda.grid(1)
    if i < src.size:
        a, b = ptx.load2(src, i)
        ptx.store2(dst, i, a, b)


@cuda.jit
def copy4(src, dst):
    """Changed: 16 bytes per lane. n / 4 threads; n a multiple of 4."""
    i = 4 * cuda.grid(1)
    if i < src.size:
        a, b, c, d = ptx.load4(src, i)
        ptx.store4(dst, i, a, b, c, d)


@cuda.jit
def copy4_ahead(src, dst):
    """Changed: four loads before the first store. n / 16 threads; n a multiple of 16 times the block."""
    step = 4 * cuda.blockDim.x
    i = AHEAD * step * cuda.blockIdx.x + 4 * cuda.threadIdx.x
    if i < src.size:
        a0, b0, c0, d0 = ptx.load4(src, i)
        a1, b1, c1, d1 = ptx.load4(src, i + step)
        a2, b2, c2, d2 = ptx.load4(src, i + 2 * step)
        a3, b3, c3, d3 = ptx.load4(src, i + 3 * step)
        ptx.store4(dst, i, a0, b0, c0, d0)
        ptx.store4(dst, i + step, a1, b1, c1, d1)
        ptx.store4(dst, i + 2 * step, a2, b2, c2, d2)
        ptx.store4(dst, i + 3 * step, a3, b3, c3, d3)


# -- other streams ---------------------------------------------------------------------------------


@cuda.jit
def fill4(dst, number):
    """Changed from `copy4`: writes only. n / 4 threads; n a multiple of 4."""
    i = 4 * cuda.grid(1)
    if i < dst.size:
        ptx.store4(dst, i, number, number, number, number)


@cuda.jit
def triad4(left, right, dst, factor):
    """Changed from `copy4`: two reads, left + factor * right. n / 4 threads; n a multiple of 4."""
    i = 4 * cuda.grid(1)
    if i < dst.size:
        a0, a1, a2, a3 = ptx.load4(left, i)
        b0, b1, b2, b3 = ptx.load4(right, i)
        ptx.store4(dst, i, a0 + factor * b0, a1 + factor * b1, a2 + factor * b2, a3 + factor * b3)


@cuda.jit
def sum4(src, dst):
    """Changed from `copy4`: reads only; each thread adds up every `dst.size`-th group of 4.

    dst.size threads; n a multiple of 4.
    """
    thread, total = cuda.grid(1), float32(0)
    for i in range(4 * thread, src.size, 4 * dst.size):
        a, b, c, d = ptx.load4(src, i)
        total += (a + b) + (c + d)
    dst[thread] = total


# -- the cache that looks good ---------------------------------------------------------------------


@cuda.jit
def sum_columns(src, dst):
    """The baseline: `dst.size` columns are added up, a lane each; no sector is read twice."""
    i, total = cuda.grid(1), float32(0)
    if i < dst.size:
        for k in range(i, src.size, dst.size):
            total += src[k]
        dst[i] = total


@cuda.jit
def sum_runs(src, dst, run):
    """Changed: each lane adds up `run` neighbours; the rest of a sector is in L1 when it comes to it."""
    i, total = cuda.grid(1), float32(0)
    if i < dst.size:
        for k in range(i * run, (i + 1) * run):
            total += src[k]
        dst[i] = total
