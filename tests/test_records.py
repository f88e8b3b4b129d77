"""Recorded measurements: found by name, with their provenance, and in agreement with the model."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from numba import cuda as numba_cuda

from lanewise.counters.runner import TABLE as COUNTERS
from lanewise.counters.runner import wanted
from lanewise.errors import UnknownRecord
from lanewise.experiments import Case, experiments_of, topics
from lanewise.measure import store
from lanewise.measure.runner import TABLE as TIMES
from lanewise.records import code_hash, counter_table, kernel_hash, record, recorded_gpus, recorded_topics
from lanewise.validation import Agreement, agreement

LANES = range(32)


def test_a_launch_is_found_by_its_addresses() -> None:
    table = counter_table("h200", "shared_wavefronts")
    assert dict(table.find("ld.shared.b128", [16 * lane for lane in LANES]).counters) == {
        "wavefronts": 4,
        "conflicts": 0,
    }
    with pytest.raises(
        UnknownRecord,
        match=r"ld\.shared\.b128 with byte offsets \(0, 16016, .*was not recorded. 303 launches",
    ):
        table.find("ld.shared.b128", [16016 * lane for lane in LANES])


def test_provenance_names_the_device_the_tools_and_the_method() -> None:
    assert str(counter_table("h200", "shared_wavefronts").provenance) == (
        "NVIDIA H200 (compute capability 9.0), driver 580.159.04, CUDA 13.0, Nsight Compute 2025.3.1, 2026-11-29."
        " One warp and one memory instruction per launch."
    )
    assert "Cycles of the SM clock" in str(record("h200", "timing").provenance)


def test_every_file_of_a_gpu_can_be_read_and_is_explained() -> None:
    home = files("lanewise") / "recorded"
    explained = (home / "README.md").read_text()
    for entry in (home / "h200").iterdir():
        if (
            entry.name == "provenance.json"
            or entry.name.removesuffix(".json").removesuffix(".counters") in topics()
        ):
            continue
        assert f"`{entry.name}`" in explained, f"explain {entry.name} in recorded/README.md"
        if entry.name.endswith(".csv"):
            assert counter_table("h200", entry.name.removesuffix(".csv")).launches


def test_an_unknown_record_is_refused_with_the_list() -> None:
    with pytest.raises(
        UnknownRecord, match=r"No record 'shared\.csv' of 'h200'. There are: .*h200/shared_wavefronts\.csv"
    ):
        counter_table("h200", "shared")
    for gpu in ("b200", "..", "h200/../h200", None, 9):
        with pytest.raises(UnknownRecord, match=f"of {re.escape(repr(gpu))}"):
            record(gpu, "timing")
    with pytest.raises(UnknownRecord, match=r"No record '\.\./h200/shared_wavefronts\.csv'"):
        counter_table("h200", "../h200/shared_wavefronts")
    with pytest.raises(UnknownRecord, match=r"find: byte_offsets: got 1\.5; give a whole number"):
        counter_table("h200", "shared_wavefronts").find("ld.shared.b32", [1.5] * 32)  # type: ignore[list-item]
    with pytest.raises(UnknownRecord, match="timing: no table 'latency'; it has cases"):
        record("h200", "timing").rows("latency")


@pytest.mark.parametrize("name", ["shared_wavefronts", "shared_recheck", "global_sectors", "global_recheck"])
def test_the_model_reproduces_every_launch(name: str) -> None:
    for found in agreement(counter_table("h200", name)):
        assert found == Agreement(found.instruction, found.launches, found.launches)


def test_agreement_can_fail() -> None:
    """A counter that differs shows as a launch that is not exact."""
    table = counter_table("h200", "global_sectors")
    first, *others = table.launches
    wrong = replace(first, counters={"requests": 1, "sectors": first.counters["sectors"] + 1})
    found = agreement(replace(table, launches=(wrong, *others)))
    assert [row.launches - row.exact for row in found if row.instruction == first.instruction] == [1]
    assert all(row.exact == row.launches for row in found if row.instruction != first.instruction)


def test_what_the_model_does_not_claim_is_never_exact() -> None:
    """Counter-dependent launches: retried and global atomics, copies that bypass L1 or scatter their source."""
    found = {row.instruction: row for table in ("shared_atomics", "global_atomics", "async_copies")
             for row in agreement(counter_table("h200", table))}  # fmt: skip
    for name in ("atom.shared.cas.b32", "red.shared.add.f32", "red.global.add.u32", "cp.async.cg.16"):
        assert found[name] == Agreement(name, found[name].launches, 0, found[name].launches)
    for name in ("red.shared.add.u32", "atom.shared.add.u32", "atom.shared.exch.b32"):
        assert found[name] == Agreement(name, 69, 69, 0)
    assert found["cp.async.ca.4"] == Agreement("cp.async.ca.4", 290, 145, 145)
    copies = found["cp.async.ca.16"]
    assert copies == Agreement("cp.async.ca.16", 400, 226, 174)


def test_agreement_says_what_it_cannot_replay() -> None:
    source_page = counter_table("h200", "source_page")
    loads = replace(source_page, launches=source_page.of("ld.shared.b64"))
    with pytest.raises(
        UnknownRecord, match="was recorded with wavefronts, ideal; the model counts wavefronts, conflicts"
    ):
        agreement(loads)
    table = counter_table("h200", "global_sectors")
    for counters in ({}, {"requests": 1}):
        mixed = replace(table, launches=(*table.launches, replace(table.launches[0], counters=counters)))
        with pytest.raises(
            UnknownRecord, match=r"recorded with .*\. Take a table that has these, the same in"
        ):
            agreement(mixed)
    with pytest.raises(UnknownRecord, match=r"Give a table read with records\.counter_table"):
        agreement("shared_wavefronts")  # type: ignore[arg-type]


HOME = Path(str(files("lanewise") / "recorded"))
TOPICS = [(gpu, topic) for gpu in recorded_gpus() for topic in recorded_topics(gpu)]
COUNTED = [(path.parent.name, path.name.split(".")[0]) for path in sorted(HOME.glob("*/*.counters.json"))]


@pytest.mark.parametrize(("gpu", "topic"), TOPICS)
def test_times_are_of_the_kernels_as_they_are(gpu: str, topic: str) -> None:
    content = store.read(HOME / gpu / f"{topic}.json")
    cases = {one.id: one.timed for one in experiments_of(topic)}
    complaints = stale_rows(content, TIMES, cases)
    assert not complaints, f"{'; '.join(complaints)}. Run on a {gpu}: lanewise measure --topic {topic}"


@pytest.mark.parametrize(("gpu", "topic"), COUNTED)
def test_counters_are_of_the_kernels_as_they_are(gpu: str, topic: str) -> None:
    content = store.read(HOME / gpu / f"{topic}.counters.json")
    cases = {one.id: [case for _, _, case in wanted(one)] for one in experiments_of(topic)}
    complaints = stale_rows(content, COUNTERS, cases)
    assert not complaints, f"{'; '.join(complaints)}. Run on a {gpu}: lanewise counters --topic {topic}"


def stale_rows(content: store.Content, table: str, cases: Mapping[str, Sequence[Case]]) -> list[str]:
    """The rows of a record that no case answers to as it is now."""
    now = {
        id_: {(case.label, case.problem.name): store.identity(case) for case in given}
        for id_, given in cases.items()
    }
    return [
        f"{row['experiment']} {row['label']} ({row['problem']}) is stale"
        for row in content[table]
        if now.get(row["experiment"], {}).get((row["label"], row["problem"]))
        != {key: row[key] for key in store.IDENTITY}
    ]


@pytest.mark.parametrize(
    "path", sorted(HOME.glob("*/reconciliation.json")), ids=lambda path: path.parent.name
)
def test_every_total_is_exact_or_has_its_reason(path: Path) -> None:
    content = store.read(path)
    assert [f"{row['label']}: {row['open']}" for row in content["cases"] if row["open"]] == []
    for row in content["cases"]:
        for total, numbers in row["totals"].items():
            known = {number for number in numbers if number is not None}
            assert len(known) == 1 or row["reasons"].get(total), (
                f"{row['topic']} {row['label']} {total}: {numbers}"
            )
    said = {
        (row["topic"], row["experiment"], row["label"], row["problem"], row["hash"])
        for row in content["cases"]
    }
    now = {
        (topic, one.id, case.label, case.problem.name, kernel_hash(case.kernel))
        for topic in topics()
        for one in experiments_of(topic)
        for case in one.counted
    }
    gone, new = sorted(said - now), sorted(now - said)
    assert said == now, f"stale: {gone[:3]}, missing: {new[:3]}. Run: lanewise reconcile --write"


def test_a_stale_row_is_named() -> None:
    case = next(case for one in experiments_of("padding") for case in one.timed)
    row = {"experiment": "E-04", **store.identity(case)}
    content = {"times": [row, {**row, "hash": "0"}, {**row, "label": "gone"}]}
    name = f"E-04 {case.label} ({case.problem.name})"
    assert stale_rows(content, TIMES, {"E-04": [case]}) == [
        f"{name} is stale",
        f"E-04 gone ({case.problem.name}) is stale",
    ]


WIDTH = 32
cuda: Any = numba_cuda  # it carries no types


@cuda.jit(device=True)
def twice(value):  # type: ignore[no-untyped-def]
    return 2 * value


def make_kernel(factor):  # type: ignore[no-untyped-def]
    @cuda.jit
    def kernel(src, dst):  # type: ignore[no-untyped-def]
        """A docstring."""
        i = cuda.grid(1)
        dst[i] = factor * twice(src[i % WIDTH])

    return kernel


def test_a_kernels_hash_covers_what_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Module constants, what a factory closed over, and device functions; not who else is in the module."""
    before = kernel_hash(make_kernel(3))
    assert kernel_hash(make_kernel(3)) == before
    assert kernel_hash(make_kernel(4)) != before
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "WIDTH", 64)
        assert kernel_hash(make_kernel(3)) != before
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "twice", cuda.jit(device=True)(lambda value: value + value))
        assert kernel_hash(make_kernel(3)) != before
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "LANES", range(3))
        assert kernel_hash(make_kernel(3)) == before


def test_a_record_may_state_its_own_provenance() -> None:
    about = record("h200", "profiler").provenance
    assert about.method.startswith("ncu --query-metrics")
    assert recorded_topics("no-such-gpu") == ()


def test_the_hash_of_a_kernel_changes_with_its_code_alone() -> None:
    def one(x):  # type: ignore[no-untyped-def]
        """A docstring."""
        return x + 1  # a comment

    first = code_hash(one)

    def one(x):  # type: ignore[no-untyped-def,no-redef]
        return x + 1

    assert code_hash(one) == first

    def one(x):  # type: ignore[no-untyped-def,no-redef]
        return x + 2

    assert code_hash(one) != first
