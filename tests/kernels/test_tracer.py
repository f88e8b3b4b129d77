"""The kernels of the tracer's chapter: right results, and the counts that an H200 gave for the same launches."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise import records
from lanewise.kernels import padding, tracer
from lanewise.lowering import why_unavailable
from lanewise.trace import Trace, trace
from tests.corpus import all_cases
from tests.test_hazards import CLEAN, FAULTS

RUNGS = {name: getattr(padding, f"transpose_{name}") for name in ("naive", "tiled", "padded", "swizzled")}
RECORD = records.record("h200", "tracer")
LAUNCHES = [(row["kernel"], tuple(row["shape"])) for row in RECORD.rows("kernels")]
OPCODES = {
    ("LDG", "load"): "global",
    ("STG", "store"): "global",
    ("LDS", "load"): "shared",
    ("STS", "store"): "shared",
}


def kernel_of(name: str) -> Any:
    return getattr(padding, name, None) or getattr(tracer, name)


def poisoned(*shape: int) -> np.ndarray:
    return np.full(shape, np.nan, np.float32)


def eighths(*shape: int) -> np.ndarray:
    return (np.random.default_rng(0).integers(-64, 64, shape) / 8).astype(np.float32)


def launch(name: str, shape: tuple[int, int], lowering: str = "source") -> Trace:
    """Trace a launch as it was recorded, and check its result."""
    kernel, first = kernel_of(name), eighths(*shape)
    inputs: tuple[np.ndarray, ...]
    if name == "matmul_tiled":
        inputs, dst = (first, first.T.copy()), poisoned(*shape)
        module: Any = tracer
        grid = tracer.grid_of(dst)
    else:
        inputs, dst, module = (first,), poisoned(*shape[::-1]), padding
        grid = padding.grid_of(first)
    t = trace(kernel, grid, module.BLOCK, *inputs, dst, lowering=lowering)
    np.testing.assert_array_equal(dst, module.reference(*inputs))
    assert t.hazards == []
    return t


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 70), st.integers(1, 70), st.sampled_from(sorted(RUNGS)))
def test_every_rung_transposes_any_size_without_a_hazard(n_rows: int, n_cols: int, rung: str) -> None:
    src, dst = eighths(n_rows, n_cols), poisoned(n_cols, n_rows)
    t = trace(RUNGS[rung], padding.grid_of(src), padding.BLOCK, src, dst)
    np.testing.assert_array_equal(dst, padding.reference(src))
    assert t.hazards == []
    assert t.warnings == []


def test_each_rung_costs_what_its_layout_says() -> None:
    whole = {rung: launch(f"transpose_{rung}", (256, 256)) for rung in RUNGS}
    loads = {rung: t.shared.load.wavefronts / max(1, t.shared.load.requests) for rung, t in whole.items()}
    stores = {rung: t.global_.store.sectors / t.global_.store.requests for rung, t in whole.items()}
    assert loads == {"naive": 0, "tiled": 32, "padded": 1, "swizzled": 1}
    assert stores == {"naive": 32, "tiled": 4, "padded": 4, "swizzled": 4}
    assert {rung: t.shared_bytes for rung, t in whole.items()} == {
        "naive": 0,
        "tiled": 4096,
        "padded": 4224,
        "swizzled": 4096,
    }


@pytest.mark.parametrize(("name", "shape"), LAUNCHES)
def test_the_trace_counts_what_the_h200_counted(name: str, shape: tuple[int, int]) -> None:
    t = launch(name, shape)
    for (opcode, op), space in OPCODES.items():
        if name == "matmul_tiled" and opcode == "LDS":
            continue  # the compiler joined some: see the next test
        recorded = rows_of(name, shape, opcode)
        sites = [site for site in t.sites if (site.space, site.op) == (space, op)]
        for counter in ("wavefronts", "ideal", "sectors"):
            assert sum(getattr(site, counter) for site in sites) == sum(row[counter] for row in recorded)


@pytest.mark.skipif(bool(why_unavailable()), reason="needs the compiler wheels (lanewise[sass])")
@pytest.mark.parametrize(("name", "shape"), LAUNCHES[-1:])
def test_the_compiled_view_counts_what_the_h200_counted(name: str, shape: tuple[int, int]) -> None:
    comparison = launch(name, shape, lowering="sm_90").comparison
    assert comparison is not None
    traced: Counter[tuple[str, str]] = Counter()
    for line in comparison.lines:
        for site in line.machine:
            for counter in ("requests", "wavefronts", "sectors"):
                traced[site.opcode, counter] += getattr(site, counter)
    recorded: Counter[tuple[str, str]] = Counter()
    for row in rows_of(name, shape, ""):
        for counter, key in (("requests", "executed"), ("wavefronts", "wavefronts"), ("sectors", "sectors")):
            recorded[row["opcode"], counter] += row[key]
    assert traced == recorded
    assert recorded["LDS.128", "wavefronts"] > 0


def rows_of(name: str, shape: tuple[int, int], opcode: str) -> list[Any]:
    return [
        row
        for row in RECORD.rows("instructions")
        if (row["kernel"], tuple(row["shape"])) == (name, shape) and row["opcode"].startswith(opcode)
    ]


@pytest.mark.parametrize("row", RECORD.rows("kernels"), ids=lambda row: row["kernel"])
def test_the_recorded_kernel_is_the_kernel_of_today(row: Any) -> None:
    assert records.code_hash(kernel_of(row["kernel"])) == row["code_hash"], (
        f"{row['kernel']} has changed since it was profiled: profile it again and replace recorded/h200/tracer.json"
    )


def test_the_tests_hold_at_least_what_the_page_says() -> None:
    held = records.record("tests", "tracer")
    (corpus,) = held.rows("corpus")
    assert len(all_cases()) >= corpus["corpus_launches"]
    assert len({case.function.__name__ for case in all_cases()}) >= corpus["corpus_kernels"]
    assert {row["kind"] for row in held.rows("hazards")} == set(FAULTS)
    for row in held.rows("hazards"):
        assert len(FAULTS[row["kind"]]) >= row["faults"]
        assert len(CLEAN[row["kind"]]) >= row["clean"]


@pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "the compiler is there")
@pytest.mark.parametrize("rung", ["transpose_naive", "transpose_tiled"])
def test_excess_is_the_same_as_written_and_as_compiled(rung: str) -> None:
    """These kernels keep their accesses, so every excess must be found in the machine code too."""
    written, compiled = (
        sorted(
            (site.op, site.space, site.sectors, site.excess) for site in launch(rung, (64, 64), view).sites
        )
        for view in ("source", "sm_90")
    )
    assert compiled == written
    assert max(excess for *_, excess in written) > 0
