"""Tensor Core operands: which lane holds each element, and which lane says where each row of it lies."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.axes import Axes

from lanewise.figures import style
from lanewise.figures.drawing import Drawing, InvalidDrawing, Sheet, heading_height
from lanewise.figures.style import BODY, CELL, INK, MUTED, RULE, lane_tone
from lanewise.fragments import MATRIX, Fragment, MatrixMove
from lanewise.integers import whole
from lanewise.machine import WARP_LANES
from lanewise.text import count, spans

CELL_PT = 18.0
LEFT = 1.9  # cells to the left of the first block, for the numbers of the rows
GAP = 0.6  # between two blocks side by side
LABEL = 1.1  # above every block, for its registers
NUMBERS = 0.9  # above all blocks, for the numbers of the columns
GIVER = 2.2  # to the left of a matrix, for the lanes that point at its rows
EDGE = 0.4
BELOW = 0.3  # below a matrix, before the label of the next
NARROWEST, NARROWEST_MOVE = 17.0, 19.5  # cells that a heading needs


def draw_fragment(
    fragment: Fragment, *, lane: int | None = None, title: str | None = None, ax: Axes | None = None
) -> Drawing:
    """Draw a Tensor Core operand as the matrix it is, with the lane that holds each pair of neighbours.

    The matrix is drawn in its blocks of 8 x 8, each under the registers that hold it. `lane` outlines what
    one lane holds.

    >>> from lanewise.fragments import M16N8K8
    >>> draw_fragment(M16N8K8.a).alt[:99]
    'Fragment m16n8k8 A, 16 x 8 elements in 2 registers of 32 lanes; register 0: rows 0..7, columns 0..7'

    Raises `InvalidDrawing` for what is no fragment and for a lane outside of 0..31.
    """
    if not isinstance(fragment, Fragment):
        raise InvalidDrawing(
            f"draw_fragment: got {fragment!r}; it draws a Fragment. Give an operand such as M16N8K16.a."
        )
    if lane is not None:
        lane = whole("draw_fragment: lane", lane, InvalidDrawing, high=WARP_LANES - 1)
    rows, cols = fragment.shape
    width = max(LEFT + cols + GAP * (cols // MATRIX - 1) + EDGE, NARROWEST)
    heading = heading_height(CELL_PT)
    height = heading + NUMBERS + rows // MATRIX * (LABEL + MATRIX) + EDGE
    with style.settings():
        sheet = Sheet(width, height, width * CELL_PT, ax=ax)
        subtitle = "each box: two elements, and the lane that holds them"
        sheet.heading(title or f"{fragment}: {rows} x {cols}", subtitle)
        _draw_operand(sheet, heading, fragment, lane)
    return Drawing(sheet.ax, _alt_of_fragment(fragment, lane))


def _draw_operand(sheet: Sheet, heading: float, fragment: Fragment, lane: int | None) -> None:
    """The numbers of rows and columns, and every block under its registers."""
    for col in range(fragment.shape[1]):
        x = _block_x(col // MATRIX) + col % MATRIX + 0.5
        sheet.text(x, heading + NUMBERS / 2, str(col), CELL, align="center", color=MUTED)
    for block, (row, col) in enumerate(fragment.origins):
        x, y = _block_x(col // MATRIX), heading + NUMBERS + row // MATRIX * (LABEL + MATRIX) + LABEL
        sheet.text(x, y - LABEL / 2, _registers(fragment, block), BODY)
        if col == 0:
            for below in range(MATRIX):
                number = str(row + below)
                sheet.text(x - 0.35, y + below + 0.5, number, CELL, align="right", color=MUTED)
        _draw_block(sheet, x, y, fragment.transposed, f"block{block}", lane)


def draw_matrix_move(
    instruction: str, *, lane: int | None = None, title: str | None = None, ax: Axes | None = None
) -> Drawing:
    """Draw an ldmatrix or stmatrix: who gives the address of each row, and who gets its elements.

    To the left of each row of a matrix stands the lane that points at it; in the row, the lanes whose
    register receives (stmatrix: gives) its pairs. `lane` outlines one of them in all its parts.

    >>> draw_matrix_move("ldmatrix.x1").alt[:93]
    'ldmatrix.x1, 1 matrix of 8 x 8. Lanes 0..7 give the addresses of its rows; register 0 of lane'

    Raises `UnknownInstruction` for other instructions, `InvalidDrawing` for a lane outside of 0..31.
    """
    move = MatrixMove.from_name(instruction)
    if lane is not None:
        lane = whole("draw_matrix_move: lane", lane, InvalidDrawing, high=WARP_LANES - 1)
    across = min(move.n_matrices, 2)
    down = move.n_matrices // across
    step = GIVER + MATRIX + GAP
    width = max(GAP + across * step + EDGE, NARROWEST_MOVE)
    heading = heading_height(CELL_PT)
    verb = "give" if instruction.startswith("st") else "get"
    subtitle = f"left: lanes that point at a row; in it: lanes that {verb} its pairs"
    with style.settings():
        sheet = Sheet(width, heading + down * (LABEL + MATRIX + BELOW) + EDGE, width * CELL_PT, ax=ax)
        sheet.heading(title or instruction, subtitle)
        for matrix in range(move.n_matrices):
            # Matrices 0 and 1 stand one below the other, as in the operand A that they are part of.
            column, row = divmod(matrix, down) if down > 1 else (matrix, 0)
            x, y = GAP + column * step + GIVER, heading + row * (LABEL + MATRIX + BELOW) + LABEL
            sheet.text(x, y - LABEL / 2, f"matrix {matrix}, register {matrix}", BODY)
            for below in range(MATRIX):
                giver = MATRIX * matrix + below
                _draw_giver(sheet, x - GIVER, y + below, giver, giver == lane)
            _draw_block(sheet, x, y, move.transposed, f"matrix{matrix}", lane)
    return Drawing(sheet.ax, _alt_of_move(instruction, move))


def _block_x(block: int) -> float:
    return LEFT + block * (MATRIX + GAP)


def _registers(fragment: Fragment, block: int) -> str:
    if fragment.packed == 2:
        return f"register {block}"
    return f"registers {2 * block}, {2 * block + 1}"


def _draw_block(sheet: Sheet, x: float, y: float, transposed: bool, name: str, outlined: int | None) -> None:
    """64 elements in 32 boxes, one for each lane: two neighbours of a row, transposed of a column."""
    for lane in range(WARP_LANES):
        along, across = lane // 4, lane % 4 * 2
        left, top, width, height = (along, across, 1, 2) if transposed else (across, along, 2, 1)
        tone = lane_tone(lane)
        chosen = lane == outlined
        sheet.box(
            x + left + 0.05,
            y + top + 0.05,
            width - 0.1,
            height - 0.1,
            fill=tone.fill,
            edge=INK if chosen else tone.edge,
            line=2.4 if chosen else 0.8,
            gid=f"{name}-lane{lane}",
            z=3 if chosen else 2,
        )
        middle = x + left + width / 2, y + top + height / 2
        sheet.text(*middle, str(lane), CELL, align="center", bold=chosen)


def _draw_giver(sheet: Sheet, x: float, y: float, lane: int, chosen: bool) -> None:
    """The lane that points at a row, and an arrow to the row."""
    tone = lane_tone(lane)
    edge, line = (INK, 2.4) if chosen else (tone.edge, 0.8)
    sheet.box(
        x + 0.1, y + 0.05, 1.4, 0.9, fill=tone.fill, edge=edge, line=line, gid=f"points-lane{lane}", z=2
    )
    sheet.text(x + 0.8, y + 0.5, str(lane), CELL, align="center", bold=chosen)
    sheet.lines((x + 1.5, x + GIVER), (y + 0.5, y + 0.5), RULE, 1.2)


def _alt_of_fragment(fragment: Fragment, lane: int | None) -> str:
    rows, cols = fragment.shape
    blocks = "; ".join(
        f"{_registers(fragment, block)}: rows {spans(range(row, row + MATRIX))},"
        f" columns {spans(range(col, col + MATRIX))}"
        for block, (row, col) in enumerate(fragment.origins)
    )
    alt = (
        f"Fragment {fragment}, {rows} x {cols} elements in {count(fragment.n_registers, 'register')} of 32"
        f" lanes; {blocks}. In each, {_pattern(fragment.transposed)}."
    )
    if lane is not None:
        held = zip(fragment.row[lane].ravel().tolist(), fragment.col[lane].ravel().tolist(), strict=True)
        alt += f" Outlined: lane {lane}, which holds {_elements(held)}."
    return alt


def _alt_of_move(instruction: str, move: MatrixMove) -> str:
    matrices = count(move.n_matrices, "matrix", "matrices")
    givers = spans(range(move.n_address_lanes))
    verb = "stores from" if instruction.startswith("st") else "fills"
    if move.n_matrices == 1:
        who = (
            f"Lanes {givers} give the addresses of its rows; register 0 of lanes 0..31 {_takes(instruction)}"
        )
        return f"{instruction}, {matrices} of 8 x 8. {who} it: {_pattern(move.transposed)}."
    return (
        f"{instruction}, {matrices} of 8 x 8. Lanes {givers} give the addresses of their rows, eight lanes a"
        f" matrix; matrix m {verb} register m of every lane: in each, {_pattern(move.transposed)}."
    )


def _takes(instruction: str) -> str:
    return "gives" if instruction.startswith("st") else "gets"


def _pattern(transposed: bool) -> str:
    along, across = ("column", "rows") if transposed else ("row", "columns")
    return f"lane 0 has {along} 0, {across} 0, 1; lane 1 {across} 2, 3; .. lane 31 {along} 7, {across} 6, 7"


def _elements(held: Iterable[tuple[int, int]]) -> str:
    return ", ".join(f"({row},{col})" for row, col in held)
