"""What a tile must serve: instructions, and which element each lane touches, before any layout is chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lanewise.access import as_array
from lanewise.errors import InvalidAccess
from lanewise.fragments import A_ROW_MAJOR, MatrixMove, OperandLoad
from lanewise.instructions import Instruction, instruction
from lanewise.integers import whole
from lanewise.machine import MACHINES, WARP_LANES
from lanewise.text import count

MOST_SHARED_BYTES = max(machine.max_shared_bytes_per_block for machine in MACHINES.values())


@dataclass(frozen=True)
class TileShape:
    """The tile as the algorithm sees it: rows, columns, bytes per element.

    Raises `InvalidAccess` for impossible sizes and for tiles that no GPU has the shared memory for.
    """

    rows: int
    cols: int
    element_bytes: int

    def __post_init__(self) -> None:
        for name in ("rows", "cols", "element_bytes"):
            object.__setattr__(self, name, whole(f"tile: {name}", getattr(self, name), InvalidAccess, low=1))
        if self.element_bytes not in (1, 2, 4, 8, 16):
            raise InvalidAccess(
                f"tile: element_bytes: got {self.element_bytes}; elements have 1, 2, 4, 8 or 16 bytes."
                " Describe a larger one as several elements."
            )
        if self.n_bytes > MOST_SHARED_BYTES:
            raise InvalidAccess(
                f"tile: {self} takes {self.n_bytes:,} bytes; a block has at most {MOST_SHARED_BYTES:,} of"
                " shared memory. Describe the part that a block holds at one time."
            )

    @property
    def n_bytes(self) -> int:
        """Bytes of the elements, without padding."""
        return self.rows * self.cols * self.element_bytes

    def elems_per_access(self, spec: Instruction) -> int:
        """Neighbouring elements of a row that one lane (or one row of ldmatrix) moves."""
        if spec.bytes_per_lane % self.element_bytes:
            raise InvalidAccess(
                f"{spec}: moves {spec.bytes_per_lane} bytes per lane, less than one {self.element_bytes}-byte"
                " element. Use a wider access, or describe the tile in smaller elements."
            )
        return spec.bytes_per_lane // self.element_bytes

    def __str__(self) -> str:
        return f"{self.rows}x{self.cols} tile of {self.element_bytes}-byte elements"


@dataclass(frozen=True, eq=False, repr=False)
class TileAccess:
    """One instruction, issued by one or more warps, and the element at which each lane starts.

    `row` and `col` are an int, 32 ints, a function of the lane, or (n, 32) ints for n warp instructions;
    `active` says in the same forms which lanes take part. A wide access also covers elements right of `col`.
    `times` weighs the access when candidates are ranked, e.g. 4 if four warps repeat it.

    >>> column = TileAccess("ld.shared.b32", row=lambda lane: lane, col=0)
    >>> column.row.shape, column.row[0, :3].tolist(), column.name
    ((1, 32), [0, 1, 2], 'ld.shared.b32')

    Raises `UnknownInstruction` for what is no shared-memory instruction, `InvalidAccess` for wrong shapes.
    """

    instruction: str
    row: Any
    col: Any
    name: str = ""
    active: Any = True
    times: int = 1

    def __post_init__(self) -> None:
        spec = instruction(self.instruction, space="shared")
        given = {"row": self.row, "col": self.col, "active": self.active}
        arrays = {
            what: as_array(f"{spec}: {what}", value(np.arange(WARP_LANES)) if callable(value) else value)
            for what, value in given.items()
        }
        for what, array in arrays.items():
            if array.dtype.kind not in ("b" if what == "active" else "iu"):
                raise InvalidAccess(f"{spec}: {what} holds {array.dtype} values. Use ints; bools for active.")
        times = whole(f"{spec}: times", self.times, InvalidAccess, low=1, hint="Or leave the access out.")
        object.__setattr__(self, "times", times)
        for what, array in zip(arrays, _broadcast(spec, arrays), strict=True):
            object.__setattr__(self, what, array)
        # Lanes beyond the address lanes of ldmatrix.x1 and .x2 take part, but their addresses do not count.
        object.__setattr__(self, "active", self.active & (np.arange(WARP_LANES) < spec.address_lanes))
        object.__setattr__(self, "name", self.name or self.instruction)

    @property
    def spec(self) -> Instruction:
        """What the model knows about the instruction."""
        return instruction(self.instruction)

    def __str__(self) -> str:
        named = "" if self.name == self.instruction else f"{self.name}: "
        return f"{named}{self.instruction}, {count(len(self.row), 'warp instruction')}"

    def __repr__(self) -> str:
        return f"<TileAccess {self}>"


Pattern: TypeAlias = "TileAccess | Callable[[TileShape], TileAccess] | tuple[str, Any, Any]"


def along_rows(instruction: str, name: str = "") -> Callable[[TileShape], TileAccess]:
    """The whole tile, consecutive lanes along its rows: the usual fill from global memory.

    >>> str(along_rows("st.shared.b128")(TileShape(64, 32, element_bytes=2)))
    'st.shared.b128 by rows: st.shared.b128, 8 warp instructions'
    """
    return lambda tile: _walk(instruction, tile, down=False, name=name or f"{instruction} by rows")


def down_columns(instruction: str, name: str = "") -> Callable[[TileShape], TileAccess]:
    """The whole tile, consecutive lanes down its columns: the read of a transposition."""
    return lambda tile: _walk(instruction, tile, down=True, name=name or f"{instruction} by columns")


def matrix_loads(load: str | OperandLoad = A_ROW_MAJOR, name: str = "") -> Callable[[TileShape], TileAccess]:
    """The whole tile through ldmatrix or stmatrix, given by its name or as an operand such as `A_ROW_MAJOR`.

    With a mere name the matrices of one instruction lie as those of an A operand: downwards first.
    """
    if not isinstance(load, OperandLoad):
        n_matrices = MatrixMove.from_name(load).n_matrices
        operand = OperandLoad(load, load, A_ROW_MAJOR.origins[:n_matrices])
    else:
        operand = load
    return lambda tile: _matrix_loads(operand, tile, name or operand.instruction)


def resolve(pattern: Pattern, tile: TileShape) -> TileAccess:
    """Turn what the caller gave into an access of this tile, and check that its lanes stay inside."""
    access = pattern(tile) if callable(pattern) else pattern
    if isinstance(access, tuple) and len(access) == 3:
        access = TileAccess(*access)
    if not isinstance(access, TileAccess):
        raise InvalidAccess(
            f"search: got {pattern!r} as an access. Give along_rows(..), down_columns(..), matrix_loads(..),"
            " a TileAccess, or a tuple (instruction, row, col)."
        )
    last_col = access.col + tile.elems_per_access(access.spec) - 1
    for what, touched, extent in (("row", access.row, tile.rows), ("column", last_col, tile.cols)):
        outside = access.active & ((touched < 0) | (touched >= extent))
        if outside.any():
            raise InvalidAccess(
                f"{access.name}: lane {np.argwhere(outside)[0][1]} touches {what} {touched[outside][0]} of a"
                f" {tile}. Switch that lane off with active, or make the tile larger."
            )
    return access


def _broadcast(spec: Instruction, arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    try:
        broadcast = np.broadcast_arrays(*arrays.values(), np.empty((1, WARP_LANES)))[:-1]
    except ValueError:
        broadcast = ()
    if (
        not broadcast
        or broadcast[0].ndim != 2
        or broadcast[0].shape[1] != WARP_LANES
        or not len(broadcast[0])
    ):
        shapes = ", ".join(f"{what} {array.shape}" for what, array in arrays.items())
        raise InvalidAccess(
            f"{spec}: got shapes {shapes}. Give one value, {WARP_LANES} values, or (n, {WARP_LANES}) values."
        )
    return list(broadcast)


def _walk(name_of_instruction: str, tile: TileShape, down: bool, name: str) -> TileAccess:
    spec = instruction(name_of_instruction, space="shared")
    if spec.is_matrix:
        raise InvalidAccess(f"{spec}: its lanes point at matrix rows, not along the tile. Use matrix_loads.")
    width = tile.elems_per_access(spec)
    if tile.cols % width:
        raise InvalidAccess(
            f"{spec}: a row of {tile.cols} elements is no whole number of accesses of {width}."
            " Round the row up, or use a narrower access."
        )
    per_row = tile.cols // width
    n = tile.rows * per_row
    thread = np.arange(-(-n // WARP_LANES) * WARP_LANES).reshape(-1, WARP_LANES)
    place = np.minimum(thread, n - 1)  # surplus lanes of the last warp are switched off
    row, unit = (place % tile.rows, place // tile.rows) if down else np.divmod(place, per_row)
    return TileAccess(spec.name, row, unit * width, name, thread < n)


def _matrix_loads(operand: OperandLoad, tile: TileShape, name: str) -> TileAccess:
    spec = instruction(operand.instruction, space="shared")
    chunk = tile.elems_per_access(spec)
    height = int(operand.row.max()) + 1
    width = (int(operand.chunk.max()) + 1) * chunk
    if tile.rows % height or tile.cols % width:
        raise InvalidAccess(
            f"{operand.instruction}: a {tile} does not divide into loads of {height}x{width} elements."
            " Round the tile up, or load fewer matrices at once."
        )
    row, col = np.zeros((2, WARP_LANES), dtype=np.int64)
    row[: spec.address_lanes] = operand.row
    col[: spec.address_lanes] = operand.chunk * chunk
    top, left = np.mgrid[0 : tile.rows : height, 0 : tile.cols : width].reshape(2, -1, 1)
    return TileAccess(spec.name, top + row, left + col, name)
