"""Functions without side effects that kernels use: Python's built-ins, `math`, NumPy's scalar functions."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lanewise.trace.arrays import ArrayRef
from lanewise.trace.lanes import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    cast,
    choose,
    compare,
    dtype_of,
    typed,
    unify,
    whole,
)
from lanewise.trace.registry import VALUES, intrinsic
from lanewise.trace.statements import Rounds

# -- built-ins -------------------------------------------------------------------------------------


@intrinsic("builtins.range")
def _range(engine: Any, node: ast.Call, *arguments: Any) -> Any:
    return engine.make_range(node, arguments)


@intrinsic("builtins.len")
def _len(engine: Any, node: ast.Call, sequence: Any) -> Any:
    if isinstance(sequence, tuple):
        return len(sequence)
    if isinstance(sequence, ArrayRef) and sequence.ndim:
        return typed(sequence.shape[0])
    engine.refuse(node, "len of this", "Use it on arrays and tuples.")


def _extreme(operator: str) -> Callable[..., Any]:
    def apply(engine: Any, node: ast.Call, *values: Any) -> Any:
        members = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
        if len(members) < 1 or (len(values) == 1 and not isinstance(values[0], tuple)):
            engine.refuse(node, "min or max of one value", "Give two or more numbers.")
        best = engine.as_number(node, members[0])
        for value in members[1:]:
            engine.tick(node)
            value = engine.as_number(node, value)
            dtype = unify(dtype_of(best), dtype_of(value))
            best, value = cast(best, dtype), cast(value, dtype)
            better = compare(operator, value, best)
            best = (value if better else best) if np.ndim(better) == 0 else choose(better, value, best)
        return best

    return apply


intrinsic("builtins.min")(_extreme("Lt"))
intrinsic("builtins.max")(_extreme("Gt"))


@intrinsic("builtins.abs")
def _abs(engine: Any, node: ast.Call, value: Any) -> Any:
    engine.tick(node)
    value = whole(engine.as_number(node, value))
    return cast(value, np.dtype(np.int8)) if value.dtype == BOOL else np.abs(value)


@intrinsic("builtins.int")
def _int(engine: Any, node: ast.Call, value: Any = 0) -> Any:
    kind = dtype_of(engine.as_number(node, value))
    if kind.kind == "c":
        engine.refuse(node, "int of a complex number", "Use .real.")
    if isinstance(value, int):
        return int(value)
    engine.tick(node)
    return value if kind.kind in "iu" else cast(value, INT64)


@intrinsic("builtins.float")
def _float(engine: Any, node: ast.Call, value: Any = 0.0) -> Any:
    kind = dtype_of(engine.as_number(node, value))
    if kind.kind == "c":
        engine.refuse(node, "float of a complex number", "Use .real.")
    if kind == BOOL:
        engine.refuse(node, "float of a bool", "numba has none; use float32(x) or float64(x).")
    engine.tick(node)
    return value if kind in (FLOAT32, FLOAT64) else cast(value, FLOAT64)


@intrinsic("builtins.bool")
def _bool(engine: Any, node: ast.Call, value: Any = False) -> Any:
    engine.tick(node)
    return engine.condition(node, value)


@intrinsic("builtins.complex")
def _complex(engine: Any, node: ast.Call, real: Any, imag: Any = None) -> Any:
    engine.tick(node)
    parts = [engine.as_number(node, real)] + ([] if imag is None else [engine.as_number(node, imag)])
    single = all(dtype_of(part) == FLOAT32 for part in parts)
    dtype = np.dtype(np.complex64 if single else np.complex128)
    value = cast(parts[0], dtype)
    return value if imag is None else value + dtype.type(1j) * cast(parts[1], dtype)


@intrinsic("builtins.round")
def _round(engine: Any, node: ast.Call, value: Any, digits: Any = None) -> Any:
    engine.tick(node)
    value = whole(engine.as_number(node, value))
    if digits is None:
        return cast(np.rint(value), INT64)
    if not isinstance(digits, int):
        engine.refuse(node, "round to a varying number of digits", "Use a constant.")
    return np.round(value, digits)


@intrinsic("builtins.pow")
def _pow(engine: Any, node: ast.Call, base: Any, exponent: Any) -> Any:
    return engine.operate(node, "Pow", engine.as_number(node, base), engine.as_number(node, exponent))


@intrinsic("builtins.divmod")
def _divmod(engine: Any, node: ast.Call, left: Any, right: Any) -> Any:
    left, right = engine.as_number(node, left), engine.as_number(node, right)
    return engine.operate(node, "FloorDiv", left, right), engine.operate(node, "Mod", left, right)


@intrinsic("builtins.tuple")
def _tuple(engine: Any, node: ast.Call, value: Any = ()) -> Any:
    if not isinstance(value, tuple):
        engine.refuse(node, "tuple of something that is no tuple", "Write the elements out.")
    return value


@intrinsic("builtins.sum")
def _sum(engine: Any, node: ast.Call, values: Any) -> Any:
    if not isinstance(values, tuple):
        engine.refuse(node, "sum of something that is no tuple", "Write a loop.")
    total: Any = 0
    for value in values:
        total = engine.operate(node, "Add", total, engine.as_number(node, value))
    return total


@intrinsic("builtins.enumerate")
def _enumerate(engine: Any, node: ast.Call, sequence: Any, start: Any = 0) -> Any:
    rounds = engine.loop_over(node, sequence)
    if not isinstance(rounds, Rounds) or not isinstance(start, int):
        engine.refuse(node, "enumerate of this", "Use it on arrays and tuples.")
    return Rounds(rounds.n, lambda k: (np.int64(start + k), rounds.value(k)))


@intrinsic("builtins.zip")
def _zip(engine: Any, node: ast.Call, *sequences: Any) -> Any:
    rounds = [engine.loop_over(node, sequence) for sequence in sequences]
    if not all(isinstance(one, Rounds) for one in rounds):
        engine.refuse(node, "zip of this", "Use it on arrays and tuples.")
    least = (
        _extreme("Lt")(engine, node, *(typed(one.n) for one in rounds)) if len(rounds) > 1 else rounds[0].n
    )
    return Rounds(least, lambda k: tuple(one.value(k) for one in rounds))


@intrinsic("builtins.print")
def _print(engine: Any, node: ast.Call, *values: Any, **options: Any) -> None:
    engine.refuse(node, "print", "Write values to an output array and look at them after the launch.")


# -- math and NumPy --------------------------------------------------------------------------------

_erf = np.vectorize(math.erf, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])


def _safe(function: Callable[[float], float]) -> Callable[[float], float]:
    def call(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return math.inf if x >= 0 else math.nan

    return call


_gamma = np.vectorize(_safe(math.gamma), otypes=[float])
_lgamma = np.vectorize(_safe(math.lgamma), otypes=[float])


def _ieee_remainder(left: float, right: float) -> float:
    try:
        return math.remainder(left, right)
    except ValueError:
        return math.nan


_remainder = np.vectorize(_ieee_remainder, otypes=[float])

_UNARY: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "fabs": np.fabs,
    "degrees": np.degrees,
    "radians": np.radians,
    "erf": _erf,
    "erfc": _erfc,
    "gamma": _gamma,
    "lgamma": _lgamma,
}
_ROUNDING = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc}
_TESTS = {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}
_PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "pow": np.power,
    "fmod": np.fmod,
    "remainder": _remainder,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
}


def _floating(value: Any) -> np.dtype:
    """The type in which numba's math computes: float32 stays, the rest is float64."""
    kind = dtype_of(value)
    return kind if kind.kind in "fc" else FLOAT64


