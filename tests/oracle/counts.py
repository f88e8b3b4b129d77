"""From accesses of threads to accesses of warps, and to counts per source line: naively, one at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from lanewise.access import WarpAccess
from lanewise.memory import global_cost, shared_cost
from tests.oracle.launch import OracleRun
from tests.oracle.record import Access, Moment

Place = tuple[int, str, str, int]
"""Source line, space, op and bytes per lane."""


@dataclass(frozen=True)
class LineCount:
    """Totals of all warp accesses of one kind on one source line; atomic operations are only counted as requests."""

    requests: int = 0
    wavefronts: int = 0
    ideal: int = 0
    sectors: int = 0

    def __add__(self, other: LineCount) -> LineCount:
        return LineCount(
            self.requests + other.requests,
            self.wavefronts + other.wavefronts,
            self.ideal + other.ideal,
            self.sectors + other.sectors,
        )


def warp_accesses(run: OracleRun) -> Iterator[tuple[int, str, WarpAccess]]:
    """Each warp access with its source line and op; lanes that stand at the same moment access together."""
    groups: dict[tuple[tuple[int, int, int], int, Moment, str, str, int, int], dict[int, int]] = defaultdict(
        dict
    )
    for access in run.accesses:
        key = (
            access.block,
            access.thread // 32,
            access.moment,
            access.space,
            access.op,
            access.n_bytes,
            access.part,
        )
        groups[key][access.thread % 32] = access.address
    for (_, _, moment, space, op, n_bytes, _), by_lane in groups.items():
        yield moment.path[-1][0], op, _warp_access(space, op, n_bytes, by_lane)


def count_by_line(run: OracleRun) -> dict[Place, LineCount]:
    """Count every warp access by itself and add up per line, space, op and width."""
    totals: dict[Place, LineCount] = defaultdict(LineCount)
    for line, op, access in warp_accesses(run):
        space, width = access.instruction.split(".")[1:]
        totals[line, space, op, int(width[1:]) // 8] += _count(op, access)
    return dict(totals)


@cache
def _count(op: str, access: WarpAccess) -> LineCount:
    if op == "atomic":
        return LineCount(requests=1)
    if ".shared." in access.instruction:
        cost = shared_cost(access)
        return LineCount(1, cost.wavefronts, cost.ideal, 0)
    return LineCount(1, 0, 0, global_cost(access).sectors)


def _warp_access(space: str, op: str, n_bytes: int, by_lane: dict[int, int]) -> WarpAccess:
    verb = "ld" if op == "load" else "st"
    mask = sum(1 << lane for lane in by_lane)
    addresses = tuple(by_lane.get(lane, 0) for lane in range(32))
    return WarpAccess(f"{verb}.{space}.b{8 * n_bytes}", addresses, mask)


__all__ = ["Access", "LineCount", "Place", "count_by_line", "warp_accesses"]
