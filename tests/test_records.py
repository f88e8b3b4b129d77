"""Recorded measurements: found by name, with their provenance, and in agreement with the model."""

import re
from dataclasses import replace
from importlib.resources import files

import pytest

from lanewise.errors import UnknownRecord
from lanewise.records import counter_table, record
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
        if entry.name == "provenance.json":
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
