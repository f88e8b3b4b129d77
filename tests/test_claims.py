"""Every claim of the articles is in the audit, and its verdict is the one that its check computes."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from coverage_data import labels_of
from lanewise import claims
from lanewise.claims import Claim, Document, InvalidClaim, Run, Trial, Verdict, about, at_least, judge
from lanewise.claims.evidence import recorded_where, traced
from lanewise.errors import UnknownRecord
from lanewise.records import counter_table, record
from lanewise.results import experiment

BOOK = Path(__file__).resolve().parent.parent / "book"
# The ids of the audit: article A makes 79 claims, and so on; C has no number 52.
IDS = [
    f"C{article}-{n:02}"
    for article, last in {"A": 79, "B": 28, "C": 53, "D": 28}.items()
    for n in range(1, last + 1)
    if (article, n) != ("C", 52)
]
ALL = claims.all_claims()
# Those that arithmetic and documents do not settle: a time or a counter has to.
NEED_A_GPU = {
    f"C{article}-{n:02}"
    for article, numbers in {
        "A": (1, 2, 7, 17, 56, 57, 68, 70, 73, 75),
        "B": (3, 5, 10, 23, 25, 28),
        "C": (1, 6, 15, 29, 31, 34, 41, 43, 44, 47, 48, 49, 50, 53),
        "D": (9, 10, 13, 14, 15, 16, 19, 20, 21, 23, 24, 25),
    }.items()
    for n in numbers
}


def disagreements(audited: Iterable[Claim]) -> list[str]:
    """Claims whose computed verdict is not the declared one, with the findings that say so."""
    return [
        f"{each.id}: declared {each.declared.name}, computed {each.verdict.name}: "
        + "; ".join(map(str, each.findings))
        for each in audited
        if each.verdict is not each.declared
    ]


def test_every_claim_is_there_once() -> None:
    assert [each.id for each in ALL] == IDS


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.id)
def test_the_verdict_is_what_the_check_computes(each: Claim) -> None:
    assert disagreements([each]) == []


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.id)
def test_a_claim_says_something_and_why(each: Claim) -> None:
    assert each.says.endswith((".", "?", '."'))
    assert each.why.endswith((".", ".)"))
    assert len(each.why) < 500
    assert (BOOK / f"{each.topic}.ipynb").is_file()
    for text in (each.says, each.why):
        assert "  " not in text
        assert "\n" not in text


@pytest.mark.parametrize("each", ALL, ids=lambda each: each.id)
def test_a_flipped_verdict_is_noticed(each: Claim) -> None:
    others = [verdict for verdict in Verdict if verdict is not each.declared]
    flipped = [replace(each, declared=verdict) for verdict in others]
    assert len(disagreements(flipped)) == len(others)


def test_a_flipped_finding_changes_the_verdict() -> None:
    """The verdict hangs on what was found: if every stated case held, nothing would be wrong."""
    for each in ALL:
        honest = tuple(replace(finding, says=finding.found) for finding in each.findings)
        assert judge(honest, each.private) not in (Verdict.WRONG, Verdict.IMPRECISE), each.id
        if each.declared is Verdict.OK:
            broken = (replace(each.findings[0], says="something else"), *each.findings[1:])
            assert judge(broken, each.private) is not Verdict.OK, each.id


@pytest.mark.parametrize("each", [each for each in ALL if each.id in NEED_A_GPU], ids=lambda each: each.id)
def test_what_needs_a_gpu_is_decided_by_a_record(each: Claim) -> None:
    assert each.records


def has_rows(source: str) -> bool:
    """Whether an experiment, or another record, has anything recorded."""
    if re.match(r"E-\d\d", source):
        run = experiment("h200", source)
        return bool(run.times or run.counters)
    try:
        return bool(counter_table("h200", source).launches)
    except UnknownRecord:
        return any(record("h200", source).tables.values())


def test_a_record_that_decides_has_rows() -> None:
    named = {source for each in ALL for source in each.records}
    assert "E-05" in named
    assert [source for source in sorted(named) if not has_rows(source)] == []


def test_a_case_that_is_not_counted_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidClaim, match=r"E-36 counts no case 'sideways'; it has '.*interleaved"):
        traced("E-36", "sideways")
    with pytest.raises(InvalidClaim, match="it has none"):
        traced("E-99", "tiled")


def test_a_record_that_is_not_there_is_noticed() -> None:
    with pytest.raises(UnknownRecord):
        has_rows("E-99")


def test_documents_are_public_pages() -> None:
    for document in {document for each in ALL for document in each.documents}:
        assert document.url.startswith("https://"), document
        assert document.title
        assert document.section


def test_sections_that_are_named_exist() -> None:
    missing = [
        f"{each.id}: {each.topic} has no label {each.section}"
        for each in ALL
        if each.section and each.section not in labels_of(BOOK / f"{each.topic}.ipynb")
    ]
    assert missing == []


# --- The rule, and what it is made of.


def findings(*cases: tuple[str, object, object]) -> tuple[claims.Finding, ...]:
    trial = Trial()
    for weight, says, found in cases:
        record = {"source": "E-01"} if weight == "here" else {}
        getattr(trial, weight)("case", says, found, **record)
    return tuple(trial.findings)


@pytest.mark.parametrize(
    ("cases", "private", "verdict"),
    [
        ([("stated", 1, 1)], "", Verdict.OK),
        ([("stated", 1, 2)], "", Verdict.WRONG),
        ([("stated", 1, 1), ("wider", 1, 2)], "", Verdict.IMPRECISE),
        ([("stated", 1, 2), ("wider", 1, 2)], "", Verdict.WRONG),
        ([("here", 1, 2)], "", Verdict.HW),
        ([("here", 1, 1), ("stated", 1, 1)], "", Verdict.HW),
        ([("here", 1, 1), ("wider", 1, 2)], "", Verdict.IMPRECISE),
        ([], "a private kernel", Verdict.NC),
        ([("stated", 1, 1)], "a private kernel", Verdict.NC),
        ([("stated", 1, 2)], "a private kernel", Verdict.WRONG),
        ([("stated", at_least(10), 12.5)], "", Verdict.OK),
        ([("stated", at_least(10), 1.2)], "", Verdict.WRONG),
        ([("stated", about(100, 0.05), 104)], "", Verdict.OK),
        ([("stated", about(100, 0.05), 106)], "", Verdict.WRONG),
    ],
)
def test_the_rule(cases: list[tuple[str, object, object]], private: str, verdict: Verdict) -> None:
    assert judge(findings(*cases), private) is verdict


def test_a_check_that_finds_nothing_is_refused() -> None:
    @claims.claim("CA-99", "banks", Verdict.OK)
    def idle(trial: Trial) -> str:
        """Something."""
        return "Nothing was looked at."

    with pytest.raises(InvalidClaim, match="CA-99: its check found nothing"):
        _ = idle.verdict


def test_a_claim_without_words_is_refused() -> None:
    with pytest.raises(InvalidClaim, match="CA-99: its check has no docstring"):
        claims.claim("CA-99", "banks", Verdict.OK)(lambda trial: "")


def test_an_unknown_claim_is_refused() -> None:
    with pytest.raises(InvalidClaim, match="'CA-00' is no claim"):
        claims.find("CA-00")


def test_a_listing_has_one_directive_a_claim_and_says_what_decided() -> None:
    @claims.claim("CA-99", "banks", Verdict.WRONG, section="banks-rule")
    def made(trial: Trial) -> str:
        """Two | three."""
        trial.stated("a|b", 2, 3, Document("PTX ISA", "ldmatrix", "https://docs.nvidia.com/"))
        trial.wider("ratio", at_least(10), 1 / 3, "E-05")
        trial.stated("traced", True, True, Run("trace of naive"))
        return "So it is."

    assert claims.Listing((made,))._repr_markdown_().splitlines() == [
        ":::{claim} CA-99",
        ":verdict: wrong",
        ":article: A",
        ":topic: banks",
        ":section: banks-rule",
        "",
        "Two | three.",
        "",
        "So it is.",
        "",
        "| case | the claim says | we find | holds | decided by |",
        "| :--- | :--- | :--- | :--- | :--- |",
        r"| a\|b | 2 | 3 | no | [PTX ISA, ldmatrix](https://docs.nvidia.com/) |",
        "| ratio | at least 10 | 0.333 | no | record E-05 |",
        "| traced | yes | yes | yes | trace of naive |",
        "",
        ":::",
    ]
    assert repr(claims.Listing((made,))) == "CA-99 wrong"


def test_reasons_are_given_with_their_verdicts() -> None:
    first, second = claims.because("CA-10", "CA-13").split("\n\n")
    assert first.startswith("*CA-10, imprecise.* The degree is gcd(width, 32)")
    assert second.startswith("*CA-13, wrong.*")


def test_the_list_can_be_narrowed() -> None:
    assert {each.article for each in claims.select(article="A")} == {"A"}
    assert {each.topic for each in claims.select(topic="padding")} == {"padding"}
    assert {each.verdict for each in claims.select(verdict=Verdict.OK)} == {Verdict.OK}


def test_a_page_says_where_all_records_are_from() -> None:
    names = [name for each in claims.all_claims() for name in each.records]
    said = recorded_where(names)
    assert said.startswith(f"{len(set(names))} records of an NVIDIA H200, ")


def test_a_bound_is_written_as_the_number_found_beside_it() -> None:
    assert str(claims.about(1800 / 350)) == "about 5.14"
    assert str(claims.at_least(1.5179653825431034)) == "at least 1.52"
    assert str(claims.at_most(16_777_216)) == "at most 16,777,216"
