"""What checks ask: costs of accesses in one line, traces of the course's kernels, recorded measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from lanewise.access import PerLane, WarpAccess
from lanewise.claims.claim import InvalidClaim
from lanewise.errors import Misaligned
from lanewise.memory import GlobalCost, SharedCost, global_cost, shared_cost
from lanewise.records import Provenance, counter_table, record
from lanewise.results import Results, experiment
from lanewise.text import with_article

if TYPE_CHECKING:
    from lanewise.trace import Trace

GPU = "h200"
MISALIGNED = "misaligned"
COUNTED = "shared_wavefronts"  # the record that is a table of counters

Formula = Callable[[np.ndarray], Any]


def lanes(instruction: str, byte_address: Formula, active_mask: int = 0xFFFFFFFF) -> SharedCost:
    """The shared-memory cost of lanes at the byte addresses of a formula."""
    return shared_cost(WarpAccess.from_formula(instruction, byte_address, active_mask))


def sectors(instruction: str, byte_address: Formula) -> GlobalCost:
    """The global-memory cost of lanes at the byte addresses of a formula."""
    return global_cost(WarpAccess.from_formula(instruction, byte_address))


def column(pitch: int, element_bytes: int = 4, instruction: str = "") -> int:
    """Wavefronts to read column 0 of a tile: lane = row, rows `pitch` elements apart."""
    name = instruction or f"ld.shared.b{8 * element_bytes}"
    return lanes(name, lambda lane: lane * pitch * element_bytes).wavefronts


def row(pitch: int, element_bytes: int = 4) -> int:
    """Wavefronts to read a row of a tile: lane = column, whatever the pitch."""
    access = WarpAccess.from_tile(f"ld.shared.b{8 * element_bytes}", 3, range(32), pitch, element_bytes)
    return shared_cost(access).wavefronts


def tile(
    instruction: str, layout: Callable[..., Any], row: PerLane, col: PerLane, element_bytes: int = 4
) -> SharedCost:
    """The cost of a warp at these rows and columns of a tile that a layout places."""
    return shared_cost(WarpAccess.from_layout(instruction, layout, row, col, element_bytes))


def or_misaligned(count: Callable[[], Any]) -> Any:
    """What `count` gives, or `"misaligned"` where the instruction may not be issued at all."""
    try:
        return count()
    except Misaligned:
        return MISALIGNED


def recorded(id: str) -> Results:
    """The recorded run of an experiment on the H200."""
    return experiment(GPU, id)


def counted(instruction: str, byte_address: Formula, counter: str = "wavefronts") -> int:
    """A hardware counter of one warp instruction on the H200: record `shared_wavefronts`."""
    offsets = [int(value) for value in np.broadcast_to(byte_address(np.arange(32)), 32)]
    return counter_table(GPU, COUNTED).find(instruction, offsets).counters[counter]


def rows(slug: str, name: str) -> tuple[Any, ...]:
    """The rows of a table of an H200 record."""
    return record(GPU, slug).rows(name)


@cache
def traced(id: str, label: str, problem: str = "") -> Trace:
    """Trace a counted case of an experiment, without a GPU. Needs numba, for the kernels.

    Raises `InvalidClaim` for a case that the experiments do not have.
    """
    from lanewise.experiments import all_experiments
    from lanewise.trace import trace

    there_are = [
        case
        for experiments in all_experiments().values()
        for each in experiments
        if each.id == id
        for case in each.counted
        if problem in ("", case.problem.name)
    ]
    case = next((case for case in there_are if case.label == label), None)
    if case is None:
        labels = ", ".join(dict.fromkeys(repr(case.label) for case in there_are)) or "none"
        raise InvalidClaim(f"traced: {id} counts no case {label!r}; it has {labels}.")
    inputs = dict(case.problem.inputs(np.random.default_rng(7)))
    outputs = {name: np.zeros_like(array) for name, array in case.problem.outputs(inputs).items()}
    given = case.arguments({**outputs, **inputs})
    return trace(case.kernel, case.grid, case.block, *given, dynamic_shared_bytes=case.dynamic_shared_bytes)


def recorded_where(names: Iterable[str]) -> str:
    """On which GPU and days these experiments and records were taken, as a page says it.

    >>> recorded_where(["E-04", "shared_wavefronts"])
    '2 records of an NVIDIA H200, 2026-11-29 and 2026-11-30.'
    """
    chosen = tuple(dict.fromkeys(names))
    told = {(p.gpu, p.date) for name in chosen for p in _provenances(name)}
    gpus, dates = (sorted({each[i] for each in told}) for i in (0, 1))
    return f"{len(chosen)} records of {with_article(', '.join(gpus))}, {' and '.join(dates)}."


def _provenances(name: str) -> tuple[Provenance, ...]:
    if name.startswith("E-"):
        run = recorded(name)
        return tuple(p for p in (run.provenance, run.counted_on) if p)
    if name == COUNTED:
        return (counter_table(GPU, name).provenance,)
    return (record(GPU, name).provenance,)
