"""The bit picture of a swizzle: which bits of an offset are read, which they flip, and which stay."""

from __future__ import annotations

from matplotlib.axes import Axes

from lanewise.figures import style
from lanewise.figures.drawing import Drawing, InvalidDrawing, Sheet, heading_height
from lanewise.figures.style import AMBER, BLUE, BODY, CELL, GREY, MUTED, PAPER, Tone
from lanewise.integers import whole
from lanewise.swizzles import Swizzle
from lanewise.text import count, spans

LEFT = 1.25  # cells to the left of the highest bit
CELL_PT = 30.0  # unless there are too many bits for that
FEWEST_BITS, MOST_BITS = 8, 18
EXPRESSION = 2.9  # em; the width of "^x17" in bold
# Cells below the heading: numbers of the bits, the offset x, the lines, the offset y, the labels below.
NUMBERS, BEFORE, AFTER, GROUPS, BOTTOM = 0.35, 0.8, 3.3, 4.75, 5.4


def draw_swizzle_bits(
    swizzle: Swizzle, *, n_bits: int | None = None, title: str | None = None, ax: Axes | None = None
) -> Drawing:
    """Draw an offset before and after a swizzle, bit by bit, with a line from each bit to the one it flips.

    The highest bit stands at the left. `n_bits` is how many to draw, by default all that take part. Units
    are those that the swizzle's offsets count.

    >>> draw_swizzle_bits(Swizzle(3, 4, 3))
    Bit picture of Swizzle<3,4,3>: bits 7..9 are read and stay; bit 7 flips bit 4, 8 flips 5, 9 flips 6.
    The lowest 4 bits stay, so runs of 16 offsets move together.

    Raises `InvalidDrawing` if `n_bits` leaves out a bit that takes part.
    """
    if not isinstance(swizzle, Swizzle):
        raise InvalidDrawing(
            f"draw_swizzle_bits: got a {type(swizzle).__name__}; it draws a Swizzle. Give the .swizzle of a"
            " tile or of a TMA mode."
        )
    taking_part = max((*swizzle.bits_read, *swizzle.bits_changed, swizzle.base - 1, 0)) + 1
    n_bits = (
        max(taking_part, FEWEST_BITS)
        if n_bits is None
        else whole("draw_swizzle_bits: n_bits", n_bits, InvalidDrawing, low=1)
    )
    if n_bits < taking_part:
        raise InvalidDrawing(
            f"draw_swizzle_bits: n_bits={n_bits} leaves out bits of {swizzle}. Use at least {taking_part}."
        )
    if n_bits > MOST_BITS:
        raise InvalidDrawing(
            f"draw_swizzle_bits: {n_bits} bits are not legible side by side; at most {MOST_BITS} are. Count"
            " offsets in larger units with swizzle.in_units_of, or draw fewer bits."
        )
    width = LEFT + n_bits + 0.4
    width_pt = min(width * CELL_PT, style.WIDE)
    heading = heading_height(width_pt / width)
    with style.settings():
        sheet = Sheet(width, heading + BOTTOM, width_pt, ax=ax)
        sheet.heading(title or str(swizzle), _flips_in_words(swizzle))
        _draw_offsets(sheet, heading, swizzle, n_bits)
        _draw_flips(sheet, heading, swizzle, n_bits)
        _draw_groups(sheet, heading, swizzle, n_bits)
    return Drawing(sheet.ax, _alt(swizzle))


def _x(bit: int, n_bits: int) -> float:
    return LEFT + n_bits - 1 - bit


def _draw_offsets(sheet: Sheet, top: float, swizzle: Swizzle, n_bits: int) -> None:
    """The offset before, bit by bit, and after."""
    flipped_by = dict(zip(swizzle.bits_changed, swizzle.bits_read, strict=True))
    sheet.text(LEFT - 0.25, top + BEFORE + 0.5, "x", BODY, align="right", color=MUTED)
    sheet.text(LEFT - 0.25, top + AFTER + 0.5, "y", BODY, align="right", color=MUTED)
    sheet.text(LEFT - 0.25, top + NUMBERS, "bit", CELL, align="right", color=MUTED)
    for bit in range(n_bits):
        x = _x(bit, n_bits)
        sheet.text(x + 0.5, top + NUMBERS, str(bit), CELL, align="center", color=MUTED)
        _draw_bit(
            sheet, x, top + BEFORE, [f"x{bit}"], BLUE if bit in swizzle.bits_read else None, f"before{bit}"
        )
        after = [f"x{bit}", f"^x{flipped_by[bit]}"] if bit in flipped_by else [f"x{bit}"]
        _draw_bit(sheet, x, top + AFTER, after, AMBER if bit in flipped_by else None, f"after{bit}")


