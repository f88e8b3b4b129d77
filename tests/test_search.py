"""The layout search: predictions of the claims audit, a slow second count, laws of the ranking, the report."""

from __future__ import annotations

from math import gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise import WarpAccess, shared_cost
from lanewise.errors import InvalidAccess, InvalidLayout, Misaligned, UnknownInstruction
from lanewise.fragments import A_ROW_MAJOR, B_ROW_MAJOR, OperandLoad
from lanewise.indexmap import IndexMap
from lanewise.layouts import Layout, blocked, padded, row_major
from lanewise.search import (
    Candidate,
    LayoutSearch,
    TileAccess,
    TileShape,
    along_rows,
    down_columns,
    matrix_loads,
    search_layouts,
    try_layout,
)
from lanewise.search.accesses import Pattern, resolve
from lanewise.swizzles import Swizzle, XorTile, rotation_tile, xor_tile

FILL = along_rows("st.shared.b128", "fill")
TRANSPOSE = [along_rows("st.shared.b32", "store"), down_columns("ld.shared.b32", "load")]


def tried(layout: IndexMap, rows: int, cols: int, element_bytes: int, *patterns: Pattern) -> Candidate:
    tile = TileShape(rows, cols, element_bytes)
    return try_layout("tried", layout, tile, [resolve(pattern, tile) for pattern in patterns])


def counted(layout: IndexMap, rows: int, cols: int, element_bytes: int, *patterns: Pattern) -> list[str]:
    return [str(count) for count in tried(layout, rows, cols, element_bytes, *patterns).counts]


def half_tile(layout: IndexMap, rows: int, cols: int, load: OperandLoad = A_ROW_MAJOR) -> list[str]:
    """A tile of halves, filled by rows of 16 bytes and read by ldmatrix.x4: read first, as in the predictions."""
    fill, read = counted(layout, rows, cols, 2, FILL, matrix_loads(load, "read"))
    return [read, fill]


def swizzled(bits: int, base: int, shift: int, rows: int, cols: int) -> IndexMap:
    return Swizzle(bits, base, shift).compose(row_major((rows, cols)))


# Predictions for Tensor Core tiles


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        pytest.param(row_major((64, 32)), ["16/4", "4/4"], id="K-tc-2-row-major"),
        pytest.param(padded(64, 32, 8), ["4/4", "8/4"], id="K-tc-5-pad-40"),
        pytest.param(xor_tile(64, 32, 3, 3), ["8/4", "4/4"], id="K-tc-6-row-and-3"),
        pytest.param(xor_tile(64, 32, 3, 3, 1), ["4/4", "4/4"], id="K-tc-7-row-by-2-and-3"),
        pytest.param(swizzled(2, 3, 3, 64, 32), ["4/4", "4/4"], id="K-tc-7-CA-55-swizzle-2-3-3"),
        pytest.param(swizzled(3, 3, 3, 64, 32), ["4/4", "4/4"], id="CA-55-swizzle-3-3-3"),
    ],
)
def test_a_operand_of_64_byte_rows(layout: IndexMap, expected: list[str]) -> None:
    assert half_tile(layout, 64, 32) == expected


