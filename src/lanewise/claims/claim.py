"""A claim of an article, the findings that test it, and the one rule that turns findings into a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from lanewise.errors import Error


class InvalidClaim(Error):
    """A claim that says nothing that could be tested, or that there is none of."""


class Verdict(Enum):
    """What the findings make of a claim; the value is how a page says it."""

    OK = "right"
    IMPRECISE = "imprecise"
    WRONG = "wrong"
    HW = "depends on the machine"
    NC = "not checkable"

    def __str__(self) -> str:
        return self.value


class Weight(Enum):
    """What a finding says about its claim: a case that the claim names, one that it covers too, a machine."""

    STATED = "stated"
    WIDER = "wider"
    HERE = "here"


@dataclass(frozen=True)
class Document:
    """A public document, and its section, that settles what cannot be run."""

    title: str
    section: str
    url: str

    def __str__(self) -> str:
        return f"{self.title}, {self.section}"


@dataclass(frozen=True)
class Range:
    """What a claim says about a number without naming it: one between two, both included.

    See `at_least`, `at_most` and `about`.
    """

    low: float
    high: float
    words: str

    def admits(self, found: Any) -> bool:
        """Whether `found` is a number of the range; words, such as "misaligned", are not."""
        return not isinstance(found, str) and bool(self.low <= found <= self.high)

    def __str__(self) -> str:
        return self.words


def at_least(low: float) -> Range:
    """Any number from `low` on."""
    return Range(low, float("inf"), f"at least {written(low)}")


def at_most(high: float) -> Range:
    """Any number up to `high`."""
    return Range(float("-inf"), high, f"at most {written(high)}")


def about(value: float, within: float = 0.02) -> Range:
    """A number that differs from `value` by this fraction at most: what rounding leaves."""
    return Range(value - abs(value) * within, value + abs(value) * within, f"about {written(value)}")


@dataclass(frozen=True)
class Run:
    """A computation that is more than the memory model: a kernel that was traced, code that was compiled."""

    what: str

    def __str__(self) -> str:
        return self.what


# What decided a finding: empty for the memory model and arithmetic, the name of a record such as "E-04", a
# run, or a document.
Source: TypeAlias = "str | Run | Document"


@dataclass(frozen=True)
class Finding:
    """One case of a claim: what the claim says about it, and what was found."""

    case: str
    says: Any
    found: Any
    weight: Weight
    source: Source = ""

    @property
    def holds(self) -> bool:
        """Whether the claim is right in this case."""
        if isinstance(self.says, Range):
            return self.says.admits(self.found)
        return bool(self.says == self.found)

    def __str__(self) -> str:
        relation = "as stated" if self.holds else f"stated: {written(self.says)}"
        return f"{self.case}: {written(self.found)} ({relation})"


def written(value: object) -> str:
    """A value as a reader should see it: no more than three digits of a fraction, thousands apart."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple | list):
        return ", ".join(map(written, value))
    return str(value)


T = TypeVar("T")


class Trial:
    """What a check writes its findings into; each method gives back what was found."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def stated(self, case: str, says: Any, found: T, source: Source = "") -> T:
        """A case that the claim names itself: if it fails, the claim is wrong."""
        self.findings.append(Finding(case, says, found, Weight.STATED, source))
        return found

    def wider(self, case: str, says: Any, found: T, source: Source = "") -> T:
        """A case that the claim's words cover too: if it fails, the claim needs a correction."""
        self.findings.append(Finding(case, says, found, Weight.WIDER, source))
        return found

    def here(self, case: str, says: Any, found: T, source: Source) -> T:
        """A measured case that another machine may answer otherwise; `source` is its record."""
        self.findings.append(Finding(case, says, found, Weight.HERE, source))
        return found


def judge(findings: tuple[Finding, ...], private: str) -> Verdict:
    """The rule: the first of these that is so.

    A stated case fails: wrong. A wider case fails: imprecise. It needs what nobody outside has (`private`):
    not checkable. It was measured on one machine and may differ on another: depends on the machine. Else:
    right.
    """
    failed = {finding.weight for finding in findings if not finding.holds}
    if Weight.STATED in failed:
        return Verdict.WRONG
    if Weight.WIDER in failed:
        return Verdict.IMPRECISE
    if private:
        return Verdict.NC
    if any(finding.weight is Weight.HERE for finding in findings):
        return Verdict.HW
    return Verdict.OK


@dataclass(frozen=True)
class Claim:
    """A claim of an article in our words, and the check that decides it.

    `topic` is the slug of the page that treats it, `section` a label on that page or empty. `declared` is the
    verdict that we expect; the tests compare it with the computed one. `private` says why nobody but the
    author can check the claim; empty for all others. `check` fills a `Trial` and gives back a sentence: why.
    """

    id: str
    topic: str
    says: str
    declared: Verdict
    check: Callable[[Trial], str] = field(repr=False)
    section: str = ""
    private: str = ""

    @property
    def article(self) -> str:
        """The letter of the article that makes the claim."""
        return self.id[1]

    @cached_property
    def _outcome(self) -> tuple[tuple[Finding, ...], str]:
        trial = Trial()
        why = self.check(trial)
        if not (trial.findings or self.private):
            raise InvalidClaim(f"{self.id}: its check found nothing. Let it state a case, or say why not.")
        return tuple(trial.findings), why

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the check found; it runs once."""
        return self._outcome[0]

    @property
    def why(self) -> str:
        """One or two sentences that give the reason, with numbers taken from the findings."""
        return self._outcome[1]

    @property
    def verdict(self) -> Verdict:
        """The computed verdict."""
        return judge(self.findings, self.private)

    @property
    def records(self) -> tuple[str, ...]:
        """The experiments and records that its findings come from."""
        named = (finding.source for finding in self.findings)
        return tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name))

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents that its findings come from."""
        named = (finding.source for finding in self.findings)
        return tuple(dict.fromkeys(source for source in named if isinstance(source, Document)))

    def __str__(self) -> str:
        return f"{self.id} ({self.verdict}): {self.says} {self.why}"


def claim(
    id: str, topic: str, verdict: Verdict, section: str = "", private: str = ""
) -> Callable[[Callable[[Trial], str]], Claim]:
    """Make a claim of the function below it: its docstring is what the article says, its body the check."""

    def made(check: Callable[[Trial], str]) -> Claim:
        says = " ".join((check.__doc__ or "").split())
        if not says:
            raise InvalidClaim(f"{id}: its check has no docstring. Write there what the article claims.")
        return Claim(id, topic, says, verdict, check, section, private)

    return made
