"""One process that measures cases of one topic, and tells the process that started it how far it is.

What it sends, as tuples: `("preparing", text)` while the processor alone works, `("waiting", text)` for other
processes to leave the GPU, `("checking", place)` and `("sampling", text)` on the GPU, `("row", place, row)`
for a case that is done, `("fault", text)` if the GPU is lost for this process, `("end",)`.
A place is the experiment's number in the topic and the case's number among its timed ones.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from lanewise.experiments import Case, Experiment, Problem
from lanewise.measure.group import measure_group
from lanewise.measure.protocol import Gpu, Settings, Values
from lanewise.measure.store import identity

Place = tuple[int, int]
GROUP_CASES = 30  # sampled in turn with one ceiling
LOCK = Path(tempfile.gettempdir(), "lanewise-gpu.lock")


@dataclass(frozen=True)
class Job:
    """What a worker is given: functions as `"module:name"`, since it is a process of its own."""

    experiments: str
    gpu: str
    places: tuple[Place, ...]
    settings: Settings


def load(name: str) -> Callable[[], Any]:
    """The function that `"module:name"` names."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)


def work(job: Job, connection: Connection) -> None:
    """Measure a job's cases, problem by problem, and send what comes of it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    send = connection.send
    try:
        experiments: tuple[Experiment, ...] = load(job.experiments)()
        gpu: Gpu = load(job.gpu)()
        for places in by_problem(experiments, job.places):
            measure_problem(gpu, experiments, places, job.settings, send)
        send(("end",))
    except Exception as error:
        send(("fault", f"{type(error).__name__}: {error}"))


def _end_with_parent() -> None:
    """Do not stay on the GPU after the process that wanted the figures has been killed."""
    if parent := multiprocessing.parent_process():
        parent.join()
        os._exit(1)


def by_problem(experiments: Sequence[Experiment], places: Sequence[Place]) -> Iterator[list[Place]]:
    """Places in order, those of one experiment and one problem together, though not too many at once."""
    groups: dict[tuple[int, str], list[Place]] = {}
    for place in places:
        groups.setdefault((place[0], case_at(experiments, place).problem.name), []).append(place)
    for group in groups.values():
        for start in range(0, len(group), GROUP_CASES):
            yield group[start : start + GROUP_CASES]


def case_at(experiments: Sequence[Experiment], place: Place) -> Case:
    """The case of a place."""
    return experiments[place[0]].timed[place[1]]


def measure_problem(
    gpu: Gpu,
    experiments: Sequence[Experiment],
    places: Sequence[Place],
    settings: Settings,
    send: Callable[[tuple[Any, ...]], None],
) -> None:
    """Prepare on the processor, then take the GPU and measure the cases of one problem."""
    cases = [case_at(experiments, place) for place in places]
    ceiling = experiments[places[0][0]].ceiling
    kind = ceiling.kind if ceiling else ""
    send(("preparing", cases[0].problem.name))
    try:
        values = prepared(cases[0].problem)
    except Exception as error:
        for place, case in zip(places, cases, strict=True):
            send(("row", place, {**identity(case), "error": f"{type(error).__name__}: {error}"}))
        return
    for case in cases:  # ahead, while others may use the GPU; what fails is told when the case is checked
        with suppress(Exception):
            gpu.compile(case, case.arguments({**values.inputs, **values.outputs}))
    with suppress(Exception):
        gpu.load_library(kind)
    send(("waiting", cases[0].problem.name))

    def begin(i: int) -> None:
        send(("checking", places[i]) if i < len(places) else ("sampling", cases[0].problem.name))

    with gpu_alone():
        try:
            rows = list(measure_group(gpu, values, cases, kind, settings, begin))
        except Exception as error:
            if getattr(error, "is_fatal", False):
                raise
            rows = [{"error": f"{type(error).__name__}: {error}"} for _ in cases]
        finally:
            gpu.free()
    for place, case, row in zip(places, cases, rows, strict=True):
        send(("row", place, {**identity(case), **row}))


_LAST: list[Values] = []


def prepared(problem: Problem) -> Values:
    """A problem's inputs and reference; those of the last one are kept, for the next experiment may ask."""
    if not _LAST or _LAST[0].problem.name != problem.name:
        _LAST.clear()
        _LAST.append(Values.of(problem))
    return _LAST[0]


@contextmanager
def gpu_alone() -> Iterator[None]:
    """Keep other processes of this machine that measure off the GPU; the system gives it back if one dies."""
    if sys.platform == "win32":  # no such lock: there only one process measures at a time
        yield
        return
    import fcntl

    with LOCK.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
