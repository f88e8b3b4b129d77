"""FFT: 1,024-point Fourier transforms in shared memory, radix 2 and 4.

Menu: `fft_split` (radix 2, real and imaginary parts in arrays of their own, points stored in bit-reversed
order), `fft_padded` (one unused word after every 32), `fft_pairs` (both parts of a point in one access of 8
bytes), `fft_sorted` (each stage puts its results in order, so nothing is bit-reversed), `fft_radix4` (four
points for each thread, half as many stages). `lanewise.kernels.fft_fast` goes on with radix 8 and 16.

`src` and `dst` are `(batch, 2 * POINTS)` float32: the rows of a complex64 array through `.view(np.float32)`.
Launch with `batch` blocks of `BLOCK` threads, `fft_radix4` with `BLOCK_4`. Reference: `reference`. `roots` is
`roots_of_unity()`.

Alone, to see what they cost: `stage_split`, `stage_pairs` (one stage of 1,024 points, at a distance), and
`reverse_split` (bit-reversed order, plain or padded). References: `reference_stage`, `reference_reversed`.
"""

import numpy as np
from numba import complex64, cuda, float32, uint32

from lanewise import ptx

POINTS = 1024
BITS = 10
BLOCK = POINTS // 2
BLOCK_4 = POINTS // 4
PADDED = POINTS + POINTS // 32
FLOATS = 2 * POINTS
PADDED_FLOATS = 2 * PADDED


def reference(src: np.ndarray) -> np.ndarray:
    """The transforms of the rows of `src`, computed in float64 and rounded once."""
    return floats_of(np.fft.fft(points_of(src).astype(np.complex128)))


def points_of(floats: np.ndarray) -> np.ndarray:
    """Complex64 numbers from their parts side by side."""
    return floats.view(np.complex64)


def floats_of(points: np.ndarray) -> np.ndarray:
    """Complex numbers as float32 parts side by side."""
    return np.ascontiguousarray(points, np.complex64).view(np.float32)


def roots_of_unity(points: int = POINTS) -> np.ndarray:
    """exp(-2 pi i k / points) for k = 0, 1, .. as float32 parts side by side.

    >>> (roots_of_unity(4).round(6) + 0).tolist()
    [1.0, 0.0, 0.0, -1.0, -1.0, 0.0, 0.0, 1.0]
    """
    return floats_of(np.exp(-2j * np.pi * np.arange(points) / points)) + np.float32(0)


def reference_stage(src: np.ndarray, distance: int) -> np.ndarray:
    """One stage of sums and differences of points `distance` apart, with their roots of unity."""
    blocks = points_of(src).astype(np.complex128).reshape(len(src), -1, 2, distance)
    low, high = blocks[:, :, 0], blocks[:, :, 1]
    high = high * np.exp(-1j * np.pi * np.arange(distance) / distance)
    return floats_of(np.stack([low + high, low - high], axis=2).reshape(len(src), -1))


def reference_reversed(src: np.ndarray) -> np.ndarray:
    """The points of each row in the order of their bit-reversed numbers."""
    places = [int(f"{i:0{BITS}b}"[::-1], 2) for i in range(POINTS)]
    return floats_of(points_of(src)[:, places])


@cuda.jit(device=True)
def bits_reversed(i):
    """The number with the lowest `BITS` bits of `i` in reverse."""
    return cuda.brev(uint32(i)) >> (32 - BITS)


@cuda.jit(device=True)
def low_of(thread, distance):
    """The lower point of a thread's butterfly; the other lies `distance` further on."""
    return thread // distance * 2 * distance + thread % distance


