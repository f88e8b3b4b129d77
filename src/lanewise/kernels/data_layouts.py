"""Data layouts: one computation, the same numbers in another order in memory.

Menu of records of floats (`src` has a row per record): `scale_fields` (field by field), `scale_vectors`
(four fields at once), `scale_arrays` (structure of arrays: a row per field), `scale_triples` (12-byte
records), and for one field alone `scale_one_field` and `scale_one_array`.

Menu of permuted matrices: `scale_view` (any strides), `scale_transposed` (transposing on the way, through
a tile).

Menu of images: `by_pixel` and `by_channel` (neighbouring lanes take neighbouring pixels or channels),
each for NCHW and NHWC, which differ in two strides.

Menu of a key-value cache of float16, (tokens, heads, 128): `gather_rows` (a warp per row), `gather_pages`
(through a page table), `gather_lanes` (a lane per token).

Float32 unless said otherwise; sizes are free. Launch shapes and references stand before each menu's
kernels.
"""

import numpy as np
from numba import cuda, float32

from lanewise import ptx

THREADS = 256  # for grids of `-(-n // THREADS)` blocks, n threads
TILE = 32
PITCH = TILE + 1
BLOCK_2D = (TILE, 8)
PAGE = 16  # tokens
HALVES = 128  # of one row of the key-value cache


def reference(src: np.ndarray) -> np.ndarray:
    """What the kernels of records write: everything doubled."""
    return src * np.float32(2)


# -- records: one thread per record ----------------------------------------------------------------


@cuda.jit
def scale_fields(src, dst):
    """The baseline: an array of structures, (n, 4), its fields one after the other."""
    i = cuda.grid(1)
    if i < src.shape[0]:
        dst[i, 0] = float32(2) * src[i, 0]
        dst[i, 1] = float32(2) * src[i, 1]
        dst[i, 2] = float32(2) * src[i, 2]
        dst[i, 3] = float32(2) * src[i, 3]


@cuda.jit
def scale_vectors(src, dst):
    """Changed: the four fields of a record, (n, 4), by one instruction of 16 bytes."""
    i = cuda.grid(1)
    if i < src.shape[0]:
        x, y, z, w = ptx.load4(src, (i, 0))
        two = float32(2)
        ptx.store4(dst, (i, 0), two * x, two * y, two * z, two * w)


@cuda.jit
def scale_arrays(src, dst):
    """Changed: a structure of arrays, (4, n)."""
    i = cuda.grid(1)
    if i < src.shape[1]:
        dst[0, i] = float32(2) * src[0, i]
        dst[1, i] = float32(2) * src[1, i]
        dst[2, i] = float32(2) * src[2, i]
        dst[3, i] = float32(2) * src[3, i]


@cuda.jit
def scale_triples(src, dst):
    """Changed from `scale_fields`: records of 12 bytes, (n, 3)."""
    i = cuda.grid(1)
    if i < src.shape[0]:
        dst[i, 0] = float32(2) * src[i, 0]
        dst[i, 1] = float32(2) * src[i, 1]
        dst[i, 2] = float32(2) * src[i, 2]


@cuda.jit
def scale_one_field(src, dst):
    """Changed from `scale_fields`: only the first field of each record; a row of any length is a record."""
    i = cuda.grid(1)
    if i < src.shape[0]:
        dst[i] = float32(2) * src[i, 0]


@cuda.jit
def scale_one_array(src, dst):
    """Changed: the same from a structure of arrays."""
    i = cuda.grid(1)
    if i < src.shape[1]:
        dst[i] = float32(2) * src[0, i]


# -- permuted matrices: blocks BLOCK_2D, grid `padding.grid_of(dst)`; they write doubled elements ---


@cuda.jit
def scale_view(src, dst, row_stride, col_stride):
    """The baseline: `dst` is a matrix, `src` flat; a row or column further is that many elements further."""
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, 8):
        if row + step < dst.shape[0] and col < dst.shape[1]:
            dst[row + step, col] = float32(2) * src[(row + step) * row_stride + col * col_stride]


