"""A GPU for tests of the measurement: kernels are plain functions on NumPy arrays, times are made up."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lanewise.experiments import Case, Ceiling, Experiment, Problem
from lanewise.measure.protocol import Work

TIMES = {"double": 10.0, "double_slowly": 40.0}  # microseconds by kernel
COPY_US, LIBRARY_US = 8.0, 5.0


class Fault(Exception):
    """The GPU is lost for this process."""

    is_fatal = True


class FakeGpu:
    """`lanewise.measure.protocol.Gpu` on NumPy arrays."""

    def __init__(self) -> None:
        self.us_of: dict[int, float] = {}

    def put(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def poisoned(self, array: np.ndarray) -> np.ndarray:
        held = np.empty(array.shape, array.dtype)
        self.poison(held)
        return held

    def poison(self, held: np.ndarray) -> None:
        held.view(np.uint8)[...] = 255

    def restore(self, held: np.ndarray, source: np.ndarray) -> None:
        held[...] = source

    def get(self, held: np.ndarray) -> np.ndarray:
        return held.copy()

    def compile(self, case: Case, arguments: Sequence[Any]) -> None:
        if case.name == "does_not_compile":
            raise TypeError("no such thing")

    def n_far(self, held: np.ndarray, expected: np.ndarray, problem: Problem) -> int:
        return int(np.count_nonzero(~np.isclose(held, expected, atol=0)))

    def launcher(self, case: Case, arguments: Sequence[Any]) -> Callable[[], None]:
        self.compile(case, arguments)

        def launch() -> None:
            case.kernel(*arguments)

        self.us_of[id(launch)] = TIMES.get(case.name, 20.0)
        return launch

    def resources(self, case: Case, arguments: Sequence[Any]) -> dict[str, int]:
        return {"registers": 16, "blocks_per_sm": 8}

    def wait(self) -> None:
        pass

    def copier(self, n_bytes: int) -> Callable[[], None]:
        def copy() -> None:
            pass

        self.us_of[id(copy)] = COPY_US
        return copy

    def load_library(self, kind: str) -> None:
        pass

    def library(self, kind: str, arrays: Sequence[Any]) -> dict[str, Callable[[], Any]]:
        def product() -> Any:
            return arrays[0] * 2

        def slower() -> Any:
            return arrays[0] + arrays[0]

        self.us_of[id(product)], self.us_of[id(slower)] = LIBRARY_US, 2 * LIBRARY_US
        return {f"slow.{kind}": slower, f"fake.{kind}": product}

    def sample(self, works: Sequence[Work], n: int) -> list[list[float]]:
        samples: list[list[float]] = [[] for _ in works]
        for i in range(n):
            for us, work in zip(samples, works, strict=True):
                work.before()
                work.run()
                us.append(self.us_of[id(work.run)] + i % 3)
        return samples

    def clock_mhz(self) -> int:
        return 1980

    def free(self) -> None:
        pass


def make_gpu() -> FakeGpu:
    """What a worker process calls."""
    return FakeGpu()


FACTOR = 2


def double(src: np.ndarray, dst: np.ndarray) -> None:
    dst[...] = FACTOR * src


def double_slowly(src: np.ndarray, dst: np.ndarray) -> None:
    dst[...] = src
    dst += src


def forget_the_last(src: np.ndarray, dst: np.ndarray) -> None:
    dst[:-1] = FACTOR * src[:-1]


def spoil_the_input(src: np.ndarray, dst: np.ndarray) -> None:
    dst[...] = FACTOR * src
    src[0] = 0


def does_not_compile(src: np.ndarray, dst: np.ndarray) -> None:
    pass


def raise_an_error(src: np.ndarray, dst: np.ndarray) -> None:
    raise ValueError("bad kernel")


def take_the_gpu_down(src: np.ndarray, dst: np.ndarray) -> None:
    raise Fault("an illegal memory access was encountered")


def end_the_process(src: np.ndarray, dst: np.ndarray) -> None:
    os._exit(7)


def hang(src: np.ndarray, dst: np.ndarray) -> None:
    time.sleep(600)


def write_cycles(dst: np.ndarray, cycles: np.ndarray, src: np.ndarray) -> None:
    dst[...] = FACTOR * src
    cycles[...] = [20, 24, 28, 32]


def add_one(total: np.ndarray) -> None:
    total += 1


def doubled(n: int) -> Problem:
    """Double n floats."""

    def inputs(rng: np.random.Generator) -> dict[str, Any]:
        return {"src": 1 + rng.random(n, np.float32)}

    return Problem(f"double {n}", inputs, lambda values: {"dst": 2 * values["src"]})


def with_cycles(n: int) -> Problem:
    """The same, by a kernel that says how long it took."""
    plain = doubled(n)

    def outputs(values: Any) -> dict[str, np.ndarray]:
        return {**plain.outputs(values), "cycles": np.zeros(4, np.int64)}

    return Problem(f"double {n} in cycles", plain.inputs, outputs)


def counted_up() -> Problem:
    """Add 1 to an array in place."""
    return Problem(
        "count",
        lambda rng: {"total": np.full(4, 5.0)},
        lambda values: {"total": values["total"] + 1},
    )


def case(kernel: Any, n: int = 64, **more: Any) -> Case:
    return Case(kernel.__name__, kernel, doubled(n), n, 1, useful_bytes=8 * n, **more)


def good() -> tuple[Experiment, ...]:
    """Two experiments without a fault."""
    return (
        Experiment(
            "E-90",
            "Which is faster?",
            timed=(case(double, 256), case(double_slowly, 256), case(double, 1024)),
            ceiling=Ceiling("device_copy"),
            speed="speed:double",
        ),
        Experiment(
            "E-91",
            "How many cycles?",
            timed=(
                Case("cycles", write_cycles, with_cycles(64), 1, 4, reads="cycles", unit="cycles"),
                Case("in place", add_one, counted_up(), 1, 4),
            ),
            ceiling=Ceiling("sum"),
        ),
    )


def with_faults() -> tuple[Experiment, ...]:
    """The same experiments, with every kind of fault among the cases of the first."""
    faults = (
        raise_an_error, forget_the_last, spoil_the_input, does_not_compile, take_the_gpu_down, end_the_process,
        hang,
    )  # fmt: skip
    first, second = good()
    timed = (*first.timed, *(case(kernel, 256) for kernel in faults), case(double_slowly, 1024))
    return Experiment("E-90", first.question, timed=timed, ceiling=first.ceiling, speed=first.speed), second
