"""Record files: what they say of a case, whether they still hold, and how they are replaced.

A file is replaced whole and at once, by renaming a finished one: whoever ends the program in between leaves
the old file as it was. An experiment with a case that failed does not replace one whose cases all succeeded.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lanewise.errors import Unfit
from lanewise.experiments import Case, Experiment
from lanewise.records import Provenance, kernel_hash

Row = dict[str, Any]
Content = dict[str, Any]  # of a file: its provenance, and rows by the name of their table
IDENTITY = ("label", "problem", "kernel", "hash", "grid", "block", "dynamic_shared_bytes", "scalars")


def identity(case: Case, hash_of: Callable[[Any], str] = kernel_hash) -> Row:
    """What tells a case from others, and from what it was before someone changed it.

    Who asks about many cases can give a `hash_of` that remembers a kernel's hash.
    """
    return {
        "label": case.label,
        "problem": case.problem.name,
        "kernel": case.name,
        "hash": hash_of(case.kernel),
        "grid": axes(case.grid),
        "block": axes(case.block),
        "dynamic_shared_bytes": case.dynamic_shared_bytes,
        "scalars": {name: _plain(value) for name, value in case.scalars.items()},
    }


def axes(shape: int | tuple[int, ...]) -> list[int]:
    """A launch shape as a list, x first."""
    return [int(axis) for axis in (shape if isinstance(shape, tuple | list) else (shape,))]


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def read(path: Path) -> Content:
    """The content of a record file; empty if there is none. Raises `Unfit` if it cannot be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise Unfit(f"{path} cannot be read ({error}). Move it away, or restore it.") from error


def write(path: Path, content: Content) -> None:
    """Replace a record file, one row a line. Raises `Unfit` if the folder cannot be written."""
    tables = ",\n".join(f"{json.dumps(name)}: {_table(rows)}" for name, rows in content.items())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, passing = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{{{tables}}}\n")
            os.chmod(passing, 0o644)
            os.replace(passing, path)
        except BaseException:
            Path(passing).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise Unfit(f"{path} cannot be written ({error.strerror}). Give a folder: --out records/") from error


def _table(rows: Any) -> str:
    if not isinstance(rows, list):
        return json.dumps(rows)
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"


def rows_of(content: Content, experiment: str, table: str) -> list[Row]:
    """The rows of one experiment."""
    return [row for row in content.get(table, []) if row["experiment"] == experiment]


def is_current(content: Content, experiment: Experiment, cases: Sequence[Case], table: str) -> bool:
    """Whether a file has a good row for each of these cases, as they are now, and no other."""
    rows = rows_of(content, experiment.id, table)
    if any("error" in row for row in rows):
        return False
    recorded = [{key: row.get(key) for key in IDENTITY} for row in rows]
    return recorded == [identity(case) for case in cases]


def is_good(content: Content, experiment: str, table: str) -> bool:
    """Whether a file has this experiment and none of its cases failed."""
    rows = rows_of(content, experiment, table)
    return bool(rows) and not any("error" in row for row in rows)


def merged(
    content: Content, experiment: Experiment, rows: Sequence[Row], provenance: Provenance, table: str
) -> Content:
    """A file's content with one experiment replaced, and the order of experiments by id."""
    stated = asdict(provenance)
    about: Row = {"id": experiment.id, "question": experiment.question, "speed": experiment.speed}
    about["provenance"] = stated
    others = [row for row in content.get("experiments", []) if row["id"] != experiment.id]
    kept = [row for row in content.get(table, []) if row["experiment"] != experiment.id]
    new = [{"experiment": experiment.id, **row} for row in rows]
    return {
        "provenance": stated,
        "experiments": sorted([*others, about], key=lambda row: row["id"]),
        table: sorted([*kept, *new], key=lambda row: row["experiment"]),  # stable: cases keep their order
    }


def failures(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The errors among rows, each in a sentence."""
    return [f"{row['label']} ({row['problem']}): {row['error']}" for row in rows if "error" in row]