def _draw_bit(sheet: Sheet, x: float, y: float, lines: list[str], tone: Tone | None, gid: str) -> None:
    """One bit as an expression of the bits before; with a tone if it takes part."""
    fill, edge, line = (tone.fill, tone.edge, 1.4) if tone else (PAPER, GREY.edge, 0.7)
    sheet.box(x + 0.04, y, 0.92, 1.0, fill=fill, edge=edge, line=line, gid=gid, z=2)
    size = min(CELL, 0.92 * sheet.cell_pt / EXPRESSION)
    for position, text in enumerate(lines):
        middle = y + 0.5 + (position - (len(lines) - 1) / 2) * 0.44
        sheet.text(x + 0.5, middle, text, size, align="center", bold=position > 0)


def _draw_flips(sheet: Sheet, top: float, swizzle: Swizzle, n_bits: int) -> None:
    """A thin line down for every bit, a heavy one from each bit that is read to the one it flips."""
    start, end = top + BEFORE + 1.0, top + AFTER
    for bit in range(n_bits):
        x = _x(bit, n_bits) + 0.5
        sheet.lines((x, x), (start, end), GREY.edge, 0.7)
    for read, changed in zip(swizzle.bits_read, swizzle.bits_changed, strict=True):
        xs = (_x(read, n_bits) + 0.5, _x(changed, n_bits) + 0.5)
        sheet.lines(xs, (start, end - 0.12), BLUE.edge, 1.8, gid=f"bit{read}-flips-bit{changed}")
        sheet.dot(xs[1], end - 0.12, 7.0, BLUE.edge)


def _draw_groups(sheet: Sheet, top: float, swizzle: Swizzle, n_bits: int) -> None:
    """Name the bits that are read, those that flip, and the low ones that stay."""
    groups = [("read", swizzle.bits_read), ("flipped", swizzle.bits_changed), ("stay", range(swizzle.base))]
    for name, bits in groups:
        if bits:
            left, right = _x(max(bits), n_bits) + 0.08, _x(min(bits), n_bits) + 0.92
            y = top + GROUPS - 0.27
            sheet.lines((left, left, right, right), (y - 0.1, y, y, y - 0.1), MUTED, 0.9)
            label = f"{name}: runs of {1 << swizzle.base}" if name == "stay" and swizzle.base > 2 else name
            sheet.text((left + right) / 2, top + GROUPS + 0.1, label, CELL, align="center")


def _flips_in_words(swizzle: Swizzle) -> str:
    if not swizzle.bits:
        return "nothing moves"
    verb = "flips bit" if swizzle.bits == 1 else "flip bits"
    return f"bit{'s' * (swizzle.bits > 1)} {spans(swizzle.bits_read)} {verb} {spans(swizzle.bits_changed)}"


def _alt(swizzle: Swizzle) -> str:
    if not swizzle.bits:
        return f"Bit picture of {swizzle}: nothing moves, all bits stay."
    pairs = list(zip(swizzle.bits_read, swizzle.bits_changed, strict=True))
    flips = ", ".join(
        [f"bit {pairs[0][0]} flips bit {pairs[0][1]}", *(f"{a} flips {b}" for a, b in pairs[1:])]
    )
    who = (
        f"bit {pairs[0][0]} is read and stays"
        if len(pairs) == 1
        else f"bits {spans(swizzle.bits_read)} are read and stay"
    )
    alt = f"Bit picture of {swizzle}: {who}; {flips}."
    if swizzle.base:
        low = "lowest bit stays" if swizzle.base == 1 else f"lowest {count(swizzle.base, 'bit')} stay"
        alt += f" The {low}, so runs of {1 << swizzle.base} offsets move together."
    return alt
