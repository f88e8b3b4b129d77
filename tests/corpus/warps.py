"""Talk within a warp: shuffles, votes and matches.

Menu: butterfly_sum, broadcast_lane, neighbour_exchange, votes, ballot_rank, half_warp, matches, counting_barriers.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, poisoned

FULL_WARP = 0xFFFFFFFF
NO_WARP_OPERATIONS = "the simulator has no warp operations"


@cuda.jit
def butterfly_sum(src, dst):
    """Every lane ends with the sum of its warp."""
    i = cuda.grid(1)
    value = src[i]
    for bit in (1, 2, 4, 8, 16):
        value += cuda.shfl_xor_sync(FULL_WARP, value, bit)
    dst[i] = value


@cuda.jit
def broadcast_lane(src, dst):
    """Each warp hears one of its lanes, and each lane hears the mirrored one."""
    i = cuda.grid(1)
    warp = cuda.threadIdx.x // 32
    dst[i, 0] = cuda.shfl_sync(FULL_WARP, src[i], warp + 3)
    dst[i, 1] = cuda.shfl_sync(FULL_WARP, src[i], 31 - cuda.laneid)


@cuda.jit
def neighbour_exchange(src, dst):
    """The ends keep their own value."""
    i = cuda.grid(1)
    value = src[i]
    left = cuda.shfl_up_sync(FULL_WARP, value, 1)
    right = cuda.shfl_down_sync(FULL_WARP, value, 2)
    dst[i] = 100 * left + right


@cuda.jit
def votes(src, dst):
    i = cuda.grid(1)
    positive = src[i] > 0
    dst[i, 0] = 1 if cuda.all_sync(FULL_WARP, positive) else 0
    dst[i, 1] = 1 if cuda.any_sync(FULL_WARP, src[i] > 60) else 0
    dst[i, 2] = 1 if cuda.eq_sync(FULL_WARP, src[i] < 1000) else 0


@cuda.jit
def ballot_rank(src, dst):
    """Lanes with a positive value are numbered from the left; the others get -1."""
    i = cuda.grid(1)
    ballot = cuda.ballot_sync(FULL_WARP, src[i] > 0)
    below = (1 << cuda.laneid) - 1
    if src[i] > 0:
        dst[i] = cuda.popc(ballot & below)
    else:
        dst[i] = -1


@cuda.jit
def half_warp(src, dst):
    """Only the lower half takes part, and the mask says so."""
    i = cuda.grid(1)
    dst[i] = 0
    if cuda.laneid < 16:
        value = src[i]
        for bit in (8, 4, 2, 1):
            value += cuda.shfl_xor_sync(0xFFFF, value, bit)
        dst[i] = value


@cuda.jit
def matches(src, dst):
    """How many lanes of the warp hold the same value."""
    i = cuda.grid(1)
    dst[i] = cuda.popc(cuda.match_any_sync(FULL_WARP, src[i]))


@cuda.jit
def counting_barriers(src, dst):
    i = cuda.grid(1)
    # The voting barriers take whole numbers: numba refuses a bool.
    count = cuda.syncthreads_count(1 if src[i] > 0 else 0)
    everyone = cuda.syncthreads_and(1 if src[i] > -100 else 0)
    anyone = cuda.syncthreads_or(1 if src[i] > 62 else 0)
    dst[i] = count * 100 + (10 if everyone else 0) + (1 if anyone else 0)


def by_warp(src):
    return src.reshape(-1, 32)


def exchanged(src, dst):
    warps = by_warp(src)
    left = np.concatenate([warps[:, :1], warps[:, :-1]], axis=1)
    right = np.concatenate([warps[:, 2:], warps[:, -2:]], axis=1)
    return {1: (100 * left + right).ravel()}


def broadcast(src, dst):
    warps = by_warp(src)
    heard = np.concatenate([np.full(32, warp[k % 2 + 3]) for k, warp in enumerate(warps)])
    return {1: np.stack([heard, warps[:, ::-1].ravel()], axis=1)}


def voted(src, dst):
    warps = by_warp(src)
    columns = [(warps > 0).all(axis=1), (warps > 60).any(axis=1), np.ones(len(warps))]
    return {1: np.stack([np.repeat(column, 32) for column in columns], axis=1)}


def ranked(src, dst):
    positive = by_warp(src) > 0
    return {1: np.where(positive, positive.cumsum(axis=1) - 1, -1).ravel()}


def halved(src, dst):
    warps = by_warp(src)
    sums = np.repeat(warps[:, :16].sum(axis=1, keepdims=True), 32, axis=1)
    return {1: np.where(np.arange(32) < 16, sums, 0).ravel()}


def matched(src, dst):
    return {1: np.concatenate([(warp[:, None] == warp).sum(axis=1) for warp in by_warp(src)])}


def barriers(src, dst):
    blocks = src.reshape(-1, 64)
    score = (blocks > 0).sum(axis=1) * 100 + (blocks > -100).all(axis=1) * 10 + (blocks > 62).any(axis=1)
    return {1: np.repeat(score, 64)}


def _two_blocks(kernel, reference, out=(), dtype=np.int32, modulo=0, simulator=NO_WARP_OPERATIONS):
    return Case(
        kernel,
        2,
        64,
        lambda fill: (
            fill(128, dtype) % modulo if modulo else fill(128, dtype),
            poisoned((128, *out), np.int64),
        ),
        reference,
        simulator=simulator,
    )


CASES = [
    _two_blocks(butterfly_sum, lambda src, dst: {1: np.repeat(by_warp(src).sum(axis=1), 32)}),
    _two_blocks(broadcast_lane, broadcast, (2,)),
    _two_blocks(neighbour_exchange, exchanged),
    _two_blocks(votes, voted, (3,)),
    _two_blocks(ballot_rank, ranked),
    _two_blocks(half_warp, halved),
    _two_blocks(matches, matched, modulo=7),
    _two_blocks(counting_barriers, barriers, simulator=""),
]
