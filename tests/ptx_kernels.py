"""One small kernel per group of `lanewise.ptx` intrinsics, with a launch and inputs for it.

The tests trace and compile them; on a GPU the same launches give the same bits (mma: the same within rounding).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import cuda, float32, uint32

from lanewise import ptx

float16 = np.float16
WARPS = 4  # in the blocks of these kernels
THREADS = 32 * WARPS
STORED_ROWS = 112 * WARPS


@cuda.jit
def wide(src, dst):
    """Every width of load and store, through shared memory."""
    i = cuda.threadIdx.x
    tile = cuda.shared.array(2048, float32)
    for part in range(4):
        tile[512 * part + 4 * i] = src[512 * part + 4 * i]
        a, b = ptx.load2(src, 512 * part + 4 * i)
        c, d = ptx.load2_nc(src, 512 * part + 4 * i + 2)
        ptx.store2(tile, 512 * part + 4 * i, b, a)
        ptx.store2(tile, 512 * part + 4 * i + 2, (d, c))
    cuda.syncthreads()
    j = 4 * (cuda.blockDim.x - 1 - i)
    ptx.store4(dst, 4 * i, ptx.load4(tile, j))
    x, y, z, w = ptx.load4_nc(src, 4 * i + 512)
    ptx.store4(dst, 4 * i + 512, w, z, y, ptx.load_nc(src, i))
    p, q = ptx.load2(tile, 4 * i + 1024)
    ptx.store2(dst, 4 * i + 1024, q, p)
    p, q = ptx.load2(tile, (4 * i + 1026,))
    ptx.store2(dst, 4 * i + 1026, q, p)
    ptx.store4(dst, 4 * i + 1536, x, y, z, w)


@cuda.jit
def eights(src, dst):
    """Eight elements of 2 bytes by one access; a row of a matrix by a pair of indices."""
    i = cuda.threadIdx.x
    tile = cuda.shared.array((THREADS, 8), float16)
    ptx.store8(tile, (i, 0), ptx.load8(src, (i, 8)))
    cuda.syncthreads()
    a = ptx.load8_nc(src, (i, 0))
    b = ptx.load8(tile, (i ^ 1, 0))
    ptx.store8(dst, (i, 0), a[7], a[6], a[5], a[4], a[3], a[2], a[1], a[0])
    ptx.store8(dst, (i, 8), b)


@cuda.jit
def squared(src, dst):
    """Eight halves a thread, calculated with as float32."""
    i = 8 * cuda.threadIdx.x
    a, b, c, d, e, f, g, h = ptx.load8(src, i)
    ptx.store8(dst, i, square(a), square(b), square(c), square(d), square(e), square(f), square(g), square(h))


@cuda.jit(device=True)
def square(x):
    return float32(x) * float32(x)


@cuda.jit
def matrix_loads(src, dst):
    """All forms of ldmatrix, from a tile of 64 rows with a pitch of 24 halves; lane l of warp w starts lower."""
    i = cuda.threadIdx.x
    lane = i % 32
    tile = cuda.shared.array((64, 24), float16)
    for k in range(i, 64 * 24, cuda.blockDim.x):
        tile[k // 24, k % 24] = src[k // 24, k % 24]
    cuda.syncthreads()
    row = (lane + 8 * (i // 32)) % 64
    dst[i, 0] = ptx.ldmatrix_x1(tile, (row, 8))
    dst[i, 1] = ptx.ldmatrix_x1_trans(tile, (row, 16))
    a, b = ptx.ldmatrix_x2(tile, (row, 0))
    dst[i, 2], dst[i, 3] = a, b
    a, b = ptx.ldmatrix_x2_trans(tile, (row, 8))
    dst[i, 4], dst[i, 5] = a, b
    r = ptx.ldmatrix_x4(tile, (row, 8 * (lane % 3)))
    dst[i, 6], dst[i, 7], dst[i, 8], dst[i, 9] = r[0], r[1], r[2], r[3]
    r = ptx.ldmatrix_x4_trans(tile, (row, 8 * (lane % 3)))
    dst[i, 10], dst[i, 11], dst[i, 12], dst[i, 13] = r[0], r[1], r[2], r[3]


@cuda.jit
def matrix_stores(src, dst):
    """All forms of stmatrix, each into rows of its own, read back element by element."""
    i = cuda.threadIdx.x
    lane, warp = i % 32, i // 32
    tile = cuda.shared.array((STORED_ROWS, 8), float16)
    r0, r1, r2, r3 = src[i, 0], src[i, 1], src[i, 2], src[i, 3]
    base = 112 * warp
    ptx.stmatrix_x1(tile, (base + lane % 8, 0), r0)
    ptx.stmatrix_x1_trans(tile, (base + 8 + lane % 8, 0), r1)
    ptx.stmatrix_x2(tile, (base + 16 + lane % 16, 0), r2, r3)
    ptx.stmatrix_x2_trans(tile, (base + 32 + lane % 16, 0), r0, r1)
    ptx.stmatrix_x4(tile, (base + 48 + lane, 0), r0, r1, r2, r3)
    ptx.stmatrix_x4_trans(tile, (base + 80 + lane, 0), r3, r2, r1, r0)
    cuda.syncthreads()
    for k in range(i, 8 * STORED_ROWS, cuda.blockDim.x):
        dst[k // 8, k % 8] = tile[k // 8, k % 8]


@cuda.jit
def products(a, b, c, half, brain, short):
    """The three products of one warp's fragments, given register by register."""
    i = cuda.threadIdx.x
    fa = (a[i, 0], a[i, 1], a[i, 2], a[i, 3])
    fb = (b[i, 0], b[i, 1])
    fc = (c[i, 0], c[i, 1], c[i, 2], c[i, 3])
    half[i, 0], half[i, 1], half[i, 2], half[i, 3] = ptx.mma_m16n8k16_f16(fa, fb, fc)
    brain[i, 0], brain[i, 1], brain[i, 2], brain[i, 3] = ptx.mma_m16n8k16_bf16(fa, fb, fc)
    short[i, 0], short[i, 1], short[i, 2], short[i, 3] = ptx.mma_m16n8k8_f16((fa[0], fa[1]), b[i, 0], fc)


