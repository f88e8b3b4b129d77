"""What a kernel sees in place of `cuda`, `math`, NumPy's types and the builtins."""

from __future__ import annotations

import builtins
import math
import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype

from tests.oracle.arrays import Array, Record
from tests.oracle.record import Moment, OracleError, Stage
from tests.oracle.scalars import Number, Operand, apply, cast, number

Shape = Any


@dataclass(frozen=True)
class Wait:
    """What a thread yields when it must wait: the operation, where it stands, and what it brings."""

    operation: str
    moment: Moment
    mask: int = 0xFFFFFFFF
    value: Any = None
    source: int = 0


class Type:
    """A NumPy or numba number type: called, it converts; named, it is a dtype."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    def __call__(self, value: Operand = 0) -> Number:
        return cast(value, self.dtype)


class Dim3:
    """A launch dimension or index; its parts are int32."""

    def __init__(self, xyz: tuple[int, int, int]) -> None:
        self.x, self.y, self.z = (Number(np.int32(part)) for part in xyz)


def dtype_of(given: Any) -> np.dtype[Any]:
    """The dtype meant by the second argument of `shared.array` and its kin."""
    if isinstance(given, Type):
        return given.dtype
    return as_dtype(given) if isinstance(given, types.Type) else np.dtype(given)


class Cuda:
    """The `cuda` module as the running thread sees it."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.shared = SimpleNamespace(array=self._shared_array)
        self.local = SimpleNamespace(array=self._local_array)
        self.const = SimpleNamespace(array_like=lambda array: Array(array, 0, "const", stage))
        self.cg = SimpleNamespace(this_grid=lambda: SimpleNamespace(sync=lambda: self._wait("grid")))
        self.atomic = Atomic(stage)
        self.warpsize = Number(np.int32(32))
        self.syncthreads = lambda: self._wait("syncthreads")
        self.threadfence = self.threadfence_block = self.threadfence_system = lambda: None

    @property
    def threadIdx(self) -> Dim3:
        return Dim3(self._stage.thread.index)

    @property
    def blockIdx(self) -> Dim3:
        return Dim3(self._stage.thread.block)

    @property
    def blockDim(self) -> Dim3:
        return Dim3(self._stage.launch.block)

    @property
    def gridDim(self) -> Dim3:
        return Dim3(self._stage.launch.grid)

    @property
    def laneid(self) -> Number:
        return Number(np.int32(self._stage.thread.lane))

    def grid(self, n_dims: Operand) -> Any:
        thread, launch = self._stage.thread, self._stage.launch
        at = [np.int64(b * n + t) for b, n, t in zip(thread.block, launch.block, thread.index, strict=True)]
        return _one_or_tuple(at, int(n_dims))

    def gridsize(self, n_dims: Operand) -> Any:
        launch = self._stage.launch
        return _one_or_tuple(
            [np.int64(g * b) for g, b in zip(launch.grid, launch.block, strict=True)], int(n_dims)
        )

    def _shared_array(self, shape: Shape, dtype: Any, alignment: int | None = None) -> Array:
        frame = sys._getframe(1)
        where = (frame.f_code, frame.f_lasti)
        return self._stage.launch.shared_array(where, _shape(shape), dtype_of(dtype))

    def _local_array(self, shape: Shape, dtype: Any, alignment: int | None = None) -> Array:
        return Array(_filled(_shape(shape), dtype_of(dtype)), 0, "local", self._stage)

    # --- waiting ------------------------------------------------------------------------------------------------

    def _wait(
        self, operation: str, mask: Operand = 0xFFFFFFFF, value: Any = None, source: Operand = 0
    ) -> Wait:
        moment = self._stage.thread.moment(sys._getframe(2))
        return Wait(operation, moment, int(mask) & 0xFFFFFFFF, value, int(source))

    def syncthreads_count(self, value: Operand) -> Wait:
        return self._wait("syncthreads_count", value=value)

    def syncthreads_and(self, value: Operand) -> Wait:
        return self._wait("syncthreads_and", value=value)

    def syncthreads_or(self, value: Operand) -> Wait:
        return self._wait("syncthreads_or", value=value)

    def syncwarp(self, mask: Operand = 0xFFFFFFFF) -> Wait:
        return self._wait("syncwarp", mask)

    def shfl_sync(self, mask: Operand, value: Operand, lane: Operand) -> Wait:
        return self._wait("shuffle", mask, value, int(lane) % 32)

    def shfl_up_sync(self, mask: Operand, value: Operand, delta: Operand) -> Wait:
        lane = self._stage.thread.lane
        return self._wait("shuffle", mask, value, lane - int(delta) if lane >= int(delta) else lane)

    def shfl_down_sync(self, mask: Operand, value: Operand, delta: Operand) -> Wait:
        lane = self._stage.thread.lane
        return self._wait("shuffle", mask, value, lane + int(delta) if lane + int(delta) < 32 else lane)

    def shfl_xor_sync(self, mask: Operand, value: Operand, lane_mask: Operand) -> Wait:
        return self._wait("shuffle", mask, value, self._stage.thread.lane ^ int(lane_mask))

    def all_sync(self, mask: Operand, value: Operand) -> Wait:
        return self._wait("all", mask, value)

    def any_sync(self, mask: Operand, value: Operand) -> Wait:
        return self._wait("any", mask, value)

    def eq_sync(self, mask: Operand, value: Operand) -> Wait:
        return self._wait("eq", mask, value)

    def ballot_sync(self, mask: Operand, value: Operand) -> Wait:
        return self._wait("ballot", mask, value)

    def match_any_sync(self, mask: Operand, value: Operand) -> Wait:
        return self._wait("match_any", mask, value)

    # --- arithmetic ---------------------------------------------------------------------------------------------

    def popc(self, value: Operand) -> Number:
        return Number(np.int32(_bits(value).count("1")))

    def clz(self, value: Operand) -> Number:
        bits = _bits(value)
        return Number(np.int32(len(bits) - len(bits.lstrip("0"))))

    def ffs(self, value: Operand) -> Number:
        bits = _bits(value)
        return Number(np.uint32(len(bits) - bits.rindex("1") if "1" in bits else 0))

    def brev(self, value: Operand) -> Number:
        kind = number(value).value.dtype
        reversed_bits = int(_bits(value)[::-1], 2)
        return Number(np.array(reversed_bits, np.dtype(f"u{kind.itemsize}")).view(kind)[()])

    def fma(self, a: Operand, b: Operand, c: Operand) -> Number:
        x, y, z = (number(part).value for part in (a, b, c))
        if {x.dtype, y.dtype, z.dtype} != {np.dtype(np.float32)}:
            raise OracleError("fma: the oracle knows float32 only")
        # A product of two float32 is exact in float64; the corpus keeps the sum exact there too.
        return Number(np.float32(np.float64(x) * np.float64(y) + np.float64(z)))

    def selp(self, condition: Operand, yes: Operand, no: Operand) -> Operand:
        return yes if condition else no


