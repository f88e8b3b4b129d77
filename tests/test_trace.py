"""`trace`: launches, arguments, counts by hand, subsets of blocks, reports. The corpus tests compare whole
kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise
from lanewise import ptx
from lanewise.errors import InvalidLaunch
from lanewise.kernels import padding
from lanewise.trace import KernelFault, Trace, UnsupportedConstruct, functions_in, trace, uninitialized

HEAD = (
    "import math\nimport numpy as np\nfrom numba import cuda, float32, int32\nTILE = 32\nPITCH ="
    " 33\nROWS = 8\n"
)


def kernel(parameters: str, body: str, outside: str = "") -> Any:
    lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return functions_in(f"{HEAD}{outside}\ndef kernel({parameters}):\n{lines}", "kernel.py")["kernel"]


def sectors(src: np.ndarray, index: str, block: Any = 32, n: int = 32) -> float:
    """Sectors per request of one load `src[index]`, with `x` and `y` the thread's coordinates."""
    body = f"x, y = cuda.threadIdx.x, cuda.threadIdx.y\nout[0] = src[{index}]"
    t = trace(kernel("out, src", body), 1, block, np.zeros(1), src)
    return t.global_.load.sectors / t.global_.load.requests


TRANSPOSE = """
tile = cuda.shared.array((TILE, PITCH), float32)
x = cuda.blockIdx.x * TILE + cuda.threadIdx.x
y = cuda.blockIdx.y * TILE + cuda.threadIdx.y
for j in range(0, TILE, ROWS):
    if x < src.shape[1] and y + j < src.shape[0]:
        tile[cuda.threadIdx.y + j, cuda.threadIdx.x] = src[y + j, x]
cuda.syncthreads()
x = cuda.blockIdx.y * TILE + cuda.threadIdx.x
y = cuda.blockIdx.x * TILE + cuda.threadIdx.y
for j in range(0, TILE, ROWS):
    if x < dst.shape[1] and y + j < dst.shape[0]:
        dst[y + j, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y + j]
"""


def transposed(rows: int, cols: int, pitch: int = 33, **options: Any) -> tuple[Trace, np.ndarray, np.ndarray]:
    src = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    dst = np.full((cols, rows), np.nan, np.float32)
    grid = (-(-cols // 32), -(-rows // 32))
    body = TRANSPOSE.replace("PITCH", str(pitch))
    return trace(kernel("dst, src", body), grid, (32, 8), dst, src, **options), dst, src


# -- counts known by hand --------------------------------------------------------------------------


@pytest.mark.parametrize(("pitch", "ways"), [(32, 32), (33, 1), (34, 2), (36, 4), (40, 8), (48, 16)])
def test_padding_decides_the_conflicts_of_a_transpose(pitch: int, ways: int) -> None:
    t, dst, src = transposed(64, 96, pitch)
    np.testing.assert_array_equal(dst, src.T)
    n_requests = 64 * 96 // 32
    assert (t.shared.store.wavefronts, t.shared.store.excess) == (n_requests, 0)
    assert (t.shared.load.wavefronts, t.shared.load.ideal) == (ways * n_requests, n_requests)
    assert (t.global_.load.sectors, t.global_.store.sectors) == (4 * n_requests, 4 * n_requests)
    assert t.global_.load.bytes_requested == t.global_.load.bytes_moved == src.nbytes
    assert t.hazards == []


@pytest.mark.parametrize(("rows", "cols"), [(33, 65), (1, 1), (31, 200), (129, 64)])
def test_odd_shapes_are_right_and_clean(rows: int, cols: int) -> None:
    t, dst, src = transposed(rows, cols)
    np.testing.assert_array_equal(dst, src.T)
    assert t.hazards == []
    assert t.global_.load.bytes_requested == src.nbytes


def test_costs_grow_with_the_blocks() -> None:
    small, large = (transposed(64, 64 * n)[0] for n in (1, 7))
    for name in ("requests", "wavefronts", "sectors", "bytes_moved"):
        assert getattr(large.global_.load, name) == 7 * getattr(small.global_.load, name)
        assert getattr(large.shared.load, name) == 7 * getattr(small.shared.load, name)
    assert large.warp_instructions == 7 * small.warp_instructions


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 8, 16])
def test_strided_loads(stride: int) -> None:
    assert sectors(np.zeros(32 * stride, np.float32), f"{stride} * x") == min(4 * stride, 32)


