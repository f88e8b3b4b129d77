"""`WarpAccess`: one memory instruction of one warp, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from lanewise.errors import InvalidAccess, Misaligned
from lanewise.instructions import Instruction, instruction
from lanewise.machine import WARP_LANES
from lanewise.text import lanes as lanes_in_words

FULL_MASK = 0xFFFFFFFF

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
        """Build from a formula of the lane number that gives byte addresses, e.g. `lambda lane: 4 * lane`."""
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

        `row` and `col` are an int, 32 ints, or a function of the lane.

        >>> column = WarpAccess.from_tile("ld.shared.b32", row=lambda lane: lane, col=0, pitch=33)
        >>> column.addresses[:3]
        (0, 132, 264)
        """
        if pitch < 1:
            raise InvalidAccess(
                f"pitch: got {pitch} elements; a row needs at least 1. Use the tile's row length."
            )
        return cls.from_layout(
            instruction, lambda r, c: r * pitch + c, row, col, element_bytes, base_address, active_mask
        )

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
        tile."""
        if element_bytes < 1:
            raise InvalidAccess(f"element_bytes: got {element_bytes}; an element has at least 1 byte.")
        active = _lanes_of(_checked_mask(instruction, active_mask))
        # A layout may refuse coordinates outside its tile: do not ask it about idle lanes.
        rows = np.where(active, _per_lane("row", row), 0)
        cols = np.where(active, _per_lane("col", col), 0)
        index = np.broadcast_to(np.asarray(layout(rows, cols)), (WARP_LANES,))
        return cls(instruction, tuple((base_address + index * element_bytes).tolist()), active_mask)

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
    array = np.asarray(value)
    if array.dtype == bool or not np.issubdtype(array.dtype, np.integer):
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


def _checked_mask(name: str, mask: int) -> int:
    if isinstance(mask, bool) or not isinstance(mask, int | np.integer) or not 0 <= mask <= FULL_MASK:
        raise InvalidAccess(
            f"{name}: active_mask {mask!r} is not a 32-bit mask. Set bit i for lane i; 0xffffffff is all."
        )
    return int(mask)


def _checked_addresses(name: str, addresses: Sequence[int]) -> tuple[int, ...]:
    if np.ndim(addresses) != 1 or len(addresses) != WARP_LANES:
        raise InvalidAccess(
            f"{name}: got addresses of shape {np.shape(addresses)}; a warp has {WARP_LANES} lanes, so give"
            f" {WARP_LANES} byte addresses and switch lanes off with active_mask."
        )
    return _per_lane(f"{name} addresses", np.asarray(addresses))


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
    if address < 0:
        raise InvalidAccess(f"{spec.name}: lane {lane} has byte address {address}; addresses start at 0.")
    if address % spec.bytes_per_lane:
        raise Misaligned(misaligned_message(spec, f"lane {lane}", address))


def misaligned_message(spec: Instruction, who: str, address: int) -> str:
    """Say that an address is not a multiple of the access width, and what to do."""
    width = spec.bytes_per_lane
    return (
        f"{spec.name}: {who} has byte address {address}, {address % width} past a multiple of {width}. The"
        " hardware refuses it; this is an error, not a slower access. Keep every row pitch and offset a"
        f" multiple of {width} bytes, or use a narrower access."
    )
