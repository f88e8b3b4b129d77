"""Profile many topics, one run of the profiler for each and each set of counters, and write what was read."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanewise.counters import metrics
from lanewise.counters import ncu as profiler
from lanewise.counters.ncu import ProfilerFailed
from lanewise.experiments import Case, Experiment
from lanewise.measure import Outcome, store
from lanewise.records import Provenance

TABLE = "counters"
AT_ONCE = 16  # profilers beside each other at most; the GPU is theirs in turn
RUN_CASES = 40  # of one run of the profiler
Place = tuple[int, str, int]  # experiment, "counted" or "timed", case


@dataclass(frozen=True)
class Plan:
    """What is to be profiled, and where records lie."""

    topics: dict[str, tuple[Experiment, ...]]
    home: Path
    provenance: Provenance
    ncu: str
    only: tuple[str, ...] = ()
    again: bool = False
    seconds: float = 900.0
    source: Callable[[str], str] = lambda topic: f"lanewise.experiments.{topic}:experiments"
    child: tuple[str, ...] = (sys.executable, "-m", "lanewise.counters.child")


@dataclass
class Run:
    """One run of the profiler: a topic's cases that share a set of counters."""

    topic: str
    places: list[Place]
    by_opcode: bool
    profiled: bool


def wanted(experiment: Experiment) -> list[tuple[str, int, Case]]:
    """The cases of an experiment that are profiled: all counted ones, and timed ones that ask for it."""
    counted = [("counted", i, case) for i, case in enumerate(experiment.counted)]
    return counted + [("timed", i, case) for i, case in enumerate(experiment.timed) if case.profiled]


def path_of(plan: Plan, topic: str) -> Path:
    """The counter file of a topic."""
    return plan.home / f"{topic}.counters.json"


def due(plan: Plan, topic: str) -> list[int]:
    """The numbers of a topic's experiments whose counters are not recorded as they are now."""
    content = store.read(path_of(plan, topic))
    return [
        i
        for i, experiment in enumerate(plan.topics[topic])
        if (cases := [case for _, _, case in wanted(experiment)])
        and (not plan.only or experiment.id in plan.only)
        and (plan.again or not _is_current(content, experiment, cases))
    ]


def _is_current(content: store.Content, experiment: Experiment, cases: Sequence[Case]) -> bool:
    rows = store.rows_of(content, experiment.id, TABLE)
    complete = all("opcodes" in row for row in rows[: len(experiment.counted)])
    return complete and store.is_current(content, experiment, cases, TABLE)


def n_due(plan: Plan, topic: str) -> int:
    """The number of a topic's cases that must be profiled."""
    return sum(len(wanted(plan.topics[topic][i])) for i in due(plan, topic))


def count(plan: Plan, report: Callable[[str, int], None] = lambda topic, n: None) -> list[Outcome]:
    """Profile all that is due and give each topic's outcome. Raises `Unfit` if the profiler may not look."""
    todo = {topic: due(plan, topic) for topic in plan.topics}
    runs = [run for topic in todo for run in _runs(plan, topic, todo[topic])]
    runs.sort(key=lambda run: not run.profiled)  # the longest first
    written = {topic: _Written(plan, topic, todo[topic]) for topic in todo}

    def one(run: Run) -> None:
        try:
            rows = profile(plan, run)
        except ProfilerFailed as error:
            rows = {place: {"error": str(error)} for place in run.places}
        written[run.topic].add(rows)
        report(run.topic, len(run.places))

    with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
        futures = [pool.submit(one, run) for run in runs]
        try:
            for future in as_completed(futures):
                future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return [one.outcome for one in written.values()]


