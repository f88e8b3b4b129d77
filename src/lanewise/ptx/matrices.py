"""Tensor Core operands: ldmatrix and stmatrix move 8x8 matrices of 2-byte elements, mma multiplies them.

Lane `8 * m + r` gives the index of the first of the 8 elements of row `r` of matrix `m`, which must be
aligned to their 16 bytes. Which lane then holds what is in `lanewise.fragments`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lanewise.fragments import M16N8K8, M16N8K16, MATRIX, Fragment, Mma
from lanewise.machine import WARP_LANES
from lanewise.ptx.declare import Address, Assembly, Loose, Registers, intrinsic
from lanewise.ptx.traced import FLOAT32, UINT32, place_of, stacked
from lanewise.trace.arrays import Place
from lanewise.trace.masks import Mask

_TILE = Address("tile", "shared", itemsizes=(2,))
_ROW = np.dtype((np.void, 16))
_WORDS = 4  # of 32 bits in a row of 8 elements
_Meaning = Callable[..., Any]


def _load(n: int, trans: str = "") -> Assembly:
    return Assembly(
        f"ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {{<d>}}, [<tile>];",
        (_TILE,),
        Registers("d", "uint32", n),
        effects=True,
        together=True,
    )


def _store(n: int, trans: str = "") -> Assembly:
    return Assembly(
        f"stmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 [<tile>], {{<r>}};",
        (_TILE, Loose("r", "uint32", n)),
        effects=True,
        together=True,
    )


# -- what the tracer does --------------------------------------------------------------------------


def _rows(engine: Any, node: ast.Call, tile: Any, index: Any, n: int, op: str, name: str) -> Place:
    """The rows that the first 8 * n lanes of each warp point at, checked and counted; 16 bytes each."""
    place = engine.span(node, _pointing(engine, place_of(engine, node, tile, index), n), MATRIX, op)
    if engine.inferring or place.mask is None:
        return place
    rows = place.grouped(_ROW)
    engine.matrix_access(node, op, name, rows, MATRIX * n)
    return rows


def _pointing(engine: Any, place: Place, n: int) -> Place:
    """Without the lanes whose address is ignored; before compute capability 8.0 it must be valid though."""
    if n * MATRIX == WARP_LANES:
        return place
    points = (np.arange(engine.shape[1]) % WARP_LANES < n * MATRIX)[np.newaxis]

    def keep(mask: Mask | None) -> Mask | None:
        return None if mask is None else Mask.of(mask.array & points, mask.shape)

    outside = place.outside if engine.launch.machine.capability < (8, 0) else keep(place.outside)
    return replace(place, mask=keep(place.mask), outside=outside)


def _loads(n: int, trans: str = "") -> _Meaning:
    name = f"ldmatrix.x{n}{trans}"

    def load(engine: Any, node: ast.Call, tile: Any, index: Any) -> Any:
        engine.require_whole_warps(node, name)
        rows = _rows(engine, node, tile, index, n, "load", name)
        if engine.inferring or rows.mask is None:
            found = (engine.dummy(UINT32) if engine.inferring else np.uint32(0),) * n
        else:
            found = _dealt(_words(engine, rows), n, bool(trans))
        return found[0] if n == 1 else found

    return load


def _words(engine: Any, rows: Place) -> np.ndarray:
    """The words of the row that each lane points at, `(blocks, warps, 32, 4)`; 0 if it points nowhere."""
    assert rows.mask is not None
    columns = [rows.storage.gather(rows.at(4 * k, UINT32), engine.shape) for k in range(_WORDS)]
    words = stacked(engine, tuple(columns), UINT32)
    if not rows.mask.is_full:
        given = np.broadcast_to(rows.mask.array, (len(rows.mask.array), engine.shape[1]))
        words = np.where(given.reshape(len(given), -1, WARP_LANES, 1), words, np.uint32(0))
    return words


def _dealt(words: np.ndarray, n: int, transposed: bool) -> tuple[np.ndarray, ...]:
    """One register per matrix from the words of its rows: lane l gets word l % 4 of row l // 4."""
    n_blocks = len(words)
    matrices = words[:, :, : n * MATRIX].reshape(n_blocks, -1, n, MATRIX, _WORDS)
    if transposed:
        matrices = _transposed(matrices)
    return tuple(np.ascontiguousarray(matrices[:, :, m]).reshape(n_blocks, -1) for m in range(n))


