"""Explorers on the built pages: they answer to mouse and keyboard with the numbers of the Python package."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page

import lanewise as lw
from explorers import EXPLORERS, bank_access, sector_accesses, swizzle_access
from lanewise.fragments import M16N8K16
from lanewise.pipeline import Pipeline
from tests.browser.test_book_in_browser import note_complaints
from tools.site import BUILT, DESKTOP, PHONE, THEMES, context, pages

pytestmark = pytest.mark.browser


def embedded() -> dict[str, str]:
    """For each kind of explorer, a page that holds one."""
    texts = {page: (BUILT / page).read_text(encoding="utf-8") for page in reversed(pages())}
    return {
        kind: page for kind in EXPLORERS for page, text in texts.items() if f'data-explorer="{kind}"' in text
    }


PAGES = embedded()
NOT_BUILT = "no page with this explorer is built: run make book"
KINDS = [
    pytest.param(kind, marks=[] if kind in PAGES else pytest.mark.skip(reason=NOT_BUILT))
    for kind in EXPLORERS
]


def needs(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(kind not in PAGES, reason=NOT_BUILT)


needs_bank = needs("bank")


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A page in a fresh profile; what goes wrong while it is used fails the test."""
    with context(browser, DESKTOP, "light") as profile:
        page = profile.new_page()
        complaints: list[str] = []
        note_complaints(page, address, complaints)
        yield page
        assert complaints == []


def open_explorer(page: Page, address: str, kind: str, state: str = "") -> Locator:
    """The live figure, in a state given as name=value&name=value."""
    name = re.search(rf'data-explorer="{kind}"[^>]* id="([^"]+)"', (BUILT / PAGES[kind]).read_text())
    assert name
    page.goto(f"{address}/{PAGES[kind]}{f'#{name[1]}?{state}' if state else ''}")
    figure = page.locator(f"figure#{name[1]}[data-live]")
    figure.wait_for()
    return figure


def shown(figure: Locator) -> dict[str, str]:
    """The numbers, the sentence and the listing that a figure shows."""
    counts = figure.locator(".lw-count").evaluate_all(
        "items => items.map(item => [item.dataset.count, item.querySelector('dd').firstChild.textContent])"
    )
    return {
        **dict(counts),
        "sentence": figure.locator(".lw-sentence").inner_text(),
        "python": figure.locator(".lw-python code").text_content() or "",
    }


def violations(page: Page) -> list[str]:
    """What is hard to use in the figures; that of whole pages is tested with the pages."""
    found: list[dict[str, Any]] = Axe().run(page, context="figure.lw-explorer").response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]


# Any explorer.


@pytest.mark.parametrize("kind", KINDS)
def test_it_can_be_used_by_all_in_both_themes_and_on_a_phone(
    browser: Browser, address: str, kind: str
) -> None:
    with context(browser, DESKTOP, "light") as profile:
        page = profile.new_page()
        figure = open_explorer(page, address, kind)
        for theme, (width, height) in zip(THEMES, (DESKTOP, PHONE), strict=True):
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(300)
            assert violations(page) == []
        assert (
            page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        )
        width = figure.locator(".lw-stage svg").evaluate("drawing => drawing.getBoundingClientRect().width")
        assert width >= 600


@pytest.mark.parametrize("kind", KINDS)
def test_every_control_can_be_reached_and_has_a_name(page: Page, address: str, kind: str) -> None:
    figure = open_explorer(page, address, kind)
    inputs = figure.locator(".lw-control:visible :is(input, select)")
    assert inputs.count() > 0
    inputs.first.focus()
    for _ in range(inputs.count() - 1):
        page.keyboard.press("Tab")
    assert inputs.last.evaluate("input => input === document.activeElement")
    labels = inputs.evaluate_all("inputs => inputs.map(input => input.labels[0]?.textContent)")
    assert len(set(labels)) == len(labels)
    assert all(labels)


@pytest.mark.parametrize("kind", KINDS)
def test_without_scripts_the_static_drawing_stays(browser: Browser, address: str, kind: str) -> None:
    with browser.new_context(java_script_enabled=False) as profile:
        page = profile.new_page()
        page.goto(f"{address}/{PAGES[kind]}")
        drawing = page.locator(f'figure[data-explorer="{kind}"] .lw-explorer-static svg').first
        assert drawing.is_visible()
        assert len(drawing.get_attribute("aria-label") or "") > 25
        assert page.locator("figure.lw-explorer .lw-live").count() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_can_be_linked_to_and_left(page: Page, address: str, kind: str) -> None:
    figure = open_explorer(page, address, kind)
    at_first = shown(figure)
    first = figure.locator(".lw-control:visible :is(select, input)").first
    # A list starts at its top, a slider perhaps at its lower end.
    first.press("ArrowUp" if first.get_attribute("type") == "range" else "ArrowDown")
    changed = shown(figure)
    assert changed != at_first
    page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text; }")
    figure.get_by_role("button", name="Copy link").click()
    figure.get_by_role("button", name="Copied").wait_for()
    other = page.context.new_page()
    other.goto(page.evaluate("window.copied"))
    again = other.locator(f'figure[data-explorer="{kind}"][data-live]').first
    again.wait_for()
    assert shown(again) == changed
    figure.get_by_role("button", name="Start again").click()
    assert shown(figure) == at_first


