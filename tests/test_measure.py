"""The measurement on a GPU that tests make up: what is recorded, what is refused, and what is never lost."""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.errors import Unfit
from lanewise.experiments import Case, Ceiling, Experiment, Problem
from lanewise.measure import Plan, Settings, measure, summarise
from lanewise.measure import here as where
from lanewise.measure.checking import WrongResult, compare
from lanewise.measure.group import measure_group
from lanewise.measure.protocol import Values
from lanewise.measure.runner import due
from lanewise.measure.store import is_current, read, write
from lanewise.measure.summary import as_row
from lanewise.records import Provenance
from tests import fake_gpu
from tests.fake_gpu import case, double, doubled, forget_the_last, good

HERE = Provenance("Fake GPU", "9.0", "1.2", "13.0", "tools", "2026-01-02", "made up")


def plan_of(home: Path, name: str = "good", **more: Any) -> Plan:
    """A plan for the topic `doubles` with the experiments of one function of `fake_gpu`."""
    given = {
        "settings": Settings(6, 2),
        "gpu": "tests.fake_gpu:make_gpu",
        "source": lambda topic: f"tests.fake_gpu:{name}",
    }
    return Plan({"doubles": getattr(fake_gpu, name)()}, home / "fake", HERE, **{**given, **more})


def rows_in(home: Path) -> list[dict[str, Any]]:
    return json.loads((home / "fake" / "doubles.json").read_text())["times"]


def measured(one: Case, kind: str = "", **values: Any) -> dict[str, Any]:
    """The row of a single case, without processes."""
    made = Values.of(one.problem)
    return next(measure_group(fake_gpu.FakeGpu(), replace(made, **values), [one], kind, Settings(9, 1)))


def test_good_experiments_are_written_with_quartiles_rates_and_ceilings(tmp_path: Path) -> None:
    (outcome,) = measure(plan_of(tmp_path))
    assert (outcome.written, outcome.failed, outcome.current) == (["E-90", "E-91"], [], [])
    fast, slow, _, cycles, in_place = rows_in(tmp_path)
    assert fast["us"] == [10.25, 11.0, 11.75]
    assert fast["n_samples"] == 6
    assert fast["gb_per_s"] == pytest.approx(2048 / 11 * 1e-3, abs=1e-4)
    assert fast["ceilings"] == {"device copy": [8.25, 9.0, 9.75]}
    assert fast["ratio"] == pytest.approx(9 / 11, abs=1e-4)
    assert (fast["clock_mhz"], fast["registers"], fast["blocks_per_sm"]) == (1980, 16, 8)
    assert slow["ratio"] == pytest.approx(9 / 41, abs=1e-4)
    assert cycles["read"] == [23.0, 26.0, 29.0]
    assert cycles["unit"] == "cycles"
    assert "us" not in cycles
    assert in_place["ceiling"] == "fake.sum"
    content = json.loads((tmp_path / "fake" / "doubles.json").read_text())
    assert content["provenance"]["gpu"] == "Fake GPU"
    assert [row["provenance"]["date"] for row in content["experiments"]] == ["2026-01-02"] * 2


