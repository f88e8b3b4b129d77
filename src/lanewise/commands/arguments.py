"""Kernel arguments from descriptions, such as `64x64:f32:arange`, `3`, `2.5:f32`: for the command line.

SHAPE:DTYPE[:FILL]     an array; FILL is zeros (default), ones, arange, random, nan, or a number
NUMBER[:DTYPE]         a scalar: an int, or a float where it has a point; typed where a type is given
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from lanewise.errors import Error

MOST_BYTES = 2**31  # of one array; a slip in a shape would otherwise fill the memory
FILLS = ("zeros", "ones", "arange", "random", "nan")
TYPES = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "b1": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
_SHAPE = re.compile(r"\d+(x\d+){0,7}")
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[-+]?0x[0-9a-fA-F]+")


class InvalidArgument(Error):
    """A description that gives no argument, or a shape of blocks that is none."""


def argument(text: str, seed: int = 0) -> Any:
    """The argument that a description gives; `random` fills from the seed: 0 to 1, or any integer.

    >>> argument("2x3:f32:arange").tolist()
    [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    >>> argument("7"), argument("2.5:f32")
    (7, np.float32(2.5))

    Raises `InvalidArgument` with what is allowed.
    """
    parts = text.strip().split(":")
    if len(parts) > 1 and _SHAPE.fullmatch(parts[0]) and (len(parts) == 3 or "x" in parts[0]):
        return _array(text, parts, seed)
    if len(parts) <= 2 and _NUMBER.fullmatch(parts[0]):
        return _scalar(text, parts)
    raise InvalidArgument(
        f"--arg {text!r}: write an array as SHAPE:TYPE:FILL (64x64:f32:arange) or a number (3, 2.5:f32)."
        f" Types: {', '.join(TYPES)}. Fills: {', '.join(FILLS)}, or a number."
    )


def shape(option: str, text: str) -> tuple[int, ...]:
    """A grid or block shape from `32`, `32x8` or `32,8`, x first. Raises `InvalidArgument`."""
    parts = re.split(r"[x,]", text.strip())
    if not 1 <= len(parts) <= 3 or not all(part.isascii() and part.isdigit() for part in parts):
        raise InvalidArgument(f"{option} {text!r}: write one to three numbers, x first: 256, 32x8 or 2,2,1.")
    return tuple(map(int, parts))


def _array(text: str, parts: list[str], seed: int) -> np.ndarray:
    extents = tuple(map(int, parts[0].split("x")))
    dtype = _dtype(text, parts[1])
    n_bytes = math.prod(extents) * dtype.itemsize
    if n_bytes > MOST_BYTES:
        raise InvalidArgument(
            f"--arg {text!r}: {n_bytes:,} bytes; at most {MOST_BYTES:,}. Trace a smaller case."
        )
    return _filled(text, extents, dtype, parts[2] if len(parts) == 3 else "zeros", seed)


def _filled(text: str, extents: tuple[int, ...], dtype: np.dtype, fill: str, seed: int) -> np.ndarray:
    n = math.prod(extents)
    if fill == "arange":
        return np.arange(n).astype(dtype).reshape(extents)
    if fill == "random":
        return _random(np.random.default_rng(seed), extents, dtype)
    if fill in ("zeros", "ones"):
        return np.full(extents, int(fill == "ones"), dtype)
    if fill == "nan" and dtype.kind in "fc":
        return np.full(extents, np.nan, dtype)
    if _NUMBER.fullmatch(fill):
        return np.full(extents, _number(fill), dtype)
    raise InvalidArgument(f"--arg {text!r}: fill {fill!r} for {dtype}; use {', '.join(FILLS)}, or a number.")


def _random(rng: np.random.Generator, extents: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iu":
        return rng.integers(0, np.iinfo(dtype).max, extents, dtype=dtype, endpoint=True)
    if dtype.kind == "b":
        return rng.integers(0, 2, extents).astype(dtype)
    return rng.random(extents).astype(dtype)


def _scalar(text: str, parts: list[str]) -> Any:
    value = _number(parts[0])
    if len(parts) == 1:
        return value
    dtype = _dtype(text, parts[1])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if value != int(value) or not info.min <= value <= info.max:
            raise InvalidArgument(
                f"--arg {text!r}: {dtype} holds whole numbers {info.min:,} to {info.max:,}."
            )
    return dtype.type(value)


def _number(text: str) -> int | float:
    if "x" in text.lower():
        return int(text, 16)
    return float(text) if re.search(r"[.eE]", text) else int(text)


def _dtype(text: str, name: str) -> np.dtype:
    if name in TYPES:
        return np.dtype(TYPES[name])
    full = {np.dtype(kind).name: kind for kind in TYPES.values()}
    if name in full:
        return np.dtype(full[name])
    raise InvalidArgument(
        f"--arg {text!r}: no type {name!r}; types are {', '.join(TYPES)}, or {', '.join(full)}."
    )
