"""`Swizzle<B,M,S>`, an XOR of offset bits, and the tiles that it makes of layouts.

Source: CUTLASS, `cute::Swizzle` in include/cute/swizzle.hpp.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.errors import InvalidSwizzle
from lanewise.indexmap import IndexMap, require_identifier
from lanewise.integers import LARGEST, as_int
from lanewise.layouts import Layout

OFFSET_BITS = LARGEST.bit_length()


@dataclass(frozen=True, repr=False)
class Swizzle:
    """CuTe's `Swizzle<bits, base, shift>`: XOR `bits` bits of an offset into the bits `shift` places lower.

    The lowest `base` bits stay, so runs of `2**base` offsets move together. `Swizzle<3,4,3>`, on byte offsets
    the 128-byte mode of TMA, does this to an offset x:

        bit    9    8    7    6    5    4    3    2    1    0
        y =   x9   x8   x7   x6   x5   x4   x3   x2   x1   x0
                            ^x9  ^x8  ^x7

    A negative `shift` XORs upwards. The bits that are read never change (|shift| >= bits), so a swizzle is
    its own inverse, and a permutation.

    >>> swizzle = Swizzle(3, 4, 3)
    >>> swizzle(128), swizzle(np.array([0, 144, 256])).tolist(), str(swizzle)
    (144, [0, 128, 288], 'Swizzle<3,4,3>')

    Raises `InvalidSwizzle` for parameters out of range and for offsets that are not integers of 0 or more.
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            value = getattr(self, name)
            number = as_int(value)
            if number is None:
                raise InvalidSwizzle(f"{self}: {name} is {value!r}. Use an int.")
            object.__setattr__(self, name, number)
        if self.bits < 0 or self.base < 0:
            raise InvalidSwizzle(
                f"{self}: bits and base count bits. Use 0 or more; only shift may be negative."
            )
        if abs(self.shift) < self.bits:
            raise InvalidSwizzle(
                f"{self}: with |shift| < bits it would change bits that it reads, and would not undo itself."
                f" Use a shift of at least {self.bits}, or fewer bits."
            )
        if self.base + self.bits + abs(self.shift) > OFFSET_BITS:
            raise InvalidSwizzle(
                f"{self}: reaches beyond bit {OFFSET_BITS - 1}, the last of an offset. Use a smaller base or"
                " shift."
            )

    @classmethod
    def from_string(cls, text: str) -> Swizzle:
        """Read `"Swizzle<3,4,3>"`, with or without the word."""
        number = r"\s*(-?[0-9]+)\s*"
        match = re.fullmatch(rf"\s*(?:Swizzle\s*)?(<)?{number},{number},{number}(?(1)>)\s*", str(text))
        if not match:
            raise InvalidSwizzle(f"Swizzle: cannot read {text!r}. Write bits, base, shift: 'Swizzle<3,4,3>'.")
        return cls(*map(int, match.groups()[1:]))

    @classmethod
    def from_map(cls, moved: Any) -> Swizzle:
        """Find the swizzle that sends offset `i` to `moved[i]`, for example from a tile read back from a GPU.

        >>> Swizzle.from_map([0, 1, 2, 3, 5, 4, 7, 6])
        Swizzle(1, 0, 2)

        Raises `InvalidSwizzle` if no swizzle does; the first offset that contradicts is named.
        """
        try:
            values = np.asarray(moved)
        except ValueError:  # rows of different lengths
            values = np.empty(0)
        if values.ndim != 1 or not values.size or values.dtype.kind not in "iu":
            raise InvalidSwizzle(f"Swizzle: from_map needs a row of integers, got {moved!r}.")
        # A swizzle is linear over XOR, so the images of 1, 2, 4, .. tell all: the bits that move are read.
        powers = 1 << np.arange((len(values) - 1).bit_length())
        flips = values[powers] ^ powers
        read = np.flatnonzero(flips)
        found = cls(0, 0, 0)
        if read.size:
            first, flipped = int(read[0]), int(flips[read[0]]).bit_length() - 1
            if abs(first - flipped) >= read.size:
                found = cls(read.size, min(first, flipped), first - flipped)
        wrong = np.flatnonzero(found(np.arange(len(values))) != values)
        if wrong.size:
            raise InvalidSwizzle(
                f"Swizzle: no Swizzle<B,M,S> makes this map of {len(values)} offsets: {found}, read off the"
                f" powers of two, fails at offset {wrong[0]}. Check that the base address is aligned."
            )
        return found

    def __call__(self, offset: Any) -> Any:
        x = np.asarray(offset)
        if x.dtype.kind not in "iu" or (x < 0).any() or (x > LARGEST).any():
            raise InvalidSwizzle(
                f"{self}: offset {offset!r} is not an integer of 0 or more, below 2**{OFFSET_BITS}."
                " Use // rather than /."
            )
        x = x.astype(np.int64)
        read = x & self.mask_read
        y = x ^ (read >> self.shift if self.shift >= 0 else read << -self.shift)
        return int(y) if y.ndim == 0 else y

    @property
    def mask_read(self) -> int:
        """The bits whose values decide, as a mask (CuTe: yyy)."""
        return ((1 << self.bits) - 1) << (self.base + max(self.shift, 0))

    @property
    def mask_changed(self) -> int:
        """The bits that may flip, as a mask (CuTe: zzz)."""
        return ((1 << self.bits) - 1) << (self.base + max(-self.shift, 0))

    @property
    def bits_read(self) -> tuple[int, ...]:
        """The numbers of the bits whose values decide, lowest first."""
        return _bit_numbers(self.mask_read)

    @property
    def bits_changed(self) -> tuple[int, ...]:
        """The numbers of the bits that may flip, lowest first: `bits_read[i]` flips `bits_changed[i]`."""
        return _bit_numbers(self.mask_changed)

    @property
    def period(self) -> int:
        """Offsets after which the pattern repeats: a tile that counts from its start begins at a multiple."""
        return 1 << (self.mask_read | self.mask_changed).bit_length()

    def in_units_of(self, unit_bytes: int, was: int = 1) -> Swizzle:
        """The same movement of data with offsets counted in units of `unit_bytes` instead of `was` bytes.

        >>> print(Swizzle(3, 4, 3).in_units_of(2), Swizzle(3, 3, 3).in_units_of(1, was=2))
        Swizzle<3,3,3> Swizzle<3,4,3>

        Raises `InvalidSwizzle` if the swizzle moves pieces smaller than the new unit.
        """
        base = self.base + log2("was", was) - log2("unit_bytes", unit_bytes)
        if base < 0 and self.bits:
            raise InvalidSwizzle(
                f"{self} moves pieces of {was << self.base} bytes, which tears units of {unit_bytes} bytes."
                f" Use a base of at least {self.base - base}, or smaller units."
            )
        return Swizzle(self.bits, max(base, 0), self.shift)

    def compose(self, layout: Layout) -> SwizzledTile:
        """Place a tile by `layout`, then swizzle: CuTe's `composition(Swizzle, Layout)`."""
        return SwizzledTile(self, layout)

    def picture(self) -> str:
        """Draw which bit of the offset flips which, as in the docstring of the class.

        >>> print(Swizzle(1, 0, 2).picture())
        Swizzle<1,0,2>: bit 2 flips bit 0
        bit    2    1    0
        y =   x2   x1   x0
                       ^x2
        """
        flips = dict(zip(self.bits_changed, self.bits_read, strict=True))
        bits = range(max(self.period.bit_length() - 1, self.base, 1) - 1, -1, -1)
        rows = [
            ["bit", *(f"{bit}" for bit in bits)],
            ["y =", *(f"x{bit}" for bit in bits)],
            ["", *(f"^x{flips[bit]}" if bit in flips else "" for bit in bits)],
        ]
        lines = [f"{label:<3}" + "".join(f"{cell:>5}" for cell in cells) for label, *cells in rows]
        return "\n".join([f"{self}: {self._in_words()}", *lines]).rstrip()

    def _in_words(self) -> str:
        if not self.bits:
            return "nothing moves"
        read, changed = self.bits_read, self.bits_changed
        if self.bits == 1:
            return f"bit {read[0]} flips bit {changed[0]}"
        return f"bits {read[0]}..{read[-1]} flip bits {changed[0]}..{changed[-1]}"

    def __str__(self) -> str:
        return f"Swizzle<{self.bits},{self.base},{self.shift}>"

    def __repr__(self) -> str:
        return f"Swizzle({self.bits}, {self.base}, {self.shift})"


