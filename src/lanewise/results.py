"""What an experiment's recorded run says, as a page needs it: figures of one case, tables, ratios.

    run = results.experiment("h200", "E-04")
    run.ratio("tiled 8192", "padded 8192")        # how many times as long the first takes
    run.table("us", "gb_per_s", labels=[..])      # with the GPU and the date under it

A case is named by its label; where one label was run on several problems, add `problem=`. Nothing is computed
here but ratios of what was recorded.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from lanewise import records
from lanewise.display import Table
from lanewise.display import table as _table
from lanewise.errors import UnknownRecord
from lanewise.records import Provenance
from lanewise.text import significant, with_article

Row = Mapping[str, Any]

_COUNTERS = "hardware counters read by Nsight Compute"


@dataclass(frozen=True)
class Quantity:
    """One figure of a recorded row: its header in a table, how to read it, and how to write it."""

    header: str
    read: Callable[[Row], Any]
    write: Callable[[Any], str]


def _fixed(places: int) -> Callable[[Any], str]:
    return lambda value: f"{value:,.{places}f}"


# What a table can show of the times; the name of any hardware counter works as well.
QUANTITIES: Mapping[str, Quantity] = {
    "us": Quantity("time (µs)", lambda row: row["us"][1], significant),
    "quartiles": Quantity(
        "quartiles (µs)", lambda row: row["us"][::2], lambda q: f"{q[0]:,.1f} to {q[1]:,.1f}"
    ),
    "gb_per_s": Quantity("GB/s", lambda row: row["gb_per_s"], significant),
    "tflop_per_s": Quantity("TFLOP/s", lambda row: row["tflop_per_s"], significant),
    "ratio": Quantity("of the ceiling", lambda row: row["ratio"], _fixed(2)),
    "ceiling": Quantity("ceiling", lambda row: row["ceiling"], str),
    "registers": Quantity("registers", lambda row: row["registers"], _fixed(0)),
    "blocks_per_sm": Quantity("blocks per SM", lambda row: row["blocks_per_sm"], _fixed(0)),
    "clock_mhz": Quantity("clock (MHz)", lambda row: row["clock_mhz"], _fixed(0)),
    "kernel": Quantity("kernel", lambda row: row["kernel"], lambda name: f"`{name}`"),
    "problem": Quantity("problem", lambda row: row["problem"], str),
}


@dataclass(frozen=True)
class Results:
    """The recorded cases of one experiment: `times` and `counters` hold one row per case.

    `provenance` says where the times come from, `counted_on` where the counters do; None if there are none.
    """

    id: str
    question: str
    times: tuple[Row, ...]
    counters: tuple[Row, ...]
    provenance: Provenance | None
    counted_on: Provenance | None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the timed cases, in the order they were run, each once."""
        return tuple(dict.fromkeys(row["label"] for row in self.times))

    @property
    def caption(self) -> str:
        """The sentence that belongs under what was timed: the GPU, the date, the kind of number."""
        return _caption(self.id, self.provenance, self._runs)

    @property
    def counter_caption(self) -> str:
        """The same for hardware counters."""
        return _caption(self.id, self.counted_on, _COUNTERS)

    @property
    def full_caption(self) -> str:
        """Both, for a table that shows times beside counters; one sentence if GPU and date are the same."""
        timed, counted = self.provenance, self.counted_on
        if timed and counted and (timed.gpu, timed.date) == (counted.gpu, counted.date):
            return _caption(self.id, timed, f"{self._runs}; {_COUNTERS}")
        return f"{self.caption} {self.counter_caption}"

    @property
    def _runs(self) -> str:
        return f"medians of {_samples(self.times)} runs"

    def row(self, label: str, problem: str | None = None) -> Row:
        """The timed row of one case. Raises `UnknownRecord` if none, or more than one, has this name."""
        return self._only(self.times, label, problem)

    def us(self, label: str, problem: str | None = None) -> float:
        """The median time of a case, in microseconds."""
        return float(self.row(label, problem)["us"][1])

    def gb_per_s(self, label: str, problem: str | None = None) -> float:
        """The rate of the bytes any solution must move, 10^9 a second. `UnknownRecord` if there is none."""
        return self._figure(self.row(label, problem), "gb_per_s")

    def tflop_per_s(self, label: str, problem: str | None = None) -> float:
        """The rate of the problem's operations, 10^12 a second; `UnknownRecord` if there is none."""
        return self._figure(self.row(label, problem), "tflop_per_s")

    def ratio(self, label: str, other: str, problem: str | None = None) -> float:
        """How many times as long `label` takes as `other`."""
        return self.us(label, problem) / self.us(other, problem)

    def counter(self, label: str, metric: str, problem: str | None = None) -> float:
        """One hardware counter of a profiled case, e.g. `"shared_load_wavefronts"`.

        Raises `UnknownRecord` with the counters that were read.
        """
        row = self._only(self.counters, label, problem)
        if metric not in row["metrics"]:
            raise UnknownRecord(
                f"{self.id}: {label!r} has no counter {metric!r}; it has {', '.join(sorted(row['metrics']))}."
            )
        return row["metrics"][metric]

    def profile(self, label: str, problem: str | None = None) -> Mapping[str, Any]:
        """The hardware counters of a case that was profiled at the size at which it was timed.

        >>> experiment("h200", "E-45").profile("tiled 8192")["l1_throughput"] > 0.8
        True
        """
        full = tuple(row for row in self.counters if row["profiled"])
        metrics: Mapping[str, Any] = self._only(full, label, problem)["metrics"]
        return metrics

    def table(
        self,
        *quantities: str,
        labels: Iterable[str] | None = None,
        header: str = "case",
        problem: str | None = None,
        against: str | None = None,
    ) -> Table:
        """A table of timed cases with its caption: `quantities` are keys of `QUANTITIES` (default: "us").

        `against` names a case: a last column says how many times as long each takes. Raises `UnknownRecord`
        for cases and quantities that are not recorded.
        """
        chosen = self._chosen(self.times, labels, problem)
        rows = []
        for row in chosen:
            cells: dict[str, Any] = {header: row["label"]}
            for name in quantities or ("us",):
                cells[_quantity(self.id, name).header] = self._written(row, name)
            if against is not None:
                ratio = row["us"][1] / self.us(against, problem)
                cells[f"time, {against} = 1"] = f"{ratio:.2f}"
            rows.append(cells)
        return _table(rows, note=self.caption)

    def counter_table(
        self,
        *metrics: str,
        labels: Iterable[str] | None = None,
        header: str = "case",
        problem: str | None = None,
    ) -> Table:
        """A table of profiled cases with its caption: one column for each hardware counter."""
        chosen = self._chosen(self.counters, labels, problem)
        rows = []
        for row in chosen:
            values = {name: self.counter(row["label"], name, row["problem"]) for name in metrics}
            written = {name.replace("_", " "): _counted(value) for name, value in values.items()}
            rows.append({header: row["label"], **written})
        return _table(rows, note=self.counter_caption)

    def series(
        self, quantity: str = "us", labels: Sequence[str] | None = None, problem: str | None = None
    ) -> list[float]:
        """One quantity of several cases as numbers, for a figure; `UnknownRecord` if a case has none."""
        return [self._figure(row, quantity) for row in self._chosen(self.times, labels, problem)]

    def _chosen(self, rows: tuple[Row, ...], labels: Iterable[str] | None, problem: str | None) -> list[Row]:
        if labels is not None:
            return [self._only(rows, label, problem) for label in labels]
        return [row for row in rows if problem in (None, row["problem"])]

    def _only(self, rows: tuple[Row, ...], label: str, problem: str | None) -> Row:
        found = [row for row in rows if row["label"] == label and problem in (None, row["problem"])]
        if len(found) == 1:
            return found[0]
        if found:
            problems = ", ".join(repr(row["problem"]) for row in found)
            raise UnknownRecord(f"{self.id}: {label!r} was run on {problems}. Name one with problem=.")
        there_are = ", ".join(repr(name) for name in dict.fromkeys(row["label"] for row in rows))
        on = f" on {problem!r}" if problem is not None else ""
        raise UnknownRecord(f"{self.id}: no case {label!r}{on}; it has {there_are or 'none'}.")

    def _figure(self, row: Row, name: str) -> float:
        quantity = _quantity(self.id, name)
        if name not in row:
            raise UnknownRecord(f"{self.id}: no {name} is recorded for {row['label']!r}. Use us.")
        return float(quantity.read(row))

    def _written(self, row: Row, name: str) -> str | None:
        quantity = _quantity(self.id, name)
        try:
            return quantity.write(quantity.read(row))
        except KeyError:
            return None


