"""Expressions of a kernel, evaluated for all active lanes: the part that type inference and execution share.

The meaning of a name, an operator or an attribute is the same in both passes; only memory differs. A pass
supplies `place`, `load` and `store`, and the control flow of statements.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from lanewise.machine import WARP_LANES
from lanewise.trace.arrays import ArrayRef, ConstantStorage, Element, Place, array_ref, is_plain
from lanewise.trace.lanes import (
    binary,
    cast,
    choose,
    compare,
    dtype_of,
    inverted,
    is_constant,
    is_number,
    negative,
    positive,
    truth,
    unify,
    whole,
)
from lanewise.trace.masks import Mask
from lanewise.trace.refusals import KernelFault, refuse
from lanewise.trace.registry import VALUES
from lanewise.trace.source import (
    ConstantArray,
    DeviceFunction,
    Forbidden,
    Function,
    Symbol,
    fold,
)


@dataclass(frozen=True)
class Method:
    """A method of a number, named and about to be called without arguments."""

    apply: Callable[[], Any]


@dataclass
class Frame:
    """One function in execution: its variables, and the lanes that have returned from it with what."""

    function: Function
    path: tuple[int, ...]
    env: dict[str, Any]
    local_names: frozenset[str] = frozenset()
    assigned: dict[str, Mask] = field(default_factory=dict)  # by which lanes, for `Facts.loose` variables
    compiled_as: tuple[Any, ...] = ()  # what tells apart the versions that numba makes of one function
    returned: list[tuple[Mask, Any]] = field(default_factory=list)
    loops: list[Any] = field(default_factory=list)


class Expressions:
    """Evaluates expression nodes; the base of both passes."""

    frame: Frame
    mask: Mask | None
    shape: tuple[int, int]
    depth = 0

    def __init__(self) -> None:
        self._methods: dict[type, Any] = {}
        self._paths: dict[ast.Attribute, str] = {}
        self._constants: dict[int, ArrayRef] = {}

    # -- what a pass supplies ----------------------------------------------------------------------

    def place(self, node: ast.AST, array: ArrayRef, indices: tuple[Any, ...]) -> Place:
        """The element of an array that each lane names."""
        raise NotImplementedError

    def load(self, node: ast.AST, place: Place) -> Any:
        """Read an element per lane."""
        raise NotImplementedError

    def store(self, node: ast.AST, place: Place, value: Any) -> None:
        """Write an element per lane."""
        raise NotImplementedError

    def run_body(self, function: Function) -> Any:
        """Run the statements of a function in the present frame; its return value."""
        raise NotImplementedError

    def named_lanes(self, members: Any) -> np.ndarray:
        """The lanes that a warp's member mask names: bools of shape `(b, t)`."""
        bits = np.atleast_2d(whole(members)).astype(np.int64)
        return (bits >> (np.arange(self.shape[1]) % WARP_LANES) & 1).astype(bool)

    def tick(self, node: ast.AST) -> None:
        """Count one operation of every active warp."""

    def note_types(self, node: ast.AST, left: Any, right: Any, result: np.dtype) -> None:
        """Look at the types of an arithmetic operation."""

    def shared_key(self, node: ast.AST, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Any, ...]:
        """What makes a shared array one and the same.

        numba compiles a device function once for each set of argument types, so all calls with these types
        share its arrays.
        """
        where = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        return self.frame.function, self.frame.compiled_as, *where, shape, dtype

    # -- dispatch ----------------------------------------------------------------------------------

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression in the active lanes."""
        method = self._methods.get(type(node))
        if method is None:
            method = self._methods[type(node)] = getattr(self, f"_eval_{type(node).__name__}", None)
        if method is None:
            what, instead = _UNSUPPORTED.get(
                type(node).__name__, (type(node).__name__, "Use plain arithmetic and indexing.")
            )
            self.refuse(node, what, instead)
        return method(node)

    def number(self, node: ast.expr) -> Any:
        """The value of an expression that must be a number."""
        return self.as_number(node, self.evaluate(node))

    def as_number(self, node: ast.AST, value: Any) -> Any:
        """A value as a number, or a refusal."""
        if isinstance(value, ArrayRef) and value.ndim == 0:
            return self.load(node, self.place(node, value, ()))
        if not is_number(value):
            self.refuse(
                node,
                f"{describe(value)} where a number is needed",
                "Use a number, or one element of an array.",
            )
        return value

    def refuse(self, node: ast.AST, construct: str, instead: str) -> NoReturn:
        """Raise the refusal of a construct."""
        raise refuse(self.frame.function, node, construct, instead)

    @property
    def active(self) -> Mask:
        """The active lanes; code never runs without any."""
        assert self.mask is not None
        return self.mask

    # -- leaves ------------------------------------------------------------------------------------

    def _eval_Constant(self, node: ast.Constant) -> Any:
        if node.value is None or isinstance(node.value, (bool, int, float, complex, str)):
            if isinstance(node.value, int) and abs(node.value) >= 2**64:
                self.refuse(node, "an integer of more than 64 bits", "Use integers that fit 64 bits.")
            return node.value
        self.refuse(node, f"a {type(node.value).__name__} literal", "Use numbers.")

    def _eval_Name(self, node: ast.Name) -> Any:
        if node.id in self.frame.env:
            return self.frame.env[node.id]
        if node.id in self.frame.local_names:
            where = self.frame.function.where(node)
            raise KernelFault(
                f"{where}: variable {node.id} is read before any lane has assigned it. Assign it first."
            )
        return self.known(node, node.id)

    def known(self, node: ast.AST, name: str) -> Any:
        """The entity of a name from outside the function."""
        try:
            entity = self.frame.function.lookup(name)
        except KeyError:
            self.refuse(
                node, f"the unknown name {name}", "Define it before the kernel, or pass it as an argument."
            )
        return self.usable(node, name, entity)

    def usable(self, node: ast.AST, name: str, entity: Any) -> Any:
        """An entity as a value, if it belongs to the closed set."""
        if isinstance(entity, Forbidden):
            self.refuse(
                node,
                f"{name} ({entity.what})",
                "A kernel may use numbers, tuples of numbers, cuda, math, numpy types and other"
                " jitted functions.",
            )
        if isinstance(entity, tuple):
            return tuple(self.usable(node, name, element) for element in entity)
        if isinstance(entity, Symbol) and entity.path in VALUES:
            return VALUES[entity.path](self)
        if isinstance(entity, ConstantArray):
            return self.constant_array(node, name, entity.array)
        return entity

    def constant_array(self, node: ast.AST, name: str, array: np.ndarray) -> ArrayRef:
        """An array from outside the kernel, as it was when numba compiled: a copy in constant memory."""
        if id(array) not in self._constants:
            if not is_plain(array.dtype):
                self.refuse(node, f"{name}, a constant array of {array.dtype}", "Use numbers.")
            copied = np.array(array, order="C")
            storage = ConstantStorage(copied, name)
            ref = array_ref(storage, name, array.dtype, array.shape, copied.strides, 0)
            self._constants[id(array)] = ref
        return self._constants[id(array)]

    def _eval_Tuple(self, node: ast.Tuple) -> Any:
        values: list[Any] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                inner = self.evaluate(element.value)
                if not isinstance(inner, tuple):
                    self.refuse(element, "unpacking something that is not a tuple", "Unpack a tuple.")
                values += inner
            else:
                values.append(self.evaluate(element))
        return tuple(values)

    # -- arithmetic --------------------------------------------------------------------------------

    def _eval_BinOp(self, node: ast.BinOp) -> Any:
        operator = type(node.op).__name__
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            folded = fold(operator, node.left.value, node.right.value)
            if folded is not None:
                return folded
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        if isinstance(left, tuple) and isinstance(right, tuple) and operator == "Add":
            return left + right
        return self.operate(
            node, operator, self.as_number(node.left, left), self.as_number(node.right, right)
        )

    def operate(self, node: ast.AST, operator: str, left: Any, right: Any) -> Any:
        """Apply a binary operator to two numbers."""
        if operator == "MatMult":
            self.refuse(node, "the matrix product @", "Write the loop over the inner dimension.")
        kinds = dtype_of(left).kind + dtype_of(right).kind
        if operator in _INTEGER_ONLY and ("f" in kinds or "c" in kinds):
            self.refuse(
                node, f"{_INTEGER_ONLY[operator]} of a floating-point number", "Convert with int() first."
            )
        if operator in ("FloorDiv", "Mod") and "c" in kinds:
            self.refuse(node, "floor division of complex numbers", "Use / instead.")
        self.tick(node)
        result = binary(operator, left, right)
        self.note_types(node, left, right, dtype_of(result))
        return result

    def _eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant) and is_constant(value):
            return -value
        if isinstance(node.op, ast.Not):
            self.tick(node)
            return np.logical_not(self.condition(node.operand, value))
        value = self.as_number(node.operand, value)
        self.tick(node)
        if isinstance(node.op, ast.Invert):
            if dtype_of(value).kind in "fc":
                self.refuse(node, "~ of a floating-point number", "Convert with int() first.")
            return inverted(value)
        return negative(value) if isinstance(node.op, ast.USub) else positive(value)

    def condition(self, node: ast.AST, value: Any) -> Any:
        """A value as a condition; what numba decides at compile time comes as a Python bool."""
        if value is None:
            return False
        if isinstance(value, bool):
            return value
        if isinstance(value, tuple):
            return bool(value)
        if isinstance(value, str):
            self.refuse(node, "a string as a condition", "Compare numbers.")
        return truth(self.as_number(node, value))

    def _eval_Compare(self, node: ast.Compare) -> Any:
        left, entry = self.evaluate(node.left), self.active
        result: Any = None
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            if result is not None and not self._narrow_to(result):
                break
            right = self.evaluate(right_node)
            one = self._compare(node, type(operator).__name__, left, right)
            result = one if result is None else self._both(result, one)
            left = right
        self.mask = entry
        return result

    def _narrow_to(self, condition: Any) -> bool:
        """Go on in the lanes where a comparison of a chain holds so far; False if there are none."""
        if isinstance(condition, bool):
            return condition
        more, _done = self._branches(condition)
        if more is not None:
            self.mask = more
        return more is not None

    def _both(self, left: Any, right: Any) -> Any:
        if isinstance(left, bool) and isinstance(right, bool):
            return left and right
        return np.logical_and(left, right)

    def _compare(self, node: ast.Compare, operator: str, left: Any, right: Any) -> Any:
        if operator in ("Is", "IsNot"):
            if left is not None and right is not None:
                self.refuse(node, "is between two values", "Use == for numbers; is compares with None only.")
            return (left is right) == (operator == "Is")
        if operator in ("In", "NotIn"):
            if not isinstance(right, tuple):
                self.refuse(node, "in on something that is not a tuple", "Compare with each value.")
            found: Any = np.False_
            for member in right:
                found = np.logical_or(found, self._compare(node, "Eq", left, member))
            return found if operator == "In" else np.logical_not(found)
        if isinstance(left, tuple) and isinstance(right, tuple) and operator in ("Eq", "NotEq"):
            equal: Any = np.bool_(len(left) == len(right))
            for a, b in zip(left, right, strict=False):
                equal = np.logical_and(equal, self._compare(node, "Eq", a, b))
            return equal if operator == "Eq" else np.logical_not(equal)
        if isinstance(left, np.dtype) and isinstance(right, np.dtype):
            return (left == right) == (operator == "Eq")
        self.tick(node)
        constant = is_constant(left) and is_constant(right)
        result = compare(operator, self.as_number(node, left), self.as_number(node, right))
        return bool(result) if constant else result

    # -- lanes that go different ways within an expression -----------------------------------------

    def _eval_BoolOp(self, node: ast.BoolOp) -> Any:
        """`and` and `or`: later operands are evaluated only in the lanes that need them."""
        stop_if = isinstance(node.op, ast.Or)
        entry, settled = self.active, False
        value = self.evaluate(node.values[0])
        for operand in node.values[1:]:
            decided = self.condition(operand, value)
            if isinstance(decided, bool) or np.ndim(decided) == 0:
                if bool(decided) == stop_if:
                    break
                value = self.evaluate(operand)
                continue
            self.tick(node)
            more, done = self.active.split(np.logical_not(decided) if stop_if else decided)
            if more is None:
                break
            self.mask = more
            other = self.evaluate(operand)
            settled = settled or done is not None
            value = self._join(operand, more, other, value) if settled else other
        self.mask = entry
        return value

    def _eval_IfExp(self, node: ast.IfExp) -> Any:
        condition = self.condition(node.test, self.evaluate(node.test))
        if isinstance(condition, bool):
            return self.evaluate(node.body if condition else node.orelse)
        self.tick(node)
        entry = self.active
        yes, no = self._branches(condition)
        values: list[Any] = []
        for mask, branch in ((yes, node.body), (no, node.orelse)):
            if mask is not None:
                self.mask = mask
                values.append(self.evaluate(branch))
        self.mask = entry
        dtype = self._type_of_choice(node, values)
        if len(values) == 1:
            return cast(values[0], dtype) if dtype is not None else values[0]
        assert yes is not None
        return self._join(node, yes, values[0], values[1])

    def _branches(self, condition: Any) -> tuple[Mask | None, Mask | None]:
        return self.active.split(condition)

    def _type_of_choice(self, node: ast.IfExp, values: list[Any]) -> np.dtype | None:
        """The unified type of a conditional expression, also where only one branch was evaluated."""
        return None

    def _join(self, node: ast.AST, mask: Mask, first: Any, second: Any) -> Any:
        """`first` in the lanes of `mask`, `second` in the others."""
        if first is second:
            return first
        if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
            return tuple(self._join(node, mask, a, b) for a, b in zip(first, second, strict=True))
        first, second = self.as_number(node, first), self.as_number(node, second)
        dtype = unify(dtype_of(first), dtype_of(second))
        return choose(mask.array, cast(first, dtype), cast(second, dtype))


def new_frame(function: Function, path: tuple[int, ...], env: dict[str, Any]) -> Frame:
    """A frame for a function whose arguments are bound."""
    return Frame(function, path, env, function.local_names)


def describe(value: Any) -> str:
    """A value in words, for a refusal."""
    if isinstance(value, ArrayRef):
        return f"the array {value.name}"
    if isinstance(value, Element):
        return f"a record of {value.place.array.name}"
    if isinstance(value, Symbol):
        return value.path
    if isinstance(value, (Function, DeviceFunction)):
        return "a function"
    if isinstance(value, tuple):
        return "a tuple"
    if is_number(value):
        return f"a {dtype_of(value)}"
    return "a string" if isinstance(value, str) else f"a {type(value).__name__}"


_INTEGER_ONLY = {"LShift": "<<", "RShift": ">>", "BitAnd": "&", "BitOr": "|", "BitXor": "^"}

_UNSUPPORTED = {
    "Lambda": ("a lambda", "Write a device function with def."),
    "ListComp": ("a list comprehension", "Write a for loop."),
    "SetComp": ("a set comprehension", "Write a for loop."),
    "DictComp": ("a dict comprehension", "Write a for loop."),
    "GeneratorExp": ("a generator expression", "Write a for loop."),
    "List": ("a list", "Use a tuple, or cuda.local.array."),
    "Dict": ("a dict", "Use a tuple, or cuda.local.array."),
    "Set": ("a set", "Use a tuple."),
    "JoinedStr": ("an f-string", "Kernels work on numbers; report through an output array."),
    "FormattedValue": ("an f-string", "Kernels work on numbers; report through an output array."),
    "NamedExpr": ("an assignment inside an expression", "Assign on a line of its own."),
    "Await": ("await", "Kernels have no coroutines."),
    "Yield": ("yield", "Write results to an output array."),
    "YieldFrom": ("yield from", "Write results to an output array."),
    "Starred": ("unpacking with *", "Write the elements out."),
    "Slice": ("a slice here", "Index with numbers."),
}
