"""Address grids: every cell shows its number, and the cells of an access are found to the byte."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lanewise.access import WarpAccess
from lanewise.errors import InvalidLayout
from lanewise.figures import Drawing, InvalidDrawing, draw_address_grid
from lanewise.figures.style import LOST
from lanewise.layouts import Layout
from lanewise.swizzles import xor_tile
from tests.drawings import boxes, is_dashed, rgb

F = WarpAccess.from_formula


def lane(n: np.ndarray) -> np.ndarray:
    return n


def grid_numbers(drawing: Drawing, n_rows: int, n_cols: int) -> np.ndarray:
    """What the cells show: the last texts, row by row, before the key."""
    texts = [
        text
        for text in drawing.ax.texts
        if text.get_text().isdigit() and text.get_horizontalalignment() == "center"
    ]
    return np.array([int(text.get_text()) for text in texts[n_cols:]]).reshape(n_rows, n_cols)


@pytest.mark.parametrize(
    ("label", "element_bytes", "expected"),
    [
        ("bank", 4, lambda address: address // 4 % 32),
        ("bank", 2, lambda address: address // 4 % 32),
        ("word", 8, lambda address: address // 4),
        ("index", 4, lambda address: address // 4),
        ("chunk", 2, lambda address: address % 128 // 16),
    ],
)
def test_every_cell_of_a_grid_shows_its_number(
    label: str, element_bytes: int, expected: Callable[[int], int]
) -> None:
    drawing = draw_address_grid(9, 6, 8, element_bytes=element_bytes, label=label)  # type: ignore[arg-type]
    numbers = grid_numbers(drawing, 6, 9)
    for row, col in np.ndindex(6, 9):
        assert numbers[row, col] == expected((9 * row + col) * element_bytes)


@pytest.mark.parametrize(
    "layout", [xor_tile(8, 8), Layout((8, 8), (1, 8)), lambda row, col: 8 * row + (col ^ row)]
)
def test_a_grid_takes_any_layout(layout: Callable[[int, int], int]) -> None:
    numbers = grid_numbers(draw_address_grid(layout, 8, 8), 8, 8)
    assert numbers.tolist() == [[layout(row, col) % 32 for col in range(8)] for row in range(8)]


def test_padding_cells_are_dashed_and_named() -> None:
    drawing = draw_address_grid(33, (0, 1, 31), (0, 1, 31, 32), padding_from=32)
    dashed = {name for name, box in boxes(drawing, r"row\d+-col\d+").items() if is_dashed(box)}
    assert dashed == {"row0-col32", "row1-col32", "row31-col32"}
    assert "padding: holds no data" in [text.get_text() for text in drawing.ax.texts]
    assert len(boxes(draw_address_grid(34, 4, 32), r"row\d+-col\d+")) == 8
    assert not boxes(draw_address_grid(32, 4, 32), r"row\d+-col\d+")


@pytest.mark.parametrize(("pitch", "inverted"), [(32, 32), (33, 0), (34, 32), (40, 32)])
def test_a_grid_outlines_the_cells_of_an_access_and_inverts_those_that_wait(
    pitch: int, inverted: int
) -> None:
    column = WarpAccess.from_tile("ld.shared.b32", row=lane, col=3, pitch=pitch)
    drawing = draw_address_grid(pitch, 32, range(5), access=column)
    touched = boxes(drawing, r"row\d+-col\d+")
    assert set(touched) == {f"row{row}-col3" for row in range(32)}
    assert sum(box.get_facecolor()[:3] == rgb(LOST) for box in touched.values()) == inverted


def test_a_grid_finds_all_cells_of_a_wide_access_where_the_tile_starts_elsewhere() -> None:
    row = WarpAccess.from_tile(
        "ld.shared.b128",
        row=0,
        col=lambda n: 8 * (n % 2),
        pitch=64,
        element_bytes=2,
        base_address=256,
        active_mask=3,
    )
    drawing = draw_address_grid(64, 2, range(24), element_bytes=2, base_address=256, access=row)
    assert set(boxes(drawing, r"row\d+-col\d+")) == {f"row0-col{col}" for col in range(16)}


@pytest.mark.parametrize(
    ("drawing", "alt"),
    [
        (
            draw_address_grid(33, (0, 1, 31), (0, 1, 31, 32), padding_from=32),
            "Grid of rows 0, 1, 31 and columns 0, 1, 31, 32; each cell shows its bank. Row 0: 0, 1, 31, 0;"
            " row 1: 1, 2, 0, 1; row 31: 31, 0, 30, 31.",
        ),
        (
            draw_address_grid(
                32, 32, 32, access=WarpAccess.from_tile("ld.shared.b32", row=lane, col=0, pitch=32)
            ),
            "Grid of rows 0..31 and columns 0..31; each cell shows its bank. Row 0: 0, 1, 2, 3, .., 31."
            " Column 0: 0, 0, 0, 0, .., 0, all equal. Outlined: ld.shared.b32, lanes 0..31, in bank 0; 32 wavefronts,"
            " 1 would do.",
        ),
        (
            draw_address_grid(xor_tile(32, 32), 32, 32),
            "Grid of rows 0..31 and columns 0..31; each cell shows its bank. Row 0: 0, 1, 2, 3, .., 31."
            " Column 0: 0, 1, 2, 3, .., 31, 32 different.",
        ),
        (
            draw_address_grid(4, 2, 3, element_bytes=16, label="chunk"),
            "Grid of rows 0, 1 and columns 0..3; each cell shows its 16-byte chunk of the 32 banks. Row 0: 0, 1, 2, 3;"
            " row 1: 4, 5, 6, 7.",
        ),
    ],
    ids=["padded", "column", "xor", "chunks"],
)
def test_the_text_of_a_grid_gives_its_numbers(drawing: Drawing, alt: str) -> None:
    assert drawing.alt == alt


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((31, 4, 32), r"rows 31 elements apart cannot hold 32 columns\. Give a pitch of at least 32"),
        ((32, 0, 4), "rows: got 0; give a whole number from 1 to 256"),
        ((32, 4, (0, 2, 1)), r"cols=\(0, 2, 1\); .* rising indices from 0 on"),
        ((32, (-1, 0), 4), r"rows=\(-1, 0\)"),
        (
            (None, 4, 4),
            r"layout: got None; give a whole number from 1 to 2,147,483,648\. Or a function \(row, col\)",
        ),
        ((32, 4.0, 4), r"rows=4\.0; give a number of 1 or more, or rising indices"),
        (
            (32, 2**31, 4),
            r"rows: got 2147483648; give a whole number from 1 to 256\. Or list the ones to show",
        ),
        ((32, (0, 1.5), 4), r"rows=\(0, 1\.5\); give a number"),
        ((32, (0, 2**40), 4), "give a number of 1 or more, or rising indices"),
        ((2**62, (0, 2**20), 4), "layout: got 4611686018427387904"),
        (
            (lambda row, col: row + col + 2**62, 4, 4),
            "element 4611686018427387910 lies beyond the last address",
        ),
        ((lambda row, col: np.zeros(3, int), 4, 4), r"indices of shape \(3,\) for 4 rows and 4 columns"),
        ((lambda row, col: row / 2 + col, 4, 4), r"the layout gives float64 .* Use // rather than /"),
        ((lambda row, col: col - row, 4, 4), r"the layout gives int64 from -3"),
        ((1000, 2, (0, 1, 2, *range(900, 930))), None),
    ],
)
def test_a_grid_refuses_what_it_cannot_draw(arguments: tuple, message: str | None) -> None:
    if message is None:
        with pytest.raises(
            InvalidDrawing, match=r"numbers up to 1929 are not legible in 33 columns\. Show some of them"
        ):
            draw_address_grid(*arguments, label="index")
    else:
        with pytest.raises(InvalidDrawing, match=message):
            draw_address_grid(*arguments)


def test_a_grid_checks_its_options() -> None:
    with pytest.raises(InvalidDrawing, match="label 'lane': a cell can show bank, word, index, chunk"):
        draw_address_grid(32, 4, 4, label="lane")  # type: ignore[arg-type]
    with pytest.raises(InvalidDrawing, match="element_bytes: got 0; give a whole number of 1 or more"):
        draw_address_grid(32, 4, 4, element_bytes=0)
    for base_address in (-4, 1.5, None):
        with pytest.raises(
            InvalidDrawing, match=f"base_address: got {base_address}; give a whole number of 0"
        ):
            draw_address_grid(32, 4, 4, base_address=base_address)  # type: ignore[arg-type]
    with pytest.raises(InvalidDrawing, match="padding_from: got 'x'; give a whole number of 0"):
        draw_address_grid(32, 4, 4, padding_from="x")  # type: ignore[arg-type]
    assert draw_address_grid(np.int8(8), np.int8(4), np.int8(8)).alt == draw_address_grid(8, 4, 8).alt  # type: ignore[arg-type]
    with pytest.raises(InvalidDrawing, match=r"draw_address_grid: got ld\.global\.b32"):
        draw_address_grid(32, 4, 4, access=F("ld.global.b32", lambda n: 4 * n))
    with pytest.raises(InvalidLayout):
        draw_address_grid(Layout((4, 4), (4, 1)), 4, 5)
