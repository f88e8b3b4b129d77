"""What may be launched with what: shapes given in any usual form, arrays of every layout, memory that arrays share."""
# mypy: allow-untyped-defs, disable-error-code="attr-defined"

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from numba import cuda

from lanewise.errors import InvalidLaunch
from lanewise.lowering import Comparison
from lanewise.trace import UnsupportedConstruct, trace


@cuda.jit
def copy(src, dst):
    i = cuda.grid(1)
    if i < dst.size:
        dst[i] = src[i]


def copied(grid: Any, block: Any, **options: Any) -> list[int]:
    """The elements that a launch writes, of 64."""
    src, dst = np.arange(64, dtype=np.float32), np.full(64, np.nan, np.float32)
    trace(copy, grid, block, src, dst, **options)
    return np.flatnonzero(~np.isnan(dst)).tolist()


# -- launches --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "grid",
    [
        2,
        (2,),
        [2],
        (2, 1),
        (2, 1, 1),
        np.int32(2),
        (np.int64(2),),
        np.array([2]),
        np.array([2, 1]),
        np.array(2),
    ],
    ids=repr,
)
def test_a_grid_comes_in_any_form_that_holds_integers(grid: Any) -> None:
    assert copied(grid, 32) == list(range(64))


@pytest.mark.parametrize(
    "grid", [2.0, "2", True, (True,), None, (), (1, 2, 3, 4), np.array([2.0]), {2}], ids=repr
)
def test_anything_else_is_no_grid(grid: Any) -> None:
    with pytest.raises(InvalidLaunch, match="it is an int or a tuple of one to three ints, x first"):
        copied(grid, 32)


@pytest.mark.parametrize(
    "blocks",
    [
        1,
        [1],
        (1,),
        {1},
        [1, 1],
        [(1, 0)],
        [[1, 0, 0]],
        np.array([1]),
        np.array([[1, 0]]),
        range(1, 2),
        np.int8(1),
    ],
    ids=repr,
)
def test_blocks_come_as_numbers_or_coordinates(blocks: Any) -> None:
    assert copied(2, 32, blocks=blocks) == list(range(32, 64))


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ("1", "got '1'; give block numbers"),
        (1.0, "got 1.0; give block numbers"),
        ([True], "got True for a block; give its number, or its coordinates"),
        ([1.5], "got 1.5 for a block"),
        ([None], "got None for a block"),
        ([(0, 0, 0, 5)], r"got \(0, 0, 0, 5\) for a block"),
        ([], "the list is empty"),
        ([2], "2 is not in the grid"),
        ([(0, 1)], r"\(0, 1\) is not in the grid"),
    ],
)
def test_what_names_no_block_is_refused(blocks: Any, message: str) -> None:
    with pytest.raises(InvalidLaunch, match=f"blocks: {message}"):
        copied(2, 32, blocks=blocks)


@pytest.mark.parametrize("blocks", [None, range(2**31 - 1)], ids=["all", "range"])
def test_more_blocks_than_fit_are_refused_before_they_are_listed(blocks: Any) -> None:
    with pytest.raises(InvalidLaunch, match=r"2,147,483,647 blocks of 32 threads .* such as blocks=range"):
        copied(2**31 - 1, 32, blocks=blocks)


@cuda.jit
def modulo(dst):
    i = cuda.grid(1)
    dst[i % 64] = i


@cuda.jit
def by_parity(dst):
    dst[cuda.threadIdx.x + 32 * (cuda.blockIdx.x % 2)] = cuda.blockIdx.x


def test_blocks_far_apart_race_as_near_ones_do() -> None:
    """Block numbers times threads pass 32 bits here, and threads must still be told apart."""
    far = 2**30
    seen = trace(modulo, 2**31 - 1, 32, np.zeros(64), blocks=[0, far])
    assert [(hazard.kind, hazard.block, hazard.other_block) for hazard in seen.hazards] == [
        ("global_race", (0, 0, 0), (far, 0, 0))
    ]
    assert not trace(by_parity, 2**31 - 1, 32, np.zeros(64), blocks=[0, far + 1]).hazards


def test_what_is_no_kernel_says_so() -> None:
    def made():
        return lambda a: a  # on a line of its own, or its `def` would be taken for it

    for given in (made(), lambda a: a):
        with pytest.raises(UnsupportedConstruct, match=r"\.py:\d+: a lambda; a kernel is defined with def"):
            trace(given, 1, 32, np.zeros(32))
    configured = type("_LaunchConfiguration", (), {})()
    with pytest.raises(
        UnsupportedConstruct, match=r"give the kernel itself, .* trace\(kernel, grid, block, \.\.\.\)"
    ):
        trace(configured, 1, 32)


def test_a_kernel_of_a_notebook_cell_is_read_from_the_line_cache() -> None:
    """IPython executes a cell's text under a name of its own, and keeps its lines in `linecache`."""
    text = "WIDTH = 5\n\n@cuda.jit\ndef fill(dst):\n    dst[cuda.grid(1)] = WIDTH\n"
    name = "<ipython-input-3-0123456789ab>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    cell: dict[str, Any] = {"cuda": cuda}
    exec(compile(text, name, "exec"), cell)
    dst = np.zeros(4)
    seen = trace(cell["fill"], 1, 4, dst)
    np.testing.assert_array_equal(dst, 5)
    assert [(site.line, site.source) for site in seen.sites] == [(5, "dst[cuda.grid(1)] = WIDTH")]


