"""Misuse of the PTX intrinsics: found in a trace with its clean twin silent, or refused in a sentence."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba.cuda")

from numba import types

from lanewise import ptx
from lanewise.lowering import why_unavailable
from lanewise.lowering.toolchain import compile_kernel
from lanewise.trace import Trace, functions_in, trace

HEAD = "from numba import cuda, float32, uint32\nimport numpy as np\nfrom lanewise import ptx\n"
TILE = "s = cuda.shared.array((64, 40), np.float16)\n"
FILL = TILE + "for k in range(t, 64 * 40, 64):\n    s[k // 40, k % 40] = h[k // 40, k % 40]\n"
READY = FILL + "cuda.syncthreads()\n"
COPY = TILE + "ptx.cp_async_16(s, (t, 0), h, (t, 0))\nptx.cp_async_commit()\n"
WAIT = "ptx.cp_async_wait(0)\ncuda.syncthreads()\n"

# kind of hazard: name: (faulty body, clean twin)
MISUSE: dict[str, dict[str, tuple[str, str]]] = {
    "misaligned": {
        "row off 16 bytes": (
            READY + "u[t] = ptx.ldmatrix_x1(s, (t % 32, 4))",
            READY + "u[t] = ptx.ldmatrix_x1(s, (t % 32, 8))",
        ),
        "pitch off 16 bytes": (
            "s = cuda.shared.array((64, 36), np.float16)\nptx.stmatrix_x1(s, (t % 8 + 8 * (t // 32), 0), uint32(t))",
            "s = cuda.shared.array((64, 40), np.float16)\nptx.stmatrix_x1(s, (t % 8 + 8 * (t // 32), 0), uint32(t))",
        ),
        "copy from an odd place": (
            TILE + "ptx.cp_async_4(s, (t, 0), h, (t, 1))\nptx.cp_async_wait_all()",
            TILE + "ptx.cp_async_4(s, (t, 0), h, (t, 2))\nptx.cp_async_wait_all()",
        ),
        "eight halves": ("x = ptx.load8(h, (t, 4))", "x = ptx.load8_nc(h, (t, 8))"),
    },
    "out_of_bounds": {
        "row past the end": (
            READY + "u[t] = ptx.ldmatrix_x4(s, (t + 1, 0))[0]",
            READY + "u[t] = ptx.ldmatrix_x4(s, (t, 0))[0]",
        ),
        "lanes that do not point": (
            READY + "u[t] = ptx.ldmatrix_x1(s, (t + 40, 0))",
            READY + "u[t] = ptx.ldmatrix_x1(s, (t + 24, 0))",
        ),
        "copy past the end": (
            TILE + "ptx.cp_async_16(s, (t, 0), h, (t + 1, 0))\nptx.cp_async_wait_all()",
            TILE + "ptx.cp_async_16(s, (t, 0), h, (t, 0))\nptx.cp_async_wait_all()",
        ),
    },
    "divergent_warp_op": {
        "half a warp loads": (
            READY + "if t < 16:\n    u[t] = ptx.ldmatrix_x1(s, (t, 0))",
            READY + "if t < 32:\n    u[t] = ptx.ldmatrix_x1(s, (t, 0))",
        ),
        "half a warp stores": (
            TILE + "if t % 2 == 0:\n    ptx.stmatrix_x2(s, (t, 0), uint32(t), uint32(t))",
            TILE + "if t // 32 == 1:\n    ptx.stmatrix_x2(s, (t, 0), uint32(t), uint32(t))",
        ),
        "half a warp multiplies": (
            "c = (float32(0), float32(0), float32(0), float32(0))\n"
            "if t != 40:\n    c = ptx.mma_m16n8k8_f16((uint32(t), uint32(t)), uint32(t), c)",
            "c = (float32(0), float32(0), float32(0), float32(0))\n"
            "if t > 31:\n    c = ptx.mma_m16n8k8_f16((uint32(t), uint32(t)), uint32(t), c)",
        ),
    },
    "uninitialized_read": {
        "row that nobody wrote": (
            TILE + "s[t, t % 39] = h[t, 0]\ncuda.syncthreads()\nu[t] = ptx.ldmatrix_x1(s, (t, 0))",
            READY + "u[t] = ptx.ldmatrix_x1(s, (t, 0))",
        ),
        "lanes without a row are not asked": (
            TILE + "ptx.stmatrix_x1(s, (t % 8, 0), uint32(t)) if t < 32 else None\n"
            "cuda.syncthreads()\na, b = ptx.ldmatrix_x2(s, (t % 32, 0))\nu[t] = a",
            TILE + "ptx.stmatrix_x2(s, (t % 16, 0), uint32(t), uint32(t)) if t < 32 else None\n"
            "cuda.syncthreads()\na, b = ptx.ldmatrix_x2(s, (t % 32, 0))\nu[t] = a",
        ),
    },
    "shared_race": {
        "load before the barrier": (
            FILL + "u[t] = ptx.ldmatrix_x1(s, (t % 32, 0))",
            READY + "u[t] = ptx.ldmatrix_x1(s, (t % 32, 0))",
        ),
        "store over a load": (
            READY
            + "u[t] = ptx.ldmatrix_x4(s, (t % 32, 0))[0]\nptx.stmatrix_x4(s, (63 - t, 0), u[t], u[t], u[t], u[t])",
            READY + "u[t] = ptx.ldmatrix_x4(s, (t % 32, 0))[0]\ncuda.syncthreads()\n"
            "ptx.stmatrix_x4(s, (63 - t, 0), u[t], u[t], u[t], u[t])",
        ),
        "wide store": (
            TILE + "ptx.store4(s, (t // 2, 0), h[0, 0], h[0, 1], h[0, 2], h[0, t % 40])",
            TILE + "ptx.store4(s, (t, 0), h[0, 0], h[0, 1], h[0, 2], h[0, t % 40])",
        ),
        "copied by another thread": (
            COPY + "ptx.cp_async_wait(0)\nx = ptx.load8(s, (63 - t, 0))",
            COPY + WAIT + "x = ptx.load8(s, (63 - t, 0))",
        ),
    },
    "async_not_waited": {
        "no wait": (
            COPY + "cuda.syncthreads()\nu[t] = ptx.ldmatrix_x1(s, (t, 0))",
            COPY + WAIT + "u[t] = ptx.ldmatrix_x1(s, (t, 0))",
        ),
        "one group too many left": (
            COPY + "ptx.cp_async_16(s, (t, 8), h, (t, 8))\nptx.cp_async_commit()\nptx.cp_async_wait(1)\n"
            "cuda.syncthreads()\nu[t] = ptx.ldmatrix_x1(s, (t, 8))",
            COPY + "ptx.cp_async_16(s, (t, 8), h, (t, 8))\nptx.cp_async_commit()\nptx.cp_async_wait(1)\n"
            "cuda.syncthreads()\nu[t] = ptx.ldmatrix_x1(s, (t, 0))",
        ),
        "stored over": (
            COPY + "cuda.syncthreads()\nptx.stmatrix_x1(s, (t, 0), uint32(t))",
            COPY + WAIT + "ptx.stmatrix_x1(s, (t, 0), uint32(t))",
        ),
        "not committed": (
            TILE + "ptx.cp_async_16(s, (t, 0), h, (t, 0))\n" + WAIT + "x = ptx.load8(s, (t, 0))",
            TILE + "ptx.cp_async_16(s, (t, 0), h, (t, 0))\nptx.cp_async_wait_all()\nx = ptx.load8(s, (t, 0))",
        ),
    },
    "global_race": {
        "plain load of a released word": (
            "if t == 0:\n    ptx.store_release(u, 0, 7)\nelse:\n    x = u[0]",
            "if t == 0:\n    ptx.store_release(u, 0, 7)\nelse:\n    x = ptx.load_acquire(u, 0)",
        ),
        "plain store of an acquired word": (
            "x = ptx.load_acquire(u, 0)\nif t == 40:\n    u[0] = x + 1",
            "x = ptx.load_acquire(u, 0)\nif t == 40:\n    ptx.store_release(u, 0, x + 1)",
        ),
        "read-only load of what was written": (
            "u[t] = t\ncuda.syncthreads()\nx = ptx.load_nc(u, t)",
            "u[t] = t\ncuda.syncthreads()\nx = u[t]",
        ),
    },
}


def run(body: str, block: int = 64, machine: str = "sm_90") -> Trace:
    lines = "".join(f"    {line}\n" for line in ("t = cuda.threadIdx.x\n" + body).split("\n"))
    kernel = functions_in(f"{HEAD}def kernel(h, u):\n{lines}", "misuse.py")["kernel"]
    h = np.random.default_rng(0).standard_normal((64, 40)).astype(np.float16)
    return trace(kernel, 1, block, h, np.zeros(64, np.uint32), machine=machine)


@pytest.mark.parametrize(
    ("kind", "faulty", "clean"),
    [
        pytest.param(kind, *bodies, id=f"{kind}: {name}")
        for kind, cases in MISUSE.items()
        for name, bodies in cases.items()
    ],
)
def test_misuse_is_found_and_its_clean_twin_is_silent(kind: str, faulty: str, clean: str) -> None:
    assert {hazard.kind for hazard in run(faulty).hazards} == {kind}
    assert run(clean).hazards == []


def test_before_8_0_lanes_that_do_not_point_need_a_valid_address_too() -> None:
    """PTX ISA, ldmatrix: for sm_75, all threads must contain valid addresses."""
    run(READY + "u[t] = ptx.ldmatrix_x4(s, (t, 0))[0]", machine="sm_75")
    body = READY + "u[t] = ptx.ldmatrix_x1(s, (t % 32 + 40, 0))"
    assert run(body).hazards == []
    (beyond,) = run(body, machine="sm_75").hazards
    assert (beyond.kind, beyond.thread, beyond.count) == ("out_of_bounds", (24, 0, 0), 16)


def test_hazards_say_what_to_do() -> None:
    (partial,) = run(MISUSE["divergent_warp_op"]["half a warp loads"][0]).hazards
    assert str(partial) == (
        "block=(0, 0, 0) thread=(0, 0, 0): runs ldmatrix.x1 at line 11 with lanes 0..15 of warp 0 only; it"
        " takes all 32 lanes together, and the result is undefined. Call it where the whole warp goes, in"
        " blocks of a multiple of 32 threads."
    )
    assert partial.count == 16
    (short,) = run(READY.replace("64):", "48):") + "u[t] = ptx.ldmatrix_x1(s, (t, 0))", block=48).hazards
    assert "with lanes 0..15 of warp 1 only" in str(short)
    (off,) = run(MISUSE["misaligned"]["row off 16 bytes"][0]).hazards
    assert "reads 16 bytes at s[0, 4] (line 10), byte 8, which is 8 past a multiple of 16." in str(off)
    (stale,) = run(MISUSE["global_race"]["read-only load of what was written"][0]).hazards
    assert str(stale) == (
        "block=(0, 0, 0) thread=(0, 0, 0): reads u[0] (line 8) as read-only data, but the kernel writes it at"
        " line 6; ld.global.nc may still give the old value. Use a load without nc."
    )
    race = run(MISUSE["global_race"]["plain store of an acquired word"][0]).hazards[0]
    assert "thread=(40, 0, 0): writes u[0] (line 8), which thread (31, 0, 0) read at line 6" in str(race)


# -- wrong calls: the same sentence from the tracer and from the compiler ------------------------------

WRONG = {
    "x = ptx.ldmatrix_x4(g, 0)": "ldmatrix_x4: tile must have elements of 2 bytes, got float32",
    "x = ptx.ldmatrix_x4(t, 0)": "ldmatrix_x4: tile must be an array, got int32",
    "x = ptx.ldmatrix_x4(s, 0)": "ldmatrix_x4: tile has 2 dimensions, its index has 1",
    "x = ptx.ldmatrix_x4(s, (0.5, 0))": "ldmatrix_x4: the index into tile must be an integer or a tuple of"
    " integers, got (float64, int64)",
    "ptx.stmatrix_x2(s, (0, 0), 1)": "stmatrix_x2: r1 is missing: got 3 arguments",
    "ptx.stmatrix_x1(s, (0, 0), 1, 2)": "stmatrix_x1: got 4 arguments, takes 3",
    "ptx.stmatrix_x1(s, (0, 0), f[0])": "stmatrix_x1: r must be uint32, got float32",
    "x = ptx.mma_m16n8k16_f16((t, t), (t, t), (f[0], f[0], f[0], f[0]))": "mma_m16n8k16_f16: a must be 4 x uint32,"
    " got (int32, int32)",
    "x = ptx.mma_m16n8k8_f16((t, t), f[0], (f[0], f[0], f[0], f[0]))": "mma_m16n8k8_f16: b must be uint32, got"
    " float32",
    "ptx.cp_async_wait(t)": "cp_async_wait: n must be a literal number from 0, got int32",
    "x = ptx.load8(f, 0)": "load8: 8 x float32 are 32 bytes; an access moves 8 or 16 at once",
    "ptx.store4(f, 0, f[0], f[1])": "store4: 4 values are needed, got 2",
    "x = ptx.load4(t, 0)": "load4: array must be an array, got int32",
    "x = ptx.load_acquire(h, (0, 0))": "load_acquire: array must have elements of 4 or 8 bytes, got float16",
    "x = ptx.pack_half2(f, f[0])": "pack_half2: lo must be float32, got an array of float32",
    "x = ptx.exp2_approx(x=f[0])": "exp2_approx: takes no arguments by name",
}


def written(line: str) -> Any:
    """The line in a kernel of float16 `h` and float32 `f`, as a live function with source in memory."""
    text = (
        f"{HEAD}def wrong(h, f):\n    t = cuda.threadIdx.x\n    s = cuda.shared.array((8, 8), np.float16)\n"
        f"    g = cuda.shared.array(8, float32)\n    {line}\n"
    )
    names: dict[str, Any] = {}
    exec(compile(text, "wrong.py", "exec"), names)
    return names["wrong"], functions_in(text, "wrong.py")["wrong"]


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_call_gets_one_sentence_from_both(line: str) -> None:
    live, parsed = written(line)
    with pytest.raises(ptx.WrongOperand) as told:
        trace(parsed, 1, 32, np.zeros((8, 8), np.float16), np.zeros(8, np.float32))
    assert str(told.value) == f"wrong.py:8: lanewise.ptx.{WRONG[line]}."
    if why_unavailable():
        return
    half = types.Array(types.float16, 2, "C")
    with pytest.raises(ptx.WrongOperand) as compiled:
        compile_kernel(live, (half, types.Array(types.float32, 1, "C")), "sm_90", {})
    assert str(compiled.value) == f"lanewise.ptx.{WRONG[line]}."


def test_only_the_tracer_knows_which_memory_an_array_lies_in() -> None:
    for line, sentence in {
        "x = ptx.ldmatrix_x4(h, (0, 0))": "ldmatrix_x4: tile must lie in shared memory, got a global array.",
        "x = ptx.load4_nc(s, 0)": "load4_nc: array must lie in global memory, got a shared array.",
        "x = ptx.shared_address(h, (0, 0))": "shared_address: array must lie in shared memory, got a global array.",
        "x = ptx.load2(r, 0)": "load2: array must lie in shared or global memory, got a local array.",
        "ptx.cp_async_4(s, 0, s, 0)": "cp_async_4: src must lie in global memory, got a shared array.",
    }.items():
        body = f"s = cuda.shared.array(64, float32)\nr = cuda.local.array(4, float32)\n{line}"
        with pytest.raises(ptx.WrongOperand, match=re.escape(sentence)):
            run(body)
    with pytest.raises(ptx.WrongOperand, match=r"cp.async.ca.4 copies 4 bytes, .* Use a wider copy"):
        run("s = cuda.shared.array(64, np.float64)\nptx.cp_async_4(s, 0, h, (0, 0))")
