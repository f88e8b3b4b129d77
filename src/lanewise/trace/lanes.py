"""Values of a kernel's variables for all lanes of a batch of blocks, and arithmetic on them with numba's
types.

A batch has B blocks of T threads. A value is one of

- a Python number: a constant known when numba compiles (literal, global or closure constant), not yet given a
  type;
- a NumPy scalar: the same value in every lane;
- an array of shape `(b, t)`, b in {1, B} and t in {1, T}: `threadIdx.x` is `(1, T)`, `blockIdx.x` is `(B,
  1)`;
- a `Split`: an int64 sum of a block part `(B, 1)` and a thread part `(1, T)` that nobody has needed as one
  array yet. Global indices are such sums. Kept apart, their bounds are known from B + T numbers instead of B
  * T, and an address pattern is analysed once for all blocks whose part agrees modulo a cache line.

Types follow numba (its own resolution is the oracle of the tests): integers combine to 64 bits, `int32` with
`float32` gives `float64`, literals are `int64` and `float64`. Values are never changed in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

BOOL, INT32, INT64, UINT32, UINT64 = (
    np.dtype(name) for name in ("bool", "int32", "int64", "uint32", "uint64")
)
FLOAT32, FLOAT64, COMPLEX64, COMPLEX128 = (
    np.dtype(name) for name in ("float32", "float64", "complex64", "complex128")
)

# What fits in float32 according to numba; all other integers take float32 to float64.
_NARROW = {np.dtype(name) for name in ("bool", "int8", "int16", "uint8", "float16", "float32", "complex64")}

FLOAT16 = np.dtype("float16")
_HALF_PAIRS = ({FLOAT16, BOOL}, {FLOAT16, np.dtype("int8")})


class Split:
    """An int64 value `block + thread`, with `block` of shape `(B, 1)` and `thread` of shape `(1, T)`."""

    __slots__ = ("_full", "block", "high", "low", "thread")
    dtype = INT64

    def __init__(self, block: np.ndarray, thread: np.ndarray) -> None:
        self.block, self.thread = block, thread
        self.low = int(block.min()) + int(thread.min())
        self.high = int(block.max()) + int(thread.max())
        self._full: np.ndarray | None = None

    @property
    def full(self) -> np.ndarray:
        """The sum as one `(B, T)` array, computed once."""
        if self._full is None:
            self._full = self.block + self.thread
        return self._full


Scalar: TypeAlias = "bool | int | float | complex | np.generic"
Lanes: TypeAlias = "Scalar | np.ndarray | Split"


_TYPED = (np.ndarray, np.generic, Split)
_NUMBERS = (*_TYPED, int, float, complex)


def is_number(value: Any) -> bool:
    """Say whether a value is a number of the lanes, in any of its four forms."""
    return isinstance(value, _NUMBERS)


def is_constant(value: Any) -> bool:
    """Say whether a value is a number that numba knows when it compiles."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def typed(value: Any) -> Any:
    """Give a Python number the type that numba gives it."""
    if isinstance(value, _TYPED):
        return value
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.int64(value) if -(2**63) <= value < 2**63 else np.uint64(value & (2**64 - 1))
    if isinstance(value, float):
        return np.float64(value)
    return np.complex128(value)


def dtype_of(value: Any) -> np.dtype:
    """The type of a number."""
    dtype = getattr(value, "dtype", None)
    return typed(value).dtype if dtype is None else dtype


def whole(value: Any) -> Any:
    """A number as a NumPy scalar or array, its parts added up if it was a `Split`."""
    return value.full if isinstance(value, Split) else typed(value)


def cast(value: Any, dtype: np.dtype) -> Any:
    """Convert as C does: floats truncate, integers wrap."""
    if dtype == INT64 and isinstance(value, Split):
        return value
    value = whole(value)
    if value.dtype == dtype:
        return value
    if dtype.kind not in "cV" and value.dtype.kind == "c":
        value = value.real
    return value.astype(dtype)


def limits(value: Any) -> tuple[int, int]:
    """The least and the greatest of an integer value over all lanes."""
    if isinstance(value, Split):
        return value.low, value.high
    if isinstance(value, np.ndarray):
        return int(value.min()), int(value.max())
    return int(value), int(value)


