"""Does arithmetic equal trace equal counter? Every kernel, every total, with the reason where it does not.

Four numbers stand beside each other for each total of each counted case:

- `arithmetic`: what pencil and paper say (`Case.arithmetic`)
- `traced`: the accesses as written, by `lanewise.trace`
- `compiled`: the accesses of the machine code for `TARGET`, by `lanewise.lowering`
- `counted`: what Nsight Compute counted on a GPU, from its record

A difference between the second and the third is the compiler's, and the machine code proves it; one between
the third and the fourth needs a reason from the model (an instruction whose cost it does not claim), or is
open.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.errors import Error, UnknownRecord
from lanewise.experiments import Case, Experiment
from lanewise.lowering import as_compiled, lower, run_compiled
from lanewise.measure import store
from lanewise.measure.protocol import Values
from lanewise.measure.worker import load
from lanewise.records import Provenance
from lanewise.trace import Trace, trace

TARGET = "sm_90"
METHOD = (
    "Every total of every counted case: arithmetic, the trace, the trace of the machine code, and what the"
    " profiler counted on the same inputs."
)
SEED = 0  # the counters were read from launches on the same inputs
UNITS = {"shared": "wavefronts", "global": "sectors"}
# Opcodes of machine code: the space and operation that a trace gives them.
OPCODES = {
    "LDS": (("shared", "load"),),
    "LDSM": (("shared", "load"),),
    "STS": (("shared", "store"),),
    "STSM": (("shared", "store"),),
    "ATOMS": (("shared", "atomic"),),
    "LDG": (("global", "load"),),
    "STG": (("global", "store"),),
    "ATOMG": (("global", "atomic"),),
    "ATOM": (("global", "atomic"),),
    "RED": (("global", "atomic"),),
    "REDG": (("global", "atomic"),),
    "LDGSTS": (("shared", "async_copy"), ("global", "async_copy")),
    "LD": (("shared", "load"), ("global", "load")),
    "ST": (("shared", "store"), ("global", "store")),
}
ABOUT = ("topic", "experiment", "label", "problem", "kernel", "hash")
COLUMNS = ("instructions", "executed", "wavefronts", "ideal", "sectors")  # of an opcode in the record


@dataclass(frozen=True)
class Row:
    """One total of one case. `verdict` is "exact", "explained" (then `reason` says why), or "open"."""

    topic: str
    experiment: str
    label: str
    problem: str
    kernel: str
    hash: str
    total: str
    arithmetic: int | None
    traced: int
    compiled: int | None
    counted: int | None
    verdict: str
    reason: str = ""


def reconcile_case(
    topic: str, experiment: str, case: Case, recorded: Mapping[str, Any] | None, compile_it: bool = True
) -> list[Row]:
    """The totals of one case. `recorded` is its row of the counter record, if there is one."""
    report, view, complaint = _both_views(case, compile_it)
    opcodes = recorded["opcodes"] if recorded and "opcodes" in recorded else None
    counted = totals_counted(opcodes) if opcodes is not None else None
    identity = store.identity(case)
    rows = []
    for key in sorted(
        {*_totals_of(report), *(_totals_of(view) if view else ()), *case.arithmetic, *(counted or ())}
    ):
        traced = total(report, key)
        compiled = total(view, key) if view else None
        seen = counted.get(key, 0) if counted is not None and _is_counted(key) else None
        written = case.arithmetic.get(key)
        verdict, reason = judge(
            key, written, traced, compiled, seen, (view or report, report), complaint, opcodes or {}
        )
        if traced or compiled or seen or written:
            about = (topic, experiment, case.label, case.problem.name, case.name, identity["hash"])
            rows.append(Row(*about, key, written, traced, compiled, seen, verdict, reason))
    return rows


def judge(
    key: str,
    arithmetic: int | None,
    traced: int,
    compiled: int | None,
    counted: int | None,
    views: tuple[Trace, Trace],
    complaint: str,
    opcodes: Mapping[str, Sequence[int]],
) -> tuple[str, str]:
    """The verdict on one total, and its reason.

    `views` are the trace as compiled and the one as written, which stands in for the first where there is
    none. `complaint` says why there is none; then the opcodes that the profiler saw must show that the
    compiler made other accesses.
    """
    if arithmetic is not None and arithmetic != traced:
        return "open", f"arithmetic says {arithmetic:,}, the trace {traced:,}"
    reasons = []
    if compiled is not None and compiled != traced:
        reasons.append(_what_the_compiler_did(views[0], key))
    machine = traced if compiled is None else compiled
    if counted is not None and counted != machine:
        why = _not_claimed(views, key) or (complaint and _what_the_profiler_saw(views[1], key, opcodes))
        if not why:
            aside = f" ({complaint})" if complaint else ""
            return "open", f"it should cost {machine:,}, the profiler counted {counted:,}{aside}"
        reasons.append(why)
    if not all(reasons):
        return "open", "the compiler changed it, and no line of the comparison says where"
    return ("explained", "; ".join(reasons)) if reasons else ("exact", "")


def _what_the_compiler_did(view: Trace, key: str) -> str:
    """The lines on which the machine code makes other accesses, with the instructions that prove it."""
    space, op, _ = _parts(key)
    changed = view.comparison.different if view.comparison else ()
    said = []
    for line in (line for line in changed if (line.space, line.op) == (space, op)):
        before, after = line.written, line.compiled
        change = f"{before.requests:,} -> {after.requests:,} requests"
        said.append(f"line {line.line}: {change}: {', '.join(line.evidence) or 'no instruction is left'}")
    return "the compiler: " + "; ".join(said) if said else ""


def _what_the_profiler_saw(report: Trace, key: str, opcodes: Mapping[str, Sequence[int]]) -> str:
    """The executed instructions of one space and operation, if they are not as many as the source has."""
    space, op, _ = _parts(key)
    unit = UNITS[space]
    seen = {
        opcode: dict(zip(COLUMNS, numbers, strict=True))
        for opcode, numbers in opcodes.items()
        if (space, op) in OPCODES.get(opcode.split(".")[0], ())
    }
    written = sum(site.requests for site in report.sites if (site.space, site.op) == (space, op))
    if written == sum(counted["executed"] for counted in seen.values()):
        return ""
    said = [
        f"{n['instructions']} x {opcode}: {n['executed']:,} executed, {n[unit]:,} {unit}"
        for opcode, n in seen.items()
    ]
    return f"the compiler: {written:,} requests became {', '.join(said) or 'none'}, as the profiler saw"


def _not_claimed(views: tuple[Trace, Trace], key: str) -> str:
    """Why the model does not claim this total; '' if it does."""
    space, op, _ = _parts(key)
    mine = [site for view in views for site in view.sites if (site.space, site.op) == (space, op)]
    if (space, op) == ("global", "async_copy") and not mine:
        return "not claimed by the trace: it books an asynchronous copy once, where it arrives"
    sites = [site for site in mine if not site.modelled]
    if sites:
        names = sorted({site.instruction for site in sites})
        why = next((why for site in sites if (why := getattr(site, "not_modelled", ""))), "")
        return f"not claimed by the model: {', '.join(names)}" + (f" ({why})" if why else "")
    return ""


def _both_views(case: Case, compile_it: bool) -> tuple[Trace, Trace | None, str]:
    """The trace as written and as compiled, on the same inputs; and why there is no second one."""
    arguments = _arguments(case)
    run, complaint = None, "not compiled"
    if compile_it:
        try:
            run = run_compiled(
                case.kernel, _three(case.grid), _three(case.block), arguments, TARGET,
                dynamic_shared_bytes=case.dynamic_shared_bytes,
            )  # fmt: skip
            complaint = run.stopped  # it changes copies of the arrays
        except Error as error:
            complaint = str(error)
    source = trace(
        case.kernel, case.grid, case.block, *arguments, dynamic_shared_bytes=case.dynamic_shared_bytes
    )
    if run is None or complaint:
        return source, None, complaint
    view = as_compiled(source, run, arguments)
    differs = next((text for text in view.unmodelled if text.startswith("argument ")), "")
    return source, None if differs else view, differs


def _three(shape: int | tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*store.axes(shape), 1, 1)[:3]
    return x, y, z


def _arguments(case: Case) -> tuple[Any, ...]:
    values = Values.of(case.problem, SEED)
    outputs = {
        name: values.inputs[name].copy() if name in values.inputs else np.zeros_like(array)
        for name, array in values.outputs.items()
    }
    return case.arguments({**values.inputs, **outputs})


def _parts(key: str) -> tuple[str, str, str]:
    space, op, what = key.split(".")
    return space.rstrip("_"), op, what


def _totals_of(report: Trace) -> set[str]:
    """The totals that a trace's sites are compared by: wavefronts of shared memory, sectors of global."""
    return {
        f"{'global_' if site.space == 'global' else site.space}.{site.op}.{UNITS[site.space]}"
        for site in report.sites
        if site.space in UNITS
    }


