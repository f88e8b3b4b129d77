"""Reductions and scans, challenge: a scan of a block that races; its result may be right all the same.

Each fault happened in the field: a scan in place with one barrier a step; a barrier that was left out since
"the values are there already"; two buffers without a barrier between steps; no barrier for the steps within a
warp, from the time when lanes ran in lock-step. Variants: the fault, and the size of the block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, int32

from lanewise.checks import Check
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import Goal, no_conflicts, shared_bytes, shared_wavefronts
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant

WARP_LANES = 32
INT_BYTES = 4


def build(variant: Variant) -> Lab:
    """The lab of one variant: another block, another fault."""
    threads = variant.choice(128, 64, 256)
    fault = variant.choice(0, 1, 2, 3)
    return Lab(
        name="reduction_scan_fft_race",
        title="The scan that races",
        chapter="reduction_scan_fft",
        level="challenge",
        kinds=("predict", "hunt", "repair"),
        minutes=35,
        tasks=(_counts(threads), _scan(threads, starters(threads)[fault])),
        given={"THREADS": threads},
        seed=variant.seed,
    )


def _counts(threads: int) -> Answers:
    steps = [1 << k for k in range(threads.bit_length() - 1)]
    within = sum(step < WARP_LANES for step in steps)
    return Answers(
        "counts",
        (
            Question(
                "steps",
                f"In step k = 0, 1, .. each thread t >= 2^k adds what thread t - 2^k has. After how many"
                f" steps has each of {threads} threads the sum of all before it, its own included?",
                len(steps),
                "How far back does a thread see after one step, after two, after three?",
                "What a thread has seen doubles with every step.",
            ),
            Question(
                "additions",
                f"How many additions do the {threads} threads do in all these steps together?",
                sum(threads - step for step in steps),
                "In step k the first 2^k threads add nothing.",
                "A loop on one thread would need far fewer, but they would be one after the other.",
            ),
            Question(
                "other_warp",
                "A neighbour to the left may be in another warp. In how many of the steps does at least one"
                " thread read what a thread of another warp wrote?",
                len(steps),
                "Look at lane 0 of the second warp in step 0.",
                "Lane 0 of a warp reads from the warp before it in every step, also in the small ones.",
            ),
            Question(
                "own_warp_only",
                "In how many of the steps does at least one thread read what a thread of its own warp wrote?",
                within,
                "From which distance on is the other thread always in another warp?",
                "Steps of a warp's width and more lead out of it. The smaller ones do both.",
            ),
        ),
    )


def starters(threads: int) -> tuple[Any, ...]:
    """Four scans with one fault each."""
    THREADS = threads

    @cuda.jit
    def in_place(src, dst):
        """One array, one barrier a step: a thread overwrites what its neighbour has still to read."""
        values = cuda.shared.array(THREADS, int32)
        t = cuda.threadIdx.x
        i = cuda.blockIdx.x * THREADS + t
        values[t] = src[i] if i < src.size else 0
        cuda.syncthreads()  # all values are there
        step = 1
        while step < THREADS:
            if t >= step:
                values[t] += values[t - step]
            cuda.syncthreads()  # the step is done
            step *= 2
        if i < dst.size:
            dst[i] = values[t]

    @cuda.jit
    def no_first_barrier(src, dst):
        """Two arrays, but the first step reads values that may not be stored yet."""
        values = cuda.shared.array((2, THREADS), int32)
        t = cuda.threadIdx.x
        i = cuda.blockIdx.x * THREADS + t
        values[0, t] = src[i] if i < src.size else 0
        now, step = 0, 1
        while step < THREADS:
            total = values[now, t]
            if t >= step:
                total += values[now, t - step]
            now = 1 - now
            values[now, t] = total
            cuda.syncthreads()  # the step is done
            step *= 2
        if i < dst.size:
            dst[i] = values[now, t]

    @cuda.jit
    def no_step_barrier(src, dst):
        """Two arrays and no barrier between steps: a fast warp is a step ahead."""
        values = cuda.shared.array((2, THREADS), int32)
        t = cuda.threadIdx.x
        i = cuda.blockIdx.x * THREADS + t
        values[0, t] = src[i] if i < src.size else 0
        cuda.syncthreads()  # all values are there
        now, step = 0, 1
        while step < THREADS:
            total = values[now, t]
            if t >= step:
                total += values[now, t - step]
            now = 1 - now
            values[now, t] = total
            step *= 2
        if i < dst.size:
            dst[i] = values[now, t]

    @cuda.jit
    def lock_step(src, dst):
        """No barrier in small steps, as if they stayed within a warp whose lanes run in lock-step."""
        values = cuda.shared.array((2, THREADS), int32)
        t = cuda.threadIdx.x
        i = cuda.blockIdx.x * THREADS + t
        values[0, t] = src[i] if i < src.size else 0
        cuda.syncthreads()  # all values are there
        now, step = 0, 1
        while step < THREADS:
            total = values[now, t]
            if t >= step:
                total += values[now, t - step]
            now = 1 - now
            values[now, t] = total
            if step >= 16:
                cuda.syncthreads()  # the step is done
            step *= 2
        if i < dst.size:
            dst[i] = values[now, t]

    return in_place, no_first_barrier, no_step_barrier, lock_step


def _scan(threads: int, starter: Any) -> KernelTask:
    def run(rng: np.random.Generator, size: int) -> Run:
        src = rng.integers(0, 100, size, dtype=np.int32)
        n_blocks = -(-size // threads)
        whole = np.zeros(n_blocks * threads, np.int32)
        whole[:size] = src
        sums = np.cumsum(whole.reshape(n_blocks, threads), axis=1, dtype=np.int32).reshape(-1)[:size]
        return Run(
            size=f"{size} values, {n_blocks} blocks",
            grid=n_blocks,
            block=threads,
            arguments={"src": src, "dst": poisoned(size, np.int32)},
            expected={"dst": sums},
        )

    def hidden(rng: np.random.Generator) -> tuple[int, ...]:
        return tuple(int(size) for size in rng.integers(1, 4 * threads, size=2))

    return KernelTask(
        name="scan",
        parameters=("src", "dst"),
        run=run,
        sizes=(2 * threads, 3 * threads - 5),
        hidden=hidden,
        right=3,
        goals=(
            Goal("no hazards", 4, _orders_what_is_shared),
            shared_wavefronts(2, _most_wavefronts),
            no_conflicts(1),
            shared_bytes(1, most=2 * threads * INT_BYTES),
        ),
        starter=starter,
        timed=1 << 22,
    )


def _orders_what_is_shared(check: Check, run: Run) -> Check:
    """No hazard, between threads that do exchange values: a thread on its own races with nobody."""
    if not check.trace.shared.load.requests:
        return check.claim("hazards", False, "The threads exchange nothing: no shared memory is read.")
    return check.no_hazards()


def _most_wavefronts(run: Run) -> int:
    """For each warp and step two loads and a store, and one more of slack; a loop over all values is over."""
    threads = int(np.prod(run.block))
    steps = threads.bit_length() - 1
    return int(np.prod(run.grid)) * -(-threads // WARP_LANES) * 4 * (steps + 1)
