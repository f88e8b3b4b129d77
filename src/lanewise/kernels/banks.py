"""Shared-memory banks: one warp fills an array and reads it back in one pattern.

Menu, each with what lane `l` reads: `read_own` (word l), `read_stride` (word stride * l), `read_first` (word
0), `read_pair` (word l & 1), `read_pair_in_bank` (word 0, the last lane word 32), `read_shifted` (word base +
stride * l), `read_partly` (word stride * l, the first lanes alone), `read_column` and `read_diagonal` (of a
32 x 32 tile), `store_first` (all lanes store to word 0), `store_stride` (lane l stores to word stride * l),
`read_too_early` (a column, with no barrier before it: a race).

Launch every kernel with one block of 32 threads; `base + 31 * stride` must be below `WORDS`. Word `i` of the
array holds the value `i`: what a lane reads names its word. References: `reference_stride`, `reference_tile`,
`reference_partly`. Other elements are in `lanewise.kernels.banks_widths`, repeated reads in `banks_repeated`.

Three whole kernels, `scale_by_rows`, `scale_by_columns` and `scale_padded`, pass a matrix through tiles.
"""

import numpy as np
from numba import cuda, float32

LANES = 32
WORDS = 32 * 33  # enough for strides up to 33


def reference_stride(stride: int) -> np.ndarray:
    """What 32 lanes read from words `stride` apart: 32 float32."""
    return (stride * np.arange(LANES)).astype(np.float32)


def reference_tile(row_step: int, col_step: int) -> np.ndarray:
    """What 32 lanes read from `tile[row_step * lane, col_step * lane]` of a 32 x 32 tile: 32 float32."""
    return reference_stride(LANES * row_step + col_step)


def reference_partly(stride: int, n_lanes: int) -> np.ndarray:
    """What `read_partly` leaves: the words of the first `n_lanes` lanes, then -1: 32 float32."""
    return np.where(np.arange(LANES) < n_lanes, reference_stride(stride), np.float32(-1))


@cuda.jit
def read_own(dst):
    """The baseline: each lane reads a word of its own, next to its neighbour's."""
    s = cuda.shared.array(WORDS, float32)
    lane = cuda.threadIdx.x
    for i in range(lane, WORDS, LANES):
        s[i] = i
    cuda.syncthreads()  # all words are written before any is read
    dst[lane] = s[lane]


@cuda.jit
def read_stride(dst, stride):
    """Changed: the words lie `stride` apart."""
    s = cuda.shared.array(WORDS, float32)
    lane = cuda.threadIdx.x
    for i in range(lane, WORDS, LANES):
        s[i] = i
    cuda.syncthreads()  # all words are written before any is read
    dst[lane] = s[stride * lane]


@cuda.jit
def read_first(dst):
    """Changed: all lanes read one word, a broadcast."""
    s = cuda.shared.array(WORDS, float32)
    lane = cuda.threadIdx.x
    for i in range(lane, WORDS, LANES):
        s[i] = i
    cuda.syncthreads()  # all words are written before any is read
    dst[lane] = s[0]


@cuda.jit
def read_pair(dst):
    """Changed: two words, each for every other lane, a multicast."""
    s = cuda.shared.array(WORDS, float32)
    lane = cuda.threadIdx.x
    for i in range(lane, WORDS, LANES):
        s[i] = i
    cuda.syncthreads()  # all words are written before any is read
    dst[lane] = s[lane & 1]


