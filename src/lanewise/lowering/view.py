"""The compiled view of a traced launch."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from lanewise.errors import InvalidLaunch
from lanewise.lowering.lowered import CompiledRun, lower
from lanewise.lowering.report import CompiledSite, Counts

if TYPE_CHECKING:
    from lanewise.trace.report import Trace
    from lanewise.trace.sites import Site


def run_compiled(
    kernel: Any,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    arguments: Sequence[Any],
    target: str,
    *,
    dynamic_shared_bytes: int = 0,
    blocks: np.ndarray | None = None,
) -> CompiledRun:
    """Compile a kernel for `target` and run the machine code on copies of the arguments of a launch.

    Unlike the tracer, this compiles the kernel with numba, so it takes a function, not mere source text.
    """
    function: Any = getattr(kernel, "py_func", kernel)
    if not hasattr(function, "__code__"):
        raise InvalidLaunch(
            f"lowering={target!r}: numba compiles a kernel or a function, got a {type(kernel).__name__}."
            ' Pass the function itself, or use lowering="source".'
        )
    values = [getattr(value, "array", value) for value in arguments]
    missing = function.__code__.co_argcount - len(values)
    if missing > 0:
        values += (function.__defaults__ or ())[-missing:]
    lowered = lower(kernel, values, target)
    chosen = None if blocks is None else [int(number) for number in blocks]
    return lowered.run(grid, block, *values, dynamic_shared_bytes=dynamic_shared_bytes, blocks=chosen)


def as_compiled(trace: Trace, run: CompiledRun, arguments: Sequence[Any]) -> Trace:
    """Turn the trace of a launch into its compiled view: counts from `run`, hazards and values from the
    source.

    `arguments` are those of the launch after the source ran on them. Where the machine code left other
    values, the two views are of different programs, and `unmodelled` says so.
    """
    view = copy.copy(trace)
    view.lowering = run.kernel.target
    view.sites = cast("list[Site]", merged(run.sites))
    view.comparison = run.beside(trace.sites)
    values = [getattr(value, "array", value) for value in arguments]
    values += [None] * (len(run.arrays) - len(values))
    view.notes = [run.kernel.summary, *_local_memory(run), *trace.notes]
    view.unmodelled = [
        *run.unmodelled,
        *(
            f"argument {place + 1}: the machine code left other values than the source did, so its counts"
            " may be of a run that the GPU does not make. Please report the kernel."
            for place in run.differing_arrays(values)
        ),
    ]
    return view


def merged(sites: Sequence[CompiledSite]) -> list[CompiledSite]:
    """Sum up per line and instruction: what a reader wants of 16 loads that an unrolled loop left.

    Counters are summed; `machine` names the first and last instruction, `example` is the costliest access.
    Local memory is left out.
    """
    groups: dict[tuple[int, str, str, str], list[CompiledSite]] = {}
    for site in sites:
        if site.space != "local":
            groups.setdefault((site.line, site.space, site.op, site.instruction), []).append(site)
    return [_merged(groups[key]) for key in sorted(groups)]


def _merged(sites: list[CompiledSite]) -> CompiledSite:
    costliest = max(sites, key=lambda site: site.worst_wavefronts + site.worst_sectors)
    first, last = sites[0].machine, sites[-1].machine
    total = Counts.of(sites)
    return replace(
        costliest,
        machine=first if len(sites) == 1 else f"{first} .. {last}",
        requests=total.requests,
        wavefronts=total.wavefronts,
        ideal=total.ideal,
        sectors=total.sectors,
        fewest_sectors=sum(site.fewest_sectors for site in sites),
        lines=sum(site.lines for site in sites),
        bytes_requested=sum(site.bytes_requested for site in sites),
        not_modelled=next((site.not_modelled for site in sites if site.not_modelled), ""),
    )


def _local_memory(run: CompiledRun) -> list[str]:
    n_requests = sum(site.requests for site in run.sites if site.space == "local")
    if not n_requests:
        return []
    return [
        f"{n_requests:,} warp requests go to local memory (register spills, arrays with a run-time index);"
        " they are not in the totals."
    ]
