"""Measure many topics: which experiments are due, one process for each topic, and what is written when.

The processes compile and compute references beside each other and take the GPU in turn. A case that hangs or
takes the GPU down costs its own figure only: its process is ended, and another one goes on after it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lanewise.experiments import Experiment
from lanewise.measure import store
from lanewise.measure.protocol import Settings
from lanewise.measure.worker import Job, Place, by_problem, case_at, work
from lanewise.records import Provenance

TABLE = "times"
GPU = "lanewise.measure.gpu:NumbaGpu"
HOST_SECONDS = 900.0  # for compiling and references
PART_CASES = 30  # of one process, so that kernels compile beside each other


@dataclass(frozen=True)
class Plan:
    """What is to be measured: topics with their experiments, where records lie, and how much is sampled.

    `source` gives a topic's experiments anew in another process, as `"module:function"`; `seconds` is the
    time that a case may take on the GPU.
    """

    topics: dict[str, tuple[Experiment, ...]]
    home: Path
    provenance: Provenance
    settings: Settings = field(default_factory=Settings)
    only: tuple[str, ...] = ()
    again: bool = False
    seconds: float = 60.0
    gpu: str = GPU
    source: Callable[[str], str] = lambda topic: f"lanewise.experiments.{topic}:experiments"


@dataclass
class Outcome:
    """What became of a topic: experiments written, kept as they were, and what failed, in sentences."""

    topic: str
    written: list[str] = field(default_factory=list)
    current: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


Report = Callable[[str, str, int], None]  # topic, what it does, cases done since the last call


def quiet(topic: str, doing: str, n_done: int) -> None:
    """Report nothing."""


def due(plan: Plan, topic: str) -> list[int]:
    """The numbers of a topic's experiments that must be measured: those asked for whose record is not
    current."""
    content = store.read(path_of(plan, topic))
    return [
        i
        for i, experiment in enumerate(plan.topics[topic])
        if experiment.timed
        and (not plan.only or experiment.id in plan.only)
        and (plan.again or not store.is_current(content, experiment, experiment.timed, TABLE))
    ]


def n_due(plan: Plan, topic: str) -> int:
    """The number of a topic's cases that must be measured."""
    return sum(len(plan.topics[topic][i].timed) for i in due(plan, topic))


def path_of(plan: Plan, topic: str) -> Path:
    """The record file of a topic."""
    return plan.home / f"{topic}.json"


def measure(plan: Plan, report: Report = quiet) -> list[Outcome]:
    """Measure all that is due, several topics at once, and give each topic's outcome."""
    todo = {topic: due(plan, topic) for topic in plan.topics}
    # The most work first, so that no long topic is left alone at the end.
    order = sorted(todo, key=lambda topic: -sum(len(plan.topics[topic][i].timed) for i in todo[topic]))
    at_once = 1 if sys.platform == "win32" else os.cpu_count() or 1
    stop, slots = threading.Event(), threading.Semaphore(at_once)

    def one(topic: str) -> Outcome:
        return _Topic(plan, topic, todo[topic], report, stop, slots).run()

    with ThreadPoolExecutor(max(1, len(order))) as pool:
        try:
            return list(pool.map(one, order))
        finally:
            stop.set()  # after an interruption: the processes are ended, and the pool can close


def split(experiments: Sequence[Experiment], places: Sequence[Place]) -> list[list[Place]]:
    """Cut a topic's cases into parts for as many processes, cases of one problem together."""
    parts: list[list[Place]] = []
    for group in by_problem(experiments, places):
        if not parts or len(parts[-1]) + len(group) > PART_CASES:
            parts.append([])
        parts[-1] += group
    return parts


