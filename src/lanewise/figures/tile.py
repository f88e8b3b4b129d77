"""The cells of a tile as data: which element each shows, where it lies, and which lanes touch it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from lanewise.figures.drawing import InvalidDrawing
from lanewise.instructions import instruction
from lanewise.integers import LARGEST, as_int, whole
from lanewise.machine import BANK_ROW_BYTES, BANKS, CHUNK_BYTES, WORD_BYTES
from lanewise.memory import SharedCost

Label = Literal["bank", "word", "index", "chunk"]
Indices: TypeAlias = "int | Sequence[int]"
Place: TypeAlias = Callable[[Any, Any], Any]

CHUNKS = BANK_ROW_BYTES // CHUNK_BYTES
MOST_CELLS = 256  # across or down; smaller cells are not legible in any figure
MOST_INDEX = 2**31  # of a row or column: their products must not wrap around
_LAYOUT_HINT = "Or a function (row, col) -> element index, such as a Layout."
SHOWS: dict[Label, str] = {
    "bank": "bank",
    "word": "32-bit word",
    "index": "element index",
    "chunk": "16-byte chunk of the 32 banks",
}


@dataclass(frozen=True)
class Tile:
    """The cells to draw: their rows, columns and byte addresses, an int64 array (rows, columns)."""

    rows: tuple[int, ...]
    cols: tuple[int, ...]
    byte_addresses: np.ndarray
    element_bytes: int
    padding_from: int | None
    label: Label

    @property
    def banks(self) -> np.ndarray:
        return self.byte_addresses // WORD_BYTES % BANKS

    @property
    def numbers(self) -> np.ndarray:
        """What the cells show."""
        if self.label == "bank":
            return self.banks
        if self.label == "chunk":
            return self.byte_addresses // CHUNK_BYTES % CHUNKS
        return self.byte_addresses // (WORD_BYTES if self.label == "word" else self.element_bytes)

    def is_padding(self, column: int) -> bool:
        return self.padding_from is not None and self.cols[column] >= self.padding_from

    def lanes_by_cell(self, cost: SharedCost) -> dict[tuple[int, int], list[int]]:
        """The lanes that touch a byte of each cell, by the cell's position."""
        width = instruction(cost.access.instruction).bytes_per_lane
        cells: dict[tuple[int, int], list[int]] = {}
        for lane in cost.access.addressing_lanes:
            start = cost.access.addresses[lane]
            ends = self.byte_addresses + self.element_bytes
            for row, col in np.argwhere((self.byte_addresses < start + width) & (ends > start)):
                cells.setdefault((int(row), int(col)), []).append(lane)
        return cells


def tile_of(
    layout: int | Place,
    rows: Indices,
    cols: Indices,
    element_bytes: int,
    base_address: int,
    padding_from: int | None,
    label: Label,
) -> Tile:
    """Check what `draw_address_grid` was given, and place every cell."""
    if not isinstance(label, str) or label not in SHOWS:
        raise InvalidDrawing(f"draw_address_grid: label {label!r}: a cell can show {', '.join(SHOWS)}.")
    element_bytes = _whole("element_bytes", element_bytes, low=1)
    base_address = _whole("base_address", base_address)
    if padding_from is not None:
        padding_from = _whole("padding_from", padding_from)
    row_list, col_list = _indices("rows", rows), _indices("cols", cols)
    if not callable(layout):
        layout = _whole("layout", layout, low=1, high=MOST_INDEX, hint=_LAYOUT_HINT)
        if as_int(cols) is not None:
            if layout < len(col_list):
                raise InvalidDrawing(
                    f"draw_address_grid: rows {layout} elements apart cannot hold {cols} columns. Give a"
                    f" pitch of at least {cols}, or fewer columns."
                )
            padding_from = len(col_list) if padding_from is None else padding_from
            col_list = _indices("layout", layout)
    index = _element_indices(layout, row_list, col_list)
    if index.max() > (LARGEST - base_address) // element_bytes:
        raise InvalidDrawing(
            f"draw_address_grid: element {index.max()} lies beyond the last address, {LARGEST}. Draw other"
            " rows or columns."
        )
    return Tile(row_list, col_list, base_address + index * element_bytes, element_bytes, padding_from, label)


def _element_indices(layout: int | Place, rows: tuple[int, ...], cols: tuple[int, ...]) -> np.ndarray:
    """The element index of every cell: int64, (rows, columns)."""
    row, col = np.ix_(rows, cols)
    index = np.asarray(layout(row, col) if callable(layout) else row * layout + col)
    if index.dtype.kind not in "iu" or not index.size or index.min() < 0:
        least = f" from {index.min()}" if index.size and index.dtype.kind in "iuf" else ""
        raise InvalidDrawing(
            f"draw_address_grid: the layout gives {index.dtype}{least}; indices are integers of 0 or more."
            " Use // rather than /."
        )
    try:
        return np.broadcast_to(index.astype(np.int64), (len(rows), len(cols)))
    except ValueError:
        raise InvalidDrawing(
            f"draw_address_grid: the layout gives indices of shape {index.shape} for {len(rows)} rows and"
            f" {len(cols)} columns. Give a function that works element by element."
        ) from None


def _indices(what: str, given: Indices) -> tuple[int, ...]:
    number = as_int(given)
    if number is not None:
        return tuple(range(_whole(what, number, low=1, high=MOST_CELLS, hint="Or list the ones to show.")))
    listed = [as_int(each) for each in given] if isinstance(given, Iterable) else []
    indices = tuple(index for index in listed if index is not None)
    falls = any(after <= before for before, after in pairwise(indices))
    if not indices or len(indices) < len(listed) or falls or indices[0] < 0 or indices[-1] > MOST_INDEX:
        raise InvalidDrawing(
            f"draw_address_grid: {what}={given!r}; give a number of 1 or more, or rising indices from 0 on."
        )
    return indices


def _whole(what: str, value: object, low: int = 0, high: int = LARGEST, hint: str = "") -> int:
    return whole(f"draw_address_grid: {what}", value, InvalidDrawing, low, high, hint)


def waiting_pairs(cost: SharedCost) -> set[tuple[int, int]]:
    """The (lane, bank) pairs of which the lane's group needs several words of the bank."""
    return {
        (lane, bank)
        for phase in cost.phases
        for bank, words in phase.words_by_bank.items()
        if len(words) > 1
        for word in words
        for lane in phase.lanes_by_word[word]
    }
