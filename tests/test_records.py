"""Recorded measurements: found by name, with their provenance, and in agreement with the model."""

from importlib.resources import files

import pytest

from lanewise.records import UnknownRecord, counter_table, record
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
    with pytest.raises(UnknownRecord, match=r"of 'b200'"):
        record("b200", "timing")
    with pytest.raises(UnknownRecord, match="timing: no table 'latency'; it has cases"):
        record("h200", "timing").rows("latency")


@pytest.mark.parametrize("name", ["shared_wavefronts", "shared_recheck", "global_sectors", "global_recheck"])
def test_the_model_reproduces_every_launch(name: str) -> None:
    for found in agreement(counter_table("h200", name)):
        assert found == Agreement(found.instruction, found.launches, found.launches)


def test_agreement_can_fail() -> None:
    """A counter that differs shows as a launch that is not exact."""
    table = counter_table("h200", "global_sectors")
    launch = table.launches[0]
    object.__setattr__(launch, "counters", {"requests": 1, "sectors": launch.counters["sectors"] + 1})
    try:
        found = next(row for row in agreement(table) if row.instruction == launch.instruction)
        assert found.exact == found.launches - 1
    finally:
        counter_table.__globals__["_counter_table"].cache_clear()
