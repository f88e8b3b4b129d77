"""Statements that both passes treat alike: assignments and calls, and the dispatch of control flow to the
pass."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lanewise.trace.arrays import ArrayRef, Element, Place
from lanewise.trace.elements import Elements
from lanewise.trace.expressions import describe
from lanewise.trace.lanes import INT64, binary, cast, compare, dtype_of, is_number, limits, typed, whole
from lanewise.trace.refusals import KernelFault
from lanewise.trace.source import Symbol

_MAX_UNROLLED = 1 << 16


@dataclass(frozen=True)
class Range:
    """`range(start, stop, step)` with numba's type; start and stop may differ by lane."""

    start: Any
    stop: Any
    step: Any
    dtype: np.dtype

    def first(self) -> Any:
        """A value of the type that all rounds have."""
        return self.item(0)

    def item(self, k: int) -> Any:
        """The value of round `k`."""
        return cast(binary("Add", self.start, binary("Mult", self.step, np.int64(k))), self.dtype)

    def has(self, k: int) -> Any:
        """Which lanes have a round `k`."""
        item = binary("Add", self.start, binary("Mult", self.step, np.int64(k)))
        low, high = limits(self.step)
        if low > 0:
            return compare("Lt", item, self.stop)
        if high < 0:
            return compare("Gt", item, self.stop)
        upward = np.logical_and(whole(self.step) > 0, compare("Lt", item, self.stop))
        return np.logical_or(upward, np.logical_and(whole(self.step) < 0, compare("Gt", item, self.stop)))


@dataclass(frozen=True)
class Rounds:
    """Any other thing to loop over: so many rounds, and the value of each."""

    n: Any
    value: Any

    def first(self) -> Any:
        """A value of the type that all rounds have, or None if there is no round."""
        return None if isinstance(self.n, int) and self.n == 0 else self.value(0)

    def item(self, k: int) -> Any:
        """The value of round `k`."""
        return self.value(k)

    def has(self, k: int) -> Any:
        """Which lanes have a round `k`."""
        return compare("Lt", np.int64(k), typed(self.n))


