"""Loads and stores of global memory that order the accesses around them, for all threads of the GPU.

For the tracer they are atomic: value and flag in one word are handed over without a race. That they order
accesses to other words too it does not follow, and says so in a note.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from lanewise.ptx.declare import Address, Assembly, Element, intrinsic
from lanewise.ptx.traced import place_of
from lanewise.trace.lanes import cast

_WORD = Address("array", "global", itemsizes=(4, 8))


def _load(engine: Any, node: ast.Call, array: Any, index: Any) -> Any:
    place = engine.span(node, place_of(engine, node, array, index), 1, "atomic")
    if engine.inferring:
        return engine.dummy(place.dtype)
    if place.mask is None:
        return place.dtype.type(0)
    width = place.dtype.itemsize
    engine.notes.setdefault(
        f"line {node.lineno}: load_acquire also orders other accesses, which the tracer does not follow: a"
        " global_race between two blocks that hand over data in another word may be none."
    )
    engine.access(node, "load", f"ld.global.b{8 * width}", place, width, shaded="acquire")
    value = place.storage.gather(place, engine.shape)
    return value if place.outside is None else np.where(place.outside.array, place.dtype.type(0), value)


def _store(engine: Any, node: ast.Call, array: Any, index: Any, value: Any) -> None:
    place = engine.span(node, place_of(engine, node, array, index), 1, "atomic")
    if engine.inferring or place.mask is None:
        return
    width = place.dtype.itemsize
    engine.access(node, "store", f"st.global.b{8 * width}", place, width, shaded="release")
    place.storage.scatter(place, cast(engine.as_number(node, value), place.dtype), place.mask)


@intrinsic(
    Assembly("ld.acquire.gpu.global.<d.type> <d>, [<array>];", (_WORD,), Element("d"), effects=True),
    meaning=_load,
)
def load_acquire(array: Any, index: Any) -> Any:
    """Read an element so that what its writer wrote before `store_release` is visible afterwards."""


@intrinsic(
    Assembly(
        "st.release.gpu.global.<value.type> [<array>], <value>;", (_WORD, Element("value")), effects=True
    ),
    meaning=_store,
)
def store_release(array: Any, index: Any, value: Any) -> None:
    """Write an element after everything this thread wrote before; `load_acquire` elsewhere sees it."""
