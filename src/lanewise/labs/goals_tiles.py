"""Goals for kernels that move a matrix through tiles of shared memory, a warp along the rows of either side,
and for the layouts of such tiles.

A lane that works alone has no bank conflict and touches one sector at a time. So these goals limit totals:
what warps need that stand side by side in rows. An index past the edge may be moved to the edge, where a
guard would leave the access out; the totals allow for that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lanewise.checks import Check
from lanewise.labs.goals import Goal, global_sectors, no_conflicts
from lanewise.labs.runs import Run
from lanewise.machine import SECTOR_BYTES, WARP_LANES
from lanewise.trace.hazards import Hazard


def in_rows(points: int, side: int) -> Goal:
    """Every matrix of a run is moved once, in rows of tiles that are `side` elements wide and high."""

    def most(run: Run) -> int:
        return sum(sectors_in_rows(array, side) for array in run.arguments.values())

    return Goal("coalesced", points, global_sectors(points, most).claim)


def through_tile(points: int, side: int) -> Goal:
    """All of a square tile's matrix, 4 bytes a lane, comes from shared memory; see `from_tile`."""

    def most(run: Run) -> int:
        result = run.arguments[next(iter(run.expected))]
        return 2 * n_tiles(result.shape, side) * max(1, side * side // WARP_LANES)

    return from_tile(points, lambda run: run.arguments[next(iter(run.expected))].nbytes, most)


def from_tile(points: int, n_bytes: Callable[[Run], int], requests: Callable[[Run], int]) -> Goal:
    """`n_bytes(run)` or more are read from shared memory, without conflicts, by `requests(run)` stores and
    loads at most."""

    def claim(check: Check, run: Run) -> Check:
        space, wanted, limit = check.trace.shared, n_bytes(run), requests(run)
        if space.load.bytes_requested < wanted:
            sentence = f"Only {space.load.bytes_requested:,} of {wanted:,} bytes come from the tile."
            return check.claim("through the tile", False, sentence)
        no_conflicts(points).claim(check, run)
        made = space.load.requests + space.store.requests
        sentence = f"Warps make {made:,} requests to the tile; at most {limit:,} are allowed."
        return check.claim("requests", made <= limit, sentence)

    return Goal("no bank conflicts", points, claim)


def own_places(points: int) -> Goal:
    """A layout: each element has a place of its own, inside the tile, where the access may start."""

    def claim(check: Check, run: Run) -> Check:
        if found := _broken(check):
            fact = found.message.partition("; ")[0].partition(". ")[0].rstrip(".")
            return check.claim("places", False, f"{_BROKEN.get(found.kind, 'This is a hazard')}: {fact}.")
        return check.claim("places", True, "Every element has a place of its own, inside the tile.")

    return Goal("own places", points, claim)


def free_layout(points: int) -> Goal:
    """A layout: no bank conflict. It counts once every element has its own place."""

    def claim(check: Check, run: Run) -> Check:
        if _broken(check):
            return check.claim("bank conflicts", False, "Conflicts are counted once every place is sound.")
        return no_conflicts(points).claim(check, run)

    return Goal("no bank conflicts", points, claim)


_BROKEN = {
    "out_of_bounds": "A place lies outside of the tile",
    "shared_race": "Two elements share a place",
    "misaligned": "A wide access does not start at a multiple of its width",
    "uninitialized_read": "A place is read that was never written",
}


def _broken(check: Check) -> Hazard | None:
    return next((found for found in check.trace.hazards if found.severity != "benign"), None)


def n_tiles(shape: tuple[int, ...], side: int) -> int:
    """The square tiles that cover a matrix.

    >>> n_tiles((33, 64), 32)
    4
    """
    return -(-shape[0] // side) * -(-shape[1] // side)


def sectors_in_rows(array: np.ndarray, side: int) -> int:
    """The sectors that all rows of all tiles touch, row by row; rows past the edge count as the last one.

    >>> sectors_in_rows(np.zeros((32, 32), np.float32), 32), sectors_in_rows(np.zeros((2, 9), np.float32), 8)
    (128, 23)
    """
    n_rows, n_cols = array.shape
    row = np.minimum(np.arange(-(-n_rows // side) * side), n_rows - 1)[:, np.newaxis]
    first = np.arange(0, n_cols, side)
    last = np.minimum(first + side, n_cols) - 1
    at_first, at_last = (((row * n_cols + col) * array.itemsize) // SECTOR_BYTES for col in (first, last))
    return int((at_last - at_first + 1).sum())
