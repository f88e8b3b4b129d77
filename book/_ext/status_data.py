"""The state of the course: its notebooks, its records, and the versions that built the pages."""

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from lanewise.experiments import Case, experiments_of, topics
from lanewise.measure import store
from lanewise.records import kernel_hash, record, recorded_gpus, recorded_topics

PACKAGES = ("lanewise", "numpy", "numba", "numba-cuda", "matplotlib", "jupyter-book", "sphinx")
UNCOMPARED = {"nbval-ignore-output", "nbval-skip", "times-gpu"}
IMAGES = ("image/svg+xml", "image/png", "image/jpeg")


@dataclass(frozen=True)
class Notebook:
    """What one notebook holds; `uncompared` are the first lines of cells whose output is not compared."""

    n_cells: int
    n_code_cells: int
    n_figures: int
    n_compared: int
    uncompared: tuple[str, ...]


@dataclass(frozen=True)
class Recorded:
    """One file of records: of which GPU and topic, from which days, how many rows, and how many are stale."""

    gpu: str
    topic: str
    table: str
    days: tuple[str, ...]
    n_rows: int
    n_stale: int


def notebook(path: Path) -> Notebook:
    """Count what the notebook at `path` holds."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    outputs = [output for cell in code for output in cell["outputs"]]
    ignored = [cell for cell in code if UNCOMPARED & set(cell["metadata"].get("tags", []))]
    return Notebook(
        n_cells=len(cells),
        n_code_cells=len(code),
        n_figures=sum(any(kind in output.get("data", {}) for kind in IMAGES) for output in outputs),
        n_compared=len(outputs) - sum(len(cell["outputs"]) for cell in ignored),
        uncompared=tuple("".join(cell["source"]).partition("\n")[0] for cell in ignored),
    )


def records() -> Iterator[Recorded]:
    """The files that hold a row for each case of an experiment, GPU by GPU."""
    for gpu in recorded_gpus():
        for topic in recorded_topics(gpu):
            for table, slug in (("times", topic), ("counters", f"{topic}.counters")):
                if files("lanewise").joinpath("recorded", gpu, f"{slug}.json").is_file():
                    found = record(gpu, slug)
                    days = {row["provenance"]["date"] for row in found.rows("experiments")}
                    stale = n_stale(topic, found.rows(table))
                    yield Recorded(gpu, topic, table, tuple(sorted(days)), len(found.rows(table)), stale)


def n_stale(topic: str, rows: Iterable[Mapping[str, Any]]) -> int:
    """How many rows are not about a case as it is now."""
    now = _identities(topic)
    return sum(
        {key: row.get(key) for key in store.IDENTITY}
        not in now.get((row["experiment"], row["label"], row["problem"], row["kernel"]), [])
        for row in rows
    )


@cache
def _identities(topic: str) -> Mapping[tuple[str, ...], list[store.Row]]:
    """What the cases of a topic are now, by experiment, label, problem and kernel."""
    found: dict[tuple[str, ...], list[store.Row]] = {}
    if topic in topics():
        for experiment in experiments_of(topic):
            for case in (*experiment.timed, *experiment.counted):
                found.setdefault(_key(experiment.id, case), []).append(store.identity(case, _hash))
    return found


_hash = cache(kernel_hash)


def _key(experiment: str, case: Case) -> tuple[str, ...]:
    return experiment, case.label, case.problem.name, case.name


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that the pages depend on."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def build_day() -> str:
    """The day of the build in UTC; SOURCE_DATE_EPOCH, in seconds since 1970, says another."""
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    moment = datetime.fromtimestamp(int(stated), UTC) if stated else datetime.now(UTC)
    return moment.date().isoformat()
