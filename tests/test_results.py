"""Results: what a page shows of a recorded run is what stands in the record, with the GPU and the date."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lanewise as lw
from lanewise import records, results
from lanewise.errors import UnknownRecord

RECORDED = Path(lw.__file__).parent / "recorded" / "h200"


def rows_in_file(file: str, table: str, id: str) -> list[dict[str, Any]]:
    content = json.loads((RECORDED / file).read_text(encoding="utf-8"))
    return [row for row in content[table] if row["experiment"] == id]


def test_every_recorded_experiment_can_be_read() -> None:
    ids = [
        row["id"]
        for topic in records.recorded_topics("h200")
        for slug in (topic, f"{topic}.counters")
        for row in records.record("h200", slug).rows("experiments")
    ]
    assert len(set(ids)) > 50
    for id in ids:
        run = results.experiment("h200", id)
        assert run.question.endswith("?")
        assert run.times or run.counters
        for caption, there in (("caption", run.times), ("counter_caption", run.counters)):
            if there:
                assert "H200" in getattr(run, caption)
                assert id in getattr(run, caption)


def test_times_and_counters_of_one_day_share_a_caption() -> None:
    run = results.experiment("h200", "E-38")
    assert run.full_caption.count("Recorded on an NVIDIA H200") == 1
    assert run.full_caption.endswith("medians of 60 runs; hardware counters read by Nsight Compute (E-38).")
    assert run.provenance is not None
    apart = replace(run, counted_on=replace(run.provenance, date="2026-12-01"))
    assert apart.full_caption == f"{apart.caption} {apart.counter_caption}"


def test_a_row_is_the_row_of_the_file() -> None:
    run = results.experiment("h200", "E-04")
    expected = rows_in_file("padding.json", "times", "E-04")
    assert [dict(row) for row in run.times] == expected
    tiled = next(row for row in expected if row["label"] == "tiled 8192")
    padded = next(row for row in expected if row["label"] == "padded 8192")
    assert run.us("tiled 8192") == tiled["us"][1]
    assert run.gb_per_s("tiled 8192") == tiled["gb_per_s"]
    assert run.ratio("tiled 8192", "padded 8192") == tiled["us"][1] / padded["us"][1]
    assert run.series("us", ["padded 8192", "tiled 8192"]) == [padded["us"][1], tiled["us"][1]]


def test_a_table_names_the_gpu_and_the_date() -> None:
    run = results.experiment("h200", "E-04")
    shown = run.table("us", "gb_per_s", "kernel", labels=["padded 8192", "tiled 8192"], against="padded 8192")
    assert shown.headers == ("case", "time (µs)", "GB/s", "kernel", "time, padded 8192 = 1")
    assert [row[0] for row in shown.rows] == ["padded 8192", "tiled 8192"]
    assert shown.rows[0][-1] == "1.00"
    assert shown.rows[1][-1] == f"{run.ratio('tiled 8192', 'padded 8192'):.2f}"
    assert run.provenance is not None
    for text in (repr(shown), shown._repr_markdown_()):
        assert f"Recorded on an {run.provenance.gpu}, {run.provenance.date}" in text
        assert f"medians of {run.times[0]['n_samples']} runs" in text


def test_counters_come_from_the_counter_record() -> None:
    run = results.experiment("h200", "E-04")
    row = next(
        row
        for row in rows_in_file("padding.counters.json", "counters", "E-04")
        if row["label"] == "tiled 1024"
    )
    wavefronts = row["metrics"]["shared_load_wavefronts"]
    assert run.counter("tiled 1024", "shared_load_wavefronts") == wavefronts
    shown = run.counter_table("shared_load_wavefronts", labels=["tiled 1024"])
    assert shown.headers == ("case", "shared load wavefronts")
    assert shown.rows == (("tiled 1024", f"{wavefronts:,}"),)


def test_the_caption_names_any_gpu_as_one_says_it() -> None:
    run = results.experiment("h200", "E-04")
    assert run.provenance is not None
    older = replace(run, provenance=replace(run.provenance, gpu="Tesla T4"))
    assert older.caption.startswith("Recorded on a Tesla T4, ")


def test_one_label_on_several_problems_needs_the_problem() -> None:
    run = results.experiment("h200", "E-15")
    with pytest.raises(UnknownRecord, match=r"was run on .* Name one with problem="):
        run.us("padded")
    assert run.us("padded", "hgemm 8192x8192x8192") > run.us("padded", "hgemm 4096x4096x4096")


def test_a_quantity_that_was_not_recorded_is_left_empty_in_a_table() -> None:
    run = results.experiment("h200", "E-04")
    assert run.table("tflop_per_s", labels=["copy 1024"]).rows == (("copy 1024", ""),)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: results.experiment("h200", "E-99"), "no 'E-99' on 'h200'; there are .*E-04"),
        (lambda: results.experiment("t4", "E-04"), "'t4' has none"),
        (
            lambda: results.experiment("h200", "E-04").us("unpadded 8192"),
            "no case 'unpadded 8192'; it has 'copy 1024'",
        ),
        (lambda: results.experiment("h200", "E-04").table("speed"), "no quantity 'speed'; there are us"),
        (lambda: results.experiment("h200", "E-04").counter("tiled 1024", "x"), "no counter 'x'; it has"),
        (lambda: results.experiment("h200", "E-04").tflop_per_s("copy 1024"), "no tflop_per_s is recorded"),
        (lambda: results.experiment("h200", "E-04").series("tflop_per_s"), "no tflop_per_s is recorded"),
        (lambda: results.experiment("h200", "E-04").series("speed"), "no quantity 'speed'; there are us"),
        (lambda: results.experiment("h200", "E-02").caption, "was not measured"),
    ],
)
def test_what_is_not_recorded_is_named(ask: Callable[[], Any], words: str) -> None:
    with pytest.raises(UnknownRecord, match=words):
        ask()
