"""Tensor Cores: how a tile of halves lies in shared memory, and what fetching its fragments costs.

A fragment is the part of a matrix that each lane hands to the Tensor Core: registers of two halves each. With
`g = lane // 4` and `t = lane % 4`, a 16 x 16 operand A lies in four registers, the quarters of the matrix:

    register 0   row g,     columns 2t,     2t + 1        register 2   row g,     columns 2t + 8, 2t + 9
    register 1   row g + 8, columns 2t,     2t + 1        register 3   row g + 8, columns 2t + 8, 2t + 9

Menu, each rung with the tile's pitch (elements from row to row) or its swizzle as an argument:

- fragments word by word: `a_words` (a pitch), `a_words_swizzled`
- rows of eight halves, one matrix after the other, by `ldmatrix`: `rows_x1`, `rows_x2`, `rows_x4`,
  `rows_x4_trans`
- an operand A, row-major: `a_matrices` (a pitch), `a_matrices_swizzled`
- an operand B, row-major, transposed on the way: `b_matrices` (a pitch), `b_matrices_swizzled`
- the product of one tile, over and over: `product_by_words`, `product_by_matrices`, its like for GPUs
  without `mma.m16n8k16`, `product_by_matrices_sm75`, and `product_in_registers`

A swizzle is given as its `bits`, `base` and `shift`: it flips the bits from `base` on of an element's offset
by the `bits` bits that lie `shift` higher (`lanewise.Swizzle`). Launch with `BLOCK` threads in one block
(products: any number of blocks) and `tile_bytes(...)` of dynamic shared memory; the products' tile is static.
Sizes must be multiples of a fragment's. References: `a_fragments`, `b_fragments`, `row_fragments`, `product`.
"""

import numpy as np
from numba import cuda, float32
from numba.types import float16, uint32

from lanewise import ptx

BLOCK = 128
WARPS = BLOCK // 32
SIDE, DEPTH = 64, 32  # the products' tile: A is SIDE x DEPTH, B is DEPTH x SIDE
PITCH = DEPTH + 8  # an odd number of 16-byte chunks, so that both kinds of access are free of conflicts
WORDS = PITCH // 2
TILE = SIDE * PITCH
TILE_WORDS = SIDE * WORDS
N_ACC = SIDE // 2  # results per lane: 16 x SIDE for each warp


def tile_bytes(n_rows: int, pitch: int) -> int:
    """Shared memory of a tile of halves whose rows begin `pitch` elements apart, in bytes.

    >>> tile_bytes(64, 40)
    5120
    """
    return 2 * n_rows * pitch


def a_fragments(src: np.ndarray) -> np.ndarray:
    """The registers of every 16 x 16 block of A, `(row block, column block, lane, register)`, uint32."""
    pairs = np.ascontiguousarray(src).view(np.uint32)
    lane = np.arange(32)[:, np.newaxis]
    register = np.arange(4)
    rows = lane // 4 + 8 * (register % 2)
    cols = lane % 4 + 4 * (register // 2)
    blocks = pairs.reshape(src.shape[0] // 16, 16, src.shape[1] // 16, 8)
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)[:, :, rows, cols])


def b_fragments(src: np.ndarray) -> np.ndarray:
    """The registers of every 16 x 16 block of B, as A's: two for eight columns, two for the next."""
    transposed = a_fragments(np.ascontiguousarray(src.T)).transpose(1, 0, 2, 3)
    return np.ascontiguousarray(transposed[..., [0, 2, 1, 3]])


def row_fragments(src: np.ndarray, transposed: bool = False) -> np.ndarray:
    """What `ldmatrix` makes of rows of eight halves: `(matrix, lane)`, uint32."""
    matrices = src.reshape(-1, 8, 8)
    if transposed:
        matrices = matrices.transpose(0, 2, 1)
    return np.ascontiguousarray(matrices).view(np.uint32).reshape(-1, 32)


def product(a: np.ndarray, bt: np.ndarray, repeats: int = 1) -> np.ndarray:
    """`repeats` times A @ B of halves, in float32; `bt` is B transposed, so that a column of B is a row."""
    return np.float32(repeats) * (a.astype(np.float32) @ bt.astype(np.float32).T)


@cuda.jit(device=True, inline="always")
def copy_chunk(tile, index, src, row, col):
    """Copy 16 bytes, eight halves, from `src[row, col]` to `tile[index]`."""
    c0, c1, c2, c3, c4, c5, c6, c7 = ptx.load8(src, (row, col))
    ptx.store8(tile, index, c0, c1, c2, c3, c4, c5, c6, c7)