# The bank explorer.

BANK_STATES = [
    "stride=32",
    "stride=33",
    "op=st&bytes=16&stride=1",
    "bytes=16&stride=0",
    "pattern=column&padding=0",
    "pattern=column&padding=1",
    "pattern=column&bytes=8&xor=3&at=5",
    "pattern=diagonal&at=9&lanes=even",
    "pattern=row&bytes=1&lanes=hex&mask=00f0",
    "lanes=hex&mask=0",
]


@needs_bank
def test_a_link_shows_what_python_computes(page: Page, address: str) -> None:
    """Following a link from within the page changes the figure; so each state follows from the one before."""
    for state in BANK_STATES:
        figure = open_explorer(page, address, "bank", state)
        given = {name: figure.get_attribute(f"data-{name}") or "" for name in EXPLORERS["bank"].defaults}
        given |= dict(pair.split("=") for pair in state.split("&"))
        cost = lw.shared_cost(bank_access(given))
        page.wait_for_function(
            "text => document.querySelector('.lw-sentence').textContent === text", arg=str(cost)
        )
        seen = shown(figure)
        numbers = [seen[name] for name in ("wavefronts", "fewest possible", "excess", "groups of lanes")]
        assert numbers == [str(n) for n in (cost.wavefronts, cost.ideal, cost.excess, len(cost.phases))], (
            state
        )
        assert figure.locator(".lw-stage [data-wavefront]").count() == cost.wavefronts, state
        names: dict[str, Any] = {"print": lambda *_: None}
        exec(seen["python"], names)
        assert names["access"] == cost.access, state


@needs_bank
def test_what_the_hardware_refuses_is_refused(page: Page, address: str) -> None:
    seen = shown(open_explorer(page, address, "bank", "bytes=16&start=1&stride=1"))
    with pytest.raises(lw.Error) as refusal:
        lw.WarpAccess.from_formula("ld.shared.b128", lambda lane: 4 + 16 * lane)
    assert seen["sentence"] == str(refusal.value)
    assert "wavefronts" not in seen


@needs_bank
def test_the_keyboard_changes_the_stride(page: Page, address: str) -> None:
    figure = open_explorer(page, address, "bank", "stride=32")
    assert shown(figure)["wavefronts"] == "32"
    figure.get_by_label("Stride, in elements").focus()
    page.keyboard.press("ArrowRight")
    assert shown(figure)["wavefronts"] == "1"
    assert figure.locator("output").first.inner_text() == "33"
    page.keyboard.press("ArrowRight")
    assert shown(figure)["wavefronts"] == "2"


@needs_bank
def test_the_mouse_changes_the_pattern_and_steps(page: Page, address: str) -> None:
    figure = open_explorer(page, address, "bank", "pattern=column&padding=0")
    figure.get_by_role("button", name="Step").click()
    caption = figure.locator(".lw-caption")
    assert caption.inner_text() == "Wavefront 1 of 32 serves lane 0. 31 lanes wait."
    assert figure.locator(".lw-stage .lw-beam").count() == 1
    figure.get_by_role("button", name="Back").click()
    assert caption.inner_text() == "32 steps"
    figure.get_by_role("button", name="Back").click()
    assert caption.inner_text().startswith("Wavefront 32 of 32 serves lane 31.")
    figure.get_by_label("Lanes touch").select_option("row")
    assert shown(figure)["wavefronts"] == "1"
    assert not figure.get_by_role("button", name="Step").is_visible()
    box = figure.get_by_label("Row or column number").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    assert "row=31" in shown(figure)["python"]


@needs_bank
def test_a_mask_that_is_none_is_explained(page: Page, address: str) -> None:
    figure = open_explorer(page, address, "bank", "lanes=hex")
    figure.get_by_label("Lane mask, hexadecimal").fill("everyone")
    assert "'everyone' is not a mask. Give 1 to 8 hexadecimal digits" in shown(figure)["sentence"]
    assert not figure.locator(".lw-stage").is_visible()
    figure.get_by_label("Lane mask, hexadecimal").fill("1")
    assert shown(figure)["wavefronts"] == "1"


