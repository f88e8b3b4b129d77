"""Shadow memory: who touched each granule of memory last, and which accesses nothing orders.

A granule is the largest run of bytes that no access of the kernel cuts, so two threads on different bytes of
one word never look like a race. Each granule keeps *stamps*, 64-bit words `time << 32 | thread`; times number
the accesses in program order, 0 means never. What synchronisation orders is told by the time of the last
barrier: an earlier stamp of the same block (or, for `syncwarp`, of the same warp; for a grid barrier, of
anyone) is ordered before everything now.

Two accesses race if different threads make them, nothing orders them, one is a write, and not both are
atomic. Reads agree with reads and atomics with atomics, so a granule must remember of each kind one member of
every group that a later writer might belong to or not: one thread, one of another lane of its warp, one of
another warp, one of another block. With these four, a race with *some* earlier access is found exactly when
there is one. Writes need only the last one: an earlier write is ordered before it, or was reported against
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from lanewise.machine import WARP_LANES

_TIME = 32
_WHO = np.int64((1 << _TIME) - 1)
_WARP_SHIFT = np.int64(WARP_LANES.bit_length() - 1)


@dataclass(frozen=True)
class Meeting:
    """A barrier of part of a warp: `joined` says for `(b, threads)` lanes whether they took part."""

    time: int
    joined: np.ndarray


@dataclass
class Now:
    """One access: its time, and for each lane the thread number and the times since which nothing is ordered.

    `who` numbers threads so that `who >> 5` is the warp and `who // threads` the block. `since_block` and
    `since_warp` are scalars, or one number per lane; `since_warp` is never before `since_block`.
    `one_block` says that the memory belongs to one block, so that every earlier access is of the lane's own
    block. `meetings` are the barriers of parts of warps since the last block barrier; `rows` is each lane's
    block there.
    """

    time: int
    who: np.ndarray
    threads: int
    since_grid: int
    since_block: np.ndarray | int
    since_warp: np.ndarray | int
    one_block: bool = False
    meetings: tuple[Meeting, ...] = ()
    rows: np.ndarray | int = 0

    def stamps(self) -> np.ndarray:
        """The stamp of each lane."""
        return self.who | np.int64(self.time << _TIME)

    @property
    def horizon(self) -> np.int64:
        """The last stamp that is surely ordered before now, whoever made it."""
        since = self.since_block if self.one_block and np.ndim(self.since_block) == 0 else self.since_grid
        return np.int64((int(since) << _TIME) | _WHO) if since else np.int64(0)

    def unordered(self, stamps: np.ndarray) -> np.ndarray | None:
        """Which lanes' accesses nothing orders after the stamped one; None if there is none."""
        candidates = stamps > self.horizon
        if not candidates.any():
            return None
        earlier = stamps & _WHO
        candidates &= earlier != self.who
        if not candidates.any():
            return None
        time = stamps >> _TIME
        ordered = time <= self.since_block
        if not self.one_block:
            ordered &= self.same_block(earlier)
        same_warp = earlier >> _WARP_SHIFT == self.who >> _WARP_SHIFT
        ordered |= same_warp & (time <= self.since_warp)
        for meeting in self.meetings:
            ordered |= same_warp & (time <= meeting.time) & self._both_joined(meeting, earlier)
        candidates &= ~ordered
        return candidates if candidates.any() else None

    def _both_joined(self, meeting: Meeting, earlier: np.ndarray) -> np.ndarray:
        """Which lanes took part in a meeting together with the earlier thread of their warp."""
        rows = self.rows if len(meeting.joined) > 1 else 0
        return meeting.joined[rows, self.who % self.threads] & meeting.joined[rows, earlier % self.threads]

    def same_block(self, earlier: np.ndarray) -> np.ndarray:
        """Which stamped threads are of the lane's own block."""
        if self.one_block:
            return np.ones(earlier.shape, bool)
        return earlier // self.threads == self.who // self.threads

    def same_warp_of(self, earlier: np.ndarray, lanes: np.ndarray) -> np.ndarray:
        """The same for some of the lanes."""
        return earlier >> _WARP_SHIFT == self.who[lanes] >> _WARP_SHIFT

    def same_warp(self, earlier: np.ndarray) -> np.ndarray:
        """Which stamped threads are of the lane's own warp."""
        return earlier >> _WARP_SHIFT == self.who >> _WARP_SHIFT


Report: TypeAlias = "Callable[[np.ndarray, np.ndarray], None]"
"""Called with the earlier stamps and the bools of the lanes that race with them."""


