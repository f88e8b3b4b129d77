"""Kernel arguments: NumPy arrays with a place in a virtual address space, and scalars with numba's types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.errors import InvalidLaunch
from lanewise.trace.arrays import BASE_ALIGNMENT, ArrayRef, GlobalStorage, array_ref, owner_of
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
                f"{function.name}: got {len(arguments)} arguments; it takes {len(names)}: {', '.join(names)}."
            )
        self.storages: list[GlobalStorage] = []
        self._by_owner: dict[int, GlobalStorage] = {}
        self._next_base = _FIRST_BASE
        self.packed: list[str] = []
        given = (
            (*arguments, *function.defaults[len(arguments) - required :])
            if len(arguments) < len(names)
            else arguments
        )
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
        if array.dtype.hasobject or array.dtype.kind not in "biufcV" or not array.dtype.isnative:
            raise InvalidLaunch(
                f"argument {name}: dtype {array.dtype}; a kernel takes arrays of bool, integers, floats,"
                " complex numbers or records of these, in native byte order."
            )
        if array.dtype.names and not array.dtype.isalignedstruct:
            self.packed.append(name)
        storage = self._storage(name, owner_of(array), array)
        low = array.__array_interface__["data"][0] - storage.low if array.size else 0
        return array_ref(storage, name, array.dtype, tuple(int(n) for n in array.shape), array.strides, low)

    def _storage(self, name: str, owner: np.ndarray, array: np.ndarray) -> GlobalStorage:
        for storage in self.storages:
            if storage.owner is owner or (owner.size and np.may_share_memory(storage.owner, owner)):
                return storage
        storage = GlobalStorage(owner, self._next_base, name)
        self._next_base += -(-max(1, storage.n_bytes) // BASE_ALIGNMENT) * BASE_ALIGNMENT
        self.storages.append(storage)
        return storage

    def check_writable(self, function: Function) -> None:
        """Raise `InvalidLaunch` if the kernel writes an array that NumPy protects."""
        for storage in self.storages:
            if storage.kinds & {"write", "atomic"} and storage.n_bytes and not storage.bytes.flags.writeable:
                raise InvalidLaunch(
                    f"argument {storage.name}: {function.name} writes it, but the array is read-only."
                    " Pass a writable copy: array.copy()."
                )
