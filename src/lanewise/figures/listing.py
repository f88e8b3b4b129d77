"""The listing: a kernel's source with the cost of each access under its line, and heat where it is high."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb

from lanewise.figures import style
from lanewise.figures.drawing import HEADING_PT, Drawing, InvalidDrawing, Sheet
from lanewise.figures.style import DANGER, LOST, MUTED, PAPER, WIDE
from lanewise.text import count

CELL_PT = 6.0
WIDTH = WIDE / CELL_PT
HEADING = HEADING_PT / CELL_PT
CODE_PT, NOTE_PT = 8.5, 9.0
CODE_ROW, NOTE_ROW = 2.2, 2.0  # cells
PAUSE = 0.6  # below the notes of a line
NUMBER_X, CODE_X = 4.6, 5.8  # right end of line numbers, left end of code
BAR_WIDTH, SHARE_X = 10.0, 18.7  # of the bar, and where its number starts
NOTE_X, BESIDE_X = 8.0, 23.0  # where words start, alone and beside a bar
MONO_WIDTH = 0.602  # em, of DejaVu Sans Mono and Menlo
CHARACTER = MONO_WIDTH * CODE_PT / CELL_PT
MOST_CHARACTERS = int((WIDTH - CODE_X - 0.5) / CHARACTER)


class Traced(Protocol):
    """What a listing reads of a `lanewise.trace.Trace`; sites may be of the source or of machine code."""

    @property
    def kernel(self) -> str: ...
    @property
    def filename(self) -> str: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def lowering(self) -> str: ...
    @property
    def sites(self) -> Sequence[Any]: ...
    @property
    def hazards(self) -> Sequence[Any]: ...


@dataclass(frozen=True)
class Note:
    """What stands under a line: words, and the share of its memory's traffic that is excess."""

    words: str
    share: float = 0.0
    excess: int = 0
    unit: str = ""
    bad: bool = False


def draw_trace(trace: Traced, *, title: str | None = None, ax: Axes | None = None) -> Drawing:
    """Draw the source of a traced kernel with the cost of every access under its line.

    Heat is excess: the tint of a line and the bar beside it are the wavefronts (shared memory) or sectors
    (global memory) beyond the fewest that could carry as many bytes, as a share of all that the kernel causes
    in that memory. Lines with a hazard are named. Functions that the kernel calls are listed too if they
    access memory. The source is read where the trace says that it stands; if it has changed since, only the
    lines with accesses are drawn. `title` replaces the verdict.

    Raises `InvalidDrawing` for anything but a trace, and for a trace without accesses and hazards.
    """
    notes = _notes(trace)
    lines = _listing(trace, notes)
    rows = [(number, part) for number, text in lines for part in _wrapped(text)]
    height = (
        HEADING + CODE_ROW * len(rows) + NOTE_ROW * sum(map(len, notes.values())) + PAUSE * len(notes) + 0.8
    )
    with style.settings():
        sheet = Sheet(WIDTH, height, ax=ax)
        verdict, bad = _verdict(notes)
        sheet.heading(title or verdict, _subtitle(trace), bad=bad)
        y = HEADING
        for position, (number, (indent, text)) in enumerate(rows):
            heat = max((note.share for note in notes.get(number, ())), default=0.0)
            continued = position > 0 and rows[position - 1][0] == number
            _draw_code(sheet, y, None if continued else number, indent, text, heat)
            y += CODE_ROW
            if position + 1 == len(rows) or rows[position + 1][0] != number:
                for place, note in enumerate(notes.get(number, ())):
                    _draw_note(sheet, y, note, f"{number}-{place}")
                    y += NOTE_ROW
                y += PAUSE if number in notes else 0.0
    return Drawing(sheet.ax, _alt(trace, lines, notes))


