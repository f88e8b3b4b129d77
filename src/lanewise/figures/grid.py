"""The address grid: a tile whose cells say in which bank, word, element or chunk they lie."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb

from lanewise.access import WarpAccess
from lanewise.figures import style
from lanewise.figures.drawing import Drawing, InvalidDrawing, Sheet, heading_height
from lanewise.figures.shared import require_shared_cost, runs
from lanewise.figures.style import BODY, CELL, GREY, INK, LOST, MUTED, PAPER, RULE, lane_tone
from lanewise.figures.tile import CHUNKS, SHOWS, Indices, Label, Place, Tile, tile_of, waiting_pairs
from lanewise.figures.words import access_in_words, named, verdict
from lanewise.machine import BANKS, WORD_BYTES
from lanewise.memory import SharedCost
from lanewise.text import series

LEFT = 2.7  # cells to the left of the first column
NARROWEST, NARROWEST_HEADED = 11.5, 17.0  # cells that the key and a heading need
CELL_PT = 22.0  # unless the grid is too wide for that
DIGIT_PT = 7.5  # of a cell, for each digit of the longest number
SHADES = ("#F2F6FA", "#86B5D8")  # first and last bank or chunk; INK reads on all between
ALT_CELLS = 72  # an alternative text lists no more numbers than that


def draw_address_grid(
    layout: int | Place,
    rows: Indices,
    cols: Indices,
    *,
    element_bytes: int = WORD_BYTES,
    base_address: int = 0,
    label: Label = "bank",
    access: WarpAccess | SharedCost | None = None,
    padding_from: int | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Drawing:
    """Draw a tile as a grid whose cells say where each element lies.

    `layout` is a pitch in elements, or a function `(row, col) -> element index` such as a `Layout` or a
    swizzled tile. `rows` and `cols` are how many, or which ones: what `(0, 1, 2, 31)` leaves out shows as
    dots. A pitch wider than `cols` adds its padding columns, dashed; in other cases columns from
    `padding_from` on are padding. `label` says what a cell shows: its bank, its 32-bit word, its element
    index, or which of the eight 16-byte chunks of the 32 banks it lies in. Cells that `access` touches are
    outlined, and inverted where its lanes need several words of a bank. Addresses count bytes from 0, where
    `base_address` puts element 0 elsewhere.

    >>> draw_address_grid(33, rows=(0, 1, 31), cols=(0, 1, 31))
    Grid of rows 0, 1, 31 and columns 0, 1, 31; each cell shows its bank.
    Row 0: 0, 1, 31; row 1: 1, 2, 0; row 31: 31, 0, 30.

    Raises `InvalidDrawing` for an impossible pitch, row, column, size or label, and if `access` is no
    shared-memory access.
    """
    cost = None if access is None else require_shared_cost("draw_address_grid", access)
    tile = tile_of(layout, rows, cols, element_bytes, base_address, padding_from, label)
    xs, ys = _places(tile.cols), _places(tile.rows)
    headed = bool(title or cost)
    width = max(LEFT + xs[-1] + 1.5, NARROWEST_HEADED if headed else NARROWEST)
    digits = len(str(tile.numbers.max()))
    width_pt = min(style.WIDE, width * max(CELL_PT, digits * DIGIT_PT))
    _require_room(tile, width_pt / width)
    padded = tile.padding_from is not None and tile.cols[-1] >= tile.padding_from
    heading = heading_height(width_pt / width) if headed else 0.3
    with style.settings():
        sheet = Sheet(width, heading + 1.2 + ys[-1] + 1.5 + 1.3 * padded, width_pt, ax=ax)
        if cost:
            sheet.heading(verdict(cost), title or access_in_words(cost.access), bad=cost.excess > 0)
        elif title:
            sheet.heading(title, f"each cell shows its {SHOWS[label]}")
        _draw_headers(sheet, heading, tile, xs, ys)
        _draw_cells(sheet, heading + 1.2, tile, xs, ys, cost)
        if padded:
            _draw_key(sheet, heading + 1.2 + ys[-1] + 1.9)
    return Drawing(sheet.ax, _alt(tile, cost))


def _number_size(tile: Tile, cell_pt: float) -> float:
    """Points at which the longest number fits a cell with some room."""
    digits = len(str(tile.numbers.max()))
    return min(CELL, 0.85 * cell_pt / (digits * style.DIGIT_WIDTH))


def _require_room(tile: Tile, cell_pt: float) -> None:
    if _number_size(tile, cell_pt) < style.SMALLEST:
        raise InvalidDrawing(
            f"draw_address_grid: numbers up to {tile.numbers.max()} are not legible in {len(tile.cols)}"
            f" columns. Show some of them, such as cols={(*tile.cols[:3], tile.cols[-1])}, or label='bank'."
        )


def shade(fraction: float) -> str:
    """A fill between the two of `SHADES`: banks in order get deeper, so that a wrap-around shows."""
    first, last = (np.array(to_rgb(end)) for end in SHADES)
    return to_hex(first + (last - first) * fraction)


def _places(indices: Sequence[int]) -> list[int]:
    """The position of each row or column, with a cell of room for dots where some are left out."""
    places = [0]
    for before, after in pairwise(indices):
        places.append(places[-1] + (1 if after == before + 1 else 2))
    return places


def _draw_headers(sheet: Sheet, top: float, tile: Tile, xs: list[int], ys: list[int]) -> None:
    """Numbers of columns and rows, and dots where some are left out."""
    for position, col in enumerate(tile.cols):
        sheet.text(LEFT + xs[position] + 0.5, top + 0.65, str(col), CELL, align="center", color=MUTED)
    for position, row in enumerate(tile.rows):
        y = top + 1.2 + ys[position] + 0.5
        sheet.text(LEFT - 0.35, y, str(row) if position else f"row {row}", CELL, align="right", color=MUTED)
        for column in range(1, len(xs)):
            if xs[column] > xs[column - 1] + 1:
                sheet.text(LEFT + xs[column] - 0.5, y, "⋯", CELL, align="center", color=MUTED)
        if position and ys[position] > ys[position - 1] + 1:
            for x in xs:
                sheet.text(LEFT + x + 0.5, y - 1.0, "⋮", CELL, align="center", color=MUTED)


def _draw_cells(
    sheet: Sheet, top: float, tile: Tile, xs: list[int], ys: list[int], cost: SharedCost | None
) -> None:
    touched = tile.lanes_by_cell(cost) if cost else {}
    waiting = waiting_pairs(cost) if cost else set()
    n_shades = {"bank": BANKS, "chunk": CHUNKS}.get(tile.label, 0)
    ruled = bool(cost) or not n_shades
    size = _number_size(tile, sheet.cell_pt)
    if ruled:
        _draw_lattice(sheet, top, [x for column, x in enumerate(xs) if not tile.is_padding(column)], ys)
    for (row, column), number in np.ndenumerate(tile.numbers):
        x, y = LEFT + xs[column], top + ys[row]
        name, color = f"row{tile.rows[row]}-col{tile.cols[column]}", INK
        padding = tile.is_padding(column)
        if (row, column) in touched:
            tone = lane_tone(touched[row, column][0])
            bank = int(tile.banks[row, column])
            bad = any((lane, bank) in waiting for lane in touched[row, column])
            color = PAPER if bad else INK
            fill, edge = (LOST, PAPER) if bad else (tone.fill, tone.edge)
            sheet.box(
                x + 0.03, y + 0.03, 0.94, 0.94, fill=fill, edge=edge, line=1.2, dashed=padding, gid=name, z=2
            )
        elif padding:
            color = MUTED if cost else INK
            sheet.box(x + 0.06, y + 0.06, 0.88, 0.88, edge=GREY.edge, line=0.7, dashed=True, gid=name)
        elif ruled:
            color = MUTED if cost else INK
        else:
            sheet.box(x + 0.03, y + 0.03, 0.94, 0.94, fill=shade(number / (n_shades - 1)))
        sheet.text(x + 0.5, y + 0.5, str(number), size, align="center", color=color)


def _draw_lattice(sheet: Sheet, top: float, xs: list[int], ys: list[int]) -> None:
    """Hairlines between cells; nothing where rows or columns are left out."""
    for left, n_cols in runs(xs):
        for above, n_rows in runs(ys):
            right, below = left + n_cols, above + n_rows
            for x in range(n_cols + 1):
                sheet.lines((LEFT + left + x,) * 2, (top + above, top + below), RULE, 0.7, z=0.5)
            for y in range(n_rows + 1):
                sheet.lines((LEFT + left, LEFT + right), (top + above + y,) * 2, RULE, 0.7, z=0.5)


def _draw_key(sheet: Sheet, y: float) -> None:
    sheet.box(LEFT + 0.06, y - 0.44, 0.88, 0.88, edge=GREY.edge, line=0.7, dashed=True)
    sheet.text(LEFT + 1.3, y, "padding: holds no data", BODY, color=MUTED)


def _alt(tile: Tile, cost: SharedCost | None) -> str:
    """All numbers of a small grid; of a large one the first row and column."""
    sentences = [
        f"Grid of row{'s' * (len(tile.rows) > 1)} {series(tile.rows)} and column{'s' * (len(tile.cols) > 1)}"
        f" {series(tile.cols)}; each cell shows its {SHOWS[tile.label]}."
    ]
    if tile.numbers.size <= ALT_CELLS:
        table = zip(tile.rows, tile.numbers.tolist(), strict=True)
        rows = [f"row {row}: {', '.join(map(str, numbers))}" for row, numbers in table]
        sentences.append("; ".join(rows).capitalize() + ".")
    else:
        across, down = tile.numbers[0].tolist(), tile.numbers[:, 0].tolist()
        different = f"{len(set(down))} different" if len(set(down)) > 1 else "all equal"
        sentences.append(
            f"Row {tile.rows[0]}: {_briefly(across)}. Column {tile.cols[0]}: {_briefly(down)}, {different}."
        )
    if cost:
        used = sorted({bank for phase in cost.phases for bank in phase.words_by_bank})
        banks = named("bank", used) if used else "no bank"
        sentences.append(f"Outlined: {access_in_words(cost.access)}, in {banks}; {verdict(cost)}.")
    return " ".join(sentences)


def _briefly(numbers: list[int]) -> str:
    listed = [str(number) for number in numbers]
    return ", ".join([*listed[:4], "..", listed[-1]] if len(listed) > 6 else listed)
