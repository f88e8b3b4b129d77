"""Random statements: assignments, stores, atomics, and the control flow around them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.generator.expressions import Expressions
from tests.generator.grammar import ACCUMULATORS, SLOTS


class Statements(Expressions):
    """Writes statements line by line."""

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def indented(self, head: str) -> Iterator[None]:
        self.emit(head)
        self.depth += 1
        yield
        self.depth -= 1

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
