"""Copies of global memory: which sectors a warp touches for each way of walking an array.

Menu: copy, scale, strided_copy, offset_copy, reversed_copy, broadcast_copy, permuted_copy, grid_stride_copy,
row_walk, column_walk, scale_view, channel_walks, gather_rows, negative_indices, copy_3d, slice_copy.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction, poisoned


@cuda.jit
def copy(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        dst[i] = src[i]


@cuda.jit
def scale(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        dst[i] = np.float32(2) * src[i]


@cuda.jit
def strided_copy(src, dst, stride):
    i = cuda.grid(1) * stride
    if i < src.size:
        dst[i] = src[i]


@cuda.jit
def offset_copy(src, dst, offset):
    i = cuda.grid(1)
    if i + offset < src.size:
        dst[i] = src[i + offset]


@cuda.jit
def reversed_copy(src, dst):
    i = cuda.grid(1)
    dst[i] = src[src.size - 1 - i]


@cuda.jit
def broadcast_copy(src, dst):
    dst[cuda.grid(1)] = src[cuda.blockIdx.x]


@cuda.jit
def permuted_copy(src, order, dst):
    i = cuda.grid(1)
    dst[i] = src[order[i]]


@cuda.jit
def grid_stride_copy(src, dst):
    """Fewer threads than elements: each thread takes every gridsize-th one."""
    for i in range(cuda.grid(1), src.size, cuda.gridsize(1)):
        dst[i] = src[i]


@cuda.jit
def row_walk(src, dst):
    """Neighbouring lanes take neighbouring columns."""
    col, row = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        dst[row, col] = src[row, col]


@cuda.jit
def column_walk(src, dst):
    """Neighbouring lanes take neighbouring rows of a row-major matrix."""
    row, col = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        dst[row, col] = src[row, col]


@cuda.jit
def scale_view(src, dst):
    """Strides come from the array itself, so a permuted view shows its true addresses."""
    col, row = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        dst[row, col] = src[row, col] * np.float32(2)


@cuda.jit
def pixel_lanes(image, dst):
    """Lane = pixel; image is [channel][pixel] or, as a view, [pixel][channel]."""
    pixel = cuda.grid(1)
    if pixel < image.shape[1]:
        total = np.float32(0)
        for channel in range(image.shape[0]):
            total += image[channel, pixel]
        dst[pixel] = total


@cuda.jit
def gather_rows(cache, token_of, dst):
    """A block copies one row of a cache, found through a table of tokens."""
    row = cuda.blockIdx.x
    for col in range(cuda.threadIdx.x, cache.shape[1], cuda.blockDim.x):
        dst[row, col] = cache[token_of[row], col]


@cuda.jit
def token_lanes(cache, dst, col):
    """Lane = token: each lane reads one element of its own row."""
    token = cuda.grid(1)
    if token < cache.shape[0]:
        dst[token] = cache[token, col]


@cuda.jit
def negative_indices(src, dst):
    """-1 is the last element, as in Python."""
    i = cuda.grid(1)
    if i < src.size:
        dst[-1 - i] = src[i - src.size]


@cuda.jit
def copy_3d(src, dst):
    x, y, z = cuda.grid(3)
    if z < src.shape[0] and y < src.shape[1] and x < src.shape[2]:
        dst[z, y, x] = src[z, y, x]


@cuda.jit
def slice_copy(src, dst):
    """Rows and columns taken as views before they are walked."""
    i = cuda.grid(1)
    row = src[2]
    col = src[:, 3]
    if i < row.size:
        dst[0, i] = row[i]
    if i < len(col):
        dst[1, i] = col[i]


def copied(src, dst, *_):
    return {1: src}


def _stride(stride, sectors, id_):
    def reference(src, dst, stride):
        dst[::stride] = src[::stride]
        return {1: dst}

    return Case(
        strided_copy,
        2,
        64,
        lambda fill: (fill(128 * stride, np.float32), poisoned(128 * stride, np.float32), stride),
        reference,
        f"stride {stride}",
        predictions=(
            Prediction("= src[i]", "load", sectors=sectors, id=id_),
            Prediction("dst[i] =", "store", sectors=sectors, id=id_),
        ),
    )


def _offset(offset, sectors):
    return Case(
        offset_copy,
        1,
        64,
        lambda fill: (fill(96, np.float32), poisoned(64, np.float32), offset),
        lambda src, dst, offset: {1: src[offset : offset + 64]},
        f"offset {offset}",
        predictions=(Prediction("src[i + offset]", "load", sectors=sectors, id="K-co-4"),),
    )


def _width(dtype, sectors):
    return Case(
        copy,
        2,
        96,
        lambda fill: (fill(150, dtype), poisoned(150, dtype)),
        copied,
        str(np.dtype(dtype)),
        predictions=()
        if sectors is None
        else (Prediction("dst[i] = src[i]", "load", sectors=sectors, requests=5, id="K-co-7"),),
    )


def _walk(kernel, block, sectors, id_=""):
    grid = (32 // block[0], 32 // block[1])
    return Case(
        kernel,
        grid,
        block,
        lambda fill: (fill((32, 32), np.float32), poisoned((32, 32), np.float32)),
        copied,
        f"{block[0]} by {block[1]} threads",
        simulator="" if block == (32, 8) else "the same kernel as with 32 by 8 threads",
        predictions=(
            Prediction("src[row, col]", "load", sectors=sectors, id=id_),
            Prediction("dst[row, col]", "store", sectors=sectors, id=id_),
        ),
    )


def _view(variant, make, sectors, id_=""):
    return Case(
        scale_view,
        (1, 4),
        (32, 8),
        lambda fill: (make(fill), poisoned((32, 32), np.float32)),
        lambda src, dst: {1: 2 * src},
        variant,
        predictions=(Prediction("src[row, col]", "load", sectors=sectors, id=id_),),
    )


CASES = [
    Case(
        scale,
        2,
        128,
        lambda fill: (fill(256, np.float32), poisoned(256, np.float32)),
        lambda src, dst: {1: 2 * src},
        predictions=(
            Prediction("src[i]", "load", sectors=4, id="K-co-1"),
            Prediction("dst[i] =", "store", sectors=4, id="K-co-1"),
        ),
    ),
    Case(
        copy,
        3,
        48,
        lambda fill: (fill(101, np.float32), poisoned(101, np.float32)),
        copied,
        "partial warps",
    ),
    Case(
        copy,
        2,
        128,
        lambda fill: (fill(256, np.float32), poisoned(256, np.float32)),
        copied,
        "through a register",
        predictions=(
            Prediction("= src[i]", "load", sectors=4, id="K-pd-1"),
            Prediction("dst[i] =", "store", sectors=4, id="K-pd-1"),
        ),
    ),
    _stride(2, 8, "K-co-2"),
    *(_stride(stride, min(4 * stride, 32), "K-co-3") for stride in (1, 3, 4, 5, 6, 7, 8, 16, 32, 64)),
    *(_offset(offset, 4 if offset % 8 == 0 else 5) for offset in (0, 1, 7, 8, 13, 16, 31)),
    Case(
        reversed_copy,
        1,
        64,
        lambda fill: (fill(64, np.float32), poisoned(64, np.float32)),
        lambda src, dst: {1: src[::-1]},
        predictions=(Prediction("src[src.size - 1 - i]", "load", sectors=4, id="K-co-5"),),
    ),
    Case(
        permuted_copy,
        1,
        64,
        # 13 is odd, so lane -> 13 * lane mod 32 permutes the lanes of a warp inside their 128 bytes.
        lambda fill: (
            fill(64, np.float32),
            np.arange(64) // 32 * 32 + 13 * np.arange(64) % 32,
            poisoned(64, np.float32),
        ),
        lambda src, order, dst: {2: src[order]},
        predictions=(Prediction("dst[i] = src[order[i]]", "store", sectors=4, id="K-co-5"),),
    ),
    Case(
        broadcast_copy,
        2,
        32,
        lambda fill: (fill(2, np.float32), poisoned(64, np.float32)),
        lambda src, dst: {1: np.repeat(src, 32)},
        predictions=(Prediction("src[cuda.blockIdx.x]", "load", sectors=1, id="K-co-6"),),
    ),
    # 150 elements are four full warps and one of 22 lanes, of 3 and of 6 sectors.
    _width(np.float32, 19),
    _width(np.float64, 38),
    *(
        _width(dtype, None)
        for dtype in (np.int8, np.uint16, np.int32, np.uint64, np.complex64, np.complex128)
    ),
    Case(
        grid_stride_copy,
        2,
        48,
        lambda fill: (fill(250, np.float32), poisoned(250, np.float32)),
        copied,
    ),
    *(
        _walk(row_walk, block, 4, "K-co-11" if block == (32, 8) else "")
        for block in ((32, 8), (16, 16), (8, 32))
    ),
    *(
        _walk(column_walk, block, sectors, "K-co-11" if block == (32, 8) else "")
        for block, sectors in (((32, 8), 32), ((16, 16), 16), ((8, 32), 8))
    ),
    _view("contiguous", lambda fill: fill((32, 32), np.float32), 4, "K-co-12"),
    _view("permuted", lambda fill: fill((32, 32), np.float32).T, 32, "K-co-12"),
    _view("F order", lambda fill: np.asfortranarray(fill((32, 32), np.float32)), 32),
    _view("every second", lambda fill: fill((64, 64), np.float32)[::2, ::2], 8),
    _view("one column in", lambda fill: fill((32, 40), np.float32)[:, 1:33], 5),
    _view("mirrored", lambda fill: fill((32, 32), np.float32)[::-1, ::-1], 4),
    _view("one row repeated", lambda fill: np.broadcast_to(fill((1, 32), np.float32), (32, 32)), 4),
    Case(
        pixel_lanes,
        2,
        32,
        lambda fill: (fill((8, 49), np.float32), poisoned(49, np.float32)),
        lambda image, dst: {1: image.sum(axis=0)},
        "channels first",
    ),
    Case(
        pixel_lanes,
        1,
        32,
        lambda fill: (fill((8, 32), np.float32), poisoned(32, np.float32)),
        lambda image, dst: {1: image.sum(axis=0)},
        "channels first, full warp",
        predictions=(Prediction("image[channel, pixel]", "load", sectors=4, id="K-co-13"),),
    ),
    Case(
        pixel_lanes,
        1,
        32,
        lambda fill: (fill((32, 8), np.float32).T, poisoned(32, np.float32)),
        lambda image, dst: {1: image.sum(axis=0)},
        "channels last",
        predictions=(Prediction("image[channel, pixel]", "load", sectors=32, id="K-co-13"),),
    ),
    Case(
        gather_rows,
        6,
        32,
        # A row of 128 halves, read 8 bytes per lane; pages of 16 tokens lie in any order.
        lambda fill: (
            fill((64, 32), np.float64),
            np.array([48, 49, 50, 3, 4, 5]),
            poisoned((6, 32), np.float64),
        ),
        lambda cache, token_of, dst: {2: cache[token_of]},
        predictions=(Prediction("dst[row, col] =", "store", sectors=8, id="K-co-14"),),
    ),
    Case(
        token_lanes,
        2,
        32,
        lambda fill: (fill((64, 128), np.float16), poisoned(64, np.float16), 5),
        lambda cache, dst, col: {1: cache[:, col]},
        predictions=(Prediction("cache[token, col]", "load", sectors=32, id="K-co-14"),),
    ),
    Case(
        negative_indices,
        1,
        32,
        lambda fill: (fill(20, np.int32), poisoned(20, np.int32)),
        lambda src, dst: {1: src[::-1]},
    ),
    Case(
        copy_3d,
        (2, 1, 3),
        (8, 4, 2),
        lambda fill: (fill((5, 3, 11), np.float32), poisoned((5, 3, 11), np.float32)),
        copied,
    ),
    Case(
        slice_copy,
        1,
        16,
        lambda fill: (fill((9, 7), np.float32), poisoned((2, 9), np.float32)),
        lambda src, dst: {1: np.stack([np.append(src[2], [np.nan, np.nan]), src[:, 3]])},
    ),
]
