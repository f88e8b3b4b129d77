"""Tiles without padding and without conflicts: XOR swizzles and rotations.

A swizzle moves elements inside the tile: it costs address arithmetic but no memory. Three forms are in use:

    Swizzle<B,M,S>      CuTe: XOR some bits of the offset into lower bits             `Swizzle`
    col ^ f(row)        by hand, in row and column                                    `xor_tile`
    (col + row) % n     a rotation; works for widths that are no power of two         `rotation_tile`

The tiles are `IndexMap`s: call them with (row, col). Offsets count what the kernel counts, elements or bytes;
`Swizzle.in_units_of` converts. The fixed swizzles of TMA are in `lanewise.tma`.
"""

from lanewise.swizzles.rowwise import RotationTile, XorTile, rotation_tile, xor_tile
from lanewise.swizzles.swizzle import Swizzle, SwizzledTile, log2

__all__ = ["RotationTile", "Swizzle", "SwizzledTile", "XorTile", "log2", "rotation_tile", "xor_tile"]
