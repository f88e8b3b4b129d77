"""Every case from the field is decided as the people who measured it found, and says so in whole sentences."""

from __future__ import annotations

import pytest

from lanewise import field_cases
from lanewise.field_cases import SYMPTOMS, Answer, Case, InvalidCase, Trial, case
from tools.notebooks import ROOT

CASES = field_cases.all_cases()
THREAD = ("https://example.org/thread",)


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.id)
def test_a_case_is_decided(each: Case) -> None:
    wrong = [finding for finding in each.findings if not finding.agrees]
    assert wrong == []


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.id)
def test_a_case_says_what_is_so_and_what_to_do(each: Case) -> None:
    for text in (each.asked, each.answer.says, each.answer.do):
        assert text.rstrip("*`")[-1] in ".?!"
        assert len(text) > 20
    assert each.answer.do[0].isupper()
    assert (ROOT / "book" / f"{each.topic}.ipynb").is_file() or (ROOT / "book" / f"{each.topic}.md").is_file()
    assert all(address.startswith("https://") for address in each.threads)


def test_ids_and_titles_differ() -> None:
    assert len({each.id for each in CASES}) == len(CASES) == len({each.title for each in CASES})


def test_a_case_that_compares_nothing_is_refused() -> None:
    empty = case("X", "Nothing", "banks", "wide", threads=THREAD)(_says_nothing)
    with pytest.raises(InvalidCase, match="X compares nothing"):
        _ = empty.findings


def _says_nothing(trial: Trial) -> Answer:
    """What is asked?"""
    return Answer("Nothing.", "Nothing.")


def test_a_wrong_number_leaves_a_case_undecided() -> None:
    def off_by_one(trial: Trial) -> Answer:
        """What is asked?"""
        assert trial.compare("number", 3, 4) == 4
        return Answer("Nothing.", "Nothing.")

    assert not case("X", "Wrong", "banks", "wide", threads=THREAD)(off_by_one).is_decided


@pytest.mark.parametrize(
    ("symptoms", "threads", "message"),
    [(("ache",), THREAD, "unknown symptoms"), ((), THREAD, "one symptom or more"), (("wide",), (), "thread")],
)
def test_an_incomplete_case_is_refused(
    symptoms: tuple[str, ...], threads: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InvalidCase, match=message):
        case("X", "Title", "banks", *symptoms, threads=threads)


def test_listings_select_by_symptom() -> None:
    for symptom in SYMPTOMS:
        assert all(symptom in each.symptoms for each in field_cases.listing(symptom).cases)
    with pytest.raises(InvalidCase, match="no symptom 'ache'"):
        field_cases.listing("ache")
    assert field_cases.find("C02").id == "C02"
    with pytest.raises(InvalidCase, match="'C99' is no case"):
        field_cases.find("C99")