class _Topic:
    """One topic on its way."""

    def __init__(
        self,
        plan: Plan,
        topic: str,
        numbers: Sequence[int],
        report: Report,
        stop: threading.Event,
        slots: threading.Semaphore,
    ) -> None:
        self.plan, self.topic, self.numbers, self.report = plan, topic, numbers, report
        self.stop, self.slots = stop, slots
        self.experiments = plan.topics[topic]
        self.rows: dict[Place, store.Row] = {}
        self.outcome = Outcome(topic)
        self.lock = threading.RLock()
        self.places = [(i, j) for i in numbers for j in range(len(self.experiments[i].timed))]

    def run(self) -> Outcome:
        """Measure the topic's parts beside each other."""
        self.outcome.current = [
            experiment.id
            for i, experiment in enumerate(self.experiments)
            if experiment.timed
            and i not in self.numbers
            and (not self.plan.only or experiment.id in self.plan.only)
        ]
        parts = split(self.experiments, self.places)
        with ThreadPoolExecutor(max(1, len(parts))) as pool:
            list(pool.map(self._run_part, parts))
        self.report(self.topic, "done", 0)
        return self.outcome

    def _run_part(self, places: Sequence[Place]) -> None:
        """Start processes until every case of a part has a row."""
        while not self.stop.is_set() and (left := [at for at in places if at not in self.rows]):
            with self.slots:
                why, busy = self._process(left)
            for place in busy if why else ():
                self._note(place, {"error": why})
            if not any(at in self.rows for at in left):  # it did nothing: another would do no better
                for place in left:
                    self._note(place, {"error": why or "Its process ended without a word."})

    def _process(self, left: Sequence[Place]) -> tuple[str, list[Place]]:
        """Run one process; why it ended early, and the cases it was busy with."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        job = Job(self.plan.source(self.topic), self.plan.gpu, tuple(left), self.plan.settings)
        process = context.Process(target=work, args=(job, theirs), daemon=True)
        process.start()
        theirs.close()
        busy: list[Place] = []
        together: list[Place] = []  # the cases that will be sampled together
        seconds = HOST_SECONDS
        try:
            while True:
                deadline = time.monotonic() + seconds
                while not ours.poll(0.2):
                    if self.stop.is_set():
                        return "It was interrupted.", []
                    if time.monotonic() > deadline:
                        return f"It did not finish within {seconds:.0f} s and was ended.", busy or [left[0]]
                try:
                    what, *rest = ours.recv()
                except EOFError:
                    process.join(5)
                    return f"Its process ended by itself (exit status {process.exitcode}).", busy
                if what == "end":
                    return "", []
                if what == "fault":
                    return rest[0], busy
                busy, seconds = self._told(what, rest, together)
        finally:
            if process.is_alive():
                process.kill()
            process.join()
            ours.close()

    def _told(self, what: str, rest: Sequence[Any], together: list[Place]) -> tuple[list[Place], float]:
        """Act on a message; the cases now on the GPU, and how long the next message may take."""
        if what == "row":
            self._note(rest[0], rest[1])
            return [], HOST_SECONDS
        if what == "checking":
            together.append(rest[0])
            self.report(self.topic, case_at(self.experiments, rest[0]).label, 0)
            return [rest[0]], self.plan.seconds
        self.report(self.topic, f"{what} {rest[0]}", 0)
        if what == "sampling":
            return list(together), self.plan.seconds * max(1, len(together))
        together.clear()
        return [], (len(self.plan.topics) if what == "waiting" else 1) * HOST_SECONDS

    def _note(self, place: Place, row: store.Row) -> None:
        """Keep a row, and write the experiment when it was the last."""
        with self.lock:
            if place not in self.rows and not self.stop.is_set():
                self._keep(place, row)
        self.report(self.topic, "", 1)

    def _keep(self, place: Place, row: store.Row) -> None:
        self.rows[place] = {**store.identity(case_at(self.experiments, place)), **row}
        number = place[0]
        mine = [self.rows.get((number, j)) for j in range(len(self.experiments[number].timed))]
        rows = [row for row in mine if row is not None]
        if len(rows) == len(mine):
            self._write(self.experiments[number], rows)

    def _write(self, experiment: Experiment, rows: list[store.Row]) -> None:
        path = path_of(self.plan, self.topic)
        content = store.read(path)
        failures = [f"{experiment.id} {text}" for text in store.failures(rows)]
        self.outcome.failed += failures
        if failures and store.is_good(content, experiment.id, TABLE):
            self.outcome.failed.append(f"{experiment.id}: the record of before stays as it is.")
            return
        store.write(path, store.merged(content, experiment, rows, self.plan.provenance, TABLE))
        self.outcome.written.append(experiment.id)
