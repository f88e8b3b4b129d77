"""Line charts: one quantity of several cases against a size, a stride, or an amount of work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log2
from typing import Any, TypeAlias

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from lanewise.figures import style
from lanewise.figures.bars import written
from lanewise.figures.drawing import Drawing, InvalidDrawing, is_finite, require_axes
from lanewise.figures.style import AMBER, BLUE, CELL, GREEN, INK, MUTED, PAPER, PURPLE, RULE, Tone

Points: TypeAlias = Mapping[str, Sequence[float | None]]

HEIGHT_PT = 250.0
LEFT, RIGHT, BELOW = 52.0, 20.0, 42.0  # points around the axes
KEY_ROW = 18.0  # points for each row of the key
KEYS_A_ROW = 2
MOST_TICKS = 9
# Tone, dash, marker: no series is told from another by colour alone.
LINE_STYLES: tuple[tuple[Tone, str, str], ...] = (
    (BLUE, "-", "o"),
    (AMBER, "--", "s"),
    (GREEN, "-.", "^"),
    (PURPLE, ":", "D"),
)


def draw_lines(
    x: Sequence[float],
    series: Points,
    *,
    xlabel: str,
    ylabel: str,
    log_x: bool = False,
    log_y: bool = False,
    level: tuple[str, float] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Drawing:
    """Draw one to four series against `x`, each with its own marker and dash.

    `series` maps a name to one number for each `x`, None where there is none. `log_x` and `log_y` make an
    axis logarithmic to base 2. `level` is a named value across the chart, such as a ceiling. Without `log_y`
    the vertical axis starts at 0.

    >>> draw_lines([1, 2, 4], {"copy": [10.0, 20.0, 40.0]}, xlabel="size (MiB)", ylabel="time (µs)").alt
    'time (µs) against size (MiB). copy: 10 at 1, 20 at 2, 40 at 4.'

    Raises `InvalidDrawing` for no points, unequal lengths, more than four series, `x` that does not rise, and
    numbers that are negative, not finite, or 0 on a logarithmic axis.
    """
    _check(x, series, log_x, log_y, level)
    with style.settings():
        if ax is None:
            ax = _new_axes(len(series) + (level is not None), bool(title))
        require_axes(ax)
        for (name, numbers), (tone, dash, marker) in zip(series.items(), LINE_STYLES, strict=False):
            there = [(at, number) for at, number in zip(x, numbers, strict=True) if number is not None]
            look: dict[str, Any] = {"color": tone.edge, "linestyle": dash, "marker": marker, "zorder": 3}
            ax.plot(*zip(*there, strict=True), label=name, linewidth=1.8, markersize=5, clip_on=False, **look)
        if level is not None:
            ax.axhline(level[1], color=MUTED, linewidth=1.2, linestyle=(0, (1, 2)), label=level[0], zorder=2)
        _set_axes(ax, x, series, log_x, log_y, level)
        ax.set_xlabel(xlabel)
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
        ax.legend(ncols=KEYS_A_ROW, frameon=False, borderpad=0, fontsize=CELL, handlelength=3.2, **place)
        _name_y(ax, ylabel, title)
    return Drawing(ax, _alt(x, series, xlabel, ylabel, level, title))


def _new_axes(n_keys: int, has_title: bool) -> Axes:
    rows = -(-n_keys // KEYS_A_ROW)
    above = 22.0 + KEY_ROW * rows + (22.0 if has_title else 0.0)
    width_pt, height_pt = style.WIDE, HEIGHT_PT + above
    figure = Figure(figsize=(width_pt / 72, height_pt / 72), facecolor=PAPER)
    inner = (width_pt - LEFT - RIGHT) / width_pt, (height_pt - BELOW - above) / height_pt
    return figure.add_axes((LEFT / width_pt, BELOW / height_pt, *inner))


def _name_y(ax: Axes, ylabel: str, title: str | None) -> None:
    """The quantity stands above its axis, to be read without turning the head, and the title above that."""
    rows = -(-len(ax.get_legend_handles_labels()[1]) // KEYS_A_ROW)
    above: dict[str, Any] = {"textcoords": "offset points", "xycoords": "axes fraction", "va": "bottom"}
    lift = 6.0 + KEY_ROW * rows
    ax.annotate(ylabel, (0, 1), xytext=(-LEFT + 6, lift), fontsize=style.BODY, color=INK, **above)
    if title:
        ax.annotate(
            title, (0, 1), xytext=(-LEFT + 6, lift + 20), fontsize=style.TITLE, fontweight="bold", **above
        )


def _set_axes(
    ax: Axes, x: Sequence[float], series: Points, log_x: bool, log_y: bool, level: tuple[str, float] | None
) -> None:
    numbers = [number for row in series.values() for number in row if number is not None]
    numbers += [level[1]] if level else []
    if log_x:
        ax.set_xscale("log", base=2)
    ticks = list(x) if len(x) <= MOST_TICKS else list(x)[:: -(-len(x) // MOST_TICKS)]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_major_formatter(FixedFormatter([written(tick) for tick in ticks]))
    ax.xaxis.set_minor_locator(NullLocator())
    if log_y:
        low, high = int(log2(min(numbers)) // 1), int(-(-log2(max(numbers)) // 1))
        powers = [2.0**power for power in range(low, max(high, low + 1) + 1)]
        powers = powers[:: -(-len(powers) // MOST_TICKS)]
        ax.set_yscale("log", base=2)
        ax.set_ylim(2.0**low, 2.0 ** max(high, low + 1))
        ax.yaxis.set_major_locator(FixedLocator(powers))
        ax.yaxis.set_major_formatter(FixedFormatter([written(power) for power in powers]))
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        ax.set_ylim(0, (max(numbers) or 1) * 1.08)
        ax.yaxis.set_major_formatter(lambda value, _position: written(value))
    ax.grid(axis="y", color=RULE, linewidth=0.7, zorder=0)
    ax.tick_params(length=0)


def _check(
    x: Sequence[float], series: Points, log_x: bool, log_y: bool, level: tuple[str, float] | None
) -> None:
    if not isinstance(series, Mapping) or not series or len(series) > len(LINE_STYLES) or not len(x):
        n_series = len(series) if isinstance(series, Mapping) else series
        raise InvalidDrawing(
            f"draw_lines: got {len(x)} places and {n_series} series; give at least one place and one to"
            f" {len(LINE_STYLES)} series, {{name: one number for each x}}."
        )
    for number in x:
        _check_number("x", number, log_x)
    if any(after <= before for before, after in pairwise(x)):
        raise InvalidDrawing(f"draw_lines: x is {list(x)}, which does not rise. Sort it, each value once.")
    for name, numbers in series.items():
        if len(numbers) != len(x):
            raise InvalidDrawing(
                f"draw_lines: {name!r} has {len(numbers)} numbers for {len(x)} values of x. Give one for"
                " each, None where there is none."
            )
        if all(number is None for number in numbers):
            raise InvalidDrawing(f"draw_lines: {name!r} has no number at all. Leave the series out.")
        for given in numbers:
            if given is not None:
                _check_number(repr(name), given, log_y)
    if level is not None:
        _check_number(f"level {level[0]!r}", level[1], log_y)


def _check_number(name: str, number: object, is_log: bool) -> None:
    if not is_finite(number) or number < 0 or (is_log and number == 0):
        least = "more than 0" if is_log else "0 or more"
        raise InvalidDrawing(f"draw_lines: {name} holds {number!r}. Give finite numbers of {least}.")


def _alt(
    x: Sequence[float],
    series: Points,
    xlabel: str,
    ylabel: str,
    level: tuple[str, float] | None,
    title: str | None,
) -> str:
    sentences = [f"{title}: {ylabel} against {xlabel}." if title else f"{ylabel} against {xlabel}."]
    for name, numbers in series.items():
        points = (
            f"{'no number' if number is None else written(number)} at {written(at)}"
            for at, number in zip(x, numbers, strict=True)
        )
        sentences.append(f"{name}: {', '.join(points)}.")
    if level is not None:
        sentences.append(f"{level[0]}: {written(level[1])} everywhere.")
    return " ".join(sentences)
