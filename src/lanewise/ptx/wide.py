"""Wide accesses: 2, 4 or 8 neighbouring elements by one instruction of 8 or 16 bytes; read-only loads.

A wide access must be aligned to all of its bytes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from lanewise.ptx.declare import SharedAddress, VectorLoad, VectorStore, intrinsic
from lanewise.ptx.traced import UINT32, place_of
from lanewise.trace.lanes import whole


def _loading(n: int) -> Callable[..., Any]:
    def load(engine: Any, node: ast.Call, array: Any, index: Any) -> Any:
        return engine.wide(node, place_of(engine, node, array, index), n, None)

    return load


def _loading_constant(n: int) -> Callable[..., Any]:
    def load(engine: Any, node: ast.Call, array: Any, index: Any) -> Any:
        place = place_of(engine, node, array, index)
        engine.check_constant(node, place, n)
        return engine.load(node, place) if n == 1 else engine.wide(node, place, n, None)

    return load


def _storing(n: int) -> Callable[..., Any]:
    def store(engine: Any, node: ast.Call, array: Any, index: Any, *values: Any) -> None:
        values = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
        engine.wide(
            node,
            place_of(engine, node, array, index),
            n,
            tuple(engine.as_number(node, value) for value in values),
        )

    return store


@intrinsic(VectorLoad(2), meaning=_loading(2))
def load2(array: Any, index: Any) -> Any:
    """Read 2 neighbouring elements (8 or 16 bytes) as a tuple."""


@intrinsic(VectorLoad(4), meaning=_loading(4))
def load4(array: Any, index: Any) -> Any:
    """Read 4 neighbouring elements (8 or 16 bytes) as a tuple."""


@intrinsic(VectorLoad(8), meaning=_loading(8))
def load8(array: Any, index: Any) -> Any:
    """Read 8 neighbouring elements (8 or 16 bytes) as a tuple."""


@intrinsic(VectorLoad(1, constant=True), meaning=_loading_constant(1))
def load_nc(array: Any, index: Any) -> Any:
    """Read one element of global memory that no thread writes while the kernel runs (ld.global.nc)."""


@intrinsic(VectorLoad(2, constant=True), meaning=_loading_constant(2))
def load2_nc(array: Any, index: Any) -> Any:
    """Read 2 neighbouring elements that no thread writes while the kernel runs."""


@intrinsic(VectorLoad(4, constant=True), meaning=_loading_constant(4))
def load4_nc(array: Any, index: Any) -> Any:
    """Read 4 neighbouring elements that no thread writes while the kernel runs."""


@intrinsic(VectorLoad(8, constant=True), meaning=_loading_constant(8))
def load8_nc(array: Any, index: Any) -> Any:
    """Read 8 neighbouring elements that no thread writes while the kernel runs."""


@intrinsic(VectorStore(2), meaning=_storing(2))
def store2(array: Any, index: Any, *values: Any) -> None:
    """Write 2 values, given one by one or as a tuple, to neighbouring elements."""


@intrinsic(VectorStore(4), meaning=_storing(4))
def store4(array: Any, index: Any, *values: Any) -> None:
    """Write 4 values to neighbouring elements."""


@intrinsic(VectorStore(8), meaning=_storing(8))
def store8(array: Any, index: Any, *values: Any) -> None:
    """Write 8 values to neighbouring elements."""


def _shared_address(engine: Any, node: ast.Call, array: Any, index: Any) -> Any:
    """Counted from the block's first array; a GPU adds what it keeps before it for itself, 1 KiB at most."""
    place = place_of(engine, node, array, index)
    engine.tick(node)
    if engine.inferring:
        return engine.dummy(UINT32)
    return np.asarray(whole(place.index) * place.unit + place.phase).astype(np.uint32)[()]


@intrinsic(SharedAddress(), meaning=_shared_address)
def shared_address(array: Any, index: Any) -> Any:
    """The byte address of an element of a shared array in the window of shared memory, uint32."""
