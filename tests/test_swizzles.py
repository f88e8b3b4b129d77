"""Swizzles: CuTe's formula, laws, tiles in every direction, and a second count by linear algebra."""

import inspect
import re
from collections.abc import Callable

import numpy as np
import pytest
import tensor_layouts as oracle
from hypothesis import assume, given
from hypothesis import strategies as st

from lanewise import WarpAccess, shared_cost
from lanewise.access import PerLane
from lanewise.errors import InvalidLayout, InvalidSwizzle
from lanewise.indexmap import IndexMap
from lanewise.layouts import Layout, padded, row_major
from lanewise.memory import shared_wavefronts
from lanewise.swizzles import RotationTile, Swizzle, SwizzledTile, XorTile, rotation_tile, xor_tile
from lanewise.tma import TMA_128B
from tests.strategies import permuted_tiles, swizzles

LANE = np.arange(32)


def wavefronts(tile: IndexMap, row: PerLane, col: PerLane, bits: int = 32, element_bytes: int = 4) -> int:
    """Of one load by a full warp."""
    access = WarpAccess.from_layout(f"ld.shared.b{bits}", tile, row, col, element_bytes)
    return shared_cost(access).wavefronts


# Laws


@given(swizzles(), st.lists(st.integers(0, 1 << 14), min_size=1))
def test_values_are_those_of_the_oracle_and_arrays_agree_with_ints(
    swizzle: Swizzle, offsets: list[int]
) -> None:
    reference = oracle.Swizzle(swizzle.bits, swizzle.base, swizzle.shift)
    assert (swizzle.mask_read, swizzle.mask_changed) == (reference.yyy_msk, reference.zzz_msk)
    assert [swizzle(x) for x in offsets] == [reference(x) for x in offsets]
    assert swizzle(np.array(offsets)).tolist() == [reference(x) for x in offsets]


@given(swizzles())
def test_a_swizzle_is_its_own_inverse_and_a_permutation_of_its_period(swizzle: Swizzle) -> None:
    x = np.arange(swizzle.period)
    y = swizzle(x)
    assert (swizzle(y) == x).all()
    assert sorted(y) == x.tolist()
    assert (swizzle(x + 3 * swizzle.period) == y + 3 * swizzle.period).all()


@given(swizzles())
def test_runs_of_two_to_the_base_move_together(swizzle: Swizzle) -> None:
    run = 1 << swizzle.base
    chunks = swizzle(np.arange(max(swizzle.period, run))).reshape(-1, run)
    assert (chunks == chunks[:, :1] + np.arange(run)).all()
    assert (chunks[:, 0] % run == 0).all()


@given(swizzles())
def test_a_swizzle_can_be_recognised_from_its_values(swizzle: Swizzle) -> None:
    found = Swizzle.from_map(swizzle(np.arange(swizzle.period)))
    assert found == swizzle or swizzle.bits == found.bits == 0


@given(swizzles(), st.integers(0, 4))
def test_units_change_the_numbers_and_not_the_movement(swizzle: Swizzle, log_bytes: int) -> None:
    unit = 1 << log_bytes
    in_bytes = swizzle.in_units_of(1, was=unit)
    assert in_bytes.in_units_of(unit) == swizzle
    elements = np.arange(swizzle.period)
    for byte in (0, unit - 1):
        assert (in_bytes(elements * unit + byte) == swizzle(elements) * unit + byte).all()


@given(swizzles())
def test_notation_and_repr_can_be_read_back(swizzle: Swizzle) -> None:
    assert Swizzle.from_string(str(swizzle)) == Swizzle.from_string(str(swizzle)[7:]) == swizzle
    assert eval(repr(swizzle)) == swizzle


def test_K_sw_7_one_movement_in_three_units() -> None:
    halves = Swizzle(3, 3, 3)
    assert halves.in_units_of(1, was=2) == Swizzle(3, 4, 3)
    assert halves.in_units_of(4, was=2) == Swizzle(3, 2, 3)
    # For 64 halves a row: 16-byte chunk ^= row & 7, checked for all 4,096 offsets.
    offset = np.arange(4096)
    row, chunk, within = offset // 64, offset // 8 % 8, offset % 8
    assert (halves(offset) == row * 64 + (chunk ^ row % 8) * 8 + within).all()


