"""Verdicts on a trace, for labs and tests: each claim that does not hold is a sentence with line, warp and
lanes.

    verdict = check(t).matches(dst, src.T).shared_wavefronts_per_request(max=1).no_hazards()
    print(verdict)
    verdict.require()

A chain always runs to its end, so a learner sees all that is wrong at once. A lab adds claims of its own with
`claim`, or subclasses `Check`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any, Self

import numpy as np

from lanewise.access import WarpAccess
from lanewise.errors import Error
from lanewise.memory import global_cost, shared_cost
from lanewise.text import count
from lanewise.trace.hazards import KINDS
from lanewise.trace.report import Trace
from lanewise.trace.sites import Site


class CheckFailed(Error):
    """A claim about a kernel does not hold; the message lists the failed claims."""


class InvalidCheck(Error):
    """A check was asked for with arguments that make no claim."""


@dataclass(frozen=True)
class Claim:
    """One claim: its name, whether it holds, the sentence that says why, and the access to draw, if there is
    one."""

    name: str
    holds: bool
    sentence: str
    access: WarpAccess | None = None
    line: int | None = None


class Check:
    """A verdict under construction; true while every claim so far holds."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.claims: list[Claim] = []

    # -- claims ------------------------------------------------------------------------------------

    def claim(
        self, name: str, holds: bool, sentence: str, access: WarpAccess | None = None, line: int | None = None
    ) -> Self:
        """Add a claim of your own; `sentence` says what is so, and if it fails, why and what to do."""
        self.claims.append(Claim(name, bool(holds), sentence, access, line))
        return self

    def matches(self, actual: np.ndarray, expected: Any, rtol: float = 0.0, atol: float = 0.0) -> Self:
        """Claim that an output equals what it should be; NaN equals nothing, so unwritten poison shows."""
        given, wanted = np.asarray(actual), np.asarray(expected)
        if given.shape != wanted.shape:
            return self.claim("result", False, f"Wrong result: shape {given.shape}, expected {wanted.shape}.")
        with np.errstate(invalid="ignore"):
            wrong = ~np.isclose(given, wanted, rtol=rtol, atol=atol) if rtol or atol else given != wanted
        n_wrong = int(np.count_nonzero(wrong))
        if not n_wrong:
            return self.claim("result", True, f"The result is right in all {count(given.size, 'element')}.")
        place = tuple(int(position) for position in np.argwhere(wrong)[0])
        found, want = given[place], wanted[place]
        where = f"[{', '.join(map(str, place))}]" if place else ""
        return self.claim(
            "result",
            False,
            f"Wrong result: {n_wrong:,} of {count(given.size, 'element')} differ; the first is {where}:"
            f" got {found}, expected {want}.",
        )

    def shared_wavefronts_per_request(
        self, max: float = 1, op: str | None = None, line: int | None = None
    ) -> Self:
        """Claim that no warp needs more than `max` wavefronts for one shared-memory load or store."""
        _require_limit("max", max)
        for site in self._sites("shared", op, line):
            if site.worst_wavefronts > max:
                self.claim("shared wavefronts", False, _shared_sentence(site, max), site.example, site.line)
        return self._passed(
            "shared wavefronts", f"Every shared access takes {_amount(max, 'wavefront')} at most."
        )

    def shared_excess(self, max: int = 0, op: str | None = None, line: int | None = None) -> Self:
        """Claim that bank conflicts cost at most `max` wavefronts in all, whatever the width of the
        accesses."""
        _require_limit("max", max)
        sites = self._sites("shared", op, line)
        excess = sum(site.excess for site in sites)
        if excess > max:
            worst = _worst(sites, "excess")
            self.claim(
                "bank conflicts", False, _excess_sentence(worst, excess, max), worst.example, worst.line
            )
        allowed = f", at most {max:,} allowed" if max else ""
        return self._passed(
            "bank conflicts",
            f"Shared memory: {count(excess, 'excess wavefront') if excess else 'no excess wavefronts'}"
            f"{allowed}.",
        )

    def shared_bytes(self, max: int) -> Self:
        """Claim that a block takes at most `max` bytes of shared memory."""
        _require_limit("max", max)
        used = self.trace.shared_bytes
        sentence = f"A block takes {used:,} bytes of shared memory, at most {max:,} allowed."
        return self.claim("shared bytes", used <= max, sentence)

    def global_sectors_per_request(
        self, max: float = 4, op: str | None = None, line: int | None = None
    ) -> Self:
        """Claim that global loads and stores touch at most `max` sectors per request, averaged over a
        site."""
        _require_limit("max", max)
        for site in self._sites("global", op, line):
            if site.requests and site.sectors / site.requests > max:
                self.claim("global sectors", False, _global_sentence(site, max), site.example, site.line)
        return self._passed(
            "global sectors", f"Every global access touches {_amount(max, 'sector')} per request at most."
        )

    def global_efficiency(self, min: float = 0.9, op: str | None = None) -> Self:
        """Claim that at least this fraction, 0 to 1, of the bytes of all touched sectors was asked for."""
        _require_limit("min", min, most=1)
        sites = self._sites("global", op, None)
        moved = sum(site.bytes_moved for site in sites)
        used = sum(site.bytes_requested for site in sites) / moved if moved else 1.0
        if used < min:
            worst = _worst(sites, "bytes_moved")
            self.claim(
                "global efficiency",
                False,
                f"Only {used:.0%} of the bytes moved are used, goal {min:.0%}; most are moved at line"
                f" {worst.line}: {_cost_of(worst)}",
                worst.example,
                worst.line,
            )
        return self._passed("global efficiency", f"{used:.0%} of the bytes moved are used.")

    def no_hazards(self, kinds: Iterable[str] = KINDS, allow_benign: bool = True) -> Self:
        """Claim that the trace is free of hazards; writes of the same value are let pass unless you say
        otherwise."""
        wanted = {kinds} if isinstance(kinds, str) else set(kinds)
        if unknown := wanted - set(KINDS):
            raise InvalidCheck(
                f"no_hazards: unknown kinds {sorted(unknown)}; the kinds are {', '.join(KINDS)}."
            )
        for hazard in self.trace.hazards:
            if hazard.kind in wanted and not (allow_benign and hazard.severity == "benign"):
                self.claim(hazard.kind, False, hazard.message, line=hazard.line)
        return self._passed("hazards", "No hazard was found.", wanted)

    def no_float64(self) -> Self:
        """Claim that no float32 value is silently widened to float64."""
        for line, text in self.trace.warnings:
            if "float64" in text:
                self.claim("float64", False, f"Line {line}: {text}.", line=line)
        return self._passed("float64", "No float32 value is widened to float64.")

    def uses(self, instruction: str) -> Self:
        """Claim that the kernel executes an instruction, such as `ld.shared.b128`."""
        found = {site.instruction for site in self.trace.sites if site.requests}
        sentence = (
            f"The kernel uses {instruction}."
            if instruction in found
            else f"The kernel never uses {instruction}; it uses"
            f" {', '.join(sorted(found)) or 'no memory at all'}."
        )
        return self.claim(f"uses {instruction}", instruction in found, sentence)

    # -- the verdict -------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return all(claim.holds for claim in self.claims)

    @property
    def failures(self) -> list[Claim]:
        """The claims that do not hold."""
        return [claim for claim in self.claims if not claim.holds]

    @property
    def sentences(self) -> list[str]:
        """Why it failed: one sentence for each claim that does not hold."""
        return [claim.sentence for claim in self.failures]

    def require(self) -> Self:
        """Raise `CheckFailed` with all sentences if a claim does not hold."""
        if not self:
            raise CheckFailed(f"{self.trace.kernel}: " + " ".join(self.sentences))
        return self

    def __str__(self) -> str:
        if self:
            return "\n".join(["Passed.", *(f"  {claim.sentence}" for claim in self.claims)])
        result = next((claim.holds for claim in self.claims if claim.name == "result"), None)
        head = "Right result, wrong pattern:" if result else "Not yet:"
        return "\n".join([head, *(f"  {sentence}" for sentence in self.sentences)])

    def __repr__(self) -> str:
        return (
            f"<Check of {self.trace.kernel}: {len(self.failures)} of"
            f" {count(len(self.claims), 'claim')} failed>"
        )

    def _repr_html_(self) -> str:
        head, *lines = str(self).split("\n")
        items = "".join(f"<li>{escape(line.strip())}</li>" for line in lines)
        return f'<div class="lanewise-check"><p><strong>{escape(head)}</strong></p><ul>{items}</ul></div>'

    def _sites(self, space: str, op: str | None, line: int | None) -> list[Site]:
        if op not in (None, "load", "store", "atomic", "async_copy"):
            raise InvalidCheck(
                f"op: got {op!r}; it is 'load', 'store', 'atomic', 'async_copy', or None for loads and"
                " stores."
            )
        ops = ("load", "store") if op is None else (op,)
        chosen = [
            site for site in self.trace.sites if site.space == space and site.op in ops and site.modelled
        ]
        chosen = [site for site in chosen if line is None or site.line == line]
        if line is not None and not chosen:
            raise InvalidCheck(
                f"line {line} has no {space} access of this kind; there are some at"
                f" {_lines(self.trace, space)}."
            )
        return chosen

    def _passed(self, name: str, sentence: str, names: Iterable[str] = ()) -> Self:
        if any(claim.name in (name, *names) and not claim.holds for claim in self.claims):
            return self
        return self.claim(name, True, sentence)


