"""Random kernels that are right by construction: no race, no index out of range, no number that overflows a float.

A program is a seed. `generate(seed)` writes the same source for it every time: device functions, then a kernel that
alternates between phases. In a writing phase a thread writes its own slots of shared memory; then all meet at a
barrier; in a reading phase it reads anybody's slots. Between barriers the control flow is free: nested `if`, `for`,
`while`, `break`, `continue`, at the end `return`.

Two restrictions make NumPy's, numba's and the oracle's arithmetic agree bit by bit:
- Each variable has one type, because every assignment casts to it. (numba joins the types of a variable over all
  paths, which a thread that runs alone cannot see.)
- Floats stay small: assignments clamp to +-1000, integers enter float arithmetic modulo 1000, divisors are positive.
  Integers may wrap.

With `plain=True` only int64, float64 and operations that mean the same to Python, NumPy and numba appear, so that
numba's simulator can run the program too.
"""

from __future__ import annotations

import importlib.util
import itertools
import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HEADER = """import math

import numpy as np
from numba import cuda

CODES = (3, -1, 41, 5, -9)
TABLE = np.array([7, 0, -3, 12, 5, 1, 99])


@cuda.jit(device=True)
def pick(array, place):
    if place < 0:
        place = -place
    return array[place % array.size]

"""
LARGE = (2**31 - 1, 10**12 + 7, -(2**40) - 3, 2**62 + 1)  # numbers that show a type that is too narrow
SLOTS = 4
ACCUMULATORS = 8
BLOCKS = ((32,), (33,), (64,), (8, 4), (16, 3), (4, 3, 2), (5, 7), (7,), (40,))
GRIDS = ((1,), (1,), (2,), (1, 2))
SOURCES: dict[str, tuple[type, tuple[int, ...]]] = {
    "longs": (np.int64, (41,)),
    "doubles": (np.float64, (5, 7)),
    "ints": (np.int32, (37,)),
    "shorts": (np.int16, (3, 11)),
    "bytes_": (np.uint8, (29,)),
    "words": (np.uint32, (31,)),
    "singles": (np.float32, (6, 8)),
}
PLAIN_SOURCES = ("longs", "doubles")
FLOAT_SOURCES = ("doubles", "singles")
UNSIGNED_SOURCES = ("bytes_", "words")

# The grammar. I, F, B and C stand for smaller expressions (see `_Writer.expand`).
COMPARISONS = (
    *(f"{kind} {comparison} {kind}" for kind in "IF" for comparison in ("<", "<=", ">", ">=", "==", "!=")),
    "(I) % {2..5} == {0..2}",
    "0 <= I < {1..40}",
)
FORMS = {
    "I": (
        *(f"(I {operator} I)" for operator in "+-&|^"),
        *("(I % {1..50})", "(I // {1..9})", "-I", "~I", "(I >> {0..8})", "min(I, I)", "max(I, I)", "abs(I)"),
        *("(np.int64(I) if C else np.int64(I))", "int(B)"),
    ),
    "F": (
        *(f"(F {operator} F)" for operator in "+-*"),
        *("(F / (abs(F) + 1.0))", "-F", "min(F, F)", "max(F, F)", "abs(F)", "math.sqrt(abs(F))", "F ** 2"),
        *("(F + (I) % 1000)", "(F * ((I) % 1000))", "float((I) % 1000)"),
        "(np.float64(F) if C else np.float64(F))",
    ),
    "C": (
        *COMPARISONS,
        "(C and C)",
        "(C or C)",
        "not C",
        "(C and C and C)",
        "(C or C or C)",
        "(C and C or not C)",
    ),
}
PLAIN_FORMS: dict[str, tuple[str, ...]] = {"I": ("((I) % 100 * {0..9})",), "F": (), "C": ()}
TYPED_FORMS: dict[str, tuple[str, ...]] = {
    "I": (
        *("(I * I)", "(I << {0..8})", "(I << ((I) & 7))", "(I ** 2)", "cuda.popc(np.int32(I))"),
        *("np.int32(I)", "np.int16(I)", "np.int64(np.uint8(I))", "np.int64(np.uint32(I))"),
    ),
    "F": (
        *("np.float32(F)", "np.float32((I) % 1000)", "(np.float32(F) * np.float32(0.5))"),
        *("math.floor(F)", "((I) % 1000 / {1..9})", "np.float32(1) / (abs(np.float32(F)) + np.float32(1))"),
    ),
    "C": (),
}
_PLACE = re.compile(r"\b[IFBC]\b|\{(?P<low>\d+)\.\.(?P<high>\d+)\}")


