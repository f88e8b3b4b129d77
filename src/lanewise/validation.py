"""The model against recorded hardware counters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lanewise.errors import UnknownRecord
from lanewise.instructions import Instruction, instruction
from lanewise.machine import WARP_LANES
from lanewise.memory import global_sectors, has_modelled_source, shared_wavefronts
from lanewise.records import CounterTable, Launch

_SHARED = ("wavefronts", "conflicts")
_GLOBAL = ("requests", "sectors")


@dataclass(frozen=True)
class Agreement:
    """How many recorded launches of one instruction the model reproduces exactly, in every counter of the
    table.

    `not_modelled` launches are those for which the model makes no claim: they are never among the exact ones.
    What is in neither is a disagreement.
    """

    instruction: str
    launches: int
    exact: int
    not_modelled: int = 0


def agreement(table: CounterTable) -> tuple[Agreement, ...]:
    """Replay every launch of a counter table through the model, instruction by instruction.

    The table's counters are `wavefronts` and `conflicts` (shared memory), `requests` and `sectors` (global),
    or all four (asynchronous copies). What the profiler's source page estimates (`ideal`) is none of them.

    >>> from lanewise.records import counter_table
    >>> agreement(counter_table("h200", "global_sectors"))[0]
    Agreement(instruction='st.global.b128', launches=27, exact=27, not_modelled=0)

    Raises `UnknownRecord` for a table with other counters, and `UnknownInstruction` for one with an
    instruction that `lanewise.instructions` does not name.
    """
    if not isinstance(table, CounterTable):
        raise UnknownRecord(f"agreement: got {table!r}. Give a table read with records.counter_table.")
    return tuple(_replay(instruction(name), table.of(name)) for name in table.instructions)


def _replay(spec: Instruction, launches: Sequence[Launch]) -> Agreement:
    counters = _counters(spec, launches)
    modelled = np.full(len(launches), not spec.not_modelled)
    if spec.op == "async_copy" and counters & set(_SHARED):
        modelled &= has_modelled_source(spec.name, _sources(spec, launches), _active(launches))
    claimed = [launch for launch, known in zip(launches, modelled, strict=True) if known]
    exact = np.ones(len(claimed), bool)
    counts = _counts(spec, claimed, counters) if claimed else {}
    for counter in counts:
        exact &= counts[counter] == np.array([launch.counters[counter] for launch in claimed])
    return Agreement(spec.name, len(launches), int(exact.sum()), len(launches) - len(claimed))


def _counters(spec: Instruction, launches: Sequence[Launch]) -> set[str]:
    """The counters that every launch has; all of them must be such as the model computes."""
    known = (_SHARED if spec.touches("shared") else ()) + (_GLOBAL if spec.touches("global") else ())
    found = set(launches[0].counters)
    for launch in launches:
        if not launch.counters or set(launch.counters) - set(known) or set(launch.counters) != found:
            raise UnknownRecord(
                f"agreement: {spec.name} was recorded with {', '.join(launch.counters) or 'no counter'}; the"
                f" model counts {', '.join(known)}. Take a table that has these, the same in every launch."
            )
    return found


def _counts(spec: Instruction, launches: Sequence[Launch], counters: set[str]) -> dict[str, np.ndarray]:
    """What the model says of the counters, launch by launch."""
    addresses, active = np.array([launch.byte_offsets for launch in launches]), _active(launches)
    copies = spec.op == "async_copy"
    counts: dict[str, np.ndarray] = {}
    if counters & set(_SHARED):
        sources = _sources(spec, launches) if copies else None
        wavefronts, ideal = shared_wavefronts(spec.name, addresses, active, source_addresses=sources)
        counts |= {"wavefronts": wavefronts, "conflicts": wavefronts - ideal}
    if counters & set(_GLOBAL):
        read = _sources(spec, launches) if copies else addresses
        requests, sectors = global_sectors(spec.name, read, active)
        counts |= {"requests": requests, "sectors": sectors}
    return {counter: counts[counter] for counter in counters}


def _active(launches: Sequence[Launch]) -> np.ndarray:
    return np.array(
        [[launch.active_mask >> lane & 1 for lane in range(WARP_LANES)] for launch in launches], bool
    )


def _sources(spec: Instruction, launches: Sequence[Launch]) -> np.ndarray:
    """The source addresses of asynchronous copies; a launch that states none copies a contiguous source."""
    contiguous = tuple(spec.bytes_per_lane * lane for lane in range(WARP_LANES))
    return np.array([launch.source_offsets or contiguous for launch in launches])
