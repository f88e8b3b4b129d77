"""`Trace`: what a run found, per site and in total, as data, as a text table and as HTML."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from lanewise.instructions import INSTRUCTIONS
from lanewise.text import count
from lanewise.trace.hazards import Hazard
from lanewise.trace.sites import Site

if TYPE_CHECKING:
    from lanewise.lowering import Comparison
    from lanewise.trace.arguments import Arguments
    from lanewise.trace.control import Execution
    from lanewise.trace.infer import Facts
    from lanewise.trace.launch import Launch
    from lanewise.trace.source import Function


@dataclass(frozen=True)
class Totals:
    """The cost of several sites together, in the fields of a `Site`."""

    sites: tuple[Site, ...]

    def _sum(self, name: str) -> int:
        return sum(getattr(site, name) for site in self.sites)

    requests = property(lambda self: self._sum("requests"))
    wavefronts = property(lambda self: self._sum("wavefronts"))
    ideal = property(lambda self: self._sum("ideal"))
    excess = property(lambda self: self._sum("excess"))
    sectors = property(lambda self: self._sum("sectors"))
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
    loop round is one.
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

    # -- words -------------------------------------------------------------------------------------

    def _heading(self) -> str:
        compiled = "" if self.lowering == "source" else f" as compiled for {self.lowering}"
        where = f"{self.kernel}{compiled}, grid {self.grid}, block {self.block}, {self.machine}"
        if self.n_blocks != self.n_blocks_of_grid:
            where += f"; counts are of {self.n_blocks:,} of {count(self.n_blocks_of_grid, 'block')}"
        else:
            where += f"; {count(self.n_blocks, 'block')}, {count(self.n_warps, 'warp')}"
        if self.shared_bytes:
            where += f", {self.shared_bytes:,} shared bytes per block"
        return where

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (
                str(site.line),
                site.instruction,
                f"{site.requests:,}",
                *_cells(site),
                site.source,
            )
            for site in self.sites
        ]

    def __str__(self) -> str:
        lines = [self._heading()]
        if self.sites:
            lines += _aligned([_HEADER, *self._rows()])
        else:
            lines.append("No access to shared or global memory.")
        for hazard in self.hazards:
            mark = {"error": "HAZARD", "lock_step": "LOCK-STEP", "benign": "BENIGN"}[hazard.severity]
            times = f" [{hazard.count:,} times]" if hazard.count > 1 else ""
            lines.append(f"{mark} {hazard.kind}: {hazard.message}{times}")
        lines += [f"warning{f', line {line}' if line else ''}: {text}" for line, text in self.warnings]
        lines += [f"note: {text}" for text in self.notes]
        lines += [f"not modelled: {text}" for text in self.unmodelled]
        if self.comparison and self.comparison.different:
            lines += ["", *self.comparison.words()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return (
            f"<Trace of {self.kernel}: {count(len(self.sites), 'site')},"
            f" {count(len(self.hazards), 'hazard')}>"
        )

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in _HEADER)
        body = "".join(_html_row(site, row) for site, row in zip(self.sites, self._rows(), strict=True))
        messages = [
            *(
                f"<li><b>{escape(hazard.kind)}</b> {escape(hazard.message)} ({hazard.count:,})</li>"
                for hazard in self.hazards
            ),
            *(
                f"<li>warning{f', line {line}' if line else ''}: {escape(text)}</li>"
                for line, text in self.warnings
            ),
            *(f"<li>note: {escape(text)}</li>" for text in self.notes),
            *(f"<li>not modelled: {escape(text)}</li>" for text in self.unmodelled),
        ]
        listed = f"<ul>{''.join(messages)}</ul>" if messages else ""
        return (
            f'<div class="lanewise-trace">{_STYLE}<p>{escape(self._heading())}</p>'
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{listed}{self._html_comparison()}</div>"
        )

    def _html_comparison(self) -> str:
        if not (self.comparison and self.comparison.different):
            return ""
        return f"<pre>{escape(chr(10).join(self.comparison.words()))}</pre>"


_HEADER = (
    "line",
    "instruction",
    "requests",
    "wavefronts",
    "ideal",
    "excess",
    "worst",
    "sectors",
    "used",
    "source",
)

# Colours come from the page (currentColor), so the table reads on light and on dark ground.
_STYLE = (
    "<style>"
    ".lanewise-trace table{border-collapse:collapse;font-variant-numeric:tabular-nums;color:inherit}"
    ".lanewise-trace th,.lanewise-trace td{padding:.2em .7em;text-align:right;color:inherit;background:none;"
    "border-bottom:1px solid color-mix(in srgb,currentColor 25%,transparent)}"
    ".lanewise-trace td:nth-child(2),.lanewise-trace th:nth-child(2),"
    ".lanewise-trace td:last-child,.lanewise-trace th:last-child{text-align:left}"
    ".lanewise-trace td:nth-child(2),.lanewise-trace td:last-child{font-family:monospace;white-space:pre}"
    ".lanewise-trace tr.guilty td{font-weight:bold}"
    "</style>"
)


def _cells(site: Site) -> tuple[str, ...]:
    """Wavefronts, ideal, excess, worst, sectors and used fraction; a dash where a number does not apply."""
    if not site.modelled:
        return ("?",) * 6 if site.op == "atomic" else ("-",) * 6
    if site.space == "shared":
        return f"{site.wavefronts:,}", f"{site.ideal:,}", f"{site.excess:,}", f"{site.degree}-way", "-", "-"
    used = f"{site.bytes_requested / site.bytes_moved:.0%}" if site.bytes_moved else "-"
    return "-", "-", "-", f"{site.worst_sectors} sectors", f"{site.sectors:,}", used


def _html_row(site: Site, row: tuple[str, ...]) -> str:
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
    return f'<tr class="guilty">{cells}</tr>' if site.excess else f"<tr>{cells}</tr>"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    left = {1, len(rows[0]) - 1}
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _why_uncounted(site: Site) -> str:
    spec = INSTRUCTIONS.get(site.instruction)
    why = (
        spec.not_modelled
        if spec
        else "no rule is known for this instruction; requests are counted, their cost is not."
    )
    where = PurePath(site.filename).name
    return f"{where}:{site.line}: {site.instruction}: {why}"
