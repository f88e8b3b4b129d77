"""Numbers in registers: pairs of 16-bit floats in a word, and the fast power of two."""

from __future__ import annotations

from typing import Any

from lanewise.ptx.declare import Assembly, Loose, Registers, intrinsic

_PAIR = (Loose("lo", "f32"), Loose("hi", "f32"))
_WORD = Registers("d", "u32")


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
)
def pack_half2(lo: Any, hi: Any) -> Any:
    """Round two float32 to float16 (to nearest even) and put them in a uint32, `lo` in the low half."""


@intrinsic(
    Assembly(
        "{ .reg .b16 lo, hi; mov.b32 {lo, hi}, <u>; cvt.f32.f16 <d.0>, lo; cvt.f32.f16 <d.1>, hi; }",
        (Registers("u", "u32"),),
        Registers("d", "f32", 2),
    )
)
def unpack_half2(u: Any) -> Any:
    """The two float16 in a uint32 as float32, the low half first."""


@intrinsic(
    Assembly("cvt.rn.bf16x2.f32 <d>, <hi>, <lo>;", _PAIR, _WORD),
    needs=(8, 0),
    instead="Use float16 and pack_half2.",
)
def pack_bf16x2(lo: Any, hi: Any) -> Any:
    """Round two float32 to bfloat16 (to nearest even) and put them in a uint32, `lo` in the low half."""


@intrinsic(
    Assembly(
        "{ .reg .b32 lo, hi; shl.b32 lo, <u>, 16; and.b32 hi, <u>, 0xffff0000; mov.b32 <d.0>, lo; mov.b32 <d.1>, hi; }",
        (Registers("u", "u32"),),
        Registers("d", "f32", 2),
    )
)
def unpack_bf16x2(u: Any) -> Any:
    """The two bfloat16 in a uint32 as float32, the low half first."""


@intrinsic(Assembly("ex2.approx.ftz.f32 <d>, <x>;", (Loose("x", "f32"),), Registers("d", "f32")))
def exp2_approx(x: Any) -> Any:
    """2 to the power of a float32, as the special function unit approximates it; subnormals become 0."""
