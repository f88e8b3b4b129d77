"""SGEMM: several elements a thread, held in registers.

Menu: `registers_4x4` and `registers_8x8` (16 scalar reads of shared memory feed 64 multiply-adds),
`fragments_adjacent` (the tile of A is transposed, 4 reads of 16 bytes feed them), `fragments_split` (a
thread's columns lie in two groups of 4), `fragments_132` (a pitch for storing it), `transposed_of(depth,
pitch)` (pitches compared), `tile_of(tile, depth)` (tile sizes compared).

Launch with `BLOCK` = (16, 16) threads and `sgemm.grid_of(C, tile)` blocks. A, B and C are float32 matrices of
`(m, k)`, `(k, n)` and `(m, n)` elements, rows contiguous; m and n must be multiples of the tile, k of its
depth. Reference: `sgemm.reference(A, B)`.
"""

from functools import cache
from typing import Any

from numba import cuda, float32

from lanewise import ptx

BLOCK = (16, 16)
A_TILE_64, B_TILE_64 = (64, 16), (16, 64)
A_TILE_128, B_TILE_128 = (128, 8), (8, 128)
TRANSPOSED, TRANSPOSED_132 = (8, 128), (8, 132)
PITCHES = (128, 130, 132)  # of the transposed tile of A, in elements
TILES, DEPTHS = (16, 32, 64, 128), (8, 16, 32)


