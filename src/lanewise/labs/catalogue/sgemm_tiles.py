"""SGEMM, challenge: fewer shared-memory wavefronts for each multiply-add, by counts and thresholds.

The kernel that is given is right. It reads both operands from shared memory for every multiply-add, and its
tiles have bank conflicts. Variants: how many results a thread has, and the pad that does not help: the one
that everybody recommends, none, or four.
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
from lanewise.labs.goals import Goal, no_conflicts, no_hazards, sectors_per_request, shared_bytes
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost

SIDE = 8  # threads along each side of a block
PAD = 8  # floats: four rows of eight threads then fill all banks
WARPS, LANES, FLOAT_BYTES = 2, 32, 4


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    each = variant.choice(4, 2)
    tile = SIDE * each
    pitch = tile + variant.choice(1, 0, 4)
    return Lab(
        name="sgemm_tiles",
        title="Fewer wavefronts for each multiply-add",
        chapter="sgemm",
        level="challenge",
        kinds=("predict", "golf"),
        minutes=50,
        tasks=(_reads(each), _multiply(each, starter(tile, each, pitch))),
        given={"TILE": tile, "SIDE": SIDE, "EACH": each, "PITCH": pitch},
        seed=variant.seed,
    )


def _warp(instruction: str, row: Callable, col: Callable, pitch: int) -> WarpAccess:
    return WarpAccess.from_tile(f"{instruction}.shared.b32", row, col, pitch=pitch)


def _reads(each: int) -> Answers:
    tile = SIDE * each

    def fill(pitch: int) -> WarpAccess:
        return _warp("st", lambda lane: lane // SIDE, lambda lane: lane % SIDE, pitch)

    def column(pitch: int) -> WarpAccess:
        return _warp("ld", lambda lane: lane // SIDE, lambda lane: 0 * lane, pitch)

    asked = (
        ("fill", f"store `a_tile[y, x]`, {tile} floats from row to row", fill(tile)),
        ("fill_pad_1", f"store `a_tile[y, x]`, {tile + 1} floats from row to row", fill(tile + 1)),
        ("read", f"read `a_tile[y, k]` for one k, {tile} floats from row to row", column(tile)),
        ("read_pad_1", f"read `a_tile[y, k]` for one k, {tile + 1} floats from row to row", column(tile + 1)),
    )
    costs = tuple(
        Question(
            name,
            f"A warp has {LANES // SIDE} rows (y) of {SIDE} threads (x). Its lanes {what}. Wavefronts?",
            shared_cost(access).wavefronts,
            "Write down the banks of the first row of threads, then of the second. Where do they meet?",
            "That is how often the fullest bank is asked for different words.",
            access=access,
        )
        for name, what, access in asked
    )
    return Answers("reads", (*costs, *_work(each)))


def _work(each: int) -> tuple[Question, Question]:
    return (
        Question(
            "one_result",
            "A thread with one result reads a value of each tile for each k. Without conflicts: how many"
            " wavefronts does a warp need for one multiply-add of each lane?",
            2,
            "One read of each tile, and each is one wavefront.",
            "Two reads, one multiply-add.",
        ),
        Question(
            "square",
            f"A thread has {each} x {each} results, and reads what it needs for one k once. How many"
            " wavefronts for one multiply-add of each lane?",
            2 / each,
            "How many values of each tile does it need, and how many multiply-adds does it do with them?",
            "The side of the square goes into the reads, its area into the work.",
            tolerance=1e-6,
        ),
    )


def starter(tile: int, each: int, pitch: int) -> Any:
    """A kernel that is right, reads both operands for every multiply-add, and has conflicts."""
    TILE, EACH, PITCH = tile, each, pitch

    @cuda.jit
    def reads_all(a, b, c):
        """The pitch makes rows of threads meet in the same banks, and nothing is kept in registers."""
        a_tile = cuda.shared.array((TILE, PITCH), float32)
        b_tile = cuda.shared.array((TILE, PITCH), float32)
        acc = cuda.local.array((EACH, EACH), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        top, left = cuda.blockIdx.y * TILE, cuda.blockIdx.x * TILE
        for i in range(EACH):
            for j in range(EACH):
                acc[i, j] = 0
        for first in range(0, a.shape[1], TILE):
            for i in range(EACH):
                for j in range(EACH):
                    row, col = y + SIDE * i, x + SIDE * j
                    a_tile[row, col] = 0
                    if top + row < a.shape[0] and first + col < a.shape[1]:
                        a_tile[row, col] = a[top + row, first + col]
                    b_tile[row, col] = 0
                    if first + row < b.shape[0] and left + col < b.shape[1]:
                        b_tile[row, col] = b[first + row, left + col]
            cuda.syncthreads()  # both tiles are full
            for k in range(TILE):
                for i in range(EACH):
                    for j in range(EACH):
                        acc[i, j] += a_tile[y + SIDE * i, k] * b_tile[k, x + SIDE * j]
            cuda.syncthreads()  # read before the next tiles overwrite them
        for i in range(EACH):
            for j in range(EACH):
                row, col = top + y + SIDE * i, left + x + SIDE * j
                if row < c.shape[0] and col < c.shape[1]:
                    c[row, col] = acc[i, j]

    return reads_all


def _multiply(each: int, given: Any) -> KernelTask:
    tile = SIDE * each

    def run(rng: np.random.Generator, size: tuple[int, int, int]) -> Run:
        n_rows, n_cols, depth = size
        a = rng.random((n_rows, depth), dtype=np.float32) - np.float32(0.5)
        b = rng.random((depth, n_cols), dtype=np.float32) - np.float32(0.5)
        return Run(
            size=f"{n_rows} x {n_cols} results, {depth} deep",
            grid=(-(-n_cols // tile), -(-n_rows // tile)),
            block=(SIDE, SIDE),
            arguments={"a": a, "b": b, "c": poisoned((n_rows, n_cols))},
            expected={"c": (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)},
            rtol=1e-3,
            atol=1e-4,
        )

    def hidden(rng: np.random.Generator) -> tuple[tuple[int, ...], ...]:
        return (tuple(int(extent) for extent in rng.integers(1, tile + 4, size=3)),)

    return KernelTask(
        name="multiply",
        parameters=("a", "b", "c"),
        run=run,
        sizes=((tile, tile, tile), (tile - 3, tile + 1, 5)),
        hidden=hidden,
        right=3,
        goals=(
            no_conflicts(3),
            _at_most("bronze: two wavefronts", 1, each, 2),
            _at_most("silver: one operand is kept", 3, each, (1 + each) / each),
            _at_most("gold: both are", 4, each, 2 / each),
            shared_bytes(1, most=2 * tile * (tile + PAD) * FLOAT_BYTES),
            sectors_per_request(1, most=8),  # four rows of eight floats, each perhaps across two sectors
            no_hazards(1),
        ),
        starter=given,
        before=given,
        worth=_worth,
        timed=(1024, 1024, 1024),
    )


def _at_most(name: str, points: int, each: int, wavefronts: float) -> Goal:
    """Wavefronts of shared loads for each multiply-add of a whole warp."""

    def claim(check: Check, run: Run) -> Check:
        n_blocks = run.grid[0] * run.grid[1]  # type: ignore[index]
        tile = SIDE * each
        depth = -(-run.arguments["a"].shape[1] // tile) * tile
        multiply_adds = n_blocks * WARPS * depth * each**2
        used = check.trace.shared.load.wavefronts / multiply_adds
        sentence = (
            f"{used:.3g} wavefronts are read for each multiply-add of a warp; {wavefronts:.3g} are allowed."
        )
        return check.claim(name, used <= wavefronts, sentence)

    return Goal(name, points, claim)


def _worth() -> str:
    ladder = results.experiment("h200", "E-31")
    ratio = ladder.ratio("32x32 tiles", "4x4")
    return f"With 4 x 4 results a thread instead of one, SGEMM is {ratio:.2f} times as fast. {ladder.caption}"
