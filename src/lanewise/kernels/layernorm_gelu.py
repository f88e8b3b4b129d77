"""GELU and LayerNorm: rows held in shared memory, and who walks along them.

Menu, each a GELU followed by a LayerNorm of every row: `rows_walked` (lane = row: each lane walks along a row
of its own; the rows lie `pitch` floats apart), `rows_walked4` (four floats a step), `row_per_warp` (lane =
column: a warp shares a row), `row_per_warp4` (four floats a lane), `row_in_registers` (no shared memory).
Before them three elementwise kernels, `add`, `activate` and the two fused, `add_activate`: what a kernel
less saves.

`src` and `dst` are float32, with any number of rows of exactly 1,024 columns. Launch `rows_walked` and
`rows_walked4` with `TILE_BLOCK` threads, `grid_of_tiles(src)` blocks and `tile_bytes(pitch)` bytes of dynamic
shared memory, 128 KB and more (`ptx.allow_dynamic_shared`): an A100 or H100 has it, a T4 or L4 does not.
Launch the rungs with a warp per row with `BLOCK` threads and `grid_of_rows(src)` blocks. Elementwise, any
size: `THREADS` and `grid_of(src)`. References: `reference`, `reference_gelu`.

GELU is its tanh form. LayerNorm has no weight and no bias here: each would be one row that all rows share.
"""

import math

import numpy as np
from numba import cuda, float32

from lanewise import ptx

COLUMNS = 1024
LANES = 32
TILE_BLOCK = (LANES, LANES)  # 32 warps for 32 rows
SLICE = COLUMNS // LANES  # columns of a row that one lane walks
WARPS = 8
BLOCK = (LANES, WARPS)
PER_LANE = COLUMNS // LANES  # columns of a row that one lane of a warp per row holds
THREADS = 256
EPSILON = 1e-5
STEEP = math.sqrt(2 / math.pi)


def reference_gelu(src: np.ndarray) -> np.ndarray:
    """GELU's tanh form, what `activate` writes: float32."""
    x = src.astype(np.float64)
    return (0.5 * x * (1 + np.tanh(STEEP * (x + 0.044715 * x**3)))).astype(np.float32)


def reference(src: np.ndarray) -> np.ndarray:
    """What every LayerNorm rung writes to `dst`: rows of mean 0 and variance 1 after a GELU, float32."""
    x = reference_gelu(src).astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    return (centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)).astype(np.float32)


