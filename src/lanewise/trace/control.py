"""Control flow of the executing pass: which lanes go where, and how their variables meet again.

A branch runs with the mask narrowed to the lanes that take it, on a copy of the variables, so an assignment
in it touches no other lane. Where paths meet, each variable that differs is chosen lane by lane, in the type
that inference found. A loop runs until its last lane has left; lanes that leave early take their variables
along.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanewise.trace.arrays import ArrayRef, Element, same_array
from lanewise.trace.asynchronous import Asynchronous
from lanewise.trace.expressions import new_frame
from lanewise.trace.lanes import cast, choose, dtype_of, is_number, typed
from lanewise.trace.masks import Mask, union
from lanewise.trace.source import Function
from lanewise.trace.tracking import first_lane, n_lanes

Env = dict[str, Any]
Path = "tuple[Mask, Env]"


@dataclass
class _Loop:
    """The lanes that have left a loop, and those that wait at `continue`, each with their variables."""

    left: tuple[Mask, Env] | None = None
    waiting: list[tuple[Mask, Env]] = field(default_factory=list)


class Execution(Asynchronous):
    """The executing pass."""

    def run_batch(self, function: Function, env: Env, blocks: np.ndarray) -> None:
        """Run the kernel for some blocks, all their lanes at once."""
        self.start_batch(blocks)
        self.frame = new_frame(function, (), dict(env))
        with np.errstate(all="ignore"):
            self.run_body(function)

    def _types(self, node: ast.AST, role: str) -> dict[str, np.dtype]:
        key = (*self.frame.path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0), role)
        return self.facts.joins.get(key, {})

    def _conform(self, env: Env, types: dict[str, np.dtype]) -> Env:
        """Give variables the types that they have where paths meet."""
        for name, dtype in types.items():
            if name in env and is_number(env[name]):
                env[name] = cast(typed(env[name]), dtype)
        return env

    def _meet(
        self, node: ast.AST, paths: list[tuple[Mask, Env]], types: dict[str, np.dtype]
    ) -> tuple[Mask, Env]:
        """Bring lanes of several paths together."""
        mask, env = paths[0]
        if len(paths) == 1:
            return mask, self._conform(env, types)
        for other_mask, other_env in paths[1:]:
            for name, value in other_env.items():
                if name not in env:
                    env[name] = value
                elif env[name] is not value:
                    env[name] = self._choose(node, name, mask, env[name], value, types.get(name))
            joined = union(mask, other_mask)
            assert joined is not None
            mask = joined
        return mask, self._conform(env, types)

    def _choose(
        self, node: ast.AST, name: str, mask: Mask, first: Any, second: Any, dtype: np.dtype | None
    ) -> Any:
        if is_number(first) and is_number(second):
            if dtype is None:
                dtype = np.promote_types(dtype_of(first), dtype_of(second))
            return choose(mask.array, cast(typed(first), dtype), cast(typed(second), dtype))
        if isinstance(first, tuple) and isinstance(second, tuple):
            return tuple(
                self._choose(node, name, mask, a, b, None) for a, b in zip(first, second, strict=True)
            )
        if isinstance(first, ArrayRef) and isinstance(second, ArrayRef):
            if same_array(first, second):
                return first
            self.refuse(
                node,
                f"variable {name}, a different array in different lanes",
                "Branch around the accesses instead.",
            )
        if isinstance(first, Element) or isinstance(second, Element):
            self.refuse(
                node,
                f"variable {name}, a different record in different lanes",
                "Keep the index instead of the record.",
            )
        return first

    # -- variables that not every lane has ---------------------------------------------------------

    def assign(self, target: ast.expr, value: Any) -> None:
        super().assign(target, value)
        if isinstance(target, ast.Name) and (self.frame.function, target.id) in self.facts.loose:
            before = self.frame.assigned.get(target.id)
            lanes = self.active if before is None else union(before, self.active)
            assert lanes is not None
            self.frame.assigned[target.id] = lanes

    def _eval_Name(self, node: ast.Name) -> Any:
        lanes = self.frame.assigned.get(node.id)
        if lanes is not None and lanes is not self.mask:
            missing = self.active.without(lanes)
            if missing is not None:
                self._report_unassigned(node, missing)
        return super()._eval_Name(node)

    def _report_unassigned(self, node: ast.Name, missing: Mask) -> None:
        block, lane = first_lane(missing)
        text = (
            f"reads variable {node.id} (line {node.lineno}), which it has not assigned; the value is"
            " undefined. Assign it on every path, or before the branch."
        )

        case = self.case("uninitialized_read", node.lineno, block, lane, text, element=node.id)
        self.log.add("uninitialized_read", node.lineno, case, array=node.id, count=n_lanes(missing))

    # -- functions ---------------------------------------------------------------------------------

    def run_body(self, function: Function) -> Any:
        entry = self.mask
        self.run_block(function.tree.body)
        _fell_through, self.mask = self.mask, entry
        returned = self.frame.returned
        if not returned or self.depth == 0:
            return None
        dtype = self.facts.joins.get((*self.frame.path, "return"), {}).get("")
        if dtype is not None:
            returned = [(mask, cast(value, dtype)) for mask, value in returned if value is not None]
        return self.merge_returns(function.tree, returned)

    def _run_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.evaluate(node.value)
        self.frame.returned.append((self.active, typed(value) if is_number(value) else value))
        if self.depth == 0:
            assert self.live is not None
            self.exited_at = node.lineno
            self.live = self.live.without(self.mask)
        self.mask = None

    # -- branches ----------------------------------------------------------------------------------

    def _run_If(self, node: ast.If) -> None:
        condition = self.condition(node.test, self.evaluate(node.test))
        if isinstance(condition, bool):
            self.run_block(node.body if condition else node.orelse)
            return
        self.tick(node)
        types = self._types(node, "if")
        yes, no = self.active.split(condition)
        if yes is None or no is None:
            self.run_block(node.body if no is None else node.orelse)
            if self.mask is not None:
                self._conform(self.frame.env, types)
            return
        before = self.frame.env
        ends: list[tuple[Mask, Env]] = []
        for mask, block in ((yes, node.body), (no, node.orelse)):
            self.mask, self.frame.env = mask, dict(before)
            self.run_block(block)
            if self.mask is not None:
                ends.append((self.mask, self.frame.env))
        if ends:
            self.mask, self.frame.env = self._meet(node, ends, types)
        else:
            self.mask = None

    def _eval_BoolOp(self, node: ast.BoolOp) -> Any:
        value = super()._eval_BoolOp(node)
        dtype = self._types(node, "choice").get("")
        return cast(value, dtype) if dtype is not None and is_number(value) else value

    def _type_of_choice(self, node: ast.IfExp, values: list[Any]) -> np.dtype | None:
        return self._types(node, "choice").get("")

    def _join(self, node: ast.AST, mask: Mask, first: Any, second: Any) -> Any:
        joined = super()._join(node, mask, first, second)
        dtype = self._types(node, "choice").get("") if isinstance(node, (ast.IfExp, ast.BoolOp)) else None
        return cast(joined, dtype) if dtype is not None else joined

    def require_in_tuple(self, node: ast.AST, index: Any, n: int) -> None:
        outside = np.logical_or(np.asarray(index) < -n, np.asarray(index) >= n)
        if np.any(np.logical_and(outside, self.active.array)):
            worst = np.broadcast_to(index, np.broadcast_shapes(np.shape(index), self.shape))
            met = int(worst[np.broadcast_to(outside & self.active.array, worst.shape)][0])
            self.refuse(node, f"index {met} of a tuple of {n}", "Stay inside the tuple.")

    # -- loops -------------------------------------------------------------------------------------

    def _run_While(self, node: ast.While) -> None:
        self._loop(node, lambda k: self.condition(node.test, self.evaluate(node.test)), None, node.body)

    def _run_For(self, node: ast.For) -> None:
        rounds = self.loop_over(node.iter, self.evaluate(node.iter))
        self._loop(node, rounds.has, lambda k: self.assign(node.target, rounds.item(k)), node.body)

    def _loop(self, node: ast.For | ast.While, test: Any, begin: Any, body: list[ast.stmt]) -> None:
        types = self._types(node, "loop")
        loop = _Loop()
        self.frame.loops.append((node, loop))
        self._conform(self.frame.env, types)
        k = 0
        while self.mask is not None:
            self.step(node)
            stay, leave = self._split(test(k))
            if leave is not None:
                self._leave(node, loop, leave, self.frame.env if stay is None else dict(self.frame.env))
            self.mask = stay
            if stay is None:
                break
            self.tick(node)
            if begin is not None:
                begin(k)
            self.run_block(body)
            ends = [(self.mask, self.frame.env)] if self.mask is not None else []
            ends += loop.waiting
            loop.waiting = []
            if ends:
                self.mask, self.frame.env = self._meet(node, ends, types)
            k += 1
        self.frame.loops.pop()
        if loop.left is None:
            self.mask = None
            return
        self.mask, self.frame.env = loop.left
        self._conform(self.frame.env, self._types(node, "exit"))

    def _split(self, condition: Any) -> tuple[Mask | None, Mask | None]:
        if isinstance(condition, bool):
            return (self.mask, None) if condition else (None, self.mask)
        return self.active.split(condition)

    def _leave(self, node: ast.AST, loop: _Loop, mask: Mask, env: Env) -> None:
        paths = [(mask, env)] if loop.left is None else [loop.left, (mask, env)]
        loop.left = self._meet(node, paths, {**self._types(node, "loop"), **self._types(node, "exit")})

    def _run_Break(self, node: ast.Break) -> None:
        loop_node, loop = self.frame.loops[-1]
        self._leave(loop_node, loop, self.active, dict(self.frame.env))
        self.mask = None

    def _run_Continue(self, node: ast.Continue) -> None:
        self.frame.loops[-1][1].waiting.append((self.active, dict(self.frame.env)))
        self.mask = None
