"""The page of cases from the field: its filter by mouse, keyboard and address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from lanewise import field_cases
from tests.browser.test_book_in_browser import note_complaints
from tools.site import BUILT, DESKTOP, context

PAGE = "book/field_cases.html"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (BUILT / PAGE).exists(), reason="the page is not built: run make book"),
]

ALL = [each.id for each in field_cases.all_cases()]
WIDE = [each.id for each in field_cases.listing("wide").cases]


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with context(browser, DESKTOP, "light") as profile:
        page = profile.new_page()
        complaints: list[str] = []
        note_complaints(page, address, complaints)
        visit(page, f"{address}/{PAGE}")
        yield page
        unchanged = "304"  # what a second visit is told of files that it has
        assert [one for one in complaints if not one.startswith(unchanged)] == []


def visit(page: Page, address: str) -> None:
    page.goto(address, wait_until="networkidle")
    page.locator(".lw-claims-filter").wait_for()


def shown(page: Page) -> list[str]:
    return page.locator("article.lw-case:visible .lw-claim-id").all_inner_texts()


def test_it_shows_every_case_and_says_how_many(page: Page) -> None:
    assert shown(page) == ALL
    assert page.get_by_role("status").inner_text() == f"{len(ALL)} of {len(ALL)} cases."


def test_a_symptom_narrows_the_list_and_stands_in_the_address(page: Page, address: str) -> None:
    page.get_by_label("Symptom").select_option("wide")
    assert shown(page) == WIDE != ALL
    assert page.url.endswith("?symptom=wide")
    visit(page, page.url)
    assert shown(page) == WIDE
    page.get_by_role("button", name="Show all").click()
    assert shown(page) == ALL


def test_words_narrow_the_list_by_keyboard(page: Page) -> None:
    page.get_by_label("Words").focus()
    page.keyboard.type("6 conflicts")
    assert "C01" in shown(page)
    assert len(shown(page)) < len(ALL)


def test_a_link_to_a_case_shows_it(page: Page, address: str) -> None:
    visit(page, f"{address}/{PAGE}?symptom=wide#case-c01")
    assert "C01" in shown(page)


def test_a_symptom_that_is_none_is_ignored(page: Page, address: str) -> None:
    visit(page, f"{address}/{PAGE}?symptom=ache")
    assert shown(page) == ALL
