"""Prefix sums.

Menu: scan_doubling, scan_tree_of (plain or padded), scan_warp.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction, poisoned

ELEMENTS = 512
FULL_WARP = 0xFFFFFFFF


@cuda.jit
def scan_doubling(src, dst):
    """Inclusive; each step adds the value `distance` places to the left, between two buffers."""
    buffers = cuda.shared.array((2, 64), np.float32)
    thread = cuda.threadIdx.x
    now = 0
    buffers[now, thread] = src[thread]
    # The inputs must be in before a thread reads to its left.
    cuda.syncthreads()
    distance = 1
    while distance < cuda.blockDim.x:
        after = 1 - now
        if thread >= distance:
            buffers[after, thread] = buffers[now, thread] + buffers[now, thread - distance]
        else:
            buffers[after, thread] = buffers[now, thread]
        # The next step reads what this one wrote, and writes what this one read.
        cuda.syncthreads()
        now = after
        distance *= 2
    dst[thread] = buffers[now, thread]


def scan_tree_of(pad):
    """Exclusive, up and down a tree of 512 elements; with `pad`, one word is left free after every 32."""
    words = ELEMENTS + ELEMENTS // 32

    @cuda.jit
    def scan_tree(src, dst):
        s = cuda.shared.array(words, np.float32)
        thread = cuda.threadIdx.x
        for i in range(thread, ELEMENTS, ELEMENTS // 2):
            s[i + (i >> 5) * pad] = src[i]
        stride = 1
        active = ELEMENTS // 2
        while active > 0:
            # The level below must be complete before its sums are added.
            cuda.syncthreads()
            if thread < active:
                left = stride * (2 * thread + 1) - 1
                right = stride * (2 * thread + 2) - 1
                low = s[left + (left >> 5) * pad]
                s[right + (right >> 5) * pad] += low
            stride *= 2
            active //= 2
        if thread == 0:
            s[ELEMENTS - 1 + ((ELEMENTS - 1) >> 5) * pad] = np.float32(0)
        active = 1
        while active < ELEMENTS:
            stride //= 2
            # The level above must be complete before it is handed down.
            cuda.syncthreads()
            if thread < active:
                left = stride * (2 * thread + 1) - 1
                right = stride * (2 * thread + 2) - 1
                total = s[right + (right >> 5) * pad]
                s[right + (right >> 5) * pad] = total + s[left + (left >> 5) * pad]
                s[left + (left >> 5) * pad] = total
            active *= 2
        # Every element must have its sum before it is copied out by another thread.
        cuda.syncthreads()
        for i in range(thread, ELEMENTS, ELEMENTS // 2):
            dst[i] = s[i + (i >> 5) * pad]

    return scan_tree


@cuda.jit
def scan_warp(src, dst):
    """Inclusive within each warp, through registers."""
    i = cuda.grid(1)
    value = src[i]
    distance = 1
    while distance < 32:
        left = cuda.shfl_up_sync(FULL_WARP, value, distance)
        if cuda.laneid >= distance:
            value += left
        distance *= 2
    dst[i] = value


def exclusive(src, dst):
    return {1: np.concatenate([[0], np.cumsum(src)[:-1]])}


# 256, 128, .. 1 active threads: 8, 4, 2, 1, 1, 1, 1, 1, 1 requests, of 2, 4, 8, 16, 16, 8, 4, 2, 1 wavefronts plain.
_DEGREES = (2, 4, 8, 16, 16, 8, 4, 2, 1)
_REQUESTS = (8, 4, 2, 1, 1, 1, 1, 1, 1)
_PLAIN = sum(degree * requests for degree, requests in zip(_DEGREES, _REQUESTS, strict=True))

CASES = [
    Case(
        scan_doubling,
        1,
        64,
        lambda fill: (fill(64, np.float32), poisoned(64, np.float32)),
        lambda src, dst: {1: np.cumsum(src)},
    ),
    *(
        Case(
            scan_tree_of(pad),
            1,
            ELEMENTS // 2,
            lambda fill: (fill(ELEMENTS, np.float32), poisoned(ELEMENTS, np.float32)),
            exclusive,
            "padded" if pad else "plain",
            predictions=(
                Prediction("low = s[", "load", wavefronts=wavefronts, ideal=20, requests=20, id="K-cs-7"),
            ),
        )
        for pad, wavefronts in ((0, _PLAIN), (1, 20))
    ),
    Case(
        scan_warp,
        2,
        64,
        lambda fill: (fill(128, np.int32), poisoned(128, np.int32)),
        lambda src, dst: {1: np.cumsum(src.reshape(-1, 32), axis=1).ravel()},
        simulator="the simulator has no shuffles",
    ),
]
