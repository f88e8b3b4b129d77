"""Every kind of hazard: planted faults are found at their lines, and their clean twins are silent.

A fault carries the comment `# FAULT` on the line that must be reported; a clean twin must give no hazard at
all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from lanewise.trace import Hazard, Trace, functions_in, intrinsic, trace, uninitialized
from lanewise.trace.hazards import KINDS
from lanewise.trace.registry import INTRINSICS

HEAD = """import numpy as np
from numba import cuda, float32, int32, uint8
from lanewise import ptx

@cuda.jit(device=True)
def put(array, i, value):
    array[i] = value

"""


@dataclass(frozen=True)
class Probe:
    """A kernel body with its launch; arguments are `a` and `b` (float32 unless given)."""

    body: str
    block: Any = 64
    grid: Any = 1
    severity: str = "error"
    a: Any = field(default_factory=lambda: np.arange(128, dtype=np.float32))
    b: Any = field(default_factory=lambda: np.zeros(128, np.float32))
    dynamic: int = 0
    kernel_parameters: str = "a, b"

    def run(self) -> tuple[Trace, list[int]]:
        """Trace it; also the lines that carry the mark."""
        lines = self.body.strip("\n").split("\n")
        text = (
            HEAD
            + f"def kernel({self.kernel_parameters}):\n    t = cuda.threadIdx.x\n"
            + "".join(f"    {line}\n" for line in lines)
        )
        kernel = functions_in(text, "probe.py")["kernel"]
        t = trace(kernel, self.grid, self.block, self.a, self.b, dynamic_shared_bytes=self.dynamic)
        return t, [number for number, line in enumerate(text.split("\n"), 1) if "# FAULT" in line]


TILE = "s = cuda.shared.array(64, float32)\n"
BARRIER = "cuda.syncthreads()\n"

FAULTS: dict[str, dict[str, Probe]] = {
    "out_of_bounds": {
        "past the end": Probe("b[t + 100] = a[t]  # FAULT"),
        "read": Probe("b[t] = a[2 * t + 2]  # FAULT"),
        "row past the end": Probe("b[t] = a[t, 0]  # FAULT", a=np.zeros((63, 4), np.float32)),
        "column that lands in the next row": Probe(
            "b[t] = a[0, t]  # FAULT", a=np.zeros((4, 63), np.float32)
        ),
        "too negative": Probe("b[t] = a[-t - 66]  # FAULT"),
        "shared": Probe(TILE + "s[t + 1] = a[t]  # FAULT"),
        "atomic": Probe("cuda.atomic.add(b, t * 2 + 2, 1)  # FAULT"),
        "in a device function": Probe("put(b, t + 65, 1)", b=np.zeros(128, np.float32)),
        "wide": Probe("x, y = ptx.load2(a, 126 + t)  # FAULT", block=2, a=np.zeros(127, np.float32)),
        "uint index": Probe("b[np.uint64(t) + np.uint64(2 ** 63)] = 0  # FAULT"),
    },
    "misaligned": {
        "odd load2": Probe("x, y = ptx.load2(a, t)  # FAULT"),
        "load4 at 2": Probe("x, y, z, w = ptx.load4(a, 2 * (t % 8))  # FAULT"),
        "store4": Probe("ptx.store4(b, t + 1, a[0], a[1], a[2], a[3])  # FAULT", block=32),
        "padded pitch": Probe(
            "s = cuda.shared.array((8, 33), float32)\nptx.store4(s, (t, 0), a[t], a[t], a[t], a[t])  # FAULT",
            block=8,
        ),
        "view off by one": Probe(
            "x, y = ptx.load2(a, 2 * t)  # FAULT", a=np.zeros(130, np.float32)[1:129], block=32
        ),
    },
    "uninitialized_read": {
        "nobody wrote": Probe(TILE + "b[t] = s[t]  # FAULT"),
        "half written": Probe(TILE + "if t < 32:\n    s[t] = a[t]\n" + BARRIER + "b[t] = s[t]  # FAULT"),
        "tail of a reduction": Probe(
            TILE
            + "if t < 50:\n    s[t] = a[t]\n"
            + BARRIER
            + "if t < 32:\n    b[t] = s[t] + s[t + 32]  # FAULT"
        ),
        "global": Probe(
            "if t < 50:\n    b[t] = 1\n" + BARRIER + "a[t] = b[t]  # FAULT",
            b=uninitialized(np.zeros(64, np.float32)),
        ),
        "wrong pitch": Probe(
            "s = cuda.shared.array(72, float32)\ns[t % 8 * 9 + t // 8] = a[t]\n"
            + BARRIER
            + "b[t] = s[t]  # FAULT"
        ),
        "atomic on nothing": Probe("s = cuda.shared.array(1, int32)\ncuda.atomic.add(s, 0, 1)  # FAULT"),
        "second block finds no data of the first": Probe(
            TILE
            + "if cuda.blockIdx.x == 0:\n    s[t] = 1\n"
            + BARRIER
            + "b[t + 64 * cuda.blockIdx.x] = s[t]  # FAULT",
            grid=2,
        ),
    },
    "shared_race": {
        "no barrier": Probe(TILE + "s[t] = a[t]\nb[t] = s[63 - t]  # FAULT"),
        "write after read": Probe(TILE + "s[t] = a[t]\n" + BARRIER + "x = s[63 - t]\ns[t] = x  # FAULT"),
        "two writers": Probe(TILE + "s[t % 32] = t  # FAULT"),
        "lost update": Probe(
            "s = cuda.shared.array(1, int32)\nif t == 0:\n    s[0] = 0\n" + BARRIER + "s[0] += 1  # FAULT"
        ),
        "second round of a loop": Probe(
            TILE + "for k in range(2):\n    s[t] = a[t + k]  # FAULT\n    " + BARRIER + "    b[t] = s[63 - t]"
        ),
        "barrier on one side only": Probe(
            TILE + "s[t] = a[t]\n" + BARRIER + "s[63 - t] += 1\nb[t] = s[t]  # FAULT"
        ),
        "atomic beside plain": Probe(
            "s = cuda.shared.array(1, int32)\ns2 = cuda.shared.array(1, int32)\nif t == 0:\n    s[0] = 0\n"
            + BARRIER
            + "cuda.atomic.add(s, 0, 1)\nif t == 63:\n    b[0] = s[0]  # FAULT"
        ),
        "wide over narrow": Probe(
            TILE + "s[t] = a[t]\nif t < 16:\n    x, y, z, w = ptx.load4(s, 4 * t)  # FAULT"
        ),
        "lanes of one warp": Probe(
            TILE + "s[t] = a[t]\nb[t] = s[31 - t]  # FAULT", block=32, severity="lock_step"
        ),
        "warp reduction without syncwarp": Probe(
            TILE
            + "s[t] = a[t]\ncuda.syncwarp()\nif t < 16:\n    s[t] += s[t + 16]\nif t < 8:\n    s[t] += s[t"
            " + 8]  # FAULT",
            block=32,
            severity="lock_step",
        ),
        "warps after syncwarp": Probe(TILE + "s[t] = a[t]\ncuda.syncwarp()\nb[t] = s[t ^ 32]  # FAULT"),
        "syncwarp of the other half": Probe(
            TILE + "s[t] = a[t]\nif t < 16:\n    cuda.syncwarp(0x0000FFFF)\n    b[t] = s[t + 16]  # FAULT",
            block=32,
            severity="lock_step",
        ),
        "same value": Probe("s = cuda.shared.array(1, float32)\ns[0] = 1  # FAULT", severity="benign"),
        "aliased dynamic arrays": Probe(
            "s = cuda.shared.array(0, float32)\nu = cuda.shared.array(0, int32)\ns[t] = 1\nu[63 - t]"
            " = t  # FAULT",
            dynamic=256,
        ),
    },
    "global_race": {
        "across blocks": Probe("b[t] = cuda.blockIdx.x  # FAULT", grid=2),
        "neighbour": Probe("b[t] = a[t]\nif t > 0:\n    a[t] = b[t - 1]  # FAULT"),
        "barrier does not reach across blocks": Probe(
            "i = cuda.grid(1)\nb[i] = a[i]\n" + BARRIER + "a[i] = b[127 - i]  # FAULT", grid=2
        ),
        "all write one": Probe("b[0] = t  # FAULT"),
        "lost update": Probe("b[0] += 1  # FAULT"),
        "atomic beside plain": Probe("cuda.atomic.add(b, 0, 1)\nif t == 0:\n    b[0] = 7  # FAULT"),
        "overlapping views": Probe(
            "b[t] = 1\na[t] = 2  # FAULT", a=(_memory := np.zeros(128, np.float32))[0:64], b=_memory[32:128]
        ),
        "same value across blocks": Probe("b[0] = 1  # FAULT", grid=3, severity="benign"),
        "blocks of different batches": Probe("b[0] = cuda.blockIdx.x  # FAULT", grid=4096, block=64),
    },
    "divergent_barrier": {
        "in a branch": Probe("if t < 32:\n    cuda.syncthreads()  # FAULT"),
        "two different barriers": Probe(
            "if t < 32:\n    cuda.syncthreads()  # FAULT\nelse:\n    cuda.syncthreads()  # FAULT"
        ),
        "loop of varying length": Probe("for k in range(t // 32 + 1):\n    cuda.syncthreads()  # FAULT"),
        "continue past it": Probe(
            "for k in range(2):\n    if t == k:\n        continue\n    cuda.syncthreads()  # FAULT"
        ),
        "break before it": Probe(
            "for k in range(3):\n    if t == 5:\n        break\n    cuda.syncthreads()  # FAULT"
        ),
        "in a while": Probe("n = t\nwhile n > 0:\n    n = n // 2\n    cuda.syncthreads()  # FAULT"),
        "voting": Probe("if t % 2 == 0:\n    b[t] = cuda.syncthreads_count(t)  # FAULT"),
        "one lane short": Probe("if t != 63:\n    cuda.syncthreads()  # FAULT"),
    },
    "divergent_warp_op": {
        "shuffle in a branch": Probe(
            "x = a[t]\nif t < 16:\n    x = cuda.shfl_down_sync(0xFFFFFFFF, x, 1)  # FAULT"
        ),
        "ballot in a branch": Probe("if t % 2:\n    b[t] = cuda.ballot_sync(0xFFFFFFFF, True)  # FAULT"),
        "mask without the caller": Probe("b[t] = cuda.shfl_sync(0x0000FFFF, a[t], 0)  # FAULT"),
        "syncwarp in a branch": Probe("if t % 32 == 0:\n    cuda.syncwarp()  # FAULT"),
        "loop of varying length": Probe(
            "for k in range(t % 3):\n    b[t] = cuda.shfl_xor_sync(0xFFFFFFFF, a[t], 1)  # FAULT"
        ),
        "match in a branch": Probe("if a[t] > 5:\n    b[t] = cuda.match_any_sync(0xFFFFFFFF, t)  # FAULT"),
    },
    "async_not_waited": {
        "no wait": Probe(TILE + "ptx.test_copy(s, t, a, t)\nptx.test_commit()\nb[t] = s[t]  # FAULT"),
        "barrier but no wait": Probe(
            TILE + "ptx.test_copy(s, t, a, t)\n" + BARRIER + "b[t] = s[63 - t]  # FAULT"
        ),
        "wait for the group before": Probe(
            TILE + "ptx.test_copy(s, t, a, t)\nptx.test_commit()\nptx.test_wait(1)\nb[t] = s[t]  # FAULT"
        ),
        "commit after the wait": Probe(
            TILE + "ptx.test_copy(s, t, a, t)\nptx.test_wait(0)\nptx.test_commit()\nb[t] = s[t]  # FAULT"
        ),
        "refill of the stage in flight": Probe(
            TILE + "ptx.test_copy(s, t, a, t)\nptx.test_commit()\ns[t] = 0  # FAULT\nptx.test_wait(0)"
        ),
        "others wait, the copying threads do not": Probe(
            TILE + "if t < 32:\n    ptx.test_copy(s, t, a, t)\nptx.test_commit()\nif t >= 32:\n   "
            " ptx.test_wait(0)\n" + BARRIER + "if t < 32:\n    b[t] = s[31 - t]  # FAULT"
        ),
    },
}

CLEAN: dict[str, dict[str, Probe]] = {
    "out_of_bounds": {
        "guarded": Probe("if t + 100 < b.size:\n    b[t + 100] = a[t]"),
        "negative index": Probe("b[-1 - t] = a[t]"),
        "last element": Probe("b[t + 64] = a[127 - t]"),
        "guarded by and": Probe("x = t < 10 and a[t * 12] > 3\nb[t] = x"),
        "guarded by a conditional expression": Probe("b[t] = a[t + 100] if t < 28 else float32(0)"),
        "partial warp": Probe(
            "b[t] = a[t]", block=33, a=np.zeros(33, np.float32), b=np.zeros(33, np.float32)
        ),
    },
    "misaligned": {
        "load4": Probe("x, y, z, w = ptx.load4(a, 4 * (t % 32))"),
        "load2": Probe("x, y = ptx.load2(a, 2 * t)"),
        "padded by an odd multiple": Probe(
            "s = cuda.shared.array((8, 36), float32)\nptx.store4(s, (t, 4), a[t], a[t], a[t], a[t])", block=8
        ),
        "guarded": Probe("if t % 4 == 0:\n    x, y, z, w = ptx.load4(a, t)"),
        "aligned view": Probe("x, y = ptx.load2(a, 2 * t)", a=np.zeros(130, np.float32)[2:], block=32),
    },
    "uninitialized_read": {
        "all written": Probe(TILE + "s[t] = a[t]\n" + BARRIER + "b[t] = s[63 - t]"),
        "zero padded": Probe(TILE + "s[t] = a[t] if t < 50 else float32(0)\n" + BARRIER + "b[t] = s[63 - t]"),
        "guarded": Probe(
            TILE + "if t < 50:\n    s[t] = a[t]\n" + BARRIER + "if t < 50:\n    b[t] = s[49 - t]"
        ),
        "written by an atomic after a store": Probe(
            "s = cuda.shared.array(1, int32)\nif t == 0:\n    s[0] = 0\n"
            + BARRIER
            + "cuda.atomic.add(s, 0, 1)\n"
            + BARRIER
            + "b[t] = s[0]"
        ),
        "global": Probe(
            "b[t] = 1\n" + BARRIER + "a[t] = b[63 - t]", b=uninitialized(np.zeros(64, np.float32))
        ),
        "written wide": Probe(
            TILE + "if t < 16:\n    ptx.store4(s, 4 * t, a[t], a[t], a[t], a[t])\n" + BARRIER + "b[t] = s[t]"
        ),
    },
    "shared_race": {
        "barrier": Probe(TILE + "s[t] = a[t]\n" + BARRIER + "b[t] = s[63 - t]"),
        "own slot": Probe(TILE + "s[t] = a[t]\ns[t] += 1\nb[t] = s[t]"),
        "two barriers in a loop": Probe(
            TILE
            + "for k in range(3):\n    s[t] = a[t + k]\n    "
            + BARRIER
            + "    b[t] = s[63 - t]\n    "
            + BARRIER
        ),
        "readers share": Probe(TILE + "s[t] = a[t]\n" + BARRIER + "b[t] = s[0] + s[t // 2] + s[63]"),
        "atomics": Probe(
            "s = cuda.shared.array(4, int32)\nif t < 4:\n    s[t] = 0\n"
            + BARRIER
            + "cuda.atomic.add(s, t % 4, 1)\n"
            + BARRIER
            + "b[t] = s[t % 4]"
        ),
        "syncwarp within a warp": Probe(TILE + "s[t] = a[t]\ncuda.syncwarp()\nb[t] = s[t ^ 1]"),
        "shuffle orders the warp": Probe(
            TILE + "s[t] = a[t]\nx = cuda.shfl_xor_sync(0xFFFFFFFF, a[t], 1)\nb[t] = s[t ^ 1] + x"
        ),
        "bytes of one word": Probe(
            "s = cuda.shared.array(128, uint8)\ns[t] = t\ns[t] = s[t] + 1\n" + BARRIER + "b[t] = s[63 - t]"
        ),
        "double buffer": Probe(
            "s = cuda.shared.array((2, 64), float32)\nfor k in range(4):\n    s[k % 2, t] = a[t + k]\n    "
            + BARRIER
            + "    b[t] = s[k % 2, 63 - t]"
        ),
        "syncwarp of half a warp": Probe(
            TILE
            + "if t < 16:\n    s[t] = a[t]\n    cuda.syncwarp(0x0000FFFF)\n    b[cuda.grid(1)] = s[15 - t]\n"
            + "    cuda.syncwarp(0x0000FFFF)\n    s[t] = 1",
            block=32,
            grid=3,
        ),
        "global, syncwarp of half a warp": Probe(
            "i = cuda.grid(1)\nif t < 16:\n    b[i] = a[i]\n    cuda.syncwarp(0x0000FFFF)\n    a[i] = b[i ^ 15]",
            block=32,
            grid=3,
        ),
        "warp reduction with syncwarp": Probe(
            TILE + "s[t] = a[t]\ncuda.syncwarp()\nx = s[t ^ 16]\ncuda.syncwarp()\ns[t] +="
            " x\ncuda.syncwarp()\nb[t] = s[t ^ 8]",
            block=32,
        ),
        "tree with barriers": Probe(
            TILE
            + "s[t] = a[t]\n"
            + BARRIER
            + "k = 32\nwhile k > 0:\n    if t < k:\n        s[t] += s[t + k]\n    "
            + BARRIER
            + "    k //= 2"
        ),
    },
    "global_race": {
        "own element": Probe("i = cuda.grid(1)\nb[i] = a[i]\nb[i] += 1", grid=2),
        "in place": Probe("i = cuda.grid(1)\na[i] = a[i] * a[i]", grid=2),
        "barrier within a block": Probe("b[t] = a[t]\n" + BARRIER + "a[t] = b[63 - t]"),
        "grid barrier": Probe(
            "i = cuda.grid(1)\nb[i] = a[i]\ncuda.cg.this_grid().sync()\na[i] = b[127 - i]", grid=2
        ),
        "atomics of many blocks": Probe("cuda.atomic.add(b, t % 3, 1)", grid=5),
        "reads of many blocks": Probe("b[cuda.grid(1)] = a[0] + a[t]", grid=2),
        "interleaved views": Probe(
            "a[t] = 1\nb[t] = 2", a=(_pairs := np.zeros(128, np.float32))[0::2], b=_pairs[1::2]
        ),
    },
    "divergent_barrier": {
        "early exit": Probe("if t >= 50:\n    return\ncuda.syncthreads()"),
        "uniform branch": Probe("if cuda.blockIdx.x == 0:\n    cuda.syncthreads()", grid=2),
        "uniform loop": Probe("for k in range(a.shape[0] // 32):\n    cuda.syncthreads()"),
        "loop length by block": Probe("for k in range(cuda.blockIdx.x):\n    cuda.syncthreads()", grid=3),
        "partial warp": Probe("cuda.syncthreads()", block=33),
        "work guarded, barrier not": Probe(
            "for k in range(3):\n    if t > k:\n        b[t] = k\n    cuda.syncthreads()"
        ),
    },
    "divergent_warp_op": {
        "whole warps": Probe("if t < 32:\n    b[t] = cuda.shfl_down_sync(0xFFFFFFFF, a[t], 1)"),
        "mask of the branch": Probe("if t % 32 < 16:\n    b[t] = cuda.shfl_xor_sync(0x0000FFFF, a[t], 1)"),
        "exited lanes": Probe("if t >= 40:\n    return\nb[t] = cuda.shfl_xor_sync(0xFFFFFFFF, a[t], 1)"),
        "partial last warp": Probe("b[t] = cuda.ballot_sync(0xFFFFFFFF, t > 3)", block=40),
        "uniform loop": Probe(
            "x = a[t]\nk = 16\nwhile k > 0:\n    x += cuda.shfl_xor_sync(0xFFFFFFFF, x, k)\n    k //="
            " 2\nb[t] = x"
        ),
    },
    "async_not_waited": {
        "wait, then own element": Probe(
            TILE + "ptx.test_copy(s, t, a, t)\nptx.test_commit()\nptx.test_wait(0)\nb[t] = s[t]"
        ),
        "wait and barrier": Probe(
            TILE
            + "ptx.test_copy(s, t, a, t)\nptx.test_commit()\nptx.test_wait(0)\n"
            + BARRIER
            + "b[t] = s[63 - t]"
        ),
        "another slot": Probe(
            "s = cuda.shared.array(128, float32)\ns[t] = 1\nptx.test_copy(s, t + 64, a, t)\nb[t] ="
            " s[t]\nptx.test_commit()\nptx.test_wait(0)"
        ),
        "two stages": Probe(
            "s = cuda.shared.array((2, 64), float32)\nptx.test_copy(s, (0, t), a, t)\nptx.test_commit()\n"
            "for k in range(2):\n    ptx.test_copy(s, ((k + 1) % 2, t), a, t + k)\n    ptx.test_commit()\n"
            "    ptx.test_wait(1)\n    cuda.syncthreads()\n    b[t] = s[k % 2, 63 - t]\n   "
            " cuda.syncthreads()\nptx.test_wait(0)"
        ),
        "only half copies": Probe(
            TILE
            + "if t < 32:\n    ptx.test_copy(s, t, a, t)\nptx.test_commit()\nptx.test_wait(0)\n"
            + BARRIER
            + "if t < 32:\n    b[t] = s[31 - t]"
        ),
    },
}


@pytest.fixture(autouse=True)
def _copies() -> Iterator[None]:
    """Stand-ins for cp.async, so that these tests need no GPU intrinsics."""
    before = dict(INTRINSICS)

    @intrinsic("ptx.test_copy")
    def _copy(engine: Any, node: Any, dst: Any, dst_index: Any, src: Any, src_index: Any) -> None:
        places = [
            engine.element(node, array, index if isinstance(index, tuple) else (index,))
            for array, index in ((dst, dst_index), (src, src_index))
        ]
        engine.copy_async(node, places[0], places[1], "cp.async.ca.4")

    intrinsic("ptx.test_commit")(lambda engine, node: engine.commit_copies(node))
    intrinsic("ptx.test_wait")(lambda engine, node, n: engine.wait_for_copies(node, n))
    yield
    INTRINSICS.clear()
    INTRINSICS.update(before)


def pairs(table: dict[str, dict[str, Probe]]) -> list[Any]:
    return [
        pytest.param(kind, probe, id=f"{kind}: {name}")
        for kind, probes in table.items()
        for name, probe in probes.items()
    ]


@pytest.mark.parametrize(("kind", "probe"), pairs(FAULTS))
def test_planted_fault_is_found(kind: str, probe: Probe) -> None:
    t, lines = probe.run()
    found = [hazard for hazard in t.hazards if hazard.kind == kind]
    assert found, t.hazards
    assert probe.severity in {hazard.severity for hazard in found}, found
    if lines:
        assert {hazard.line for hazard in found if hazard.severity == probe.severity} == set(lines), found
    assert {hazard.kind for hazard in t.hazards} == {kind}, t.hazards


@pytest.mark.parametrize(("kind", "probe"), pairs(CLEAN))
def test_clean_twin_is_silent(kind: str, probe: Probe) -> None:
    t, _ = probe.run()
    assert t.hazards == []


def test_every_kind_has_five_of_each() -> None:
    assert set(FAULTS) == set(CLEAN) == set(KINDS)
    assert all(len(probes) >= 5 for table in (FAULTS, CLEAN) for probes in table.values())


def only(probe: Probe) -> Hazard:
    t, _ = probe.run()
    assert len(t.hazards) == 1, t.hazards
    return t.hazards[0]


def test_race_names_both_threads_the_element_and_the_cure() -> None:
    hazard = only(FAULTS["shared_race"]["warps after syncwarp"])
    assert (hazard.block, hazard.thread, hazard.other_thread) == ((0, 0, 0), (0, 0, 0), (32, 0, 0))
    assert (hazard.line, hazard.other_line, hazard.element, hazard.count) == (14, 12, "s[32]", 64)
    assert str(hazard) == (
        "block=(0, 0, 0) thread=(0, 0, 0): reads s[32] (line 14), which thread (32, 0, 0) wrote at line 12,"
        " and nothing orders the two. Put cuda.syncthreads() between them (lines 12 and 14), or use"
        " cuda.atomic."
    )


def test_bounds_message_names_the_guard() -> None:
    hazard = only(FAULTS["out_of_bounds"]["past the end"])
    assert str(hazard) == (
        "block=(0, 0, 0) thread=(28, 0, 0): writes b[128] past its 128 elements (line 11). Guard the access"
        " with a test of the index, such as: if i < b.shape[0]."
    )
    assert hazard.count == 36


def test_divergent_barrier_counts_who_waits() -> None:
    hazard = only(FAULTS["divergent_barrier"]["one lane short"])
    assert hazard.thread == (63, 0, 0)
    assert "63 of 64 live threads wait, thread (0, 0, 0) among them" in hazard.message


def test_early_exit_is_mentioned_but_no_hazard() -> None:
    t, _ = CLEAN["divergent_barrier"]["early exit"].run()
    assert t.notes == [
        "line 13: some threads had returned (line 12) before this syncthreads. Since sm_70 they count as"
        " arrived; keep them alive if the code must run on older GPUs."
    ]


def test_counts_are_those_of_all_blocks() -> None:
    body = TILE + "s[t] = a[t]\nb[t + 64 * cuda.blockIdx.x] = s[63 - t]  # FAULT"
    one, many = (only(Probe(body, grid=n, b=np.zeros(64 * n, np.float32))) for n in (1, 50))
    assert (one.count, many.count) == (64, 3200)


def test_the_two_sides_of_a_copy_are_two_sites() -> None:
    """The model counts the shared side; of the global side it claims nothing, and says so."""
    body = "s = cuda.shared.array(32, float32)\nt = cuda.threadIdx.x\nptx.test_copy(s, t, src, 8 * t)"
    kernel = functions_in(f"{HEAD}def kernel(src):\n" + "".join(f"    {line}\n" for line in body.split("\n")))
    t = trace(kernel["kernel"], 1, 32, np.zeros(256, np.float32))
    shared, global_ = t.shared.async_copy, t.global_.async_copy
    assert (shared.requests, shared.wavefronts, shared.excess) == (1, 1, 0)
    assert (global_.requests, global_.wavefronts, global_.sectors) == (1, 0, 0)
    assert len(t.unmodelled) == 1
    assert "cp.async.ca.4: the model knows its shared side" in t.unmodelled[0]


def test_execution_goes_on_after_a_fault() -> None:
    b = np.zeros(128, np.float32)
    Probe("b[t + 100] = a[t] + 1", b=b).run()
    np.testing.assert_array_equal(b[100:], np.arange(28) + 1)
    assert not b[:100].any()


def random_program(seed: int) -> tuple[str, np.ndarray, list[tuple[str, int, int, int]]]:
    """Accesses to one element by random lanes between random barriers: body, table of lanes, and every
    access.

    An access is its kind, its thread, and how many block and warp barriers its thread has passed.
    """
    rng = np.random.default_rng(seed)
    lines = ["s = cuda.shared.array(1, float32)", "x = float32(0)"]
    active = rng.random((9, 64)) < 0.015
    accesses, block_epoch, warp_epoch = [], 0, 0
    for step in range(len(active)):
        kind = str(
            rng.choice(["read", "write", "atomic", "barrier", "warp"], p=[0.35, 0.15, 0.15, 0.1, 0.25])
        )
        if kind in ("barrier", "warp"):
            lines.append("cuda.syncthreads()" if kind == "barrier" else "cuda.syncwarp()")
            block_epoch += kind == "barrier"
            warp_epoch += 1
            continue
        text = {
            "read": "x += s[0]",
            "write": f"s[0] = t + 100 * {step}",
            "atomic": "cuda.atomic.add(s, 0, 1)",
        }[kind]
        lines += [f"if a[{step}, t] > 0:", f"    {text}"]
        accesses += [(kind, int(thread), block_epoch, warp_epoch) for thread in np.flatnonzero(active[step])]
    return "\n".join([*lines, "b[t] = x"]), active.astype(np.float32), accesses


def races(accesses: list[tuple[str, int, int, int]]) -> bool:
    """The definition, applied to all pairs."""
    for position, (kind, thread, block_epoch, warp_epoch) in enumerate(accesses):
        for other_kind, other, other_block_epoch, other_warp_epoch in accesses[:position]:
            agree = kind == other_kind != "write"
            same_warp = thread // 32 == other // 32
            ordered = other_block_epoch < block_epoch or (same_warp and other_warp_epoch < warp_epoch)
            if thread != other and not agree and not ordered:
                return True
    return False


def test_races_equal_the_definition_applied_to_all_pairs() -> None:
    outcomes = []
    for seed in range(120):
        body, table, accesses = random_program(seed)
        t, _ = Probe(body, a=table).run()
        outcomes.append(races(accesses))
        assert any(hazard.kind == "shared_race" for hazard in t.hazards) == outcomes[-1], (
            seed,
            body,
            accesses,
        )
    assert 20 < sum(outcomes) < 100


def test_counts_say_what_they_count() -> None:
    update = Probe("b[0] += 1")
    t, _ = update.run()
    (race,) = t.hazards
    assert race.counted == "conflict"
    assert f"[{race.count} conflicts]" in str(t)
    late = only(FAULTS["out_of_bounds"][next(iter(FAULTS["out_of_bounds"]))])
    assert late.counted == "access"


def test_a_barrier_that_some_miss_counts_blocks() -> None:
    body = (
        "from numba import cuda\ndef kernel(a):\n    if cuda.threadIdx.x < 7:\n        cuda.syncthreads()\n"
    )
    t = trace(functions_in(body, "kernel.py")["kernel"], 5, 64, np.zeros(1))
    assert [(hazard.count, hazard.counted) for hazard in t.hazards] == [(5, "block")]
    assert str(t).endswith("passes the same call. [5 blocks]")