@cuda.jit
def read_pair_in_bank(dst):
    """Changed: the two words share a bank. 31 lanes read word 0, the last one word 32."""
    s = cuda.shared.array(WORDS, float32)
    lane = cuda.threadIdx.x
    for i in range(lane, WORDS, LANES):
        s[i] = i
    cuda.syncthreads()  # all words are written before any is read
    dst[lane] = s[LANES * (lane // (LANES - 1))]


@cuda.jit
def read_shifted(dst, stride, base):
    """Changed: all lanes `base` words further. Which banks are hit changes, not how often."""
    s = cuda.shared.array(WORDS, float32)
    lane = cuda.threadIdx.x
    for i in range(lane, WORDS, LANES):
        s[i] = i
    cuda.syncthreads()  # all words are written before any is read
    dst[lane] = s[base + stride * lane]


@cuda.jit
def read_partly(dst, stride, n_lanes):
    """Changed: only the first `n_lanes` lanes read. The others ask for nothing, so they meet nobody."""
    s = cuda.shared.array(WORDS, float32)
    lane = cuda.threadIdx.x
    for i in range(lane, WORDS, LANES):
        s[i] = i
    dst[lane] = -1
    cuda.syncthreads()  # all words are written before any is read
    if lane < n_lanes:
        dst[lane] = s[stride * lane]


@cuda.jit
def read_column(dst):
    """Changed: the array is a tile of 32 rows, and the warp reads its first column."""
    tile = cuda.shared.array((LANES, LANES), float32)
    lane = cuda.threadIdx.x
    for row in range(LANES):
        tile[row, lane] = LANES * row + lane
    cuda.syncthreads()  # all rows are written before any column is read
    dst[lane] = tile[lane, 0]


@cuda.jit
def read_diagonal(dst):
    """Changed: the warp reads the diagonal."""
    tile = cuda.shared.array((LANES, LANES), float32)
    lane = cuda.threadIdx.x
    for row in range(LANES):
        tile[row, lane] = LANES * row + lane
    cuda.syncthreads()  # all rows are written before any column is read
    dst[lane] = tile[lane, lane]


@cuda.jit
def store_first(dst):
    """All lanes store to one word: one pass, and one value survives. Which one is not defined."""
    s = cuda.shared.array(WORDS, float32)
    lane = cuda.threadIdx.x
    s[0] = lane
    cuda.syncthreads()  # the store is done before anyone reads
    dst[lane] = s[0]


@cuda.jit
def store_stride(dst, stride):
    """Changed: each lane stores to a word of its own, `stride` from its neighbour's."""
    s = cuda.shared.array(WORDS, float32)
    lane = cuda.threadIdx.x
    s[stride * lane] = lane
    cuda.syncthreads()  # the store is done before anyone reads
    dst[lane] = s[stride * lane]


@cuda.jit
def read_too_early(dst):
    """Changed from `read_column`: no barrier. A race, although the values often look right."""
    tile = cuda.shared.array((LANES, LANES), float32)
    lane = cuda.threadIdx.x
    for row in range(LANES):
        tile[row, lane] = LANES * row + lane
    dst[lane] = tile[lane, 0]  # lane 0 wrote all of these words


# --- Whole kernels: what a conflict costs where DRAM has a say. Float32 matrices of any size; launch with
# --- `SCALE_BLOCK` threads and `padding.grid_of(src)` blocks. `dst` has the shape of what is written.

SCALE_BLOCK = (LANES, LANES)
PITCH = LANES + 1  # a shared array's shape must be a plain name or number


def reference_scale(src: np.ndarray) -> np.ndarray:
    """What `scale_by_rows` writes: the doubled matrix. The other two write its transpose."""
    return src * np.float32(2)


@cuda.jit
def scale_by_rows(src, dst):
    """The baseline: a tile goes in and comes out by rows, doubled. No conflict."""
    tile = cuda.shared.array((LANES, LANES), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        tile[ty, tx] = src[row, col]
    cuda.syncthreads()  # the tile is full before any thread reads it
    if row < src.shape[0] and col < src.shape[1]:
        dst[row, col] = tile[ty, tx] * float32(2)


@cuda.jit
def scale_by_columns(src, dst):
    """Changed: the warp reads a column of the tile, and writes it as a row of the transpose."""
    tile = cuda.shared.array((LANES, LANES), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        tile[ty, tx] = src[row, col]
    cuda.syncthreads()  # the tile is full before any thread reads it
    row = LANES * cuda.blockIdx.x + ty
    col = LANES * cuda.blockIdx.y + tx
    if row < dst.shape[0] and col < dst.shape[1]:
        dst[row, col] = tile[tx, ty] * float32(2)


@cuda.jit
def scale_padded(src, dst):
    """Changed: the rows of the tile lie 33 floats apart."""
    tile = cuda.shared.array((LANES, PITCH), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        tile[ty, tx] = src[row, col]
    cuda.syncthreads()  # the tile is full before any thread reads it
    row = LANES * cuda.blockIdx.x + ty
    col = LANES * cuda.blockIdx.y + tx
    if row < dst.shape[0] and col < dst.shape[1]:
        dst[row, col] = tile[tx, ty] * float32(2)