def _is_counted(key: str) -> bool:
    space, op, what = _parts(key)
    return op != "total" and what in (UNITS[space], "ideal")


def total(report: Trace, key: str) -> int:
    """A total by its name, `"shared.load.wavefronts"`."""
    found: Any = report
    for name in key.split("."):
        found = getattr(found, name)
    return int(found)


def totals_counted(opcodes: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """The totals that a record's opcodes add up to.

    >>> totals_counted({"LDS.128": [4, 1024, 4096, 4096, 0], "LDS": [1, 32, 32, 32, 0]})
    {'shared.load.wavefronts': 4128, 'shared.load.ideal': 4128}
    """
    found: dict[str, int] = {}
    for opcode, numbers in opcodes.items():
        counted = dict(zip(COLUMNS, numbers, strict=True))
        for space, op in OPCODES.get(opcode.split(".")[0], ()):
            prefix = "global_" if space == "global" else space
            for what in ("sectors",) if space == "global" else ("wavefronts", "ideal"):
                if counted[what]:
                    key = f"{prefix}.{op}.{what}"
                    found[key] = found.get(key, 0) + counted[what]
    return found


def reconcile(
    topics: Mapping[str, Sequence[Experiment]],
    home: Path,
    on_case: Callable[[str], None] = lambda topic: None,
    source: Callable[[str], str] = lambda topic: f"lanewise.experiments.{topic}:experiments",
) -> list[Row]:
    """All totals of all counted cases, beside the counters in the folder `home`; several at once."""
    jobs = [
        (topic, source(topic), i, j, _recorded(home, topic, experiment, case))
        for topic, experiments in topics.items()
        for i, experiment in enumerate(experiments)
        for j, case in enumerate(experiment.counted)
    ]
    rows: dict[int, list[Row]] = {}
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(len(jobs), os.cpu_count() or 1) or 1, mp_context=context) as pool:
        futures = {pool.submit(_reconcile_job, *job): number for number, job in enumerate(jobs)}
        for future in as_completed(futures):
            rows[futures[future]] = future.result()
            on_case(jobs[futures[future]][0])
    return [row for number in sorted(rows) for row in rows[number]]


