"""`Verdict`: what a check says about one answer. It shows itself in a notebook and counts for nbgrader."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

from lanewise.access import WarpAccess
from lanewise.text import count

# unfinished: nothing was judged, or not all of it; refused: the tracer does not read this construct;
# endless: the kernel ran into the tracer's limits; faulty: it cannot be run at all.
STATES = ("passed", "not yet", "unfinished", "refused", "endless", "faulty")
HEADS = {
    "passed": "Passed.",
    "not yet": "Not yet.",
    "unfinished": "Unfinished.",
    "refused": "This cannot be read.",
    "endless": "This does not end.",
    "faulty": "This cannot be run.",
}


@dataclass(frozen=True)
class Judged:
    """One goal or question: what was earned of its points, and the sentence that says why."""

    name: str
    points: float
    earned: float
    sentence: str
    access: WarpAccess | None = None

    @property
    def holds(self) -> bool:
        """Whether all points were earned."""
        return self.earned >= self.points


@dataclass(frozen=True)
class Verdict:
    """The verdict on one task: its state (one of `STATES`), each goal, and what else is worth saying.

    `rows` compare costs before and after as {header: value}; `notes` are sentences in Markdown-free text;
    `access` is the warp access to draw.
    """

    task: str
    state: str
    judged: tuple[Judged, ...]
    rows: tuple[dict[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    access: WarpAccess | None = field(default=None, repr=False)

    @property
    def points(self) -> float:
        """Points earned."""
        return sum(one.earned for one in self.judged)

    @property
    def max_points(self) -> float:
        """Points that the task is worth."""
        return sum(one.points for one in self.judged)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Why: the sentence of each goal that is not reached, or of all if all are."""
        missed = tuple(one.sentence for one in self.judged if not one.holds)
        return missed or tuple(one.sentence for one in self.judged)

    @property
    def head(self) -> str:
        """The verdict in two words; a right result with a wrong pattern says so."""
        result = next((one for one in self.judged if one.name == RESULT), None)
        if self.state == "not yet" and result is not None and result.holds:
            return "Right result, wrong pattern."
        return HEADS[self.state]

    @property
    def score(self) -> str:
        """Points as they are said."""
        return f"{self.points:g} of {count(int(self.max_points), 'point')}"

    def __bool__(self) -> bool:
        return self.state == "passed"

    def __str__(self) -> str:
        lines = [f"{self.head} {self.task}: {self.score}."]
        lines += [f"  {'+' if one.holds else '-'} {one.sentence}" for one in self.judged if one.sentence]
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<Verdict on {self.task}: {self.state}, {self.score}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """HTML for people; as plain text the points alone, which nbgrader reads as partial credit."""
        return {"text/html": self.html(), "text/plain": f"{self.points:g}"}

    def html(self) -> str:
        """The verdict as a piece of HTML that needs no style sheet."""
        parts = [f"<p><strong>{escape(self.head)}</strong> {escape(self.task)}: {self.score}.</p>"]
        items = "".join(
            f"<li>{'✓' if one.holds else '✗'} {escape(one.sentence)} ({one.earned:g}/{one.points:g})</li>"
            for one in self.judged
            if one.sentence
        )
        if items:
            parts.append(f"<ul style='list-style: none'>{items}</ul>")
        if self.rows:
            parts.append(_html_table(self.rows))
        parts += [f"<p>{escape(note)}</p>" for note in self.notes]
        return f'<div class="lanewise-verdict">{"".join(parts)}</div>'


RESULT = "result"


def _html_table(rows: tuple[dict[str, Any], ...]) -> str:
    head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(value))}</td>" for value in row.values()) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
