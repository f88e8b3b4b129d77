"""The built book in headless Chromium: pages load clean, fit a phone, can be navigated and are accessible."""

from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tools.site import DESKTOP, PHONE, THEMES, context, pages

pytestmark = pytest.mark.browser

NOT_BUILT = pytest.param("", marks=pytest.mark.skip(reason="the book is not built: run make book"))
PAGES = [pytest.param(page) for page in pages()] or [NOT_BUILT]

# The theme waits this long after the last change of size before it opens what scrolls to the keyboard, and a little more.
SETTLE_MS = 500
# A figure of 32 columns has the room for its digits at this width, half as wide again as a phone can show at once.
LEGIBLE_FIGURE_PX = 600

# Fonts differ between machines; few are wider than ours with this space between letters.
WIDER_LETTERS = "* { letter-spacing: 0.1em !important; }"

# What is loaded late: mathematics and fonts.
READY = """async () => {
  if (window.MathJax?.startup?.promise) await window.MathJax.startup.promise;
  await document.fonts.ready;
}"""
OPEN_FOLDS = "document.querySelectorAll('main details').forEach(fold => fold.open = true)"

# axe measures the contrast of each text with all that lies behind it, which takes a minute for a chapter with a thousand
# tokens of code. Texts of one look share the result: mark the first of each look that was not marked before. A look is,
# in every theme, size and weight, the colour, and the backgrounds down to the first that is opaque.
MARK_LOOKS = """themes => {
  const root = document.documentElement;
  const shown = root.dataset.theme;
  const hasText = element => [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
  const texts = [...document.querySelectorAll("body *")].filter(hasText).filter(text => text.checkVisibility());
  const looks = texts.map(() => []);
  for (const theme of themes) {
    root.dataset.theme = theme;
    texts.forEach((text, i) => {
      const {color, fontSize, fontWeight} = getComputedStyle(text);
      looks[i].push(color, fontSize, fontWeight);
      for (let behind = text; behind; behind = behind.parentElement) {
        const {backgroundColor, opacity} = getComputedStyle(behind);
        if (opacity !== "1") looks[i].push(opacity);
        if (backgroundColor !== "rgba(0, 0, 0, 0)") looks[i].push(backgroundColor);
        if (backgroundColor.startsWith("rgb(")) break;
      }
    });
  }
  root.dataset.theme = shown;
  document.querySelectorAll("[data-look]").forEach(text => delete text.dataset.look);
  window.looksSeen ??= new Set();
  texts.forEach((text, i) => {
    const before = window.looksSeen.size;
    if (window.looksSeen.add(String(looks[i])).size > before) text.dataset.look = "new";
  });
  return document.querySelectorAll("[data-look]").length;
}"""
# Tokens of code are thousands of elements; of those that are not marked, the text is enough.
UNWRAP_TOKENS = """() => document.querySelectorAll("main pre span").forEach(token => {
  if (token.getAttributeNames().every(name => name === "class")) token.replaceWith(...token.childNodes);
})"""
CONTRAST = {"runOnly": ["color-contrast"], "resultTypes": ["violations"]}
ALL_BUT_CONTRAST = {"rules": {"color-contrast": {"enabled": False}}, "resultTypes": ["violations"]}

# Everything that the checks below must notice.
BROKEN = """<!doctype html><html lang="en"><head><title>Broken</title>
<link rel="stylesheet" href="http://cdn.invalid/font.css"><script>throw Error("a script failed")</script></head>
<body><main><h1>Broken</h1><img src="missing.png"><p style="width: 900px">wide</p>
<pre><span>a = 1</span> <span>b = 2</span></pre>
<p style="background: #888; color: #777">pale</p><details><p style="background: #888; color: #778">folded</p></details>
<span class="math">$x$</span></main></body></html>"""


