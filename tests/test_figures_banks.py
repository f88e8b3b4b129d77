"""Bank maps and replays say what the cost says: cells, hatching, outlines, lines and alternative texts."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings

from lanewise import memory
from lanewise.access import WarpAccess
from lanewise.errors import NotModelled
from lanewise.figures import Drawing, InvalidDrawing, draw_bank_map, draw_replay
from lanewise.figures.shared import LEFT
from lanewise.figures.style import LOST, PAPER
from lanewise.figures.words import cell_lines
from lanewise.instructions import INSTRUCTIONS, instruction
from lanewise.memory import shared_cost
from tests.drawings import boxes, hatched, rgb, texts_in
from tests.strategies import warp_accesses

F = WarpAccess.from_formula
SHARED = [name for name, spec in INSTRUCTIONS.items() if spec.space == "shared" and not spec.not_modelled]
ROW = 0.92  # height of a row of cells with one number each
FEW = settings(max_examples=10, deadline=None)


def lane(n: np.ndarray) -> np.ndarray:
    return n


ACCESSES = {
    "s[lane]": F("ld.shared.b32", lambda n: 4 * n),
    "stride 2": F("ld.shared.b32", lambda n: 8 * n),
    "stride 32": F("ld.shared.b32", lambda n: 128 * n),
    "broadcast": F("ld.shared.b32", lambda n: 0 * n),
    "four words": F("ld.shared.b32", lambda n: 4 * (n % 4)),
    "column, pitch 33": WarpAccess.from_tile("ld.shared.b32", row=lane, col=0, pitch=33),
    "float4": F("ld.shared.b128", lambda n: 16 * n),
    "float4, 128 bytes apart": F("ld.shared.b128", lambda n: 128 * n),
    "float4 in pairs": F("ld.shared.b128", lambda n: 16 * (n // 2)),
    "double column": WarpAccess.from_tile("ld.shared.b64", row=lane, col=0, pitch=32, element_bytes=8),
    "ldmatrix, 64 bytes apart": F("ldmatrix.x4", lambda n: 64 * (n % 8) + 16 * (n // 8)),
    "partial mask": F("st.shared.b32", lambda n: 8 * n, 0x0F0F00FF),
    "copy of one word": F("cp.async.ca.4", lambda n: 0 * n),
    "no lane": F("ld.shared.b32", lambda n: 4 * n, 0),
    "histogram": WarpAccess("red.shared.add.u32", tuple(4 * ((n * n * 7 + 3 * n) % 97) for n in range(32))),
    "phases that differ": F("ld.shared.b64", lambda n: np.where(n < 16, 8 * n, 128 * n)),
}


@cache
def bank_map(name: str) -> Drawing:
    return draw_bank_map(ACCESSES[name])


# --- bank map -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "alt"),
    [
        (
            "s[lane]",
            "ld.shared.b32, lanes 0..31: each of the 32 banks holds 1 word; 1 wavefront, the fewest possible.",
        ),
        (
            "stride 2",
            "ld.shared.b32, lanes 0..31: banks 0, 2, .. 30 hold 2 different words each, all other banks none;"
            " 2 wavefronts, 1 would do.",
        ),
        (
            "stride 32",
            "ld.shared.b32, lanes 0..31: bank 0 holds 32 different words, all other banks none; 32 wavefronts,"
            " 1 would do.",
        ),
        (
            "broadcast",
            "ld.shared.b32, lanes 0..31: bank 0 holds 1 word, all other banks none, and 32 lanes read the same word"
            " together; 1 wavefront, the fewest possible.",
        ),
        (
            "four words",
            "ld.shared.b32, lanes 0..31: banks 0..3 hold 1 word each, all other banks none, and 8 lanes read each word"
            " together; 1 wavefront, the fewest possible.",
        ),
        (
            "float4",
            "ld.shared.b128, lanes 0..31: in each of 4 groups of 8 lanes, each of the 32 banks holds 1 word;"
            " 4 wavefronts, the fewest possible.",
        ),
        (
            "float4 in pairs",
            "ld.shared.b128, lanes 0..31: in each of 2 fused groups of 16 lanes, each of the 32 banks holds 1 word,"
            " and 2 lanes read each word together; 2 wavefronts, the fewest possible.",
        ),
        (
            "ldmatrix, 64 bytes apart",
            "ldmatrix.x4, lanes 0..31: in each of 4 groups of 8 lanes, 8 banks hold 4 different words each, all other"
            " banks none; 16 wavefronts, 4 would do.",
        ),
        (
            "partial mask",
            "st.shared.b32, lanes 0..7, 16..19, 24..27: banks 0, 2, .. 6 hold 2 different words each, banks 8, 10, .."
            " 22 hold 1 word each, all other banks none; 2 wavefronts, 1 would do.",
        ),
        (
            "copy of one word",
            "cp.async.ca.4, lanes 0..31: bank 0 holds 32 lane-words, which are not merged, all other banks none;"
            " 32 wavefronts, 1 would do.",
        ),
        ("no lane", "ld.shared.b32, no active lane: no word in any bank; no wavefront."),
        (
            "histogram",
            "red.shared.add.u32, lanes 0..31: 22 of 32 banks hold words, at most 3: banks 27, 30 hold 3 different"
            " words each, and 2 lanes update each of 4 words together; 3 wavefronts, 1 would do.",
        ),
        (
            "phases that differ",
            "ld.shared.b64, lanes 0..31: 2 groups; for lanes 0..15, each of the 32 banks holds 1 word; for"
            " lanes 16..31, banks 0, 1 hold 16 different words each, all other banks none; 17 wavefronts, 2 would do.",
        ),
    ],
)
def test_the_text_of_a_bank_map_says_what_the_banks_hold(name: str, alt: str) -> None:
    assert bank_map(name).alt == f"Bank map of {alt}"


@FEW
@given(warp_accesses(SHARED))
def test_a_bank_map_has_a_cell_for_each_word_and_each_lane_in_it_once(access: WarpAccess) -> None:
    cost = shared_cost(access)
    drawing = draw_bank_map(cost)
    drawn = boxes(drawing, r"wavefront\d+-bank\d+")
    assert len(drawn) == sum(len(words) for phase in cost.phases for words in phase.words_by_bank.values())
    assert {int(name.split("-")[0].removeprefix("wavefront")) for name in drawn} == set(
        range(cost.wavefronts)
    )
    shown: Counter[tuple[int, int]] = Counter()
    asked: Counter[tuple[int, int]] = Counter()
    for name, box in drawn.items():
        bank = int(name.rpartition("bank")[2])
        assert int(box.get_x() - LEFT) == bank
        numbers = texts_in(drawing, box)
        if all(number.isdigit() for number in numbers):
            shown.update((bank, int(number)) for number in numbers)
        else:  # a series such as 0 ⋮ 31, or a number such as 16 of 32
            lanes = cost.replay[_wavefront(name)].lanes_by_word[_word(cost, name)]
            assert tuple(numbers) == cell_lines(lanes)
            asked.subtract((bank, lane) for lane in lanes)
    # Independent of phases and replays: which lane needs a word of which bank, straight from the addresses.
    spec = instruction(access.instruction)
    for lane in access.addressing_lanes:
        first = access.addresses[lane] // 4
        asked.update((word % 32, lane) for word in range(first, first + spec.words_per_lane))
    assert shown == +asked


def _wavefront(name: str) -> int:
    return int(name.split("-")[0].removeprefix("wavefront"))


def _word(cost: memory.SharedCost, name: str) -> int:
    bank = int(name.rpartition("bank")[2])
    (word,) = (word for word in cost.replay[_wavefront(name)].lanes_by_word if word % 32 == bank)
    return word


@pytest.mark.parametrize("name", ACCESSES)
def test_banks_in_conflict_are_marked_without_colour(name: str) -> None:
    cost, drawing = shared_cost(ACCESSES[name]), bank_map(name)
    full = {bank for phase in cost.phases for bank, words in phase.words_by_bank.items() if len(words) > 1}
    inverted = boxes(drawing, r"conflict-bank\d+")
    assert {int(name.removeprefix("conflict-bank")) for name in inverted} == full
    light = {text.get_text() for text in drawing.ax.texts if text.get_color() == PAPER}
    for label, box in inverted.items():
        assert texts_in(drawing, box) == [label.removeprefix("conflict-bank")]
    assert light == {str(bank) for bank in full}
    outlines = [
        p for p in drawing.ax.patches if p.get_linewidth() == 1.6 and p.get_edgecolor()[:3] == rgb(LOST)
    ]
    assert len(outlines) == sum(
        len(words) > 1 for phase in cost.phases for words in phase.words_by_bank.values()
    )
    assert bool(hatched(drawing)) == (cost.excess > 0)


@pytest.mark.parametrize("stride", [2, 4, 6, 8, 16, 32, 64])
def test_the_hatched_area_is_the_bank_slots_lost(stride: int) -> None:
    cost = shared_cost(F("ld.shared.b32", lambda n: 4 * stride * n))
    *lost, key = hatched(draw_bank_map(cost))
    slots = sum(round(box.get_width() + 0.06) * round((box.get_height() + 0.06) / ROW) for box in lost)
    assert key.get_width() == 1.6
    assert slots == 32 * cost.wavefronts - 32 - (32 - len(cost.phases[0].words_by_bank))


@pytest.mark.parametrize("name", ACCESSES)
def test_the_columns_of_a_bank_map_are_as_high_as_their_banks_are_full(name: str) -> None:
    cost, drawing = shared_cost(ACCESSES[name]), bank_map(name)
    columns = Counter(int(name.rpartition("bank")[2]) for name in boxes(drawing, r"wavefront\d+-bank\d+"))
    for bank in range(32):
        assert columns[bank] == sum(len(phase.words_by_bank.get(bank, ())) for phase in cost.phases)


def test_a_bank_map_names_the_groups_and_says_when_they_fuse() -> None:
    plain, fused, matrix = (
        [text.get_text() for text in bank_map(name).ax.texts]
        for name in ("float4", "float4 in pairs", "ldmatrix, 64 bytes apart")
    )
    assert {"lanes 0..7", "lanes 8..15", "lanes 16..23", "lanes 24..31"} <= set(plain)
    assert {"lanes 0..15, two groups fused", "lanes 16..31, two groups fused"} <= set(fused)
    assert "ld.shared.b128, lanes 0..31: 2 lanes read each word together" in fused
    assert "matrix 3: rows at the addresses of lanes 24..31" in matrix


def test_a_title_replaces_the_line_that_names_the_access() -> None:
    texts = [
        text.get_text() for text in draw_bank_map(ACCESSES["stride 2"], title="Every other word").ax.texts
    ]
    assert texts[:2] == ["2 wavefronts, 1 would do", "Every other word"]


def test_a_bank_map_refuses_what_it_cannot_draw() -> None:
    with pytest.raises(InvalidDrawing, match=r"draw_bank_map: got ld\.global\.b32; .* use draw_sectors"):
        draw_bank_map(F("ld.global.b32", lambda n: 4 * n))
    with pytest.raises(
        InvalidDrawing, match=r"draw_bank_map: got a list; it draws a shared-memory WarpAccess"
    ):
        draw_bank_map([0, 4, 8])  # type: ignore[arg-type]
    with pytest.raises(NotModelled):
        draw_bank_map(F("cp.async.cg.16", lambda n: 16 * n))


# --- replay -------------------------------------------------------------------------------------------------


def beams(drawing: Drawing) -> list[tuple[int, int]]:
    """(wavefront, lane) of every line or beam."""
    artists = (*drawing.ax.lines, *drawing.ax.patches)
    found = (re.fullmatch(r"wavefront(\d+)-lane(\d+)", artist.get_gid() or "") for artist in artists)
    return [(int(match[1]), int(match[2])) for match in found if match]


@FEW
@given(warp_accesses(SHARED))
def test_a_replay_serves_every_lane_once(access: WarpAccess) -> None:
    cost = shared_cost(access)
    drawn = beams(draw_replay(cost, limit=32))
    assert sorted(lane for _, lane in drawn) == list(access.addressing_lanes)
    assert {wavefront for wavefront, _ in drawn} == set(range(cost.wavefronts))


def test_a_replay_draws_lines_to_the_banks_of_the_words() -> None:
    drawing = draw_replay(ACCESSES["column, pitch 33"])
    for line in drawing.ax.lines:
        start, end = np.asarray(line.get_xdata(), dtype=float)
        lane = int(str(line.get_gid()).rpartition("lane")[2])
        assert (start - LEFT - 0.5, end - LEFT - 0.5) == pytest.approx((lane, 33 * lane % 32))


def test_a_long_replay_shows_its_first_wavefronts_and_its_last() -> None:
    drawing = draw_replay(ACCESSES["stride 32"], limit=3)
    assert beams(drawing) == [(0, 0), (1, 1), (31, 31)]
    texts = [text.get_text() for text in drawing.ax.texts]
    assert "⋮   29 more wavefronts" in texts
    assert "wavefront 2: lane 1 served, 30 wait" in texts
    assert drawing.alt == (
        "Wavefronts of ld.shared.b32, lanes 0..31: wavefront 1 serves lane 0 from bank 0; wavefront 2 serves lane 1"
        " from bank 0; wavefront 3 serves lane 2 from bank 0; 28 more follow; wavefront 32 serves lane 31 from bank 0."
    )


def test_a_replay_of_no_lane_is_empty() -> None:
    assert draw_replay(ACCESSES["no lane"]).alt == "Wavefronts of ld.shared.b32, no active lane: none."


def test_a_replay_refuses_what_it_cannot_draw() -> None:
    for limit in (1, 4.0, "4", None, True):
        with pytest.raises(
            InvalidDrawing, match=rf"draw_replay: limit: got {limit!r}; give a whole number of 2 or"
        ):
            draw_replay(ACCESSES["s[lane]"], limit=limit)  # type: ignore[arg-type]
    with pytest.raises(InvalidDrawing, match=r"draw_replay: got ld\.global\.b32"):
        draw_replay(F("ld.global.b32", lambda n: 4 * n))
