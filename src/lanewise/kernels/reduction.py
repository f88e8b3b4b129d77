"""Reduction: the sum of an array, from a tree whose steps collide to one read at the speed of memory.

Menu, sums of tiles, one float32 for each block: `sum_divergent` (every 2 s-th thread adds), `sum_interleaved`
(the first threads add, words 2 s apart), `sum_sequential` (the first threads add neighbouring words),
`sum_shuffled` (registers within a warp). Launch with `grid_of(src, block)` blocks of 32, 64, .. or 1,024
threads; tile `b` is `src[b * block : (b + 1) * block]`, the last may be short. Reference: `reference_tiles`.

Sums of the whole array: `sum_strided` (each thread first adds many elements; one sum for each block),
`sum_whole` (16 bytes a load, eight loads in flight, and the last block to finish adds the blocks' sums).
Launch them with any grid of `BLOCK` threads. References: `reference_strided`, `reference_partials`,
`reference`.

One step of a tree alone, to see what it costs: `step_interleaved`, `step_sequential`, on whole tiles of
`block` elements. References: `reference_interleaved`, `reference_sequential`.

`src` is a float32 vector of any length. Floating-point sums depend on the order of the additions: here it is
fixed by the launch, so that equal launches give equal bits.
"""

import numpy as np
from numba import cuda, float32, int32

from lanewise import ptx

BLOCK = 256  # threads of a block in the sums of the whole array
WORDS = 1024  # of shared memory: the largest block
WARPS = 32  # of the largest block
LANES = 32
FULL_WARP = 0xFFFFFFFF
LOADS = 8  # of 16 bytes, that each thread of `sum_whole` has in flight
CHUNK = 4 * LOADS * BLOCK  # elements that a block of `sum_whole` adds in one round