def _reconcile_job(topic: str, source: str, i: int, j: int, recorded: Mapping[str, Any] | None) -> list[Row]:
    experiment = load(source)()[i]
    return reconcile_case(topic, experiment.id, experiment.counted[j], recorded)


def _recorded(home: Path, topic: str, experiment: Experiment, case: Case) -> store.Row | None:
    """The counters of a case, if they were read from it as it is now."""
    identity = store.identity(case)
    content = store.read(home / f"{topic}.counters.json")
    for row in store.rows_of(content, experiment.id, "counters"):
        if "opcodes" in row and {k: row[k] for k in store.IDENTITY} == identity:
            return row
    return None


def provenance(home: Path, topics: Mapping[str, Sequence[Experiment]]) -> Provenance:
    """That of the newest counters, with the compiler that made the machine code."""
    stated = [store.read(home / f"{topic}.counters.json").get("provenance") for topic in topics]
    newest = max((Provenance(**one) for one in stated if one), key=lambda one: one.date, default=None)
    if newest is None:
        raise UnknownRecord(f"{home} has no counters. Run: lanewise counters --all")
    compiled = lower(_nothing, (), TARGET).compiled.tools
    return replace(newest, tools=f"{newest.tools}; traced and compiled with {compiled}", method=METHOD)


def _nothing() -> None:
    """The smallest kernel, to ask the compiler's version with."""
    return


def as_content(rows: Sequence[Row], old: store.Content, provenance: Provenance) -> store.Content:
    """What the record holds: a line for each case, its totals as [arithmetic, traced, compiled, counted].

    Topics that `rows` leaves out keep what `old` says of them.
    """
    cases: dict[tuple[str, ...], store.Row] = {}
    for row in rows:
        about = {name: getattr(row, name) for name in ABOUT}
        line = cases.setdefault(tuple(about.values()), {**about, "totals": {}, "reasons": {}, "open": []})
        line["totals"][row.total] = [row.arithmetic, row.traced, row.compiled, row.counted]
        if row.verdict == "explained":
            line["reasons"][row.total] = row.reason
        if row.verdict == "open":
            line["open"].append(f"{row.total}: {row.reason}")
    topics = {row.topic for row in rows}
    kept = [line for line in old.get("cases", []) if line["topic"] not in topics]
    lines = sorted([*kept, *cases.values()], key=lambda line: line["topic"])
    return {"provenance": asdict(provenance), "cases": lines}
