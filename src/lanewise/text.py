"""Small helpers that turn lane lists into words."""

from collections.abc import Iterable


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


def count(n: int, noun: str, plural: str | None = None) -> str:
    """Write a count with its noun in the right number: `count(1, "wavefront")` is `"1 wavefront"`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def lanes(numbers: Iterable[int]) -> str:
    """Write a set of lanes: `lanes([4])` is `"lane 4"`, `lanes(range(32))` is `"lanes 0..31"`."""
    members = list(numbers)
    return f"lane{'' if len(members) == 1 else 's'} {spans(members)}"
