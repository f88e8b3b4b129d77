"""Device functions, tuples, closures and constants.

Menu: smooth (nested device functions), polar (several results), classify (early returns), table_lookup, polynomial_of,
sorted_triples, edit_distance (private arrays), neighbour_offsets, shared_helper, gathered_fields.
"""

import math

import numpy as np
from numba import cuda, float32, int32

from tests.corpus.case import Case, poisoned

WEIGHTS = (0.25, 0.5, 0.25)
OFFSETS = ((0, 1), (1, 0), (0, -1), (-1, 0))
TABLE = np.array([3, 1, 4, 1, 5, 9, 2, 6], dtype=np.int64)


@cuda.jit(device=True)
def clamp(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value


@cuda.jit(device=True)
def at_border(src, i):
    """The element, or the nearest one inside."""
    return src[clamp(i, 0, src.size - 1)]


@cuda.jit
def smooth(src, dst):
    """A device function that calls a device function, in a loop over a tuple of weights."""
    i = cuda.grid(1)
    if i < src.size:
        total = 0.0
        for k in range(len(WEIGHTS)):
            total += WEIGHTS[k] * at_border(src, i + k - 1)
        dst[i] = total


@cuda.jit(device=True)
def split(value, base):
    quotient = value // base
    return quotient, value - quotient * base


@cuda.jit
def digits(src, dst):
    """Several results at once, unpacked."""
    i = cuda.grid(1)
    if i < src.size:
        rest = abs(src[i])
        for k in range(dst.shape[1]):
            rest, digit = split(rest, 3)
            dst[i, k] = digit


@cuda.jit(device=True)
def grade(value):
    for limit in range(1, 5):
        if value < limit * limit * 4:
            return limit
    return 9


@cuda.jit
def classify(src, dst):
    """Lanes return from the function at different turns of its loop."""
    i = cuda.grid(1)
    if i < src.size:
        dst[i] = grade(src[i]) * 10 + (grade(-src[i]) if src[i] < 0 else 0)


@cuda.jit
def table_lookup(src, dst):
    """A constant table, read with the lane's own index."""
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    if i < src.size:
        dst[i] = table[src[i] % len(TABLE)]


def polynomial_of(coefficients):
    """A polynomial whose coefficients are part of the kernel."""
    degree = len(coefficients) - 1

    @cuda.jit
    def polynomial(src, dst):
        i = cuda.grid(1)
        if i < src.size:
            value = coefficients[degree]
            for k in range(degree - 1, -1, -1):
                value = value * src[i] + coefficients[k]
            dst[i] = value

    return polynomial


@cuda.jit(device=True)
def exchange(values, a, b):
    if values[a] > values[b]:
        values[a], values[b] = values[b], values[a]


@cuda.jit
def sorted_fours(src, dst):
    """A sorting network on private memory."""
    row = cuda.grid(1)
    if row < src.shape[0]:
        values = cuda.local.array(4, int32)
        for k in range(4):
            values[k] = src[row, k]
        exchange(values, 0, 1)
        exchange(values, 2, 3)
        exchange(values, 0, 2)
        exchange(values, 1, 3)
        exchange(values, 1, 2)
        for k in range(4):
            dst[row, k] = values[k]


@cuda.jit
def neighbour_offsets(src, dst):
    """A tuple of tuples, indexed and unpacked."""
    col, row = cuda.grid(2)
    if row < src.shape[0] and col < src.shape[1]:
        total = 0
        for k in range(4):
            down, right = OFFSETS[k]
            there_row, there_col = row + down, col + right
            if 0 <= there_row < src.shape[0] and 0 <= there_col < src.shape[1]:
                total += (k + 1) * src[there_row, there_col]
        dst[row, col] = total


@cuda.jit(device=True)
def load_tile(tile, src, first):
    """Fills a shared array and waits for it, on behalf of the caller."""
    thread = cuda.threadIdx.x
    tile[thread] = src[first + thread]
    # The tile must be full before the caller reads it.
    cuda.syncthreads()


@cuda.jit
def tiles_backwards(src, dst):
    """A device function that fills shared memory and meets at a barrier."""
    tile = cuda.shared.array(32, float32)
    first = cuda.blockIdx.x * 64
    for half in range(2):
        load_tile(tile, src, first + half * 32)
        dst[first + half * 32 + cuda.threadIdx.x] = tile[31 - cuda.threadIdx.x]
        # All must have read the tile before it is filled again.
        cuda.syncthreads()


@cuda.jit
def tuple_argument(src, dst, shift, weights):
    """Numbers and tuples of numbers as arguments."""
    i = cuda.grid(1)
    low, high = weights
    if i < src.size:
        dst[i] = low * src[i] + high * src[(i + shift) % src.size] + len(weights)


@cuda.jit(device=True)
def norm(x, y):
    return math.sqrt(x * x + y * y)


@cuda.jit
def distances(points, dst):
    """Two call sites of one function on one line."""
    i = cuda.grid(1)
    if i < points.shape[0] - 1:
        dst[i] = norm(points[i, 0], points[i, 1]) + norm(points[i + 1, 0], points[i + 1, 1])


def smoothed(src, dst):
    padded = np.pad(src, 1, mode="edge")
    return {1: 0.25 * padded[:-2] + 0.5 * padded[1:-1] + 0.25 * padded[2:]}


def split_digits(src, dst):
    return {1: np.stack([np.abs(src) // 3**k % 3 for k in range(dst.shape[1])], axis=1)}


def graded(src, dst):
    def one(value):
        return next((limit for limit in range(1, 5) if value < limit * limit * 4), 9)

    return {1: np.array([one(value) * 10 + (one(-value) if value < 0 else 0) for value in src.tolist()])}


def offset_sums(src, dst):
    padded = np.pad(src, 1)
    rows, cols = src.shape
    return {
        1: sum(
            (k + 1) * padded[1 + down : 1 + down + rows, 1 + right : 1 + right + cols]
            for k, (down, right) in enumerate(OFFSETS)
        )
    }


def measured(points, dst):
    lengths = np.sqrt(points[:, 0] ** 2 + points[:, 1] ** 2)
    return {1: lengths[:-1] + lengths[1:]}


CASES = [
    Case(smooth, 1, 64, lambda fill: (fill(50, np.float64), poisoned(50, np.float64)), smoothed),
    Case(digits, 1, 64, lambda fill: (fill(50, np.int64), poisoned((50, 4), np.int64)), split_digits),
    Case(classify, 1, 64, lambda fill: (fill(50, np.int64), poisoned(50, np.int64)), graded),
    Case(
        table_lookup,
        1,
        64,
        lambda fill: (fill(50, np.int64), poisoned(50, np.int64)),
        lambda src, dst: {1: TABLE[src % 8]},
    ),
    *(
        Case(
            polynomial_of(coefficients),
            1,
            64,
            lambda fill: (fill(50, np.float64), poisoned(50, np.float64)),
            lambda src, dst, coefficients=coefficients: {
                1: np.polynomial.polynomial.polyval(src, coefficients)
            },
            f"degree {len(coefficients) - 1}",
        )
        for coefficients in ((2.0, -1.0), (0.5, 0.0, 3.0, 1.0))
    ),
    Case(
        sorted_fours,
        1,
        40,
        lambda fill: (fill((37, 4), np.int32), poisoned((37, 4), np.int32)),
        lambda src, dst: {1: np.sort(src, axis=1)},
    ),
    Case(
        neighbour_offsets,
        (2, 2),
        (8, 4),
        lambda fill: (fill((7, 9), np.int64), poisoned((7, 9), np.int64)),
        offset_sums,
    ),
    Case(
        tiles_backwards,
        2,
        32,
        lambda fill: (fill(128, np.float32), poisoned(128, np.float32)),
        lambda src, dst: {1: src.reshape(-1, 32)[:, ::-1].ravel()},
    ),
    Case(
        tuple_argument,
        1,
        64,
        lambda fill: (fill(50, np.float64), poisoned(50, np.float64), np.int32(3), (2.0, 0.5)),
        lambda src, dst, shift, weights: {1: 2 * src + 0.5 * np.roll(src, -3) + 2},
    ),
    Case(
        distances,
        1,
        64,
        lambda fill: (fill((40, 2), np.float64), poisoned(39, np.float64)),
        measured,
        rtol=1e-15,
    ),
]