def arithmetic_type(left: np.dtype, right: np.dtype) -> np.dtype:
    """The type in which numba adds, multiplies, floors and masks two numbers."""
    kinds = left.kind + right.kind
    if "c" in kinds or "f" in kinds:
        narrow = left in _NARROW and right in _NARROW
        if "c" in kinds:
            return COMPLEX64 if narrow else COMPLEX128
        if left == right or {left, right} in _HALF_PAIRS:
            return np.promote_types(left, right)
        return FLOAT32 if narrow else FLOAT64
    return UINT64 if kinds == "uu" else INT64


def unify(left: np.dtype, right: np.dtype) -> np.dtype:
    """The type that a variable takes where two paths with different types meet."""
    return np.promote_types(left, right)


def _shift_type(left: np.dtype, right: np.dtype) -> np.dtype:
    return UINT64 if left.kind == "u" else INT64


def _bitwise_type(left: np.dtype, right: np.dtype) -> np.dtype:
    return BOOL if left == right == BOOL else arithmetic_type(left, right)


def _division_type(left: np.dtype, right: np.dtype) -> np.dtype:
    result = arithmetic_type(left, right)
    return FLOAT64 if result.kind in "iu" else result


def _power_type(left: np.dtype, right: np.dtype) -> np.dtype:
    # numba has float ** int as its own operation, in the precision of the float.
    power = left if left.kind == "f" and right.kind in "iub" else arithmetic_type(left, right)
    return FLOAT32 if power == FLOAT16 else power


def _floor_type(left: np.dtype, right: np.dtype) -> np.dtype:
    floor = arithmetic_type(left, right)
    return FLOAT32 if floor == FLOAT16 else floor


def _power(base: Any, exponent: Any) -> Any:
    if base.dtype.kind not in "iu":
        return np.power(base, exponent)
    # Negative integer powers give 0, 1 or -1 by repeated squaring of the truncated inverse; NumPy refuses
    # them.
    safe = np.power(base, np.maximum(exponent, 0))
    if base.dtype.kind == "u" or not np.any(exponent < 0):
        return safe
    odd = np.where(exponent % 2 == 0, 1, base)
    return np.where(exponent < 0, np.where(np.abs(base) == 1, odd, 0), safe).astype(base.dtype)[()]


_Types: TypeAlias = "Callable[[np.dtype, np.dtype], np.dtype]"

BINARY: dict[str, tuple[Callable[[Any, Any], Any], _Types]] = {
    "Add": (np.add, arithmetic_type),
    "Sub": (np.subtract, arithmetic_type),
    "Mult": (np.multiply, arithmetic_type),
    "Div": (np.true_divide, _division_type),
    "FloorDiv": (np.floor_divide, _floor_type),
    "Mod": (np.mod, _floor_type),
    "Pow": (_power, _power_type),
    "LShift": (np.left_shift, _shift_type),
    "RShift": (np.right_shift, _shift_type),
    "BitAnd": (np.bitwise_and, _bitwise_type),
    "BitOr": (np.bitwise_or, _bitwise_type),
    "BitXor": (np.bitwise_xor, _bitwise_type),
}

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "Lt": np.less,
    "LtE": np.less_equal,
    "Gt": np.greater,
    "GtE": np.greater_equal,
    "Eq": np.equal,
    "NotEq": np.not_equal,
}


def binary(operator: str, left: Any, right: Any) -> Any:
    """Apply a Python operator, named as in `ast`, with numba's result type.

    >>> binary("Add", np.int32(1), np.float32(2)).dtype
    dtype('float64')
    """
    apply, result_type = BINARY[operator]
    dtype = result_type(dtype_of(left), dtype_of(right))
    if dtype is INT64 or dtype == INT64:
        kept_apart = _apart(operator, left, right)
        if kept_apart is not None:
            return kept_apart
    if dtype == BOOL and operator in ("Add", "Sub", "Mult"):
        dtype = INT64
    return apply(_whole_as(left, dtype), _whole_as(right, dtype))


def _whole_as(value: Any, dtype: np.dtype) -> Any:
    value = whole(value)
    return value if value.dtype == dtype else cast(value, dtype)


