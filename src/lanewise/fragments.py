"""Tensor Core operands, lane by lane: which lane holds which matrix element in which register.

Everything is built from one pattern. An 8x8 matrix of 2-byte elements is spread over a warp so that lane `l`
holds two neighbours of row `l // 4`:

          columns   0 1   2 3   4 5   6 7
    row 0  lanes     0     1     2     3
    row 1            4     5     6     7
      ..                   ..
    row 7           28    29    30    31

`ldmatrix` delivers 1, 2 or 4 such matrices from shared memory, one register each; with .trans the pattern
lies on its side: two neighbours of *column* `l // 4`. `mma` takes its operands in the same pattern, so four
matrices in the right order are an A operand.

Arrays are indexed by lane, register (of 32 bits) and element of the register.

Source: PTX ISA, sections on ldmatrix and on the matrix fragments of mma.m16n8k8 and mma.m16n8k16 with
floating point types; the maps hold for f16 and bf16. sm_75 has m16n8k8 in f16 only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from lanewise.errors import InvalidLayout, UnknownInstruction
from lanewise.indexmap import checked_coordinate
from lanewise.integers import LARGEST, as_int
from lanewise.machine import MATRIX_ROWS, WARP_LANES

MATRIX = MATRIX_ROWS  # rows, and columns of 2-byte elements, of the building block

Origin: TypeAlias = tuple[int, int]

_LANE = np.arange(WARP_LANES)[:, np.newaxis]
_PAIR = np.arange(2)
_ALONG = np.broadcast_to(_LANE // 4, (WARP_LANES, 2))
_ACROSS = _LANE % 4 * 2 + _PAIR


@dataclass(frozen=True)
class Fragment:
    """How a matrix of `shape` is spread over the registers of a warp, as 8x8 blocks in register order.

    `origins` are the (row, column) of each block; `transposed` blocks give a lane two neighbours of a column
    instead of a row; `packed` elements share a register: 2 for 16-bit types, 1 for 32-bit accumulators.

    >>> a = M16N8K16.a
    >>> a.row[5].tolist(), a.col[5].tolist()
    ([[1, 1], [9, 9], [1, 1], [9, 9]], [[2, 3], [2, 3], [10, 11], [10, 11]])
    """

    name: str
    shape: tuple[int, int]
    origins: tuple[Origin, ...]
    transposed: bool = False
    packed: int = 2

    @property
    def n_registers(self) -> int:
        """32-bit registers that each lane gives to the operand."""
        return len(self.origins) * 2 // self.packed

    @cached_property
    def row(self) -> np.ndarray:
        """Matrix row of every element: shape (32, registers, packed)."""
        return self._spread(0, _ACROSS if self.transposed else _ALONG)

    @cached_property
    def col(self) -> np.ndarray:
        """Matrix column of every element: shape (32, registers, packed)."""
        return self._spread(1, _ALONG if self.transposed else _ACROSS)

    def _spread(self, axis: int, within_block: np.ndarray) -> np.ndarray:
        starts = np.array([origin[axis] for origin in self.origins])
        spread = starts[:, np.newaxis] + within_block[:, np.newaxis, :]
        return _frozen(spread.reshape(WARP_LANES, self.n_registers, self.packed))

    @cached_property
    def owners(self) -> np.ndarray:
        """The inverse map: `owners[row, col]` is (lane, register, position in the register)."""
        owners = np.full((*self.shape, 3), -1)
        owners[self.row, self.col] = np.moveaxis(np.indices(self.row.shape), 0, -1)
        return _frozen(owners)

    def owner(self, row: Any, col: Any) -> tuple[Any, Any, Any]:
        """Lane, register and position in the register that hold an element; arrays work too.

        Raises `InvalidLayout` for an element outside the matrix.

        >>> M16N8K16.c.owner(9, 2)
        (5, 2, 0)
        """
        rows, cols = (
            checked_coordinate(self, given, extent)
            for given, extent in zip((row, col), self.shape, strict=True)
        )
        found = self.owners[rows, cols]
        if found.ndim == 1:
            return int(found[0]), int(found[1]), int(found[2])
        return found[..., 0], found[..., 1], found[..., 2]

    def split(self, matrix: Any) -> np.ndarray:
        """Deal matrices of shape (.., rows, columns) out to the lanes: (.., 32, registers, packed)."""
        matrix = np.asarray(matrix)
        if matrix.shape[-2:] != self.shape:
            raise InvalidLayout(
                f"{self}: got a matrix of shape {matrix.shape}. It takes (.., {_times(self.shape)})."
            )
        return np.asarray(matrix[..., self.row, self.col])

    def join(self, values: Any) -> np.ndarray:
        """Collect the matrix from what the lanes hold, shape (.., 32, registers, packed): undoes `split`."""
        values = np.asarray(values)
        if values.shape[-3:] != self.row.shape:
            raise InvalidLayout(
                f"{self}: got register values of shape {values.shape}. It takes"
                f" (.., {_times(self.row.shape)}): lanes, registers, elements per register."
            )
        lane, register, position = np.moveaxis(self.owners, -1, 0)
        return np.asarray(values[..., lane, register, position])

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Mma:
    """The operand maps of one `mma.sync` shape: A (m x k), B (k x n), C and D (m x n).

    `c` is the float32 accumulator, one element per register; `c_f16` the 16-bit one, two per register.
    """

    name: str
    a: Fragment
    b: Fragment
    c: Fragment
    c_f16: Fragment

    def multiply(self, a: Any, b: Any, c: Any) -> np.ndarray:
        """What `mma` computes on registers: D = A @ B + C in float32, as values of `c`.

        The hardware adds the products in an order and precision of its own, so compare with a tolerance.
        """
        product = self.a.join(a).astype(np.float32) @ self.b.join(b).astype(np.float32)
        return self.c.split(product + self.c.join(c).astype(np.float32))

    def __str__(self) -> str:
        return self.name


def _mma(k: int) -> Mma:
    name = f"m16n8k{k}"
    k_steps = range(0, k, MATRIX)
    two_halves = ((0, 0), (8, 0))
    return Mma(
        name,
        a=Fragment(f"{name} A", (16, k), tuple((row, step) for step in k_steps for row in (0, 8))),
        b=Fragment(f"{name} B", (k, 8), tuple((step, 0) for step in k_steps), transposed=True),
        c=Fragment(f"{name} C", (16, 8), two_halves, packed=1),
        c_f16=Fragment(f"{name} C (f16)", (16, 8), two_halves),
    )


M16N8K8, M16N8K16 = _mma(8), _mma(16)


@dataclass(frozen=True)
class MatrixMove:
    """`ldmatrix` or `stmatrix`: 1, 2 or 4 matrices between shared memory and registers, perhaps transposed.

    Lane `8 * m + r` gives the address of row `r` of matrix `m`; matrix `m` is in register `m` of every lane.
    On sm_75 the lanes beyond them must hold valid addresses too, although they are not used.

    >>> MatrixMove.from_name("ldmatrix.x4.trans")
    MatrixMove(n_matrices=4, transposed=True)
    """

    n_matrices: int
    transposed: bool = False

    def __post_init__(self) -> None:
        n_matrices = as_int(self.n_matrices)
        if n_matrices not in (1, 2, 4):
            raise UnknownInstruction(
                f"MatrixMove: {self.n_matrices!r} matrices. ldmatrix and stmatrix move 1, 2 or 4."
            )
        object.__setattr__(self, "n_matrices", n_matrices)

    @classmethod
    def from_name(cls, name: str) -> MatrixMove:
        """Read an instruction name; ldmatrix and stmatrix use the same map in opposite directions."""
        match = re.fullmatch(r"(?:ldmatrix|stmatrix)\.x([124])(\.trans)?", str(name))
        if not match:
            raise UnknownInstruction(
                f"{name!r} moves no matrices. Use ldmatrix or stmatrix with .x1, .x2 or .x4, perhaps .trans."
            )
        return cls(int(match[1]), bool(match[2]))

    @property
    def n_address_lanes(self) -> int:
        """Lanes 0 .. n - 1 give the addresses."""
        return MATRIX * self.n_matrices

    @property
    def address_matrix(self) -> np.ndarray:
        """For each address lane, the matrix whose row it points at."""
        return np.arange(self.n_address_lanes) // MATRIX

    @property
    def address_row(self) -> np.ndarray:
        """For each address lane, the row of that matrix."""
        return np.arange(self.n_address_lanes) % MATRIX

    @property
    def within_matrix(self) -> Fragment:
        """How any one of the matrices is spread over the lanes."""
        return Fragment("8x8 matrix", (MATRIX, MATRIX), ((0, 0),), self.transposed)

    def distribute(self, matrices: Any) -> np.ndarray:
        """What ldmatrix puts into registers, (.., 32, matrices, 2), from rows of shape (.., matrices, 8, 8).

        Row `r` of matrix `m` is the 16 bytes at the address of lane `8 * m + r`.
        """
        matrices = np.asarray(matrices)
        if matrices.shape[-3:] != (self.n_matrices, MATRIX, MATRIX):
            raise InvalidLayout(
                f"{self}: got rows of shape {matrices.shape}. It takes (.., {self.n_matrices}, 8, 8)."
            )
        return np.moveaxis(self.within_matrix.split(matrices)[..., 0, :], -3, -2)

    def collect(self, values: Any) -> np.ndarray:
        """The rows that stmatrix writes, (.., matrices, 8, 8), from the registers, (.., 32, matrices, 2)."""
        values = np.asarray(values)
        if values.shape[-3:] != (WARP_LANES, self.n_matrices, 2):
            raise InvalidLayout(
                f"{self}: got register values of shape {values.shape}. It takes (.., 32,"
                f" {self.n_matrices}, 2): lanes, matrices, halves."
            )
        return self.within_matrix.join(np.moveaxis(values, -2, -3)[..., np.newaxis, :])

    def elements(self, row: Any, chunk: Any) -> tuple[np.ndarray, np.ndarray]:
        """Tile (row, column) that lands in each (lane, register, half), if lanes point at `row`, `chunk`.

        `row` and `chunk` are ints, one for each address lane or for all 32; a chunk is 8 columns, 16 bytes.
        Lanes beyond the address lanes are ignored. Raises `InvalidLayout` for other shapes.
        """
        row, chunk = (self._per_address_lane(given) for given in (row, chunk))
        pointing_lane = np.arange(self.n_matrices)[:, np.newaxis] * MATRIX + self.within_matrix.row
        return row[pointing_lane], chunk[pointing_lane] * MATRIX + self.within_matrix.col

    def _per_address_lane(self, given: Any) -> np.ndarray:
        values = checked_coordinate(self, given, LARGEST // MATRIX)
        if values.shape not in ((WARP_LANES,), (self.n_address_lanes,)):
            raise InvalidLayout(
                f"{self}: got values of shape {values.shape}. Give {self.n_address_lanes}, one per address"
                f" lane, or {WARP_LANES}."
            )
        return values[: self.n_address_lanes]

    def __str__(self) -> str:
        return f"MatrixMove x{self.n_matrices}{'.trans' if self.transposed else ''}"


@dataclass(frozen=True)
class OperandLoad:
    """Where the 32 lanes of one ldmatrix.x4 point, so that its registers are `mma` operands.

    `origins` are the four matrices, in register order, as (row, column) of the tile *as stored*.

    >>> A_ROW_MAJOR.row[[0, 8, 16, 24]].tolist(), A_ROW_MAJOR.chunk[[0, 8, 16, 24]].tolist()
    ([0, 8, 0, 8], [0, 0, 1, 1])
    """

    name: str
    instruction: str
    origins: tuple[Origin, ...]

    @property
    def move(self) -> MatrixMove:
        """The instruction as a map."""
        return MatrixMove.from_name(self.instruction)

    @property
    def row(self) -> np.ndarray:
        """Tile row that each lane points at: shape (32,)."""
        return np.repeat([row for row, _ in self.origins], MATRIX) + self.move.address_row

    @property
    def chunk(self) -> np.ndarray:
        """16-byte chunk of that row: shape (32,); column = 8 * chunk."""
        return np.repeat([col // MATRIX for _, col in self.origins], MATRIX)

    @property
    def col(self) -> np.ndarray:
        """First tile column of that chunk: shape (32,)."""
        return self.chunk * MATRIX

    def elements(self) -> tuple[np.ndarray, np.ndarray]:
        """Tile (row, column) that each (lane, register, half) receives, from the corner of the load."""
        return self.move.elements(self.row, self.chunk)

    def __str__(self) -> str:
        return f"{self.instruction} of {self.name}"


_DOWN_FIRST = ((0, 0), (8, 0), (0, 8), (8, 8))
_ACROSS_FIRST = ((0, 0), (0, 8), (8, 0), (8, 8))

# 16x16 halves each. Registers of an A load are a0..a3; of a B load b0, b1 of n 0..7, then b0, b1 of n 8..15.
A_ROW_MAJOR = OperandLoad("A stored [M][K]", "ldmatrix.x4", _DOWN_FIRST)
A_COLUMN_MAJOR = OperandLoad("A stored [K][M]", "ldmatrix.x4.trans", _ACROSS_FIRST)
B_ROW_MAJOR = OperandLoad("B stored [K][N]", "ldmatrix.x4.trans", _DOWN_FIRST)
B_COLUMN_MAJOR = OperandLoad("B stored [N][K]", "ldmatrix.x4", _ACROSS_FIRST)


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


def _times(shape: tuple[int, ...]) -> str:
    return ", ".join(map(str, shape))
