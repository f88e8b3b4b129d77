"""Marks as files: the table for the teacher, a page for each student."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lanewise.errors import Error
from lanewise.grading.marking import Marked
from lanewise.grading.plain import cell, file_name

COLUMNS = ("submission", "student", "lab", "score", "max_score", "status", "message")


class NotWritten(Error):
    """A file that is not written: its folder does not allow it, or it would replace another."""


def as_row(marked: Marked) -> dict[str, Any]:
    """One row by column, as it is."""
    return {name: value for name, value in asdict(marked).items() if name in COLUMNS}


def as_csv(rows: Sequence[Marked]) -> str:
    """The table as text. What a spreadsheet would take for a formula has an apostrophe before it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for one in rows:
        row = as_row(one)
        shown = {name: cell(value) for name, value in row.items() if isinstance(value, str)}
        writer.writerow({**row, **shown, "score": f"{one.score:g}", "max_score": f"{one.max_score:g}"})
    return text.getvalue()


def require_writable(path: Path, *, overwrite: bool) -> None:
    """Raise `NotWritten` where a file cannot be written, before any work is done for it."""
    if path.is_dir():
        raise NotWritten(f"{path} is a folder. Give the name of a file.")
    if path.exists() and not overwrite:
        raise NotWritten(f"{path} exists, and may hold marks. Give another name, or --overwrite.")
    if not path.parent.is_dir():
        raise NotWritten(f"The folder {path.parent} does not exist. Make it, or give another name.")
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise NotWritten(f"{path.parent} cannot be written to: {error.strerror}.") from None


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises `NotWritten`."""
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", newline="", dir=path.parent, suffix=".part", delete=False
        ) as file:
            temporary = Path(file.name)
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        raise NotWritten(f"{path} cannot be written: {error.strerror}.") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def require_feedback_folder(folder: Path, *, overwrite: bool) -> None:
    """Make the folder for the pages. Raises `NotWritten` if it cannot be made, or holds pages already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotWritten(f"{folder} cannot be made: {error.strerror}.") from None
    if not overwrite and any(folder.glob("*.html")):
        raise NotWritten(f"{folder} holds pages already. Give another folder, or --overwrite.")
    require_writable(folder / "page.html", overwrite=True)


def write_pages(folder: Path, rows: Sequence[Marked]) -> list[Path]:
    """Write the page of each submission that has one; its name is the submission's path with `_` for `/`."""
    paths: list[Path] = []
    taken: set[str] = set()
    for one in rows:
        if not one.page:
            continue
        name = stem = file_name(one.submission.replace("/", "__"))
        n = 1
        while name.casefold() in taken:
            n += 1
            name = f"{stem}-{n}"
        taken.add(name.casefold())
        paths.append(folder / f"{name}.html")
        write(paths[-1], one.page)
    return paths
