"""The audit: every claim of the four articles that this course grew from, and whether it holds.

    claims.find("CA-10").verdict           # computed when asked
    claims.listing(article="A")            # for a page: one entry each
    claims.counts()                        # how many are right, imprecise, wrong, ..

A claim is a function in one of the modules here, cut by idea. The decorator says which claim it is, the slug
of the page that treats it (`section=` may add a label there), and the verdict that we expect; the docstring
is the claim in our words; the body is the check:

    @claim("CA-10", "padding", IMPRECISE, "padding-claim-multiple")
    def ca_10(trial: Trial) -> str:
        '''A row width that is no multiple of 32 frees columns from conflicts.'''
        trial.stated("width 33", says=1, found=column(33))
        degrees = {width: trial.wider(f"width {width}", 1, column(width)) for width in (34, 36)}
        return f"Only odd widths are free: width 36 still needs {degrees[36]} wavefronts."

It runs the memory model, traces a kernel, or reads a record of the H200 (`evidence` has these in one line),
and writes down each case with what the claim says and what was found. The verdict follows by one rule,
`claim.judge`: a case that the claim names itself (`stated`) fails: wrong; only a case that its words cover
too (`wider`) fails: imprecise; a case was measured on one machine (`here`): depends on the machine; nobody
outside can check it (`private=` says why): not checkable; else right. The sentence given back says why, with
the numbers that were found. Where nothing can be run a document decides: `source=` names it (`documents`).
A `source` is also the name of a record (`"E-04"`), or a `Run`, such as a traced kernel.

To add a claim, write its function; nothing else lists it. `tests/test_claims.py` compares the verdicts.
"""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from lanewise.claims.claim import (
    Claim,
    Document,
    Finding,
    InvalidClaim,
    Run,
    Trial,
    Verdict,
    Weight,
    about,
    at_least,
    at_most,
    claim,
    judge,
)
from lanewise.claims.listing import Listing, count_table, findings_table
from lanewise.display import Table

__all__ = [
    "Claim",
    "Document",
    "Finding",
    "InvalidClaim",
    "Listing",
    "Run",
    "Trial",
    "Verdict",
    "Weight",
    "about",
    "all_claims",
    "at_least",
    "at_most",
    "because",
    "claim",
    "counts",
    "find",
    "findings_table",
    "judge",
    "listing",
    "select",
]

_NO_CLAIMS = ("claim", "documents", "evidence", "listing")


@cache
def all_claims() -> tuple[Claim, ...]:
    """Every claim, by id."""
    return tuple(sorted(_written_down(), key=lambda each: each.id))


def _written_down() -> Iterator[Claim]:
    for module in iter_modules(__path__):
        if module.name not in _NO_CLAIMS:
            contents = vars(import_module(f"{__name__}.{module.name}")).values()
            yield from (value for value in contents if isinstance(value, Claim))


def find(id: str) -> Claim:
    """One claim. Raises `InvalidClaim` if there is none of this name.

    >>> find("CA-10").verdict
    <Verdict.IMPRECISE: 'imprecise'>
    """
    for each in all_claims():
        if each.id == id:
            return each
    raise InvalidClaim(f"{id!r} is no claim. There are {len(all_claims())}, such as {all_claims()[0].id}.")


def select(
    article: str | None = None, topic: str | None = None, verdict: Verdict | None = None
) -> tuple[Claim, ...]:
    """The claims of an article (`"A"`), of a page (`"padding"`), with a verdict; of all by default."""
    return tuple(
        each
        for each in all_claims()
        if article in (None, each.article)
        and topic in (None, each.topic)
        and (verdict is None or each.verdict is verdict)
    )


def listing(article: str | None = None, topic: str | None = None, verdict: Verdict | None = None) -> Listing:
    """The same as `select`, to be shown on a page."""
    return Listing(select(article, topic, verdict))


def because(*ids: str) -> str:
    """The reasons of claims as a paragraph, each with its verdict: what a page says where it cites them."""
    return "\n\n".join(f"*{each.id}, {each.verdict}.* {each.why}" for each in map(find, ids))


def counts(by: str = "article") -> Table:
    """A table of how many claims have which verdict, by `"article"` or by `"topic"`."""
    return count_table(all_claims(), by)
