"""The model against recorded hardware counters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

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
    """
    return tuple(_replay(name, table.of(name)) for name in table.instructions)


def _replay(name: str, launches: Sequence[Launch]) -> Agreement:
    addresses = np.array([launch.byte_offsets for launch in launches])
    active = np.array(
        [[launch.active_mask >> lane & 1 for lane in range(WARP_LANES)] for launch in launches], bool
    )
    if INSTRUCTIONS[name].space == "shared":
        wavefronts, ideal = shared_wavefronts(name, addresses, active)
        modelled = {"wavefronts": wavefronts, "conflicts": wavefronts - ideal}
    else:
        requests, sectors = global_sectors(name, addresses, active)
        modelled = {"requests": requests, "sectors": sectors}
    exact = np.ones(len(launches), bool)
    for counter, counts in modelled.items():
        exact &= counts == np.array([launch.counters[counter] for launch in launches])
    return Agreement(name, len(launches), int(exact.sum()))
