"""The comparison: the rungs of a ladder, or a before and an after, as bars with their values written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from matplotlib.axes import Axes

from lanewise.figures import style
from lanewise.figures.drawing import Drawing, InvalidDrawing, Sheet, is_finite
from lanewise.figures.style import AMBER, BLUE, BODY, GREEN, MUTED, PURPLE, Tone

Series: TypeAlias = Mapping[str, Sequence[float | None]]

# All in cells of the sheet.
CELL_PT = 12.0
WIDTH = style.NARROW / CELL_PT
MARGIN = 0.7
BAR = 1.25
KEY = 1.9  # one entry of the key
LABEL, PAUSE = 1.6, 0.55  # above and below the bars of one rung

BarStyle: TypeAlias = "tuple[Tone, str | None]"  # tone and hatching
BAR_STYLES: tuple[BarStyle, ...] = ((BLUE, None), (AMBER, "//"), (GREEN, "\\\\"), (PURPLE, "xx"))


def draw_comparison(
    labels: Sequence[str],
    values: Series,
    *,
    unit: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> Drawing:
    """Draw the rungs of a ladder as horizontal bars that start at zero, with their values written.

    `labels` name the rungs; `values` maps what was counted or measured to one number per rung, all in one
    `unit`. None says that there is no number: its place stays empty.

    >>> draw_comparison(["unpadded", "padded"], {"wavefronts": [32, 1]}).alt
    'Comparison. wavefronts: unpadded 32, padded 1.'

    Raises `InvalidDrawing` for no labels, unequal lengths, more than four series, and numbers that are
    negative or not finite.
    """
    _check(labels, values)
    top = 2.4 if title else 0.6
    rungs = top + KEY * len(values) + 0.2
    step = LABEL + BAR * len(values) + PAUSE
    with style.settings():
        sheet = Sheet(WIDTH, rungs + step * len(labels) + 0.3, style.NARROW, ax=ax)
        if title:
            sheet.text(MARGIN, 1.3, title, style.TITLE, bold=True)
        _draw_key(sheet, top, values, unit)
        for position, label in enumerate(labels):
            _draw_rung(sheet, rungs + step * position, label, position, values)
    return Drawing(sheet.ax, _alt(labels, values, unit, title))


def written(value: float, unit: str = "") -> str:
    """A number as figures write it: thousands separated, three digits for fractions.

    >>> written(1048576), written(3266.4, "GB/s"), written(0.0606)
    ('1,048,576', '3,266 GB/s', '0.0606')
    """
    number = f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 100 else f"{value:.3g}"
    return f"{number} {unit}".rstrip()


def _check(labels: Sequence[str], values: Series) -> None:
    if isinstance(labels, str) or not isinstance(labels, Sequence) or not isinstance(values, Mapping):
        raise InvalidDrawing(
            f"draw_comparison: got labels {labels!r} and values {values!r}. Give a list of labels, and values"
            " as {what was counted: one number per label}."
        )
    if not labels or not values or len(values) > len(BAR_STYLES):
        raise InvalidDrawing(
            f"draw_comparison: got {len(labels)} labels and {len(values)} series; give at least one label and"
            f" one to {len(BAR_STYLES)} series."
        )
    for name, numbers in values.items():
        if not isinstance(numbers, Sequence | np.ndarray) or len(numbers) != len(labels):
            raise InvalidDrawing(
                f"draw_comparison: {name!r} has values {numbers!r} for {len(labels)} labels. Give one per"
                " label, None where there is none."
            )
        for label, number in zip(labels, numbers, strict=True):
            if number is not None and not (is_finite(number) and number >= 0):
                raise InvalidDrawing(
                    f"draw_comparison: {name!r} of {label!r} is {number!r}; bars start at 0. Give a finite"
                    " number of 0 or more, or None."
                )


def _draw_key(sheet: Sheet, y: float, values: Series, unit: str) -> None:
    for position, (name, (tone, hatch)) in enumerate(zip(values, BAR_STYLES, strict=False)):
        middle = y + KEY * (position + 0.5)
        sheet.box(MARGIN, middle - 0.55, 2.0, 1.1, fill=tone.fill, edge=tone.edge, hatch=hatch)
        sheet.text(MARGIN + 2.6, middle, f"{name} ({unit})" if unit else name, BODY, color=MUTED)


def _draw_rung(sheet: Sheet, y: float, label: str, position: int, values: Series) -> None:
    """One label and its bars below it."""
    sheet.text(MARGIN, y + LABEL / 2, label, BODY)
    cells_per_unit = _cells_per_unit(values)
    for row, (numbers, (tone, hatch)) in enumerate(zip(values.values(), BAR_STYLES, strict=False)):
        top, number = y + LABEL + BAR * row, numbers[position]
        if number is None:
            sheet.text(MARGIN, top + BAR / 2, "no number", BODY, color=MUTED)
            continue
        length, name = number * cells_per_unit, f"bar{position}-{row}"
        inner = (MARGIN, top + 0.06, length, BAR - 0.12)
        sheet.box(*inner, fill=tone.fill, edge=tone.edge, line=1.0, hatch=hatch, gid=name)
        sheet.text(MARGIN + length + 0.4, top + BAR / 2, written(number), BODY, bold=True)


def _cells_per_unit(values: Series) -> float:
    """As long as the longest bar and the longest number both fit."""
    numbers = [number for row in values.values() for number in row if number is not None]
    longest = max((len(written(number)) for number in numbers), default=0)
    room = WIDTH - 2 * MARGIN - 0.4 - longest * style.BOLD_DIGIT_WIDTH * BODY / CELL_PT
    return room / (max(numbers, default=0) or 1)


def _alt(labels: Sequence[str], values: Series, unit: str, title: str | None) -> str:
    sentences = [f"{title}." if title else "Comparison."]
    for name, numbers in values.items():
        said = ["no number" if number is None else written(number, unit) for number in numbers]
        listed = (f"{label} {number}" for label, number in zip(labels, said, strict=True))
        sentences.append(f"{name}: {', '.join(listed)}.")
    return " ".join(sentences)
