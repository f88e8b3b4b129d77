"""What the notebooks need of a GPU: the kernels they use, and where each of these can be launched."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from lanewise.errors import UnknownInstruction
from lanewise.experiments import Case, all_experiments
from lanewise.machine import KB, Machine, from_name
from lanewise.machine.availability import matching
from lanewise.ptx.declare import DECLARED
from lanewise.ptx.used import intrinsics_of
from lanewise.records import record, recorded_gpus, recorded_topics

Capability = tuple[int, int]

# The columns, from old to new; a GPU's limits are those of its compute capability.
GPUS: dict[str, Capability] = {"T4": (7, 5), "L4": (8, 9), "A100": (8, 0), "H100": (9, 0), "H200": (9, 0)}
SHOWN_INSTRUCTIONS = ("ldmatrix", "mma.m16n8k16.f16", "cp.async", "stmatrix", "wgmma")
OLDEST: Capability = (7, 5)

MOST_NAMED = 2  # more kernels that lack the same thing are counted

TOC = "_toc.yml"

_KERNELS = "lanewise.kernels"
_PTX = "lanewise.ptx"
_EXPERIMENT = re.compile(r"E-\d\d(?:-[\w-]+)?")
_PAGE = re.compile(r"^\s*-? ?(?:root|file): (\S+)$", re.MULTILINE)
_MAGIC = re.compile(r"^\s*[%!].*$", re.MULTILINE)


@dataclass(frozen=True)
class Need:
    """What a launch of one kernel needs: a compute capability, for what, and shared memory of one block."""

    kernel: str
    topic: str
    capability: Capability
    instructions: tuple[str, ...]
    shared_bytes: int

    def lacking_on(self, machine: Machine) -> str:
        """What that machine lacks for this kernel; '' where nothing."""
        if self.capability > machine.capability:
            return str(from_name(self.capability))
        if self.shared_bytes > machine.max_shared_bytes_per_block:
            return f"{self.shared_bytes / KB:.4g} KB of shared memory"
        return ""


@dataclass(frozen=True)
class Use:
    """What one notebook uses: kernels of the package, and intrinsics in code of its own."""

    kernels: tuple[Need, ...]
    own_intrinsics: tuple[str, ...]
    has_live_times: bool

    @property
    def needs(self) -> tuple[Need, ...]:
        """The needs of the kernels, and of the page's own code."""
        own = (Need(f"ptx.{name}", "", *_needs_of(frozenset({name})), 0) for name in self.own_intrinsics)
        return (*self.kernels, *own)

    def without_gpu(self) -> str:
        """What of the page works where there is no GPU."""
        return "all but live times" if self.has_live_times else "all"

    def on(self, machine: Machine) -> str:
        """What of the page can be launched on a machine, in words."""
        if not self.needs:
            return "launches nothing"
        lacking: dict[str, list[Need]] = {}
        for need in self.needs:
            if what := need.lacking_on(machine):
                lacking.setdefault(what, []).append(need)
        if not lacking:
            return "all"
        head = "all but " if sum(map(len, lacking.values())) < len(self.needs) else "none: "
        return head + "; ".join(_complaint(what, needs) for what, needs in lacking.items())


def _complaint(what: str, needs: list[Need]) -> str:
    names = ", ".join(f"`{need.kernel}`" for need in needs)
    who = names if len(needs) <= MOST_NAMED else f"{len(needs)} kernels"
    instructions = sorted({one for need in needs for one in need.instructions if what.startswith("sm_")})
    why = f" ({', '.join(instructions)})" if instructions else ""
    return f"{who}: {'needs' if len(needs) == 1 else 'need'} {what}{why}"


def notebooks(root: Path) -> list[Path]:
    """The notebooks of the book and of the labs; the sources of labs are on no page."""
    found = (path for folder in ("book", "labs") for path in (root / folder).glob("*.ipynb"))
    return sorted(path for path in found if not any(part.startswith(".") for part in path.parts))


def in_reading_order(root: Path) -> list[Path]:
    """The notebooks as `_toc.yml` lists them; those that it does not list come last."""
    listed = _PAGE.findall((root / TOC).read_text(encoding="utf-8"))

    def place(path: Path) -> int:
        page = path.relative_to(root).with_suffix("").as_posix()
        return listed.index(page) if page in listed else len(listed)

    return sorted(notebooks(root), key=place)


def use_of(path: Path) -> Use:
    """What the notebook at `path` uses; a lab, what its solution does."""
    source = path.parent / "source" / path.stem / path.name
    path = source if source.is_file() else path
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    cells = [cell for cell in found if cell["cell_type"] == "code"]
    tree = ast.Module([statement for cell in cells for statement in _statements(cell)], [])
    kernels = {_name(kernel): kernel for kernel in (*_imported(tree), *_measured(tree))}
    live = any("times-gpu" in cell.get("metadata", {}).get("tags", []) for cell in cells)
    return Use(tuple(need_of(kernels[name]) for name in sorted(kernels)), tuple(sorted(_own(tree))), live)


