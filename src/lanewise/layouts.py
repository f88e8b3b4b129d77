"""Where the elements of a tile lie: CuTe-style layouts, in shape:stride notation.

A layout multiplies each coordinate by a stride and adds up. That is enough for most tiles:

    (4,8):(8,1)                4 rows of 8, row-major: index = 8 * row + col
    (4,8):(1,4)                the same tile, column-major
    (4,8):(9,1)                row-major with one pad element after each row
    ((2,2),8):((1,16),2)       rows in pairs: a mode may itself be a tuple of modes

Indices and strides count elements; bytes appear only where a name says so. Swizzles, which XOR and have no
strides, live in `lanewise.swizzles`; both are an `IndexMap`.

Source of notation and algebra: CUTLASS documentation, "CuTe Layouts" and "CuTe Layout Algebra".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from lanewise.errors import InvalidLayout
from lanewise.indexmap import IndexMap, checked_coordinate, require_identifier, require_listable
from lanewise.integers import LARGEST, whole
from lanewise.inttuples import IntTuple, canonical, congruent, leaves, nested_like, notation


@dataclass(frozen=True, repr=False)
class Layout(IndexMap):
    """An affine map from coordinates to element indices: `index = sum of coordinate * stride`.

    `shape` and `stride` are ints or equally nested tuples of ints; extents are 1 or more, strides 0 or more.
    Call it with one coordinate per mode, or with one linear index, which runs through the first mode fastest
    (colexicographic order, as in CuTe). A nested mode takes a tuple or, again, one linear index.

    >>> tile = Layout((4, 8), (8, 1))
    >>> tile(2, 3), tile(14), str(tile)
    (19, 19, '(4,8):(8,1)')
    >>> tile(np.arange(4), 1).tolist()
    [1, 9, 17, 25]

    Raises `InvalidLayout` for shapes and strides that do not fit, and for coordinates outside the shape.
    """

    shape: IntTuple
    stride: IntTuple

    def __post_init__(self) -> None:
        shape, stride = canonical("shape", self.shape), canonical("stride", self.stride)
        if min(leaves(shape)) < 1:
            raise InvalidLayout(f"Layout: shape {self.shape} has an extent below 1. Leave an empty mode out.")
        if not congruent(shape, stride):
            raise InvalidLayout(
                f"Layout: shape {self.shape} needs {_strides_in_words(shape)}, got {self.stride}."
                f" Try {row_major(shape)!r}."
            )
        if min(leaves(stride)) < 0:
            raise InvalidLayout(
                f"Layout: stride {self.stride} is negative somewhere; indices count from the tile's start."
                " Use strides of 0 or more and reverse the coordinate before the call."
            )
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stride", stride)
        if max(self.size, self.cosize) > LARGEST:
            raise InvalidLayout(
                f"Layout: {self} has {self.size} coordinates and indices below {self.cosize}; at most"
                f" {LARGEST} are counted, an int64. Use smaller extents or strides."
            )

    @classmethod
    def from_string(cls, text: str) -> Layout:
        """Read CuTe notation, e.g. `"(4,8):(8,1)"`; the underscores of static extents (`_4`) are accepted."""
        parts = str(text).replace("_", "").split(":")
        if len(parts) != 2 or not all(re.fullmatch(r"[0-9\s,()]+", part) for part in parts):
            raise InvalidLayout(
                f"Layout: cannot read {text!r}. Write shape:stride, for example '(4,8):(8,1)'."
            )
        try:
            shape, stride = (ast.literal_eval(part.strip()) for part in parts)
        except (SyntaxError, ValueError, MemoryError, RecursionError):  # "(4,8", "4(8)", a thousand brackets
            raise InvalidLayout(
                f"Layout: parentheses or commas of {text!r} do not match. Try '(4,8):(8,1)'."
            ) from None
        return cls(shape, stride)

    @classmethod
    def join(cls, *modes: Layout) -> Layout:
        """Put layouts side by side as the modes of one layout (CuTe's `make_layout` of layouts).

        >>> str(Layout.join(Layout(4, 8), Layout(8, 1)))
        '(4,8):(8,1)'
        """
        for mode in modes:
            _require_layout("join", mode)
        return cls(tuple(mode.shape for mode in modes), tuple(mode.stride for mode in modes))

    def __call__(self, *coordinate: Any) -> Any:
        given = coordinate[0] if len(coordinate) == 1 else coordinate
        index = self._index(given, self.shape, self.stride)
        return int(index) if np.ndim(index) == 0 else index

    def _index(self, coordinate: Any, shape: IntTuple, stride: IntTuple) -> Any:
        if isinstance(coordinate, tuple):
            modes = shape if isinstance(shape, tuple) else (shape,)
            strides = stride if isinstance(stride, tuple) else (stride,)
            if len(coordinate) != len(modes):
                raise InvalidLayout(
                    f"{self}: coordinate {coordinate} has {len(coordinate)} parts, this layout"
                    f" {len(modes)}. Give one per mode, or one linear index."
                )
            return sum(self._index(*part) for part in zip(coordinate, modes, strides, strict=True))
        linear = checked_coordinate(self, coordinate, prod(leaves(shape)))
        index = np.zeros_like(linear)
        for extent, step in zip(leaves(shape), leaves(stride), strict=True):
            linear, digit = np.divmod(linear, extent)
            index = index + digit * step
        return index

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return prod(leaves(self.shape))

    @property
    def cosize(self) -> int:
        """Largest index plus one: the elements that must exist for every coordinate to be in range."""
        return 1 + sum((extent - 1) * step for extent, step in self.leaves)

    @property
    def rank(self) -> int:
        """Number of modes at the top level."""
        return len(self.modes)

    @property
    def modes(self) -> tuple[Layout, ...]:
        """The layout of each top-level mode."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return (self,)
        return tuple(Layout(*part) for part in zip(self.shape, self.stride, strict=True))

    @property
    def leaves(self) -> tuple[tuple[int, int], ...]:
        """All (extent, stride) pairs, nesting removed, first mode first."""
        return tuple(zip(leaves(self.shape), leaves(self.stride), strict=True))

    @property
    def allocated_elems(self) -> int:
        # The slowest mode owns its whole last step: float tile[32][33] has 32 * 33 elements, not 32 * 33 - 1.
        return max(self.cosize, *(extent * step for extent, step in self.leaves))

    @property
    def extents(self) -> tuple[int, ...]:
        return tuple(mode.size for mode in self.modes)

    def coalesce(self) -> Layout:
        """The same function of the linear index with the fewest modes: neighbours that continue merge.

        >>> str(Layout((2, (1, 6)), (1, (6, 2))).coalesce())
        '12:1'
        """
        merged: list[tuple[int, int]] = []
        for extent, step in self.leaves:
            if merged and step == merged[-1][0] * merged[-1][1]:
                merged[-1] = (merged[-1][0] * extent, merged[-1][1])
            elif extent > 1:
                merged.append((extent, step))
        return _from_leaves(merged)

    def compose(self, inner: Layout) -> Layout:
        """The layout `self(inner(...))`, which takes the coordinates of `inner`.

        `inner` gives linear coordinates of `self`: it says which elements to visit in which order.

        >>> every_other_column = Layout((4, 4), (1, 8))
        >>> str(row_major((4, 8)).compose(every_other_column))
        '(4,4):(8,2)'

        Raises `InvalidLayout` if `inner` reaches beyond `self`, or if no strides reproduce the composition.
        """
        _require_layout("compose", inner)
        require_listable(inner, inner.size)
        if inner.cosize > self.size:
            raise InvalidLayout(
                f"Layout: cannot compose {self} after {inner}, which reaches index {inner.cosize - 1} of"
                f" {self.size} elements. Shrink the inner layout, or use a larger outer one."
            )
        composed = _rebuild(inner, self._composed_mode)
        # Fitting mode by mode is right only if the modes of `inner` do not carry into each other in `self`.
        linear = np.arange(inner.size)
        wrong = np.flatnonzero(composed(linear) != self(inner(linear)))
        if wrong.size:
            raise InvalidLayout(
                f"Layout: no strides reproduce {self} after {inner}: linear coordinate {wrong[0]} lands on"
                f" {self(inner(wrong[0]))}, but its modes add up to {composed(wrong[0])}."
                " Work on the table() instead."
            )
        return composed

    def _composed_mode(self, extent: int, step: int) -> Layout:
        values = self(np.arange(extent) * step)
        fitted = _fit(values)
        if fitted is None:
            shown = ", ".join(str(value) for value in values[:8]) + (", .." if extent > 8 else "")
            raise InvalidLayout(
                f"Layout: no strides reproduce {self} after the mode {extent}:{step}, which lands on {shown}."
                " Choose extents that divide each other, or work on the table() instead."
            )
        return _from_leaves(fitted)

    def inverse(self) -> Layout:
        """The layout from element index back to linear coordinate: `inverse()(self(i)) == i`.

        >>> str(row_major((4, 8)).inverse())
        '(8,4):(4,1)'

        Raises `InvalidLayout` if two coordinates share an element or if some indices are never used.
        """
        twins = self.collision()
        if twins:
            raise InvalidLayout(
                f"Layout: {self} has no inverse: {twins[0]} and {twins[1]} share element {twins[2]}."
                " Give every mode of more than one element its own stride."
            )
        if self.cosize > self.size:
            unused = np.setdiff1d(np.arange(self.cosize), self.table())
            raise InvalidLayout(
                f"Layout: {self} has no inverse: {len(unused)} of its {self.cosize} indices hold no element,"
                f" the first is {unused[0]}. Use coordinates_at(index), which answers [] there."
            )
        fitted = _fit(np.argsort(self(np.arange(self.size))))
        # Strides that tile 0 .. n - 1 without overlap form a mixed-radix number system; so does the reverse.
        assert fitted is not None
        return _from_leaves(fitted)

    def expression(self) -> str:
        """The index as a Python expression of `row` and `col`; of `c0`, `c1`, .. unless there are two modes.

        >>> padded(32, 32, 1).expression()
        'row * 33 + col'
        """
        named = zip(self.coordinate_names, self.modes, strict=True)
        return " + ".join(term for name, mode in named for term in _terms(name, mode)) or "0"

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Parameter names of the generated function: `row` and `col` for two modes."""
        return ("row", "col") if self.rank == 2 else tuple(f"c{i}" for i in range(self.rank))

    def python(self, name: str = "tile_index") -> str:
        require_identifier(self, name)
        return f"def {name}({', '.join(self.coordinate_names)}):\n    return {self.expression()}\n"

    def __str__(self) -> str:
        return f"{notation(self.shape)}:{notation(self.stride)}"

    def __repr__(self) -> str:
        return f"Layout({self.shape!r}, {self.stride!r})"


def row_major(shape: IntTuple) -> Layout:
    """The dense layout whose last coordinate moves fastest, as in C and NumPy."""
    shape = canonical("shape", shape)
    extents = list(leaves(shape))
    return Layout(shape, nested_like(shape, [prod(extents[i + 1 :]) for i in range(len(extents))]))


def column_major(shape: IntTuple) -> Layout:
    """The dense layout whose first coordinate moves fastest, as in Fortran; CuTe's default."""
    shape = canonical("shape", shape)
    extents = list(leaves(shape))
    return Layout(shape, nested_like(shape, [prod(extents[:i]) for i in range(len(extents))]))


def padded(rows: int, cols: int, pad: int) -> Layout:
    """A row-major tile with `pad` unused elements after each row, as in `float tile[rows][cols + pad]`.

    >>> tile = padded(32, 32, 1)
    >>> str(tile), tile.n_bytes(element_bytes=4)
    ('(32,32):(33,1)', 4224)
    """
    rows = whole("padded: rows", rows, InvalidLayout, low=1)
    cols = whole("padded: cols", cols, InvalidLayout, low=1)
    pad = whole("padded: pad", pad, InvalidLayout, hint="Use 0 for no padding; a row cannot shrink.")
    return Layout((rows, cols), (cols + pad, 1))


def blocked(rows: int, cols: int, block_rows: int = 8, block_cols: int = 8) -> Layout:
    """Dense row-major blocks, stored one after the other along a row of blocks.

    The default block of 8x8 halves is one matrix of ldmatrix: 128 contiguous bytes, free of conflicts.

    >>> blocked(16, 16)(0, 8)
    64
    """
    rows, cols, block_rows, block_cols = (
        whole(f"blocked: {name}", value, InvalidLayout, low=1)
        for name, value in {
            "rows": rows, "cols": cols, "block_rows": block_rows, "block_cols": block_cols,
        }.items()
    )  # fmt: skip
    if rows % block_rows or cols % block_cols:
        raise InvalidLayout(
            f"blocked: a {rows}x{cols} tile does not divide into {block_rows}x{block_cols} blocks."
            " Round the tile up to whole blocks."
        )
    block = block_rows * block_cols
    shape = (block_rows, rows // block_rows), (block_cols, cols // block_cols)
    return Layout(shape, ((block_cols, block * (cols // block_cols)), (1, block)))


def odd_pitch_pad(cols: int, element_bytes: int = 4, access_bytes: int = 4) -> int:
    """The smallest pad (elements) that makes a row an odd number of accesses wide.

    Lanes that walk down consecutive rows of one column are free of conflicts exactly when the row pitch is an
    odd multiple of the access width, for widths of 4, 8 and 16 bytes.

    >>> odd_pitch_pad(32), odd_pitch_pad(32, element_bytes=4, access_bytes=16), odd_pitch_pad(64, 2, 16)
    (1, 4, 8)
    """
    cols = whole("odd_pitch_pad: cols", cols, InvalidLayout, low=1)
    element_bytes = whole("odd_pitch_pad: element_bytes", element_bytes, InvalidLayout, low=1)
    access_bytes = whole("odd_pitch_pad: access_bytes", access_bytes, InvalidLayout, low=1)
    if access_bytes % element_bytes:
        raise InvalidLayout(
            f"odd_pitch_pad: {access_bytes} bytes are no whole number of {element_bytes}-byte elements."
            " Use an access at least as wide as an element."
        )
    per_access = access_bytes // element_bytes
    accesses = -(-cols // per_access)
    return (accesses + 1 - accesses % 2) * per_access - cols


def _require_layout(what: str, value: object) -> None:
    if not isinstance(value, Layout):
        raise InvalidLayout(
            f"Layout: {what} got {value!r}; it takes a Layout. Build one, such as row_major((4, 8))."
        )


def _strides_in_words(shape: IntTuple) -> str:
    n = len(list(leaves(shape)))
    nested = isinstance(shape, tuple) and any(isinstance(mode, tuple) for mode in shape)
    return f"{n} stride{'s' if n > 1 else ''}{' nested in the same way' if nested else ''}"


def _from_leaves(pairs: Sequence[tuple[int, int]]) -> Layout:
    if not pairs:
        return Layout(1, 0)
    return Layout(tuple(extent for extent, _ in pairs), tuple(step for _, step in pairs))


def _rebuild(layout: Layout, replace: Callable[[int, int], Layout]) -> Layout:
    """Replace every (extent, stride) leaf by a layout, keeping the nesting."""
    if isinstance(layout.shape, int) and isinstance(layout.stride, int):
        return replace(layout.shape, layout.stride)
    return Layout.join(*(_rebuild(mode, replace) for mode in layout.modes))


def _fit(values: np.ndarray) -> list[tuple[int, int]] | None:
    """The (extent, stride) pairs that produce `values`, which start at 0; None if no pairs do.

    Written with as few modes as possible the answer is unique: the first extent is the length of the leading
    run 0, d, 2d, .., because a shorter one would merge with its successor. So peel that run off and continue
    with the starts of the blocks.
    """
    fitted = []
    while len(values) > 1:
        step = int(values[1])
        breaks = np.flatnonzero(values != np.arange(len(values)) * step)
        run = int(breaks[0]) if breaks.size else len(values)
        if len(values) % run:
            return None
        blocks = values.reshape(-1, run)
        if (blocks != blocks[:, :1] + blocks[0]).any():
            return None
        fitted.append((run, step))
        values = blocks[:, 0]
    return fitted


def _terms(name: str, mode: Layout) -> Iterator[str]:
    """The summands of one coordinate, such as `row % 8 * 64` and `row // 8 * 512`."""
    below = 1
    for position, (extent, step) in enumerate(mode.leaves):
        digit = name if below == 1 else f"{name} // {below}"
        if position < len(mode.leaves) - 1:
            digit += f" % {extent}"
        if step and extent > 1:
            yield digit if step == 1 else f"{digit} * {step}"
        below *= extent