class Statements(Elements):
    """Executes statements; a pass supplies `If`, `For`, `While` and what leaving a block means."""

    def run_block(self, statements: list[ast.stmt]) -> None:
        """Run statements until no lane is left."""
        for statement in statements:
            if self.mask is None:
                return
            self.step(statement)
            method = getattr(self, f"_run_{type(statement).__name__}", None)
            if method is None:
                what, instead = _UNSUPPORTED.get(
                    type(statement).__name__,
                    (f"a {type(statement).__name__} statement", "Use assignments, if, for and while."),
                )
                self.refuse(statement, what, instead)
            method(statement)

    def step(self, statement: ast.stmt) -> None:
        """Count a statement against the limits."""

    def _run_Pass(self, node: ast.Pass) -> None:
        pass

    def _run_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return  # a docstring
        self.result_unused = node.value
        self.evaluate(node.value)

    result_unused: ast.expr | None = None
    updating = False  # True while an augmented assignment such as `s[0] += 1` stores

    def _run_Assign(self, node: ast.Assign) -> None:
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)

    def _run_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))

    def _run_AugAssign(self, node: ast.AugAssign) -> None:
        operator = type(node.op).__name__
        if isinstance(node.target, ast.Name):
            left = self._eval_Name(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            right = self.evaluate(node.value)
            if isinstance(left, tuple) and isinstance(right, tuple) and operator == "Add":
                self.frame.env[node.target.id] = left + right
                return
            value = self.operate(
                node, operator, self.as_number(node, left), self.as_number(node.value, right)
            )
            self.frame.env[node.target.id] = value
            return
        place = self._target_place(node.target)
        left = self.load(node.target, place)
        value = self.operate(node, operator, left, self.number(node.value))
        self.updating = True
        self.store(node.target, place, value)
        self.updating = False

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind a value to a name, an element, a field, or a tuple of these."""
        if isinstance(target, ast.Name):
            if value is not None and not isinstance(value, _STORABLE) and not is_number(value):
                self.refuse(
                    target, f"assigning {describe(value)} to a variable", "Assign numbers, arrays or tuples."
                )
            if isinstance(value, ArrayRef) and value.name in ("shared", "local"):
                value = replace(value, name=target.id)
            self.frame.env[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value)
        else:
            place = self._target_place(target)
            if place.dtype.names:
                self.refuse(target, "storing a whole record", "Store its fields one by one.")
            self.store(target, place, self.as_number(target, value))

    def _unpack(self, target: ast.Tuple | ast.List, value: Any) -> None:
        if any(isinstance(element, ast.Starred) for element in target.elts):
            self.refuse(target, "unpacking with *", "Name every element.")
        if isinstance(value, ArrayRef) and value.ndim == 1 and isinstance(value.shape[0], int):
            value = tuple(self.load(target, self.element(target, value, (k,))) for k in range(value.shape[0]))
        if not isinstance(value, tuple):
            self.refuse(target, f"unpacking {describe(value)}", "Unpack a tuple.")
        if len(value) != len(target.elts):
            self.refuse(
                target, f"unpacking {len(value)} values into {len(target.elts)} names", "Match the numbers."
            )
        for element, part in zip(target.elts, value, strict=True):
            self.assign(element, part)

    def _target_place(self, target: ast.expr) -> Place:
        if isinstance(target, ast.Attribute):
            owner = self.evaluate(target.value)
            if isinstance(owner, Element):
                return self._field_place(target, owner, target.attr)
            self.refuse(
                target, "assigning to an attribute", "Assign to an element or to a field of a record."
            )
        if not isinstance(target, ast.Subscript):
            self.refuse(target, "this assignment target", "Assign to a name or an element.")
        owner = self.evaluate(target.value)
        if isinstance(owner, Element):
            return self._field_place(target, owner, self._field_name(target))
        if not isinstance(owner, ArrayRef):
            self.refuse(target, f"assigning into {describe(owner)}", "Assign to an element of an array.")
        if owner.storage.space == "const":
            self.refuse(target, "writing constant memory", "Write to an array argument.")
        found = self.subscript(target, owner, target.slice)
        if not isinstance(found, Place):
            self.refuse(target, "assigning to a slice of an array", "Write a loop over its elements.")
        return found

    def _field_place(self, target: ast.expr, owner: Element, name: str) -> Place:
        self.fields_with(target, owner.place.dtype, name)
        return self.refreshed(owner.place).field(name)

    def loop_over(self, node: ast.expr, value: Any) -> Any:
        """A value as something to loop over."""
        if isinstance(value, (Range, Rounds)):
            return value
        if isinstance(value, tuple):
            return Rounds(len(value), lambda k: typed(value[k]) if is_number(value[k]) else value[k])
        if isinstance(value, ArrayRef) and value.ndim >= 1:
            if value.ndim > 1:
                return Rounds(value.shape[0], lambda k: value.row(np.int64(k)))
            return Rounds(
                value.shape[0], lambda k: self.load(node, self.element(node, value, (np.int64(k),)))
            )
        self.refuse(node, f"a loop over {describe(value)}", "Loop over range(...), a tuple or an array.")

    def make_range(self, node: ast.AST, arguments: tuple[Any, ...]) -> Range:
        """numba's range: 32 bits if all bounds have 32, unsigned if all are, else int64."""
        if not 1 <= len(arguments) <= 3:
            self.refuse(node, "range with these arguments", "Give one to three integers.")
        for argument in arguments:
            if not is_number(argument) or dtype_of(argument).kind not in "iub":
                self.refuse(node, "range of something that is no integer", "Convert with int().")
        kinds = {dtype_of(argument) for argument in arguments}
        dtype = kinds.pop() if len(kinds) == 1 else np.dtype(np.int64)
        if dtype not in (np.dtype(np.int32), np.dtype(np.uint64)):
            dtype = np.dtype(np.int64)
        start, stop = (0, arguments[0]) if len(arguments) == 1 else arguments[:2]
        step = arguments[2] if len(arguments) == 3 else 1
        if limits(step) == (0, 0):
            raise KernelFault(f"{self.frame.function.where(node)}: range has step 0. Use a step that moves.")
        start, stop, step = (cast(bound, INT64) for bound in (start, stop, step))
        return Range(start, stop, step, dtype)


_STORABLE = (ArrayRef, Element, Symbol, tuple, np.dtype, Range, Rounds)

_UNSUPPORTED = {
    "Import": (
        "an import",
        "Import modules outside the kernel; numba, math, numpy and lanewise.ptx are known.",
    ),
    "ImportFrom": (
        "an import",
        "Import modules outside the kernel; numba, math, numpy and lanewise.ptx are known.",
    ),
    "FunctionDef": ("a function inside a kernel", "Define the device function outside."),
    "AsyncFunctionDef": ("a coroutine", "Kernels have no coroutines."),
    "ClassDef": ("a class", "Use arrays and tuples."),
    "Global": ("global", "Write results to an output array."),
    "Nonlocal": ("nonlocal", "Write results to an output array."),
    "Try": ("try", "Test the condition with if."),
    "TryStar": ("try", "Test the condition with if."),
    "Raise": ("raise", "Write an error code to an output array."),
    "With": ("with", "Write the steps out."),
    "AsyncWith": ("async with", "Write the steps out."),
    "AsyncFor": ("async for", "Use for."),
    "Delete": ("del", "Leave the variable alone."),
    "Assert": ("assert", "Check in the caller, or write a flag to an output array."),
    "Match": ("match", "Use if and elif."),
}
