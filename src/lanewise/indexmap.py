"""What layouts and swizzled tiles have in common: a place for every element of a tile."""

from abc import ABC, abstractmethod
from keyword import iskeyword
from math import prod
from typing import Any, TypeAlias

import numpy as np

from lanewise.errors import InvalidLayout
from lanewise.integers import whole

Coordinate: TypeAlias = "int | tuple[int, ...]"

LARGEST_TABLE = 1 << 24  # elements that are listed one by one: 128 MB of indices


class IndexMap(ABC):
    """A function from tile coordinates to element indices: a `Layout`, or a swizzled tile.

    Here is what a cost model or a search asks of a tile: where an element lies, whether two elements collide,
    how many bytes the tile takes, and the code that computes the index in a kernel.
    """

    @abstractmethod
    def __call__(self, *coordinate: Any) -> Any:
        """Element index of a coordinate; NumPy arrays of coordinates give arrays of indices."""

    @property
    @abstractmethod
    def extents(self) -> tuple[int, ...]:
        """How many values each coordinate takes, such as `(rows, cols)`."""

    @property
    @abstractmethod
    def allocated_elems(self) -> int:
        """Elements of the array that a kernel declares for this tile, padding of the last row included."""

    @abstractmethod
    def python(self, name: str = "tile_index") -> str:
        """Source of a Python function that computes the index; numba compiles it as a device function too."""

    def table(self) -> np.ndarray:
        """All indices as an int64 array: `table()[row, col] == self(row, col)`.

        Raises `InvalidLayout` for more than `LARGEST_TABLE` elements, as all that lists elements does.
        """
        require_listable(self, prod(self.extents))
        return np.asarray(self(*np.ix_(*map(np.arange, self.extents))))

    def n_bytes(self, element_bytes: int) -> int:
        """Bytes of shared memory that the tile takes, padding included."""
        return self.allocated_elems * whole(f"{self}: element_bytes", element_bytes, InvalidLayout, low=1)

    def collision(self) -> tuple[Coordinate, Coordinate, int] | None:
        """Two coordinates that share an element, and its index; None if every element has its own place."""
        table = self.table()
        flat = table.ravel()
        order = np.argsort(flat, kind="stable")
        twins = np.flatnonzero(np.diff(flat[order]) == 0)
        if not twins.size:
            return None
        first, second = int(order[twins[0]]), int(order[twins[0] + 1])
        return _unravel(first, table.shape), _unravel(second, table.shape), int(flat[first])

    @property
    def is_injective(self) -> bool:
        """True if no two coordinates share an element, so that what is written can be read back."""
        return self.collision() is None

    @property
    def is_bijection(self) -> bool:
        """True if the indices are exactly 0 .. n - 1: no collision and no gap."""
        table = self.table()
        return self.is_injective and int(table.max()) == table.size - 1

    def coordinates_at(self, index: int) -> list[Coordinate]:
        """The coordinates stored at an element index: none in padding, several where elements collide."""
        table, wanted = self.table(), whole(f"{self}: index", index, InvalidLayout)
        return [_unravel(int(flat), table.shape) for flat in np.flatnonzero(table == wanted)]

    def defect(self) -> str:
        """Why data stored through this map cannot be read back, in words; empty if it can."""
        twins = self.collision()
        if twins:
            return f"{twins[0]} and {twins[1]} both land on element {twins[2]}"
        table = self.table()
        if table.max() >= self.allocated_elems:
            where = _unravel(int(table.argmax()), table.shape)
            return f"{where} lands on element {table.max()}, outside the {self.allocated_elems} allocated"
        return ""


def require_listable(owner: object, n_elems: int) -> None:
    """Raise `InvalidLayout` in the owner's name for a number of elements that would fill the memory."""
    if n_elems > LARGEST_TABLE:
        raise InvalidLayout(
            f"{owner}: has {n_elems:,} elements; at most {LARGEST_TABLE:,} are listed one by one. Call it"
            " with the coordinates you need, or take a smaller tile."
        )


def require_identifier(owner: object, name: str) -> None:
    """Raise `InvalidLayout` in the owner's name for a name that Python does not let a function have."""
    if not (isinstance(name, str) and name.isidentifier()) or iskeyword(name):
        raise InvalidLayout(
            f"{owner}: {name!r} cannot name a function. Use a Python name such as 'tile_index'."
        )


def checked_coordinate(owner: object, values: Any, extent: int) -> np.ndarray:
    """The values as int64; `InvalidLayout` in the owner's name unless they are integers of 0..extent-1."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise InvalidLayout(
            f"{owner}: coordinates {values!r} are of different lengths. Pad the rows."
        ) from None
    if array.dtype.kind not in "iu":
        raise InvalidLayout(f"{owner}: coordinate {values!r} is not an integer. Use // rather than /.")
    outside = (array < 0) | (array >= extent)
    if outside.any():
        raise InvalidLayout(
            f"{owner}: coordinate {array[outside].flat[0]} is outside 0..{extent - 1}."
            " Mask the lanes that fall off the tile, or make the tile larger."
        )
    return array.astype(np.int64)


def _unravel(flat: int, shape: tuple[int, ...]) -> Coordinate:
    parts = tuple(int(part) for part in np.unravel_index(flat, shape))
    return parts[0] if len(parts) == 1 else parts
