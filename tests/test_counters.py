"""Reading hardware counters: reports in the form of Nsight Compute 2025.3.1's, and what can go wrong."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lanewise.counters import Plan, count, find_ncu, metrics, why_no_profiler
from lanewise.counters import ncu as profiler
from lanewise.errors import Unfit
from lanewise.experiments import Experiment
from lanewise.reconcile import totals_counted
from lanewise.records import Provenance, record
from tests import fake_ncu
from tests.fake_gpu import case, double, double_slowly, raise_an_error

HERE = Provenance("Fake GPU", "9.0", "1.2", "13.0", "tools", "2026-01-02", "made up")
ROOT = Path(__file__).parents[1]


def counted() -> tuple[Experiment, ...]:
    """An experiment with two small cases, and a large one that is profiled."""
    large = replace(case(double, 1 << 16), profiled=True)
    return (
        Experiment("E-90", "What does it cost?", timed=(large,), counted=(case(double), case(double_slowly))),
        Experiment("E-91", "And this?", counted=(case(double, 128, profiled=True),)),
    )


def with_a_fault() -> tuple[Experiment, ...]:
    """The same, with a case that fails."""
    first, second = counted()
    return replace(first, counted=(*first.counted, case(raise_an_error))), second


def plan_of(tmp_path: Path, mode: str = "good", name: str = "counted", **more: Any) -> Plan:
    """A plan with the fake profiler and the fake program under it."""
    ncu = tmp_path / f"ncu-{mode}"
    ncu.write_text(f'#!/bin/sh\nexec "{sys.executable}" -B "{fake_ncu.__file__}" {mode} "$@"\n')
    ncu.chmod(0o755)
    experiments = {"counted": counted, "with_a_fault": with_a_fault}[name]()
    child = (
        "env",
        f"PYTHONPATH={ROOT / 'src'}:{ROOT}",
        sys.executable,
        "-B",
        str(ROOT / "tests" / "fake_child.py"),
    )
    source = f"tests.test_counters:{name}"
    return Plan(
        {"doubles": experiments},
        tmp_path / "fake",
        HERE,
        str(ncu),
        source=lambda topic: source,
        child=child,
        **more,
    )


def rows_in(tmp_path: Path) -> list[dict[str, Any]]:
    return json.loads((tmp_path / "fake" / "doubles.counters.json").read_text())["counters"]


def test_counters_of_small_cases_come_by_opcode_and_those_of_large_ones_with_their_traffic(
    tmp_path: Path,
) -> None:
    (outcome,) = count(plan_of(tmp_path))
    assert (sorted(outcome.written), outcome.failed) == (["E-90", "E-91"], [])
    small, _, large, other = rows_in(tmp_path)
    assert (small["experiment"], small["label"], small["profiled"]) == ("E-90", "double", False)
    assert small["opcodes"] == {
        "LDG.E": [1, 8192, 0, 0, 32768],
        "STS": [1, 8192, 8192, 8192, 0],
        "LDS": [2, 16384, 524288, 16384, 0],
    }
    assert small["metrics"] == {"shared_load_wavefronts": 1048576, "bytes_per_wavefront_fraction": 0.0606}
    assert large["profiled"]
    assert "opcodes" not in large
    assert large["metrics"]["dram_read_bytes"] == 4199680
    assert large["metrics"]["l1_hit_rate"] == 0.6496
    assert other["problem"] == "double 128"  # both, since it is counted and profiled
    assert other["opcodes"] == small["opcodes"]
    assert other["metrics"]["dram_read_bytes"] == 4199680
    assert totals_counted(small["opcodes"])["shared.load.wavefronts"] == 524288
    (outcome,) = count(plan_of(tmp_path))
    assert outcome.written == []  # current


def test_a_case_that_fails_is_an_error_and_a_good_record_stays(tmp_path: Path) -> None:
    (outcome,) = count(plan_of(tmp_path, name="with_a_fault"))
    assert [row.get("error") for row in rows_in(tmp_path)] == [
        None,
        None,
        "ValueError: bad kernel",
        None,
        None,
    ]
    assert outcome.failed == ["E-90 raise_an_error (double 64): ValueError: bad kernel"]
    count(plan_of(tmp_path, again=True))
    before = rows_in(tmp_path)
    (outcome,) = count(plan_of(tmp_path, name="with_a_fault", only=("E-90",)))
    assert outcome.failed[-1] == "E-90: the record of before stays as it is."
    assert rows_in(tmp_path) == before


def test_a_metric_that_the_gpu_lacks_is_left_out(tmp_path: Path) -> None:
    (outcome,) = count(plan_of(tmp_path, "metric"))
    assert outcome.failed == []


@pytest.mark.parametrize(
    ("mode", "sentence"),
    [
        (
            "permission",
            r"ERR_NVGPUCTRPERM\)\. Run as root, or let every user read them: .*Times can be measured",
        ),
        ("driver", r"This Nsight Compute is newer than the driver\. Install"),
    ],
)
def test_a_profiler_that_may_not_look_says_what_to_do(tmp_path: Path, mode: str, sentence: str) -> None:
    with pytest.raises(Unfit, match=sentence):
        count(plan_of(tmp_path, mode))
    assert not (tmp_path / "fake").exists()


def test_no_report_is_an_error_of_each_case(tmp_path: Path) -> None:
    (outcome,) = count(plan_of(tmp_path, "report"))
    assert len(outcome.failed) == 4
    assert "Nsight Compute wrote no report" in outcome.failed[0]


def test_a_missing_profiler_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(profiler, "PLACES", ())
    with pytest.raises(Unfit, match=r"Nsight Compute \(ncu\) is not installed\..*put ncu on the PATH"):
        find_ncu()
    assert why_no_profiler().startswith("Nsight Compute (ncu) is not installed")


def test_a_launch_of_another_kernel_is_not_taken_for_the_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = fake_ncu.pages(["double", "another"])
    monkeypatch.setattr(profiler, "page", lambda ncu, report, name: pages[name])
    (outcome,) = count(plan_of(tmp_path, only=("E-90",)))
    assert "The profiler saw 'another[v2,cw51c](Array<float>)' in its place." in outcome.failed[0]


def test_a_page_without_columns_that_are_all_zero_is_read() -> None:
    """The profiler leaves them out."""
    head = ["Address", "Source", "inst_executed", "memory_l2_theoretical_sectors_global"]
    page = fake_ncu.csv(["Kernel Name", "k"], head, ["0x10", "      STG.E.128 [R2], R4", "64", "1024"])
    assert profiler.source_rows(page) == [{"STG.E.128": [1, 64, 0, 0, 1024]}]


def test_names_are_unique_and_values_have_units() -> None:
    ours = [*metrics.HARDWARE, *metrics.PROFILE]
    assert len(set(ours)) == len(ours)
    assert metrics.value("a.pct", "6.06") == 0.0606
    assert metrics.value("a.sum", "1,048,576") == 1048576
    assert metrics.value("a.ratio", "15.27") == 15.27
    assert metrics.value("a.sum", "n/a") is None


def test_the_metrics_exist_on_the_h200() -> None:
    """Compared with the list that `ncu --query-metrics` gave there (E-00)."""
    rows = record("h200", "profiler").rows("metrics")
    known = {f"{row['part']}__{name}" for row in rows for name in row["names"]}
    for name in (*metrics.HARDWARE.values(), *metrics.PROFILE.values()):
        assert name.split(".")[0] in known
