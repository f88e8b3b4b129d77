"""Layer normalisation, guided: a warp for each row, no float64, and few passes over the row.

Variants: the values that are predicted, and how many rows a block has.
"""

from __future__ import annotations

import math
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
from lanewise.machine import SECTOR_BYTES
from lanewise.memory import global_cost

LANES, FLOAT_BYTES = 32, 4
EPSILON = np.float32(1e-5)
PASSES = 4  # over a row: at most three readings and one writing


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    rows = variant.choice(4, 2, 8)
    return Lab(
        name="layernorm_gelu_rows",
        title="A warp for each row",
        chapter="layernorm_gelu",
        level="guided",
        kinds=("predict", "write"),
        minutes=35,
        tasks=(_traffic(variant), _normalise(rows)),
        given={"ROWS": rows},
        seed=variant.seed,
    )


def _traffic(variant: Variant) -> Answers:
    cols = variant.choice(1024, 768, 2048)
    million = variant.choice(8, 16, 4)
    by_thread = WarpAccess.from_formula("ld.global.b32", lambda lane: FLOAT_BYTES * cols * lane)
    by_warp = WarpAccess.from_formula("ld.global.b32", lambda lane: FLOAT_BYTES * lane)
    kernel_bytes = 2 * FLOAT_BYTES
    return Answers(
        "traffic",
        (
            Question(
                "thread_per_row",
                f"Rows have {cols} floats, one after the other. Each thread of a warp takes a row of its own"
                " and reads its first float. How many sectors does the warp's request touch?",
                global_cost(by_thread).sectors,
                "How far apart are the addresses of two neighbouring lanes?",
                "Each lane is in a sector of its own, of which it uses an eighth.",
                access=by_thread,
            ),
            Question(
                "warp_per_row",
                "A warp takes a row, and its lanes read neighbouring floats, from an aligned address on. How"
                " many sectors now?",
                global_cost(by_warp).sectors,
                "How many bytes do all lanes ask for together?",
                "The sectors are full.",
                access=by_warp,
            ),
            Question(
                "two_kernels",
                f"{million} million floats are normalised by one kernel, and another one applies GELU. Each"
                " reads and writes every float once in DRAM. How many megabytes (10^6 bytes) do both move?",
                2 * kernel_bytes * million,
                "Count reading and writing, for each kernel.",
                "Four times the data: each float crosses the bus four times.",
            ),
            Question(
                "fused",
                "One kernel does both; what it reads again comes from a cache. How many megabytes then?",
                kernel_bytes * million,
                "What must be read and written at the very least?",
                "Half. Fusing saves the writing and the reading in between.",
            ),
            Question(
                "shuffles",
                "A warp adds up one value of each lane by shuffles, halving the distance each time. How many"
                " shuffles does each lane do?",
                LANES.bit_length() - 1,
                "After the first, how many lanes does a lane's value stand for?",
                "What a lane's value stands for doubles each time.",
            ),
        ),
    )


def reference(src: np.ndarray) -> np.ndarray:
    """Each row minus its mean, over the root of its variance plus a little: float32."""
    wide = src.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    return (centred / np.sqrt(variance + EPSILON)).astype(np.float32)


def thread_per_row(rows: int) -> Any:
    """The kernel to compare with, for blocks of 32 x `rows` threads: neighbouring threads are a row apart."""

    @cuda.jit
    def kernel(src, dst):
        row = (cuda.blockIdx.x * rows + cuda.threadIdx.y) * LANES + cuda.threadIdx.x
        if row < src.shape[0]:
            n = float32(src.shape[1])
            mean = float32(0)
            for col in range(src.shape[1]):
                mean += src[row, col] / n
            variance = float32(0)
            for col in range(src.shape[1]):
                off = src[row, col] - mean
                variance += off * off / n
            root = math.sqrt(variance + float32(1e-5))
            for col in range(src.shape[1]):
                dst[row, col] = (src[row, col] - mean) / root

    return kernel


def _normalise(rows: int) -> KernelTask:
    def run(rng: np.random.Generator, size: tuple[int, int]) -> Run:
        src = (rng.random(size, dtype=np.float32) - np.float32(0.3)) * np.float32(4)
        return Run(
            size=f"{size[0]} rows of {size[1]}",
            grid=-(-size[0] // rows),
            block=(LANES, rows),
            arguments={"src": src, "dst": poisoned(size)},
            expected={"dst": reference(src)},
            rtol=1e-3,
            atol=1e-4,
        )

    def hidden(rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
        return tuple((int(rng.integers(1, 20)), int(rng.integers(2, 200))) for _ in range(2))

    return KernelTask(
        name="normalise",
        parameters=("src", "dst"),
        run=run,
        sizes=((16, 128), (7, 77)),
        hidden=hidden,
        right=4,
        goals=(
            global_sectors(5, _most_sectors),
            Goal("no float64", 2, _no_float64),
            no_hazards(1),
        ),
        timed=(16384, 1024),
        before=thread_per_row(rows),
        worth=_worth,
    )


def _worth() -> str:
    fusion = results.experiment("h200", "E-37-fusion")
    ratio = (fusion.us("add") + fusion.us("activate")) / fusion.us("add and activate")
    return f"Part 1 measured: two elementwise kernels take {ratio:.2f} times as long as one. {fusion.caption}"


def _most_sectors(run: Run) -> int:
    """The sectors of all rows, and one more for each request that starts inside one, for each pass."""
    n_rows, n_cols = run.arguments["src"].shape
    requests = n_rows * -(-n_cols // LANES)
    return PASSES * (n_rows * -(-n_cols * FLOAT_BYTES // SECTOR_BYTES) + requests)


def _no_float64(check: Check, run: Run) -> Check:
    return check.no_float64()
