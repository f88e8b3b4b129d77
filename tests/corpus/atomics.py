"""Atomic operations whose outcome does not depend on who comes first.

Menu: sums_and_extremes, bitwise, claim_slots, lock_free_maximum, wrapping_counters, compaction.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case


@cuda.jit
def sums_and_extremes(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        cuda.atomic.add(dst, 0, src[i])
        cuda.atomic.sub(dst, 1, src[i])
        cuda.atomic.max(dst, 2, src[i])
        cuda.atomic.min(dst, 3, src[i])


@cuda.jit
def bitwise(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        cuda.atomic.or_(dst, 0, src[i])
        cuda.atomic.and_(dst, 1, src[i])
        cuda.atomic.xor(dst, 2, src[i])


@cuda.jit
def claim_slots(wanted, owners):
    """The first to ask for a slot gets it; every slot that is wanted ends with the same owner, its own number."""
    i = cuda.grid(1)
    if i < wanted.size:
        slot = wanted[i]
        cuda.atomic.cas(owners, slot, -1, slot)


@cuda.jit
def lock_free_maximum(src, dst):
    """A maximum by compare-and-swap: try again until nobody came between."""
    i = cuda.grid(1)
    if i < src.size:
        seen = -1000
        while src[i] > seen:
            before = cuda.atomic.cas(dst, 0, seen, src[i])
            if before == seen:
                break
            seen = before


@cuda.jit
def wrapping_counters(dst, n):
    """inc goes back to 0 after the limit, dec from 0 to the limit."""
    i = cuda.grid(1)
    if i < n:
        cuda.atomic.inc(dst, 0, 9)
        cuda.atomic.dec(dst, 1, 6)


@cuda.jit
def count_by_row(src, sums):
    """A 2-D place, and float32 sums that are exact."""
    col, row = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        cuda.atomic.add(sums, (row, col % 2), src[row, col])


@cuda.jit
def compaction(src, dst, n_kept):
    """A shared counter hands out places; the order is left open, so only the set of values is fixed."""
    place = cuda.shared.array(1, np.int32)
    kept = cuda.shared.array(64, np.int32)
    thread = cuda.threadIdx.x
    if thread == 0:
        place[0] = 0
    # The counter must be zero before anyone takes a place.
    cuda.syncthreads()
    if src[thread] > 0:
        mine = cuda.atomic.add(place, 0, 1)
        kept[mine] = 1
    # All places must be taken before they are counted.
    cuda.syncthreads()
    if thread < place[0]:
        dst[thread] = kept[thread]
    if thread == 0:
        n_kept[0] = place[0]


def summed(src, dst):
    return {1: np.array([src.sum(), -src.sum(), src.max(), src.min()])}


def combined(src, dst):
    return {1: np.array([np.bitwise_or.reduce(src), np.bitwise_and.reduce(src), np.bitwise_xor.reduce(src)])}


def claimed(wanted, owners):
    owners[wanted] = wanted
    return {1: owners}


def row_sums(src, sums):
    return {1: np.stack([src[:, ::2].sum(axis=1), src[:, 1::2].sum(axis=1)], axis=1)}


def compacted(src, dst, n_kept):
    n = int((src > 0).sum())
    dst[:n] = 1
    return {1: dst, 2: np.array([n])}


CASES = [
    *(
        Case(
            sums_and_extremes,
            2,
            48,
            lambda fill, dtype=dtype: (fill(80, dtype), np.array([0, 0, -1000, 1000], dtype)),
            summed,
            str(np.dtype(dtype)),
        )
        for dtype in (np.int32, np.int64, np.float64)
    ),
    Case(
        bitwise,
        2,
        48,
        lambda fill: (np.abs(fill(80, np.int32)) | 16, np.array([0, -1, 0], np.int32)),
        combined,
    ),
    Case(
        claim_slots,
        2,
        32,
        lambda fill: (np.abs(fill(50, np.int32)) % 20, np.full(20, -1, np.int32)),
        claimed,
    ),
    Case(
        lock_free_maximum,
        2,
        48,
        lambda fill: (fill(80, np.int64), np.array([-1000])),
        lambda src, dst: {1: src.max(keepdims=True)},
        order_decides="a thread tries again as often as others come between",
    ),
    Case(
        wrapping_counters,
        2,
        32,
        lambda fill: (np.zeros(2, np.uint32), 47),
        lambda dst, n: {0: np.array([47 % 10, (-47) % 7])},
    ),
    Case(
        count_by_row,
        (2, 2),
        (8, 4),
        lambda fill: (fill((7, 13), np.float32), np.zeros((7, 2), np.float32)),
        row_sums,
    ),
    Case(
        compaction,
        1,
        64,
        lambda fill: (fill(64, np.int32), np.zeros(64, np.int32), np.zeros(1, np.int32)),
        compacted,
    ),
]
