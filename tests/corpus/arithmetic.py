"""Numbers: numba's types are neither Python's nor NumPy's, and each of these kernels depends on one of the rules.

Menu: wide_sums, literal_widens, floor_divisions, shifts_and_masks, narrow_stores, casts, powers, extremes, roots,
truth_as_number, unsigned_hash, true_divisions, single_steps, bit_counts, fused, compound_assignments; and where paths
meet: joined_by_branch, joined_by_loop, joined_by_choice, joined_results.
"""

import math
from dataclasses import replace

import numba
import numpy as np
from numba import cuda

from tests.corpus.case import Case, poisoned

N = 48
SCALE = 3
HALF = 0.5


@cuda.jit
def wide_sums(src, dst):
    """int32 + int32 is int64: the sum does not wrap until it is stored in a narrower place."""
    i = cuda.grid(1)
    if i < src.size:
        big = src[i] * 100_000
        dst[i] = big * 100_000 + src[i]


@cuda.jit
def literal_widens(src, narrow, wide):
    """A float literal is float64: one third stays exact to 53 bits where the destination can hold it."""
    i = cuda.grid(1)
    if i < src.size:
        wide[i, 0] = src[i] * 0.1
        wide[i, 1] = src[i] * np.float32(0.1)
        narrow[i] = src[i] * 0.1


@cuda.jit
def floor_divisions(src, dst):
    """// and % round towards minus infinity, for both signs of both operands."""
    i = cuda.grid(1)
    if i < src.size:
        for k in range(4):
            divisor = 2 * k - 3
            dst[i, k, 0] = src[i] // divisor
            dst[i, k, 1] = src[i] % divisor


