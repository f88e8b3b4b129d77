"""Single constructs of kernels, each by its value and its faults. The corpus tests compare whole kernels."""
# mypy: allow-untyped-defs, disable-error-code="attr-defined"

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import cuda, float32, int32

from lanewise import ptx
from lanewise.errors import Error
from lanewise.trace import Trace, UnsupportedConstruct, functions_in, trace
from tests.differential import differences

TABLE = np.array([3, 1, 4, 1, 5], np.int32)
GRID_TABLE = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
POINTS = np.array([(1, 2.5), (3, 4.5)], np.dtype([("n", np.int32), ("x", np.float32)], align=True))


def kinds(seen: Trace) -> set[str]:
    return {hazard.kind for hazard in seen.hazards}


# -- constant tables -------------------------------------------------------------------------------


@cuda.jit
def look_up(dst):
    i = cuda.grid(1)
    total = 0
    for entry in TABLE:
        total += entry
    dst[i, 0] = TABLE[i % 5] + len(TABLE) + TABLE.shape[0]
    dst[i, 1] = GRID_TABLE[i % 3, i % 2]
    dst[i, 2] = total
    dst[i, 3] = POINTS[i % 2].x + POINTS[i % 2].n


def test_arrays_outside_the_kernel_are_tables_in_constant_memory() -> None:
    dst = np.zeros((32, 4))
    seen = trace(look_up, 1, 32, dst)
    i = np.arange(32)
    np.testing.assert_array_equal(dst[:, 0], TABLE[i % 5] + 10)
    np.testing.assert_array_equal(dst[:, 1], GRID_TABLE[i % 3, i % 2])
    np.testing.assert_array_equal(dst[:, 2], TABLE.sum())
    np.testing.assert_array_equal(dst[:, 3], (POINTS["x"] + POINTS["n"])[i % 2])
    assert {site.op for site in seen.sites} == {"store"}
    assert any(note.endswith("reads of constant memory are not counted.") for note in seen.notes)


def test_a_table_is_not_written_and_not_read_past_its_end() -> None:
    @cuda.jit
    def write(dst):
        TABLE[0] = 1

    @cuda.jit
    def read_on(dst):
        dst[cuda.threadIdx.x] = TABLE[cuda.threadIdx.x]

    with pytest.raises(UnsupportedConstruct, match="writing constant memory"):
        trace(write, 1, 1, np.zeros(1))
    assert [str(hazard.element) for hazard in trace(read_on, 1, 32, np.zeros(32)).hazards] == ["TABLE[5]"]


# -- records ---------------------------------------------------------------------------------------

PARTICLE = np.dtype(
    [("pos", np.float32, (3,)), ("cell", [("row", np.int32), ("col", np.int32)]), ("mass", np.float32)],
    align=True,
)


@cuda.jit
def move(particles, dst):
    i = cuda.grid(1)
    particles[i].pos[1] = i
    particles[i].cell.row = 2 * i
    position = particles[i].pos
    masses = particles.mass
    masses[i] = 0.5
    dst[i] = position[1] + particles[i]["cell"]["row"] + particles["mass"][i] + position.shape[0]


def test_records_hold_arrays_and_records_and_give_views_of_their_fields() -> None:
    particles, dst = np.zeros(32, PARTICLE), np.zeros(32, np.float32)
    seen = trace(move, 1, 32, particles, dst)
    i = np.arange(32)
    np.testing.assert_array_equal(particles["pos"], np.stack([0 * i, i, 0 * i], axis=1))
    np.testing.assert_array_equal(dst, 3 * i + 3.5)
    assert not seen.hazards
    # 24-byte records: 32 of them lie in 24 sectors, whichever field is touched.
    loads = [site for site in seen.sites if site.op == "load"]
    assert {(site.instruction, site.sectors) for site in loads} == {("ld.global.b32", 24)}


def test_a_record_past_the_end_is_reported_although_its_array_is_asked_for() -> None:
    @cuda.jit
    def read_position(particles, dst):
        dst[cuda.threadIdx.x] = particles[cuda.threadIdx.x].pos[0]

    seen = trace(read_position, 1, 32, np.zeros(20, PARTICLE), np.zeros(32, np.float32))
    assert [(hazard.kind, hazard.element, hazard.count) for hazard in seen.hazards] == [
        ("out_of_bounds", "particles[20]", 12)
    ]


@cuda.jit
def count_up(counters):
    cuda.atomic.add(counters, cuda.threadIdx.x % 4, 1)


