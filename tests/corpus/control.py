"""Control flow in which the lanes of a warp part and meet again.

Menu: branches, nested_branches, early_returns, collatz, skips_and_stops, first_match, triangle, loops_in_loops,
endless_until, short_circuits, conditional_chain, barrier_in_loop, countdown, swapped_in_loop, uniform_choice, flags.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction, poisoned

N = 50


@cuda.jit
def branches(src, dst):
    i = cuda.grid(1)
    if i >= src.size:
        return
    value = src[i]
    if value % 3 == 0:
        dst[i] = value * 10
    elif value % 3 == 1:
        dst[i] = value + 1000
    else:
        dst[i] = -value


@cuda.jit
def nested_branches(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        if src[i] > 0:
            if i % 2:
                dst[i] = src[i]
            else:
                dst[i] = 2 * src[i]
        else:
            if i % 3 == 0:
                dst[i] = 7
            elif not i % 5:
                dst[i] = 8
            else:
                if src[i] < -20 or i > 40:
                    dst[i] = 9
                else:
                    dst[i] = 0


@cuda.jit
def early_returns(src, dst):
    i = cuda.grid(1)
    if i >= src.size:
        return
    dst[i] = 0
    for k in range(10):
        if src[i] < k * k:
            dst[i] = k
            return
    dst[i] = -1


@cuda.jit
def collatz(src, dst):
    """A loop whose length differs from lane to lane."""
    i = cuda.grid(1)
    if i < src.size:
        n = abs(src[i]) + 1
        steps = 0
        while n != 1:
            if n % 2 == 0:
                n //= 2
            else:
                n = 3 * n + 1
            steps += 1
        dst[i] = steps


@cuda.jit
def skips_and_stops(src, dst):
    """Lanes skip some elements and stop at the first large one."""
    row = cuda.grid(1)
    if row < src.shape[0]:
        total = 0
        for col in range(src.shape[1]):
            value = src[row, col]
            if value % 2:
                continue
            if value > 40:
                break
            total += value
        dst[row] = total


@cuda.jit
def first_match(src, wanted, dst):
    """A while loop left from two sides."""
    row = cuda.grid(1)
    if row < src.shape[0]:
        col = 0
        while col < src.shape[1] and src[row, col] != wanted:
            col += 1
        dst[row] = col if col < src.shape[1] else -1


@cuda.jit
def triangle(dst):
    """The bounds of the loop depend on the lane."""
    row = cuda.threadIdx.x
    for col in range(row, -1, -3):
        dst[row, col] = row - col
    for col in range(row + 1, dst.shape[1]):
        dst[row, col] = -1


@cuda.jit
def loops_in_loops(dst, limit):
    """Break leaves the inner loop only; continue goes on with the loop it stands in."""
    thread = cuda.threadIdx.x
    count = 0
    for outer in range(thread % 5 + 2):
        if outer == thread % 3:
            continue
        inner = 0
        while True:
            inner += 1
            if inner * outer > limit:
                break
            if (inner + thread) % 4 == 0:
                continue
            if inner > 12:
                break
            count += inner
        count += 100
    dst[thread] = count


@cuda.jit
def endless_until(src, dst):
    thread = cuda.threadIdx.x
    low, high = 0, src.size
    while True:
        middle = (low + high) // 2
        if low >= high:
            break
        if src[middle] < 3 * thread:
            low = middle + 1
        else:
            high = middle
    dst[thread] = low


@cuda.jit
def short_circuits(src, dst):
    """The right side of `and` and `or` runs only on the lanes that need it, as guards rely on."""
    i = cuda.grid(1)
    inside = i < src.size
    if inside and src[i] > 0 and src[i] < 30:
        dst[i] = 1
    elif inside and (src[i] == 0 or src[src[i] % src.size] > 0):
        dst[i] = 2
    elif inside:
        dst[i] = 3


@cuda.jit
def conditional_chain(src, dst):
    i = cuda.grid(1)
    if i < src.size:
        value = src[i]
        sign = 1 if value > 0 else -1 if value < 0 else 0
        dst[i] = sign * (src[i - 1] if i > 0 else value) + (5 if -10 <= value < 10 else 0)


@cuda.jit
def barrier_in_loop(src, dst, n_rounds):
    """Every thread meets every barrier, whatever it does in between."""
    s = cuda.shared.array(48, np.int64)
    thread = cuda.threadIdx.x
    s[thread] = src[thread]
    for _ in range(n_rounds):
        # The values of the last round must be written before anyone reads a neighbour's.
        cuda.syncthreads()
        left = s[thread - 1]
        # All must have read before anyone writes.
        cuda.syncthreads()
        if thread % 3 != 0:
            s[thread] += left
    dst[thread] = s[thread]


@cuda.jit
def countdown(dst, start):
    """A negative step, an empty range, and a loop variable that outlives its loop."""
    thread = cuda.threadIdx.x
    last = -1
    for k in range(start, thread, -2):
        last = k
    for k in range(5, 2):
        last = 1000 + k
    dst[thread] = last


@cuda.jit
def fibonacci(dst):
    """Values change places in one assignment, on the lanes that are still in the loop."""
    thread = cuda.threadIdx.x
    before, now = 0, 1
    for _ in range(thread):
        before, now = now, before + now
    dst[thread] = before


@cuda.jit
def uniform_choice(src, dst, mode):
    """The same branch for all lanes."""
    i = cuda.grid(1)
    if i < src.size:
        if mode == 0:
            dst[i] = src[i]
        elif mode == 1:
            dst[i] = -src[i]
        else:
            pass


@cuda.jit
def flags(src, dst):
    """Truth values kept in variables and arrays."""
    i = cuda.grid(1)
    found = False
    if i < src.size:
        for k in range(3):
            found = found or src[(i + k) % src.size] > 50
        dst[i] = found and i % 7 != 3


@cuda.jit
def strided_branch(src, dst):
    """Each side of a branch is an access of its own, over half of the lanes."""
    s = cuda.shared.array(64, np.float32)
    lane = cuda.threadIdx.x
    s[lane] = src[lane]
    s[lane + 32] = src[lane + 32]
    # All words must be in before they are read.
    cuda.syncthreads()
    if lane % 2:
        dst[lane] = s[2 * lane]
    else:
        dst[lane] = s[lane]


def integers(fill, *shape):
    return fill(shape, np.int64)


def each(function):
    """Lift a function of (index, value) to a reference for (src, dst)."""

    def reference(src, dst, *_):
        return {1: np.array([function(i, value) for i, value in enumerate(src.tolist())])}

    return reference


def nested(i, value):
    if value > 0:
        return value if i % 2 else 2 * value
    return 7 if i % 3 == 0 else 8 if i % 5 == 0 else 9 if value < -20 or i > 40 else 0


def collatz_steps(_, value):
    n, steps = abs(value) + 1, 0
    while n != 1:
        n, steps = n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1
    return steps


def sums_until_large(src, dst):
    totals = []
    for row in src.tolist():
        stop = next((k for k, value in enumerate(row) if value % 2 == 0 and value > 40), len(row))
        totals.append(sum(value for value in row[:stop] if value % 2 == 0))
    return {1: np.array(totals)}


def matches(src, wanted, dst):
    return {2: np.array([row.index(wanted) if wanted in row else -1 for row in src.tolist()])}


def triangles(dst):
    row, col = np.indices(dst.shape)
    below = (col <= row) & ((row - col) % 3 == 0)
    return {0: np.where(col > row, -1, np.where(below, row - col, dst))}


def loop_counts(dst, limit):
    counts = []
    for thread in range(dst.size):
        count = 0
        for outer in range(thread % 5 + 2):
            if outer != thread % 3:
                stop = next(
                    inner
                    for inner in range(1, 99)
                    if inner * outer > limit or (inner > 12 and (inner + thread) % 4)
                )
                count += 100 + sum(inner for inner in range(1, stop) if (inner + thread) % 4)
        counts.append(count)
    return {0: np.array(counts)}


def short_circuited(src, dst):
    positive = [0 < value < 30 for value in src]
    other = [value == 0 or src[value % src.size] > 0 for value in src]
    return {1: np.where(positive, 1, np.where(other, 2, 3))}


def chained(src, dst):
    before = np.concatenate([src[:1], src[:-1]])
    return {1: np.sign(src) * before + np.where((src >= -10) & (src < 10), 5, 0)}


def rounds(src, dst, n_rounds):
    values = src.copy()
    for _ in range(n_rounds):
        values += np.where(np.arange(values.size) % 3 != 0, np.roll(values, 1), 0)
    return {1: values}


def fibonacci_numbers(dst):
    numbers = [0, 1]
    while len(numbers) < dst.size:
        numbers.append(numbers[-1] + numbers[-2])
    return {0: np.array(numbers)}


def any_large(i, src):
    return any(src[(i + k) % src.size] > 50 for k in range(3)) and i % 7 != 3


def _per_element(kernel, reference, *extra, variant="", predictions=()):
    return Case(
        kernel,
        2,
        32,
        lambda fill: (integers(fill, N), poisoned(N, np.int64), *extra),
        reference,
        variant,
        predictions=predictions,
    )


CASES = [
    _per_element(branches, each(lambda i, v: v * 10 if v % 3 == 0 else v + 1000 if v % 3 == 1 else -v)),
    _per_element(nested_branches, each(nested)),
    _per_element(early_returns, each(lambda i, v: next((k for k in range(10) if v < k * k), -1))),
    _per_element(collatz, each(collatz_steps)),
    Case(
        skips_and_stops,
        2,
        32,
        lambda fill: (integers(fill, N, 7), poisoned(N, np.int64)),
        sums_until_large,
    ),
    Case(
        first_match,
        2,
        32,
        lambda fill: (integers(fill, N, 9) % 10, 4, poisoned(N, np.int64)),
        matches,
    ),
    Case(triangle, 1, 40, lambda fill: (np.full((40, 41), 99),), triangles),
    Case(loops_in_loops, 1, 45, lambda fill: (poisoned(45, np.int64), 9), loop_counts),
    Case(
        endless_until,
        1,
        40,
        lambda fill: (np.sort(integers(fill, 77)), poisoned(40, np.int64)),
        lambda src, dst: {1: np.searchsorted(src, 3 * np.arange(40))},
    ),
    _per_element(short_circuits, short_circuited),
    _per_element(conditional_chain, chained),
    Case(
        barrier_in_loop,
        1,
        48,
        lambda fill: (integers(fill, 48), poisoned(48, np.int64), 4),
        rounds,
    ),
    Case(
        countdown,
        1,
        40,
        lambda fill: (poisoned(40, np.int64), 30),
        lambda dst, start: {
            0: np.array([t + 1 + (start - t - 1) % 2 if t < start else -1 for t in range(40)])
        },
    ),
    Case(fibonacci, 1, 40, lambda fill: (poisoned(40, np.int64),), fibonacci_numbers),
    *(
        _per_element(
            uniform_choice,
            lambda src, dst, mode: {1: [src, -src, dst][mode]},
            mode,
            variant=f"mode {mode}",
        )
        for mode in (0, 1, 2)
    ),
    Case(
        flags,
        2,
        32,
        lambda fill: (integers(fill, N), np.ones(N, np.bool_)),
        lambda src, dst: {1: np.array([any_large(i, src) for i in range(N)])},
    ),
    Case(
        strided_branch,
        1,
        32,
        lambda fill: (fill(64, np.float32), poisoned(32, np.float32)),
        lambda src, dst: {1: np.where(np.arange(32) % 2, src[0:64:2], src[:32])},
        predictions=(
            # Odd lanes only: words 2, 6, .. 62, two in each of 8 banks.
            Prediction("s[2 * lane]", "load", wavefronts=2, ideal=1),
            Prediction("dst[lane] = s[lane]", "load", wavefronts=1, ideal=1),
            Prediction("dst[lane] = s[lane]", "store", sectors=4),
        ),
    ),
]
