"""Whole numbers that a caller gives: one check and one wording, so that every module refuses alike.

True and False are no numbers here, though Python counts them as ints: where a size is asked for they are a
slip of the keyboard.
"""

from __future__ import annotations

import operator
from typing import Any

from lanewise.errors import Error

LARGEST = 2**63 - 1  # an int64, in which addresses, indices and offsets are counted


def as_int(value: Any) -> int | None:
    """The value as an int, NumPy's integers included; None if it is no integer."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def whole(
    what: str, value: Any, error: type[Error], low: int = 0, high: int = LARGEST, hint: str = ""
) -> int:
    """The value as an int of `low` to `high`, both allowed; raises `error`, which names `what`, otherwise.

    `hint` is the next step, a sentence.

    >>> whole("pitch", "33", Error, low=1, hint="Use the tile's row length.")
    Traceback (most recent call last):
    lanewise.errors.Error: pitch: got '33'; give a whole number of 1 or more. Use the tile's row length.
    """
    number = as_int(value)
    if number is not None and low <= number <= high:
        return number
    beyond = number is not None and number > high
    allowed = f"of {low} or more" if high == LARGEST and not beyond else f"from {low} to {high:,}"
    raise error(f"{what}: got {value!r}; give a whole number {allowed}. {hint}".rstrip())