@pytest.mark.parametrize(
    ("layout", "misaligned"),
    [
        pytest.param(padded(64, 32, 2), 24, id="K-tc-4-CA-49-pad-34"),
        pytest.param(xor_tile(64, 32, 3, 2), 16, id="K-tc-4-CA-50-xor-of-8-bytes"),
    ],
)
def test_a_16_byte_row_must_stay_whole(layout: IndexMap, misaligned: int) -> None:
    one_load = TileAccess("ldmatrix.x4", A_ROW_MAJOR.row, A_ROW_MAJOR.col)
    candidate = tried(layout, 64, 32, 2, one_load)
    assert not candidate.is_legal
    assert candidate.problem == (
        f"misaligned: {misaligned} of 32 addresses of ldmatrix.x4 are no multiple of 16 bytes"
    )
    assert "misaligned" in tried(layout, 64, 32, 2, FILL).problem


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        pytest.param(row_major((32, 64)), "32/4", id="K-tc-8-CA-54-none"),
        pytest.param(xor_tile(32, 64, 3, 3), "8/4", id="K-tc-8-CA-54-row-and-3"),
        pytest.param(xor_tile(32, 64, 7, 3), "4/4", id="K-tc-8-CA-54-row-and-7"),
        pytest.param(swizzled(3, 3, 3, 32, 64), "4/4", id="K-tc-8-CA-55-swizzle-3-3-3"),
        pytest.param(padded(32, 64, 8), "4/4", id="K-tc-8-CA-54-pad-72"),
        pytest.param(padded(32, 64, 16), "8/4", id="K-tc-8-CA-54-pad-80"),
    ],
)
def test_b_operand_of_128_byte_rows(layout: IndexMap, expected: str) -> None:
    assert half_tile(layout, 32, 64, B_ROW_MAJOR) == [expected, "4/4"]
    # .trans changes no count.
    assert half_tile(layout, 32, 64, A_ROW_MAJOR) == [expected, "4/4"]


def test_CA_54_pad_66_is_illegal() -> None:
    assert tried(padded(32, 64, 2), 32, 64, 2, matrix_loads(B_ROW_MAJOR)).problem.startswith("misaligned")


@pytest.mark.parametrize(
    ("cols", "layout", "expected"),
    [
        pytest.param(16, None, "8/4", id="K-tc-9-none"),
        pytest.param(16, (1, 3, 3), "4/4", id="K-tc-9-CA-55-swizzle-1-3-3"),
        pytest.param(16, (3, 3, 3), "4/4", id="CA-55-swizzle-3-3-3-on-32-bytes"),
        pytest.param(128, (3, 3, 3), "8/4", id="K-tc-10-CA-55-swizzle-3-3-3-on-256-bytes"),
        pytest.param(128, (3, 3, 4), "4/4", id="K-tc-10-CA-55-swizzle-3-3-4"),
    ],
)
def test_other_row_lengths(cols: int, layout: tuple[int, int, int] | None, expected: str) -> None:
    tile = swizzled(*layout, 64, cols) if layout else row_major((64, cols))
    assert half_tile(tile, 64, cols) == [expected, "4/4"]


