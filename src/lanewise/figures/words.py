"""Words for figures: what cells and alternative texts say about lanes, words and banks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lanewise.access import WarpAccess
from lanewise.instructions import instruction
from lanewise.machine import BANKS, MATRIX_ROWS
from lanewise.memory import Phase, SharedCost
from lanewise.text import count, series

# Longer lists of lanes or banks are replaced by their number.
LONGEST_LIST = 36
MOST_LINES = 6  # lanes that a cell lists one by one

_VERBS = {"load": "read", "store": "write", "reduction": "update", "async_copy": "fill"}


def named(noun: str, numbers: Sequence[int]) -> str:
    """Name some of the 32 lanes or banks, or count them where the list would be long.

    >>> named("lane", [3]), named("bank", range(0, 32, 2)), named("lane", [n * n % 31 for n in range(16)])
    ('lane 3', 'banks 0, 2, .. 30', '16 of 32 lanes')
    """
    listed = series(numbers)
    if len(listed) > LONGEST_LIST:
        return f"{len(numbers)} of 32 {noun}s"
    return f"{noun}{'' if len(numbers) == 1 else 's'} {listed}"


def access_in_words(access: WarpAccess) -> str:
    """The instruction and the lanes whose address counts: `"ld.shared.b32, lanes 0..31"`."""
    lanes = access.addressing_lanes
    return f"{access.instruction}, {named('lane', lanes) if lanes else 'no active lane'}"


def verdict(cost: SharedCost) -> str:
    """Wavefronts against the ideal, in a few words."""
    if not cost.phases:
        return "no wavefront"
    n_wavefronts = count(cost.wavefronts, "wavefront")
    return f"{n_wavefronts}, {cost.ideal} would do" if cost.excess else f"{n_wavefronts}, the fewest possible"


def shared_in_words(cost: SharedCost) -> str:
    """What the banks must serve, group by group; groups that are alike are said once."""
    if not cost.phases:
        return "no word in any bank"
    named_banks = [_demand(phase, cost.access, by_name=True) for phase in cost.phases]
    if len(named_banks) == 1:
        return named_banks[0]
    kind = "fused groups" if cost.fused else "groups"
    sizes = {len(phase.lanes) for phase in cost.phases}
    counted_banks = [_demand(phase, cost.access, by_name=False) for phase in cost.phases]
    for demands in (named_banks, counted_banks):
        if len(set(demands)) == len(sizes) == 1:
            return f"in each of {len(demands)} {kind} of {count(min(sizes), 'lane')}, {demands[0]}"
    each = [
        f"for {named('lane', phase.lanes)}, {demand}"
        for phase, demand in zip(cost.phases, named_banks, strict=True)
    ]
    return f"{len(each)} {kind}; " + "; ".join(each)


def sharing_in_words(cost: SharedCost) -> str:
    """Which words serve several lanes at once; empty if none does, or if groups of lanes differ in it."""
    sharings = {_sharing(phase, cost.access) for phase in cost.phases}
    return sharings.pop() if len(sharings) == 1 else ""


def group_in_words(cost: SharedCost, index: int) -> str:
    """Name lanes that are served together: a matrix of ldmatrix, two groups fused, or a plain group."""
    lanes = named("lane", cost.phases[index].lanes)
    if instruction(cost.access.instruction).is_matrix:
        return f"matrix {cost.phases[index].lanes[0] // MATRIX_ROWS}: rows at the addresses of {lanes}"
    return f"{lanes}, two groups fused" if cost.fused else lanes


def cell_lines(lanes: Sequence[int]) -> tuple[str, ...]:
    """The lanes of a cell as lines of two characters: each lane, the ends of a series, or their number.

    >>> cell_lines([0, 1]), cell_lines(range(32)), cell_lines(range(0, 32, 4)), cell_lines([0, 3, 4, 9, 20])
    (('0', '1'), ('0', '⋮', '31'), ('0', '4', '⋮', '28'), ('0', '3', '4', '9', '20'))
    >>> cell_lines([n * n % 31 for n in range(16)])
    ('16', 'of', '32')
    """
    steps = {after - before for before, after in pairwise(lanes)}
    if len(lanes) > 3 and steps == {1}:
        return str(lanes[0]), "⋮", str(lanes[-1])
    if len(lanes) > 4 and len(steps) == 1:
        return str(lanes[0]), str(lanes[1]), "⋮", str(lanes[-1])
    return tuple(map(str, lanes)) if len(lanes) <= MOST_LINES else (str(len(lanes)), "of", "32")


def _demand(phase: Phase, access: WarpAccess, by_name: bool) -> str:
    """How many words each bank holds for the lanes of a phase, and which words serve several lanes."""
    banks_by_count: dict[int, list[int]] = {}
    for bank, words in phase.words_by_bank.items():
        banks_by_count.setdefault(len(words), []).append(bank)
    if len(banks_by_count) > 2:
        fullest = max(banks_by_count)
        used = sum(map(len, banks_by_count.values()))
        most = _holding(phase, fullest, banks_by_count[fullest], by_name)
        parts = [f"{used} of 32 banks hold words", f"at most {fullest}: {most}"]
    else:
        parts = [_holding(phase, *item, by_name) for item in sorted(banks_by_count.items(), reverse=True)]
        if sum(map(len, banks_by_count.values())) < BANKS:
            parts.append("all other banks none")
    sharing = _sharing(phase, access)
    return ", ".join(parts) + (f", and {sharing}" if sharing else "")


def _holding(phase: Phase, n_words: int, banks: list[int], by_name: bool) -> str:
    what = "1 word" if n_words == 1 else f"{n_words} different words"
    if n_words > 1 and not phase.merges_equal_words:
        what = f"{n_words} lane-words, which are not merged"
    if len(banks) == BANKS:
        return f"each of the {BANKS} banks holds {what}"
    if len(banks) == 1:
        return f"{f'bank {banks[0]}' if by_name else 'one bank'} holds {what}"
    return f"{named('bank', banks) if by_name else f'{len(banks)} banks'} hold {what} each"


def _sharing(phase: Phase, access: WarpAccess) -> str:
    """Which words serve several lanes at once; empty if none does."""
    sharers = [lanes for lanes in phase.lanes_by_word.values() if len(lanes) > 1]
    if not sharers or not phase.merges_equal_words:
        return ""
    sizes = sorted({len(lanes) for lanes in sharers})
    who = f"{sizes[0]} lanes" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]} lanes"
    verb = _VERBS[instruction(access.instruction).op]
    if len(phase.lanes_by_word) == 1:
        return f"{who} {verb} the same word together"
    if len(sharers) == len(phase.lanes_by_word):
        return f"{who} {verb} each word together"
    return f"{who} {verb} {'one word' if len(sharers) == 1 else f'each of {len(sharers)} words'} together"
