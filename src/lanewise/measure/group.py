"""How one problem's cases are measured: checked first, then sampled in turn with their ceilings."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.experiments import Case
from lanewise.measure.ceilings import DEVICE_COPY
from lanewise.measure.checking import WrongResult, check
from lanewise.measure.protocol import Gpu, Held, Settings, Values, Work

SLOW_US = 20_000.0  # a launch above this gets fewer warm-ups
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
    cases: Sequence[Case],
    kind: str,
    settings: Settings,
    on_case: Callable[[int], None] = lambda i: None,
) -> Iterator[Row]:
    """Measure cases of one problem beside a ceiling of one kind ("" for none).

    All are checked first; then those that are right are sampled in turn with the ceilings. Gives a row for
    each case, in order. `on_case(i)` is called when the check of case `i` begins. Errors of a case become its
    row's `error`; what the GPU cannot recover from is raised (`GpuFault` of the real one).
    """
    held = Held(gpu, values)
    measured = [Measured(case, {"label": case.label, "problem": case.problem.name}) for case in cases]
    for i, one in enumerate(measured):
        on_case(i)
        _check_one(gpu, held, one, settings)
    on_case(len(cases))
    timed = [one for one in measured if one.work]
    if timed:
        ceilings = _ceilings(gpu, held, timed, kind)
        works = [*map(Work, ceilings.values()), *(one.work for one in timed if one.work)]
        gpu.sample(works, _warm_ups(timed, settings))
        samples = gpu.sample(works, settings.samples)
        sampled = dict(zip(ceilings, samples, strict=False))
        for one, us in zip(timed, samples[len(ceilings) :], strict=True):
            one.row.update(_figures(one.case, us, kind, sampled), clock_mhz=gpu.clock_mhz())
    yield from (one.row for one in measured)


def _ceilings(
    gpu: Gpu, held: Held, timed: Sequence[Measured], kind: str
) -> dict[str | int, Callable[[], Any]]:
    """What is sampled beside the cases: library products by name, copies by their bytes."""
    if not kind:
        return {}
    found: dict[str | int, Callable[[], Any]] = {}
    if kind != DEVICE_COPY:
        found.update(gpu.library(kind, held.library_inputs))
    for n_bytes in sorted({one.case.useful_bytes for one in timed} - {0}):
        found[n_bytes] = gpu.copier(n_bytes)
    return found


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


def _figures(case: Case, us: list[float], kind: str, sampled: Mapping[str | int, list[float]]) -> Row:
    """Times and rates of a case, and its ratio to the ceilings."""
    median = statistics.median(us)
    row: Row = {"us": quartiles(us), "n_samples": len(us)}
    row |= {"useful_bytes": case.useful_bytes, "flops": case.flops}
    if case.useful_bytes:
        row["gb_per_s"] = round(case.useful_bytes / median * 1e-3, 4)
    if case.flops:
        row["tflop_per_s"] = round(case.flops / median * 1e-6, 4)
    ceilings = {name: quartiles(times) for name, times in sampled.items() if isinstance(name, str)}
    compared = list(ceilings)
    if case.useful_bytes in sampled:
        ceilings["device copy"] = quartiles(sampled[case.useful_bytes])
        compared += ["device copy"] if kind == DEVICE_COPY else []
    row["ceilings"] = ceilings
    if compared:
        row["ceiling"] = min(compared, key=lambda name: ceilings[name][1])
        row["ratio"] = round(ceilings[row["ceiling"]][1] / median, 4)
    return row


def quartiles(us: Sequence[float]) -> list[float]:
    """Lower quartile, median, upper quartile."""
    if len(us) == 1:
        return [round(us[0], 3)] * 3
    return [round(value, 3) for value in statistics.quantiles(us, n=4, method="inclusive")]
