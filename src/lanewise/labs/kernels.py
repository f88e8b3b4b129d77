"""`KernelTask`: a task whose answer is a kernel, or a function that a kernel of the lab calls."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lanewise.access import WarpAccess
from lanewise.checks import Check
from lanewise.errors import InvalidLaunch
from lanewise.labs.goals import Goal
from lanewise.labs.runs import InvalidLab, Run
from lanewise.labs.verdict import RESULT, Judged, Verdict
from lanewise.ptx.operands import WrongOperand
from lanewise.trace import KernelFault, KernelLimit, Trace, UnsupportedConstruct, trace
from lanewise.trace.source import LEFT_OPEN, DeviceFunction, Function, function_of

# A kernel that needs more than this on the small sizes of a lab does not end.
STEPS, SECONDS = 200_000, 20.0
AS_GIVEN = "The kernel is as it was given."
LEFT_TO_DO = "There is a ... left to fill in."


@dataclass(frozen=True)
class KernelTask:
    """A task that is answered by a function named `name`.

    `run(rng, size)` makes one run; `sizes` are those that a learner's check uses, `hidden(rng)` draws those
    that grading uses. `right` points are for the result; each of `goals` has its own. `starter` is the
    kernel to repair, with a planted fault; its docstring, which names the fault, is not shown. `wrap`, for
    tasks that ask for a device function, makes the kernel that calls it. `before` is the kernel that a
    success is compared with, `worth` says from a record what the change is worth. `timed` is the size to time
    on a GPU.
    """

    name: str
    parameters: tuple[str, ...]
    run: Callable[[np.random.Generator, Any], Run]
    sizes: tuple[Any, ...]
    hidden: Callable[[np.random.Generator], tuple[Any, ...]]
    right: int
    goals: tuple[Goal, ...] = ()
    starter: Callable | None = None
    wrap: Callable[[Any], Any] | None = None
    before: Callable | None = None
    worth: Callable[[], str] | None = None
    timed: Any = None
    machine: str = "sm_90"

    def __post_init__(self) -> None:
        if not self.sizes:
            raise InvalidLab(f"KernelTask {self.name}: give one size or more.")

    @property
    def points(self) -> float:
        """What the task is worth."""
        return self.right + sum(goal.points for goal in self.goals)

    # -- what a learner is given -------------------------------------------------------------------

    @cached_property
    def starter_source(self) -> str:
        """The text of the kernel to repair, under the task's name and without its docstring; '' if none."""
        return _without_docstring(self.starter, self.name) if self.starter else ""

    def is_untouched(self, function: Function) -> bool:
        """Whether `...` is left in a function, in one that it calls or in a name that they use; or whether it
        is the starter but for comments."""
        if any(_is_open(one, node) for one in _with_callees(function) for node in ast.walk(one.tree)):
            return True
        if not self.starter:
            return False
        given = ast.parse(self.starter_source).body[-1]
        assert isinstance(given, ast.FunctionDef)
        return _same_code(function.tree, given)

    # -- the verdict -------------------------------------------------------------------------------

    def judge(self, answer: Any, rng: np.random.Generator, *, hidden: bool = False) -> Verdict:
        """The verdict on a kernel (live, or a `Function` that was read from text) on the sizes of a check.

        `hidden` adds sizes that are drawn from `rng`, as grading does. Nothing of the kernel is executed.
        """
        if answer is ... or answer is None:
            return self._empty("unfinished", f"{self.name} is not written yet.")
        try:
            function = function_of(answer)
            if self.is_untouched(function):
                return self._empty("unfinished", AS_GIVEN if self.starter else LEFT_TO_DO)
            if len(function.parameters) != len(self.parameters):
                return self._empty("faulty", self._arity(function))
            kernel = self.wrap(function) if self.wrap else function
            sizes = (*self.sizes, *(self.hidden(rng) if hidden else ()))
            checks = [self._checked(kernel, run) for run in self._runs(rng, sizes)]
        except UnsupportedConstruct as error:
            return self._empty("refused", str(error))
        except KernelLimit as error:
            return self._empty("endless", str(error))
        except (KernelFault, InvalidLaunch, WrongOperand) as error:
            return self._empty("faulty", str(error))
        return self._verdict(checks)

    def _runs(self, rng: np.random.Generator, sizes: tuple[Any, ...]) -> Iterator[Run]:
        return (self.run(rng, size) for size in sizes)

    def _checked(self, kernel: Any, run: Run) -> tuple[Run, Trace, list[Check]]:
        """One check for the result, and one for each goal, on a trace of one run."""
        traced = traced_run(kernel, run, self.machine)
        result = Check(traced)
        for name, expected in run.expected.items():
            result.matches(run.arguments[name], expected, run.rtol, run.atol)
        for name, kept in run.kept.items():
            if not np.array_equal(run.arguments[name], kept, equal_nan=kept.dtype.kind in "fc"):
                result.claim("inputs", False, f"{name} is an input; the kernel has changed it.")
        return run, traced, [result, *(goal.claim(Check(traced), run) for goal in self.goals)]

    def _verdict(self, checked: list[tuple[Run, Trace, list[Check]]]) -> Verdict:
        names = [(RESULT, self.right), *((goal.name, goal.points) for goal in self.goals)]
        right = all(checks[0] for _, _, checks in checked)
        judged = []
        for position, (name, points) in enumerate(names):
            runs = [(run, checks[position]) for run, _, checks in checked]
            judged.append(_judged(name, points, runs, counts=right or name == RESULT))
        passed = all(one.holds for one in judged)
        missed = next((one.access for one in judged if not one.holds and one.access), None)
        first = checked[0][1]
        return Verdict(
            self.name,
            "passed" if passed else "not yet",
            tuple(judged),
            rows=self._rows(first) if passed else (),
            notes=(self.worth(),) if passed and self.worth else (),
            access=missed or worst_access(first),
        )

    def _rows(self, after: Trace) -> tuple[dict[str, Any], ...]:
        """What the kernel costs beside the one it is compared with, on the first size of a check."""
        if self.before is None:
            return ()
        run = self.run(np.random.default_rng(0), self.sizes[0])
        before = traced_run(self.before, run, self.machine)
        return ({"kernel": "before", **costs(before)}, {"kernel": "yours", **costs(after)})

    def _empty(self, state: str, sentence: str) -> Verdict:
        names = [(RESULT, self.right), *((goal.name, goal.points) for goal in self.goals)]
        return Verdict(
            self.name, state, tuple(Judged(name, points, 0, "") for name, points in names), notes=(sentence,)
        )

    def _arity(self, function: Function) -> str:
        return (
            f"{self.name} has {len(function.parameters)} parameters ({', '.join(function.parameters)}); it is"
            f" called with {len(self.parameters)}: {', '.join(self.parameters)}."
        )


