"""Loads and stores of global memory that order the accesses around them, for all threads of the GPU."""

from __future__ import annotations

from typing import Any

from lanewise.ptx.declare import Address, Assembly, Element, intrinsic

_WORD = Address("array", "global", itemsizes=(4, 8))


@intrinsic(Assembly("ld.acquire.gpu.global.<d.type> <d>, [<array>];", (_WORD,), Element("d"), effects=True))
def load_acquire(array: Any, index: Any) -> Any:
    """Read an element so that what its writer wrote before `store_release` is visible afterwards."""


@intrinsic(Assembly("st.release.gpu.global.<v.type> [<array>], <v>;", (_WORD, Element("v")), effects=True))
def store_release(array: Any, index: Any, value: Any) -> None:
    """Write an element after everything this thread wrote before; `load_acquire` elsewhere sees it."""
