"""A book of two pages on paper: text, outline, links between the pages, folds open, no navigation."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pypdf import PdfReader
from pypdf.generic import Destination

from tools import pdf
from tools.notebooks import ROOT

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<link rel="stylesheet" href="../_static/lanewise.css"></head><body>
<div class="bd-sidebar-primary">navigation</div>
<main class="bd-main"><div class="bd-content"><article class="bd-article">
<h1>{title}<a class="headerlink" href="#">mark</a></h1>{body}</article></div></main></body></html>"""
FIRST = """<p>The first text.</p><details class="hide"><summary>Show</summary><p>A folded answer.</p></details>
<a href="second.html#there">next</a> <a href="gone.html">gone</a> <a href="https://example.org/">out</a>
<p id="figure">drawn without scripts</p><script src="../_static/claims.js"></script>"""
SCRIPT = """document.getElementById("figure").textContent = "interactive";"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> PdfReader:
    built = tmp_path_factory.mktemp("built")
    for name, content in {
        "book/first.html": PAGE.format(title="First page", body=FIRST),
        "book/second.html": PAGE.format(title="Second page", body="<p>The second text.</p>"),
        "_static/claims.js": SCRIPT,
        "_static/lanewise.css": (ROOT / "book" / "_static" / "lanewise.css").read_text(),
    }.items():
        (built / name).parent.mkdir(exist_ok=True)
        (built / name).write_text(content)
    output = built / "out" / "trial.pdf"
    assert pdf.make(["book/first.html", "book/second.html"], output, built) == 2
    return PdfReader(output)


def texts(printed: PdfReader) -> list[str]:
    return [sheet.extract_text() for sheet in printed.pages]


def links(sheet: dict) -> Iterator[str]:
    """Where the links of a sheet lead: an address, or the object of another sheet."""
    for reference in sheet["/Annots"]:
        note = reference.get_object()
        yield str(note["/A"]["/URI"]) if "/A" in note else str(note["/Dest"][0].idnum)


def test_pages_have_their_text_in_order(printed: PdfReader) -> None:
    first, second = texts(printed)
    assert "The first text." in first
    assert "The second text." in second


def test_the_outline_names_each_page(printed: PdfReader) -> None:
    items = [item for item in printed.outline if isinstance(item, Destination)]
    outline = [(str(item.title), printed.get_destination_page_number(item)) for item in items]
    assert len(items) == len(printed.outline)
    assert outline == [("First page", 0), ("Second page", 1)]


def test_sheets_are_a4(printed: PdfReader) -> None:
    assert [round(float(side) / 72 * 25.4) for side in printed.pages[0].mediabox[2:]] == [210, 297]


def test_folds_are_open_and_scripts_of_the_book_are_left_out(printed: PdfReader) -> None:
    text = texts(printed)[0]
    assert "A folded answer." in text
    assert "drawn without scripts" in text


def test_navigation_stays_on_the_screen(printed: PdfReader) -> None:
    text = texts(printed)[0]
    assert "navigation" not in text
    assert "mark" not in text


def test_links_between_pages_lead_to_sheets_and_links_to_nowhere_are_gone(printed: PdfReader) -> None:
    second = printed.pages[1].indirect_reference
    assert second is not None
    assert sorted(links(printed.pages[0])) == sorted([str(second.idnum), "https://example.org/"])


def test_contents_are_read_in_order(tmp_path: Path) -> None:
    toc = tmp_path / "_toc.yml"
    toc.write_text(
        "root: book/index\nparts:\n- caption: A\n  chapters:\n  - file: book/b\n  - file: book/a\n"
    )
    assert pdf.contents(toc) == ["book/index.html", "book/b.html", "book/a.html"]


def test_without_a_built_page_the_next_step_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pdf, "BUILT", tmp_path)
    with pytest.raises(SystemExit):
        pdf.main([])
    assert "does not exist. Run: make book" in capsys.readouterr().err