def grid_of(src: np.ndarray, block: int = BLOCK) -> int:
    """The blocks that cover `src` with one element for each thread.

    >>> grid_of(np.zeros(1000, np.float32), 256)
    4
    """
    return -(-src.size // block)


def reference(src: np.ndarray) -> np.ndarray:
    """The sum of all elements, rounded once: 1 float32."""
    return np.array([src.sum(dtype=np.float64)], np.float32)


def reference_tiles(src: np.ndarray, block: int) -> np.ndarray:
    """The sum of each tile of `block` elements."""
    return np.add.reduceat(src, np.arange(0, src.size, block), dtype=np.float64).astype(np.float32)


def reference_strided(src: np.ndarray, grid: int) -> np.ndarray:
    """The sums of the blocks of `sum_strided`, which take tiles in turn."""
    tiles = np.zeros(-(-grid_of(src) // grid) * grid)
    tiles[: grid_of(src)] = reference_tiles(src, BLOCK)
    return tiles.reshape(-1, grid).sum(axis=0).astype(np.float32)


def reference_partials(src: np.ndarray, grid: int) -> np.ndarray:
    """The sums of the blocks of `sum_whole`, which take chunks in turn; block 0 has the last few elements."""
    whole = src.size // 4 * 4
    sums = np.zeros((-(-src.size // CHUNK) // grid + 1) * grid)
    if whole:
        chunks = np.add.reduceat(src[:whole], np.arange(0, whole, CHUNK), dtype=np.float64)
        sums[: chunks.size] = chunks
    sums[0] += src[whole:].sum(dtype=np.float64)
    return sums.reshape(-1, grid).sum(axis=0).astype(np.float32)


def reference_interleaved(src: np.ndarray, step: int) -> np.ndarray:
    """`src` after every 2 * step-th element has got the one `step` further on."""
    dst = src.copy()
    dst[:: 2 * step] += dst[step :: 2 * step]
    return dst


def reference_sequential(src: np.ndarray, half: int, block: int) -> np.ndarray:
    """`src` after the first `half` elements of each tile have got the `half` that follow."""
    tiles = src.reshape(-1, block).copy()
    tiles[:, :half] += tiles[:, half : 2 * half]
    return tiles.ravel()


@cuda.jit(device=True)
def add_interleaved(s, step):
    """One step: thread t adds word 2 * step * t + step to word 2 * step * t."""
    index = 2 * step * cuda.threadIdx.x
    if index < cuda.blockDim.x:
        s[index] += s[index + step]


@cuda.jit(device=True)
def add_sequential(s, half):
    """One step: thread t of the first `half` adds word t + half to word t."""
    thread = cuda.threadIdx.x
    if thread < half:
        s[thread] += s[thread + half]


@cuda.jit
def sum_divergent(src, dst):
    """The baseline: every 2 s-th thread adds its neighbour s away, so all warps stay busy for few lanes."""
    s = cuda.shared.array(WORDS, float32)
    thread, i = cuda.threadIdx.x, cuda.grid(1)
    s[thread] = src[i] if i < src.size else float32(0)
    step = 1
    while step < cuda.blockDim.x:
        cuda.syncthreads()  # the step before must be complete in all warps
        if thread % (2 * step) == 0:
            s[thread] += s[thread + step]
        step *= 2
    if thread == 0:
        dst[cuda.blockIdx.x] = s[0]


@cuda.jit
def sum_interleaved(src, dst):
    """Changed: the first threads do the adding; the words that neighbours touch move apart."""
    s = cuda.shared.array(WORDS, float32)
    thread, i = cuda.threadIdx.x, cuda.grid(1)
    s[thread] = src[i] if i < src.size else float32(0)
    step = 1
    while step < cuda.blockDim.x:
        cuda.syncthreads()  # the step before must be complete in all warps
        add_interleaved(s, step)
        step *= 2
    if thread == 0:
        dst[cuda.blockIdx.x] = s[0]


@cuda.jit
def sum_sequential(src, dst):
    """Changed: neighbouring threads add neighbouring words; the other half lies behind them."""
    s = cuda.shared.array(WORDS, float32)
    thread, i = cuda.threadIdx.x, cuda.grid(1)
    s[thread] = src[i] if i < src.size else float32(0)
    half = cuda.blockDim.x // 2
    while half > 0:
        cuda.syncthreads()  # the step before must be complete in all warps
        add_sequential(s, half)
        half //= 2
    if thread == 0:
        dst[cuda.blockIdx.x] = s[0]


@cuda.jit(device=True)
def block_sum(value, of_warp):
    """The sum of all threads' values, in thread 0. `of_warp` is shared memory for one value for each warp."""
    thread = cuda.threadIdx.x
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(FULL_WARP, value, distance)
    if thread % LANES == 0:
        of_warp[thread // LANES] = value
    cuda.syncthreads()  # every warp has left its sum
    if thread < LANES:
        value = of_warp[thread] if thread < cuda.blockDim.x // LANES else float32(0)
        for distance in (16, 8, 4, 2, 1):
            value += cuda.shfl_down_sync(FULL_WARP, value, distance)
    return value


@cuda.jit
def sum_shuffled(src, dst):
    """Changed: lanes pass their sums through registers; shared memory holds one word for each warp."""
    of_warp = cuda.shared.array(WARPS, float32)
    i = cuda.grid(1)
    value = block_sum(src[i] if i < src.size else float32(0), of_warp)
    if cuda.threadIdx.x == 0:
        dst[cuda.blockIdx.x] = value


@cuda.jit
def sum_strided(src, dst):
    """Changed: each thread first adds elements a grid apart, so that the tree is paid once for many."""
    of_warp = cuda.shared.array(WARPS, float32)
    value = float32(0)
    for i in range(cuda.grid(1), src.size, cuda.gridsize(1)):
        value += src[i]
    value = block_sum(value, of_warp)
    if cuda.threadIdx.x == 0:
        dst[cuda.blockIdx.x] = value


@cuda.jit(device=True)
def thread_sum(src):
    """What this thread adds of `src`: `LOADS` times 16 bytes a round, and the ends."""
    n_vectors = src.size // 4
    a, b, c, d = float32(0), float32(0), float32(0), float32(0)
    vector = cuda.blockIdx.x * LOADS * BLOCK + cuda.threadIdx.x
    while vector + (LOADS - 1) * BLOCK < n_vectors:
        for k in range(LOADS):  # unrolled: all loads are issued before the first value is needed
            p, q, r, s = ptx.load4_nc(src, 4 * (vector + k * BLOCK))
            a, b, c, d = a + p, b + q, c + r, d + s
        vector += cuda.gridsize(1) * LOADS
    while vector < n_vectors:
        p, q, r, s = ptx.load4_nc(src, 4 * vector)
        a, b, c, d = a + p, b + q, c + r, d + s
        vector += BLOCK
    i = 4 * n_vectors + cuda.grid(1)
    return (a + b) + (c + d) + (src[i] if i < src.size else float32(0))


@cuda.jit
def sum_whole(src, partials, n_done, dst):
    """Changed: 16 bytes a load, several in flight; the block that finishes last adds the blocks' sums.

    `partials` has one float32 for each block, `dst` one in all. `n_done` is one uint32, 0 at first; it counts
    the finished blocks and is 0 again at the end, so the next launch can use it as it is.
    """
    of_warp = cuda.shared.array(WARPS, float32)
    is_last = cuda.shared.array(1, int32)
    thread, last = cuda.threadIdx.x, cuda.gridDim.x - 1
    value = block_sum(thread_sum(src), of_warp)
    if thread == 0:
        ptx.store_release(partials, cuda.blockIdx.x, value)
        cuda.threadfence()  # whoever sees this block counted sees its sum
        is_last[0] = cuda.atomic.inc(n_done, 0, last) == last  # counts up to `last`, then starts at 0
    cuda.syncthreads()  # all threads know whether to go on, and are done with `of_warp`
    if is_last[0]:
        value = float32(0)
        for i in range(thread, cuda.gridDim.x, BLOCK):
            value += ptx.load_acquire(partials, i)
        value = block_sum(value, of_warp)
        if thread == 0:
            dst[0] = value


@cuda.jit
def step_interleaved(src, dst, step):
    """The baseline of the steps: one of `sum_interleaved`, on whole tiles."""
    s = cuda.shared.array(WORDS, float32)
    thread, i = cuda.threadIdx.x, cuda.grid(1)
    s[thread] = src[i]
    cuda.syncthreads()  # the tile is full before words are added to others
    add_interleaved(s, step)
    cuda.syncthreads()  # all sums are there before other threads copy them out
    dst[i] = s[thread]


@cuda.jit
def step_sequential(src, dst, half):
    """Changed: one step of `sum_sequential`, on whole tiles."""
    s = cuda.shared.array(WORDS, float32)
    thread, i = cuda.threadIdx.x, cuda.grid(1)
    s[thread] = src[i]
    cuda.syncthreads()  # the tile is full before words are added to others
    add_sequential(s, half)
    cuda.syncthreads()  # all sums are there before other threads copy them out
    dst[i] = s[thread]
