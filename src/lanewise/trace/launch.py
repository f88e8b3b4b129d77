"""A launch: grid and block shapes, the numbering of threads, and the machine's limits on both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lanewise.errors import InvalidLaunch
from lanewise.integers import as_int, whole
from lanewise.machine import WARP_LANES, Machine
from lanewise.text import count

_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_BLOCK_LIMITS = (1024, 1024, 64)
DYNAMIC_ALIGNMENT = 16  # bytes; where dynamic shared memory starts after the static arrays
MAX_LANES = 1 << 30  # lanes of all traced blocks; thread numbers have 32 bits in the shadow memory


@dataclass(frozen=True)
class Launch:
    """A launch shape. Threads and blocks are numbered x fastest; lanes fill up the last warp and never
    run."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    machine: Machine
    dynamic_bytes: int = 0
    grid_ndim: int = 1

    @property
    def n_blocks(self) -> int:
        """Blocks of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def n_threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def n_warps(self) -> int:
        """Warps of a block."""
        return -(-self.n_threads // WARP_LANES)

    @property
    def n_lanes(self) -> int:
        """Lanes of a block: its threads, rounded up to whole warps."""
        return self.n_warps * WARP_LANES

    @cached_property
    def lane_numbers(self) -> np.ndarray:
        """0, 1, .. up to the last lane of a block."""
        return np.arange(self.n_lanes, dtype=np.int64)

    @cached_property
    def exists(self) -> np.ndarray:
        """Which lanes are threads, `(1, n_lanes)`."""
        return (self.lane_numbers < self.n_threads)[None, :]

    @cached_property
    def thread_index(self) -> tuple[Any, Any, Any]:
        """`threadIdx` of every lane, int32."""
        x, y, _ = self.block
        lane = self.lane_numbers[None, :]
        parts = lane % x, lane // x % y, lane // (x * y)
        return _coordinates(parts, self.block)

    def block_coordinates(self, blocks: np.ndarray) -> tuple[Any, Any, Any]:
        """`blockIdx` of some blocks, int32."""
        x, y, _ = self.grid
        number = blocks[:, None]
        parts = number % x, number // x % y, number // (x * y)
        return _coordinates(parts, self.grid if len(blocks) > 1 else (1, 1, 1))

    def block_of(self, number: int) -> tuple[int, int, int]:
        """Coordinates of a block."""
        return _unravel(number, self.grid)

    def thread_of(self, lane: int) -> tuple[int, int, int]:
        """Coordinates of a thread."""
        return _unravel(lane, self.block)

    def dynamic_offset(self, static_bytes: int) -> int:
        """Where dynamic shared memory starts."""
        return -(-static_bytes // DYNAMIC_ALIGNMENT) * DYNAMIC_ALIGNMENT

    def shared_bytes(self, static_bytes: int) -> int:
        """Shared memory of one block, static and dynamic."""
        return self.dynamic_offset(static_bytes) + self.dynamic_bytes if self.dynamic_bytes else static_bytes

    def check_shared(self, static_bytes: int) -> None:
        """Raise `InvalidLaunch` if a block does not get that much."""
        limit = self.machine.static_shared_bytes_per_block
        if static_bytes > limit:
            raise InvalidLaunch(
                f"static shared memory: {static_bytes:,} bytes; the compiler allows {limit:,} on"
                f" {self.machine}. Declare the array with shape 0 and pass dynamic_shared_bytes, or use"
                " smaller tiles."
            )
        total, most = self.shared_bytes(static_bytes), self.machine.max_shared_bytes_per_block
        if total > most:
            raise InvalidLaunch(
                f"shared memory: {total:,} bytes for one block; {self.machine} has {most:,} per block."
                " Use smaller tiles, or another machine."
            )


def _coordinates(parts: tuple[Any, ...], extents: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Coordinates as int32, a dimension of one as the scalar it is."""
    found = []
    for part, extent in zip(parts, extents, strict=True):
        same = extent == 1 and (part == part.flat[0]).all()
        found.append(np.int32(part.flat[0]) if same else part.astype(np.int32))
    return found[0], found[1], found[2]


