"""Dense row-major tiles whose columns are permuted within each row: XOR tiles and rotations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lanewise.errors import InvalidLayout, InvalidSwizzle
from lanewise.indexmap import LARGEST_TABLE, IndexMap, checked_coordinate, require_identifier
from lanewise.integers import whole
from lanewise.swizzles.swizzle import Swizzle


class RowwiseTile(IndexMap):
    """A dense row-major tile whose columns are permuted within each row."""

    rows: int
    cols: int

    def _make_whole(self, names: Sequence[str], low: int, high: int) -> None:
        """Refuse fields that are no whole numbers of `low` to `high`, and turn NumPy's integers into ints."""
        for name in names:
            number = whole(f"{type(self).__name__}: {name}", getattr(self, name), InvalidSwizzle, low, high)
            object.__setattr__(self, name, number)

    @abstractmethod
    def column(self, row: Any, col: Any) -> Any:
        """The column that (row, col) is moved to."""

    @abstractmethod
    def column_expression(self) -> str:
        """The same as a Python expression of `row` and `col`."""

    def __call__(self, *coordinate: Any) -> Any:
        if len(coordinate) != 2:
            raise InvalidLayout(f"{self}: got {len(coordinate)} coordinates. Give a row and a column.")
        row, col = coordinate
        row = checked_coordinate(self, row, self.rows)
        col = checked_coordinate(self, col, self.cols)
        index = row * self.cols + self.column(row, col)
        return int(index) if np.ndim(index) == 0 else index

    @property
    def extents(self) -> tuple[int, ...]:
        return self.rows, self.cols

    @property
    def allocated_elems(self) -> int:
        return self.rows * self.cols

    def python(self, name: str = "tile_index") -> str:
        require_identifier(self, name)
        return f"def {name}(row, col):\n    return row * {self.cols} + {self.column_expression()}\n"

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols} tile with {self.column_expression()}"


@dataclass(frozen=True)
class XorTile(RowwiseTile):
    """A row-major tile with the column XORed: `col ^ (((row >> row_shift) & mask) << shift)`.

    The class also holds broken ones, to show why they are; `xor_tile` refuses those.

    >>> XorTile(32, 24, mask=7, shift=2).defect()
    '(2, 16) and (3, 12) both land on element 72'
    """

    rows: int
    cols: int
    mask: int
    shift: int = 0
    row_shift: int = 0

    def __post_init__(self) -> None:
        self._make_whole(("rows", "cols"), 1, LARGEST_TABLE)
        self._make_whole(("mask",), 0, LARGEST_TABLE - 1)
        self._make_whole(("shift", "row_shift"), 0, LARGEST_TABLE.bit_length())

    def column(self, row: Any, col: Any) -> Any:
        return col ^ (((row >> self.row_shift) & self.mask) << self.shift)

    def column_expression(self) -> str:
        row = f"((row >> {self.row_shift}) & {self.mask})" if self.row_shift else f"(row & {self.mask})"
        return f"(col ^ ({row} << {self.shift}))" if self.shift else f"(col ^ {row})"

    def as_swizzle(self) -> Swizzle:
        """The `Swizzle<B,M,S>` on element offsets that does the same to a tile of this width.

        >>> xor_tile(64, 32, mask=3, shift=3, row_shift=1).as_swizzle()
        Swizzle(2, 3, 3)

        Raises `InvalidSwizzle` if the width is no power of two, or the mask no run of low bits that fits it.
        """
        bits, width = self.mask.bit_length(), self.cols.bit_length() - 1
        if self.cols != 1 << width or self.mask != (1 << bits) - 1 or bits + self.shift > width:
            raise InvalidSwizzle(
                f"{self}: no Swizzle<B,M,S> does this. It takes a power of two as width, a mask of B low"
                " bits, and a shift that keeps them inside the row."
            )
        return Swizzle(bits, self.shift, width + self.row_shift - self.shift)


@dataclass(frozen=True)
class RotationTile(RowwiseTile):
    """A row-major tile with row `r` rotated by `r // rows_per_step` pieces of `unit` columns.

    >>> RotationTile(32, 32)(1, np.array([0, 1, 31])).tolist()
    [33, 34, 32]
    """

    rows: int
    cols: int
    unit: int = 1
    rows_per_step: int = 1

    def __post_init__(self) -> None:
        self._make_whole(("rows", "cols", "unit", "rows_per_step"), 1, LARGEST_TABLE)

    def column(self, row: Any, col: Any) -> Any:
        return (col + row // self.rows_per_step * self.unit) % self.cols

    def column_expression(self) -> str:
        row = f"row // {self.rows_per_step}" if self.rows_per_step > 1 else "row"
        return f"(col + {f'{row} * {self.unit}' if self.unit > 1 else row}) % {self.cols}"


def xor_tile(rows: int, cols: int, mask: int | None = None, shift: int = 0, row_shift: int = 0) -> XorTile:
    """A row-major tile with element (row, col) at column `col ^ (((row >> row_shift) & mask) << shift)`.

    Without `mask` the XOR takes as many bits of the row as the width allows: `col ^ row` for a 32x32 tile.

    >>> xor_tile(32, 32)(3, 5)
    102

    Raises `InvalidSwizzle`, with two elements that collide, if the width cannot take the XOR.
    """
    tile = XorTile(rows, cols, 0 if mask is None else mask, shift, row_shift)
    if mask is None:
        largest_power_of_two_in_cols = tile.cols & -tile.cols
        tile = replace(tile, mask=max((largest_power_of_two_in_cols >> tile.shift) - 1, 0))
    defect = tile.defect()
    if defect:
        reach = 1 << (tile.mask << tile.shift).bit_length()
        raise InvalidSwizzle(
            f"xor_tile: {tile}: {defect}. The XOR shuffles groups of {reach} columns, so the width must be a"
            f" multiple of {reach}: narrow the mask, widen the row, or use rotation_tile."
        )
    return tile


def rotation_tile(rows: int, cols: int, unit: int = 1, rows_per_step: int = 1) -> RotationTile:
    """A row-major tile with row `r` rotated by `r // rows_per_step` pieces of `unit` columns.

    That permutes rows of any width. For vector accesses let `unit` be the elements of one access.

    >>> rotation_tile(32, 32)(3, 31)
    98

    Raises `InvalidSwizzle` if `unit` does not divide the width, which would tear a piece in two.
    """
    tile = RotationTile(rows, cols, unit, rows_per_step)
    if tile.cols % tile.unit:
        raise InvalidSwizzle(
            f"rotation_tile: pieces of {unit} columns do not divide a row of {cols}; the one that wraps"
            " around would be torn. Use a unit that divides the width."
        )
    return tile
