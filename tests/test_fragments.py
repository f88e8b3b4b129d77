"""Tensor Core operand maps: the formulas of the PTX manual, CuTe's atoms as oracle, ownership, and a product."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensor_layouts import atoms_nv

from lanewise import WarpAccess, shared_cost
from lanewise.errors import InvalidLayout, UnknownInstruction
from lanewise.fragments import (
    A_COLUMN_MAJOR,
    A_ROW_MAJOR,
    B_COLUMN_MAJOR,
    B_ROW_MAJOR,
    M16N8K8,
    M16N8K16,
    Fragment,
    MatrixMove,
    Mma,
    OperandLoad,
)
from lanewise.layouts import blocked, padded

SHAPES = [M16N8K8, M16N8K16]
FRAGMENTS = [fragment for mma in SHAPES for fragment in (mma.a, mma.b, mma.c, mma.c_f16)]
MOVES = [MatrixMove(n, transposed) for n in (1, 2, 4) for transposed in (False, True)]
LOADS = [A_ROW_MAJOR, A_COLUMN_MAJOR, B_ROW_MAJOR, B_COLUMN_MAJOR]
LANE = np.arange(32)


# Laws


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=str)
def test_every_element_has_one_owner(fragment: Fragment) -> None:
    times_owned = np.zeros(fragment.shape, dtype=int)
    np.add.at(times_owned, (fragment.row, fragment.col), 1)
    assert (times_owned == 1).all()
    assert fragment.row.shape == (32, fragment.n_registers, fragment.packed)
    assert fragment.n_registers * 32 * fragment.packed == np.prod(fragment.shape)


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=str)
def test_owner_is_the_inverse(fragment: Fragment) -> None:
    for row, col in np.ndindex(fragment.shape):
        lane, register, position = fragment.owner(row, col)
        assert fragment.row[lane, register, position] == row
        assert fragment.col[lane, register, position] == col
    lanes, registers, positions = fragment.owner(*np.indices(fragment.shape))
    assert (fragment.row[lanes, registers, positions] == np.indices(fragment.shape)[0]).all()


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=str)
def test_split_and_join_undo_each_other(fragment: Fragment) -> None:
    matrices = np.arange(3 * np.prod(fragment.shape)).reshape(3, *fragment.shape)
    values = fragment.split(matrices)
    assert (fragment.join(values) == matrices).all()
    assert (fragment.split(fragment.join(values)) == values).all()
    assert (fragment.split(matrices[1]) == values[1]).all()
    assert values[0, 5, 0, 0] == matrices[0, fragment.row[5, 0, 0], fragment.col[5, 0, 0]]


def test_the_maps_are_read_only_and_the_fragments_are_values() -> None:
    with pytest.raises(ValueError, match="read-only"):
        M16N8K16.a.row[0, 0, 0] = 1
    assert eval(repr(M16N8K16.a)) == M16N8K16.a
    assert len({*FRAGMENTS, eval(repr(M16N8K8.b))}) == len(FRAGMENTS)


# The manual, formula by formula


@pytest.mark.parametrize("lane", range(32))
def test_the_maps_are_those_of_the_manual(lane: int) -> None:
    g, t = lane >> 2, lane & 3
    pairs = {
        "A": [(g, 2 * t), (g + 8, 2 * t), (g, 2 * t + 8), (g + 8, 2 * t + 8)],
        "B": [(2 * t, g), (2 * t + 8, g)],
        "C": [(g, 2 * t), (g + 8, 2 * t)],
    }
    for mma in SHAPES:
        for register in range(mma.a.n_registers):
            row, col = pairs["A"][register]
            assert mma.a.row[lane, register].tolist() == [row, row]
            assert mma.a.col[lane, register].tolist() == [col, col + 1]
        for register in range(mma.b.n_registers):
            row, col = pairs["B"][register]
            assert mma.b.row[lane, register].tolist() == [row, row + 1]
            assert mma.b.col[lane, register].tolist() == [col, col]
        for half in range(4):
            row, col = pairs["C"][half // 2]
            assert (mma.c.row[lane, half, 0], mma.c.col[lane, half, 0]) == (row, col + half % 2)
            position = half // 2, half % 2
            assert (mma.c_f16.row[lane][position], mma.c_f16.col[lane][position]) == (row, col + half % 2)


def test_register_counts_are_those_of_the_instructions() -> None:
    assert [(mma.a.n_registers, mma.b.n_registers, mma.c.n_registers) for mma in SHAPES] == [
        (2, 1, 4),
        (4, 2, 4),
    ]


# CuTe's atoms


@pytest.mark.parametrize(
    ("mma", "atom"),
    [
        (M16N8K8, atoms_nv.SM75_16x8x8_F32F16F16F32_TN),
        (M16N8K8, atoms_nv.SM80_16x8x8_F32BF16BF16F32_TN),
        (M16N8K16, atoms_nv.SM80_16x8x16_F32F16F16F32_TN),
        (M16N8K16, atoms_nv.SM80_16x8x16_F16F16F16F16_TN),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_mma_operands_equal_the_atoms(mma: Mma, atom: atoms_nv.MMAAtom) -> None:
    # An atom maps (lane, value) to a column-major offset: m + M * k for A, n + N * k for B, m + M * n for C.
    for fragment, layout, offset in (
        (mma.a, atom.a_layout, mma.a.row + 16 * mma.a.col),
        (mma.b, atom.b_layout, mma.b.col + 8 * mma.b.row),
        (mma.c, atom.c_layout, mma.c.row + 16 * mma.c.col),
        (mma.c_f16, atom.c_layout, mma.c_f16.row + 16 * mma.c_f16.col),
    ):
        values = offset.reshape(32, -1)
        theirs = [[layout(lane, value) for value in range(values.shape[1])] for lane in range(32)]
        assert values.tolist() == theirs, fragment


@pytest.mark.parametrize(
    ("move", "atom"),
    [
        (MatrixMove(1), atoms_nv.SM75_U32x1_LDSM_N),
        (MatrixMove(2), atoms_nv.SM75_U32x2_LDSM_N),
        (MatrixMove(4), atoms_nv.SM75_U32x4_LDSM_N),
        (MatrixMove(1, True), atoms_nv.SM75_U16x2_LDSM_T),
        (MatrixMove(2, True), atoms_nv.SM75_U16x4_LDSM_T),
        (MatrixMove(4, True), atoms_nv.SM75_U16x8_LDSM_T),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_ldmatrix_equals_the_atoms(move: MatrixMove, atom: atoms_nv.CopyAtom) -> None:
    # An atom maps (lane, bit) to a bit of the rows, 128 bits each, in the order of the address lanes.
    numbers = np.arange(move.n_matrices * 64).reshape(move.n_matrices, 8, 8)
    dealt = move.distribute(numbers).reshape(32, -1)
    theirs = [[atom.dst_layout_bits(lane, 16 * v) // 16 for v in range(dealt.shape[1])] for lane in range(32)]
    assert dealt.tolist() == theirs
    rows = [[atom.src_layout_bits(lane, 0) // 128] for lane in range(move.n_address_lanes)]
    assert (8 * move.address_matrix + move.address_row).tolist() == [row for (row,) in rows]


# ldmatrix


@pytest.mark.parametrize("move", MOVES, ids=str)
def test_stmatrix_undoes_ldmatrix(move: MatrixMove) -> None:
    matrices = np.arange(5 * move.n_matrices * 64).reshape(5, move.n_matrices, 8, 8)
    values = move.distribute(matrices)
    assert values.shape == (5, 32, move.n_matrices, 2)
    assert (move.collect(values) == matrices).all()


@pytest.mark.parametrize("move", MOVES, ids=str)
def test_CA_32_CA_47_addresses_come_eight_to_a_matrix_and_rows_go_four_lanes_to_a_row(
    move: MatrixMove,
) -> None:
    assert move.address_matrix.tolist() == [lane // 8 for lane in range(8 * move.n_matrices)]
    assert move.address_row.tolist() == [lane % 8 for lane in range(8 * move.n_matrices)]
    matrices = np.arange(move.n_matrices * 64).reshape(move.n_matrices, 8, 8)
    for lane in range(32):
        for matrix in range(move.n_matrices):
            row, pair = lane // 4, 2 * (lane % 4)
            source = matrices[matrix].T if move.transposed else matrices[matrix]
            assert move.distribute(matrices)[lane, matrix].tolist() == source[row, pair : pair + 2].tolist()


@pytest.mark.parametrize("move", MOVES, ids=str)
@given(data=st.data())
def test_elements_follow_the_addresses(move: MatrixMove, data: st.DataObject) -> None:
    row = np.array(data.draw(st.lists(st.integers(0, 63), min_size=32, max_size=32)))
    chunk = np.array(data.draw(st.lists(st.integers(0, 7), min_size=32, max_size=32)))
    tile = np.arange(64 * 64).reshape(64, 64)
    rows_read = np.array([tile[r, 8 * c : 8 * c + 8] for r, c in zip(row, chunk, strict=True)])
    expected = move.distribute(rows_read[: move.n_address_lanes].reshape(move.n_matrices, 8, 8))
    assert (tile[move.elements(row, chunk)] == expected).all()


def test_names_of_both_directions_are_understood() -> None:
    assert MatrixMove.from_name("ldmatrix.x2") == MatrixMove(2) == MatrixMove.from_name("stmatrix.x2")
    assert MatrixMove.from_name("ldmatrix.x1.trans") == MatrixMove(1, transposed=True)
    for name in ("ldmatrix.x3", "ld.shared.b128", "ldmatrix", "ldmatrix.x4.trans.trans"):
        with pytest.raises(UnknownInstruction, match=r"moves no matrices. Use ldmatrix or stmatrix"):
            MatrixMove.from_name(name)
    with pytest.raises(UnknownInstruction, match=r"3 matrices\. ldmatrix and stmatrix move 1, 2 or 4"):
        MatrixMove(3)


# Loads whose registers are operands


def test_lanes_point_where_the_recipe_says() -> None:
    for load in (A_ROW_MAJOR, B_ROW_MAJOR):
        assert load.row.tolist() == [lane & 15 for lane in range(32)]
        assert load.chunk.tolist() == [lane >> 4 for lane in range(32)]
        assert load.col.tolist() == [8 * (lane >> 4) for lane in range(32)]
    assert [load.instruction for load in LOADS] == [
        "ldmatrix.x4", "ldmatrix.x4.trans", "ldmatrix.x4.trans", "ldmatrix.x4",
    ]  # fmt: skip


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_registers_of_a_load_are_the_operand(load: OperandLoad) -> None:
    stored_row, stored_col = load.elements()
    as_stored = load in (A_ROW_MAJOR, B_ROW_MAJOR)
    row, col = (stored_row, stored_col) if as_stored else (stored_col, stored_row)
    if load in (A_ROW_MAJOR, A_COLUMN_MAJOR):
        assert (row == M16N8K16.a.row).all()
        assert (col == M16N8K16.a.col).all()
    else:
        for half, registers in ((0, slice(0, 2)), (8, slice(2, 4))):
            assert (row[:, registers] == M16N8K16.b.row).all()
            assert (col[:, registers] == M16N8K16.b.col + half).all()


@pytest.mark.parametrize("transposed_a", [False, True])
@pytest.mark.parametrize("transposed_b", [False, True])
def test_a_product_through_shared_memory_and_registers(transposed_a: bool, transposed_b: bool) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.integers(-8, 8, (16, 16)), rng.integers(-8, 8, (16, 16))
    load_a, stored_a = (A_COLUMN_MAJOR, a.T) if transposed_a else (A_ROW_MAJOR, a)
    load_b, stored_b = (B_COLUMN_MAJOR, b.T) if transposed_b else (B_ROW_MAJOR, b)
    in_registers_a = stored_a[load_a.elements()]
    in_registers_b = stored_b[load_b.elements()]
    zero = np.zeros((32, 4, 1))
    left = M16N8K16.multiply(in_registers_a, in_registers_b[:, :2], zero)
    right = M16N8K16.multiply(in_registers_a, in_registers_b[:, 2:], zero)
    product = np.hstack([M16N8K16.c.join(left), M16N8K16.c.join(right)])
    assert (product == a @ b).all()  # small integers: exact in float32


@pytest.mark.parametrize("mma", SHAPES, ids=str)
def test_multiply_is_a_matrix_product(mma: Mma) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.random((7, *fragment.shape), np.float32) for fragment in (mma.a, mma.b, mma.c))
    d = mma.c.join(mma.multiply(mma.a.split(a), mma.b.split(b), mma.c.split(c)))
    assert d.dtype == np.float32
    np.testing.assert_allclose(d, a @ b + c, rtol=1e-5)


# What it costs


@pytest.mark.parametrize(
    ("pitch_bytes", "wavefronts"),
    [(16 * odd, 4) for odd in (1, 3, 5, 7, 9, 11, 13, 15, 17)]
    + [(32, 8), (96, 8), (160, 8), (224, 8), (288, 8), (64, 16), (192, 16), (128, 32), (256, 32)],
)
def test_K_tc_3_CA_30_ldmatrix_is_free_exactly_on_odd_multiples_of_16_bytes(
    pitch_bytes: int, wavefronts: int
) -> None:
    address = 16 * A_ROW_MAJOR.chunk + pitch_bytes * A_ROW_MAJOR.row
    for name in ("ldmatrix.x4", "ldmatrix.x4.trans"):
        assert shared_cost(WarpAccess(name, tuple(address.tolist()))).wavefronts == wavefronts


@pytest.mark.parametrize(("n", "wavefronts", "ideal"), [(1, 4, 1), (2, 8, 2), (4, 16, 4)])
def test_K_tc_2_CA_35_more_matrices_are_more_phases_and_no_worse(n: int, wavefronts: int, ideal: int) -> None:
    access = WarpAccess.from_layout(f"ldmatrix.x{n}", padded(64, 32, 0), A_ROW_MAJOR.row, A_ROW_MAJOR.col, 2)
    cost = shared_cost(access)
    assert (cost.wavefronts, cost.ideal) == (wavefronts, ideal)


@pytest.mark.parametrize(("pitch_halves", "wavefronts"), [(32, 4), (34, 2), (36, 2), (40, 1)])
def test_K_tc_1_fragments_by_plain_loads(pitch_halves: int, wavefronts: int) -> None:
    fragment = M16N8K16.a
    for register in range(fragment.n_registers):
        access = WarpAccess.from_tile(
            "ld.shared.b32", fragment.row[:, register, 0], fragment.col[:, register, 0], pitch_halves, 2
        )
        assert shared_cost(access).wavefronts == wavefronts


def test_K_tc_11_dense_blocks_need_no_swizzle() -> None:
    tile = blocked(16, 16)
    access = WarpAccess.from_layout("ldmatrix.x4", tile, A_ROW_MAJOR.row, A_ROW_MAJOR.col, 2)
    assert shared_cost(access).wavefronts == 4
    fill = WarpAccess.from_formula("st.shared.b128", lambda lane: 16 * lane)
    assert shared_cost(fill).wavefronts == 4


# Bad input


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(InvalidLayout) as caught:
        M16N8K16.a.split(np.zeros((16, 8)))
    assert str(caught.value) == "m16n8k16 A: got a matrix of shape (16, 8). It takes (.., 16, 16)."
    with pytest.raises(InvalidLayout) as caught:
        M16N8K16.c.join(np.zeros((32, 4, 2)))
    assert str(caught.value) == (
        "m16n8k16 C: got register values of shape (32, 4, 2). It takes (.., 32, 4, 1):"
        " lanes, registers, elements per register."
    )
    with pytest.raises(InvalidLayout, match=r"MatrixMove x2: got rows of shape \(4, 8, 8\)"):
        MatrixMove(2).distribute(np.zeros((4, 8, 8)))
    with pytest.raises(InvalidLayout, match=r"It takes \(.., 32, 2, 2\)"):
        MatrixMove(2).collect(np.zeros((32, 4, 2)))


def test_elements_outside_the_matrix_have_no_owner() -> None:
    """A negative index would count from the end and name another lane."""
    for row, message in (
        (-1, r"coordinate -1 is outside 0\.\.15"),
        (16, "coordinate 16 is outside"),
        (1.5, "not an integer"),
    ):
        with pytest.raises(InvalidLayout, match=message):
            M16N8K16.a.owner(row, 0)


def test_lanes_that_point_nowhere_are_refused() -> None:
    with pytest.raises(
        InvalidLayout,
        match=r"MatrixMove x2: got values of shape \(8,\)\. Give 16, one per address lane, or 32",
    ):
        MatrixMove(2).elements(LANE[:8], LANE[:16])
    with pytest.raises(InvalidLayout, match="not an integer"):
        MatrixMove(2).elements(LANE / 2, LANE)


@pytest.mark.parametrize("n_matrices", [2.0, "2", None, True, 0])
def test_a_number_of_matrices_is_1_2_or_4(n_matrices: object) -> None:
    with pytest.raises(UnknownInstruction, match=rf"MatrixMove: {n_matrices!r} matrices"):
        MatrixMove(n_matrices)  # type: ignore[arg-type]
    with pytest.raises(UnknownInstruction, match="moves no matrices"):
        MatrixMove.from_name(n_matrices)  # type: ignore[arg-type]
