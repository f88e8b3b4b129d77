"""Asynchronous copies from global to shared memory: what is in flight, and who touches it too early.

The door for `lanewise.ptx`: an intrinsic calls `engine.copy_async(node, destination, source, instruction)`,
`engine.commit_copies(node)` and `engine.wait_for_copies(node, n)`. A copy reads its source when it is issued;
its destination is in flight until its own thread has waited for the copy's group. Touching it before is the
hazard `async_not_waited`, for any thread. It may land as soon as it is issued, so whoever looked at the
destination before must be ordered before the issue. The wait makes the copy a write of the waiting thread, so
that another thread's read without a barrier after the wait is an ordinary race.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lanewise.trace.arrays import Place
from lanewise.trace.lanes import whole
from lanewise.trace.masks import Mask
from lanewise.trace.sites import Site
from lanewise.trace.synchronisation import Synchronisation
from lanewise.trace.tracking import VERBS


@dataclass
class _Copy:
    """One issued copy: its destination, the lanes that still wait for it, and the group that each lane put it
    in."""

    number: int
    place: Place
    n_bytes: int
    group: np.ndarray
    lanes: np.ndarray
    site: Site


class Asynchronous(Synchronisation):
    """Memory accesses, barriers, and copies in flight."""

    def start_ordering(self) -> None:
        super().start_ordering()
        self._in_flight: list[_Copy] = []
        self._n_copies = 0
        self._landing = False
        self._committed = np.zeros(self.shape, np.int64)
        # Per block and granule of shared memory, the number of the copy that may still write it; 0 is none.
        self._busy = np.zeros((0, 0), np.int32)
        self._under_way = np.zeros(self.shape[0], np.int64)  # bytes of each block

    def copy_async(self, node: ast.AST, destination: Place, source: Place, instruction: str) -> None:
        """Issue a copy of one element per lane; both places have the type that is copied."""
        for place, op in ((source, "load"), (destination, "store")):
            if place.outside is not None:
                self.report_bounds(node, place, op)
        if source.mask is None or destination.mask is None:
            return
        within = Mask.of(source.mask.array & destination.mask.array, self.shape)
        if within is None:
            return
        source, destination = replace(source, mask=within), replace(destination, mask=within)
        width = destination.dtype.itemsize
        reading = self._count(node, "async_copy", instruction, source, width)
        self.shade(reading, "load", source, width)
        writing = self._count(node, "async_copy", instruction, destination, width)
        self.check_in_flight(writing, "async_copy", destination, width)
        super().shade(writing, "async_copy", destination, width)
        destination.storage.scatter(destination, source.storage.gather(source, self.shape), within)
        self._n_copies += 1
        copy = _Copy(self._n_copies, destination, width, self._committed, within.full.copy(), writing)
        self._in_flight.append(copy)
        self._under_way += width * copy.lanes.sum(axis=1)
        self._mark_busy(copy)

    def commit_copies(self, node: ast.AST) -> None:
        """Close the group of copies issued since the last commit."""
        self.tick(node)
        self._committed = self._committed + self.active.full

    def wait_for_copies(self, node: ast.AST, n: int) -> None:
        """Wait until at most the last `n` groups of each lane are in flight."""
        self.tick(node)
        active = self.active.full
        remaining: list[_Copy] = []
        for copy in self._in_flight:
            done = copy.lanes & active & (copy.group < self._committed - n)
            arrived = Mask.of(done, self.shape)
            copy.lanes = copy.lanes & ~done
            self._under_way -= copy.n_bytes * done.sum(axis=1)
            if copy.lanes.any():
                remaining.append(copy)
            if arrived is not None:
                # Entered first, so that the copy's own landing is not taken for a touch.
                self._land(copy, arrived)
        self._in_flight = remaining

    def wait_for_all_copies(self, node: ast.AST) -> None:
        """Close the open group and wait for every copy."""
        self.commit_copies(node)
        self.wait_for_copies(node, 0)

    def _land(self, copy: _Copy, arrived: Mask) -> None:
        self._mark_landed(copy, arrived)
        self._landing = True
        self.shade(copy.site, "store", replace(copy.place, mask=arrived), copy.n_bytes)
        self._landing = False

    def shade(self, site: Site, op: str, place: Place, n_bytes: int, value: Any = None) -> None:
        if self._in_flight and not self._landing and place.storage.space == "shared":
            self.check_in_flight(site, op, place, n_bytes)
            if op == "load" and place.mask is not None:
                beside = self._under_way * place.mask.array.any(axis=1)
                self.bytes_under_way = max(self.bytes_under_way, int(beside.max()))
            if op != "store":
                place = self._settled(place, n_bytes)
        if place.mask is not None:
            super().shade(site, op, place, n_bytes, value)

    def check_in_flight(self, site: Site, op: str, place: Place, n_bytes: int) -> None:
        """Report lanes that touch bytes which a copy may still be writing."""
        hit = self._touching(place, n_bytes)
        if hit is None:
            return
        lanes, copy = hit
        block, lane = (int(part) for part in np.argwhere(lanes)[0])
        element, line = self.element_text(place, block, lane), site.line
        text = (
            f"{VERBS[op]} {element} (line {line}) while the copy of line {copy.site.line} may still be"
            " writing it. Every thread that copies must wait for its group (commit, then wait), and a barrier"
            " must follow before other threads look."
        )
        case = self.case(
            "async_not_waited", line, block, lane, text, other_line=copy.site.line, element=element
        )
        self.log.add(
            "async_not_waited",
            line,
            case,
            other_line=copy.site.line,
            array=place.array.name,
            count=int(np.count_nonzero(lanes)),
        )

    def _granules(self, place: Place, n_bytes: int) -> list[np.ndarray]:
        """The granules of shared memory that each lane touches, `(B, T)` each."""
        granule = self.shared_storage.granule
        first = np.broadcast_to(np.atleast_2d(whole(place.in_units(granule))), self.shape)
        return [first + k for k in range(n_bytes // granule)]

    def _mark_busy(self, copy: _Copy) -> None:
        if not self._busy.size:
            granule = self.shared_storage.granule
            self._busy = np.zeros((self.shape[0], -(-self.shared_storage.n_bytes // granule)), np.int32)
        blocks, lanes = copy.lanes.nonzero()
        for granules in self._granules(copy.place, copy.n_bytes):
            self._busy[blocks, granules[blocks, lanes]] = copy.number

    def _mark_landed(self, copy: _Copy, arrived: Mask) -> None:
        blocks, lanes = arrived.full.nonzero()
        for granules in self._granules(copy.place, copy.n_bytes):
            where = blocks, granules[blocks, lanes]
            mine = self._busy[where] == copy.number
            self._busy[where[0][mine], where[1][mine]] = 0

    def _touching(self, place: Place, n_bytes: int) -> tuple[np.ndarray, _Copy] | None:
        """The active lanes of a place that overlap a copy in flight, and the first such copy."""
        assert place.mask is not None
        if not self._busy.size:
            return None
        rows = np.arange(self.shape[0])[:, None]
        found: np.ndarray | None = None
        for granules in self._granules(place, n_bytes):
            numbers = self._busy[rows, np.where(place.mask.full, granules, 0)]
            found = numbers if found is None else np.maximum(found, numbers)
        assert found is not None
        found = np.where(place.mask.full, found, 0)
        if not found.any():
            return None
        block, lane = (int(part) for part in np.argwhere(found)[0])
        number = int(found[block, lane])
        return found > 0, next(copy for copy in self._in_flight if copy.number == number)

    def _settled(self, place: Place, n_bytes: int) -> Place:
        """The place without the lanes that were just reported, lest they be reported again as unwritten."""
        hit = self._touching(place, n_bytes)
        if hit is None or place.mask is None:
            return place
        return replace(place, mask=Mask.of(place.mask.full & ~hit[0], self.shape))