def test_the_picture_is_the_formula() -> None:
    assert Swizzle(3, 4, 3).picture() == (
        "Swizzle<3,4,3>: bits 7..9 flip bits 4..6\n"
        "bit    9    8    7    6    5    4    3    2    1    0\n"
        "y =   x9   x8   x7   x6   x5   x4   x3   x2   x1   x0\n"
        "                    ^x9  ^x8  ^x7"
    )
    bits = Swizzle(3, 4, 3).picture().split("\n", 1)[1]
    assert bits.replace("\n", "\n    ") in (inspect.getdoc(Swizzle) or "")
    assert Swizzle(0, 0, 0).picture().splitlines()[0] == "Swizzle<0,0,0>: nothing moves"


@given(swizzles())
def test_the_picture_names_every_flip(swizzle: Swizzle) -> None:
    bits, y, *flips = swizzle.picture().splitlines()[1:]
    drawn = {}
    for match in re.finditer(r"\^x(\d+)", flips[0] if flips else ""):
        drawn[int(bits[: match.end()].split()[-1])] = int(match[1])
    assert drawn == dict(zip(swizzle.bits_changed, swizzle.bits_read, strict=True))
    assert y.split()[2:] == [f"x{bit}" for bit in bits.split()[1:]]


# Tiles


@given(permuted_tiles())
def test_a_checked_tile_is_a_permutation_and_its_source_computes_it(tile: IndexMap) -> None:
    table = tile.table()
    assert sorted(table.ravel()) == list(range(table.size))
    assert tile.is_bijection
    assert not tile.defect()
    assert tile.allocated_elems == table.size
    namespace: dict = {}
    exec(tile.python("place"), namespace)
    row, col = np.indices(table.shape)
    assert (namespace["place"](row, col) == table).all()
    assert (np.asarray(tile(row, col)) == table).all()
    assert tile(0, 0) == table[0, 0]
    assert type(tile(0, 0)) is int


@given(permuted_tiles())
def test_a_tile_value_can_be_pasted(tile: IndexMap) -> None:
    assert eval(repr(tile)) == tile
    assert hash(tile) == hash(eval(repr(tile)))


@given(st.integers(0, 5), st.data())
def test_an_xor_tile_is_the_swizzle_it_claims(log_cols: int, data: st.DataObject) -> None:
    bits = data.draw(st.integers(0, log_cols))
    shift = data.draw(st.integers(0, log_cols - bits))
    tile = xor_tile(64, 1 << log_cols, (1 << bits) - 1, shift, data.draw(st.integers(0, 2)))
    assert (tile.as_swizzle().compose(row_major((64, 1 << log_cols))).table() == tile.table()).all()


def test_sources_compile_as_device_functions() -> None:
    numba = pytest.importorskip("numba")
    tiles = [
        padded(32, 32, 1),
        xor_tile(32, 32, 3, 3, 1),
        rotation_tile(32, 24, 8, 2),
        Swizzle(2, 3, 3).compose(row_major((64, 32))),
    ]
    for tile in tiles:
        namespace: dict = {}
        exec(tile.python("place"), namespace)
        place = numba.njit(namespace["place"])
        assert [place(row, 5) for row in range(32)] == [tile(row, 5) for row in range(32)]


DIRECTIONS = {
    "row": (0 * LANE, LANE),
    "column": (LANE, 0 * LANE),
    "diagonal": (LANE, LANE),
    "anti-diagonal": (LANE, 31 - LANE),
}