@pytest.mark.parametrize("offset", range(9))
def test_misaligned_base(offset: int) -> None:
    array = np.zeros(64, np.float32)
    expected = 4 if offset % 8 == 0 else 5
    assert sectors(array, f"x + {offset}") == expected
    assert sectors(array[offset:], "x") == expected


@pytest.mark.parametrize("size", [8, 12, 16, 20, 24, 28, 32])
def test_one_field_of_a_record(size: int) -> None:
    """One 4-byte field of a struct of `size` bytes touches `size` sectors per request."""
    record = np.dtype({"names": ["v"], "formats": ["f4"], "offsets": [0], "itemsize": size}, align=True)
    assert sectors(np.zeros(32, record), "x]['v'") == size


def test_index_order_and_block_shape() -> None:
    """The last index of a C-order array must come from threadIdx.x; narrow blocks hide a part of the harm."""
    array = np.zeros((64, 64), np.float32)
    assert [sectors(array, "y, x", block) for block in ((32, 8), (16, 16), (8, 32))] == [4, 4, 4]
    assert [sectors(array, "x, y", block) for block in ((32, 8), (16, 16), (8, 32))] == [32, 16, 8]


def test_views_show_their_true_cost() -> None:
    array = np.arange(128 * 64, dtype=np.float32).reshape(128, 64)
    assert sectors(array, "y, x") == 4
    assert sectors(array.T, "y, x") == 32
    assert sectors(array[::2, ::2], "y, x") == 8
    assert sectors(array[::-1, ::-1], "y, x") == 4
    assert sectors(np.broadcast_to(array[:1, :1], (64, 64)), "y, x") == 1


@pytest.mark.parametrize(
    ("dtype", "index", "expected"),
    [
        ("float32", "t", (1, 1)),
        ("float32", "32 * t", (32, 1)),
        ("float32", "16 * t", (16, 1)),
        ("float16", "2 * t", (1, 1)),
        ("float16", "64 * t", (32, 1)),
        ("int8", "128 * t", (32, 1)),
        ("float64", "t", (2, 2)),
        ("float64", "2 * t", (4, 2)),
        ("float64", "t // 2", (1, 1)),
        ("complex64", "t", (4, 2)),  # two parts, each a 32-bit load with stride 2
        ("complex128", "t", (8, 4)),
    ],
)
def test_shared_widths(dtype: str, index: str, expected: tuple[int, int]) -> None:
    body = (
        f"s = cuda.shared.array({49152 // np.dtype(dtype).itemsize}, np.{dtype})\nt ="
        f" cuda.threadIdx.x\nout[0] = s[{index}]"
    )
    t = trace(kernel("out", body), 1, 32, np.zeros(1, dtype))
    assert (t.shared.load.wavefronts, t.shared.load.ideal) == expected


def test_wide_loads_and_stores() -> None:
    body = "t = cuda.grid(1)\na, b, c, d = ptx.load4(src, 4 * t)\nptx.store4(dst, 4 * t, d, c, b, a)"
    src, dst = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    t = trace(kernel("dst, src", body, "from lanewise import ptx"), 1, 64, dst, src)
    np.testing.assert_array_equal(dst.reshape(-1, 4), src.reshape(-1, 4)[:, ::-1])
    assert [site.instruction for site in t.sites] == ["ld.global.b128", "st.global.b128"]
    assert (t.global_.load.requests, t.global_.load.sectors) == (2, 32)


