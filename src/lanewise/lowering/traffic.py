"""Counting what each memory instruction of the machine code does over a run."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from lanewise.access import WarpAccess
from lanewise.errors import Error, NotModelled
from lanewise.instructions import INSTRUCTIONS
from lanewise.lowering.registers import Array
from lanewise.lowering.sass import MachineInstruction
from lanewise.machine import LINE_BYTES, SECTOR_BYTES, WARP_LANES
from lanewise.memory import global_sectors, shared_wavefronts

# global_atomics.csv against machine_code.json: only the first counts lanes that share a word one by one.
_UNSETTLED = (
    "no cost is claimed, for the profiler has two: distinct sectors on its source page, and in the hardware"
    " counter more than those where lanes share a word or spread over many lines"
)
_CONTESTED = (
    "how often it runs, for which lanes or at which addresses depends on the order of atomics: the counts are"
    " of one possible run"
)


class Stopped(NotModelled):
    """The machine code did something that is not modelled, so the run ends with what was counted so far."""


@dataclass
class Traffic:
    """What one memory instruction did over a run.

    `requests` counts warp instructions with at least one active lane; `fewest_sectors` could hold the bytes
    of each request, summed. `wavefronts`, `ideal` and the sectors are 0 where they do not apply, and
    `uncounted` says why they are missing although they should apply. `contested` tells that an execution or
    an address came about by the order of atomics, as in a loop that retries one.
    """

    instruction: MachineInstruction
    space: str
    requests: int = 0
    wavefronts: int = 0
    ideal: int = 0
    sectors: int = 0
    fewest_sectors: int = 0
    lines: int = 0
    bytes_requested: int = 0
    uncounted: str = ""
    contested: bool = False
    example: WarpAccess | None = None
    worst: int = field(default=-1, repr=False)
    worst_warp: int = 0

    def add(self, addresses: Array, active: Array, unknown: bool, warps: Array) -> None:
        """Count one execution: `(n_warps, 32)` byte addresses and active lanes, and the warps' numbers."""
        used = active.any(axis=1)
        addresses, active = addresses[used], active[used]
        warps = warps[used]
        self.requests += len(active)
        if unknown:
            self.uncounted = "its address depends on a value that is not computed"
            return
        self.bytes_requested += int(self._row_bytes(addresses, active).sum())
        name = self.model_name
        if name not in INSTRUCTIONS:
            unsettled = self.space == "global" and self.instruction.kind in ("reduction", "atomic")
            self.uncounted = "" if self.space == "local" else _UNSETTLED if unsettled else "no cost is known"
        elif INSTRUCTIONS[name].not_modelled:
            self.uncounted = INSTRUCTIONS[name].not_modelled
        elif len(active):
            self._charge(name, addresses, active, warps)

    def _row_bytes(self, addresses: Array, active: Array) -> Array:
        """Distinct bytes that each warp instruction asks for: `(n_warps,)`."""
        return _distinct(addresses, active) * self.instruction.bytes_per_lane

    @property
    def not_modelled(self) -> str:
        """Why nothing is claimed of the costs, or empty."""
        return "; ".join(filter(None, (self.uncounted, _CONTESTED if self.contested else "")))

    @property
    def model_name(self) -> str:
        """The access in `lanewise.instructions`; a generic one is known to be global once it has an
        address."""
        ins = self.instruction
        if ins.space == "generic" and ins.kind in ("load", "store"):
            return f"{'ld' if ins.kind == 'load' else 'st'}.{self.space}.b{8 * ins.bytes_per_lane}"
        return ins.model_name

    def _charge(self, name: str, addresses: Array, active: Array, warps: Array) -> None:
        spec = INSTRUCTIONS[name]
        if spec.is_matrix:
            addresses = np.where(np.arange(WARP_LANES) < spec.address_lanes, addresses, 0)
        try:
            if spec.space == "shared":
                costs, ideal = shared_wavefronts(name, addresses, active)
                self.wavefronts += int(costs.sum())
                self.ideal += int(ideal.sum())
            else:
                _, costs = global_sectors(name, addresses, active)
                self.sectors += int(costs.sum())
                fewest = -(-self._row_bytes(addresses, active) // SECTOR_BYTES)
                self.fewest_sectors += int(np.minimum(fewest, costs).sum())
                self.lines += int(_distinct(addresses // LINE_BYTES, active).sum())
        except Error as error:
            raise Stopped(f"Line {self.instruction.line}: {self.instruction.text}: {error}") from error
        row = int(costs.argmax())
        if costs[row] > self.worst:
            self.worst, self.worst_warp = int(costs[row]), int(warps[row])
            mask = sum(1 << int(lane) for lane in active[row].nonzero()[0])
            self.example = WarpAccess(name, tuple(np.where(active[row], addresses[row], 0).tolist()), mask)


def _distinct(addresses: Array, active: Array) -> Array:
    """Distinct addresses that the active lanes of each row name: `(n_rows,)`."""
    ordered = np.sort(np.where(active, addresses, np.iinfo(np.int64).max), axis=1)
    fresh = ordered != np.iinfo(np.int64).max
    fresh[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    counts: Array = fresh.sum(axis=1)
    return counts