@pytest.mark.parametrize(
    ("tile", "expected"),
    [
        pytest.param(row_major((32, 32)), (1, 32, 1, 1), id="CA-19-pitch-32"),
        pytest.param(padded(32, 32, 1), (1, 1, 2, 32), id="CA-19-pitch-33"),
        pytest.param(xor_tile(32, 32), (1, 1, 32, 32), id="K-sw-1-CA-43-xor"),
        pytest.param(rotation_tile(32, 32), (1, 1, 2, 32), id="K-sw-2-CA-43-rotation"),
    ],
)
def test_no_simple_layout_is_free_in_every_direction(tile: IndexMap, expected: tuple[int, ...]) -> None:
    assert tuple(wavefronts(tile, *direction) for direction in DIRECTIONS.values()) == expected


@pytest.mark.parametrize(("n_bits", "expected"), list(enumerate([32, 16, 8, 4, 2, 1])))
def test_K_sw_3_CA_43_C02_each_xor_bit_halves_the_conflict(n_bits: int, expected: int) -> None:
    by_hand = xor_tile(32, 32, mask=(1 << n_bits) - 1)
    swizzled = Swizzle(n_bits, 0, 5).compose(row_major((32, 32)))
    assert (by_hand.table() == swizzled.table()).all()
    assert [wavefronts(by_hand, LANE, col) for col in range(32)] == [expected] * 32


