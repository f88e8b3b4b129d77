"""The roofline: how fast a kernel can be at most, by how many operations it does for each byte it moves."""

from __future__ import annotations

from collections.abc import Mapping
from math import atan2, ceil, degrees, floor, hypot, log10
from typing import Any, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from lanewise.figures import style
from lanewise.figures.bars import written
from lanewise.figures.drawing import Drawing, InvalidDrawing, is_finite, require_axes
from lanewise.figures.style import BLUE, BODY, CELL, GREEN, INK, MUTED, PAPER, PURPLE, RULE

# FLOP per byte, and TFLOP/s; None for a kernel of which only the intensity is known.
Point: TypeAlias = "tuple[float, float | None]"

CHART_PT = 216.0  # height of the area that is ruled
LEFT_PT, RIGHT_PT = 44.0, 14.0
KEY_PT, ROW_PT = 48.0, 16.0  # from the axis to the first line of the key, and from line to line
LABEL_DECADES = 1.4  # how far the name of a slope reaches
MOST_POINTS = 12
ROOF_LOOKS = ((INK, "solid"), (PURPLE.edge, (0, (6, 2))), (GREEN.edge, (0, (2, 2))))
NAMES = "abcdefghijkl"


def draw_roofline(
    points: Mapping[str, Point],
    *,
    gb_per_s: Mapping[str, float],
    tflop_per_s: Mapping[str, float],
    title: str | None = None,
    ax: Axes | None = None,
) -> Drawing:
    """Draw kernels under the roofs of a machine, both axes logarithmic.

    `gb_per_s` names memories and their rates, one to three: each is a slope. `tflop_per_s` names kinds of
    arithmetic and their rates, one to three: each is a level. `points` maps a kernel to its FLOP per byte and
    its TFLOP/s; with None for the rate an open mark stands where the first slope and the highest level allow
    it to be at most. A letter marks each kernel, and the key below names it.

    >>> draw_roofline({"add": (1 / 12, 0.3)}, gb_per_s={"DRAM": 4000}, tflop_per_s={"float32": 60}).alt
    'Roofline. Slopes: DRAM 4,000 GB/s. Levels: float32 60 TFLOP/s. DRAM meets float32 at 15 FLOP per byte. \
Kernels: a, add, 0.0833 FLOP per byte, 0.3 TFLOP/s.'

    Raises `InvalidDrawing` for no points or more than twelve, no roofs or more than three of a kind, and
    numbers that are not above 0.
    """
    _check(points, gb_per_s, tflop_per_s)
    rates = {name: _rate(point, gb_per_s, tflop_per_s) for name, point in points.items()}
    with style.settings():
        if ax is None:
            ax = _own_axes(len(points), title)
        require_axes(ax)
        left, right = _limits([intensity for intensity, _ in points.values()], gb_per_s, tflop_per_s)
        _set_axes(ax, left, right, [*rates.values(), *tflop_per_s.values()])
        marks = [(intensity, rates[name]) for name, (intensity, _) in points.items()]
        _draw_roofs(ax, gb_per_s, tflop_per_s, (left, right), marks)
        for letter, (name, (intensity, measured)) in zip(NAMES, points.items(), strict=False):
            _draw_point(ax, letter, intensity, rates[name], measured is not None)
        _draw_key(ax, points)
        if title:
            _beside(ax, title, (0, 1), (-LEFT_PT + 6, 30), fontsize=style.TITLE, fontweight="bold")
    return Drawing(ax, _alt(points, rates, gb_per_s, tflop_per_s, title))


