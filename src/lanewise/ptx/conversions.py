"""Numbers in registers: pairs of 16-bit floats in a word, the bits of a float, the fast power of two."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from lanewise.ptx.declare import Assembly, Loose, Registers, intrinsic
from lanewise.trace.lanes import cast, whole

_PAIR = (Loose("lo", "float32"), Loose("hi", "float32"))
_WORD = Registers("d", "uint32")
_NUMBERS = Registers("d", "float32", 2)
_16 = np.uint32(16)
# What cvt gives for every NaN: in 16 bits of either type, and in 32.
_NAN_16 = np.uint32(0x7FFF)
_NAN_32 = np.uint32(0x7FFFFFFF).view(np.float32)


def _float32(engine: Any, node: ast.Call, value: Any) -> np.ndarray:
    return np.asarray(whole(cast(engine.as_number(node, value), np.dtype(np.float32))))


def _half_bits(value: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(value), _NAN_16, value.astype(np.float16).view(np.uint16).astype(np.uint32))


def _bf16_bits(value: np.ndarray) -> np.ndarray:
    """The upper half of the bits, rounded to nearest even: the odd bit decides a tie."""
    bits = value.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> _16) & np.uint32(1))) >> _16
    return np.where(np.isnan(value), _NAN_16, rounded)


def _packs(bits_of: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Any]:
    def pack(engine: Any, node: ast.Call, lo: Any, hi: Any) -> Any:
        engine.tick(node)
        low, high = (bits_of(_float32(engine, node, value)) for value in (lo, hi))
        return (low | (high << _16)).astype(np.uint32)[()]

    return pack


def _half_value(bits: np.ndarray) -> Any:
    value = bits.astype(np.uint16).view(np.float16).astype(np.float32)
    return np.where(np.isnan(value), _NAN_32, value)[()]


def _bf16_value(bits: np.ndarray) -> Any:
    return (bits << _16).view(np.float32)[()]


def _unpacks(value_of: Callable[[np.ndarray], Any]) -> Callable[..., Any]:
    def unpack(engine: Any, node: ast.Call, u: Any) -> Any:
        engine.tick(node)
        given = u[0] if isinstance(u, tuple) else u
        word = np.asarray(whole(cast(engine.as_number(node, given), np.dtype(np.uint32))))
        return value_of(word & np.uint32(0xFFFF)), value_of(word >> _16)

    return unpack


@intrinsic(
    (
        (7, 5),
        Assembly(
            "{ .reg .b16 lo, hi; cvt.rn.f16.f32 lo, <lo>; cvt.rn.f16.f32 hi, <hi>; mov.b32 <d>, {lo, hi}; }",
            _PAIR,
            _WORD,
        ),
    ),
    ((8, 0), Assembly("cvt.rn.f16x2.f32 <d>, <hi>, <lo>;", _PAIR, _WORD)),
    meaning=_packs(_half_bits),
)
def pack_half2(lo: Any, hi: Any) -> Any:
    """Round two float32 to float16 (to nearest even) and put them in a uint32, `lo` in the low half."""


@intrinsic(
    Assembly(
        "{ .reg .b16 lo, hi; mov.b32 {lo, hi}, <u>; cvt.f32.f16 <d.0>, lo; cvt.f32.f16 <d.1>, hi; }",
        (Registers("u", "uint32"),),
        _NUMBERS,
    ),
    meaning=_unpacks(_half_value),
)
def unpack_half2(u: Any) -> Any:
    """The two float16 in a uint32 as float32, the low half first."""


@intrinsic(
    Assembly("cvt.rn.bf16x2.f32 <d>, <hi>, <lo>;", _PAIR, _WORD),
    meaning=_packs(_bf16_bits),
    needs=(8, 0),
    instead="Use float16 and pack_half2.",
)
def pack_bf16x2(lo: Any, hi: Any) -> Any:
    """Round two float32 to bfloat16 (to nearest even) and put them in a uint32, `lo` in the low half."""


@intrinsic(
    Assembly(
        "{ .reg .b32 lo, hi; shl.b32 lo, <u>, 16; and.b32 hi, <u>, 0xffff0000;"
        " mov.b32 <d.0>, lo; mov.b32 <d.1>, hi; }",
        (Registers("u", "uint32"),),
        _NUMBERS,
    ),
    meaning=_unpacks(_bf16_value),
)
def unpack_bf16x2(u: Any) -> Any:
    """The two bfloat16 in a uint32 as float32, the low half first."""


def _float_bits(engine: Any, node: ast.Call, x: Any) -> Any:
    engine.tick(node)
    return _float32(engine, node, x).view(np.uint32)[()]


def _bits_float(engine: Any, node: ast.Call, u: Any) -> Any:
    engine.tick(node)
    word = whole(cast(engine.as_number(node, u), np.dtype(np.uint32)))
    return np.asarray(word).view(np.float32)[()]


@intrinsic(
    Assembly("mov.b32 <d>, <x>;", (Loose("x", "float32"),), Registers("d", "uint32")), meaning=_float_bits
)
def float_bits(x: Any) -> Any:
    """The 32 bits of a float32 as a uint32."""


@intrinsic(
    Assembly("mov.b32 <d>, <u>;", (Loose("u", "uint32"),), Registers("d", "float32")), meaning=_bits_float
)
def bits_float(u: Any) -> Any:
    """The float32 that has the bits of a uint32: undoes `float_bits`."""


def _exp2(engine: Any, node: ast.Call, x: Any) -> Any:
    """NumPy rounds correctly where the GPU may be 2 units in the last place off."""
    engine.tick(node)
    power = np.exp2(_float32(engine, node, x))
    return np.where(power < np.finfo(np.float32).tiny, np.float32(0), power)[()]


@intrinsic(
    Assembly("ex2.approx.ftz.f32 <d>, <x>;", (Loose("x", "float32"),), Registers("d", "float32")),
    meaning=_exp2,
)
def exp2_approx(x: Any) -> Any:
    """2 to the power of a float32, as the special function unit approximates it; subnormals become 0."""
