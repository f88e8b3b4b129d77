"""The model against recorded hardware counters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lanewise.errors import UnknownRecord
from lanewise.instructions import INSTRUCTIONS
from lanewise.machine import WARP_LANES
from lanewise.memory import global_sectors, shared_wavefronts
from lanewise.records import CounterTable, Launch


@dataclass(frozen=True)
class Agreement:
    """How many recorded launches of one instruction the model reproduces exactly, in every counter of the
    table."""

    instruction: str
    launches: int
    exact: int


def agreement(table: CounterTable) -> tuple[Agreement, ...]:
    """Replay every launch of a counter table through the model, instruction by instruction.

    The table's counters are `wavefronts` and `conflicts` (shared memory) or `requests` and `sectors`
    (global).

    >>> from lanewise.records import counter_table
    >>> agreement(counter_table("h200", "global_sectors"))[0]
    Agreement(instruction='st.global.b128', launches=27, exact=27)

    Raises `NotModelled` for a table with an instruction, or a scattered source of one, that has no rule, and
    `UnknownRecord` for one with other counters.
    """
    if not isinstance(table, CounterTable):
        raise UnknownRecord(f"agreement: got {table!r}. Give a table read with records.counter_table.")
    return tuple(_replay(name, table.of(name)) for name in table.instructions)


def _replay(name: str, launches: Sequence[Launch]) -> Agreement:
    addresses = np.array([launch.byte_offsets for launch in launches])
    active = np.array(
        [[launch.active_mask >> lane & 1 for lane in range(WARP_LANES)] for launch in launches], bool
    )
    if INSTRUCTIONS[name].space == "shared":
        wavefronts, ideal = shared_wavefronts(name, addresses, active, source_addresses=_sources(launches))
        modelled = {"wavefronts": wavefronts, "conflicts": wavefronts - ideal}
    else:
        requests, sectors = global_sectors(name, addresses, active)
        modelled = {"requests": requests, "sectors": sectors}
    exact = np.ones(len(launches), bool)
    for counter, counts in modelled.items():
        if any(counter not in launch.counters for launch in launches):
            raise UnknownRecord(
                f"agreement: {name} was recorded with {', '.join(launches[0].counters)}; the model counts"
                f" {', '.join(modelled)}. Take a table that has these."
            )
        exact &= counts == np.array([launch.counters[counter] for launch in launches])
    return Agreement(name, len(launches), int(exact.sum()))


def _sources(launches: Sequence[Launch]) -> np.ndarray | None:
    """The source addresses of asynchronous copies; None for anything else."""
    spec = INSTRUCTIONS[launches[0].instruction]
    if spec.op != "async_copy":
        return None
    contiguous = tuple(spec.bytes_per_lane * lane for lane in range(WARP_LANES))
    return np.array([launch.source_offsets or contiguous for launch in launches])
