"""Memory that machine code reads and writes: bytes, of which some may be unknown."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np

from lanewise.lowering.registers import Array

# Where device memory starts in the virtual address space; a round number in the range drivers hand out.
HEAP_BASE = 0x7F00_0000_0000
ALLOCATION_BYTES = 256
GUARD_BYTES = 4096


class Bytes:
    """`size` bytes addressed from 0; loads of bytes outside, or of unknown ones, say so per lane."""

    def __init__(self, size: int) -> None:
        self.data = np.zeros(-(-max(size, 16) // 16) * 16, np.uint8)
        self.unknown: Array | None = None

    def load(self, places: Array, n_bytes: int, signed: bool = False) -> tuple[list[Array], Array | None]:
        """Read `n_bytes` at each place: 32-bit words, low first, and which lanes are unknown (or None)."""
        inside = (places >= 0) & (places + n_bytes <= self.data.size)
        safe = np.where(inside, places, 0)
        unit = min(n_bytes, 4)
        view = self.data.view(f"{'i' if signed and unit < 4 else 'u'}{unit}")
        words = [view[safe // unit + i].astype(np.int64).astype(np.uint32) for i in range(n_bytes // unit)]
        bad = None if inside.all() else ~inside
        if self.unknown is not None:
            spoilt = np.any([self.unknown[safe + i] for i in range(n_bytes)], axis=0)
            bad = spoilt if bad is None else bad | spoilt
        return words, bad

    def store(self, places: Array, words: list[Array], n_bytes: int, unknown: Array | None) -> None:
        """Write words at each place; lanes that fall outside are dropped, the tracer reports those."""
        inside = (places >= 0) & (places + n_bytes <= self.data.size)
        kept = places[inside]
        unit = min(n_bytes, 4)
        view = self.data.view(f"u{unit}")
        for i, word in enumerate(words):
            view[kept // unit + i] = word[inside].astype(view.dtype)
        if unknown is not None or self.unknown is not None:
            if self.unknown is None:
                self.unknown = np.zeros(self.data.size, bool)
            for i in range(n_bytes):
                self.unknown[kept + i] = False if unknown is None else unknown[inside]

    def forget(self) -> None:
        """Mark everything unknown: something was stored nobody knows where."""
        self.unknown = np.ones(self.data.size, bool)


@dataclass
class Allocation:
    """One array argument in device memory: the root buffer it views, and where that lies."""

    root: Array
    place: int
    low: int  # host address of the root's first byte
    n_bytes: int


@dataclass
class Heap:
    """Device memory holding copies of the arrays a kernel is launched with."""

    allocations: list[Allocation] = field(default_factory=list)
    size: int = GUARD_BYTES
    bytes: Bytes = field(default_factory=lambda: Bytes(0))

    def address_of(self, array: Array) -> int:
        """Place an array (a view shares its root's buffer) and return its device address."""
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        low, high = np.lib.array_utils.byte_bounds(root)
        start = array.__array_interface__["data"][0]
        for known in self.allocations:
            if known.low == low and known.n_bytes == high - low:
                return HEAP_BASE + known.place + start - low
        place = self.size
        self.allocations.append(Allocation(root, place, low, high - low))
        self.size = -(-(place + high - low + GUARD_BYTES) // ALLOCATION_BYTES) * ALLOCATION_BYTES
        return HEAP_BASE + place + start - low

    def fill(self) -> None:
        """Copy the arrays in."""
        self.bytes = Bytes(self.size)
        for held in self.allocations:
            raw = np.frombuffer(ctypes.string_at(held.low, held.n_bytes), np.uint8)
            self.bytes.data[held.place : held.place + held.n_bytes] = raw

    def contents(self, array: Array) -> Array:
        """What the kernel left in `array`, as a new array of its shape and type."""
        start = self.address_of(array) - HEAP_BASE
        index = np.full((), start) if array.ndim == 0 else _byte_index(array) + start
        raw = self.bytes.data[index[..., None] + np.arange(array.itemsize)]
        return raw.reshape(-1).view(array.dtype).reshape(array.shape)

    def is_known(self, array: Array) -> bool:
        """Whether every byte of `array` is known after the run."""
        if self.bytes.unknown is None:
            return True
        start = self.address_of(array) - HEAP_BASE
        index = _byte_index(array)[..., None] + start + np.arange(array.itemsize)
        return not self.bytes.unknown[index].any()


def _byte_index(array: Array) -> Array:
    index = np.zeros(array.shape, np.int64)
    for axis, (n, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        index += (np.arange(n) * stride).reshape([-1 if i == axis else 1 for i in range(array.ndim)])
    return index
