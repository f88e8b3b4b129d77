"""`lanewise explain REPORT.csv`: what the metrics of an Nsight Compute export say, beside a trace.

Both forms of `ncu --csv` are read: one line per metric (`--page details`) and one line per kernel
(`--page raw`, whose second line holds the units). Lines before the table, such as `==PROF==`, are skipped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lanewise.errors import Error
from lanewise.profiler import ADDRESSES, METRICS, Metric
from lanewise.trace import Trace

LARGEST_FILE = 200_000_000  # bytes
KERNEL, METRIC, UNIT, VALUE, IDENTITY = "Kernel Name", "Metric Name", "Metric Unit", "Metric Value", "ID"

# What a trace knows of a whole launch: metric, space, operation, field.
TRACED = {
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": ("shared", "load", "wavefronts"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": ("shared", "store", "wavefronts"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum": ("shared", "load", "excess"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum": ("shared", "store", "excess"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": ("global_", "load", "requests"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": ("global_", "store", "requests"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": ("global_", "load", "sectors"),
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": ("global_", "store", "sectors"),
}


class InvalidReport(Error):
    """A file that is no export of Nsight Compute, or holds no metric."""


@dataclass(frozen=True)
class Reading:
    """One metric of one profiled launch: the value as it was written, and the number it is, if it is one."""

    kernel: str
    name: str
    unit: str
    text: str

    @property
    def number(self) -> float | None:
        """The value as a number, thousands separators apart; None for words and `n/a`."""
        try:
            return float(self.text.replace(",", ""))
        except ValueError:
            return None

    @property
    def metric(self) -> Metric | None:
        """What the table of metrics knows about it; None if it is not there."""
        return _KNOWN.get(self.name) or _KNOWN.get(self.name.partition(".")[0])


_KNOWN = {name: metric for metric in METRICS for name in (metric.name, metric.base, metric.nvprof) if name}


def readings(path: Path) -> list[Reading]:
    """The metrics of an export, in its order. Raises `InvalidReport`, which says what to export."""
    if not path.is_file():
        raise InvalidReport(f"{path}: no such file. Make one: ncu --csv --page raw PROGRAM > report.csv")
    if path.stat().st_size > LARGEST_FILE:
        raise InvalidReport(f"{path}: {path.stat().st_size:,} bytes; at most {LARGEST_FILE:,} are read.")
    text = path.read_bytes().decode("utf-8-sig", errors="replace").replace("\0", "")
    try:
        found = list(_read(text))
    except csv.Error as error:
        raise InvalidReport(f"{path}: this is no CSV file: {error}.") from None
    if not found:
        raise InvalidReport(
            f"{path}: no table with a column {KERNEL!r}. Export with: ncu --csv --page raw (or details)."
        )
    return found


def _read(text: str) -> Iterator[Reading]:
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if KERNEL in line and "," in line), None)
    if start is None:
        return
    rows = list(csv.reader(io.StringIO("\n".join(lines[start:]))))
    header, body = rows[0], [row for row in rows[1:] if row]
    if METRIC in header and VALUE in header:
        yield from _long(header, body)
    else:
        yield from _wide(header, body)


def _long(header: list[str], body: list[list[str]]) -> Iterator[Reading]:
    place = {name: header.index(name) for name in (KERNEL, METRIC, VALUE)}
    unit = header.index(UNIT) if UNIT in header else None
    for row in body:
        if len(row) == len(header) and row[place[METRIC]]:
            yield Reading(
                row[place[KERNEL]], row[place[METRIC]], "" if unit is None else row[unit], row[place[VALUE]]
            )


def _wide(header: list[str], body: list[list[str]]) -> Iterator[Reading]:
    """The second line holds the units: its kernel name is empty."""
    kernel = header.index(KERNEL)
    units = [""] * len(header)
    for row in body:
        if len(row) != len(header):
            continue
        if not row[kernel]:
            units = row
            continue
        for name, unit, value in zip(header, units, row, strict=True):
            if "__" in name or name.startswith("memory_"):
                yield Reading(row[kernel], name, unit, value)


def explained(found: list[Reading], traced: Trace | None = None) -> tuple[str, dict[str, object]]:
    """What is known about an export, as text and as data; `traced` is compared where it knows the metric."""
    known = [one for one in found if one.metric]
    lines, data = [], []
    for kernel in dict.fromkeys(one.kernel for one in found):
        lines += ["", kernel]
        for one in (one for one in known if one.kernel == kernel):
            entry = _entry(one, traced)
            data.append(entry)
            lines += _lines(one, entry)
    n_unknown = len({one.name for one in found if not one.metric})
    lines += (
        ["", f"{n_unknown} other metrics are not in the table of lanewise.profiler."] if n_unknown else []
    )
    return "\n".join(lines).strip(), {"schema": 1, "metrics": data, "n_unknown": n_unknown}


def _entry(one: Reading, traced: Trace | None) -> dict[str, object]:
    metric = one.metric
    assert metric is not None
    entry: dict[str, object] = {
        "kernel": one.kernel, "metric": one.name, "name": metric.name, "value": one.number,
        "unit": one.unit, "says": metric.says, "follows": metric.follows, "nvprof": metric.nvprof,
    }  # fmt: skip
    if traced is not None and metric.name in TRACED:
        space, op, quantity = TRACED[metric.name]
        entry["traced"] = getattr(getattr(getattr(traced, space), op), quantity)
    return entry


def _lines(one: Reading, entry: dict[str, object]) -> Iterator[str]:
    old = f", once {entry['nvprof']}" if entry["nvprof"] else ""
    exact = "repeats exactly" if entry["follows"] == ADDRESSES else "contains what else happened there"
    yield f"  {one.text:>16} {one.unit:<8} {entry['says']} ({exact})"
    yield f"  {'':>16} {'':<8} {entry['name']}{old}"
    if "traced" in entry:
        yield f"  {'':>16} {'':<8} {_compared(one.number, entry['traced'], str(entry['follows']))}"


def _compared(counted: float | None, expected: object, follows: str) -> str:
    if counted is None or not isinstance(expected, int):
        return "not compared: the export gives no number."
    if counted == expected:
        return f"the trace says {expected:,}: the same."
    difference = counted - expected
    if follows == ADDRESSES:
        return (
            f"the trace says {expected:,}, {abs(difference):,.0f} {'fewer' if difference > 0 else 'more'}:"
            " other sizes, another kernel, or accesses that the compiler joined (try --lowering)."
        )
    return (
        f"the trace says {expected:,}; the unit counted {difference:+,.0f}. It also counts lost arbitration,"
        " so a few percent more are normal."
    )
