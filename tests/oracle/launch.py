"""Run a launch thread by thread, and let waiting threads meet."""

from __future__ import annotations

import builtins
import inspect
import itertools
import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba import cuda, types

from tests.oracle import source
from tests.oracle.arrays import Array
from tests.oracle.meeting import meet
from tests.oracle.record import Access, OracleError, Stage, Thread
from tests.oracle.scalars import Number, apply, number
from tests.oracle.stand_ins import Cuda, Math, NumPy, Type, Wait, _filled, builtin_names, dtype_of

Dim = int | tuple[int, ...]
ALLOCATION_BYTES = 256


@dataclass(frozen=True)
class OracleRun:
    """All accesses of a launch, thread by thread."""

    accesses: tuple[Access, ...]


class Launch:
    """One launch in progress."""

    def __init__(self, grid: Dim, block: Dim, dynamic_shared_bytes: int) -> None:
        self.grid, self.block = _dim3(grid), _dim3(block)
        self.stage = Stage()
        self.stage.launch = self
        self.dynamic_shared_bytes = dynamic_shared_bytes
        self._shared: dict[Any, Array] = {}
        self._shared_end: dict[Any, int] = {}

    def shared_array(
        self, where: tuple[CodeType, int], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Array:
        """The block's shared array declared at one place; shape 0 is the dynamic one, the same for all who ask."""
        block = self.stage.thread.block
        if shape == (0,):
            pool = self._allocate((block, "dynamic"), (self.dynamic_shared_bytes,), np.dtype(np.uint8))
            usable = self.dynamic_shared_bytes // dtype.itemsize * dtype.itemsize
            return Array(pool._data[:usable].view(dtype), pool._base, "shared", self.stage)
        return self._allocate((block, where), shape, dtype)

    def _allocate(self, key: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        if key not in self._shared:
            block = key[0]
            base = -(-self._shared_end.get(block, 0) // 16) * 16
            self._shared[key] = Array(_filled(shape, dtype), base, "shared", self.stage)
            self._shared_end[block] = base + math.prod(shape) * dtype.itemsize
        return self._shared[key]


def run(kernel: Any, grid: Dim, block: Dim, *args: Any, dynamic_shared_bytes: int = 0) -> OracleRun:
    """Run a kernel; its array arguments change as on a GPU.

    `kernel` is what `cuda.jit` returned or the plain function. Blocks run one after the other unless the kernel uses
    a grid barrier. Raises `OracleError`, also for threads that wait for partners who never come.
    """
    launch = Launch(grid, block, dynamic_shared_bytes)
    function = _Namespaces(launch.stage).device_function(getattr(kernel, "py_func", kernel))
    arguments = _arguments(args, launch.stage)
    cooperative = "this_grid" in inspect.getsource(getattr(kernel, "py_func", kernel))
    blocks = list(_indices(launch.grid))
    accesses: list[Access] = []
    with np.errstate(all="ignore"):
        for group in [blocks] if cooperative else [[one] for one in blocks]:
            threads = [
                Thread(one, index, linear)
                for one in group
                for linear, index in enumerate(_indices(launch.block))
            ]
            _run_together(launch.stage, [(thread, function(*arguments)) for thread in threads])
            accesses += itertools.chain.from_iterable(thread.accesses for thread in threads)
    return OracleRun(tuple(accesses))


def _run_together(stage: Stage, crew: list[tuple[Thread, Generator[Wait, Any, Any]]]) -> None:
    """Run threads until all have ended; whoever yields waits until `meet` gives an answer."""
    ready: dict[int, Any] = dict.fromkeys(range(len(crew)))
    waiting: dict[int, Wait] = {}
    while ready:
        for member, answer in sorted(ready.items()):
            stage.thread, routine = crew[member]
            try:
                waiting[member] = routine.send(answer)
            except StopIteration:
                waiting.pop(member, None)
            except OracleError as error:
                raise OracleError(
                    f"block={stage.thread.block} thread={stage.thread.index}: {error}"
                ) from error
        ready = meet({member: (crew[member][0], wait) for member, wait in waiting.items()})
        for member in ready:
            del waiting[member]
    if waiting:
        thread, wait = crew[min(waiting)][0], waiting[min(waiting)]
        raise OracleError(
            f"block={thread.block} thread={thread.index} waits for ever at {wait.operation}, line {wait.moment.path[-1][0]}"
        )


class _Namespaces:
    """Builds the globals of the kernel and of each device function it calls."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.cuda = Cuda(stage)
        self.known: dict[Any, Any] = {}

    def device_function(self, function: FunctionType) -> Any:
        if function not in self.known:
            found = inspect.getclosurevars(function)
            names = {**found.builtins, **found.globals, **found.nonlocals}
            namespace = {name: self._stand_in(value) for name, value in names.items()}
            namespace |= builtin_names(self.stage)
            code = source.compiled(
                function, lambda name: getattr(namespace.get(name), "is_device_function", False)
            )
            exec(code, namespace)
            self.known[function] = namespace[function.__name__]
            self.known[function].is_device_function = True
        return self.known[function]

    def _stand_in(self, value: Any) -> Any:
        if value is cuda:
            return self.cuda
        if value is math:
            return Math()
        if value is np:
            return NumPy()
        if value is numba:
            return _NumbaTypes(self.cuda)
        if isinstance(value, types.Number) or (
            isinstance(value, builtins.type) and issubclass(value, np.generic)
        ):
            return Type(dtype_of(value))
        if hasattr(value, "py_func"):
            return self.device_function(value.py_func)
        if isinstance(value, FunctionType):
            return self.device_function(value)
        if isinstance(value, tuple):
            return tuple(self._stand_in(item) for item in value)
        if isinstance(value, bool | int | float | complex | np.generic):
            return value if isinstance(value, bool) else number(value)
        if isinstance(value, np.ndarray | np.dtype) or callable(value):
            return value
        if isinstance(value, ModuleType):
            raise OracleError(f"module {value.__name__}: the oracle has no stand-in for it")
        raise OracleError(f"global {value!r}: the oracle has no stand-in for it")


class _NumbaTypes:
    def __init__(self, stand_in: Cuda) -> None:
        self.cuda = stand_in

    def __getattr__(self, name: str) -> Type:
        return Type(dtype_of(getattr(numba, name)))


def _arguments(args: Iterable[Any], stage: Stage) -> list[Any]:
    """Wrap the arguments; every allocation gets an aligned address of its own, and views keep their place in it."""
    bases: dict[int, int] = {}
    end = ALLOCATION_BYTES
    wrapped: list[Any] = []
    for argument in args:
        if not isinstance(argument, np.ndarray):
            wrapped.append(_scalar_argument(argument))
            continue
        root = argument
        while isinstance(root.base, np.ndarray):
            root = root.base
        start = root.__array_interface__["data"][0]
        if start not in bases:
            bases[start] = end
            end += -(-(root.nbytes + 1) // ALLOCATION_BYTES) * ALLOCATION_BYTES
        offset = argument.__array_interface__["data"][0] - start
        wrapped.append(Array(argument, bases[start] + offset, "global", stage))
    return wrapped


def _scalar_argument(argument: Any) -> Any:
    return tuple(map(_scalar_argument, argument)) if isinstance(argument, tuple) else number(argument)


def _dim3(given: Dim) -> tuple[int, int, int]:
    x, y, z = (*(given if isinstance(given, tuple) else (given,)), 1, 1)[:3]
    return x, y, z


def _indices(extent: tuple[int, int, int]) -> Iterable[tuple[int, int, int]]:
    """All indices of a grid or block, x fastest."""
    return ((x, y, z) for z, y, x in itertools.product(*map(range, reversed(extent))))


__all__ = ["Launch", "Number", "OracleError", "OracleRun", "apply", "run"]
