"""Hypothesis strategies: every random object that the tests draw."""

from hypothesis import strategies as st

from lanewise.access import WarpAccess
from lanewise.indexmap import IndexMap
from lanewise.instructions import instruction
from lanewise.inttuples import IntTuple, leaves, nested_like
from lanewise.layouts import Layout, row_major
from lanewise.machine import FULL_MASK
from lanewise.swizzles import Swizzle, rotation_tile, xor_tile


@st.composite
def warp_accesses(draw: st.DrawFn, names: list[str]) -> WarpAccess:
    """Accesses of the named instructions: strided, tiled, shared in pairs, or scattered; full and partial masks."""
    spec = instruction(draw(st.sampled_from(names)))
    width = spec.bytes_per_lane
    units = draw(st.one_of(_strided(), _tiled(), _paired(), _scattered()))
    base = draw(st.integers(0, 64))
    partial = st.one_of(st.integers(0, FULL_MASK), st.sampled_from([0, 1, 0xFFFF, 0x55555555, 0x80000000]))
    mask = FULL_MASK if spec.is_matrix else draw(st.one_of(st.just(FULL_MASK), partial))
    return WarpAccess(spec.name, tuple(width * (base + unit) for unit in units), mask)


def _strided() -> st.SearchStrategy[list[int]]:
    return st.integers(0, 64).map(lambda stride: [stride * lane for lane in range(32)])


def _tiled() -> st.SearchStrategy[list[int]]:
    return st.tuples(st.integers(1, 40), st.sampled_from([1, 2, 4, 8, 16, 32])).map(
        lambda tile: [tile[0] * (lane // tile[1]) + lane % tile[1] for lane in range(32)]
    )


def _paired() -> st.SearchStrategy[list[int]]:
    """Lanes `i` and `i ^ 1` (or `i ^ 2`) on the same unit, some pairs broken: the border of the fusion rule."""

    def spread(args: tuple[int, list[int], int]) -> list[int]:
        bit, units, broken = args
        paired = [units[lane & ~bit] for lane in range(32)]
        return paired if broken > 31 else [*paired[:broken], paired[broken] + 1, *paired[broken + 1 :]]

    return st.tuples(st.sampled_from([1, 2]), _scattered(), st.integers(0, 63)).map(spread)


def _scattered() -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 300), min_size=32, max_size=32)


# Layouts and swizzles


@st.composite
def shapes(draw: st.DrawFn, max_extent: int = 4) -> IntTuple:
    """Nested shapes of up to four leaves."""
    leaf = st.integers(1, max_extent)
    mode = st.one_of(leaf, st.tuples(leaf, leaf))
    return draw(st.one_of(leaf, st.tuples(mode, mode), st.tuples(leaf, leaf, leaf)))


@st.composite
def dense_layouts(draw: st.DrawFn, max_extent: int = 4) -> Layout:
    """Bijections onto 0 .. size - 1: the leaves in any order of speed, row-major and column-major among them."""
    shape = draw(shapes(max_extent))
    extents = list(leaves(shape))
    steps, step = [0] * len(extents), 1
    for position in draw(st.permutations(range(len(extents)))):
        steps[position] = step
        step *= extents[position]
    return Layout(shape, nested_like(shape, steps))


@st.composite
def layouts(draw: st.DrawFn, max_extent: int = 4, max_stride: int = 40) -> Layout:
    """Any layout: dense, padded, overlapping, or repeating itself through a stride of 0."""
    if draw(st.booleans()):
        return draw(dense_layouts(max_extent))
    shape = draw(shapes(max_extent))
    n = len(list(leaves(shape)))
    return Layout(
        shape, nested_like(shape, draw(st.lists(st.integers(0, max_stride), min_size=n, max_size=n)))
    )


@st.composite
def swizzles(draw: st.DrawFn, max_bit: int = 12) -> Swizzle:
    """Every `Swizzle<B,M,S>` whose bits lie below `max_bit`, upward shifts and the identity included."""
    bits = draw(st.integers(0, max_bit // 2))
    distance = draw(st.integers(bits, max_bit - bits))
    base = draw(st.integers(0, max_bit - bits - distance))
    return Swizzle(bits, base, draw(st.sampled_from([distance, -distance])))


@st.composite
def permuted_tiles(draw: st.DrawFn) -> IndexMap:
    """Tiles without padding whose elements all have a place: XORed, rotated, or swizzled."""
    rows, log_cols = draw(st.integers(1, 40)), draw(st.integers(0, 6))
    cols = 1 << log_cols
    kind = draw(st.sampled_from(["xor", "rotation", "swizzle"]))
    if kind == "xor":
        shift = draw(st.integers(0, log_cols))
        mask = draw(st.integers(0, (cols >> shift) - 1))
        return xor_tile(rows, cols, mask, shift, draw(st.integers(0, 3)))
    if kind == "rotation":
        unit = 1 << draw(st.integers(0, log_cols))
        factor = draw(st.integers(1, 3))
        return rotation_tile(rows, cols * factor, unit, draw(st.integers(1, 4)))
    return draw(swizzles(6)).compose(row_major((64, cols)))