class Crowd:
    """The accesses of one agreeing kind (reads, or atomics) to each granule: up to four representatives."""

    SLOTS = ("newest", "other_lane", "other_warp", "other_block")

    def __init__(self, n_granules: int) -> None:
        self.n_granules = n_granules
        self.slots: dict[str, np.ndarray] = {}

    def check(self, granule: np.ndarray, now: Now, report: Report) -> None:
        """Report lanes that race with any of them."""
        for slot in self.slots.values():
            stamps = slot[granule]
            racing = now.unordered(stamps)
            if racing is not None:
                report(stamps, racing)

    def enter(self, granule: np.ndarray, now: Now) -> None:
        """Add the lanes' own accesses."""
        newest = self._slot("newest")
        stamps = newest[granule]
        mine = now.stamps()
        if (stamps <= now.horizon).all():
            newest[granule] = mine
        else:
            time, earlier = stamps >> _TIME, stamps & _WHO
            stale = (time <= now.since_grid) | (now.same_block(earlier) & (time <= now.since_block))
            stale |= now.same_warp(earlier) & (time <= now.since_warp)
            newest[granule[stale]] = mine[stale]
        earlier = newest[granule] & _WHO
        others = earlier != now.who
        if not others.any():
            return
        same_block, same_warp = now.same_block(earlier), now.same_warp(earlier)
        self._put("other_lane", others & same_warp, granule, mine)
        self._put("other_warp", same_block & ~same_warp, granule, mine)
        self._put("other_block", ~same_block, granule, mine)

    def _put(self, name: str, lanes: np.ndarray, granule: np.ndarray, mine: np.ndarray) -> None:
        if lanes.any():
            self._slot(name)[granule[lanes]] = mine[lanes]

    def _slot(self, name: str) -> np.ndarray:
        if name not in self.slots:
            self.slots[name] = np.zeros(self.n_granules, np.int64)
        return self.slots[name]

    def repeat(self, times: int) -> None:
        """Give each of `times` blocks its own copy."""
        self.slots = {name: np.tile(slot, times) for name, slot in self.slots.items()}
        self.n_granules *= times


class Shadow:
    """The stamps of all granules of one storage. Only what the kernel's kinds of access need is kept."""

    def __init__(self, n_granules: int, kinds: set[str]) -> None:
        self.n_granules = n_granules
        self.written = np.zeros(n_granules, np.int64)
        self.reads = Crowd(n_granules) if "read" in kinds and len(kinds) > 1 else None
        self.atomics = Crowd(n_granules) if "atomic" in kinds and len(kinds) > 1 else None
        self.touched_by_atomics = np.zeros(n_granules if "atomic" in kinds else 0, bool)

    def repeat(self, times: int) -> None:
        """Give each of `times` blocks its own copy of the granules."""
        self.n_granules *= times
        self.written = np.tile(self.written, times)
        self.touched_by_atomics = np.tile(self.touched_by_atomics, times)
        for crowd in (self.reads, self.atomics):
            if crowd is not None:
                crowd.repeat(times)

    def unwritten(self, granule: np.ndarray) -> np.ndarray | None:
        """Which lanes look at a granule that nobody has written; None if none does."""
        missing = self.written[granule] == 0
        if len(self.touched_by_atomics):
            missing &= ~self.touched_by_atomics[granule]
        return missing if missing.any() else None

    def read(self, granule: np.ndarray, now: Now, report: Report) -> None:
        """Check reads against writes and atomics, and remember them."""
        self._check_written(granule, now, report)
        if self.atomics is not None:
            self.atomics.check(granule, now, report)
        if self.reads is not None:
            self.reads.enter(granule, now)

    def atomic(self, granule: np.ndarray, now: Now, report: Report) -> None:
        """Check atomics against plain reads and writes, and remember them."""
        self._check_written(granule, now, report)
        if self.reads is not None:
            self.reads.check(granule, now, report)
        if self.atomics is not None:
            self.atomics.enter(granule, now)
        self.touched_by_atomics[granule] = True

    def overwrite(self, granule: np.ndarray, now: Now, report: Report) -> None:
        """Check writes against everything before them, and forget them."""
        self._check_written(granule, now, report)
        for crowd in (self.reads, self.atomics):
            if crowd is not None:
                crowd.check(granule, now, report)

    def write(self, granule: np.ndarray, now: Now, report: Report) -> None:
        """Check writes against everything, each other included, and remember them."""
        self.overwrite(granule, now, report)
        mine = now.stamps()
        self.written[granule] = mine
        kept = self.written[granule]
        lost = kept != mine
        if lost.any():
            report(kept, lost)

    def _check_written(self, granule: np.ndarray, now: Now, report: Report) -> None:
        stamps = self.written[granule]
        racing = now.unordered(stamps)
        if racing is not None:
            report(stamps, racing)


def time_of(stamps: np.ndarray) -> np.ndarray:
    """When stamped accesses happened."""
    return stamps >> _TIME


def thread_of(stamps: np.ndarray) -> np.ndarray:
    """Which threads made them."""
    return stamps & _WHO