def _transposed(matrices: np.ndarray) -> np.ndarray:
    """8x8 matrices of halves, kept as `(.., 8, 4)` words, on their sides."""
    halves = np.ascontiguousarray(matrices).view(np.uint16)
    return np.ascontiguousarray(halves.swapaxes(-1, -2)).view(np.uint32)


def _stores(n: int, trans: str = "") -> _Meaning:
    name = f"stmatrix.x{n}{trans}"

    def store(engine: Any, node: ast.Call, tile: Any, index: Any, *registers: Any) -> None:
        engine.require_whole_warps(node, name)
        rows = _rows(engine, node, tile, index, n, "store", name)
        if engine.inferring or rows.mask is None:
            return
        values = stacked(engine, registers, UINT32)
        n_blocks, n_warps = values.shape[:2]
        matrices = np.moveaxis(values, 3, 2).reshape(n_blocks, n_warps, n, MATRIX, _WORDS)
        if trans:
            matrices = _transposed(matrices)
        words = np.zeros((n_blocks, n_warps, WARP_LANES, _WORDS), np.uint32)
        words[:, :, : n * MATRIX] = matrices.reshape(n_blocks, n_warps, n * MATRIX, _WORDS)
        for k in range(_WORDS):
            column = np.ascontiguousarray(words[..., k]).reshape(n_blocks, -1)
            rows.storage.scatter(rows.at(4 * k, UINT32), column, rows.mask)

    return store


def _multiplies(mma: Mma, inputs: str) -> _Meaning:
    name = f"mma.{mma.name}.{inputs}"

    def multiply(engine: Any, node: ast.Call, a: Any, b: Any, c: Any) -> Any:
        engine.require_whole_warps(node, name)
        engine.tick(node)
        left, right = (
            _joined(fragment, _numbers(stacked(engine, _as_tuple(given), UINT32), inputs))
            for fragment, given in ((mma.a, a), (mma.b, b))
        )
        total = left @ right + _joined(mma.c, stacked(engine, c, FLOAT32))
        return _split(mma.c, total)

    return multiply


def _as_tuple(given: Any) -> tuple[Any, ...]:
    return given if isinstance(given, tuple) else (given,)


def _numbers(words: np.ndarray, inputs: str) -> np.ndarray:
    """The two 16-bit floats in each word, the low one first, as float32."""
    if inputs == "f16":
        return words.view(np.float16).astype(np.float32)
    halves = words.view(np.uint16).astype(np.uint32) << np.uint32(16)
    return halves.view(np.float32)


def _joined(fragment: Fragment, values: np.ndarray) -> np.ndarray:
    """The matrices `(blocks, warps, rows, columns)` that warps hold, from `(blocks, warps, 32, elements)`."""
    lane, register, position = np.moveaxis(fragment.owners, -1, 0)
    per_lane = fragment.n_registers * fragment.packed
    source = lane * per_lane + register * fragment.packed + position
    flat = values.reshape(*values.shape[:2], WARP_LANES * per_lane)
    return flat.take(source, axis=2)


def _split(fragment: Fragment, matrices: np.ndarray) -> tuple[np.ndarray, ...]:
    """What each register of a 32-bit fragment holds, `(blocks, lanes)` each."""
    flat = matrices.reshape(*matrices.shape[:2], -1)
    source = fragment.row[..., 0] * fragment.shape[1] + fragment.col[..., 0]
    return tuple(flat.take(source[:, i], axis=2).reshape(len(flat), -1) for i in range(fragment.n_registers))


# -- the names -------------------------------------------------------------------------------------


@intrinsic(_load(1), meaning=_loads(1))
def ldmatrix_x1(tile: Any, index: Any) -> Any:
    """Load one 8x8 matrix: lanes 0..7 give the element index of a row each. Gives a uint32."""


@intrinsic(_load(2), meaning=_loads(2))
def ldmatrix_x2(tile: Any, index: Any) -> Any:
    """Load two 8x8 matrices: lanes 0..15 give the element index of a row each. Gives 2 uint32."""


@intrinsic(_load(4), meaning=_loads(4))
def ldmatrix_x4(tile: Any, index: Any) -> Any:
    """Load four 8x8 matrices: every lane gives the element index of a row. Gives 4 uint32."""