@cache
def experiment(gpu: str, id: str) -> Results:
    """The recorded run of one experiment on one GPU, e.g. `experiment("h200", "E-04")`.

    >>> experiment("h200", "E-04").ratio("tiled 8192", "padded 8192") > 1
    True

    Raises `UnknownRecord` with the experiments there are.
    """
    found: dict[str, records.Record] = {}
    there_are: set[str] = set()
    for topic in records.recorded_topics(gpu):
        for slug, name in ((topic, "times"), (f"{topic}.counters", "counters")):
            record = records.record(gpu, slug)
            ids = {row["id"] for row in record.rows("experiments")}
            there_are |= ids
            if id in ids:
                found[name] = record
    if not found:
        listed = ", ".join(sorted(there_are)) or f"none: {gpu!r} has none"
        raise UnknownRecord(f"experiment: no {id!r} on {gpu!r}; there are {listed}.")
    stated = {name: _stated(record, id) for name, record in found.items()}
    return Results(
        id,
        next(iter(stated.values()))["question"],
        _rows(found.get("times"), "times", id),
        _rows(found.get("counters"), "counters", id),
        Provenance(**stated["times"]["provenance"]) if "times" in stated else None,
        Provenance(**stated["counters"]["provenance"]) if "counters" in stated else None,
    )


def _stated(record: records.Record, id: str) -> Row:
    return next(row for row in record.rows("experiments") if row["id"] == id)


def _rows(record: records.Record | None, name: str, id: str) -> tuple[Row, ...]:
    rows = record.rows(name) if record and name in record.tables else ()
    return tuple(row for row in rows if row["experiment"] == id)


def _quantity(id: str, name: str) -> Quantity:
    if name not in QUANTITIES:
        raise UnknownRecord(f"{id}: no quantity {name!r}; there are {', '.join(QUANTITIES)}.")
    return QUANTITIES[name]


def _samples(rows: tuple[Row, ...]) -> int:
    return min((row["n_samples"] for row in rows), default=0)


def _caption(id: str, provenance: Provenance | None, kind: str) -> str:
    if provenance is None:
        raise UnknownRecord(f"{id}: this was not measured. See Results.times and Results.counters.")
    return f"Recorded on {with_article(provenance.gpu)}, {provenance.date}; {kind} ({id})."


def _counted(value: float) -> object:
    return value if isinstance(value, int) else f"{value:,.3g}"
