"""Counts that were known before the tracer existed: predicted by hand, measured on an H200, reported in public.

- Predictions K-..: the course's kernel list, worked out from the phase rule for each access; the corpus states them
  beside its kernels, and the tracer must reproduce them, as `test_corpus.py` asks of the per-thread oracle.
- Totals measured with Nsight Compute on an NVIDIA H200 (sm_90, driver 580.159.04, CUDA 13.0).
- Public cases: numbers that people posted with their profiler's output, retold as a kernel.
"""
# mypy: allow-untyped-defs, disable-error-code="attr-defined"

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

from lanewise import ptx
from lanewise.errors import InvalidLaunch
from lanewise.trace import Trace, trace
from tests.corpus import Case, Prediction, poisoned
from tests.corpus.banks import strided_of
from tests.corpus.copies import column_walk, offset_copy, row_walk, strided_copy
from tests.corpus.matmuls import matmul_tiled_of
from tests.corpus.reductions import sum_over_y_of
from tests.corpus.transposes import transpose_naive, transpose_swizzled, transpose_tiled_of
from tests.corpus_runs import PREDICTIONS, assert_predicted, prediction_id, traced
from tests.differential import traced_counts

# --- predictions of the kernel list -------------------------------------------------------------------------------


@pytest.mark.parametrize(("case", "prediction"), PREDICTIONS, ids=prediction_id)
def test_tracer_reproduces_prediction(case: Case, prediction: Prediction) -> None:
    assert_predicted(case, prediction, traced_counts(traced(case, "random")[0]))


# Rows of the kernel list that predict no count of a plain kernel, and why.
NOT_HERE = {
    "K-pd-11": "predicts occupancy: test_machine.py",
    "K-sw-7": "a law of swizzles: test_swizzles.py",
    "K-sw-8": "faulty swizzles: test_swizzles.py",
    "K-sw-9": "counts machine instructions",
    "K-sw-10": "a search: test_search.py",
    "K-co-15": "predicts times",
    "K-cs-5": "needs asynchronous copies",
    "K-cs-10": "predicts bytes per attention head, for any kernel",
    "K-cs-11": "needs Tensor Core instructions",
}
ROWS = {"bk": 12, "pd": 12, "sw": 10, "co": 16, "cs": 12}


def test_every_row_of_the_kernel_list_has_its_place() -> None:
    """Rows are predicted by the corpus, tested by name in this file, or listed with the reason why not."""
    predicted = {prediction.id for _, prediction in PREDICTIONS}
    named = {"K-bk-9", "K-bk-12", "K-pd-6", "K-pd-9", "K-pd-12", "K-sw-6", "K-cs-3", "K-cs-12"}
    rows = {f"K-{topic}-{number}" for topic, n in ROWS.items() for number in range(1, n + 1)}
    assert rows - predicted - named == set(NOT_HERE)


# --- whole sweeps -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [0, 1])
def test_stride_sweep_costs_the_greatest_common_divisor(base: int) -> None:
    """K-bk-2 and, one word further on, K-bk-11: strides 1 to 33."""
    kernel = strided_of(np.float32, 1089)
    for stride in range(1, 34):
        seen = trace(kernel, 1, 32, np.zeros(1089, np.float32), np.zeros(32, np.float32), base, stride)
        assert (seen.shared.load.wavefronts, seen.shared.load.requests) == (np.gcd(stride, 32), 1)


def test_offset_sweep_costs_a_fifth_sector_unless_aligned() -> None:
    """K-co-4: offsets of 0 to 31 floats."""
    for offset in range(32):
        seen = trace(offset_copy, 1, 32, np.zeros(64, np.float32), np.zeros(32, np.float32), offset)
        assert seen.global_.load.sectors == (4 if offset % 8 == 0 else 5)


def test_stride_sweep_costs_sectors_up_to_one_per_lane() -> None:
    """K-co-3: 4 sectors per element of stride, at most 32."""
    for stride in (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64):
        src, dst = np.zeros(32 * stride, np.float32), np.zeros(32 * stride, np.float32)
        seen = trace(strided_copy, 1, 32, src, dst, stride)
        assert seen.global_.load.sectors == seen.global_.store.sectors == min(4 * stride, 32)


