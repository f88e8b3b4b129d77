"""Asynchronous pipelines: right results for every schedule, faults found, and what the copies' places cost."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

import numpy as np
import pytest

from lanewise.kernels import async_pipelines as ap
from lanewise.trace import Trace, functions_in, trace
from tests.kernels.launches import assert_clean, name_of, poisoned

RUNGS = (
    ap.direct,
    ap.tiled,
    ap.prefetched,
    ap.copied,
    ap.pipelined_2,
    ap.pipelined_3,
    ap.pipelined_4,
    ap.pipelined_8,
)
FACTOR, SHIFT = -0.5, 3.0
STEP = (np.float32(FACTOR), np.float32(SHIFT))
HEAD = f"""from numba import cuda, float32, uint32
from lanewise import ptx

TILE = {ap.TILE}
QUARTER = {ap.QUARTER}
elems = {3 * ap.TILE}
ahead = 2
pending = 1

"""
WAIT = "ptx.cp_async_wait(pending)\n"
WAIT_ALL = "ptx.cp_async_wait(0)\n"
COMMIT = "ptx.cp_async_commit()\n"
READ = "j = uint32(full + t)\n"
BARRIER = "cuda.syncthreads()\n"


def eighths(n: int) -> np.ndarray:
    return (np.random.default_rng(0).integers(-64, 64, n) / 8).astype(np.float32)


def run(kernel: Any, n_tiles: int, grid: int, n_fmas: int = 3, block: int = ap.THREADS, *more: int) -> Trace:
    """Trace a rung and check what it wrote."""
    for src in (np.arange(n_tiles * ap.TILE, dtype=np.float32), eighths(n_tiles * ap.TILE)):
        dst = poisoned(src.size)
        t = trace(kernel, grid, block, src, dst, *STEP, n_fmas, *more)
        assert t.hazards == []
        np.testing.assert_allclose(dst, ap.reference(src, FACTOR, SHIFT, n_fmas), rtol=1e-6)
    return t


def per_request(t: Trace, space: str, op: str) -> set[float]:
    """Wavefronts of shared sites, sectors of global ones."""
    what = "wavefronts" if space == "shared" else "sectors"
    return {getattr(s, what) / s.requests for s in t.sites if (s.space, s.op) == (space, op)}


@pytest.mark.parametrize("kernel", RUNGS, ids=name_of)
@pytest.mark.parametrize(("n_tiles", "grid"), [(1, 1), (5, 2), (7, 9), (12, 1)])
def test_every_rung_is_right_for_any_number_of_tiles_and_blocks(kernel: Any, n_tiles: int, grid: int) -> None:
    """Where a rung loads and stores: 16 bytes per lane, but words out of the tile; copies are not loads."""
    t, by_registers = assert_clean(run(kernel, n_tiles, grid)), kernel in (ap.direct, ap.tiled, ap.prefetched)
    through_tile = kernel is not ap.direct
    assert per_request(t, "global", "load") == ({16} if by_registers else set())
    assert per_request(t, "shared", "store") == ({4} if by_registers and through_tile else set())
    assert per_request(t, "shared", "load") == ({1} if through_tile else set())
    assert per_request(t, "global", "store") == ({4} if through_tile else {16})


def test_the_pipelines_keep_as_many_tiles_as_their_names_say() -> None:
    for stages in (2, 3, 4, 8):
        kernel = getattr(ap, f"pipelined_{stages}")
        assert kernel.py_func.__name__ == f"pipelined_{stages}"
        assert run(kernel, 2, 1).shared_bytes == stages * ap.TILE * 4


def test_barriers_and_bytes_under_way_are_counted() -> None:
    """12 tiles for 2 blocks: one barrier a tile, and all stages but the one that is read are under way."""
    assert [run(kernel, 12, 2).n_barriers for kernel in (ap.direct, ap.tiled, ap.copied)] == [0, 24, 24]
    assert run(ap.copied, 12, 2).bytes_under_way == run(ap.tiled, 12, 2).bytes_under_way == 0
    for stages in (2, 3, 4):
        t = run(getattr(ap, f"pipelined_{stages}"), 12, 2)
        assert (t.n_barriers, t.bytes_under_way) == (12, (stages - 1) * ap.TILE * 4)
    assert run(ap.pipelined_8, 12, 2).bytes_under_way == 5 * ap.TILE * 4  # a block has no more tiles
    assert run(ap.barriers, 12, 2, 3, 96, 7).n_barriers == 12 * 9


@pytest.mark.parametrize("threads", [96, 128, 1024])
def test_barriers_takes_any_block(threads: int) -> None:
    for n_barriers in (0, 7):
        t = run(ap.barriers, 3, 2, 3, threads, n_barriers)
        assert per_request(t, "shared", "load") == {1}


def changed(kernel: Any, *changes: tuple[str, str]) -> Trace:
    """Trace a rung with some of its text replaced; `pipelined_3` has the constants of `HEAD`."""
    text = textwrap.dedent(inspect.getsource(kernel.py_func))
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (function,) = functions_in(HEAD + text, "changed.py").values()
    src = eighths(8 * ap.TILE)
    return trace(function, 2, ap.THREADS, src, poisoned(src.size), *STEP, 1)


@pytest.mark.parametrize("kernel", [ap.copied, ap.pipelined_3], ids=["copied", "pipelined"])
def test_the_text_that_faults_are_planted_in_is_clean(kernel: Any) -> None:
    assert changed(kernel).hazards == []


SWAPPED = ((COMMIT, "pass\n"), (WAIT_ALL, f"{WAIT_ALL}        {COMMIT}"))
EARLY = ((BARRIER, "pass\n"), (READ, f"{BARRIER}        {READ}"))
LATE = ((WAIT, "pass\n"), (BARRIER, f"{BARRIER}        {WAIT}"))


@pytest.mark.parametrize(
    ("kernel", "changes", "kind"),
    [
        pytest.param(ap.copied, ((WAIT_ALL, "pass\n"),), "async_not_waited", id="no wait"),
        pytest.param(ap.copied, SWAPPED, "async_not_waited", id="commit after the wait"),
        pytest.param(ap.pipelined_3, ((WAIT, "pass\n"),), "async_not_waited", id="no wait in a pipeline"),
        pytest.param(
            ap.pipelined_3,
            (("wait(pending)", "wait(2)"),),
            "async_not_waited",
            id="one group more is allowed",
        ),
        pytest.param(ap.pipelined_3, ((BARRIER, "pass\n"),), "shared_race", id="no barrier after the wait"),
        pytest.param(
            ap.pipelined_3,
            EARLY,
            "shared_race",
            id="refills before all have read",
        ),
        pytest.param(ap.pipelined_3, LATE, "shared_race", id="wait after the barrier"),
        pytest.param(
            ap.pipelined_3,
            (("0, ahead * TILE", "0, 0"),),
            "async_not_waited",
            id="refills the stage being read",
        ),
    ],
)
def test_a_planted_fault_is_found(kernel: Any, changes: tuple[tuple[str, str], ...], kind: str) -> None:
    assert kind in {hazard.kind for hazard in changed(kernel, *changes).hazards}


@pytest.mark.parametrize(
    ("kernel", "elems", "pitch", "gap", "wavefronts"),
    [
        (ap.place_4, 1, 1, 32, 1),
        (ap.place_4, 1, 32, 1, 32),
        (ap.place_8, 2, 2, 64, 2),
        (ap.place_8, 2, 32, 2, 32),
        (ap.place_16, 4, 4, 128, 4),
        (ap.place_16, 4, 32, 4, 32),
        (ap.place_16_cg, 4, 32, 4, 0),  # not counted, and the report says so
    ],
)
def test_the_place_of_a_copy_costs_its_banks(
    kernel: Any, elems: int, pitch: int, gap: int, wavefronts: int
) -> None:
    src, dst = eighths(64 * elems), poisoned(64)
    t = trace(kernel, 2, 32, src, dst, pitch, gap, 3)
    np.testing.assert_array_equal(dst, src[::elems])
    assert t.hazards == []
    assert t.shared.async_copy.wavefronts == 2 * 3 * 8 * wavefronts
    assert bool(wavefronts) == (not any("shared-memory counters" in text for text in t.unmodelled))


def test_equal_words_of_a_copy_are_not_merged() -> None:
    """All lanes at one address: a race, harmless here since all copy one value, and 32 wavefronts."""
    src, dst = np.full(32, 1.5, np.float32), poisoned(32)
    t = trace(ap.place_4, 1, 32, src, dst, 0, 1, 1)
    np.testing.assert_array_equal(dst, src)
    assert {hazard.kind for hazard in t.hazards} == {"shared_race"}
    assert t.shared.async_copy.wavefronts == 8 * 32


def test_the_last_block_of_spin_works_on() -> None:
    src, dst = eighths(70), poisoned(70)
    t = trace(ap.spin, 3, 32, src, dst, *STEP, 1, 4)
    np.testing.assert_allclose(dst[:64], ap.reference(src[:64], FACTOR, SHIFT, 1), rtol=1e-6)
    np.testing.assert_allclose(dst[64:], ap.reference(src[64:], FACTOR, SHIFT, 4), rtol=1e-6)
    assert t.hazards == []