@dataclass
class Visit:
    """What was seen of one page with all folds open: on a desktop, its colours in both themes; then on a phone."""

    loading: list[str] = field(default_factory=list)
    violations: dict[str, list[str]] = field(default_factory=dict)
    n_formulas_not_set: int = 0
    phone_overflow_px: int = 0
    figure_widths_on_a_phone: list[float] = field(default_factory=list)


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
        page.goto(f"{address}/{path}", wait_until="load")
        page.evaluate(READY)
        seen.loading = list(complaints)  # axe makes requests of its own from here on
        seen.n_formulas_not_set = page.locator(".math").count() - page.locator(".math mjx-container").count()
        page.evaluate(OPEN_FOLDS)
        page.wait_for_timeout(SETTLE_MS)
        seen.violations = low_contrasts(page)
        seen.violations["desktop"] = violations(page, ALL_BUT_CONTRAST)
        page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        page.wait_for_timeout(SETTLE_MS)
        seen.violations["phone"] = violations(page, ALL_BUT_CONTRAST)
        seen.violations["phone"] += chain.from_iterable(low_contrasts(page).values())
        widths = "figures => figures.map(figure => figure.getBoundingClientRect().width)"
        seen.figure_widths_on_a_phone = page.locator("main .lw-figure:not(.lw-narrow) img").evaluate_all(widths)
        page.add_style_tag(content=WIDER_LETTERS)
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


def low_contrasts(page: Page) -> dict[str, list[str]]:
    """The texts that are hard to read, in each theme, among those whose look was not seen before."""
    if not page.evaluate(MARK_LOOKS, list(THEMES)):
        return {theme: [] for theme in THEMES}
    page.evaluate(UNWRAP_TOKENS)
    found = {}
    for theme in THEMES:
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        found[theme] = violations(page, CONTRAST, "[data-look]")
    return found


def violations(page: Page, options: dict[str, Any], within: str = "html") -> list[str]:
    """What axe finds with these options, in elements that a selector finds; a line each."""
    return [
        f"{violation['id']}: {violation['help']}: {node['html'][:200]}"
        for violation in Axe().run(page, context={"include": [[within]]}, options=options).response["violations"]
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("path", PAGES)
def test_page_loads_without_errors_from_its_own_host(visit: Visit) -> None:
    assert visit.loading == []


@pytest.mark.parametrize("seen_as", [*THEMES, "desktop", "phone"])
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
        page.goto(f"{address}/{path}", wait_until="load")
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
        page.goto(f"{address}/search.html?q=wavefront", wait_until="load")
        page.locator("#search-results li a").first.wait_for(timeout=10_000)


def test_the_checks_can_fail(browser: Browser, address: str) -> None:
    seen = look_at(browser, address, "broken.html", BROKEN)
    loading = "\n".join(seen.loading)
    assert "a script failed" in loading
    assert "404" in loading
    assert "left: http://cdn.invalid/font.css" in loading
    for seen_as in ("desktop", "phone"):
        assert "image-alt" in "\n".join(seen.violations[seen_as])
    for theme in THEMES:
        pale, folded = sorted(seen.violations[theme])
        assert "color-contrast" in pale
        assert "pale" in pale
        assert "folded" in folded
    assert seen.n_formulas_not_set == 1
    assert seen.phone_overflow_px > 0


def test_contrast_is_measured_once_for_each_look(browser: Browser, address: str) -> None:
    with context(browser, DESKTOP, "light") as profile:
        page = profile.new_page()
        twins = '<p>a</p><p>b</p><p style="display: none">c</p>'
        faint = '<div style="background: rgb(0 0 0 / 50%)"><p>d</p></div><div style="opacity: 0.5"><p>e</p></div>'
        page.set_content(f'<html data-theme="light"><body style="background: #fff">{twins}{faint}</body></html>')
        assert page.evaluate(MARK_LOOKS, list(THEMES)) == 3
        assert page.locator("[data-look]").all_text_contents() == ["a", "d", "e"]
        assert page.evaluate(MARK_LOOKS, list(THEMES)) == 0
        page.evaluate("document.querySelectorAll('p')[2].style.display = 'block'")
        page.evaluate("document.querySelectorAll('p')[2].style.color = 'red'")
        assert page.evaluate(MARK_LOOKS, list(THEMES)) == 1