@pytest.mark.parametrize(
    ("row_bytes", "free_fills"),
    [(32, {2, 6}), (64, {4}), (128, set(range(8)))],
    ids=["CA-30-32-byte-rows", "CA-30-64-byte-rows", "CA-30-128-byte-rows"],
)
def test_CA_30_where_no_padding_serves_fill_and_ldmatrix(row_bytes: int, free_fills: set[int]) -> None:
    cols = row_bytes // 2
    fills, reads = set(), set()
    for units in range(row_bytes // 16, row_bytes // 16 + 16):
        read, fill = half_tile(padded(64, cols, 8 * units - cols), 64, cols)
        fills |= {units % 8} if fill == "4/4" else set()
        reads |= {units % 8} if read == "4/4" else set()
    assert reads == {1, 3, 5, 7}
    assert fills == free_fills
    found = search_layouts([FILL, matrix_loads("ldmatrix.x4")], 64, cols, 2)
    pad = found.best_of("pad")
    assert pad is not None
    assert pad.is_ideal == bool(fills & reads)
    assert ("No padding serves both accesses" in found.verdict) != pad.is_ideal


def test_CA_30_what_the_padding_costs() -> None:
    assert padded(64, 32, 8).n_bytes(2) / row_major((64, 32)).n_bytes(2) == 1.25
    assert padded(64, 64, 8).n_bytes(2) / row_major((64, 64)).n_bytes(2) == 1.125


# Predictions for transposes


@pytest.mark.parametrize("pad", range(17))
def test_K_pd_5_CA_10_pad_sweep(pad: int) -> None:
    assert counted(padded(32, 32, pad), 32, 32, 4, *TRANSPOSE) == ["1/1", f"{gcd(32 + pad, 32)}/1"]


@pytest.mark.parametrize(
    ("pad", "store", "load"), [(0, 1, 8), (1, 2, 2), (2, 2, 1), (4, 2, 2), (8, 2, 4), (16, 2, 16)]
)
def test_K_pd_7_CC_25_CD_18_the_16x16_tile(pad: int, store: int, load: int) -> None:
    assert counted(padded(16, 16, pad), 16, 16, 4, *TRANSPOSE) == [f"{store}/1", f"{load}/1"]


def test_K_sw_4_C06_no_padding_of_the_16x16_tile_works_and_an_xor_does() -> None:
    found = search_layouts(TRANSPOSE, 16, 16, also={"col ^ row": xor_tile(16, 16)})
    assert found["col ^ row"].is_ideal
    assert found["Swizzle<4,0,4>"].is_ideal
    assert not any(candidate.is_ideal for candidate in found.candidates if candidate.kind == "pad")
    assert found.verdict.startswith("No padding serves both accesses without conflicts.")


@pytest.mark.parametrize(
    ("pitch", "column"),
    [(32, "32/4"), (36, "4/4"), (40, "8/4"), (33, "misaligned")],
    ids=lambda value: str(value),
)
def test_K_pd_9_CA_26_float4_columns(pitch: int, column: str) -> None:
    candidate = tried(padded(32, 32, pitch - 32), 32, 32, 4, FILL, down_columns("ld.shared.b128"))
    if column == "misaligned":
        assert candidate.problem.startswith(column)
    else:
        assert [str(count) for count in candidate.counts] == ["4/4", column]


def test_K_sw_6_float4_xor_serves_vectors_and_leaves_scalars_4_way() -> None:
    patterns = [FILL, down_columns("ld.shared.b128"), down_columns("ld.shared.b32")]
    assert counted(xor_tile(32, 32, 7, 2), 32, 32, 4, *patterns) == ["4/4", "4/4", "4/1"]


def test_K_pd_8_doubles() -> None:
    patterns = [along_rows("st.shared.b64"), down_columns("ld.shared.b64")]
    assert counted(row_major((32, 32)), 32, 32, 8, *patterns) == ["2/2", "32/2"]
    assert counted(padded(32, 32, 1), 32, 32, 8, *patterns) == ["2/2", "2/2"]


# A slow second count


SPECS = [
    (16, 16, 4, ("st.shared.b32", "ld.shared.b32", None)),
    (16, 24, 2, ("st.shared.b64", "ld.shared.b32", "ldmatrix.x2")),
    (32, 32, 2, ("st.shared.b128", "ld.shared.b16", "ldmatrix.x4.trans")),
    (8, 12, 4, ("st.shared.b128", "ld.shared.b64", None)),
    (16, 8, 8, ("st.shared.b64", "ld.shared.b128", None)),
]


def searched(spec: tuple[int, int, int, tuple[str, str, str | None]]) -> LayoutSearch:
    rows, cols, element_bytes, (store, load, matrix) = spec
    patterns: list[Pattern] = [along_rows(store), down_columns(load)]
    return search_layouts(patterns + ([matrix_loads(matrix)] if matrix else []), rows, cols, element_bytes)


SEARCHES = [searched(spec) for spec in SPECS]


def survives_writing_and_reading(layout: IndexMap, tile: TileShape) -> bool:
    memory: dict[int, tuple[int, int]] = {}
    for place in np.ndindex(tile.rows, tile.cols):
        memory[int(layout(*place))] = place
    inside = all(0 <= index < layout.allocated_elems for index in memory)
    return inside and len(memory) == tile.rows * tile.cols


def lanes_find_their_elements_side_by_side(layout: IndexMap, tile: TileShape, access: TileAccess) -> bool:
    width = tile.elems_per_access(access.spec)
    for row, col in zip(access.row[access.active], access.col[access.active], strict=True):
        start = layout(int(row), int(col))
        if [layout(int(row), int(col) + i) for i in range(width)] != [start + i for i in range(width)]:
            return False
    return True


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SEARCHES), st.data())
def test_counts_and_refusals_agree_with_the_explained_costs(found: LayoutSearch, data: st.DataObject) -> None:
    candidate = data.draw(st.sampled_from(found.candidates))
    assert survives_writing_and_reading(candidate.layout, found.tile) != candidate.problem.startswith("not a")
    excess = 0
    for position, access in enumerate(found.accesses):
        whole = lanes_find_their_elements_side_by_side(candidate.layout, found.tile, access)
        for row, col, active in zip(access.row, access.col, access.active, strict=True):
            mask = sum(1 << lane for lane in range(32) if active[lane])
            mask = 0xFFFFFFFF if access.spec.is_matrix else mask
            try:
                cost = shared_cost(
                    WarpAccess.from_layout(
                        access.instruction, candidate.layout, row, col, found.tile.element_bytes, 0, mask
                    )
                )
            except Misaligned:
                assert not candidate.is_legal
                return
            excess += cost.excess
            if candidate.is_legal:
                count = candidate.counts[position]
                assert count is not None
                assert cost.excess <= count.worst - count.worst_ideal
        if not whole:
            assert not candidate.is_legal
            return
    if candidate.is_legal:
        assert candidate.excess == excess
        assert candidate.is_ideal == (excess == 0)
    else:
        assert candidate.problem.startswith("not a permutation")


