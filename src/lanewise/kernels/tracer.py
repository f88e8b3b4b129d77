"""The tracer: a matrix product whose machine code differs from its source.

Menu: `matmul_tiled` (16 x 16 threads, one element of C each, tiles of A and B in shared memory).

Launch with `BLOCK` = (16, 16) threads and `grid_of(C)` blocks. A, B and C are float32 matrices whose sides
are multiples of 16. Reference: `reference(A, B)`.
"""

import numpy as np
from numba import cuda, float32

SIDE = 16
BLOCK = (SIDE, SIDE)


def reference(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """What the kernel writes to C: the product, float32."""
    return A @ B


def grid_of(C: np.ndarray) -> tuple[int, int]:
    """The grid that covers C with tiles, x first.

    >>> grid_of(np.zeros((64, 32), np.float32))
    (2, 4)
    """
    n_rows, n_cols = C.shape
    return n_cols // SIDE, n_rows // SIDE


@cuda.jit
def matmul_tiled(A, B, C):
    """The baseline: a thread computes one element, tile by tile."""
    a_tile = cuda.shared.array((SIDE, SIDE), float32)
    b_tile = cuda.shared.array((SIDE, SIDE), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for first in range(0, A.shape[1], SIDE):
        a_tile[y, x] = A[row, first + x]
        b_tile[y, x] = B[first + y, col]
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(SIDE):
            acc += a_tile[y, k] * b_tile[k, x]
        cuda.syncthreads()  # everyone is done before the tiles change
    C[row, col] = acc
