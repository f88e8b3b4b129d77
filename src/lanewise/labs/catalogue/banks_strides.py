"""Banks, guided: predict the wavefronts of single accesses, then let each lane walk a run of its own.

Variants change the strides, widths and masks to predict, and how long a run is. A run of a multiple of 32
words puts the first element of every run into one bank; the learner changes the order of the walk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import results
from lanewise.access import WarpAccess
from lanewise.checks import Check
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import Goal, no_hazards, sectors_per_request, shared_bytes
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost
from lanewise.text import count

LANES = 32
FLOAT_BYTES = 4
NUDGES = {
    "even": "Write down the banks of lanes 0, 1, 2. After how many lanes does bank 0 come again?",
    "moved": "Does it matter where the walk begins, or only how far it is from lane to lane?",
    "eights": "How many different words are there, and in how many banks do they lie?",
    "turns": "How many different words are there, and in which bank does each of them lie?",
    "masked": "Only active lanes want a word. Spread those over the banks that the stride visits.",
    "doubles": "A double is two words, and half a warp goes at a time. Count one half, then the other.",
    "quads": "Four floats are four words, and a quarter of a warp goes at a time. Count one quarter first.",
    "halves": "Two halves share a word. What is the stride in words?",
    "two_rows": "Write down the banks of the first row and those of the second. Which are in both?",
}


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    length = variant.choice(32, 64, 96)
    return Lab(
        name="banks_strides",
        title="Strides, and a walk without conflicts",
        chapter="banks",
        level="guided",
        kinds=("predict", "write"),
        minutes=30,
        tasks=(_wavefronts(variant), _peaks(length)),
        given={"LANES": LANES, "RUN": length, "WORDS": LANES * length},
        seed=variant.seed,
    )


# -- single accesses --------------------------------------------------------------------------------


def _wavefronts(variant: Variant) -> Answers:
    even, odd = variant.choice(12, 20, 24), variant.choice(21, 27, 35)
    moved, apart = variant.choice(7, 3, 9), variant.choice(33, 16, 32)
    turns, n_lanes = variant.choice(2, 3, 4), variant.choice(10, 6, 14)
    double, quad, half = variant.choice(2, 4, 8), variant.choice(3, 2, 4), variant.choice(4, 8, 16)
    pitch = variant.choice(40, 48, 44)
    return Answers(
        "wavefronts",
        (
            _question("even", f"s[{even} * i]", "floats", lambda i: even * i),
            _question("moved", f"s[{odd} * i + {moved}]", "floats", lambda i: odd * i + moved),
            _question("eights", f"s[{apart} * (i // 8)]", "floats", lambda i: apart * (i // 8)),
            _question("turns", f"s[64 * (i % {turns})]", "floats", lambda i: 64 * (i % turns)),
            _question("masked", "s[16 * i]", "floats", lambda i: 16 * i, n_lanes=n_lanes),
            _question("halves", f"s[{half} * i]", "halves", lambda i: half * i, 16),
            _question("doubles", f"s[{double} * i]", "doubles", lambda i: double * i, 64),
            _question("quads", f"s[{quad} * i]", "`float4`, four floats each", lambda i: quad * i, 128),
            _question(
                "two_rows",
                f"s[{pitch} * (i // 16) + i % 16]",
                "floats",
                lambda i: pitch * (i // 16) + i % 16,
            ),
        ),
    )


def _question(
    name: str,
    index: str,
    kind: str,
    of_lane: Callable[[Any], Any],
    bits: int = 32,
    n_lanes: int = LANES,
) -> Question:
    mask = (1 << n_lanes) - 1
    access = WarpAccess.from_formula(f"ld.shared.b{bits}", lambda lane: bits // 8 * of_lane(lane), mask)
    who = "Lane `i` loads" if n_lanes == LANES else f"Lanes below {n_lanes} alone take part; lane `i` loads"
    return Question(
        name,
        f"`s` holds {kind} ({bits // 8} bytes). {who} `{index}`. How many wavefronts?",
        shared_cost(access).wavefronts,
        NUDGES[name],
        str(shared_cost(access)),
        access=access,
    )


# -- the kernel -------------------------------------------------------------------------------------


def peaks_in_step(length: int) -> Any:
    """The walk to change: all lanes are at the same place of their runs, so all are in one bank."""
    words = LANES * length

    @cuda.jit
    def peaks(src, dst):
        tile = cuda.shared.array(words, float32)
        lane = cuda.threadIdx.x
        first = cuda.blockIdx.x * LANES
        for row in range(LANES):
            for col in range(lane, length, LANES):
                if first + row < src.shape[0]:
                    tile[row * length + col] = src[first + row, col]
        cuda.syncthreads()  # the runs are complete before any lane reads one
        if first + lane < src.shape[0]:
            largest = tile[lane * length]
            for col in range(1, length):
                largest = max(largest, tile[lane * length + col])
            dst[first + lane] = largest

    return peaks


def _peaks(length: int) -> KernelTask:
    tile_bytes = LANES * length * FLOAT_BYTES

    def run(rng: np.random.Generator, size: Any) -> Run:
        src = -1 - rng.permutation(size * length).reshape(size, length).astype(np.float32)
        return Run(
            size=f"{count(size, 'run')} of {length}",
            grid=-(-size // LANES),
            block=LANES,
            arguments={"src": src, "dst": poisoned(size)},
            expected={"dst": src.max(axis=1)},
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        return 1, int(rng.integers(2, LANES)), int(rng.integers(LANES + 1, 3 * LANES))

    return KernelTask(
        name="peaks",
        parameters=("src", "dst"),
        run=run,
        sizes=(2 * LANES, LANES + 1),
        hidden=hidden,
        right=3,
        goals=(
            _no_conflicts(4, length),
            _together(3, length),
            sectors_per_request(1),
            shared_bytes(1, most=tile_bytes, least=tile_bytes),
            no_hazards(1),
        ),
        timed=1 << 17,
        before=peaks_in_step(length),
        worth=_worth,
    )


def _no_conflicts(points: int, length: int) -> Goal:
    """No bank conflict, in a walk of all lanes at once: a lane that works alone meets nobody either."""

    def claim(check: Check, run: Run) -> Check:
        requests = check.trace.shared.load.requests
        if not requests:
            return check.claim("bank conflicts", False, "The kernel does not read shared memory.")
        if requests > length * _n_blocks(run):
            sentence = "Bank conflicts count once all lanes of the warp walk at the same time."
            return check.claim("bank conflicts", False, sentence)
        return check.shared_excess(max=0)

    return Goal("no bank conflicts", points, claim)


def _together(points: int, length: int) -> Goal:
    """A row is stored at once and all lanes walk at once: no more wavefronts than that takes."""

    def claim(check: Check, run: Run) -> Check:
        shared = check.trace.shared
        used, limit = shared.load.wavefronts + shared.store.wavefronts, 2 * length * _n_blocks(run)
        if not used:
            return check.claim("wavefronts", False, "The kernel does not use shared memory.")
        sentence = f"Shared loads and stores take {used:,} wavefronts; {limit:,} are enough if all lanes work"
        return check.claim("wavefronts", used <= limit, f"{sentence} at the same time.")

    return Goal("wavefronts", points, claim)


def _n_blocks(run: Run) -> int:
    return -(-run.arguments["src"].shape[0] // LANES)


def _worth() -> str:
    measured = results.experiment("h200", "E-01")
    worst, best = (f"stride {stride}, 1056 blocks" for stride in (32, 1))
    return (
        f"Where a kernel only reads shared memory, stride 32 takes {measured.ratio(worst, best):.1f} times as"
        f" long as stride 1. {measured.caption}"
    )
