"""The HTML form of a comparison: tables without register names, which vary from compiler to compiler."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lanewise.lowering.report import Comparison, LineComparison, OpcodeCounts

_LINES = ("line", "access", "requests as written", "as compiled", "cost as written", "as compiled")
_OPCODES = ("opcode", "in the code", "requests", "cost")


def html(comparison: Comparison) -> str:
    """The lines that the compiler changed, what the machine code is made of, and what is not claimed."""
    changed = comparison.different
    lines = _table(_LINES, map(_line, changed)) if changed else "<p>The compiler changed no count.</p>"
    reasons = "".join(f"<li>not claimed: {escape(reason)}</li>" for reason in comparison.unmodelled)
    return (
        f'<div class="lanewise-comparison"><p>{escape(comparison.title)}</p>{lines}'
        f"{_table(_OPCODES, map(_opcode, comparison.by_opcode()))}"
        f"{f'<ul>{reasons}</ul>' if reasons else ''}</div>"
    )


def _line(line: LineComparison) -> tuple[str, ...]:
    written, compiled = line.written, line.compiled
    return (
        f"{line.line}",
        f"{line.space} {line.op}",
        f"{written.requests:,}",
        f"{compiled.requests:,}",
        f"{getattr(written, line.unit):,} {line.unit}",
        f"{getattr(compiled, line.unit):,} {line.unit}",
    )


def _opcode(row: OpcodeCounts) -> tuple[str, ...]:
    cost = f"{getattr(row, row.unit):,} {row.unit}" if row.modelled else "not modelled"
    return row.opcode, f"{row.instructions:,}", f"{row.requests:,}", cost


def _table(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in headers)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
