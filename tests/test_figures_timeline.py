"""The timeline: every copy and every piece of work is drawn where the pipeline puts it."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.patches import Rectangle

from lanewise.figures import Drawing, InvalidDrawing
from lanewise.figures.timeline import draw_timeline, frame
from lanewise.pipeline import Pipeline

PIPELINES = {
    "one stage": Pipeline(tiles=4, stages=1, copy=3, work=2),
    "three stages": Pipeline(tiles=6, stages=3, copy=2, work=3, latency=4),
    "blocks": Pipeline(tiles=7, stages=2, copy=1, work=1, latency=6, blocks=2),
    "no work": Pipeline(tiles=3, stages=2, copy=2, work=0),
}


def boxes(drawing: Drawing) -> dict[str, Rectangle]:
    named = {patch.get_gid(): patch for patch in drawing.ax.patches if isinstance(patch, Rectangle)}
    return {name: patch for name, patch in named.items() if name}


@pytest.mark.parametrize("pipeline", PIPELINES.values(), ids=PIPELINES)
def test_boxes_lie_at_their_times(pipeline: Pipeline) -> None:
    drawn = boxes(draw_timeline(pipeline))
    left, right, _ = frame(pipeline)
    scale = (right - left) / pipeline.total
    for step in pipeline.steps:
        for kind, first, last in (
            ("copy", step.asked, step.arrived),
            ("work", step.started, step.ended),
        ):
            if first == last:
                assert f"{kind}{step.tile}" not in drawn
                continue
            box = drawn[f"{kind}{step.tile}"]
            assert box.get_x() == pytest.approx(left + first * scale)
            assert box.get_width() == pytest.approx((last - first) * scale)


def test_boxes_of_one_buffer_share_a_row_and_do_not_overlap() -> None:
    pipeline = PIPELINES["blocks"]
    drawn = boxes(draw_timeline(pipeline))
    rows: dict[float, set[tuple[int, int]]] = {}
    for step in pipeline.steps:
        rows.setdefault(drawn[f"copy{step.tile}"].get_y(), set()).add((step.block, step.stage))
        rows.setdefault(drawn[f"work{step.tile}"].get_y(), set()).add((step.block, step.stage))
    assert all(len(buffers) == 1 for buffers in rows.values())
    assert len(rows) == 4


def test_a_shared_scale_leaves_room_behind_the_end() -> None:
    pipeline = PIPELINES["three stages"]
    box = boxes(draw_timeline(pipeline, until=2 * pipeline.total))["work5"]
    assert box.get_x() + box.get_width() == pytest.approx(sum(frame(pipeline)[:2]) / 2)


def test_the_text_tells_every_time() -> None:
    assert draw_timeline(Pipeline(2, 2, 2, 3, 1), title="Two").alt == (
        "Two. Timeline of 2 tiles, 2 stages: ends at 9. Tile 0 in stage 0: copied 0 to 3, worked on 3 to 6."
        " Tile 1 in stage 1: copied 3 to 6, worked on 6 to 9."
    )
    assert "Tile 1 in block 1, stage 0" in draw_timeline(PIPELINES["blocks"]).alt


def test_numbers_stand_in_boxes_wide_enough() -> None:
    drawing = draw_timeline(Pipeline(tiles=2, stages=1, copy=100, work=1))
    assert [text.get_text() for text in drawing.ax.texts].count("0") == 1  # of the copy only


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((3,), {}, "draw_timeline: got 3. Give a Pipeline"),
        ((Pipeline(25, 2, 1, 1),), {}, "25 tiles in 2 buffers are too many to read"),
        ((Pipeline(5, 7, 1, 1, blocks=2),), {}, "5 tiles in 14 buffers"),
        ((PIPELINES["one stage"],), {"until": 19}, "until is 19, but the pipeline ends at 20"),
        ((PIPELINES["one stage"],), {"until": "20"}, "until is '20'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(InvalidDrawing, match=message):
        draw_timeline(*args, **kwargs)
