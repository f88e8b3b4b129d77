"""Hold the tracer against the oracle on one launch: the same arrays bit by bit, the same costs line by line."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from lanewise.trace import Trace, trace
from tests.oracle import LineCount, count_by_line, run
from tests.oracle.counts import Place


def traced_counts(seen: Trace) -> dict[Place, LineCount]:
    """The tracer's sites, added up per line, space, op and bytes per lane."""
    totals: dict[Place, LineCount] = defaultdict(LineCount)
    for site in seen.sites:
        if site.requests:
            count = LineCount(site.requests, site.wavefronts, site.ideal, site.sectors)
            if site.op == "atomic":
                count = LineCount(site.requests)
            totals[site.line, site.space, site.op, _bytes_per_lane(site.instruction)] += count
    return dict(totals)


def differences(
    kernel: Any, grid: Any, block: Any, arguments: tuple[Any, ...], dynamic_shared_bytes: int = 0
) -> list[str]:
    """What the tracer and the oracle disagree about: one sentence each; none where they agree.

    Both get their own copy of `arguments`. Hazards count as a disagreement: the kernels compared here have none.
    """
    for_oracle, for_tracer = _copies(arguments), _copies(arguments)
    expected = count_by_line(run(kernel, grid, block, *for_oracle, dynamic_shared_bytes=dynamic_shared_bytes))
    seen = trace(kernel, grid, block, *for_tracer, dynamic_shared_bytes=dynamic_shared_bytes)
    return [
        *_array_differences(for_tracer, for_oracle),
        *count_differences(traced_counts(seen), expected),
        *(f"hazard: {hazard}" for hazard in seen.hazards),
    ]


def _array_differences(traced: tuple[Any, ...], expected: tuple[Any, ...]) -> list[str]:
    found = []
    for position, (given, wanted) in enumerate(zip(traced, expected, strict=True)):
        if isinstance(given, np.ndarray) and not _same_bits(given, wanted):
            place = tuple(int(axis[0]) for axis in np.nonzero(~_equal(given, wanted)))
            found.append(
                f"argument {position} differs, first at {place}: {given[place]!r}, oracle {wanted[place]!r}"
            )
    return found


def _same_bits(given: np.ndarray, wanted: np.ndarray) -> bool:
    return bool(_equal(given, wanted).all())


def _equal(given: np.ndarray, wanted: np.ndarray) -> Any:
    """Elementwise; NaN equals NaN, and so do zeros of both signs."""
    if given.dtype.fields:
        return given == wanted
    return (given == wanted) | ((given != given) & (wanted != wanted))


def count_differences(traced: Mapping[Place, LineCount], expected: Mapping[Place, LineCount]) -> list[str]:
    return [
        f"line {place[0]}, {place[3]}-byte {place[1]} {place[2]}: {traced.get(place)}, oracle {expected.get(place)}"
        for place in sorted({*traced, *expected})
        if traced.get(place) != expected.get(place)
    ]


def _bytes_per_lane(instruction: str) -> int:
    """The width in an instruction's name: ld.shared.b32, red.shared.add.u32, atom.global.cas.b64."""
    return int("".join(character for character in instruction.split(".")[-1] if character.isdigit())) // 8


def _copies(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """Independent copies that keep the memory layout of views."""
    return tuple(
        _copy(argument) if isinstance(argument, np.ndarray) else copy.copy(argument) for argument in arguments
    )


def _copy(array: np.ndarray) -> np.ndarray:
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    memory = np.frombuffer(root.tobytes(order="A"), np.uint8).copy()
    return np.ndarray(array.shape, array.dtype, memory.data, start, array.strides)
