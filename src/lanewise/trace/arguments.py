"""Kernel arguments: NumPy arrays with a place in a virtual address space, and scalars with numba's types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lanewise.errors import InvalidLaunch
from lanewise.text import count
from lanewise.trace.arrays import (
    BASE_ALIGNMENT,
    ArrayRef,
    GlobalStorage,
    array_ref,
    byte_span,
    is_plain,
    owner_of,
)
from lanewise.trace.refusals import UnsupportedConstruct
from lanewise.trace.source import Function, entity_of

_FIRST_BASE = 0x10_0000


@dataclass(frozen=True)
class Uninitialized:
    """An array argument whose contents count as unwritten; see `uninitialized`."""

    array: np.ndarray


def uninitialized(array: np.ndarray) -> Uninitialized:
    """Mark an array argument as fresh device memory: reading an element that no thread has written is a
    hazard.

    >>> import numpy as np
    >>> uninitialized(np.zeros(3)).array.shape
    (3,)
    """
    if not isinstance(array, np.ndarray):
        raise InvalidLaunch(f"uninitialized: got a {type(array).__name__}; mark a NumPy array.")
    return Uninitialized(array)


class Arguments:
    """The arguments of one launch: `env` maps parameter names to values, `storages` are the arrays'
    memories."""

    def __init__(self, function: Function, arguments: tuple[Any, ...]) -> None:
        names = function.parameters
        declared = function.tree.args
        if declared.vararg or declared.kwarg or declared.kwonlyargs or declared.posonlyargs:
            raise UnsupportedConstruct(f"{function.name}: a kernel takes plain positional parameters only.")
        required = len(names) - len(function.defaults)
        if not required <= len(arguments) <= len(names):
            raise InvalidLaunch(
                f"{function.name}: got {count(len(arguments), 'argument')}; it takes {len(names)}:"
                f" {', '.join(names)}."
            )
        self.packed: list[str] = []
        given = (
            (*arguments, *function.defaults[len(arguments) - required :])
            if len(arguments) < len(names)
            else arguments
        )
        self.storages = _storages(list(_arrays(list(zip(names, given, strict=True)))))
        self.env = {name: self._value(name, value) for name, value in zip(names, given, strict=True)}

    def _value(self, name: str, value: Any) -> Any:
        if isinstance(value, Uninitialized):
            ref = self._array(name, value.array)
            ref.storage.starts_uninitialized = True
            return ref
        if isinstance(value, np.ndarray):
            return self._array(name, value)
        if isinstance(value, tuple):
            return tuple(self._value(f"{name}[{k}]", element) for k, element in enumerate(value))
        if isinstance(value, bool):
            return np.bool_(value)
        if isinstance(value, int):
            if not -(2**63) <= value < 2**64:
                raise InvalidLaunch(f"argument {name}: {value} does not fit 64 bits.")
            return np.int64(value) if value < 2**63 else np.uint64(value)
        if isinstance(value, np.generic) and value.dtype.kind in "biufc":
            return value
        if isinstance(value, float):
            return np.float64(value)
        if isinstance(value, complex):
            return np.complex128(value)
        if value is None:
            return None
        if hasattr(type(value), "copy_to_host") or hasattr(type(value), "__cuda_array_interface__"):
            raise InvalidLaunch(
                f"argument {name}: got a device array; the tracer runs on host memory."
                " Pass the NumPy array itself; it is changed in place as on a GPU."
            )
        entity = entity_of(value)
        if type(entity).__name__ == "DeviceFunction":
            return entity
        raise InvalidLaunch(
            f"argument {name}: got a {type(value).__name__}; a kernel takes NumPy arrays, numbers, tuples"
            " of these and None."
        )

    def _array(self, name: str, array: np.ndarray) -> ArrayRef:
        if not is_plain(array.dtype):
            raise InvalidLaunch(
                f"argument {name}: dtype {array.dtype}; a kernel takes arrays of bool, integers, floats of 2"
                " to 8 bytes, complex numbers or records of these, in native byte order."
            )
        if isinstance(array, np.ma.MaskedArray):
            raise InvalidLaunch(
                f"argument {name}: got a masked array, and a kernel sees no masks. Pass array.data, and"
                " array.mask beside it."
            )
        if array.dtype.names and not array.dtype.isalignedstruct:
            self.packed.append(name)
        start = array.__array_interface__["data"][0]
        low, high = byte_span(array)
        storage = next(one for one in self.storages if one.low <= low and high <= one.low + one.n_bytes)
        shape = tuple(int(extent) for extent in array.shape)
        ref = array_ref(storage, name, array.dtype, shape, array.strides, start - storage.low)
        return replace(ref, writable=bool(array.flags.writeable))


def _arrays(given: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays among the arguments, those in tuples included, with the names of their parameters."""
    for name, value in given:
        if isinstance(value, tuple):
            yield from _arrays((name, element) for element in value)
        elif isinstance(value, (np.ndarray, Uninitialized)):
            yield name, value.array if isinstance(value, Uninitialized) else value


def _storages(arrays: list[tuple[str, np.ndarray]]) -> list[GlobalStorage]:
    """The memories that arrays lie in: one for all that overlap, in the order of the arguments."""
    groups: list[tuple[int, int, str, tuple[np.ndarray, ...]]] = []
    for name, array in arrays:
        owner = owner_of(array)
        low, high = byte_span(owner)
        owners: tuple[np.ndarray, ...] = (owner,)
        apart = []
        for group in groups:
            if group[0] < high and low < group[1]:
                low, high, name, owners = min(low, group[0]), max(high, group[1]), group[2], group[3] + owners
            else:
                apart.append(group)
        groups = [*apart, (low, high, name, owners)]
    storages: list[GlobalStorage] = []
    base = _FIRST_BASE
    for _, _, name, owners in groups:
        storages.append(GlobalStorage(owners, base, name))
        base += -(-max(1, storages[-1].n_bytes) // BASE_ALIGNMENT) * BASE_ALIGNMENT
    return storages
