"""Type inference: one walk over the kernel on dummy lanes before it runs.

It finds, as numba does, the type that each variable has where paths meet (so that `acc = 0` that later takes
a float is a float from the start), the shared arrays and their layout, what the kernel does to each array
(read, write, atomic), and everything that is outside the subset, on whatever path it lies.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lanewise.errors import InvalidLaunch
from lanewise.trace.arrays import ArrayRef, LocalStorage, Place, Storage, array_ref, contiguous_strides
from lanewise.trace.expressions import new_frame
from lanewise.trace.lanes import (
    FLOAT32,
    FLOAT64,
    INT32,
    INT64,
    dtype_of,
    is_constant,
    is_number,
    typed,
    unify,
)
from lanewise.trace.masks import Mask
from lanewise.trace.source import DeviceFunction, Function
from lanewise.trace.statements import Statements

Key = tuple[Any, ...]
_WARP = (1, 32)
_MAX_ROUNDS = 32


@dataclass(frozen=True)
class SharedArray:
    """A shared array of the kernel: `offset` in bytes, or None for dynamic ones, which all start after the
    static."""

    dtype: np.dtype
    shape: tuple[int, ...]
    offset: int | None


@dataclass
class Facts:
    """What type inference found out about one kernel and the types of its arguments."""

    joins: dict[Key, dict[str, np.dtype]] = field(default_factory=dict)
    shared: dict[Key, SharedArray] = field(default_factory=dict)
    static_bytes: int = 0
    warnings: dict[tuple[int, str], str] = field(default_factory=dict)
    grid_barrier: bool = False
    notes: set[str] = field(default_factory=set)
    functions: dict[DeviceFunction, Function] = field(default_factory=dict)  # each read once per trace
    loose: set[tuple[Function, str]] = field(default_factory=set)  # unassigned on some path


class AnyStorage(Storage):
    """Stands for several storages, where a variable holds now one array, now another."""

    def __init__(self, members: tuple[Storage, ...]) -> None:
        super().__init__(members[0].name, members[0].space, members[0].n_bytes)
        self.members = members


def members_of(storage: Storage) -> tuple[Storage, ...]:
    """The storages behind a reference."""
    return storage.members if isinstance(storage, AnyStorage) else (storage,)


class Inference(Statements):
    """The pass on dummy lanes: one full warp, every value 1, both sides of every branch."""

    inferring = True

    def __init__(self, function: Function, launch: Any, shared: Storage) -> None:
        super().__init__()
        self.facts, self.launch, self.shared_storage = Facts(), launch, shared
        self.shape, self.mask = _WARP, Mask(np.ones((1, 1), bool), _WARP)
        self._full = self.mask
        self._dummies: dict[np.dtype, np.ndarray] = {}
        self.frame = new_frame(function, (), {})

    def run(self, function: Function, env: dict[str, Any]) -> Facts:
        """Infer everything about a kernel called with these arguments."""
        self.frame = new_frame(function, (), env)
        with np.errstate(all="ignore"):
            value = self.run_body(function)
        if value is not None:
            self.refuse(
                function.tree, "a kernel that returns a value", "Write the result to an output array."
            )
        return self.facts

    # -- memory ------------------------------------------------------------------------------------

    def dummy(self, dtype: np.dtype) -> np.ndarray:
        """A value of a type, for lanes that do not exist."""
        if dtype not in self._dummies:
            self._dummies[dtype] = np.ones(_WARP, dtype)
        return self._dummies[dtype]

    def place(self, node: ast.AST, array: ArrayRef, indices: tuple[Any, ...]) -> Place:
        return Place(array, array.dtype, array.unit, array.phase, np.int64(0), self.mask, indices)

    def load(self, node: ast.AST, place: Place) -> Any:
        self.touch(place, "read")
        return self.dummy(place.dtype)

    def store(self, node: ast.AST, place: Place, value: Any) -> None:
        if place.dtype.kind != "c" and dtype_of(value).kind == "c":
            self.refuse(node, "storing a complex number in a real array", "Store .real or .imag.")
        self.touch(place, "write")

    def touch(self, place: Place, kind: str, n_bytes: int = 0) -> None:
        """Note what the kernel does to an array, and the bytes that it handles together.

        Raises `InvalidLaunch` if it writes an array that NumPy protects.
        """
        self.check_writable(place, kind)
        for storage in members_of(place.storage):
            storage.kinds.add(kind)
            storage.note_element(place.phase, place.unit, n_bytes or place.dtype.itemsize)

    def check_writable(self, place: Place, kind: str) -> None:
        """Raise `InvalidLaunch` if the kernel writes an array that NumPy protects."""
        if kind != "read" and not place.array.writable:
            raise InvalidLaunch(
                f"argument {place.array.name}: {self.frame.function.name} writes it, but the array is"
                " read-only. Pass a writable copy: array.copy()."
            )

    def atomic(self, node: ast.Call, place: Place, operation: Any, values: tuple[Any, ...], name: str) -> Any:
        """An atomic update gives the old value."""
        self.touch(place, "atomic")
        return self.dummy(place.dtype)

    def wide(self, node: ast.AST, place: Place, n: int, values: tuple[Any, ...] | None) -> Any:
        """A vector access of `n` elements."""
        self.span(node, place, n, "load" if values is None else "store")
        return None if values is not None else (self.dummy(place.dtype),) * n

    def span(self, node: ast.AST, place: Place, n: int, op: str) -> Place:
        """Note what `n` neighbouring elements are for; those of a lane are aligned and handled together."""
        kind = {"load": "read", "store": "write"}.get(op, op)
        self.check_writable(place, kind)
        for storage in members_of(place.storage):
            storage.kinds.add(kind)
            storage.note_element(0, n * place.dtype.itemsize, n * place.dtype.itemsize)
        return place

    def access(
        self, node: ast.AST, op: str, instruction: str, place: Place, n_bytes: int, shaded: str = ""
    ) -> None:
        """Nothing to count among dummies; `span` has noted the kind."""

    def check_constant(self, node: ast.AST, place: Place, n: int) -> None:
        """Nothing is written among dummies."""

    def require_whole_warps(self, node: ast.AST, name: str) -> None:
        """The one warp of dummies is whole."""

    def copy_async(self, node: ast.AST, destination: Place, source: Place, instruction: str) -> None:
        """A copy reads and writes."""
        self.touch(source, "read")
        self.touch(destination, "write")

    def commit_copies(self, node: ast.AST) -> None:
        """Nothing is in flight among dummies."""

    def wait_for_copies(self, node: ast.AST, n: int) -> None:
        """Nothing is in flight among dummies."""

    def wait_for_all_copies(self, node: ast.AST) -> None:
        """Nothing is in flight among dummies."""

    def barrier(self, node: ast.AST, name: str = "syncthreads") -> None:
        """Nothing to order among dummies."""

    def warp_barrier(self, node: ast.AST, members: Any, name: str) -> None:
        """Nothing to order among dummies."""

    def grid_barrier(self, node: ast.AST) -> None:
        """A kernel with a grid barrier runs all its blocks at once."""
        self.facts.grid_barrier = True

    def shared_array(
        self, node: ast.AST, shape: tuple[int, ...], dtype: np.dtype, alignment: int
    ) -> ArrayRef:
        """Lay out a shared array at its first appearance."""
        key = self.shared_key(node, shape, dtype)
        dynamic = shape == (0,)
        if key not in self.facts.shared:
            offset = None
            if not dynamic:
                offset = -(-self.facts.static_bytes // alignment) * alignment
                self.facts.static_bytes = offset + dtype.itemsize * int(np.prod(shape))
            if dynamic and any(known.offset is None for known in self.facts.shared.values()):
                self.facts.notes.add(
                    f"line {getattr(node, 'lineno', 0)}: dynamic shared arrays all start at the same byte;"
                    " slice them apart."
                )
            self.facts.shared[key] = SharedArray(dtype, shape, offset)
        if not dynamic and dtype.names:  # numbers lie where their size divides, whatever lies before them
            self.shared_storage.note_element(
                self.facts.shared[key].offset or 0, dtype.itemsize, dtype.itemsize
            )
        if self.facts.static_bytes > 1 << 20:
            raise InvalidLaunch(
                f"shared memory: {self.facts.static_bytes:,} bytes of static arrays; no GPU has that"
                " much per block. Use smaller tiles."
            )
        return array_ref(
            self.shared_storage, "shared", dtype, shape, contiguous_strides(shape, dtype.itemsize), 0
        )

    def local_array(self, node: ast.AST, shape: tuple[int, ...], dtype: np.dtype) -> ArrayRef:
        """A thread's own array."""
        storage = LocalStorage("local", dtype, 1)
        return array_ref(storage, "local", dtype, shape, contiguous_strides(shape, dtype.itemsize), 0)

    # -- types -------------------------------------------------------------------------------------

    def note_types(self, node: ast.AST, left: Any, right: Any, result: np.dtype) -> None:
        if result != FLOAT64:
            return
        pair = ((left, right), (right, left))
        for single, other in pair:
            if (
                is_constant(single)
                or dtype_of(single) != FLOAT32
                or (dtype_of(other).kind == "f" and not is_constant(other))
            ):
                continue
            kind = dtype_of(other)
            if isinstance(other, float):
                what = (
                    f"the literal {other} is float64 and takes float32 values along; write float32({other})"
                )
            elif kind.kind == "f":
                continue
            else:
                what = f"{kind} with float32 gives float64; convert the integer with float32(...)"
            self.warn(node, "float64", what)

    def warn(self, node: ast.AST, topic: str, message: str) -> None:
        """Keep a warning, once per line and topic."""
        self.facts.warnings.setdefault((getattr(node, "lineno", 0), topic), message)

    def _key(self, node: ast.AST, role: str) -> Key:
        return (*self.frame.path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0), role)

    def join(self, node: ast.AST, role: str, envs: list[dict[str, Any]]) -> dict[str, Any]:
        """The variables after paths meet, each with its unified type, which is noted for execution."""
        if len(envs) == 1:
            return envs[0]
        types = self.facts.joins.setdefault(self._key(node, role), {})
        merged: dict[str, Any] = {}
        everywhere = set.intersection(*(set(env) for env in envs))
        for env in envs:
            self.facts.loose.update((self.frame.function, name) for name in env if name not in everywhere)
            for name, value in env.items():
                if name not in merged:
                    merged[name] = value
                elif merged[name] is not value:
                    merged[name] = self._meet(node, name, merged[name], value)
        for name, value in merged.items():
            if is_number(value) and any(name in env and env[name] is not value for env in envs):
                types[name] = dtype_of(value)
                self._warn_of_widening(node, name, value, envs)
        return merged

    def _meet(self, node: ast.AST, name: str, first: Any, second: Any) -> Any:
        if is_number(first) and is_number(second):
            dtype = unify(dtype_of(first), dtype_of(second))
            if is_constant(first) and is_constant(second) and type(first) is type(second) and first == second:
                return first
            return self.dummy(dtype)
        if isinstance(first, ArrayRef) and isinstance(second, ArrayRef):
            mine, other = ((ref.dtype, ref.ndim, ref.storage.space) for ref in (first, second))
            if mine == other:
                members = tuple(dict.fromkeys((*members_of(first.storage), *members_of(second.storage))))
                if members == members_of(first.storage):
                    return first
                storage = AnyStorage(members) if len(members) > 1 else members[0]
                return replace(first, storage=storage, writable=first.writable and second.writable)
        if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
            return tuple(
                a if a is b else self._meet(node, name, a, b) for a, b in zip(first, second, strict=True)
            )
        if type(first) is type(second) and not isinstance(first, (tuple, ArrayRef)):
            return first
        self.refuse(
            node,
            f"variable {name} with different kinds of value on different paths",
            "Give each its own name.",
        )

    def _warn_of_widening(self, node: ast.AST, name: str, value: Any, envs: list[dict[str, Any]]) -> None:
        before = {
            dtype_of(env[name])
            for env in envs
            if name in env and is_number(env[name]) and not is_constant(env[name])
        }
        wide = dtype_of(value)
        for narrow, widened in ((FLOAT32, FLOAT64), (INT32, INT64)):
            if wide == widened and narrow in before:
                self.warn(
                    node,
                    f"{widened} {name}",
                    f"{name} is {narrow} at first and {widened} later, so it is {widened} throughout",
                )

    # -- expressions on both sides of a choice -----------------------------------------------------

    def _eval_BoolOp(self, node: ast.BoolOp) -> Any:
        stop_if = isinstance(node.op, ast.Or)
        values: list[Any] = []
        for operand in node.values:
            values.append(self.evaluate(operand))
            decided = self.condition(operand, values[-1])
            if isinstance(decided, bool) and decided == stop_if:
                break
        kinds = [typed(value) if is_number(value) else np.bool_(False) for value in values]
        dtype = kinds[0].dtype if not hasattr(kinds[0], "block") else INT64
        for kind in kinds[1:]:
            dtype = unify(dtype, dtype_of(kind))
        if isinstance(self.condition(node, values[-1]), bool) and all(
            isinstance(value, bool) for value in values
        ):
            return values[-1]
        self.facts.joins[self._key(node, "choice")] = {"": dtype}
        return self.dummy(dtype)

    def _branches(self, condition: Any) -> tuple[Mask | None, Mask | None]:
        return self._full, self._full

    def _type_of_choice(self, node: ast.AST, values: list[Any]) -> np.dtype | None:
        if not all(is_number(value) for value in values):
            return None
        dtype = dtype_of(values[0])
        for value in values[1:]:
            dtype = unify(dtype, dtype_of(value))
        self.facts.joins[self._key(node, "choice")] = {"": dtype}
        before = {dtype_of(value) for value in values if not is_constant(value)}
        if dtype == FLOAT64 and FLOAT32 in before and FLOAT64 not in before:
            self.warn(
                node,
                "float64",
                "a literal beside float32 values makes the choice float64; write float32(...)",
            )
        return dtype

    # -- control flow ------------------------------------------------------------------------------

    def run_body(self, function: Function) -> Any:
        self.run_block(function.tree.body)
        fell_through = self.mask is not None
        self.mask = self._full
        returned = self.frame.returned
        if fell_through and any(value is not None for _, value in returned):
            self.warn(function.tree, "return", f"{function.name} returns a value on some paths only")
        value = returned[0][1] if returned else None
        for _, other in returned[1:]:
            value = self._meet(function.tree, "(return value)", value, other)
        if returned and is_number(value):
            self.facts.joins[(*self.frame.path, "return")] = {"": dtype_of(value)}
        return value

    def _run_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.evaluate(node.value)
        self.frame.returned.append((self._full, typed(value) if is_number(value) else value))
        self.mask = None

    def _run_If(self, node: ast.If) -> None:
        condition = self.condition(node.test, self.evaluate(node.test))
        if isinstance(condition, bool):
            self.run_block(node.body if condition else node.orelse)
            return
        before = self.frame.env
        ends: list[dict[str, Any]] = []
        for block in (node.body, node.orelse):
            self.frame.env, self.mask = dict(before), self._full
            self.run_block(block)
            if self.mask is not None:
                ends.append(self.frame.env)
        self.mask = self._full if ends else None
        self.frame.env = self.join(node, "if", ends) if ends else before

    def _run_While(self, node: ast.While) -> None:
        def test() -> bool:
            condition = self.condition(node.test, self.evaluate(node.test))
            return not (isinstance(condition, bool) and condition)

        self._loop(node, test, node.body)

    def _run_For(self, node: ast.For) -> None:
        rounds = self.loop_over(node.iter, self.evaluate(node.iter))

        def test() -> bool:
            item = rounds.first()
            self.assign(node.target, self.dummy(dtype_of(item)) if is_number(item) else item)
            return True

        before = dict(self.frame.env)
        self._loop(node, test, node.body)
        for name in before:
            self.frame.env.setdefault(name, before[name])

    def _loop(self, node: ast.For | ast.While, test: Any, body: list[ast.stmt]) -> None:
        if node.orelse:
            self.refuse(node, "else after a loop", "Set a flag in the loop and test it afterwards.")
        header = dict(self.frame.env)
        for _ in range(_MAX_ROUNDS):
            self.frame.loops.append(([], []))
            self.frame.env, self.mask = dict(header), self._full
            may_end = test()
            at_test = dict(self.frame.env)
            self.run_block(body)
            breaks, continues = self.frame.loops.pop()
            ends = [*continues, *([self.frame.env] if self.mask is not None else [])]
            joined = self.join(node, "loop", [header, *ends])
            if _types(joined) == _types(header):
                break
            header = joined
        self.mask = self._full
        exits = [*([at_test] if may_end else []), *breaks]
        self.frame.env = dict(self.join(node, "exit", exits)) if exits else header
        if not exits:
            self.mask = None

    def _run_Break(self, node: ast.Break) -> None:
        self.frame.loops[-1][0].append(dict(self.frame.env))
        self.mask = None

    def _run_Continue(self, node: ast.Continue) -> None:
        self.frame.loops[-1][1].append(dict(self.frame.env))
        self.mask = None


def _types(env: dict[str, Any]) -> dict[str, Any]:
    """What must be stable for a loop's types to be settled."""
    return {name: _type(value) for name, value in env.items()}


def _type(value: Any) -> Any:
    if is_number(value):
        return (dtype_of(value), value if is_constant(value) else None)
    if isinstance(value, ArrayRef):
        return members_of(value.storage), value.dtype
    if isinstance(value, tuple):
        return tuple(_type(element) for element in value)
    return type(value)