@intrinsic(_load(1, ".trans"), meaning=_loads(1, ".trans"))
def ldmatrix_x1_trans(tile: Any, index: Any) -> Any:
    """Load one 8x8 matrix, transposed on the way."""


@intrinsic(_load(2, ".trans"), meaning=_loads(2, ".trans"))
def ldmatrix_x2_trans(tile: Any, index: Any) -> Any:
    """Load two 8x8 matrices, each transposed on the way."""


@intrinsic(_load(4, ".trans"), meaning=_loads(4, ".trans"))
def ldmatrix_x4_trans(tile: Any, index: Any) -> Any:
    """Load four 8x8 matrices, each transposed on the way."""


_HOPPER: dict[str, Any] = {
    "needs": (9, 0),
    "instead": "Write the registers with plain stores, two elements at a time, instead.",
}


@intrinsic(_store(1), meaning=_stores(1), **_HOPPER)
def stmatrix_x1(tile: Any, index: Any, r0: Any) -> None:
    """Store one 8x8 matrix: the reverse of ldmatrix_x1."""


@intrinsic(_store(2), meaning=_stores(2), **_HOPPER)
def stmatrix_x2(tile: Any, index: Any, r0: Any, r1: Any) -> None:
    """Store two 8x8 matrices: the reverse of ldmatrix_x2."""


@intrinsic(_store(4), meaning=_stores(4), **_HOPPER)
def stmatrix_x4(tile: Any, index: Any, r0: Any, r1: Any, r2: Any, r3: Any) -> None:
    """Store four 8x8 matrices: the reverse of ldmatrix_x4."""


@intrinsic(_store(1, ".trans"), meaning=_stores(1, ".trans"), **_HOPPER)
def stmatrix_x1_trans(tile: Any, index: Any, r0: Any) -> None:
    """Store one 8x8 matrix, transposed on the way."""


@intrinsic(_store(2, ".trans"), meaning=_stores(2, ".trans"), **_HOPPER)
def stmatrix_x2_trans(tile: Any, index: Any, r0: Any, r1: Any) -> None:
    """Store two 8x8 matrices, each transposed on the way."""


@intrinsic(_store(4, ".trans"), meaning=_stores(4, ".trans"), **_HOPPER)
def stmatrix_x4_trans(tile: Any, index: Any, r0: Any, r1: Any, r2: Any, r3: Any) -> None:
    """Store four 8x8 matrices, each transposed on the way."""


def _mma(shape: str, inputs: str, n_a: int, n_b: int) -> Assembly:
    return Assembly(
        f"mma.sync.aligned.{shape}.row.col.f32.{inputs}.{inputs}.f32 {{<d>}}, {{<a>}}, {{<b>}}, {{<c>}};",
        (Registers("a", "uint32", n_a), Registers("b", "uint32", n_b), Registers("c", "float32", 4)),
        Registers("d", "float32", 4),
        together=True,
    )


@intrinsic(
    _mma("m16n8k16", "f16", 4, 2),
    meaning=_multiplies(M16N8K16, "f16"),
    needs=(8, 0),
    instead="Use mma_m16n8k8_f16 twice: with (a[0], a[1]) and b[0], then with (a[2], a[3]) and b[1].",
)
def mma_m16n8k16_f16(a: Any, b: Any, c: Any) -> Any:
    """Add the product of a 16x16 and a 16x8 float16 fragment to a 16x8 float32 one: 4 float32 per lane."""


@intrinsic(
    _mma("m16n8k16", "bf16", 4, 2),
    meaning=_multiplies(M16N8K16, "bf16"),
    needs=(8, 0),
    instead="Use float16 and mma_m16n8k8_f16.",
)
def mma_m16n8k16_bf16(a: Any, b: Any, c: Any) -> Any:
    """Add the product of a 16x16 and a 16x8 bfloat16 fragment to a 16x8 float32 one."""


@intrinsic(_mma("m16n8k8", "f16", 2, 1), meaning=_multiplies(M16N8K8, "f16"))
def mma_m16n8k8_f16(a: Any, b: Any, c: Any) -> Any:
    """Add the product of a 16x8 and an 8x8 float16 fragment to a 16x8 float32 one."""