# -- arrays ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
)
@pytest.mark.parametrize("layout", ["plain", "every-other", "reversed", "backwards-every-third"])
def test_every_number_in_every_stride_is_copied(dtype: str, layout: str) -> None:
    step = {"plain": 1, "every-other": 2, "reversed": -1, "backwards-every-third": -3}[layout]
    src = np.arange(96).astype(dtype)[::step][:20]
    dst = np.zeros(96, dtype)[::step][:20]
    seen = trace(copy, 1, 32, src, dst)
    np.testing.assert_array_equal(dst, src)
    assert not seen.hazards


def test_arrays_of_no_element_and_of_no_dimension() -> None:
    @cuda.jit
    def through_scalar(src, dst, nothing):
        for row in range(nothing.shape[0]):
            dst[()] = nothing[row, 0]
        if nothing.size == 0:
            dst[()] = src[()] + 1

    dst = np.zeros(())
    assert not trace(through_scalar, 1, 1, np.array(4.0), dst, np.zeros((0, 3))).hazards
    assert dst == 5
    assert trace(copy, 1, 2, np.zeros(0), np.zeros(2)).hazards[0].kind == "out_of_bounds"


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(4, np.longdouble), "floats of 2 to 8 bytes"),
        (np.zeros(4, "S3"), "a kernel takes arrays of"),
        (np.zeros(4, [("x", ">f4")]), "in native byte order"),
        (np.zeros(4, [("x", "O")]), "a kernel takes arrays of"),
        (np.ma.zeros(4), "a masked array, and a kernel sees no masks"),
    ],
    ids=["longdouble", "bytes", "big-endian-field", "object-field", "masked"],
)
def test_arrays_that_no_kernel_takes(array: Any, message: str) -> None:
    with pytest.raises(InvalidLaunch, match=f"argument src: .*{message}"):
        trace(copy, 1, 4, array, np.zeros(4))


def test_a_read_only_view_protects_what_its_owner_would_let_be_written() -> None:
    owner = np.zeros(4)
    view = owner.view()
    view.flags.writeable = False
    with pytest.raises(InvalidLaunch, match="argument dst: copy writes it, but the array is read-only"):
        trace(copy, 1, 4, np.ones(4), view)
    trace(copy, 1, 4, view, owner)  # reading through it is no write, although the owner is written


def test_a_writable_view_of_a_protected_owner_is_written() -> None:
    owner = np.zeros(4)
    view = owner[:]
    owner.flags.writeable = False
    trace(copy, 1, 4, np.ones(4), view)
    np.testing.assert_array_equal(view, 1)


@cuda.jit
def add_both(left, right, dst):
    i = cuda.grid(1)
    if i < dst.size:
        dst[i] = left[i] + right[i]


@pytest.mark.parametrize("reverse", [False, True])
def test_views_whose_owners_do_not_know_each_other_share_their_memory(reverse: bool) -> None:
    """`as_strided` and `frombuffer` make arrays that are nobody's views; the part may come before the whole."""
    whole = np.arange(32, dtype=np.float32)
    part = np.lib.stride_tricks.as_strided(whole[2:], (8,), (8,))
    dst = np.zeros(8, np.float32)
    trace(add_both, 1, 32, *((whole, part) if reverse else (part, whole)), dst)
    np.testing.assert_array_equal(dst, whole[:8] + whole[2:18:2])
    memory = bytearray(256)
    low, high = np.frombuffer(memory, np.float32)[:40], np.frombuffer(memory, np.float32)[8:]
    seen = trace(copy, 1, 32, *((high, low) if reverse else (low, high)))
    assert {hazard.kind for hazard in seen.hazards} == {"global_race"}


# -- reports ---------------------------------------------------------------------------------------


def test_a_kernel_without_accesses_reports_that() -> None:
    @cuda.jit
    def idle(dst):
        pass

    seen = trace(idle, 1, 32, np.zeros(1))
    assert "No access to shared or global memory." in str(seen)
    assert "<p>No access to shared or global memory.</p>" in seen._repr_html_()
    assert "<table>" not in seen._repr_html_()


def test_totals_show_their_numbers() -> None:
    seen = trace(copy, 2, 32, np.zeros(64, np.float32), np.zeros(64, np.float32))
    assert repr(seen.global_.load) == (
        "<Totals: requests 2, wavefronts 0, ideal 0, sectors 8, bytes_requested 256, bytes_moved 256>"
    )
    assert "1 sector " in str(trace(copy, 1, 1, np.zeros(1), np.zeros(1)))


def test_a_compiled_view_that_changes_nothing_says_so() -> None:
    seen = trace(copy, 1, 32, np.zeros(32), np.zeros(32))
    assert "changed no count" not in str(seen)
    seen.comparison = Comparison("copy", ())
    assert str(seen).endswith("note: the compiler changed no count.")
    assert "the compiler changed no count." in seen._repr_html_()