@dataclass(frozen=True)
class Program:
    """A generated kernel: its source and its launch. `arguments()` builds fresh arrays, the same every time."""

    seed: int
    plain: bool
    source: str
    grid: tuple[int, ...]
    block: tuple[int, ...]

    def arguments(self) -> tuple[Any, ...]:
        """Sources in various layouts, then outputs full of a poison value, then accumulators of zeros."""
        rng = np.random.default_rng(self.seed)
        n_threads = int(np.prod(self.grid) * np.prod(self.block))
        names = PLAIN_SOURCES if self.plain else tuple(SOURCES)
        sources = [_source_array(rng, *SOURCES[name]) for name in names]
        outputs = [
            np.full((n_threads, SLOTS), 77, np.int64),
            np.full((n_threads, SLOTS), 77, np.float64 if self.plain else np.float32),
            np.full((SLOTS, n_threads), 77, np.float64),
        ]
        return (*sources, *outputs, np.zeros(ACCUMULATORS, np.int64), int(rng.integers(2, 6)))


def _source_array(rng: np.random.Generator, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    """Random values, as a plain array or as a view with strides, an offset or another order of its axes."""
    wide = tuple(2 * n + 3 for n in shape)
    whole = rng.integers(0 if np.dtype(dtype).kind == "u" else -100, 100, wide)
    if dtype is np.int64:
        whole[whole % 3 == 0] *= 10**9 + 7  # beyond int32, so that a type that is too narrow shows
    array: np.ndarray = (whole / 8).astype(dtype) if np.dtype(dtype).kind == "f" else whole.astype(dtype)
    match rng.integers(4):
        case 0:
            return array[tuple(slice(0, 2 * n, 2) for n in shape)]
        case 1:
            return array[tuple(slice(n, 0, -1) for n in shape)]
        case 2:
            return np.asfortranarray(array[tuple(slice(3, 3 + n) for n in shape)])
        case _:
            return np.ascontiguousarray(array[tuple(slice(n) for n in shape)])


def generate(seed: int, plain: bool = False) -> Program:
    """Write the program of a seed."""
    return _Writer(seed, plain).program()


def load(source: str, folder: Path, name: str) -> Any:
    """Write a source to a module file, so that `inspect.getsource` finds it, and return its `kernel`."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.kernel


class _Writer:
    """Writes one program. `shared` says what may be done with the shared arrays now: "read", "own" or nothing."""

    def __init__(self, seed: int, plain: bool) -> None:
        self.rng = random.Random(f"{seed} {plain}")
        self.seed, self.plain = seed, plain
        self.block = self.rng.choice(BLOCKS)
        self.grid = self.rng.choice(GRIDS)
        self.n_threads = int(np.prod(self.block))
        self.lines: list[str] = []
        self.depth = 0
        self.ints = ["a", "b"] if plain else ["a", "b", "h"]
        self.floats = ["x", "y"] if plain else ["x", "y", "u", "v"]
        self.sources = PLAIN_SOURCES if plain else tuple(SOURCES)
        self.loop_variables: list[str] = []
        self.loops = 0
        self.shared = ""
        self.own_slot = "t"
        self.fresh = itertools.count()
        self.functions: list[tuple[str, str]] = []
        self.memory = True
        self.shared_accumulators = True

    def program(self) -> Program:
        for kind in self.rng.sample("IF", self.rng.randrange(3)):
            self.device_function(kind)
        self.kernel()
        source = HEADER + "\n".join(self.lines) + "\n"
        return Program(self.seed, self.plain, source, self.grid, self.block)

    # --- structure --------------------------------------------------------------------------------------------------

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def indented(self, head: str) -> Iterator[None]:
        self.emit(head)
        self.depth += 1
        yield
        self.depth -= 1

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def device_function(self, kind: str) -> None:
        """A function of an integer and a float, with early returns of one type, that touches no memory."""
        name = "whole" if kind == "I" else "real"
        saved = self.ints, self.floats
        self.ints, self.floats, self.memory = ["p"], ["q"], False
        self.lines.append("")
        self.emit("@cuda.jit(device=True)")
        with self.indented(f"def {name}(p, q):"):
            template = "np.int64(I)" if kind == "I" else "np.float64(B)"
            with self.indented(f"if {self.condition(1)}:"):
                self.emit("return " + self.expand(template, 3))
            with self.indented(f"for k in range({self.rng.randrange(1, 4)}):"):
                self.loop_variables.append("k")
                with self.indented(f"if {self.condition(1)}:"):
                    self.emit("return " + self.expand(template, 3))
                self.loop_variables.pop()
            self.emit("return " + self.expand(template, 3))
        (self.ints, self.floats), self.memory = saved, True
        self.functions.append((name, kind))
        self.lines.append("")

    def kernel(self) -> None:
        names = ", ".join((*self.sources, "out_i", "out_f", "out_d", "sums", "n"))
        self.lines.append("")
        self.emit("@cuda.jit")
        with self.indented(f"def kernel({names}):"):
            self.prologue()
            for _ in range(self.rng.randrange(1, 3)):
                self.phase()
            self.shared = ""
            self.emit("cuda.syncthreads()")
            with self.indented(f"for k in range(t, {ACCUMULATORS}, {self.n_threads}):"):
                self.emit("cuda.atomic.add(sums, k // 4 * 4, m[k])")
            self.shared_accumulators = False
            if self.chance(0.3):
                with self.indented(f"if {self.condition(2)}:"):
                    self.emit("return")
                self.statements(2, 2)
            self.epilogue()

    def prologue(self) -> None:
        width, height = (*self.block, 1)[:2]
        self.emit(f"t = (cuda.threadIdx.z * {height} + cuda.threadIdx.y) * {width} + cuda.threadIdx.x")
        self.emit(f"i = (cuda.blockIdx.y * cuda.gridDim.x + cuda.blockIdx.x) * {self.n_threads} + t")
        self.emit("gx, gy = cuda.grid(2)")
        self.emit(f"m = cuda.shared.array({ACCUMULATORS}, np.int64)")
        self.emit("p = cuda.local.array(4, np.int64)")
        self.emit("table = cuda.const.array_like(TABLE)")
        self.emit(f"s = cuda.shared.array({self.n_threads}, np.int64)")
        self.emit(
            f"w = cuda.shared.array(({self.n_threads}, 3), np.{'float64' if self.plain else 'float32'})"
        )
        casts = {"a": "int64", "b": "int64", "h": "int32", "u": "float32", "v": "float32"}
        for start, variable in enumerate((*self.ints, *self.floats)):
            self.emit(f"{variable} = np.{casts.get(variable, 'float64')}({start} - t % 7)")
        self.emit("c = t % 3 == 1")
        for slot in range(4):
            self.emit(f"p[{slot}] = t - {slot}")
        with self.indented(f"for k in range(t, {ACCUMULATORS}, {self.n_threads}):"):
            self.emit("m[k] = k")
        self.emit("cuda.syncthreads()")

    def epilogue(self) -> None:
        for slot, variable in enumerate(self.ints):
            self.emit(f"out_i[i, {slot}] = {variable}")
        for slot, variable in enumerate(self.floats):
            array = "out_f[i, {}]" if self.chance(0.5) else "out_d[{}, i]"
            self.emit(f"{array.format(slot)} = {variable}")

    def phase(self) -> None:
        """Write own slots, meet, read any slot, meet; sometimes in a loop that is the same for all threads."""
        if self.chance(0.3):
            variable = f"r{next(self.fresh)}"
            with self.indented(f"for {variable} in range({self.rng.choice(['2', '3', 'n'])}):"):
                self.loop_variables.append(variable)
                self.write_and_read()
                self.loop_variables.pop()
        else:
            self.write_and_read()

    def write_and_read(self) -> None:
        turn = self.rng.randrange(self.n_threads)
        self.own_slot = self.rng.choice(
            ["t", f"{self.n_threads - 1} - t", f"(t + {turn}) % {self.n_threads}"]
        )
        self.shared = "write"
        self.emit(f"s[{self.own_slot}] = {self.integer(2)}")
        for column in range(3):
            self.emit(f"w[{self.own_slot}, {column}] = {self.bounded(2)}")
        self.shared = "own"
        self.statements(self.rng.randrange(3), 2)
        self.emit("cuda.syncthreads()")
        self.shared = "read"
        self.statements(self.rng.randrange(1, 4), 3)
        if not self.plain and self.n_threads % 32 == 0 and self.chance(0.4):
            self.warp_operation()
        self.emit("cuda.syncthreads()")
        self.shared = ""

    def warp_operation(self) -> None:
        variable = self.rng.choice([*self.ints, *self.floats])
        source = {
            "shfl_xor_sync": str(self.rng.randrange(32)),
            "shfl_down_sync": str(self.rng.randrange(32)),
            "shfl_up_sync": str(self.rng.randrange(32)),
            "shfl_sync": f"({self.integer(1)}) % 32",
        }
        if self.chance(0.3):
            self.emit(f"a = np.int64(cuda.popc(cuda.ballot_sync(0xFFFFFFFF, {self.condition(1)})))")
        else:
            name = self.rng.choice(list(source))
            self.emit(f"{variable} = cuda.{name}(0xFFFFFFFF, {variable}, {source[name]})")

    # --- statements -------------------------------------------------------------------------------------------------

    def statements(self, n: int, depth: int) -> None:
        for _ in range(max(n, 1)):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        simple = [
            self.assignment,
            self.augmented,
            self.store,
            self.atomic,
            self.swap,
            self.private,
            self.truth,
        ]
        nested = [self.branch, self.branch, self.for_loop, self.while_loop]
        if depth > 0 and self.chance(0.5):
            self.rng.choice(nested)(depth - 1)
        else:
            self.rng.choice(simple)()

    def assignment(self) -> None:
        self.assign(self.rng.choice([*self.ints, *self.floats]), depth=3)

    def assign(self, variable: str, depth: int) -> None:
        if variable in ("a", "b"):
            self.emit(f"{variable} = np.int64({self.integer(depth)})")
        elif variable == "h":
            self.emit(f"h = np.int32({self.integer(depth)})")
        elif variable in ("u", "v"):
            self.emit(f"{variable} = np.float32({self.bounded(depth)})")
        else:
            self.emit(f"{variable} = np.float64({self.bounded(depth)})")

    def augmented(self) -> None:
        """Only where the type of the variable cannot change: int64 and float64."""
        if self.chance(0.5):
            operator = self.rng.choice(
                ["+=", "-=", "^=", "|=", "&="] if self.plain else ["+=", "-=", "*=", "^=", "|=", "&="]
            )
            self.emit(f"{self.rng.choice(['a', 'b'])} {operator} {self.integer(1)}")
        else:
            self.emit(f"{self.rng.choice(['x', 'y'])} {self.rng.choice(['+=', '-='])} {self.bounded(1)}")

    def store(self) -> None:
        slot = f"({self.integer(1)}) % {SLOTS}"
        choices = [
            lambda: self.emit(f"out_i[i, {slot}] = {self.integer(2)}"),
            lambda: self.emit(f"out_f[i, {slot}] = {self.bounded(2)}"),
            lambda: self.emit(f"out_d[{slot}, i] = {self.bounded(2)}"),
            lambda: self.emit(f"out_d[-1 - {slot}, i] += {self.bounded(1)}"),
        ]
        if self.shared == "own":
            column = f"({self.integer(1)}) % 3"
            choices += [
                lambda: self.emit(f"s[{self.own_slot}] = {self.integer(2)}"),
                lambda: self.emit(f"w[{self.own_slot}, {column}] = {self.bounded(2)}"),
                lambda: self.emit(f"s[{self.own_slot}] += {self.integer(1)}"),
            ]
        self.rng.choice(choices)()

    def atomic(self) -> None:
        """Nobody looks at the old value, so the order does not matter. One operation per accumulator."""
        place = self.rng.randrange(ACCUMULATORS)
        operation = ("add", "max", "min", "add")[place % 4]
        value = f"({self.integer(1)}) % 1000"
        target = "m" if self.shared_accumulators and self.chance(0.5) else "sums"
        self.emit(f"cuda.atomic.{operation}({target}, {place}, {value})")

    def private(self) -> None:
        """Memory of the thread, and a view of one row that is indexed later."""
        # Inside of branches the tracer refuses views that differ from lane to lane.
        if self.chance(0.6) or self.plain or self.depth > 1:
            self.emit(f"p[({self.integer(1)}) % 4] = {self.integer(2)}")
        else:
            row = f"row{next(self.fresh)}"
            self.emit(f"{row} = shorts[({self.integer(1)}) % 3]")
            self.emit(f"a = np.int64({row}[({self.integer(1)}) % 11] + len({row}))")

    def truth(self) -> None:
        self.emit(f"c = {self.condition(2)}")

    def swap(self) -> None:
        first, second = self.rng.choice([("a", "b"), ("x", "y")])
        self.emit(f"{first}, {second} = {second}, {first}")

    def branch(self, depth: int) -> None:
        with self.indented(f"if {self.condition(2)}:"):
            self.statements(self.rng.randrange(1, 3), depth)
            self.leave_loop()
        if self.chance(0.3):
            with self.indented(f"elif {self.condition(2)}:"):
                self.statements(1, depth)
                self.leave_loop()
        if self.chance(0.5):
            with self.indented("else:"):
                self.statements(self.rng.randrange(1, 3), depth)

    def leave_loop(self) -> None:
        if self.loops and self.chance(0.25):
            self.emit(self.rng.choice(["break", "continue"]))

    def for_loop(self, depth: int) -> None:
        variable = f"k{next(self.fresh)}"
        bounds = self.rng.choice(
            [
                f"{self.rng.randrange(5)}",
                f"({self.integer(1)}) % 4",
                f"t % 3, {self.rng.randrange(3, 6)}",
                "3, -2, -2",
                f"({self.integer(1)}) % 5, -1, -1 - t % 2",
                "n",
            ]
        )
        items = "(5, -2, 7)" if self.chance(0.15) else f"range({bounds})"
        with self.indented(f"for {variable} in {items}:"):
            self.loop_body(variable, depth)

    def while_loop(self, depth: int) -> None:
        variable = f"k{next(self.fresh)}"
        self.emit(f"{variable} = np.int64(({self.integer(1)}) % 5)")
        guard = f" and {self.condition(1)}" if self.chance(0.3) else ""
        head = "while True:" if self.chance(0.3) else f"while {variable} > 0{guard}:"
        with self.indented(head):
            self.emit(f"{variable} -= 1")
            if head == "while True:":
                with self.indented(f"if {variable} < 0:"):
                    self.emit("break")
            self.loop_body(variable, depth)

    def loop_body(self, variable: str, depth: int) -> None:
        self.loop_variables.append(variable)
        self.loops += 1
        self.statements(self.rng.randrange(1, 3), depth)
        self.loops -= 1
        self.loop_variables.pop()

    # --- expressions ------------------------------------------------------------------------------------------------

    def expand(self, template: str, depth: int) -> str:
        """Fill a template: I and F are smaller expressions, B a clamped F, C a condition, {2..9} a number."""

        def fill(match: re.Match[str]) -> str:
            if match["low"]:
                return str(self.rng.randrange(int(match["low"]), int(match["high"])))
            return self.expression(match[0], depth - 1)

        return _PLACE.sub(fill, template)

    def expression(self, kind: str, depth: int) -> str:
        """An integer (I), float (F), clamped float (B) or condition (C)."""
        if kind == "B":
            return f"min(max({self.expression('F', depth)}, -1000.0), 1000.0)"
        if kind != "C" and (depth <= 0 or self.chance(0.2)):
            return self.rng.choice(self.int_atoms() if kind == "I" else self.float_atoms())()
        templates = [*FORMS[kind], *(PLAIN_FORMS if self.plain else TYPED_FORMS)[kind]]
        if kind == "C" and depth <= 0:
            templates = list(COMPARISONS)
        if kind == "C" and self.memory:
            templates += ["c", "not c"]
        templates += [
            f"{name}(np.int64(I), np.float64(B))" for name, result in self.functions if result == kind
        ]
        return self.expand(self.rng.choice(templates), depth)

    def integer(self, depth: int) -> str:
        """An expression of any integer type."""
        return self.expression("I", depth)

    def bounded(self, depth: int) -> str:
        """A float expression between -1000 and 1000."""
        return self.expression("B", depth)

    def condition(self, depth: int) -> str:
        return self.expression("C", depth)

    def int_atoms(self) -> list[Callable[[], str]]:
        rng = self.rng
        atoms: list[Callable[[], str]] = [
            lambda: rng.choice(self.ints),
            lambda: str(rng.randrange(-9, 40)),
            lambda: str(rng.randrange(-9, 40) if self.plain or rng.random() < 0.7 else rng.choice(LARGE)),
            lambda: rng.choice(self.loop_variables or self.ints),
        ]
        if self.memory:
            atoms += [
                lambda: rng.choice(["t", "i", "n", "gx", "gy", "cuda.threadIdx.x", "cuda.blockIdx.x"]),
                lambda: self.load(rng.choice([name for name in self.sources if name not in FLOAT_SOURCES])),
                lambda: self.shared_load("s") or "t",
                lambda: f"p[({rng.choice(self.ints)}) % 4]",
                lambda: f"table[({rng.choice(self.index_atoms())}) % 7]",
                lambda: f"CODES[({rng.choice(self.index_atoms())}) % 5]",
                lambda: f"pick(longs, ({rng.choice(self.index_atoms())}) % 1000)",
            ]
        return atoms

    def float_atoms(self) -> list[Callable[[], str]]:
        rng = self.rng
        atoms: list[Callable[[], str]] = [
            lambda: rng.choice(self.floats),
            lambda: rng.choice(["0.5", "2.0", "0.1", "-3.25", "1e-3"]),
        ]
        if self.memory:
            atoms += [
                lambda: self.load(rng.choice([name for name in self.sources if name in FLOAT_SOURCES])),
                lambda: self.shared_load("w") or "0.25",
            ]
        return atoms

    def load(self, name: str) -> str:
        """A read of a source array, at a place that is inside whatever the index is."""
        indices = [f"({self.rng.choice(self.index_atoms())}) % {extent}" for extent in SOURCES[name][1]]
        if self.chance(0.15):
            indices[0] = f"-1 - {indices[0]}"
        value = f"{name}[{', '.join(indices)}]"
        # uint64, which unsigned arithmetic leads to, does not mix with int64 in the same way in all numba versions.
        return f"np.int64({value})" if name in UNSIGNED_SOURCES else value

    def index_atoms(self) -> list[str]:
        factor = self.rng.randrange(1, 9)
        return [
            "t",
            "i",
            "gx",
            "gy",
            f"t * {factor}",
            f"i + {factor}",
            *self.ints,
            *self.loop_variables,
            f"a + t * {factor}",
        ]

    def shared_load(self, name: str) -> str:
        """A read of shared memory that is allowed now, or nothing."""
        if self.shared not in ("read", "own"):
            return ""
        any_slot = f"({self.rng.choice(self.index_atoms())}) % {self.n_threads}"
        slot = any_slot if self.shared == "read" else self.own_slot
        return f"s[{slot}]" if name == "s" else f"w[{slot}, {self.rng.randrange(3)}]"