def test_what_is_current_is_skipped_and_what_changed_is_not(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    measure(plan)
    assert due(plan, "doubles") == []
    assert due(replace(plan, again=True), "doubles") == [0, 1]
    assert due(replace(plan, again=True, only=("E-91",)), "doubles") == [1]
    (outcome,) = measure(plan)
    assert (outcome.written, outcome.current) == ([], ["E-90", "E-91"])
    content = read(tmp_path / "fake" / "doubles.json")
    first = plan.topics["doubles"][0]
    for changed in (
        first.timed[:-1],
        (*first.timed[:-1], replace(first.timed[-1], block=2)),
        (*first.timed[:-1], replace(first.timed[-1], kernel=fake_gpu.double_slowly)),
        (*first.timed[:-1], replace(first.timed[-1], problem=doubled(2048))),
    ):
        assert not is_current(content, first, changed, "times")
    assert is_current(content, first, first.timed, "times")


def test_faults_cost_their_own_case_only_and_a_good_record_stays(tmp_path: Path) -> None:
    """Wrong results, exceptions, a lost GPU, a dead process and one that hangs, in one topic."""
    faulty = plan_of(tmp_path, "with_faults", seconds=1)
    (outcome,) = measure(faulty)
    errors = {row["label"]: row["error"] for row in rows_in(tmp_path) if "error" in row}
    assert errors == {
        "raise_an_error": "ValueError: bad kernel",
        "forget_the_last": errors["forget_the_last"],
        "spoil_the_input": errors["spoil_the_input"],
        "does_not_compile": "TypeError: no such thing",
        "take_the_gpu_down": "Fault: an illegal memory access was encountered",
        "end_the_process": "Its process ended by itself (exit status 7).",
        "hang": "It did not finish within 1 s and was ended.",
    }
    assert (
        "dst differs from the reference in 1 of 256 elements, first at [255]: got nan"
        in errors["forget_the_last"]
    )
    assert "changes its input src" in errors["spoil_the_input"]
    assert not any("us" in row for row in rows_in(tmp_path) if row["label"] in errors)
    assert sum("us" in row for row in rows_in(tmp_path)) == 5
    assert len(outcome.failed) == 7
    assert outcome.written == ["E-90", "E-91"]
    # With a good record there, the same faults replace nothing.
    measure(plan_of(tmp_path, again=True))
    before = (tmp_path / "fake" / "doubles.json").read_text()
    (outcome,) = measure(replace(faulty, again=True, only=("E-90",)))
    assert outcome.failed[-1] == "E-90: the record of before stays as it is."
    assert outcome.written == []
    assert (tmp_path / "fake" / "doubles.json").read_text() == before


def _measure_in(home: Path, name: str) -> None:
    measure(plan_of(home, name, again=True, seconds=600))


def test_a_measurement_that_is_killed_leaves_the_record(tmp_path: Path) -> None:
    measure(plan_of(tmp_path))
    before = (tmp_path / "fake" / "doubles.json").read_text()
    process = multiprocessing.get_context("spawn").Process(target=_measure_in, args=(tmp_path, "with_faults"))
    process.start()
    time.sleep(2.5)  # it hangs in the kernel named so, after the others failed
    assert process.is_alive()
    os.kill(process.pid or 0, signal.SIGTERM)
    process.join(10)
    measure(plan_of(tmp_path))  # nobody is left on the GPU
    assert (tmp_path / "fake" / "doubles.json").read_text() == before
    assert sorted(path.name for path in (tmp_path / "fake").iterdir()) == ["doubles.json"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write(path, {"provenance": {}, "times": [{"n": 1}]})

    def interrupted(source: str, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(path, {"provenance": {}, "times": []})
    assert read(path) == {"provenance": {}, "times": [{"n": 1}]}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_a_broken_or_unwritable_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"times": [')
    with pytest.raises(Unfit, match=r"a\.json cannot be read .*Move it away"):
        read(tmp_path / "a.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(Unfit, match=r"cannot be written .*--out records/"):
        write(tmp_path / "file" / "a.json", {})


def test_a_wrong_result_is_an_error_and_never_a_time() -> None:
    row = measured(case(forget_the_last))
    assert "us" not in row
    assert row["error"].startswith("WrongResult: dst differs from the reference in 1 of 64 elements")


def test_an_array_that_is_input_and_output_starts_each_launch_with_its_values() -> None:
    """Otherwise the second launch would not give the reference, and the samples would be of other work."""
    gpu = fake_gpu.FakeGpu()
    seen = []

    def note_and_add(total: np.ndarray) -> None:
        seen.append(total[0])
        total += 1

    one = Case("add", note_and_add, fake_gpu.counted_up(), 1, 1)
    next(measure_group(gpu, Values.of(one.problem), [one], "", Settings(5, 2)))
    assert set(seen) == {5.0}
    assert len(seen) == 1 + 1 + 2 + 5  # checked, estimated, warmed up, sampled


def test_readings_that_were_not_written_are_an_error() -> None:
    one = Case("no cycles", double_only, fake_gpu.with_cycles(64), 1, 4, reads="cycles", unit="cycles")
    assert "cycles should hold cycles, and was not written everywhere" in measured(one)["error"]


def double_only(src: np.ndarray, dst: np.ndarray, cycles: np.ndarray) -> None:
    dst[...] = 2 * src


def test_the_ceiling_is_a_copy_or_a_library_product() -> None:
    one = case(double)
    for kind, name, us in (("device_copy", "device copy", 9.0), ("sum", "fake.sum", 6.0)):
        row = measured(one, kind)
        assert row["ceiling"] == name
        assert row["ratio"] == pytest.approx(us / row["us"][1], abs=1e-4)
        assert set(row["ceilings"]) == {"device copy", name, *(["slow.sum"] if kind == "sum" else [])}
    assert "ratio" not in measured(one)
    assert "ratio" not in measured(replace(one, useful_bytes=0), "device_copy")


@pytest.mark.parametrize(
    ("got", "expected", "tolerance", "complaint"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, 2.0]), 0.5, r"1 of 2 elements, first at \[1\]: got nan"),
        (np.array([1.0, 2.1]), np.array([1.0, 2.0]), 0.0, r"1 of 2 elements, first at \[1\]: got 2.1"),
        (np.array([1.0, 2.1]), np.array([1.0, 2.0]), 0.1, ""),
        (np.array([1.0, 2.3]), np.array([1.0, 2.0]), 0.1, "got 2.3, expected 2.0"),
        (np.array([[1, 2], [3, 5]]), np.array([[1, 2], [3, 4]]), 0.0, r"first at \[1, 1\]: got 5, expected 4"),
        (np.zeros(2, np.float32), np.zeros(2), 0.0, r"dst is float32\(2,\), the reference float64"),
        (np.array([1 + 1j]), np.array([1 + 2j]), 0.1, "1 of 1 elements"),
        (np.array([(1, 2.0)], "i4,f4"), np.array([(1, 3.0)], "i4,f4"), 0.0, r"dst\.f1 differs"),
        (np.array([np.nan]), np.array([np.nan]), 0.0, ""),
    ],
)  # fmt: skip
def test_arrays_are_compared(got: Any, expected: Any, tolerance: float, complaint: str) -> None:
    problem = Problem("any", lambda rng: {}, lambda values: {}, relative_tolerance=tolerance)
    if not complaint:
        compare("dst", got, expected, problem)
        return
    with pytest.raises(WrongResult, match=complaint):
        compare("dst", got, expected, problem)


def test_many_elements_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.measure.checking.CHUNK_ELEMS", 7)
    got = np.arange(100.0)
    got[[50, 93]] += 1
    with pytest.raises(WrongResult, match=r"2 of 100 elements, first at \[50\]"):
        compare("dst", got, np.arange(100.0), doubled(1))


def test_the_summary_has_one_row_for_each_figure_and_the_speeds_first(tmp_path: Path) -> None:
    measure(plan_of(tmp_path))
    rows = [as_row(figure) for figure in summarise(tmp_path, "fake", {"doubles": good()})]
    assert [row["id"] for row in rows] == [
        "speed:double",  # the largest problem's fastest case
        "E-90:double (double 256)",
        "E-90:double_slowly (double 256)",
        "E-90:double (double 1024)",
        "E-91:cycles (double 64 in cycles)",
        "E-91:in place (count)",
    ]
    assert rows[0] == {
        "id": "speed:double", "kernel": "double", "gpu": "fake", "value": 0.745, "unit": "GB/s",
        "ceiling": 0.91, "ratio": 0.8182, "stale": False,
    }  # fmt: skip
    assert (rows[4]["value"], rows[4]["unit"], rows[4]["ceiling"]) == (26.0, "cycles", None)
    assert (rows[5]["value"], rows[5]["unit"], rows[5]["ratio"]) == (21.0, "us", 0.2857)


def test_a_changed_kernel_or_launch_makes_a_figure_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(plan_of(tmp_path))

    def stale(experiments: tuple[Experiment, ...]) -> list[str]:
        return [figure.id for figure in summarise(tmp_path, "fake", {"doubles": experiments}) if figure.stale]

    first, second = good()
    assert stale((first, second)) == []
    relaunched = replace(first, timed=(replace(first.timed[0], grid=9), *first.timed[1:]))
    assert stale((relaunched, second)) == ["E-90:double (double 256)"]
    assert stale((first,)) == ["E-91:cycles (double 64 in cycles)", "E-91:in place (count)"]
    monkeypatch.setattr(fake_gpu, "FACTOR", 3)  # a constant that three of the kernels use
    assert stale((first, second)) == [
        "speed:double",
        "E-90:double (double 256)",
        "E-90:double (double 1024)",
        "E-91:cycles (double 64 in cycles)",
    ]


def test_a_topic_that_cannot_start_says_why(tmp_path: Path) -> None:
    (outcome,) = measure(plan_of(tmp_path, source=lambda topic: "tests.fake_gpu:no_such_function"))
    assert len(outcome.failed) == 5
    assert "AttributeError" in outcome.failed[0]


@pytest.mark.parametrize(
    ("name", "short"),
    [("NVIDIA L4", "l4"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA GeForce GTX 1660", "gtx-1660"), ("", "gpu")],
)  # fmt: skip
def test_a_gpu_has_a_short_name(name: str, short: str) -> None:
    assert where.short_name(name) == short


class FakeLibrary:
    """A driver that gives one status."""

    def __init__(self, status: int) -> None:
        self.status = status

    def cuInit(self, flags: int) -> int:
        return self.status


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (100, "The NVIDIA driver finds no GPU. Without a GPU, `lanewise measure --summary` shows"),
        (
            803,
            "its kernel module and its libraries are of different versions, or it is still starting. Reboot",
        ),
        (999, "cuInit gives 999. Try nvidia-smi"),
    ],
)
def test_a_driver_that_does_not_start_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, status: int, sentence: str
) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: FakeLibrary(status))
    assert sentence in where.why_unfit()


