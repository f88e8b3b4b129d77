"""Shared-memory banks under load: the same reads again and again, on one warp or on the whole GPU.

Menu: `repeat_stride` (throughput of a pattern whose first words come from memory), `repeat_fours` (the most
bytes per second that shared memory gives). For comparison, other memories: `chase_shared` and `chase_global`
(one load after the other: latency), `read_global` (bytes per second), `multiply_add` and
`multiply_add_chain` (registers).

Launch with blocks of `BLOCK` threads, the chases and the chain with at most one warp. `nexts` are numbers
of its own elements, `CHAIN` of them for `chase_shared`; `src` of `read_global` has a multiple of 4 elements
for each thread. References: `reference_repeat_stride`, `reference_repeat_fours`, `reference_chase`,
`reference_read_global`, `reference_multiply_add`.
"""

import numpy as np
from numba import cuda, float32, uint32

from lanewise import ptx

LANES = 32
BLOCK = 256
UNROLL = 16  # reads per round
SPAN = 2048  # words that the reads wander through, a multiple of the 32 banks
WORDS = SPAN + UNROLL
N_FOURS = 4 * BLOCK * 4  # floats: four for each thread, four times
CHAIN = 1024  # words


def reference_repeat_stride(starts: np.ndarray, n_rounds: int) -> np.ndarray:
    """The sum that each of the 32 lanes arrives at: word i holds i % 8."""
    round_, step = np.arange(n_rounds)[:, None], np.arange(UNROLL)
    words = ((starts[:, None, None] + UNROLL * round_) & (SPAN - 1)) + step
    return (words % 8).sum(axis=(1, 2)).astype(np.float32)


def reference_repeat_fours(n_rounds: int) -> np.ndarray:
    """The sum that each thread of a block arrives at: element i holds i % 8."""
    first = 4 * ((np.arange(BLOCK)[:, None] + np.arange(n_rounds)) % BLOCK)
    once = sum(((first + 4 * BLOCK * part + i) % 8) for part in range(4) for i in range(4))
    return np.asarray(once).sum(axis=1).astype(np.float32)


def reference_chase(nexts: np.ndarray, n_steps: int, n_lanes: int = LANES) -> np.ndarray:
    """Where lanes are after `n_steps` jumps, lane l from element l."""
    at = np.arange(n_lanes)
    for _ in range(n_steps):
        at = nexts[at]
    return at.astype(np.uint32)


def reference_read_global(src: np.ndarray, n_threads: int) -> np.ndarray:
    """The sum of each thread's elements; exact while `src` holds small integers."""
    return src.reshape(-1, n_threads, 4).sum(axis=(0, 2), dtype=np.float32)


def reference_multiply_add(n_threads: int, n_chains: int, n_rounds: int) -> np.ndarray:
    """What the multiply-adds give for factor 1 and term 1: they count their steps."""
    return np.full(n_threads, n_chains * UNROLL * n_rounds, np.float32)


@cuda.jit
def repeat_stride(starts, dst, n_rounds):
    """The baseline: lane l reads words starts[l], starts[l] + 1, ... All lanes move on together.

    So the conflicts of the first read are those of every read, and no read waits for the one before.
    """
    s = cuda.shared.array(WORDS, float32)
    thread = cuda.threadIdx.x
    for i in range(thread, WORDS, BLOCK):
        s[i] = i % 8
    cuda.syncthreads()  # all words are written before any is read
    at = starts[thread % LANES] & (SPAN - 1)
    acc = float32(0)
    for _ in range(n_rounds):
        for step in range(UNROLL):
            acc += s[at + step]
        at = (at + UNROLL) & (SPAN - 1)
    dst[cuda.grid(1)] = acc


@cuda.jit
def repeat_fours(dst, n_rounds):
    """Changed: 16 bytes a lane, side by side: 128 bytes from 32 banks in every wavefront."""
    s = cuda.shared.array(N_FOURS, float32)
    thread = cuda.threadIdx.x
    for i in range(thread, N_FOURS, BLOCK):
        s[i] = i % 8
    cuda.syncthreads()  # all words are written before any is read
    at = 4 * thread
    acc = float32(0)
    for _ in range(n_rounds):
        for part in range(4):
            a, b, c, d = ptx.load4(s, at + 4 * BLOCK * part)
            acc += (a + b) + (c + d)
        at = (at + 4) & (4 * BLOCK - 1)  # a place not seen lately, or the compiler keeps what it read there
    dst[cuda.grid(1)] = acc


@cuda.jit
def chase_shared(nexts, dst, n_steps):
    """The baseline of latency: each word names the next, so a load starts when the one before has ended."""
    s = cuda.shared.array(CHAIN, uint32)
    lane = cuda.threadIdx.x
    for i in range(lane, CHAIN, LANES):
        s[i] = nexts[i]
    cuda.syncthreads()  # the chain is written before anyone follows it
    at = uint32(lane)
    for _ in range(n_steps):
        at = s[at]
    dst[lane] = at


@cuda.jit
def chase_global(nexts, dst, n_steps):
    """Changed: the chain lies in global memory. How far it reaches decides which cache answers."""
    lane = cuda.threadIdx.x
    at = uint32(lane)
    for _ in range(n_steps):
        at = nexts[at]
    dst[lane] = at


@cuda.jit
def read_global(src, dst):
    """The baseline of throughput: `src` is read once, 16 bytes a lane; a thread keeps the sum of its own."""
    thread, n_threads = cuda.grid(1), cuda.gridsize(1)
    acc = float32(0)
    for i in range(4 * thread, src.size, 4 * n_threads):
        a, b, c, d = ptx.load4(src, i)
        acc += (a + b) + (c + d)
    dst[thread] = acc


@cuda.jit
def multiply_add_chain(dst, factor, term, n_rounds):
    """Changed: registers alone; each multiply-add waits for the one before."""
    acc = float32(0)
    for _ in range(n_rounds):
        for _step in range(UNROLL):
            acc = acc * factor + term
    dst[cuda.grid(1)] = acc


@cuda.jit
def multiply_add(dst, factor, term, n_rounds):
    """Changed: four chains in each thread, which wait for nothing but themselves."""
    a, b, c, d = float32(0), float32(0), float32(0), float32(0)
    for _ in range(n_rounds):
        for _step in range(UNROLL):
            a = a * factor + term
            b = b * factor + term
            c = c * factor + term
            d = d * factor + term
    dst[cuda.grid(1)] = (a + b) + (c + d)
