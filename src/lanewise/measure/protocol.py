"""How one problem's cases are measured: checked first, then sampled in turn with their ceilings.

Nothing here knows a GPU: `Gpu` says what is asked of one, `lanewise.measure.gpu` has the real one, and tests
give their own.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lanewise.experiments import Case, Problem
from lanewise.measure.ceilings import DEVICE_COPY

CHUNK_ELEMS = 1 << 22  # compared at once; several threads compare chunks beside each other
SMALL_BYTES = 1 << 20  # inputs up to this size are checked to be left alone
LARGE_BYTES = 1 << 22  # outputs from this size on are compared on the GPU
SLOW_US = 20_000.0  # a launch above this gets fewer warm-ups


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


class WrongResult(Exception):
    """A kernel's output is not the reference; the text says where."""


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


def check(held: Held, case: Case, launch: Callable[[], None]) -> None:
    """Launch once on poisoned outputs and compare with the reference. Raises `WrongResult`."""
    problem = held.values.problem
    held.reset()
    launch()
    held.gpu.wait()
    for name, expected in held.values.outputs.items():
        if name != case.reads and name in case.parameters and not held.is_right(name):
            compare(name, held.gpu.get(held.outputs[name]), expected, problem)
    for name, array in held.inputs.items():
        given = held.values.inputs[name]
        if given.nbytes <= SMALL_BYTES and held.gpu.get(array).tobytes() != given.tobytes():
            raise WrongResult(
                f"the launch changes its input {name}. If it should, name {name} among the problem's outputs"
                " too: it is then restored before each launch."
            )


