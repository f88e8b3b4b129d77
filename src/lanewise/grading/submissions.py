"""What was handed in: the notebooks of a folder or a zip, and whose they are.

Nothing is unpacked to the disk, no link is followed, and no more than `LARGEST` bytes of a file are read.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from lanewise.errors import Error
from lanewise.grading.status import NO_NOTEBOOK, UNREADABLE
from lanewise.grading.students import NOBODY, Who, common_depth, who

LARGEST = 20 * 2**20  # bytes; a notebook with all its pictures has a hundredth of that
MOST_FILES = 20_000  # of a zip, and of a whole class
LINK = "a symbolic link, which is not followed"
IGNORED_FOLDERS = ("__MACOSX", "__pycache__")


class NoSubmissions(Error):
    """The folder or zip is not there, cannot be read, or holds nothing to grade."""


class Unreadable(Error):
    """A file from which no notebook can be read."""


@dataclass(frozen=True)
class Submission:
    """One file that was handed in. `name` is its path below the folder of submissions, through zips.

    `member` is its position in the zip at `path`, -1 if it lies in none. `problem`, with `status`, says why
    there is nothing to read.
    """

    name: str
    path: Path
    member: int = -1
    status: str = ""
    problem: str = ""
    who: Who = NOBODY

    @property
    def parts(self) -> tuple[str, ...]:
        """The steps of its path."""
        return PurePosixPath(self.name).parts

    def read(self) -> bytes:
        """Its bytes. Raises `Unreadable` with the reason."""
        if self.problem:
            raise Unreadable(self.problem)
        try:
            content = self._from_zip() if self.member >= 0 else self._from_file()
        except OSError as error:
            why = error.strerror or type(error).__name__
            raise Unreadable(f"The file cannot be read: {why}.") from None
        except Exception as error:  # what a damaged zip raises depends on how it was packed
            raise Unreadable(f"The file cannot be unpacked: {type(error).__name__}.") from None
        if len(content) > LARGEST:
            raise Unreadable(_too_large())
        return content

    def _from_file(self) -> bytes:
        with open(self.path, "rb") as file:
            return file.read(LARGEST + 1)

    def _from_zip(self) -> bytes:
        with zipfile.ZipFile(self.path) as archive:
            entry = archive.infolist()[self.member]
            with archive.open(entry) as file:
                return file.read(LARGEST + 1)


@dataclass(frozen=True)
class Found:
    """The submissions of a class in the order of their names, and what was left alone."""

    submissions: tuple[Submission, ...]
    ignored: tuple[str, ...]


def find(place: Path) -> Found:
    """The submissions in a folder or a zip. Raises `NoSubmissions` if there is none."""
    if not place.exists():
        raise NoSubmissions(f"{place} does not exist. Give the folder or the zip of what was handed in.")
    if place.is_dir():
        place = place / "submitted" if (place / "submitted").is_dir() else place
        files = list(_in_folder(place))
    elif zipfile.is_zipfile(place):
        files = list(_in_zip(place, ()))
    elif place.suffix == ".ipynb":
        files = [Submission(place.name, place)]
    else:
        raise NoSubmissions(f"{place} is no folder, no zip and no notebook. Give one of these.")
    if len(files) > MOST_FILES:
        raise NoSubmissions(f"{place} holds {len(files):,} files; at most {MOST_FILES:,} are looked at.")
    files.sort(key=_order)
    found = _with_students(files)
    if not found.submissions:
        raise NoSubmissions(
            f"{place} holds no notebook, only {len(files):,} other files. Give what was handed in."
        )
    return found


def _with_students(files: list[Submission]) -> Found:
    depth = common_depth([one.parts for one in files if _is_notebook(one.name)])
    files = [replace(one, who=who(one.parts, depth)) for one in files]
    rows = [one for one in files if one.problem or _is_notebook(one.name)]
    served = {one.who.key for one in rows}
    for one in files:  # who handed in files and no notebook gets a row, at the first of them
        if one.who.sure and one.who.key not in served:
            served.add(one.who.key)
            rows.append(replace(one, status=NO_NOTEBOOK, problem="No notebook is among the files handed in."))
    rows.sort(key=_order)
    known = {one.name for one in rows}
    return Found(tuple(_distinct(rows)), tuple(one.name for one in files if one.name not in known))


def _distinct(rows: list[Submission]) -> list[Submission]:
    """Students of one name get the platform's number behind it."""
    shared = Counter(student for student, _ in {one.who.key for one in rows})
    return [
        replace(one, who=replace(one.who, student=f"{one.who.student} ({one.who.number})"))
        if shared[one.who.student] > 1 and one.who.number
        else one
        for one in rows
    ]


