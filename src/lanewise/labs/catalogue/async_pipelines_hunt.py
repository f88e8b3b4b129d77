"""Asynchronous pipelines, challenge: count groups, then repair two kernels that give the right result.

Variants change the block, the number of stages, the sequences to count, and which fault each kernel has. Most
faults are of the kind that test suites let pass: groups that are not counted at the end of a multi-stage
product, a wait that is one group short, operands of a fused kernel waited for in the wrong order, a buffer
that is filled again while a slow warp reads it. Two are not wrong but slow: a wait that drains the pipeline
in every step, and barriers that protect nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import ptx, results
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import shared_bytes
from lanewise.labs.goals_copies import barriers, copies_without_hazards, copy_requests, under_way
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant

FLOAT_BYTES = 4
WARP = 32

# The starters' constants, those of the public lab.
THREADS, STAGES = 64, 3
TILE = 4 * THREADS
AHEAD, PENDING = STAGES - 1, STAGES - 2
ELEMS = STAGES * TILE


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    threads, stages = variant.choice(64, 96, 128), variant.choice(3, 4)
    given = {
        "THREADS": threads,
        "TILE": 4 * threads,
        "STAGES": stages,
        "AHEAD": stages - 1,
        "PENDING": stages - 2,
        "ELEMS": stages * 4 * threads,
    }
    return Lab(
        name="async_pipelines_hunt",
        title="Right results, wrong kernels",
        chapter="async_pipelines",
        level="challenge",
        kinds=("predict", "repair", "hunt"),
        minutes=40,
        tasks=(_groups(variant), _mirror(variant, threads, stages), _product(variant, threads)),
        given=given,
        seed=variant.seed,
    )


# -- part 1: groups --------------------------------------------------------------------------------


def still_under_way(calls: str) -> int:
    """How many copies of a thread may be under way after these calls: `copy`, `commit`, `wait(n)`.

    >>> still_under_way("copy, commit, copy, commit, wait(1)")
    1
    """
    groups: list[int] = []
    is_open = 0
    for call in calls.split(", "):
        if call == "copy":
            is_open += 1
        elif call == "commit":
            groups.append(is_open)
            is_open = 0
        else:
            allowed = int(call[len("wait(") : -1])
            groups = [0] * (len(groups) - allowed) + groups[max(0, len(groups) - allowed) :]
    return sum(groups) + is_open


def _groups(variant: Variant) -> Answers:
    pair, one, none = "copy, copy, commit", "copy, commit", "commit"
    asked = (
        (
            "in_groups",
            variant.choice(
                f"{one}, {pair}, {one}, {pair}, wait(2)",
                f"{pair}, {one}, {pair}, {pair}, wait(1)",
                f"{pair}, {pair}, {one}, {one}, wait(3)",
            ),
            "The wait leaves the last groups under way, each with all its copies.",
            "The wait counts groups, not copies.",
        ),
        (
            "empty",
            variant.choice(
                f"{one}, {pair}, {none}, wait(1)",
                f"{pair}, {none}, {none}, wait(2)",
                f"{pair}, {one}, {none}, wait(2)",
            ),
            "A commit without a copy makes a group, too.",
            "An empty group counts like any other. That keeps the count right at the end of a loop.",
        ),
        (
            "open",
            variant.choice(f"{pair}, {one}, copy, wait(0)", f"{one}, copy, copy, wait(0)"),
            "Which copies belong to a group when the wait comes?",
            "A copy that has not been committed is in no group, and no wait for groups waits for it.",
        ),
        (
            "late",
            variant.choice(f"{one}, copy, copy, wait(1), commit", f"copy, copy, copy, wait(0), {one}"),
            "Go through the calls one by one. What has been committed when the wait comes?",
            "The wait came too early: it waits for groups that exist, not for those that will.",
        ),
    )
    return Answers("groups", tuple(_group(*one) for one in asked))


def _group(name: str, calls: str, nudge: str, why: str) -> Question:
    text = f"A thread calls `{calls}`. How many of its copies may still be under way?"
    return Question(name, text, still_under_way(calls), nudge, why)


# -- part 2: a pipeline ----------------------------------------------------------------------------


@cuda.jit
def groups_lost(src, dst):
    """Fault: a group is committed only where there is something to copy, so the last tiles come uncounted."""
    stage = cuda.shared.array(ELEMS, float32)
    t, n, step = cuda.threadIdx.x, src.size // TILE, cuda.gridDim.x
    for s in range(AHEAD):
        if cuda.blockIdx.x + s * step < n:
            i = (cuda.blockIdx.x + s * step) * TILE + 4 * t
            ptx.cp_async_16(stage, s * TILE + 4 * t, src, i)
            ptx.cp_async_commit()
    full, free = 0, AHEAD * TILE
    for row in range(cuda.blockIdx.x, n, step):
        ptx.cp_async_wait(PENDING)
        cuda.syncthreads()  # everyone has waited
        later = row + AHEAD * step
        if later < n:
            i = later * TILE + 4 * t
            ptx.cp_async_16(stage, free + 4 * t, src, i)
            ptx.cp_async_commit()
        for k in range(t, TILE, THREADS):
            mirrored = stage[full + TILE - 1 - k]
            dst[row * TILE + k] = stage[full + k] - mirrored
        free = full
        full = full + TILE if full + TILE < ELEMS else 0


@cuda.jit
def one_group_short(src, dst):
    """Fault: the wait allows as many groups under way as there are, so it waits for none."""
    stage = cuda.shared.array(ELEMS, float32)
    t, n, step = cuda.threadIdx.x, src.size // TILE, cuda.gridDim.x
    for s in range(AHEAD):
        if cuda.blockIdx.x + s * step < n:
            i = (cuda.blockIdx.x + s * step) * TILE + 4 * t
            ptx.cp_async_16(stage, s * TILE + 4 * t, src, i)
        ptx.cp_async_commit()
    full, free = 0, AHEAD * TILE
    for row in range(cuda.blockIdx.x, n, step):
        ptx.cp_async_wait(AHEAD)
        cuda.syncthreads()  # everyone has waited
        later = row + AHEAD * step
        if later < n:
            i = later * TILE + 4 * t
            ptx.cp_async_16(stage, free + 4 * t, src, i)
        ptx.cp_async_commit()
        for k in range(t, TILE, THREADS):
            mirrored = stage[full + TILE - 1 - k]
            dst[row * TILE + k] = stage[full + k] - mirrored
        free = full
        full = full + TILE if full + TILE < ELEMS else 0


@cuda.jit
def refilled_early(src, dst):
    """Fault: the refill goes ahead of the barrier, into a buffer that a slow warp still reads."""
    stage = cuda.shared.array(ELEMS, float32)
    t, n, step = cuda.threadIdx.x, src.size // TILE, cuda.gridDim.x
    for s in range(AHEAD):
        if cuda.blockIdx.x + s * step < n:
            i = (cuda.blockIdx.x + s * step) * TILE + 4 * t
            ptx.cp_async_16(stage, s * TILE + 4 * t, src, i)
        ptx.cp_async_commit()
    full, free = 0, AHEAD * TILE
    for row in range(cuda.blockIdx.x, n, step):
        later = row + AHEAD * step
        if later < n:
            i = later * TILE + 4 * t
            ptx.cp_async_16(stage, free + 4 * t, src, i)
        ptx.cp_async_commit()
        ptx.cp_async_wait(AHEAD)
        cuda.syncthreads()  # everyone has waited
        for k in range(t, TILE, THREADS):
            mirrored = stage[full + TILE - 1 - k]
            dst[row * TILE + k] = stage[full + k] - mirrored
        free = full
        full = full + TILE if full + TILE < ELEMS else 0


@cuda.jit
def met_before_the_wait(src, dst):
    """Fault: the barrier comes before the wait, so it says nothing of the copies of other threads."""
    stage = cuda.shared.array(ELEMS, float32)
    t, n, step = cuda.threadIdx.x, src.size // TILE, cuda.gridDim.x
    for s in range(AHEAD):
        if cuda.blockIdx.x + s * step < n:
            i = (cuda.blockIdx.x + s * step) * TILE + 4 * t
            ptx.cp_async_16(stage, s * TILE + 4 * t, src, i)
        ptx.cp_async_commit()
    full, free = 0, AHEAD * TILE
    for row in range(cuda.blockIdx.x, n, step):
        cuda.syncthreads()  # everyone has read the tile before
        ptx.cp_async_wait(PENDING)
        later = row + AHEAD * step
        if later < n:
            i = later * TILE + 4 * t
            ptx.cp_async_16(stage, free + 4 * t, src, i)
        ptx.cp_async_commit()
        for k in range(t, TILE, THREADS):
            mirrored = stage[full + TILE - 1 - k]
            dst[row * TILE + k] = stage[full + k] - mirrored
        free = full
        full = full + TILE if full + TILE < ELEMS else 0


@cuda.jit
def drained(src, dst):
    """Fault: it waits for every copy in every step. Right, but only one tile is ever under way."""
    stage = cuda.shared.array(ELEMS, float32)
    t, n, step = cuda.threadIdx.x, src.size // TILE, cuda.gridDim.x
    for s in range(AHEAD):
        if cuda.blockIdx.x + s * step < n:
            i = (cuda.blockIdx.x + s * step) * TILE + 4 * t
            ptx.cp_async_16(stage, s * TILE + 4 * t, src, i)
        ptx.cp_async_commit()
    full, free = 0, AHEAD * TILE
    for row in range(cuda.blockIdx.x, n, step):
        ptx.cp_async_wait_all()
        cuda.syncthreads()  # everyone has waited
        later = row + AHEAD * step
        if later < n:
            i = later * TILE + 4 * t
            ptx.cp_async_16(stage, free + 4 * t, src, i)
        ptx.cp_async_commit()
        for k in range(t, TILE, THREADS):
            mirrored = stage[full + TILE - 1 - k]
            dst[row * TILE + k] = stage[full + k] - mirrored
        free = full
        full = full + TILE if full + TILE < ELEMS else 0


def _mirror(variant: Variant, threads: int, stages: int) -> KernelTask:
    tile = 4 * threads
    tile_bytes = tile * FLOAT_BYTES

    def run(rng: np.random.Generator, size: Any) -> Run:
        src = rng.random(size[0] * tile, dtype=np.float32)
        rows = src.reshape(-1, tile)
        return Run(
            size=_named(size),
            grid=size[1],
            block=threads,
            arguments={"src": src, "dst": poisoned(src.size)},
            expected={"dst": (rows - rows[:, ::-1]).reshape(-1)},
        )

    def most_under_way(run: Run) -> int:
        of_a_block = -(-_n_tiles(run, tile) // int(run.grid))  # type: ignore[arg-type]
        return min(stages - 1, of_a_block - 1) * tile_bytes

    return KernelTask(
        name="mirror",
        parameters=("src", "dst"),
        run=run,
        sizes=((11, 2), (3, 1)),
        hidden=_hidden,
        right=1,
        goals=(
            copies_without_hazards(3),
            under_way(6, most_under_way),
            barriers(2, lambda run: _n_tiles(run, tile)),
            copy_requests(1, lambda run: _n_tiles(run, tile) * threads // WARP),
            shared_bytes(1, most=stages * tile_bytes),
        ),
        starter=variant.choice(groups_lost, one_group_short, refilled_early, met_before_the_wait, drained),
        timed=(1 << 14, 1024),
    )


def _named(size: tuple[int, int]) -> str:
    return f"{size[0]} rows, {size[1]} block{'' if size[1] == 1 else 's'}"


def _n_tiles(run: Run, tile: int) -> int:
    return int(run.arguments["src"].size) // tile


def _hidden(rng: np.random.Generator) -> tuple[Any, ...]:
    """A single row, and a number of rows that leaves some block with fewer than others."""
    return (1, 1), (2 * int(rng.integers(3, 9)) + 1, int(rng.integers(2, 4)))


# -- part 3: two operands --------------------------------------------------------------------------


@cuda.jit
def wrong_order(src, weights, dst):
    """Fault: the weights are asked for first, so the first wait is for them and not for the samples."""
    a, b = cuda.shared.array(TILE, float32), cuda.shared.array(TILE, float32)
    acc = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    for row in range(cuda.blockIdx.x, src.size // TILE, cuda.gridDim.x):
        ptx.cp_async_16(b, 4 * t, weights, row * TILE + 4 * t)
        ptx.cp_async_commit()
        ptx.cp_async_16(a, 4 * t, src, row * TILE + 4 * t)
        ptx.cp_async_commit()
        ptx.cp_async_wait(1)
        cuda.syncthreads()  # the first wait, for everyone
        for part in range(4):
            k = part * THREADS + t
            acc[part] = a[k] + a[TILE - 1 - k]
        ptx.cp_async_wait(0)
        cuda.syncthreads()  # the second wait, for everyone
        for part in range(4):
            k = part * THREADS + t
            dst[row * TILE + k] = acc[part] * b[TILE - 1 - k]
        cuda.syncthreads()  # all have read before the next copies


@cuda.jit
def committed_late(src, weights, dst):
    """Fault: the weights' group is committed after the first wait, which therefore waits for nothing."""
    a, b = cuda.shared.array(TILE, float32), cuda.shared.array(TILE, float32)
    acc = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    for row in range(cuda.blockIdx.x, src.size // TILE, cuda.gridDim.x):
        ptx.cp_async_16(a, 4 * t, src, row * TILE + 4 * t)
        ptx.cp_async_commit()
        ptx.cp_async_16(b, 4 * t, weights, row * TILE + 4 * t)
        ptx.cp_async_wait(1)
        ptx.cp_async_commit()
        cuda.syncthreads()  # the first wait, for everyone
        for part in range(4):
            k = part * THREADS + t
            acc[part] = a[k] + a[TILE - 1 - k]
        ptx.cp_async_wait(0)
        cuda.syncthreads()  # the second wait, for everyone
        for part in range(4):
            k = part * THREADS + t
            dst[row * TILE + k] = acc[part] * b[TILE - 1 - k]
        cuda.syncthreads()  # all have read before the next copies


@cuda.jit
def own_copies_only(src, weights, dst):
    """Fault: no barrier after the second wait, so a thread knows of its own weights alone."""
    a, b = cuda.shared.array(TILE, float32), cuda.shared.array(TILE, float32)
    acc = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    for row in range(cuda.blockIdx.x, src.size // TILE, cuda.gridDim.x):
        ptx.cp_async_16(a, 4 * t, src, row * TILE + 4 * t)
        ptx.cp_async_commit()
        ptx.cp_async_16(b, 4 * t, weights, row * TILE + 4 * t)
        ptx.cp_async_commit()
        ptx.cp_async_wait(1)
        cuda.syncthreads()  # the first wait, for everyone
        for part in range(4):
            k = part * THREADS + t
            acc[part] = a[k] + a[TILE - 1 - k]
        ptx.cp_async_wait(0)
        for part in range(4):
            k = part * THREADS + t
            dst[row * TILE + k] = acc[part] * b[TILE - 1 - k]
        cuda.syncthreads()  # all have read before the next copies


@cuda.jit
def never_released(src, weights, dst):
    """Fault: no barrier after the last read, so the next copies overwrite what a slow warp still reads."""
    a, b = cuda.shared.array(TILE, float32), cuda.shared.array(TILE, float32)
    acc = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    for row in range(cuda.blockIdx.x, src.size // TILE, cuda.gridDim.x):
        ptx.cp_async_16(a, 4 * t, src, row * TILE + 4 * t)
        ptx.cp_async_commit()
        ptx.cp_async_16(b, 4 * t, weights, row * TILE + 4 * t)
        ptx.cp_async_commit()
        ptx.cp_async_wait(1)
        cuda.syncthreads()  # the first wait, for everyone
        for part in range(4):
            k = part * THREADS + t
            acc[part] = a[k] + a[TILE - 1 - k]
        ptx.cp_async_wait(0)
        cuda.syncthreads()  # the second wait, for everyone
        for part in range(4):
            k = part * THREADS + t
            dst[row * TILE + k] = acc[part] * b[TILE - 1 - k]


@cuda.jit
def too_many_barriers(src, weights, dst):
    """Fault: a barrier for each element, which protects nothing."""
    a, b = cuda.shared.array(TILE, float32), cuda.shared.array(TILE, float32)
    acc = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    for row in range(cuda.blockIdx.x, src.size // TILE, cuda.gridDim.x):
        ptx.cp_async_16(a, 4 * t, src, row * TILE + 4 * t)
        ptx.cp_async_commit()
        ptx.cp_async_16(b, 4 * t, weights, row * TILE + 4 * t)
        ptx.cp_async_commit()
        ptx.cp_async_wait(1)
        cuda.syncthreads()  # the first wait, for everyone
        for part in range(4):
            k = part * THREADS + t
            acc[part] = a[k] + a[TILE - 1 - k]
            cuda.syncthreads()  # everyone has the element
        ptx.cp_async_wait(0)
        cuda.syncthreads()  # the second wait, for everyone
        for part in range(4):
            k = part * THREADS + t
            dst[row * TILE + k] = acc[part] * b[TILE - 1 - k]
            cuda.syncthreads()  # everyone has written the element


def _product(variant: Variant, threads: int) -> KernelTask:
    tile = 4 * threads
    tile_bytes = tile * FLOAT_BYTES
    starters: tuple[Callable, ...] = (committed_late, own_copies_only, never_released, too_many_barriers)

    def run(rng: np.random.Generator, size: Any) -> Run:
        src, weights = (rng.random(size[0] * tile, dtype=np.float32) for _ in range(2))
        rows, mirrored = src.reshape(-1, tile), weights.reshape(-1, tile)[:, ::-1]
        return Run(
            size=_named(size),
            grid=size[1],
            block=threads,
            arguments={"src": src, "weights": weights, "dst": poisoned(src.size)},
            expected={"dst": ((rows + rows[:, ::-1]) * mirrored).reshape(-1)},
        )

    return KernelTask(
        name="product",
        parameters=("src", "weights", "dst"),
        run=run,
        sizes=((11, 2), (3, 1)),
        hidden=_hidden,
        right=1,
        goals=(
            copies_without_hazards(3),
            under_way(3, lambda run: tile_bytes),
            barriers(5, lambda run: 3 * _n_tiles(run, tile)),
            copy_requests(1, lambda run: 2 * _n_tiles(run, tile) * threads // WARP),
            shared_bytes(1, most=2 * tile_bytes),
        ),
        starter=variant.choice(wrong_order, *starters),
        timed=(1 << 14, 1024),
        worth=_worth,
    )


def _worth() -> str:
    measured = results.experiment("h200", "E-35")
    times = [
        measured.ratio(f"8 barriers, {case}", f"1 barriers, {case}")
        for case in ("128 threads, 8 blocks per SM", "1024 threads, 2 blocks per SM")
    ]
    return (
        f"Seven barriers too many in each tile make the chapter's kernel take {times[0]:.2f} times as long"
        f" with eight blocks of 128 threads, and {times[1]:.2f} times with two of 1,024. {measured.caption}"
    )