def _check(points: object, gb_per_s: object, tflop_per_s: object) -> None:
    for what, given in (("gb_per_s", gb_per_s), ("tflop_per_s", tflop_per_s)):
        if not isinstance(given, Mapping) or not 1 <= len(given) <= len(ROOF_LOOKS):
            raise InvalidDrawing(
                f"draw_roofline: got {given!r} for {what}; give one to {len(ROOF_LOOKS)} rates by name."
            )
        for name, rate in given.items():
            _check_number(f"{what} of {name!r}", rate)
    if not isinstance(points, Mapping) or not 1 <= len(points) <= MOST_POINTS:
        raise InvalidDrawing(
            f"draw_roofline: got {points!r} for points; give one to {MOST_POINTS} kernels,"
            " {name: (FLOP per byte, TFLOP/s or None)}."
        )
    for name, point in points.items():
        if not isinstance(point, tuple) or len(point) != 2:
            raise InvalidDrawing(
                f"draw_roofline: {name!r} is {point!r}; give (FLOP per byte, TFLOP/s or None)."
            )
        _check_number(f"FLOP per byte of {name!r}", point[0])
        if point[1] is not None:
            _check_number(f"TFLOP/s of {name!r}", point[1])


def _check_number(what: str, number: object) -> None:
    if not (is_finite(number) and number > 0):
        raise InvalidDrawing(
            f"draw_roofline: {what} is {number!r}; both axes are logarithmic. Give more than 0."
        )


def _rate(point: Point, gb_per_s: Mapping[str, float], tflop_per_s: Mapping[str, float]) -> float:
    intensity, measured = point
    if measured is not None:
        return measured
    return min(intensity * next(iter(gb_per_s.values())) / 1e3, max(tflop_per_s.values()))


def _own_axes(n_points: int, title: str | None) -> Axes:
    below, above = KEY_PT + ROW_PT * (n_points - 1) + 10, 50.0 if title else 26.0
    width, height = style.NARROW, CHART_PT + below + above
    figure = Figure(figsize=(width / 72, height / 72), facecolor=PAPER)
    inner = ((width - LEFT_PT - RIGHT_PT) / width, CHART_PT / height)
    return figure.add_axes((LEFT_PT / width, below / height, *inner))


def _limits(
    intensities: list[float], gb_per_s: Mapping[str, float], tflop_per_s: Mapping[str, float]
) -> tuple[float, float]:
    """From half of the least intensity or ridge to three times the largest."""
    ridges = [1e3 * level / slope for level in tflop_per_s.values() for slope in gb_per_s.values()]
    return min(*intensities, *ridges) / 2, 3 * max(*intensities, *ridges)


def _draw_roofs(
    ax: Axes,
    gb_per_s: Mapping[str, float],
    tflop_per_s: Mapping[str, float],
    span: tuple[float, float],
    marks: list[tuple[float, float]],
) -> None:
    left, right = span
    top = max(tflop_per_s.values())
    ends: dict[str, Any] = {"fontsize": CELL, "bbox": {"facecolor": PAPER, "edgecolor": "none", "pad": 0.5}}
    for (name, rate), (color, dash) in zip(gb_per_s.items(), ROOF_LOOKS, strict=False):
        end = 1e3 * top / rate
        ax.plot([left, end], [left * rate / 1e3, top], color=color, linestyle=dash, linewidth=1.6, zorder=2)
        at = _free_place(left, end, rate, marks)
        turned: dict[str, Any] = {"rotation": _slope_degrees(ax), "rotation_mode": "anchor"}
        place: dict[str, Any] = {"xytext": (0, 6), "textcoords": "offset points", "color": INK}
        ax.annotate(f"{name} {written(rate)} GB/s", (at, at * rate / 1e3), fontsize=CELL, **place, **turned)
    for (name, rate), (color, dash) in zip(tflop_per_s.items(), ROOF_LOOKS, strict=False):
        start = 1e3 * rate / max(gb_per_s.values())
        ax.plot([start, right], [rate, rate], color=color, linestyle=dash, linewidth=1.6, zorder=2)
        above = rate == top
        place = {"xytext": (0, 5 if above else -5), "textcoords": "offset points", "color": INK}
        place |= {"ha": "right", "va": "bottom" if above else "top", "zorder": 1.5}
        ax.annotate(f"{name} {written(rate)} TFLOP/s", (right, rate), **place, **ends)


def _slope_degrees(ax: Axes) -> float:
    """How steep a slope is on paper: a decade of FLOP per byte is a decade of TFLOP/s."""
    (x, y), (right, top) = (ax.transData.transform((value, value)) for value in (1.0, 10.0))
    return degrees(atan2(top - y, right - x))