def compare(name: str, got: np.ndarray, expected: np.ndarray, problem: Problem) -> None:
    """Raise `WrongResult` with the first place where two arrays differ by more than the tolerances."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise WrongResult(
            f"{name} is {got.dtype}{got.shape}, the reference {expected.dtype}{expected.shape}."
        )
    if got.dtype.names:  # a record: field by field
        for field in got.dtype.names:
            compare(f"{name}.{field}", got[field], expected[field], problem)
        return
    flat, reference = got.reshape(-1), expected.reshape(-1)
    starts = range(0, flat.size, CHUNK_ELEMS)

    def wrong_in(start: int) -> np.ndarray:
        part = slice(start, start + CHUNK_ELEMS)
        return start + np.flatnonzero(~_close(flat[part], reference[part], problem))

    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        wrong = np.concatenate([np.zeros(0, np.int64), *pool.map(wrong_in, starts)])
    if wrong.size:
        first = np.unravel_index(int(wrong[0]), got.shape)
        place = ", ".join(str(int(axis)) for axis in first)
        raise WrongResult(
            f"{name} differs from the reference in {wrong.size:,} of {flat.size:,} elements, first at"
            f" [{place}]: got {flat[wrong[0]]}, expected {reference[wrong[0]]}."
        )


def _close(got: np.ndarray, expected: np.ndarray, problem: Problem) -> np.ndarray:
    relative, absolute = problem.relative_tolerance, problem.absolute_tolerance
    if not (relative or absolute):
        return np.asarray((got == expected) | ((got != got) & (expected != expected)))
    wide = np.complex128 if np.iscomplexobj(got) else np.float64
    error = np.abs(got.astype(wide) - expected.astype(wide))
    return np.asarray(error <= absolute + relative * np.abs(expected.astype(wide)))  # NaN is not close


Row = dict[str, Any]


@dataclass
class Measured:
    """One case on its way: what to launch, and the row of the record that comes of it."""

    case: Case
    row: Row
    work: Work | None = None
    first_us: float = 0.0

    def fail(self, error: BaseException) -> None:
        """Record the reason in place of a figure."""
        self.row["error"] = f"{type(error).__name__}: {error}"
        self.work = None


def measure_group(
    gpu: Gpu,
    values: Values,
    cases: Sequence[tuple[Case, str]],
    settings: Settings,
    on_case: Callable[[int], None] = lambda i: None,
) -> Iterator[Row]:
    """Measure cases of one problem, each given with the kind of its ceiling ("" for none).

    All are checked first; then those that are right are sampled in turn with the ceilings. Gives a row for
    each case, in order. `on_case(i)` is called when the check of case `i` begins. Errors of a case become its
    row's `error`; what the GPU cannot recover from is raised (`GpuFault` of the real one).
    """
    held = Held(gpu, values)
    measured = [Measured(case, {"label": case.label, "problem": case.problem.name}) for case, _ in cases]
    for i, one in enumerate(measured):
        on_case(i)
        _check_one(gpu, held, one, settings)
    on_case(len(cases))
    kinds = {kind for _, kind in cases if kind not in ("", DEVICE_COPY)}
    ceilings = {kind: gpu.library(kind, held.library_inputs) for kind in sorted(kinds)}
    compared = [case.useful_bytes for case, kind in cases if kind and not case.reads]
    copies = {n_bytes for n_bytes in compared if n_bytes}
    names = [f"{kind}:{name}" for kind, found in ceilings.items() for name in found]
    works = [Work(run) for found in ceilings.values() for run in found.values()]
    works += [Work(gpu.copier(n_bytes)) for n_bytes in sorted(copies)]
    timed = [one for one in measured if one.work]
    if timed:
        everything = [*works, *(one.work for one in timed if one.work)]
        gpu.sample(everything, _warm_ups(timed, settings))
        samples = gpu.sample(everything, settings.samples)
        sampled = dict(zip([*names, *sorted(copies)], samples, strict=False))
        clock = gpu.clock_mhz()
        for one, us in zip(timed, samples[len(works) :], strict=True):
            kind = next(kind for case, kind in cases if case is one.case)
            one.row.update(_figures(one.case, us, kind, sampled), clock_mhz=clock)
    yield from (one.row for one in measured)


def _check_one(gpu: Gpu, held: Held, one: Measured, settings: Settings) -> None:
    case = one.case
    try:
        arguments = held.arguments(case)
        launch = gpu.launcher(case, arguments)
        one.row.update(gpu.resources(case, arguments))
        check(held, case, launch)
        if case.reads:
            one.row.update(_readings(gpu, held, case, launch, settings))
            return
        one.work = Work(launch, held.renew)
        one.first_us = gpu.sample([one.work], 1)[0][0]
    except Exception as error:
        if getattr(error, "is_fatal", False):
            raise
        one.fail(error)


def _warm_ups(timed: Sequence[Measured], settings: Settings) -> int:
    slow = any(one.first_us > SLOW_US for one in timed)
    return min(3, settings.warm_ups) if slow else settings.warm_ups


def _readings(gpu: Gpu, held: Held, case: Case, launch: Callable[[], None], settings: Settings) -> Row:
    """Quartiles of what the kernel itself wrote, over all elements and launches."""
    work, read = Work(launch, held.reset), []
    for _ in range(settings.samples):
        gpu.sample([work], 1)
        read.append(gpu.get(held.outputs[case.reads]).astype(np.float64).reshape(-1))
    values = np.concatenate(read)
    if not np.isfinite(values).all() or (values < 0).any():
        raise WrongResult(f"{case.reads} should hold {case.unit}, and was not written everywhere.")
    quartiles = [round(float(value), 4) for value in np.quantile(values, (0.25, 0.5, 0.75))]
    return {"read": quartiles, "unit": case.unit, "n_samples": settings.samples}


def _figures(case: Case, us: list[float], kind: str, sampled: Mapping[Any, list[float]]) -> Row:
    """Times and rates of a case, and its ratio to the ceilings."""
    median = statistics.median(us)
    row: Row = {"us": quartiles(us), "n_samples": len(us)}
    row |= {"useful_bytes": case.useful_bytes, "flops": case.flops}
    if case.useful_bytes:
        row["gb_per_s"] = round(case.useful_bytes / median * 1e-3, 4)
    if case.flops:
        row["tflop_per_s"] = round(case.flops / median * 1e-6, 4)
    ceilings: dict[str, list[float]] = {}
    for name, times in sampled.items():
        if name == case.useful_bytes:
            ceilings["device copy"] = quartiles(times)
        elif isinstance(name, str) and kind and name.startswith(f"{kind}:"):
            ceilings[name.removeprefix(f"{kind}:")] = quartiles(times)
    row["ceilings"] = ceilings
    wanted = [name for name in ceilings if (name == "device copy") == (kind == DEVICE_COPY)]
    if kind and wanted:
        row["ceiling"] = min(wanted, key=lambda name: ceilings[name][1])
        row["ratio"] = round(ceilings[row["ceiling"]][1] / median, 4)
    return row


def quartiles(us: Sequence[float]) -> list[float]:
    """Lower quartile, median, upper quartile."""
    if len(us) == 1:
        return [round(us[0], 3)] * 3
    return [round(value, 3) for value in statistics.quantiles(us, n=4, method="inclusive")]
