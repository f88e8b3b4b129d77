"""The pipeline's arithmetic: a closed formula, a slow clock, and what more buffers can and cannot do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.pipeline import InvalidPipeline, Pipeline

times = st.integers(0, 20)
pipelines = st.builds(
    Pipeline,
    tiles=st.integers(1, 40),
    stages=st.integers(1, 6),
    copy=times,
    work=times,
    latency=times,
    blocks=st.integers(1, 4),
)


def closed(p: Pipeline) -> float:
    """The total without going through the tiles: the longest chain of things that wait for each other.

    A chain starts with one way through the memory and ends with one piece of work. Between them lie n - 1
    tiles; each is a copy or a piece of work, or `ahead` of them are replaced by a whole way. The length is
    linear in the number of whole ways, so it is greatest for none or for as many as fit.
    """
    way = p.latency + p.copy
    again = way + (p.work if p.stages == 1 else 0.0)
    most = (p.tiles - 1) // p.ahead
    slower = max(p.copy, p.work)
    none, all_ = (k * again + (p.tiles - 1 - k * p.ahead) * slower for k in (0, most))
    return way + max(none, all_) + p.work


@given(pipelines)
def test_the_total_is_the_longest_chain(p: Pipeline) -> None:
    assert p.total == closed(p)


def clocked(p: Pipeline) -> int:
    """A slow oracle: one unit of time after the other, for whole times above 0."""
    asked: dict[int, int] = {}
    left = {tile: int(p.copy) for tile in range(p.tiles)}  # of each copy's time in the memory
    ended: dict[int, int] = {}
    started: dict[int, int] = {}
    now = 0
    while len(ended) < p.tiles or max(ended.values()) > now:
        for tile in range(p.tiles):  # who asks
            if tile in asked:
                continue
            before = tile - p.ahead
            if before < 0:
                asked[tile] = 0
            elif p.stages == 1 and before in ended and ended[before] <= now:
                asked[tile] = ended[before]
            elif p.stages > 1 and before in started:
                asked[tile] = started[before]
        working = [tile for tile in started if ended[tile] > now]
        following = len(started)
        if not working and following < p.tiles and left[following] == 0:
            started[following], ended[following] = now, now + int(p.work)
            continue  # somebody may ask at this very moment
        first = next((tile for tile in range(p.tiles) if left[tile]), None)
        if first is not None and first in asked and asked[first] + p.latency <= now:
            left[first] -= 1
        now += 1
    return now


@given(
    st.builds(
        Pipeline,
        tiles=st.integers(1, 12),
        stages=st.integers(1, 4),
        copy=st.integers(1, 5),
        work=st.integers(1, 5),
        latency=st.integers(0, 6),
        blocks=st.integers(1, 3),
    )
)
def test_the_total_is_that_of_a_clock(p: Pipeline) -> None:
    assert p.total == clocked(p)


@given(pipelines)
def test_a_buffer_holds_one_tile_at_a_time(p: Pipeline) -> None:
    """The copy of the next tile in a buffer starts when the work on the last one has ended, or later."""
    last: dict[tuple[int, int], float] = {}
    for step in p.steps:
        assert step.asked <= step.arrived <= step.started <= step.ended
        assert step.asked >= last.get((step.block, step.stage), 0.0)
        last[step.block, step.stage] = step.ended
    assert len(last) == min(p.tiles, p.blocks * p.stages)


@given(pipelines)
def test_memory_and_work_take_turns(p: Pipeline) -> None:
    for before, after in zip(p.steps, p.steps[1:], strict=False):
        assert after.arrived - p.copy >= before.arrived
        assert after.started >= before.ended


@given(pipelines, st.integers(1, 5))
def test_neither_more_stages_nor_more_blocks_cost_time(p: Pipeline, more: int) -> None:
    fields = {name: getattr(p, name) for name in ("tiles", "copy", "work", "latency")}
    assert Pipeline(stages=p.stages + more, blocks=p.blocks, **fields).total <= p.total
    assert Pipeline(stages=p.stages, blocks=p.blocks + more, **fields).total <= p.total


@given(pipelines)
def test_overlap_saves_at_most_the_smaller_part(p: Pipeline) -> None:
    """Without latency: from n (copy + work) to no less than n times the larger, and two stages get there."""
    alone = Pipeline(p.tiles, 1, p.copy, p.work)
    piped = [Pipeline(p.tiles, stages, p.copy, p.work).total for stages in (2, 3, 6)]
    assert alone.total == p.tiles * (p.copy + p.work)
    assert set(piped) == {alone.total - (p.tiles - 1) * min(p.copy, p.work)}


@given(pipelines)
def test_in_the_long_run_each_tile_takes_per_tile(p: Pipeline) -> None:
    fields: dict[str, Any] = {
        name: getattr(p, name) for name in ("stages", "copy", "work", "latency", "blocks")
    }
    settled, period = 300, p.ahead
    later = Pipeline(tiles=settled + period, **fields).total - Pipeline(tiles=settled, **fields).total
    assert later == pytest.approx(period * p.per_tile)


@given(pipelines, st.integers(1, 4))
def test_with_stages_and_blocks_only_their_product_counts(p: Pipeline, ahead: int) -> None:
    """One block of n + 1 stages, or n blocks of two: as many tiles are under way, and it takes as long."""
    fields = {name: getattr(p, name) for name in ("tiles", "copy", "work", "latency")}
    one, many = Pipeline(stages=ahead + 1, **fields), Pipeline(stages=2, blocks=ahead, **fields)
    assert (one.total, one.ahead) == (many.total, many.ahead)


def test_rows_worked_out_by_hand() -> None:
    one = Pipeline(tiles=3, stages=1, copy=4, work=2, latency=1)
    assert [(s.asked, s.arrived, s.started, s.ended) for s in one.steps] == [
        (0, 5, 5, 7), (7, 12, 12, 14), (14, 19, 19, 21),
    ]  # fmt: skip
    three = Pipeline(tiles=4, stages=3, copy=1, work=5)
    assert [(s.stage, s.asked, s.arrived, s.started, s.ended) for s in three.steps] == [
        (0, 0, 1, 1, 6), (1, 0, 2, 6, 11), (2, 1, 3, 11, 16), (0, 6, 7, 16, 21),
    ]  # fmt: skip


def test_times_may_be_fractions() -> None:
    assert Pipeline(2, 1, copy=0.5, work=0.25).total == 1.5


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("tiles", 0, "Pipeline: tiles"),
        ("stages", 1.5, "Pipeline: stages"),
        ("blocks", -1, "Pipeline: blocks"),
        ("copy", -1, "Pipeline: copy is -1. Give a time of 0 or more, in any one unit."),
        ("work", float("nan"), "Pipeline: work is nan"),
        ("latency", "soon", "Pipeline: latency is 'soon'"),
        ("copy", True, "Pipeline: copy is True"),
    ],
)
def test_what_is_no_pipeline_is_refused(field: str, value: Any, message: str) -> None:
    fields: dict[str, Any] = {"tiles": 2, "stages": 2, "copy": 1, "work": 1, field: value}
    with pytest.raises(InvalidPipeline, match=message.replace(".", r"\.")):
        Pipeline(**fields)
