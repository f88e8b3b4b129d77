"""Print the built book, in the order of its contents, into one PDF with an outline.

    python -m tools.pdf                     the built book into _build/lanewise.pdf
    python -m tools.pdf --output book.pdf   into another file

Pages are A4, in the light theme, with all folds open. Interactive figures show what they show where
scripts do not run.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag

import yaml
from playwright.sync_api import Browser, PdfMargins
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, NameObject

from tools.notebooks import ROOT
from tools.site import BUILT, DESKTOP, chromium, context, serve

OUTPUT = ROOT / "_build" / "lanewise.pdf"
MARGINS = PdfMargins(top="16mm", bottom="16mm", left="14mm", right="14mm")
KEPT_SCRIPT = "lanewise.js"  # draws nothing; the others would put live figures in the place of static ones
LOAD_MS = 60_000

# Unfold everything and wait for what is loaded late; returns the page's title.
PREPARE = """async () => {
  document.querySelectorAll("details").forEach((fold) => (fold.open = true));
  document.querySelectorAll(".toggle-hidden").forEach((fold) => fold.classList.remove("toggle-hidden"));
  document.querySelectorAll("img").forEach((image) => (image.loading = "eager"));
  if (window.MathJax?.startup?.promise) await window.MathJax.startup.promise;
  await document.fonts.ready;
  const heading = document.querySelector("main h1").cloneNode(true);
  heading.querySelectorAll(".headerlink").forEach((link) => link.remove());
  return heading.textContent.trim();
}"""


def contents(toc: Path = ROOT / "_toc.yml") -> list[str]:
    """The addresses of the pages in the order of a _toc.yml."""

    def walk(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            yield from (f"{node[key]}.html" for key in ("root", "file") if key in node)
            for value in node.values():
                yield from walk(value)
        elif isinstance(node, list):
            for item in node:
                yield from walk(item)

    return list(walk(yaml.safe_load(toc.read_text(encoding="utf-8"))))


def make(pages: Sequence[str], output: Path = OUTPUT, built: Path = BUILT) -> int:
    """Write the pages, addresses in the folder `built`, into one PDF; returns its number of sheets."""
    with serve(built) as address, chromium() as browser:
        printed = {page: print_page(browser, f"{address}/{page}") for page in pages}
    writer = PdfWriter()
    first: dict[str, int] = {}
    for page, (title, pdf) in printed.items():
        first[f"{address}/{page}"] = len(writer.pages)
        writer.append(PdfReader(BytesIO(pdf)), outline_item=title, import_outline=False)
    for sheet in writer.pages:
        _lead_inside(writer, sheet, first, address)
    writer.add_metadata({"/Title": printed[pages[0]][0], "/Producer": "tools.pdf"})
    output.parent.mkdir(parents=True, exist_ok=True)
    writer.write(output)
    return len(writer.pages)


def print_page(browser: Browser, address: str) -> tuple[str, bytes]:
    """The title of a page, and the page as a PDF."""
    with context(browser, DESKTOP, "light") as profile:
        page = profile.new_page()
        own = {path.name for path in (ROOT / "book" / "_static").rglob("*.js")} - {KEPT_SCRIPT}
        page.route(
            lambda url: url.split("?")[0].rpartition("/")[2] in own,
            lambda route: route.fulfill(content_type="text/javascript", body=""),
        )
        page.emulate_media(media="print", color_scheme="light")
        page.goto(address, wait_until="load", timeout=LOAD_MS)
        title = str(page.evaluate(PREPARE))
        return title, page.pdf(format="A4", print_background=True, margin=MARGINS, tagged=True)


def _lead_inside(writer: PdfWriter, sheet: Any, first: dict[str, int], address: str) -> None:
    """Let links between pages lead to the page's first sheet; drop those to files that are not in the PDF."""
    kept = ArrayObject()
    for reference in sheet.get("/Annots", ArrayObject()).get_object():
        note = reference.get_object()
        link = str(note["/A"].get("/URI", "")) if "/A" in note else ""
        if link.startswith(address):
            if (page := urldefrag(link)[0]) not in first:
                continue
            del note["/A"]
            target = writer.pages[first[page]].indirect_reference
            note[NameObject("/Dest")] = ArrayObject([target, NameObject("/Fit")])
        kept.append(reference)
    sheet[NameObject("/Annots")] = kept


def main(arguments: list[str] | None = None) -> int:
    """Print the book and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m tools.pdf", description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the file to write")
    options = parser.parse_args(arguments)
    pages = contents()
    if missing := [page for page in pages if not (BUILT / page).is_file()]:
        parser.error(f"{BUILT / missing[0]} does not exist. Run: make book")
    try:
        n_sheets = make(pages, options.output)
    except FileNotFoundError as error:  # Chromium
        print(f"No PDF: {error}", file=sys.stderr)
        return 1
    print(f"{options.output}: {len(pages)} pages of the book on {n_sheets} sheets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