@cuda.jit(device=True)
def root_of(roots, thread, distance):
    """The root of unity for a thread's butterfly."""
    real, imag = ptx.load2(roots, 2 * (thread % distance * (BLOCK // distance)))
    return complex(real, imag)


@cuda.jit(device=True)
def join_split(re, im, roots, distance, pad):
    """One stage: each thread turns two points into their sum and difference."""
    low = low_of(cuda.threadIdx.x, distance)
    high = low + distance
    low, high = low + low // 32 * pad, high + high // 32 * pad
    a = complex(re[low], im[low])
    b = complex(re[high], im[high]) * root_of(roots, cuda.threadIdx.x, distance)
    re[low], im[low] = a.real + b.real, a.imag + b.imag
    re[high], im[high] = a.real - b.real, a.imag - b.imag


@cuda.jit(device=True)
def fill_reversed(src, re, im, pad):
    """Copy the block's row to shared memory, each point to the place with its number's bits in reverse."""
    for i in range(cuda.threadIdx.x, POINTS, BLOCK):
        place = bits_reversed(i)
        place += place // 32 * pad
        re[place], im[place] = ptx.load2(src, (cuda.blockIdx.x, 2 * i))


@cuda.jit(device=True)
def empty_split(re, im, dst, pad):
    """Copy the block's row out of shared memory."""
    for i in range(cuda.threadIdx.x, POINTS, BLOCK):
        place = i + i // 32 * pad
        ptx.store2(dst, (cuda.blockIdx.x, 2 * i), re[place], im[place])


@cuda.jit(device=True)
def transform_split(src, roots, dst, re, im, pad):
    """Transform the block's row; `pad` unused words follow every 32 words of `re` and `im`."""
    fill_reversed(src, re, im, pad)
    distance = 1
    while distance < POINTS:
        cuda.syncthreads()  # the stage before must be complete
        join_split(re, im, roots, distance, pad)
        distance *= 2
    cuda.syncthreads()  # all stages are complete before other threads read the points
    empty_split(re, im, dst, pad)


@cuda.jit
def fft_split(src, roots, dst):
    """The baseline: points go to bit-reversed places, then ten stages join pairs 1, 2, .. 512 apart."""
    re, im = cuda.shared.array(PADDED, float32), cuda.shared.array(PADDED, float32)
    transform_split(src, roots, dst, re, im, 0)


@cuda.jit
def fft_padded(src, roots, dst):
    """Changed: one unused word after every 32, so that bit-reversed places lie in different banks."""
    re, im = cuda.shared.array(PADDED, float32), cuda.shared.array(PADDED, float32)
    transform_split(src, roots, dst, re, im, 1)


@cuda.jit(device=True)
def get(floats, i):
    """Read point `i` by one access of 8 bytes."""
    real, imag = ptx.load2(floats, 2 * i)
    return complex(real, imag)


@cuda.jit(device=True)
def put(floats, i, point):
    """Write point `i` by one access of 8 bytes."""
    ptx.store2(floats, 2 * i, point.real, point.imag)


@cuda.jit(device=True)
def join_pairs(s, roots, distance, pad):
    """One stage on points whose parts lie side by side."""
    low = low_of(cuda.threadIdx.x, distance)
    high = low + distance
    low, high = low + low // 32 * pad, high + high // 32 * pad
    a, b = ptx.load2(s, 2 * low)
    c, d = ptx.load2(s, 2 * high)
    near, far = complex(a, b), complex(c, d) * root_of(roots, cuda.threadIdx.x, distance)
    total, rest = near + far, near - far
    ptx.store2(s, 2 * low, total.real, total.imag)
    ptx.store2(s, 2 * high, rest.real, rest.imag)


@cuda.jit
def fft_pairs(src, roots, dst):
    """Changed: the parts of a point lie side by side, so half as many accesses move them."""
    s = cuda.shared.array(PADDED_FLOATS, float32)
    row, out = src[cuda.blockIdx.x], dst[cuda.blockIdx.x]
    for i in range(cuda.threadIdx.x, POINTS, BLOCK):
        place = bits_reversed(i)
        put(s, place + place // 32, get(row, i))
    distance = 1
    while distance < POINTS:
        cuda.syncthreads()  # the stage before must be complete
        join_pairs(s, roots, distance, 1)
        distance *= 2
    cuda.syncthreads()  # all stages are complete before other threads read the points
    for i in range(cuda.threadIdx.x, POINTS, BLOCK):
        put(out, i, get(s, i + i // 32))


@cuda.jit
def fft_sorted(src, roots, dst):
    """Changed: each stage writes where the next one reads in order (Stockham); nothing is bit-reversed."""
    s = cuda.shared.array(FLOATS, float32)
    thread, row, out = cuda.threadIdx.x, src[cuda.blockIdx.x], dst[cuda.blockIdx.x]
    a, b = get(row, thread), get(row, thread + BLOCK)
    distance = 1
    while distance < POINTS:
        b *= root_of(roots, thread, distance)
        low = low_of(thread, distance)
        cuda.syncthreads()  # everyone has read the stage before
        put(s, low, a + b)
        put(s, low + distance, a - b)
        cuda.syncthreads()  # the stage is complete
        a, b = get(s, thread), get(s, thread + BLOCK)
        distance *= 2
    put(out, thread, a)
    put(out, thread + BLOCK, b)


@cuda.jit(device=True)
def dft4(a, b, c, d):
    """The transform of four points, in order. A turn by -i swaps the parts and needs no multiplication."""
    s, t, u, v = a + c, a - c, b + d, b - d
    v = complex(v.imag, -v.real)
    return s + u, t + v, s - u, t - v


@cuda.jit
def fft_radix4(src, roots, dst):
    """Changed: each thread joins four points in registers; five stages cross shared memory, not ten."""
    s = cuda.shared.array(FLOATS, float32)
    z = cuda.local.array(4, complex64)
    thread, row, out = cuda.threadIdx.x, src[cuda.blockIdx.x], dst[cuda.blockIdx.x]
    for k in range(4):
        z[k] = get(row, thread + k * BLOCK_4)
    distance = 1
    while distance < POINTS:
        inside = thread % distance
        for k in range(1, 4):
            z[k] *= get(roots, k * inside * (BLOCK_4 // distance))
        z[0], z[1], z[2], z[3] = dft4(z[0], z[1], z[2], z[3])
        low = 4 * thread - 3 * inside
        cuda.syncthreads()  # everyone has read the stage before
        for k in range(4):
            put(s, low + k * distance, z[k])
        cuda.syncthreads()  # the stage is complete
        for k in range(4):
            z[k] = get(s, thread + k * BLOCK_4)
        distance *= 4
    for k in range(4):
        put(out, thread + k * BLOCK_4, z[k])


@cuda.jit
def stage_split(src, roots, dst, distance):
    """One stage of `fft_split`: points come and go in order."""
    re, im = cuda.shared.array(POINTS, float32), cuda.shared.array(POINTS, float32)
    for i in range(cuda.threadIdx.x, POINTS, BLOCK):
        re[i], im[i] = ptx.load2(src, (cuda.blockIdx.x, 2 * i))
    cuda.syncthreads()  # all points are in before two of them are joined
    join_split(re, im, roots, distance, 0)
    cuda.syncthreads()  # all are joined before other threads copy them out
    empty_split(re, im, dst, 0)


@cuda.jit
def stage_pairs(src, roots, dst, distance):
    """One stage of `fft_pairs`, without padding."""
    s = cuda.shared.array(FLOATS, float32)
    row, out = src[cuda.blockIdx.x], dst[cuda.blockIdx.x]
    for i in range(cuda.threadIdx.x, POINTS, BLOCK):
        put(s, i, get(row, i))
    cuda.syncthreads()  # all points are in before two of them are joined
    join_pairs(s, roots, distance, 0)
    cuda.syncthreads()  # all are joined before other threads copy them out
    for i in range(cuda.threadIdx.x, POINTS, BLOCK):
        put(out, i, get(s, i))


@cuda.jit
def reverse_split(src, dst, pad):
    """The first move of `fft_split` (`pad` 0) and of `fft_padded` (1)."""
    re, im = cuda.shared.array(PADDED, float32), cuda.shared.array(PADDED, float32)
    fill_reversed(src, re, im, pad)
    cuda.syncthreads()  # all points are in before they are copied out in order
    empty_split(re, im, dst, pad)
