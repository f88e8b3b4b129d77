"""What was measured, as data with its provenance; shipped inside the package under `recorded/<gpu>/`.

Two kinds of record lie there:

- counter tables, `<name>.csv`: one row per launch of one warp and one instruction, with the hardware counters
  read;
- experiments, `<slug>.json`: the figures of one topic's measurements, and `<slug>.counters.json`: the
  hardware counters of its kernels.

Each comes with a provenance: the GPU, driver and tools, the date, and how it was measured. Nothing here
computes, except the hashes that tell whether a kernel is still the one that was measured.
"""

import ast
import csv
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any

from lanewise.errors import UnknownRecord
from lanewise.integers import whole
from lanewise.machine import FULL_MASK

_HOME = files("lanewise") / "recorded"
_PROVENANCE = "provenance.json"
_ABSENT = object()  # no name of a kernel leads here: a local or a builtin


@dataclass(frozen=True)
class Provenance:
    """Where numbers come from: the device and tools that gave them, the date, and the method in a
    sentence."""

    gpu: str
    compute_capability: str
    driver: str
    cuda: str
    tools: str
    date: str
    method: str

    def __str__(self) -> str:
        return (
            f"{self.gpu} (compute capability {self.compute_capability}), driver {self.driver},"
            f" CUDA {self.cuda}, {self.tools}, {self.date}. {self.method}"
        )


@dataclass(frozen=True)
class Launch:
    """One recorded launch: the instruction, what its lanes addressed, and the counters read (name -> count).

    `source_offsets` are those of the global source of an async copy; empty means contiguous, from 0.
    """

    instruction: str
    active_mask: int
    byte_offsets: tuple[int, ...]
    source_offsets: tuple[int, ...]
    counters: Mapping[str, int]


@dataclass(frozen=True)
class CounterTable:
    """All launches of one counter table, in the order of the file."""

    name: str
    provenance: Provenance
    launches: tuple[Launch, ...]

    @property
    def instructions(self) -> tuple[str, ...]:
        """The instructions that occur, sorted."""
        return tuple(sorted({launch.instruction for launch in self.launches}))

    def of(self, instruction: str) -> tuple[Launch, ...]:
        """The launches of one instruction."""
        return tuple(launch for launch in self.launches if launch.instruction == instruction)

    def find(self, instruction: str, byte_offsets: Sequence[int], active_mask: int = FULL_MASK) -> Launch:
        """The launch of exactly this access. Raises `UnknownRecord` if it was not among those recorded."""
        wanted = tuple(whole("find: byte_offsets", offset, UnknownRecord) for offset in byte_offsets)
        for launch in self.of(instruction):
            if launch.byte_offsets == wanted and launch.active_mask == active_mask:
                return launch
        raise UnknownRecord(
            f"{self.name}: {instruction} with byte offsets {wanted[:4]}.. and mask 0x{active_mask:08x} was"
            f" not recorded. {len(self.of(instruction))} launches of it were: see .of({instruction!r})."
        )


@cache
def counter_table(gpu: str, name: str) -> CounterTable:
    """Read a counter table. Raises `UnknownRecord` with the records there are.

    >>> counter_table("h200", "shared_wavefronts").of("ld.shared.b32")[0].counters["wavefronts"] > 0
    True
    """
    rows = csv.DictReader(_read(gpu, f"{name}.csv").splitlines())
    return CounterTable(name, _provenance(gpu, name), tuple(_launch(row) for row in rows))


def _launch(row: dict[str, str]) -> Launch:
    offsets = {key: tuple(map(int, row.get(key, "").split())) for key in ("byte_offsets", "source_offsets")}
    counted = {
        key: count for key, count in row.items() if key not in (*offsets, "instruction", "active_mask")
    }
    counters = {key: int(count) for key, count in counted.items() if count}
    return Launch(
        row["instruction"], int(row["active_mask"], 16), **offsets, counters=MappingProxyType(counters)
    )


@dataclass(frozen=True)
class Record:
    """The figures of one topic's measurements on one GPU: `tables` maps a name to its rows."""

    slug: str
    provenance: Provenance
    tables: Mapping[str, tuple[Mapping[str, Any], ...]]

    def rows(self, name: str) -> tuple[Mapping[str, Any], ...]:
        """The rows of one table. Raises `UnknownRecord` with the names there are."""
        if name not in self.tables:
            raise UnknownRecord(f"{self.slug}: no table {name!r}; it has {', '.join(sorted(self.tables))}.")
        return self.tables[name]


