"""Every recorded figure as one row, read from the records alone; whether it is stale needs the kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lanewise.experiments import Experiment
from lanewise.measure import store
from lanewise.measure.runner import TABLE
from lanewise.records import kernel_hash


@dataclass(frozen=True)
class Figure:
    """One recorded figure.

    `value` is in `unit` (GB/s of useful bytes, TFLOP/s, microseconds, or what the kernel itself measured),
    `ceiling` in the same unit, `ratio` is how much of the ceiling was reached. `stale` says that the kernel
    or its launch is not the one that was measured.
    """

    id: str
    kernel: str
    gpu: str
    value: float
    unit: str
    ceiling: float | None
    ratio: float | None
    stale: bool


def summarise(home: Path, gpu: str, topics: Mapping[str, tuple[Experiment, ...]]) -> list[Figure]:
    """The figures recorded for one GPU in the folder `home`, the speeds first.

    >>> summarise(Path("nowhere"), "h200", {"padding": ()})
    []
    """
    found = [figure for topic, given in topics.items() for figure in _of_topic(home, gpu, topic, given)]
    return sorted(found, key=lambda figure: not figure.id.startswith("speed:"))


def _of_topic(home: Path, gpu: str, topic: str, experiments: tuple[Experiment, ...]) -> Iterator[Figure]:
    content = store.read(home / gpu / f"{topic}.json")
    hash_of = cache(kernel_hash)
    now = {
        (experiment.id, case.label, case.problem.name): store.identity(case, hash_of)
        for experiment in experiments
        for case in experiment.timed
    }
    for about in content.get("experiments", []):
        rows = [row for row in store.rows_of(content, about["id"], TABLE) if "error" not in row]
        stale = [
            now.get((about["id"], row["label"], row["problem"])) != {key: row[key] for key in store.IDENTITY}
            for row in rows
        ]
        if rows and (speed := about.get("speed")):
            best = max(range(len(rows)), key=lambda i: _speed_key(rows[i]))
            yield _figure(speed, gpu, rows[best], stale[best])
            if rows[best].get("ceiling") not in (None, "device copy") and not rows[best]["flops"]:
                against = {**rows[best], "ceiling": "device copy"}
                yield _figure(f"{speed}:device_copy", gpu, against, stale[best])
        for row, is_stale in zip(rows, stale, strict=True):
            yield _figure(f"{about['id']}:{row['label']} ({row['problem']})", gpu, row, is_stale)


def _speed_key(row: Mapping[str, Any]) -> tuple[float, float]:
    """The largest problem, and in it the shortest time."""
    if "us" not in row:
        return (-1.0, 0.0)
    return (row["flops"] or row["useful_bytes"], -row["us"][1])


def _figure(name: str, gpu: str, row: Mapping[str, Any], stale: bool) -> Figure:
    if "read" in row:
        return Figure(name, row["kernel"], gpu, row["read"][1], row["unit"], None, None, stale)
    us = row["us"][1]
    ceiling_us = row["ceilings"].get(row.get("ceiling"), [None, None, None])[1]
    if row["flops"]:
        work, unit = row["flops"] * 1e-6, "TFLOP/s"
    elif row["useful_bytes"]:
        work, unit = row["useful_bytes"] * 1e-3, "GB/s"
    else:
        ratio = round(ceiling_us / us, 4) if ceiling_us else None
        return Figure(name, row["kernel"], gpu, us, "us", ceiling_us, ratio, stale)
    value = round(work / us, 3)
    if not ceiling_us:
        return Figure(name, row["kernel"], gpu, value, unit, None, None, stale)
    return Figure(
        name, row["kernel"], gpu, value, unit, round(work / ceiling_us, 3), round(ceiling_us / us, 4), stale
    )


def as_row(figure: Figure) -> dict[str, Any]:
    """A figure as JSON has it."""
    return asdict(figure)
