"""SGEMM: a matrix product in float32, from global memory alone to one element a thread out of shared tiles.

Menu: `naive` (16 x 16 or 32 x 32 threads), `exchanged` (threads run down the rows), `tiled_16` (tiles in
shared memory), `padded_16` (one unused element a row), `tiled_32`, `columns_16` and `columns_17` (a warp
reads a column of A's tile), `vectors_32` (16 bytes a load), and `fma_roof` (no memory at all).

A, B and C are float32 matrices of `(m, k)`, `(k, n)` and `(m, n)` elements, rows contiguous; C must not
overlap the others. Any size unless the rung says otherwise. Reference: `reference(A, B)`. Several elements a
thread are in `sgemm_registers`, two tiles at a time in `sgemm_pipelined`, the fastest rungs in `sgemm_fast`.
"""

import numpy as np
from numba import cuda, float32

from lanewise import ptx

BLOCK_16, BLOCK_32 = (16, 16), (32, 32)
PITCH_17 = 17
N_CHAINS, N_STEPS = 8, 16  # of `fma_roof`: independent chains in a thread, steps of each in a round


def reference(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """What every rung writes to C: the product, rounded once to float32."""
    return (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float32)


def grid_of(C: np.ndarray, tile: int) -> tuple[int, int]:
    """The grid that covers C with `tile` x `tile` elements a block, x along the columns.

    >>> grid_of(np.zeros((64, 33), np.float32), 16)
    (3, 4)
    """
    n_rows, n_cols = C.shape
    return -(-n_cols // tile), -(-n_rows // tile)


@cuda.jit
def naive(A, B, C):
    """The baseline: a thread walks one row of A and one column of B. Block: `BLOCK_16` or `BLOCK_32`."""
    col, row = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float32(0)
        for k in range(A.shape[1]):
            acc += A[row, k] * B[k, col]
        C[row, col] = acc


@cuda.jit
def exchanged(A, B, C):
    """Changed: x runs down the rows, so the lanes of a warp lie in a column of A and C.

    Launch with the grid of C's transpose: x along the rows.
    """
    row, col = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float32(0)
        for k in range(A.shape[1]):
            acc += A[row, k] * B[k, col]
        C[row, col] = acc


@cuda.jit
def tiled_16(A, B, C):
    """Changed from `naive`: a block reads 16 x 16 tiles of A and B once for all its threads."""
    a_tile = cuda.shared.array((16, 16), float32)
    b_tile = cuda.shared.array((16, 16), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for first in range(0, A.shape[1], 16):
        has_a = row < A.shape[0] and first + x < A.shape[1]
        has_b = first + y < B.shape[0] and col < B.shape[1]
        a_tile[y, x] = A[row, first + x] if has_a else float32(0)
        b_tile[y, x] = B[first + y, col] if has_b else float32(0)
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(16):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()  # everyone is done before the tiles change
    if row < C.shape[0] and col < C.shape[1]:
        C[row, col] = acc


@cuda.jit
def padded_16(A, B, C):
    """Changed: each row of the tiles ends in one unused element, a cure for what `tiled_16` does not have."""
    a_tile = cuda.shared.array((16, PITCH_17), float32)
    b_tile = cuda.shared.array((16, PITCH_17), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for first in range(0, A.shape[1], 16):
        has_a = row < A.shape[0] and first + x < A.shape[1]
        has_b = first + y < B.shape[0] and col < B.shape[1]
        a_tile[y, x] = A[row, first + x] if has_a else float32(0)
        b_tile[y, x] = B[first + y, col] if has_b else float32(0)
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(16):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()  # everyone is done before the tiles change
    if row < C.shape[0] and col < C.shape[1]:
        C[row, col] = acc


@cuda.jit
def columns_16(A, B, C):
    """Changed from `tiled_16`: x runs down the rows of the tile, so a warp reads a column of A's tile.

    Global memory is still read along rows. The grid is that of the other rungs, x along the columns.
    """
    a_tile = cuda.shared.array((16, 16), float32)
    b_tile = cuda.shared.array((16, 16), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    first_row, first_col = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    acc = float32(0)
    for first in range(0, A.shape[1], 16):
        has_a = first_row + y < A.shape[0] and first + x < A.shape[1]
        has_b = first + y < B.shape[0] and first_col + x < B.shape[1]
        a_tile[y, x] = A[first_row + y, first + x] if has_a else float32(0)
        b_tile[y, x] = B[first + y, first_col + x] if has_b else float32(0)
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(16):
            acc += a_tile[x, k] * b_tile[k, y]
        cuda.syncthreads()  # everyone is done before the tiles change
    if first_row + x < C.shape[0] and first_col + y < C.shape[1]:
        C[first_row + x, first_col + y] = acc


@cuda.jit
def columns_17(A, B, C):
    """Changed: each row of A's tile ends in one unused element, and here it cures something."""
    a_tile = cuda.shared.array((16, PITCH_17), float32)
    b_tile = cuda.shared.array((16, 16), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    first_row, first_col = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    acc = float32(0)
    for first in range(0, A.shape[1], 16):
        has_a = first_row + y < A.shape[0] and first + x < A.shape[1]
        has_b = first + y < B.shape[0] and first_col + x < B.shape[1]
        a_tile[y, x] = A[first_row + y, first + x] if has_a else float32(0)
        b_tile[y, x] = B[first + y, first_col + x] if has_b else float32(0)
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(16):
            acc += a_tile[x, k] * b_tile[k, y]
        cuda.syncthreads()  # everyone is done before the tiles change
    if first_row + x < C.shape[0] and first_col + y < C.shape[1]:
        C[first_row + x, first_col + y] = acc


@cuda.jit
def tiled_32(A, B, C):
    """Changed from `tiled_16`: tiles of 32 x 32, so each element of A and B is read half as often."""
    a_tile = cuda.shared.array((32, 32), float32)
    b_tile = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for first in range(0, A.shape[1], 32):
        has_a = row < A.shape[0] and first + x < A.shape[1]
        has_b = first + y < B.shape[0] and col < B.shape[1]
        a_tile[y, x] = A[row, first + x] if has_a else float32(0)
        b_tile[y, x] = B[first + y, col] if has_b else float32(0)
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(32):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()  # everyone is done before the tiles change
    if row < C.shape[0] and col < C.shape[1]:
        C[row, col] = acc


@cuda.jit
def vectors_32(A, B, C):
    """Changed: 16 bytes a load; 8 warps fetch A's tile, 8 warps B's. Sides must be multiples of 32."""
    a_tile = cuda.shared.array((32, 32), float32)
    b_tile = cuda.shared.array((32, 32), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    chunk_row, chunk = y % 8 * 4 + x // 8, x % 8 * 4
    first_row, first_col = cuda.blockIdx.y * 32, cuda.blockIdx.x * 32
    acc = float32(0)
    for first in range(0, A.shape[1], 32):
        if y < 8:
            values = ptx.load4(A, (first_row + chunk_row, first + chunk))
            ptx.store4(a_tile, (chunk_row, chunk), values)
        elif y < 16:
            values = ptx.load4(B, (first + chunk_row, first_col + chunk))
            ptx.store4(b_tile, (chunk_row, chunk), values)
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(32):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()  # everyone is done before the tiles change
    C[row, col] = acc


@cuda.jit
def fma_roof(dst, factor, n_rounds):
    """A roof: a thread runs `N_CHAINS` chains of `N_STEPS * n_rounds` fused multiply-adds in registers.

    dst (float32, one element a thread) receives the sum of the chains. Reference: `reference_fma_roof`.
    """
    acc = cuda.local.array(N_CHAINS, float32)
    thread = cuda.grid(1)
    for i in range(N_CHAINS):
        acc[i] = float32(i)
    addend = float32(thread)
    for _ in range(n_rounds):
        for _step in range(N_STEPS):
            for i in range(N_CHAINS):
                acc[i] = acc[i] * factor + addend
    total = float32(0)
    for i in range(N_CHAINS):
        total += acc[i]
    dst[thread] = total


def reference_fma_roof(n_threads: int, factor: float, n_rounds: int) -> np.ndarray:
    """What `fma_roof` writes, up to the rounding of each step: a geometric sum. `factor` must not be 1."""
    shrunk = factor ** (N_STEPS * n_rounds)
    addends = np.arange(n_threads) * (1 - shrunk) / (1 - factor)
    return (N_CHAINS * addends + shrunk * sum(range(N_CHAINS))).astype(np.float32)
