"""Padding, guided: predict what a pad does to a column, then transpose a matrix through a padded tile."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanewise import results
from lanewise.access import WarpAccess
from lanewise.kernels import padding
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import no_hazards, shared_bytes
from lanewise.labs.goals_tiles import in_rows, through_tile
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost

TILE = 32
FLOAT_BYTES = 4


def build(variant: Variant) -> Lab:
    """The lab of one variant: another number of rows of threads, and other pitches to predict."""
    rows = variant.choice(8, 4, 16)
    return Lab(
        name="padding_transpose",
        title="A transpose without bank conflicts",
        chapter="padding",
        level="guided",
        kinds=("predict", "write"),
        minutes=25,
        tasks=(_degrees(variant), _transpose(rows)),
        given={"TILE": TILE, "ROWS": rows},
        seed=variant.seed,
    )


def _column(pitch: int) -> WarpAccess:
    return WarpAccess.from_tile("ld.shared.b32", range(32), 0, pitch=pitch)


def _degrees(variant: Variant) -> Answers:
    odd, even = variant.choice(33, 35, 37), variant.choice(34, 38, 42)
    wide = variant.choice(36, 40, 48)
    pitches = {"dense": TILE, "odd": odd, "even": even, "wide": wide}
    return Answers("degrees", tuple(_degree(name, pitch) for name, pitch in pitches.items()))


def _degree(name: str, pitch: int) -> Question:
    access = _column(pitch)
    return Question(
        name,
        f"A warp reads a column of a tile with {pitch} floats from row to row. How many wavefronts?",
        shared_cost(access).wavefronts,
        "Write down the banks of rows 0, 1 and 2. By how many does each move on? When is bank 0 met again?",
        f"Rows start {pitch % 32} banks apart, and that pattern repeats as soon as it is back at bank 0.",
        access=access,
    )


def _transpose(rows: int) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        src = rng.random(size, dtype=np.float32)
        return Run(
            size=f"a {size[0]} x {size[1]} matrix",
            grid=padding.grid_of(src),
            block=(TILE, rows),
            arguments={"src": src, "dst": poisoned(size[::-1])},
            expected={"dst": padding.reference(src)},
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        return tuple(tuple(int(extent) for extent in rng.integers(1, 100, size=2)) for _ in range(2))

    return KernelTask(
        name="transpose",
        parameters=("src", "dst"),
        run=run,
        sizes=((64, 64), (33, 65)),
        hidden=hidden,
        right=4,
        goals=(
            in_rows(3, TILE),
            through_tile(3, TILE),
            shared_bytes(1, most=TILE * (TILE + 1) * FLOAT_BYTES),
            no_hazards(1),
        ),
        timed=(4096, 4096),
        before=padding.transpose_naive,
        worth=_worth,
    )


def _worth() -> str:
    measured = results.experiment("h200", "E-04")
    return (
        f"On 8192 x 8192 floats the dense tile takes {measured.ratio('tiled 8192', 'padded 8192'):.2f} times"
        f" as long as the padded one. {measured.caption}"
    )
