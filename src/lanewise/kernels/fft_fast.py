"""FFT, batched: 4,096-point Fourier transforms held in registers, radix 8 and 16.

Menu: `fft_radix8` (eight points for each thread, four passes), `fft_radix16` (sixteen points for each thread,
three passes). Between passes the points change threads through shared memory, at pitches that keep every
access free of conflicts. `lanewise.kernels.fft` holds the rungs before.

A point's number has digits; a pass transforms along one digit of the input and makes one of the output. With
radix 16, point 256 a + 16 b + c of the input and point k + 16 l + 256 m of the output:

    a -> k, turned by (16 b + c) * k / 4096;  b -> l, turned by c * l / 256;  c -> m

`src` and `dst` are `(batch, 2 * POINTS)` float32: the rows of a complex64 array through `.view(np.float32)`.
Launch with `batch` blocks of `BLOCK_8` or `BLOCK_16` threads. `roots` is `fft.roots_of_unity(POINTS)`.
Reference: `fft.reference`.
"""

import numpy as np
from numba import complex64, cuda, float32

from lanewise.kernels.fft import dft4, get, put

POINTS = 4096
BLOCK_8 = POINTS // 8
BLOCK_16 = POINTS // 16

# Points from one value of a digit to the next, in shared memory. Sixteen lanes of 8 bytes fill all banks:
# they must lie at sixteen different places modulo 16.
MIDDLE_8 = 64 + 8  # two values of the second digit beside eight of the last
OUTER_8 = 8 * MIDDLE_8 + 1  # eight values of the first digit beside two of the second
FLOATS_8 = 2 * 8 * OUTER_8
OUTER_16 = 256 + 1  # sixteen values of the first digit
FLOATS_16 = 2 * 16 * OUTER_16

HALF = np.float32(np.sqrt(0.5))
COS, SIN = np.float32(np.cos(np.pi / 8)), np.float32(np.sin(np.pi / 8))


@cuda.jit(device=True)
def dft8(z):
    """Replace eight points by their transform: 2 x 4."""
    y = cuda.local.array(8, complex64)
    for a in range(2):
        y[a], y[a + 2], y[a + 4], y[a + 6] = dft4(z[a], z[a + 2], z[a + 4], z[a + 6])
    y[3] *= complex(HALF, -HALF)
    y[5] = complex(y[5].imag, -y[5].real)
    y[7] *= complex(-HALF, -HALF)
    for k in range(4):
        z[k], z[k + 4] = y[2 * k] + y[2 * k + 1], y[2 * k] - y[2 * k + 1]


@cuda.jit(device=True)
def dft16(z):
    """Replace sixteen points by their transform: 4 x 4."""
    y = cuda.local.array(16, complex64)
    for a in range(4):
        y[a], y[a + 4], y[a + 8], y[a + 12] = dft4(z[a], z[a + 4], z[a + 8], z[a + 12])
    w, w2, w3 = complex(COS, -SIN), complex(HALF, -HALF), complex(SIN, -COS)
    w6, w9 = complex(-HALF, -HALF), complex(-COS, SIN)
    y[5], y[6], y[7] = y[5] * w, y[6] * w2, y[7] * w3
    y[9], y[10], y[11] = y[9] * w2, complex(y[10].imag, -y[10].real), y[11] * w6
    y[13], y[14], y[15] = y[13] * w3, y[14] * w6, y[15] * w9
    for k in range(4):
        z[k], z[k + 4], z[k + 8], z[k + 12] = dft4(y[4 * k], y[4 * k + 1], y[4 * k + 2], y[4 * k + 3])


@cuda.jit(device=True)
def turn8(z, w):
    """Multiply z[k] by w**k; each power is a product of two of half the height, so that errors stay small."""
    power = cuda.local.array(8, complex64)
    power[1] = w
    z[1] *= w
    for k in range(2, 8):
        power[k] = power[k // 2] * power[(k + 1) // 2]
        z[k] *= power[k]


@cuda.jit(device=True)
def turn16(z, w):
    """Multiply z[k] by w**k; each power is a product of two of half the height, so that errors stay small."""
    power = cuda.local.array(16, complex64)
    power[1] = w
    z[1] *= w
    for k in range(2, 16):
        power[k] = power[k // 2] * power[(k + 1) // 2]
        z[k] *= power[k]


@cuda.jit(device=True)
def get_all(z, floats, first, step):
    """Read points `step` apart, one for each element of `z`."""
    for k in range(len(z)):
        z[k] = get(floats, first + k * step)


@cuda.jit(device=True)
def put_all(z, floats, first, step):
    """Write the elements of `z` to points `step` apart."""
    for k in range(len(z)):
        put(floats, first + k * step, z[k])


@cuda.jit
def fft_radix8(src, roots, dst):
    """Changed from `fft.fft_radix4`: eight points a thread, 4,096 in all: four passes, three exchanges."""
    s = cuda.shared.array(FLOATS_8, float32)
    z = cuda.local.array(8, complex64)
    thread, row, out = cuda.threadIdx.x, src[cuda.blockIdx.x], dst[cuda.blockIdx.x]
    high, middle, low = thread // 64, thread // 8 % 8, thread % 8
    get_all(z, row, thread, BLOCK_8)
    dft8(z)
    turn8(z, get(roots, thread))
    put_all(z, s, high * MIDDLE_8 + thread % 64, OUTER_8)
    cuda.syncthreads()  # the first digit is done before others read along the second
    place = high * OUTER_8 + thread % 64
    get_all(z, s, place, MIDDLE_8)
    dft8(z)
    turn8(z, get(roots, 8 * (thread % 64)))
    put_all(z, s, place, MIDDLE_8)  # where this thread read
    cuda.syncthreads()  # the second digit is done before others read along the third
    place = high * OUTER_8 + middle * MIDDLE_8 + low
    get_all(z, s, place, 8)
    dft8(z)
    turn8(z, get(roots, 64 * low))
    put_all(z, s, place, 8)  # where this thread read
    cuda.syncthreads()  # the third digit is done before others read along the last
    get_all(z, s, low * OUTER_8 + middle * MIDDLE_8 + 8 * high, 1)
    dft8(z)
    put_all(z, out, thread, BLOCK_8)


@cuda.jit
def fft_radix16(src, roots, dst):
    """Changed: sixteen points for each thread: three passes, two exchanges."""
    s = cuda.shared.array(FLOATS_16, float32)
    z = cuda.local.array(16, complex64)
    thread, row, out = cuda.threadIdx.x, src[cuda.blockIdx.x], dst[cuda.blockIdx.x]
    high, low = thread // 16, thread % 16
    get_all(z, row, thread, BLOCK_16)
    dft16(z)
    turn16(z, get(roots, thread))
    put_all(z, s, thread, OUTER_16)
    cuda.syncthreads()  # the first digit is done before others read along the second
    place = high * OUTER_16 + low
    get_all(z, s, place, 16)
    dft16(z)
    turn16(z, get(roots, 16 * low))
    put_all(z, s, place, 16)  # where this thread read
    cuda.syncthreads()  # the second digit is done before others read along the last
    get_all(z, s, low * OUTER_16 + 16 * high, 1)
    dft16(z)
    put_all(z, out, thread, BLOCK_16)