def grid_of(src: np.ndarray) -> int:
    """The blocks of `THREADS` that cover the elements of `src`.

    >>> grid_of(np.zeros(1000, np.float32))
    4
    """
    return -(-src.size // THREADS)


def grid_of_tiles(src: np.ndarray) -> int:
    """The blocks that cover the rows of `src`, 32 rows each.

    >>> grid_of_tiles(np.zeros((33, 1024), np.float32))
    2
    """
    return -(-len(src) // LANES)


def grid_of_rows(src: np.ndarray) -> int:
    """The blocks that cover the rows of `src`, one row a warp.

    >>> grid_of_rows(np.zeros((33, 1024), np.float32))
    5
    """
    return -(-len(src) // WARPS)


def tile_bytes(pitch: int) -> int:
    """The shared memory that 32 rows take, `pitch` floats apart.

    >>> tile_bytes(1028)
    131584
    """
    return 4 * LANES * pitch


# --- Elementwise: what fusion saves.


@cuda.jit(device=True)
def gelu(x):
    """GELU's tanh form of one float32."""
    inner = float32(STEEP) * (x + float32(0.044715) * x * x * x)
    return float32(0.5) * x * (float32(1) + math.tanh(inner))


@cuda.jit
def add(a, b, dst):
    """The baseline, first half: 12 bytes an element for the sum."""
    i = cuda.grid(1)
    if i < dst.size:
        dst[i] = a[i] + b[i]


@cuda.jit
def activate(src, dst):
    """The baseline, second half: 8 more bytes an element for the activation."""
    i = cuda.grid(1)
    if i < dst.size:
        dst[i] = gelu(src[i])


@cuda.jit
def add_activate(a, b, dst):
    """Changed: both at once; the sum stays in a register."""
    i = cuda.grid(1)
    if i < dst.size:
        dst[i] = gelu(a[i] + b[i])


# --- LayerNorm: a block holds 32 rows; lane = row. Launch bounds keep 1,024 threads within the registers.


@cuda.jit(device=True)
def total_of(parts, row):
    """The sum of what all warps found of a row."""
    total = float32(0)
    for warp in range(LANES):
        total += parts[warp, row]
    return total


@cuda.jit(launch_bounds=1024)
def rows_walked(src, dst, pitch):
    """The baseline: each lane walks along a row of its own, so a warp reads a column of the tile."""
    tile = cuda.shared.array(0, float32)
    sums = cuda.shared.array((LANES, LANES), float32)
    squares = cuda.shared.array((LANES, LANES), float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    row, last = LANES * cuda.blockIdx.x + warp, src.shape[0] - 1
    for col in range(lane, COLUMNS, LANES):
        tile[warp * pitch + col] = gelu(src[min(row, last), col])
    cuda.syncthreads()  # the rows are in before a lane walks along one
    start, total, spread = lane * pitch + warp * SLICE, float32(0), float32(0)
    for step in range(SLICE):
        total += tile[start + step]
    sums[warp, lane] = total
    cuda.syncthreads()  # all slices are summed before they are added up
    mean = total_of(sums, lane) / float32(COLUMNS)
    for step in range(SLICE):
        off = tile[start + step] - mean
        spread += off * off
    squares[warp, lane] = spread
    cuda.syncthreads()  # all slices are squared before they are added up
    scale = float32(1) / math.sqrt(total_of(squares, lane) / float32(COLUMNS) + float32(EPSILON))
    mean, scale = cuda.shfl_sync(0xFFFFFFFF, mean, warp), cuda.shfl_sync(0xFFFFFFFF, scale, warp)
    if row <= last:
        for col in range(lane, COLUMNS, LANES):
            dst[row, col] = (tile[warp * pitch + col] - mean) * scale


@cuda.jit(launch_bounds=1024)
def rows_walked4(src, dst, pitch):
    """Changed: four floats at a time. `pitch` must be a multiple of 4, or the GPU faults."""
    tile = cuda.shared.array(0, float32)
    sums = cuda.shared.array((LANES, LANES), float32)
    squares = cuda.shared.array((LANES, LANES), float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    row, last = LANES * cuda.blockIdx.x + warp, src.shape[0] - 1
    for col in range(4 * lane, COLUMNS, 4 * LANES):
        a, b, c, d = ptx.load4(src, (min(row, last), col))
        ptx.store4(tile, warp * pitch + col, gelu(a), gelu(b), gelu(c), gelu(d))
    cuda.syncthreads()  # the rows are in before a lane walks along one
    start, total, spread = lane * pitch + warp * SLICE, float32(0), float32(0)
    for step in range(0, SLICE, 4):
        a, b, c, d = ptx.load4(tile, start + step)
        total += (a + b) + (c + d)
    sums[warp, lane] = total
    cuda.syncthreads()  # all slices are summed before they are added up
    mean = total_of(sums, lane) / float32(COLUMNS)
    for step in range(0, SLICE, 4):
        a, b, c, d = ptx.load4(tile, start + step)
        a, b, c, d = a - mean, b - mean, c - mean, d - mean
        spread += (a * a + b * b) + (c * c + d * d)
    squares[warp, lane] = spread
    cuda.syncthreads()  # all slices are squared before they are added up
    scale = float32(1) / math.sqrt(total_of(squares, lane) / float32(COLUMNS) + float32(EPSILON))
    mean, scale = cuda.shfl_sync(0xFFFFFFFF, mean, warp), cuda.shfl_sync(0xFFFFFFFF, scale, warp)
    if row <= last:
        for col in range(4 * lane, COLUMNS, 4 * LANES):
            a, b, c, d = ptx.load4(tile, warp * pitch + col)
            a, b, c, d = a - mean, b - mean, c - mean, d - mean
            ptx.store4(dst, (row, col), a * scale, b * scale, c * scale, d * scale)


# --- LayerNorm: a warp holds one row; lane = column.


@cuda.jit(device=True)
def warp_sum(value):
    """The sum of a value over the lanes of a warp, in all of them."""
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(0xFFFFFFFF, value, step)
    return value


@cuda.jit
def row_per_warp(src, dst):
    """Changed from `rows_walked`: a warp shares a row, lane = column.

    Each lane reads back what it wrote, so there is no barrier.
    """
    tile = cuda.shared.array((WARPS, COLUMNS), float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    row = WARPS * cuda.blockIdx.x + warp
    if row < src.shape[0]:
        for col in range(lane, COLUMNS, LANES):
            tile[warp, col] = gelu(src[row, col])
        total = float32(0)
        for col in range(lane, COLUMNS, LANES):
            total += tile[warp, col]
        mean = warp_sum(total) / float32(COLUMNS)
        spread = float32(0)
        for col in range(lane, COLUMNS, LANES):
            off = tile[warp, col] - mean
            spread += off * off
        scale = float32(1) / math.sqrt(warp_sum(spread) / float32(COLUMNS) + float32(EPSILON))
        for col in range(lane, COLUMNS, LANES):
            dst[row, col] = (tile[warp, col] - mean) * scale


@cuda.jit
def row_per_warp4(src, dst):
    """Changed: four columns a lane, in global memory and in shared."""
    tile = cuda.shared.array((WARPS, COLUMNS), float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    row = WARPS * cuda.blockIdx.x + warp
    if row < src.shape[0]:
        for col in range(4 * lane, COLUMNS, 4 * LANES):
            a, b, c, d = ptx.load4(src, (row, col))
            ptx.store4(tile, (warp, col), gelu(a), gelu(b), gelu(c), gelu(d))
        total = float32(0)
        for col in range(4 * lane, COLUMNS, 4 * LANES):
            a, b, c, d = ptx.load4(tile, (warp, col))
            total += (a + b) + (c + d)
        mean = warp_sum(total) / float32(COLUMNS)
        spread = float32(0)
        for col in range(4 * lane, COLUMNS, 4 * LANES):
            a, b, c, d = ptx.load4(tile, (warp, col))
            a, b, c, d = a - mean, b - mean, c - mean, d - mean
            spread += (a * a + b * b) + (c * c + d * d)
        scale = float32(1) / math.sqrt(warp_sum(spread) / float32(COLUMNS) + float32(EPSILON))
        for col in range(4 * lane, COLUMNS, 4 * LANES):
            a, b, c, d = ptx.load4(tile, (warp, col))
            a, b, c, d = a - mean, b - mean, c - mean, d - mean
            ptx.store4(dst, (row, col), a * scale, b * scale, c * scale, d * scale)


@cuda.jit
def row_in_registers(src, dst):
    """Changed: the lane keeps its 32 columns in registers."""
    kept = cuda.local.array(PER_LANE, float32)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    row = WARPS * cuda.blockIdx.x + warp
    if row < src.shape[0]:
        total = float32(0)
        for k in range(0, PER_LANE, 4):
            a, b, c, d = ptx.load4(src, (row, LANES * k + 4 * lane))
            kept[k], kept[k + 1], kept[k + 2], kept[k + 3] = gelu(a), gelu(b), gelu(c), gelu(d)
            total += (kept[k] + kept[k + 1]) + (kept[k + 2] + kept[k + 3])
        mean = warp_sum(total) / float32(COLUMNS)
        spread = float32(0)
        for k in range(PER_LANE):
            kept[k] -= mean
            spread += kept[k] * kept[k]
        scale = float32(1) / math.sqrt(warp_sum(spread) / float32(COLUMNS) + float32(EPSILON))
        for k in range(0, PER_LANE, 4):
            a, b, c, d = kept[k], kept[k + 1], kept[k + 2], kept[k + 3]
            ptx.store4(dst, (row, LANES * k + 4 * lane), a * scale, b * scale, c * scale, d * scale)
