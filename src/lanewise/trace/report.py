"""`Trace`: what a run found, per site and in total, as data. How it reads is in `render`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lanewise.instructions import INSTRUCTIONS
from lanewise.text import count
from lanewise.trace.hazards import Hazard
from lanewise.trace.render import html_report, text_report
from lanewise.trace.sites import Site
from lanewise.trace.source import place_in

if TYPE_CHECKING:
    from lanewise.lowering import Comparison
    from lanewise.trace.arguments import Arguments
    from lanewise.trace.control import Execution
    from lanewise.trace.infer import Facts
    from lanewise.trace.launch import Launch
    from lanewise.trace.source import Function


@dataclass(frozen=True)
class Totals:
    """The cost of several sites of one memory together, in the fields of a `Site`.

    `excess` is in wavefronts for shared memory and in sectors for global memory.
    """

    sites: tuple[Site, ...]

    def __repr__(self) -> str:
        names = ("requests", "wavefronts", "ideal", "sectors", "bytes_requested", "bytes_moved")
        return f"<Totals: {', '.join(f'{name} {getattr(self, name):,}' for name in names)}>"

    def _sum(self, name: str) -> int:
        return sum(getattr(site, name) for site in self.sites)

    requests = property(lambda self: self._sum("requests"))
    wavefronts = property(lambda self: self._sum("wavefronts"))
    ideal = property(lambda self: self._sum("ideal"))
    excess = property(lambda self: self._sum("excess"))
    sectors = property(lambda self: self._sum("sectors"))
    lines = property(lambda self: self._sum("lines"))
    bytes_requested = property(lambda self: self._sum("bytes_requested"))
    bytes_moved = property(lambda self: self._sum("bytes_moved"))


@dataclass(frozen=True)
class Space:
    """The sites of one memory: `load`, `store`, `atomic` and `async_copy` totals, and the totals of all of
    them."""

    sites: tuple[Site, ...]

    def _of(self, op: str) -> Totals:
        return Totals(tuple(site for site in self.sites if site.op == op))

    load = property(lambda self: self._of("load"))
    store = property(lambda self: self._of("store"))
    atomic = property(lambda self: self._of("atomic"))
    async_copy = property(lambda self: self._of("async_copy"))
    total = property(lambda self: Totals(self.sites))


class Trace:
    """The result of `trace`.

    `sites` are the memory instructions in source order; `shared` and `global_` give totals
    (`t.shared.load.excess`); as compiled, `sites` are machine instructions and `comparison` sets them beside
    the source's, line by line; `hazards` are faults, each a `Hazard`; `warnings` are (line, text) traps that
    cost speed, such as float64 creeping in; `notes` say what is worth knowing and no fault; `unmodelled`
    lists what the counts do not claim. `warp_instructions` counts the operations of all warps with at least
    one active lane: each arithmetic operation, comparison, conversion, memory access, barrier, branch and
    loop round is one. `n_barriers` counts the block barriers that each block passed, summed over the blocks;
    `bytes_under_way` is the most bytes that asynchronous copies of one block had not yet delivered while the
    block read shared memory: 0 where every copy is waited for before the work starts.
    """

    def __init__(
        self,
        function: Function,
        launch: Launch,
        facts: Facts,
        engine: Execution,
        given: Arguments,
        numbers: np.ndarray,
    ) -> None:
        self.kernel, self.filename = function.name, function.filename
        self.grid, self.block, self.machine = launch.grid, launch.block, launch.machine.name
        self.lowering = "source"
        self.comparison: Comparison | None = None
        self.n_blocks, self.n_blocks_of_grid = len(numbers), launch.n_blocks
        self.n_warps = len(numbers) * launch.n_warps
        self.n_threads = len(numbers) * launch.n_threads
        self.shared_bytes = launch.shared_bytes(facts.static_bytes)
        self.warp_instructions = engine.n_operations
        self.n_barriers, self.bytes_under_way = engine.n_barriers, engine.bytes_under_way
        self.sites = sorted(
            engine.sites.values(), key=lambda site: (site.line, site.column, site.op, site.instruction)
        )
        for site in self.sites:
            site.count(launch.block_of)
        self.hazards: list[Hazard] = engine.log.hazards()
        self.notes = [*sorted(facts.notes), *engine.notes]
        self.warnings = [(line, text) for (line, _), text in sorted(facts.warnings.items())]
        self.warnings += [
            (
                0,
                f"argument {name} has a packed record type; the compiler loads its fields byte by byte. Use"
                " align=True.",
            )
            for name in given.packed
        ]
        self.unmodelled = [_why_uncounted(site) for site in self.sites if not site.modelled]

    @property
    def shared(self) -> Space:
        """Shared-memory sites and totals."""
        return Space(tuple(site for site in self.sites if site.space == "shared"))

    @property
    def global_(self) -> Space:
        """Global-memory sites and totals."""
        return Space(tuple(site for site in self.sites if site.space == "global"))

    def at(self, line: int) -> list[Site]:
        """The sites of one source line."""
        return [site for site in self.sites if site.line == line]

    def __str__(self) -> str:
        return text_report(self)

    def __repr__(self) -> str:
        return (
            f"<Trace of {self.kernel}: {count(len(self.sites), 'site')},"
            f" {count(len(self.hazards), 'hazard')}>"
        )

    def _repr_html_(self) -> str:
        return html_report(self)


def _why_uncounted(site: Site) -> str:
    spec = INSTRUCTIONS.get(site.instruction)
    if spec and spec.space != site.space:
        why = f"the model knows its {spec.space} side; the cost of its {site.space} side is not claimed."
    elif spec:
        why = spec.not_modelled
    else:
        why = "no rule is known for this instruction; requests are counted, their cost is not."
    return f"{place_in(site.filename, site.line)}: {site.instruction}: {why}"
