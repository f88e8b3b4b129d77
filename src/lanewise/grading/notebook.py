"""A submitted notebook as data: which lab it says it is, and the text of its cells. Outputs are not read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lanewise.grading.plain import visible
from lanewise.grading.submissions import Unreadable

MOST_CELLS = 20_000
MOST_CHARACTERS = 2_000_000  # of one cell; a longer one is cut, and what it holds is refused later
_HOMES = ("cells", "worksheets")  # where format 4 has its cells, and format 3


@dataclass(frozen=True)
class Cell:
    """One cell: `number` counts all cells from 1, `grade_id` names its part in grading, '' if it has none."""

    number: int
    kind: str
    text: str
    grade_id: str

    @property
    def is_code(self) -> bool:
        """Whether it is a code cell."""
        return self.kind == "code"


@dataclass(frozen=True)
class Notebook:
    """`lab` and `seed` are what the notebook's metadata holds under these names, whatever that is."""

    lab: Any
    seed: Any
    cells: tuple[Cell, ...]

    @property
    def code(self) -> tuple[Cell, ...]:
        """The code cells."""
        return tuple(cell for cell in self.cells if cell.is_code)


def parse(content: bytes) -> Notebook:
    """Read a notebook of format 3 or 4 leniently: what is malformed in it is left out.

    Raises `Unreadable` where there is no notebook at all.
    """
    if not content.strip():
        raise Unreadable("The file is empty.")
    try:
        data = json.loads(content)
    except json.JSONDecodeError as error:
        raise Unreadable(
            f"The file is no notebook, or was cut off: {visible(error.msg)} at line {error.lineno:,}."
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"The file is no notebook: {type(error).__name__} while reading it.") from None
    if not isinstance(data, dict) or not any(
        isinstance(data.get(key), list) for key in ("cells", "worksheets")
    ):
        raise Unreadable("The file is JSON, but no notebook: it has no cells.")
    given = list(_cells(data))
    if len(given) > MOST_CELLS:
        raise Unreadable(f"The notebook has {len(given):,} cells; at most {MOST_CELLS:,} are read.")
    about = _mapping(_mapping(data.get("metadata")).get("lanewise"))
    return Notebook(
        about.get("lab"), about.get("seed"), tuple(_cell(number, one) for number, one in enumerate(given, 1))
    )


def _cells(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The cells of format 4, or those of the worksheets of format 3."""
    sheets = data["cells"] if isinstance(data.get("cells"), list) else None
    groups = [sheets] if sheets is not None else [_mapping(one).get("cells") for one in data["worksheets"]]
    for group in groups:
        yield from (one for one in group if isinstance(one, dict)) if isinstance(group, list) else ()


def _cell(number: int, given: dict[str, Any]) -> Cell:
    kind = given.get("cell_type")
    part = _mapping(_mapping(given.get("metadata")).get("nbgrader"))
    grade_id = part.get("grade_id")
    return Cell(
        number,
        kind if isinstance(kind, str) else "",
        _text(given.get("source", given.get("input"))),
        grade_id if isinstance(grade_id, str) else "",
    )


def _text(source: Any) -> str:
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    text = source if isinstance(source, str) else ""
    return text[:MOST_CHARACTERS].replace("\r\n", "\n").replace("\r", "\n")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
