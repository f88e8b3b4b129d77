"""Tensor Core operands: ldmatrix and stmatrix move 8x8 matrices of 2-byte elements, mma multiplies them."""

from __future__ import annotations

from typing import Any

from lanewise.ptx.declare import Address, Assembly, Loose, Registers, intrinsic

_TILE = Address("tile", "shared", itemsizes=(2,))


def _load(n: int, trans: str = "") -> Assembly:
    return Assembly(
        f"ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {{<d>}}, [<tile>];",
        (_TILE,),
        Registers("d", "u32", n),
        effects=True,
        together=True,
    )


def _store(n: int, trans: str = "") -> Assembly:
    return Assembly(
        f"stmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 [<tile>], {{<r>}};",
        (_TILE, Loose("r", "u32", n)),
        effects=True,
        together=True,
    )


@intrinsic(_load(1))
def ldmatrix_x1(tile: Any, index: Any) -> Any:
    """Load one 8x8 matrix: lanes 0..7 give the element index of a row each. Gives a uint32."""


@intrinsic(_load(2))
def ldmatrix_x2(tile: Any, index: Any) -> Any:
    """Load two 8x8 matrices: lanes 0..15 give the element index of a row each. Gives 2 uint32."""


@intrinsic(_load(4))
def ldmatrix_x4(tile: Any, index: Any) -> Any:
    """Load four 8x8 matrices: every lane gives the element index of a row. Gives 4 uint32."""


@intrinsic(_load(1, ".trans"))
def ldmatrix_x1_trans(tile: Any, index: Any) -> Any:
    """Load one 8x8 matrix, transposed on the way."""


@intrinsic(_load(2, ".trans"))
def ldmatrix_x2_trans(tile: Any, index: Any) -> Any:
    """Load two 8x8 matrices, each transposed on the way."""


@intrinsic(_load(4, ".trans"))
def ldmatrix_x4_trans(tile: Any, index: Any) -> Any:
    """Load four 8x8 matrices, each transposed on the way."""


_SCATTER = "Write the registers with ptx.store2 or plain stores instead."


@intrinsic(_store(1), needs=(9, 0), instead=_SCATTER)
def stmatrix_x1(tile: Any, index: Any, r0: Any) -> None:
    """Store one 8x8 matrix: the reverse of ldmatrix_x1."""


@intrinsic(_store(2), needs=(9, 0), instead=_SCATTER)
def stmatrix_x2(tile: Any, index: Any, r0: Any, r1: Any) -> None:
    """Store two 8x8 matrices: the reverse of ldmatrix_x2."""


@intrinsic(_store(4), needs=(9, 0), instead=_SCATTER)
def stmatrix_x4(tile: Any, index: Any, r0: Any, r1: Any, r2: Any, r3: Any) -> None:
    """Store four 8x8 matrices: the reverse of ldmatrix_x4."""


@intrinsic(_store(1, ".trans"), needs=(9, 0), instead=_SCATTER)
def stmatrix_x1_trans(tile: Any, index: Any, r0: Any) -> None:
    """Store one 8x8 matrix, transposed on the way."""


@intrinsic(_store(2, ".trans"), needs=(9, 0), instead=_SCATTER)
def stmatrix_x2_trans(tile: Any, index: Any, r0: Any, r1: Any) -> None:
    """Store two 8x8 matrices, each transposed on the way."""


@intrinsic(_store(4, ".trans"), needs=(9, 0), instead=_SCATTER)
def stmatrix_x4_trans(tile: Any, index: Any, r0: Any, r1: Any, r2: Any, r3: Any) -> None:
    """Store four 8x8 matrices, each transposed on the way."""


def _mma(shape: str, inputs: str, n_a: int, n_b: int) -> Assembly:
    return Assembly(
        f"mma.sync.aligned.{shape}.row.col.f32.{inputs}.{inputs}.f32 {{<d>}}, {{<a>}}, {{<b>}}, {{<c>}};",
        (Registers("a", "u32", n_a), Registers("b", "u32", n_b), Registers("c", "f32", 4)),
        Registers("d", "f32", 4),
        together=True,
    )


_TWO_STEPS = "Use mma_m16n8k8_f16 twice, with half of a and b each time."


@intrinsic(_mma("m16n8k16", "f16", 4, 2), needs=(8, 0), instead=_TWO_STEPS)
def mma_m16n8k16_f16(a: Any, b: Any, c: Any) -> Any:
    """Add the product of a 16x16 and a 16x8 float16 fragment to a 16x8 float32 one: 4 float32 per lane."""


@intrinsic(_mma("m16n8k16", "bf16", 4, 2), needs=(8, 0), instead="Use float16 and mma_m16n8k8_f16.")
def mma_m16n8k16_bf16(a: Any, b: Any, c: Any) -> Any:
    """Add the product of a 16x16 and a 16x8 bfloat16 fragment to a 16x8 float32 one."""


@intrinsic(_mma("m16n8k8", "f16", 2, 1))
def mma_m16n8k8_f16(a: Any, b: Any, c: Any) -> Any:
    """Add the product of a 16x8 and an 8x8 float16 fragment to a 16x8 float32 one."""
