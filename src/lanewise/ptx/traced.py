"""From the tracer to the meanings: checks a call against its declaration, then runs what it means."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from lanewise.machine import WARP_LANES
from lanewise.ptx.declare import DECLARED, Intrinsic, UnsupportedCapability
from lanewise.ptx.operands import Array, Given, Number, WrongOperand, check
from lanewise.trace.arrays import ArrayRef, Place
from lanewise.trace.device import element_named
from lanewise.trace.lanes import cast, dtype_of, is_constant, is_number, whole

UINT32, FLOAT32 = np.dtype(np.uint32), np.dtype(np.float32)


def meanings() -> dict[str, Callable[..., Any]]:
    """What each name of `lanewise.ptx` means, for `lanewise.trace.registry`."""
    return {f"ptx.{name}": _checked(declared) for name, declared in DECLARED.items()}


def _checked(declared: Intrinsic) -> Callable[..., Any]:
    """Type inference sees every call, so that it alone checks."""

    def run(engine: Any, node: ast.Call, *arguments: Any, **keywords: Any) -> Any:
        if engine.inferring:
            where = engine.frame.function.where(node)
            try:
                declared.require(engine.launch.machine.capability, "traced")
                if keywords:
                    raise WrongOperand(f"lanewise.ptx.{declared.name}: takes no arguments by name.")
                check(declared, tuple(_described(argument) for argument in arguments))
            except (UnsupportedCapability, WrongOperand) as error:
                raise type(error)(f"{where}: {error}") from None
        return declared.meaning(engine, node, *arguments)

    return run


def _described(value: Any) -> Given:
    if isinstance(value, ArrayRef):
        return Array(value.dtype.name, value.dtype.itemsize, value.ndim, value.storage.space)
    if isinstance(value, tuple):
        return tuple(_described(part) for part in value)
    if is_number(value):
        literal = int(value) if is_constant(value) and isinstance(value, int) else None
        return Number(dtype_of(value).name, literal)
    return type(value).__name__.lower()


def place_of(engine: Any, node: ast.Call, array: ArrayRef, index: Any) -> Place:
    """The element that an array and an index name."""
    place: Place = element_named(engine, node, array, index)
    return place


def stacked(engine: Any, values: tuple[Any, ...], dtype: np.dtype) -> np.ndarray:
    """Lane values side by side, `(blocks, warps, 32, n)`; blocks is 1 if all are alike."""
    parts = [np.atleast_2d(whole(cast(value, dtype))) for value in values]
    n_blocks = max(part.shape[0] for part in parts)
    n_lanes = engine.shape[1]
    result = np.empty((n_blocks, n_lanes, len(parts)), dtype)
    for i, part in enumerate(parts):
        result[..., i] = part
    return result.reshape(n_blocks, n_lanes // WARP_LANES, WARP_LANES, len(parts))
