"""Verdicts on traces: true claims pass, false ones fail with a sentence that names line, warp and lanes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.checks import Check, CheckFailed, InvalidCheck, check
from lanewise.memory import global_cost, shared_cost
from lanewise.trace import Trace, functions_in, trace

SOURCE = """
from numba import cuda, float32

def column(dst, src):
    tile = cuda.shared.array((32, 32), float32)
    lane = cuda.threadIdx.x
    for row in range(32):
        tile[row, lane] = src[row, lane]
    cuda.syncthreads()
    dst[lane] = tile[lane, 3]

def strided(dst, src):
    i = cuda.grid(1)
    dst[i] = src[8 * i]

def unsynchronised(dst, src):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = src[t]
    dst[t] = tile[63 - t] * 2.0
"""
KERNELS = functions_in(SOURCE, "lab.py")


def traced(name: str) -> tuple[Trace, dict[str, Any]]:
    src: np.ndarray
    dst: np.ndarray
    if name == "column":
        src, dst = np.arange(1024, dtype=np.float32).reshape(32, 32), np.full(32, np.nan, np.float32)
        return trace(KERNELS[name], 1, 32, dst, src), {"dst": dst, "expected": src[:, 3]}
    n = 64
    src, dst = np.arange(8 * n, dtype=np.float32), np.full(n, np.nan, np.float32)
    expected = src[: 8 * n : 8] if name == "strided" else 2 * src[n - 1 :: -1][:n]
    return trace(KERNELS[name], 1, n, dst, src), {"dst": dst, "expected": expected}


def test_right_result_with_a_wrong_pattern_says_who_waits_for_which_bank() -> None:
    t, data = traced("column")
    verdict = (
        check(t).matches(data["dst"], data["expected"]).shared_wavefronts_per_request(max=1).no_hazards()
    )
    assert not verdict
    guilty = verdict.failures[0].access
    assert guilty is not None
    assert guilty == t.at(10)[1].example
    assert str(verdict) == (
        f"Right result, wrong pattern:\n  Warp 0 of block (0, 0, 0) needs 32 wavefronts at line 10, goal"
        f" 1: {shared_cost(guilty)}"
    )
    assert "lanes 0..31" in str(verdict)


def test_true_claims_pass() -> None:
    t, data = traced("column")
    verdict = (
        check(t)
        .matches(data["dst"], data["expected"])
        .shared_wavefronts_per_request(max=1, op="store")
        .global_sectors_per_request(max=4)
        .global_efficiency(min=1.0)
        .no_hazards()
        .no_float64()
        .uses("ld.shared.b32")
    )
    assert verdict
    assert verdict.require() is verdict
    assert str(verdict).startswith("Passed.\n  The result is right in all 32 elements.")


def test_sectors_and_efficiency_name_the_line() -> None:
    t, _ = traced("strided")
    verdict = check(t).global_sectors_per_request(max=4).global_efficiency(min=0.9)
    guilty = t.global_.load.sites[0].example
    assert guilty is not None
    cost = global_cost(guilty)
    assert verdict.sentences == [
        f"Line 14 touches 32 sectors per request, goal 4; warp 0 of block (0, 0, 0): {cost}",
        f"Only 22% of the bytes moved are used, goal 90%; most are moved at line 14: {cost}",
    ]


def test_hazards_and_float64_fail_although_the_values_are_right() -> None:
    t, data = traced("unsynchronised")
    verdict = check(t).matches(data["dst"], data["expected"]).no_hazards().no_float64()
    assert [claim.name for claim in verdict.failures] == ["shared_race", "float64"]
    assert "Put cuda.syncthreads() between them (lines 19 and 20)" in verdict.sentences[0]
    with pytest.raises(CheckFailed, match=r"unsynchronised: block=.*write float32"):
        verdict.require()


def test_shared_excess_sums_conflicts() -> None:
    t, _ = traced("column")
    assert check(t).shared_excess(max=31)
    assert not check(t).shared_excess(max=30)
    assert check(t).shared_excess(max=0, op="store")


def test_shared_excess_speaks_of_excess_in_all() -> None:
    t, _ = traced("column")
    guilty = t.at(10)[1].example
    assert guilty is not None
    assert check(t).shared_excess().sentences == [
        "Shared memory: 31 excess wavefronts, goal 0; all of them at line 10, where warp 0 of block (0, 0, 0)"
        f" makes its worst request: {shared_cost(guilty)}"
    ]
    passed = [check(t).shared_excess(op="store"), check(t).shared_excess(max=31)]
    assert [str(verdict) for verdict in passed] == [
        "Passed.\n  Shared memory: no excess wavefronts.",
        "Passed.\n  Shared memory: 31 excess wavefronts, at most 31 allowed.",
    ]


def test_wrong_values_show_the_first() -> None:
    t, data = traced("strided")
    data["dst"][5] = np.nan
    assert check(t).matches(data["dst"], data["expected"]).sentences == [
        "Wrong result: 1 of 64 elements differ; the first is [5]: got nan, expected 40.0."
    ]
    assert check(t).matches(data["dst"][:3], data["expected"]).sentences == [
        "Wrong result: shape (3,), expected (64,)."
    ]
    assert check(t).matches(data["dst"][:5], data["expected"][:5] + 1e-6, atol=1e-3)


def test_missing_instruction_lists_what_is_used() -> None:
    t, _ = traced("strided")
    assert check(t).uses("ld.global.b128").sentences == [
        "The kernel never uses ld.global.b128; it uses ld.global.b32, st.global.b32."
    ]


def test_a_lab_adds_its_own_claims() -> None:
    t, _ = traced("strided")
    assert check(t).claim("barriers", False, "Use one barrier.").sentences == ["Use one barrier."]
    assert isinstance(check(t).claim("x", True, "ok"), Check)


def test_questions_without_sense_are_refused() -> None:
    t, _ = traced("strided")
    with pytest.raises(InvalidCheck, match="give it the result"):
        check("trace")  # type: ignore[arg-type]
    with pytest.raises(InvalidCheck, match="unknown kinds"):
        check(t).no_hazards(kinds=["race"])
    with pytest.raises(InvalidCheck, match="op: got 'read'"):
        check(t).shared_wavefronts_per_request(op="read")
    with pytest.raises(
        InvalidCheck, match="line 99 has no global access of this kind; there are some at lines 14"
    ):
        check(t).global_sectors_per_request(line=99)


@pytest.mark.parametrize("limit", ["1", None, -1, float("nan"), True])
def test_a_limit_is_a_number(limit: Any) -> None:
    verdict = check(traced("column")[0])
    for claim in (
        verdict.shared_wavefronts_per_request,
        verdict.shared_excess,
        verdict.global_sectors_per_request,
    ):
        with pytest.raises(InvalidCheck, match=r"max: got .*; give a number, 0 or more"):
            claim(max=limit)
    with pytest.raises(InvalidCheck, match="min: got 90; give a number, 0 to 1, a fraction"):
        verdict.global_efficiency(min=90)


def test_one_kind_of_hazard_may_be_named_alone() -> None:
    assert check(traced("column")[0]).no_hazards("shared_race")


def test_html_escapes_and_lists() -> None:
    t, _ = traced("column")
    html = check(t).claim("x", False, "a < b")._repr_html_()
    assert "<li>a &lt; b</li>" in html