def test_examples_come_from_the_worst_warp_and_its_real_addresses() -> None:
    body = "i = cuda.grid(1)\nout[i] = src[i * i % 97]"
    src = np.zeros(97, np.float32)
    t = trace(kernel("out, src", body), 4, 64, np.zeros(256, np.float32), src)
    site = t.global_.load.sites[0]
    assert site.example is not None
    assert site.example_block is not None
    block, warp = site.example_block[0], site.example_warp
    i = 64 * block + 32 * warp + np.arange(32)
    steps = np.array(site.example.addresses) - site.example.addresses[0]
    np.testing.assert_array_equal(steps, 4 * (i * i % 97 - i[0] ** 2 % 97))
    assert lanewise.global_cost(site.example).sectors == site.worst_sectors


# -- launches and arguments ------------------------------------------------------------------------


def test_blocks_may_be_chosen() -> None:
    every, dst, src = transposed(128, 128)
    some, dst, src = transposed(128, 128, blocks=[(1, 2), 0])
    assert (some.n_blocks, some.n_blocks_of_grid) == (2, 16)
    assert some.shared.load.wavefronts * 8 == every.shared.load.wavefronts
    np.testing.assert_array_equal(dst[:32, :32], src.T[:32, :32])
    assert np.isfinite(dst).sum() == 2 * 1024
    assert "counts are of 2 of 16 blocks" in str(some)
    with pytest.raises(InvalidLaunch, match=r"blocks: \(4, 0\) is not in the grid \(4, 4, 1\)"):
        transposed(128, 128, blocks=[(4, 0)])


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (1, 2048, "x is 2,048; a launch needs 1 to 1,024"),
        (1, (32, 64), "has 2,048 threads; sm_90 allows 1,024"),
        (0, 32, "grid: x is 0"),
        ((1, 70000), 32, "y is 70,000; a launch needs 1 to 65,535"),
        ("4", 32, "got '4'; it is an int or a tuple"),
        (1, (1, 1, 128), "z is 128; a launch needs 1 to 64"),
        (1.5, 32, r"got 1\.5"),
    ],
)
def test_impossible_launches(grid: Any, block: Any, message: str) -> None:
    with pytest.raises(InvalidLaunch, match=message):
        trace(kernel("out", "out[0] = 1"), grid, block, np.zeros(1))


def test_shared_memory_limits() -> None:
    big = kernel("out", "s = cuda.shared.array((128, 128), float32)\ns[0, 0] = 1")
    with pytest.raises(InvalidLaunch, match="65,536 bytes; the compiler allows 49,152 on sm_90"):
        trace(big, 1, 32, np.zeros(1))
    dynamic = kernel("out", "s = cuda.shared.array(0, float32)\ns[cuda.threadIdx.x] = 1")
    assert trace(dynamic, 1, 32, np.zeros(1), dynamic_shared_bytes=200_000).shared_bytes == 200_000
    with pytest.raises(InvalidLaunch, match="200,000 bytes for one block; sm_75 has 65,536"):
        trace(dynamic, 1, 32, np.zeros(1), dynamic_shared_bytes=200_000, machine="sm_75")


class OnDevice:
    """Looks like a device array."""

    def copy_to_host(self) -> None: ...


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (OnDevice(), "argument out: got a device array; the tracer runs on host memory"),
        (np.array(["a"]), "argument out: dtype <U1"),
        (np.array([None]), "argument out: dtype object"),
        (np.zeros(3, ">f4"), "in native byte order"),
        ([1, 2], "argument out: got a list"),
        (2**70, "does not fit 64 bits"),
    ],
)
def test_arguments_that_no_kernel_takes(argument: Any, message: str) -> None:
    with pytest.raises(InvalidLaunch, match=message):
        trace(kernel("out", "pass"), 1, 32, argument)


