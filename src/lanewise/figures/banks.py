"""The bank map: which words each of the 32 banks must serve, and which lanes wait for them."""

from __future__ import annotations

from itertools import groupby

from matplotlib.axes import Axes

from lanewise.access import WarpAccess
from lanewise.figures import style
from lanewise.figures.drawing import Drawing, Sheet
from lanewise.figures.shared import GAP, HEADING, LEFT, WIDTH, conflicting_banks, require_shared_cost, runs
from lanewise.figures.style import CELL, IDLE, INK, LOST, MUTED, PAPER, lane_tone
from lanewise.figures.words import (
    access_in_words,
    cell_lines,
    group_in_words,
    shared_in_words,
    sharing_in_words,
    verdict,
)
from lanewise.machine import BANKS
from lanewise.memory import Phase, SharedCost, Wavefront

PHASE_LABEL = 1.3  # cells above the rows of one group of lanes, where there are several groups


def draw_bank_map(
    access: WarpAccess | SharedCost, *, title: str | None = None, ax: Axes | None = None
) -> Drawing:
    """Draw the words that each bank must serve, as columns of cells that carry the numbers of their lanes.

    Each row is one wavefront, so the tallest column of a group of lanes is what the group costs. Banks that
    need more than one wavefront have an inverted number and a heavy outline, and the slots lost meanwhile
    are hatched. `title` replaces the line that names the access.

    >>> draw_bank_map(WarpAccess.from_formula("ld.shared.b32", lambda lane: 128 * lane))
    Bank map of ld.shared.b32, lanes 0..31: bank 0 holds 32 different words, all other banks none;
    32 wavefronts, 1 would do.

    Raises `InvalidDrawing` for anything but a shared-memory access, and what `shared_cost` raises.
    """
    cost = require_shared_cost("draw_bank_map", access)
    alt = f"Bank map of {access_in_words(cost.access)}: {shared_in_words(cost)}; {verdict(cost)}."
    rows = _rows(cost)
    body = sum(height for _, height in rows) + PHASE_LABEL * _labelled(cost) * len(cost.phases)
    key = 1.7 if cost.excess else 0.0
    top = HEADING + 1.15
    with style.settings():
        sheet = Sheet(WIDTH, top + body + key + 0.5, ax=ax)
        sharing = sharing_in_words(cost)
        subtitle = title or access_in_words(cost.access) + (f": {sharing}" if sharing else "")
        sheet.heading(verdict(cost), subtitle, bad=cost.excess > 0)
        _draw_bank_labels(sheet, HEADING, conflicting_banks(cost))
        _draw_body(sheet, top, cost, rows)
        if cost.excess:
            _draw_key(sheet, top + body + 1.0)
    return Drawing(sheet.ax, alt)


def _draw_bank_labels(sheet: Sheet, y: float, inverted: set[int]) -> None:
    """The row of bank numbers, those in conflict light on dark."""
    sheet.text(LEFT - 0.3, y + 0.5, "bank", CELL, align="right", color=MUTED)
    for bank in range(BANKS):
        bad = bank in inverted
        if bad:
            sheet.box(LEFT + bank + GAP / 2, y + 0.05, 1 - GAP, 0.9, fill=LOST, gid=f"conflict-bank{bank}")
        sheet.text(LEFT + bank + 0.5, y + 0.5, str(bank), CELL, align="center", color=PAPER if bad else MUTED)


def _draw_word_cell(
    sheet: Sheet, x: float, y: float, height: float, lanes: tuple[int, ...], gid: str
) -> None:
    """One word with the numbers of its lanes, banded in the tones of the lanes' groups."""
    tones = list(dict.fromkeys(lane_tone(lane) for lane in lanes))
    x, width, inner = x + GAP / 2, 1 - GAP, height - GAP
    line = 0.7 if len(lanes) == 1 else 1.4
    if len(tones) == 1:
        sheet.box(x, y + GAP / 2, width, inner, fill=tones[0].fill, edge=tones[0].edge, line=line, gid=gid)
    else:
        band = inner / len(tones)
        for position, tone in enumerate(tones):
            sheet.box(x, y + GAP / 2 + position * band, width, band, fill=tone.fill)
        sheet.box(x, y + GAP / 2, width, inner, edge=INK, line=line, gid=gid, z=2)
    sheet.stack(x, y, width, height, cell_lines(lanes))


