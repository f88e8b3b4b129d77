"""What can go wrong in a kernel, as data: one `Hazard` per pair of source lines, with the first case and a
count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

Coordinates: TypeAlias = "tuple[int, int, int]"
Severity = Literal["error", "lock_step", "benign"]

KINDS = (
    "out_of_bounds",
    "misaligned",
    "uninitialized_read",
    "shared_race",
    "global_race",
    "divergent_barrier",
    "divergent_warp_op",
    "async_not_waited",
)

_COUNTED = {
    "shared_race": "conflict",
    "global_race": "conflict",
    "divergent_barrier": "block",
    "divergent_warp_op": "call",
}


@dataclass(frozen=True)
class Hazard:
    """One fault of a kernel, with the first place where it shows.

    `kind` is one of `KINDS`; `line` is the source line, `other_line` the line of the earlier access of a race
    (the same line if one instruction collides with itself). `block` and `thread` are `(x, y, z)`;
    `other_thread` and `other_block` belong to the earlier access. `element` names array and index. `count`
    says how often the fault was found, in the unit that `counted` names: for a race, conflicts, each an
    access of one lane with one earlier access. Of the earlier accesses to an element only the last write and
    a few reads and atomics (of another lane, warp and block) are remembered, so there may be more conflicts
    than accesses and fewer than pairs of threads. A barrier counts blocks that do not arrive in full, and
    every other kind counts accesses or calls, one for each lane that is at fault. `severity` is "error";
    "lock_step" where the lanes of one warp communicate without `syncwarp`, which works only as long as they
    happen to run together; or "benign" where two threads write the same value.
    """

    kind: str
    line: int
    message: str
    block: Coordinates
    thread: Coordinates
    severity: Severity = "error"
    other_line: int | None = None
    other_block: Coordinates | None = None
    other_thread: Coordinates | None = None
    element: str = ""
    count: int = 1

    def __str__(self) -> str:
        return self.message

    @property
    def counted(self) -> str:
        """What `count` counts, as a noun in the singular."""
        return _COUNTED.get(self.kind, "access")


Key: TypeAlias = "tuple[str, str, int, int | None, str]"


class HazardLog:
    """Collects hazards, one per kind, severity, pair of lines and array; later cases only raise the count."""

    def __init__(self) -> None:
        self._first: dict[Key, Callable[[int], Hazard]] = {}
        self._count: dict[Key, int] = {}

    def add(
        self,
        kind: str,
        line: int,
        build: Callable[[int], Hazard],
        *,
        other_line: int | None = None,
        severity: Severity = "error",
        array: str = "",
        count: int = 1,
    ) -> None:
        """Record `count` cases; `build` makes the hazard of the first one, given the final count."""
        key = (kind, severity, line, other_line, array)
        self._first.setdefault(key, build)
        self._count[key] = self._count.get(key, 0) + count

    def hazards(self) -> list[Hazard]:
        """All hazards, in the order of their lines, faults before lesser severities."""
        order = {"error": 0, "lock_step": 1, "benign": 2}
        keys = sorted(self._first, key=lambda key: (key[2], order[key[1]], KINDS.index(key[0]), key[3] or 0))
        return [self._first[key](self._count[key]) for key in keys]
