"""The faults and clean twins of tests/test_hazards.py that a tool of compute-sanitizer knows, and some more.

The tools have no counterpart for races in global memory and for reads of shared memory that nobody wrote.
"""

import linecache
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from lanewise.trace import uninitialized
from lanewise.trace.arguments import Uninitialized
from tests.test_hazards import BARRIER, CLEAN, FAULTS, HEAD, Probe

TOOLS = {
    "out_of_bounds": "memcheck",
    "misaligned": "memcheck",
    "shared_race": "racecheck",
    "divergent_barrier": "synccheck",
    "divergent_warp_op": "synccheck",
    "uninitialized_read": "initcheck",
}


_ENDS = (
    "Only some threads of the block reach the barrier, which CUDA leaves undefined. The others run to the end"
    " of the kernel, and an exited thread counts as arrived, so this GPU finishes and synccheck has nothing"
    " to see."
)
_LANES_END = (
    "The mask names lanes that do not execute the instruction, so its result is undefined. They run to the"
    " end of the kernel, and the hardware does not wait for exited lanes, so synccheck has nothing to see."
)
# Why the tracer and the tool differ. In each case the tracer is right by its own definition, which is about
# the source: an index outside its array's shape, a barrier that some threads miss, accesses in no order.
REASONS = {
    ("out_of_bounds", "read"): (
        "a[128] lies past its 128 elements. The driver hands out memory in steps of 512 bytes, so b begins"
        " there: memcheck checks the address, not the array."
    ),
    ("out_of_bounds", "column that lands in the next row"): (
        "a[0, 63] lies past its 63 columns. It is the address of a[1, 0], in the same allocation:"
        " memcheck checks the address, not the shape."
    ),
    ("out_of_bounds", "uint index"): (
        "An index of 2**63 and more lies past every array. Times 4 bytes it wraps around to the address of"
        " b[t]: memcheck checks the address, not the index."
    ),
    ("shared_race", "atomic beside plain"): (
        "The plain read sees the counter before, between or after the updates of other threads. In this code"
        " the update is a generic atomic instruction (ATOM), and racecheck reports no hazard between it and a"
        " plain access."
    ),
    ("shared_race", "same value"): (
        "All threads write 1, which the tracer calls benign. racecheck leaves out writes of equal values."
    ),
    ("divergent_barrier", "in a branch"): _ENDS,
    ("divergent_barrier", "one lane short"): _ENDS,
    ("divergent_barrier", "loop of varying length"): _ENDS,
    ("divergent_barrier", "break before it"): _ENDS,
    ("divergent_barrier", "in a while"): _ENDS,
    ("divergent_barrier", "voting"): _ENDS,
    ("divergent_barrier", "continue past it"): (
        "Threads 0 and 1 pass the barrier once, the others twice, so that different rounds of the loop meet."
        " In the unoptimised code both rounds execute one barrier instruction, and synccheck reports nothing;"
        " it does in the optimised code, where they are two."
    ),
    ("divergent_warp_op", "shuffle in a branch"): _LANES_END,
    ("divergent_warp_op", "ballot in a branch"): _LANES_END,
    ("divergent_warp_op", "match in a branch"): _LANES_END,
    ("divergent_warp_op", "syncwarp in a branch"): _LANES_END,
    ("divergent_warp_op", "loop of varying length"): _LANES_END,
    ("divergent_warp_op", "mask without the caller"): (
        "Lanes 16 to 31 call with a mask that leaves them out, which is undefined. The unoptimised code traps"
        " and synccheck finds it; the optimised code is a lone SHFL without WARPSYNC, with no mask left to"
        " check."
    ),
}


def _unwritten(n: int = 64) -> Any:
    return uninitialized(np.zeros(n, np.float32))


