"""Hazards of memory accesses: bounds, and the shadow state that finds races and unwritten elements."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from lanewise.trace.arrays import (
    Place,
    SharedStorage,
    Storage,
)
from lanewise.trace.hazards import Coordinates, Hazard, HazardLog, Severity
from lanewise.trace.lanes import limits, whole
from lanewise.trace.launch import Launch
from lanewise.trace.masks import Mask
from lanewise.trace.shadow import Meeting, Now, Shadow, thread_of, time_of
from lanewise.trace.sites import Site
from lanewise.trace.statements import Statements

VERBS = {
    "load": "reads",
    "store": "writes",
    "atomic": "updates",
    "async_copy": "copies into",
    "acquire": "reads (load_acquire)",
    "release": "writes (store_release)",
}
_PAST = {"load": "read", "store": "wrote", "atomic": "updated atomically", "async_copy": "copied into"}


class Tracking(Statements):
    """Checks accesses of the executing pass and words what it finds; `Memory` tells it what is accessed."""

    launch: Launch
    blocks: np.ndarray  # linear numbers of the batch's blocks
    numbers: np.ndarray  # those of all traced blocks
    ordinals: np.ndarray  # where the batch's blocks stand among these: stamps have no room for block numbers
    shared_storage: SharedStorage
    shared_shadow: Shadow | None
    events: list[Site | None]
    log: HazardLog
    since_block: Any
    since_warp: Any
    since_grid = 0
    meetings: tuple[Meeting, ...] = ()
    stands_for = 1  # blocks that the lanes of the last shared access speak for

    def place_of(self, block: int, lane: int) -> tuple[Coordinates, Coordinates]:
        """Block and thread coordinates of a lane; `block` counts within the batch."""
        return self.launch.block_of(int(self.blocks[block])), self.launch.thread_of(lane)

    def case(
        self, kind: str, line: int, block: int, lane: int, text: str, **more: Any
    ) -> Callable[[int], Hazard]:
        """What builds the hazard of a lane when its count is known, with a message that starts with block and
        thread.

        The coordinates are taken now: by the time it is built, another batch of blocks has run.
        """
        at = self.place_of(block, lane)
        return lambda count: Hazard(
            kind, line, f"block={at[0]} thread={at[1]}: {text}", *at, count=count, **more
        )

    def element_text(self, place: Place, block: int, lane: int) -> str:
        """The element that one lane touches, in words."""
        found = []
        for index in place.indices:
            value = np.broadcast_to(np.atleast_2d(whole(index)), self.shape)[block, lane]
            found.append(int(value))
        return place.array.describe(tuple(found))

    def report_bounds(self, node: ast.AST, place: Place, op: str, n: int = 1) -> None:
        """Report the lanes outside the array."""
        assert place.outside is not None
        line = getattr(node, "lineno", 0)
        block, lane = first_lane(place.outside)
        element = self.element_text(place, block, lane)
        shape = tuple(int(limits(extent)[1]) for extent in place.array.shape)
        extent = f"its {shape[0]} elements" if len(shape) == 1 else f"its shape {shape}"
        wide = f" and {n - 1} more" if n > 1 else ""
        text = f"{VERBS[op]} {element}{wide} past {extent} (line {line}). {self._bounds_advice(place, shape)}"
        case = self.case("out_of_bounds", line, block, lane, text, element=element)
        self.log.add("out_of_bounds", line, case, array=place.array.name, count=n_lanes(place.outside))

    def _bounds_advice(self, place: Place, shape: tuple[int, ...]) -> str:
        if place.storage.space == "shared" and 0 in shape and not self.launch.dynamic_bytes:
            return "The launch gives the block no dynamic shared memory; pass dynamic_shared_bytes."
        return (
            "Guard the access with a test of the index, such as:"
            f" if i < {place.array.name}.shape[{max(0, len(shape) - 1)}]."
        )

    def shade(self, site: Site, op: str, place: Place, n_bytes: int, value: Any = None) -> None:
        """Check an access against the shadow memory and enter it there."""
        self.events.append(site)
        storage = place.storage
        kinds = storage.kinds
        if storage.space == "global" and not storage.starts_uninitialized and kinds in ({"read"}, {"atomic"}):
            return
        granule = storage.granule
        first = place.in_units(granule)
        assert place.mask is not None
        if storage.space == "shared":
            lanes = self._shared_lanes(first, place.mask)
        else:
            lanes = self._global_lanes(storage, first, place.mask)
        shadow, index, now, select = lanes
        report = self._reporter(site, op, place, now, value, select)
        checks_writes = storage.space == "shared" or storage.starts_uninitialized
        for k in range(n_bytes // granule):
            here = index + k if k else index
            if op not in ("store", "release", "async_copy") and checks_writes:
                missing = shadow.unwritten(here)
                if missing is not None:
                    self._report_unwritten(site, place, missing, select, op)
            checks = {"load": shadow.read, "store": shadow.write, "async_copy": shadow.overwrite}
            checks.get(op, shadow.atomic)(here, now, report)

    def check_constant(self, node: ast.AST, place: Place, n: int) -> None:
        """Report reads through the read-only path of elements that the kernel has written."""
        storage, mask = place.storage, place.mask
        shadow = storage.shadow
        if mask is None or shadow is None or not storage.kinds & {"write", "atomic"}:
            return
        granule = storage.granule
        first = np.broadcast_to(np.atleast_2d(whole(place.in_units(granule))), self.shape)
        written = np.zeros(self.shape, np.int64)
        for k in range(n * place.dtype.itemsize // granule):
            within = np.minimum(first + k, shadow.n_granules - 1)
            written = np.maximum(written, shadow.written[within])
        stale = Mask.of((written > 0) & mask.full, self.shape)
        if stale is None:
            return
        block, lane = first_lane(stale)
        before = self.events[int(time_of(written[block, lane]))]
        element, line = self.element_text(place, block, lane), getattr(node, "lineno", 0)
        other_line = before.line if before else line
        text = (
            f"reads {element} (line {line}) as read-only data, but the kernel writes it at line {other_line};"
            " ld.global.nc may still give the old value. Use a load without nc."
        )
        case = self.case("global_race", line, block, lane, text, other_line=other_line, element=element)
        self.log.add(
            "global_race", line, case, other_line=other_line, array=place.array.name, count=n_lanes(stale)
        )

    def _shared_lanes(
        self, first: Any, mask: Mask
    ) -> tuple[Shadow, np.ndarray, Now, Callable[[int], tuple[int, int]]]:
        """Granules and ordering of a shared access; one block stands for all while all do the same."""
        n_blocks, n_threads = self.shape
        storage = self.shared_storage
        n_granules = -(-storage.n_bytes // storage.granule)
        if self.shared_shadow is None:
            self.shared_shadow = Shadow(n_granules, storage.kinds)
        shadow = self.shared_shadow
        index = np.atleast_2d(whole(first))
        ordering = (self.since_block, self.since_warp, *(meeting.joined for meeting in self.meetings))
        rows_of_time = max(np.atleast_2d(part).shape[0] for part in ordering)
        alike = index.shape[0] == mask.array.shape[0] == rows_of_time == 1 and shadow.n_granules == n_granules
        time_, since_block, since_warp = len(self.events) - 1, self.since_block, self.since_warp
        self.stands_for = n_blocks if alike else 1
        if alike:
            lanes = slice(None) if mask.is_full else np.flatnonzero(np.broadcast_to(mask.array[0], n_threads))
            who = self.launch.lane_numbers[lanes]
            if np.ndim(since_warp):
                since_warp = since_warp[0][lanes]
            index = np.broadcast_to(index[0], n_threads)[lanes]
            now = Now(
                time_,
                who,
                n_threads,
                0,
                int(np.max(since_block)),
                since_warp,
                one_block=True,
                meetings=self.meetings,
            )
            return shadow, index, now, lambda position: (0, int(who[position]))
        if shadow.n_granules == n_granules and n_blocks > 1:
            shadow.repeat(n_blocks)
        chosen = mask.full
        block = np.broadcast_to(np.arange(n_blocks)[:, None], self.shape)[chosen]
        who = np.broadcast_to(self.launch.lane_numbers, self.shape)[chosen]
        flat = np.broadcast_to(index, self.shape)[chosen] + block * n_granules
        since_block, since_warp = self._of_lanes(since_block, chosen), self._of_lanes(since_warp, chosen)
        now = Now(
            time_,
            who,
            n_threads,
            0,
            since_block,
            since_warp,
            one_block=True,
            meetings=self.meetings,
            rows=block,
        )
        return shadow, flat, now, lambda position: (int(block[position]), int(who[position]))

    def _of_lanes(self, times: Any, chosen: np.ndarray) -> Any:
        return times if np.ndim(times) == 0 else np.broadcast_to(times, self.shape)[chosen]

    def _global_lanes(
        self, storage: Storage, first: Any, mask: Mask
    ) -> tuple[Shadow, np.ndarray, Now, Callable[[int], tuple[int, int]]]:
        n_threads = self.shape[1]
        if storage.shadow is None:
            storage.shadow = Shadow(-(-storage.n_bytes // storage.granule), storage.kinds)
        index = np.broadcast_to(np.atleast_2d(whole(first)), self.shape)
        who = self.ordinals[:, None] * n_threads + self.launch.lane_numbers[None, :]
        chosen = None if mask.is_full else mask.full
        index, who = (index.reshape(-1), who.reshape(-1)) if chosen is None else (index[chosen], who[chosen])
        since_block, since_warp = self.since_block, self.since_warp
        if np.ndim(since_block) or np.ndim(since_warp):
            everyone = np.ones(self.shape, bool) if chosen is None else chosen
            since_block, since_warp = (
                self._of_lanes(since_block, everyone),
                self._of_lanes(since_warp, everyone),
            )
        now = Now(len(self.events) - 1, who, n_threads, self.since_grid, since_block, since_warp)
        if self.meetings:
            now.meetings, now.rows = self.meetings, np.searchsorted(self.ordinals, who // n_threads)
        ordinals = self.ordinals

        def locate(position: int) -> tuple[int, int]:
            number = int(who[position])
            return int(np.searchsorted(ordinals, number // n_threads)), number % n_threads

        return storage.shadow, index, now, locate

    def _report_unwritten(
        self, site: Site, place: Place, missing: np.ndarray, locate: Callable[[int], tuple[int, int]], op: str
    ) -> None:
        block, lane = locate(int(np.argmax(missing)))
        element, line = self.element_text(place, block, lane), site.line
        what = (
            "shared memory starts with whatever was there"
            if site.space == "shared"
            else "the array was marked so"
        )
        text = (
            f"{VERBS[op]} {element} (line {line}), which no thread has written; {what}. Write every element"
            " before it is read, with 0 where there is no data."
        )
        case = self.case("uninitialized_read", line, block, lane, text, element=element)
        repeats = self.stands_for if site.space == "shared" else 1
        n_lanes = int(np.count_nonzero(missing)) * repeats
        self.log.add("uninitialized_read", line, case, array=place.array.name, count=n_lanes)

    def _reporter(
        self,
        site: Site,
        op: str,
        place: Place,
        now: Now,
        value: Any,
        locate: Callable[[int], tuple[int, int]],
    ) -> Callable[[np.ndarray, np.ndarray], None]:
        """What to do with lanes that race: sort them by earlier line and severity, and log each sort."""

        def report(stamps: np.ndarray, racing: np.ndarray) -> None:
            lanes = np.flatnonzero(racing)
            earlier, times = thread_of(stamps[lanes]), time_of(stamps[lanes])
            # Lanes that write different values by one instruction: which one stays is undefined even in
            # lock-step.
            severity = np.where(now.same_warp_of(earlier, lanes) & (times != now.time), 1, 0)
            if op == "store" and self.updating:
                severity[self._is_own_update(site, times)] = 0
            elif op == "store":
                severity = np.where(self._same_value(place, value, now, lanes, earlier, times), 2, severity)
            sorts, first, counts = np.unique(times * 4 + severity, return_index=True, return_counts=True)
            for sort, position, count in zip(sorts, first, counts, strict=True):
                before = self.events[int(sort) // 4]
                assert before is not None
                names: tuple[Severity, ...] = ("error", "lock_step", "benign")
                lane = int(lanes[position])
                self._log_race(
                    site,
                    before,
                    op,
                    place,
                    names[int(sort) % 4],
                    locate(lane),
                    int(earlier[position]),
                    int(count),
                )

        return report

    def _is_own_update(self, site: Site, times: np.ndarray) -> np.ndarray:
        """Which earlier accesses are this augmented assignment's own read or write, made by other threads."""

        def is_here(event: Site) -> bool:
            return (event.line, event.column) == (site.line, site.column)

        return self._events_that(is_here, times)

    def _events_that(self, claim: Callable[[Site], bool], times: np.ndarray) -> np.ndarray:
        """For which times the claim is true of what happened then: few events race in a loop of many."""
        kinds, which = np.unique(times, return_inverse=True)
        events = (self.events[int(time)] for time in kinds)
        return np.array([event is not None and claim(event) for event in events], bool)[which]

    def _same_value(
        self, place: Place, value: Any, now: Now, lanes: np.ndarray, earlier: np.ndarray, times: np.ndarray
    ) -> np.ndarray:
        """Which colliding stores write what the other thread wrote: benign as long as both go on doing so."""
        if value is None or place.mask is None:
            return np.zeros(len(lanes), bool)
        mine = np.broadcast_to(np.atleast_2d(value), self.shape)
        held = np.broadcast_to(np.atleast_2d(place.storage.gather(place, self.shape)), self.shape)
        chosen = place.mask.full
        same_instruction = times == now.time
        if len(now.who) < np.count_nonzero(chosen):  # one block stands for all
            row = np.flatnonzero(chosen[0])
            mine, held = mine[:, row], held[:, row]
        else:
            mine, held = mine[chosen][None], held[chosen][None]
        winner = np.searchsorted(now.who, earlier) if _ascending(now.who) else lanes
        other = np.where(same_instruction, mine[:, np.minimum(winner, mine.shape[1] - 1)], held[:, lanes])
        own = mine[:, lanes]
        equal = ((own == other) | ((own != own) & (other != other))).all(axis=0)
        return equal & self._events_that(lambda event: event.op == "store", times)

    def _log_race(
        self,
        site: Site,
        before: Site,
        op: str,
        place: Place,
        severity: Severity,
        where: tuple[int, int],
        earlier: int,
        count: int,
    ) -> None:
        kind = f"{site.space}_race"
        block, lane = where
        n_threads = self.shape[1]
        if site.space == "global":
            other_number = int(self.numbers[earlier // n_threads])
        else:
            other_number = int(self.blocks[block])
        at = self.place_of(block, lane)
        other = self.launch.block_of(other_number), self.launch.thread_of(earlier % n_threads)
        element = self.element_text(place, block, lane)
        far = site.space == "global" and other[0] != at[0]
        who = f"thread {other[1]}" + (f" of block {other[0]}" if far else "")
        here = (site.line, site.column) == (before.line, before.column)
        lost = severity == "error" and self.updating and op == "store" and here
        together = op == "store" and site is before
        text = (
            f"block={at[0]} thread={at[1]}: {_race_deed(site, before, op, element, who, lost, together)}."
            f" {_race_advice(site, before, severity, far, lost, together)}"
        )

        def build(total: int) -> Hazard:
            return Hazard(
                kind, site.line, text, *at, severity, before.line, other[0], other[1], element, total
            )

        count *= self.stands_for if site.space == "shared" else 1
        self.log.add(
            kind,
            site.line,
            build,
            other_line=before.line,
            severity=severity,
            array=place.array.name,
            count=count,
        )


def _race_deed(site: Site, before: Site, op: str, element: str, who: str, lost: bool, together: bool) -> str:
    """What the two threads of a race do: `lost` in one augmented assignment, `together` by one store."""
    if lost:
        return (
            f"updates {element} (line {site.line}) and so does {who}; each reads before the other has"
            " written, so an update is lost"
        )
    if together:
        return f"{VERBS[op]} {element} (line {site.line}) and so does {who}; only one value stays"
    return (
        f"{VERBS[op]} {element} (line {site.line}), which {who} {_PAST[before.op]} at line {before.line}, and"
        " nothing orders the two"
    )


def _race_advice(site: Site, before: Site, severity: Severity, far: bool, lost: bool, together: bool) -> str:
    """What to do about a race; `far` between two blocks."""
    if lost:
        return "Use cuda.atomic.add (or the atomic operation that you need)."
    if severity == "benign":
        return "Both write the same value, so the result is right; let one thread write to say what you mean."
    if together:
        return "Let one thread write, give each its own element, or use cuda.atomic."
    lines = f"line {site.line}" if before.line == site.line else f"lines {before.line} and {site.line}"
    if severity == "lock_step":
        return (
            "Both are lanes of one warp, so it works only while they run in lock-step, which nothing"
            f" guarantees: put cuda.syncwarp() between them ({lines})."
        )
    if far:
        return (
            "No barrier reaches across blocks: split the kernel in two launches, or give each block its own"
            " elements."
        )
    return f"Put cuda.syncthreads() between them ({lines}), or use cuda.atomic."


def first_lane(mask: Mask) -> tuple[int, int]:
    """Block (within the batch) and lane of the first active lane."""
    block, lane = np.unravel_index(int(np.argmax(mask.full)), mask.shape)
    return int(block), int(lane)


def n_lanes(mask: Mask) -> int:
    return int(np.count_nonzero(mask.full))


def _ascending(numbers: np.ndarray) -> bool:
    return bool((np.diff(numbers) > 0).all())