@needs_bank
@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_nothing_plays_for_who_asked_for_less_motion(page: Page, address: str, motion: Any) -> None:
    page.emulate_media(reduced_motion=motion)
    page.clock.install()
    figure = open_explorer(page, address, "bank", "stride=2")
    play = figure.get_by_role("button", name="Play")
    assert play.is_visible() == (motion == "no-preference")
    if motion == "no-preference":
        play.click()
        caption = figure.locator(".lw-caption")
        assert caption.inner_text().startswith("Wavefront 1 of 2")
        page.clock.run_for(1000)
        assert caption.inner_text().startswith("Wavefront 2 of 2")
        figure.get_by_role("button", name="Pause").click()
        page.emulate_media(reduced_motion="reduce")
        play.wait_for(state="hidden")


# The sector explorer.


@needs("sectors")
def test_sectors_follow_the_stride(page: Page, address: str) -> None:
    figure = open_explorer(page, address, "sectors", "stride=1")
    for press, expected in ((0, 4), (1, 8), (1, 12)):
        if press:
            figure.get_by_label("Stride, in elements").press("ArrowRight")
        given = dict(EXPLORERS["sectors"].defaults, stride=str(expected // 4))
        cost = lw.global_cost(sector_accesses(given)[0])
        assert cost.sectors == expected
        seen = shown(figure)
        assert (seen["sectors"], seen["sentence"]) == (str(cost.sectors), str(cost))
        assert figure.locator("[data-sector]").count() == expected


@needs("sectors")
def test_the_fields_of_a_struct_are_asked_for_one_by_one(page: Page, address: str) -> None:
    figure = open_explorer(page, address, "sectors", "pattern=fields&size=4")
    assert shown(figure)["requests"] == "4"
    figure.get_by_role("button", name="Step").click()
    figure.get_by_role("button", name="Step").click()
    caption = figure.locator(".lw-caption").inner_text()
    assert caption == "Request 2 of 4, field 1: 16 sectors, all of them a second time or more."
    figure.get_by_label("Lanes touch").select_option("struct")
    assert shown(figure)["requests"] == "1"


# The fragment explorer.


@needs("fragment")
def test_lanes_and_elements_are_found_by_key_and_click(page: Page, address: str) -> None:
    figure = open_explorer(page, address, "fragment", "what=m16n8k16&operand=c&pick=lane&lane=4")
    figure.get_by_label("Lane", exact=True).press("ArrowRight")
    assert "lane 5 holds 4 of 128 elements: (1, 2) in register 0" in shown(figure)["sentence"]
    figure.locator("[data-lane='9']").last.click()
    assert figure.get_by_label("Lane", exact=True).input_value() == "9"
    assert "lane 9 holds" in shown(figure)["sentence"]
    figure.get_by_label("Choose").select_option("element")
    figure.get_by_label("Row").fill("9")
    figure.get_by_label("Column").fill("2")
    lane, register, _ = M16N8K16.c.owner(9, 2)
    seen = shown(figure)
    assert (seen["lane"], seen["register"]) == (str(lane), str(register))


# The pipeline explorer.


@needs("pipeline")
def test_stages_pay_until_they_do_not(page: Page, address: str) -> None:
    figure = open_explorer(page, address, "pipeline", "tiles=8&copy=3&work=3&stages=1&latency=0&blocks=1")
    for stages in (1, 2, 3, 4):
        pipeline = Pipeline(tiles=8, stages=stages, copy=3, work=3)
        seen = shown(figure)
        assert (seen["end"], seen["time per tile"]) == (f"{pipeline.total:g}", f"{pipeline.per_tile:g}")
        assert ("would do; the others only take memory" in seen["sentence"]) == (stages > 2)
        figure.get_by_label("Stages of a block").press("ArrowRight")
    figure.get_by_role("button", name="Step").click()
    caption = figure.locator(".lw-caption").inner_text()
    assert caption == "Tile 0: copied into stage 0 from 0 to 3, worked on from 3 to 6."


# The swizzle explorer.


@needs("swizzle")
def test_each_bit_of_a_swizzle_halves_the_wait(page: Page, address: str) -> None:
    figure = open_explorer(page, address, "swizzle", "bits=0&access=ldmatrix&rowbytes=128&element=2&rows=16")
    given = {name: figure.get_attribute(f"data-{name}") or "" for name in EXPLORERS["swizzle"].defaults}
    given |= {"access": "ldmatrix", "rowbytes": "128", "element": "2", "rows": "16"}
    for bits in range(4):
        cost = lw.shared_cost(swizzle_access(given | {"bits": str(bits)}))
        seen = shown(figure)
        assert (seen["ldmatrix.x4"], seen["sentence"]) == (str(cost.wavefronts), str(cost))
        figure.get_by_label("B, bits that move").press("ArrowRight")
    assert "would not undo itself" in shown(figure)["sentence"]
    assert not figure.locator(".lw-cuda").is_visible()
    figure.get_by_label("B, bits that move").press("ArrowLeft")
    page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text; }")
    figure.get_by_role("button", name="Copy CUDA C++").click()
    page.wait_for_function("window.copied?.includes('composition(Swizzle<3,3,3>{}')")
