"""Cases about tiles that are filled along rows and read down columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, float32, float64

from lanewise.access import WarpAccess
from lanewise.field_cases.case import Answer, Trial, case
from lanewise.layouts import Layout, padded
from lanewise.memory import shared_cost
from lanewise.search import TileAccess, search_layouts
from lanewise.swizzles import XorTile, xor_tile
from lanewise.trace import Trace, trace

TILE = 32
PADDED = 33

# C04, as Nsight Compute showed it: requests, wavefronts and what it calls bank conflicts.
REQUESTS = 524_288
LOAD_WAVEFRONTS, LOAD_CONFLICTS = 1_048_664, 88
STORE_WAVEFRONTS, STORE_CONFLICTS = 17_061_038, 16_012_462


@cuda.jit
def transpose_doubles(src: Any, dst: Any) -> None:
    """A tile of doubles, filled down its columns and read along its rows."""
    tile = cuda.shared.array((TILE, TILE), float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = TILE * cuda.blockIdx.x, TILE * cuda.blockIdx.y
    tile[x, y] = src[top + y, left + x]
    cuda.syncthreads()  # the tile is whole
    dst[left + y, top + x] = tile[y, x]


@cuda.jit
def transpose_padded_doubles(src: Any, dst: Any) -> None:
    """The same with a column that holds nothing."""
    tile = cuda.shared.array((TILE, PADDED), float64)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    left, top = TILE * cuda.blockIdx.x, TILE * cuda.blockIdx.y
    tile[x, y] = src[top + y, left + x]
    cuda.syncthreads()  # the tile is whole
    dst[left + y, top + x] = tile[y, x]


@case(
    "C04",
    "The store of a tile of doubles costs 16 times the load",
    "padding",
    "padding",
    "counter",
    threads=(
        "https://forums.developer.nvidia.com/t/"
        "matrix-transposition-why-are-the-number-of-shared-store-load-transactions-different-in-a-cuda-kernel/217015",
    ),
)
def c04(trial: Trial) -> Answer:
    """A kernel transposes doubles through a tile of 32 x 32. The profiler shows 16 times as many
    shared-memory transactions for the stores as for the loads. Both move the same data: why?"""
    plain, cured = _transposed(transpose_doubles), _transposed(transpose_padded_doubles)
    store, load = plain.shared.store, plain.shared.load
    each = trial.compare("wavefronts of a store", 32, store.wavefronts // store.requests, "trace")
    degree = trial.compare("ways of the store's conflict", 16, store.sites[0].degree, "trace")
    trial.compare("sectors of a global request", [8, 8], _sectors(plain), "trace")
    ideal = STORE_WAVEFRONTS - STORE_CONFLICTS  # the counters themselves give the least number
    trial.compare("least wavefronts of the stores", ideal, REQUESTS * store.ideal // store.requests, "trace")
    loads = REQUESTS * load.wavefronts // load.requests
    trial.compare("wavefronts of the loads", LOAD_WAVEFRONTS - LOAD_CONFLICTS, loads, "trace")
    conflicts = REQUESTS * store.excess // store.requests
    trial.compare("excess wavefronts of the stores", 15_728_640, conflicts, "trace")
    padded_store = cured.shared.store
    trial.compare("with a pad", 2, padded_store.wavefronts // padded_store.requests, "trace")
    return Answer(
        f"A double is two words, so a warp is served in two halves. Down a column each half is a {degree}-way"
        f" conflict: {each} wavefronts, where the load takes 2. The addresses explain {conflicts:,} of the"
        f" {STORE_CONFLICTS:,} conflicts that were counted; the rest is lost arbitration, which addresses do"
        " not decide.",
        do="Give each row one more column: the store then takes 2 wavefronts, as the load does.",
    )


def _transposed(kernel: Any) -> Trace:
    src = np.arange(64.0 * 64).reshape(64, 64)
    return trace(kernel, (2, 2), (TILE, TILE), src, np.zeros_like(src))


def _sectors(t: Trace) -> list[int]:
    return [part.sectors // part.requests for part in (t.global_.load, t.global_.store)]


@case(
    "C06",
    "Add one column to a tile of 16 x 16, and it is still in conflict",
    "padding",
    "padding",
    threads=(
        "https://thearchivebase.com/question/"
        "why-is-this-matrix-transpose-kernel-faster-when-the-shared-memory-array-is-padded/",
        "https://forums.developer.nvidia.com/t/help-understanding-bank-conflicts-in-transpose-example/6695",
    ),
)
def c06(trial: Trial) -> Answer:
    """A transposition with blocks of 16 x 16 threads declares its tile as 16 x 17, and that made it faster.
    Does the idiom, written for 16 banks, still remove all conflicts on 32?"""
    degrees = [_store_and_read(padded(16, 16, pad)) for pad in range(33)]
    trial.compare("store and read with pads 0, 1, 2", [(1, 8), (2, 2), (2, 1)], degrees[:3])
    trial.compare("pads from 0 to 32 that free both", 0, degrees.count((1, 1)))
    free = trial.compare("store and read with XOR", (1, 1), _store_and_read(xor_tile(16, 16)))
    found = search_layouts([FILL, READ], rows=16, cols=16, element_bytes=4)
    trial.compare("the search offers a pad", False, found.best.kind == "pad")
    return Answer(
        f"Today a warp covers two rows of 16. Without a pad the read is {degrees[0][1]}-way; with one column"
        f" the store is {degrees[1][0]}-way and the read is {degrees[1][1]}-way. No pad up to 32 frees both."
        f" The XOR of column and row does: {free[0]} and {free[1]}. {found.verdict}",
        do="Take blocks that are 32 wide with one pad column, or keep 16 and XOR the column with the row.",
    )


FILL = TileAccess("st.shared.b32", lambda lane: lane // 16, lambda lane: lane % 16, name="fill")
READ = TileAccess("ld.shared.b32", lambda lane: lane % 16, lambda lane: lane // 16, name="read")


def _store_and_read(layout: Layout | XorTile) -> tuple[int, int]:
    """The degrees of the two accesses."""
    fill, read = (
        shared_cost(WarpAccess.from_layout(access.instruction, layout, access.row[0], access.col[0]))
        for access in (FILL, READ)
    )
    return fill.degree, read.degree


@cuda.jit
def stage_by_columns(src: Any, dst: Any) -> None:
    """Each thread keeps its value at x * height + y."""
    s = cuda.shared.array(256, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    s[x * cuda.blockDim.y + y] = src[y, x]
    cuda.syncthreads()  # all values are there
    dst[y, x] = s[x * cuda.blockDim.y + y]


@cuda.jit
def stage_by_threads(src: Any, dst: Any) -> None:
    """Each thread keeps its value at its own number."""
    s = cuda.shared.array(256, float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    s[x + y * cuda.blockDim.x] = src[y, x]
    cuda.syncthreads()  # all values are there
    dst[y, x] = s[x + y * cuda.blockDim.x]


@case(
    "C28",
    "A reduction whose threads are numbered the other way round",
    "reduction_scan_fft",
    "counter",
    threads=("https://github.com/NVIDIA/Fuser/pull/2204", "https://github.com/csarofeen/pytorch/issues/1276"),
)
def c28(trial: Trial) -> Answer:
    """A reduction over y with blocks of 8 x 32 threads became slower when the place of a value in shared
    memory changed to x times the height plus y. Every thread still has a place of its own: what is lost?"""
    tall = trial.compare("ways by columns, block (8, 32)", 8, _degree(stage_by_columns, 8, 32), "trace")
    trial.compare("ways by columns, block (32, 8)", 8, _degree(stage_by_columns, 32, 8), "trace")
    free = trial.compare("ways by thread number", 1, _degree(stage_by_threads, 8, 32), "trace")
    return Answer(
        f"Lanes follow x first. A warp has 8 values of x, whose places are 32 words apart: {tall} ways of"
        f" conflict. In the order of the threads it is {free}, as the counters later showed: almost one"
        " wavefront per request.",
        do="Number places as the hardware numbers threads: x plus y times the width of the block.",
    )


def _degree(kernel: Any, width: int, height: int) -> int:
    src = np.arange(256, dtype=np.float32).reshape(height, width)
    t = trace(kernel, 1, (width, height), src, np.zeros_like(src))
    return max(site.degree for site in t.shared.total.sites)