class _Written:
    """A topic's rows as they come; an experiment is written when its last one has come."""

    def __init__(self, plan: Plan, topic: str, numbers: Sequence[int]) -> None:
        self.plan, self.topic, self.numbers = plan, topic, numbers
        self.rows: dict[Place, store.Row] = {}
        self.outcome = Outcome(topic)
        self.lock = threading.Lock()

    def add(self, rows: Mapping[Place, store.Row]) -> None:
        """Keep rows and write what they complete."""
        with self.lock:
            self.rows |= rows
            numbers = {number for number, _, _ in rows}
            for number in sorted(numbers & set(self.numbers)):
                self._write(number)

    def _write(self, number: int) -> None:
        experiment, outcome = self.plan.topics[self.topic][number], self.outcome
        mine = [(case, self.rows.get((number, table, i))) for table, i, case in wanted(experiment)]
        if any(row is None for _, row in mine):
            return
        whole = [{**store.identity(case), **_checked(case, row or {})} for case, row in mine]
        path = path_of(self.plan, self.topic)
        content = store.read(path)
        failures = [f"{experiment.id} {text}" for text in store.failures(whole)]
        outcome.failed += failures
        if failures and store.is_good(content, experiment.id, TABLE):
            outcome.failed.append(f"{experiment.id}: the record of before stays as it is.")
            return
        store.write(path, store.merged(content, experiment, whole, self.plan.provenance, TABLE))
        outcome.written.append(experiment.id)


def _runs(plan: Plan, topic: str, numbers: Sequence[int]) -> Iterator[Run]:
    for table, profiled in (("counted", False), ("counted", True), ("timed", True)):
        places: list[Place] = [
            (number, table, i)
            for number in numbers
            for place_table, i, case in wanted(plan.topics[topic][number])
            if (place_table, case.profiled) == (table, profiled)
        ]
        for start in range(0, len(places), RUN_CASES):
            yield Run(topic, places[start : start + RUN_CASES], table == "counted", profiled)


def profile(plan: Plan, run: Run) -> dict[Place, store.Row]:
    """One run of the profiler; a row for each place. Raises `Unfit` or `ProfilerFailed`."""
    with tempfile.TemporaryDirectory(prefix="lanewise-") as folder:
        job, done, report = (Path(folder, name) for name in ("job.json", "done.jsonl", "report.ncu-rep"))
        job.write_text(json.dumps({"source": plan.source(run.topic), "places": run.places}))
        command = [*plan.child, str(job), str(done)]
        names = metrics.names(run.by_opcode, run.profiled)
        output = profiler.profile(plan.ncu, command, names, report, plan.seconds)
        if not done.exists():
            raise ProfilerFailed(f"The profiled program did not start: {output.strip()[-600:]}")
        said = [json.loads(line) for line in done.read_text().splitlines()]
        raw = profiler.raw_rows(profiler.page(plan.ncu, report, "raw"), run.profiled)
        source = profiler.source_rows(profiler.page(plan.ncu, report, "source")) if run.by_opcode else []
    return rows_of(run, said, raw, source)


def rows_of(
    run: Run, said: Sequence[dict[str, Any]], raw: Sequence[dict[str, Any]], source: Sequence[Any]
) -> dict[Place, store.Row]:
    """Give each place its launch: the profiler lists launches in the order in which they were made."""
    rows: dict[Place, store.Row] = {
        place: {"error": "The profiler saw no launch of it."} for place in run.places
    }
    launched = [_place(line) for line in said if "error" not in line]
    for i, place in enumerate(launched[: len(raw)]):
        rows[place] = {"profiled": run.profiled, "metrics": raw[i]["metrics"], "name": raw[i]["kernel"]}
        if i < len(source):
            rows[place]["opcodes"] = source[i]
    for line in said:
        if "error" in line:
            rows[_place(line)] = {"error": line["error"]}
    return rows


def _place(line: dict[str, Any]) -> Place:
    number, table, i = line["place"]
    return int(number), str(table), int(i)


def _checked(case: Case, row: store.Row) -> store.Row:
    """The row without the profiler's name of the kernel, which must hold ours."""
    name = row.pop("name", None)
    function = getattr(case.kernel, "py_func", case.kernel)  # what a factory makes may be renamed
    if name is not None and not any(ours in name for ours in (case.name, function.__code__.co_name)):
        return {"error": f"The profiler saw {name!r} in its place."}
    return row
