"""What machine code did, line by line, beside what the source says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lanewise.access import WarpAccess
from lanewise.lowering.render import html
from lanewise.machine import SECTOR_BYTES
from lanewise.memory import global_cost, shared_cost
from lanewise.text import count

WAVEFRONT_BYTES = 128


@dataclass(frozen=True)
class CompiledSite:
    """One memory instruction of the machine code and what all its executions cost together.

    The names are those of a traced source site. `machine` is the instruction as disassembled, `instruction`
    its name in `lanewise.instructions` (or the opcode, where the model has no rule and `modelled` is False).
    `requests` counts warp instructions with an active lane, as hardware counters do: a predicated-off
    execution costs nothing. `sectors`, `fewest_sectors` and `lines` belong to global memory, `wavefronts`
    and `ideal` to shared memory.
    """

    filename: str
    line: int
    source: str
    op: str
    space: str
    instruction: str
    machine: str
    address: int
    requests: int
    wavefronts: int
    ideal: int
    sectors: int
    fewest_sectors: int
    lines: int
    bytes_requested: int
    example: WarpAccess | None
    example_block: tuple[int, int, int] | None
    example_warp: int
    not_modelled: str
    column: int = 0
    array: str = ""

    @property
    def modelled(self) -> bool:
        """Whether the costs are claimed."""
        return not self.not_modelled

    @property
    def excess(self) -> int:
        """Wavefronts above the ideal, which Nsight Compute calls bank conflicts (shared), or sectors beyond
        those that the bytes of each request could fill (global)."""
        return self.wavefronts - self.ideal if self.space == "shared" else self.sectors - self.fewest_sectors

    @property
    def bytes_moved(self) -> int:
        """Bytes of the sectors or wavefronts that carried the requests."""
        return self.sectors * SECTOR_BYTES if self.space == "global" else self.wavefronts * WAVEFRONT_BYTES

    @property
    def worst_wavefronts(self) -> int:
        """Wavefronts of the worst request."""
        return self._worst("shared")

    @property
    def worst_sectors(self) -> int:
        """Sectors of the worst request."""
        return self._worst("global")

    def _worst(self, space: str) -> int:
        if self.example is None or self.space != space:
            return 0
        return (
            shared_cost(self.example).wavefronts if space == "shared" else global_cost(self.example).sectors
        )

    @property
    def degree(self) -> int:
        """The n of the worst n-way conflict."""
        return shared_cost(self.example).degree if self.example and self.space == "shared" else 0

    @property
    def opcode(self) -> str:
        """The opcode with its modifiers, without a guard."""
        return self.machine.split()[1 if self.machine.startswith("@") else 0]


class CountedSite(Protocol):
    """What a comparison reads of a source site."""

    @property
    def line(self) -> int: ...
    @property
    def space(self) -> str: ...
    @property
    def op(self) -> str: ...
    @property
    def requests(self) -> int: ...
    @property
    def wavefronts(self) -> int: ...
    @property
    def ideal(self) -> int: ...
    @property
    def sectors(self) -> int: ...


@dataclass(frozen=True)
class Counts:
    """Sums over sites: warp requests, and wavefronts (shared) or sectors (global)."""

    requests: int = 0
    wavefronts: int = 0
    ideal: int = 0
    sectors: int = 0

    @classmethod
    def of(cls, sites: Iterable[CountedSite]) -> Counts:
        """Add up the counters of sites."""
        rows = [(site.requests, site.wavefronts, site.ideal, site.sectors) for site in sites]
        return cls(*(int(n) for n in np.sum(rows, axis=0))) if rows else cls()


@dataclass(frozen=True)
class OpcodeCounts:
    """All instructions of one opcode together: how many stand in the code, and what their executions cost.

    `modelled` is False if the cost of any of them is not claimed: `wavefronts`, `ideal` and `sectors` are
    then those of one possible run, or incomplete.
    """

    opcode: str
    space: str
    instructions: int
    requests: int
    wavefronts: int
    ideal: int
    sectors: int
    modelled: bool

    @classmethod
    def of(cls, sites: Sequence[CompiledSite]) -> OpcodeCounts:
        """Add up the sites of one opcode."""
        total = Counts.of(sites)
        return cls(
            sites[0].opcode,
            sites[0].space,
            len(sites),
            total.requests,
            total.wavefronts,
            total.ideal,
            total.sectors,
            all(site.modelled for site in sites),
        )

    @property
    def unit(self) -> str:
        """What a cost is counted in: the name of the counter that applies."""
        return _unit(self.space)


@dataclass(frozen=True)
class LineComparison:
    """One line, space and operation: counted as written and as compiled, with the machine code that proves
    it."""

    line: int
    space: str
    op: str
    source: str
    written: Counts
    compiled: Counts
    machine: tuple[CompiledSite, ...]

    @property
    def differs(self) -> bool:
        """Whether the compiler changed any count."""
        return self.written != self.compiled

    @property
    def evidence(self) -> tuple[str, ...]:
        """The instructions by opcode: how many stand in the code, how often warps ran them, at what cost."""
        return tuple(_evidence(sites) for sites in _by_opcode(self.machine))

    @property
    def unit(self) -> str:
        """What a cost is counted in: the name of the counter that applies."""
        return _unit(self.space)

    def __str__(self) -> str:
        requests = _change(self.written.requests, self.compiled.requests)
        cost = _change(getattr(self.written, self.unit), getattr(self.compiled, self.unit))
        return f"{self.line:>6}  {self.space:<6} {self.op:<10} {requests:>21} {cost:>21} {self.unit}"


@dataclass(frozen=True, repr=False)
class Comparison:
    """A kernel counted as written and as compiled: `lines`, and what is not claimed in `unmodelled`.

    In a notebook it shows as tables by line and opcode. `print` it for the machine code that proves each
    difference; that names registers, which vary with the compiler's version.
    """

    title: str
    lines: tuple[LineComparison, ...]
    unmodelled: tuple[str, ...] = ()

    @property
    def different(self) -> tuple[LineComparison, ...]:
        """The lines on which the compiler changed a count."""
        return tuple(line for line in self.lines if line.differs)

    def by_opcode(self) -> tuple[OpcodeCounts, ...]:
        """The memory instructions of all lines by space and opcode, sorted.

        `[(row.opcode, row.instructions, row.wavefronts) for row in t.comparison.by_opcode()]` begins with
        `("LDS", 16, 8192)` for a tiled matrix product.
        """
        groups = _by_opcode([site for line in self.lines for site in line.machine])
        return tuple(sorted(map(OpcodeCounts.of, groups), key=lambda row: (row.space, row.opcode)))

    def words(self) -> list[str]:
        """The lines that the compiler changed, each with the machine code that proves it."""
        rows = [self.title, f"{'line':>6}  {'access':<17} {'warp requests':>21} {'cost':>21}"]
        for line in self.different:
            rows += [str(line), *(f"{'':8}{text}" for text in (line.source, *line.evidence) if text)]
        return rows

    def __str__(self) -> str:
        same = len(self.lines) - len(self.different)
        unchanged = f"{count(same, 'other access', 'other accesses')} unchanged"
        rest = [unchanged if self.different else "The compiler changed no count."]
        return "\n".join([*self.words(), *rest, *(f"not claimed: {reason}" for reason in self.unmodelled)])

    def __repr__(self) -> str:
        return (
            f"<Comparison of {count(len(self.lines), 'access', 'accesses')}, {len(self.different)} changed>"
        )

    def _repr_html_(self) -> str:
        return html(self)


def compare(
    title: str,
    written: Sequence[CountedSite],
    compiled: Sequence[CompiledSite],
    unmodelled: Sequence[str] = (),
) -> Comparison:
    """Put source sites and machine instructions side by side, by line, space and operation."""
    keys = sorted(
        {(site.line, site.space, site.op) for site in (*written, *compiled) if site.space != "local"}
    )
    lines = []
    for key in keys:
        mine = [site for site in written if (site.line, site.space, site.op) == key]
        machine = tuple(site for site in compiled if (site.line, site.space, site.op) == key)
        source = machine[0].source if machine else getattr(mine[0], "source", "")
        lines.append(LineComparison(*key, source, Counts.of(mine), Counts.of(machine), machine))
    return Comparison(title, tuple(lines), tuple(unmodelled))


def _by_opcode(sites: Iterable[CompiledSite]) -> list[list[CompiledSite]]:
    """Group sites by space and opcode, in code order."""
    groups: dict[tuple[str, str], list[CompiledSite]] = {}
    for site in sites:
        groups.setdefault((site.space, site.opcode), []).append(site)
    return list(groups.values())


def _evidence(sites: Sequence[CompiledSite]) -> str:
    total = OpcodeCounts.of(sites)
    cost = count(getattr(total, total.unit), total.unit.removesuffix("s"))
    shown = sites[0].machine if len(sites) == 1 else f"{sites[0].machine} .. {sites[-1].machine}"
    price = cost if total.modelled else "cost not modelled"
    return f"{len(sites)} x {total.opcode}: {count(total.requests, 'request')}, {price}   {shown}"


def _unit(space: str) -> str:
    return "wavefronts" if space == "shared" else "sectors"


def _change(before: int, after: int) -> str:
    return f"{before:,}" if before == after else f"{before:,} -> {after:,}"