@pytest.mark.parametrize("aligned", [True, False])
def test_atomics_on_a_field_need_it_aligned(aligned: bool) -> None:
    records = np.zeros(4, np.dtype([("tag", np.int16), ("n", np.int32)], align=aligned))
    seen = trace(count_up, 1, 32, records["n"])
    # Packed, the counters lie at bytes 2, 8, 14 and 20.
    assert records["n"].tolist() == ([8, 8, 8, 8] if aligned else [0, 8, 0, 8])
    assert kinds(seen) == (set() if aligned else {"misaligned"})


# -- expressions -----------------------------------------------------------------------------------


@cuda.jit
def chain(n, limits, dst):
    i = cuda.grid(1)
    if 0 < i < n <= limits[i]:
        dst[i] = 1
    if 3 < i < n and 2 <= limits[i] != 7:
        dst[i] += 1


def test_a_chain_of_comparisons_reads_no_further_than_it_must() -> None:
    arguments = (20, np.arange(20, dtype=np.int64) + 10, np.zeros(32, np.float32))
    assert differences(chain, 1, 32, arguments) == []


@cuda.jit
def split_floats(src, dst):
    i = cuda.grid(1)
    mantissa, exponent = math.frexp(src[i])
    fraction, whole = math.modf(src[i])
    dst[i, 0], dst[i, 1] = mantissa, exponent
    dst[i, 2], dst[i, 3] = fraction, whole
    dst[i, 4] = math.remainder(src[i], float32(1.5))


def test_floats_are_taken_apart_as_python_does_it() -> None:
    src = (np.arange(32, dtype=np.float32) - 11) / np.float32(4)
    dst = np.zeros((32, 5))
    trace(split_floats, 1, 32, src, dst)
    for value, row in zip(src.tolist(), dst.tolist(), strict=True):
        assert row == [*math.frexp(value), *math.modf(value), math.remainder(value, 1.5)]


# -- device functions and their shared arrays ------------------------------------------------------


@cuda.jit(device=True)
def block_sum(value):
    s = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    s[t] = value
    # Every value must be in before it is added.
    cuda.syncthreads()
    total = 0
    for k in range(64):
        total += s[k]
    return total


def sums_of(between: bool, second: Any):
    @cuda.jit
    def sums(dst):
        t = cuda.threadIdx.x
        first = block_sum(t)
        if between:
            # All must have added before the next call overwrites the values.
            cuda.syncthreads()
        dst[t] = first + block_sum(second(t))

    return sums


def test_two_calls_of_a_device_function_use_one_shared_array() -> None:
    """numba compiles the function once, so the second call's writes race with the first call's reads."""
    same_type, dst = int32, np.zeros(64)
    raced = trace(sums_of(False, same_type), 1, 64, dst)
    assert kinds(raced) == {"shared_race"}
    assert raced.shared_bytes == 256
    clean = trace(sums_of(True, same_type), 1, 64, dst)
    assert (clean.hazards, clean.shared_bytes) == ([], 256)
    np.testing.assert_array_equal(dst, 2 * np.arange(64).sum())


def test_another_argument_type_makes_another_shared_array() -> None:
    other = trace(sums_of(False, np.int64), 1, 64, np.zeros(64))
    assert (other.hazards, other.shared_bytes) == ([], 512)


# -- dynamic shared memory and copies in flight ----------------------------------------------------


def test_dynamic_shared_memory_that_the_launch_does_not_give() -> None:
    @cuda.jit
    def use(dst):
        s = cuda.shared.array(0, float32)
        s[cuda.threadIdx.x] = 1
        dst[cuda.threadIdx.x] = s[cuda.threadIdx.x]

    seen = trace(use, 1, 32, np.zeros(32))
    assert "The launch gives the block no dynamic shared memory; pass dynamic_shared_bytes." in str(
        seen.hazards[0]
    )
    assert not trace(use, 1, 32, np.zeros(32), dynamic_shared_bytes=128).hazards


# -- what hazards say ------------------------------------------------------------------------------


