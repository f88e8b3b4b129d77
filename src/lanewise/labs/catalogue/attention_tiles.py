"""Attention, challenge: count a tile of keys, repair the scores, then write the online softmax around them.

Variants change the size of a head, the number of warps, the scores to think about, and how the tile of keys
is laid out wrongly: dense; a pad of an odd number of elements, as in a kernel of floats; a pad of an even
number of words; a pad that is allocated and not used when the tile is indexed; a tile that is transposed as
it is stored, which moves the conflicts from the loads to the stores. Published kernels had pads that did not
help for the first four reasons; the fifth is what one tries first.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import results
from lanewise.access import WarpAccess
from lanewise.checks import Check
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import Goal, global_sectors, no_conflicts, no_hazards, shared_bytes
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost

LANES = 32
HALF, FLOAT = 2, 4  # bytes
SECTOR = 32

# The starters' constants, those of the public lab.
SIZE, WARPS, WIDTH = 64, 4, 65
ROOM = LANES * WIDTH


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    size, warps = variant.choice(64, 32), variant.choice(4, 8)
    odd = 1 if shared_cost(_column(size + 1)).wavefronts > 1 else 3  # an odd number of halves, with conflicts
    starter, pad = variant.choice(
        (pitched, odd), (pitched, 0), (pitched, 4), (pad_unused, 2), (transposed_store, 0)
    )
    width = size + pad
    return Lab(
        name="attention_tiles",
        title="Attention, tile by tile",
        chapter="attention",
        level="challenge",
        kinds=("predict", "repair", "write", "layout"),
        minutes=50,
        tasks=(_tiles(variant, size), _scores(size, warps, starter), _attend(size, warps)),
        given={
            "SIZE": size,
            "PARTS": size // LANES,
            "LANES": LANES,
            "WARPS": warps,
            "WIDTH": width,
            "ROOM": LANES * width,
        },
        seed=variant.seed,
    )


# -- part 1: numbers -------------------------------------------------------------------------------


def _column(pitch: int) -> WarpAccess:
    """Lane = key: every lane reads the first half of its row."""
    return WarpAccess.from_formula("ld.shared.b16", lambda lane: HALF * pitch * lane)


def _tiles(variant: Variant, size: int) -> Answers:
    tops = variant.choice((2, 5, 5, 4, 7, 6), (3, 1, 4, 8, 8, 9), (6, 6, 2, 5, 6, 8))
    n_keys = variant.choice(70, 100, 45)
    return Answers(
        "tiles",
        (
            _walk("dense", size),
            _walk("one_more", size + 1),
            _walk("four_more", size + 4),
            _pitch(size),
            _shrinks(tops),
            _factor(tops),
            _beyond(n_keys),
        ),
    )


def _walk(name: str, pitch: int) -> Question:
    access = _column(pitch)
    return Question(
        name,
        f"A tile of 2-byte numbers has {pitch} of them from row to row. Lane after lane reads the first"
        " number of its row. How many wavefronts?",
        shared_cost(access).wavefronts,
        "A bank holds a word of 4 bytes, two numbers. In which word does each row start? Which rows share a"
        " bank and not the word?",
        f"Rows start {pitch / 2:g} words apart; that decides the banks, not the number of elements.",
        access=access,
    )


def _pitch(size: int) -> Question:
    def accepts(given: Any) -> str:
        if given != int(given) or not size <= given <= size + 8:
            return f"Give a whole number, {size} to {size + 8}."
        wavefronts = shared_cost(_column(int(given))).wavefronts
        return "" if wavefronts == 1 else "Some rows still share a bank. Count the words from row to row."

    return Question(
        "pitch",
        f"Choose a pitch, {size} to {size + 8} numbers, with which this walk takes a single wavefront.",
        next(pitch for pitch in range(size, size + 9) if not accepts(pitch)),
        "The pitch in words should have no factor in common with the number of banks.",
        "No two rows need different words of one bank now.",
        accepts=accepts,
    )


def _shrinks(tops: tuple[int, ...]) -> Question:
    running = np.maximum.accumulate(tops)
    return Question(
        "shrinks",
        f"An online softmax meets tiles whose largest scores are {', '.join(map(str, tops))}. After the first"
        " tile: how many of the tiles make the output so far shrink?",
        int(np.count_nonzero(running[1:] > running[:-1])),
        "It shrinks where the largest score so far grows, and only there.",
        "As long as the maximum stays, the factor is 1.",
    )


def _factor(tops: tuple[int, ...]) -> Question:
    running = np.maximum.accumulate(tops)
    last = int(np.flatnonzero(running[1:] > running[:-1])[-1]) + 1
    return Question(
        "factor",
        "The same tiles. By which factor does the output shrink at the last of them that makes it shrink?"
        " Three digits will do.",
        math.exp(float(running[last - 1] - running[last])),
        "It is e to the power of the old maximum minus the new one.",
        "What was summed up so far was relative to the old maximum.",
        tolerance=5e-3,
    )


def _beyond(n_keys: int) -> Question:
    return Question(
        "beyond",
        f"There are {n_keys} keys, in tiles of {LANES}. How many lanes have no key in the last tile?",
        -n_keys % LANES,
        "How many tiles are there, and how many lanes have all of them together?",
        "Their score must be such that its exponential is 0 and it is never the maximum.",
    )


# -- part 2: the scores ----------------------------------------------------------------------------


@cuda.jit
def pitched(q, k, s):
    """Fault: the pitch WIDTH of the tile of keys is no odd number of words."""
    q_tile = cuda.shared.array((WARPS, SIZE), float32)
    k_tile = cuda.shared.array((LANES, WIDTH), np.float16)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    first = LANES * cuda.blockIdx.x
    row, key = WARPS * cuda.blockIdx.y + warp, first + lane
    for col in range(lane, SIZE, LANES):
        q_tile[warp, col] = float32(q[min(row, q.shape[0] - 1), col])
        for r in range(warp, LANES, WARPS):
            k_tile[r, col] = k[min(first + r, k.shape[0] - 1), col]
    cuda.syncthreads()  # both tiles are full before anyone multiplies
    acc = float32(0)
    for col in range(SIZE):
        acc += q_tile[warp, col] * float32(k_tile[lane, col])
    if row < s.shape[0] and key < s.shape[1]:
        s[row, key] = acc


@cuda.jit
def pad_unused(q, k, s):
    """Fault: there is room for a pad of two elements in each row, but rows are indexed without it."""
    q_tile = cuda.shared.array((WARPS, SIZE), float32)
    k_tile = cuda.shared.array(ROOM, np.float16)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    first = LANES * cuda.blockIdx.x
    row, key = WARPS * cuda.blockIdx.y + warp, first + lane
    for col in range(lane, SIZE, LANES):
        q_tile[warp, col] = float32(q[min(row, q.shape[0] - 1), col])
        for r in range(warp, LANES, WARPS):
            k_tile[r * SIZE + col] = k[min(first + r, k.shape[0] - 1), col]
    cuda.syncthreads()  # both tiles are full before anyone multiplies
    acc = float32(0)
    for col in range(SIZE):
        acc += q_tile[warp, col] * float32(k_tile[lane * SIZE + col])
    if row < s.shape[0] and key < s.shape[1]:
        s[row, key] = acc


@cuda.jit
def transposed_store(q, k, s):
    """Fault: the tile is stored as its transpose. The loads are free now, and the stores are not."""
    q_tile = cuda.shared.array((WARPS, SIZE), float32)
    k_tile = cuda.shared.array((SIZE, LANES), np.float16)
    lane, warp = cuda.threadIdx.x, cuda.threadIdx.y
    first = LANES * cuda.blockIdx.x
    row, key = WARPS * cuda.blockIdx.y + warp, first + lane
    for col in range(lane, SIZE, LANES):
        q_tile[warp, col] = float32(q[min(row, q.shape[0] - 1), col])
        for r in range(warp, LANES, WARPS):
            k_tile[col, r] = k[min(first + r, k.shape[0] - 1), col]
    cuda.syncthreads()  # both tiles are full before anyone multiplies
    acc = float32(0)
    for col in range(SIZE):
        acc += q_tile[warp, col] * float32(k_tile[col, lane])
    if row < s.shape[0] and key < s.shape[1]:
        s[row, key] = acc


def _halves(rng: np.random.Generator, rows: int, size: int) -> np.ndarray:
    return rng.standard_normal((rows, size), dtype=np.float32).astype(np.float16)


def _row_sectors(size: int) -> int:
    """The sectors of a row of halves."""
    return size * HALF // SECTOR


def _free_tile(points: int, sectors: Callable[[Run], int]) -> Goal:
    """No conflict, by a kernel that has its rows from the tile and not from global memory."""
    conflicts, traffic = no_conflicts(points), global_sectors(points, sectors)

    def claim(check: Check, run: Run) -> Check:
        within = bool(traffic.claim(Check(check.trace), run))
        return conflicts.claim(check if within else traffic.claim(check, run), run)

    return Goal("free tile", points, claim)


def _scores(size: int, warps: int, starter: Callable) -> KernelTask:
    def run(rng: np.random.Generator, shape: Any) -> Run:
        n_queries, n_keys = shape
        q, k = _halves(rng, n_queries, size), _halves(rng, n_keys, size)
        return Run(
            size=f"{n_queries} x {n_keys} scores",
            grid=(-(-n_keys // LANES), -(-n_queries // warps)),
            block=(LANES, warps),
            arguments={"q": q, "k": k, "s": poisoned((n_queries, n_keys))},
            expected={"s": (q.astype(np.float64) @ k.astype(np.float64).T).astype(np.float32)},
            rtol=1e-4,
            atol=1e-4,
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        return (1, 1), (int(rng.integers(2, 20)), int(rng.integers(33, 90)))

    def sectors(run: Run) -> int:
        assert isinstance(run.grid, tuple)
        fetched = (LANES + warps) * _row_sectors(size)
        written = warps * (LANES * FLOAT // SECTOR + 1)  # one more where a row starts inside a sector
        return math.prod(run.grid) * (fetched + written)

    tile = warps * size * FLOAT + LANES * (size + 8) * HALF
    return KernelTask(
        name="scores",
        parameters=("q", "k", "s"),
        run=run,
        sizes=((2 * warps, 64), (5, 37)),
        hidden=hidden,
        right=2,
        goals=(
            _free_tile(8, sectors),
            shared_bytes(1, most=tile),
            no_hazards(1),
        ),
        starter=starter,
        before=starter,
        timed=(2048, 2048),
        worth=_worth_of_layout,
    )


def _worth_of_layout() -> str:
    measured = results.experiment("h200", "E-38")
    ratio = measured.ratio("flash, row-major n=8192", "flash, swizzled n=8192")
    return (
        f"In the chapter's kernel on Tensor Cores, tiles with conflicts take {ratio:.1f} times as long as"
        f" tiles without, at 8,192 tokens. {measured.caption}"
    )


# -- part 3: attention -----------------------------------------------------------------------------


def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """softmax(q k^T / sqrt(size)) v, rounded to float32 at the end."""
    s = q.astype(np.float64) @ k.astype(np.float64).T / math.sqrt(q.shape[1])
    p = np.exp(s - s.max(axis=1, keepdims=True))
    return (p @ v.astype(np.float64) / p.sum(axis=1, keepdims=True)).astype(np.float32)


def _attend(size: int, warps: int) -> KernelTask:
    def run(rng: np.random.Generator, case: Any) -> Run:
        n_queries, n_keys, spread = case
        q, k, v = (_halves(rng, n, size) for n in (n_queries, n_keys, n_keys))
        q = (spread * q.astype(np.float32)).astype(np.float16)
        k = k[np.argsort(k.astype(np.float64) @ q[0].astype(np.float64))]  # so that the maximum grows
        scores = "small" if spread == 1 else "large"
        return Run(
            size=f"{n_queries} queries, {n_keys} keys, {scores} scores",
            grid=-(-n_queries // warps),
            block=(LANES, warps),
            arguments={"q": q, "k": k, "v": v, "dst": poisoned((n_queries, size))},
            expected={"dst": attended(q, k, v)},
            rtol=2e-3,
            atol=2e-3,
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        return ((int(rng.integers(1, 10)), int(rng.integers(1, 65)), 60),)

    def sectors(run: Run) -> int:
        n_queries, n_keys = (len(run.arguments[name]) for name in ("q", "k"))
        n_blocks, n_tiles = -(-n_queries // warps), -(-n_keys // LANES)
        queries = warps * (_row_sectors(size) + size * FLOAT // SECTOR)  # read once, written once
        return n_blocks * (queries + 2 * n_tiles * LANES * _row_sectors(size))

    most = warps * size * FLOAT + LANES * (2 * size + 16) * HALF
    return KernelTask(
        name="attend",
        parameters=("q", "k", "v", "dst"),
        run=run,
        sizes=((2 * warps, 45, 1), (5, 45, 60)),
        hidden=hidden,
        right=3,
        goals=(
            global_sectors(6, sectors),
            _free_tile(3, sectors),
            shared_bytes(1, most=most),
            no_hazards(1),
        ),
        timed=(1024, 1024, 1),
        worth=_worth_of_fusion,
    )


def _worth_of_fusion() -> str:
    fused, three = (results.experiment("h200", name) for name in ("E-38", "E-38-unfused"))
    apart = sum(three.us(f"{name} n=8192") for name in ("scores", "softmax", "values"))
    return (
        f"On the same float32 units, with 4 heads of 8,192 tokens, the chapter's three kernels together take"
        f" {apart / fused.us('fused n=8192'):.2f} times as long as its fused one. {fused.caption}"
    )