def _labelled(cost: SharedCost) -> bool:
    return len(cost.phases) > 1


def _rows(cost: SharedCost) -> list[tuple[Wavefront, float]]:
    """Each wavefront with the height that its fullest cell needs; one empty row if there is none."""
    rows = []
    for wavefront in cost.replay or (Wavefront(0, {}),):
        most = max((len(cell_lines(lanes)) for lanes in wavefront.lanes_by_word.values()), default=1)
        rows.append((wavefront, 0.92 if most == 1 else 0.4 + 0.74 * most))
    return rows


def _draw_body(sheet: Sheet, y: float, cost: SharedCost, rows: list[tuple[Wavefront, float]]) -> None:
    """All rows, one group of lanes after the other."""
    number = 0
    for index, grouped in groupby(rows, key=lambda row: row[0].phase):
        members = list(grouped)
        heights = [height for _, height in members]
        if _labelled(cost):
            sheet.text(LEFT, y + 0.75, group_in_words(cost, index), CELL)
            y += PHASE_LABEL
        if cost.phases:
            _outline_conflicts(sheet, y, cost.phases[index], heights)
        idle: list[tuple[frozenset[int], float, float]] = []
        for wavefront, height in members:
            if cost.phases:
                sheet.text(LEFT - 0.3, y + height / 2, str(number + 1), CELL, align="right", color=MUTED)
            idle.append((_draw_row(sheet, y, height, wavefront, number), y, height))
            y += height
            number += 1
        _shade_free_slots(sheet, *idle[0])
        _hatch_lost_slots(sheet, idle[1:])


def _draw_row(sheet: Sheet, y: float, height: float, wavefront: Wavefront, number: int) -> frozenset[int]:
    """The words of one wavefront; returns the banks that serve none in it."""
    busy = {word % BANKS: lanes for word, lanes in wavefront.lanes_by_word.items()}
    for bank, lanes in busy.items():
        _draw_word_cell(sheet, LEFT + bank, y, height, lanes, f"wavefront{number}-bank{bank}")
    return frozenset(range(BANKS)) - busy.keys()


def _shade_free_slots(sheet: Sheet, free: frozenset[int], y: float, height: float) -> None:
    for bank in sorted(free):
        sheet.box(LEFT + bank + GAP / 2, y + GAP / 2, 1 - GAP, height - GAP, fill=IDLE)


def _hatch_lost_slots(sheet: Sheet, idle: list[tuple[frozenset[int], float, float]]) -> None:
    """Hatch the unused slots of all wavefronts after the first; like rows as one area, which is calmer."""
    for free, members in groupby(idle, key=lambda row: row[0]):
        spans = [(y, height) for _, y, height in members]
        top, height = spans[0][0], sum(height for _, height in spans)
        for first, n_banks in runs(free):
            sheet.hatching(LEFT + first + GAP / 2, top + GAP / 2, n_banks - GAP, height - GAP, LOST)


def _outline_conflicts(sheet: Sheet, top: float, phase: Phase, heights: list[float]) -> None:
    """A heavy outline around each column of more than one word."""
    for bank, words in phase.words_by_bank.items():
        if len(words) > 1:
            height = sum(heights[: len(words)])
            sheet.box(LEFT + bank + GAP / 2, top + GAP / 2, 1 - GAP, height - GAP, edge=LOST, line=1.6, z=3)


def _draw_key(sheet: Sheet, y: float) -> None:
    sheet.hatching(LEFT + GAP / 2, y - 0.42, 1.6, 0.84, LOST)
    note = "slots that stay empty while the outlined banks work off their queue"
    sheet.text(LEFT + 1.95, y, note, CELL, color=MUTED)