@cuda.jit(device=True, inline="always")
def swizzled(offset, bits, base, shift):
    """The place of element `offset`: bits from `base` on, flipped by those `shift` higher."""
    return offset ^ ((offset >> shift) & (((1 << bits) - 1) << base))


# -- fragments, word by word ------------------------------------------------------------------------


@cuda.jit
def a_words(words, dst, pitch):
    """The baseline: every lane reads its own pairs of halves from a tile of pairs, `pitch` of them a row."""
    tile = cuda.shared.array(0, uint32)
    thread = cuda.threadIdx.x
    for pair in range(thread, words.size, BLOCK):
        row, col = pair // words.shape[1], pair % words.shape[1]
        tile[row * pitch + col] = words[row, col]
    cuda.syncthreads()  # the tile is full before anyone reads a fragment of it
    lane, warp = thread & 31, thread >> 5
    for step in range(words.shape[1] // 8):
        for register in range(4):
            row = 16 * warp + 8 * (register % 2) + lane // 4
            col = 8 * step + 4 * (register // 2) + lane % 4
            dst[warp, step, lane, register] = tile[row * pitch + col]


@cuda.jit
def a_words_swizzled(words, dst, bits, base, shift):
    """Changed: dense rows, permuted by a swizzle."""
    tile = cuda.shared.array(0, uint32)
    thread, pitch = cuda.threadIdx.x, words.shape[1]
    for pair in range(thread, words.size, BLOCK):
        tile[swizzled(pair, bits, base, shift)] = words[pair // pitch, pair % pitch]
    cuda.syncthreads()  # the tile is full before anyone reads a fragment of it
    lane, warp = thread & 31, thread >> 5
    for step in range(pitch // 8):
        for register in range(4):
            row = 16 * warp + 8 * (register % 2) + lane // 4
            col = 8 * step + 4 * (register // 2) + lane % 4
            dst[warp, step, lane, register] = tile[swizzled(row * pitch + col, bits, base, shift)]


# -- rows of eight halves by ldmatrix ---------------------------------------------------------------


@cuda.jit
def rows_x1(src, dst, pitch):
    """The baseline: one matrix an instruction; lanes 0..7 say where its eight rows begin."""
    tile = cuda.shared.array(0, float16)
    thread = cuda.threadIdx.x
    copy_chunk(tile, thread * pitch, src, thread, 0)
    cuda.syncthreads()  # the tile is full before a warp reads the rows of others
    lane, warp = thread & 31, thread >> 5
    for matrix in range(4 * warp, 4 * warp + 4):
        dst[matrix, lane] = ptx.ldmatrix_x1(tile, (8 * matrix + lane % 8) * pitch)


@cuda.jit
def rows_x2(src, dst, pitch):
    """Changed: two matrices an instruction, from the addresses of lanes 0..15."""
    tile = cuda.shared.array(0, float16)
    thread = cuda.threadIdx.x
    copy_chunk(tile, thread * pitch, src, thread, 0)
    cuda.syncthreads()  # the tile is full before a warp reads the rows of others
    lane, warp = thread & 31, thread >> 5
    for matrix in range(4 * warp, 4 * warp + 4, 2):
        r0, r1 = ptx.ldmatrix_x2(tile, (8 * matrix + lane % 16) * pitch)
        dst[matrix, lane] = r0
        dst[matrix + 1, lane] = r1


@cuda.jit
def rows_x4(src, dst, pitch):
    """Changed: four matrices an instruction; every lane gives the address of a row."""
    tile = cuda.shared.array(0, float16)
    thread = cuda.threadIdx.x
    copy_chunk(tile, thread * pitch, src, thread, 0)
    cuda.syncthreads()  # the tile is full before a warp reads the rows of others
    lane, matrix = thread % 32, 4 * (thread // 32)
    r0, r1, r2, r3 = ptx.ldmatrix_x4(tile, (8 * matrix + lane) * pitch)
    dst[matrix, lane] = r0
    dst[matrix + 1, lane] = r1
    dst[matrix + 2, lane] = r2
    dst[matrix + 3, lane] = r3


@cuda.jit
def rows_x4_trans(src, dst, pitch):
    """Changed: each matrix is transposed on the way; the addresses are the same."""
    tile = cuda.shared.array(0, float16)
    thread = cuda.threadIdx.x
    copy_chunk(tile, thread * pitch, src, thread, 0)
    cuda.syncthreads()  # the tile is full before a warp reads the rows of others
    lane, matrix = thread % 32, 4 * (thread // 32)
    r0, r1, r2, r3 = ptx.ldmatrix_x4_trans(tile, (8 * matrix + lane) * pitch)
    dst[matrix, lane] = r0
    dst[matrix + 1, lane] = r1
    dst[matrix + 2, lane] = r2
    dst[matrix + 3, lane] = r3


# -- operands by ldmatrix ---------------------------------------------------------------------------


@cuda.jit(device=True, inline="always")
def put_fragment(dst, row, col, lane, r0, r1, r2, r3):
    """Write a lane's four registers of the block (row, col)."""
    dst[row, col, lane, 0] = r0
    dst[row, col, lane, 1] = r1
    dst[row, col, lane, 2] = r2
    dst[row, col, lane, 3] = r3


@cuda.jit
def a_matrices(src, dst, pitch):
    """The baseline: A is row-major; lane `l` gives row `l % 16` of a block, right half if l >= 16."""
    tile = cuda.shared.array(0, float16)
    thread, chunks = cuda.threadIdx.x, src.shape[1] // 8
    for chunk in range(thread, src.size // 8, BLOCK):
        row, col = chunk // chunks, 8 * (chunk % chunks)
        copy_chunk(tile, row * pitch + col, src, row, col)
    cuda.syncthreads()  # the tile is full before a warp reads the rows of others
    lane, warp = thread & 31, thread >> 5
    for step in range(src.shape[1] // 16):
        row, col = 16 * warp + lane % 16, 16 * step + 8 * (lane // 16)
        r0, r1, r2, r3 = ptx.ldmatrix_x4(tile, row * pitch + col)
        put_fragment(dst, warp, step, lane, r0, r1, r2, r3)


@cuda.jit
def a_matrices_swizzled(src, dst, bits, base, shift):
    """Changed: dense rows, permuted; legal if whole chunks of eight halves move, that is if base >= 3."""
    tile = cuda.shared.array(0, float16)
    thread, pitch = cuda.threadIdx.x, src.shape[1]
    for chunk in range(thread, src.size // 8, BLOCK):
        row, col = 8 * chunk // pitch, 8 * chunk % pitch
        copy_chunk(tile, swizzled(8 * chunk, bits, base, shift), src, row, col)
    cuda.syncthreads()  # the tile is full before a warp reads the rows of others
    lane, warp = thread & 31, thread >> 5
    for step in range(pitch // 16):
        row, col = 16 * warp + lane % 16, 16 * step + 8 * (lane // 16)
        r0, r1, r2, r3 = ptx.ldmatrix_x4(tile, swizzled(row * pitch + col, bits, base, shift))
        put_fragment(dst, warp, step, lane, r0, r1, r2, r3)


@cuda.jit
def b_matrices(src, dst, pitch):
    """Changed from `a_matrices`: B's rows run along k, so each matrix is transposed on the way."""
    tile = cuda.shared.array(0, float16)
    thread, chunks = cuda.threadIdx.x, src.shape[1] // 8
    for chunk in range(thread, src.size // 8, BLOCK):
        row, col = chunk // chunks, 8 * (chunk % chunks)
        copy_chunk(tile, row * pitch + col, src, row, col)
    cuda.syncthreads()  # the tile is full before a warp reads the rows of others
    lane, warp = thread & 31, thread >> 5
    for step in range(src.shape[0] // 16):
        row, col = 16 * step + lane % 16, 16 * warp + 8 * (lane // 16)
        r0, r1, r2, r3 = ptx.ldmatrix_x4_trans(tile, row * pitch + col)
        put_fragment(dst, step, warp, lane, r0, r1, r2, r3)


@cuda.jit
def b_matrices_swizzled(src, dst, bits, base, shift):
    """Changed: dense rows, permuted."""
    tile = cuda.shared.array(0, float16)
    thread, pitch = cuda.threadIdx.x, src.shape[1]
    for chunk in range(thread, src.size // 8, BLOCK):
        row, col = 8 * chunk // pitch, 8 * chunk % pitch
        copy_chunk(tile, swizzled(8 * chunk, bits, base, shift), src, row, col)
    cuda.syncthreads()  # the tile is full before a warp reads the rows of others
    lane, warp = thread & 31, thread >> 5
    for step in range(src.shape[0] // 16):
        row, col = 16 * step + lane % 16, 16 * warp + 8 * (lane // 16)
        r0, r1, r2, r3 = ptx.ldmatrix_x4_trans(tile, swizzled(row * pitch + col, bits, base, shift))
        put_fragment(dst, step, warp, lane, r0, r1, r2, r3)


# -- the product of one tile ------------------------------------------------------------------------


@cuda.jit(device=True, inline="always")
def keep(registers, at, four):
    """Put four registers back into a local array."""
    for register in range(4):
        registers[at + register] = four[register]


@cuda.jit(device=True, inline="always")
def put_rows(acc, c, warp, lane):
    """Write a warp's 16 x SIDE results; each lane has two neighbours in rows `g` and `g + 8` of 8 columns."""
    for tile in range(SIDE // 8):
        row, col = 16 * warp + lane // 4, 8 * tile + 2 * (lane % 4)
        c[cuda.blockIdx.x, row, col] = acc[4 * tile]
        c[cuda.blockIdx.x, row, col + 1] = acc[4 * tile + 1]
        c[cuda.blockIdx.x, row + 8, col] = acc[4 * tile + 2]
        c[cuda.blockIdx.x, row + 8, col + 1] = acc[4 * tile + 3]


@cuda.jit
def product_by_words(a_words, bt_words, c, repeats):
    """The baseline: each lane collects its pairs of halves: 4 loads for A, 16 for B, 8 products a step."""
    tile_a, tile_b = cuda.shared.array(TILE_WORDS, uint32), cuda.shared.array(TILE_WORDS, uint32)
    acc = cuda.local.array(N_ACC, float32)
    thread = cuda.threadIdx.x
    for register in range(N_ACC):
        acc[register] = 0
    for pair in range(thread, a_words.size, BLOCK):
        row, col = pair // (DEPTH // 2), pair % (DEPTH // 2)
        tile_a[row * WORDS + col] = a_words[row, col]
        tile_b[row * WORDS + col] = bt_words[row, col]
    lane, warp = thread & 31, thread >> 5
    first = lane // 4 * WORDS + lane % 4
    for _ in range(repeats):
        cuda.syncthreads()  # the tiles are full; and the compiler may not load them once for all repeats
        at = first + 16 * warp * WORDS
        a0 = tile_a[at], tile_a[at + 8 * WORDS], tile_a[at + 4], tile_a[at + 8 * WORDS + 4]
        a1 = tile_a[at + 8], tile_a[at + 8 * WORDS + 8], tile_a[at + 12], tile_a[at + 8 * WORDS + 12]
        for tile in range(SIDE // 8):
            at = first + 8 * tile * WORDS
            d = acc[4 * tile], acc[4 * tile + 1], acc[4 * tile + 2], acc[4 * tile + 3]
            d = ptx.mma_m16n8k16_f16(a0, (tile_b[at], tile_b[at + 4]), d)
            keep(acc, 4 * tile, ptx.mma_m16n8k16_f16(a1, (tile_b[at + 8], tile_b[at + 12]), d))
    put_rows(acc, c, warp, lane)


@cuda.jit
def product_by_matrices(a, bt, c, repeats):
    """Changed: `ldmatrix` fetches four matrices at a time: 1 load for A, 4 for B, 8 products a step."""
    tile_a, tile_b = cuda.shared.array(TILE, float16), cuda.shared.array(TILE, float16)
    acc = cuda.local.array(N_ACC, float32)
    thread = cuda.threadIdx.x
    for register in range(N_ACC):
        acc[register] = 0
    for chunk in range(thread, SIDE * DEPTH // 8, BLOCK):
        row, col = chunk // (DEPTH // 8), 8 * (chunk % (DEPTH // 8))
        copy_chunk(tile_a, row * PITCH + col, a, row, col)
        copy_chunk(tile_b, row * PITCH + col, bt, row, col)
    lane, warp = thread & 31, thread >> 5
    first_a = (16 * warp + lane % 16) * PITCH + 8 * (lane // 16)
    first_b = (lane % 8 + 8 * (lane // 16)) * PITCH + 8 * (lane // 8 % 2)
    for _ in range(repeats):
        cuda.syncthreads()  # the tiles are full; and the compiler may not load them once for all repeats
        for step in range(DEPTH // 16):
            ra = ptx.ldmatrix_x4(tile_a, first_a + 16 * step)
            for pair in range(SIDE // 16):
                b0, b1, b2, b3 = ptx.ldmatrix_x4(tile_b, first_b + 16 * pair * PITCH + 16 * step)
                at = 8 * pair
                d = acc[at], acc[at + 1], acc[at + 2], acc[at + 3]
                keep(acc, at, ptx.mma_m16n8k16_f16(ra, (b0, b1), d))
                d = acc[at + 4], acc[at + 5], acc[at + 6], acc[at + 7]
                keep(acc, at + 4, ptx.mma_m16n8k16_f16(ra, (b2, b3), d))
    put_rows(acc, c, warp, lane)


@cuda.jit
def product_by_matrices_sm75(a, bt, c, repeats):
    """Changed from `product_by_matrices`: two `mma` of half the depth, for GPUs that have no deeper one."""
    tile_a, tile_b = cuda.shared.array(TILE, float16), cuda.shared.array(TILE, float16)
    acc = cuda.local.array(N_ACC, float32)
    thread = cuda.threadIdx.x
    for register in range(N_ACC):
        acc[register] = 0
    for chunk in range(thread, SIDE * DEPTH // 8, BLOCK):
        row, col = chunk // (DEPTH // 8), 8 * (chunk % (DEPTH // 8))
        copy_chunk(tile_a, row * PITCH + col, a, row, col)
        copy_chunk(tile_b, row * PITCH + col, bt, row, col)
    lane, warp = thread & 31, thread >> 5
    first_a = (16 * warp + lane % 16) * PITCH + 8 * (lane // 16)
    first_b = (lane % 8 + 8 * (lane // 16)) * PITCH + 8 * (lane // 8 % 2)
    for _ in range(repeats):
        cuda.syncthreads()  # the tiles are full; and the compiler may not load them once for all repeats
        for step in range(DEPTH // 16):
            a0, a1, a2, a3 = ptx.ldmatrix_x4(tile_a, first_a + 16 * step)
            for pair in range(SIDE // 16):
                b0, b1, b2, b3 = ptx.ldmatrix_x4(tile_b, first_b + 16 * pair * PITCH + 16 * step)
                at = 8 * pair
                d = acc[at], acc[at + 1], acc[at + 2], acc[at + 3]
                d = ptx.mma_m16n8k8_f16((a0, a1), b0, d)
                keep(acc, at, ptx.mma_m16n8k8_f16((a2, a3), b1, d))
                d = acc[at + 4], acc[at + 5], acc[at + 6], acc[at + 7]
                d = ptx.mma_m16n8k8_f16((a0, a1), b2, d)
                keep(acc, at + 4, ptx.mma_m16n8k8_f16((a2, a3), b3, d))
    put_rows(acc, c, warp, lane)


@cuda.jit
def product_in_registers(a, bt, c, repeats):
    """Changed from `product_by_matrices`: the fragments are fetched once and stay.

    What is left is the rate of `mma` itself.
    """
    tile_a, tile_b = cuda.shared.array(TILE, float16), cuda.shared.array(TILE, float16)
    acc, fb = cuda.local.array(N_ACC, float32), cuda.local.array(N_ACC, uint32)
    thread = cuda.threadIdx.x
    for register in range(N_ACC):
        acc[register] = 0
    for chunk in range(thread, SIDE * DEPTH // 8, BLOCK):
        row, col = chunk // (DEPTH // 8), 8 * (chunk % (DEPTH // 8))
        copy_chunk(tile_a, row * PITCH + col, a, row, col)
        copy_chunk(tile_b, row * PITCH + col, bt, row, col)
    lane, warp = thread & 31, thread >> 5
    first_a = (16 * warp + lane % 16) * PITCH + 8 * (lane // 16)
    first_b = (lane % 8) * PITCH + 8 * (lane // 8)
    cuda.syncthreads()  # the tiles are full before a warp reads the rows of others
    a0, a1 = ptx.ldmatrix_x4(tile_a, first_a), ptx.ldmatrix_x4(tile_a, first_a + 16)
    for tile in range(SIDE // 8):
        keep(fb, 4 * tile, ptx.ldmatrix_x4(tile_b, first_b + 8 * tile * PITCH))
    for _ in range(repeats):
        for tile in range(SIDE // 8):
            at = 4 * tile
            d = acc[at], acc[at + 1], acc[at + 2], acc[at + 3]
            d = ptx.mma_m16n8k16_f16(a0, (fb[at], fb[at + 1]), d)
            keep(acc, at, ptx.mma_m16n8k16_f16(a1, (fb[at + 2], fb[at + 3]), d))
    put_rows(acc, c, warp, lane)
