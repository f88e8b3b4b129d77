"""The built site obeys every rule of tools/site_rules.py, each rule can fail; and a copy with a repository's address."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools import setup_cell, site_rules
from tools.notebooks import ROOT, normalise, with_setup_cell
from tools.site import BUILT, pages

BUILT_PAGES = [BUILT / page for page in pages()]
needs_book = pytest.mark.skipif(not BUILT_PAGES, reason="the book is not built: run make book")
every_page = pytest.mark.parametrize("page", BUILT_PAGES, ids=lambda page: page.stem)

Rule = Callable[[Path], Iterator[str]]
RULES: tuple[Rule, ...] = (
    site_rules.loads_from_elsewhere,
    site_rules.has_images_without_text,
    site_rules.leads_nowhere,
)


@needs_book
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@every_page
def test_page_obeys(page: Path, rule: Rule) -> None:
    found = list(rule(page))
    assert not found, "\n".join([rule.__doc__ or "", *found])


@needs_book
@every_page
def test_page_is_light(page: Path) -> None:
    assert site_rules.own_bytes(page) <= site_rules.MAX_PAGE_BYTES
    assert site_rules.shared_bytes(page) <= site_rules.MAX_SHARED_BYTES


@needs_book
def test_site_is_light() -> None:
    assert site_rules.site_bytes(BUILT) <= site_rules.MAX_SITE_BYTES


@needs_book
def test_index_and_search_lead_somewhere() -> None:
    others = [path for path in BUILT.glob("*.html") if path.name != "index.html"]
    assert others
    assert [found for path in others for found in site_rules.leads_nowhere(path)] == []


@needs_book
def test_style_sheets_load_nothing_from_elsewhere() -> None:
    sheets = list(BUILT.rglob("*.css"))
    assert sheets
    assert [found for sheet in sheets for found in site_rules.style_loads_from_elsewhere(sheet)] == []


@needs_book
@pytest.mark.skipif(bool(setup_cell.address()), reason="_config.yml names a repository")
def test_without_a_repository_address_no_button_leads_nowhere() -> None:
    assert [found for page in BUILT_PAGES for found in site_rules.shows_a_dead_button(page)] == []


# Each rule on a page that breaks it.

GOOD = """<a href="#here">here</a><h1 id="here">Here</h1><a href="other.html#there">there</a><a href="https://a.org">a</a>
<img src="../_images/a.svg" alt="Bank map: each bank holds one word."><img src="../_static/logo.svg" alt="">
<link rel="canonical" href="https://a.org"><a href="mailto:a@a.org">write</a>"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A page with a neighbour, images and a style."""
    for name, content in {
        "book/page.html": GOOD,
        "book/other.html": '<p id="there">',
        "_images/a.svg": "<svg/>",
        "_static/logo.svg": "<svg/>",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path / "book" / "page.html"


def complaints(rule: Rule, page: Path, html: str) -> str:
    """What a rule says of the page once `html` is added to it."""
    page.write_text(GOOD + html)
    site_rules.read.cache_clear()
    return "\n".join(rule(page))


@pytest.mark.parametrize("rule", [*RULES, site_rules.shows_a_dead_button], ids=lambda rule: rule.__name__)
def test_a_good_page_passes(page: Path, rule: Rule) -> None:
    assert complaints(rule, page, "") == ""


@pytest.mark.parametrize(
    ("rule", "html", "complaint"),
    [
        (RULES[0], '<script src="https://cdn.invalid/x.js"></script>', "loads https://cdn.invalid/x.js"),
        (RULES[0], '<link rel="stylesheet" href="//cdn.invalid/x.css">', "loads //cdn.invalid/x.css"),
        (RULES[0], '<img srcset="http://a.org/b.png 2x" alt="">', "loads http://a.org/b.png"),
        (RULES[0], '<p style="background: url(https://a.org/b.png)">', "loads https://a.org/b.png"),
        (RULES[0], '<script>load("https://unpkg.com/x")</script>', "loads https://unpkg.com/x"),
        (RULES[1], '<img src="../_images/a.svg">', "has the alternative text 'MISSING'"),
        (RULES[1], '<img src="../_images/a.svg" alt="../_images/a.svg of it">', "has the alternative text"),
        (RULES[1], '<img src="../_images/a.svg" alt="map">', "has the alternative text 'map'"),
        (RULES[1], '<img src="../_images/a.svg" alt="&lt;Figure size 640x480&gt;">', "text '<Figure size"),
        (RULES[2], '<a href="gone.html">x</a>', "links to gone.html, which does not exist"),
        (RULES[2], '<a href="#gone">x</a>', "links to #gone; page.html has no such anchor"),
        (RULES[2], '<a href="other.html#gone">x</a>', "other.html has no such anchor"),
        (site_rules.shows_a_dead_button, '<a href="https://colab.research.google.com/">', "but no address"),
        (site_rules.shows_a_dead_button, '<a class="source-repository-button">', "but no address"),
    ],
)
def test_a_broken_page_is_found(page: Path, rule: Rule, html: str, complaint: str) -> None:
    assert complaint in complaints(rule, page, html)


def test_a_style_sheet_that_loads_is_found(tmp_path: Path) -> None:
    sheet = tmp_path / "a.css"
    sheet.write_text("p { background: url(a.png) }")
    assert not [*site_rules.style_loads_from_elsewhere(sheet)]
    sheet.write_text('@import "https://cdn.invalid/x.css";')
    assert "loads https://cdn.invalid/x.css" in "".join(site_rules.style_loads_from_elsewhere(sheet))


def test_bytes_are_counted(page: Path) -> None:
    static = page.parent.parent / "_static"
    (static / "theme.js").write_text("t" * 100)
    (static / "lanewise.css").write_text("l" * 10)
    (page.parent.parent / "_images" / "a.svg").write_text("i" * 1000)
    html = '<script src="../_static/theme.js?v=1"></script><link rel="stylesheet" href="../_static/lanewise.css">'
    complaints(site_rules.leads_nowhere, page, html)
    size = page.stat().st_size
    assert site_rules.own_bytes(page) == size + 1010 + len("<svg/>")
    assert site_rules.shared_bytes(page) == 100
    assert site_rules.site_bytes(page.parent) == size + len('<p id="there">')


# A small book, with and without a repository's address in _config.yml and nothing else changed.

CODE = "answer = 6 * 7"


def build(folder: Path, url: str) -> str:
    """Build a book of two pages with the settings of this one; the HTML of its notebook."""
    for name in ("_ext", "_static", "_templates"):
        shutil.copytree(ROOT / "book" / name, folder / "book" / name)
    config = (ROOT / "_config.yml").read_text()
    address_line = re.compile(r"^  url: .*$", re.MULTILINE)
    assert len(address_line.findall(config)) == 1
    (folder / "_config.yml").write_text(address_line.sub(f'  url: "{url}"', config))
    (folder / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n- file: book/trial\n")
    (folder / "book" / "index.md").write_text("# Trial\n\nRead [the chapter](trial.ipynb).\n")
    chapter = new_notebook(cells=[new_markdown_cell("# Chapter"), new_code_cell(CODE)])
    path = folder / "book" / "trial.ipynb"
    address = setup_cell.address(folder / "_config.yml")
    nbformat.write(with_setup_cell(normalise(chapter, path), path, address), str(path))
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [str(jupyter_book), "build", ".", "-W", "-n", "--keep-going", "--quiet"]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return (folder / "_build" / "html" / "book" / "trial.html").read_text()


@pytest.fixture(scope="module")
def with_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(tmp_path_factory.mktemp("with"), "https://github.com/OWNER/lanewise")


@pytest.fixture(scope="module")
def without_address(tmp_path_factory: pytest.TempPathFactory) -> str:
    return build(tmp_path_factory.mktemp("without"), "")


def test_with_a_repository_address_the_chapter_opens_in_colab(with_address: str) -> None:
    assert (
        "https://colab.research.google.com/github/OWNER/lanewise/blob/main/book/trial.ipynb" in with_address
    )
    assert 'href="https://github.com/OWNER/lanewise"' in with_address
    assert "https://github.com/OWNER/lanewise/issues/new" in with_address


def test_with_a_repository_address_the_sidebar_still_opens_on_a_phone(with_address: str) -> None:
    """Options of _config.yml must be merged with the theme's, not replace them: recursive_update."""
    assert "primary-toggle" in with_address
    assert "navbar-persistent--container" not in with_address


def test_without_a_repository_address_there_is_no_button(without_address: str) -> None:
    assert "colab" not in without_address
    assert "source-repository-button" not in without_address


def test_the_set_up_cell_is_not_on_the_page(with_address: str, without_address: str) -> None:
    for html in (with_address, without_address):
        text = re.sub(r"<[^>]+>", "", html)
        assert CODE in text
        assert "find_spec" not in text
