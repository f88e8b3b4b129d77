"""Layouts: a slow oracle, the algebra of tensor-layouts, laws, and the arithmetic of padding."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from math import gcd

import numpy as np
import pytest
import tensor_layouts as oracle
from hypothesis import given
from hypothesis import strategies as st

from lanewise import WarpAccess, shared_cost
from lanewise.errors import InvalidLayout
from lanewise.inttuples import IntTuple, canonical, leaves
from lanewise.layouts import Layout, blocked, column_major, odd_pitch_pad, padded, row_major
from tests.strategies import dense_layouts, layouts


def theirs(layout: Layout) -> oracle.Layout:
    return oracle.Layout(layout.shape, layout.stride)


def all_values(layout: Layout) -> list[int]:
    """Indices in colexicographic order, by counting through the leaves."""
    digits = [range(extent) for extent, _ in layout.leaves]
    colex = [tuple(reversed(c)) for c in itertools.product(*reversed(digits))]
    return [sum(d * step for d, (_, step) in zip(c, layout.leaves, strict=True)) for c in colex]


def assert_same_function(layout: Layout, other: oracle.Layout) -> None:
    assert layout.size == oracle.size(other)
    assert all_values(layout) == [other(i) for i in range(layout.size)]


# Calls


@given(layouts())
def test_a_linear_index_runs_through_the_first_mode_fastest(layout: Layout) -> None:
    expected = all_values(layout)
    assert layout(np.arange(layout.size)).tolist() == expected
    assert [layout(i) for i in range(layout.size)] == expected
    assert layout.table().ravel(order="F").tolist() == expected
    assert_same_function(layout, theirs(layout))


@given(layouts(), st.data())
def test_any_nesting_of_a_coordinate_gives_the_same_index(layout: Layout, data: st.DataObject) -> None:
    full = oracle.idx2crd(data.draw(st.integers(0, layout.size - 1)), layout.shape)
    per_mode = full if isinstance(full, tuple) else (full,)
    linear_per_mode = tuple(
        c if isinstance(c, int) else oracle.crd2flat(c, mode.shape)
        for c, mode in zip(per_mode, layout.modes, strict=True)
    )
    expected = theirs(layout)(full)
    assert layout(full) == layout(*per_mode) == layout(*linear_per_mode) == expected
    assert layout.table()[linear_per_mode] == expected


def test_a_call_with_ints_gives_an_int_and_with_arrays_broadcasts() -> None:
    tile = row_major((4, 8))
    assert type(tile(1, 2)) is int
    assert type(tile(np.int64(1), np.int8(2))) is int
    assert tile(np.arange(4)[:, None], np.arange(8)).tolist() == np.arange(32).reshape(4, 8).tolist()
    assert tile([0, 1], 3).tolist() == [3, 11]


# Numbers of a layout


@given(layouts())
def test_size_and_cosize_bound_the_image(layout: Layout) -> None:
    values = all_values(layout)
    assert layout.size == len(values)
    assert layout.cosize == max(values) + 1 == oracle.cosize(theirs(layout))
    assert layout.allocated_elems >= layout.cosize
    assert layout.rank == len(layout.modes)


@given(layouts())
def test_injective_means_no_value_twice_and_a_collision_names_two_coordinates(layout: Layout) -> None:
    values = all_values(layout)
    assert layout.is_injective == (len(set(values)) == len(values))
    assert layout.is_bijection == (sorted(values) == list(range(len(values))))
    twins = layout.collision()
    if twins:
        first, second, index = twins
        assert first != second
        assert layout(first) == layout(second) == index
    else:
        assert layout.is_injective
    assert bool(layout.defect()) != layout.is_injective


@given(layouts(), st.data())
def test_coordinates_at_is_the_preimage(layout: Layout, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, layout.cosize))
    found = layout.coordinates_at(index)
    assert len(found) == all_values(layout).count(index)
    assert all(layout(coordinate) == index for coordinate in found)


@pytest.mark.parametrize(
    ("layout", "element_bytes", "n_bytes"),
    [
        (row_major((128, 128)), 4, 65_536),
        (padded(128, 128, 1), 4, 66_048),  # CA-21: not "about 66 KB" but 64.5 KiB
        (padded(128, 128, 4), 4, 67_584),
        (padded(32, 32, 1), 4, 4_224),
        (column_major((32, 33)), 4, 4_224),
        (blocked(64, 32), 2, 4_096),
        (Layout(32, 2), 4, 256),
        (Layout((4, 8), (0, 1)), 4, 32),
    ],
)
def test_bytes_count_the_pad_of_the_last_row_too(layout: Layout, element_bytes: int, n_bytes: int) -> None:
    assert layout.n_bytes(element_bytes) == n_bytes


# Algebra


@given(layouts())
def test_coalesce_keeps_the_function_and_equals_the_oracle(layout: Layout) -> None:
    merged = layout.coalesce()
    assert all_values(merged) == all_values(layout)
    assert merged == merged.coalesce()
    reference = oracle.coalesce(theirs(layout))
    assert (merged.shape, merged.stride) == (canonical("", reference.shape), canonical("", reference.stride))


@given(layouts(), layouts(max_extent=4, max_stride=12))
def test_compose_is_one_function_after_the_other_wherever_strides_can_say_it(
    outer: Layout, inner: Layout
) -> None:
    if inner.cosize > outer.size:
        with pytest.raises(InvalidLayout, match="reaches index"):
            outer.compose(inner)
        return
    expected = [outer(i) for i in all_values(inner)]
    try:
        composed = outer.compose(inner)
    except InvalidLayout:
        # Then the oracle finds nothing either, or something that is not the composition.
        try:
            reference = oracle.compose(theirs(outer), theirs(inner))
        except oracle.LayoutError:
            return
        assert [reference(i) for i in range(oracle.size(reference))] != expected
    else:
        assert all_values(composed) == expected
        assert [mode.size for mode in composed.modes] == [
            mode.size for mode in inner.modes
        ] or inner.rank == 1


@given(dense_layouts(), st.data())
def test_compose_equals_the_oracle_on_tiles_of_divisible_extents(outer: Layout, data: st.DataObject) -> None:
    extent = data.draw(st.sampled_from([d for d in range(1, outer.size + 1) if outer.size % d == 0]))
    rest = outer.size // extent
    inner = Layout((extent, rest), (rest, 1)) if data.draw(st.booleans()) else column_major((extent, rest))
    try:
        reference = oracle.compose(theirs(outer), theirs(inner))
    except oracle.LayoutError:
        return
    composed = outer.compose(inner)
    assert_same_function(composed, reference)
    # One spelling of an extent of 1: the oracle keeps strides that never count.
    extents = [extent for extent in leaves(composed.shape) if extent > 1]
    assert extents == [extent for extent in leaves(canonical("", reference.shape)) if extent > 1]


@given(dense_layouts())
def test_inverse_undoes_the_layout(layout: Layout) -> None:
    inverse = layout.inverse()
    assert [inverse(i) for i in all_values(layout)] == list(range(layout.size))
    assert str(inverse.compose(layout).coalesce()) in (f"{layout.size}:1", "1:0")
    assert_same_function(inverse, oracle.left_inverse(theirs(layout)))


@given(layouts())
def test_inverse_exists_exactly_for_bijections(layout: Layout) -> None:
    if layout.is_bijection:
        assert layout.inverse()(layout.size - 1 and all_values(layout)[-1]) == layout.size - 1
    else:
        with pytest.raises(InvalidLayout, match="has no inverse"):
            layout.inverse()


# Notation


@given(layouts())
def test_notation_and_repr_can_be_read_back(layout: Layout) -> None:
    assert Layout.from_string(str(layout)) == layout
    assert eval(repr(layout)) == layout
    assert hash(eval(repr(layout))) == hash(layout)


def test_notation_is_the_fields() -> None:
    assert str(Layout(((2, 2), 8), ((1, 16), 2))) == "((2,2),8):((1,16),2)"
    assert str(Layout([4], [1])) == "4:1"  # type: ignore[arg-type]
    assert Layout.from_string(" ( _4 , _8 ) : (_8,_1)") == row_major((4, 8))
    assert repr(row_major((4, 8))) == "Layout((4, 8), (8, 1))"


@given(layouts())
def test_the_python_source_computes_the_same_index(layout: Layout) -> None:
    namespace: dict = {}
    exec(layout.python("place"), namespace)
    for coordinate in np.ndindex(layout.table().shape):
        assert namespace["place"](*coordinate) == layout.table()[coordinate]


# Constructors


@given(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)))
def test_row_and_column_major_agree_with_numpy(shape: tuple[int, int, int]) -> None:
    numbers = np.arange(np.prod(shape))
    assert (row_major(shape).table() == numbers.reshape(shape)).all()
    assert (column_major(shape).table() == numbers.reshape(shape, order="F")).all()


def test_blocks_lie_one_after_the_other() -> None:
    tile = blocked(16, 32, 8, 8)
    assert tile.is_bijection
    expected = np.arange(512).reshape(2, 4, 8, 8).transpose(0, 2, 1, 3).reshape(16, 32)
    assert (tile.table() == expected).all()


@given(
    st.integers(1, 200), st.sampled_from([(1, 4), (2, 4), (2, 8), (2, 16), (4, 4), (4, 8), (4, 16), (8, 8)])
)
def test_odd_pitch_pad_is_the_smallest_that_makes_the_pitch_odd(cols: int, widths: tuple[int, int]) -> None:
    element_bytes, access_bytes = widths

    def is_odd_multiple(pad: int) -> bool:
        pitch = (cols + pad) * element_bytes
        return pitch % access_bytes == 0 and pitch // access_bytes % 2 == 1

    assert odd_pitch_pad(cols, element_bytes, access_bytes) == next(
        filter(is_odd_multiple, itertools.count())
    )


# What padding buys: predictions of the claims audit


def column_degree(layout: Layout, access_bits: int = 32, element_bytes: int = 4) -> int:
    access = WarpAccess.from_layout(f"ld.shared.b{access_bits}", layout, np.arange(32), 0, element_bytes)
    return shared_cost(access).wavefronts


@pytest.mark.parametrize(
    ("width", "degree"), [(33, 1), (35, 1), (34, 2), (66, 2), (36, 4), (40, 8), (48, 16), (64, 32), (32, 32)]
)
def test_CA_10_only_odd_widths_are_free(width: int, degree: int) -> None:
    assert column_degree(padded(32, width, 0)) == degree == gcd(width, 32)


@pytest.mark.parametrize(("pitch_bytes", "wavefronts"), [(128, 32), (144, 4), (160, 8), (192, 16), (176, 4)])
def test_CA_24_C10_the_pitch_must_be_an_odd_multiple_of_the_access(pitch_bytes: int, wavefronts: int) -> None:
    assert column_degree(padded(32, pitch_bytes // 4, 0), access_bits=128) == wavefronts


@pytest.mark.parametrize(("width", "degree"), [(64, 32), (65, 1), (66, 2), (68, 4)])
def test_C10_a_pad_for_one_width_is_wrong_for_another(width: int, degree: int) -> None:
    assert column_degree(padded(32, width, 0)) == degree


@pytest.mark.parametrize(("stride", "degree"), [(16, 16), (32, 32), (64, 32), (33, 1)])
def test_C02_column_walks(stride: int, degree: int) -> None:
    assert column_degree(padded(32, stride, 0)) == degree


@pytest.mark.parametrize(
    ("pitch", "diagonal", "anti_diagonal"), [(32, 1, 1), (33, 2, 32)], ids=["pitch 32", "pitch 33"]
)
def test_CA_19_a_pad_for_columns_breaks_diagonals(pitch: int, diagonal: int, anti_diagonal: int) -> None:
    tile, lane = padded(32, 32, pitch - 32), np.arange(32)
    for col, expected in ((lane, diagonal), (31 - lane, anti_diagonal)):
        cost = shared_cost(WarpAccess.from_layout("ld.shared.b32", tile, lane, col))
        assert cost.wavefronts == expected


# Bad input


@pytest.mark.parametrize(
    ("shape", "stride", "message"),
    [
        ((4, 8), (8,), "Layout: shape (4, 8) needs 2 strides, got (8,). Try Layout((4, 8), (8, 1))."),
        (4, (1, 2), "Layout: shape 4 needs 1 stride, got (1, 2). Try Layout(4, 1)."),
        (
            ((2, 2), 8),
            (1, 2, 4),
            "Layout: shape ((2, 2), 8) needs 3 strides nested in the same way, got (1, 2, 4)."
            " Try Layout(((2, 2), 8), ((16, 8), 1)).",
        ),
        ((4, 0), (1, 1), "Layout: shape (4, 0) has an extent below 1. Leave an empty mode out."),
        ((4, ()), (1, 1), "Layout: shape has an empty tuple. Give each mode an int or a tuple of ints."),
        ((4, 8.0), (8, 1), "Layout: shape holds 8.0. Use ints and tuples of ints."),
        ((4, True), (8, 1), "Layout: shape holds True. Use ints and tuples of ints."),
        (
            (4, 8),
            (-8, 1),
            "Layout: stride (-8, 1) is negative somewhere; indices count from the tile's start."
            " Use strides of 0 or more and reverse the coordinate before the call.",
        ),
    ],
)
def test_a_layout_says_what_it_needs(shape: IntTuple, stride: IntTuple, message: str) -> None:
    with pytest.raises(InvalidLayout) as caught:
        Layout(shape, stride)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("coordinate", "message"),
    [
        ((4, 0), "(4,8):(8,1): coordinate 4 is outside 0..3."),
        ((np.array([0, 1]), np.array([7, 8])), "(4,8):(8,1): coordinate 8 is outside 0..7."),
        ((32,), "(4,8):(8,1): coordinate 32 is outside 0..31."),
        ((-1,), "(4,8):(8,1): coordinate -1 is outside 0..31."),
        ((0, 1.5), "(4,8):(8,1): coordinate 1.5 is not an integer."),
        ((0, 1, 2), "(4,8):(8,1): coordinate (0, 1, 2) has 3 parts, this layout 2."),
    ],
)
def test_a_coordinate_off_the_tile_is_named(coordinate: tuple, message: str) -> None:
    with pytest.raises(InvalidLayout) as caught:
        row_major((4, 8))(*coordinate)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "text", ["", "(4,8)", "4:1:2", "(4,8:(8,1)", "4(8):(8,1)", "__import__:1", "(4,,8):(1,4)"]
)
def test_unreadable_notation_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidLayout, match=r"\(4,8\):\(8,1\)"):
        Layout.from_string(text)


def test_what_has_no_inverse_says_why() -> None:
    with pytest.raises(InvalidLayout) as caught:
        Layout((4, 8), (1, 2)).inverse()
    assert "(0, 1) and (2, 0) share element 2" in str(caught.value)
    with pytest.raises(InvalidLayout) as caught:
        padded(4, 8, 1).inverse()
    assert "3 of its 35 indices hold no element, the first is 8. Use coordinates_at" in str(caught.value)


def test_what_cannot_be_composed_says_why() -> None:
    with pytest.raises(InvalidLayout) as caught:
        padded(4, 8, 1).compose(Layout(8, 5))
    assert "reaches index 35 of 32 elements" in str(caught.value)
    with pytest.raises(InvalidLayout) as caught:
        row_major((4, 8)).compose(Layout(3, 3))
    assert "after the mode 3:3, which lands on 0, 24, 17" in str(caught.value)
    with pytest.raises(InvalidLayout) as caught:
        row_major((4, 8)).compose(Layout((2, 2), (2, 2)))
    assert "linear coordinate 3 lands on 1, but its modes add up to 32" in str(caught.value)


def test_pads_and_blocks_are_checked() -> None:
    with pytest.raises(InvalidLayout, match=r"padded: pad: got -1; give a whole number of 0 or more"):
        padded(4, 8, -1)
    with pytest.raises(InvalidLayout, match="12x8 tile does not divide into 8x8 blocks"):
        blocked(12, 8)
    with pytest.raises(InvalidLayout, match="2 bytes are no whole number of 4-byte elements"):
        odd_pitch_pad(32, element_bytes=4, access_bytes=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: padded(4, "8", 1), "padded: cols: got '8'; give a whole number of 1 or more."),  # type: ignore[arg-type]
        (lambda: padded(0, 8, 1), "padded: rows: got 0; give a whole number of 1 or more."),
        (lambda: padded(4, 8, True), "padded: pad: got True; give a whole number of 0 or more."),
        (lambda: blocked(8, 8, 0), "blocked: block_rows: got 0; give a whole number of 1 or more."),
        (lambda: blocked(8.0, 8), "blocked: rows: got 8.0;"),  # type: ignore[arg-type]
        (lambda: odd_pitch_pad(1.5), "odd_pitch_pad: cols: got 1.5;"),  # type: ignore[arg-type]
        (lambda: odd_pitch_pad(8, 0), "odd_pitch_pad: element_bytes: got 0;"),
        (lambda: row_major((4, 8)).n_bytes(2.0), "(4,8):(8,1): element_bytes: got 2.0;"),  # type: ignore[arg-type]
        (lambda: row_major((4, 8)).coordinates_at(-1), "(4,8):(8,1): index: got -1; give a whole number of 0 or more."),
        (lambda: row_major((4, 8)).coordinates_at(2**70), "(4,8):(8,1): index: got 1180591620717411303424; give a whole"
                                                          " number from 0 to 9,223,372,036,854,775,807."),
        (lambda: row_major((4, 8)).python("def"), "(4,8):(8,1): 'def' cannot name a function. Use a Python name"),
        (lambda: row_major((4, 8)).compose((4, 8)), "Layout: compose got (4, 8); it takes a Layout."),  # type: ignore[arg-type]
        (lambda: Layout.join(Layout(4, 1), 3), "Layout: join got 3; it takes a Layout."),  # type: ignore[arg-type]
        (lambda: row_major((4, 8))([0, [1]], 0), "(4,8):(8,1): coordinates [0, [1]] are of different lengths."),
        (lambda: Layout.from_string(None), "Layout: cannot read None. Write shape:stride"),  # type: ignore[arg-type]
        (lambda: Layout.from_string("(" * 5000 + ":1"), "Layout: parentheses or commas of"),
        (lambda: Layout.from_string("٣:1"), "Layout: cannot read '٣:1'."),
    ],
)  # fmt: skip
def test_what_is_no_number_or_no_layout_is_named(call: Callable, message: str) -> None:
    with pytest.raises(InvalidLayout) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_indices_that_an_int64_cannot_hold_are_refused_and_the_largest_are_exact() -> None:
    assert Layout((3, 8), (2**60, 1))(2, 7) == 2**61 + 7
    for shape, stride in (((4, 8), (2**62, 1)), (4, 2**70), (2**70, 0)):
        with pytest.raises(InvalidLayout, match=r"at most 9223372036854775807 are counted, an int64"):
            Layout(shape, stride)


def test_what_would_fill_the_memory_is_not_listed() -> None:
    matrix = row_major((2**20, 2**20))
    assert matrix(3, 5) == 3 * 2**20 + 5
    for listing in (
        matrix.table,
        matrix.collision,
        matrix.defect,
        matrix.inverse,
        lambda: matrix.coordinates_at(0),
    ):
        with pytest.raises(
            InvalidLayout, match=r"has 1,099,511,627,776 elements; at most 16,777,216 are listed"
        ):
            listing()
    with pytest.raises(InvalidLayout, match="at most 16,777,216 are listed"):
        matrix.compose(column_major((2**20, 2**20)))
