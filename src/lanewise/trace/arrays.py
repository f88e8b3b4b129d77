"""Arrays as a kernel sees them: what an index means as an address, and the memory that holds the bytes.

An `ArrayRef` is numba's array: data type, shape, strides and a start, over a `Storage`. Addresses are counted
in units: the element size where every stride is a multiple of it, else single bytes. A `Place` is one element
per lane.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lanewise.trace.lanes import INT64, Split, binary, limits, whole
from lanewise.trace.masks import Mask
from lanewise.trace.source import TYPE_NAMES

BASE_ALIGNMENT = 256  # bytes; what a device allocator gives at least

_NUMBERS = frozenset(TYPE_NAMES.values())


def is_plain(dtype: np.dtype) -> bool:
    """Say whether a kernel can take elements of this type: numbers in native byte order, or records of
    them."""
    if dtype.subdtype is not None:
        return is_plain(dtype.subdtype[0])
    if dtype.fields is not None:
        return all(is_plain(entry[0]) for entry in dtype.fields.values())
    return dtype in _NUMBERS and dtype.isnative


@dataclass(eq=False)
class Storage:
    """Memory that arrays lie in. `kinds` collects what the kernel does to it: "read", "write", "atomic"."""

    name: str
    space: str
    n_bytes: int
    base: int = 0
    kinds: set[str] = field(default_factory=set)
    granule: int = 0  # bytes; the greatest size that no access of the kernel can cut
    starts_uninitialized: bool = False
    shadow: Any = None

    def note_element(self, phase: int, unit: int, n_bytes: int) -> None:
        """Let the granule divide an access of `n_bytes` at `phase` plus a multiple of `unit` bytes."""
        self.granule = int(np.gcd.reduce([self.granule, phase, unit, n_bytes]))

    def gather(self, place: Place, shape: tuple[int, int]) -> Any:
        """Read one element per lane."""
        raise NotImplementedError

    def scatter(self, place: Place, value: Any, mask: Mask) -> None:
        """Write one element per lane; of lanes that collide, the last one stays."""
        raise NotImplementedError


@dataclass(frozen=True)
class ArrayRef:
    """An array or a view of one. `start` and `strides` are in units of `unit` bytes, counted from `phase`.

    `start` may differ by lane (a row of a table, say); shape entries are Python ints, or lane values for
    slices.
    """

    storage: Storage
    name: str
    dtype: np.dtype
    shape: tuple[Any, ...]
    strides: tuple[int, ...]
    unit: int
    phase: int = 0
    start: Any = 0
    writable: bool = True

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """Number of elements."""
        total: Any = 1
        for extent in self.shape:
            total = (
                total * extent
                if isinstance(total, int) and isinstance(extent, int)
                else binary("Mult", total, extent)
            )
        return total

    def field(self, name: str) -> ArrayRef:
        """The view of one field of all records."""
        assert self.dtype.fields is not None
        dtype, offset = self.dtype.fields[name][:2]
        element, inner = dtype.subdtype or (dtype, ())
        factor = self.unit // element.itemsize if self.unit % element.itemsize == 0 else self.unit
        unit = self.unit // factor
        steps = tuple(stride // unit for stride in contiguous_strides(inner, element.itemsize))
        return replace(
            self,
            name=f"{self.name}.{name}",
            dtype=element,
            shape=(*self.shape, *inner),
            strides=(*(stride * factor for stride in self.strides), *steps),
            unit=unit,
            phase=self.phase + int(offset),
            start=scaled(self.start, factor),
        )

    def row(self, index: Any) -> ArrayRef:
        """The view with the first dimension fixed."""
        start = add(self.start, scaled(index, self.strides[0]))
        return replace(self, shape=self.shape[1:], strides=self.strides[1:], start=start)

    def describe(self, indices: tuple[int, ...]) -> str:
        """An element in words: `tile[3, 4]`."""
        return f"{self.name}[{', '.join(map(str, indices))}]"


@dataclass(frozen=True)
class Place:
    """One element per lane: `index` units from `phase`.

    `mask` holds the active lanes that are inside the array, `outside` those that are not; None stands for
    none.
    """

    array: ArrayRef
    dtype: np.dtype
    unit: int
    phase: int
    index: Any
    mask: Mask | None
    indices: tuple[Any, ...] = ()
    outside: Mask | None = None

    @property
    def storage(self) -> Storage:
        """The memory that holds the element."""
        return self.array.storage

    def field(self, name: str) -> Place:
        """The place of one field of a record."""
        assert self.dtype.fields is not None
        dtype, offset = self.dtype.fields[name][:2]
        return self.at(int(offset), dtype)

    def at(self, n_bytes: int, dtype: np.dtype) -> Place:
        """The place `n_bytes` into the element, seen as another type."""
        phase, unit, index = self.phase + n_bytes, self.unit, self.index
        if unit != dtype.itemsize and unit % dtype.itemsize == 0:
            index, unit = scaled(index, unit // dtype.itemsize), dtype.itemsize
        elif unit != dtype.itemsize:
            index, unit = scaled(index, unit), 1
        return replace(self, dtype=dtype, phase=phase, unit=unit, index=index)

    def in_units(self, n_bytes: int) -> Any:
        """Byte offsets in the storage divided by `n_bytes`, of which every one is a multiple."""
        if self.unit % n_bytes == 0 and self.phase % n_bytes == 0:
            return add(scaled(self.index, self.unit // n_bytes), self.phase // n_bytes)
        index = self.index
        if isinstance(index, Split):
            block, thread = index.block * self.unit, index.thread * self.unit + self.phase
            if not (block % n_bytes).any() and not (thread % n_bytes).any():
                return Split(block // n_bytes, thread // n_bytes)
        return (whole(index) * self.unit + self.phase) // n_bytes

    def grouped(self, dtype: np.dtype) -> Place:
        """The same places seen as elements of a larger type, to which all of them are aligned."""
        return replace(self, dtype=dtype, unit=dtype.itemsize, phase=0, index=self.in_units(dtype.itemsize))


def add(left: Any, right: Any) -> Any:
    """Sum of two index values, cheap where one is a Python 0."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if isinstance(left, int) and left == 0:
        return right
    if isinstance(right, int) and right == 0:
        return left
    return binary("Add", left, right)


