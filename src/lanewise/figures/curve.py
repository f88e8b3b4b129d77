"""The degree curve: what an access costs against its stride, with the law beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from lanewise.figures import style
from lanewise.figures.drawing import Drawing, InvalidDrawing, require_axes
from lanewise.figures.style import BLUE, CELL, INK, LOST, PAPER, RULE
from lanewise.integers import whole
from lanewise.machine import BANKS
from lanewise.text import series

FEW_POINTS = 20  # fit a narrow chart
MOST_LABELS = 40  # points that still carry their value
HEIGHT_PT = 230.0
FLOOR = 0.8  # wavefronts; where stems start on the logarithmic axis
TICKS = 10  # about how many strides are named


def gcd_law(stride: int) -> int:
    """Wavefronts of a full warp whose lanes read 32-bit words `stride` words apart, for strides from 1.

    >>> [gcd_law(stride) for stride in (1, 2, 3, 8, 32, 33)]
    [1, 2, 1, 8, 32, 1]

    The words `stride * lane` fall on 32 / gcd(stride, 32) banks, gcd(stride, 32) on each. A stride of 0 is a
    broadcast, to which the law does not apply: it raises `InvalidDrawing`, as anything below 1 does.
    """
    return gcd(whole("gcd_law: stride", stride, InvalidDrawing, low=1), BANKS)


def draw_degree_curve(
    strides: Sequence[int] | np.ndarray,
    wavefronts: Sequence[int] | np.ndarray,
    *,
    law: Callable[[int], int] | None = gcd_law,
    law_name: str = "gcd(stride, 32)",
    xlabel: str = "stride in 32-bit words",
    title: str | None = None,
    ax: Axes | None = None,
) -> Drawing:
    """Draw wavefronts against stride as dots, with a ring where the law puts them.

    `law` gives the wavefronts of a stride; without one (None) there are no rings. The vertical axis is
    logarithmic.

    >>> draw_degree_curve([1, 2, 3, 4], [1, 2, 1, 4])
    Wavefronts against stride in 32-bit words, 4 points: 1 at 1, 3; 2 at 2; 4 at 4.
    All points equal gcd(stride, 32).

    Raises `InvalidDrawing` for empty or unequal lists, wavefronts below 1, and what is no whole number.
    """
    strides, wavefronts = _whole_numbers("strides", strides), _whole_numbers("wavefronts", wavefronts)
    _check_points(strides, wavefronts)
    if law is not None and not callable(law):
        raise InvalidDrawing(
            f"draw_degree_curve: got {law!r} for law; give a function of the stride such as gcd_law, or None."
        )
    expected = _whole_numbers("the law's wavefronts", map(law, strides), low=1) if law else []
    with style.settings():
        if ax is None:
            width_pt = style.WIDE if len(strides) > FEW_POINTS else style.NARROW
            figure = Figure(figsize=(width_pt / 72, HEIGHT_PT / 72), facecolor=PAPER)
            # A layout engine would go by the fonts at hand, and move things a little each time it draws.
            left, right, below, above = 30.0, 14.0, 42.0, 48.0 if title else 28.0
            inner = (width_pt - left - right) / width_pt, (HEIGHT_PT - below - above) / HEIGHT_PT
            ax = figure.add_axes((left / width_pt, below / HEIGHT_PT, *inner))
        require_axes(ax)
        _draw_points(ax, strides, wavefronts, expected, law_name)
        _set_axes(ax, strides, max(wavefronts + expected))
        ax.set_xlabel(xlabel)
        if title:
            ax.set_title(title, loc="left", fontsize=style.TITLE, fontweight="bold", pad=24)
    return Drawing(ax, _alt(strides, wavefronts, expected, xlabel, law_name))


def _whole_numbers(what: str, given: object, low: int = 0) -> list[int]:
    if not isinstance(given, Iterable):
        raise InvalidDrawing(f"draw_degree_curve: got {given!r} for {what}; give a list of whole numbers.")
    return [whole(f"draw_degree_curve: {what}", number, InvalidDrawing, low) for number in given]


def _check_points(strides: list[int], wavefronts: list[int]) -> None:
    if not strides or len(strides) != len(wavefronts):
        raise InvalidDrawing(
            f"draw_degree_curve: got {len(strides)} strides and {len(wavefronts)} wavefronts; give as many of"
            " each, at least one."
        )
    for stride, n_wavefronts in zip(strides, wavefronts, strict=True):
        if n_wavefronts < 1:
            raise InvalidDrawing(
                f"draw_degree_curve: {n_wavefronts} wavefronts at stride {stride}; an access with an active"
                " lane takes at least 1. Leave the point out."
            )


def _draw_points(
    ax: Axes, strides: list[int], wavefronts: list[int], expected: list[int], law_name: str
) -> None:
    ax.vlines(strides, FLOOR, wavefronts, colors=BLUE.edge, linewidth=1.0, zorder=2)
    dot: dict[str, Any] = {"marker": "o", "linestyle": "none", "clip_on": False}
    ax.plot(strides, wavefronts, color=BLUE.edge, markersize=5, zorder=3, label="wavefronts", **dot)
    if expected:
        ring = {"markerfacecolor": "none", "markeredgecolor": LOST, "markersize": 10}
        ax.plot(strides, expected, zorder=4, label=law_name, **dot | ring)
    place: dict[str, Any] = {
        "loc": "lower left",
        "bbox_to_anchor": (0, 1),
        "borderaxespad": 0.2,
        "borderpad": 0,
    }
    ax.legend(ncols=2, frameon=False, handletextpad=0.1, fontsize=CELL, **place)
    if len(strides) <= MOST_LABELS:
        for stride, n_wavefronts in zip(strides, wavefronts, strict=True):
            if n_wavefronts > 1:
                above: dict[str, Any] = {"xytext": (0, 8), "textcoords": "offset points", "ha": "center"}
                ax.annotate(str(n_wavefronts), (stride, n_wavefronts), fontsize=CELL, color=INK, **above)


def _set_axes(ax: Axes, strides: list[int], top: int) -> None:
    """A logarithmic axis ruled at powers of two, and a few strides named."""
    powers = [2**power for power in range(top.bit_length())]
    ax.set_yscale("log", base=2)
    ax.set_ylim(FLOOR, top * 1.7)
    ax.yaxis.set_major_locator(FixedLocator(powers))
    ax.yaxis.set_major_formatter(FixedFormatter([str(power) for power in powers]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_locator(FixedLocator(_ticks(strides)))
    ax.grid(axis="y", color=RULE, linewidth=0.7, zorder=0)
    ax.tick_params(length=0)


def _ticks(strides: list[int]) -> list[int]:
    """The first stride, and those that are multiples of a power of two."""
    step = max(1, (max(strides) - min(strides)) // TICKS)
    step = 1 << (step - 1).bit_length()
    return sorted({min(strides), *(stride for stride in strides if stride % step == 0)})


def _alt(strides: list[int], wavefronts: list[int], expected: list[int], xlabel: str, law_name: str) -> str:
    strides_by_cost: dict[int, list[int]] = {}
    for stride, n_wavefronts in zip(strides, wavefronts, strict=True):
        strides_by_cost.setdefault(n_wavefronts, []).append(stride)
    points = "; ".join(f"{n} at {series(at)}" for n, at in sorted(strides_by_cost.items()))
    alt = f"Wavefronts against {xlabel}, {len(strides)} points: {points}."
    if expected:
        triples = zip(strides, wavefronts, expected, strict=True)
        off = [stride for stride, n_wavefronts, law in triples if n_wavefronts != law]
        alt += f" {law_name} fails at {series(off)}." if off else f" All points equal {law_name}."
    return alt
