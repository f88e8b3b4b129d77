"""The page about the state of the course: what it counts, and that it tells a stale record from a current one."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import status_data
from lanewise.records import record
from tools.notebook_rules import TIMES_GPU_TAG, UNCOMPARED_TAGS
from tools.site import BUILT

PAGE = BUILT / "book" / "status.html"


def test_a_notebook_is_counted(tmp_path: Path) -> None:
    drawing = new_output("display_data", {"image/svg+xml": "<svg/>", "text/plain": "A drawing."})
    printed = new_output("stream", text="1\n")
    live = ["times-gpu", "nbval-ignore-output"]
    cells = [
        new_markdown_cell("# Trial"),
        new_code_cell("draw()", outputs=[printed, drawing]),
        new_code_cell("time()\nprint()", outputs=[printed], metadata={"tags": live}),
        new_code_cell("x = 1"),
    ]
    nbformat.write(new_notebook(cells=cells), str(tmp_path / "trial.ipynb"))
    counted = status_data.notebook(tmp_path / "trial.ipynb")
    assert (counted.n_cells, counted.n_code_cells, counted.n_figures, counted.n_compared) == (4, 3, 1, 2)
    assert counted.uncompared == ("time()",)


def test_the_tags_are_those_of_the_rules_for_notebooks() -> None:
    assert UNCOMPARED_TAGS | {TIMES_GPU_TAG} == status_data.UNCOMPARED


def test_records_are_listed_and_current() -> None:
    found = list(status_data.records())
    assert {one.table for one in found} == {"times", "counters"}
    assert {"padding", "hgemm"} <= {one.topic for one in found if one.gpu == "h200"}
    assert all(one.n_rows and one.days for one in found)
    assert [one for one in found if one.n_stale] == []


@pytest.mark.parametrize("key", ["hash", "label", "grid", "problem", "scalars"])
def test_a_stale_row_is_found(key: str) -> None:
    row = dict(record("h200", "padding").rows("times")[0])
    assert status_data.n_stale("padding", [row]) == 0
    assert status_data.n_stale("padding", [{**row, key: "another"}]) == 1


def test_rows_of_a_topic_that_is_gone_are_stale() -> None:
    rows = record("h200", "padding").rows("times")
    assert status_data.n_stale("nowhere", rows) == len(rows)


def test_versions_are_named_and_a_missing_package_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_data, "PACKAGES", ("numpy", "no-such-package"))
    found = status_data.versions()
    assert re.fullmatch(r"\d+\.\d+.*", found["numpy"])
    assert found["no-such-package"] == "not installed"


def test_the_day_can_be_set_so_that_builds_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert status_data.build_day() == "1970-01-02"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert status_data.build_day() >= "2026"


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not built: run make book")
def test_the_built_page_has_its_three_tables() -> None:
    html = PAGE.read_text()
    assert html.count("<table") == 3
    assert re.search(r"\d+ notebooks, [\d,]+ compared outputs, \d+ cells? not compared", html)
