"""HGEMM, challenge: the gradient of a layer's weights, with tiles that have no room for a pad.

Both operands lie with k running down, so both are transposed on the way, and each needs the swizzle of its
own row length. Variants change the two row lengths, and with them the swizzles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise import results
from lanewise.access import WarpAccess
from lanewise.checks import Check
from lanewise.fragments import A_COLUMN_MAJOR, B_ROW_MAJOR, MATRIX, OperandLoad
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import Goal, by_matrices, free_matrices, no_hazards, shared_bytes
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost

HALF_BYTES = 2
BK = 32  # how much of k a block takes at a time
RTOL, ATOL = 2e-3, 2e-2  # a half has 11 bits, and the sums are rounded to one
SIZE = "hgemm 4096x4096x4096"


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    bm, bn = variant.choice((32, 128), (64, 128), (32, 64), (64, 64))
    return Lab(
        name="hgemm_swizzle",
        title="The gradient of a layer, without a pad",
        chapter="hgemm",
        level="challenge",
        kinds=("predict", "layout", "write"),
        minutes=45,
        tasks=(_costs(bm, bn), _gradient(bm, bn)),
        given={"BM": bm, "BN": bn, "BK": BK},
        seed=variant.seed,
    )


# -- what dense tiles would cost --------------------------------------------------------------------


def _costs(bm: int, bn: int) -> Answers:
    of_x, of_dy = _fetch(A_COLUMN_MAJOR, bm), _fetch(B_ROW_MAJOR, bn)
    asked = (
        _one("x_fetch", f"the tile of x, {BK} rows of {bm} halves, dense", of_x),
        _one("dy_fetch", f"the tile of dy, {BK} rows of {bn} halves, dense", of_dy),
        _step("dense_step", "dense tiles", bm, bn, *(shared_cost(one).wavefronts for one in (of_x, of_dy))),
        _step("free_step", "no conflict", bm, bn, *(shared_cost(one).ideal for one in (of_x, of_dy))),
        _fill(bm),
    )
    return Answers("costs", asked)


def _fetch(load: OperandLoad, pitch: int) -> WarpAccess:
    return WarpAccess.from_tile(load.instruction, load.row, load.col, pitch, HALF_BYTES)


def _one(name: str, tile: str, access: WarpAccess) -> Question:
    return Question(
        name,
        f"How many wavefronts does one ldmatrix.x4.trans take from {tile}?",
        shared_cost(access).wavefronts,
        "How many chunks of 16 bytes is a row, and how many rows of a matrix then start in the same eighth"
        " of the banks? Transposing changes who receives, not what is read.",
        "Each of the four matrices pays for the rows that meet.",
        access=access,
    )


def _step(name: str, tiles: str, bm: int, bn: int, of_x: int, of_dy: int) -> Question:
    warps = bn // 16
    return Question(
        name,
        f"A block of {warps} warps makes {bm} x {bn} results, {bm} x 16 a warp. How many wavefronts do its"
        f" fetches take for 16 rows of k, with {tiles}?",
        warps * (bm // 16 * of_x + of_dy),
        "A warp fetches one block of dy, and one of x for every 16 of its rows. How many warps are there?",
        "Warps, times the fetches of each, times what a fetch takes.",
    )


def _fill(bm: int) -> Question:
    chunks = bm // MATRIX
    access = WarpAccess.from_tile(
        "st.shared.b128",
        lambda lane: lane // chunks,
        lambda lane: lane % chunks * MATRIX,
        bm + MATRIX,
        HALF_BYTES,
    )
    return Question(
        "padded_fill",
        f"Say there were room for a pad of 8 halves in each row of x. Then rows begin {bm + MATRIX} halves"
        f" apart, and {chunks} lanes fill a row. How many wavefronts does one st.shared.b128 take?",
        shared_cost(access).wavefronts,
        "Eight lanes are a phase. Do they stay in one row, or does the pad lie in the middle of a phase?",
        f"A row is {chunks} chunks, a phase is eight.",
        access=access,
    )


# -- the kernel -------------------------------------------------------------------------------------


def _gradient(bm: int, bn: int) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        m, n, k = size
        x, dy = (rng.standard_normal(shape).astype(np.float16) for shape in ((k, m), (k, n)))
        product = x.astype(np.float32).T @ dy.astype(np.float32)
        return Run(
            size=f"{m} x {n} weights, a batch of {k}",
            grid=(n // bn, m // bm),
            block=2 * bn,
            arguments={"x": x, "dy": dy, "dw": poisoned((m, n), np.float16)},
            expected={"dw": product.astype(np.float16)},
            rtol=RTOL,
            atol=ATOL,
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        blocks = rng.permutation([(2, 1, 1), (1, 2, 1), (1, 1, 3), (3, 1, 1), (2, 1, 2)])[:2]
        return tuple((bm * int(m), bn * int(n), BK * int(k)) for m, n, k in blocks)

    n_bytes = HALF_BYTES * BK * (bm + bn)
    return KernelTask(
        name="gradient",
        parameters=("x", "dy", "dw"),
        run=run,
        sizes=((bm, bn, BK), (2 * bm, bn, 2 * BK)),
        hidden=hidden,
        right=4,
        goals=(
            by_matrices(1, most=lambda run: _fetches(run, bm)),
            _both_sides(6),
            shared_bytes(1, most=n_bytes, least=n_bytes),
            no_hazards(2),
        ),
        timed=(4096, 4096, 1024),
        worth=_worth,
    )


def _fetches(run: Run, bm: int) -> int:
    """Per warp and 16 rows of k: one of dy, and one of x for every 16 of its rows."""
    (k, m), n = run.arguments["x"].shape, run.arguments["dy"].shape[1]
    return int(m // bm * (n // 16) * (k // 16) * (1 + bm // 16))


def _both_sides(points: int) -> Goal:
    """Fetch and fill are free, by tiles that `ldmatrix` reads."""

    def claim(check: Check, run: Run) -> Check:
        return free_matrices(points).claim(check, run).shared_excess(max=0)

    return Goal("both sides", points, claim)


def _worth() -> str:
    first, fast = results.experiment("h200", "E-15"), results.experiment("h200", "E-16")
    return (
        f"The swizzle in a product of 4096 x 4096: {first.ratio('row-major', 'swizzled', SIZE):.1f} times the"
        f" speed in the first kernel of the chapter, {fast.ratio('0 bits', '3 bits'):.1f} times in the fast"
        f" one. {first.caption} The fast kernel: {fast.caption}"
    )
