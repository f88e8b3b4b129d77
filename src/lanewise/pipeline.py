"""A pipeline as arithmetic: when each tile is copied and worked on, by the buffers that hold tiles.

The tiles of one multiprocessor go round `blocks` blocks, and in each block round `stages` buffers:

    tile    0  1  2  3  4  5 ..        blocks = 2, stages = 2
    block   0  1  0  1  0  1
    stage   0  0  1  1  0  0

A copy is asked for, its first bytes come after `latency`, and from then on it uses the memory for `copy`;
copies do so one after the other, and so does the work, each for `work`. Times are in any one unit.

- With 1 stage a block asks for its next tile when the work on this one has ended.
- With more it asks when the work on a tile *starts*, for the tile `stages` - 1 further on: at that moment the
  barrier has shown that everyone is done with the tile before, whose buffer this copy takes.

So `blocks * (stages - 1)` tiles are under way while one is worked on, and `blocks` tiles if there is 1 stage.

What is left out: copies and work of a tile take one time always, a block's turn comes in order, nothing is
stored, and a memory that is nearly busy answers as fast as an idle one. The model says where the corners of a
curve lie and why; for microseconds, measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real

from lanewise.errors import Error
from lanewise.integers import whole

MOST = 10_000  # tiles, stages or blocks: the tiles are gone through one by one


class InvalidPipeline(Error):
    """Numbers that describe no pipeline."""


@dataclass(frozen=True)
class Step:
    """One tile: the copy from `asked` to `arrived`, the work from `started` to `ended`, and its buffer."""

    tile: int
    block: int
    stage: int
    asked: float
    arrived: float
    started: float
    ended: float


@dataclass(frozen=True)
class Pipeline:
    """Tiles through buffers. `copy`, `work` and `latency` are times of one tile, in one unit.

    >>> one, two = (Pipeline(tiles=4, stages=n, copy=3, work=2) for n in (1, 2))
    >>> one.total, two.total
    (20.0, 14.0)

    Raises `InvalidPipeline` for numbers of tiles, stages or blocks below 1, and for times below 0.
    """

    tiles: int
    stages: int
    copy: float
    work: float
    latency: float = 0.0
    blocks: int = 1

    def __post_init__(self) -> None:
        for name in ("tiles", "stages", "blocks"):
            number = whole(f"Pipeline: {name}", getattr(self, name), InvalidPipeline, 1, MOST)
            object.__setattr__(self, name, number)
        for name in ("copy", "work", "latency"):
            object.__setattr__(self, name, _time(name, getattr(self, name)))

    @property
    def ahead(self) -> int:
        """How many tiles later the tile comes that a block asks for: the tiles of all blocks under way."""
        return self.blocks * max(1, self.stages - 1)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Each tile with its times, found by going through the tiles in order."""
        steps: list[Step] = []
        for tile in range(self.tiles):
            asked = self._asked(steps, tile)
            free = steps[-1].arrived if steps else 0.0  # when the memory is done with the copy before
            arrived = max(asked + self.latency, free) + self.copy
            started = max(arrived, steps[-1].ended if steps else 0.0)
            turn, block = divmod(tile, self.blocks)
            steps.append(Step(tile, block, turn % self.stages, asked, arrived, started, started + self.work))
        return tuple(steps)

    @property
    def total(self) -> float:
        """When the work on the last tile has ended."""
        return self.steps[-1].ended

    @property
    def per_tile(self) -> float:
        """The time between tiles once the pipeline has filled: the largest of three needs.

        The work of each, the memory's time for each, and the way of one tile from question to answer, shared
        by all that are under way.

        >>> Pipeline(tiles=9, stages=4, copy=2, work=1, latency=10).per_tile
        4.0
        """
        way = self.latency + self.copy + (self.work if self.stages == 1 else 0.0)
        return max(self.copy, self.work, way / self.ahead)

    def _asked(self, steps: Sequence[Step], tile: int) -> float:
        before = tile - self.ahead
        if before < 0:
            return 0.0  # the first tiles are asked for before any work
        return steps[before].ended if self.stages == 1 else steps[before].started


def _time(name: str, given: object) -> float:
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number or not isfinite(given) or given < 0:  # type: ignore[arg-type, operator]
        raise InvalidPipeline(f"Pipeline: {name} is {given!r}. Give a time of 0 or more, in any one unit.")
    return float(given)  # type: ignore[arg-type]
