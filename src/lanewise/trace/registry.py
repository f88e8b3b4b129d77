"""The closed set of functions and values that a kernel may use, by dotted name.

`lanewise.ptx` and others add an intrinsic with the decorator:

    @intrinsic("ptx.load4")
    def load4(engine, node, array, index): ...

`engine` is the pass (type inference or execution). It offers `element`, `load`, `store`, `atomic`, `barrier`,
`tick`, the active `mask` and `frame`; `node` is the call, for messages and for the source position of memory
accesses. During type inference the same function runs on one warp of dummy lanes, so its result has the right
type by construction.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

INTRINSICS: dict[str, Callable[..., Any]] = {}
VALUES: dict[str, Callable[[Any], Any]] = {}


def intrinsic(*paths: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function under one or several dotted names."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for path in paths:
            INTRINSICS[path] = function
        return function

    return register


def value(path: str) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Register what a dotted name that is no function stands for, such as `cuda.threadIdx.x`."""

    def register(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        VALUES[path] = function
        return function

    return register


def nearest(path: str) -> str:
    """A sentence with the known names nearest to an unknown one."""
    known = sorted({*INTRINSICS, *VALUES})
    close = difflib.get_close_matches(path, known, n=3, cutoff=0.6)
    return (
        f"Did you mean {', '.join(close)}?"
        if close
        else "It is not among the functions that the tracer knows."
    )