def scaled(index: Any, factor: int) -> Any:
    """Product of an index value and a Python int."""
    if isinstance(index, int):
        return index * factor
    return index if factor == 1 else binary("Mult", index, np.int64(factor))


def array_ref(
    storage: Storage, name: str, dtype: np.dtype, shape: tuple[int, ...], strides: tuple[int, ...], at: int
) -> ArrayRef:
    """Build a reference to an array whose first element lies `at` bytes into its storage; strides in
    bytes."""
    unit = dtype.itemsize if all(stride % dtype.itemsize == 0 for stride in strides) else 1
    return ArrayRef(
        storage, name, dtype, shape, tuple(stride // unit for stride in strides), unit, at % unit, at // unit
    )


def contiguous_strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """C-order strides in bytes."""
    strides, step = [], itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def checked_index(index: Any, extent: Any, mask: Mask) -> tuple[Any, np.ndarray | None]:
    """Apply numba's rule for negative indices; the index, and which lanes are in range (None: all of them).

    numba adds the extent to a negative signed index once and checks nothing. Lanes out of range get index 0.
    """
    low, high = limits(index)
    least, _ = limits(extent)
    if low >= 0 and high < least:
        return index, None
    full = whole(index)
    full = full.astype(np.int64) if full.dtype != INT64 else full
    size = whole(extent)
    wrapped = np.where(full < 0, full + size, full)[()] if low < 0 else full
    in_range = (wrapped >= 0) & (wrapped < size)
    if np.all(in_range):
        return wrapped, None
    return np.where(in_range, wrapped, 0), np.atleast_2d(in_range)


class GlobalStorage(Storage):
    """The bytes behind one or several NumPy arrays that share memory, read and written in place."""

    def __init__(self, owners: tuple[np.ndarray, ...], base: int, name: str) -> None:
        spans = [byte_span(owner) for owner in owners]
        self.low, high = min(low for low, _ in spans), max(high for _, high in spans)
        super().__init__(name, "global", high - self.low, base)
        self.owners = owners  # kept alive, for `bytes` is a bare address
        # By address, for no one of the arrays need reach over all of the memory. What may be written is
        # checked at each array.
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * self.n_bytes).from_address(self.low))
        self._views: dict[tuple[np.dtype, int], np.ndarray] = {}

    def view(self, dtype: np.dtype, phase: int) -> np.ndarray:
        """The memory from byte `phase` on as a flat array of `dtype`."""
        key = dtype, phase
        if key not in self._views:
            n_items = (self.n_bytes - phase) // dtype.itemsize
            self._views[key] = self.bytes[phase : phase + n_items * dtype.itemsize].view(dtype)
        return self._views[key]

    def gather(self, place: Place, shape: tuple[int, int]) -> Any:
        if place.unit != place.dtype.itemsize:
            return self._gather_bytes(place)
        whole_index = whole(place.index)
        view = self.view(place.dtype, place.phase)
        if np.ndim(whole_index) == 0:
            return view[int(whole_index)]
        return view.take(whole_index, mode="clip")

    def _gather_bytes(self, place: Place) -> Any:
        first = np.atleast_2d(whole(place.index)) * place.unit + place.phase
        raw = self.bytes.take(first[..., None] + np.arange(place.dtype.itemsize), mode="clip")
        return raw.view(place.dtype)[..., 0]

    def scatter(self, place: Place, value: Any, mask: Mask) -> None:
        index = whole(place.index)
        if place.unit != place.dtype.itemsize:
            self._scatter_bytes(place, value, mask)
            return
        view = self.view(place.dtype, place.phase)
        value = whole(value)
        if mask.is_full:
            if np.ndim(index) == 0 or (np.ndim(value) and np.shape(value) != np.shape(index)):
                index = np.broadcast_to(index, mask.shape)
            view[index] = value
            return
        view[np.broadcast_to(index, mask.shape)[mask.full]] = _lanes(value, mask)

    def _scatter_bytes(self, place: Place, value: Any, mask: Mask) -> None:
        first = np.broadcast_to(np.atleast_2d(whole(place.index)) * place.unit + place.phase, mask.shape)[
            mask.full
        ]
        values = np.ascontiguousarray(_lanes(whole(value), mask))
        raw = np.broadcast_to(values, first.shape).copy().view(np.uint8).reshape(len(first), -1)
        self.bytes[first[:, None] + np.arange(place.dtype.itemsize)] = raw


