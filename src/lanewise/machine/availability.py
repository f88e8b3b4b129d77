"""On which compute capabilities an instruction exists.

Source: PTX ISA 9.0, Target ISA Notes of each instruction; checked by assembling each one for each target with
ptxas 13.0.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lanewise.errors import UnknownInstruction


@dataclass(frozen=True, slots=True)
class Availability:
    """Where an instruction exists: from compute capability `since` on, or if `only` is given, there alone."""

    since: tuple[int, int]
    only: tuple[tuple[int, int], ...] = ()


_TURING, _AMPERE, _ADA, _HOPPER, _BLACKWELL = (7, 5), (8, 0), (8, 9), (9, 0), (10, 0)
_CONSUMER_BLACKWELL = (12, 0)

AVAILABILITY: Mapping[str, Availability] = MappingProxyType(
    {
        "ld": Availability(_TURING),
        "ld.global.b256": Availability(_BLACKWELL),
        "st": Availability(_TURING),
        "st.global.b256": Availability(_BLACKWELL),
        "atom": Availability(_TURING),
        "red": Availability(_TURING),
        "shfl": Availability(_TURING),
        "ldmatrix": Availability(_TURING),
        "movmatrix": Availability(_TURING),
        "stmatrix": Availability(_HOPPER),
        "cp.async": Availability(_AMPERE),
        "cp.async.bulk": Availability(_HOPPER),
        "cp.async.bulk.tensor": Availability(_HOPPER),
        "tma": Availability(_HOPPER),  # the unit behind cp.async.bulk and cp.async.bulk.tensor
        "mbarrier": Availability(_AMPERE),
        "mbarrier.try_wait": Availability(_HOPPER),
        "mbarrier.expect_tx": Availability(_HOPPER),
        "barrier.cluster": Availability(_HOPPER),
        "elect": Availability(_HOPPER),
        "redux": Availability(_AMPERE),
        "setmaxnreg": Availability(_HOPPER),
        "mma.m16n8k8.f16": Availability(_TURING),
        "mma.m16n8k16.f16": Availability(_AMPERE),
        "mma.m16n8k8.bf16": Availability(_AMPERE),
        "mma.m16n8k16.bf16": Availability(_AMPERE),
        "mma.m16n8k4.tf32": Availability(_AMPERE),
        "mma.m16n8k8.tf32": Availability(_AMPERE),
        "mma.m8n8k16.s8": Availability(_TURING),
        "mma.m16n8k16.s8": Availability(_AMPERE),
        "mma.m16n8k32.s8": Availability(_AMPERE),
        "mma.m8n8k4.f64": Availability(_AMPERE),
        "mma.m16n8k8.f64": Availability(_HOPPER),
        "mma.m16n8k16.f64": Availability(_HOPPER),
        "mma.m16n8k32.e4m3": Availability(_ADA),
        "mma.m16n8k32.e5m2": Availability(_ADA),
        "mma.m16n8k32.e2m1": Availability(_CONSUMER_BLACKWELL, only=(_CONSUMER_BLACKWELL,)),
        "wgmma": Availability(_HOPPER, only=(_HOPPER,)),
        "tcgen05": Availability(_BLACKWELL, only=(_BLACKWELL,)),
    }
)


def matching(name: str) -> list[str]:
    """Entries that answer for a dotted name: the longest that starts it, or else all that it starts."""
    parts = str(name).lower().split(".")
    for length in range(len(parts), 0, -1):
        entry = ".".join(parts[:length])
        if entry in AVAILABILITY:
            return [entry]
    longer = [entry for entry in AVAILABILITY if entry.split(".")[: len(parts)] == parts]
    if not longer:
        near = difflib.get_close_matches(str(name), AVAILABILITY, n=3, cutoff=0.4)
        hint = f"Did you mean {', '.join(near)}?" if near else f"Known: {', '.join(AVAILABILITY)}."
        raise UnknownInstruction(f"{name!r} is not an instruction that lanewise.machine knows of. {hint}")
    return longer
