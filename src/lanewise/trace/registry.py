"""The closed set of functions and values that a kernel may use, by dotted name.

A module adds an intrinsic with the decorator:

    @intrinsic("cuda.clz")
    def clz(engine, node, number): ...

`lanewise.ptx` adds its own where it declares their PTX. `engine` is the pass (type inference or execution).
It offers `element`, `load`, `store`, `wide`, `span`, `access`, `atomic`, `copy_async`, `barrier`, `tick`, the
active `mask` and `frame`; `node` is the call, for messages and for the source position of memory
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


def find(path: str) -> Callable[..., Any] | None:
    """The meaning of a name, or None. The names of `lanewise.ptx` are there once a kernel asks for one."""
    if path.startswith("ptx.") and path not in INTRINSICS:
        # Late: the intrinsics are built on the tracer, and numba comes with them where it is installed.
        from lanewise import ptx

        INTRINSICS.update(ptx.meanings())
    return INTRINSICS.get(path)


def nearest(path: str) -> str:
    """A sentence with the known names nearest to an unknown one."""
    known = sorted({*INTRINSICS, *VALUES})
    close = difflib.get_close_matches(path, known, n=3, cutoff=0.6)
    return (
        f"Did you mean {', '.join(close)}?"
        if close
        else "It is not among the functions that the tracer knows."
    )
