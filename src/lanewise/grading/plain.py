"""Text that others wrote, made safe to show: in a table, in a page, in a file's name."""

from __future__ import annotations

import re

# Characters that a reader cannot see but that change what is seen: controls, and the switches of direction.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)
_UNSAFE = re.compile(r"[^\w.\- ]+")
# A spreadsheet takes a cell that begins so for a formula; fullwidth signs count in some.
_FORMULA = tuple("=+-@\t\r＝＋－＠")
LONGEST_NAME = 80


def visible(text: str) -> str:
    r"""Text with its invisible controls written out, new lines and tabs kept.

    >>> visible("a\u202eb\x00c")
    'a\\u202eb\\x00c'
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text.replace("\r\n", "\n"))


def one_line(text: str, longest: int = 1000) -> str:
    """Text on one line, cut where it is longer than anybody reads."""
    line = " ".join(visible(text).split())
    return line if len(line) <= longest else f"{line[: longest - 2]} …"


def cell(text: str) -> str:
    """Text for a spreadsheet: one line, and no formula. An apostrophe before it says that it is text.

    >>> cell('=HYPERLINK("x")')
    '\\'=HYPERLINK("x")'
    """
    line = one_line(text)
    return f"'{line}" if line.startswith(_FORMULA) else line


def file_name(text: str) -> str:
    """A name that is safe for a file on every system: no separator, no leading dot, not too long.

    >>> file_name("../Ada: 1/lab.ipynb")
    'Ada_ 1_lab.ipynb'
    """
    safe = _UNSAFE.sub("_", visible(text)).lstrip("._ ").rstrip(". ")
    return safe[-LONGEST_NAME:].lstrip("._ ") or "unnamed"
