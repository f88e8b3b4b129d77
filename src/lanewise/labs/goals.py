"""What a lab claims of each run of a learner's kernel, and how many points that is worth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lanewise.checks import Check
from lanewise.labs.runs import Run
from lanewise.memory import global_cost
from lanewise.trace.sites import Site

Claiming = Callable[[Check, Run], Check]


@dataclass(frozen=True)
class Goal:
    """One goal: `claim` adds claims to the check of a trace; all must hold, on every run, to earn the points.

    A goal counts only where the result is right: a kernel that does nothing has no conflicts either.

    >>> Goal("no bank conflicts", 3, lambda check, run: check.shared_excess(max=0)).points
    3
    """

    name: str
    points: int
    claim: Claiming


def no_conflicts(points: int, op: str | None = None) -> Goal:
    """No excess wavefront in shared memory, by a kernel that uses shared memory."""

    def claim(check: Check, run: Run) -> Check:
        if not check.trace.shared.total.requests:
            return check.claim("bank conflicts", False, "The kernel does not use shared memory.")
        return check.shared_excess(max=0, op=op)

    return Goal("no bank conflicts", points, claim)


def sectors_per_request(points: int, most: float = 4, op: str | None = None) -> Goal:
    """Global accesses touch at most `most` sectors per request."""
    return Goal(
        "coalesced",
        points,
        lambda check, run: check.global_sectors_per_request(max=most, op=op),
    )


def no_hazards(points: int) -> Goal:
    """No race, no read out of bounds, no barrier that some threads miss."""
    return Goal("no hazards", points, lambda check, run: check.no_hazards())


def shared_bytes(points: int, most: int, least: int = 0) -> Goal:
    """The block takes `least` to `most` bytes of shared memory."""

    def claim(check: Check, run: Run) -> Check:
        used = check.trace.shared_bytes
        exact = f"just {most:,}" if least == most else f"{least:,} to {most:,}"
        allowed = exact if least else f"at most {most:,}"
        return check.claim(
            "shared bytes",
            least <= used <= most,
            f"A block takes {used:,} bytes of shared memory; {allowed} are allowed.",
        )

    return Goal("shared memory", points, claim)


def shared_wavefronts(points: int, most: Callable[[Run], int]) -> Goal:
    """All shared loads and stores of a run take at most `most(run)` wavefronts together."""

    def claim(check: Check, run: Run) -> Check:
        space = check.trace.shared
        used = space.load.wavefronts + space.store.wavefronts
        limit = most(run)
        return check.claim(
            "wavefronts",
            used <= limit,
            f"Shared loads and stores take {used:,} wavefronts; at most {limit:,} are allowed.",
        )

    return Goal("wavefronts", points, claim)


def global_sectors(points: int, most: Callable[[Run], int]) -> Goal:
    """All global loads and stores of a run touch at most `most(run)` sectors together."""

    def claim(check: Check, run: Run) -> Check:
        space = check.trace.global_
        used = space.load.sectors + space.store.sectors
        limit = most(run)
        sentence = f"Global loads and stores touch {used:,} sectors; at most {limit:,} are allowed."
        if used <= limit:
            return check.claim("sectors", True, sentence)
        worst = max((*space.load.sites, *space.store.sites), key=lambda site: site.sectors)
        why = f" Most, {worst.sectors:,}, are touched at line {worst.line}"
        why += f": {global_cost(worst.example)}" if worst.example else "."
        return check.claim("sectors", False, sentence + why, worst.example, worst.line)

    return Goal("sectors", points, claim)


def uses(points: int, instruction: str) -> Goal:
    """The kernel executes an instruction, such as `ld.shared.b128`."""
    return Goal(f"uses {instruction}", points, lambda check, run: check.uses(instruction))


def by_matrices(points: int, most: Callable[[Run], int]) -> Goal:
    """All of shared memory is read by `ldmatrix`, in at most `most(run)` instructions."""

    def claim(check: Check, run: Run) -> Check:
        others = [site for site in check.trace.sites if _reads_shared(site) and not _is_matrix(site)]
        used, limit = check.trace.shared.load.requests, most(run)
        if others:
            sentence = f"Line {others[0].line} reads shared memory by {others[0].instruction}; use ldmatrix."
        elif not used:
            sentence = "No ldmatrix reads shared memory (one whose rows are misaligned is not counted)."
        else:
            sentence = f"Fetches by ldmatrix: {used:,}; at most {limit:,} are allowed."
        return check.claim("ldmatrix", not others and 0 < used <= limit, sentence)

    return Goal("by ldmatrix", points, claim)


def free_matrices(points: int) -> Goal:
    """Every matrix that `ldmatrix` fetches takes one wavefront, and there is such a fetch."""

    def claim(check: Check, run: Run) -> Check:
        found = [site for site in check.trace.sites if _reads_shared(site) and _is_matrix(site)]
        if not any(site.requests for site in found):
            return check.claim("matrices", False, "No ldmatrix is counted, so none is free.")
        if any(site.excess for site in found):
            return check.shared_excess(max=0, op="load")
        return check.claim("matrices", True, "Every matrix of 8 x 8 takes one wavefront.")

    return Goal("fetch", points, claim)


def _reads_shared(site: Site) -> bool:
    return site.space == "shared" and site.op == "load" and bool(site.requests)


def _is_matrix(site: Site) -> bool:
    return site.instruction.startswith("ldmatrix")