@cuda.jit
def shifts_and_masks(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        value = src[i]
        dst[i] = ((value << 3) ^ (value >> 1)) & 0xFFFF | ~value & 0x70000


@cuda.jit
def narrow_stores(src, bytes_, shorts, singles):
    """A store keeps the low bits of an integer and rounds a float to the type of the array."""
    i = cuda.grid(1)
    if i < src.size:
        bytes_[i] = src[i] * 77
        shorts[i] = src[i] * 7777
        singles[i] = src[i] * 16_777_217


@cuda.jit
def casts(src, dst):
    """A cast to an integer drops the fraction; int() of a float is int64; float() of an int is float64."""
    i = cuda.grid(1)
    if i < src.size:
        dst[i, 0] = int(src[i] * 2)
        dst[i, 1] = np.int32(src[i])
        dst[i, 2] = numba.int8(int(src[i]) * 50)
        dst[i, 3] = float(i) / 4
        dst[i, 4] = np.float32(0.1) * 10


@cuda.jit
def powers(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        dst[i] = src[i] ** 2 + (src[i] * 0.5) ** 3 + 2**SCALE


@cuda.jit
def extremes(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        dst[i, 0] = min(src[i], 3)
        dst[i, 1] = max(src[i], -2.5)
        dst[i, 2] = min(max(src[i], -4), 4, 3.5)
        dst[i, 3] = abs(src[i])


@cuda.jit
def roots(src, dst):
    """A square root of float32 is rounded to float32; of an integer it is float64."""
    i = cuda.grid(1)
    if i < src.size:
        dst[i, 0] = math.sqrt(abs(src[i]))
        dst[i, 1] = math.sqrt(i)
        dst[i, 2] = math.floor(src[i])
        dst[i, 3] = math.ceil(src[i] * HALF)
        dst[i, 4] = math.fabs(src[i]) + math.pi


@cuda.jit
def transcendentals(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        x = src[i]
        dst[i] = math.sin(x) * math.cos(x) + math.exp(-x * x) + math.log(1.0 + x * x) + math.atan2(x, 2.0)


@cuda.jit
def truth_as_number(src, dst):
    """A comparison is 0 or 1 in arithmetic."""
    i = cuda.grid(1)
    if i < src.size:
        dst[i] = (src[i] > 0) + (src[i] % 2 == 0) * 10 + (0 < src[i] < 9) * 100


@cuda.jit
def unsigned_hash(src, dst):
    """uint32 arithmetic widens to uint64; the mask brings it back."""
    i = cuda.grid(1)
    if i < src.size:
        mixed = np.uint32(src[i] ^ np.uint32(2747636419))
        mixed = np.uint32(mixed * np.uint32(2654435769))
        mixed = np.uint32(mixed ^ (mixed >> np.uint32(16)))
        dst[i] = np.uint32(mixed * np.uint32(2654435769))


@cuda.jit
def true_divisions(src, dst):
    """Integers divided are float64; float32 divided by float32 is float32."""
    i = cuda.grid(1)
    if i < src.size:
        dst[i, 0] = src[i] / 3
        dst[i, 1] = np.float32(src[i]) / np.float32(3)
        dst[i, 2] = (src[i] + 1) / 7 * 7


@cuda.jit
def single_steps(src, dst):
    """float32 all the way: each step rounds."""
    i = cuda.grid(1)
    if i < src.size:
        acc = np.float32(0.1)
        for _ in range(5):
            acc = acc * np.float32(1.1) + src[i]
        dst[i] = acc


@cuda.jit
def bit_counts(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        dst[i, 0] = cuda.popc(src[i])
        dst[i, 1] = cuda.clz(src[i])
        dst[i, 2] = cuda.ffs(src[i])
        dst[i, 3] = cuda.brev(src[i])


@cuda.jit
def fused(a, b, c, dst):
    i = cuda.grid(1)
    if i < a.size:
        dst[i] = cuda.fma(a[i], b[i], c[i]) + cuda.selp(a[i] > b[i], a[i], c[i])


@cuda.jit
def compound_assignments(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        value = src[i]
        value += 5
        value *= 3
        value -= i
        value //= 2
        value <<= 2
        value ^= 0x55
        value |= 1
        value %= 1000
        dst[i] = value
        dst[i] += 7
        dst[i] -= value * 2


@cuda.jit
def joined_by_branch(src, dst):
    """One path leaves an int64 and the other a float32: from where they meet, the variable is float64."""
    i = cuda.grid(1)
    if i < src.size:
        value = 1
        if src[i] > 0:
            value = src[i] * np.float32(1.1)
        dst[i] = value * value


@cuda.jit
def joined_by_loop(src, dst):
    """A float64 from a later turn makes the variable float64 in the first."""
    i = cuda.grid(1)
    if i < src.size:
        acc = np.float32(0.1)
        for k in range(4):
            acc = acc * src[i]
            if k == 2:
                acc = acc * 0.7
        dst[i] = acc


@cuda.jit
def joined_by_choice(src, dst):
    """The two sides of a conditional expression meet in one type."""
    i = cuda.grid(1)
    if i < src.size:
        value = src[i] * np.float32(1.1) if src[i] > 0 else 1
        dst[i] = value * value


@cuda.jit(device=True)
def raised(value):
    if value > 0:
        return value * np.float32(1.1)
    return 1


@cuda.jit
def joined_results(src, dst):
    """The results of a device function meet in one type."""
    i = cuda.grid(1)
    if i < src.size:
        value = raised(src[i])
        dst[i] = value * value


def joined_square(src):
    value = np.where(src > 0, (src * np.float32(1.1)).astype(np.float64), 1.0)
    return value * value


def joined_product(src):
    acc = np.full(N, np.float32(0.1)).astype(np.float64)
    for k in range(4):
        acc = acc * src
        if k == 2:
            acc = acc * 0.7
    return acc


def per_element(kernel, dtype, out_dtype, out_shape, reference, simulator="", rtol=0.0):
    return Case(
        kernel,
        1,
        64,
        lambda fill: (fill(N, dtype), poisoned((N, *out_shape), out_dtype)),
        lambda src, dst: {1: reference(src)},
        simulator=simulator,
        rtol=rtol,
    )


def wide(src):
    return src.astype(np.int64) * 10**10 + src


def widened(src, narrow, wide):
    exact = src.astype(np.float64) * 0.1
    rounded = src * np.float32(0.1)
    return {1: exact.astype(np.float32), 2: np.stack([exact, rounded.astype(np.float64)], axis=1)}


def floored(src):
    divisors = np.array([-3, -1, 1, 3])
    return np.stack([src[:, None] // divisors, src[:, None] % divisors], axis=2)


def masked(src):
    value = src.astype(np.int64)
    return ((value << 3) ^ (value >> 1)) & 0xFFFF | ~value & 0x70000


def narrowed(src, *_):
    value = src.astype(np.int64)
    return {
        1: (value * 77).astype(np.int8),
        2: (value * 7777).astype(np.uint16),
        3: (value * 16_777_217).astype(np.float32),
    }


def cast_values(src):
    columns = [
        np.trunc(src * 2),
        np.trunc(src),
        (np.trunc(src).astype(np.int64) * 50).astype(np.int8),
        np.arange(N) / 4,
        np.full(N, np.float64(np.float32(0.1)) * 10),
    ]
    return np.stack([column.astype(np.float64) for column in columns], axis=1)


def rooted(src):
    columns = [
        np.sqrt(np.abs(src)),
        np.sqrt(np.arange(N)),
        np.floor(src),
        np.ceil(src * 0.5),
        np.abs(src).astype(np.float64) + np.pi,
    ]
    return np.stack([column.astype(np.float64) for column in columns], axis=1)


def curved(src):
    return np.sin(src) * np.cos(src) + np.exp(-src * src) + np.log(1 + src * src) + np.arctan2(src, 2)


def hashed(src):
    mixed = src ^ np.uint32(2747636419)
    mixed = mixed * np.uint32(2654435769)
    mixed = mixed ^ (mixed >> np.uint32(16))
    return mixed * np.uint32(2654435769)


def divided(src):
    third = src.astype(np.float32) / np.float32(3)
    return np.stack([src / 3, third.astype(np.float64), (src + 1) / 7 * 7], axis=1)


def stepped(src):
    acc = np.full(N, 0.1, np.float32)
    for _ in range(5):
        acc = acc * np.float32(1.1) + src
    return acc


def counted_bits(src):
    words = [f"{value:032b}" for value in src.tolist()]
    return np.array(
        [
            (
                word.count("1"),
                len(word) - len(word.lstrip("0")),
                32 - word.rfind("1") if "1" in word else 0,
                int(word[::-1], 2),
            )
            for word in words
        ],
        np.uint32,
    )


def assigned(src):
    value = src.astype(np.int64) + 5
    value = ((value * 3 - np.arange(N)) // 2 << 2 ^ 0x55 | 1) % 1000
    return value + 7 - value * 2


SINGLE_ROUNDS = "the simulator lets NumPy keep float32 next to a literal"
WRAPS = "the simulator lets NumPy wrap int32"

CASES = [
    per_element(wide_sums, np.int32, np.int64, (), wide, WRAPS),
    Case(
        literal_widens,
        1,
        64,
        lambda fill: (fill(N, np.float32), poisoned(N, np.float32), poisoned((N, 2), np.float64)),
        widened,
        simulator=SINGLE_ROUNDS,
    ),
    per_element(floor_divisions, np.int64, np.int64, (4, 2), floored),
    per_element(shifts_and_masks, np.int32, np.int64, (), masked),
    Case(
        narrow_stores,
        1,
        64,
        lambda fill: (
            fill(N, np.int32),
            poisoned(N, np.int8),
            poisoned(N, np.uint16),
            poisoned(N, np.float32),
        ),
        narrowed,
        simulator=WRAPS,
    ),
    per_element(casts, np.float32, np.float64, (5,), cast_values, SINGLE_ROUNDS),
    per_element(
        powers,
        np.float64,
        np.float64,
        (),
        lambda src: src**2 + (src * 0.5) * (src * 0.5) * (src * 0.5) + 8,
        rtol=1e-15,
    ),
    per_element(
        extremes,
        np.float32,
        np.float64,
        (4,),
        lambda src: np.stack(
            [np.minimum(src, 3), np.maximum(src, -2.5), np.clip(src, -4, 3.5), np.abs(src)], axis=1
        ),
    ),
    per_element(roots, np.float32, np.float64, (5,), rooted, SINGLE_ROUNDS),
    per_element(transcendentals, np.float64, np.float64, (), curved, rtol=1e-13),
    per_element(
        truth_as_number,
        np.int64,
        np.int64,
        (),
        lambda src: (src > 0) + (src % 2 == 0) * 10 + ((src > 0) & (src < 9)) * 100,
    ),
    per_element(unsigned_hash, np.uint32, np.uint32, (), hashed),
    per_element(true_divisions, np.int64, np.float64, (3,), divided),
    per_element(single_steps, np.float32, np.float32, (), stepped),
    per_element(bit_counts, np.uint32, np.uint32, (4,), counted_bits),
    Case(
        fused,
        1,
        64,
        lambda fill: (*(fill(N, np.float32) for _ in range(3)), poisoned(N, np.float32)),
        lambda a, b, c, dst: {3: a * b + c + np.where(a > b, a, c)},
    ),
    per_element(compound_assignments, np.int32, np.int64, (), assigned),
    *(
        replace(
            per_element(kernel, np.float32, np.float64, (), reference, SINGLE_ROUNDS),
            oracle="a thread that runs alone does not see the types of the paths it leaves out",
        )
        for kernel, reference in (
            (joined_by_branch, joined_square),
            (joined_by_loop, joined_product),
            (joined_by_choice, joined_square),
            (joined_results, joined_square),
        )
    ),
]
