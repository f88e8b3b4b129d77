"""Who waits for whom: barriers of a block, barriers of the grid, and operations of a warp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.oracle.record import Thread
from tests.oracle.scalars import Number
from tests.oracle.stand_ins import Wait

Waiting = dict[int, tuple[Thread, Wait]]
BARRIERS: dict[str, Callable[[list[bool]], Any]] = {
    "syncthreads": lambda values: None,
    "syncthreads_count": lambda values: Number(np.int32(sum(values))),
    "syncthreads_and": lambda values: Number(np.int32(all(values))),
    "syncthreads_or": lambda values: Number(np.int32(any(values))),
}


def meet(waiting: Waiting) -> dict[int, Any]:
    """The threads whose wait is over, each with the value that its operation returns.

    All given threads are those still alive. Warp operations come first: lanes meet if they stand at the same moment.
    A barrier opens when all living threads of the block stand at the same barrier.
    """
    answers: dict[int, Any] = {}
    for _, crew in _grouped(
        waiting, lambda thread, wait: (thread.block, thread.warp, wait.operation, wait.moment)
    ):
        answers |= _meet_in_warp(crew)
    if answers:
        return answers
    for _, crew in _grouped(waiting, lambda thread, wait: thread.block):
        standing = {(wait.operation, wait.moment) for _, wait in crew.values()}
        if len(standing) == 1 and (name := standing.pop()[0]) in BARRIERS:
            answer = BARRIERS[name]([bool(wait.value) for _, wait in crew.values()])
            answers |= dict.fromkeys(crew, answer)
    if not answers and {wait.operation for _, wait in waiting.values()} == {"grid"}:
        return dict.fromkeys(waiting)
    return answers


def _meet_in_warp(crew: Waiting) -> dict[int, Any]:
    """Answers of one warp operation, or nothing if this is no warp operation."""
    operation = next(iter(crew.values()))[1].operation
    if operation in BARRIERS or operation == "grid":
        return {}
    by_lane = {thread.lane: wait for thread, wait in crew.values()}
    return {member: _WARP[operation](thread.lane, wait, by_lane) for member, (thread, wait) in crew.items()}


def _partners(wait: Wait, by_lane: dict[int, Wait]) -> dict[int, Wait]:
    return {lane: other for lane, other in by_lane.items() if wait.mask >> lane & 1}


def _shuffle(lane: int, wait: Wait, by_lane: dict[int, Wait]) -> Any:
    # The value of a lane that does not take part is undefined; the corpus never uses it.
    return by_lane[wait.source].value if wait.source in by_lane else wait.value


def _vote(combine: Callable[[list[bool]], bool]) -> Callable[[int, Wait, dict[int, Wait]], Any]:
    def answer(lane: int, wait: Wait, by_lane: dict[int, Wait]) -> Number:
        votes = [bool(other.value) for other in _partners(wait, by_lane).values()]
        return Number(np.bool_(combine(votes)))

    return answer


def _ballot(lane: int, wait: Wait, by_lane: dict[int, Wait]) -> Number:
    return _mask(other for other, its in _partners(wait, by_lane).items() if its.value)


def _match_any(lane: int, wait: Wait, by_lane: dict[int, Wait]) -> Number:
    mine = by_lane[lane].value
    return _mask(other for other, its in _partners(wait, by_lane).items() if bool(its.value == mine))


def _mask(lanes: Any) -> Number:
    return Number(np.uint32(sum(1 << lane for lane in lanes)).astype(np.int32))


_WARP: dict[str, Callable[[int, Wait, dict[int, Wait]], Any]] = {
    "syncwarp": lambda lane, wait, by_lane: None,
    "shuffle": _shuffle,
    "all": _vote(all),
    "any": _vote(any),
    "eq": _vote(lambda votes: len(set(votes)) == 1),
    "ballot": _ballot,
    "match_any": _match_any,
}


def _grouped(waiting: Waiting, key: Callable[[Thread, Wait], Any]) -> list[tuple[Any, Waiting]]:
    groups: dict[Any, Waiting] = {}
    for member, (thread, wait) in waiting.items():
        groups.setdefault(key(thread, wait), {})[member] = (thread, wait)
    return list(groups.items())