def check(trace: Trace) -> Check:
    """Begin a verdict on a trace.

    Raises `InvalidCheck` if it is not given one.
    """
    if not isinstance(trace, Trace):
        raise InvalidCheck(f"check: got a {type(trace).__name__}; give it the result of lanewise.trace.")
    return Check(trace)


def _require_limit(name: str, limit: Any, most: float = math.inf) -> None:
    if isinstance(limit, bool) or not isinstance(limit, (int, float, np.number)) or not 0 <= limit <= most:
        allowed = "0 or more" if most == math.inf else f"0 to {most:g}, a fraction"
        raise InvalidCheck(f"{name}: got {limit!r}; give a number, {allowed}.")


def _amount(limit: float, noun: str) -> str:
    return f"{limit:g} {noun}{'' if limit == 1 else 's'}"


def _worst(sites: list[Site], name: str) -> Site:
    return max(sites, key=lambda site: getattr(site, name))


def _lines(trace: Trace, space: str) -> str:
    lines = sorted({site.line for site in trace.sites if site.space == space})
    return f"lines {', '.join(map(str, lines))}"


def _who(site: Site) -> str:
    return f"warp {site.example_warp} of block {site.example_block}"


def _shared_sentence(site: Site, goal: float) -> str:
    needs = (
        f"{_who(site).capitalize()} needs {count(site.worst_wavefronts, 'wavefront')} at line"
        f" {site.line}, goal {goal:g}"
    )
    return f"{needs}: {_cost_of(site)}"


def _excess_sentence(worst: Site, excess: int, goal: float) -> str:
    """`worst` is the site with the largest part of the `excess` of all."""
    part = "all" if worst.excess == excess else f"{worst.excess:,}"
    return (
        f"Shared memory: {count(excess, 'excess wavefront')}, goal {goal:,}; {part} of them at line"
        f" {worst.line}, where {_who(worst)} makes its worst request: {_cost_of(worst)}"
    )


def _global_sentence(site: Site, goal: float) -> str:
    mean = site.sectors / site.requests
    return (
        f"Line {site.line} touches {mean:.3g} sectors per request, goal {goal:g}; {_who(site)}:"
        f" {_cost_of(site)}"
    )


def _cost_of(site: Site) -> str:
    """What the example access costs and why, from the memory model."""
    if site.example is None:
        return f"{site.instruction} has no model."
    return str(shared_cost(site.example) if site.space == "shared" else global_cost(site.example))
