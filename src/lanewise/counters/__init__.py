"""Hardware counters of every counted case, read with Nsight Compute.

- `metrics`: what is read, by our names and the profiler's
- `child`: the program that runs under the profiler; `ncu`: the profiler and its reports
- `runner`: which experiments are due, and what is written

Counters are read from launches of their own, with the clocks left alone, and never timed. Those that follow
addresses exactly (`opcodes`) are kept apart from those of the hardware units (`metrics`), which also count
lost arbitration.
"""

from dataclasses import replace

from lanewise import measure
from lanewise.counters.ncu import ProfilerFailed, find_ncu, version
from lanewise.counters.runner import Plan, count, n_due
from lanewise.errors import Unfit
from lanewise.records import Provenance

__all__ = ["Plan", "ProfilerFailed", "count", "find_ncu", "n_due", "provenance", "why_no_profiler"]

METHOD = (
    "Each case launched once for each pass of the profiler, with cold caches and the clocks left alone, on"
    " random input; the result equals the reference."
)


def provenance(ncu: str) -> Provenance:
    """What this machine would write beside its counters."""
    here = measure.provenance(0, 0)
    return replace(here, tools=f"Nsight Compute {version(ncu)}, {here.tools}", method=METHOD)


def why_no_profiler() -> str:
    """Say why counters cannot be read here; empty if Nsight Compute is there (it may still be refused)."""
    try:
        find_ncu()
    except Unfit as error:
        return str(error)
    return ""