def _notes(trace: Traced) -> dict[int, list[Note]]:
    if not hasattr(trace, "sites") or not hasattr(trace, "hazards"):
        raise InvalidDrawing(
            f"draw_trace: got a {type(trace).__name__}; give it the result of lanewise.trace."
        )
    if not trace.sites and not trace.hazards:
        raise InvalidDrawing(
            f"draw_trace: {trace.kernel} accesses neither shared nor global memory; there is nothing to draw."
        )
    totals = {
        space: sum(_traffic(s) for s in trace.sites if s.space == space) for space in ("shared", "global")
    }
    notes: dict[int, list[Note]] = {}
    for site in sorted(trace.sites, key=lambda site: site.line):
        notes.setdefault(site.line, []).append(_note(site, totals[site.space]))
    for hazard in trace.hazards:
        words = hazard.kind.replace("_", " ")
        by_name = {"lock_step": f"relies on lock-step: {words}", "benign": f"benign: {words}"}
        note = Note(by_name.get(hazard.severity, f"hazard: {words}"), bad=hazard.severity != "benign")
        if note not in notes.setdefault(hazard.line, []):
            notes[hazard.line].append(note)
    return dict(sorted(notes.items()))


def _traffic(site: Any) -> int:
    return int(site.wavefronts if site.space == "shared" else site.sectors)


def _fewest(site: Any) -> int:
    """Wavefronts or sectors that as many requests and bytes need at least."""
    return int(site.ideal if site.space == "shared" else site.fewest_sectors)


def _note(site: Any, total: int) -> Note:
    what = f"{site.instruction}{f' of {site.array}' if site.array else ''}"
    if not site.modelled:
        return Note(f"{what}: {count(site.requests, 'request')}, cost not modelled")
    unit = "wavefront" if site.space == "shared" else "sector"
    traffic, fewest = _traffic(site), _fewest(site)
    excess = max(0, traffic - fewest)
    words = f"{what}: {count(traffic, unit)}"
    if not excess:
        return Note(f"{words}, the fewest possible")
    worst = f" ({site.degree}-way)" if site.space == "shared" else ""
    return Note(f"{words}, {fewest:,} would do{worst}", excess / total, excess, unit, bad=True)


def _listing(trace: Traced, notes: Mapping[int, list[Note]]) -> list[tuple[int, str]]:
    """Line numbers and text of the functions in the kernel's file that have notes."""
    text = linecache.getlines(trace.filename)
    here = [site for site in trace.sites if site.filename == trace.filename]
    fresh = all(site.line <= len(text) and text[site.line - 1].strip() == site.source for site in here)
    if not text or not fresh:
        sources = {site.line: site.source for site in trace.sites}
        return [(number, sources.get(number, "")) for number in notes]
    shown: set[int] = set()
    for number in notes:
        shown.update(_function_around(text, number) or (number,))
    chosen = [(number, text[number - 1].rstrip()) for number in sorted(shown) if number <= len(text)]
    indents = [len(line) - len(line.lstrip()) for _, line in chosen if line.strip()]
    return [(number, line[min(indents, default=0) :]) for number, line in chosen]


def _function_around(text: Sequence[str], number: int) -> range | None:
    """The lines of the innermost function that contains a line, from its `def` on."""
    try:
        tree = ast.parse("".join(text))
    except SyntaxError:  # a notebook cell with a magic line, say
        return None
    around = [
        range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno <= number <= (node.end_lineno or node.lineno)
    ]
    return min(around, key=len, default=None)