@dataclass(frozen=True)
class SwizzledTile(IndexMap):
    """A layout followed by a swizzle of its indices; both count elements.

    >>> from lanewise.layouts import row_major
    >>> tile = Swizzle(2, 3, 3).compose(row_major((64, 32)))
    >>> tile(2, 0), str(tile)
    (72, 'Swizzle<2,3,3> o (64,32):(32,1)')
    """

    swizzle: Swizzle
    layout: Layout

    def __post_init__(self) -> None:
        if not isinstance(self.swizzle, Swizzle) or not isinstance(self.layout, Layout):
            raise InvalidSwizzle(
                f"SwizzledTile: got {self.swizzle!r} and {self.layout!r}; it takes a Swizzle and the Layout"
                " that it follows, such as row_major((64, 32))."
            )

    def __call__(self, *coordinate: Any) -> Any:
        return self.swizzle(self.layout(*coordinate))

    @property
    def extents(self) -> tuple[int, ...]:
        return self.layout.extents

    @property
    def allocated_elems(self) -> int:
        return self.layout.allocated_elems

    def python(self, name: str = "tile_index") -> str:
        require_identifier(self, name)
        shift = self.swizzle.shift
        towards = f">> {shift}" if shift >= 0 else f"<< {-shift}"
        return (
            f"def {name}({', '.join(self.layout.coordinate_names)}):\n"
            f"    offset = {self.layout.expression()}\n"
            f"    return offset ^ ((offset & 0x{self.swizzle.mask_read:x}) {towards})\n"
        )

    def __str__(self) -> str:
        return f"{self.swizzle} o {self.layout}"


def _bit_numbers(mask: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def log2(name: str, n_bytes: int) -> int:
    """The exponent of a power of two; `InvalidSwizzle` that names the quantity for any other number."""
    number = as_int(n_bytes)
    if number is None or number < 1 or number & (number - 1):
        raise InvalidSwizzle(f"Swizzle: {name} is {n_bytes!r} bytes. Swizzles move bits; use a power of two.")
    return number.bit_length() - 1
