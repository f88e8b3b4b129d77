"""`Answers`: a task whose answer is a dictionary of values, predicted or chosen before anything runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.access import WarpAccess
from lanewise.display import Table, table
from lanewise.labs.runs import InvalidLab
from lanewise.labs.verdict import Judged, Verdict
from lanewise.text import count


@dataclass(frozen=True)
class Question:
    """One question: its answer is computed, never typed in.

    `nudge` is said of a wrong answer and gives no number away; `why` is said of a right one. `accepts`, for
    questions with several right answers, returns '' for a right one and else the reason why not; `answer` is
    then one of them. `tolerance` is relative. `access`, if given, is drawn once the answer is right.
    """

    name: str
    text: str
    answer: float | str
    nudge: str
    why: str
    accepts: Callable[[Any], str] | None = None
    tolerance: float = 0.0
    points: int = 1
    access: WarpAccess | None = None

    def wrong(self, given: Any) -> str:
        """Why an answer is not right; '' if it is."""
        if isinstance(self.answer, str):
            if not isinstance(given, str):
                return f"{self.name}: got {given!r}; the answer is a word, in quotes."
            return self._compared(given.strip().lower(), self.answer.lower())
        if isinstance(given, bool) or not isinstance(given, (int, float, np.integer, np.floating)):
            return f"{self.name}: got {given!r}; the answer is a number."
        if not math.isfinite(given):
            return f"{self.name}: got {given!r}; the answer is a finite number."
        return self._compared(given, self.answer)

    def _compared(self, given: Any, answer: float | str) -> str:
        if self.accepts is not None:
            reason = self.accepts(given)
            said = given if isinstance(given, str) else f"{given:g}"
            return f"{self.name}: {said} is not right. {reason}" if reason else ""
        same = given == answer or (
            not isinstance(answer, str) and abs(given - answer) <= self.tolerance * abs(answer)
        )
        return "" if same else f"{self.name}: not {given}. {self.nudge}"


@dataclass(frozen=True)
class Answers:
    """A task that is answered by a dictionary {question: value}; `...` stands for what is still open."""

    name: str
    asked: tuple[Question, ...]

    def __post_init__(self) -> None:
        if len({question.name for question in self.asked}) != len(self.asked) or not self.asked:
            raise InvalidLab(f"Answers {self.name}: give one question or more, each with its own name.")

    @property
    def points(self) -> float:
        """What the task is worth."""
        return sum(question.points for question in self.asked)

    def questions(self) -> Table:
        """The questions as a table."""
        return table({"name": f"`{one.name}`", "question": one.text} for one in self.asked)

    def blank(self) -> str:
        """The cell that a learner fills in."""
        return self._cell({one.name: "..." for one in self.asked})

    def key(self) -> str:
        """The same cell with the right answers."""
        return self._cell({one.name: repr(one.answer) for one in self.asked})

    def _cell(self, values: Mapping[str, str]) -> str:
        lines = (f'    "{name}": {value},' for name, value in values.items())
        return "\n".join([f"{self.name} = {{", *lines, "}"])

    def judge(self, given: Any) -> Verdict:
        """The verdict on a dictionary of answers."""
        if not isinstance(given, Mapping):
            return self._unread(f"{self.name} is {_shown(given)}; it is a dictionary, {{name: answer}}.")
        names = [one.name for one in self.asked]
        if unknown := [key for key in given if key not in names]:
            return self._unread(
                f"{self.name}: no question is called {_shown(unknown[0])}; they are {', '.join(names)}."
            )
        judged = tuple(self._judged(one, given.get(one.name, ...)) for one in self.asked)
        n_open = sum(given.get(name, ...) is ... for name in names)
        state = "unfinished" if n_open else "passed" if all(one.holds for one in judged) else "not yet"
        notes = (f"{count(n_open, 'answer')} still open.",) if n_open else ()
        return Verdict(self.name, state, judged, notes=notes, access=self._picture(judged))

    def _judged(self, question: Question, given: Any) -> Judged:
        if given is ...:
            return Judged(question.name, question.points, 0, "")
        if reason := question.wrong(given):
            return Judged(question.name, question.points, 0, reason)
        return Judged(
            question.name, question.points, question.points, f"{question.name}: right. {question.why}"
        )

    def _picture(self, judged: tuple[Judged, ...]) -> WarpAccess | None:
        """What the last question that was answered right is about."""
        right = [one for one, how in zip(self.asked, judged, strict=True) if how.holds and one.access]
        return right[-1].access if right else None

    def _unread(self, sentence: str) -> Verdict:
        judged = tuple(Judged(one.name, one.points, 0, "") for one in self.asked)
        return Verdict(self.name, "faulty", judged, notes=(sentence,))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"
