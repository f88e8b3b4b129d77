"""Take a picture of every page of the built book: desktop and phone, light and dark.

    python -m tools.screenshots FOLDER            all pages
    python -m tools.screenshots FOLDER glossary   pages whose address contains that word
"""

import argparse
import sys
from pathlib import Path

from tools.site import BUILT, DESKTOP, PHONE, THEMES, chromium, context, pages, serve


def take(folder: Path, word: str = "") -> list[Path]:
    """Write the pictures into `folder`, named page-size-theme.png; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    taken = []
    with serve() as address, chromium() as browser:
        for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
            for theme in THEMES:
                tab = context(browser, size, theme).new_page()
                for page in (page for page in pages() if word in page):
                    tab.goto(f"{address}/{page}", wait_until="networkidle")
                    stem = page.removesuffix(".html").replace("/", "-")
                    taken.append(folder / f"{stem}-{name}-{theme}.png")
                    tab.screenshot(path=taken[-1], full_page=True)
                tab.context.close()
    return taken


def main() -> int:
    """Take the pictures and print their paths."""
    summary = __doc__.partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tools.screenshots", description=summary)
    parser.add_argument("folder", type=Path, help="where to write the pictures")
    parser.add_argument("word", nargs="?", default="", help="only pages whose address contains this")
    options = parser.parse_args()
    if not BUILT.is_dir():
        parser.error(f"{BUILT} does not exist. Run: make book")
    for path in take(options.folder, options.word):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
