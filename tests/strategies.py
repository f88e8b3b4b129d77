"""Hypothesis strategies: every random object that the tests draw."""

from hypothesis import strategies as st

from lanewise.access import FULL_MASK, WarpAccess
from lanewise.instructions import instruction


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