@cuda.jit
def scale_transposed(src, dst):
    """Changed: `src` is the transposed matrix, read along its rows into a tile, which is read down."""
    tile = cuda.shared.array((TILE, PITCH), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
    for step in range(0, TILE, 8):
        if row + step < src.shape[0] and col < src.shape[1]:
            tile[y + step, x] = src[row + step, col]
    cuda.syncthreads()  # the tile is full before anyone reads a column of it
    col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
    for step in range(0, TILE, 8):
        if row + step < dst.shape[0] and col < dst.shape[1]:
            dst[row + step, col] = float32(2) * tile[x, y + step]


# -- images: flat, of any type; block THREADS ------------------------------------------------------


def grid_by_pixel(n_images: int, n_channels: int, n_pixels: int) -> tuple[int, int, int]:
    """The grid of `by_pixel`: 256 pixels a block, channels, images.

    >>> grid_by_pixel(32, 64, 56 * 56)
    (13, 64, 32)
    """
    return -(-n_pixels // THREADS), n_channels, n_images


def grid_by_channel(n_images: int, n_channels: int, n_pixels: int) -> tuple[int, int, int]:
    """The grid of `by_channel`: 32 channels and 8 pixels a block, images.

    >>> grid_by_channel(32, 64, 56 * 56)
    (2, 392, 32)
    """
    return -(-n_channels // 32), -(-n_pixels // 8), n_images


@cuda.jit
def by_pixel(src, dst, n_pixels, n_channels, pixel_stride, channel_stride):
    """The baseline: neighbouring lanes copy neighbouring pixels of one channel."""
    pixel, channel, image = cuda.grid(1), cuda.blockIdx.y, cuda.blockIdx.z
    if pixel < n_pixels:
        i = image * n_pixels * n_channels + channel * channel_stride + pixel * pixel_stride
        dst[i] = src[i]


@cuda.jit
def by_channel(src, dst, n_pixels, n_channels, pixel_stride, channel_stride):
    """Changed: neighbouring lanes copy neighbouring channels; a warp per 32 of them, 8 pixels a block."""
    channel = cuda.blockIdx.x * 32 + cuda.threadIdx.x % 32
    pixel, image = cuda.blockIdx.y * 8 + cuda.threadIdx.x // 32, cuda.blockIdx.z
    if channel < n_channels and pixel < n_pixels:
        i = image * n_pixels * n_channels + channel * channel_stride + pixel * pixel_stride
        dst[i] = src[i]


# -- a key-value cache: any number of pages of 16 tokens. Block BLOCK_2D, grid (tokens / 8, heads);
# for gather_lanes block THREADS, grid (tokens / THREADS, heads)


def reference_rows(cache: np.ndarray, pages: np.ndarray) -> np.ndarray:
    """What `gather_pages` writes, (heads, tokens, 128): tokens in their order, pages looked up."""
    n_tokens = len(cache)
    token = np.arange(n_tokens)
    return np.ascontiguousarray(cache[pages[token // PAGE] * PAGE + token % PAGE].transpose(1, 0, 2))


@cuda.jit
def gather_rows(cache, dst):
    """The baseline: 32 lanes take the 256 bytes of a token's row, 8 bytes each."""
    lane, head = cuda.threadIdx.x, cuda.blockIdx.y
    token = cuda.blockIdx.x * 8 + cuda.threadIdx.y
    if token < cache.shape[0]:
        a, b, c, d = ptx.load4(cache, (token, head, 4 * lane))
        ptx.store4(dst, (head, token, 4 * lane), a, b, c, d)


@cuda.jit
def gather_pages(cache, pages, dst):
    """Changed: 16 tokens at a time lie somewhere else, as the page table says."""
    lane, head = cuda.threadIdx.x, cuda.blockIdx.y
    token = cuda.blockIdx.x * 8 + cuda.threadIdx.y
    if token < cache.shape[0]:
        place = pages[token // PAGE] * PAGE + token % PAGE
        a, b, c, d = ptx.load4(cache, (place, head, 4 * lane))
        ptx.store4(dst, (head, token, 4 * lane), a, b, c, d)


@cuda.jit
def gather_lanes(cache, pages, dst):
    """Changed: each lane walks along the row of a token of its own; `dst` is (heads, 128, tokens)."""
    token, head = cuda.grid(1), cuda.blockIdx.y
    if token < cache.shape[0]:
        place = pages[token // PAGE] * PAGE + token % PAGE
        for d in range(HALVES):
            dst[head, d, token] = cache[place, head, d]
