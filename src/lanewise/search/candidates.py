"""The layouts that a search tries, and what each costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lanewise import memory
from lanewise.errors import InvalidLayout
from lanewise.indexmap import IndexMap
from lanewise.layouts import padded, row_major
from lanewise.machine import BANK_ROW_BYTES
from lanewise.search.accesses import TileAccess, TileShape
from lanewise.swizzles import RotationTile, Swizzle, XorTile

KINDS = ("plain", "pad", "swizzle", "xor", "rotation", "given")  # in rising order of index arithmetic


@dataclass(frozen=True)
class Count:
    """Wavefronts of one access on one layout: over all its warp instructions, and of the dearest one."""

    wavefronts: int
    ideal: int
    worst: int
    worst_ideal: int

    def __str__(self) -> str:
        return f"{self.worst}/{self.worst_ideal}"


@dataclass(frozen=True)
class Candidate:
    """One layout, its bytes, and its wavefronts for each access, in the order of the accesses.

    A count is None if the model has no cost for that instruction. `excess` is the total of conflicts, times
    each access's `times`. `problem` is empty, or says why the layout cannot be used; then nothing is counted.
    """

    name: str
    kind: str
    layout: IndexMap
    n_bytes: int
    extra_bytes: int
    counts: tuple[Count | None, ...] = ()
    excess: int = 0
    problem: str = ""

    @property
    def is_legal(self) -> bool:
        """True if every access is aligned, no vector is torn, and every element has its own place."""
        return not self.problem

    @property
    def is_ideal(self) -> bool:
        """True if legal and no modelled access has a bank conflict."""
        return self.is_legal and self.excess == 0

    def python(self, name: str = "tile_index") -> str:
        """Code that computes the element index, to copy into a kernel."""
        return self.layout.python(name)

    def __str__(self) -> str:
        if self.problem:
            return f"{self.name}: {self.problem}"
        counts = ", ".join("not modelled" if count is None else str(count) for count in self.counts)
        return f"{self.name}: {self.n_bytes:,} bytes, {counts}"


def try_layout(
    name: str, layout: IndexMap, tile: TileShape, accesses: Sequence[TileAccess], kind: str = "given"
) -> Candidate:
    """Count what a layout costs for each access, or find out why it cannot be used.

    >>> tile = TileShape(32, 32, element_bytes=4)
    >>> column = TileAccess("ld.shared.b32", row=lambda lane: lane, col=0)
    >>> print(try_layout("pad 1", padded(32, 32, 1), tile, [column]))
    pad 1: 4,224 bytes, 1/1

    Raises `InvalidLayout` if it is no layout, or made for a tile of another shape.
    """
    if not isinstance(layout, IndexMap):
        raise InvalidLayout(
            f"search: {name!r} is {layout!r}, no layout. Give a Layout such as padded(32, 32, 1), a swizzled"
            " tile, or xor_tile(32, 32)."
        )
    table = layout.table()
    if table.shape != (tile.rows, tile.cols):
        raise InvalidLayout(
            f"search: {name!r} ({layout}) places a tile of shape {table.shape}, but the accesses are those"
            f" of a {tile}. Build it for ({tile.rows}, {tile.cols})."
        )
    n_bytes = layout.n_bytes(tile.element_bytes)
    extra = n_bytes - tile.n_bytes
    defect = layout.defect()
    misfits = (_misfit(table, tile, access) for access in accesses)
    problem = f"not a permutation: {defect}" if defect else next(filter(None, misfits), "")
    if problem:
        return Candidate(name, kind, layout, n_bytes, extra, problem=problem)
    counts = tuple(_count(table, tile, access) for access in accesses)
    excess = sum(
        access.times * (count.wavefronts - count.ideal)
        for access, count in zip(accesses, counts, strict=True)
        if count is not None
    )
    return Candidate(name, kind, layout, n_bytes, extra, counts, excess)


def candidate_layouts(tile: TileShape, accesses: Sequence[TileAccess]) -> Iterator[tuple[str, str, IndexMap]]:
    """Name, kind and layout of everything that is tried."""
    yield "row-major", "plain", row_major((tile.rows, tile.cols))
    # Banks depend on the pitch modulo 128 bytes only, so these pads stand for all.
    for pad in range(1, max(BANK_ROW_BYTES // tile.element_bytes, 2)):
        yield f"pad {pad}", "pad", padded(tile.rows, tile.cols, pad)
    yield from _swizzles(tile)
    widest = max(tile.elems_per_access(access.spec) for access in accesses)
    yield from _xor_tiles(tile, widest)
    yield from _rotations(tile, widest)


def _swizzles(tile: TileShape) -> Iterator[tuple[str, str, IndexMap]]:
    """Every `Swizzle<B,M,S>` with S > 0 whose bits lie inside the tile."""
    n_bits = (tile.rows * tile.cols - 1).bit_length()
    for bits in range(1, n_bits // 2 + 1):
        for shift in range(bits, n_bits):
            for base in range(n_bits - shift - bits + 1):
                swizzle = Swizzle(bits, base, shift)
                yield str(swizzle), "swizzle", swizzle.compose(row_major((tile.rows, tile.cols)))


def _xor_tiles(tile: TileShape, unit: int) -> Iterator[tuple[str, str, IndexMap]]:
    """XORs of the column for widths that are no power of two; for the others `_swizzles` has them all."""
    if tile.cols & (tile.cols - 1) == 0:
        return
    shift = (unit - 1).bit_length()
    for bits in range(1, 6):
        for row_shift in range(4):
            xored = XorTile(tile.rows, tile.cols, (1 << bits) - 1, shift, row_shift)
            yield f"xor {xored.column_expression()}", "xor", xored


def _rotations(tile: TileShape, unit: int) -> Iterator[tuple[str, str, IndexMap]]:
    if tile.cols % unit == 0:
        for rows_per_step in (1, 2, 4, 8):
            rotated = RotationTile(tile.rows, tile.cols, unit, rows_per_step)
            yield f"rotate {rotated.column_expression()}", "rotation", rotated


def _misfit(table: np.ndarray, tile: TileShape, access: TileAccess) -> str:
    """Why the access cannot be issued on this layout: misaligned, or its elements do not lie side by side."""
    rows, cols = access.row[access.active], access.col[access.active]
    start = table[rows, cols]
    width = tile.elems_per_access(access.spec)
    misaligned = int((start % width != 0).sum())
    if misaligned:
        return (
            f"misaligned: {misaligned} of {start.size} addresses of {access.name} are no multiple of"
            f" {access.spec.bytes_per_lane} bytes"
        )
    steps = np.arange(width)
    torn = (table[rows[:, None], cols[:, None] + steps] != start[:, None] + steps).any(axis=1)
    if torn.any():
        return f"torn: {torn.sum()} of {torn.size} accesses of {access.name} find their elements apart"
    return ""


def _count(table: np.ndarray, tile: TileShape, access: TileAccess) -> Count | None:
    if access.spec.not_modelled:
        return None
    addresses = np.where(access.active, table[access.row, access.col], 0) * tile.element_bytes
    active = None if access.spec.is_matrix else access.active
    wavefronts, ideal = memory.shared_wavefronts(access.instruction, addresses, active)
    dearest = int(np.argmax(wavefronts - ideal))
    return Count(int(wavefronts.sum()), int(ideal.sum()), int(wavefronts[dearest]), int(ideal[dearest]))
