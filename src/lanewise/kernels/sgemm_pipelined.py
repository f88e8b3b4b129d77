"""SGEMM: the next tiles arrive while these are multiplied.

Menu: `double_buffered` (the next tiles wait in registers, then go to a second pair of tiles),
`async_copies` (`cp.async` writes them there directly).

Launch with `BLOCK` = (16, 16) threads and `sgemm.grid_of(C, 128)` blocks. A, B and C are float32 matrices of
`(m, k)`, `(k, n)` and `(m, n)` elements, rows contiguous; m and n must be multiples of 128, k of 8.
Reference: `sgemm.reference(A, B)`.
"""

from numba import cuda, float32

from lanewise import ptx

BLOCK = (16, 16)
TILE, DEPTH = 128, 8
A_TILES, B_TILES = (2, 8, 132), (2, 8, 128)  # buffer, k, row or column


@cuda.jit
def double_buffered(A, B, C):
    """Changed from `sgemm_registers.fragments_132`: two pairs of tiles, so one barrier a step is enough."""
    a_tiles = cuda.shared.array(A_TILES, float32)
    b_tiles = cuda.shared.array(B_TILES, float32)
    acc = cuda.local.array((8, 8), float32)
    a = cuda.local.array(8, float32)
    b = cuda.local.array(8, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    thread = 16 * y + x
    first_row, first_col = cuda.blockIdx.y * 128, cuda.blockIdx.x * 128
    a_row, a_k = thread // 2, thread % 2 * 4
    b_k, b_col = thread // 32, thread % 32 * 4
    for i in range(8):
        for j in range(8):
            acc[i, j] = float32(0)
    a_next = ptx.load4(A, (first_row + a_row, a_k))
    b_next = ptx.load4(B, (b_k, first_col + b_col))
    for first in range(0, A.shape[1], 8):
        buffer = first // 8 % 2
        for i in range(4):
            a_tiles[buffer, a_k + i, a_row] = a_next[i]
        ptx.store4(b_tiles, (buffer, b_k, b_col), b_next)
        cuda.syncthreads()  # these tiles are full, and everyone is done with the ones before them
        if first + 8 < A.shape[1]:
            a_next = ptx.load4(A, (first_row + a_row, first + 8 + a_k))
            b_next = ptx.load4(B, (first + 8 + b_k, first_col + b_col))
        for k in range(8):
            a[0], a[1], a[2], a[3] = ptx.load4(a_tiles, (buffer, k, 8 * y))
            a[4], a[5], a[6], a[7] = ptx.load4(a_tiles, (buffer, k, 8 * y + 4))
            b[0], b[1], b[2], b[3] = ptx.load4(b_tiles, (buffer, k, 4 * x))
            b[4], b[5], b[6], b[7] = ptx.load4(b_tiles, (buffer, k, 64 + 4 * x))
            for i in range(8):
                for j in range(8):
                    acc[i, j] += a[i] * b[j]
    for i in range(8):
        for j in range(0, 8, 4):
            row, col = first_row + 8 * y + i, first_col + 4 * x + 16 * j
            ptx.store4(C, (row, col), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])


@cuda.jit
def async_copies(A, B, C):
    """Changed: the next tiles are copied to shared memory without passing through registers (from sm_80).

    A's elements are copied one by one, since their rows become columns: 8 lanes take the 32 bytes of a row.
    """
    a_tiles = cuda.shared.array(A_TILES, float32)
    b_tiles = cuda.shared.array(B_TILES, float32)
    acc = cuda.local.array((8, 8), float32)
    a = cuda.local.array(8, float32)
    b = cuda.local.array(8, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    thread = 16 * y + x
    first_row, first_col = cuda.blockIdx.y * 128, cuda.blockIdx.x * 128
    a_row, a_k = thread // 8, thread % 8
    b_k, b_col = thread // 32, thread % 32 * 4
    for i in range(8):
        for j in range(8):
            acc[i, j] = float32(0)
    for i in range(0, 128, 32):
        ptx.cp_async_4(a_tiles, (0, a_k, a_row + i), A, (first_row + a_row + i, a_k))
    ptx.cp_async_cg_16(b_tiles, (0, b_k, b_col), B, (b_k, first_col + b_col))
    for first in range(0, A.shape[1], 8):
        buffer = first // 8 % 2
        ptx.cp_async_wait_all()
        cuda.syncthreads()  # everyone's copies have arrived, and everyone is done with the other tiles
        if first + 8 < A.shape[1]:
            for i in range(0, 128, 32):
                source = first_row + a_row + i, first + 8 + a_k
                ptx.cp_async_4(a_tiles, (1 - buffer, a_k, a_row + i), A, source)
            source = first + 8 + b_k, first_col + b_col
            ptx.cp_async_cg_16(b_tiles, (1 - buffer, b_k, b_col), B, source)
        for k in range(8):
            a[0], a[1], a[2], a[3] = ptx.load4(a_tiles, (buffer, k, 8 * y))
            a[4], a[5], a[6], a[7] = ptx.load4(a_tiles, (buffer, k, 8 * y + 4))
            b[0], b[1], b[2], b[3] = ptx.load4(b_tiles, (buffer, k, 4 * x))
            b[4], b[5], b[6], b[7] = ptx.load4(b_tiles, (buffer, k, 64 + 4 * x))
            for i in range(8):
                for j in range(8):
                    acc[i, j] += a[i] * b[j]
    for i in range(8):
        for j in range(0, 8, 4):
            row, col = first_row + 8 * y + i, first_col + 4 * x + 16 * j
            ptx.store4(C, (row, col), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
