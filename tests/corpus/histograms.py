"""Histograms: atomics in global memory, in shared memory, and none at all.

Menu: histogram_global, histogram_shared, histogram_bytes.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction

BINS = 16
THREADS = 128
COUNTERS = BINS * THREADS


@cuda.jit
def histogram_global(values, counts):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(counts, values[i], 1)


@cuda.jit
def histogram_shared(values, counts):
    """Each block counts for itself and adds its counts to the total once."""
    mine = cuda.shared.array(BINS, np.int32)
    thread = cuda.threadIdx.x
    if thread < BINS:
        mine[thread] = 0
    # The counters must be zero before anyone counts.
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, values[i], 1)
    # All must have counted before the counts are added up.
    cuda.syncthreads()
    if thread < BINS:
        cuda.atomic.add(counts, thread, mine[thread])


@cuda.jit
def histogram_bytes(values, counts):
    """No atomics: every thread has its own byte per value, in its own lane's bank whatever the value is."""
    own = cuda.shared.array(COUNTERS, np.uint8)
    thread = cuda.threadIdx.x
    place = 4 * (thread % 32) + thread // 32
    for value in range(BINS):
        own[value * THREADS + place] = 0
    for i in range(thread, values.size, THREADS):
        own[values[i] * THREADS + place] += 1
    # All threads must have counted before their counts are added up.
    cuda.syncthreads()
    if thread < BINS:
        total = 0
        for other in range(THREADS):
            total += own[thread * THREADS + other]
        counts[thread] = total


def counted(values, counts):
    return {1: np.bincount(values, minlength=BINS)}


def _histogram(kernel, grid, block, n, predictions=()):
    return Case(
        kernel,
        grid,
        block,
        lambda fill: (np.abs(fill(n, np.int32)) % BINS, np.zeros(BINS, np.int32)),
        counted,
        predictions=predictions,
    )


CASES = [
    _histogram(histogram_global, 3, 64, 150),
    _histogram(histogram_shared, 2, 64, 300),
    _histogram(
        histogram_bytes,
        1,
        THREADS,
        300,
        (Prediction("own[values[i] * THREADS", "store", wavefronts=1, ideal=1),),
    ),
]