def test_read_only_arrays_may_be_read_but_not_written() -> None:
    array = np.arange(32.0)
    array.flags.writeable = False
    out = np.zeros(32)
    trace(kernel("out, src", "i = cuda.grid(1)\nout[i] = src[i]"), 1, 32, out, array)
    np.testing.assert_array_equal(out, array)
    with pytest.raises(InvalidLaunch, match="argument out: kernel writes it, but the array is read-only"):
        trace(kernel("out", "out[0] = 1"), 1, 32, array)


def test_wrong_number_of_arguments() -> None:
    with pytest.raises(InvalidLaunch, match="kernel: got 1 argument; it takes 2: a, b"):
        trace(kernel("a, b", "pass"), 1, 1, np.zeros(1))


def test_tuples_and_none() -> None:
    body = (
        "i = cuda.threadIdx.x\nif extra is None:\n    pair[0][i] = pair[1][i] * scale\nelse:\n   "
        " pair[0][i] = extra[i]"
    )
    out, src = np.zeros(32, np.float32), np.arange(32, dtype=np.float32)
    trace(kernel("pair, scale, extra", body), 1, 32, (out, src), np.float32(2), None)
    np.testing.assert_array_equal(out, 2 * src)
    trace(kernel("pair, scale, extra", body), 1, 32, (out, src), np.float32(2), src + 5)
    np.testing.assert_array_equal(out, src + 5)


def test_views_of_one_memory_are_seen_as_one() -> None:
    memory = np.arange(64, dtype=np.float32)
    t = trace(kernel("a, b", "i = cuda.threadIdx.x\na[i] = b[i]"), 1, 32, memory[:32], memory[1:33])
    assert {hazard.kind for hazard in t.hazards} == {"global_race"}


def test_uninitialized_takes_arrays_only() -> None:
    with pytest.raises(InvalidLaunch, match="got a list"):
        uninitialized([1])  # type: ignore[arg-type]


def test_grid_of_more_dimensions_than_the_launch() -> None:
    t = trace(kernel("out", "x, y = cuda.grid(2)\nout[y, x] = 1"), 4, 32, np.zeros((128, 128)))
    assert t.notes == ["line 9: grid(2) in a launch of 1 dimension(s): the further indices are always 0."]


# -- values that depend on lanes going different ways ----------------------------------------------