def _wrapped(text: str) -> Iterator[tuple[int, str]]:
    """A line as rows of (indentation, text) that fit the width."""
    indent, rest = len(text) - len(text.lstrip()), text.strip()
    while len(rest) > MOST_CHARACTERS - indent:
        cut = rest.rfind(" ", 0, MOST_CHARACTERS - indent)
        cut = cut if cut > 0 else MOST_CHARACTERS - indent
        yield indent, rest[:cut]
        indent, rest = min(indent + 4, MOST_CHARACTERS // 2), rest[cut:].strip()
    yield indent, rest


def _draw_code(sheet: Sheet, y: float, number: int | None, indent: int, text: str, heat: float) -> None:
    if heat:
        name = f"heat{number}" if number is not None else None
        sheet.box(CODE_X - 0.6, y, WIDTH - CODE_X, CODE_ROW, fill=tint(heat), gid=name)
    middle = y + CODE_ROW / 2
    if number is not None:
        sheet.text(NUMBER_X, middle, str(number), CODE_PT, align="right", color=MUTED)
    if text:
        # Spaces at the start would be lost in SVG, so indentation is a place.
        code = sheet.text(CODE_X + indent * CHARACTER, middle, text, CODE_PT)
        code.set_fontfamily("monospace")


def _draw_note(sheet: Sheet, y: float, note: Note, name: str) -> None:
    x, middle = BESIDE_X if note.share else NOTE_X, y + NOTE_ROW / 2
    size = min(NOTE_PT, (WIDTH - 0.5 - x) * CELL_PT / (len(note.words) * style.DIGIT_WIDTH))
    sheet.text(x, middle, note.words, max(size, style.SMALLEST), color=LOST if note.bad else MUTED)
    if note.share:
        bar = (NOTE_X, y + 0.4, BAR_WIDTH, NOTE_ROW - 0.8)
        sheet.box(*bar, edge=DANGER.edge, line=0.7)
        full = (NOTE_X, y + 0.4, BAR_WIDTH * note.share, NOTE_ROW - 0.8)
        sheet.box(*full, fill=DANGER.fill, edge=DANGER.edge, line=0.7, hatch="//", gid=f"excess{name}")
        sheet.text(SHARE_X, middle, _percent(note.share), NOTE_PT, bold=True)


def tint(share: float) -> str:
    """The colour behind a line whose excess is `share` (0 to 1) of its memory's traffic."""
    strength = 0.25 + 0.75 * share
    paper, hot = np.array(to_rgb(PAPER)), np.array(to_rgb(DANGER.fill))
    red, green, blue = (1 - strength) * paper + strength * hot
    return str(to_hex((red, green, blue)))


def _verdict(notes: Mapping[int, list[Note]]) -> tuple[str, bool]:
    hottest = max(
        ((note.share, number, note) for number, found in notes.items() for note in found),
        key=lambda entry: entry[0],
    )
    faults = [note for found in notes.values() for note in found if note.bad and not note.unit]
    if faults:
        return f"{count(len(faults), 'hazard')} to mend before any count matters", True
    share, number, note = hottest
    if share:
        return f"line {number}: {count(note.excess, note.unit)} in excess", True
    return "no excess", False


def _subtitle(trace: Traced) -> str:
    how = "as written" if trace.lowering == "source" else f"as compiled for {trace.lowering}"
    blocks, threads = (
        _extent(shape, noun) for shape, noun in ((trace.grid, "block"), (trace.block, "thread"))
    )
    return f"{trace.kernel}, {blocks} of {threads}, {how}"


def _extent(shape: Sequence[int], noun: str) -> str:
    """A launch dimension without its trailing ones: `"8 x 4 blocks"`, `"1 thread"`."""
    while len(shape) > 1 and shape[-1] == 1:
        shape = shape[:-1]
    return f"{' x '.join(map(str, shape))} {noun}{'' if tuple(shape) == (1,) else 's'}"


def _percent(share: float) -> str:
    return "< 1%" if share < 0.01 else f"{100 * share:.0f}%"


def _alt(trace: Traced, lines: Sequence[tuple[int, str]], notes: Mapping[int, list[Note]]) -> str:
    said = []
    for number, found in notes.items():
        for note in found:
            unit = f"{note.unit}s" if note.unit else ""
            share = f" ({_percent(note.share)} of the kernel's {unit} are this excess)" if note.share else ""
            said.append(f"Line {number}: {note.words}{share}.")
    return f"Listing of {_subtitle(trace)}, {count(len(lines), 'line')}. {' '.join(said)}"
