"""Goals for kernels whose tiles come by asynchronous copies: hazards, overlap, requests, barriers.

A copy that nobody waits for overlaps with anything, and a kernel without barriers has few of them. So overlap
and barriers count only where there is no hazard.
"""

from __future__ import annotations

from collections.abc import Callable

from lanewise.checks import Check
from lanewise.labs.goals import Goal
from lanewise.labs.runs import Run
from lanewise.text import count


def copies_without_hazards(points: int) -> Goal:
    """No hazard, in a kernel whose tiles come by asynchronous copies."""

    def claim(check: Check, run: Run) -> Check:
        if not check.trace.shared.async_copy.requests:
            return check.claim("copies", False, "The kernel starts no asynchronous copy.")
        return check.no_hazards()

    return Goal("no hazards", points, claim)


def under_way(points: int, least: Callable[[Run], int]) -> Goal:
    """While a block reads its tile, `least(run)` bytes of later copies are under way."""

    def claim(check: Check, run: Run) -> Check:
        found, wanted = check.trace.bytes_under_way, least(run)
        if _has_hazard(check):
            return check.claim("overlap", False, "Overlap counts once there is no hazard.")
        sentence = f"While a block reads a tile, {found:,} bytes of later tiles are under way."
        if found < wanted:
            sentence = (
                f"While a block reads a tile, at most {found:,} bytes of later tiles are under way; it could"
                f" be {wanted:,}. Ask for them before you work, and wait for no more than the tile you read."
            )
        return check.claim("overlap", found >= wanted, sentence)

    return Goal("overlap", points, claim)


def copy_requests(points: int, most: Callable[[Run], int]) -> Goal:
    """The warps make at most `most(run)` requests for asynchronous copies, and at least one."""

    def claim(check: Check, run: Run) -> Check:
        found, limit = check.trace.shared.async_copy.requests, most(run)
        return check.claim(
            "copies",
            0 < found <= limit or limit == 0,
            f"The warps make {count(found, 'request')} for asynchronous copies; {limit:,} are enough if every"
            " lane copies 16 bytes.",
        )

    return Goal("wide copies", points, claim)


def barriers(points: int, most: Callable[[Run], int]) -> Goal:
    """The blocks of a run pass at most `most(run)` block barriers together."""

    def claim(check: Check, run: Run) -> Check:
        if _has_hazard(check):
            return check.claim("barriers", False, "Barriers are counted once there is no hazard.")
        found, limit = check.trace.n_barriers, most(run)
        return check.claim(
            "barriers",
            found <= limit,
            f"The blocks pass {count(found, 'barrier')} in all; {limit:,} are enough.",
        )

    return Goal("barriers", points, claim)


def _has_hazard(check: Check) -> bool:
    return any(hazard.severity != "benign" for hazard in check.trace.hazards)
