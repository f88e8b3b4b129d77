"""`Drawing`, what every figure function returns, and `Sheet`, the ruled paper that cells are drawn on."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import Any, Literal, TypeGuard, TypeVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle
from matplotlib.text import Text

from lanewise.errors import Error
from lanewise.figures import style
from lanewise.figures.style import BODY, DIGIT_HEIGHT, INK, LANE, LOST, MUTED, PAPER, TITLE, Tone
from lanewise.figures.svg import compact
from lanewise.integers import whole

HEADING_PT = 52.0  # height of a heading
MOST_PIXELS = 20_000  # across a PNG; wider ones are a slip, and would fill the memory
_SCREEN_DPI = 96  # CSS pixels per inch
_ArtistT = TypeVar("_ArtistT", bound=Artist)

# Left out of the SVG, so that the same data gives the same bytes on any day.
_NO_METADATA = {"Date": None, "Creator": None, "Format": None, "Type": None}


class InvalidDrawing(Error):
    """A figure function got data that it cannot draw."""


@dataclass(frozen=True)
class Drawing:
    """A finished figure: the axes it was drawn in, and `alt`, what it shows, for those who cannot see it.

    A notebook shows it as SVG; its text form is the description. `save` writes a file.
    """

    ax: Axes
    alt: str

    @property
    def figure(self) -> Figure:
        """The whole figure, with its other axes if the drawing was made in one of several."""
        return _figure_of(self.ax)

    def svg(self) -> str:
        """The figure as SVG text; equal data give equal text under one Matplotlib version."""
        buffer = io.StringIO()
        with style.settings():
            self.figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
        return compact(buffer.getvalue(), label=self.alt)

    def save(self, path: str | Path, width_px: int | None = None) -> Path:
        """Write the figure as `.svg`, or as `.png` of `width_px` pixels (default: twice its width on a page).

        Raises `InvalidDrawing` for any other ending, and OSError where the file cannot be written.
        """
        if width_px is not None:
            width_px = whole("save: width_px", width_px, InvalidDrawing, low=1, high=MOST_PIXELS)
        path = Path(str(path))
        if path.suffix == ".svg":
            path.write_text(self.svg(), encoding="utf-8")
        elif path.suffix == ".png":
            dpi = width_px / self.figure.get_figwidth() if width_px else 2 * _SCREEN_DPI
            with style.settings():
                self.figure.savefig(path, dpi=dpi, metadata={"Software": None})
        else:
            raise InvalidDrawing(f"save: cannot write {path.name!r}. Give a name that ends in .svg or .png.")
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/svg+xml": self.svg(), "text/plain": self.alt}

    def __repr__(self) -> str:
        return self.alt


class Sheet:
    """Axes ruled in cells: x to the right, y down, one unit one cell; type and lines are sized in points.

    Without `ax` it makes a figure of the sheet's own size, `width_pt` across. In a given `ax` it takes the
    largest area that keeps cells square, and type and lines shrink or grow with them.
    """

    def __init__(
        self, width: float, height: float, width_pt: float = style.WIDE, ax: Axes | None = None
    ) -> None:
        self.cell_pt = width_pt / width
        if ax is None:
            figure = Figure(figsize=(width_pt / 72, height * self.cell_pt / 72), facecolor=PAPER)
            ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        require_axes(ax)
        ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
        ax.set_axis_off()
        box, dots_per_pt = ax.get_window_extent(), _figure_of(ax).dpi / 72
        self.scale = min(box.width / width, box.height / height) / dots_per_pt / self.cell_pt
        self.ax = ax

    def box(
        self,
        x: float,
        y: float,
        width: float = 1.0,
        height: float = 1.0,
        *,
        fill: str = "none",
        edge: str = "none",
        line: float = 0.8,
        dashed: bool = False,
        hatch: str | None = None,
        gid: str | None = None,
        z: float = 1.0,
    ) -> Rectangle:
        """A rectangle with its top left corner at (x, y)."""
        patch = Rectangle((x, y), width, height, facecolor=fill, edgecolor=edge, hatch=hatch, zorder=z)
        patch.set_linestyle((0, (3, 2)) if dashed else "solid")
        return self._place(patch, line, gid)

    def hatching(self, x: float, y: float, width: float, height: float, color: str) -> Rectangle:
        """An area that nothing uses, below all else."""
        return self.box(x, y, width, height, edge=color, line=0, hatch="//", z=0.5)

    def polygon(self, corners: Sequence[tuple[float, float]], tone: Tone, gid: str | None = None) -> Polygon:
        """A filled shape that lets what lies below show through."""
        shape = Polygon(corners, facecolor=to_rgba(tone.fill, 0.7), edgecolor=tone.edge)
        return self._place(shape, 0.8, gid)

    def lines(
        self,
        xs: Sequence[float],
        ys: Sequence[float],
        color: str = MUTED,
        width: float = 0.8,
        *,
        gid: str | None = None,
        z: float = 2.0,
    ) -> Line2D:
        """A line through points."""
        line = Line2D(xs, ys, color=color, linewidth=width * self.scale, clip_on=False, zorder=z)
        self.ax.add_artist(line)
        return _name(line, gid)

    def dot(self, x: float, y: float, size: float, color: str) -> Line2D:
        """A filled circle of `size` points across."""
        dot = self.lines((x,), (y,), color, z=3)
        dot.set(marker="o", markersize=size * self.scale, markeredgewidth=0)
        return dot

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = BODY,
        *,
        align: Literal["left", "center", "right"] = "left",
        color: str = INK,
        bold: bool = False,
        gid: str | None = None,
    ) -> Text:
        """One line of text whose digits and capitals are centred on y."""
        # Placed by its baseline, so that where a digit stands does not depend on the reader's font.
        baseline = y + DIGIT_HEIGHT / 2 * size / self.cell_pt
        artist = self.ax.text(x, baseline, text, size=size * self.scale, ha=align, va="baseline", color=color)
        artist.set(weight="bold" if bold else "normal", zorder=5)
        return _name(artist, gid)

    def stack(self, x: float, y: float, width: float, height: float, lines: Sequence[str]) -> None:
        """Short lines of text one below the other, centred in a box."""
        step = height / (len(lines) + 0.4)
        for position, line in enumerate(lines):
            middle = y + height / 2 + (position - (len(lines) - 1) / 2) * step
            self.text(x + width / 2, middle, line, LANE, align="center")

    def heading(self, title: str, subtitle: str, bad: bool = False) -> None:
        """The verdict in bold at the top left, below it what was drawn."""
        left = 7 / self.cell_pt
        self.text(left, 17 / self.cell_pt, title, TITLE, bold=True, color=LOST if bad else INK)
        self.text(left, 35 / self.cell_pt, subtitle, BODY, color=MUTED)

    def _place(self, patch: Any, line: float, gid: str | None) -> Any:
        patch.set(linewidth=line * self.scale, clip_on=False)
        self.ax.add_artist(patch)  # add_patch would also update data limits, which takes longer than drawing
        return _name(patch, gid)


def is_finite(value: object) -> TypeGuard[float]:
    """Whether a value is a finite number; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)


def heading_height(cell_pt: float) -> float:
    """Cells of `cell_pt` points that the heading of a sheet takes."""
    return HEADING_PT / cell_pt


def _name(artist: _ArtistT, gid: str | None) -> _ArtistT:
    if gid:
        artist.set_gid(gid)
    return artist


def require_axes(ax: object) -> None:
    """Raise `InvalidDrawing` for anything but Matplotlib's axes."""
    if not isinstance(ax, Axes):
        raise InvalidDrawing(
            f"ax: got {ax!r}; a figure is drawn in Axes. Take them from figure.add_subplot, one of an array"
            " at a time, or leave ax out."
        )


def _figure_of(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    if not isinstance(figure, Figure):
        raise InvalidDrawing(
            "ax: these axes are in no figure. Take axes from figure.add_subplot or leave ax out."
        )
    return figure
