"""`WarpAccess`: one memory instruction of one warp, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from lanewise.errors import InvalidAccess, Misaligned
from lanewise.instructions import Instruction, instruction
from lanewise.integers import LARGEST, as_int, whole
from lanewise.machine import FULL_MASK, WARP_LANES
from lanewise.text import lanes as lanes_in_words

PerLane: TypeAlias = "int | Sequence[int] | np.ndarray | Callable[[np.ndarray], np.ndarray | int]"


@dataclass(frozen=True)
class WarpAccess:
    """The byte addresses that the 32 lanes of a warp give to one instruction.

    `instruction` is a name of `lanewise.instructions`; `addresses` are 32 byte addresses, lane 0 first; bit
    `i` of `active_mask` is set where lane `i` takes part. Addresses of inactive lanes are stored as 0.

    >>> WarpAccess.from_formula("ld.shared.b32", lambda lane: 128 * lane).addresses[:3]
    (0, 128, 256)

    Raises `InvalidAccess` (lane count, type, sign, mask) or `Misaligned`.
    """

    instruction: str
    addresses: tuple[int, ...]
    active_mask: int = FULL_MASK

    def __post_init__(self) -> None:
        spec = instruction(self.instruction)
        mask = _checked_mask(self.instruction, self.active_mask)
        given = _checked_addresses(self.instruction, self.addresses)
        addresses = tuple(a if mask >> lane & 1 else 0 for lane, a in enumerate(given))
        object.__setattr__(self, "addresses", addresses)
        object.__setattr__(self, "active_mask", mask)
        _check_matrix_mask(spec, mask)
        for lane in self.addressing_lanes:
            _check_address(spec, lane, addresses[lane])

    @classmethod
    def from_formula(
        cls, instruction: str, formula: Callable[[np.ndarray], np.ndarray | int], active_mask: int = FULL_MASK
    ) -> WarpAccess:
        """Build from a formula of the lane number that gives byte addresses, e.g. `lambda lane: 4 * lane`.

        The formula gets all 32 lanes at once, as int64. Raises `InvalidAccess` if it gives no integers; what
        the formula itself raises passes through.
        """
        return cls(instruction, _per_lane("formula", formula), active_mask)

    @classmethod
    def from_tile(
        cls,
        instruction: str,
        row: PerLane,
        col: PerLane,
        pitch: int,
        element_bytes: int = 4,
        base_address: int = 0,
        active_mask: int = FULL_MASK,
    ) -> WarpAccess:
        """Build from a row-major tile: lane `l` touches element `(row(l), col(l))` of rows `pitch` elements
        apart.

        `row` and `col` are an int, 32 ints, or a function of the lane; addresses are bytes from
        `base_address`, where element (0, 0) lies.

        >>> column = WarpAccess.from_tile("ld.shared.b32", row=lambda lane: lane, col=0, pitch=33)
        >>> column.addresses[:3]
        (0, 132, 264)
        """
        elems = whole("pitch", pitch, InvalidAccess, low=1, hint="Use the tile's row length in elements.")

        def row_major(rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
            return rows.astype(object) * elems + cols  # Python's ints, which do not wrap around

        return cls.from_layout(instruction, row_major, row, col, element_bytes, base_address, active_mask)

    @classmethod
    def from_layout(
        cls,
        instruction: str,
        layout: Callable[[np.ndarray, np.ndarray], np.ndarray],
        row: PerLane,
        col: PerLane,
        element_bytes: int = 4,
        base_address: int = 0,
        active_mask: int = FULL_MASK,
    ) -> WarpAccess:
        """Build from any layout, a function `(row, col) -> element index` such as a `Layout` or a swizzled
        tile.

        `row` and `col` are as in `from_tile`; the layout gets both as 32 int64. What it raises passes
        through.

        >>> from lanewise.swizzles import xor_tile
        >>> WarpAccess.from_layout("ld.shared.b32", xor_tile(32, 32), row=range(32), col=0).addresses[:3]
        (0, 132, 264)
        """
        if not callable(layout):
            raise InvalidAccess(
                f"layout: got {layout!r}; give a function (row, col) -> element index, such as a Layout."
                " For a row pitch use from_tile."
            )
        width = whole("element_bytes", element_bytes, InvalidAccess, low=1)
        base = whole("base_address", base_address, InvalidAccess)
        active = _lanes_of(_checked_mask(instruction, active_mask))
        # A layout may refuse coordinates outside its tile: do not ask it about idle lanes.
        rows = np.where(active, _per_lane("row", row), 0)
        cols = np.where(active, _per_lane("col", col), 0)
        indices = _per_lane("layout", layout(rows, cols))
        return cls(instruction, tuple(base + width * index for index in indices), active_mask)

    @property
    def active(self) -> np.ndarray:
        """Which lanes take part: 32 bools."""
        return _lanes_of(self.active_mask)

    @property
    def lanes(self) -> tuple[int, ...]:
        """The active lanes, in order."""
        return tuple(lane for lane in range(WARP_LANES) if self.active_mask >> lane & 1)

    @property
    def addressing_lanes(self) -> tuple[int, ...]:
        """The active lanes whose address counts: all of them, or 8 per matrix for ldmatrix and stmatrix."""
        n_lanes = instruction(self.instruction).address_lanes
        return tuple(lane for lane in self.lanes if lane < n_lanes)

    @property
    def byte_addresses(self) -> np.ndarray:
        """The addresses as 32 int64."""
        return np.array(self.addresses, dtype=np.int64)

    def __str__(self) -> str:
        lanes = self.addressing_lanes
        if not lanes:
            return f"{self.instruction}: no active lane"
        used = [self.addresses[lane] for lane in lanes]
        return f"{self.instruction}, {lanes_in_words(lanes)}: {_progression(used)}"

    def __repr__(self) -> str:
        mask = "" if self.active_mask == FULL_MASK else f", active_mask=0x{self.active_mask:08x}"
        return f"WarpAccess({self.instruction!r}, {self.addresses}{mask})"


def _progression(used: list[int]) -> str:
    """Say the addresses briefly: as one step where there is one, else the first few."""
    steps = {after - before for before, after in pairwise(used)}
    if len(used) == 1 or steps == {0}:
        return f"byte {used[0]}"
    if len(steps) == 1:
        return f"bytes {used[0]}, {used[1]}, .. {used[-1]} (step {steps.pop()})"
    return f"bytes {', '.join(map(str, used[:4]))}{', ..' if len(used) > 4 else ''}"


def _lanes_of(mask: int) -> np.ndarray:
    return (mask >> np.arange(WARP_LANES) & 1).astype(bool)


def _per_lane(what: str, value: PerLane) -> tuple[int, ...]:
    if callable(value):
        value = value(np.arange(WARP_LANES))
    array = as_array(what, value)
    if array.dtype.kind not in "iu" and not _holds_ints(array):
        raise InvalidAccess(
            f"{what}: got {array.dtype} values; addresses and indices are integers. Use // not /."
        )
    if array.ndim == 0:
        array = np.broadcast_to(array, (WARP_LANES,))
    if array.shape != (WARP_LANES,):
        raise InvalidAccess(
            f"{what}: got shape {array.shape}; give one int, or {WARP_LANES} ints, one per lane."
        )
    return tuple(array.tolist())


def as_array(what: str, value: Any) -> np.ndarray:
    """NumPy's array of a value; `InvalidAccess`, which names `what`, if its rows differ in length."""
    try:
        return np.asarray(value)
    except ValueError:
        raise InvalidAccess(
            f"{what}: got rows of different lengths. Give each row {WARP_LANES} values, one per lane."
        ) from None


