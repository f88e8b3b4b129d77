"""`WarpAccess`: what it accepts, how it is stored, and what it says when it refuses."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

from lanewise.access import WarpAccess
from lanewise.errors import Error, InvalidAccess, Misaligned, UnknownInstruction
from lanewise.instructions import INSTRUCTIONS
from lanewise.layouts import Layout
from tests.strategies import warp_accesses

LANES = tuple(range(32))


@given(access=warp_accesses(sorted(INSTRUCTIONS)))
def test_repr_can_be_pasted(access: WarpAccess) -> None:
    assert eval(repr(access)) == access
    assert hash(eval(repr(access))) == hash(access)


def test_inactive_lanes_are_stored_as_zero_so_that_equal_accesses_are_equal() -> None:
    first = WarpAccess("ld.shared.b32", tuple(4 * lane for lane in LANES), 0x0000FFFF)
    second = WarpAccess("ld.shared.b32", tuple(4 * lane if lane < 16 else 999 for lane in LANES), 0x0000FFFF)
    assert first == second
    assert first.addresses[16:] == (0,) * 16
    assert first.lanes == LANES[:16]
    np.testing.assert_array_equal(first.active, np.arange(32) < 16)


def test_the_three_constructors_agree() -> None:
    raw = WarpAccess("ld.shared.b32", tuple(4 * (33 * lane + 5) for lane in LANES))
    assert WarpAccess.from_formula("ld.shared.b32", lambda lane: 4 * (33 * lane + 5)) == raw
    assert WarpAccess.from_tile("ld.shared.b32", row=lambda lane: lane, col=5, pitch=33) == raw
    assert WarpAccess.from_tile("ld.shared.b32", row=LANES, col=[5] * 32, pitch=33) == raw
    assert WarpAccess.from_layout("ld.shared.b32", lambda row, col: 33 * row + col, LANES, 5) == raw


def test_tile_of_halves_at_a_base_address() -> None:
    access = WarpAccess.from_tile(
        "ldmatrix.x4",
        lambda lane: lane % 16,
        lambda lane: 8 * (lane // 16),
        pitch=40,
        element_bytes=2,
        base_address=1024,
    )
    assert access.addresses[:2] == (1024, 1104)
    assert access.addresses[16] == 1040


def test_a_layout_is_not_asked_about_idle_lanes() -> None:
    tile = Layout((16, 8), (8, 1))
    access = WarpAccess.from_layout("ld.shared.b32", tile, LANES, 0, active_mask=0xFFFF)
    assert access.addresses[15] == 4 * tile(15, 0)
    with pytest.raises(Error, match="16"):
        WarpAccess.from_layout("ld.shared.b32", tile, LANES, 0)


def test_a_constant_formula_is_a_broadcast() -> None:
    assert WarpAccess.from_formula("ld.shared.b32", lambda lane: 64).addresses == (64,) * 32


def test_matrix_instructions_take_addresses_from_their_first_lanes() -> None:
    assert WarpAccess("ldmatrix.x2", tuple(16 * lane for lane in LANES)).addressing_lanes == LANES[:16]


@pytest.mark.parametrize(
    ("access", "text"),
    [
        (WarpAccess.from_formula("ld.shared.b32", lambda lane: 128 * lane),
         "ld.shared.b32, lanes 0..31: bytes 0, 128, .. 3968 (step 128)"),
        (WarpAccess.from_formula("ld.shared.b32", lambda lane: 64), "ld.shared.b32, lanes 0..31: byte 64"),
        (WarpAccess.from_formula("ld.shared.b32", lambda lane: 4 * (lane ^ 1)),
         "ld.shared.b32, lanes 0..31: bytes 4, 0, 12, 8, .."),
        (WarpAccess.from_formula("st.global.b64", lambda lane: 8 * lane, 0b1001),
         "st.global.b64, lanes 0, 3: bytes 0, 24, .. 24 (step 24)"),
        (WarpAccess("ld.shared.b32", (0,) * 32, 0), "ld.shared.b32: no active lane"),
    ],
)  # fmt: skip
def test_text(access: WarpAccess, text: str) -> None:
    assert str(access) == text


def test_addresses_are_exact_where_64_bits_would_wrap_around() -> None:
    """Row 2**40 of a pitch of 2**24 elements lies at byte 2**66, not at byte 0."""
    with pytest.raises(
        InvalidAccess, match="lane 0 has byte address 73786976294838206464; it exceeds 63 bits"
    ):
        WarpAccess.from_tile("ld.shared.b32", 2**40, 0, pitch=2**24)
    far = WarpAccess.from_tile("ld.global.b32", 2**30, LANES, pitch=2**30)
    assert far.addresses[31] == 4 * (2**60 + 31)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64, np.uint64])
def test_numpy_integers_are_integers(kind: type) -> None:
    one_by_one = WarpAccess.from_tile("ld.shared.b32", LANES, 5, 33, 4, 64, 0xFF)
    assert (
        WarpAccess.from_tile(
            "ld.shared.b32",
            np.arange(32, dtype=kind),
            kind(5),
            kind(33),
            kind(4),
            kind(64),
            np.uint32(0xFF),  # type: ignore[arg-type]
        )
        == one_by_one
    )


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [
        (InvalidAccess, lambda: WarpAccess("ld.shared.b32", (0,) * 31), r"shape \(31,\); a warp has 32 lanes.*active_mask"),
        (InvalidAccess, lambda: WarpAccess("ld.shared.b32", (-4,) + (0,) * 31), "lane 0 has byte address -4; addresses start at 0"),
        (InvalidAccess, lambda: WarpAccess.from_formula("ld.shared.b32", lambda lane: 0.5 * lane), "float64 values; addresses and indices are integers"),
        (InvalidAccess, lambda: WarpAccess("ld.shared.b32", (0,) * 32, 2**32), "active_mask 4294967296 is not a 32-bit mask"),
        (InvalidAccess, lambda: WarpAccess("ld.shared.b32", (0,) * 32, True), "active_mask True is not a 32-bit mask"),
        (InvalidAccess, lambda: WarpAccess("ldmatrix.x4", (0,) * 32, 0xFFFF), r"lanes 16\.\.31 inactive.*Move it out of the branch"),
        (Misaligned, lambda: WarpAccess("ld.shared.b128", (4264,) + (0,) * 31), "byte address 4264, 8 past a multiple of 16"),
        (Misaligned, lambda: WarpAccess.from_tile("ld.shared.b128", LANES, 0, pitch=33), "lane 1 has byte address 132, 4 past a multiple of 16"),
        (UnknownInstruction, lambda: WarpAccess("ld.shared.f32", (0,) * 32), r"'ld\.shared\.f32'.*Did you mean ld\.shared\.b32"),
        (InvalidAccess, lambda: WarpAccess.from_tile("ld.shared.b32", LANES, 0, pitch=0), r"pitch: got 0; give a whole number of 1 or more\. Use the tile's row length"),
        (InvalidAccess, lambda: WarpAccess.from_tile("ld.shared.b32", LANES, 0, 33, element_bytes=0), "element_bytes: got 0; give a whole number of 1 or more"),
        (InvalidAccess, lambda: WarpAccess.from_tile("ld.shared.b32", [1, 2], 0, pitch=33), r"row: got shape \(2,\)"),
        (InvalidAccess, lambda: WarpAccess.from_formula("ld.shared.b32", lambda lane: lane / 2), "Use // not /"),
        (InvalidAccess, lambda: WarpAccess("ld.shared.b32", ([1], [2, 3], *[0] * 30)), "rows of different lengths"),  # type: ignore[arg-type]
        (InvalidAccess, lambda: WarpAccess("ld.shared.b32", (2**63,) * 32), r"lane 0 has byte address 9223372036854775808; it exceeds 63 bits\. Subtract a base"),
        (InvalidAccess, lambda: WarpAccess("ld.shared.b32", (2**70,) * 32), "it exceeds 63 bits"),
        (InvalidAccess, lambda: WarpAccess("ld.shared.b32", (None,) * 32), "object values; addresses and indices are integers"),  # type: ignore[arg-type]
        (UnknownInstruction, lambda: WarpAccess(np.zeros(0), (0,) * 32), "is not an instruction of the model"),  # type: ignore[arg-type]
        (InvalidAccess, lambda: WarpAccess.from_layout("ld.shared.b32", None, LANES, 0), r"layout: got None; give a function \(row, col\) -> element index"),  # type: ignore[arg-type]
        (InvalidAccess, lambda: WarpAccess.from_layout("ld.shared.b32", lambda row, col: row[:3], LANES, 0), r"layout: got shape \(3,\)"),
        (InvalidAccess, lambda: WarpAccess.from_layout("ld.shared.b32", lambda row, col: row / 2, LANES, 0), "layout: got float64 values"),
        (InvalidAccess, lambda: WarpAccess.from_tile("ld.shared.b32", LANES, 0, "33"), "pitch: got '33'; give a whole number of 1 or more"),  # type: ignore[arg-type]
        (InvalidAccess, lambda: WarpAccess.from_tile("ld.shared.b32", LANES, 0, True), "pitch: got True"),
        (InvalidAccess, lambda: WarpAccess.from_tile("ld.shared.b32", LANES, 0, 33, element_bytes=4.0), "element_bytes: got 4.0"),  # type: ignore[arg-type]
        (InvalidAccess, lambda: WarpAccess.from_tile("ld.shared.b32", LANES, 0, 33, base_address=-4), "base_address: got -4; give a whole number of 0 or more"),
    ],
)  # fmt: skip
def test_bad_input(error: type[Error], call: Callable, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