def _order(one: Submission) -> tuple[str, str]:
    return one.name.casefold(), one.name


def _is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb")


def _is_ignored(name: str) -> bool:
    return name.startswith(".") or name in IGNORED_FOLDERS


def _in_folder(root: Path) -> Iterator[Submission]:
    try:
        os.listdir(root)
    except OSError as error:
        raise NoSubmissions(f"{root} cannot be read: {error.strerror}.") from None
    for folder, folders, files in os.walk(root):
        at = Path(folder)
        below = at.relative_to(root).parts
        for name in sorted(folders):
            path = at / name
            if _is_ignored(name) or not (path.is_symlink() or _is_notebook(name)):
                continue
            why = (
                "a symbolic link, which is not followed" if path.is_symlink() else "a folder, not a notebook"
            )
            yield Submission("/".join((*below, name)), path, status=UNREADABLE, problem=f"This is {why}.")
        folders[:] = sorted(name for name in folders if not (_is_ignored(name) or _is_notebook(name)))
        for name in sorted(files):
            if not _is_ignored(name):
                yield from _file(at / name, (*below, name))


def _file(path: Path, parts: tuple[str, ...]) -> Iterator[Submission]:
    name = "/".join(parts)
    wanted = _is_notebook(name) or name.lower().endswith(".zip")
    mode = path.lstat().st_mode
    if wanted and not stat.S_ISREG(mode):
        what = LINK if stat.S_ISLNK(mode) else "no ordinary file"
        yield Submission(name, path, status=UNREADABLE, problem=f"This is {what}.")
    elif name.lower().endswith(".zip"):
        yield from _in_zip(path, parts)
    elif wanted and path.stat().st_size > LARGEST:
        yield Submission(name, path, status=UNREADABLE, problem=_too_large())
    else:
        yield Submission(name, path)


def _in_zip(path: Path, parts: tuple[str, ...]) -> Iterator[Submission]:
    """The files in a zip; a zip within it is not opened."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except Exception as error:  # what a damaged zip raises depends on where it is damaged
        why = f"This zip cannot be opened: {type(error).__name__}."
        yield Submission("/".join(parts) or path.name, path, status=UNREADABLE, problem=why)
        return
    if len(entries) > MOST_FILES:
        why = f"This zip holds {len(entries):,} files; at most {MOST_FILES:,} are looked at."
        yield Submission("/".join(parts) or path.name, path, status=UNREADABLE, problem=why)
        return
    for position, entry in enumerate(entries):
        steps = [step for step in entry.filename.replace("\\", "/").split("/") if step not in ("", ".")]
        if entry.is_dir() or not steps or any(map(_is_ignored, (step for step in steps if step != ".."))):
            continue
        name = "/".join((*parts, *(step for step in steps if step != "..")))
        yield Submission(name or path.name, path, position, *_problem_in_zip(entry, steps))


def _problem_in_zip(entry: zipfile.ZipInfo, steps: list[str]) -> tuple[str, str]:
    if entry.filename.lower().endswith(".zip"):
        return UNREADABLE, "This is a zip inside a zip. Unpack it and grade again."
    if not _is_notebook(entry.filename):
        return "", ""
    if ".." in steps or entry.filename.startswith(("/", "\\")) or ":" in steps[0]:
        return UNREADABLE, "Its path leads out of the zip."
    if entry.flag_bits & 1:
        return UNREADABLE, "It is encrypted."
    if stat.S_ISLNK(entry.external_attr >> 16):
        return UNREADABLE, f"This is {LINK}."
    return (UNREADABLE, _too_large()) if entry.file_size > LARGEST else ("", "")


def _too_large() -> str:
    return f"The file is larger than {LARGEST // 2**20} MiB. Ask for the notebook without its outputs."
