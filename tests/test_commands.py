"""Commands that look at accesses and kernels: what they print, what they refuse, and their exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from lanewise import Error
from lanewise.__main__ import app, main
from lanewise.commands import arguments, explain, swizzle
from lanewise.kernels import padding

FILE = padding.__file__
TILED = ["--grid", "2x2", "--block", "32x8", "--arg", "64x64:f32:random", "--arg", "64x64:f32:nan"]


def run(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def printed(*words: str) -> str:
    done = run(*words)
    assert done.exit_code == 0, (done.output, done.exception)
    return str(done.stdout)


def refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    """What the whole program says on standard error, where it ends with status 2."""
    monkeypatch.setattr("sys.argv", ["lanewise", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    return err.strip()


# One access.


def test_banks_says_what_the_model_says() -> None:
    text = printed("banks", "lane*32 f32")
    assert text.startswith("ld.shared.b32: 32 wavefronts where 1 would do")
    assert "lanes 0..31: 32 words in bank 0" in text
    data = json.loads(printed("banks", "lane*33 f32", "--json"))
    assert (data["schema"], data["wavefronts"], data["excess"]) == (1, 1, 0)
    assert "16 wavefronts" in printed("banks", "lane*32 f32", "--mask", "0xffff", "--store")


def test_sectors_says_what_the_model_says() -> None:
    text = printed("sectors", "lane*3 f32")
    assert "1 request, 12 sectors in 3 lines" in text
    assert "and 4 sectors more" in text
    assert json.loads(printed("sectors", "lane f32", "--base", "16", "--json"))["sectors"] == 5


def test_a_picture_is_written(tmp_path: Path) -> None:
    for command in ("banks", "sectors"):
        path = tmp_path / f"{command}.svg"
        printed(command, "lane*2 f32", "--picture", str(path))
        assert "</svg>" in path.read_text()


@pytest.mark.parametrize("words", [("banks", "lane*1.5 f32"), ("banks", "lane f32", "--mask", "all")])
def test_a_wrong_formula_is_a_sentence_and_status_2(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refused(capsys, monkeypatch, *words).endswith(".")


# A kernel from a file.


def test_trace_prints_the_report_of_a_kernel() -> None:
    text = printed("trace", f"{FILE}:transpose_tiled", *TILED)
    assert "3,968" in text
    assert "32-way" in text


def test_trace_as_json_has_stable_keys() -> None:
    data = json.loads(printed("trace", f"{FILE}:transpose_tiled", *TILED, "--format", "json"))
    assert data["schema"] == 1
    assert data["totals"]["shared"]["load"]["excess"] == 3968
    assert {"line", "source", "instruction", "wavefronts", "sectors"} <= set(data["sites"][0])
    assert set(data) == {
        "schema", "kernel", "grid", "block", "machine", "lowering", "shared_bytes", "sites", "totals",
        "hazards", "warnings", "not_modelled",
    }  # fmt: skip


def test_trace_writes_a_page(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert printed("trace", f"{FILE}:transpose_padded", *TILED, "--format", "html", "-o", str(path)) == ""
    assert path.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("kernel", "fail_on", "status"),
    [
        ("transpose_tiled", "excess,hazards", 1),
        ("transpose_tiled", "hazards", 0),
        ("transpose_naive", "sectors", 1),
        ("transpose_padded", "excess,sectors,hazards,float64,not-modelled", 0),
    ],
)
def test_fail_on_guards_a_repository(kernel: str, fail_on: str, status: int) -> None:
    done = run("trace", f"{FILE}:{kernel}", *TILED, "--fail-on", fail_on)
    assert done.exit_code == status
    assert ("failed:" in done.stderr) == bool(status)


def test_a_file_is_read_not_executed(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    source = f"from numba import cuda\n__import__('pathlib').Path({str(marker)!r}).touch()\n\n\ndef fill(dst):\n    dst[cuda.grid(1)] = 1\n"
    path = tmp_path / "mine.py"
    path.write_text(source)
    assert "fill" in printed("trace", f"{path}:fill", "--arg", "32:f32:nan")
    assert not marker.exists()
    printed("trace", f"{path}:fill", "--arg", "32:f32:nan", "--import")
    assert marker.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("trace", "nowhere.py:kernel"), "no such file"),
        (("trace", f"{FILE}:transpose"), "it has copy_rows"),
        (("trace", f"{FILE}:transpose_tiled", "--arg", "64x:f32"), "write an array as"),
        (("trace", f"{FILE}:transpose_tiled", "--block", "32y8"), "one to three numbers"),
        (("trace", f"{FILE}:transpose_tiled", "--fail-on", "ache"), "choose among excess"),
        (("trace", f"{FILE}:transpose_tiled", "--format", "xml"), "table, json or html"),
        (("trace", f"{FILE}:transpose_tiled", *TILED, "-o", "/no/where/report"), "cannot be written"),
        (("explain", "nowhere.csv"), "no such file"),
        (("swizzle", "find", "64:f16", "st.shared.b128:rows"), "ROWSxCOLUMNS:TYPE"),
        (("swizzle", "find", "64x32:f16", "st.shared.b128"), "INSTRUCTION:HOW"),
        (("swizzle", "explain", "3,3"), "."),
    ],
)
def test_trouble_is_a_sentence_on_standard_error(
    words: tuple[str, ...],
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert message in refused(capsys, monkeypatch, *words)


# Arguments.


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "total"),
    [
        ("2x3:f32:arange", (2, 3), "float32", 15),
        ("4:i32:ones", (4,), "int32", 4),
        ("4:u8:7", (4,), "uint8", 28),
        ("2x2x2:f64", (2, 2, 2), "float64", 0),
        ("3:float16:2.5", (3,), "float16", 7.5),
    ],
)
def test_an_array_is_described(text: str, shape: tuple[int, ...], dtype: str, total: float) -> None:
    given = arguments.argument(text)
    assert (given.shape, str(given.dtype), given.sum()) == (shape, dtype, total)


def test_scalars_and_random_arrays_are_described() -> None:
    assert arguments.argument("-3") == -3
    assert arguments.argument("0x10") == 16
    assert arguments.argument("2.5:f32") == np.float32(2.5)
    assert isinstance(arguments.argument("3:i32"), np.int32)
    assert np.isnan(arguments.argument("2:f32:nan")).all()
    first, again, other = (arguments.argument("64:f32:random", seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert ((first >= 0) & (first < 1)).all()


@pytest.mark.parametrize(
    "text",
    ["", "x", "4:f99", "4:i32:nan", "4:f32:much", "99999x99999:f64", "300:u8", "2.5:i32", "4:4:4:4", "f32"],
)
def test_a_description_of_nothing_is_refused(text: str) -> None:
    with pytest.raises(arguments.InvalidArgument, match=r"--arg .+\."):
        arguments.argument(text)


@given(st.text(alphabet="0123456789x:.-f32iunarloesz ", max_size=14))
def test_any_description_gives_an_argument_or_an_error_of_ours(text: str) -> None:
    try:
        given_ = arguments.argument(text)
    except Error:
        return
    assert np.asarray(given_).nbytes <= arguments.MOST_BYTES


# Layouts.


def test_swizzle_find_gives_a_layout_and_code_for_both_languages() -> None:
    text = printed("swizzle", "find", "64x32:f16", "st.shared.b128:rows", "ldmatrix.x4:matrices")
    assert "Swizzle<2,3,3> does" in text
    assert "def tile_index(row, col):" in text
    assert "__device__ int tile_index(int row, int col)" in text
    data = json.loads(printed("swizzle", "find", "32x32:f32", "ld.shared.b32:columns", "--json"))
    assert data["candidates"][0]["excess"] == 0


def test_the_code_for_cuda_computes_what_the_python_does() -> None:
    """The translated body is Python again once the types are taken off: same operators, same values."""
    search = swizzle.found("32x32:f32", ["st.shared.b32:rows", "ld.shared.b32:columns"])
    for kind in ("plain", "pad", "swizzle", "xor", "rotation"):
        candidate = search.best_of(kind)
        if candidate is None:
            continue
        body = swizzle.cuda(candidate.python()).splitlines()[1:-1]
        names: dict[str, Any] = {}
        lines = "\n".join(line.replace("int ", "").replace("/", "//").rstrip(";") for line in body)
        exec(f"def index(row, col):\n{lines}", names)
        for row in range(0, 32, 5):
            for col in range(0, 32, 3):
                assert names["index"](row, col) == candidate.layout(row, col)


def test_swizzle_explain_shows_the_bits() -> None:
    forms = [printed("swizzle", "explain", text) for text in ("3,3,3", "<3,3,3>", "Swizzle<3,3,3>")]
    assert len(set(forms)) == 1
    assert "bits 6..8 flip bits 3..5" in forms[0]


# Exports of the profiler.

WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
RAW = f"""\
==PROF== Connected to process 1
"ID","Kernel Name","Grid Size","{WAVEFRONTS}","{SECTORS}","sm__unheard_of.sum"
"","","","","sector",""
"0","transpose_tiled","(2, 2, 1)","4,112","512","3"
"""
DETAILS = f"""\
==PROF== Disconnected from process 1
"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"
"0","transpose_tiled","{WAVEFRONTS}","","4112"
"0","transpose_tiled","{SECTORS}","sector","512"
"0","transpose_tiled","sm__unheard_of.sum","","3"
"""


@pytest.mark.parametrize("text", [RAW, DETAILS, "\ufeff" + DETAILS.replace("\n", "\r\n")])
def test_explain_reads_both_forms_and_compares(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    path.write_text(text, encoding="utf-8", newline="")
    said = printed("explain", str(path), "--trace", f"{FILE}:transpose_tiled", *TILED)
    assert "the trace says 4,096; the unit counted +16." in said
    assert "the trace says 512: the same." in said
    assert "once gld_transactions" in said
    assert "1 other metrics" in said
    data = json.loads(printed("explain", str(path), "--json"))
    assert [one["value"] for one in data["metrics"]] == [4112, 512]
    assert "traced" not in data["metrics"][0]


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "\0\0\0", "Kernel Name,x\n", '"Kernel Name","Metric Name"\n']
)
def test_what_is_no_export_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(explain.InvalidReport, match="ncu --csv"):
        explain.readings(path)


@given(st.text(alphabet='"Kernel Name,Metric Value_\n01', max_size=120))
def test_any_text_gives_readings_or_an_error_of_ours(text: str) -> None:
    try:
        list(explain._read(text))
    except (Error, __import__("csv").Error):
        return


def test_help_names_every_command_with_an_example() -> None:
    text = printed("--help")
    for command in ("banks", "sectors", "trace", "swizzle", "explain", "doctor", "measure"):
        assert command in text
    named: list[tuple[str, ...]] = [("banks",), ("sectors",), ("trace",), ("explain",), ("swizzle", "find")]
    for words in named:
        assert "Example: lanewise" in printed(*words, "--help")
