"""Figures of fragments: every box names the lane that holds its elements, and who points at each row."""

from __future__ import annotations

import re

import pytest

from lanewise.errors import UnknownInstruction
from lanewise.figures import InvalidDrawing
from lanewise.figures.fragments import draw_fragment, draw_matrix_move
from lanewise.figures.style import INK
from lanewise.fragments import M16N8K8, M16N8K16, Fragment, MatrixMove
from tests.drawings import boxes, rgb, texts_in

FRAGMENTS = [getattr(mma, operand) for mma in (M16N8K8, M16N8K16) for operand in ("a", "b", "c", "c_f16")]
MOVES = [
    f"{name}.x{n}{trans}" for name in ("ldmatrix", "stmatrix") for n in (1, 2, 4) for trans in ("", ".trans")
]


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=str)
def test_every_box_of_a_fragment_names_the_owner_of_its_elements(fragment: Fragment) -> None:
    drawing = draw_fragment(fragment)
    drawn = boxes(drawing, r"block\d+-lane\d+")
    assert len(drawn) == 32 * len(fragment.origins)
    for block, (row0, col0) in enumerate(fragment.origins):
        corner = drawn[f"block{block}-lane0"]
        for name, box in drawn.items():
            if name.startswith(f"block{block}-"):
                # One unit is one element, so the box's place is the place of its elements.
                row = row0 + round(box.get_y() - corner.get_y())
                col = col0 + round(box.get_x() - corner.get_x())
                (text,) = texts_in(drawing, box)
                assert fragment.owner(row, col)[0] == int(text)
                last = row + round(box.get_height() - 0.9), col + round(box.get_width() - 0.9)
                assert fragment.owner(*last)[0] == int(text)
                assert last != (row, col)


@pytest.mark.parametrize("instruction", MOVES)
def test_a_move_shows_who_points_at_each_row_and_who_holds_its_pairs(instruction: str) -> None:
    move = MatrixMove.from_name(instruction)
    drawing = draw_matrix_move(instruction)
    givers = boxes(drawing, r"points-lane\d+")
    assert sorted(givers) == sorted(f"points-lane{lane}" for lane in range(move.n_address_lanes))
    for matrix in range(move.n_matrices):
        held = boxes(drawing, rf"matrix{matrix}-lane\d+")
        corner = held[f"matrix{matrix}-lane0"]
        for row in range(8):
            giver = givers[f"points-lane{8 * matrix + row}"]
            assert texts_in(drawing, giver) == [str(8 * matrix + row)]
            assert round(giver.get_y() - corner.get_y()) == row
            assert giver.get_x() < corner.get_x()
        for name, box in held.items():
            row, col = round(box.get_y() - corner.get_y()), round(box.get_x() - corner.get_x())
            assert move.within_matrix.owner(row, col)[0] == int(name.partition("-lane")[2])
            assert texts_in(drawing, box) == [name.partition("-lane")[2]]


def test_a_chosen_lane_is_outlined_wherever_it_takes_part() -> None:
    drawing = draw_matrix_move("ldmatrix.x4", lane=9)
    outlined = {name for name, box in boxes(drawing, r"\S+").items() if box.get_edgecolor()[:3] == rgb(INK)}
    assert outlined == {"points-lane9", *(f"matrix{m}-lane9" for m in range(4))}
    plain = draw_fragment(M16N8K16.b)
    assert not any(box.get_edgecolor()[:3] == rgb(INK) for box in boxes(plain, r"\S+").values())


def test_the_texts_say_what_is_drawn() -> None:
    alt = draw_fragment(M16N8K16.a, lane=5).alt
    assert "register 2: rows 0..7, columns 8..15" in alt
    assert alt.endswith("lane 5, which holds (1,2), (1,3), (9,2), (9,3), (1,10), (1,11), (9,10), (9,11).")
    assert "registers 2, 3: rows 8..15" in draw_fragment(M16N8K16.c).alt
    assert "lane 1 rows 2, 3" in draw_fragment(M16N8K16.b).alt
    moved = draw_matrix_move("stmatrix.x2.trans").alt
    assert "Lanes 0..15 give the addresses" in moved
    assert "stores from register m" in moved
    assert "lane 31 column 7, rows 6, 7" in moved


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidDrawing, match=re.escape("Give an operand such as M16N8K16.a.")):
        draw_fragment(M16N8K16)  # type: ignore[arg-type]
    with pytest.raises(InvalidDrawing, match="lane"):
        draw_fragment(M16N8K16.a, lane=32)
    with pytest.raises(InvalidDrawing, match="lane"):
        draw_matrix_move("ldmatrix.x4", lane=-1)
    with pytest.raises(UnknownInstruction, match=re.escape(".x1, .x2 or .x4")):
        draw_matrix_move("ld.shared.b32")
