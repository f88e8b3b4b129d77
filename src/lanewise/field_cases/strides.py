"""Cases about strides of single words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise.access import WarpAccess
from lanewise.field_cases.case import Answer, Trial, case
from lanewise.memory import shared_cost
from lanewise.swizzles import Swizzle
from lanewise.trace import trace

COLUMN_OF = 32  # rows of the tile in C02


@cuda.jit
def every_fourth_word(dst: Any) -> None:
    """Each block reads words that only one block in four has filled."""
    s = cuda.shared.array(256, float32)
    thread = cuda.grid(1)
    s[thread] = thread
    cuda.syncthreads()  # what this block stores is there; the rest is not
    dst[thread] = s[4 * thread]


@case(
    "C01",
    "Where do 6 conflicts come from?",
    "banks",
    "counter",
    threads=("https://github.com/NVIDIA-developer-blog/code-samples/issues/48",),
)
def c01(trial: Trial) -> Answer:
    """Two blocks of one warp read word `4 * g` of shared memory, `g` being the number of the thread. The
    profiler shows 6 conflicts. Lanes 0, 8, 16 and 24 share a bank: how does that make 6?"""
    t = trace(every_fourth_word, 2, 32, np.zeros(64, np.float32))
    load = t.shared.load
    degree = trial.compare("wavefronts of a load", 4, load.wavefronts // load.requests, "trace")
    excess = trial.compare("excess wavefronts of the kernel", 6, load.excess, "trace")
    unwritten = any(hazard.kind == "uninitialized_read" for hazard in t.hazards)
    trial.compare("reads words that nobody wrote", True, unwritten, "trace")
    return Answer(
        f"Each load takes {degree} wavefronts where 1 would do, {degree - 1} too many. Two warps: {excess}."
        " The counter counts wavefronts beyond the least, not lanes and not pairs. The trace finds a second"
        " fault: most of the words are read before anything is stored there.",
        do="Subtract the least number of wavefronts from the number counted: those are the conflicts.",
    )


@case(
    "C02",
    "How many XOR bits are enough?",
    "swizzle",
    "swizzle",
    threads=("https://github.com/NVlabs/cuda-oxide/pull/544",),
)
def c02(trial: Trial) -> Answer:
    """A warp reads a column of a tile of floats. A table gives the ways of the conflict for several row
    strides, and for a row of 32 words with a swizzle of 2, 3 or 5 bits. Which law is behind it?"""
    plain = {stride: _column(lambda lane, stride=stride: 4 * stride * lane) for stride in (16, 32, 33, 64)}
    trial.compare("wavefronts by stride", {16: 16, 32: 32, 33: 1, 64: 32}, plain)
    xor = {bits: _swizzled_column(Swizzle(bits, 0, 5)) for bits in (5, 4, 3, 2, 1)}
    trial.compare("wavefronts by XOR bits", {5: 1, 4: 2, 3: 4, 2: 8, 1: 16}, xor)
    return Answer(
        "Without a swizzle the ways are the greatest common divisor of stride and 32. Each XOR bit halves"
        f" what is left of 32: {', '.join(f'{bits} bits leave {ways}' for bits, ways in xor.items())}.",
        do="Take as many bits as the column needs, five for single words, or an odd stride.",
    )


def _column(byte_address: Any) -> int:
    return shared_cost(WarpAccess.from_formula("ld.shared.b32", byte_address)).wavefronts


def _swizzled_column(swizzle: Swizzle) -> int:
    return _column(lambda lane: 4 * np.array([swizzle(COLUMN_OF * int(row)) for row in lane]))
