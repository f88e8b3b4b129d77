"""The tracer's types equal numba-cuda's own resolution: operators, built-ins, math, and variables where paths
meet."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from lanewise.machine import from_name
from lanewise.trace import functions_in, trace
from lanewise.trace.arguments import Arguments
from lanewise.trace.arrays import SharedStorage
from lanewise.trace.infer import Inference
from lanewise.trace.lanes import BINARY, binary, compare, dtype_of, inverted, negative, positive, unify
from lanewise.trace.launch import make_launch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    types = pytest.importorskip("numba.types")
    descriptor = pytest.importorskip(
        "numba.cuda.descriptor", reason="needs numba-cuda: its typing is the oracle"
    )

NAMES = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float64",
)
COMPLEX = ("complex64", "complex128")
HEADER = "import math\nimport numpy as np\nfrom numba import cuda, float32, int32\n"
PYTHON = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "Pow": operator.pow,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "BitAnd": operator.and_,
    "BitOr": operator.or_,
    "BitXor": operator.xor,
}


@cache
def context() -> Any:
    found = descriptor.cuda_target.typing_context
    found.refresh()
    return found


def numba_type(name: str) -> Any:
    return types.boolean if name == "bool" else getattr(types, name)


def resolve(function: Callable[..., Any], *names: str) -> str | None:
    """What numba-cuda says the result is, or None if it refuses."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            signature = context().resolve_function_type(
                function, tuple(numba_type(name) for name in names), {}
            )
    except Exception:
        return None
    return None if signature is None else str(signature.return_type)


def number(name: str) -> Any:
    return np.dtype(name).type(1)


@pytest.mark.parametrize("name", BINARY)
def test_binary_operators(name: str) -> None:
    compared = 0
    for left in NAMES + COMPLEX:
        for right in NAMES + COMPLEX:
            expected = resolve(PYTHON[name], left, right)
            # float32 for bool ** int32 is an accident of numba's order of signatures that no kernel relies
            # on.
            if expected is None or (name, left, right[:3]) == ("Pow", "bool", "int"):
                continue
            assert str(binary(name, number(left), number(right)).dtype) == expected, (left, right)
            compared += 1
    assert compared >= 9 * 9


def test_unary_operators() -> None:
    for apply, function in ((negative, operator.neg), (positive, operator.pos), (inverted, operator.invert)):
        for name in NAMES:
            expected = resolve(function, name)
            if expected is not None:
                assert str(apply(number(name)).dtype) == expected, (function, name)


def test_unification_of_paths() -> None:
    for left in NAMES + COMPLEX:
        for right in NAMES + COMPLEX:
            expected = context().unify_pairs(numba_type(left), numba_type(right))
            assert str(unify(np.dtype(left), np.dtype(right))) == str(expected), (left, right)


def test_comparison_of_mixed_signs_is_numerical() -> None:
    assert compare("Lt", np.int32(-1), np.uint32(0))
    assert compare("Lt", np.int64(-1), np.uint64(2**63))
    assert not compare("Eq", np.int8(-1), np.uint8(255))


def result_of(expression: str, *values: Any) -> np.dtype:
    """The type of an expression of `out`, `x`, `y`, `z`."""
    names = "".join(f", {name}" for name in "xyz"[: len(values)])
    return inferred(f"def kernel(out{names}):\n    v = {expression}\n", values)


def inferred(source: str, values: tuple[Any, ...]) -> np.dtype:
    """The type that inference gives to the variable `v` at the end of a kernel."""
    kernel = functions_in(HEADER + source)["kernel"]
    given = Arguments(kernel, (np.zeros(1, np.complex128), *values))
    inference = Inference(kernel, make_launch(1, 32, 0, from_name("sm_90")), SharedStorage(0))
    inference.run(kernel, dict(given.env))
    return dtype_of(inference.frame.env["v"])


def test_builtins_and_math() -> None:
    functions: dict[str, Callable[..., Any]] = {
        "abs": abs,
        "int": int,
        "float": float,
        "round": round,
        "bool": bool,
    }
    functions |= {f"math.{name}": getattr(math, name) for name in _MATH}
    for text, function in functions.items():
        for name in NAMES:
            expected = resolve(function, name)
            if expected is not None:
                assert str(result_of(f"{text}(x)", number(name))) == expected, (text, name)


_MATH = [
    "sqrt",
    "exp",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "floor",
    "ceil",
    "trunc",
    "fabs",
    "erf",
    "erfc",
    "gamma",
    "lgamma",
    "degrees",
    "radians",
    "isnan",
    "isinf",
    "isfinite",
]