def _lanes(value: Any, mask: Mask) -> Any:
    """The values of the active lanes, in thread order; a uniform value stays as it is."""
    return value if np.ndim(value) == 0 else np.broadcast_to(value, mask.shape)[mask.full]


def byte_span(array: np.ndarray) -> tuple[int, int]:
    """First byte address of an array, and the one behind its last; equal if it has no element."""
    start = array.__array_interface__["data"][0]
    return np.lib.array_utils.byte_bounds(array) if array.size else (start, start)


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class SharedStorage(Storage):
    """Shared memory of all blocks of a batch: `(B, row)` bytes, filled with a pattern that reads as NaN or
    -1."""

    POISON = 0xFF

    def __init__(self, n_bytes: int) -> None:
        super().__init__("shared memory", "shared", -(-n_bytes // 16) * 16)
        self._memory = np.zeros((0, 0), np.uint8)
        self._views: dict[tuple[np.dtype, int], np.ndarray] = {}

    def start_batch(self, n_blocks: int) -> None:
        """Give every block fresh, unwritten memory."""
        if self._memory.shape != (n_blocks, self.n_bytes):
            self._memory = np.empty((n_blocks, self.n_bytes), np.uint8)
            self._views = {}
        self._memory.fill(self.POISON)

    def view(self, dtype: np.dtype, phase: int) -> np.ndarray:
        """The memory as `(B, items)`; `phase` is where items start, for elements that lie off their natural
        grid."""
        key = dtype, phase
        if key not in self._views:
            n_items = (self.n_bytes - phase) // dtype.itemsize
            self._views[key] = self._memory[:, phase : phase + n_items * dtype.itemsize].view(dtype)
        return self._views[key]

    def gather(self, place: Place, shape: tuple[int, int]) -> Any:
        if place.unit != place.dtype.itemsize:
            place = _as_bytes(place)
            return self._gather_bytes(place)
        view = self.view(place.dtype, place.phase)
        index = whole(place.index)
        if np.ndim(index) == 0:
            item = int(index)
            return view[:, item : item + 1].copy() if len(view) > 1 else view[0, item]
        if index.shape[0] == 1:
            return view.take(index[0], axis=1, mode="clip")
        return view[np.arange(len(view))[:, None], index]

    def _gather_bytes(self, place: Place) -> Any:
        first = np.broadcast_to(
            np.atleast_2d(whole(place.index)) + place.phase,
            (len(self._memory), np.shape(np.atleast_2d(whole(place.index)))[1]),
        )
        block = np.arange(len(self._memory))[:, None, None]
        raw = self._memory[block, first[..., None] + np.arange(place.dtype.itemsize)]
        return np.ascontiguousarray(raw).view(place.dtype)[..., 0]

    def scatter(self, place: Place, value: Any, mask: Mask) -> None:
        value = whole(value)
        index = np.atleast_2d(whole(place.index))
        if place.unit != place.dtype.itemsize:
            self._scatter_bytes(_as_bytes(place), value, mask)
            return
        view = self.view(place.dtype, place.phase)
        if index.shape[0] == 1 and mask.array.shape[0] == 1:
            lanes = (
                slice(None)
                if mask.is_full
                else np.flatnonzero(np.broadcast_to(mask.array[0], mask.shape[1:]))
            )
            row = index[0] if index.shape[1] > 1 else np.broadcast_to(index[0], mask.shape[1:])
            if np.ndim(value) and value.shape[1] > 1:
                value = value[:, lanes]
            view[:, row[lanes]] = value
            return
        block = np.broadcast_to(np.arange(mask.shape[0])[:, None], mask.shape)[mask.full]
        view[block, np.broadcast_to(index, mask.shape)[mask.full]] = _lanes(value, mask)

    def _scatter_bytes(self, place: Place, value: Any, mask: Mask) -> None:
        first = np.broadcast_to(np.atleast_2d(whole(place.index)) + place.phase, mask.shape)[mask.full]
        block = np.broadcast_to(np.arange(mask.shape[0])[:, None], mask.shape)[mask.full]
        values = np.broadcast_to(np.ascontiguousarray(_lanes(value, mask)), first.shape).copy()
        self._memory[block[:, None], first[:, None] + np.arange(place.dtype.itemsize)] = values.view(
            np.uint8
        ).reshape(len(first), -1)


def _as_bytes(place: Place) -> Place:
    return replace(place, index=scaled(place.index, place.unit), unit=1)


class ConstantStorage(GlobalStorage):
    """A constant table: every lane reads, nobody writes, and the traffic is not shared or global memory's."""

    def __init__(self, table: np.ndarray, name: str) -> None:
        super().__init__((table,), 0, name)
        self.space = "const"


class LocalStorage(Storage):
    """A thread's own array: registers if all indices are constant, so it has no addresses that could be
    counted.

    Cells are lane values while the indices are the same for all lanes; one dense array from the first other
    index on.
    """

    def __init__(self, name: str, dtype: np.dtype, n_items: int) -> None:
        super().__init__(name, "local", n_items * dtype.itemsize)
        self.dtype = dtype
        poison = np.frombuffer(b"\xff" * dtype.itemsize, dtype)[0]
        self._cells: list[Any] = [poison] * n_items
        self._dense: np.ndarray | None = None

    def gather(self, place: Place, shape: tuple[int, int]) -> Any:
        index = whole(place.index)
        if self._dense is None and isinstance(index, np.generic):
            return self._cells[int(index)]
        dense = self._as_dense(shape)
        if isinstance(index, np.generic):
            return dense[int(index)].copy()
        return np.take_along_axis(dense, np.broadcast_to(index, shape)[None], axis=0)[0]

    def scatter(self, place: Place, value: Any, mask: Mask) -> None:
        index = whole(place.index)
        if self._dense is None and isinstance(index, np.generic):
            old = self._cells[int(index)]
            value = whole(value)
            self._cells[int(index)] = value if mask.is_full else np.where(mask.array, value, old)
            return
        dense = self._as_dense(mask.shape)
        new = np.broadcast_to(whole(value), mask.shape)
        lanes = mask.full.nonzero()
        dense[np.broadcast_to(index, mask.shape)[lanes], lanes[0], lanes[1]] = new[lanes]

    def _as_dense(self, shape: tuple[int, int]) -> np.ndarray:
        if self._dense is None:
            self._dense = np.stack([np.broadcast_to(cell, shape) for cell in self._cells])
        return self._dense


class Element:
    """A record element that a kernel has named but not yet read: `particles[i]`, on the way to `.x`."""

    __slots__ = ("place",)

    def __init__(self, place: Place) -> None:
        self.place = place


def same_array(first: ArrayRef, second: ArrayRef) -> bool:
    """Say whether two references mean the same array."""
    mine, other = (
        (ref.storage, ref.dtype, ref.strides, ref.unit, ref.phase, len(ref.shape)) for ref in (first, second)
    )
    if mine != other:
        return False
    pairs = zip((first.start, *first.shape), (second.start, *second.shape), strict=True)
    return all(a is b or (isinstance(a, int) and isinstance(b, int) and a == b) for a, b in pairs)