@cuda.jit
def registers_4x4(A, B, C):
    """Changed from `sgemm.vectors_32`: 64 x 64 elements a block; a thread computes 4 x 4, 16 apart.

    Tile 64, depth 16.
    """
    a_tile = cuda.shared.array(A_TILE_64, float32)
    b_tile = cuda.shared.array(B_TILE_64, float32)
    acc = cuda.local.array((4, 4), float32)
    a = cuda.local.array(4, float32)
    b = cuda.local.array(4, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    thread = 16 * y + x
    first_row, first_col = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
    for i in range(4):
        for j in range(4):
            acc[i, j] = float32(0)
    for first in range(0, A.shape[1], 16):
        row, k = thread // 4, thread % 4 * 4
        ptx.store4(a_tile, (row, k), ptx.load4(A, (first_row + row, first + k)))
        ptx.store4(b_tile, (y, 4 * x), ptx.load4(B, (first + y, first_col + 4 * x)))
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(16):
            for i in range(4):
                a[i], b[i] = a_tile[y + 16 * i, k], b_tile[k, x + 16 * i]
            for i in range(4):
                for j in range(4):
                    acc[i, j] += a[i] * b[j]
        cuda.syncthreads()  # everyone is done before the tiles change
    for i in range(4):
        for j in range(4):
            C[first_row + y + 16 * i, first_col + x + 16 * j] = acc[i, j]


@cuda.jit
def registers_8x8(A, B, C):
    """Changed: 128 x 128 elements a block, 8 x 8 a thread. Tile 128, depth 8."""
    a_tile = cuda.shared.array(A_TILE_128, float32)
    b_tile = cuda.shared.array(B_TILE_128, float32)
    acc = cuda.local.array((8, 8), float32)
    a = cuda.local.array(8, float32)
    b = cuda.local.array(8, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    thread = 16 * y + x
    first_row, first_col = cuda.blockIdx.y * 128, cuda.blockIdx.x * 128
    for i in range(8):
        for j in range(8):
            acc[i, j] = float32(0)
    for first in range(0, A.shape[1], 8):
        row, k = thread // 2, thread % 2 * 4
        ptx.store4(a_tile, (row, k), ptx.load4(A, (first_row + row, first + k)))
        k, col = thread // 32, thread % 32 * 4
        ptx.store4(b_tile, (k, col), ptx.load4(B, (first + k, first_col + col)))
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(8):
            for i in range(8):
                a[i], b[i] = a_tile[y + 16 * i, k], b_tile[k, x + 16 * i]
            for i in range(8):
                for j in range(8):
                    acc[i, j] += a[i] * b[j]
        cuda.syncthreads()  # everyone is done before the tiles change
    for i in range(8):
        for j in range(8):
            C[first_row + y + 16 * i, first_col + x + 16 * j] = acc[i, j]


@cuda.jit
def fragments_adjacent(A, B, C):
    """Changed: A's tile is stored transposed; a thread reads 8 neighbours of a tile by two 16-byte loads.

    Tile 128, depth 8.
    """
    a_tile = cuda.shared.array(TRANSPOSED, float32)
    b_tile = cuda.shared.array(B_TILE_128, float32)
    acc = cuda.local.array((8, 8), float32)
    a = cuda.local.array(8, float32)
    b = cuda.local.array(8, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    thread = 16 * y + x
    first_row, first_col = cuda.blockIdx.y * 128, cuda.blockIdx.x * 128
    for i in range(8):
        for j in range(8):
            acc[i, j] = float32(0)
    for first in range(0, A.shape[1], 8):
        row, k = thread // 2, thread % 2 * 4
        values = ptx.load4(A, (first_row + row, first + k))
        for i in range(4):
            a_tile[k + i, row] = values[i]
        k, col = thread // 32, thread % 32 * 4
        ptx.store4(b_tile, (k, col), ptx.load4(B, (first + k, first_col + col)))
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(8):
            a[0], a[1], a[2], a[3] = ptx.load4(a_tile, (k, 8 * y))
            a[4], a[5], a[6], a[7] = ptx.load4(a_tile, (k, 8 * y + 4))
            b[0], b[1], b[2], b[3] = ptx.load4(b_tile, (k, 8 * x))
            b[4], b[5], b[6], b[7] = ptx.load4(b_tile, (k, 8 * x + 4))
            for i in range(8):
                for j in range(8):
                    acc[i, j] += a[i] * b[j]
        cuda.syncthreads()  # everyone is done before the tiles change
    for i in range(8):
        for j in range(0, 8, 4):
            row, col = first_row + 8 * y + i, first_col + 8 * x + j
            ptx.store4(C, (row, col), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])


@cuda.jit
def fragments_split(A, B, C):
    """Changed: a thread's 8 columns are two groups of 4, 64 apart, so 8 lanes read 128 bytes in a row."""
    a_tile = cuda.shared.array(TRANSPOSED, float32)
    b_tile = cuda.shared.array(B_TILE_128, float32)
    acc = cuda.local.array((8, 8), float32)
    a = cuda.local.array(8, float32)
    b = cuda.local.array(8, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    thread = 16 * y + x
    first_row, first_col = cuda.blockIdx.y * 128, cuda.blockIdx.x * 128
    for i in range(8):
        for j in range(8):
            acc[i, j] = float32(0)
    for first in range(0, A.shape[1], 8):
        row, k = thread // 2, thread % 2 * 4
        values = ptx.load4(A, (first_row + row, first + k))
        for i in range(4):
            a_tile[k + i, row] = values[i]
        k, col = thread // 32, thread % 32 * 4
        ptx.store4(b_tile, (k, col), ptx.load4(B, (first + k, first_col + col)))
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(8):
            a[0], a[1], a[2], a[3] = ptx.load4(a_tile, (k, 8 * y))
            a[4], a[5], a[6], a[7] = ptx.load4(a_tile, (k, 8 * y + 4))
            b[0], b[1], b[2], b[3] = ptx.load4(b_tile, (k, 4 * x))
            b[4], b[5], b[6], b[7] = ptx.load4(b_tile, (k, 64 + 4 * x))
            for i in range(8):
                for j in range(8):
                    acc[i, j] += a[i] * b[j]
        cuda.syncthreads()  # everyone is done before the tiles change
    for i in range(8):
        for j in range(0, 8, 4):
            row, col = first_row + 8 * y + i, first_col + 4 * x + 16 * j
            ptx.store4(C, (row, col), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])


@cuda.jit
def fragments_132(A, B, C):
    """Changed: rows of A's tile are 132 elements, so that storing a column of it meets each bank once."""
    a_tile = cuda.shared.array(TRANSPOSED_132, float32)
    b_tile = cuda.shared.array(B_TILE_128, float32)
    acc = cuda.local.array((8, 8), float32)
    a = cuda.local.array(8, float32)
    b = cuda.local.array(8, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    thread = 16 * y + x
    first_row, first_col = cuda.blockIdx.y * 128, cuda.blockIdx.x * 128
    for i in range(8):
        for j in range(8):
            acc[i, j] = float32(0)
    for first in range(0, A.shape[1], 8):
        row, k = thread // 2, thread % 2 * 4
        values = ptx.load4(A, (first_row + row, first + k))
        for i in range(4):
            a_tile[k + i, row] = values[i]
        k, col = thread // 32, thread % 32 * 4
        ptx.store4(b_tile, (k, col), ptx.load4(B, (first + k, first_col + col)))
        cuda.syncthreads()  # both tiles are full before anyone multiplies
        for k in range(8):
            a[0], a[1], a[2], a[3] = ptx.load4(a_tile, (k, 8 * y))
            a[4], a[5], a[6], a[7] = ptx.load4(a_tile, (k, 8 * y + 4))
            b[0], b[1], b[2], b[3] = ptx.load4(b_tile, (k, 4 * x))
            b[4], b[5], b[6], b[7] = ptx.load4(b_tile, (k, 64 + 4 * x))
            for i in range(8):
                for j in range(8):
                    acc[i, j] += a[i] * b[j]
        cuda.syncthreads()  # everyone is done before the tiles change
    for i in range(8):
        for j in range(0, 8, 4):
            row, col = first_row + 8 * y + i, first_col + 4 * x + 16 * j
            ptx.store4(C, (row, col), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])


@cache
def transposed_of(depth: int, pitch: int) -> Any:
    """The rung `fragments_split` with tiles `depth` deep (8 or 16) and `pitch` elements a row of A's tile.

    A is read by loads of 8 bytes, since a pitch of 130 keeps no more aligned than that.
    """
    a_shape, b_shape = (depth, pitch), (depth, 128)
    n_chunks = depth // 4  # of 4 elements in a row of A's tile

    @cuda.jit
    def transposed(A, B, C):
        a_tile = cuda.shared.array(a_shape, float32)
        b_tile = cuda.shared.array(b_shape, float32)
        acc = cuda.local.array((8, 8), float32)
        a = cuda.local.array(8, float32)
        b = cuda.local.array(8, float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        thread = 16 * y + x
        first_row, first_col = cuda.blockIdx.y * 128, cuda.blockIdx.x * 128
        for i in range(8):
            for j in range(8):
                acc[i, j] = float32(0)
        for first in range(0, A.shape[1], depth):
            for part in range(depth // 8):
                chunk = thread + 256 * part
                row, k = chunk // n_chunks, chunk % n_chunks * 4
                values = ptx.load4(A, (first_row + row, first + k))
                for i in range(4):
                    a_tile[k + i, row] = values[i]
                k, col = chunk // 32, chunk % 32 * 4
                ptx.store4(b_tile, (k, col), ptx.load4(B, (first + k, first_col + col)))
            cuda.syncthreads()  # both tiles are full before anyone multiplies
            for k in range(depth):
                for i in range(0, 8, 2):
                    a[i], a[i + 1] = ptx.load2(a_tile, (k, 8 * y + i))
                b[0], b[1], b[2], b[3] = ptx.load4(b_tile, (k, 4 * x))
                b[4], b[5], b[6], b[7] = ptx.load4(b_tile, (k, 64 + 4 * x))
                for i in range(8):
                    for j in range(8):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()  # everyone is done before the tiles change
        for i in range(8):
            for j in range(0, 8, 4):
                row, col = first_row + 8 * y + i, first_col + 4 * x + 16 * j
                ptx.store4(C, (row, col), acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])

    return transposed


@cache
def tile_of(tile: int, depth: int) -> Any:
    """A kernel with `tile` x `tile` elements a block out of `TILES`, k-tiles of `depth` out of `DEPTHS`.

    Like `registers_4x4`: each of the 16 x 16 threads computes (tile / 16)^2 elements, 16 apart.
    """
    a_shape, b_shape = (tile, depth), (depth, tile)
    side, n_elems = tile // 16, tile * depth

    @cuda.jit
    def tiled(A, B, C):
        a_tile = cuda.shared.array(a_shape, float32)
        b_tile = cuda.shared.array(b_shape, float32)
        acc = cuda.local.array((side, side), float32)
        a = cuda.local.array(side, float32)
        b = cuda.local.array(side, float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        thread = 16 * y + x
        first_row, first_col = cuda.blockIdx.y * tile, cuda.blockIdx.x * tile
        for i in range(side):
            for j in range(side):
                acc[i, j] = float32(0)
        for first in range(0, A.shape[1], depth):
            for element in range(thread, n_elems, 256):
                row, k = element // depth, element % depth
                a_tile[row, k] = A[first_row + row, first + k]
                k, col = element // tile, element % tile
                b_tile[k, col] = B[first + k, first_col + col]
            cuda.syncthreads()  # both tiles are full before anyone multiplies
            for k in range(depth):
                for i in range(side):
                    a[i], b[i] = a_tile[y + 16 * i, k], b_tile[k, x + 16 * i]
                for i in range(side):
                    for j in range(side):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()  # everyone is done before the tiles change
        for i in range(side):
            for j in range(side):
                C[first_row + y + 16 * i, first_col + x + 16 * j] = acc[i, j]

    return tiled
