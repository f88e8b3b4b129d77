"""Asynchronous pipelines, guided: predict the times of a pipeline, then write one with `cp.async`.

Variants change the times, the block, the tile that follows from it, and the number of buffers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise import results
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import shared_bytes
from lanewise.labs.goals_copies import barriers, copies_without_hazards, copy_requests, under_way
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.pipeline import InvalidPipeline, Pipeline

FLOAT_BYTES = 4
WARP = 32


@dataclass(frozen=True)
class Shape:
    """The block of one variant, its tile in floats, and how many tiles it keeps."""

    threads: int
    stages: int

    @property
    def tile(self) -> int:
        return 4 * self.threads

    @property
    def tile_bytes(self) -> int:
        return self.tile * FLOAT_BYTES


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    shape = Shape(variant.choice(64, 96, 128), variant.choice(2, 3, 4))
    return Lab(
        name="async_pipelines_stages",
        title="A copy behind the work",
        chapter="async_pipelines",
        level="guided",
        kinds=("predict", "write"),
        minutes=35,
        tasks=(_times(variant, shape), _smooth(shape)),
        given={"THREADS": shape.threads, "TILE": shape.tile, "STAGES": shape.stages},
        seed=variant.seed,
    )


# -- part 1: arithmetic ----------------------------------------------------------------------------


def _times(variant: Variant, shape: Shape) -> Answers:
    copy, work = variant.choice((4, 3), (5, 2), (3, 5))
    far = variant.choice((14, 2, 5), (17, 3, 6), (9, 1, 3))
    blocks = variant.choice(3, 2, 5)
    two = Pipeline(tiles=8, stages=2, copy=copy, work=work)
    return Answers(
        "times",
        (_third(two), _idle(two), _saved(two), _room(shape), _on_the_way(shape, blocks), _stages(*far)),
    )


def _named(p: Pipeline) -> str:
    return f"copy {p.copy:g}, work {p.work:g}, no latency"


def _third(p: Pipeline) -> Question:
    return Question(
        "third",
        f"Two stages, {_named(p)}. When does the work on the third tile start?",
        p.steps[2].started,
        "A tile is asked for when the work on the tile before it starts. Is the memory free then? Draw three"
        " tiles.",
        "The work starts when its own copy has arrived and the work before it has ended, whichever is later.",
    )


def _idle(p: Pipeline) -> Question:
    busy = p.tiles * p.work
    return Question(
        "idle",
        f"The same with {p.tiles} tiles. How long does the arithmetic stand still between the start of the"
        " first work and the end of the last?",
        p.total - p.steps[0].started - busy,
        "Between two pieces of work there is a gap only where the copy takes longer than the work.",
        "Each tile after the first waits for what its copy takes beyond the work, and for nothing if that is"
        " less.",
    )


def _saved(p: Pipeline) -> Question:
    one = Pipeline(p.tiles, 1, p.copy, p.work)
    return Question(
        "saved",
        f"The same {p.tiles} tiles. How much sooner do two stages end than one stage?",
        one.total - p.total,
        "With one stage nothing overlaps. With two, each tile after the first saves the smaller of copy and"
        " work.",
        "All tiles but one save the smaller of copy and work: the first copy has nothing to hide behind.",
    )


def _room(shape: Shape) -> Question:
    return Question(
        "room",
        f"Your block keeps {shape.stages} tiles of {shape.tile} floats. How many bytes of shared memory?",
        shape.stages * shape.tile_bytes,
        "A float has 4 bytes, and every stage has room for a whole tile.",
        "That is what a block takes from its multiprocessor; it may leave room for fewer blocks.",
    )


def _on_the_way(shape: Shape, blocks: int) -> Question:
    return Question(
        "on_the_way",
        f"A multiprocessor holds {blocks} of these blocks. How many bytes are under way while each block"
        " works on a tile?",
        blocks * (shape.stages - 1) * shape.tile_bytes,
        "One stage of each block holds the tile that is worked on; the others may be filled meanwhile.",
        "Blocks and stages hide latency alike: blocks times (stages - 1) tiles are under way.",
    )


def _stages(latency: int, copy: int, work: int) -> Question:
    tile_bytes = 4096
    least = next(n for n in range(1, 99) if Pipeline(1, n, copy, work, latency).per_tile <= work)
    room = (least + 1) * tile_bytes

    def accepts(given: Any) -> str:
        if given != int(given):
            return "Give a whole number."
        try:
            p = Pipeline(1, int(given), copy, work, latency)
        except InvalidPipeline:
            return "Give a whole number of stages, 1 or more, and not thousands."
        if p.per_tile > work:
            return "A tile still takes longer than its work: the way is shared by too few tiles."
        return "" if p.stages * tile_bytes <= room else "These buffers do not fit into the room."

    return Question(
        "stages",
        f"One block; latency {latency}, copy {copy}, work {work}; a tile takes {tile_bytes:,} bytes and there"
        f" is room for {room:,}. Choose a number of stages with which a tile takes no longer than its work.",
        least,
        "The latency and the copy are shared by all tiles under way, one less than the stages.",
        "From there on the work decides; more stages only take room.",
        accepts=accepts,
    )


# -- part 2: the kernel ----------------------------------------------------------------------------


def smoothed(src: np.ndarray, tile: int) -> np.ndarray:
    """The sum of each element and its two neighbours within a row of `tile`; the ends count twice."""
    rows = src.reshape(-1, tile)
    left = np.concatenate([rows[:, :1], rows[:, :-1]], axis=1)
    right = np.concatenate([rows[:, 1:], rows[:, -1:]], axis=1)
    return (left + rows + right).reshape(-1)


def _most_under_way(shape: Shape, run: Run) -> int:
    """What a block can have under way: all stages but one, or what is left of its tiles."""
    n_tiles = run.arguments["src"].size // shape.tile
    most_of_a_block = -(-n_tiles // int(run.grid))  # type: ignore[arg-type]
    return max(0, min(shape.stages - 1, most_of_a_block - 1)) * shape.tile_bytes


def _smooth(shape: Shape) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        n_tiles, n_blocks = size
        src = rng.random(n_tiles * shape.tile, dtype=np.float32)
        return Run(
            size=f"{n_tiles} rows, {n_blocks} blocks",
            grid=n_blocks,
            block=shape.threads,
            arguments={"src": src, "dst": poisoned(src.size)},
            expected={"dst": smoothed(src, shape.tile)},
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        return (1, int(rng.integers(1, 4))), (int(rng.integers(5, 20)), int(rng.integers(1, 4)))

    def tiles(run: Run) -> int:
        return int(run.arguments["src"].size) // shape.tile

    return KernelTask(
        name="smooth",
        parameters=("src", "dst"),
        run=run,
        sizes=((8, 2), (7, 3)),
        hidden=hidden,
        right=2,
        goals=(
            copies_without_hazards(3),
            under_way(6, lambda run: _most_under_way(shape, run)),
            barriers(2, lambda run: tiles(run) + int(run.grid)),  # type: ignore[arg-type]
            copy_requests(1, lambda run: tiles(run) * shape.threads // WARP),
            shared_bytes(1, most=shape.stages * shape.tile_bytes),
        ),
        timed=(1 << 15, 1024),
        worth=_worth,
    )


def _worth() -> str:
    measured = results.experiment("h200", "E-34")
    times = [
        measured.ratio(f"tiled, {fmas} FMAs, 1 blocks per SM", f"pipelined_2, {fmas} FMAs, 1 blocks per SM")
        for fmas in (0, 64)
    ]
    return (
        f"In the chapter's kernel, with one block per multiprocessor, two stages make it {times[0]:.2f} times"
        f" as fast without work and {times[1]:.2f} times with 64 multiply-adds. {measured.caption}"
    )
