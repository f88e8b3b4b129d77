"""What figures of shared memory have in common: the columns of 32 banks, and how they take their input."""

from __future__ import annotations

from collections.abc import Iterable

from lanewise.access import WarpAccess
from lanewise.figures import style
from lanewise.figures.drawing import InvalidDrawing, heading_height
from lanewise.instructions import instruction
from lanewise.machine import BANKS
from lanewise.memory import SharedCost, shared_cost

# In cells, of which each bank or lane takes one.
LEFT = 2.3  # to the left of bank 0, for the labels of rows
WIDTH = LEFT + BANKS + 0.5
HEADING = heading_height(style.WIDE / WIDTH)
GAP = 0.06  # between neighbouring cells


def require_shared_cost(who: str, access: object) -> SharedCost:
    """The cost of a shared-memory access, given as either; `InvalidDrawing` for anything else."""
    if isinstance(access, SharedCost):
        return access
    if isinstance(access, WarpAccess) and instruction(access.instruction).space == "shared":
        return shared_cost(access)
    got = access.instruction if isinstance(access, WarpAccess) else f"a {type(access).__name__}"
    raise InvalidDrawing(
        f"{who}: got {got}; it draws a shared-memory WarpAccess or its SharedCost."
        " For global memory use draw_sectors."
    )


def conflicting_banks(cost: SharedCost) -> set[int]:
    """The banks that some group of lanes asks for more than one word."""
    return {bank for phase in cost.phases for bank, words in phase.words_by_bank.items() if len(words) > 1}


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Runs of consecutive numbers as (first, length).

    >>> runs([4, 0, 1, 2])
    [(0, 3), (4, 1)]
    """
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and sum(found[-1]) == number:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((number, 1))
    return found