@cuda.jit
def short_product(a, b, c, short):
    """The product that compute capability 7.5 has."""
    i = cuda.threadIdx.x
    fc = (c[i, 0], c[i, 1], c[i, 2], c[i, 3])
    d = ptx.mma_m16n8k8_f16((a[i, 0], a[i, 1]), (b[i, 0],), fc)
    short[i, 0], short[i, 1], short[i, 2], short[i, 3] = d


@cuda.jit
def copies(src, dst):
    """Every width of cp.async, in two groups."""
    i = cuda.threadIdx.x
    tile = cuda.shared.array(1280, float32)
    ptx.cp_async_4(tile, i, src, i)
    ptx.cp_async_8(tile, 128 + 2 * i, src, 128 + 2 * i)
    ptx.cp_async_commit()
    if i < 64:
        ptx.cp_async_16(tile, 384 + 4 * i, src, 384 + 4 * i)
    ptx.cp_async_cg_16(tile, 768 + 4 * i, src, 768 + 4 * i)
    ptx.cp_async_commit()
    ptx.cp_async_wait(1)
    cuda.syncthreads()
    for k in range(i, 384, cuda.blockDim.x):
        dst[k] = tile[383 - k]
    ptx.cp_async_wait_all()
    cuda.syncthreads()
    for k in range(i, 256, cuda.blockDim.x):
        dst[384 + k] = tile[639 - k]
    for k in range(i, 512, cuda.blockDim.x):
        dst[640 + k] = tile[1279 - k]


@cuda.jit
def packed(lo, hi, words, low, high):
    """Pack, then unpack, in float16 and bfloat16."""
    i = cuda.grid(1)
    half = ptx.pack_half2(lo[i], hi[i])
    brain = ptx.pack_bf16x2(lo[i], hi[i])
    words[i, 0], words[i, 1] = half, brain
    low[i, 0], high[i, 0] = ptx.unpack_half2(half)
    low[i, 1], high[i, 1] = ptx.unpack_bf16x2(brain)


@cuda.jit
def packed_half(lo, hi, words, low, high):
    """The part that compute capability 7.5 has."""
    i = cuda.grid(1)
    words[i] = ptx.pack_half2(lo[i], hi[i])
    low[i], high[i] = ptx.unpack_half2(words[i])
    words[i] = ptx.float_bits(ptx.bits_float(ptx.float_bits(hi[i]) ^ words[i]))


@cuda.jit
def powers(src, dst):
    """Powers of two, approximately."""
    i = cuda.grid(1)
    dst[i] = ptx.exp2_approx(src[i])


@cuda.jit
def addresses(dst):
    """Addresses in the shared window, from that of the first array."""
    i = cuda.threadIdx.x
    tile = cuda.shared.array((64, 5), float32)
    other = cuda.shared.array(64, float16)
    first = ptx.shared_address(tile, (0, 0))
    if i < 64:
        tile[i, 0] = float32(i)
    dst[i, 0] = uint32(ptx.shared_address(tile, (i % 64, 3)) - first)
    dst[i, 1] = uint32(ptx.shared_address(other, i % 64) - ptx.shared_address(other, 0))


@cuda.jit
def look_back(src, dst, state):
    """Running totals of blocks: each publishes its own, then walks back to the first block that knows its sum.

    A word holds 2 * total + 1 once the block's own total is there, and a second one the running total.
    """
    block = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        own = src[block]
        ptx.store_release(state, (block, 0), 2 * own + 1)
        total = own
        before = block - 1
        while before >= 0:
            known = ptx.load_acquire(state, (before, 1))
            if known % 2 == 1:
                total += known // 2
                before = -1
            else:
                partial = ptx.load_acquire(state, (before, 0))
                if partial % 2 == 1:
                    total += partial // 2
                    before -= 1
        ptx.store_release(state, (block, 1), 2 * total + 1)
        dst[block] = total


