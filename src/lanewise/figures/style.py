"""The look of every figure: one palette, a few type sizes, and settings that a reader's own cannot disturb.

Colours start from Okabe and Ito's set, darkened where an outline or a text needs it. A test holds every
pair in `MARKS` to 3:1 and every pair in `TEXTS` to 4.5:1 (WCAG 2.2, 1.4.11 and 1.4.3). No meaning rests on
colour alone: lanes carry their number, lost slots are hatched, banks in conflict have an inverted label.

The background is opaque, so a figure reads the same on a dark page.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.colors import to_rgb

PAPER = "#FBFAF7"
INK = "#1B1F27"
MUTED = "#565C66"
RULE = "#CFD2D6"  # decoration only: hairlines that nothing depends on
IDLE = "#EFEEEA"  # decoration only: a slot that nothing uses
LOST = "#A9410C"  # vermillion, darkened: what a conflict costs


@dataclass(frozen=True)
class Tone:
    """A fill that dark text reads on, and the darker edge that tells the mark from the paper."""

    fill: str
    edge: str


BLUE = Tone("#C3DFF2", "#005A8F")
GREEN = Tone("#BCE5D4", "#00714F")
AMBER = Tone("#F8DDA0", "#8A5D00")
PURPLE = Tone("#EDCFE0", "#994A78")
GREY = Tone("#E4E5E6", "#626974")
DANGER = Tone("#F7D5C4", LOST)

# Lanes 0..7, 8..15, 16..23, 24..31: the groups of eight that a 128-bit access is served in.
LANE_TONES = (BLUE, GREEN, AMBER, PURPLE)
LANES_PER_TONE = 8

# Foreground and background of every mark, and of every text.
MARKS = {
    "lost slots on paper": (LOST, PAPER),
    **{
        f"edge {tone.edge} on {ground}": (tone.edge, ground)
        for tone in (*LANE_TONES, GREY, DANGER)
        for ground in (PAPER, tone.fill)
    },
}
TEXTS = {
    "text on paper": (INK, PAPER),
    "secondary text on paper": (MUTED, PAPER),
    "verdict on paper": (LOST, PAPER),
    "inverted bank label": (PAPER, LOST),
    "text on an idle slot": (MUTED, IDLE),
    **{f"text on {tone.fill}": (INK, tone.fill) for tone in (*LANE_TONES, GREY, DANGER)},
}

# Points. A figure as wide as a page is WIDE across, 720 CSS pixels; a small one NARROW, 480, which a phone
# hardly shrinks. No text is smaller than SMALLEST at that width.
WIDE = 540.0
NARROW = 360.0
TITLE = 14.0
BODY = 11.0
CELL = 10.5
LANE = 9.8  # in a cell of a WIDE figure, where two digits must fit
SMALLEST = 8.0

# Digits and capitals of DejaVu Sans, in em: used to centre and to fit numbers.
DIGIT_HEIGHT = 0.729
DIGIT_WIDTH = 0.636
BOLD_DIGIT_WIDTH = 0.696

_SETTINGS: dict[Any, Any] = {
    "font.family": ["sans-serif"],
    # Text stays text in the SVG. Verdana has the widths of DejaVu Sans; the other two are narrower and fit.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
    "svg.fonttype": "none",
    "svg.hashsalt": "lanewise",
    "hatch.linewidth": 0.7,
    "font.size": CELL,
    "axes.facecolor": PAPER,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.labelsize": BODY,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": False,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": CELL,
    "ytick.labelsize": CELL,
    "figure.facecolor": PAPER,
    "savefig.facecolor": "auto",
}

# Settings of the session rather than of the look: a context must leave them alone.
_NOT_STYLE = (
    "animation", "backend", "date.", "docstring", "interactive", "keymap", "timezone", "tk.", "toolbar",
    "webagg",
)  # fmt: skip


def settings() -> AbstractContextManager[None]:
    """Matplotlib's defaults plus ours, whatever the reader has set; both drawing and saving happen inside."""
    defaults: dict[Any, Any] = {
        key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith(_NOT_STYLE)
    }
    return matplotlib.rc_context({**defaults, **_SETTINGS})


def lane_tone(lane: int) -> Tone:
    """The tone of a lane's group of eight."""
    return LANE_TONES[lane // LANES_PER_TONE]


def contrast(foreground: str, background: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2).

    >>> round(contrast("#000000", "#FFFFFF"))
    21
    """
    lighter, darker = sorted((_luminance(foreground), _luminance(background)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    """Relative luminance of an sRGB colour (WCAG 2.2)."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    return float(0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2])
