"""The recorded counter tables in `tests/data`, as arrays."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class GoldenTable:
    """All recorded rows of one instruction; `counts` are the two counter columns, `(n,)` each."""

    instruction: str
    addresses: np.ndarray
    masks: tuple[int, ...]
    counts: tuple[np.ndarray, np.ndarray]

    @property
    def active(self) -> np.ndarray:
        """The masks as `(n, 32)` bools."""
        return np.array([[bool(mask >> lane & 1) for lane in range(32)] for mask in self.masks])


@cache
def golden_tables(file: str, first: str, second: str) -> tuple[GoldenTable, ...]:
    """Read one CSV file and group its rows by instruction; `first` and `second` name the counter columns."""
    with (DATA / file).open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    return tuple(
        _table(name, [row for row in rows if row["instruction"] == name], first, second)
        for name in sorted({row["instruction"] for row in rows})
    )


def _table(name: str, rows: list[dict[str, str]], first: str, second: str) -> GoldenTable:
    return GoldenTable(
        instruction=name,
        addresses=np.array([[int(offset) for offset in row["byte_offsets"].split()] for row in rows]),
        masks=tuple(int(row["active_mask"], 16) for row in rows),
        counts=(np.array([int(row[first]) for row in rows]), np.array([int(row[second]) for row in rows])),
    )
