"""`lanewise banks` and `lanewise sectors`: one access from a formula, as a picture and a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lanewise.access import WarpAccess
from lanewise.formulas import from_text, mask_from_text
from lanewise.machine import SECTOR_BYTES
from lanewise.memory import GlobalCost, SharedCost, global_cost, shared_cost
from lanewise.text import count, lanes, spans

SHOWN = 8  # rows of a picture in text


def read(formula: str, *, store: bool, space: str, base: int, mask: str) -> WarpAccess:
    """The access of a command's options. Raises `InvalidFormula`."""
    op = "store" if store else "load"
    return from_text(formula, op=op, space=space, base_address=base, active_mask=mask_from_text(mask))


def banks_report(access: WarpAccess) -> tuple[str, dict[str, Any]]:
    """What a shared access costs: text with a picture of the banks, and the same as data."""
    cost = shared_cost(access)
    lines = [str(cost), "", *_bank_lines(cost)]
    data = {
        "instruction": access.instruction,
        "wavefronts": cost.wavefronts,
        "ideal": cost.ideal,
        "excess": cost.excess,
        "sentence": str(cost),
        "addresses": list(access.addresses),
        "active_mask": access.active_mask,
    }
    return "\n".join(lines), data


def _bank_lines(cost: SharedCost) -> list[str]:
    """Group by group of lanes: which banks serve how many words."""
    lines = []
    for phase in cost.phases:
        by_count: dict[int, list[int]] = {}
        for bank, words in phase.words_by_bank.items():
            by_count.setdefault(len(words), []).append(bank)
        for n_words, banks in sorted(by_count.items(), reverse=True):
            where = f"bank{'' if len(banks) == 1 else 's'} {spans(banks)}"
            each = "" if len(banks) == 1 else " each"
            lines.append(f"{lanes(phase.lanes)}: {count(n_words, 'word')}{each} in {where}  {'#' * n_words}")
    return lines


def sectors_report(access: WarpAccess) -> tuple[str, dict[str, Any]]:
    """What a global access costs: text with a picture of the sectors, and the same as data."""
    cost = global_cost(access)
    lines = [str(cost), "", *_sector_lines(cost)]
    data = {
        "instruction": access.instruction,
        "requests": cost.requests,
        "sectors": cost.sectors,
        "lines": cost.lines,
        "bytes_requested": cost.bytes_requested,
        "bytes_moved": cost.bytes_moved,
        "sentence": str(cost),
        "addresses": list(access.addresses),
        "active_mask": access.active_mask,
    }
    return "\n".join(lines), data


def _sector_lines(cost: GlobalCost) -> list[str]:
    """The first sectors, each with the lanes that begin in it."""
    lines = [
        f"bytes {SECTOR_BYTES * sector:>6}..{SECTOR_BYTES * (sector + 1) - 1:<6} {lanes(members)}"
        for sector, members in list(cost.lanes_by_sector.items())[:SHOWN]
    ]
    left = cost.sectors - len(lines)
    return [*lines, f"and {count(left, 'sector')} more"] if left else lines


def draw(access: WarpAccess, path: Path) -> None:
    """Write the drawing of an access as .svg or .png. Raises what `Drawing.save` raises."""
    from lanewise import figures

    shared = access.instruction.split(".")[1] == "shared"
    (figures.draw_bank_map if shared else figures.draw_sectors)(access).save(path)
