"""Attributes, elements and calls: how a kernel gets from a name to memory or into another function."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from lanewise.trace.arrays import ArrayRef, Element, Place, add, scaled
from lanewise.trace.expressions import Expressions, Method, describe, new_frame
from lanewise.trace.lanes import (
    binary,
    cast,
    compare,
    dtype_of,
    is_constant,
    is_number,
    typed,
    whole,
)
from lanewise.trace.masks import Mask, union
from lanewise.trace.registry import VALUES, find, nearest
from lanewise.trace.source import (
    DeviceFunction,
    Function,
    Symbol,
    function_of,
    symbol,
)

if TYPE_CHECKING:
    from lanewise.trace.infer import Facts

MAX_DEPTH = 16


class Elements(Expressions):
    """Evaluates attributes, subscripts and calls."""

    facts: Facts

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
        if array.dtype.fields is not None and node.attr in array.dtype.fields:
            return array.field(node.attr)
        if node.attr in ("size", "nbytes"):
            return (
                typed(array.size) if node.attr == "size" else scaled(typed(array.size), array.dtype.itemsize)
            )
        self.refuse(node, f"the array attribute {node.attr}", "Use shape, size, ndim, strides, dtype or T.")

    def _field(self, node: ast.AST, element: Element, name: str) -> Any:
        fields = self.fields_with(node, element.place.dtype, name)
        place = self.refreshed(element.place)
        if fields[name][0].subdtype is not None:
            return self._inner_array(node, place, name)
        place = place.field(name)
        return Element(place) if place.dtype.names else self.load(node, place)

    def fields_with(self, node: ast.AST, record: np.dtype, name: str) -> Mapping[str, Any]:
        """The fields of a record type, one of which must be `name` and lie where numba compiles it."""
        fields = record.fields
        if fields is None or name not in fields:
            self.refuse(node, f"the field {name}", f"The record has {', '.join(fields or ())}.")
        element, offset = (fields[name][0].subdtype or fields[name])[0], fields[name][1]
        if element.fields is None and offset % element.alignment:
            self.refuse(
                node,
                f"the field {name} at byte {offset} of its record, off its alignment of {element.alignment},",
                "Give the record type align=True; numba compiles no such field.",
            )
        return fields

    def _inner_array(self, node: ast.AST, place: Place, name: str) -> ArrayRef:
        """The array that lies in a field of one record, as a view that starts where each lane's record
        does."""
        if place.outside is not None:
            self.report_bounds(node, place, "load")
        record = replace(
            place.array,
            dtype=place.dtype,
            shape=(),
            strides=(),
            unit=place.unit,
            phase=place.phase,
            start=place.index,
        )
        return record.field(name)

    def report_bounds(self, node: ast.AST, place: Place, op: str, n: int = 1) -> None:
        """Report the lanes outside the array."""

    def refreshed(self, place: Place) -> Place:
        """A place that was named earlier, for the lanes that are active now."""
        return place

    def _eval_Subscript(self, node: ast.Subscript) -> Any:
        owner = self.evaluate(node.value)
        if isinstance(owner, ArrayRef):
            if owner.dtype.fields and _is_text(node.slice):
                return self._array_field(node, owner, self._field_name(node))
            found = self.subscript(node, owner, node.slice)
            if isinstance(found, Place):
                return Element(found) if found.dtype.names else self.load(node, found)
            return found
        if isinstance(owner, Element):
            return self._field(node, owner, self._field_name(node))
        if isinstance(owner, tuple):
            return self._tuple_element(node, owner)
        self.refuse(node, f"an index into {describe(owner)}", "Index an array or a tuple.")

    def _array_field(self, node: ast.AST, array: ArrayRef, name: str) -> ArrayRef:
        if name not in (array.dtype.fields or ()):
            self.refuse(node, f"the field {name}", f"The records have {', '.join(array.dtype.fields or ())}.")
        return array.field(name)

    def _field_name(self, node: ast.Subscript) -> str:
        if _is_text(node.slice):
            return str(node.slice.value)
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
        index, n = self.number(node.slice), len(owner)
        if is_constant(index):
            if not -n <= int(index) < n:
                self.refuse(node, f"index {int(index)} of a tuple of {n}", "Stay inside the tuple.")
            return owner[int(index)]
        # What the index picks is known at run time only, even where all lanes pick the same constant.
        self.require_in_tuple(node, index, n)
        if not all(map(_holds_numbers, owner)):
            self.refuse(
                node,
                "a tuple of arrays with an index of run time",
                "Write the index as a number, or pass one array with a dimension more.",
            )
        value = _of_run_time(owner[0])
        for position in range(1, n):
            found = np.logical_or(compare("Eq", index, position), compare("Eq", index, position - n))
            here = Mask.of(np.broadcast_to(found, self.shape), self.shape)
            if here is not None:
                value = self._join(node, here, owner[position], value)
        return value

    def require_in_tuple(self, node: ast.AST, index: Any, n: int) -> None:
        """Refuse an index past a tuple's end, where indices have values."""

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
            intrinsic = find(function.path)
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
            known = self.facts.functions
            if function not in known:
                known[function] = function_of(function.plain)
            return self.call_device(node, known[function], arguments, keywords, function.inlined)
        if isinstance(function, Function):
            return self.call_device(node, function, arguments, keywords)
        self.refuse(
            node, f"a call of {describe(function)}", "Call cuda, math, numpy types or a device function."
        )

    def call_device(
        self,
        node: ast.Call,
        function: Function,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        inlined: bool = False,
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
        env = self.bind(node, function, arguments, keywords)
        self.frame = new_frame(function, path, env)
        self.frame.compiled_as = path if inlined else tuple(_numba_kind(value) for value in env.values())
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


def _holds_numbers(value: Any) -> bool:
    """Say whether a value is a number, or a tuple of such values."""
    return all(map(_holds_numbers, value)) if isinstance(value, tuple) else is_number(value)


def _of_run_time(value: Any) -> Any:
    """A value as it is once a kernel runs: no number in it counts as known when the kernel is compiled."""
    return tuple(map(_of_run_time, value)) if isinstance(value, tuple) else typed(value)


def _is_text(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _numba_kind(value: Any) -> Any:
    """What of an argument decides which version of a device function numba calls."""
    if is_number(value):
        return dtype_of(value)
    if isinstance(value, ArrayRef):
        return value.dtype, value.ndim, value.strides[-1:] == (1,)
    if isinstance(value, tuple):
        return tuple(_numba_kind(element) for element in value)
    return value if isinstance(value, (Symbol, DeviceFunction, np.dtype)) else type(value)
