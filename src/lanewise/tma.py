"""The shared-memory swizzles of TMA, the tensor memory accelerator of sm_90 and later.

A bulk tensor copy can write its rows of 32, 64 or 128 bytes swizzled, so that ldmatrix and wgmma read them
without conflicts. The hardware XORs bits of the *absolute* shared address:

    mode     row bytes    bits of the byte address       start of the tile
    32B             32    bit 4      ^= bit 7             multiple of 256
    64B             64    bits 4..5  ^= bits 7..8         multiple of 512
    128B           128    bits 4..6  ^= bits 7..9         multiple of 1024

A reader that counts rows from the start of the tile agrees only if the tile is aligned as in the last column.

Source: CUDA programming guide, "Tensor memory access", swizzle patterns and their alignment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.errors import InvalidLayout, InvalidSwizzle
from lanewise.indexmap import checked_coordinate
from lanewise.integers import LARGEST, as_int, whole
from lanewise.layouts import row_major
from lanewise.machine import CHUNK_BYTES
from lanewise.swizzles import Swizzle, SwizzledTile, log2

ATOM_ROWS = 8  # rows after which the pattern repeats, in every mode
DESTINATION_ALIGNMENT_BYTES = 128  # of every bulk tensor copy, swizzled or not


@dataclass(frozen=True)
class TmaMode:
    """One swizzle mode, named by its row length in bytes.

    >>> TMA_128B.swizzle, TMA_128B.alignment_bytes, str(TMA_128B)
    (Swizzle(3, 4, 3), 1024, 'TMA 128B')
    """

    row_bytes: int

    def __post_init__(self) -> None:
        row_bytes = as_int(self.row_bytes)
        if row_bytes not in (32, 64, 128):
            raise InvalidSwizzle(
                f"TmaMode: no mode swizzles rows of {self.row_bytes!r} bytes. Use 32, 64 or 128."
            )
        object.__setattr__(self, "row_bytes", row_bytes)

    @property
    def swizzle(self) -> Swizzle:
        """The XOR on byte addresses."""
        return Swizzle(log2("row", self.row_bytes) - log2("chunk", CHUNK_BYTES), 4, 3)

    @property
    def alignment_bytes(self) -> int:
        """What the start of a tile must be a multiple of, so that readers may count from there."""
        return self.swizzle.period

    def address(self, base_address: int, row: Any, byte: Any = 0) -> Any:
        """The absolute shared address to which the hardware writes byte `byte` of row `row`.

        `row` and `byte` are ints or arrays of ints. Raises `InvalidSwizzle` for a base that the hardware
        refuses, `InvalidLayout` for a byte outside its row.

        >>> TMA_128B.address(1024, row=1)
        1168
        """
        base_address = whole(f"{self}: base address", base_address, InvalidSwizzle)
        if base_address % DESTINATION_ALIGNMENT_BYTES:
            raise InvalidSwizzle(
                f"{self}: base address {base_address} is not a multiple of {DESTINATION_ALIGNMENT_BYTES}, as"
                f" every mode needs. Align the tile to {self.alignment_bytes} bytes."
            )
        rows = checked_coordinate(self, row, (LARGEST - base_address) // self.row_bytes)
        return self.swizzle(
            base_address + rows * self.row_bytes + checked_coordinate(self, byte, self.row_bytes)
        )

    def misread_chunks(self, base_address: int) -> np.ndarray:
        """Which 16-byte chunks of 8 rows a reader gets wrong that XORs offsets from the tile's start.

        Returns bools of shape (8, chunks per row), all False at an aligned base.

        >>> [int(TMA_128B.misread_chunks(base).sum()) for base in (0, 128, 256, 512, 1024)]
        [0, 64, 64, 64, 0]
        """
        row, chunk = np.ix_(np.arange(ATOM_ROWS), np.arange(self.row_bytes // CHUNK_BYTES))
        written = self.address(base_address, row, chunk * CHUNK_BYTES)
        read = base_address + self.swizzle(row * self.row_bytes + chunk * CHUNK_BYTES)
        return np.asarray(written != read)

    def require_aligned(self, base_address: int) -> None:
        """Raise `InvalidSwizzle`, saying what would be misread, unless a tile may start at this address."""
        if whole(f"{self}: base address", base_address, InvalidSwizzle) % self.alignment_bytes:
            wrong = self.misread_chunks(base_address)
            raise InvalidSwizzle(
                f"{self}: base address {base_address} is not a multiple of {self.alignment_bytes}: a reader"
                f" that counts from the tile's start finds {wrong.sum()} of {wrong.size} chunks in the wrong"
                f" place. Align the tile to {self.alignment_bytes} bytes, or XOR the absolute address."
            )

    def tile(self, rows: int, element_bytes: int = 2) -> SwizzledTile:
        """The tile as a kernel indexes it, in elements from an aligned start.

        >>> str(TMA_64B.tile(rows=64))
        'Swizzle<2,3,3> o (64,32):(32,1)'
        """
        swizzle = self.swizzle.in_units_of(element_bytes)
        height = whole(f"{self}: rows", rows, InvalidLayout, low=1)
        return swizzle.compose(row_major((height, self.row_bytes // element_bytes)))

    def __str__(self) -> str:
        return f"TMA {self.row_bytes}B"


TMA_32B, TMA_64B, TMA_128B = TmaMode(32), TmaMode(64), TmaMode(128)
