"""The replay: an access wavefront by wavefront, with a line from each lane served to its bank."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from lanewise.access import WarpAccess
from lanewise.figures import style
from lanewise.figures.drawing import Drawing, InvalidDrawing, Sheet
from lanewise.figures.shared import GAP, HEADING, LEFT, WIDTH, require_shared_cost, runs
from lanewise.figures.style import CELL, GREY, IDLE, INK, MUTED, lane_tone
from lanewise.figures.words import access_in_words, named, verdict
from lanewise.integers import whole
from lanewise.machine import BANKS, WARP_LANES
from lanewise.memory import SharedCost, Wavefront

STRIP = 6.4  # cells from one wavefront to the next
LINES = 2.5  # cells between the row of lanes and the row of banks
OMITTED = 1.3


def draw_replay(
    access: WarpAccess | SharedCost, *, limit: int = 4, title: str | None = None, ax: Axes | None = None
) -> Drawing:
    """Draw each wavefront as a row of lanes above a row of banks, with lines from the lanes it serves.

    Lanes that still wait are dashed; lanes served before have no box. At most `limit` wavefronts are drawn,
    the last one always. Which wavefront serves which lane is not known of the hardware: here they are
    served as they ask.

    >>> draw_replay(WarpAccess.from_formula("ld.shared.b32", lambda lane: 8 * lane))
    Wavefronts of ld.shared.b32, lanes 0..31: wavefront 1 serves lanes 0..15 from banks 0, 2, .. 30;
    wavefront 2 serves lanes 16..31 from banks 0, 2, .. 30.

    Raises `InvalidDrawing` for anything but a shared-memory access, and what `shared_cost` raises.
    """
    cost = require_shared_cost("draw_replay", access)
    limit = whole(
        "draw_replay: limit", limit, InvalidDrawing, low=2, hint="The first and the last are shown."
    )
    replay = cost.replay
    shown = _shown(len(replay), limit)
    omitted = len(replay) - len(shown)
    footer = 1.2 if cost.excess else 0.0
    with style.settings():
        sheet = Sheet(WIDTH, HEADING + STRIP * len(shown) + OMITTED * bool(omitted) + footer + 0.1, ax=ax)
        sheet.heading(verdict(cost), title or access_in_words(cost.access), bad=cost.excess > 0)
        y = HEADING
        for position, number in enumerate(shown):
            if position and number != shown[position - 1] + 1:
                sheet.text(LEFT, y + 0.2, f"⋮   {omitted} more wavefronts", CELL, color=MUTED)
                y += OMITTED
            _draw_strip(sheet, y, cost, number)
            y += STRIP
        if footer:
            note = "The order is that in which lanes ask; the hardware's own is not known."
            sheet.text(LEFT, y + 0.2, note, CELL, color=MUTED)
    return Drawing(sheet.ax, _alt(cost))


def _shown(n_wavefronts: int, limit: int) -> list[int]:
    if n_wavefronts <= limit:
        return list(range(n_wavefronts))
    return [*range(limit - 1), n_wavefronts - 1]


def _served(wavefront: Wavefront) -> list[int]:
    return sorted({lane for lanes in wavefront.lanes_by_word.values() for lane in lanes})


def _draw_strip(sheet: Sheet, y: float, cost: SharedCost, number: int) -> None:
    """One wavefront."""
    wavefront = cost.replay[number]
    served = _served(wavefront)
    later = {lane for after in cost.replay[number + 1 :] for lane in _served(after)} - set(served)
    wait = f", {len(later)} wait" if later else ""
    sheet.text(LEFT, y + 0.6, f"wavefront {number + 1}: {named('lane', served)} served{wait}", CELL)
    lane_y, bank_y = y + 1.3, y + 1.3 + 0.92 + LINES
    _draw_lanes(sheet, lane_y, served, later, cost.access.addressing_lanes)
    _draw_banks(sheet, bank_y, {word % BANKS for word in wavefront.lanes_by_word})
    for lane in served:
        words = sorted(word for word, lanes in wavefront.lanes_by_word.items() if lane in lanes)
        _draw_beam(sheet, lane, words, lane_y + 0.92, bank_y, f"wavefront{number}-lane{lane}")


def _draw_beam(sheet: Sheet, lane: int, words: list[int], top: float, bottom: float, gid: str) -> None:
    """A line from a lane to the bank of its word, or a beam to the neighbouring banks of a wide access."""
    x, tone = LEFT + lane + 0.5, lane_tone(lane)
    first = LEFT + words[0] % BANKS
    if len(words) == 1:
        sheet.lines((x, first + 0.5), (top, bottom), tone.edge, 1.1, gid=gid)
    else:
        corners = ((x - 0.3, top), (x + 0.3, top), (first + len(words) - 0.1, bottom), (first + 0.1, bottom))
        sheet.polygon(corners, tone, gid=gid)


def _draw_lanes(
    sheet: Sheet, y: float, served: Sequence[int], later: set[int], active: Sequence[int]
) -> None:
    sheet.text(LEFT - 0.3, y + 0.46, "lane", CELL, align="right", color=MUTED)
    for lane in range(WARP_LANES):
        x = LEFT + lane + GAP / 2
        tone = lane_tone(lane)
        if lane in served:
            sheet.box(x, y, 1 - GAP, 0.92, fill=tone.fill, edge=tone.edge)
        label = str(lane) if lane in active else "–"
        color = INK if lane in served else MUTED
        sheet.text(LEFT + lane + 0.5, y + 0.46, label, style.LANE, align="center", color=color)
    for first, n_lanes in runs(later):
        sheet.box(LEFT + first + GAP / 2, y, n_lanes - GAP, 0.92, edge=GREY.edge, dashed=True)


def _draw_banks(sheet: Sheet, y: float, busy: set[int]) -> None:
    sheet.text(LEFT - 0.3, y + 0.46, "bank", CELL, align="right", color=MUTED)
    for bank in range(BANKS):
        x = LEFT + bank + GAP / 2
        if bank in busy:
            sheet.box(x, y, 1 - GAP, 0.92, fill=GREY.fill, edge=INK, line=1.0)
        else:
            sheet.box(x, y, 1 - GAP, 0.92, fill=IDLE)
        color = INK if bank in busy else MUTED
        sheet.text(LEFT + bank + 0.5, y + 0.46, str(bank), style.LANE, align="center", color=color)


def _alt(cost: SharedCost) -> str:
    if not cost.replay:
        return f"Wavefronts of {access_in_words(cost.access)}: none."
    sentences = []
    for number in _shown(len(cost.replay), 4):
        wavefront = cost.replay[number]
        banks = sorted({word % BANKS for word in wavefront.lanes_by_word})
        sentences.append(
            f"wavefront {number + 1} serves {named('lane', _served(wavefront))} from {named('bank', banks)}"
        )
    if len(cost.replay) > len(sentences):
        sentences.insert(-1, f"{len(cost.replay) - len(sentences)} more follow")
    return f"Wavefronts of {access_in_words(cost.access)}: " + "; ".join(sentences) + "."