class Atomic:
    """`cuda.atomic`: reads, combines, writes, and returns the old value."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def _update(self, array: Array, index: Any, combine: Any) -> Number:
        where, dtype = array.atomic(index, sys._getframe(2))
        old = Number(array._data[where])
        array._data[where] = cast(combine(old), dtype).value
        return old

    def add(self, array: Array, index: Any, value: Operand) -> Number:
        return self._update(array, index, lambda old: old + cast(value, array.dtype))

    def sub(self, array: Array, index: Any, value: Operand) -> Number:
        return self._update(array, index, lambda old: old - cast(value, array.dtype))

    def max(self, array: Array, index: Any, value: Operand) -> Number:
        return self._update(array, index, lambda old: builtins.max(old, cast(value, array.dtype)))

    def min(self, array: Array, index: Any, value: Operand) -> Number:
        return self._update(array, index, lambda old: builtins.min(old, cast(value, array.dtype)))

    def and_(self, array: Array, index: Any, value: Operand) -> Number:
        return self._update(array, index, lambda old: old & cast(value, array.dtype))

    def or_(self, array: Array, index: Any, value: Operand) -> Number:
        return self._update(array, index, lambda old: old | cast(value, array.dtype))

    def xor(self, array: Array, index: Any, value: Operand) -> Number:
        return self._update(array, index, lambda old: old ^ cast(value, array.dtype))

    def exch(self, array: Array, index: Any, value: Operand) -> Number:
        return self._update(array, index, lambda old: value)

    def inc(self, array: Array, index: Any, limit: Operand) -> Number:
        return self._update(array, index, lambda old: 0 if old >= limit else old + 1)

    def dec(self, array: Array, index: Any, limit: Operand) -> Number:
        return self._update(array, index, lambda old: limit if old == 0 or old > limit else old - 1)

    def cas(self, array: Array, index: Any, expected: Operand, value: Operand) -> Number:
        return self._update(array, index, lambda old: value if old == expected else old)

    def compare_and_swap(self, array: Array, expected: Operand, value: Operand) -> Number:
        return self._update(array, 0, lambda old: value if old == expected else old)


class Math:
    """`math`, typed as numba types it: float32 stays float32, integers become float64."""

    pi, e, inf, nan = (number(value) for value in (math.pi, math.e, math.inf, math.nan))

    def __getattr__(self, name: str) -> Any:
        function = getattr(math, name)
        as_numpy = {"fabs": "absolute", "pow": "power", "atan2": "arctan2"}.get(name, name)

        def call(*operands: Operand) -> Number:
            _, result = _math_signature(function, operands)
            values = [
                cast(operand, result if result.kind == "f" else np.dtype(np.float64)).value
                for operand in operands
            ]
            return Number(np.asarray(getattr(np, as_numpy)(*values)).astype(result)[()])

        return call


def _math_signature(function: Any, operands: tuple[Operand, ...]) -> Any:
    from tests.oracle.scalars import signature

    return signature(function, *(number(operand).value.dtype for operand in operands))


class NumPy:
    """`numpy`, of which a kernel may use the number types."""

    def __getattr__(self, name: str) -> Type:
        return Type(np.dtype(getattr(np, name)))


def builtin_names(stage: Stage) -> dict[str, Any]:
    """The builtins of a kernel and the helpers of the rewritten source."""

    @contextmanager
    def loop() -> Iterator[None]:
        loops = stage.thread.loops
        loops.append(0)
        try:
            yield
        finally:
            loops.pop()

    def step() -> None:
        stage.thread.loops[-1] += 1

    return {
        "_loop": loop,
        "_step": step,
        "_literal": number,
        "range": _range,
        "len": lambda sized: number(len(sized)),
        "min": lambda *operands: _fold(min, operands),
        "max": lambda *operands: _fold(max, operands),
        "abs": lambda value: apply(abs, value),
        "int": lambda value: apply(int, value),
        "float": lambda value: apply(float, value),
        "bool": lambda value: number(bool(value)),
        "round": lambda value: apply(round, value),
        "complex": lambda real, imag=0.0: number(complex(float(real), float(imag))),
        "enumerate": lambda items: ((number(i), item) for i, item in enumerate(items)),
        "zip": zip,
        "tuple": tuple,
        "print": lambda *_: None,
        "True": True,
    }


def _range(*bounds: Operand) -> Iterator[Number]:
    kinds = {number(bound).value.dtype for bound in bounds}
    kind = kinds.pop() if len(kinds) == 1 else np.dtype(np.int64)
    return (cast(value, kind) for value in range(*(int(bound) for bound in bounds)))


def _fold(function: Any, operands: tuple[Operand, ...]) -> Operand:
    result = operands[0]
    for operand in operands[1:]:
        result = apply(function, result, operand)
    return result


def _shape(shape: Shape) -> tuple[int, ...]:
    return tuple(int(n) for n in shape) if isinstance(shape, tuple | list) else (int(shape),)


def _filled(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Memory whose every byte is set: NaN as a float, -1 as an integer, so that a read of it shows."""
    return np.full(math.prod(shape) * dtype.itemsize, 0xFF, np.uint8).view(dtype).reshape(shape)


def _bits(value: Operand) -> str:
    scalar = number(value).value
    width = 8 * scalar.dtype.itemsize
    return format(operator.index(scalar) & ((1 << width) - 1), f"0{width}b")


def _one_or_tuple(values: list[Any], n: int) -> Any:
    numbers = tuple(Number(value) for value in values[:n])
    return numbers[0] if n == 1 else numbers


__all__ = ["Cuda", "Dim3", "Math", "NumPy", "Record", "Type", "Wait", "builtin_names", "dtype_of"]