def test_a_hazard_names_the_block_where_it_happened_although_other_batches_follow() -> None:
    @cuda.jit
    def odd_start(src, dst):
        start = 1 if cuda.blockIdx.x == 1 else 0
        a, b, c, d = ptx.load4(src, 4 * cuda.threadIdx.x + start)
        dst[cuda.grid(1)] = a + b + c + d

    n_blocks = 600  # more than one batch of 1,024 threads each
    src, dst = np.zeros(4 * 1024 + 4, np.float32), np.zeros(n_blocks * 1024, np.float32)
    seen = trace(odd_start, n_blocks, 1024, src, dst)
    assert [(hazard.kind, hazard.block, hazard.count) for hazard in seen.hazards] == [
        ("misaligned", (1, 0, 0), 1024)
    ]
    assert seen.hazards[0].message.startswith("block=(1, 0, 0) thread=(0, 0, 0): reads 16 bytes at src[1]")


@cuda.jit
def assigned_by_some(dst):
    i = cuda.grid(1)
    if i < 4:
        v = i
    dst[i] = v


@cuda.jit
def assigned_in_some_rounds(dst):
    i = cuda.grid(1)
    for k in range(i % 3):
        last = k
    dst[i] = last


@cuda.jit
def read_where_it_was_assigned(dst):
    i = cuda.grid(1)
    if i >= 30:
        return
    if i < 4:
        v = i
    for k in range(i % 3):
        w = k
        if k > 0:
            dst[i] = w
    if i < 4:
        dst[i] = v
    else:
        v = 2
    dst[i] += v


def test_a_variable_that_a_lane_has_not_assigned() -> None:
    """Python raises UnboundLocalError there; a GPU computes with whatever lies in the register."""
    for kernel, name, count in ((assigned_by_some, "v", 28), (assigned_in_some_rounds, "last", 11)):
        (hazard,) = trace(kernel, 1, 32, np.zeros(32)).hazards
        assert (hazard.kind, hazard.element, hazard.count) == ("uninitialized_read", name, count)
        assert f"reads variable {name}" in hazard.message
        assert "which it has not assigned" in hazard.message
    assert not trace(read_where_it_was_assigned, 1, 32, np.zeros(32)).hazards


TUPLE_INDEXED = """
from numba import cuda

CODES = (3, -1, 41)


def kernel(doubles, singles, out, shift):
    t = cuda.threadIdx.x
    block = cuda.blockIdx.x
    out[t] = doubles[0] if 0 <= CODES[block + shift] < 21 else singles[t]
"""


@pytest.mark.parametrize(("shift", "expected"), [(0, 7.0), (1, 5.0), (2, 5.0), (-1, 5.0), (-3, 7.0)])
def test_a_tuple_indexed_by_a_value_all_lanes_share_is_no_constant(shift: int, expected: float) -> None:
    """Both branches count as possible when the kernel is typed, and negative indices count from the end."""
    out = np.zeros(32)
    kernel = functions_in(TUPLE_INDEXED)["kernel"]
    trace(kernel, 1, 32, np.full(1, 7.0), np.full(32, 5.0), out, shift)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("shift", [3, -4])
def test_an_index_past_a_tuple_is_refused(shift: int) -> None:
    kernel = functions_in(TUPLE_INDEXED)["kernel"]
    with pytest.raises(Error, match=f"index {shift} of a tuple of 3"):
        trace(kernel, 1, 32, np.full(1, 7.0), np.full(32, 5.0), np.zeros(32), shift)


ARRAYS_INDEXED = """
from numba import cuda


def by_number(arrays, out):
    out[cuda.threadIdx.x] = arrays[0][cuda.threadIdx.x] + arrays[-1][cuda.threadIdx.x]


def by_turns(arrays, out):
    for k in range(2):
        out[cuda.threadIdx.x] += arrays[k][cuda.threadIdx.x]


def by_lane(arrays, out):
    out[cuda.threadIdx.x] = arrays[cuda.threadIdx.x % 2][cuda.threadIdx.x]
"""


def test_a_tuple_of_arrays_is_indexed_by_numbers() -> None:
    out = np.zeros(32)
    arrays = (np.full(32, 1.0), np.full(32, 2.0))
    trace(functions_in(ARRAYS_INDEXED)["by_number"], 1, 32, arrays, out)
    np.testing.assert_array_equal(out, 3.0)


@pytest.mark.parametrize("name", ["by_turns", "by_lane"])
def test_a_tuple_of_arrays_with_an_index_of_run_time_is_refused(name: str) -> None:
    arguments = ((np.full(32, 1.0), np.full(32, 2.0)), np.zeros(32))
    with pytest.raises(UnsupportedConstruct, match=r"a tuple of arrays with an index of run time.*Write the"):
        trace(functions_in(ARRAYS_INDEXED)[name], 1, 32, *arguments)
