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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lanewise.errors import Error
from lanewise.experiments import Case
from lanewise.measure import store
from lanewise.measure.protocol import Values
from lanewise.trace import Trace, trace

TARGET = "sm_90"
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

    @property
    def as_row(self) -> dict[str, Any]:
        """The row as a record has it."""
        return asdict(self)


def reconcile_case(
    topic: str, experiment: str, case: Case, recorded: Mapping[str, Any] | None, compile_it: bool = True
) -> list[Row]:
    """The totals of one case. `recorded` is its row of the counter record, if there is one."""
    report, view, complaint = _both_views(case, compile_it)
    counted = totals_counted(recorded["opcodes"]) if recorded and "opcodes" in recorded else None
    identity = store.identity(case)
    rows = []
    for key in sorted(
        {*_totals_of(report), *(_totals_of(view) if view else ()), *case.arithmetic, *(counted or ())}
    ):
        traced = total(report, key)
        compiled = total(view, key) if view else None
        seen = counted.get(key, 0) if counted is not None and _is_counted(key) else None
        written = case.arithmetic.get(key)
        verdict, reason = judge(key, written, traced, compiled, seen, view or report, complaint)
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
    view: Trace,
    complaint: str,
) -> tuple[str, str]:
    """The verdict on one total, and its reason."""
    if arithmetic is not None and arithmetic != traced:
        return "open", f"arithmetic says {arithmetic:,}, the trace {traced:,}"
    reasons = []
    if compiled is not None and compiled != traced:
        reasons.append(_what_the_compiler_did(view, key))
    machine = traced if compiled is None else compiled
    if counted is not None and counted != machine:
        if not (why := _not_claimed(view, key)):
            aside = f" ({complaint})" if complaint else ""
            return (
                "open",
                f"the machine code should cost {machine:,}, the profiler counted {counted:,}{aside}",
            )
        reasons.append(why)
    if not all(reasons):
        return "open", "the compiler changed it, and no line of the comparison says where"
    return ("explained", "; ".join(reasons)) if reasons else ("exact", "")


def _what_the_compiler_did(view: Trace, key: str) -> str:
    """The lines on which the machine code makes other accesses, with the instructions that prove it."""
    space, op, _ = _parts(key)
    lines = (
        [line for line in view.comparison.different if (line.space, line.op) == (space, op)]
        if view.comparison
        else []
    )
    said = []
    for line in lines:
        before, after = line.written, line.compiled
        change = f"{before.requests:,} -> {after.requests:,} requests"
        said.append(f"line {line.line}: {change}: {', '.join(line.evidence) or 'no instruction is left'}")
    return "the compiler: " + "; ".join(said) if said else ""


def _not_claimed(view: Trace, key: str) -> str:
    """Why the model does not claim this total; '' if it does."""
    space, op, _ = _parts(key)
    sites = [site for site in view.sites if (site.space, site.op) == (space, op) and not site.modelled]
    if sites:
        names = sorted({site.instruction for site in sites})
        why = next((site.not_modelled for site in sites if getattr(site, "not_modelled", "")), "")
        return f"not claimed by the model: {', '.join(names)}" + (f" ({why})" if why else "")
    return ""


def _both_views(case: Case, compile_it: bool) -> tuple[Trace, Trace | None, str]:
    """The trace as written and as compiled, on the same inputs; and why there is no second one."""
    values = Values.of(case.problem, SEED)

    def arguments() -> tuple[Any, ...]:
        given = {
            name: np.copy(value) if isinstance(value, np.ndarray) else value
            for name, value in values.inputs.items()
        }
        blank = {name: np.zeros_like(array) for name, array in values.outputs.items()}
        return case.arguments({**given, **{name: given.get(name, array) for name, array in blank.items()}})

    def run(lowering: str) -> Trace:
        return trace(
            case.kernel, case.grid, case.block, *arguments(),
            dynamic_shared_bytes=case.dynamic_shared_bytes, lowering=lowering,
        )  # fmt: skip

    source = run("source")
    if not compile_it:
        return source, None, "not compiled"
    try:
        return source, run(TARGET), ""
    except Error as error:
        return source, None, str(error)


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


def counter_rows(content: store.Content, experiment: str) -> Iterator[tuple[str, str, store.Row]]:
    """The good rows of an experiment in a counter file: label, problem, row."""
    for row in store.rows_of(content, experiment, "counters"):
        if "error" not in row and not row["profiled"]:
            yield row["label"], row["problem"], row
