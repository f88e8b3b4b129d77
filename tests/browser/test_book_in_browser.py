"""The built book in headless Chromium: pages load clean, fit a phone, can be navigated and are accessible."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tools.site import DESKTOP, PHONE, THEMES, chromium, context, pages, serve

pytestmark = pytest.mark.browser

NOT_BUILT = pytest.param("", marks=pytest.mark.skip(reason="the book is not built: run make book"))
PAGES = [pytest.param(page) for page in pages()] or [NOT_BUILT]

# The theme waits this long after the last change of size before it opens what scrolls to the keyboard, and a little more.
SETTLE_MS = 500
# A figure of 32 columns has the room for its digits at this width, half as wide again as a phone can show at once.
LEGIBLE_FIGURE_PX = 600

# Everything that the checks below must notice.
BROKEN = """<!doctype html><html lang="en"><head><title>Broken</title>
<link rel="stylesheet" href="http://cdn.invalid/font.css"><script>throw Error("a script failed")</script></head>
<body><main><h1>Broken</h1><img src="missing.png"><p style="width: 900px">wide</p>
<span class="math">$x$</span></main></body></html>"""


@dataclass
class Visit:
    """What was seen of one page: on a desktop in both themes, then at the width of a phone with all folds open."""

    loading: list[str] = field(default_factory=list)
    violations: dict[str, list[str]] = field(default_factory=dict)
    n_formulas_not_set: int = 0
    phone_overflow_px: int = 0
    figure_widths_on_a_phone: list[float] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serve() as address:
        yield address


@pytest.fixture(scope="module")
def visits() -> dict[str, Visit]:
    """Pages seen so far: a page is loaded once for all checks."""
    return {}


@pytest.fixture
def visit(browser: Browser, address: str, visits: dict[str, Visit], path: str) -> Visit:
    if path not in visits:
        visits[path] = look_at(browser, address, path)
    return visits[path]


def look_at(browser: Browser, address: str, path: str, body: str | None = None) -> Visit:
    """Visit one page; `body` is served in its place if given."""
    seen = Visit()
    with context(browser, DESKTOP, "light") as profile:
        page = profile.new_page()
        if body is not None:
            page.route(f"**/{path}", lambda route: route.fulfill(content_type="text/html", body=body))
        complaints: list[str] = []
        note_complaints(page, address, complaints)
        page.goto(f"{address}/{path}", wait_until="networkidle")
        seen.loading = list(complaints)  # axe makes requests of its own from here on
        for theme in THEMES:
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            seen.violations[theme] = accessibility_violations(page)
        seen.n_formulas_not_set = page.locator(".math").count() - page.locator(".math mjx-container").count()
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        page.evaluate("document.querySelectorAll('main details').forEach(fold => fold.open = true)")
        page.wait_for_timeout(SETTLE_MS)
        seen.violations["phone"] = accessibility_violations(page)
        widths = "figures => figures.map(figure => figure.getBoundingClientRect().width)"
        seen.figure_widths_on_a_phone = page.locator("main .cell_output img").evaluate_all(widths)
        root = "document.documentElement"
        seen.phone_overflow_px = page.evaluate(f"{root}.scrollWidth - {root}.clientWidth")
    return seen


def note_complaints(page: Page, address: str, found: list[str]) -> None:
    """Add to `found`, while pages load: errors of the console and of scripts, missing files, foreign requests."""
    page.on("console", lambda message: found.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("response", lambda reply: found.append(f"{reply.status}: {reply.url}") if not reply.ok else None)
    page.on("request", lambda request: found.append(f"left: {request.url}") if is_foreign(request.url) else None)

    def is_foreign(url: str) -> bool:
        return not url.startswith((address, "data:"))


def accessibility_violations(page: Page) -> list[str]:
    """What axe finds, a line each."""
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:200]}"
        for violation in Axe().run(page).response["violations"]
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("path", PAGES)
def test_page_loads_without_errors_from_its_own_host(visit: Visit) -> None:
    assert visit.loading == []


@pytest.mark.parametrize("seen_as", [*THEMES, "phone"])
@pytest.mark.parametrize("path", PAGES)
def test_page_is_accessible(visit: Visit, seen_as: str) -> None:
    assert visit.violations[seen_as] == []


@pytest.mark.parametrize("path", PAGES)
def test_mathematics_is_set(visit: Visit) -> None:
    assert visit.n_formulas_not_set == 0


@pytest.mark.parametrize("path", PAGES)
def test_page_fits_a_phone(visit: Visit) -> None:
    assert visit.phone_overflow_px == 0


@pytest.mark.parametrize("path", PAGES)
def test_figures_can_be_read_on_a_phone(visit: Visit) -> None:
    assert min(visit.figure_widths_on_a_phone, default=LEGIBLE_FIGURE_PX) >= LEGIBLE_FIGURE_PX


@pytest.mark.parametrize("path", PAGES[:1])
def test_a_phone_opens_and_closes_the_contents(browser: Browser, address: str, path: str) -> None:
    with context(browser, PHONE, "light") as profile:
        page = profile.new_page()
        page.goto(f"{address}/{path}", wait_until="networkidle")
        contents = page.locator("nav.bd-links")
        assert not contents.is_visible()
        page.locator("button.primary-toggle:visible").click()
        contents.wait_for(state="visible", timeout=5000)
        page.keyboard.press("Escape")
        contents.wait_for(state="hidden", timeout=5000)


@pytest.mark.parametrize("path", PAGES[:1])
def test_search_finds_a_term(browser: Browser, address: str, path: str) -> None:
    with context(browser, DESKTOP, "light") as profile:
        page = profile.new_page()
        page.goto(f"{address}/search.html?q=wavefront", wait_until="networkidle")
        page.locator("#search-results li a").first.wait_for(timeout=10_000)


def test_the_checks_can_fail(browser: Browser, address: str) -> None:
    seen = look_at(browser, address, "broken.html", BROKEN)
    loading = "\n".join(seen.loading)
    assert "a script failed" in loading
    assert "404" in loading
    assert "left: http://cdn.invalid/font.css" in loading
    for theme in THEMES:
        assert "image-alt" in "\n".join(seen.violations[theme])
    assert seen.n_formulas_not_set == 1
    assert seen.phone_overflow_px > 0