def _free_place(left: float, end: float, rate: float, marks: list[tuple[float, float]]) -> float:
    """Where along a slope its name starts, as far from the marks as can be."""
    first, last = log10(left) + 0.1, max(log10(end) - LABEL_DECADES, log10(left) + 0.1)
    starts = [first + (last - first) * step / 8 for step in range(9)]

    def room(start: float) -> float:
        along = [start + LABEL_DECADES * part / 4 for part in range(5)]
        level = log10(rate / 1e3) + 0.2  # the name stands above its line
        return min(hypot(log10(x) - at, log10(y) - at - level) for x, y in marks for at in along)

    return float(10 ** max(starts, key=room))


def _draw_point(ax: Axes, letter: str, x: float, y: float, measured: bool) -> None:
    fill = BLUE.fill if measured else PAPER
    mark: dict[str, Any] = {"markerfacecolor": fill, "markeredgecolor": BLUE.edge, "clip_on": False}
    ax.plot([x], [y], marker="o", markersize=13, linestyle="none", markeredgewidth=1.4, zorder=4, **mark)
    place: dict[str, Any] = {"ha": "center", "va": "center_baseline", "zorder": 5}
    ax.annotate(letter, (x, y), fontsize=CELL, fontweight="bold", color=INK, **place)


def _set_axes(ax: Axes, left: float, right: float, rates: list[float]) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(left, right)
    ax.set_ylim(min(rates) / 2.5, max(rates) * 2.2)
    for axis, (low, high) in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        powers = [10.0**power for power in range(ceil(log10(low)), floor(log10(high)) + 1)]
        axis.set_major_locator(FixedLocator(powers))
        axis.set_major_formatter(FixedFormatter([written(power) for power in powers]))
        axis.set_minor_locator(NullLocator())
    ax.set_xlabel("FLOP per byte of DRAM traffic")
    _beside(ax, "TFLOP/s", (0, 1), (-LEFT_PT + 6, 8), fontsize=BODY)
    ax.grid(color=RULE, linewidth=0.6, zorder=0)
    ax.set_axisbelow(True)
    ax.tick_params(which="both", length=0)


def _draw_key(ax: Axes, points: Mapping[str, Point]) -> None:
    for row, (letter, (name, (_, measured))) in enumerate(zip(NAMES, points.items(), strict=False)):
        y = -KEY_PT - ROW_PT * row
        _beside(ax, letter, (0, 0), (0, y), fontsize=BODY, fontweight="bold", color=INK)
        text = name if measured is not None else f"{name} (at most)"
        _beside(ax, text, (0, 0), (14, y), fontsize=BODY, color=INK if measured is not None else MUTED)


def _beside(
    ax: Axes, text: str, corner: tuple[float, float], shift: tuple[float, float], **look: Any
) -> None:
    """Text at points from a corner of the axes."""
    ax.annotate(text, corner, shift, xycoords="axes fraction", textcoords="offset points", **look)


def _alt(
    points: Mapping[str, Point],
    rates: Mapping[str, float],
    gb_per_s: Mapping[str, float],
    tflop_per_s: Mapping[str, float],
    title: str | None,
) -> str:
    slopes = ", ".join(f"{name} {written(rate, 'GB/s')}" for name, rate in gb_per_s.items())
    levels = ", ".join(f"{name} {written(rate, 'TFLOP/s')}" for name, rate in tflop_per_s.items())
    first, rate = next(iter(gb_per_s.items()))
    meets = ", ".join(f"{name} at {written(1e3 * level / rate)}" for name, level in tflop_per_s.items())
    kernels = []
    for letter, (name, (intensity, measured)) in zip(NAMES, points.items(), strict=False):
        most = " at most" if measured is None else ""
        at = f"{written(intensity)} FLOP per byte, {written(rates[name], 'TFLOP/s')}{most}"
        kernels.append(f"{letter}, {name}, {at}")
    return (
        f"{f'Roofline: {title}' if title else 'Roofline'}. Slopes: {slopes}. Levels: {levels}."
        f" {first} meets {meets} FLOP per byte. Kernels: {'; '.join(kernels)}."
    )
