"""Random expressions: what the grammar says, over the variables and arrays that may be read at this point."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable

import numpy as np

from tests.generator.grammar import (
    BLOCKS,
    COMPARISONS,
    FLOAT_SOURCES,
    FORMS,
    GRIDS,
    LARGE,
    PLACE,
    PLAIN_FORMS,
    PLAIN_SOURCES,
    SOURCES,
    TYPED_FORMS,
    UNSIGNED_SOURCES,
)


class Expressions:
    """Writes expressions. `shared` says what may be done with the shared arrays now: "read", "own" or nothing."""

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

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def expand(self, template: str, depth: int) -> str:
        """Fill a template: I and F are smaller expressions, B a clamped F, C a condition, {2..9} a number."""

        def fill(match: re.Match[str]) -> str:
            if match["low"]:
                return str(self.rng.randrange(int(match["low"]), int(match["high"])))
            return self.expression(match[0], depth - 1)

        return PLACE.sub(fill, template)

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
