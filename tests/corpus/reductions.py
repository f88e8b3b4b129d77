"""Sums and maxima of a block, from the textbook's worst to shuffles.

Menu: sum_interleaved, sum_sequential, sum_with_shuffles, sum_last_warp, sum_rows, dot, largest, sum_over_y_of.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction, poisoned

THREADS = 256
FULL_WARP = 0xFFFFFFFF
NO_SHUFFLES = "the simulator has no shuffles"


@cuda.jit
def sum_interleaved(src, dst):
    """Active threads stay packed, but the words they touch move apart by powers of two."""
    s = cuda.shared.array(THREADS, np.float32)
    thread = cuda.threadIdx.x
    s[thread] = src[cuda.grid(1)]
    # All inputs must be in before a thread adds its neighbour's.
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        index = 2 * step * thread
        if index < THREADS:
            right = s[index + step]
            left = s[index]
            s[index] = left + right
        # This level's sums must be complete before the next level reads them.
        cuda.syncthreads()
        step *= 2
    if thread == 0:
        dst[cuda.blockIdx.x] = s[0]


@cuda.jit
def sum_sequential(src, dst):
    """Active threads and the words they touch both stay packed."""
    s = cuda.shared.array(THREADS, np.float32)
    thread = cuda.threadIdx.x
    s[thread] = src[cuda.grid(1)]
    # All inputs must be in before a thread adds its partner's.
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            right = s[thread + half]
            left = s[thread]
            s[thread] = left + right
        # This level's sums must be complete before the next level reads them.
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        dst[cuda.blockIdx.x] = s[0]


@cuda.jit
def sum_with_shuffles(src, dst):
    """Within a warp through registers; shared memory carries one value per warp."""
    of_warp = cuda.shared.array(32, np.float32)
    thread = cuda.threadIdx.x
    value = src[cuda.grid(1)]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(FULL_WARP, value, distance)
    if cuda.laneid == 0:
        of_warp[thread // 32] = value
    # Every warp must have left its sum before the first warp adds them up.
    cuda.syncthreads()
    if thread < 32:
        value = of_warp[thread] if thread < cuda.blockDim.x // 32 else np.float32(0)
        for distance in (4, 2, 1):
            value += cuda.shfl_down_sync(FULL_WARP, value, distance)
        if thread == 0:
            dst[cuda.blockIdx.x] = value


@cuda.jit
def sum_last_warp(src, dst):
    """The last 64 values within one warp, whose lanes wait for each other after each step."""
    s = cuda.shared.array(64, np.float32)
    thread = cuda.threadIdx.x
    s[thread] = src[cuda.grid(1)]
    # All inputs must be in before the first warp adds the second warp's.
    cuda.syncthreads()
    if thread < 32:
        value = s[thread] + s[thread + 32]
        for distance in (16, 8, 4, 2, 1):
            s[thread] = value
            # The lanes' sums must be written before their neighbours read them.
            cuda.syncwarp()
            if thread < distance:
                value += s[thread + distance]
            # They must be read before the next step overwrites them.
            cuda.syncwarp()
        if thread == 0:
            dst[cuda.blockIdx.x] = value


@cuda.jit
def sum_rows(src, dst):
    """One thread per row, one loop per thread."""
    row = cuda.grid(1)
    if row < src.shape[0]:
        total = np.float32(0)
        for col in range(src.shape[1]):
            total += src[row, col]
        dst[row] = total


@cuda.jit
def dot(left, right, dst):
    """Grid-stride partial sums, a tree in shared memory, one atomic per block."""
    s = cuda.shared.array(64, np.float64)
    thread = cuda.threadIdx.x
    acc = 0.0
    for i in range(cuda.grid(1), left.size, cuda.gridsize(1)):
        acc += left[i] * right[i]
    s[thread] = acc
    # Every partial sum must be in before the tree starts.
    cuda.syncthreads()
    half = 32
    while half:
        if thread < half:
            s[thread] += s[thread + half]
        # This level's sums must be complete before the next level reads them.
        cuda.syncthreads()
        half >>= 1
    if thread == 0:
        cuda.atomic.add(dst, 0, s[0])


@cuda.jit
def largest(src, dst):
    """The largest value and where it stands; the tail of the last block is filled with the first value."""
    values = cuda.shared.array(64, np.int32)
    places = cuda.shared.array(64, np.int32)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    place = i if i < src.size else 0
    values[thread] = src[place]
    places[thread] = place
    # Both arrays must be complete before a thread looks at its partner's.
    cuda.syncthreads()
    half = 32
    while half > 0:
        if thread < half and values[thread + half] > values[thread]:
            values[thread] = values[thread + half]
            places[thread] = places[thread + half]
        # This level's winners must be known before the next level compares them.
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        dst[cuda.blockIdx.x, 0] = values[0]
        dst[cuda.blockIdx.x, 1] = places[0]


def sum_over_y_of(transposed):
    """A block of (8, 32) adds over y; its words lie in thread order, or transposed."""

    @cuda.jit
    def sum_over_y(src, dst):
        s = cuda.shared.array(256, np.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        if transposed:
            word, step = x * cuda.blockDim.y + y, 1
        else:
            word, step = x + y * cuda.blockDim.x, cuda.blockDim.x
        s[word] = src[y, x]
        # All inputs must be in before a thread adds its partner's.
        cuda.syncthreads()
        half = cuda.blockDim.y // 2
        while half > 0:
            if y < half:
                s[word] += s[word + half * step]
            # This level's sums must be complete before the next level reads them.
            cuda.syncthreads()
            half //= 2
        if y == 0:
            dst[x] = s[word]

    return sum_over_y


def block_sums(src, dst):
    return {1: src.reshape(dst.size, -1).sum(axis=1)}


def block_maxima(src, dst):
    padded = np.concatenate([src, np.full(dst.shape[0] * 64 - src.size, src[0])]).reshape(-1, 64)
    places = padded.argmax(axis=1) + 64 * np.arange(len(padded))
    return {1: np.stack([padded.max(axis=1), np.where(places < src.size, places, 0)], axis=1)}


def distinct(n):
    """A permutation, so that the maximum stands at one place only."""
    return (37 * np.arange(n) % n).astype(np.int32)


def _block_sum(kernel, predictions=(), simulator="", threads=THREADS):
    return Case(
        kernel,
        2,
        threads,
        lambda fill: (fill(2 * threads, np.float32), poisoned(2, np.float32)),
        block_sums,
        predictions=predictions,
        simulator=simulator,
        # The sum of 0..511 is exact in float32; the random inputs are multiples of 1/8.
    )


# 256 threads: levels of 128, 64, .. 1 active threads take 4 + 2 + 6 * 1 warp requests per block.
# Interleaved: 4 x 2, 2 x 4, then 8, 8, 8, 4, 2, 1 wavefronts.
_INTERLEAVED, _SEQUENTIAL, _REQUESTS = 2 * 47, 2 * 12, 2 * 12

CASES = [
    _block_sum(
        sum_interleaved,
        tuple(
            Prediction(line, op, wavefronts=_INTERLEAVED, ideal=_SEQUENTIAL, requests=_REQUESTS, id="K-cs-6")
            for line, op in (("right = s[", "load"), ("left = s[", "load"), ("s[index] =", "store"))
        ),
    ),
    _block_sum(
        sum_sequential,
        tuple(
            Prediction(line, op, wavefronts=_SEQUENTIAL, ideal=_SEQUENTIAL, requests=_REQUESTS, id="K-cs-6")
            for line, op in (("right = s[", "load"), ("left = s[", "load"), ("s[thread] = left", "store"))
        ),
    ),
    _block_sum(
        sum_with_shuffles,
        (
            Prediction("of_warp[thread // 32] =", "store", wavefronts=1, ideal=1, id="K-cs-6"),
            Prediction("= of_warp[thread]", "load", wavefronts=1, ideal=1, id="K-cs-6"),
        ),
        NO_SHUFFLES,
    ),
    _block_sum(sum_last_warp, simulator="the simulator has no syncwarp", threads=64),
    Case(
        sum_rows,
        1,
        48,
        lambda fill: (fill((37, 9), np.float32), poisoned(37, np.float32)),
        lambda src, dst: {1: src.sum(axis=1)},
    ),
    Case(
        dot,
        2,
        64,
        lambda fill: (fill(300, np.float64), fill(300, np.float64), np.zeros(1)),
        lambda left, right, dst: {2: np.array([left @ right])},
    ),
    Case(
        largest,
        2,
        64,
        lambda fill: (distinct(101), poisoned((2, 2), np.int32)),
        block_maxima,
    ),
    *(
        Case(
            sum_over_y_of(transposed),
            1,
            (8, 32),
            lambda fill: (fill((32, 8), np.float32), poisoned(8, np.float32)),
            lambda src, dst: {1: src.sum(axis=0)},
            "transposed words" if transposed else "thread order",
            predictions=(Prediction("s[word] = src", "store", wavefronts=degree, ideal=1),),
        )
        for transposed, degree in ((True, 8), (False, 1))
    ),
]