@pytest.mark.parametrize("name", ["pow", "atan2", "hypot", "fmod", "copysign"])
def test_math_of_two_arguments(name: str) -> None:
    for pair in (("float32", "float32"), ("float32", "float64"), ("float64", "int32"), ("int32", "int32")):
        expected = resolve(getattr(math, name), *pair)
        assert str(result_of(f"math.{name}(x, y)", *map(number, pair))) == expected, (name, pair)


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("cuda.threadIdx.x", (), "int32"),
        ("cuda.blockDim.x", (), "int32"),
        ("cuda.grid(1)", (), "int64"),
        ("cuda.grid(2)[1]", (), "int64"),
        ("cuda.gridsize(1)", (), "int64"),
        ("cuda.laneid", (), "int32"),
        ("cuda.warpsize", (), "int32"),
        ("cuda.threadIdx.x + cuda.blockIdx.x", (), "int64"),
        ("out.shape[0]", (), "int64"),
        ("len(out)", (), "int64"),
        ("1", (), "int64"),
        ("1.0", (), "float64"),
        ("x * 2.0", (np.float32(1),), "float64"),
        ("x * 2", (np.float32(1),), "float64"),
        ("x * float32(2)", (np.float32(1),), "float32"),
        ("x ** 2", (np.float32(1),), "float32"),
        ("x ** 0.5", (np.float32(1),), "float64"),
        ("x if x > 0 else 0", (np.float32(1),), "float64"),
        ("x if x > 0 else y", (np.float32(1), np.float32(1)), "float32"),
        ("x and y", (np.int32(1), np.int32(1)), "int32"),
        ("x / y", (np.int32(1), np.int32(1)), "float64"),
        ("min(x, y)", (np.int32(1), np.float32(1)), "float64"),
        ("min(x, y, z)", (np.int8(1), np.int16(1), np.int32(1)), "int32"),
        ("(x > 0) + (y > 0)", (np.int32(1), np.int32(1)), "int64"),
        ("cuda.popc(x)", (np.int32(1),), "int32"),
        ("cuda.popc(x)", (np.int64(1),), "int64"),
        ("cuda.ffs(x)", (np.int64(1),), "uint32"),
        ("cuda.clz(x)", (np.uint32(1),), "uint32"),
        ("cuda.fma(x, x, x)", (np.float32(1),), "float32"),
        ("cuda.ballot_sync(0xFFFFFFFF, x)", (np.bool_(1),), "uint32"),
        ("cuda.any_sync(0xFFFFFFFF, x)", (np.bool_(1),), "bool"),
        ("cuda.match_any_sync(0xFFFFFFFF, x)", (np.int32(1),), "int32"),
        ("cuda.shfl_down_sync(0xFFFFFFFF, x, 1)", (np.float32(1),), "float32"),
        ("cuda.syncthreads_count(x)", (np.int32(1),), "int32"),
        ("x.real", (np.complex64(1),), "float32"),
        ("abs(x)", (np.complex64(1),), "float32"),
    ],
)
def test_expressions(expression: str, values: tuple[Any, ...], expected: str) -> None:
    assert str(result_of(expression, *values)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("v = float32(0)\nfor i in range(n):\n    v += x", "float32"),
        ("v = float32(0)\nfor i in range(n):\n    v += 1.0", "float64"),
        ("v = 0\nfor i in range(n):\n    v += x", "float64"),
        ("v = int32(0)\nfor i in range(n):\n    v += 1", "int64"),
        ("v = int32(0)\nif n > 1:\n    v = float32(1)", "float64"),
        ("v = int32(0)\nv = float32(1)", "float32"),
        ("v = 1\nwhile v < n:\n    v = v * 2", "int64"),
        ("v = float32(1)\nw = int32(1)\nfor i in range(n):\n    v = w\n    w = w * 2", "float64"),
        ("v = x\nif n:\n    v = 1.0\n    v = float32(v)", "float32"),
    ],
)
def test_variables_where_paths_meet(body: str, expected: str) -> None:
    lines = "".join(f"    {line}\n" for line in body.split("\n"))
    found = inferred(f"def kernel(out, x, n):\n{lines}", (np.float32(1), np.int64(4)))
    assert str(found) == expected


def test_accumulator_of_another_type_holds_the_value_that_the_gpu_holds() -> None:
    """float32(0) that later meets float64 is float64 from the start: 2**24 + 1 is not lost."""
    kernel = functions_in(
        "from numba import cuda, float32\ndef kernel(out):\n    v = float32(16777216)\n"
        "    for i in range(3):\n        v += 1.0\n    out[0] = v\n"
    )["kernel"]
    out = np.zeros(1)
    t = trace(kernel, 1, 1, out)
    assert out[0] == 16777219
    assert any("v is float32 at first and float64 later" in text for _, text in t.warnings)
