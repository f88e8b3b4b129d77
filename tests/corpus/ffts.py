"""Pieces of a Fourier transform: the data movement of radix-2 stages, and bit reversal.

Menu: butterfly_split, butterfly_pairs_of, bit_reversal_of.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction, poisoned

POINTS = 128
BITS = 10


@cuda.jit
def butterfly_split(re, im, distance):
    """One stage of sums and differences, `distance` apart; real and imaginary parts in arrays of their own."""
    real = cuda.shared.array(POINTS, np.float32)
    imag = cuda.shared.array(POINTS, np.float32)
    thread = cuda.threadIdx.x
    for i in range(thread, POINTS, POINTS // 2):
        real[i] = re[i]
        imag[i] = im[i]
    # All points must be in before a butterfly joins two of them.
    cuda.syncthreads()
    low = thread // distance * 2 * distance + thread % distance
    high = low + distance
    low_re = real[low]
    low_im = imag[low]
    high_re, high_im = real[high], imag[high]
    real[low], imag[low] = low_re + high_re, low_im + high_im
    real[high], imag[high] = low_re - high_re, low_im - high_im
    # All butterflies must be done before the points leave.
    cuda.syncthreads()
    for i in range(thread, POINTS, POINTS // 2):
        re[i] = real[i]
        im[i] = imag[i]


def butterfly_pairs_of(dtype):
    """The same stage on elements of 8 bytes: one access each as float64, one for each part as complex64."""

    @cuda.jit
    def butterfly_pairs(points, distance):
        s = cuda.shared.array(POINTS, dtype)
        thread = cuda.threadIdx.x
        for i in range(thread, POINTS, POINTS // 2):
            s[i] = points[i]
        # All points must be in before a butterfly joins two of them.
        cuda.syncthreads()
        low = thread // distance * 2 * distance + thread % distance
        high = low + distance
        a = s[low]
        b = s[high]
        s[low] = a + b
        s[high] = a - b
        # All butterflies must be done before the points leave.
        cuda.syncthreads()
        for i in range(thread, POINTS, POINTS // 2):
            points[i] = s[i]

    return butterfly_pairs


@cuda.jit
def rotate_points(points, dst, angle_re, angle_im):
    """Complex arithmetic: a twiddle factor, a conjugate, and the parts of a number."""
    i = cuda.grid(1)
    if i < points.size:
        twiddle = complex(angle_re, angle_im)
        turned = points[i] * twiddle
        dst[i] = turned + turned.conjugate() * 2 - turned.real + 1j * turned.imag


def bit_reversal_of(pad):
    """Element `i` of 1,024 is read from the place with its bits in reverse; `pad` words follow every 32."""

    @cuda.jit
    def bit_reversal(src, dst):
        s = cuda.shared.array(1056, np.float32)
        thread = cuda.threadIdx.x
        for i in range(thread, 1024, 64):
            s[i + i // 32 * pad] = src[i]
        # All elements must be in before they are read in another order.
        cuda.syncthreads()
        for i in range(thread, 1024, 64):
            place = 0
            rest = i
            for _ in range(BITS):
                place = place << 1 | rest & 1
                rest >>= 1
            dst[i] = s[place + place // 32 * pad]

    return bit_reversal


def joined(points, distance):
    pairs = points.reshape(-1, 2, distance)
    return np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).ravel()


def turned(points, dst, angle_re, angle_im):
    value = points * (angle_re + 1j * angle_im)
    return {1: value + value.conj() * 2 - value.real + 1j * value.imag}


def reversed_bits(src, dst):
    return {1: src[[int(f"{i:010b}"[::-1], 2) for i in range(1024)]]}


CASES = [
    *(
        Case(
            butterfly_split,
            1,
            POINTS // 2,
            lambda fill, distance=distance: (fill(POINTS, np.float32), fill(POINTS, np.float32), distance),
            lambda re, im, distance: {0: joined(re, distance), 1: joined(im, distance)},
            f"distance {distance}",
            predictions=(
                Prediction("low_re = real[low]", "load", wavefronts=degree, ideal=1, id="K-cs-8"),
                Prediction("low_im = imag[low]", "load", wavefronts=degree, ideal=1, id="K-cs-8"),
            ),
        )
        for distance, degree in ((1, 2), (4, 2), (16, 2), (32, 1), (64, 1))
    ),
    *(
        Case(
            butterfly_pairs_of(np.float64),
            1,
            POINTS // 2,
            lambda fill, distance=distance: (fill(POINTS, np.float64), distance),
            lambda points, distance: {0: joined(points, distance)},
            f"float64, distance {distance}",
            predictions=(
                Prediction("a = s[low]", "load", wavefronts=degree, ideal=2, id="K-cs-8"),
                Prediction("s[high] = a - b", "store", wavefronts=degree, ideal=2, id="K-cs-8"),
            ),
        )
        for distance, degree in ((1, 4), (8, 4), (16, 2), (64, 2))
    ),
    *(
        Case(
            butterfly_pairs_of(np.complex64),
            1,
            POINTS // 2,
            lambda fill, distance=distance: (fill(POINTS, np.complex64), distance),
            lambda points, distance: {0: joined(points, distance)},
            f"complex64, distance {distance}",
            # Two accesses of 4 bytes, 16 bytes from lane to lane at distance 1 and 8 bytes at 64.
            predictions=(Prediction("a = s[low]", "load", wavefronts=degree, ideal=1),),
        )
        for distance, degree in ((1, 4), (64, 2))
    ),
    Case(
        rotate_points,
        1,
        48,
        lambda fill: (fill(40, np.complex128), poisoned(40, np.complex128), 0.5, -0.25),
        turned,
    ),
    *(
        Case(
            bit_reversal_of(pad),
            1,
            64,
            lambda fill: (fill(1024, np.float32), poisoned(1024, np.float32)),
            reversed_bits,
            "padded" if pad else "plain",
            predictions=(Prediction("= s[place", "load", wavefronts=degree, ideal=1, id="K-cs-8"),),
        )
        for pad, degree in ((0, 32), (1, 1))
    ),
]