# Reads of global memory that nobody wrote: the hazard tests have one of each, which is few for a comparison.
MORE_FAULTS = {
    "uninitialized_read": {
        "global, nobody wrote": Probe("a[t] = b[t]  # FAULT", b=_unwritten()),
        "global, one element short": Probe(
            "if t < 63:\n    b[t + 1] = a[t]\n" + BARRIER + "a[t] = b[t]  # FAULT", b=_unwritten()
        ),
        "global, every other one": Probe(
            "if t % 2:\n    b[t] = a[t]\n" + BARRIER + "a[t] = b[t // 2 * 2]  # FAULT", b=_unwritten()
        ),
        "global, atomic on nothing": Probe("cuda.atomic.add(b, t, 1)  # FAULT", b=_unwritten()),
    }
}
MORE_CLEAN = {
    "uninitialized_read": {
        "global, guarded": Probe(
            "if t < 50:\n    b[t] = 1\n" + BARRIER + "if t < 50:\n    a[t] = b[49 - t]", b=_unwritten()
        ),
        "global, atomic after a store": Probe("b[t] = 0\ncuda.atomic.add(b, t, 1)", b=_unwritten()),
        "global, only written": Probe("b[t] = a[t]", b=_unwritten()),
        "global, two blocks": Probe(
            "i = cuda.grid(1)\nb[i] = a[i]\na[i] = b[i] + 1", grid=2, b=_unwritten(128)
        ),
    }
}


@dataclass(frozen=True)
class Twin:
    """One probe of a hazard kind: planted with the fault, or clean."""

    kind: str
    planted: bool
    case: str
    probe: Probe

    @property
    def name(self) -> str:
        return f"{self.kind}/{'planted' if self.planted else 'clean'}/{self.case}"

    @property
    def tool(self) -> str:
        return TOOLS[self.kind]

    @property
    def text(self) -> str:
        """The module that defines the kernel; the same lines as in the hazard tests."""
        body = "".join(f"    {line}\n" for line in self.probe.body.strip("\n").split("\n"))
        return f"{HEAD}def kernel({self.probe.kernel_parameters}):\n    t = cuda.threadIdx.x\n{body}"

    @property
    def marked_lines(self) -> list[int]:
        return [number for number, line in enumerate(self.text.split("\n"), 1) if "# FAULT" in line]

    @property
    def arguments(self) -> tuple[np.ndarray, ...]:
        """The arrays of a launch, without the mark that one starts uninitialised."""
        return tuple(_plain(arg) for arg in (self.probe.a, self.probe.b))

    @property
    def uninitialized(self) -> tuple[np.ndarray, ...]:
        return tuple(_plain(arg) for arg in (self.probe.a, self.probe.b) if isinstance(arg, Uninitialized))

    def verdict(self) -> str:
        """What the tracer says of its kind: the gravest severity found, or "silent"."""
        found = {hazard.severity for hazard in self.probe.run()[0].hazards if hazard.kind == self.kind}
        return next((word for word in ("error", "lock_step", "benign") if word in found), "silent")

    def function(self) -> Callable[..., Any]:
        """The kernel as a Python function, for numba."""
        name = "probe.py"
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(keepends=True), name)
        names: dict[str, Any] = {}
        exec(compile(self.text, name, "exec"), names)
        return names["kernel"]


def all_twins() -> list[Twin]:
    """Every probe that one of the tools has a counterpart for."""
    found = [
        Twin(kind, planted, case, probe)
        for planted, tables in ((True, (FAULTS, MORE_FAULTS)), (False, (CLEAN, MORE_CLEAN)))
        for table in tables
        for kind, probes in table.items()
        for case, probe in probes.items()
    ]
    return [twin for twin in found if _has_counterpart(twin)]


def _has_counterpart(twin: Twin) -> bool:
    if twin.kind == "uninitialized_read":
        return bool(twin.uninitialized)
    if twin.kind == "shared_race":
        return "shared.array" in twin.probe.body
    return twin.kind in TOOLS


def _plain(arg: Any) -> Any:
    return arg.array if isinstance(arg, Uninitialized) else arg
