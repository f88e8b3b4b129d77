"""Whole numbers that callers give: what counts as one, and what a refusal says."""

import numpy as np
import pytest

from lanewise.errors import InvalidLayout
from lanewise.integers import LARGEST, as_int, whole


@pytest.mark.parametrize("value", [7, np.int8(7), np.uint64(7), np.array(7)])
def test_pythons_and_numpys_integers_become_ints(value: object) -> None:
    assert as_int(value) == 7
    assert type(as_int(value)) is int


@pytest.mark.parametrize(
    "value",
    [True, np.bool_(True), 7.0, np.float32(7), float("nan"), "7", b"7", None, [7], np.array([7, 7]), 7j],
)
def test_nothing_else_is_an_integer(value: object) -> None:
    assert as_int(value) is None
    with pytest.raises(InvalidLayout, match=r"size: got .*; give a whole number of 0 or more"):
        whole("size", value, InvalidLayout)


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (0, {"low": 1}, "size: got 0; give a whole number of 1 or more."),
        (9, {"low": 1, "high": 8}, "size: got 9; give a whole number from 1 to 8."),
        (
            2**63,
            {},
            "size: got 9223372036854775808; give a whole number from 0 to 9,223,372,036,854,775,807.",
        ),
        (-1, {"hint": "Use 0 for none."}, "size: got -1; give a whole number of 0 or more. Use 0 for none."),
    ],
)
def test_a_refusal_names_the_value_the_range_and_the_next_step(
    value: int, bounds: dict, message: str
) -> None:
    with pytest.raises(InvalidLayout) as caught:
        whole("size", value, InvalidLayout, **bounds)
    assert str(caught.value) == message


def test_both_ends_are_allowed() -> None:
    assert whole("size", 1, InvalidLayout, low=1, high=8) == 1
    assert whole("size", 8, InvalidLayout, low=1, high=8) == 8
    assert whole("size", LARGEST, InvalidLayout) == 2**63 - 1