def test_K_sw_4_C06_xor_frees_the_16x16_tile_in_both_directions() -> None:
    thread = np.arange(256).reshape(8, 32)
    for tile, expected in (
        (xor_tile(16, 16), (1, 1)),
        (row_major((16, 16)), (1, 8)),
        (padded(16, 16, 1), (2, 2)),
    ):
        store = shared_wavefronts("st.shared.b32", 4 * tile(thread // 16, thread % 16))[0]
        read = shared_wavefronts("ld.shared.b32", 4 * tile(thread % 16, thread // 16))[0]
        assert (set(store), set(read)) == ({expected[0]}, {expected[1]})


@pytest.mark.parametrize(("n_bits", "expected"), list(enumerate([32, 16, 8, 4, 2])))
def test_K_sw_5_CA_44_doubles_need_four_xor_bits(n_bits: int, expected: int) -> None:
    tile = xor_tile(32, 16, mask=(1 << n_bits) - 1)
    assert [wavefronts(tile, LANE, col, 64, 8) for col in range(16)] == [expected] * 16
    assert wavefronts(tile, LANE // 16, LANE % 16, 64, 8) == 2


@pytest.mark.parametrize(("n_bits", "expected"), list(enumerate([32, 16, 8, 4])))
def test_CA_45_sixteen_byte_accesses_need_three_xor_bits(n_bits: int, expected: int) -> None:
    tile = xor_tile(32, 32, mask=(1 << n_bits) - 1, shift=2)
    assert [wavefronts(tile, LANE, col, 128) for col in range(0, 32, 4)] == [expected] * 8


def test_CA_45_K_sw_8_a_fourth_bit_leaves_the_row() -> None:
    with pytest.raises(InvalidSwizzle, match=r"\(15, 28\) and \(16, 0\) both land on element 512"):
        xor_tile(32, 32, mask=15, shift=2)


def test_K_sw_6_float4_tile() -> None:
    tile = xor_tile(32, 32, mask=7, shift=2)
    assert wavefronts(tile, LANE, 0, 128) == 4
    assert wavefronts(tile, LANE // 8, LANE % 8 * 4, 128) == 4
    assert wavefronts(tile, LANE, 0) == 4


@pytest.mark.parametrize(
    ("rows", "cols", "mask", "shift"),
    [(32, 24, 7, 2), (32, 33, 31, 0), (32, 40, 7, 2), (32, 48, 31, 0), (32, 32, 7, 3), (32, 16, 31, 0)],
)
def test_CA_40_K_sw_8_an_xor_wider_than_the_row_destroys_data(
    rows: int, cols: int, mask: int, shift: int
) -> None:
    broken = XorTile(rows, cols, mask, shift)
    assert not broken.is_bijection
    assert broken.defect()
    with pytest.raises(InvalidSwizzle, match="so the width must be a multiple of"):
        xor_tile(rows, cols, mask, shift)


def test_CA_40_the_message_names_the_colliding_elements() -> None:
    with pytest.raises(InvalidSwizzle) as caught:
        xor_tile(32, 24, mask=7, shift=2)
    assert str(caught.value) == (
        "xor_tile: 32x24 tile with (col ^ ((row & 7) << 2)): (2, 16) and (3, 12) both land on element 72."
        " The XOR shuffles groups of 32 columns, so the width must be a multiple of 32:"
        " narrow the mask, widen the row, or use rotation_tile."
    )
    # The position (2, 16) moves to is that of (3, 0) in the plain tile.
    assert XorTile(32, 24, 7, 2)(2, 16) == row_major((32, 24))(3, 0)


def test_CA_40_one_row_that_leaves_the_tile_is_reported_as_such() -> None:
    # The last row alone spills past the end; nothing else lands there.
    assert XorTile(2, 3, mask=1, shift=1).defect() == "(1, 1) lands on element 6, outside the 6 allocated"


@pytest.mark.parametrize(
    ("combine", "n_addresses", "rows_at_start"),
    [("+", 48, (0, 16, 32, 48, 64, 80, 96, 112)), ("|", 64, None), ("^", 16, (0, 0, 0, 0, 64, 64, 64, 64))],
    ids=["plus", "or", "xor"],
)
def test_K_sw_8_CA_37_no_reading_of_the_8x8_formula_swizzles(
    combine: str, n_addresses: int, rows_at_start: tuple[int, ...] | None
) -> None:
    row, col = np.indices((8, 8))
    moved = (col ^ (row % 4 << 3)) << 1
    address = {"+": (row << 4) + moved, "|": (row << 4) | moved, "^": (row << 4) ^ moved}[combine]
    assert len(np.unique(address)) == n_addresses
    if combine == "|":
        assert (address == (row << 4) + (col << 1)).all()
    if combine == "^":
        assert tuple(address.min(axis=1)) == rows_at_start


def test_C15_the_shift_must_match_the_pitch() -> None:
    k = np.repeat(
        np.arange(8)[None, :], 4, axis=0
    ).ravel()  # one matrix, its 8 rows at k = 0..7, 256 bytes apart
    degrees = []
    for swizzle in (Swizzle(0, 3, 3), Swizzle(3, 3, 3), Swizzle(3, 3, 4)):
        count, ideal = shared_wavefronts("ldmatrix.x1.trans", 2 * np.asarray(swizzle(128 * k))[None, :])
        degrees.append(int(count[0] // ideal[0]))
    assert degrees == [8, 2, 1]


# A second count: linear algebra over bits


def rank_over_bits(vectors: list[int]) -> int:
    """Dimension of what the vectors span, bits being coordinates and XOR the sum."""
    basis: list[int] = []
    for vector in vectors:
        for reduced in basis:
            vector = min(vector, vector ^ reduced)
        if vector:
            basis.append(vector)
    return len(basis)


def linear_wavefronts(lane_images: list[int], words_per_lane: int) -> int:
    """Wavefronts of a store whose lane bit `i` XORs word `lane_images[i]` into the address.

    The words of one phase form a space; those in one bank are a coset of its intersection with "all five bank bits
    are 0". So a bank holds 2**dim(intersection) of them, and 2**dim - 1 wavefronts are conflicts.
    """
    lane_bits = 5 - (words_per_lane.bit_length() - 1)  # lanes of one phase
    words = lane_images[:lane_bits] + [1 << bit for bit in range(words_per_lane.bit_length() - 1)]
    intersection = rank_over_bits(words) - rank_over_bits([word % 32 for word in words])
    return 2**intersection * words_per_lane


@given(
    st.sampled_from([1, 2, 4]),
    st.lists(st.integers(0, 255), min_size=5, max_size=5),
    swizzles(10),
)
def test_stores_on_linear_patterns_cost_what_linear_layouts_say(
    words_per_lane: int, images: list[int], swizzle: Swizzle
) -> None:
    assume(swizzle.base >= words_per_lane.bit_length() - 1 or not swizzle.bits)  # whole vectors move
    images = [image * words_per_lane for image in images]
    address = np.zeros(32, dtype=np.int64)
    for bit, image in enumerate(images):
        address ^= np.where(LANE >> bit & 1, image, 0)
    stored = 4 * np.asarray(swizzle(address))
    count, _ = shared_wavefronts(f"st.shared.b{32 * words_per_lane}", stored[None, :])
    assert count[0] == linear_wavefronts([swizzle(image) for image in images], words_per_lane)


# Bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ((3, 4, 2), "Swizzle<3,4,2>: with |shift| < bits it would change bits that it reads, and would not undo itself."
                    " Use a shift of at least 3, or fewer bits."),
        ((-1, 4, 3), "Swizzle<-1,4,3>: bits and base count bits. Use 0 or more; only shift may be negative."),
        ((3, -4, 3), "Swizzle<3,-4,3>: bits and base count bits. Use 0 or more; only shift may be negative."),
        ((3.0, 4, 3), "Swizzle<3.0,4,3>: bits is 3.0. Use an int."),
        ((True, 4, 3), "Swizzle<True,4,3>: bits is True. Use an int."),
        ((3, 58, 3), "Swizzle<3,58,3>: reaches beyond bit 62, the last of an offset. Use a smaller base or shift."),
        ((3, 4, -2**70), "Swizzle<3,4,-1180591620717411303424>: reaches beyond bit 62, the last of an offset."
                         " Use a smaller base or shift."),
    ],
)  # fmt: skip
def test_impossible_parameters_are_refused(parameters: tuple, message: str) -> None:
    with pytest.raises(InvalidSwizzle) as caught:
        Swizzle(*parameters)
    assert str(caught.value) == message


def test_bad_offsets_and_units_are_refused() -> None:
    assert Swizzle(3, 57, 3)(2**60) == 2**60 + 2**57
    for offset in (-1, 1.5, np.array([0, -4]), 2**63, 2**70, np.array([2**63], np.uint64), "1"):
        with pytest.raises(InvalidSwizzle, match="is not an integer of 0 or more"):
            Swizzle(3, 4, 3)(offset)
    with pytest.raises(InvalidSwizzle) as caught:
        Swizzle(3, 1, 3).in_units_of(4)
    assert str(caught.value) == (
        "Swizzle<3,1,3> moves pieces of 2 bytes, which tears units of 4 bytes."
        " Use a base of at least 2, or smaller units."
    )
    with pytest.raises(InvalidSwizzle, match="unit_bytes is 12 bytes"):
        Swizzle(3, 4, 3).in_units_of(12)
    assert Swizzle(0, 0, 0).in_units_of(16) == Swizzle(0, 0, 0)


def test_maps_that_are_no_swizzle_are_refused() -> None:
    base_128 = TMA_128B.address(128, np.arange(8)[:, None], np.arange(0, 128, 16)) - 128
    for moved in ([0, 2, 1, 3], [1, 0], (base_128.ravel() // 16).tolist(), [0, 1, 3, 2, 4, 5, 6, 7]):
        with pytest.raises(InvalidSwizzle, match="no Swizzle<B,M,S> makes this map"):
            Swizzle.from_map(moved)
    for junk in ([], [[0, 1]], [0.0, 1.0], [[0], [1, 2]], None, 3):
        with pytest.raises(InvalidSwizzle, match="from_map needs a row of integers"):
            Swizzle.from_map(junk)


@pytest.mark.parametrize(
    "text",
    ["", "Swizzle", "3,4", "Swizzle<3,4,3,2>", "Swizzle<a,b,c>", "<3,4,3", "3,4,3>", "<٣,4,3>", None, 3],
)
def test_unreadable_notation_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidSwizzle, match="'Swizzle<3,4,3>'"):
        Swizzle.from_string(text)


def test_tiles_check_their_parameters_and_coordinates() -> None:
    with pytest.raises(
        InvalidSwizzle, match=r"XorTile: rows: got 0; give a whole number from 1 to 16,777,216"
    ):
        xor_tile(0, 32)
    with pytest.raises(InvalidSwizzle, match="RotationTile: unit: got 0"):
        rotation_tile(32, 32, unit=0)
    with pytest.raises(InvalidSwizzle, match="pieces of 8 columns do not divide a row of 36"):
        rotation_tile(32, 36, unit=8)
    with pytest.raises(InvalidSwizzle, match="no Swizzle<B,M,S> does this"):
        xor_tile(32, 48, mask=5).as_swizzle()
    for tile in (xor_tile(4, 8), rotation_tile(4, 8), SwizzledTile(Swizzle(2, 0, 3), row_major((4, 8)))):
        with pytest.raises(InvalidLayout, match=r"coordinate 8 is outside 0\.\.7"):
            tile(0, 8)
        with pytest.raises(InvalidLayout, match="is not an integer"):
            tile(0.5, 0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: xor_tile(8, 8, mask=1.5), InvalidSwizzle, "XorTile: mask: got 1.5; give a whole number from 0"),  # type: ignore[arg-type]
        (lambda: xor_tile(8, 8, shift=-1), InvalidSwizzle, "XorTile: shift: got -1; give a whole number from 0 to 25."),
        (lambda: xor_tile(8, "8"), InvalidSwizzle, "XorTile: cols: got '8'; give a whole number from 1"),  # type: ignore[arg-type]
        (lambda: XorTile(8, 8, True), InvalidSwizzle, "XorTile: mask: got True;"),
        (lambda: RotationTile(8, 8, 1, 0), InvalidSwizzle, "RotationTile: rows_per_step: got 0;"),
        (lambda: rotation_tile(8, 8.0), InvalidSwizzle, "RotationTile: cols: got 8.0;"),  # type: ignore[arg-type]
        (lambda: rotation_tile(2**20, 2**20).table(), InvalidLayout, "at most 16,777,216 are listed one by one"),
        (lambda: xor_tile(8, 8)(3), InvalidLayout, "8x8 tile with (col ^ (row & 7)): got 1 coordinates."),
        (lambda: xor_tile(8, 8).python("1st"), InvalidLayout, "'1st' cannot name a function"),
        (lambda: Swizzle(3, 4, 3).compose(8), InvalidSwizzle, "SwizzledTile: got Swizzle(3, 4, 3) and 8; it takes a Swizzle"),  # type: ignore[arg-type]
        (lambda: Swizzle(3, 4, 3).in_units_of(2.0), InvalidSwizzle, "unit_bytes is 2.0 bytes."),  # type: ignore[arg-type]
        (lambda: Swizzle(3, 4, 3).in_units_of(None), InvalidSwizzle, "unit_bytes is None bytes."),  # type: ignore[arg-type]
    ],
)  # fmt: skip
def test_what_is_no_number_or_no_layout_is_named(
    call: Callable, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_numpy_integers_give_the_same_tiles() -> None:
    assert xor_tile(np.int8(8), np.int8(8), np.uint8(3), np.int64(1)) == xor_tile(8, 8, 3, 1)  # type: ignore[arg-type]
    assert rotation_tile(np.int8(100), np.int8(100))(np.int8(99), np.int8(99)) == 99 * 100 + 98  # type: ignore[arg-type]


def test_default_masks_are_the_widest_that_fit() -> None:
    assert xor_tile(32, 32).mask == 31
    assert xor_tile(32, 24).mask == 7
    assert xor_tile(32, 32, shift=2).mask == 7
    assert xor_tile(32, 33).mask == 0


def test_a_swizzle_may_leave_a_padded_tile_and_is_found_out() -> None:
    tile = Swizzle(1, 0, 3).compose(Layout((3, 3), (3, 1)))
    assert tile.defect() == "(2, 2) lands on element 9, outside the 9 allocated"
    assert str(tile) == "Swizzle<1,0,3> o (3,3):(3,1)"
    assert str(RotationTile(4, 8, 2, 2)) == "4x8 tile with (col + row // 2 * 2) % 8"
