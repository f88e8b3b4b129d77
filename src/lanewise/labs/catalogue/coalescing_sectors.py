"""Coalescing, guided: predict the sectors of single requests, then add up rows with a warp on each row.

Variants change the offsets, strides, widths and masks to predict, and how many rows a block takes.
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
from lanewise.labs.goals import Goal, global_sectors, no_hazards
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import global_cost

LANES = 32
PER_SECTOR = 8  # floats
NUDGES = {
    "offset": "Do the lanes still begin and end at the edge of a sector?",
    "strided": "How many bytes lie between the two, and does each sector between them hold a lane?",
    "wide": "Which distance in bytes have two neighbours, and how many of them fit into a sector?",
    "narrow": "An element is smaller than a float; so is the distance of two neighbours.",
    "swapped": "Which set of elements do the lanes want together, whoever wants which?",
    "masked": "A sector moves for a lane that is active, and for no other.",
    "two_rows": "Do that for each of the two rows, then add. Does a row begin at the edge of a sector?",
}


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    rows = variant.choice(8, 4, 16)
    return Lab(
        name="coalescing_sectors",
        title="Count sectors, then sum rows",
        chapter="coalescing",
        level="guided",
        kinds=("predict", "write"),
        minutes=30,
        tasks=(_sectors(variant), _row_sums(rows)),
        given={"LANES": LANES, "ROWS": rows},
        seed=variant.seed,
    )


# -- single requests --------------------------------------------------------------------------------


def _sectors(variant: Variant) -> Answers:
    start, stride = variant.choice(3, 5, 9), variant.choice(5, 3, 6)
    flip, first = variant.choice(12, 19, 6), variant.choice(12, 11, 14)
    step, share = variant.choice(4, 2, 16), variant.choice(2, 4)
    pitch, place = variant.choice(80, 96, 112), variant.choice(4, 12, 20)
    return Answers(
        "sectors",
        (
            _question("offset", f"src[i + {start}]", "floats", lambda i: i + start),
            _question("strided", f"src[{stride} * i]", "floats", lambda i: stride * i),
            _question("wide", f"src[{share} * i]", "doubles", lambda i: share * i, 64),
            _question("narrow", f"src[{step} * i]", "halves", lambda i: step * i, 16),
            _question("swapped", f"src[i ^ {flip}]", "floats", lambda i: i ^ flip),
            _question(
                "masked",
                f"src[i], but only the lanes below {first} take part,",
                "floats",
                lambda i: i,
                mask=(1 << first) - 1,
            ),
            _question(
                "two_rows",
                f"src[{pitch} * (i // 16) + i % 16 + {place}], two rows of a block of 16 x 16,",
                "floats",
                lambda i: pitch * (i // 16) + i % 16 + place,
            ),
        ),
    )


def _question(
    name: str, index: str, kind: str, of_lane: Callable[[Any], Any], bits: int = 32, mask: int = 2**32 - 1
) -> Question:
    access = WarpAccess.from_formula(f"ld.global.b{bits}", lambda lane: bits // 8 * of_lane(lane), mask)
    formula, _, rest = index.partition(", ")
    more = f", {rest}" if rest else ""
    return Question(
        name,
        f"`{formula}`{more} with {kind} of {bits // 8} bytes. How many sectors?",
        global_cost(access).sectors,
        f"Write down the byte addresses of the first and of the last lane, and divide by 32. {NUDGES[name]}",
        _why(access),
        access=access,
    )


def _why(access: WarpAccess) -> str:
    cost = global_cost(access)
    return f"The lanes ask for {cost.bytes_requested} bytes, and {cost.bytes_moved} bytes move."


# -- the kernel -------------------------------------------------------------------------------------


@cuda.jit
def row_sums_by_lane(src, dst):
    """The walk to turn around: a lane for each row. Block (32, n), n up to 16 rows."""
    thread = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    row = cuda.blockIdx.x * cuda.blockDim.y + thread
    if thread < cuda.blockDim.y and row < src.shape[0]:
        total = float32(0)
        for col in range(src.shape[1]):
            total += src[row, col]
        dst[row] = total


def _row_sums(rows: int) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        src = rng.integers(-8, 9, size).astype(np.float32)
        return Run(
            size=f"{size[0]} rows of {size[1]}",
            grid=-(-size[0] // rows),
            block=(LANES, rows),
            arguments={"src": src, "dst": poisoned(size[0])},
            expected={"dst": src.sum(axis=1)},
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        n_rows, n_cols = rng.integers(1, 40, size=2), rng.integers(33, 300, size=2)
        return ((1, int(n_cols[0])), (int(n_rows[0]), int(n_cols[1])), (int(n_rows[1]), 1))

    return KernelTask(
        name="row_sums",
        parameters=("src", "dst"),
        run=run,
        sizes=((2 * rows, 128), (rows + 1, 77)),
        hidden=hidden,
        right=4,
        goals=(global_sectors(6, _enough_sectors), _no_conflicts(2), no_hazards(2)),
        timed=(1 << 15, 1 << 12),
        before=row_sums_by_lane,
        worth=_worth,
    )


def _no_conflicts(points: int) -> Goal:
    """No bank conflict, by a kernel whose lanes work together: in shared memory, or by shuffles."""

    def claim(check: Check, run: Run) -> Check:
        if check.trace.global_.load.sectors > _enough_sectors(run):
            return check.claim("bank conflicts", False, "Bank conflicts count once the loads are coalesced.")
        return check.shared_excess(max=0)

    return Goal("no bank conflicts", points, claim)


def _enough_sectors(run: Run) -> int:
    """Each row is read once, in requests of neighbours; where a row starts inside a sector, a request takes
    one more. Each sum is stored once.
    """
    n_rows, n_cols = run.arguments["src"].shape
    requests = -(-n_cols // LANES)
    extra = requests if n_cols % PER_SECTOR else 0
    return n_rows * (-(-n_cols // PER_SECTOR) + extra) + n_rows


def _worth() -> str:
    measured = results.experiment("h200", "E-43")
    runs, columns = "sum_runs of 32, 1 GiB", "sum_columns of 32, 1 GiB"
    return (
        f"The chapter's sums have the same choice. A lane in a run of its own takes"
        f" {measured.ratio(runs, columns):.1f} times as long as lanes on neighbours. {measured.caption}"
    )