def _unravel(number: int, extents: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, _ = extents
    return number % x, number // x % y, number // (x * y)


def make_launch(grid: Any, block: Any, dynamic_bytes: int, machine: Machine) -> Launch:
    """Check a launch as the driver would.

    Raises `InvalidLaunch` naming the dimension, the value and the limit.
    """
    grid_dim, block_dim = _shape("grid", grid, _GRID_LIMITS), _shape("block", block, _BLOCK_LIMITS)
    n_threads = block_dim[0] * block_dim[1] * block_dim[2]
    if n_threads > machine.max_threads_per_block:
        raise InvalidLaunch(
            f"block: {block!r} has {n_threads:,} threads; {machine} allows {machine.max_threads_per_block:,}."
            " Use smaller blocks and more of them."
        )
    n_dynamic = whole("dynamic_shared_bytes", dynamic_bytes, InvalidLaunch, hint="It is a number of bytes.")
    return Launch(grid_dim, block_dim, machine, n_dynamic, len(_integers(grid) or ()))


def _shape(what: str, given: Any, most: tuple[int, int, int]) -> tuple[int, int, int]:
    parts = _integers(given)
    if parts is None or not 1 <= len(parts) <= 3:
        raise InvalidLaunch(f"{what}: got {given!r}; it is an int or a tuple of one to three ints, x first.")
    x, y, z = (*parts, 1, 1)[:3]
    for axis, extent, limit in zip("xyz", (x, y, z), most, strict=True):
        if not 1 <= extent <= limit:
            raise InvalidLaunch(f"{what}: {axis} is {extent:,}; a launch needs 1 to {limit:,} there.")
    return x, y, z


def _integers(given: Any) -> tuple[int, ...] | None:
    """An integer, or a sequence of them such as a NumPy array, as a tuple; None if it is neither."""
    number = as_int(given)
    if number is not None:
        return (number,)
    if not isinstance(given, (tuple, list, np.ndarray)) or np.ndim(given) == 0:
        return None
    parts = [as_int(part) for part in given]
    return None if None in parts else tuple(part for part in parts if part is not None)


def chosen_blocks(launch: Launch, blocks: Any) -> np.ndarray:
    """Linear numbers of the blocks to trace, in order: all, or a subset given by number or by coordinates."""
    n_blocks = launch.n_blocks
    if blocks is not None:
        if as_int(blocks) is not None:
            blocks = [blocks]
        if isinstance(blocks, str) or not hasattr(blocks, "__iter__"):
            raise InvalidLaunch(
                f"blocks: got {blocks!r}; give block numbers, or (x, y) or (x, y, z) coordinates, in a list."
            )
        # A range too long to be listed is refused below like a grid too large.
        few = not hasattr(blocks, "__len__") or len(blocks) * launch.n_lanes <= MAX_LANES
        numbers = sorted({_number(launch, entry) for entry in blocks}) if few else blocks
        if not numbers:
            raise InvalidLaunch("blocks: the list is empty; give at least one block, or None for all.")
        n_blocks = len(numbers)
    if n_blocks * launch.n_lanes > MAX_LANES:
        raise InvalidLaunch(
            f"blocks: {n_blocks:,} blocks of {count(launch.n_threads, 'thread')} are more than the"
            f" {MAX_LANES:,} threads that one trace holds. Trace some of them, such as blocks=range(1000)."
        )
    return np.arange(n_blocks) if blocks is None else np.array(numbers, np.int64)


def _number(launch: Launch, entry: Any) -> int:
    parts = _integers(entry)
    if parts is None or not 1 <= len(parts) <= 3:
        raise InvalidLaunch(
            f"blocks: got {entry!r} for a block; give its number, or its coordinates (x, y) or (x, y, z)."
        )
    number = parts[0]
    inside = 0 <= number < launch.n_blocks
    if len(parts) > 1:
        x, y, z = (*parts, 0)[:3]
        inside = all(0 <= part < extent for part, extent in zip((x, y, z), launch.grid, strict=True))
        number = x + launch.grid[0] * (y + launch.grid[1] * z)
    if not inside:
        raise InvalidLaunch(f"blocks: {entry!r} is not in the grid {launch.grid}.")
    return number
