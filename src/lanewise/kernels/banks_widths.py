"""Shared-memory banks: elements that are narrower or wider than a bank.

Menu: `strided_read(dtype)` makes a kernel in which lane `l` reads element stride * l of an array of `dtype`;
`read_twos` and `read_fours` read 8 and 16 bytes a lane by one instruction, `sharing` neighbouring lanes the
same ones; `store_fours` stores 16 bytes a lane.

Launch every kernel with one block of 32 threads. `src` holds `N_ELEMS` elements, and no lane may reach past
them; a stride of wide elements must be a multiple of their width (2 or 4). References: `reference_stride`,
`reference_vectors`, `reference_stored`.
"""

import numpy as np
from numba import cuda, float32
from numba.types import float16, float64, int8

from lanewise import ptx

LANES = 32
N_ELEMS = 4096  # enough for a stride of 128 bytes between elements of one byte


def reference_stride(src: np.ndarray, stride: int) -> np.ndarray:
    """What 32 lanes read from elements `stride` apart."""
    return src[stride * np.arange(LANES)]


def reference_vectors(src: np.ndarray, width: int, stride: int, sharing: int) -> np.ndarray:
    """What 32 lanes read, `width` elements each, from starts `stride` apart: `(32, width)`."""
    first = stride * (np.arange(LANES) // sharing)
    return src[first[:, None] + np.arange(width)]


def reference_stored(src: np.ndarray, stride: int) -> np.ndarray:
    """What `store_fours` leaves: `N_ELEMS` elements, -1 where no lane stored."""
    dst = np.full(N_ELEMS, -1, np.float32)
    for lane in range(LANES):
        dst[stride * lane : stride * lane + 4] = src[:4]
    return dst


def strided_read(dtype):
    """Changed from `banks.read_stride`: the element type. A bank is 4 bytes, whatever the element is."""

    @cuda.jit
    def read(src, dst, stride):
        s = cuda.shared.array(N_ELEMS, dtype)
        lane = cuda.threadIdx.x
        for i in range(lane, N_ELEMS, LANES):
            s[i] = src[i]
        cuda.syncthreads()  # all elements are written before any is read
        dst[lane] = s[stride * lane]

    return read


read_bytes = strided_read(int8)
read_halves = strided_read(float16)
read_doubles = strided_read(float64)


@cuda.jit
def read_twos(src, dst, stride, sharing):
    """Changed: two floats by one instruction, so the warp is served in groups of 16 lanes.

    Where lanes 2i and 2i + 1 ask for the same two floats, neighbouring groups join.
    """
    s = cuda.shared.array(N_ELEMS, float32)
    lane = cuda.threadIdx.x
    for i in range(lane, N_ELEMS, LANES):
        s[i] = src[i]
    cuda.syncthreads()  # all elements are written before any is read
    dst[lane, 0], dst[lane, 1] = ptx.load2(s, stride * (lane // sharing))


@cuda.jit
def read_fours(src, dst, stride, sharing):
    """Changed: four floats by one instruction, and groups of 8 lanes."""
    s = cuda.shared.array(N_ELEMS, float32)
    lane = cuda.threadIdx.x
    for i in range(lane, N_ELEMS, LANES):
        s[i] = src[i]
    cuda.syncthreads()  # all elements are written before any is read
    a, b, c, d = ptx.load4(s, stride * (lane // sharing))
    dst[lane, 0], dst[lane, 1], dst[lane, 2], dst[lane, 3] = a, b, c, d


@cuda.jit
def store_fours(src, dst, stride):
    """Changed: a store of four floats. Stores never join groups, even where all lanes store to one place."""
    s = cuda.shared.array(N_ELEMS, float32)
    lane = cuda.threadIdx.x
    for i in range(lane, N_ELEMS, LANES):
        s[i] = -1
    cuda.syncthreads()  # the marks are written before anyone stores over them
    ptx.store4(s, stride * lane, src[0], src[1], src[2], src[3])
    cuda.syncthreads()  # the store is done before anyone reads
    for i in range(lane, N_ELEMS, LANES):
        dst[i] = s[i]