def test_no_driver_and_a_new_numpy_are_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr("ctypes.CDLL", missing)
    assert "No NVIDIA driver is installed" in where.why_unfit()
    monkeypatch.setattr("importlib.metadata.version", lambda package: "2.5.1")
    assert "numpy 2.5.1 is installed" in where.why_unfit()
    assert where.why_unfit().endswith("Run: pip install 'numpy<2.5'")


class FakeCuda:
    """What is asked of numba.cuda, for a GPU of a given capability whose launches fail with a given text."""

    def __init__(self, capability: tuple[int, int], error: str) -> None:
        self.capability, self.error = capability, error

    def get_current_device(self) -> Any:
        class Device:
            name = b"Fake GPU"
            compute_capability = self.capability

        return Device

    def device_array(self, n: int, dtype: Any) -> np.ndarray:
        return np.zeros(n, dtype)

    def jit(self, function: Any) -> Mapping[Any, Any]:
        raise RuntimeError(self.error)


@pytest.mark.parametrize(
    ("capability", "error", "sentence"),
    [
        ((6, 1), "", r"Fake GPU has compute capability 6\.1; the course's kernels need 7\.5 \(a T4\) or newer"),
        ((9, 0), "[222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION", r"newer than the driver"),
        ((9, 0), "out of luck", r"A kernel does not run here: out of luck\. Run: lanewise doctor"),
    ],
)  # fmt: skip
def test_an_old_gpu_and_a_new_toolkit_are_sentences(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], error: str, sentence: str
) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda name: FakeLibrary(0))
    monkeypatch.setattr(where, "_numba_cuda", lambda: FakeCuda(capability, error))
    monkeypatch.setattr(where, "driver_version", lambda: "580.1")
    with pytest.raises(Unfit, match=sentence):
        where.require_gpu()


@pytest.mark.gpu
def test_a_kernel_is_measured_on_the_gpu_of_this_machine(tmp_path: Path) -> None:
    from lanewise.experiments import experiments_of

    (experiment,) = [one for one in experiments_of("padding") if one.id == "E-04"]
    small = replace(experiment, timed=experiment.counted[1:3], ceiling=Ceiling("device_copy"))
    from lanewise.measure.gpu import NumbaGpu

    values = Values.of(small.timed[0].problem)
    rows = list(measure_group(NumbaGpu(), values, small.timed, "device_copy", Settings(5, 2)))
    for row in rows:
        assert "error" not in row, row
        assert 0 < row["ratio"] < 2