@dataclass(frozen=True)
class Launch:
    """A kernel, its shape, and what makes its arguments; the last `n_outputs` arguments are written.

    A GPU gives the same bits as the tracer, or float32 within `tolerance` of each number (`of_largest`: of
    the largest one, as in sums that cancel).
    """

    kernel: Any
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    n_outputs: int = 1
    grid: int = 1
    block: int = THREADS
    tolerance: float = 0.0
    of_largest: bool = False
    needs: tuple[int, int] = (7, 5)


def _poison(shape: Any, dtype: Any = np.float32) -> np.ndarray:
    array = np.empty(shape, dtype)
    array.view(np.uint8).fill(0xFF)
    return array


def _words(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Registers that hold pairs of moderate float16 numbers."""
    return rng.standard_normal((*shape, 2)).astype(np.float16).view(np.uint32)[..., 0]


def _fragments(rng: np.random.Generator) -> tuple[Any, ...]:
    c = rng.standard_normal((32, 4)).astype(np.float32)
    return _words(rng, 32, 4), _words(rng, 32, 2), c


PLAIN = [0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-40]
OF_THE_RANGE = [65504, 65519.99, 65520, -65520, 1e30, 3.4e38]
TINY = [2.0**-24, 2.0**-25, 1.5 * 2.0**-25, 3 * 2.0**-25, 6e-8, 6.1e-5]
TIES = [1 + 2**-11, 1 + 3 * 2**-11, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-9]
SPECIAL = np.array([*PLAIN, *OF_THE_RANGE, *TINY, *TIES], np.float32)


def _pairs(rng: np.random.Generator, *outputs: tuple[Any, Any]) -> tuple[Any, ...]:
    n = 4096
    lo = (rng.standard_normal(n) * 10.0 ** rng.integers(-9, 6, n)).astype(np.float32)
    lo[: len(SPECIAL)] = SPECIAL
    bits = rng.integers(0, 2**32, n, dtype=np.uint32)
    return lo, bits.view(np.float32), *(_poison(shape, dtype) for shape, dtype in outputs)


LAUNCHES = {
    "wide": Launch(wide, lambda rng: (rng.standard_normal(2048).astype(np.float32), _poison(2048))),
    "eights": Launch(
        eights,
        lambda rng: (
            rng.standard_normal((THREADS, 16)).astype(np.float16),
            _poison((THREADS, 16), np.float16),
        ),
    ),
    "eights of uint16": Launch(
        eights,
        lambda rng: (
            rng.integers(0, 2**16, (THREADS, 16), dtype=np.uint16).view(np.float16),
            _poison((THREADS, 16), np.float16),
        ),
    ),
    "matrix_loads": Launch(
        matrix_loads,
        lambda rng: (
            rng.integers(0, 2**15, (64, 24), dtype=np.uint16).view(np.float16),
            _poison((THREADS, 14), np.uint32),
        ),
    ),
    "matrix_stores": Launch(
        matrix_stores,
        lambda rng: (_words(rng, THREADS, 4), _poison((STORED_ROWS, 8), np.float16)),
        needs=(9, 0),
    ),
    "products": Launch(
        products,
        lambda rng: (*_fragments(rng), *(_poison((32, 4)) for _ in range(3))),
        n_outputs=3,
        block=32,
        tolerance=1e-6,
        of_largest=True,
        needs=(8, 0),
    ),
    "short_product": Launch(
        short_product,
        lambda rng: (*_fragments(rng), _poison((32, 4))),
        block=32,
        tolerance=1e-6,
        of_largest=True,
    ),
    "copies": Launch(
        copies,
        lambda rng: (rng.standard_normal(1280).astype(np.float32), _poison(1152)),
        needs=(8, 0),
    ),
    "packed": Launch(
        packed,
        lambda rng: _pairs(rng, ((4096, 2), np.uint32), ((4096, 2), np.float32), ((4096, 2), np.float32)),
        n_outputs=3,
        grid=32,
        needs=(8, 0),
    ),
    "packed_half": Launch(
        packed_half,
        lambda rng: _pairs(rng, (4096, np.uint32), (4096, np.float32), (4096, np.float32)),
        n_outputs=3,
        grid=32,
    ),
    "powers": Launch(
        powers,
        lambda rng: (
            np.r_[
                np.float32([0, -0.0, np.inf, -np.inf, np.nan, -126, -127, -149, 127, 128]),
                rng.uniform(-140, 140, 4086),
            ].astype(np.float32),
            _poison(4096),
        ),
        grid=32,
        tolerance=3e-7,
    ),
    "addresses": Launch(addresses, lambda rng: (_poison((128, 2), np.uint32),)),
    "look_back": Launch(
        look_back,
        lambda rng: (rng.integers(0, 1000, 300), _poison(300, np.int64), np.zeros((300, 2), np.int64)),
        n_outputs=2,
        grid=300,
        block=32,
    ),
}