# --- rows that need a kernel of their own -------------------------------------------------------------------------


@cuda.jit
def row_then_column_without_barrier(src, dst):
    tile = cuda.shared.array((32, 33), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[y, x] = src[y, x]
    dst[y, x] = tile[x, y]


@cuda.jit
def many_writers(src, dst):
    s = cuda.shared.array(32, np.float32)
    s[0] = src[cuda.threadIdx.x]
    # One of the values is in; which one is open.
    cuda.syncthreads()
    dst[cuda.threadIdx.x] = s[0]


def scale_through_tile_of(pitch, by_column):
    """K-pd-6: block (32, 32), doubled through a tile, read along its rows or along its columns."""

    @cuda.jit
    def scale_through_tile(src, dst):
        tile = cuda.shared.array((32, pitch), np.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        tile[y, x] = src[y, x]
        # The tile must be full before anyone reads another thread's element.
        cuda.syncthreads()
        if by_column:
            dst[y, x] = tile[x, y] * np.float32(2)
        else:
            dst[y, x] = tile[y, x] * np.float32(2)

    return scale_through_tile


@cuda.jit
def too_much_static_memory(dst):
    tile = cuda.shared.array((128, 128), np.float32)
    tile[0, cuda.threadIdx.x] = 1
    dst[cuda.threadIdx.x] = tile[0, cuda.threadIdx.x]


@cuda.jit
def add(left, right, dst):
    i = cuda.grid(1)
    dst[i] = left[i] + right[i]


@cuda.jit
def rectify(src, dst):
    i = cuda.grid(1)
    dst[i] = max(src[i], np.float32(0))


@cuda.jit
def add_and_rectify(left, right, dst):
    i = cuda.grid(1)
    dst[i] = max(left[i] + right[i], np.float32(0))


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def kinds(seen: Trace) -> set[str]:
    return {hazard.kind for hazard in seen.hazards}


def test_missing_barrier_is_a_race() -> None:
    """K-bk-12: the values look right when threads run in order, and the race is reported all the same."""
    assert "shared_race" in kinds(
        trace(row_then_column_without_barrier, 1, (32, 32), zeros(32, 32), zeros(32, 32))
    )


def test_all_lanes_storing_one_word_cost_one_wavefront_and_race() -> None:
    """K-bk-6, first half: a bank sees one word; who wins is another question."""
    seen = trace(many_writers, 1, 32, np.arange(32, dtype=np.float32), zeros(32))
    assert (seen.shared.store.wavefronts, seen.shared.store.ideal) == (1, 1)
    assert kinds(seen) == {"shared_race"}


@pytest.mark.parametrize(
    ("pitch", "by_column", "wavefronts"), [(32, False, 1), (32, True, 32), (33, True, 1)]
)
def test_scaling_through_a_tile(pitch: int, by_column: bool, wavefronts: int) -> None:
    """K-pd-6."""
    seen = trace(scale_through_tile_of(pitch, by_column), 1, (32, 32), zeros(32, 32), zeros(32, 32))
    assert seen.shared.store.wavefronts == seen.shared.store.requests == 32
    assert seen.shared.load.wavefronts == 32 * wavefronts
    assert seen.global_.load.sectors == seen.global_.store.sectors == 32 * 4


def test_sixty_four_kib_of_static_shared_memory_are_refused() -> None:
    """K-pd-12: ptxas gives a block 48 KiB of static shared memory."""
    with pytest.raises(InvalidLaunch, match="65,536 bytes"):
        trace(too_much_static_memory, 1, 32, zeros(32))


def test_fusing_two_kernels_moves_three_fifths_of_the_bytes() -> None:
    """K-cs-12: 12 + 8 bytes per element become 12."""
    a, b, c, d = (zeros(1024) for _ in range(4))
    apart = [trace(add, 4, 256, a, b, c), trace(rectify, 4, 256, c, d)]
    fused = trace(add_and_rectify, 4, 256, a, b, d)

    def moved(seen: Trace) -> int:
        return seen.global_.load.bytes_moved + seen.global_.store.bytes_moved

    assert [moved(seen) for seen in apart] == [12 * 1024, 8 * 1024]
    assert moved(fused) == 12 * 1024


# --- accesses of 16 bytes -----------------------------------------------------------------------------------------


def wide_access_of(stride, store):
    """K-bk-9: one 16-byte access of a warp, `stride` floats from lane to lane."""

    @cuda.jit
    def wide_access(src, dst):
        s = cuda.shared.array(1024, np.float32)
        t = cuda.threadIdx.x
        if store:
            ptx.store4(s, t * stride, src[t], src[t], src[t], src[t])
        else:
            for k in range(t, 1024, 32):
                s[k] = src[k]
            # All words must be in before they are read.
            cuda.syncthreads()
            a, b, c, d = ptx.load4(s, t * stride)
            dst[t] = a + b + c + d

    return wide_access


@pytest.mark.parametrize(
    ("stride", "op", "cost"),
    [
        (4, "load", (4, 4)),
        (4, "store", (4, 4)),
        (8, "load", (8, 4)),
        (32, "load", (32, 4)),
        (0, "load", (2, 2)),
        (0, "store", (4, 4)),
    ],
)
def test_sixteen_bytes_per_lane(stride: int, op: str, cost: tuple[int, int]) -> None:
    src, dst = np.arange(1024, dtype=np.float32), poisoned((32,), np.float32)
    seen = trace(wide_access_of(stride, op == "store"), 1, 32, src, dst)
    wide = [
        site for site in seen.sites if site.instruction == {"load": "ld", "store": "st"}[op] + ".shared.b128"
    ]
    assert [(site.wavefronts, site.ideal, site.requests) for site in wide] == [(*cost, 1)]
    if op == "load":
        lane = np.arange(32)[:, None]
        np.testing.assert_array_equal(dst, src[lane * stride + np.arange(4)].sum(axis=1))


def wide_tile_of(pitch, swizzled, by_column):
    """K-pd-9 and K-sw-6: 32 rows of 32 floats, filled by rows of 16 bytes, 8 lanes each; read by columns."""

    @cuda.jit
    def wide_tile(src, dst):
        tile = cuda.shared.array((32, pitch), np.float32)
        t = cuda.threadIdx.x
        for first in range(0, 32, 4):
            row, unit = first + t // 8, t % 8
            place = unit ^ (row & 7) if swizzled else unit
            a, b, c, d = ptx.load4(src, (row, 4 * unit))
            ptx.store4(tile, (row, 4 * place), a, b, c, d)
        # The tile must be full before its columns are read.
        cuda.syncthreads()
        place = 2 ^ (t & 7) if swizzled else 2
        if by_column:
            a, b, c, d = ptx.load4(tile, (t, 4 * place))
            dst[t] = a + b + c + d
        else:
            dst[t] = tile[t, 4 * place]

    return wide_tile


@pytest.mark.parametrize(
    ("pitch", "swizzled", "by_column", "cost"),
    [
        (32, False, True, (32, 4)),
        (36, False, True, (4, 4)),
        (40, False, True, (8, 4)),
        (32, True, True, (4, 4)),
        (32, True, False, (4, 1)),
    ],
    ids=["K-pd-9-32", "K-pd-9-36", "K-pd-9-40", "K-sw-6-wide", "K-sw-6-scalar"],
)
def test_columns_of_sixteen_bytes(pitch: int, swizzled: bool, by_column: bool, cost: tuple[int, int]) -> None:
    src, dst = np.arange(1024, dtype=np.float32).reshape(32, 32), poisoned((32,), np.float32)
    seen = trace(wide_tile_of(pitch, swizzled, by_column), 1, 32, src, dst)
    np.testing.assert_array_equal(dst, src[:, 8:12].sum(axis=1) if by_column else src[:, 8])
    assert (seen.shared.load.wavefronts, seen.shared.load.ideal) == cost
    assert (seen.shared.store.wavefronts, seen.shared.store.ideal) == (8 * 4, 8 * 4)
    assert seen.hazards == []


def test_an_odd_pitch_breaks_the_alignment_of_sixteen_bytes() -> None:
    """K-pd-9 with pitch 33: three rows of four start off a multiple of 16 bytes."""
    src, dst = np.zeros((32, 32), np.float32), np.zeros(32, np.float32)
    seen = trace(wide_tile_of(33, False, True), 1, 32, src, dst)
    misaligned = [hazard for hazard in seen.hazards if hazard.kind == "misaligned"]
    assert [hazard.count for hazard in misaligned] == [8 * 32 * 3 // 4, 32 * 3 // 4]


def product_of(tile, per_thread, inner, split):
    """K-cs-3: (16, 16) threads, a square of outputs for each in registers, operands loaded 16 bytes at a time."""
    half = tile // 2

    @cuda.jit
    def product(A, B, C):
        a_tile = cuda.shared.array((inner, tile), np.float32)  # the left operand, turned
        b_tile = cuda.shared.array((inner, tile), np.float32)
        acc = cuda.local.array((per_thread, per_thread), np.float32)
        left = cuda.local.array(per_thread, np.float32)
        right = cuda.local.array(per_thread, np.float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        t = 16 * ty + tx
        for row in range(per_thread):
            for col in range(per_thread):
                acc[row, col] = 0
        for first in range(0, A.shape[1], inner):
            for place in range(4 * t, inner * tile, 1024):
                row, k = place // inner, place % inner
                a, b, c, d = ptx.load4(A, (row, first + k))
                a_tile[k, row], a_tile[k + 1, row], a_tile[k + 2, row], a_tile[k + 3, row] = a, b, c, d
                k, col = place // tile, place % tile
                a, b, c, d = ptx.load4(B, (first + k, col))
                ptx.store4(b_tile, (k, col), a, b, c, d)
            # Both tiles must be full before anyone multiplies.
            cuda.syncthreads()
            for k in range(inner):
                for part in range(0, per_thread, 4):
                    start = part // 4 * half + 4 * tx if split else per_thread * tx + part
                    beside = ptx.load4(b_tile, (k, start))
                    right[part], right[part + 1], right[part + 2], right[part + 3] = beside
                    below = ptx.load4(a_tile, (k, per_thread * ty + part))
                    left[part], left[part + 1], left[part + 2], left[part + 3] = below
                for row in range(per_thread):
                    for col in range(per_thread):
                        acc[row, col] += left[row] * right[col]
            # All must have multiplied before the tiles are overwritten.
            cuda.syncthreads()
        for row in range(per_thread):
            for part in range(0, per_thread, 4):
                start = part // 4 * half + 4 * tx if split else per_thread * tx + part
                for col in range(4):
                    C[per_thread * ty + row, start + col] = acc[row, part + col]

    return product


@pytest.mark.parametrize(
    ("tile", "per_thread", "split", "right"),
    [(64, 4, False, (4, 4)), (128, 8, False, (8, 4)), (128, 8, True, (4, 4))],
    ids=["4x4", "8x8", "8x8-split"],
)
def test_register_tiles_load_sixteen_bytes(
    tile: int, per_thread: int, split: bool, right: tuple[int, int]
) -> None:
    """K-cs-3: neighbouring threads 32 bytes apart cost twice as much as two halves that are contiguous."""
    rng = np.random.default_rng(3)
    A = rng.integers(-8, 8, (tile, 32)).astype(np.float32)
    B = rng.integers(-8, 8, (32, tile)).astype(np.float32)
    C = poisoned((tile, tile), np.float32)
    seen = trace(product_of(tile, per_thread, 16, split), 1, (16, 16), A, B, C)
    np.testing.assert_array_equal(C, A @ B)
    assert seen.hazards == []
    for fragment, cost in (("load4(b_tile", right), ("load4(a_tile", (2, 2))):
        assert per_request(seen, fragment, "load", "wavefronts") == cost[0]
        assert per_request(seen, fragment, "load", "ideal") == cost[1]
    assert per_request(seen, "load4(B", "load", "sectors") == 16


# --- measured on the H200 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "wavefronts", "excess"),
    [
        (transpose_tiled_of(32, np.float32), 1_048_576, 1_015_808),
        (transpose_tiled_of(33, np.float32), 32_768, 0),
        (transpose_swizzled, 32_768, 0),
    ],
    ids=["dense", "padded", "swizzled"],
)
def test_transpose_of_1024_squared_costs_what_the_h200_counted(kernel, wavefronts: int, excess: int) -> None:
    src, dst = (
        np.arange(1024 * 1024, dtype=np.float32).reshape(1024, 1024),
        poisoned((1024, 1024), np.float32),
    )
    seen = trace(kernel, (32, 32), (32, 8), src, dst)
    np.testing.assert_array_equal(dst, src.T)
    assert (seen.shared.load.wavefronts, seen.shared.load.excess) == (wavefronts, excess)
    assert seen.shared.store.excess == 0
    assert seen.global_.load.sectors == seen.global_.store.sectors == 4 * 32_768


def test_naive_transpose_stores_a_sector_per_element() -> None:
    """K-pd-2 in all: an eighth of each sector is used."""
    src, dst = np.arange(512 * 512, dtype=np.float32).reshape(512, 512), poisoned((512, 512), np.float32)
    seen = trace(transpose_naive, (16, 64), (32, 8), src, dst)
    assert (seen.global_.load.sectors, seen.global_.store.sectors) == (512 * 512 // 8, 512 * 512)


def test_tiled_product_of_64_cubed_loads_as_written() -> None:
    """16,384 load requests and wavefronts in the source; the H200 counted fewer, because ptxas joins loads."""
    A, B, C = zeros(64, 64), zeros(64, 64), zeros(64, 64)
    seen = trace(matmul_tiled_of(16, 16), (4, 4), (16, 16), A, B, C)
    assert (seen.shared.load.requests, seen.shared.load.wavefronts) == (16_384, 16_384)


# --- reported in public -------------------------------------------------------------------------------------------


@cuda.jit
def stride_four(dst):
    s = cuda.shared.array(256, np.float32)
    g = cuda.grid(1)
    for i in range(cuda.threadIdx.x, 256, 32):
        s[i] = i
    # All words must be in before they are read.
    cuda.syncthreads()
    dst[g] = s[4 * g]


@cuda.jit
def store_columns(src, dst):
    tile = cuda.shared.array((32, 32), np.float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    tile[x, y] = src[y, x]
    # The tile must be full before its rows are read.
    cuda.syncthreads()
    dst[y, x] = tile[y, x]


@cuda.jit
def documented_matmul(A, B, C):
    """The mapping of numba's own example: x is the row."""
    a_tile = cuda.shared.array((16, 16), np.float32)
    b_tile = cuda.shared.array((16, 16), np.float32)
    row, col = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    acc = np.float32(0)
    for step in range(A.shape[1] // 16):
        a_tile[tx, ty] = A[row, ty + step * 16]
        b_tile[tx, ty] = B[tx + step * 16, col]
        # Both tiles must be full before anyone multiplies.
        cuda.syncthreads()
        for k in range(16):
            left = a_tile[tx, k]
            right = b_tile[k, ty]
            acc += left * right
        # All must have multiplied before the tiles are overwritten.
        cuda.syncthreads()
    C[row, col] = acc


@cuda.jit
def missing_second_barrier(A, B, C):
    a_tile = cuda.shared.array((3, 3), np.float32)
    b_tile = cuda.shared.array((3, 3), np.float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = np.float32(0)
    for first in range(0, A.shape[1], 3):
        a_tile[y, x] = A[row, first + x]
        b_tile[y, x] = B[first + y, col]
        # Both tiles must be full before anyone multiplies.
        cuda.syncthreads()
        for k in range(3):
            acc += a_tile[y, k] * b_tile[k, x]
    C[row, col] = acc


def per_request(seen: Trace, fragment: str, op: str, what: str) -> float:
    """A cost per request over the sites of an op on the lines that contain a fragment."""
    space = "global" if what == "sectors" else "shared"
    sites = [site for site in seen.sites if fragment in site.source and (site.op, site.space) == (op, space)]
    assert sites, f"no {space} {op} on a line with {fragment!r}"
    return sum(getattr(site, what) for site in sites) / sum(site.requests for site in sites)


def test_stride_four_over_two_blocks_has_six_conflicts() -> None:
    """NVIDIA-developer-blog/code-samples issue 48: the profiler said 6."""
    assert trace(stride_four, 2, 32, zeros(64)).shared.load.excess == 6


def test_doubles_stored_by_column_cost_sixteen_times_the_load() -> None:
    """NVIDIA forum 217015: 8 sectors per request, loads at 2 wavefronts, stores at 32 (32.5 with arbitration)."""
    seen = trace(store_columns, 1, (32, 32), np.zeros((32, 32)), np.zeros((32, 32)))
    assert per_request(seen, "tile[y, x]", "load", "wavefronts") == 2
    assert per_request(seen, "tile[x, y] =", "store", "wavefronts") == 32
    assert per_request(seen, "src[y, x]", "load", "sectors") == 8


@pytest.mark.parametrize(("kernel", "sectors"), [(row_walk, (4, 4, 4)), (column_walk, (32, 16, 8))])
def test_which_index_goes_last(kernel, sectors: tuple[int, ...]) -> None:
    """NVIDIA forum 203221: sectors per request for blocks (32, 8), (16, 16), (8, 32)."""
    for block, expected in zip(((32, 8), (16, 16), (8, 32)), sectors, strict=True):
        seen = trace(kernel, (64 // block[0], 64 // block[1]), block, zeros(64, 64), zeros(64, 64))
        assert seen.global_.load.sectors == expected * seen.global_.load.requests


def test_one_field_of_a_record_costs_as_many_sectors_as_it_has_bytes() -> None:
    """ROCm/hip issue 3106 and others: structures of 8 to 32 bytes, one float of each."""

    @cuda.jit
    def one_field(records, dst):
        dst[cuda.threadIdx.x] = records[cuda.threadIdx.x].f0

    for n_fields in range(2, 9):
        dtype = np.dtype([(f"f{k}", np.float32) for k in range(n_fields)], align=True)
        assert trace(one_field, 1, 32, np.zeros(32, dtype), zeros(32)).global_.load.sectors == 4 * n_fields


def test_the_documented_product_maps_threads_the_slow_way() -> None:
    """numba's documentation, older text: 16 sectors per request, and 8-way conflicts on two of three shared lines."""
    seen = trace(documented_matmul, (2, 2), (16, 16), zeros(32, 32), zeros(32, 32), zeros(32, 32))
    assert per_request(seen, "A[row, ty", "load", "sectors") == 16
    assert per_request(seen, "C[row, col]", "store", "sectors") == 16
    assert per_request(seen, "a_tile[tx, ty]", "store", "wavefronts") == 8
    assert per_request(seen, "left = a_tile", "load", "wavefronts") == 8
    assert per_request(seen, "right = b_tile", "load", "wavefronts") == 1


@pytest.mark.parametrize(("transposed", "degree"), [(True, 8), (False, 1)])
def test_block_reduction_over_y(transposed: bool, degree: int) -> None:
    """NVIDIA/Fuser pull 2204: thread-order words brought the counter back to one wavefront per request."""
    seen = trace(sum_over_y_of(transposed), 1, (8, 32), zeros(32, 8), zeros(8))
    assert per_request(seen, "s[word] = src", "store", "wavefronts") == degree


def test_missing_second_barrier_is_a_race_although_the_product_is_right() -> None:
    """srush/GPU-Puzzles issue 14: tiles are overwritten while others still read them; one tile alone is clean."""
    A, B = np.arange(36, dtype=np.float32).reshape(6, 6), np.eye(6, dtype=np.float32)
    C = poisoned((6, 6), np.float32)
    seen = trace(missing_second_barrier, (2, 2), (3, 3), A, B, C)
    np.testing.assert_array_equal(C, A)
    assert kinds(seen) == {"shared_race"}
    small = np.ones((3, 3), np.float32)
    assert kinds(trace(missing_second_barrier, 1, (3, 3), small, small, small.copy())) == set()
