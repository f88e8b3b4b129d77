"""Numbers with numba's types: every operation is looked up in numba's typing rules for CUDA, then done by NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numba.cuda.descriptor import cuda_target
from numba.np.numpy_support import as_dtype, from_dtype

from tests.oracle.record import OracleError

Operand = Any
"""A `Number`, or a plain Python bool, int, float or complex, which numba types as its literal."""


def _binary(function: Callable[..., Any], swapped: bool = False) -> Callable[[Number, Operand], Number]:
    def method(self: Number, other: Operand) -> Number:
        return apply(function, other, self) if swapped else apply(function, self, other)

    return method


def _unary(function: Callable[..., Any]) -> Callable[[Number], Number]:
    return lambda self: apply(function, self)


class Number:
    """A scalar of a numba type. `value` is a NumPy scalar of exactly that type."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    __add__, __radd__ = _binary(operator.add), _binary(operator.add, swapped=True)
    __sub__, __rsub__ = _binary(operator.sub), _binary(operator.sub, swapped=True)
    __mul__, __rmul__ = _binary(operator.mul), _binary(operator.mul, swapped=True)
    __truediv__, __floordiv__ = _binary(operator.truediv), _binary(operator.floordiv)
    __mod__ = _binary(operator.mod)
    __lshift__, __rshift__ = _binary(operator.lshift), _binary(operator.rshift)
    __and__, __or__, __xor__ = _binary(operator.and_), _binary(operator.or_), _binary(operator.xor)
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    __lt__, __le__ = _binary(operator.lt), _binary(operator.le)
    __gt__, __ge__ = _binary(operator.gt), _binary(operator.ge)
    __eq__, __ne__ = _binary(operator.eq), _binary(operator.ne)  # type: ignore[assignment]
    __neg__, __pos__ = _unary(operator.neg), _unary(operator.pos)
    __invert__, __abs__ = _unary(operator.invert), _unary(operator.abs)

    def __pow__(self, exponent: Operand) -> Number:
        if not isinstance(exponent, Number) or exponent.value.dtype.kind != "i" or exponent.value < 0:
            return apply(operator.pow, self, exponent)
        _, result = signature(operator.pow, self.value.dtype, exponent.value.dtype)
        return Number(_repeated_product(self.value.astype(result), int(exponent.value)))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return operator.index(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"{self.value.dtype}({self.value})"

    @property
    def real(self) -> Number:
        return Number(self.value.real)

    @property
    def imag(self) -> Number:
        return Number(self.value.imag)

    def conjugate(self) -> Number:
        return Number(self.value.conjugate())


def number(value: Operand) -> Number:
    """Give a value its numba type: literals are int64, float64, complex128 or boolean."""
    if isinstance(value, Number):
        return value
    if isinstance(value, np.generic):
        return Number(value)
    if isinstance(value, bool):
        return Number(np.bool_(value))
    if isinstance(value, int):
        return Number(np.uint64(value) if value >= 2**63 else np.int64(value))
    if isinstance(value, float):
        return Number(np.float64(value))
    if isinstance(value, complex):
        return Number(np.complex128(value))
    raise OracleError(f"{value!r} is not a number")


def cast(value: Operand, dtype: np.dtype[Any]) -> Number:
    """Convert as a cast written in the kernel, or as a store to an array of `dtype`."""
    return Number(number(value).value.astype(dtype))


def apply(function: Callable[..., Any], *operands: Operand) -> Number:
    """Apply an operator or builtin with the operand and result types that numba gives it."""
    values = [(operand if isinstance(operand, Number) else number(operand)).value for operand in operands]
    compute, wanted, result = _plan(function, *map(type, values))
    values = [
        value if type(value) is kind else kind(value) for value, kind in zip(values, wanted, strict=True)
    ]
    if function in (operator.floordiv, operator.mod) and values[1] == 0:
        raise OracleError(f"division by zero: {values[0]} and {values[1]}")
    computed = compute(*values)
    return Number(computed if type(computed) is result else np.asarray(computed).astype(result)[()])


@cache
def _plan(function: Callable[..., Any], *kinds: type) -> tuple[Callable[..., Any], tuple[type, ...], type]:
    """How to compute an operation on NumPy scalar types: the function, the operand types, the result type."""
    wanted, result = signature(function, *map(np.dtype, kinds))
    mixed_signs = {dtype.kind for dtype in wanted} == {"i", "u"}
    if function in _WIDENS_FIRST or (mixed_signs and result.kind in "iu"):
        wanted = (result,) * len(wanted)
    return _COMPUTED_AS.get(function, function), tuple(dtype.type for dtype in wanted), result.type


@cache
def signature(
    function: Callable[..., Any], *dtypes: np.dtype[Any]
) -> tuple[tuple[np.dtype[Any], ...], np.dtype[Any]]:
    """The types that numba converts the operands to, and the type of the result.

    >>> signature(operator.add, np.dtype(np.int32), np.dtype(np.float32))
    ((dtype('float64'), dtype('float64')), dtype('float64'))
    """
    context = cuda_target.typing_context
    context.refresh()
    try:
        found = context.resolve_function_type(function, tuple(map(from_dtype, dtypes)), {})
    except NumbaError as error:
        raise OracleError(f"numba has no {function.__name__} for {dtypes}") from error
    if found is None:
        raise OracleError(f"numba has no {function.__name__} for {dtypes}")
    return tuple(map(_as_dtype, found.args)), _as_dtype(found.return_type)


def _as_dtype(numba_type: types.Type) -> np.dtype[Any]:
    return np.dtype(np.bool_) if isinstance(numba_type, types.Boolean) else as_dtype(numba_type)


def _repeated_product(base: Any, exponent: int) -> Any:
    """Square and multiply, the order in which numba raises to an integer power."""
    result = base.dtype.type(1)
    while exponent:
        if exponent & 1:
            result = result * base
        base, exponent = base * base, exponent >> 1
    return result


def _logical_not(value: Any) -> bool:
    return not value


# numba converts the operand of these to the result's type before it computes.
_WIDENS_FIRST = (operator.neg, operator.pos, operator.invert, min, max)
_COMPUTED_AS: dict[Callable[..., Any], Callable[..., Any]] = {
    operator.abs: abs,
    operator.floordiv: np.floor_divide,
    operator.mod: np.mod,
    operator.not_: _logical_not,
    int: np.trunc,
}
