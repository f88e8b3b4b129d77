"""Expressions of a kernel, evaluated for all active lanes: the part that type inference and execution share.

The meaning of a name, an operator or an attribute is the same in both passes; only memory differs. A pass
supplies `place`, `load` and `store`, and the control flow of statements.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np

from lanewise.machine import WARP_LANES
from lanewise.trace.arrays import ArrayRef, Element, Place, add, scaled
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
    typed,
    unify,
    whole,
)
from lanewise.trace.masks import Mask, union
from lanewise.trace.refusals import KernelFault, refuse
from lanewise.trace.registry import INTRINSICS, VALUES, nearest
from lanewise.trace.source import (
    ConstantArray,
    DeviceFunction,
    Forbidden,
    Function,
    Symbol,
    fold,
    function_of,
    symbol,
)

MAX_DEPTH = 16


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
        return entity

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
        left = self.evaluate(node.left)
        result: Any = None
        for operator, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node)
            one = self._compare(node, type(operator).__name__, left, right)
            result = one if result is None else self._both(result, one)
            left = right
        return result

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
        entry = self.active
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
            value = self._join(operand, more, other, value) if done is not None else other
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

    # -- attributes and elements -------------------------------------------------------------------

    def _eval_Attribute(self, node: ast.Attribute) -> Any:
        if node.attr.startswith("_"):
            self.refuse(node, f"the private attribute {node.attr}", "Kernels reach public names only.")
        if node in self._paths:
            return VALUES[self._paths[node]](self)
        owner = self.evaluate(node.value)
        if isinstance(owner, Symbol):
            if f"{owner.path}.{node.attr}" in VALUES and self._is_global(node):
                self._paths[node] = f"{owner.path}.{node.attr}"
            return self.usable(node, f"{owner.path}.{node.attr}", symbol(f"{owner.path}.{node.attr}"))
        if isinstance(owner, ArrayRef):
            return self._array_attribute(node, owner)
        if isinstance(owner, Element):
            return self._field(node, owner, node.attr)
        if isinstance(owner, ConstantArray) and node.attr in ("shape", "size", "ndim"):
            return {"shape": owner.array.shape, "size": owner.array.size, "ndim": owner.array.ndim}[node.attr]
        if is_number(owner) and node.attr in ("real", "imag"):
            value = whole(owner)
            return value.real if node.attr == "real" else value.imag
        if is_number(owner) and node.attr == "conjugate":
            return Method(lambda: np.conjugate(whole(owner)))
        if isinstance(owner, np.dtype) and node.attr == "itemsize":
            return owner.itemsize
        self.refuse(
            node,
            f"the attribute {node.attr} of {describe(owner)}",
            "Use shape, size, ndim, strides or dtype of an array.",
        )

    def _is_global(self, node: ast.expr) -> bool:
        """True if an attribute chain starts at a name that is no variable, so that it always means the
        same."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self.frame.local_names

    def _array_attribute(self, node: ast.Attribute, array: ArrayRef) -> Any:
        if node.attr in ("shape", "strides"):
            if node.attr == "shape":
                return tuple(typed(extent) for extent in array.shape)
            return tuple(np.int64(stride * array.unit) for stride in array.strides)
        if node.attr == "T":
            return replace(array, shape=array.shape[::-1], strides=array.strides[::-1])
        simple = {"ndim": array.ndim, "dtype": array.dtype, "itemsize": array.dtype.itemsize}
        if node.attr in simple:
            return simple[node.attr]
        if node.attr in ("size", "nbytes"):
            return (
                typed(array.size) if node.attr == "size" else scaled(typed(array.size), array.dtype.itemsize)
            )
        self.refuse(node, f"the array attribute {node.attr}", "Use shape, size, ndim, strides, dtype or T.")

    def _field(self, node: ast.AST, element: Element, name: str) -> Any:
        fields = element.place.dtype.fields
        if fields is None or name not in fields:
            self.refuse(node, f"the field {name}", f"The record has {', '.join(fields or ())}.")
        place = self.refreshed(element.place).field(name)
        return Element(place) if place.dtype.names else self.load(node, place)

    def refreshed(self, place: Place) -> Place:
        """A place that was named earlier, for the lanes that are active now."""
        return place

    def _eval_Subscript(self, node: ast.Subscript) -> Any:
        owner = self.evaluate(node.value)
        if isinstance(owner, ArrayRef):
            found = self.subscript(node, owner, node.slice)
            if isinstance(found, Place):
                return Element(found) if found.dtype.names else self.load(node, found)
            return found
        if isinstance(owner, Element):
            return self._field(node, owner, self._field_name(node))
        if isinstance(owner, tuple):
            return self._tuple_element(node, owner)
        self.refuse(node, f"an index into {describe(owner)}", "Index an array or a tuple.")

    def _field_name(self, node: ast.Subscript) -> str:
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return node.slice.value
        self.refuse(node, "a computed field name", "Write the field's name.")

    def _tuple_element(self, node: ast.Subscript, owner: tuple[Any, ...]) -> Any:
        if isinstance(node.slice, ast.Slice):
            bounds = [
                part if part is None else self.evaluate(part)
                for part in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            if not all(bound is None or isinstance(bound, int) for bound in bounds):
                self.refuse(node, "a tuple slice that varies", "Use constant bounds.")
            return owner[slice(*bounds)]
        index = self.number(node.slice)
        if isinstance(index, (int, np.integer)):
            if not -len(owner) <= int(index) < len(owner):
                self.refuse(node, f"index {int(index)} of a tuple of {len(owner)}", "Stay inside the tuple.")
            return owner[int(index)]
        value: Any = owner[0]
        for position in range(1, len(owner)):
            here = Mask.of(np.broadcast_to(compare("Eq", index, position), self.shape), self.shape)
            if here is not None:
                value = self._join(node, here, owner[position], value)
        return value

    def subscript(self, node: ast.AST, array: ArrayRef, index_node: ast.expr) -> Place | ArrayRef:
        """An element per lane, or a view if fewer indices than dimensions or slices are given."""
        parts = index_node.elts if isinstance(index_node, ast.Tuple) else [index_node]
        values: list[Any] = []
        for part in parts:
            if isinstance(part, ast.Slice):
                values.append(part)
                continue
            value = self.evaluate(part)
            values += value if isinstance(value, tuple) else [value]
        if len(values) > array.ndim:
            self.refuse(
                node,
                f"{len(values)} indices into {array.name}, which has {array.ndim} dimensions",
                "Use one index per dimension.",
            )
        if len(values) == array.ndim and not any(
            isinstance(value, (ast.Slice, type(Ellipsis))) for value in values
        ):
            return self.element(node, array, tuple(values))
        return self._view(node, array, values)

    def element(self, node: ast.AST, array: ArrayRef, indices: tuple[Any, ...]) -> Place:
        """The place of an element, its indices checked to be integers."""
        for index in indices:
            if not is_number(index) or dtype_of(index).kind not in "iub":
                self.refuse(
                    node, f"{describe(index)} as an array index", "Index with integers; convert with int()."
                )
        return self.place(node, array, indices)

    def _view(self, node: ast.AST, array: ArrayRef, values: list[Any]) -> ArrayRef:
        start, shape, strides = array.start, [], []
        for axis, (extent, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
            value = values[axis] if axis < len(values) else ast.Slice(None, None, None)
            if isinstance(value, ast.Slice):
                first, length, step = self._slice_bounds(node, value, extent)
                start = add(start, scaled(first, stride))
                shape.append(length)
                strides.append(stride * step)
            else:
                start = add(start, scaled(self.view_index(node, array, value, axis), stride))
        return replace(array, start=start, shape=tuple(shape), strides=tuple(strides))

    def view_index(self, node: ast.AST, array: ArrayRef, value: Any, axis: int) -> Any:
        """The index that fixes one dimension of a view."""
        return self.as_number(node, value)

    def _slice_bounds(self, node: ast.AST, part: ast.Slice, extent: Any) -> tuple[Any, Any, int]:
        step = 1 if part.step is None else self.evaluate(part.step)
        if not isinstance(step, int) or step < 1:
            self.refuse(
                node, "a slice step that is not a positive constant", "Slice with start and stop only."
            )
        low = typed(0 if part.lower is None else self.number(part.lower))
        high = typed(extent if part.upper is None else self.number(part.upper))
        size = typed(extent)
        low, high = (self._clamped(bound, size) for bound in (low, high))
        length = binary("Sub", high, low)
        if step > 1:
            length = binary("FloorDiv", binary("Add", length, np.int64(step - 1)), np.int64(step))
        return low, np.maximum(whole(length), np.int64(0)), step

    def _clamped(self, bound: Any, size: Any) -> Any:
        bound, size = whole(bound), whole(size)
        bound = np.where(bound < 0, bound + size, bound)
        return np.minimum(np.maximum(bound, 0), size)[()]

    # -- calls -------------------------------------------------------------------------------------

    def _eval_Call(self, node: ast.Call) -> Any:
        function = self.evaluate(node.func)
        arguments = self._eval_Tuple(ast.Tuple(node.args, ast.Load()))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.refuse(node, "** in a call", "Write the arguments out.")
            keywords[keyword.arg] = self.evaluate(keyword.value)
        return self.call(node, function, arguments, keywords)

    def call(
        self, node: ast.Call, function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Call an intrinsic, a data type (a conversion) or a device function."""
        if isinstance(function, np.dtype) and function.names is None and len(arguments) == 1 and not keywords:
            self.tick(node)
            return cast(self.as_number(node, arguments[0]), function)
        if isinstance(function, Symbol):
            intrinsic = INTRINSICS.get(function.path)
            if intrinsic is None:
                self.refuse(node, f"a call of {function.path}", nearest(function.path))
            try:
                return intrinsic(self, node, *arguments, **keywords)
            except TypeError as error:
                if error.__traceback__ is not None and error.__traceback__.tb_next is None:
                    self.refuse(
                        node, f"{function.path} with these arguments", "Check their number and names."
                    )
                raise
        if isinstance(function, Method) and not arguments and not keywords:
            self.tick(node)
            return function.apply()
        if isinstance(function, DeviceFunction):
            function = function_of(function.plain)
        if isinstance(function, Function):
            return self.call_device(node, function, arguments, keywords)
        self.refuse(
            node, f"a call of {describe(function)}", "Call cuda, math, numpy types or a device function."
        )

    def call_device(
        self, node: ast.Call, function: Function, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Any:
        """Interpret a device function in a frame of its own."""
        if self.depth >= MAX_DEPTH:
            self.refuse(
                node,
                f"a call chain of more than {MAX_DEPTH} functions (recursion?)",
                "Write the recursion as a loop.",
            )
        caller, entry = self.frame, self.active
        path = (*caller.path, node.lineno, node.col_offset)
        self.frame = new_frame(function, path, self.bind(node, function, arguments, keywords))
        self.depth += 1
        try:
            value = self.run_body(function)
        finally:
            self.frame, self.mask = caller, entry
            self.depth -= 1
        return value

    def bind(
        self, node: ast.AST, function: Function, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> dict[str, Any]:
        """Match arguments with parameters."""
        declared = function.tree.args
        if declared.vararg or declared.kwarg or declared.kwonlyargs or declared.posonlyargs:
            self.refuse(node, f"the signature of {function.name}", "Use plain positional parameters.")
        names = function.parameters
        env = (
            dict(zip(names[len(names) - len(function.defaults) :], function.defaults, strict=True))
            if function.defaults
            else {}
        )
        env |= dict(zip(names, arguments, strict=False)) | keywords
        if len(arguments) > len(names) or set(env) != set(names):
            self.refuse(
                node,
                f"{function.name} called with {len(arguments) + len(keywords)} arguments",
                f"It takes {len(names)}: {', '.join(names)}.",
            )
        return {name: typed(value) if is_number(value) else value for name, value in env.items()}

    def merge_returns(self, node: ast.AST, returned: list[tuple[Mask, Any]]) -> Any:
        """One value from what different lanes returned."""
        value: Any = None
        covered: Mask | None = None
        for mask, other in returned:
            value = (
                other
                if covered is None
                else self._join(node, covered, value, other)
                if value is not None
                else None
            )
            covered = union(covered, mask)
        return value


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
    if isinstance(value, ConstantArray):
        return "an array outside the kernel (read it through cuda.const.array_like)"
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
