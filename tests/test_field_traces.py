"""Kernels that people posted in public, and what the tracer must say about each.

The sources are issue trackers and forums; each test names its own. `test_golden_counts.py` has the cases whose
point is a count, this file those whose point is a fault, a type or a launch.
"""
# mypy: allow-untyped-defs, disable-error-code="attr-defined"

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import cuda, float32, int32

from lanewise import check
from lanewise.trace import Hazard, Trace, UnsupportedConstruct, trace
from tests.corpus import poisoned

TILE = 16


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def faults(seen: Trace) -> list[Hazard]:
    return [hazard for hazard in seen.hazards if hazard.severity != "benign"]


def kinds(seen: Trace) -> set[str]:
    return {hazard.kind for hazard in faults(seen)}


def source(seen: Trace, line: int | None) -> str:
    return next(site.source for site in seen.sites if site.line == line)


# --- counts with a fault beside them ------------------------------------------------------------------------------


@cuda.jit
def stride_four(dst):
    s = cuda.shared.array(256, float32)
    g = cuda.grid(1)
    s[cuda.threadIdx.x] = g
    # All written words must be in before they are read.
    cuda.syncthreads()
    dst[g] = s[4 * g]


def test_stride_four_has_six_conflicts_and_reads_what_nobody_wrote() -> None:
    """NVIDIA-developer-blog/code-samples issue 48: 3 excess wavefronts in each of 2 warps, most words unwritten."""
    seen = trace(stride_four, 2, 32, zeros(64))
    assert seen.shared.load.excess == 6
    assert kinds(seen) == {"uninitialized_read"}
    # Block 0 reads words 0, 4, .. 124, of which 8 are written; block 1 reads words from 128 on.
    assert seen.hazards[0].count == 24 + 32


@cuda.jit
def add_last_x(left, right, dst):
    x, y = cuda.grid(2)
    if y < dst.shape[0] and x < dst.shape[1]:
        dst[y, x] = left[y, x] + right[y, x]


@cuda.jit
def add_last_y(left, right, dst):
    x, y = cuda.grid(2)
    if x < dst.shape[0] and y < dst.shape[1]:
        dst[x, y] = left[x, y] + right[x, y]


