"""Asynchronous copies from global to shared memory (cp.async), in groups that a thread commits and waits for.

A thread may look at what it copied after it has waited for the group, others after a barrier that follows.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from lanewise.ptx.declare import Address, Assembly, Constant, intrinsic
from lanewise.ptx.operands import WrongOperand
from lanewise.ptx.traced import place_of

# One element of the whole width, so that it is copied bit for bit.
_WHOLE = {4: np.dtype(np.uint32), 8: np.dtype(np.uint64), 16: np.dtype((np.void, 16))}
_AMPERE: dict[str, Any] = {
    "needs": (8, 0),
    "instead": "Load into registers and store them to the tile instead.",
}


def _copy(cache: str, n_bytes: int) -> Assembly:
    return Assembly(
        f"cp.async.{cache}.shared.global [<dst>], [<src>], {n_bytes};",
        (Address("dst", "shared"), Address("src", "global")),
        effects=True,
    )


def _copies(cache: str, n_bytes: int) -> Callable[..., Any]:
    instruction = f"cp.async.{cache}.{n_bytes}"

    def copy(engine: Any, node: ast.Call, dst: Any, dst_index: Any, src: Any, src_index: Any) -> None:
        if dst.dtype.itemsize > n_bytes or src.dtype.itemsize > n_bytes:
            raise WrongOperand(
                f"{engine.frame.function.where(node)}: {instruction} copies {n_bytes} bytes, from {src.dtype}"
                f" to {dst.dtype}; an element is more than that. Use a wider copy."
            )
        places = []
        for array, index, op in ((src, src_index, "load"), (dst, dst_index, "store")):
            place = place_of(engine, node, array, index)
            places.append(engine.span(node, place, n_bytes // array.dtype.itemsize, op))
        if engine.inferring or any(place.mask is None for place in places):
            return
        source, destination = (place.grouped(_WHOLE[n_bytes]) for place in places)
        engine.copy_async(node, destination, source, instruction)

    return copy


@intrinsic(_copy("ca", 4), meaning=_copies("ca", 4), **_AMPERE)
def cp_async_4(dst: Any, dst_index: Any, src: Any, src_index: Any) -> None:
    """Start to copy 4 bytes from global to shared memory, through L1."""


@intrinsic(_copy("ca", 8), meaning=_copies("ca", 8), **_AMPERE)
def cp_async_8(dst: Any, dst_index: Any, src: Any, src_index: Any) -> None:
    """Start to copy 8 bytes from global to shared memory, through L1."""


@intrinsic(_copy("ca", 16), meaning=_copies("ca", 16), **_AMPERE)
def cp_async_16(dst: Any, dst_index: Any, src: Any, src_index: Any) -> None:
    """Start to copy 16 bytes from global to shared memory, through L1."""


@intrinsic(_copy("cg", 16), meaning=_copies("cg", 16), **_AMPERE)
def cp_async_cg_16(dst: Any, dst_index: Any, src: Any, src_index: Any) -> None:
    """Start to copy 16 bytes from global to shared memory, past L1."""


@intrinsic(
    Assembly("cp.async.commit_group;", effects=True),
    meaning=lambda engine, node: engine.commit_copies(node),
    **_AMPERE,
)
def cp_async_commit() -> None:
    """Close the group of copies that this thread has started."""


@intrinsic(
    Assembly("cp.async.wait_group <n>;", (Constant("n"),), effects=True),
    meaning=lambda engine, node, n: engine.wait_for_copies(node, int(n)),
    **_AMPERE,
)
def cp_async_wait(n: Any) -> None:
    """Wait until at most the last `n` groups of this thread are under way; `n` is a literal."""


@intrinsic(
    Assembly("cp.async.wait_all;", effects=True),
    meaning=lambda engine, node: engine.wait_for_all_copies(node),
    **_AMPERE,
)
def cp_async_wait_all() -> None:
    """Wait for every copy of this thread, committed or not."""