def traced_run(kernel: Any, run: Run, machine: str) -> Trace:
    """Trace one run of a kernel, within the limits of a lab."""
    return trace(
        kernel,
        run.grid,
        run.block,
        *run.arguments.values(),
        dynamic_shared_bytes=run.dynamic_shared_bytes,
        machine=machine,
        steps=STEPS,
        seconds=SECONDS,
    )


def costs(traced: Trace) -> dict[str, int]:
    """The counts that labs compare: shared and global loads and stores, and the tile's bytes."""
    shared, memory = traced.shared, traced.global_
    return {
        "shared wavefronts": shared.load.wavefronts + shared.store.wavefronts,
        "of them excess": shared.load.excess + shared.store.excess,
        "global sectors": memory.load.sectors + memory.store.sectors,
        "of them needless": memory.load.excess + memory.store.excess,
        "shared bytes per block": traced.shared_bytes,
    }


def worst_access(traced: Trace) -> WarpAccess | None:
    """The access to look at: the shared load or store with the most wavefronts, else a global one."""
    sites = [site for site in traced.sites if site.modelled and site.op in ("load", "store") and site.example]
    shared = [site for site in sites if site.space == "shared"]
    if shared:
        return max(shared, key=lambda site: (site.worst_wavefronts, site.op == "load")).example
    return max(sites, key=lambda site: site.sectors / max(1, site.requests)).example if sites else None


def _judged(name: str, points: float, runs: list[tuple[Run, Check]], *, counts: bool) -> Judged:
    """One goal over all runs: it holds if every claim of every run does, and the first failure is told."""
    for run, check in runs:
        for claim in check.failures:
            return Judged(name, points, 0, f"{claim.sentence} ({run.size})", claim.access)
    sentence = " ".join(claim.sentence for claim in runs[0][1].claims)
    if not counts:
        return Judged(name, points, 0, f"{sentence} That counts once the result is right.")
    return Judged(name, points, points, sentence)


def _is_open(function: Function, node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return _outside(function, node) is LEFT_OPEN
    return isinstance(node, ast.Constant) and node.value is ...


def _outside(function: Function, node: ast.Name) -> Any:
    """What a name stands for that is no variable of the function; None if nothing does."""
    if node.id in function.local_names:
        return None
    try:
        return function.lookup(node.id)
    except KeyError:
        return None


def _with_callees(function: Function) -> list[Function]:
    """A function and those that it uses by name, directly or not, each once."""
    found = {_identity(function): function}
    ahead = [function]
    while ahead:
        one = ahead.pop()
        for node in ast.walk(one.tree):
            entity = _outside(one, node) if isinstance(node, ast.Name) else None
            if isinstance(entity, DeviceFunction):
                entity = function_of(entity.plain)
            if isinstance(entity, Function) and _identity(entity) not in found:
                found[_identity(entity)] = entity
                ahead.append(entity)
    return list(found.values())


def _identity(function: Function) -> tuple[str, int]:
    return function.filename, function.tree.lineno


def _same_code(one: ast.FunctionDef, other: ast.FunctionDef) -> bool:
    return [ast.dump(node) for node in one.body] == [ast.dump(node) for node in other.body]


def _without_docstring(kernel: Callable, name: str) -> str:
    """A kernel's source under another name; the docstring, if any, is left out."""
    text = textwrap.dedent(inspect.getsource(getattr(kernel, "py_func", kernel)))
    definition = ast.parse(text).body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise InvalidLab(f"{name}: the starter is not a function.")
    lines = text.rstrip().splitlines()
    if ast.get_docstring(definition) is not None:
        documented = definition.body[0]
        del lines[documented.lineno - 1 : documented.end_lineno]
    pattern = re.compile(rf"\bdef {re.escape(definition.name)}\b")
    return pattern.sub(f"def {name}", "\n".join(lines), count=1)