@pytest.mark.parametrize(
    ("kernel", "dtype", "sectors"),
    [
        (add_last_x, np.float32, (4, 4, 4)),
        (add_last_y, np.float32, (32, 16, 8)),
        (add_last_x, np.float64, (8, 8, 8)),
        (add_last_y, np.float64, (32, 16, 8)),
    ],
)
def test_which_index_goes_last(kernel, dtype: Any, sectors: tuple[int, ...]) -> None:
    """NVIDIA forum 203221; of float64, both orders cost the same once a block is 8 threads wide."""
    for block, expected in zip(((32, 8), (16, 16), (8, 32)), sectors, strict=True):
        arrays = [np.ones((64, 64), dtype) for _ in range(3)]
        seen = trace(kernel, (64 // block[0], 64 // block[1]), block, *arrays)
        for op in (seen.global_.load, seen.global_.store):
            assert op.sectors == expected * op.requests
        np.testing.assert_array_equal(arrays[2], 2)


@cuda.jit
def copy_2d(src, dst):
    col, row = cuda.grid(2)
    if row < dst.shape[0] and col < dst.shape[1]:
        dst[row, col] = src[row, col]


@pytest.mark.parametrize(
    ("view", "sectors"),
    [
        (lambda a: a.copy(), 4),
        (lambda a: a.T, 32),
        (lambda a: a[::2, ::2], 8),
        (lambda a: np.broadcast_to(a[:1], (64, 64)), 4),
        (lambda a: np.broadcast_to(a[:, :1], (64, 64)), 1),
        (lambda a: a[:, ::-1], 4),
    ],
    ids=["contiguous", "transposed", "every-other", "one-row", "one-column", "mirrored"],
)
def test_one_line_costs_what_the_layout_of_its_array_costs(view, sectors: int) -> None:
    """numba issues 4628 and 4974: layouts C, F and A, and strides of 0."""
    src = view(np.arange(64 * 64, dtype=np.float32).reshape(64, 64))
    dst = poisoned(src.shape, np.float32)
    seen = trace(copy_2d, (2, 8), (32, 8), src, dst)
    np.testing.assert_array_equal(dst, src)
    assert seen.global_.load.sectors == sectors * seen.global_.load.requests
    assert {site.line for site in seen.sites} == {seen.sites[0].line}


# --- shapes, launches and types -----------------------------------------------------------------------------------


@cuda.jit
def shape_from_argument(dst, n):
    s = cuda.shared.array(n, float32)
    s[cuda.threadIdx.x] = 1
    dst[cuda.threadIdx.x] = s[cuda.threadIdx.x]


@cuda.jit
def shape_from_block(dst, n):
    s = cuda.shared.array(cuda.blockDim.x, float32)
    s[cuda.threadIdx.x] = n
    dst[cuda.threadIdx.x] = s[cuda.threadIdx.x]


@cuda.jit
def shape_from_array(dst, n):
    s = cuda.shared.array(dst.shape[0], float32)
    s[cuda.threadIdx.x] = n
    dst[cuda.threadIdx.x] = s[cuda.threadIdx.x]


@pytest.mark.parametrize("kernel", [shape_from_argument, shape_from_block, shape_from_array])
def test_shared_shapes_that_no_gpu_compiles_are_refused(kernel) -> None:
    """srush/GPU-Puzzles issue 6, numba issues 4709, 8300, 9340: numba's simulator lets them pass."""
    with pytest.raises(UnsupportedConstruct, match="shape that is not constant"):
        trace(kernel, 1, 32, zeros(32), 32)


@cuda.jit
def two_dynamic_arrays(dst):
    ones = cuda.shared.array(0, float32)
    twos = cuda.shared.array(0, int32)
    ones[0] = 1
    twos[0] = 2
    dst[0], dst[1] = ones[0], twos[0]


@cuda.jit
def two_threads_in_two_dynamic_arrays(dst):
    ones = cuda.shared.array(0, float32)
    twos = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    if t == 0:
        ones[0] = 1
    else:
        twos[0] = 2


@cuda.jit
def two_slices(dst):
    s = cuda.shared.array(0, int32)
    ones, twos = s[0:1], s[1:2]
    ones[0] = 1
    twos[0] = 2
    dst[0], dst[1] = ones[0], twos[0]


def test_dynamic_shared_arrays_are_one_memory_and_slices_are_not() -> None:
    """numba issue 5073: the write through the second array is what the first one shows."""
    dst = np.zeros(2)
    seen = trace(two_dynamic_arrays, 1, 1, dst, dynamic_shared_bytes=8)
    np.testing.assert_array_equal(dst, [np.int32(2).view(np.float32), 2])
    assert any("all start at the same byte; slice them apart" in note for note in seen.notes)
    raced = faults(trace(two_threads_in_two_dynamic_arrays, 1, 2, zeros(2), dynamic_shared_bytes=8))
    assert [hazard.kind for hazard in raced] == ["shared_race"]
    clean = trace(two_slices, 1, 1, dst, dynamic_shared_bytes=8)
    np.testing.assert_array_equal(dst, [1, 2])
    assert (clean.hazards, clean.notes) == ([], [])


@cuda.jit
def multiply(A, B, C):
    row, col = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float32(0)
        for k in range(A.shape[1]):
            acc += A[row, k] * B[k, col]
        C[row, col] = acc


def test_a_launch_of_one_dimension_leaves_the_second_index_at_zero() -> None:
    """numba issue 7679: only the first column is computed, and nothing fails."""
    A, B, C = np.ones((20, 4), np.float32), np.ones((4, 5), np.float32), poisoned((20, 5), np.float32)
    seen = trace(multiply, 100, 10, A, B, C)
    assert any(
        note.endswith("in a launch of 1 dimension(s): the further indices are always 0.")
        for note in seen.notes
    )
    np.testing.assert_array_equal(C[:, 0], 4)
    assert np.isnan(C[:, 1:]).all()
    assert not trace(multiply, (2, 1), (10, 5), A, B, C).notes


@cuda.jit
def index_widened_by_range(src, dst):
    i = cuda.threadIdx.x
    for k in range(4):
        i = i + k
    dst[cuda.threadIdx.x] = src[i]


@cuda.jit
def index_kept_narrow(src, dst):
    i = cuda.threadIdx.x
    dst[i] = src[i]


def test_a_loop_over_range_widens_an_int32_and_moves_no_sector() -> None:
    """NVIDIA/numba-cuda issue 801: int64 is worth a hint, and changes no count."""
    wide = trace(index_widened_by_range, 1, 32, zeros(64), zeros(32))
    narrow = trace(index_kept_narrow, 1, 32, zeros(64), zeros(32))
    assert [text for _, text in wide.warnings] == [
        "i is int32 at first and int64 later, so it is int64 throughout"
    ]
    assert not narrow.warnings
    assert (wide.global_.store.sectors, narrow.global_.store.sectors) == (4, 4)


@cuda.jit
def sum_from_float_literal(src, dst):
    s = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    acc = 0.0
    for k in range(4):
        acc += src[t, k]
    s[t] = acc
    dst[t] = s[t]


@cuda.jit
def sum_from_float32(src, dst):
    t = cuda.threadIdx.x
    acc = float32(0)
    for k in range(4):
        acc += src[t, k]
    dst[t] = acc


def test_a_float_literal_makes_the_sum_float64_and_the_accesses_stay_four_bytes() -> None:
    """numba issues 4676, 4654 and 3377."""
    seen = trace(sum_from_float_literal, 1, 32, zeros(32, 4), zeros(32))
    assert any("float64" in text for _, text in seen.warnings)
    assert not check(seen).no_float64()
    assert {site.instruction[-3:] for site in seen.sites} == {"b32"}
    assert check(trace(sum_from_float32, 1, 32, zeros(32, 4), zeros(32))).no_float64()


# --- races and barriers -------------------------------------------------------------------------------------------


@cuda.jit
def count_to_two(dst):
    counter = cuda.shared.array(1, int32)
    counter[0] = 0
    # The counter must be zero before anyone counts.
    cuda.syncthreads()
    counter[0] += 1
    # All must have counted.
    cuda.syncthreads()
    dst[0] = counter[0]


@cuda.jit
def count_to_two_atomically(dst):
    counter = cuda.shared.array(1, int32)
    if cuda.threadIdx.x == 0:
        counter[0] = 0
    # The counter must be zero before anyone counts.
    cuda.syncthreads()
    cuda.atomic.add(counter, 0, 1)
    # All must have counted.
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        dst[0] = counter[0]


def test_two_threads_that_count_lose_an_update() -> None:
    """numba issue 4907: 1 instead of 2; the zeroing by both is a class of its own."""
    dst = np.zeros(1, np.int32)
    seen = trace(count_to_two, 1, 2, dst)
    assert dst[0] == 1
    assert source(seen, faults(seen)[0].line) == "counter[0] += 1"
    assert {hazard.kind for hazard in faults(seen)} == {"shared_race"}
    assert "an update is lost" in faults(seen)[0].message
    benign = [source(seen, hazard.line) for hazard in seen.hazards if hazard.severity == "benign"]
    assert benign == ["counter[0] = 0", "dst[0] = counter[0]"]
    assert not trace(count_to_two_atomically, 1, 2, dst).hazards
    assert dst[0] == 2


def tiled_product_of(second_barrier: bool):
    @cuda.jit
    def tiled_product(A, B, C):
        a_tile = cuda.shared.array((3, 3), float32)
        b_tile = cuda.shared.array((3, 3), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        n = C.shape[0]
        acc = float32(0)
        for first in range(0, n, 3):
            a_tile[y, x] = A[row, first + x] if row < n and first + x < n else float32(0)
            b_tile[y, x] = B[first + y, col] if first + y < n and col < n else float32(0)
            # Both tiles must be full before anyone multiplies.
            cuda.syncthreads()
            for k in range(3):
                acc += a_tile[y, k] * b_tile[k, x]
            if second_barrier:
                # All must have multiplied before the tiles are overwritten.
                cuda.syncthreads()
        if row < n and col < n:
            C[row, col] = acc

    return tiled_product


@pytest.mark.parametrize("n", [3, 8])
def test_missing_second_barrier_is_a_race_between_multiplying_and_loading(n: int) -> None:
    """srush/GPU-Puzzles issue 14: right numbers all the same; a single tile needs no second barrier."""
    A, B = (
        np.arange(n * n, dtype=np.float32).reshape(n, n),
        np.arange(n * n, dtype=np.float32)[::-1].reshape(n, n),
    )
    grid = (-(-n // 3), -(-n // 3))
    for second_barrier in (False, True):
        C = poisoned((n, n), np.float32)
        seen = trace(tiled_product_of(second_barrier), grid, (3, 3), A, B, C)
        np.testing.assert_array_equal(C, A @ B)
        assert kinds(seen) == (set() if second_barrier or n == 3 else {"shared_race"})
        for hazard in seen.hazards:
            assert "acc += a_tile" in source(seen, hazard.other_line)
            assert "_tile[y, x] =" in source(seen, hazard.line)


def block_sum_of(guarded: bool):
    @cuda.jit
    def block_sum(src, dst):
        s = cuda.shared.array(8, float32)
        i, t = cuda.grid(1), cuda.threadIdx.x
        if guarded:
            if i < src.size:
                s[t] = src[i]
                # Every value must be in before it is added.
                cuda.syncthreads()
                step = 4
                while step > 0:
                    if t < step:
                        s[t] += s[t + step]
                    # A level must be complete before the next one.
                    cuda.syncthreads()
                    step //= 2
        else:
            s[t] = src[i] if i < src.size else float32(0)
            # Every value must be in before it is added.
            cuda.syncthreads()
            step = 4
            while step > 0:
                if t < step:
                    s[t] += s[t + step]
                # A level must be complete before the next one.
                cuda.syncthreads()
                step //= 2
        if t == 0:
            dst[cuda.blockIdx.x] = s[0]

    return block_sum


def test_tail_that_nobody_writes_is_read_and_its_thread_misses_the_barriers() -> None:
    """srush/GPU-Puzzles issues 20 and 26: 15 values in blocks of 8."""
    src, dst = np.arange(15, dtype=np.float32), zeros(2)
    seen = trace(block_sum_of(True), 2, 8, src, dst)
    assert kinds(seen) == {"uninitialized_read", "divergent_barrier"}
    unwritten = next(hazard for hazard in seen.hazards if hazard.kind == "uninitialized_read")
    assert (unwritten.block, unwritten.element) == ((1, 0, 0), "s[7]")
    barrier = next(hazard for hazard in seen.hazards if hazard.kind == "divergent_barrier")
    assert (barrier.block, barrier.thread) == ((1, 0, 0), (7, 0, 0))
    assert "7 of 8 live threads wait" in barrier.message
    assert not trace(block_sum_of(False), 2, 8, src, dst).hazards
    np.testing.assert_array_equal(dst, [28, 77])


@cuda.jit
def threads_that_leave(src, dst):
    mark = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t < 14 and src[t] < 0:
        return
    if t == 1:
        mark[0] = 5
    # The mark must be set before it is copied.
    cuda.syncthreads()
    if t == 17:
        dst[0] = mark[0]


@cuda.jit
def two_meeting_places(dst):
    for _ in range(2):
        if cuda.threadIdx.x % 2 == 0:
            cuda.syncthreads_or(1)
            continue
        cuda.syncthreads()
    dst[cuda.threadIdx.x] = 1


def test_threads_that_leave_or_wait_elsewhere() -> None:
    """numba issues 2655, 1626 and 9770. The exits that a compiler inserts are not in the source, nor in the trace."""
    left = trace(threads_that_leave, 1, 20, zeros(32) - 1, zeros(1))
    # Thread 1, who would write the mark, has left.
    assert [hazard.kind for hazard in faults(left)] == ["uninitialized_read"]
    assert any("had returned" in note and "syncthreads" in note for note in left.notes)
    apart = trace(two_meeting_places, 1, 64, zeros(64))
    assert [hazard.kind for hazard in apart.hazards] == ["divergent_barrier"] * 2
    assert "syncthreads_or" in apart.hazards[0].message
    assert "32 of 64 live threads" in apart.hazards[0].message


@cuda.jit
def documented_product(A, B, C):
    """The example of numba's documentation before its repair."""
    a_tile = cuda.shared.array((16, 16), float32)
    b_tile = cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    if x >= C.shape[0] and y >= C.shape[1]:
        return
    acc = float32(0)
    for i in range(cuda.gridDim.x):
        a_tile[tx, ty] = A[x, ty + i * TILE]
        b_tile[tx, ty] = B[tx + i * TILE, y]
        # Both tiles must be full before anyone multiplies.
        cuda.syncthreads()
        for j in range(TILE):
            acc += a_tile[tx, j] * b_tile[j, ty]
        # All must have multiplied before the tiles are overwritten.
        cuda.syncthreads()
    C[x, y] = acc


@cuda.jit
def repaired_product(A, B, C):
    a_tile = cuda.shared.array((16, 16), float32)
    b_tile = cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    inner = A.shape[1]
    acc = float32(0)
    for i in range((inner + TILE - 1) // TILE):
        a_tile[tx, ty] = A[x, ty + i * TILE] if x < A.shape[0] and ty + i * TILE < inner else float32(0)
        b_tile[tx, ty] = B[tx + i * TILE, y] if y < B.shape[1] and tx + i * TILE < inner else float32(0)
        # Both tiles must be full before anyone multiplies.
        cuda.syncthreads()
        for j in range(TILE):
            acc += a_tile[tx, j] * b_tile[j, ty]
        # All must have multiplied before the tiles are overwritten.
        cuda.syncthreads()
    if x < C.shape[0] and y < C.shape[1]:
        C[x, y] = acc


@pytest.mark.parametrize(("rows", "inner", "cols"), [(4, 4, 4), (23, 7, 22)])
def test_the_documented_product_reads_past_its_operands(rows: int, inner: int, cols: int) -> None:
    """numba issues 7324 and 5620."""
    A = np.arange(rows * inner, dtype=np.float32).reshape(rows, inner)
    B = np.arange(inner * cols, dtype=np.float32).reshape(inner, cols)
    C = poisoned((rows, cols), np.float32)
    grid = (math.ceil(rows / TILE), math.ceil(cols / TILE))
    seen = trace(documented_product, grid, (TILE, TILE), A, B, C)
    outside = {
        source(seen, hazard.line).partition(" = ")[2][:1]
        for hazard in seen.hazards
        if hazard.kind == "out_of_bounds"
    }
    assert {"A", "B"} <= outside
    assert any("had returned" in note for note in seen.notes)
    repaired = trace(repaired_product, grid, (TILE, TILE), A, B, C)
    assert not repaired.hazards
    np.testing.assert_array_equal(C, A @ B)


def checkerboard_of(colours: tuple[int, ...]):
    """One step for each colour; a cell takes the value of its right neighbour if that is larger."""

    @cuda.jit
    def checkerboard(cells):
        col, row = cuda.grid(2)
        for colour in colours:
            mine = (row + col) % 2 == colour and col + 1 < cells.shape[1]
            if mine and cells[row, col + 1] > cells[row, col]:
                cells[row, col] = cells[row, col + 1]
            # Meant to keep the colours apart, but it holds inside a block alone.
            cuda.syncthreads()

    return checkerboard


def test_a_block_barrier_does_not_order_two_blocks() -> None:
    """numba issue 7502: cells race across the border of two blocks, and nowhere else; one launch per colour is
    clean."""
    cells = np.arange(16 * 32, dtype=np.float32).reshape(16, 32)
    seen = trace(checkerboard_of((0, 1)), (2, 1), (16, 16), cells.copy())
    assert kinds(seen) == {"global_race"}
    assert {hazard.element.rpartition(", ")[2] for hazard in seen.hazards} == {"16]"}
    assert all(hazard.block != hazard.other_block for hazard in seen.hazards)
    for colour in (0, 1):
        assert not trace(checkerboard_of((colour,)), (2, 1), (16, 16), cells).hazards


def last_warp_of(ordered: bool, guarded: bool = False):
    @cuda.jit
    def last_warp(src, dst):
        s = cuda.shared.array(64, float32)
        t = cuda.threadIdx.x
        s[t] = src[t]
        # Every value must be in before it is added.
        cuda.syncthreads()
        if t < 32:
            for step in (32, 16, 8, 4, 2, 1):
                if ordered:
                    value = s[t] + s[t + step]
                    # All lanes must have read before any writes.
                    cuda.syncwarp()
                    s[t] = value
                    # All lanes must have written before any reads.
                    cuda.syncwarp()
                elif guarded:
                    if t < step:
                        s[t] += s[t + step]
                else:
                    s[t] += s[t + step]
        if t == 0:
            dst[0] = s[0]

    return last_warp


def test_the_last_warp_is_not_in_lock_step() -> None:
    """CanReader/FastNN issue 8: right by luck, and a race between lanes at each step."""
    src, dst = np.arange(64, dtype=np.float32), zeros(1)
    for guarded in (False, True):
        seen = trace(last_warp_of(False, guarded), 1, 64, src, dst)
        np.testing.assert_array_equal(dst, src.sum())
        assert {(hazard.kind, hazard.severity) for hazard in seen.hazards} == {("shared_race", "lock_step")}
        assert "syncwarp" in seen.hazards[0].message
    assert not trace(last_warp_of(True), 1, 64, src, dst).hazards
    np.testing.assert_array_equal(dst, src.sum())
