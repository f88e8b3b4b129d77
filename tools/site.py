"""Serve the built book and open it in headless Chromium, for the browser tests and the screenshots."""

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from tools.notebooks import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

BUILT = ROOT / "_build" / "html"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Root may not use Chromium's sandbox; the rest keeps it from calling home.
CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
DESKTOP = (1280, 900)
PHONE = (390, 844)
THEMES = ("light", "dark")


def find_chromium() -> str | None:
    """The path of an installed Chromium."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


def pages(built: Path = BUILT) -> list[str]:
    """Addresses of the book's pages, relative to its folder; search and index pages apart."""
    found = (path.relative_to(built).as_posix() for path in built.rglob("*.html"))
    return sorted(page for page in found if page.startswith(("book/", "labs/")))


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the default writes a line for every file."""


@contextmanager
def serve(folder: Path = BUILT) -> Iterator[str]:
    """Serve `folder` on a free port of this machine; yields the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def chromium() -> Iterator["Browser"]:
    """A headless Chromium, closed at the end."""
    path = find_chromium()
    if path is None:
        names = ", ".join(CHROMIUM_NAMES)
        raise FileNotFoundError(f"no Chromium (looked for {names}). On Debian: apt install chromium")
    from playwright.sync_api import sync_playwright  # here, since a machine with a GPU may lack it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        try:
            yield browser
        finally:
            browser.close()


def context(browser: "Browser", size: tuple[int, int], theme: str) -> "BrowserContext":
    """A fresh profile with a window of `size` CSS pixels that shows pages in one theme, "light" or "dark"."""
    width, height = size
    fresh = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    for key in ("mode", "theme"):  # the theme's switch stores its state here
        fresh.add_init_script(f"localStorage.setItem('{key}', '{theme}')")
    return fresh
