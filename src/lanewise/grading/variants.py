"""Variants of a lab as files: the notebook of a seed and its key, and those of a roster."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.errors import Error
from lanewise.grading.plain import cell, file_name
from lanewise.grading.table import NotWritten, require_writable, write
from lanewise.labs import load

if TYPE_CHECKING:
    from nbformat import NotebookNode

KEYS = "keys"
ROSTER = "variants.csv"


class NoLabSource(Error):
    """A lab's source notebook, which holds the solution, is not where it was looked for."""


class InvalidRoster(Error):
    """A roster that is no table of students."""


@dataclass(frozen=True)
class Assigned:
    """Who gets which seed; `student` is '' for a variant that is nobody's."""

    student: str
    seed: int


def find_source(lab: str, folder: Path | None) -> NotebookNode:
    """The source notebook of a lab: in `folder`, or beside the working folder or the package.

    Raises `NoLabSource` with the places and what is needed.
    """
    load(lab)  # says which labs there are, if this is none
    home = Path(__file__).resolve().parents[3] / "labs" / "source"
    places = [folder] if folder else [Path("labs/source"), Path("source"), home]
    for place in places:
        for path in (place / lab / f"{lab}.ipynb", place / f"{lab}.ipynb"):
            if path.is_file() and (notebook := _with_solution(path)):
                return notebook
    looked = ", ".join(str(place) for place in places)
    raise NoLabSource(
        f"There is no source of {lab} with its solution in {looked}. An installed lanewise has none, since"
        " learners install it. Get the repository, and give its folder: --source labs/source"
    )


def _with_solution(path: Path) -> NotebookNode | None:
    try:
        import nbformat
    except ModuleNotFoundError as error:
        raise NoLabSource("Variants need nbformat. Run: pip install 'lanewise[grade]'") from error
    from lanewise.grading.student import BEGIN

    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.reader.NotJSONError) as error:
        raise NoLabSource(f"{path} cannot be read as a notebook: {error}.") from None
    return notebook if any(BEGIN in one.source for one in notebook.cells) else None


def write_variants(
    source: NotebookNode, assigned: Sequence[Assigned], folder: Path, *, overwrite: bool = False
) -> list[Path]:
    """Write the notebook of each variant to `folder`, its key to `keys/` in it; for a roster also a table of
    who got which. Raises `NotWritten` before anything is written if a file is there already.
    """
    from lanewise.grading.student import key_notebook, lab_of, student_notebook

    lab, _ = lab_of(source)
    texts: dict[Path, str] = {}
    for one in assigned:
        name = f"{lab}-{one.seed}"
        owner = file_name(one.student) if one.student else ""
        given = folder / owner / f"{lab}.ipynb" if owner else folder / f"{name}.ipynb"
        texts[given] = _text(student_notebook(source, one.seed))
        texts[folder / KEYS / f"{name}-key.ipynb"] = _text(key_notebook(source, one.seed))
    if any(one.student for one in assigned):
        texts[folder / ROSTER] = _table(assigned)
    for path in texts:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NotWritten(f"{path.parent} cannot be made: {error.strerror}.") from None
        require_writable(path, overwrite=overwrite)
    for path, text in texts.items():
        write(path, text)
    return list(texts)


def _text(notebook: NotebookNode) -> str:
    import nbformat

    return f"{nbformat.writes(notebook)}\n"


def _table(assigned: Sequence[Assigned]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "seed"])
    writer.writerows([cell(one.student), one.seed] for one in assigned)
    return text.getvalue()


def read_roster(path: Path, first_seed: int | None = None) -> list[Assigned]:
    """Students, and the seed of each, from a CSV with the columns `student` and `seed`.

    Without a column `seed` they get `first_seed` and those that follow. Raises `InvalidRoster`.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    except (OSError, ValueError, csv.Error) as error:
        raise InvalidRoster(f"{path} cannot be read as a table: {error}.") from None
    if not rows or "student" not in rows[0]:
        raise InvalidRoster(f"{path} has no column student, or no row. Its first line is: student,seed")
    assigned = []
    for number, row in enumerate(rows):
        student, given = (row["student"] or "").strip(), (row.get("seed") or "").strip()
        seed = int(given) if given.isascii() and given.isdigit() and len(given) <= 10 else None
        if seed is None and not given and first_seed is not None:
            seed = first_seed + number
        if not student or seed is None:
            raise InvalidRoster(
                f"{path}, row {number + 1}: student {student!r} and seed {given!r}; give a name and a whole"
                " number, or --seed S for the first where none is given."
            )
        assigned.append(Assigned(student, seed))
    twice = {one.student for one in assigned if sum(two.student == one.student for two in assigned) > 1}
    if twice:
        raise InvalidRoster(f"{path}: {min(twice)!r} is there more than once. Give each student one row.")
    return assigned
