"""What the built site must be, as rules: each yields its complaints, as sentences.

tests/test_site.py applies them to every page of the built book and shows that each can fail.
"""

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from tools.notebooks import ROOT

MAX_PAGE_BYTES = 1_500_000  # a page's HTML, its images, and scripts and styles that this book wrote
MAX_SHARED_BYTES = 6_000_000  # what the theme and MathJax add once, for all pages together
MAX_SITE_BYTES = 60_000_000
MIN_ALT_CHARACTERS = 15

OWN_STATIC = ROOT / "book" / "_static"
_FOREIGN = re.compile(r"(?:https?:)?//", re.IGNORECASE)
_FOREIGN_IN_CSS = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)
_NETWORKS = re.compile(r"https?://[\w.]*(?:cdn|unpkg|jsdelivr|googleapis|cloudflare)[\w./]*")
_NO_RESOURCE = {"index", "search", "next", "prev", "canonical", "author", "license"}
_BUTTONS = ("colab.research.google.com", "source-repository-button")


class Page(HTMLParser):
    """What a page loads by itself, its links, its images with their alternative texts, and its anchors."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.images: list[tuple[str, str]] = []
        self.anchors: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what one tag refers to."""
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag in ("a", "area"):
            self.links.append(values.get("href", ""))
            return
        if tag == "img":
            self.images.append((values.get("src", ""), values.get("alt", "MISSING")))
        if tag != "link" or not _NO_RESOURCE & set(values.get("rel", "").split()):
            self.loaded += [values[name] for name in ("src", "href", "data", "poster") if name in values]
            self.loaded += [part.split()[0] for part in values.get("srcset", "").split(",") if part.strip()]
        self.loaded += _FOREIGN_IN_CSS.findall(values.get("style", ""))


@cache
def read(path: Path) -> Page:
    """The page at `path`."""
    return Page(path.read_text(encoding="utf-8"))


def leaves(address: str) -> bool:
    """Whether an address leads off the site."""
    return bool(_FOREIGN.match(address))


def loads_from_elsewhere(path: Path) -> Iterator[str]:
    """No script, style sheet, image or font comes from another host."""
    page = read(path)
    found = [address for address in page.loaded if leaves(address)] + _NETWORKS.findall(page.html)
    yield from (f"{path.name} loads {address}. Keep a copy in book/_static." for address in found)


def style_loads_from_elsewhere(sheet: Path) -> Iterator[str]:
    """No style sheet loads from another host."""
    for address in _FOREIGN_IN_CSS.findall(sheet.read_text(encoding="utf-8")):
        yield f"{sheet.name} loads {address}."


def has_images_without_text(path: Path) -> Iterator[str]:
    """Each image of the content has an alternative text that says something."""
    for source, alt in read(path).images:
        words = len(alt) >= MIN_ALT_CHARACTERS and " " in alt
        if alt == "MISSING" or (
            "_images/" in source and (not words or "_images/" in alt or alt.startswith("<"))
        ):
            yield f"{path.name}: {source} has the alternative text {alt!r}."


def leads_nowhere(path: Path) -> Iterator[str]:
    """Each link inside the site leads to a file that exists, and to an anchor that it has."""
    for link in dict.fromkeys(read(path).links):
        if leaves(link) or re.match(r"\w+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = path.parent.joinpath(unquote(place.split("?")[0])) if place else path
        if not target.exists():
            yield f"{path.name} links to {link}, which does not exist."
        elif anchor and target.suffix == ".html" and unquote(anchor) not in read(target.resolve()).anchors:
            yield f"{path.name} links to {link}; {target.name} has no such anchor."


def shows_a_dead_button(path: Path) -> Iterator[str]:
    """Without a repository's address no button leads to a repository or to Colab."""
    yield from (
        f"{path.name} has {button}, but no address." for button in _BUTTONS if button in read(path).html
    )


def own_bytes(path: Path) -> int:
    """The bytes of a page: HTML, images, and the scripts and styles that this book wrote."""
    files = _files(path)
    return path.stat().st_size + sum(file.stat().st_size for file in files if is_own(file))


def shared_bytes(path: Path) -> int:
    """The bytes that a page loads besides its own, and has in common with others."""
    return sum(file.stat().st_size for file in _files(path) if not is_own(file))


def is_own(file: Path) -> bool:
    """Whether a file belongs to a page rather than to the theme."""
    parts = file.parts
    if "_static" not in parts:
        return file.name != "searchindex.js"
    inner = parts[len(parts) - parts[::-1].index("_static") :]
    return OWN_STATIC.joinpath(*inner).exists()


def site_bytes(built: Path) -> int:
    """The bytes of all files of the site."""
    return sum(file.stat().st_size for file in built.rglob("*") if file.is_file())


def _files(path: Path) -> set[Path]:
    inner = (
        address for address in read(path).loaded if not leaves(address) and not address.startswith("data:")
    )
    files = {path.parent.joinpath(unquote(re.split("[?#]", address)[0])).resolve() for address in inner}
    return {file for file in files if file.is_file()}
