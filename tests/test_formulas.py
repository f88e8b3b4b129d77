"""Accesses from text: what the formula says in Python, and nothing that is executed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise import Error, WarpAccess, shared_cost
from lanewise.formulas import ELEMENT_BYTES, InvalidFormula, from_text, parsed

LEAVES = st.sampled_from(["lane", "0", "1", "7", "33", "128"])
EXPRESSIONS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        "({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "^", "&", "|", "%", "//"]), inner
    ),
    max_leaves=8,
)


@given(EXPRESSIONS, st.integers(0, 31))
def test_a_formula_is_what_python_makes_of_it(expression: str, lane: int) -> None:
    try:
        expected = eval(expression, {"__builtins__": {}}, {"lane": lane})
    except ZeroDivisionError:
        with pytest.raises(InvalidFormula, match="division by zero"):
            parsed(expression)(lane)
        return
    assert parsed(expression)(lane) == expected


@pytest.mark.parametrize(
    ("text", "instruction", "third"),
    [
        ("lane*33 f32", "ld.shared.b32", 3 * 33 * 4),
        ("lane f64", "ld.shared.b64", 24),
        ("lane f32x4", "ld.shared.b128", 48),
        ("lane f32x2", "ld.shared.b64", 24),
        ("lane//2 u8", "ld.shared.b8", 1),
        ("lane b128", "ld.shared.b128", 48),
        ("  lane + 1   i16 ", "ld.shared.b16", 8),
    ],
)
def test_types_decide_width_and_bytes(text: str, instruction: str, third: int) -> None:
    access = from_text(text)
    assert (access.instruction, access.addresses[3]) == (instruction, third)


def test_a_formula_gives_the_access_that_code_would() -> None:
    column = WarpAccess.from_tile("ld.shared.b32", row=range(32), col=0, pitch=33)
    assert from_text("lane*33 f32") == column
    assert shared_cost(from_text("lane*32 f32")).wavefronts == 32
    moved = from_text("lane f32", op="store", space="global", base_address=64, active_mask=1)
    assert (moved.instruction, moved.addresses[0]) == ("st.global.b32", 64)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "write a formula of the lane"),
        ("lane*33", "write a formula of the lane"),
        ("lane f99", "Types: f16"),
        ("x f32", "the one name is lane"),
        ("lane*1.5 f32", "1.5 is no whole number"),
        ("True f32", "True is no whole number"),
        ("lane / 2 f32", "Div is not read"),
        ("lane ** 9 f32", "Pow is not read"),
        ("__import__('os').getcwd() f32", "is not read|is no whole number|no meaning"),
        ("(lambda: 0)() f32", "is not read"),
        ("[lane][0] f32", "is not read"),
        ("lane << 70 f32", "shift by 70"),
        ("lane // 0 f32", "division by zero"),
        ("lane f32x3", "cannot load 12 bytes"),
        ("lane * f32", "is no formula"),
        ("9" * 600 + " f32", "at most 500"),
        ("1 << 63 << 63 f32", "past every address"),
        ("lane - 5 f32", "negative|lane 0"),
    ],
)
def test_what_is_no_formula_is_refused_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        from_text(text)


@given(st.text(max_size=60))
def test_any_text_gives_an_access_or_an_error_of_ours(text: str) -> None:
    try:
        access = from_text(text + " f32")
    except Error:
        return
    assert len(access.addresses) == 32


def test_every_type_has_a_width_that_is_an_instruction() -> None:
    assert [from_text(f"lane {name}").addresses[1] for name in ELEMENT_BYTES] == [*ELEMENT_BYTES.values()]


@pytest.mark.parametrize(("op", "space"), [("move", "shared"), ("load", "texture")])
def test_other_operations_are_refused(op: str, space: str) -> None:
    with pytest.raises(InvalidFormula, match="load or store, memory shared or global"):
        from_text("lane f32", op=op, space=space)