@cache
def need_of(kernel: Any) -> Need:
    """What a launch of a kernel needs; of its experiments' launches, the one that needs least."""
    cases = cases_by_kernel().get(_name(kernel), [])
    shared = min((case.dynamic_shared_bytes for case in cases), default=0)
    topic = kernel.py_func.__module__.rpartition(".")[2]
    return Need(kernel.py_func.__name__, topic, *_needs_of(intrinsics_of(kernel)), shared)


def demanding() -> list[Need]:
    """Every kernel of the experiments that not all of `GPUS` can run, by topic and name."""
    needs = [need_of(cases[0].kernel) for cases in cases_by_kernel().values()]
    found = [need for need in needs if any(need.lacking_on(from_name(gpu)) for gpu in GPUS.values())]
    return sorted(found, key=lambda need: (need.topic, need.kernel))


@cache
def cases_by_kernel() -> dict[str, list[Case]]:
    """The launches of each kernel, by its full name, in all experiments."""
    found: dict[str, list[Case]] = {}
    for experiments in all_experiments().values():
        for experiment in experiments:
            for case in (*experiment.timed, *experiment.counted):
                found.setdefault(_name(case.kernel), []).append(case)
    return found


def recorded() -> dict[str, dict[str, str]]:
    """For each GPU and topic what is recorded: which experiments' times, on which days, and counters."""
    return {gpu: {topic: _recorded(gpu, topic) for topic in recorded_topics(gpu)} for gpu in recorded_gpus()}


def _recorded(gpu: str, topic: str) -> str:
    experiments = record(gpu, topic).rows("experiments")
    days = sorted({row["provenance"]["date"] for row in experiments})
    return f"{', '.join(sorted(row['id'] for row in experiments))} ({' and '.join(days)})"


def _needs_of(names: frozenset[str]) -> tuple[Capability, tuple[str, ...]]:
    """The compute capability that these intrinsics need, and the instructions that need it."""
    needs = {name: DECLARED[name].needs for name in names}
    newest = max(needs.values(), default=OLDEST)
    if newest <= OLDEST:
        return OLDEST, ()
    return newest, tuple(sorted({_instruction(name) for name, need in needs.items() if need == newest}))


def _instruction(intrinsic: str) -> str:
    """The entry of lanewise.machine's table that stands for an intrinsic, or its own name."""
    try:
        return matching(intrinsic.replace("_", "."))[0]
    except UnknownInstruction:
        return intrinsic


def _name(kernel: Any) -> str:
    return f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"


def _statements(cell: dict[str, Any]) -> list[ast.stmt]:
    try:
        return ast.parse(_MAGIC.sub("", "".join(cell["source"]))).body
    except SyntaxError:  # what is left of a cell without its magic lines
        return []


def _imported(tree: ast.Module) -> Iterator[Any]:
    """The kernels that a notebook names: one by one, or a module of them as a whole."""
    modules: dict[str, ModuleType] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == _KERNELS:
            for alias in node.names:
                modules[alias.asname or alias.name] = import_module(f"{_KERNELS}.{alias.name}")
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith(f"{_KERNELS}.") and alias.asname:
                    modules[alias.asname] = import_module(alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{_KERNELS}."):
            module = import_module(str(node.module))
            for alias in node.names:
                yield from _kernels_in(getattr(module, alias.name))
    bases = {id(node.value): node for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in modules and isinstance(node.ctx, ast.Load):
            given: Any = modules[node.id]
            if id(node) in bases:
                given = getattr(given, bases[id(node)].attr, None)
            yield from _kernels_in(given)


def _kernels_in(value: Any) -> Iterator[Any]:
    """A kernel, or those in a collection or a module."""
    if isinstance(value, ModuleType):
        value = vars(value)
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        for one in value:
            yield from _kernels_in(one) if not isinstance(one, ModuleType | dict) else ()
    elif hasattr(value, "py_func") and not getattr(value, "targetoptions", {}).get("device"):
        yield value


def _measured(tree: ast.Module) -> Iterator[Any]:
    """The kernels of the experiments that a notebook shows records of."""
    ids = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    shown = {text for text in ids if _EXPERIMENT.fullmatch(text)}
    if shown:
        for experiments in all_experiments().values():
            for experiment in experiments:
                if experiment.id in shown:
                    yield from (case.kernel for case in (*experiment.timed, *experiment.counted))


def _own(tree: ast.Module) -> set[str]:
    """The intrinsics in code that stands on the page itself."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == _PTX:
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value).rpartition(".")[2] == "ptx":
            names.add(node.attr)
    return names & set(DECLARED)
