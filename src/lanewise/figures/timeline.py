"""The timeline: each buffer of a pipeline as a row, with its copies, waits and work from left to right."""

from __future__ import annotations

from matplotlib.axes import Axes

from lanewise.figures import style
from lanewise.figures.bars import written
from lanewise.figures.drawing import Drawing, InvalidDrawing, Sheet
from lanewise.figures.style import BLUE, BODY, CELL, GREEN, MUTED, RULE, Tone
from lanewise.pipeline import Pipeline, Step

# All in cells of the sheet.
CELL_PT = 18.0
ONE_BLOCK, SOME_BLOCKS = 3.4, 6.2  # what the names of the rows take
RIGHT = 0.8
FEW_TILES = 9  # fit a narrow figure
ROW, BAR = 1.55, 1.15
MOST_ROWS, MOST_TILES = 12, 24
COPY: tuple[Tone, str | None] = (BLUE, "//")
WORK: tuple[Tone, str | None] = (GREEN, None)


def draw_timeline(
    pipeline: Pipeline, *, until: float | None = None, title: str | None = None, ax: Axes | None = None
) -> Drawing:
    """Draw what each buffer of a pipeline does: hatched while a tile is copied, plain while it is worked on.

    The number in a box is the tile's. `until` is the time at the right edge, so that several figures share
    one scale; by default the pipeline's total.

    >>> draw_timeline(Pipeline(tiles=3, stages=2, copy=2, work=2)).alt[:62]
    'Timeline of 3 tiles, 2 stages: ends at 8. Tile 0 in stage 0: c'

    Raises `InvalidDrawing` for no pipeline, more than 24 tiles or 12 buffers, and an `until` before the end.
    """
    steps = _checked(pipeline, until)
    end = pipeline.total if until is None else until
    left, right, width_pt = frame(pipeline)
    scale = (right - left) / (end or 1.0)
    rows = _rows(pipeline)
    top = 3.4 if title else 2.0
    with style.settings():
        sheet = Sheet(right + RIGHT, top + ROW * len(rows) + 1.9, width_pt, ax=ax)
        if title:
            sheet.text(0.4, 0.95, title, style.TITLE, bold=True)
        _draw_key(sheet, left, top - 1.1)
        for position, (block, stage) in enumerate(rows):
            middle = top + ROW * (position + 0.5)
            sheet.text(0.4, middle, _name(pipeline, block, stage), BODY)
            sheet.lines((left, right), (middle, middle), RULE, z=0.4)
        for step in steps:
            y = top + ROW * (rows.index((step.block, step.stage)) + 0.5)
            _draw_step(sheet, step, left, y, scale)
        _draw_end(sheet, pipeline.total, left + pipeline.total * scale, top, top + ROW * len(rows))
    return Drawing(sheet.ax, _alt(pipeline, steps, title))


def frame(pipeline: Pipeline) -> tuple[float, float, float]:
    """Where time 0 and the right edge lie, in cells, and the width of the whole figure in points."""
    is_small = pipeline.blocks == 1 and pipeline.tiles <= FEW_TILES
    width_pt = style.NARROW if is_small else style.WIDE
    return ONE_BLOCK if pipeline.blocks == 1 else SOME_BLOCKS, width_pt / CELL_PT - RIGHT, width_pt


def _checked(pipeline: object, until: object) -> tuple[Step, ...]:
    if not isinstance(pipeline, Pipeline):
        raise InvalidDrawing(
            f"draw_timeline: got {pipeline!r}. Give a Pipeline(tiles=.., stages=.., copy=.., work=..)."
        )
    n_rows = pipeline.blocks * pipeline.stages
    if pipeline.tiles > MOST_TILES or n_rows > MOST_ROWS:
        raise InvalidDrawing(
            f"draw_timeline: {pipeline.tiles} tiles in {n_rows} buffers are too many to read. Draw at most"
            f" {MOST_TILES} tiles and {MOST_ROWS} buffers."
        )
    if until is not None and not (isinstance(until, int | float) and until >= pipeline.total):
        raise InvalidDrawing(
            f"draw_timeline: until is {until!r}, but the pipeline ends at {written(pipeline.total)}. Give"
            " that or more."
        )
    return pipeline.steps


def _rows(pipeline: Pipeline) -> list[tuple[int, int]]:
    """Block and stage of every buffer, from the top."""
    return [(block, stage) for block in range(pipeline.blocks) for stage in range(pipeline.stages)]


def _name(pipeline: Pipeline, block: int, stage: int) -> str:
    return f"stage {stage}" if pipeline.blocks == 1 else f"block {block}, stage {stage}"


def _draw_key(sheet: Sheet, left: float, y: float) -> None:
    for x, (tone, hatch), text in ((left, COPY, "copy under way"), (left + 8.5, WORK, "work")):
        sheet.box(x, y - 0.4, 1.4, 0.8, fill=tone.fill, edge=tone.edge, hatch=hatch)
        sheet.text(x + 1.8, y, text, BODY, color=MUTED)


def _draw_step(sheet: Sheet, step: Step, left: float, y: float, scale: float) -> None:
    parts = (("copy", COPY, step.asked, step.arrived), ("work", WORK, step.started, step.ended))
    for kind, (tone, hatch), first, last in parts:
        if last == first:
            continue
        x, width = left + first * scale, (last - first) * scale
        box = (x, y - BAR / 2, width, BAR)
        sheet.box(*box, fill=tone.fill, edge=tone.edge, line=1.0, hatch=hatch, gid=f"{kind}{step.tile}")
        room = len(str(step.tile)) * style.BOLD_DIGIT_WIDTH * CELL / CELL_PT
        if width < room + 0.1:
            continue
        if hatch:  # the number stands on plain ground
            sheet.box(x + width / 2 - room / 2 - 0.12, y - 0.36, room + 0.24, 0.72, fill=tone.fill, z=2)
        sheet.text(x + width / 2, y, str(step.tile), CELL, align="center", bold=True)


def _draw_end(sheet: Sheet, total: float, x: float, top: float, bottom: float) -> None:
    sheet.lines((x, x), (top, bottom + 0.3), MUTED, 1.2)
    sheet.text(x, bottom + 0.95, f"end: {written(total)}", BODY, align="right", bold=True)


def _alt(pipeline: Pipeline, steps: tuple[Step, ...], title: str | None) -> str:
    stages = "1 stage" if pipeline.stages == 1 else f"{pipeline.stages} stages"
    blocks = f", {pipeline.blocks} blocks" if pipeline.blocks > 1 else ""
    tiles = "1 tile" if pipeline.tiles == 1 else f"{pipeline.tiles} tiles"
    sentences = [f"{title}. " if title else "", f"Timeline of {tiles}, {stages}{blocks}:"]
    sentences.append(f" ends at {written(pipeline.total)}.")
    for step in steps:
        where = _name(pipeline, step.block, step.stage)
        sentences.append(
            f" Tile {step.tile} in {where}: copied {written(step.asked)} to {written(step.arrived)}, worked"
            f" on {written(step.started)} to {written(step.ended)}."
        )
    return "".join(sentences)
