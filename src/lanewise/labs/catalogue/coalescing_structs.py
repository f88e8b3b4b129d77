"""Coalescing, challenge: records of an odd number of floats, to arrays and back, through a tile.

Variants change the floats of a record, the threads of a block, and the planted fault. Each fault is one that
people make: a dummy float that makes a record a round number of bytes (advice for wide loads, which defeats a
tile), a tile that every thread fills with its own record, a forgotten barrier, and a thread that leaves
before the block has loaded (the guard that tutorials put first).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import results
from lanewise.access import WarpAccess
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import global_sectors, no_conflicts, no_hazards
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import global_cost, shared_cost

LANES = 32
PER_SECTOR = 8  # floats
FLOAT_BYTES = 4


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    fields, threads = variant.choice(3, 5, 7), variant.choice(128, 64, 96)
    fault = variant.choice("padded", "own_record", "unordered", "early")
    kernels = starters(fields, threads)
    return Lab(
        name="coalescing_structs",
        title="Records that no wide load fits",
        chapter="coalescing",
        level="challenge",
        kinds=("predict", "repair", "write"),
        minutes=45,
        tasks=(
            _records(variant, fields),
            _to_arrays(fields, threads, kernels[fault]),
            _centre(fields, threads, kernels["centre_by_lane"]),
        ),
        given={
            "FIELDS": fields,
            "THREADS": threads,
            "FLOATS": threads * fields,
            "ROOM": threads * (fields + 1),
        },
        seed=variant.seed,
    )


# -- what records cost ------------------------------------------------------------------------------


def _records(variant: Variant, fields: int) -> Answers:
    n = variant.choice(1001, 2003, 1005)
    one = _global(lambda lane: fields * lane)
    row = _global(lambda lane: n + lane)
    return Answers(
        "records",
        (
            Question(
                "one_field",
                f"Records of {fields} floats lie one after the other, and lane `i` loads field 0 of record"
                " `i`. How many sectors does the request touch?",
                global_cost(one).sectors,
                "How many floats lie between the first float of lane 0 and that of lane 31? Is there a"
                " sector between them without a lane?",
                "No sector between the first and the last is spared.",
                access=one,
            ),
            Question(
                "all_fields",
                f"Then the warp loads the other fields in the same way, {fields} requests in all. How many"
                " sectors do they touch together, each request counted?",
                sum(global_cost(_global(lambda lane, f=f: fields * lane + f)).sectors for f in range(fields)),
                "Move every lane on by a float. Does the first or the last lane come into another sector?",
                "The same sectors are asked for once for each field.",
            ),
            Question(
                "as_they_lie",
                "How many sectors do these records fill?",
                LANES * fields // PER_SECTOR,
                "Take the bytes of 32 records, and divide by those of a sector.",
                "That many sectors are enough for a warp whose lanes take neighbouring floats.",
            ),
            *(
                _field_of_tile(name, fields, pitch)
                for name, pitch in (("tile", fields), ("dummy", fields + 1))
            ),
            Question(
                "row",
                f"{n} records are turned into arrays, a row of {n} floats for each field. Lanes 0 to 31"
                " store neighbours at the start of row 1. How many sectors?",
                global_cost(row).sectors,
                "At which byte does row 1 start, and is that a multiple of 32?",
                "A row that starts inside a sector takes one more.",
                access=row,
            ),
        ),
    )


def _global(of_lane: Callable[..., int]) -> WarpAccess:
    return WarpAccess.from_formula("ld.global.b32", lambda lane: FLOAT_BYTES * of_lane(lane))


def _field_of_tile(name: str, fields: int, pitch: int) -> Question:
    access = WarpAccess.from_formula("ld.shared.b32", lambda lane: FLOAT_BYTES * pitch * lane)
    more = "" if pitch == fields else ", with a dummy float behind each record"
    return Question(
        name,
        f"The records lie in shared memory, {pitch} floats from record to record{more}. Lane `i` reads field"
        " 0 of record `i`. How many wavefronts?",
        shared_cost(access).wavefronts,
        "Which bank has record 0, and which is the next record whose field 0 lies in it?",
        "A stride in shared memory costs what it has in common with the number of banks.",
        access=access,
    )


# -- records to arrays ------------------------------------------------------------------------------


def _loads(n_floats: int) -> int:
    return -(-n_floats // PER_SECTOR)


def _to_arrays(fields: int, threads: int, starter: Callable) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        src = rng.random(size * fields, dtype=np.float32)
        return Run(
            size=f"{size} records",
            grid=-(-size // threads),
            block=threads,
            arguments={"src": src, "dst": poisoned((fields, size))},
            expected={"dst": src.reshape(size, fields).T.copy()},
        )

    def enough(run: Run) -> int:
        """Full sectors of `src`; each row of `dst`, with a sector more for each warp if it is torn."""
        n = run.arguments["dst"].shape[1]
        torn = -(-n // LANES) if n % PER_SECTOR else 0
        return _loads(run.arguments["src"].size) + fields * (-(-n // PER_SECTOR) + torn)

    return KernelTask(
        name="to_arrays",
        parameters=("src", "dst"),
        run=run,
        sizes=(2 * threads, threads + 41),
        hidden=_hidden,
        right=3,
        goals=(global_sectors(4, enough), no_conflicts(3), no_hazards(2)),
        starter=starter,
        timed=1 << 22,
        before=fields_by_lane,
        worth=_worth,
    )


def _hidden(rng: np.random.Generator) -> tuple[Any, ...]:
    return (1, *(int(n) for n in rng.integers(2, 600, size=2)))


@cuda.jit
def fields_by_lane(src, dst):
    """The kernel to compare with: every lane copies its record, field by field."""
    i, n_fields = cuda.grid(1), dst.shape[0]
    if i < dst.shape[1]:
        for field in range(n_fields):
            dst[field, i] = src[n_fields * i + field]


def _worth() -> str:
    measured = results.experiment("h200", "E-25")
    us = {row["label"]: row["us"][1] for row in measured.times if "67108864" in row["problem"]}
    return (
        f"A kernel that needs one field of four takes {us['scale_one_field'] / us['scale_one_array']:.2f}"
        f" times as long with records as with arrays. {measured.caption}"
    )


# -- work on whole records --------------------------------------------------------------------------


def _centre(fields: int, threads: int, before: Callable) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        records = rng.integers(-50, 51, (size, fields)).astype(np.float32)
        centred = fields * records - records.sum(axis=1, keepdims=True)
        return Run(
            size=f"{size} records",
            grid=-(-size // threads),
            block=threads,
            arguments={"src": records.ravel(), "dst": poisoned(size * fields)},
            expected={"dst": centred.astype(np.float32).ravel()},
        )

    return KernelTask(
        name="centre",
        parameters=("src", "dst"),
        run=run,
        sizes=(2 * threads, threads + 41),
        hidden=_hidden,
        right=3,
        goals=(
            global_sectors(4, lambda run: 2 * _loads(run.arguments["src"].size)),
            no_conflicts(3),
            no_hazards(2),
        ),
        timed=1 << 22,
        before=before,
    )


# -- kernels with a fault ---------------------------------------------------------------------------


def starters(FIELDS: int, THREADS: int) -> Mapping[str, Any]:
    """The kernels to repair, by fault, and the one that `centre` is compared with."""
    FLOATS = THREADS * FIELDS
    ROOM = THREADS * (FIELDS + 1)

    @cuda.jit
    def padded(src, dst):
        """A dummy float behind each record: the stride is even, and the reads of a field conflict."""
        tile = cuda.shared.array(ROOM, float32)
        t = cuda.threadIdx.x
        first = cuda.blockIdx.x * FLOATS
        for k in range(t, FLOATS, THREADS):
            if first + k < src.size:
                tile[k // FIELDS * (FIELDS + 1) + k % FIELDS] = src[first + k]
        cuda.syncthreads()
        i = cuda.blockIdx.x * THREADS + t
        if i < dst.shape[1]:
            for field in range(FIELDS):
                dst[field, i] = tile[t * (FIELDS + 1) + field]

    @cuda.jit
    def own_record(src, dst):
        """Every thread fills the tile with its own record: the loads are as far apart as before."""
        tile = cuda.shared.array(FLOATS, float32)
        t = cuda.threadIdx.x
        i = cuda.blockIdx.x * THREADS + t
        if i < dst.shape[1]:
            for field in range(FIELDS):
                tile[t * FIELDS + field] = src[i * FIELDS + field]
        cuda.syncthreads()
        if i < dst.shape[1]:
            for field in range(FIELDS):
                dst[field, i] = tile[t * FIELDS + field]

    @cuda.jit
    def unordered(src, dst):
        """No barrier: a record is read before other warps have written all of it."""
        tile = cuda.shared.array(FLOATS, float32)
        t = cuda.threadIdx.x
        first = cuda.blockIdx.x * FLOATS
        for k in range(t, FLOATS, THREADS):
            if first + k < src.size:
                tile[k] = src[first + k]
        i = cuda.blockIdx.x * THREADS + t
        if i < dst.shape[1]:
            for field in range(FIELDS):
                dst[field, i] = tile[t * FIELDS + field]

    @cuda.jit
    def early(src, dst):
        """Threads without a record leave first, and what they should have loaded for others is missing."""
        tile = cuda.shared.array(FLOATS, float32)
        t = cuda.threadIdx.x
        first = cuda.blockIdx.x * FLOATS
        i = cuda.blockIdx.x * THREADS + t
        if i >= dst.shape[1]:
            return
        for k in range(t, FLOATS, THREADS):
            if first + k < src.size:
                tile[k] = src[first + k]
        cuda.syncthreads()
        for field in range(FIELDS):
            dst[field, i] = tile[t * FIELDS + field]

    @cuda.jit
    def centre_by_lane(src, dst):
        """No tile: every lane reads its record from global memory, twice."""
        i = cuda.grid(1)
        if i * FIELDS < src.size:
            total = float32(0)
            for field in range(FIELDS):
                total += src[i * FIELDS + field]
            for field in range(FIELDS):
                dst[i * FIELDS + field] = float32(FIELDS) * src[i * FIELDS + field] - total

    kernels = (padded, own_record, unordered, early, centre_by_lane)
    return {kernel.py_func.__name__: kernel for kernel in kernels}
