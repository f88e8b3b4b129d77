"""What is measured, as data: a problem, the launches that solve it, and the experiments they make up.

Three readers use the same `Case`: the tests trace it with no GPU and compare its output with the reference,
`lanewise.measure` times it, `lanewise.counters` profiles it and compares the counters with the trace.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Problem:
    """A computation of one size: its inputs, and the outputs that every right kernel gives.

    `inputs(rng)` makes fresh host arrays and numbers by name; `outputs(values)` computes the expected arrays
    from them, by name. The arrays a kernel writes are made from the expected ones, poisoned with NaN (or with
    -1 bytes for integers), so an element that nobody writes is found. An output that is also an input starts
    with the input's values.

    `name` names the computation and its size (`"transpose 1024x1024"`): cases of one name and the same
    functions share arrays.
    """

    name: str
    inputs: Callable[[np.random.Generator], Mapping[str, Any]]
    outputs: Callable[[Mapping[str, Any]], Mapping[str, np.ndarray]]
    relative_tolerance: float = 0.0
    absolute_tolerance: float = 0.0


@dataclass(frozen=True)
class Case:
    """One launch of one kernel.

    `label` says what distinguishes the case within its experiment (`"pad 1"`). The kernel's parameters are
    looked up by name: first in `scalars`, then among the problem's inputs and outputs. `useful_bytes` are
    those that any solution must move between the GPU and its memory, `flops` the operations the problem
    needs; 0 where the rate means nothing. `arithmetic` maps a total of the trace (`"shared.load.wavefronts"`,
    `"global_.store.sectors"`) to the number that pencil and paper give for it, which trace and hardware
    counters are compared with.

    `hazards` are the kinds of hazard that the case shows on purpose (`("shared_race",)`). `reads` names an
    output that holds the measurement: its values are in `unit` (cycles per access, say), and their median and
    quartiles over all elements and launches are recorded in place of a time. `profiled` asks for
    counters of a timed case at its full size: bytes of DRAM, hit rates, stalls.
    """

    label: str
    kernel: Any
    problem: Problem
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    dynamic_shared_bytes: int = 0
    scalars: Mapping[str, Any] = field(default_factory=dict)
    useful_bytes: int = 0
    flops: int = 0
    arithmetic: Mapping[str, int] = field(default_factory=dict)
    hazards: tuple[str, ...] = ()
    reads: str = ""
    unit: str = "us"
    profiled: bool = False

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(getattr(self.kernel, "py_func", self.kernel).__name__)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the kernel's parameters, in order."""
        return tuple(inspect.signature(getattr(self.kernel, "py_func", self.kernel)).parameters)

    def arguments(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The launch's arguments in order, out of `values` by name and the case's own scalars."""
        return tuple({**values, **self.scalars}[name] for name in self.parameters)


@dataclass(frozen=True)
class Ceiling:
    """What a rate is compared with, measured in the same run.

    `kind` is `"device_copy"` (a copy of `useful_bytes` by the driver), or the name of a library product that
    `lanewise.measure` knows how to call on the problem's inputs (`"matmul"`, `"sum"`, `"cumsum"`, `"fft"`,
    `"attention"`).
    """

    kind: str


@dataclass(frozen=True)
class Experiment:
    """Cases that are compared with each other, and the question they answer.

    `id` is the number in the list of experiments (`"E-04"`). `timed` cases are timed at sizes that fill a
    GPU; `counted` cases are profiled, traced and compared, so they are small. A case may be in both.
    `speed` names the row of the summary (`"speed:transpose"`) that the fastest case of `timed` fills.
    """

    id: str
    question: str
    timed: tuple[Case, ...] = ()
    counted: tuple[Case, ...] = ()
    ceiling: Ceiling | None = None
    speed: str = ""
