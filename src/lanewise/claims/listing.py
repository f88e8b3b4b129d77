"""How claims reach a page: one directive each, which the site turns into a list that can be filtered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lanewise.claims.claim import Claim, Document, Finding, Source, Verdict, written
from lanewise.display import Table, table


@dataclass(frozen=True)
class Listing:
    """Claims in order, each with its verdict, the reason, and the findings behind it."""

    claims: tuple[Claim, ...]

    def _repr_markdown_(self) -> str:
        return "\n\n".join(map(_directive, self.claims))

    def __repr__(self) -> str:
        return "\n".join(f"{claim.id} {claim.verdict}" for claim in self.claims)


def _directive(claim: Claim) -> str:
    """MyST text of one claim: what it says, why the verdict, and a table of what was found."""
    options = {
        "verdict": claim.verdict.name.lower(),
        "article": claim.article,
        "topic": claim.topic,
        "section": claim.section,
    }
    return "\n".join(
        [
            f":::{{claim}} {claim.id}",
            *(f":{name}: {value}" for name, value in options.items() if value),
            "",
            claim.says,
            "",
            claim.why,
            "",
            *([_findings(claim.findings), ""] if claim.findings else []),
            ":::",
        ]
    )


def _findings(findings: tuple[Finding, ...]) -> str:
    return findings_table(findings)._repr_markdown_()


def findings_table(findings: Iterable[Finding]) -> Table:
    """What a check found, case by case: what the claim says, what is so, and what decided."""
    return table(
        {
            "case": finding.case,
            "the claim says": written(finding.says),
            "we find": written(finding.found),
            "holds": finding.holds,
            "decided by": _decided_by(finding.source),
        }
        for finding in findings
    )


def _decided_by(source: Source) -> str:
    if isinstance(source, Document):
        return f"[{source}]({source.url})"
    if isinstance(source, str) and source:
        return f"record {source}"
    return str(source) or "model"


def count_table(claims: Iterable[Claim], by: str = "article") -> Table:
    """How many claims have which verdict: one row for each article, or for each topic with `by="topic"`."""
    chosen = list(claims)
    groups = sorted({getattr(claim, by) for claim in chosen})
    rows = [(group, [claim for claim in chosen if getattr(claim, by) == group]) for group in groups]
    return table(
        {
            by: group.replace("_", " "),
            **{str(verdict): sum(claim.verdict is verdict for claim in members) for verdict in Verdict},
            "all": len(members),
        }
        for group, members in [*rows, ("all", chosen)]
    )
