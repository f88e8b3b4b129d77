"""Cases about accesses of 4, 8 and 16 bytes per lane."""

from __future__ import annotations

import re
from typing import Any

from lanewise.access import WarpAccess
from lanewise.errors import Misaligned
from lanewise.field_cases.case import Answer, Trial, case
from lanewise.memory import SharedCost, shared_cost

# C11, as Nsight Compute showed it for both layouts.
LOADS = 8_844_480
SAME_BANKS = (283_023_360, 247_645_440)  # wavefronts, conflicts
CONTIGUOUS = (35_377_920, 0)


def _load16(byte_address: Any) -> SharedCost:
    return shared_cost(WarpAccess.from_formula("ld.shared.b128", byte_address))


@case(
    "C11",
    "Wavefronts and bank conflicts of 16-byte loads",
    "banks",
    "wide",
    "counter",
    threads=(
        "https://forums.developer.nvidia.com/t/"
        "clarification-bank-conflicts-metric-vs-wavefronts-for-shared-memory-lds-128/359822",
        "https://forums.developer.nvidia.com/t/shared-memory-bank-conflict-reordering/339143",
    ),
)
def c11(trial: Trial) -> Answer:
    """Every lane loads 16 bytes: in one layout all from the same four banks, in the other from neighbouring
    places. The profiler counts wavefronts and conflicts. How do the two counters hang together?"""
    same, contiguous = _load16(lambda lane: 128 * lane), _load16(lambda lane: 16 * lane)
    trial.compare("same banks: wavefronts, conflicts", SAME_BANKS, _counters(same))
    trial.compare("contiguous: wavefronts, conflicts", CONTIGUOUS, _counters(contiguous))
    each = trial.compare("same banks: wavefronts of a load", 32, same.wavefronts)
    excess = trial.compare("same banks: excess of a load", 28, same.excess)
    least = trial.compare("contiguous: wavefronts of a load", 4, contiguous.wavefronts)
    return Answer(
        f"A warp's 512 bytes take {least} wavefronts at best. On the same four banks a load takes {each},"
        f" of which {excess} are conflicts: 8 ways in each of {least} phases, not 128. Times the number of"
        " loads, this is what was counted, to the last digit.",
        do="Read conflicts as wavefronts minus the least. For 16 bytes per lane the least is 4.",
    )


def _counters(cost: SharedCost) -> tuple[int, int]:
    return LOADS * cost.wavefronts, LOADS * cost.excess


@case(
    "C12",
    "A 16-byte broadcast takes more wavefronts than it has bytes",
    "banks",
    "wide",
    "counter",
    threads=("https://forums.developer.nvidia.com/t/unexpected-shared-memory-bank-conflict/77228",),
)
def c12(trial: Trial) -> Answer:
    """On a Turing GPU 32 lanes load 16 bytes each, but only four different pieces of 16 bytes, lane by lane
    in turn. Why does the profiler count 4 requests, and not one or two?"""
    in_turn = _load16(lambda lane: 16 * (lane % 4))
    in_pairs = _load16(lambda lane: 16 * (lane // 2 % 4))
    four = trial.compare("lanes in turn", 4, in_turn.wavefronts)
    two = trial.compare("neighbours in pairs", 2, in_pairs.wavefronts)
    trial.compare("halves joined", [False, True], [in_turn.fused, in_pairs.fused])
    return Answer(
        f"Bytes that repeat save banks, not phases: four phases of eight lanes, {four} wavefronts. Phases"
        " join in pairs only if every lane shares its address with its neighbour, or with the lane two"
        f" further: then it is {two}. We measured the same rule on an H200 (sm_90).",
        do="Give lanes 2n and 2n + 1 the same 16 bytes, if the algorithm allows.",
    )


@case(
    "C13",
    "Neighbouring float4 stores: is it a conflict?",
    "banks",
    "wide",
    threads=(
        "https://github.com/SqueezeBits/QUICK/issues/9",
        "https://github.com/xlite-dev/LeetCUDA/issues/399",
    ),
)
def c13(trial: Trial) -> Answer:
    """Thread t stores 16 bytes at byte 16 t. Lanes 0 and 8 then use the same banks, and a comment in a much
    read kernel calls that a conflict. Is it one?"""
    cost = shared_cost(WarpAccess.from_formula("st.shared.b128", lambda lane: 16 * lane))
    wavefronts = trial.compare("wavefronts", 4, cost.wavefronts)
    trial.compare("excess wavefronts", 0, cost.excess)
    trial.compare("ways of the conflict", 1, cost.degree)
    lanes = trial.compare("lanes of each phase", [8, 8, 8, 8], [len(phase.lanes) for phase in cost.phases])
    return Answer(
        f"No. The store is served in {len(lanes)} phases of {lanes[0]} lanes, and lanes 0 and 8 are in"
        f" different ones. 512 bytes need {wavefronts} wavefronts of 128, and it takes no more. {cost}",
        do="Compare a wide access with 4 wavefronts, not with 1.",
    )


@case(
    "C18",
    "Two bf16 at an odd place",
    "banks",
    "wide",
    "misaligned",
    threads=("https://github.com/NVIDIA/Fuser/issues/4957",),
)
def c18(trial: Trial) -> Answer:
    """Rows of 64 values of bf16 lie in shared memory. A loop walks along a row and reads two values at once.
    The GPU stops with a misaligned address at byte 0x1396. Which step of the loop is wrong?"""
    trial.compare("bytes past a multiple of 4", 2, _bytes_past(lambda lane: 0x1396 + 0 * lane))
    by_step = {i: _bytes_past(lambda lane, i=i: 2 * (64 * lane + i)) for i in range(4)}
    trial.compare("bytes past a multiple of 4, steps 0 to 3", {0: 0, 1: 2, 2: 0, 3: 2}, by_step)
    odd = [i for i, past in by_step.items() if past]
    trial.compare("steps at fault, of the first four", [1, 3], odd)
    return Answer(
        f"Every odd one. Two values are 4 bytes, and an access of 4 bytes starts at a multiple of 4, so at an"
        f" even value; steps {odd[0]} and {odd[1]} start {by_step[1]} bytes past one. It is an error, not a"
        " slower access.",
        do="Step by two values, or read them one by one.",
    )


def _bytes_past(byte_address: Any) -> int:
    """How far lane 0 of a 4-byte load is past a multiple of 4, where the model refuses it; 0 elsewhere."""
    try:
        WarpAccess.from_formula("ld.shared.b32", byte_address)
    except Misaligned as refused:
        return int(re.search(r"(\d+) past a multiple of 4", str(refused))[1])  # type: ignore[index]
    return 0
