"""What a measurement asks of a GPU, and a problem's arrays on the host and on it.

Nothing here knows a GPU: `lanewise.measure.gpu` has the real one, and tests give their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lanewise.experiments import Case, Problem

LARGE_BYTES = 1 << 22  # outputs from this size on are compared on the GPU


@dataclass(frozen=True)
class Work:
    """Something to sample: `run` is timed, `before` (restoring what the last run changed) is not."""

    run: Callable[[], Any]
    before: Callable[[], Any] = lambda: None


class Gpu(Protocol):
    """What a measurement asks of a GPU. Arrays on it are opaque here."""

    def put(self, array: np.ndarray) -> Any:
        """Copy an array to the GPU."""

    def poisoned(self, array: np.ndarray) -> Any:
        """An array of this shape on the GPU, every byte of it 255."""

    def poison(self, held: Any) -> None:
        """Set every byte to 255: NaN as a float, -1 as an integer."""

    def restore(self, held: Any, source: Any) -> None:
        """Copy one array on the GPU into another."""

    def get(self, held: Any) -> np.ndarray:
        """Copy an array back."""

    def compile(self, case: Case, arguments: Sequence[Any]) -> Any:
        """Compile a case's kernel for arguments like these, which may be those of the host."""

    def n_far(self, held: Any, expected: Any, problem: Problem) -> int | None:
        """The elements of two arrays that differ by more than the tolerances; None if the host must compare
        them. May say too many, never too few."""

    def launcher(self, case: Case, arguments: Sequence[Any]) -> Callable[[], None]:
        """Something that launches the case on these arguments."""

    def resources(self, case: Case, arguments: Sequence[Any]) -> dict[str, int]:
        """Registers, shared and local bytes, resident blocks per SM of a case."""

    def wait(self) -> None:
        """Wait for everything launched; raises what went wrong."""

    def copier(self, n_bytes: int) -> Callable[[], None]:
        """Something that makes the driver read and write `n_bytes` in all: a copy of half of them."""

    def load_library(self, kind: str) -> None:
        """Load what products of this kind need, which takes seconds."""

    def library(self, kind: str, arrays: Sequence[Any]) -> dict[str, Callable[[], Any]]:
        """The library products of this kind that are installed, by name."""

    def sample(self, works: Sequence[Work], n: int) -> list[list[float]]:
        """Run the works in turn `n` times, with a cold L2 cache, and give the microseconds of each run."""

    def clock_mhz(self) -> int | None:
        """The SM clock seen while the last samples ran, if the driver says it."""

    def free(self) -> None:
        """Give back what nobody holds."""


@dataclass(frozen=True)
class Settings:
    """How much is sampled."""

    samples: int = 60
    warm_ups: int = 10


@dataclass(frozen=True)
class Values:
    """A problem's host arrays and numbers: inputs, and the outputs that every right kernel gives."""

    problem: Problem
    inputs: Mapping[str, Any]
    outputs: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, problem: Problem, seed: int | None = None) -> Values:
        """Make fresh random inputs and compute the reference."""
        inputs = problem.inputs(np.random.default_rng(seed))
        return cls(problem, inputs, problem.outputs(inputs))

    @property
    def arrays(self) -> list[np.ndarray]:
        """The input arrays, in the order in which the problem names them."""
        return [value for value in self.inputs.values() if isinstance(value, np.ndarray)]


class Held:
    """A problem's arrays on the GPU."""

    def __init__(self, gpu: Gpu, values: Values) -> None:
        self.gpu, self.values = gpu, values
        arrays = {name: value for name, value in values.inputs.items() if isinstance(value, np.ndarray)}
        numbers = {name: value for name, value in values.inputs.items() if name not in arrays}
        self.inputs = {name: gpu.put(array) for name, array in arrays.items() if name not in values.outputs}
        self.pristine = {name: gpu.put(array) for name, array in arrays.items() if name in values.outputs}
        self.outputs = {name: gpu.poisoned(array) for name, array in values.outputs.items()}
        self._expected: dict[str, Any] = {}
        self._by_name = {**numbers, **self.inputs, **self.outputs}

    def arguments(self, case: Case) -> tuple[Any, ...]:
        """The launch's arguments."""
        return case.arguments(self._by_name)

    @property
    def library_inputs(self) -> list[Any]:
        """The input arrays on the GPU in the problem's order."""
        both = {**self.inputs, **self.pristine}
        return [both[name] for name in self.values.inputs if name in both]

    def is_right(self, name: str) -> bool:
        """Whether the GPU finds an output equal to the reference; a small one is not looked at."""
        expected = self.values.outputs[name]
        if expected.nbytes < LARGE_BYTES:
            return False
        if name not in self._expected:
            self._expected[name] = self.gpu.put(expected)
        return self.gpu.n_far(self.outputs[name], self._expected[name], self.values.problem) == 0

    def reset(self) -> None:
        """Poison the outputs; those that are inputs as well get the input's values."""
        for name, held in self.outputs.items():
            if name in self.pristine:
                self.gpu.restore(held, self.pristine[name])
            else:
                self.gpu.poison(held)

    def renew(self) -> None:
        """Give arrays that a launch both reads and writes the input's values again."""
        for name, held in self.pristine.items():
            self.gpu.restore(self.outputs[name], held)
