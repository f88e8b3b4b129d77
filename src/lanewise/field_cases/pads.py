"""Cases about padding that did nothing, or did harm."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import ptx
from lanewise.access import WarpAccess
from lanewise.errors import Misaligned
from lanewise.field_cases.case import Answer, Trial, case
from lanewise.memory import SharedCost, shared_cost
from lanewise.search import TileAccess, search_layouts
from lanewise.trace import Trace, trace


@cuda.jit
def transpose_16(src: Any, dst: Any, pitch: int) -> None:
    """A tile of 16 x 16 with room for 16 rows of 17; rows lie `pitch` words apart."""
    tile = cuda.shared.array(272, float32)
    thread = cuda.threadIdx.x
    row, col = thread // 16, thread % 16
    tile[pitch * row + col] = src[row, col]
    cuda.syncthreads()  # the tile is whole
    dst[row, col] = tile[pitch * col + row]


@case(
    "C07",
    "A pad that is allocated, and not used",
    "padding",
    "padding",
    "no-gain",
    threads=("https://github.com/deepspeedai/DeepSpeed/pull/8055",),
)
def c07(trial: Trial) -> Answer:
    """A shared buffer has room for 16 rows of 17 floats. The conflicts are the same as without the pad. What
    was forgotten?"""
    unused, used = _transposed(16), _transposed(17)
    before = trial.compare("ways of the read, rows 16 apart", 8, unused.shared.load.sites[0].degree, "trace")
    after = trial.compare("ways of the read, rows 17 apart", 2, used.shared.load.sites[0].degree, "trace")
    column = shared_cost(
        WarpAccess.from_formula("ld.shared.b32", lambda lane: 68 * lane, active_mask=0xFFFF)
    ).degree
    trial.compare("ways of one column, rows 17 apart", 1, column)
    return Answer(
        f"The index. Rows are still 16 words apart, so the read is {before}-way. At 17 it is {after}-way"
        " where a warp reads two columns, and free where it reads one.",
        do="Change the row stride in every index of the buffer, not only its size. A two-dimensional shared"
        " array keeps the two together.",
    )


def _transposed(pitch: int) -> Trace:
    src = np.arange(256, dtype=np.float32).reshape(16, 16)
    return trace(transpose_16, 1, 256, src, np.zeros_like(src), pitch)


@cuda.jit
def read_row_start(src: Any, dst: Any, row: int) -> None:
    """Read four floats at the start of a row of 33, by one access."""
    tile = cuda.shared.array((8, 33), float32)
    thread = cuda.threadIdx.x
    for k in range(8):
        tile[k, thread] = src[k, thread]
    cuda.syncthreads()  # the tile is filled
    a, b, c, d = ptx.load4(tile, (row, 0))
    dst[thread] = a + b + c + d


@case(
    "C09",
    "A 16-byte read at a multiple of 8",
    "padding",
    "padding",
    "wide",
    "misaligned",
    threads=("https://github.com/AyakaGEMM/Hands-on-GEMM/issues/11",),
)
def c09(trial: Trial) -> Answer:
    """A matrix product reads its shared tile 16 bytes at a time. The GPU stops with a misaligned address, and
    the sanitizer names byte 0x10a8. Why is this place wrong, when most are right?"""
    trial.compare("0x10a8 for 16 bytes", True, "4264, 8 past a multiple of 16" in _refusal("b128"))
    trial.compare("0x10a8 for 8 bytes", "", _refusal("b64"))
    faulty = [row for row in range(8) if _misaligned_lanes(row)]
    trial.compare("faulty rows of a tile with rows of 33", [1, 2, 3, 5, 6, 7], faulty, "trace")
    return Answer(
        f"{_refusal('b128')} With rows of 33 floats only every fourth row starts at a multiple of 16: rows"
        f" {', '.join(map(str, faulty))} of 8 are at fault.",
        do="Pad tiles that are read 16 bytes at a time by 4 floats, not by 1.",
    )


def _refusal(bits: str) -> str:
    """What the model says to an access at byte 0x10a8; empty if it takes it."""
    try:
        WarpAccess.from_formula(f"ld.shared.{bits}", lambda lane: 0x10A8 + 0 * lane)
    except Misaligned as refused:
        return str(refused)
    return ""


def _misaligned_lanes(row: int) -> int:
    src = np.arange(256, dtype=np.float32).reshape(8, 32)
    t = trace(read_row_start, 1, 32, src, np.zeros(32, np.float32), row)
    return sum(hazard.count for hazard in t.hazards if hazard.kind == "misaligned")


@case(
    "C10",
    "A pad of two accesses does less than a pad of one",
    "padding",
    "padding",
    "wide",
    threads=(
        "https://github.com/ROCm/rocm-libraries/issues/10891",
        "https://github.com/iree-org/iree/pull/17010",
    ),
)
def c10(trial: Trial) -> Answer:
    """Rows of 16-bit operands are read 16 bytes at a time, one row per lane. An automatic pad of 32 bytes
    leaves many conflicts (seen on an AMD GPU). Which pad is right for which width?"""
    wide = {stride: _column("b128", stride).degree for stride in (128, 144, 160)}
    trial.compare("ways of 16-byte reads by row bytes", {128: 8, 144: 1, 160: 2}, wide)
    words = {stride: _column("b32", 4 * stride).degree for stride in (64, 65, 66, 68)}
    trial.compare("ways of 4-byte reads by row words", {64: 32, 65: 1, 66: 2, 68: 4}, words)
    trial.compare("16-byte reads with rows of 68 words", 0, _column("b128", 4 * 68).excess)
    trial.compare("16-byte reads with rows of 65 words", "misaligned", _answer_to("b128", 4 * 65))
    rule = all(
        (_column(f"b{8 * width}", width * multiple).excess == 0) == (multiple % 2 == 1)
        for width in (4, 8, 16)
        for multiple in range(1, 66)
    )
    trial.compare("free exactly at odd multiples of the width", True, rule)
    read = TileAccess("ld.shared.b128", row=lambda lane: lane, col=0, name="one row per lane")
    found = search_layouts([read], rows=32, cols=64, element_bytes=2)
    pads = [each.name for each in found.candidates if each.kind == "pad" and each.is_ideal]
    first = trial.compare("the first pad of the search, in elements of 2 bytes", "pad 8", pads[0])
    return Answer(
        f"Reads are free exactly where a row is an odd multiple of the width of an access. With 16 bytes per"
        f" lane, rows of 128, 144 and 160 bytes give {', '.join(map(str, wide.values()))} ways. The search"
        f" offers {first}, one access of 16 bytes. One pad cannot serve 4-byte and 16-byte columns: 4 words"
        f" leave {words[68]} ways to the one, 1 word misaligns the other.",
        do="Make the row an odd multiple of the access width. Where widths mix, take a swizzle.",
    )


def _column(bits: str, row_bytes: int) -> SharedCost:
    return shared_cost(WarpAccess.from_formula(f"ld.shared.{bits}", lambda lane: row_bytes * lane))


def _answer_to(bits: str, row_bytes: int) -> str:
    try:
        return str(_column(bits, row_bytes).degree)
    except Misaligned:
        return "misaligned"