@cache
def record(gpu: str, slug: str) -> Record:
    """Read an experiment, e.g. `record("h200", "timing")`. Raises `UnknownRecord` with what there is."""
    content = json.loads(_read(gpu, f"{slug}.json"))
    stated = content.pop("provenance", None)
    tables = {name: tuple(MappingProxyType(row) for row in rows) for name, rows in content.items()}
    return Record(slug, Provenance(**stated) if stated else _provenance(gpu, slug), MappingProxyType(tables))


def recorded_gpus(home: Traversable = _HOME) -> tuple[str, ...]:
    """The GPUs that there are experiments of, sorted."""
    if not home.is_dir():
        return ()
    return tuple(sorted(gpu.name for gpu in home.iterdir() if gpu.is_dir() and any(_experiments_in(gpu))))


def recorded_topics(gpu: str, home: Traversable = _HOME) -> tuple[str, ...]:
    """The topics whose experiments were timed on this GPU, sorted; none if there is no such GPU."""
    return tuple(sorted(_experiments_in(home / gpu))) if (home / gpu).is_dir() else ()


def _experiments_in(folder: Traversable) -> Iterator[str]:
    """The slugs of the files that `lanewise measure` wrote: they state their own provenance."""
    for entry in folder.iterdir():
        slug = entry.name.removesuffix(".json")
        if entry.name.endswith(".json") and not slug.endswith(".counters"):
            content = json.loads(entry.read_text(encoding="utf-8"))
            if isinstance(content, dict) and "experiments" in content:
                yield slug


def code_hash(kernel: Callable) -> str:
    """A hash of what a compiler sees of a kernel, its comments and docstring left out: 16 hexadecimal digits.

    A record keeps it, so that a kernel which has changed since it was measured makes the record stale.
    """
    return _digest(ast.unparse(_tree(kernel)))


def kernel_hash(kernel: Any) -> str:
    """A hash of all that decides what a kernel does: 16 hexadecimal digits.

    Unlike `code_hash` it covers the values that the code takes from outside: module constants, what a
    factory closed over, and the device functions it calls, with what they use in turn. Functions of
    `lanewise.ptx` count by name.
    """
    parts: dict[int, str] = {}
    _describe(kernel, parts)
    return _digest("\n".join(sorted(parts.values())))


def _describe(kernel: Any, parts: dict[int, str]) -> None:
    """Add what one function is made of to `parts`, and so on for the functions it calls."""
    function = getattr(kernel, "py_func", kernel)
    if id(function) in parts:
        return
    parts[id(function)] = ""
    tree = _tree(function)
    names = sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
    inner = inspect.getclosurevars(function).nonlocals
    found = {used: inner.get(used, function.__globals__.get(used, _ABSENT)) for used in names}
    values = [f"{used}={_described(value, parts)}" for used, value in found.items() if value is not _ABSENT]
    parts[id(function)] = "\n".join([ast.unparse(tree), *values])


def _described(value: Any, parts: dict[int, str]) -> str:
    if callable(function := getattr(value, "py_func", value)) and inspect.isfunction(function):
        if not function.__module__.startswith("lanewise.ptx"):
            _describe(function, parts)
        return f"{function.__module__}.{function.__qualname__}"
    if inspect.ismodule(value) or isinstance(value, type):
        return value.__name__
    return repr(value)


def _tree(kernel: Any) -> ast.stmt:
    """The syntax tree of a function without its docstring."""
    function = ast.parse(textwrap.dedent(inspect.getsource(getattr(kernel, "py_func", kernel)))).body[0]
    if isinstance(function, ast.FunctionDef) and ast.get_docstring(function):
        function.body = function.body[1:]
    return function


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _provenance(gpu: str, name: str) -> Provenance:
    stated = json.loads(_read(gpu, _PROVENANCE))
    methods = stated.pop("methods")
    return Provenance(**stated, method=methods.get(name, methods["*"]))


def _read(gpu: str, file: str) -> str:
    if file != _PROVENANCE and f"{gpu}/{file}" not in _there_are():
        raise UnknownRecord(f"No record {file!r} of {gpu!r}. There are: {', '.join(_there_are())}.")
    return (_HOME / gpu / file).read_text(encoding="utf-8")


def _there_are() -> list[str]:
    gpus = [entry for entry in _HOME.iterdir() if entry.is_dir()]
    return sorted(
        f"{gpu.name}/{entry.name}"
        for gpu in gpus
        for entry in gpu.iterdir()
        if entry.name.endswith((".csv", ".json")) and entry.name != _PROVENANCE
    )
