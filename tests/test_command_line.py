"""The command line on a machine with no GPU: what works, and the sentences for what does not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lanewise import __main__ as command_line
from lanewise.experiments import Experiment
from lanewise.measure import measure
from tests.fake_gpu import good
from tests.test_measure import plan_of

SOURCE = Path(__file__).parents[1] / "src"


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit status, output and errors of `lanewise ...` in a process of its own."""
    command = [sys.executable, "-m", "lanewise", *arguments]
    environment = {"PYTHONPATH": str(SOURCE), "COLUMNS": "200", "PATH": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def test_without_a_gpu_measuring_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("measure", "counters"):
        status, out, err = run(command, "--topic", "padding")
        if "recorded" in out:
            pytest.skip("this machine has a GPU")
        assert status == 2
        assert "Traceback" not in err
        assert "Without a GPU, `lanewise measure --summary` shows" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["measure"], "Say what to measure: --all, --topic NAME or --only E-04."),
        (["measure", "--topic", "no-topic"], "There is no topic 'no-topic'. There are: "),
        (
            ["counters", "--topic", "padding", "--only", "E-99"],
            "There is no experiment 'E-99'. There are: E-04",
        ),
        (["reconcile", "--topic", "nothing"], "There is no topic 'nothing'."),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["lanewise", *arguments])
    with pytest.raises(SystemExit) as ended:
        command_line.main()
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err.replace("\n", " ")


def test_the_summary_is_json_with_the_eight_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(plan_of(tmp_path))

    def only_doubles(*_: object) -> dict[str, tuple[Experiment, ...]]:
        return {"doubles": good()}

    monkeypatch.setattr(command_line, "_chosen", only_doubles)
    done = CliRunner().invoke(command_line.app, ["measure", "--summary", "--json", "--out", str(tmp_path)])
    assert done.exit_code == 0
    rows = json.loads(done.stdout)
    assert len(rows) == 6
    for row in rows:
        assert list(row) == ["id", "kernel", "gpu", "value", "unit", "ceiling", "ratio", "stale"]
    assert {row["gpu"] for row in rows} == {"fake"}
    done = CliRunner().invoke(command_line.app, ["measure", "--summary", "--out", str(tmp_path)])
    assert "speed:double" in done.stdout
    done = CliRunner().invoke(command_line.app, ["measure", "--summary", "--out", str(tmp_path / "empty")])
    assert "No times are recorded in" in done.stdout


def test_the_packages_own_summary_can_be_read() -> None:
    status, out, _ = run("measure", "--summary", "--json")
    assert status == 0
    assert isinstance(json.loads(out), list)


def test_the_doctor_says_what_works_and_what_to_do() -> None:
    status, out, _ = run("doctor")
    assert status == 0
    assert "numpy" in out.splitlines()[0]
    for what in ("launch kernels on a GPU", "read hardware counters", "read machine code with no GPU"):
        assert what in out


def test_without_typer_the_next_step_is_said() -> None:
    program = "import sys; sys.modules['typer'] = None; import runpy; runpy.run_module('lanewise', run_name='__main__')"
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "The command line needs typer, which is missing. Run: pip install typer rich\n"