def _unary(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def apply(engine: Any, node: ast.Call, value: Any) -> Any:
        engine.tick(node)
        dtype = _floating(engine.as_number(node, value))
        return cast(function(cast(value, dtype)), dtype)

    return apply


def _rounding(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """NumPy's rounding functions leave integers as they are; numba's `math.floor` makes them floats."""

    def apply(engine: Any, node: ast.Call, value: Any) -> Any:
        engine.tick(node)
        value = whole(engine.as_number(node, value))
        return function(value) if value.dtype.kind == "f" else value

    return apply


def _test(function: Callable[[Any], Any]) -> Callable[..., Any]:
    def apply(engine: Any, node: ast.Call, value: Any) -> Any:
        engine.tick(node)
        return function(cast(value, _floating(engine.as_number(node, value))))

    return apply


def _pair(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def apply(engine: Any, node: ast.Call, left: Any, right: Any) -> Any:
        engine.tick(node)
        kinds = dtype_of(engine.as_number(node, left)), dtype_of(engine.as_number(node, right))
        single = kinds == (FLOAT32, FLOAT32) or (function is np.power and kinds == (FLOAT32, INT32))
        dtype = FLOAT32 if single else FLOAT64
        return cast(function(cast(left, dtype), cast(right, dtype)), dtype)

    return apply


for _name, _function in _UNARY.items():
    intrinsic(f"math.{_name}")(_unary(_function))
for _name in (
    "sqrt",
    "exp",
    "log",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "fabs",
    "exp2",
):
    intrinsic(f"numpy.{_name}")(_unary(_UNARY[_name]))
for _name, _function in _ROUNDING.items():
    intrinsic(f"math.{_name}")(_unary(_function))
    intrinsic(f"numpy.{_name}")(_rounding(_function))
intrinsic("numpy.rint")(_unary(np.rint))
for _name, _function in _TESTS.items():
    intrinsic(f"math.{_name}", f"numpy.{_name}")(_test(_function))
for _name, _pair_function in _PAIRS.items():
    intrinsic(f"math.{_name}")(_pair(_pair_function))
intrinsic("numpy.minimum")(_extreme("Lt"))
intrinsic("numpy.maximum")(_extreme("Gt"))
intrinsic("numpy.abs", "numpy.absolute")(_abs)


@intrinsic("math.ldexp")
def _ldexp(engine: Any, node: ast.Call, value: Any, exponent: Any) -> Any:
    engine.tick(node)
    dtype = _floating(engine.as_number(node, value))
    return cast(np.ldexp(cast(value, dtype), cast(exponent, np.dtype(np.int32))), dtype)


@intrinsic("math.frexp")
def _frexp(engine: Any, node: ast.Call, value: Any) -> Any:
    engine.tick(node)
    mantissa, exponent = np.frexp(cast(value, _floating(engine.as_number(node, value))))
    return mantissa, cast(exponent, INT32)


@intrinsic("math.modf")
def _modf(engine: Any, node: ast.Call, value: Any) -> Any:
    engine.tick(node)
    return np.modf(cast(value, _floating(engine.as_number(node, value))))


@intrinsic("math.fma", "cuda.fma")
def _fma(engine: Any, node: ast.Call, a: Any, b: Any, c: Any) -> Any:
    """One rounding: exact for float32 (the product fits float64), within an ulp for float64."""
    engine.tick(node)
    single = all(dtype_of(engine.as_number(node, part)) == FLOAT32 for part in (a, b, c))
    parts = [cast(part, FLOAT64) for part in (a, b, c)]
    return cast(parts[0] * parts[1] + parts[2], FLOAT32 if single else FLOAT64)


def _constant(number: float) -> Callable[[Any], Any]:
    return lambda engine: number


for _name in ("pi", "e", "tau", "inf", "nan"):
    for _module in ("math", "numpy"):
        VALUES[f"{_module}.{_name}"] = _constant(float(getattr(math, _name)))