def _apart(operator: str, left: Any, right: Any) -> Any:
    """The result as a `Split` where sum or product of the parts allows it, else None."""
    left, right = typed(left), typed(right)
    if isinstance(left, np.generic) and isinstance(right, np.generic):
        return None
    if operator in ("Add", "Sub"):
        if not (isinstance(left, Split) or isinstance(right, Split)) and not _complementary(left, right):
            return None
        left_parts, right_parts = _parts(left), _parts(right)
        if left_parts is None or right_parts is None:
            return None
        apply = np.add if operator == "Add" else np.subtract
        return Split(apply(left_parts[0], right_parts[0]), apply(left_parts[1], right_parts[1]))
    if operator == "Mult":
        if isinstance(right, Split):
            left, right = right, left
        if isinstance(left, Split) and isinstance(right, np.generic):
            factor = np.int64(right)
            return Split(left.block * factor, left.thread * factor)
    if operator == "LShift" and isinstance(left, Split) and isinstance(right, np.generic):
        return Split(left.block << np.int64(right), left.thread << np.int64(right))
    return None


def _complementary(left: Any, right: Any) -> bool:
    """True for a block value with a thread value, in either order."""
    if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
        return False
    (b1, t1), (b2, t2) = left.shape, right.shape
    return (t1 == 1 and b2 == 1 and b1 > 1 and t2 > 1) or (b1 == 1 and t2 == 1 and t1 > 1 and b2 > 1)


_ZERO = np.zeros((1, 1), np.int64)


def _parts(value: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Block part and thread part of a value, or None if it has no such form."""
    if isinstance(value, Split):
        return value.block, value.thread
    if isinstance(value, np.generic):
        return np.full((1, 1), value, np.int64), _ZERO
    if value.shape[1] == 1:
        return value.astype(np.int64, copy=False), _ZERO
    if value.shape[0] == 1:
        return _ZERO, value.astype(np.int64, copy=False)
    return None


def compare(operator: str, left: Any, right: Any) -> Any:
    """Compare two numbers; a `Split` whose bounds settle the question gives one bool for all lanes.

    >>> compare("Lt", Split(np.array([[0], [32]]), np.arange(32)[None, :]), 64)
    np.True_
    """
    settled = _settled(operator, left, right)
    if settled is not None:
        return settled
    left, right = whole(left), whole(right)
    if left.dtype != right.dtype:
        dtype = np.promote_types(left.dtype, right.dtype)
        left, right = cast(left, dtype), cast(right, dtype)
    return COMPARE[operator](left, right)


_MIRRORED = {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE"}


def _settled(operator: str, left: Any, right: Any) -> np.bool_ | None:
    if isinstance(right, Split) and not isinstance(left, Split):
        if operator not in _MIRRORED:
            return None
        left, right, operator = right, left, _MIRRORED[operator]
    if not isinstance(left, Split) or dtype_of(right).kind not in "iub":
        return None
    low, high = limits(right)
    always, never = {
        "Lt": (left.high < low, left.low >= high),
        "LtE": (left.high <= low, left.low > high),
        "Gt": (left.low > high, left.high <= low),
        "GtE": (left.low >= high, left.high < low),
    }.get(operator, (False, left.high < low or left.low > high))
    if operator == "NotEq":
        always, never = never, False
    return np.True_ if always else np.False_ if never else None


def negative(value: Any) -> Any:
    """`-x`: integers become 64 bits wide."""
    dtype = _widened(dtype_of(value))
    if isinstance(value, Split):
        return Split(-value.block, -value.thread)
    return np.negative(cast(value, dtype))


def positive(value: Any) -> Any:
    """`+x`: integers become 64 bits wide."""
    return cast(value, _widened(dtype_of(value)))


def inverted(value: Any) -> Any:
    """`~x`: integers become 64 bits wide, a bool stays one."""
    dtype = dtype_of(value)
    return np.invert(_whole_as(value, dtype if dtype == BOOL else _widened(dtype)))


def _widened(dtype: np.dtype) -> np.dtype:
    return dtype if dtype.kind in "fc" else UINT64 if dtype.kind == "u" else INT64


def truth(value: Any) -> Any:
    """A number as a condition: bool scalar or array."""
    value = whole(value)
    return value if value.dtype == BOOL else value != value.dtype.type(0)


def choose(mask: Any, chosen: Any, other: Any) -> Any:
    """Lane by lane, `chosen` where `mask` is set, else `other`; both have one type already."""
    return np.where(mask, whole(chosen), whole(other))[()]
