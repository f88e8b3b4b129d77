"""How a trace reads: a text table with one row per memory instruction, and an HTML table under each line's
source."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from lanewise.text import count
from lanewise.trace.sites import Site

if TYPE_CHECKING:
    from lanewise.trace.report import Trace

_COLUMNS = ("instruction", "array", "requests", "wavefronts", "ideal", "excess", "worst", "sectors", "used")
_NO_SITES = "No access to shared or global memory."
_SEVERITY = {"error": "hazard", "lock_step": "relies on lock-step", "benign": "benign"}


def text_report(trace: Trace) -> str:
    """The report as plain text: heading, aligned table, hazards, warnings, notes, what is not modelled."""
    lines = [_heading(trace)]
    if trace.sites:
        rows = [(str(site.line), *_cells(site), site.source) for site in trace.sites]
        lines += _aligned([("line", *_COLUMNS, "source"), *rows])
    else:
        lines.append(_NO_SITES)
    lines += [f"{label}: {text}" for label, text in _messages(trace)]
    if trace.comparison and trace.comparison.different:
        lines += ["", *trace.comparison.words()]
    return "\n".join(lines)


def html_report(trace: Trace) -> str:
    """The report as HTML: each source line over the instructions it makes, guilty ones in bold."""
    head = "".join(f"<th>{escape(name)}</th>" for name in _COLUMNS)
    body = "".join(
        _html_line(line, list(sites)) for line, sites in groupby(trace.sites, key=lambda site: site.line)
    )
    messages = "".join(f"<li><b>{escape(label)}</b>: {escape(text)}</li>" for label, text in _messages(trace))
    comparison = trace.comparison.words() if trace.comparison and trace.comparison.different else []
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return (
        f'<div class="lanewise-trace">{_STYLE}<p>{escape(_heading(trace))}</p>'
        + (table if trace.sites else f"<p>{_NO_SITES}</p>")
        + (f"<ul>{messages}</ul>" if messages else "")
        + (f"<pre>{escape(chr(10).join(comparison))}</pre>" if comparison else "")
        + "</div>"
    )


def _heading(trace: Trace) -> str:
    compiled = "" if trace.lowering == "source" else f" as compiled for {trace.lowering}"
    where = f"{trace.kernel}{compiled}, grid {trace.grid}, block {trace.block}, {trace.machine}"
    if trace.n_blocks != trace.n_blocks_of_grid:
        where += f"; counts are of {trace.n_blocks:,} of {count(trace.n_blocks_of_grid, 'block')}"
    else:
        where += f"; {count(trace.n_blocks, 'block')}, {count(trace.n_warps, 'warp')}"
    if trace.shared_bytes:
        where += f", {trace.shared_bytes:,} shared bytes per block"
    return where


def _messages(trace: Trace) -> Iterator[tuple[str, str]]:
    """Label and text of everything that is not a count."""
    for hazard in trace.hazards:
        plural = "accesses" if hazard.counted == "access" else None
        times = f" [{count(hazard.count, hazard.counted, plural)}]" if hazard.count > 1 else ""
        yield f"{_SEVERITY[hazard.severity]}, {hazard.kind}", f"{hazard.message}{times}"
    for line, text in trace.warnings:
        yield f"warning{f', line {line}' if line else ''}", text
    if trace.comparison and not trace.comparison.different:
        yield "note", "the compiler changed no count."
    for text in trace.notes:
        yield "note", text
    for text in trace.unmodelled:
        yield "not modelled", text


def _cells(site: Site) -> tuple[str, ...]:
    """One cell per column; a dash where a number does not apply, a question mark where none is known."""
    counted = (site.instruction, site.array or "-", f"{site.requests:,}")
    if not site.modelled:
        return (*counted, *("?" if site.op == "atomic" else "-",) * 6)
    if site.space == "shared":
        worst = f"{site.degree}-way" if site.degree > 1 else "-"
        return (*counted, f"{site.wavefronts:,}", f"{site.ideal:,}", f"{site.excess:,}", worst, "-", "-")
    used = f"{100 * site.bytes_requested / site.bytes_moved:.3g}%" if site.bytes_moved else "-"
    worst = count(site.worst_sectors, "sector")
    return (*counted, "-", "-", f"{site.excess:,}", worst, f"{site.sectors:,}", used)


def _html_line(line: int, sites: list[Site]) -> str:
    source = f"<span>{line}</span>{escape(sites[0].source)}"
    heading = f'<tr class="source"><td colspan="{len(_COLUMNS)}">{source}</td></tr>'
    return heading + "".join(_html_row(site) for site in sites)


def _html_row(site: Site) -> str:
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in _cells(site))
    return f'<tr class="guilty">{cells}</tr>' if site.excess else f"<tr>{cells}</tr>"


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    left = {1, 2, len(rows[0]) - 1}
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


# Colours come from the page (currentColor), so the table reads on light and on dark ground.
_STYLE = (
    "<style>"
    ".lanewise-trace{overflow-x:auto}"
    ".lanewise-trace table{border-collapse:collapse;font-variant-numeric:tabular-nums;color:inherit;"
    "font-size:.9em;width:100%}"
    ".lanewise-trace th,.lanewise-trace td{padding:.15em .6em;text-align:right;color:inherit;background:none;"
    "white-space:nowrap}"
    ".lanewise-trace th{border-bottom:2px solid color-mix(in srgb,currentColor 45%,transparent)}"
    ".lanewise-trace :is(th,td):nth-child(-n+2){text-align:left}"
    ".lanewise-trace td:nth-child(-n+2){font-family:monospace}"
    ".lanewise-trace td:first-child{padding-left:2.4em}"
    ".lanewise-trace tr.source td{white-space:pre;padding:.5em .6em .15em;"
    "border-top:1px solid color-mix(in srgb,currentColor 25%,transparent)}"
    ".lanewise-trace tr.source span{display:inline-block;min-width:2.2em;opacity:.75}"
    ".lanewise-trace tr.guilty td{font-weight:bold}"
    "</style>"
)
