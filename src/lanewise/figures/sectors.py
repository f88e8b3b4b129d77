"""The sector map: which bytes of which 32-byte sectors and 128-byte lines a global access touches."""

from __future__ import annotations

from matplotlib.axes import Axes

from lanewise.access import WarpAccess
from lanewise.figures import style
from lanewise.figures.drawing import Drawing, InvalidDrawing, Sheet, heading_height
from lanewise.figures.style import CELL, GREY, INK, MUTED, lane_tone
from lanewise.figures.words import access_in_words, cell_lines
from lanewise.instructions import instruction
from lanewise.machine import LINE_BYTES, SECTOR_BYTES, SECTORS_PER_LINE, WORD_BYTES
from lanewise.memory import GlobalCost, global_cost
from lanewise.text import count

LEFT = 3.2  # cells to the left of the first word, for line numbers
WORDS_PER_SECTOR = SECTOR_BYTES // WORD_BYTES
SECTOR_GAP = 0.35
BYTE_BAR = 0.6
WIDTH = LEFT + LINE_BYTES // WORD_BYTES + (SECTORS_PER_LINE - 1) * SECTOR_GAP + 0.5
HEADING = heading_height(style.WIDE / WIDTH)


def draw_sectors(
    access: WarpAccess | GlobalCost, *, title: str | None = None, ax: Axes | None = None
) -> Drawing:
    """Draw each 128-byte line that a global access touches as four sectors of eight 32-bit words.

    Bytes that lanes ask for are filled and carry the lanes' numbers; bytes that come along unused are
    hatched; sectors that stay behind are dashed. `title` replaces the line that names the access.

    >>> draw_sectors(WarpAccess.from_formula("ld.global.b32", lambda lane: 8 * lane))
    Sector map of ld.global.b32, lanes 0..31: 8 sectors in 2 lines; 128 of 256 bytes moved are used (50%).

    Raises `InvalidDrawing` for anything but a global-memory access, and what `global_cost` raises.
    """
    cost = _require_global_cost(access)
    lines = sorted({sector // SECTORS_PER_LINE for sector in cost.lanes_by_sector})
    lanes_by_word = _lanes_by_word(cost)
    height = _row_height(cost, lanes_by_word)
    rows = _row_tops(lines, height)
    total = (rows[-1] + height) if rows else 1.0
    wasted = cost.bytes_moved > cost.bytes_requested
    unused = len(lines) * SECTORS_PER_LINE > cost.sectors
    key = 1.8 if wasted or unused else 0.0
    top = HEADING + 1.2
    with style.settings():
        sheet = Sheet(WIDTH, top + total + key + 0.5, ax=ax)
        sheet.heading(_verdict(cost), title or access_in_words(cost.access))
        _draw_header(sheet, HEADING)
        for line, y in zip(lines, rows, strict=True):
            _draw_line(sheet, top + y, height, line, cost, lanes_by_word)
        if key:
            _draw_key(sheet, top + total + 1.0, wasted, unused)
    return Drawing(sheet.ax, f"Sector map of {access_in_words(cost.access)}: {_summary(cost)}.")


def _require_global_cost(access: object) -> GlobalCost:
    if isinstance(access, GlobalCost):
        return access
    if isinstance(access, WarpAccess) and instruction(access.instruction).space == "global":
        return global_cost(access)
    got = access.instruction if isinstance(access, WarpAccess) else f"a {type(access).__name__}"
    raise InvalidDrawing(
        f"draw_sectors: got {got}; it draws a global-memory WarpAccess or its GlobalCost."
        " For shared memory use draw_bank_map."
    )


def _verdict(cost: GlobalCost) -> str:
    if not cost.sectors:
        return "no sector"
    return f"{count(cost.sectors, 'sector')}: {cost.bytes_requested:,} of {cost.bytes_moved:,} bytes used"


def _summary(cost: GlobalCost) -> str:
    if not cost.sectors:
        return "no sector"
    return (
        f"{count(cost.sectors, 'sector')} in {count(cost.lines, 'line')};"
        f" {cost.bytes_requested:,} of {cost.bytes_moved:,} bytes moved are used"
        f" ({100 * cost.efficiency:.3g}%)"
    )


def _lanes_by_word(cost: GlobalCost) -> dict[int, list[int]]:
    width = instruction(cost.access.instruction).bytes_per_lane
    table: dict[int, list[int]] = {}
    for lane in cost.access.lanes:
        start = cost.access.addresses[lane]
        for word in range(start // WORD_BYTES, (start + width - 1) // WORD_BYTES + 1):
            table.setdefault(word, []).append(lane)
    return table


def _row_height(cost: GlobalCost, lanes_by_word: dict[int, list[int]]) -> float:
    """Room for the cell with most lines, and for a bar of bytes where lanes take parts of words."""
    most = max((len(cell_lines(lanes)) for lanes in lanes_by_word.values()), default=1)
    return (1.0 if most == 1 else 0.4 + 0.74 * most) + _byte_bar(cost)


def _byte_bar(cost: GlobalCost) -> float:
    """Height of the bar of bytes: lane numbers of 8- and 16-bit accesses would not fit on their bytes."""
    return BYTE_BAR if instruction(cost.access.instruction).bytes_per_lane < WORD_BYTES else 0.0


def _row_tops(lines: list[int], height: float) -> list[float]:
    """Where each line starts; lines that are not neighbours in memory stand further apart."""
    tops: list[float] = []
    for position, line in enumerate(lines):
        gap = 0.3 if position and line == lines[position - 1] + 1 else 0.65
        tops.append(tops[-1] + height + gap if tops else 0.0)
    return tops


def _sector_x(sector: int) -> float:
    return LEFT + sector % SECTORS_PER_LINE * (WORDS_PER_SECTOR + SECTOR_GAP)


def _draw_header(sheet: Sheet, y: float) -> None:
    sheet.text(LEFT - 0.4, y + 0.5, "line", CELL, align="right", color=MUTED)
    for sector in range(SECTORS_PER_LINE):
        first = sector * SECTOR_BYTES
        label = f"bytes {first}..{first + SECTOR_BYTES - 1}"
        sheet.text(
            _sector_x(sector) + WORDS_PER_SECTOR / 2, y + 0.5, label, CELL, align="center", color=MUTED
        )


def _draw_line(
    sheet: Sheet, y: float, height: float, line: int, cost: GlobalCost, lanes_by_word: dict[int, list[int]]
) -> None:
    size = min(CELL, (LEFT - 0.6) * sheet.cell_pt / (len(str(line)) * style.DIGIT_WIDTH))
    sheet.text(LEFT - 0.4, y + height / 2, str(line), size, align="right", color=MUTED)
    for sector in range(line * SECTORS_PER_LINE, (line + 1) * SECTORS_PER_LINE):
        x = _sector_x(sector)
        if sector not in cost.lanes_by_sector:
            sheet.box(x, y, WORDS_PER_SECTOR, height, edge=GREY.edge, line=0.7, dashed=True)
            continue
        bar = _byte_bar(cost) or height
        sheet.hatching(x, y + height - bar, WORDS_PER_SECTOR, bar, GREY.edge)
        for position in range(WORDS_PER_SECTOR):
            word = sector * WORDS_PER_SECTOR + position
            if lanes := lanes_by_word.get(word):
                _draw_word(sheet, x + position, y, height, word, lanes, cost)
        sheet.box(x, y, WORDS_PER_SECTOR, height, edge=INK, line=1.4, gid=f"sector{sector}", z=3)


def _draw_word(
    sheet: Sheet, x: float, y: float, height: float, word: int, lanes: list[int], cost: GlobalCost
) -> None:
    """The bytes of one word that lanes ask for, to scale, and the lanes' numbers."""
    width = instruction(cost.access.instruction).bytes_per_lane
    first_lane: dict[int, int] = {}
    for lane in lanes:
        start = max(cost.access.addresses[lane] - word * WORD_BYTES, 0)
        for byte in range(start, min(start + width, WORD_BYTES)):
            first_lane.setdefault(byte, lane)
    step = min(width, WORD_BYTES)
    bar = _byte_bar(cost)
    for byte in sorted(first_lane)[::step]:
        tone = lane_tone(first_lane[byte])
        sheet.box(
            x + byte / WORD_BYTES, y + height - (bar or height), step / WORD_BYTES, bar or height,
            fill=tone.fill, edge=tone.edge, line=0.7, gid=f"byte{word * WORD_BYTES + byte}",
        )  # fmt: skip
    sheet.stack(x, y, 1.0, height - bar, cell_lines(lanes))


def _draw_key(sheet: Sheet, y: float, wasted: bool, unused: bool) -> None:
    x = LEFT
    if wasted:
        sheet.hatching(x, y - 0.45, 1.8, 0.9, GREY.edge)
        sheet.box(x, y - 0.45, 1.8, 0.9, edge=INK, line=1.4)
        sheet.text(x + 2.2, y, "moved, not used", CELL, color=MUTED)
        x += 12.5
    if unused:
        sheet.box(x, y - 0.45, 1.8, 0.9, edge=GREY.edge, line=0.7, dashed=True)
        sheet.text(x + 2.2, y, "not moved", CELL, color=MUTED)
