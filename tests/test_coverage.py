"""Every item of the four articles is treated somewhere, and every row of book/coverage leads to a section."""

from pathlib import Path

import pytest

import coverage_data
from tools.notebooks import ROOT

BOOK = ROOT / "book"
ARTICLE_ITEMS = {"A": 51, "B": 39, "C": 36, "D": 25}
PAGE = (
    "# Title\n\n(trial-words)=\n## Words\n\nText with (trial-loose)= in it.\n\n(trial-plain)=\nNo heading.\n"
)


def test_tables_are_well_formed() -> None:
    assert coverage_data.malformed(BOOK) == []


def test_items_are_numbered_without_gaps() -> None:
    assert coverage_data.out_of_order(BOOK) == []
    items = coverage_data.read_items(BOOK)
    assert {article: sum(item.article == article for item in items) for article in "ABCD"} == ARTICLE_ITEMS


def test_every_row_leads_to_a_section_of_its_page() -> None:
    assert coverage_data.leading_nowhere(BOOK) == []


def test_every_item_is_treated() -> None:
    assert [f"{item.item}: {item.what}" for item in coverage_data.untreated(BOOK)] == []


def test_every_topic_is_a_page_or_the_case_studies() -> None:
    topics = {item.topic for item in coverage_data.read_items(BOOK)}
    known = {"introduction", "banks", "padding", "swizzle", "tensor_cores", "coalescing", "async_pipelines"}
    assert topics == known | {"profiling", "case studies"}


# Each check on tables that break it, and on tables that keep it.


@pytest.fixture
def book(tmp_path: Path) -> Path:
    """A book of one page, which treats the one item of article A."""
    (tmp_path / "coverage").mkdir()
    (tmp_path / "trial.md").write_text(PAGE)
    write(tmp_path, "items", "item,article,topic,what", "A-01,A,banks,words")
    write(tmp_path, "trial", "item,section", "A-01,trial-words")
    return tmp_path


def write(book: Path, name: str, *lines: str) -> None:
    (book / "coverage" / f"{name}.csv").write_text("\n".join(lines) + "\n")


def test_good_tables_pass(book: Path) -> None:
    for check in (
        coverage_data.malformed,
        coverage_data.out_of_order,
        coverage_data.leading_nowhere,
        coverage_data.untreated,
    ):
        assert check(book) == []


@pytest.mark.parametrize(
    ("name", "lines", "complaint"),
    [
        ("trial", ["item,label", "A-01,trial-words"], "has the columns ['item', 'label']"),
        ("trial", ["item,section", "A-01"], "['A-01'] has an empty or a wrong number of cells"),
        ("trial", ["item,section", "A-01,"], "has an empty or a wrong number of cells"),
        ("trial", ["item,section", "A-01, trial-words"], "has an empty or a wrong number of cells"),
        ("trial", ["item,section", *["A-01,trial-words"] * 2], "trial.csv has ('A-01', 'trial-words') twice"),
        ("trial", [], "trial.csv has the columns []"),
        ("items", ["item,article,topic,what", *["A-01,A,banks,words"] * 2], "items.csv has A-01 twice"),
        ("items", ["item,article,topic,what", "E-01,E,banks,words"], "E-01: not an item of article E"),
        ("items", ["item,article,topic,what", "A-01,B,banks,words"], "A-01: not an item of article B"),
        ("items", ["item,article,topic,what", "A-1,A,banks,words"], "A-1: not an item of article A"),
        ("items", ["item,article,topic,what", f"A-01,A,banks,{'x' * 111}"], "A-01: 111 characters"),
    ],
)
def test_a_malformed_table_is_found(book: Path, name: str, lines: list[str], complaint: str) -> None:
    write(book, name, *lines)
    assert complaint in "\n".join(coverage_data.malformed(book))


def test_a_gap_is_found(book: Path) -> None:
    write(book, "items", "item,article,topic,what", "A-01,A,banks,words", "A-03,A,banks,more")
    assert coverage_data.out_of_order(book) == ["article A: the numbers [1, 3] are not 1, 2, 3, ..."]


@pytest.mark.parametrize("label", ["trial-word", "trial-loose", "trial-plain"])
def test_a_section_that_does_not_exist_is_found(book: Path, label: str) -> None:
    write(book, "trial", "item,section", f"A-01,{label}")
    assert f"trial.md has no label ({label})= before a heading" in "\n".join(
        coverage_data.leading_nowhere(book)
    )


def test_an_unknown_item_and_an_unknown_page_are_found(book: Path) -> None:
    write(book, "trial", "item,section", "A-02,trial-words")
    write(book, "other", "item,section", "A-01,trial-words")
    found = "\n".join(coverage_data.leading_nowhere(book))
    assert "A-02 is no item of items.csv" in found
    assert "about a page that does not exist: other" in found


def test_an_untreated_item_is_found(book: Path) -> None:
    write(book, "trial", "item,section")
    assert [item.item for item in coverage_data.untreated(book)] == ["A-01"]


def test_labels_of_a_notebook_are_found(tmp_path: Path) -> None:
    page = tmp_path / "trial.ipynb"
    page.write_text('{"cells": [{"cell_type": "markdown", "source": ["(a-b)=\\n", "## A"]},'
                    ' {"cell_type": "code", "source": ["(c-d)=\\n", "## C"]}]}')  # fmt: skip
    assert coverage_data.labels_of(page) == ["a-b"]
