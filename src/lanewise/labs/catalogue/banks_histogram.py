"""Banks, challenge: a weighted histogram whose threads never meet, neither in a word nor in a bank.

Variants change the number of bins and threads, what is to be predicted, and the planted fault. All are from
histograms that were published or asked about: one row of bins for all threads, whose plain additions get
lost; one column for each lane, which all warps share; a row of bins for each thread, which conflicts as soon
as the data are alike; a sum over the threads that walks down one bank; bins that are not all cleared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import results
from lanewise.access import WarpAccess
from lanewise.checks import Check
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import Goal, sectors_per_request, shared_bytes
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost
from lanewise.text import count
from lanewise.trace.sites import Site

LANES = 32
FLOAT_BYTES = 4
ROUNDS = 6  # how many samples a thread takes
FAULTS = ("by_thread", "one_row", "straight_sum", "by_lane", "not_cleared")


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    bins, threads = variant.choice(64, 32, 96), variant.choice(64, 96)
    kernels = starters(bins, threads, bins * threads, ROUNDS * threads)
    return Lab(
        name="banks_histogram",
        title="A histogram in which no lanes meet",
        chapter="banks",
        level="challenge",
        kinds=("predict", "layout", "repair"),
        minutes=45,
        tasks=(
            _layouts(variant, bins, threads),
            _histogram(bins, threads, kernels[variant.choice(*FAULTS)], kernels["by_thread"]),
        ),
        given={"BINS": bins, "THREADS": threads, "WORDS": bins * threads, "CHUNK": ROUNDS * threads},
        seed=variant.seed,
    )


# -- where to put the bins --------------------------------------------------------------------------


def _layouts(variant: Variant, bins: int, threads: int) -> Answers:
    group, turns = variant.choice(8, 4, 16), variant.choice(4, 8, 2)
    value, place = variant.choice(5, 7, 11), variant.choice(3, 6, 9)
    row, column = f"`sums[{bins} * t + value]`", f"`sums[{threads} * value + t]`"
    fits = bins * threads * FLOAT_BYTES
    return Answers(
        "layouts",
        (
            _asked(
                "row_alike",
                f"Each thread has a row of {bins} sums: {row}. All lanes have the value {value}.",
                lambda t: bins * t + value,
                "How many words lie between the sums of two neighbours that have the same value?",
            ),
            _asked(
                "row_differ",
                f"The same layout, {row}, but lane `t` has the value `t`.",
                lambda t: bins * t + t,
                "The row of each lane begins in the same bank. What does the value add to that?",
            ),
            _asked(
                "row_groups",
                f"The same layout, {row}, and lane `t` has the value `t // {group}`.",
                lambda t: bins * t + t // group,
                "How many different values are there, and how many lanes have each?",
            ),
            _asked(
                "column_alike",
                f"Now each bin has a row of {threads} sums, one of each thread: {column}. All lanes have the"
                f" value {value}.",
                lambda t: threads * value + t,
                "Which words do two neighbours want, if they have the same value?",
            ),
            _asked(
                "column_any",
                f"The same layout, {column}, and lane `t` has the value `7 * t % {bins}`.",
                lambda t: threads * (7 * t % bins) + t,
                "The rows are a multiple of 32 words long. So which bank does thread `t` get, for any value?",
            ),
            _asked(
                "sum_of_columns",
                f"At the end lane `b` adds up the sums of bin `b`. In the last layout it reads"
                f" `sums[{threads} * b + {place}]` in one of its steps.",
                lambda b: threads * b + place,
                "Which word changes from lane to lane, and by how much?",
            ),
            _asked(
                "atomic",
                "And with an integer atomic that gives the old value back, on a single row of bins for all:"
                f" lane `t` adds to `counts[t % {turns}]`.",
                lambda t: t % turns,
                "This instruction does not join lanes that want the same word. How many lanes want each?",
                "atom.shared.add.u32",
            ),
            Question(
                "bytes",
                f"How many bytes of shared memory do {bins} float32 sums for each of {threads} threads take?",
                fits,
                "Multiply the sums of one thread by the threads, and by the bytes of a float32.",
                "The next block finds that much less room on its multiprocessor. Privacy is not free.",
            ),
        ),
    )


def _asked(
    name: str, text: str, word: Callable[[Any], Any], nudge: str, instruction: str = "ld.shared.b32"
) -> Question:
    access = WarpAccess.from_formula(instruction, lambda lane: FLOAT_BYTES * word(lane))
    cost = shared_cost(access)
    return Question(name, f"{text} How many wavefronts?", cost.wavefronts, nudge, str(cost), access=access)


# -- the kernel -------------------------------------------------------------------------------------


def _histogram(bins: int, threads: int, starter: Callable, before: Callable) -> KernelTask:
    chunk = ROUNDS * threads

    def run(rng: np.random.Generator, size: Any) -> Run:
        n, kind = size
        values = _values(rng, n, kind, bins)
        weights = rng.integers(1, 9, n).astype(np.float32)
        grid = -(-n // chunk)
        expected = np.zeros((grid, bins), np.float32)
        np.add.at(expected, (np.arange(n) // chunk, values), weights)
        return Run(
            size=f"{count(n, 'sample')}, {kind}",
            grid=grid,
            block=threads,
            arguments={"values": values, "weights": weights, "dst": poisoned((grid, bins))},
            expected={"dst": expected},
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        n = (int(n) for n in rng.integers(2, 2 * chunk, size=2))
        return (1, "alike"), (next(n), "mixed"), (next(n), "in groups")

    return KernelTask(
        name="histogram",
        parameters=("values", "weights", "dst"),
        run=run,
        sizes=((chunk, "alike"), (chunk + 77, "mixed")),
        hidden=hidden,
        right=3,
        goals=(
            _private(2),
            _no_conflicts(6, bins, threads),
            _wavefronts(2, bins, threads),
            shared_bytes(1, most=bins * threads * FLOAT_BYTES),
            sectors_per_request(1),
        ),
        starter=starter,
        timed=(1 << 22, "alike"),
        before=before,
        worth=_worth,
    )


def _values(rng: np.random.Generator, n: int, kind: str, bins: int) -> np.ndarray:
    if kind == "alike":
        return np.full(n, rng.integers(bins), np.int32)
    if kind == "in groups":
        return (np.arange(n) // 8 % bins).astype(np.int32)
    return rng.integers(0, bins, n).astype(np.int32)


def _private(points: int) -> Goal:
    """No hazard, and no atomic: every sum has one thread that adds to it."""

    def claim(check: Check, run: Run) -> Check:
        atomics = _atomics(check)
        if atomics:
            sentence = f"Line {atomics[0].line} adds by an atomic, in an order that differs from run to run."
            return check.claim("private", False, f"{sentence} Give each sum one thread that adds to it.")
        return check.no_hazards()

    return Goal("no hazards", points, claim)


def _no_conflicts(points: int, bins: int, threads: int) -> Goal:
    """No bank conflict, by private sums in shared memory and with all lanes at work."""

    def claim(check: Check, run: Run) -> Check:
        shared = check.trace.shared
        if not shared.load.requests:
            return check.claim("bank conflicts", False, "The kernel reads no shared memory.")
        if _atomics(check) or any(hazard.severity != "benign" for hazard in check.trace.hazards):
            sentence = "Conflicts count once each sum has one thread, and no hazard is left."
            return check.claim("bank conflicts", False, sentence)
        if shared.load.requests + shared.store.requests > _enough(run, bins, threads):
            sentence = "Conflicts count once all lanes of a warp work at the same time."
            return check.claim("bank conflicts", False, sentence)
        return check.shared_excess(max=0)

    return Goal("no bank conflicts", points, claim)


def _wavefronts(points: int, bins: int, threads: int) -> Goal:
    """As few wavefronts as all lanes at work need."""

    def claim(check: Check, run: Run) -> Check:
        space, limit = check.trace.shared, _enough(run, bins, threads)
        used = space.load.wavefronts + space.store.wavefronts
        if not used or _atomics(check):
            sentence = "Wavefronts count once the sums are in shared memory, without atomics."
            return check.claim("wavefronts", False, sentence)
        sentence = f"Shared loads and stores take {used:,} wavefronts; {limit:,} are enough."
        return check.claim("wavefronts", used <= limit, sentence)

    return Goal("wavefronts", points, claim)


def _enough(run: Run, bins: int, threads: int) -> int:
    """A store to clear each sum, a load and a store for each sample, a load of each sum at the end."""
    return 2 * (bins + ROUNDS) * threads // LANES * run.arguments["dst"].shape[0]


def _atomics(check: Check) -> list[Site]:
    return [site for site in check.trace.sites if site.op == "atomic" and site.requests]


def _worth() -> str:
    measured = results.experiment("h200", "E-01")
    worst, best = (f"stride {stride}, 1056 blocks" for stride in (32, 1))
    return (
        "There is no record of a histogram. Where a kernel only reads shared memory, all lanes in one bank"
        f" take {measured.ratio(worst, best):.1f} times as long as each in its own. {measured.caption}"
    )


# -- kernels with a fault ---------------------------------------------------------------------------


def starters(BINS: int, THREADS: int, WORDS: int, CHUNK: int) -> Mapping[str, Any]:
    """The kernels to repair, by fault."""

    @cuda.jit
    def by_thread(values, weights, dst):
        """A row of bins for each thread: where values are alike, all lanes are in one bank."""
        sums = cuda.shared.array(WORDS, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * CHUNK
        for i in range(t, WORDS, THREADS):
            sums[i] = 0
        cuda.syncthreads()
        for i in range(first + t, min(first + CHUNK, values.size), THREADS):
            sums[t * BINS + values[i]] += weights[i]
        cuda.syncthreads()
        for b in range(t, BINS, THREADS):
            total = float32(0)
            for k in range(THREADS):
                total += sums[k * BINS + b]
            dst[cuda.blockIdx.x, b] = total

    @cuda.jit
    def one_row(values, weights, dst):
        """One row of bins for all threads: two threads that add to a bin at a time lose an addition."""
        sums = cuda.shared.array(WORDS, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * CHUNK
        for b in range(t, BINS, THREADS):
            sums[b] = 0
        cuda.syncthreads()
        for i in range(first + t, min(first + CHUNK, values.size), THREADS):
            sums[values[i]] += weights[i]
        cuda.syncthreads()
        for b in range(t, BINS, THREADS):
            dst[cuda.blockIdx.x, b] = sums[b]

    @cuda.jit
    def straight_sum(values, weights, dst):
        """The lanes that add up at the end walk in step, all in one bank."""
        sums = cuda.shared.array(WORDS, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * CHUNK
        for i in range(t, WORDS, THREADS):
            sums[i] = 0
        cuda.syncthreads()
        for i in range(first + t, min(first + CHUNK, values.size), THREADS):
            sums[values[i] * THREADS + t] += weights[i]
        cuda.syncthreads()
        for b in range(t, BINS, THREADS):
            total = float32(0)
            for k in range(THREADS):
                total += sums[b * THREADS + k]
            dst[cuda.blockIdx.x, b] = total

    @cuda.jit
    def by_lane(values, weights, dst):
        """A column for each lane, which the lanes of all warps share: their additions get lost."""
        sums = cuda.shared.array(WORDS, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * CHUNK
        for i in range(t, WORDS, THREADS):
            sums[i] = 0
        cuda.syncthreads()
        for i in range(first + t, min(first + CHUNK, values.size), THREADS):
            sums[values[i] * 32 + t % 32] += weights[i]
        cuda.syncthreads()
        for b in range(t, BINS, THREADS):
            total = float32(0)
            for k in range(32):
                total += sums[b * 32 + (b + k) % 32]
            dst[cuda.blockIdx.x, b] = total

    @cuda.jit
    def not_cleared(values, weights, dst):
        """Only as many sums as there are bins are cleared; and the sum walks in step."""
        sums = cuda.shared.array(WORDS, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * CHUNK
        for i in range(t, BINS, THREADS):
            sums[i] = 0
        cuda.syncthreads()
        for i in range(first + t, min(first + CHUNK, values.size), THREADS):
            sums[values[i] * THREADS + t] += weights[i]
        cuda.syncthreads()
        for b in range(t, BINS, THREADS):
            total = float32(0)
            for k in range(THREADS):
                total += sums[b * THREADS + k]
            dst[cuda.blockIdx.x, b] = total

    kernels = (by_thread, one_row, straight_sum, by_lane, not_cleared)
    return {kernel.py_func.__name__: kernel for kernel in kernels}
