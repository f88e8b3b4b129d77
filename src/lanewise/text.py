"""Lists of lanes, banks and strides in words, counts with their nouns, and measured numbers."""

from collections.abc import Iterable
from itertools import pairwise


def spans(numbers: Iterable[int]) -> str:
    """Write sorted integers as runs: `spans([0, 1, 2, 5])` is `"0..2, 5"`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(_span(first, last) for first, last in runs)


def _span(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first}, {last}" if last == first + 1 else f"{first}..{last}"


def series(numbers: Iterable[int]) -> str:
    """Write integers as `spans` does, but even steps as one: `series(range(0, 32, 8))` is `"0, 8, .. 24"`."""
    members = sorted(numbers)
    steps = {after - before for before, after in pairwise(members)}
    if len(members) > 3 and len(steps) == 1 and steps != {1}:
        return f"{members[0]}, {members[1]}, .. {members[-1]}"
    return spans(members)


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Write a count with its noun in the right number: `count(1, "wavefront")` is `"1 wavefront"`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def lanes(numbers: Iterable[int]) -> str:
    """Write a set of lanes: `lanes([4])` is `"lane 4"`, `lanes(range(32))` is `"lanes 0..31"`."""
    members = list(numbers)
    return f"lane{'' if len(members) == 1 else 's'} {spans(members)}"


def significant(value: float) -> str:
    """Write a measured number with three digits or more, never in powers of ten, thousands apart.

    >>> [significant(value) for value in (1234.5, 56.78, 9.1, 0.04)]
    ['1,234', '56.8', '9.10', '0.04']
    """
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def with_article(gpu: str) -> str:
    """Write the driver's name of a GPU after "an" or "a", as it is said.

    >>> with_article("NVIDIA H200"), with_article("Tesla T4")
    ('an NVIDIA H200', 'a Tesla T4')
    """
    return f"{'an' if gpu.startswith('NVIDIA') else 'a'} {gpu}"