def run(body: str, n: int = 64, block: int = 32, dtype: Any = np.int64, outside: str = "") -> np.ndarray:
    """The output of a kernel that writes `out[i]`."""
    out = np.full(n, -99, dtype)
    trace(kernel("out", f"i = cuda.grid(1)\n{body}", outside), n // block, block, out)
    return out


def test_atomics_hand_out_old_values_in_thread_order() -> None:
    body = "out[i] = cuda.atomic.add(n, 0, 1)"
    out, n = np.zeros(128, np.int64), np.zeros(1, np.int64)
    trace(kernel("out, n", f"i = cuda.grid(1)\n{body}"), 4, 32, out, n)
    np.testing.assert_array_equal(out, np.arange(128))
    assert n[0] == 128


@pytest.mark.parametrize(
    "condition",
    [
        "y == 0 or x == 0 or y == 4 or x == 7",
        "not (y != 0 and x != 0 and y != 4 and x != 7)",
        "x == 0 or (y == 0 or y == 4) or x == 7",
    ],
)
def test_long_conditions_keep_what_an_early_operand_decided(condition: str) -> None:
    """In the middle block some operands hold for no lane at all, so that the second one alone decides."""
    out = np.zeros((6, 8), np.int64)
    body = f"x, y = cuda.grid(2)\nout[y, x] = {condition}"
    trace(kernel("out", body), (2, 3), (4, 2), out)
    y, x = np.indices((6, 8))
    np.testing.assert_array_equal(out, (y == 0) | (x == 0) | (y == 4) | (x == 7))


def test_a_variable_assigned_in_one_branch_keeps_its_type_elsewhere() -> None:
    body = "v = float32(i) / float32(3)\nif i % 2:\n    v = v * 2.0\nout[i] = v"
    i = np.arange(64)
    single = i.astype(np.float32) / np.float32(3)
    expected = np.where(i % 2, single.astype(np.float64) * 2, single)
    np.testing.assert_array_equal(run(body, dtype=np.float64), expected)


def test_break_continue_and_return_in_nested_loops() -> None:
    body = """
n = 0
for a in range(i % 5 + 1):
    for b in range(10):
        if b == a:
            continue
        if b > i % 7:
            break
        n += 10 * a + b
        if n > 200:
            out[i] = -n
            return
out[i] = n
"""

    def expected(i: int) -> int:
        n = 0
        for a in range(i % 5 + 1):
            for b in range(10):
                if b == a:
                    continue
                if b > i % 7:
                    break
                n += 10 * a + b
                if n > 200:
                    return -n
        return n

    np.testing.assert_array_equal(run(body), [expected(i) for i in range(64)])


def test_swapped_buffers() -> None:
    body = """
a = cuda.shared.array(32, float32)
b = cuda.shared.array(32, float32)
t = cuda.threadIdx.x
a[t] = t
for k in range(3):
    cuda.syncthreads()
    b[t] = a[(t + 1) % 32]
    a, b = b, a
cuda.syncthreads()
out[i] = a[t]
"""
    np.testing.assert_array_equal(run(body), np.tile((np.arange(32) + 3) % 32, 2))


def test_a_record_kept_in_a_variable_is_read_when_its_field_is() -> None:
    record = np.dtype([("x", "f4"), ("y", "f4")], align=True)
    array, out = np.zeros(32, record), np.zeros(32, np.float32)
    body = "i = cuda.grid(1)\np = array[i]\np.x = i\nif i > 3:\n    out[i] = p.x + 1"
    t = trace(kernel("array, out", body), 1, 32, array, out)
    np.testing.assert_array_equal(out, np.where(np.arange(32) > 3, np.arange(32) + 1, 0))
    assert t.hazards == []


def first_field(dtype: Any) -> Trace:
    arrays = np.zeros(32, dtype), np.zeros(32, np.float32)
    return trace(kernel("a, out", "i = cuda.grid(1)\nout[i] = a[i].x"), 1, 32, *arrays)


def test_packed_records_are_warned_about() -> None:
    t = first_field([("x", "f4"), ("k", "u1")])
    assert any("packed record type" in text for _, text in t.warnings)
    assert t.global_.load.requests == 4  # byte by byte, as compiled


def test_a_field_off_its_alignment_does_not_compile() -> None:
    with pytest.raises(UnsupportedConstruct, match=r"field x at byte 1 .*off its alignment of 4.*align=True"):
        first_field([("k", "u1"), ("x", "f4")])


def test_reading_an_unassigned_variable() -> None:
    with pytest.raises(
        KernelFault, match=r"kernel\.py:9: variable v is read before any lane has assigned it"
    ):
        trace(kernel("out", "out[0] = v\nv = 1"), 1, 32, np.zeros(1))


def test_kernels_do_not_return_values() -> None:
    with pytest.raises(UnsupportedConstruct, match="a kernel that returns a value"):
        trace(kernel("out", "return out[0]"), 1, 1, np.zeros(1))


# -- live functions --------------------------------------------------------------------------------

SCALE = 3


def scaled(array: Any) -> None:
    import math  # the refusal below is about this line

    array[0] = math.pi * SCALE


def test_a_live_function_is_interpreted_not_run() -> None:
    with pytest.raises(UnsupportedConstruct, match="an import is not supported"):
        trace(scaled, 1, 32, np.zeros(32))
    with pytest.raises(UnsupportedConstruct, match="got a int; give a function"):
        trace(3, 1, 32)
    with pytest.raises(UnsupportedConstruct, match="a kernel is defined with def"):
        trace(lambda a: a, 1, 32, np.zeros(1))


def reversed_quads(dst: Any, src: Any) -> None:
    i = 4 * np.int64(0)
    a, b, c, d = ptx.load4(src, i)
    ptx.store4(dst, i, d, c, b, a)


def test_wide_accesses_in_a_live_kernel() -> None:
    dst = np.zeros(4, np.float32)
    trace(reversed_quads, 1, 1, dst, np.arange(4, dtype=np.float32))
    np.testing.assert_array_equal(dst, [3, 2, 1, 0])
    with pytest.raises(
        ptx.OnlyInKernels, match=r"lanewise\.ptx\.load4 is for kernels that lanewise\.trace runs"
    ):
        ptx.load4(dst, 0)


def test_jitted_kernels_and_device_functions_with_closures() -> None:
    cuda: Any = pytest.importorskip("numba.cuda")

    def make(factor: int) -> Any:
        @cuda.jit(device=True)
        def times(value: Any) -> Any:
            return value * factor

        @cuda.jit
        def multiply(array: Any) -> None:
            i = cuda.grid(1)
            if i < array.size:
                array[i] = times(array[i])

        return multiply

    array = np.arange(40)
    t = trace(make(7), 2, 32, array)
    np.testing.assert_array_equal(array, 7 * np.arange(40))
    assert t.kernel == "multiply"
    assert t.filename == __file__
    assert t.sites[0].source == "array[i] = times(array[i])"


# -- the report ------------------------------------------------------------------------------------


def test_text_report() -> None:
    t, _, _ = transposed(64, 64, pitch=32)
    assert str(t).split("\n") == [
        "kernel, grid (2, 2, 1), block (32, 8, 1), sm_90; 4 blocks, 32 warps, 4,096 shared bytes per block",
        "line  instruction    array  requests  wavefronts  ideal  excess      worst  sectors  used  source",
        "  14  st.shared.b32  tile        128         128    128       0          -        -     - "
        " tile[cuda.threadIdx.y + j, cuda.threadIdx.x] = src[y + j, x]",
        "  14  ld.global.b32  src         128           -      -       0  4 sectors      512  100% "
        " tile[cuda.threadIdx.y + j, cuda.threadIdx.x] = src[y + j, x]",
        "  20  st.global.b32  dst         128           -      -       0  4 sectors      512  100%  dst[y + j, x] ="
        " tile[cuda.threadIdx.x, cuda.threadIdx.y + j]",
        "  20  ld.shared.b32  tile        128       4,096    128   3,968     32-way        -     -  dst[y + j, x] ="
        " tile[cuda.threadIdx.x, cuda.threadIdx.y + j]",
    ]
    assert repr(t) == "<Trace of kernel: 4 sites, 0 hazards>"


def test_html_report_escapes_and_marks_the_guilty_line() -> None:
    t, _, _ = transposed(64, 64, pitch=32)
    html = t._repr_html_()
    assert html.count('<tr class="guilty">') == 1
    assert "<td>ld.shared.b32</td><td>tile</td><td>128</td>" in html
    assert "currentColor" in html
    lower = trace(kernel("a", "i = cuda.grid(1)\na[i] = 1 < a[i]"), 1, 32, np.zeros(32))
    assert "1 &lt; a[i]" in lower._repr_html_()


def test_excess_of_global_memory_is_sectors_beyond_what_the_bytes_could_fill() -> None:
    src = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    t = trace(
        padding.transpose_naive, padding.grid_of(src), padding.BLOCK, src, np.zeros((96, 64), np.float32)
    )
    guilty = max(t.sites, key=lambda site: site.excess)
    assert (guilty.op, guilty.array) == ("store", "dst")
    assert (guilty.sectors, guilty.fewest_sectors) == (32 * guilty.requests, 4 * guilty.requests)
    assert guilty.excess == 28 * guilty.requests == t.global_.total.excess
    assert "guilty" in t._repr_html_()


def test_fewest_sectors_are_of_each_request_and_not_of_all_together() -> None:
    body = "i = cuda.threadIdx.x\nif i % 32 < 1 + 16 * (i // 32):\n    a[i + 4] = 1"
    site = trace(kernel("a", body), 1, 64, np.zeros(80, np.float32)).sites[0]
    # 1 lane and 17 lanes: 4 bytes fill 1 sector at least and 68 bytes 3.
    assert (site.requests, site.bytes_requested, site.fewest_sectors) == (2, 72, 1 + 3)
    assert (site.sectors, site.excess) == (1 + 3, 0)


@pytest.mark.parametrize(
    ("index", "lines"), [("i", 2), ("2 * i", 4), ("16 * i", 32), ("0 * i", 1), ("i + 1", 3)]
)
def test_lines_are_those_that_each_request_touches(index: str, lines: int) -> None:
    array = np.zeros(1024)
    site = trace(kernel("a", f"i = cuda.threadIdx.x\na[{index}] = 1"), 1, 32, array).sites[0]
    assert (site.lines, site.requests) == (lines, 1)
    assert (
        trace(kernel("a", f"i = cuda.threadIdx.x\na[{index}] = 1"), (3,), 32, array).sites[0].lines
        == 3 * lines
    )


@pytest.mark.parametrize(
    "index", ["4 * (i + k) + 64 * block", "4 * i + block * (k + 8) % 7", "(7 * i * block) % 512"]
)
def test_the_example_is_of_the_lowest_block_and_warp_among_equals(index: str) -> None:
    body = f"i, block = cuda.threadIdx.x, cuda.blockIdx.x\nfor k in range(3):\n    a[{index}] = 1"
    t = trace(kernel("a", body), 5, 64, np.zeros(2048, np.float32))
    site = t.sites[0]
    alone = [
        trace(kernel("a", body), 5, 64, np.zeros(2048, np.float32), blocks=[b]).sites[0] for b in range(5)
    ]
    worst = max(one.worst_sectors for one in alone)
    block = next(b for b, one in enumerate(alone) if one.worst_sectors == worst)
    assert (site.example_block, site.example_warp) == ((block, 0, 0), alone[block].example_warp)
    assert site.example is not None
    assert lanewise.global_cost(site.example).sectors == worst


def test_what_has_no_model_is_said() -> None:
    t = trace(kernel("a", "cuda.atomic.max(a, 0, cuda.grid(1))"), 1, 32, np.zeros(1, np.int64))
    assert t.unmodelled == [
        "kernel.py:9: red.global.max.s64: no rule is known for this instruction; requests are counted,"
        " their cost is not."
    ]
    assert t.global_.atomic.requests == 1


def test_float64_traps_are_warned_about_with_their_line() -> None:
    body = "i = cuda.grid(1)\nacc = float32(0)\nfor k in range(3):\n    acc += a[i] * 2.0\na[i] = acc"
    t = trace(kernel("a", body), 1, 32, np.zeros(32, np.float32))
    assert t.warnings == [
        (11, "acc is float32 at first and float64 later, so it is float64 throughout"),
        (12, "the literal 2.0 is float64 and takes float32 values along; write float32(2.0)"),
    ]
    clean = body.replace("2.0", "float32(2)")
    assert trace(kernel("a", clean), 1, 32, np.zeros(32, np.float32)).warnings == []


@pytest.mark.slow
def test_a_large_transpose_is_counted_in_full() -> None:
    t, dst, src = transposed(4096, 4096)
    assert (dst == src.T).all()
    assert t.shared.load.wavefronts == t.shared.load.ideal == 524_288
    assert t.global_.load.sectors == t.global_.store.sectors == 2_097_152
    assert t.hazards == []
