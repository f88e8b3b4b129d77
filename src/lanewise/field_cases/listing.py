"""How cases reach a page: one directive each, which the site turns into a list that can be filtered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from lanewise.display import Table, table
from lanewise.field_cases.case import Case, Finding


@dataclass(frozen=True)
class Listing:
    """Cases in order, each with question, answer, what to do, and the numbers behind it."""

    cases: tuple[Case, ...]

    def _repr_markdown_(self) -> str:
        return "\n\n".join(map(_directive, self.cases))

    def __repr__(self) -> str:
        return "\n".join(f"{each.id} {each.title}" for each in self.cases)


def _directive(each: Case) -> str:
    """MyST text of one case."""
    threads = ", ".join(f"[thread]({address})" for address in each.threads)
    lines = [
        f":::{{field-case}} {each.id}",
        f":title: {each.title}",
        f":topic: {each.topic}",
        f":symptoms: {' '.join(each.symptoms)}",
        "",
        f"{each.asked} ({threads})",
        "",
        each.answer.says,
        "",
        f"**Do.** {each.answer.do}",
        "",
        findings_table(each.findings)._repr_markdown_(),
        "",
        ":::",
    ]
    return "\n".join(lines)


def findings_table(findings: Iterable[Finding]) -> Table:
    """What was compared, one row each."""
    return table(
        {
            "number": finding.what,
            "should be": written(finding.expected),
            "we find": written(finding.found),
            "decided by": finding.source,
        }
        for finding in findings
    )


def written(value: Any) -> Any:
    """A value as a table shows it: lists in words, numbers as they are."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, map(written, value)))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {written(inner)}" for key, inner in value.items())
    if isinstance(value, float):
        return f"{value:,.4g}"
    return value
