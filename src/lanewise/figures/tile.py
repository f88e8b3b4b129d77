"""The cells of a tile as data: which element each shows, where it lies, and which lanes touch it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from lanewise.figures.drawing import InvalidDrawing
from lanewise.instructions import instruction
from lanewise.machine import BANK_ROW_BYTES, BANKS, CHUNK_BYTES, WORD_BYTES
from lanewise.memory import SharedCost

Label = Literal["bank", "word", "index", "chunk"]
Indices: TypeAlias = "int | Sequence[int]"
Place: TypeAlias = Callable[[Any, Any], Any]

CHUNKS = BANK_ROW_BYTES // CHUNK_BYTES
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
    if label not in SHOWS:
        raise InvalidDrawing(f"draw_address_grid: label {label!r}: a cell can show {', '.join(SHOWS)}.")
    if element_bytes < 1 or base_address < 0:
        raise InvalidDrawing(
            f"draw_address_grid: got element_bytes={element_bytes}, base_address={base_address}; an"
            " element has at least 1 byte, and addresses start at 0."
        )
    pitch = None if callable(layout) else layout
    if pitch is not None and isinstance(cols, int):
        if pitch < cols:
            raise InvalidDrawing(
                f"draw_address_grid: rows {pitch} elements apart cannot hold {cols} columns. Give a pitch of"
                f" at least {cols}, or fewer columns."
            )
        padding_from = cols if padding_from is None else padding_from
        cols = pitch
    row_list, col_list = _indices("rows", rows), _indices("cols", cols)
    row, col = np.ix_(row_list, col_list)
    index = np.asarray(layout(row, col) if callable(layout) else row * layout + col)
    if index.dtype.kind not in "iu" or index.min() < 0:
        raise InvalidDrawing(
            f"draw_address_grid: the layout gives {index.dtype} from {index.min()}; indices are"
            " integers of 0 or more. Use // rather than /."
        )
    index = np.broadcast_to(index.astype(np.int64), (len(row_list), len(col_list)))
    return Tile(row_list, col_list, base_address + index * element_bytes, element_bytes, padding_from, label)


def _indices(what: str, given: Indices) -> tuple[int, ...]:
    indices = tuple(range(given)) if isinstance(given, int) else tuple(map(int, given))
    if not indices or indices[0] < 0 or any(after <= before for before, after in pairwise(indices)):
        raise InvalidDrawing(
            f"draw_address_grid: {what}={given!r}; give a number of 1 or more, or rising indices from 0 on."
        )
    return indices


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
