"""Arrays that write down each access: global arguments, shared, private and constant arrays, and records in them."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import numpy as np

from tests.oracle.record import OracleError, Stage
from tests.oracle.scalars import Number, Operand, cast, number


class Array:
    """A view of memory in one space. `base` is the byte address of element 0, in that space's address range."""

    __slots__ = ("_base", "_data", "_space", "_stage")

    def __init__(self, data: np.ndarray, base: int, space: str, stage: Stage) -> None:
        self._data, self._base, self._space, self._stage = data, base, space, stage

    shape = property(lambda self: tuple(number(n) for n in self._data.shape))
    strides = property(lambda self: tuple(number(n) for n in self._data.strides))
    size = property(lambda self: number(self._data.size))
    ndim = property(lambda self: number(self._data.ndim))
    dtype = property(lambda self: self._data.dtype)

    @property
    def T(self) -> Array:
        return Array(self._data.T, self._base, self._space, self._stage)

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: Any) -> Any:
        return self._item(index, sys._getframe(1))

    def __setitem__(self, index: Any, value: Any) -> None:
        place = self._place(index)
        if isinstance(place, Array):
            raise OracleError("assignment to a slice")
        address, where = place
        if self._data.dtype.fields:
            raise OracleError("assignment of a whole record")
        self._stage.thread.note(self._space, "store", address, self._data.dtype, sys._getframe(1))
        self._data[where] = cast(value, self._data.dtype).value

    def _item(self, index: Any, frame: FrameType) -> Any:
        place = self._place(index)
        if isinstance(place, Array):
            return place
        address, where = place
        if self._data.dtype.fields:
            return Record(self._data, where, address, self._space, self._stage)
        self._stage.thread.note(self._space, "load", address, self._data.dtype, frame)
        return Number(self._data[where])

    def _place(self, index: Any) -> Array | tuple[int, tuple[int, ...]]:
        """Where an index leads: an element's address and position, or a view."""
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) > self._data.ndim:
            raise OracleError(f"{len(indices)} indices for an array of {self._data.ndim} dimensions")
        if len(indices) < self._data.ndim or any(isinstance(one, slice) for one in indices):
            plain = tuple(_plain_slice(one) if isinstance(one, slice) else int(one) for one in indices)
            view = self._data[plain]
            return Array(view, self._base + _distance(view, self._data), self._space, self._stage)
        address, where = self._base, []
        for one, extent, stride in zip(indices, self._data.shape, self._data.strides, strict=True):
            position = int(one)
            # numba's rule for negative indices: the length is added once.
            wrapped = position + extent if position < 0 else position
            if not 0 <= wrapped < extent:
                raise OracleError(f"index {position} of {extent} elements ({self._space} array)")
            address += wrapped * stride
            where.append(wrapped)
        return address, tuple(where)

    def atomic(self, index: Any, frame: FrameType) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Note an atomic operation and say where it works."""
        place = self._place(index)
        if isinstance(place, Array):
            raise OracleError("atomic operation on a slice")
        address, where = place
        self._stage.thread.note(self._space, "atomic", address, self._data.dtype, frame)
        return where, self._data.dtype


class Record:
    """One element of a structured array; its fields are read and written one by one."""

    __slots__ = ("_address", "_array", "_space", "_stage", "_where")
    _address: int
    _array: np.ndarray
    _space: str
    _stage: Stage
    _where: tuple[int, ...]

    def __init__(
        self, array: np.ndarray, where: tuple[int, ...], address: int, space: str, stage: Stage
    ) -> None:
        for name, value in zip(self.__slots__, (address, array, space, stage, where), strict=True):
            object.__setattr__(self, name, value)

    def __getattr__(self, field: str) -> Number:
        dtype, offset = self._field(field)
        self._stage.thread.note(self._space, "load", self._address + offset, dtype, sys._getframe(1))
        return Number(self._array[self._where][field])

    def __setattr__(self, field: str, value: Operand) -> None:
        dtype, offset = self._field(field)
        self._stage.thread.note(self._space, "store", self._address + offset, dtype, sys._getframe(1))
        self._array[field][self._where] = cast(value, dtype).value

    def _field(self, field: str) -> tuple[np.dtype[Any], int]:
        fields: Any = self._array.dtype.fields or {}
        if field not in fields:
            raise OracleError(f"record has no field {field!r}")
        return fields[field][0], int(fields[field][1])


def _plain_slice(given: slice) -> slice:
    return slice(*(None if part is None else int(part) for part in (given.start, given.stop, given.step)))


def _distance(view: np.ndarray, array: np.ndarray) -> int:
    return int(view.__array_interface__["data"][0] - array.__array_interface__["data"][0])
