"""The audit's page: its filter by mouse and keyboard, its counts, its links, and who can use it."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page

from lanewise import claims
from lanewise.claims import Verdict
from tests.browser.test_book_in_browser import note_complaints
from tools.site import BUILT, DESKTOP, PHONE, THEMES, context

PAGE = "book/claims.html"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not (BUILT / PAGE).exists(), reason="the page is not built: run make book"),
]

N = len(claims.all_claims())


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """The page in a fresh profile; what goes wrong while it is used fails the test."""
    with context(browser, DESKTOP, "light") as profile:
        page = profile.new_page()
        complaints: list[str] = []
        note_complaints(page, address, complaints)
        visit(page, f"{address}/{PAGE}")
        yield page
        assert complaints == []


def visit(page: Page, address: str) -> None:
    """Open the page and wait for its script, which runs when all entries are there."""
    page.goto(address, wait_until="networkidle")
    page.locator(".lw-claims-filter").wait_for()


def shown(page: Page) -> list[str]:
    """The ids of the entries that can be seen."""
    return page.locator("article.lw-claim:visible .lw-claim-id").all_inner_texts()


def status(page: Page) -> str:
    return page.locator(".lw-claims-filter [role=status]").inner_text()


def ids(**chosen: object) -> list[str]:
    return [each.id for each in claims.select(**chosen)]  # type: ignore[arg-type]


def control(page: Page, label: str) -> Locator:
    return page.locator(".lw-claims-filter").get_by_label(label, exact=True)


def test_it_shows_every_claim_with_its_verdict_in_words(page: Page) -> None:
    assert shown(page) == ids()
    badges = page.locator("article.lw-claim .lw-badge").all_inner_texts()
    assert [badge.split(maxsplit=1)[1] for badge in badges] == [
        str(each.verdict) for each in claims.all_claims()
    ]


def test_the_status_counts_what_is_shown(page: Page) -> None:
    assert status(page).startswith(f"{N} of {N} claims: ")
    told = re.findall(r"([a-z ]+) (\d+)[,.]", status(page).partition(": ")[2])
    counted = Counter(str(each.verdict) for each in claims.all_claims())
    assert {words.strip(): int(n) for words, n in told} == dict(counted)


@pytest.mark.parametrize("verdict", Verdict)
def test_a_verdict_can_be_chosen(page: Page, verdict: Verdict) -> None:
    expected = ids(verdict=verdict)
    control(page, "Verdict").select_option(label=str(verdict))
    assert shown(page) == expected
    assert status(page) == f"{len(expected)} of {N} claims: {verdict} {len(expected)}."


def test_choices_add_up_and_can_be_shared(page: Page, address: str) -> None:
    control(page, "Topic").select_option("padding")
    control(page, "Article").select_option("A")
    control(page, "Verdict").select_option("wrong")
    expected = ids(article="A", topic="padding", verdict=Verdict.WRONG)
    assert shown(page) == expected != []
    other = page.context.new_page()
    visit(other, page.url)
    assert shown(other) == expected
    other.get_by_role("button", name="Show all").click()
    assert len(shown(other)) == N
    assert "?" not in other.url


def test_words_narrow_the_list(page: Page) -> None:
    control(page, "Words").fill("Broadcast  SAME address")
    found = shown(page)
    assert "CA-12" in found
    assert len(found) < N / 4
    control(page, "Words").fill("no such words anywhere")
    assert shown(page) == []
    assert status(page) == f"0 of {N} claims."
    assert page.locator(".lw-claims-none:visible").count() >= 1
    control(page, "Words").fill("")
    assert len(shown(page)) == N
    assert page.locator(".lw-claims-none:visible").count() == 0


def test_the_keyboard_is_enough(page: Page) -> None:
    control(page, "Article").focus()
    order = ["article", "topic", "verdict"]
    for name in order:
        assert page.evaluate("document.activeElement.name") == name
        page.keyboard.press("Tab")
    page.keyboard.type("ldmatrix")
    assert 0 < len(shown(page)) < N
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Show all"
    page.keyboard.press("Enter")
    assert len(shown(page)) == N
    control(page, "Verdict").focus()
    page.keyboard.press("ArrowDown")
    assert 0 < len(shown(page)) < N


def test_a_link_to_a_claim_that_is_filtered_out_shows_it(page: Page) -> None:
    control(page, "Verdict").select_option("ok")
    page.evaluate("location.hash = '#claim-ca-13'")
    target = page.locator("#claim-ca-13")
    target.wait_for(state="visible")
    page.wait_for_function("document.querySelector('#claim-ca-13').getBoundingClientRect().top < innerHeight")
    assert len(shown(page)) == N


def test_an_unknown_choice_in_the_address_is_let_go(page: Page, address: str) -> None:
    visit(page, f"{address}/{PAGE}?verdict=nonsense")
    assert len(shown(page)) == N


def test_without_scripts_all_is_shown(browser: Browser, address: str) -> None:
    with browser.new_context(java_script_enabled=False) as profile:
        page = profile.new_page()
        page.goto(f"{address}/{PAGE}")
        assert shown(page) == ids()
        assert not page.locator(".lw-claims-filter").is_visible()


def test_every_entry_has_a_name_and_its_cases_fold(page: Page) -> None:
    entry = page.get_by_role("article", name="CA-10 imprecise")
    assert entry.count() == 1
    assert not entry.locator("table").is_visible()
    entry.locator("summary").click()
    assert entry.locator("tbody tr").count() == len(claims.find("CA-10").findings)
    assert entry.locator("table").is_visible()


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


def test_all_can_use_it(browser: Browser, address: str) -> None:
    with context(browser, DESKTOP, "light") as profile:
        page = profile.new_page()
        visit(page, f"{address}/{PAGE}?article=A&verdict=imprecise")
        page.locator("article.lw-claim:visible summary").first.click()
        for theme in THEMES:
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            assert violations(page) == []
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        page.evaluate("document.querySelectorAll('main details').forEach(fold => fold.open = true)")
        assert (
            page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        )
