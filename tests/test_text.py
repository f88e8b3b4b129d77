"""Lists of lanes in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.text import count, lanes, series, spans


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([0, 1], "0, 1"),
        ([0, 1, 2, 5], "0..2, 5"),
        ([9, 7, 8, 1], "1, 7..9"),
        (range(32), "0..31"),
    ],
)
def test_spans(numbers: list[int], text: str) -> None:
    assert spans(numbers) == text


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ([], ""),
        (range(0, 32, 8), "0, 8, .. 24"),
        ([0, 8, 16], "0, 8, 16"),  # three are as short written out
        (range(5), "0..4"),
        ([0, 1, 2, 5], "0..2, 5"),
        ([9, 3, 6, 0], "0, 3, .. 9"),
        ([0, 2, 4, 7], "0, 2, 4, 7"),
    ],
)
def test_series(numbers: list[int], text: str) -> None:
    assert series(numbers) == text


@given(st.sets(st.integers(0, 31)))
def test_spans_name_every_number_once(numbers: set[int]) -> None:
    read: list[int] = []
    for part in filter(None, spans(numbers).split(", ")):
        first, _, last = part.partition("..")
        read += range(int(first), int(last or first) + 1)
    assert read == sorted(numbers)


def test_counts_and_lanes_agree_in_number() -> None:
    assert count(1, "wavefront") == "1 wavefront"
    assert count(0, "wavefront") == "0 wavefronts"
    assert count(1048576, "wavefront") == "1,048,576 wavefronts"
    assert count(2, "lane's word", "lanes' words") == "2 lanes' words"
    assert lanes([4]) == "lane 4"
    assert lanes(range(32)) == "lanes 0..31"