def _holds_ints(array: np.ndarray) -> bool:
    """True for Python's ints, which NumPy keeps as objects where they exceed 64 bits."""
    return array.dtype == object and all(as_int(value) is not None for value in array.flat)


def _checked_mask(name: str, mask: int) -> int:
    number = as_int(mask)
    if number is None or not 0 <= number <= FULL_MASK:
        raise InvalidAccess(
            f"{name}: active_mask {mask!r} is not a 32-bit mask. Set bit i for lane i; 0xffffffff is all."
        )
    return number


def _checked_addresses(name: str, addresses: Sequence[int]) -> tuple[int, ...]:
    array = as_array(f"{name} addresses", addresses)
    if array.shape != (WARP_LANES,):
        raise InvalidAccess(
            f"{name}: got addresses of shape {array.shape}; a warp has {WARP_LANES} lanes, so give"
            f" {WARP_LANES} byte addresses and switch lanes off with active_mask."
        )
    return _per_lane(f"{name} addresses", array)


def _check_matrix_mask(spec: Instruction, mask: int) -> None:
    needed = (1 << spec.address_lanes) - 1
    if spec.is_matrix and mask and mask & needed != needed:
        missing = [lane for lane in range(spec.address_lanes) if not mask >> lane & 1]
        raise InvalidAccess(
            f"{spec.name}: {lanes_in_words(missing)} inactive, but the first {spec.address_lanes} lanes give"
            " the row addresses and the whole warp must execute the instruction together. Move it out of the"
            " branch."
        )


def _check_address(spec: Instruction, lane: int, address: int) -> None:
    if not 0 <= address <= LARGEST:
        raise InvalidAccess(out_of_range_message(spec, f"lane {lane}", address))
    if address % spec.bytes_per_lane:
        raise Misaligned(misaligned_message(spec, f"lane {lane}", address))


def out_of_range_message(spec: Instruction, who: str, address: int) -> str:
    """Say that an address is negative or has more than 63 bits."""
    why = "addresses start at 0" if address < 0 else "it exceeds 63 bits. Subtract a base"
    return f"{spec.name}: {who} has byte address {address}; {why}."


def misaligned_message(spec: Instruction, who: str, address: int) -> str:
    """Say that an address is not a multiple of the access width, and what to do."""
    width = spec.bytes_per_lane
    return (
        f"{spec.name}: {who} has byte address {address}, {address % width} past a multiple of {width}. The"
        " hardware refuses it; this is an error, not a slower access. Keep every row pitch and offset a"
        f" multiple of {width} bytes, or use a narrower access."
    )
