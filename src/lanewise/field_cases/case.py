"""A case from the field: what somebody asked in public, and what the model or the tracer answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from lanewise.errors import Error

# What people see before they know the cause; a case has one or more of these.
SYMPTOMS = {
    "padding": "conflicts after padding",
    "wide": "float4 and other wide accesses",
    "counter": "the counter disagrees with the arithmetic",
    "matrix": "ldmatrix and mma",
    "swizzle": "a swizzle that conflicts or loses data",
    "misaligned": "misaligned address",
    "global": "global memory is slow",
    "no-gain": "fixed, and no faster",
    "race": "right by luck: races and barriers",
    "async": "asynchronous copies",
    "types": "numba's types cost time",
    "setup": "Colab or an installation breaks",
    "timing": "times that cannot be right",
    "grading": "a grade that is not fair",
}

Found = TypeVar("Found")


class InvalidCase(Error):
    """A case that says nothing that could be checked, or that there is none of."""


@dataclass(frozen=True)
class Finding:
    """One number of a case: what it should be, by the people who measured or worked it out, and what we find.

    `source` says what decided: "model", "trace", a record's id, or a document.
    """

    what: str
    expected: Any
    found: Any
    source: str

    @property
    def agrees(self) -> bool:
        """Whether we find what should be found."""
        return bool(self.expected == self.found)


@dataclass
class Trial:
    """Where a case writes down what it finds."""

    findings: list[Finding] = field(default_factory=list)

    def compare(self, what: str, expected: Found, found: Any, source: str = "model") -> Found:
        """Write down one number; gives back what was found."""
        self.findings.append(Finding(what, expected, found, source))
        return found


@dataclass(frozen=True)
class Answer:
    """`says`: what is so, in a sentence or two with the numbers found; `do`: what to do about it."""

    says: str
    do: str


@dataclass(frozen=True)
class Case:
    """One case. `asked` is the question in our words; `answer` and `findings` are computed when asked for.

    `topic` is the slug of the chapter that explains it, `threads` are the addresses of the discussions. A
    case that neither model nor trace can decide (a driver that does not match, say) is a `procedure`: its
    findings are about what `lanewise` says and does then.
    """

    id: str
    title: str
    topic: str
    symptoms: tuple[str, ...]
    threads: tuple[str, ...]
    asked: str
    procedure: bool
    run: Callable[[Trial], Answer] = field(repr=False)

    @cached_property
    def _outcome(self) -> tuple[tuple[Finding, ...], Answer]:
        trial = Trial()
        answer = self.run(trial)
        if not trial.findings:
            raise InvalidCase(f"{self.id} compares nothing. Compare one number or more with trial.compare.")
        return tuple(trial.findings), answer

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was compared."""
        return self._outcome[0]

    @property
    def answer(self) -> Answer:
        """What is so, and what to do."""
        return self._outcome[1]

    @property
    def is_decided(self) -> bool:
        """Whether we find in every comparison what should be found."""
        return all(finding.agrees for finding in self.findings)


def case(
    id: str, title: str, topic: str, *symptoms: str, threads: tuple[str, ...], procedure: bool = False
) -> Callable[[Callable[[Trial], Answer]], Case]:
    """Turn a function into a case; its docstring is what was asked, in our words.

    Raises `InvalidCase` for a symptom that is none of `SYMPTOMS`, or where something is missing.
    """
    if unknown := set(symptoms) - set(SYMPTOMS):
        raise InvalidCase(f"{id}: unknown symptoms {sorted(unknown)}; they are {', '.join(SYMPTOMS)}.")
    if not symptoms or not threads:
        raise InvalidCase(f"{id}: give one symptom or more, and the address of a public thread.")

    def made(run: Callable[[Trial], Answer]) -> Case:
        if not run.__doc__:
            raise InvalidCase(f"{id}: its docstring says what was asked; it has none.")
        asked = " ".join(run.__doc__.split())
        return Case(id, title, topic, symptoms, threads, asked, procedure, run)

    return made
