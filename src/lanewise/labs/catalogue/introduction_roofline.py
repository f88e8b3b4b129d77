"""Introduction, guided: count bytes and operations, find the roof, mend a kernel that moves too many bytes.

Variants change the computations, the GPU, the element of the mask and the planted fault. The faults are those
of kernels that are fused in name only: a second loop that reads back what the first has written, a second
loop that fetches the inputs again, and a thread for each stretch of neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import results
from lanewise.checks import Check
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import Goal, no_hazards
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.machine import SECTOR_BYTES, Product, product
from lanewise.memory import global_cost
from lanewise.text import count, significant
from lanewise.trace.sites import Site

FLOAT_BYTES, HALF_BYTES = 4, 2
CLOSE = 0.02  # what rounding may change
N_VECTOR = 1 << 26
WORDS = "Answer `DRAM`, `float32` or `Tensor Cores`"


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    gpu = product(variant.choice("A100 80GB", "L4", "H100", "T4", "RTX 4090"))
    tile, n = variant.choice(32, 64, 96), variant.choice(4096, 2048, 8192)
    head, vector = variant.choice(128, 64), variant.choice(*VECTORS)
    mask = variant.choice(np.uint8, np.int16, np.int32)
    fault = variant.choice("reads_back", "fetches_again", "by_stretches")
    return Lab(
        name="introduction_roofline",
        title="Bytes, operations, and the roof above them",
        chapter="introduction",
        level="guided",
        kinds=("predict", "repair"),
        minutes=30,
        tasks=(
            _intensity(vector, tile, n, head),
            _roofs(gpu, vector, tile, n, head),
            _fusion(np.dtype(mask)),
            _layer(np.dtype(mask), fault),
        ),
        seed=variant.seed,
    )


# -- intensity --------------------------------------------------------------------------------------

# A line of code: its operations and its loads and stores, for each element.
VECTORS = (
    ("y[i] = a * x[i] + y[i]", 2, 3),
    ("y[i] = a * x[i] + b", 2, 2),
    ("d[i] = x[i] * y[i] + z[i]", 2, 4),
)


def product_intensity(n: int, fetches: float, element_bytes: int) -> float:
    """FLOP per byte of a product of two n x n matrices, both fetched so often, the result stored once."""
    return 2 * n**3 / (element_bytes * n * n * (2 * fetches + 1))


def attention_intensity(n: int, head: int, *, fused: bool) -> float:
    """FLOP per byte of one head of attention in half precision; if not fused, scores go out and in twice."""
    once = 4 * n * head
    return 4 * n * n * head / (HALF_BYTES * (once if fused else once + 4 * n * n))


def _intensity(vector: tuple[str, int, int], tile: int, n: int, head: int) -> Answers:
    line, flops, accesses = vector
    square = f"a product of two matrices of {n} x {n} float32"
    attention = f"One head of attention in half precision, n = {n}, d = {head}"
    return Answers(
        "intensity",
        (
            Question(
                "vector_bytes",
                f"How many bytes does `{line}` move for each element, all float32?",
                accesses * FLOAT_BYTES,
                "Count the loads and the stores of the line. A scalar stays in a register.",
                f"The line has {accesses} accesses of {FLOAT_BYTES} bytes.",
            ),
            _number(
                "vector",
                f"And `{line}`: how many FLOP per byte?",
                flops / (accesses * FLOAT_BYTES),
                "Count multiplications and additions, and divide by the bytes.",
                f"It does {flops} operations for each element.",
            ),
            _number(
                "tiles",
                f"How many FLOP per byte does {square} do, with tiles of {tile} x {tile}?",
                product_intensity(n, n / tile, FLOAT_BYTES),
                "How often does each element of the inputs come from memory? That many times their bytes, and"
                " the result once.",
                "A tile as wide as this brings about a quarter of its width.",
            ),
            _number(
                "once",
                f"And {square}, if each matrix moves only once?",
                product_intensity(n, 1, FLOAT_BYTES),
                "There are three matrices of as many bytes. How many operations are there for each element?",
                "It grows with the matrix: operations with its cube, bytes with its square.",
            ),
            _number(
                "three_kernels",
                f"{attention}: two products of n x n x d. In three kernels the scores, n x n halves, are"
                " written and read twice. How many FLOP per byte?",
                attention_intensity(n, head, fused=False),
                "Four matrices of n x d move once, and the scores four times. Which of them are the larger?",
                "The scores are most of the bytes.",
            ),
            _number(
                "fused",
                "And in one kernel, where the scores never leave the chip?",
                attention_intensity(n, head, fused=True),
                "The operations are the same. Which bytes are left?",
                "Fusing takes away bytes, and no operation.",
            ),
        ),
    )


def _number(name: str, text: str, answer: float, nudge: str, why: str) -> Question:
    rounded = float(f"{answer:.4g}")
    return Question(name, text, rounded, nudge, why, tolerance=CLOSE)


# -- roofs ------------------------------------------------------------------------------------------


def _roofs(gpu: Product, vector: tuple[str, int, int], tile: int, n: int, head: int) -> Answers:
    line, flops, accesses = vector
    on = f"On an {gpu.name}" if gpu.name[0] in "AHLR" else f"On a {gpu.name}"
    of_tiles = product_intensity(n, n / tile, FLOAT_BYTES)
    us = N_VECTOR * accesses * FLOAT_BYTES / (gpu.dram_gb_per_s * 1e3)
    rate = min(gpu.fp32_tflop_per_s, of_tiles * gpu.dram_gb_per_s / 1e3)
    smallest = next(t for t in range(8, 1024, 8) if t / 4 >= gpu.ridge_fp32)
    attention = f"attention of part 1 (n = {n}, d = {head})"
    return Answers(
        "roofs",
        (
            _roof("vector_roof", f"{on}: `{line}`.", flops / (accesses * FLOAT_BYTES), gpu),
            _roof("tiles_roof", f"{on}: the float32 product with tiles of {tile} x {tile}.", of_tiles, gpu),
            _roof(
                "once_roof",
                f"{on}: the float32 product with each matrix moved once, n = {n}.",
                product_intensity(n, 1, FLOAT_BYTES),
                gpu,
            ),
            _roof(
                "three_roof",
                f"{on}: the {attention} in three kernels, products on the Tensor Cores.",
                attention_intensity(n, head, fused=False),
                gpu,
                tensor=True,
            ),
            _roof(
                "fused_roof",
                f"{on}: the {attention} in one kernel, products on the Tensor Cores.",
                attention_intensity(n, head, fused=True),
                gpu,
                tensor=True,
            ),
            _number(
                "least_time",
                f"{on}: how many microseconds does `{line}` take at least, for 2^26 elements?",
                us,
                "Divide the bytes of all elements by the bytes per second. Mind that a GB is 10^9 bytes.",
                "No kernel can be faster, whatever its instructions.",
            ),
            _number(
                "most",
                f"{on}: which TFLOP/s does the float32 product with tiles of {tile} x {tile} reach at most?",
                rate,
                "Below the ridge the roof slopes: intensity times the rate of DRAM. Above it is flat.",
                "That is the height of the roof at this intensity.",
            ),
            Question(
                "smallest_tile",
                f"{on}: what is the smallest width of a square tile, a multiple of 8, for which DRAM is no"
                " longer the lower roof of a float32 product? Take a quarter of the width as the intensity.",
                smallest,
                "The ridge is where both roofs meet: operations per second over bytes per second.",
                f"The ridge is at {significant(gpu.ridge_fp32)} FLOP per byte.",
            ),
        ),
    )


def _roof(name: str, text: str, intensity: float, gpu: Product, *, tensor: bool = False) -> Question:
    ridge, units = (gpu.ridge_tensor, "Tensor Cores") if tensor else (gpu.ridge_fp32, "float32")
    return Question(
        name,
        f"{text} Which roof is the lower one? {WORDS}.",
        "DRAM" if intensity < ridge else units,
        "Compare its intensity with the ridge of the units that it runs on.",
        f"Its intensity is {significant(intensity)}, the ridge {significant(ridge)} FLOP per byte.",
    )


# -- fusion -----------------------------------------------------------------------------------------


def _fusion(mask: np.dtype) -> Answers:
    size = mask.itemsize
    apart, fused = 8 * FLOAT_BYTES + size, 3 * FLOAT_BYTES + size
    return Answers(
        "fusion",
        (
            Question(
                "apart",
                "Four kernels, each one step: `t = scale * x + shift`; `u = t + skip`; `dst = max(u, 0)`;"
                f" `mask = dst > 0`. All are float32 but the mask, {count(size, 'byte')} each. How many bytes"
                " for each element?",
                apart,
                "Take the steps one by one: what does each load, and what does it store?",
                "Between the steps, everything goes to memory and comes back.",
            ),
            Question(
                "together",
                "And in one kernel, with `t` and `u` in registers?",
                fused,
                "What comes in that nobody has computed, and what must go out?",
                "Two inputs and two outputs are left.",
            ),
            _number(
                "gain",
                "How many times as fast can that be, if DRAM is the limit before and after?",
                apart / fused,
                "At a fixed rate the time goes with the bytes.",
                "It is the ratio of the bytes, and not of the kernels.",
            ),
        ),
    )


def _layer(mask: np.dtype, fault: str) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        n, grid = size
        x, skip = (rng.integers(-20, 21, n).astype(np.float32) for _ in range(2))
        scale, shift = np.float32(rng.integers(2, 5)), np.float32(rng.integers(-3, 4))
        dst = np.maximum(scale * x + shift + skip, np.float32(0))
        return Run(
            size=f"{count(n, 'element')}, {count(grid, 'block')}",
            grid=grid,
            block=64,
            arguments={
                "x": x,
                "skip": skip,
                "scale": scale,
                "shift": shift,
                "dst": poisoned(n),
                "mask": poisoned(n, mask),
            },
            expected={"dst": dst, "mask": (dst > 0).astype(mask)},
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        n = rng.integers(2, 700, size=2)
        return (1, 2), (int(n[0]), 1), (int(n[1]), 3)

    return KernelTask(
        name="layer",
        parameters=("x", "skip", "scale", "shift", "dst", "mask"),
        run=run,
        sizes=((512, 2), (333, 3)),
        hidden=hidden,
        right=2,
        goals=(_each_once(6), no_hazards(1)),
        starter=STARTERS[fault],
        timed=(1 << 26, 1 << 14),
        before=reads_back,
        worth=_worth,
    )


def _each_once(points: int) -> Goal:
    """Every array crosses once, in whole sectors."""

    def claim(check: Check, run: Run) -> Check:
        arrays = [value for value in run.arguments.values() if isinstance(value, np.ndarray)]
        limit = sum(-(-array.nbytes // SECTOR_BYTES) for array in arrays)
        sites = [site for site in check.trace.sites if site.space == "global" and site.requests]
        used = sum(site.sectors for site in sites)
        sentence = f"Global loads and stores touch {used:,} sectors; at most {limit:,} are allowed."
        if used <= limit:
            return check.claim("sectors", True, sentence)
        worst = max(sites, key=lambda site: site.excess)
        if worst.excess and worst.example:
            why = f"At line {worst.line} the lanes are far apart: {global_cost(worst.example)}"
            return check.claim("sectors", False, f"{sentence} {why}", worst.example, worst.line)
        return check.claim("sectors", False, f"{sentence} {_again(sites)}")

    return Goal("sectors", points, claim)


def _again(sites: list[Site]) -> str:
    """Which array is accessed in the most places of the source."""
    places = [(site.array, site.line) for site in sites]
    array = max(dict(places), key=lambda name: sum(name == one for one, _ in places))
    lines = ", ".join(str(line) for one, line in sorted(places) if one == array)
    return f"No request is wasteful by itself, but {array} is loaded or stored more than once: lines {lines}."


def _worth() -> str:
    measured = results.experiment("h200", "E-37-fusion")
    apart = measured.us("add") + measured.us("activate")
    return (
        "The chapter's two kernels, an addition and an activation, take"
        f" {apart / measured.us('add and activate'):.2f} times as long as one that does both."
        f" {measured.caption}"
    )


# -- kernels with a fault ---------------------------------------------------------------------------


@cuda.jit
def reads_back(x, skip, scale, shift, dst, mask):
    """Two loops: what the first has written goes to memory and is read back."""
    start, step = cuda.grid(1), cuda.gridsize(1)
    for i in range(start, x.size, step):
        dst[i] = scale * x[i] + shift
    for i in range(start, x.size, step):
        u = dst[i] + skip[i]
        dst[i] = max(u, float32(0))
        mask[i] = u > 0


@cuda.jit
def fetches_again(x, skip, scale, shift, dst, mask):
    """The mask has a loop of its own, which fetches the inputs a second time."""
    start, step = cuda.grid(1), cuda.gridsize(1)
    for i in range(start, x.size, step):
        u = scale * x[i] + shift + skip[i]
        dst[i] = max(u, float32(0))
    for i in range(start, x.size, step):
        u = scale * x[i] + shift + skip[i]
        mask[i] = u > 0


@cuda.jit
def by_stretches(x, skip, scale, shift, dst, mask):
    """Each thread takes a stretch of neighbours: the lanes of a warp are far apart."""
    start, n_threads = cuda.grid(1), cuda.gridsize(1)
    length = (x.size + n_threads - 1) // n_threads
    for i in range(start * length, min(start * length + length, x.size)):
        u = scale * x[i] + shift + skip[i]
        dst[i] = max(u, float32(0))
        mask[i] = u > 0


STARTERS: Mapping[str, Callable] = {
    kernel.py_func.__name__: kernel for kernel in (reads_back, fetches_again, by_stretches)
}