@pytest.mark.parametrize("found", SEARCHES, ids=lambda found: str(found.tile))
def test_the_ranking_keeps_its_promise(found: LayoutSearch) -> None:
    keys = [(not c.is_legal, c.excess, c.n_bytes) for c in found.candidates]
    assert keys == sorted(keys)
    legal = [candidate for candidate in found.candidates if candidate.is_legal]
    assert (*legal, *found.illegal) == found.candidates
    assert found.ideal == tuple(c for c in legal if c.excess == 0)
    packed = found.tile.rows * found.tile.cols * found.tile.element_bytes
    assert all(c.n_bytes == packed + c.extra_bytes for c in found.candidates)
    trades = {(c.excess, c.n_bytes) for c in legal}
    unbeaten = {
        trade
        for trade in trades
        if not any(other != trade and other[0] <= trade[0] and other[1] <= trade[1] for other in trades)
    }
    assert [(c.excess, c.n_bytes) for c in found.pareto] == sorted(unbeaten)


@pytest.mark.parametrize("found", SEARCHES, ids=lambda found: str(found.tile))
def test_a_pad_of_128_bytes_more_changes_nothing(found: LayoutSearch) -> None:
    """So the pads below 128 bytes speak for all, and "no padding" is proven, not just not found."""
    tile = found.tile
    period = 128 // tile.element_bytes
    for pad in (0, 1, 2, 5, period // 2):
        near = found["row-major"] if pad == 0 else found[f"pad {pad}"]
        far = try_layout("far", padded(tile.rows, tile.cols, pad + period), tile, found.accesses)
        assert (far.is_legal, far.counts) == (near.is_legal, near.counts)


def test_times_weighs_an_access_in_the_ranking() -> None:
    # pad 1 frees scalar columns and forbids nothing here; pad 2 frees 8-byte columns.
    lane = np.arange(32)
    scalar = TileAccess("ld.shared.b32", lane, 0, "scalar")
    often = TileAccess("ld.shared.b32", lane, lane, "diagonal", times=10)
    assert search_layouts([scalar, often], 32, 32)["pad 1"].excess == 10
    assert search_layouts([scalar, often], 32, 32)["row-major"].excess == 31


def test_widths_that_are_no_power_of_two_have_answers_too() -> None:
    found = search_layouts([FILL, matrix_loads("ldmatrix.x4", "read")], 64, 48, 2)
    assert found.best.is_ideal
    assert found["xor (col ^ (((row >> 2) & 1) << 3))"].is_ideal
    plain = search_layouts([FILL, matrix_loads("ldmatrix.x2", "read")], 64, 24, 2)  # 48 bytes: an odd pitch
    assert plain.best.name == "row-major"
    assert plain.verdict == (
        "row-major serves both accesses without conflicts: neither padding nor a swizzle is needed."
    )


# The report


def test_the_report_of_the_64x32_half_tile() -> None:
    found = search_layouts(
        [FILL, matrix_loads("ldmatrix.x4", "read")],
        rows=64, cols=32, element_bytes=2,
        also={"8x8 blocks": blocked(64, 32), "wide xor": XorTile(64, 32, 15, 3)},
    )  # fmt: skip
    assert (
        str(found)
        == """\
64x32 tile of 2-byte elements, 4,096 bytes without padding, for
  fill: st.shared.b128, 8 warp instructions
  read: ldmatrix.x4, 8 warp instructions
Wavefronts / fewest possible, of the dearest warp instruction:

layout                            bytes  fill  read
Swizzle<2,3,3>                    4,096   4/4   4/4  ideal
Swizzle<3,3,3>                    4,096   4/4   4/4  ideal
rotate (col + row // 2 * 8) % 32  4,096   4/4   4/4  ideal
Swizzle<1,4,2>                    4,096   4/4   8/4
Swizzle<1,3,3>                    4,096   4/4   8/4
pad 8                             5,120   8/4   4/4
row-major                         4,096   4/4  16/4
8x8 blocks                        4,096  16/4   4/4
132 of 195 cannot be used:
  72 of kind swizzle, e.g. Swizzle<1,2,1>: misaligned: 128 of 256 addresses of fill are no multiple of 16 bytes
  56 of kind pad, e.g. pad 1: misaligned: 224 of 256 addresses of fill are no multiple of 16 bytes
  3 of kind swizzle, e.g. Swizzle<1,0,1>: torn: 256 of 256 accesses of fill find their elements apart
  1 of kind given, e.g. wide xor: not a permutation: (13, 8) and (16, 0) both land on element 512

No padding serves both accesses without conflicts. Swizzle<2,3,3> does, in 4,096 bytes.

def tile_index(row, col):
    offset = row * 32 + col
    return offset ^ ((offset & 0xc0) >> 3)"""
    )


def test_verdicts() -> None:
    transpose = search_layouts(TRANSPOSE, 32, 32)
    assert transpose.verdict == (
        "Swizzle<5,0,5> serves both accesses without conflicts, in 4,096 bytes. pad 1 does too, in 4,224."
    )
    row_only = search_layouts(TRANSPOSE[:1], 32, 32)
    assert row_only.verdict == (
        "row-major serves the access without conflicts: neither padding nor a swizzle is needed."
    )
    diagonal = TileAccess("ld.shared.b32", np.arange(32), np.arange(32), "diagonal")
    anti = TileAccess("ld.shared.b32", np.arange(32), 31 - np.arange(32), "anti-diagonal")
    everything = search_layouts([*TRANSPOSE, diagonal, anti], 32, 32)
    assert everything.verdict.startswith("No layout tried serves all 4 accesses without conflicts. ")
    assert f"loses {everything.best.excess}" in everything.verdict
    odd = search_layouts([TileAccess("ld.shared.b64", 0, 1 + 0 * np.arange(32))], 4, 4)
    assert odd.verdict.startswith("No layout tried can be used. ") is not odd.best.is_legal


def test_an_unmodelled_copy_is_checked_for_alignment_and_never_counted() -> None:
    found = search_layouts(
        [along_rows("cp.async.cg.16", "fill"), matrix_loads("ldmatrix.x4", "read")], 64, 64, 2
    )
    assert found.best.counts[0] is None
    assert str(found.best) == "Swizzle<3,3,3>: 8,192 bytes, not modelled, 4/4"
    assert found["pad 1"].problem.startswith("misaligned: 448 of 512 addresses of fill")
    assert found.verdict == (
        "Swizzle<3,3,3> serves every access that is modelled without conflicts, in 8,192 bytes."
        " pad 8 does too, in 9,216. fill is checked for alignment only: its cost is not modelled."
    )
    assert "\nSwizzle<3,3,3>                8,192     ?   4/4  ideal\n" in str(found)
    alone = search_layouts([along_rows("cp.async.cg.16", "fill")], 64, 64, 2)
    assert alone.verdict == (
        "row-major can be used; no access is modelled, so nothing was counted."
        " fill is checked for alignment only: its cost is not modelled."
    )


def test_candidates_hand_over_code_that_computes_their_layout() -> None:
    for found in SEARCHES:
        for candidate in found.candidates[::7]:
            namespace: dict = {}
            exec(candidate.python("place"), namespace)
            row, col = np.indices((found.tile.rows, found.tile.cols))
            assert (namespace["place"](row, col) == candidate.layout.table()).all()


# Patterns


def test_walks_touch_every_element_once() -> None:
    tile = TileShape(6, 20, 2)
    for pattern in (along_rows("st.shared.b64"), down_columns("st.shared.b64")):
        access = resolve(pattern, tile)
        seen = np.zeros((6, 20), int)
        for step in range(4):
            np.add.at(seen, (access.row[access.active], access.col[access.active] + step), 1)
        assert (seen == 1).all()
    assert resolve(along_rows("st.shared.b64"), tile).col[0, :6].tolist() == [0, 4, 8, 12, 16, 0]
    assert resolve(down_columns("st.shared.b64"), tile).row[0, :7].tolist() == [0, 1, 2, 3, 4, 5, 0]
    assert resolve(along_rows("st.shared.b64"), tile).active.sum() == 30


@pytest.mark.parametrize(
    "name", ["ldmatrix.x1", "ldmatrix.x2", "ldmatrix.x4", "stmatrix.x4", "ldmatrix.x2.trans"]
)
def test_matrix_loads_touch_every_row_of_every_matrix_once(name: str) -> None:
    tile = TileShape(32, 32, 2)
    access = resolve(matrix_loads(name), tile)
    seen = np.zeros((32, 4), int)
    np.add.at(seen, (access.row[access.active], access.col[access.active] // 8), 1)
    assert (seen == 1).all()


def test_a_single_instruction_may_be_a_tuple_or_a_value() -> None:
    lane = np.arange(32)
    column = ("ld.shared.b32", lambda lane: lane, 3)
    as_value = TileAccess("ld.shared.b32", lane, 3, name="column", active=lambda lane: lane < 8)
    found = search_layouts([column, as_value], 32, 32)
    assert [str(count) for count in found["row-major"].counts] == ["32/1", "8/1"]
    assert str(as_value) == "column: ld.shared.b32, 1 warp instruction"


# Bad input


@pytest.mark.parametrize(
    ("search", "error", "message"),
    [
        (lambda: search_layouts([], 32, 32), InvalidAccess, r"got \[\] for accesses; give a list of at least one"),
        (lambda: search_layouts([FILL], 0, 32), InvalidAccess, "tile: rows: got 0; give a whole number of 1 or more"),
        (lambda: search_layouts([FILL], 32, 32, 3), InvalidAccess, "element_bytes: got 3; elements have 1, 2, 4, 8 or 16 bytes"),
        (lambda: search_layouts([FILL], 32, 33), InvalidAccess,
         "st.shared.b128: a row of 33 elements is no whole number of accesses of 4"),
        (lambda: search_layouts([along_rows("st.shared.b16")], 32, 32), InvalidAccess,
         "st.shared.b16: moves 2 bytes per lane, less than one 4-byte element"),
        (lambda: search_layouts([along_rows("ldmatrix.x4")], 32, 32), InvalidAccess, "Use matrix_loads"),
        (lambda: search_layouts([matrix_loads("ldmatrix.x4")], 24, 32, 2), InvalidAccess,
         "ldmatrix.x4: a 24x32 tile of 2-byte elements does not divide into loads of 16x16 elements"),
        (lambda: search_layouts([("ld.shared.b32", 0, lambda lane: lane)], 32, 16), InvalidAccess,
         "ld.shared.b32: lane 16 touches column 16 of a 32x16 tile of 4-byte elements"),
        (lambda: search_layouts([("ld.shared.b64", 0, 31)], 32, 32), InvalidAccess, "touches column 32"),
        (lambda: TileAccess("ld.shared.b32", [0, 1], 0), InvalidAccess, r"got shapes row \(2,\), col \(\)"),
        (lambda: TileAccess("ld.shared.b32", lambda lane: lane / 2, 0), InvalidAccess, "row holds float64 values"),
        (lambda: TileAccess("ld.shared.b32", 0, 0, active=1), InvalidAccess, "bools for active"),
        (lambda: TileAccess("ld.shared.b32", 0, 0, times=0), InvalidAccess, "times: got 0; give a whole number of 1 or more"),
        (lambda: search_layouts([FILL], 32, 32, also={"pad 1": padded(32, 32, 1)}), InvalidLayout,
         r"\['pad 1'\] in also is tried anyway"),
        (lambda: TileAccess("ld.global.b32", 0, 0), UnknownInstruction, "not a shared-memory instruction"),
        (lambda: matrix_loads("ldmatrix.x3"), UnknownInstruction, "ldmatrix.x"),
        (lambda: SEARCHES[0]["pad one"], InvalidLayout, "Did you mean pad"),
        (lambda: SEARCHES[0][3], InvalidLayout, "3 is not one of the"),  # type: ignore[index]
        (lambda: SEARCHES[0].best_of("padding"), InvalidLayout, "'padding' is no kind of candidate. Use one of plain, pad,"),
        (lambda: matrix_loads("ld.shared.b32"), UnknownInstruction, "moves no matrices"),
        (lambda: search_layouts(FILL, 32, 32), InvalidAccess, "give a list of at least one"),  # type: ignore[arg-type]
        (lambda: search_layouts(["ld.shared.b32"], 32, 32), InvalidAccess, "got 'ld.shared.b32' as an access. Give along_rows"),  # type: ignore[list-item]
        (lambda: search_layouts([lambda tile: 3], 32, 32), InvalidAccess, "as an access. Give along_rows"),  # type: ignore[list-item, return-value]
        (lambda: search_layouts([FILL], "32", 32), InvalidAccess, "tile: rows: got '32'"),  # type: ignore[arg-type]
        (lambda: search_layouts([FILL], 32, 32.0), InvalidAccess, "tile: cols: got 32.0"),  # type: ignore[arg-type]
        (lambda: search_layouts([FILL], 2**31, 32), InvalidAccess, "takes 274,877,906,944 bytes; a block has at most 232,448 of shared"),
        (lambda: search_layouts([FILL], 32, 32, also={"mine": 33}), InvalidLayout, "'mine' is 33, no layout"),  # type: ignore[dict-item]
        (lambda: search_layouts([FILL], 32, 32, also=[padded(32, 32, 1)]), InvalidLayout, "give layouts by name"),  # type: ignore[arg-type]
        (lambda: TileAccess("ld.shared.b32", np.zeros((0, 32), int), 0), InvalidAccess, r"got shapes row \(0, 32\)"),
        (lambda: TileAccess("ld.shared.b32", [[0], [1, 2]], 0), InvalidAccess, "row: got rows of different lengths"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_says_why(search, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        search()


def test_a_given_layout_of_other_size_is_refused() -> None:
    with pytest.raises(
        InvalidLayout, match=r"places a tile of shape \(16, 32\), but the accesses are those of a 32x32 tile"
    ):
        search_layouts([FILL], 32, 32, also={"mine": Layout((16, 32), (32, 1))})
    assert search_layouts([FILL], 32, 32, also={"rot": rotation_tile(32, 32)})["rot"].problem.startswith(
        "misaligned"
    )


def test_numpy_integers_give_the_same_search() -> None:
    found = search_layouts(TRANSPOSE, np.int8(16), np.uint8(16), np.int64(4))  # type: ignore[arg-type]
    assert [str(candidate) for candidate in found.candidates] == [
        str(candidate) for candidate in search_layouts(TRANSPOSE, 16, 16, 4).candidates
    ]
