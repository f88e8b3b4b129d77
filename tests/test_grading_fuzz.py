"""Malformed notebooks, made at random: nothing comes out but a row with a status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanewise.grading import plain
from lanewise.grading.locate import UnknownSubmission
from lanewise.grading.marking import Marked, Settings, mark_content
from lanewise.grading.status import STATUSES
from lanewise.grading.students import Who, who
from lanewise.grading.submissions import Submission, Unreadable
from lanewise.grading.table import COLUMNS, as_csv
from lanewise.labs import load
from tests.handed_in import LAB, cell_of, content_of, solved

TEXT = st.text(max_size=30)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(
    [
        "cells",
        "metadata",
        "lanewise",
        "lab",
        "seed",
        "nbgrader",
        "grade_id",
        "source",
        "cell_type",
        "worksheets",
        "input",
    ]
)
NAMES = st.sampled_from([LAB, "degrees", "transpose", "code", "markdown", "../x"])
LIKE_A_NOTEBOOK = st.recursive(
    SCALARS | NAMES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | TEXT, inner, max_size=5),
    max_leaves=25,
)
QUICK = Settings(seconds=5, feedback=True)


def row_of(content: bytes) -> Marked | Exception:
    try:
        return mark_content(Submission("x.ipynb", Path("x.ipynb"), who=Who("x")), content, QUICK)
    except (Unreadable, UnknownSubmission) as error:
        return error


def assert_is_a_row(result: Marked | Exception) -> None:
    if isinstance(result, Exception):
        assert str(result)
        return
    assert result.status in STATUSES
    assert result.status != "not graded", result
    assert 0 <= result.score <= result.max_score
    assert result.message
    assert len(as_csv([result]).splitlines()) == 2


@given(LIKE_A_NOTEBOOK | ANYTHING)
@settings(max_examples=150, deadline=None)
def test_any_json(data: Any) -> None:
    assert_is_a_row(row_of(json.dumps(data).encode()))


@given(st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_bytes(content: bytes) -> None:
    assert_is_a_row(row_of(content))


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_notebook_with_something_replaced(data: st.DataObject) -> None:
    """Walk from a solved notebook to some part of it and put anything there."""
    notebook = solved()
    at: Any = notebook
    for _ in range(data.draw(st.integers(0, 4))):
        keys = list(at) if isinstance(at, dict) else range(len(at)) if isinstance(at, list) else []
        inner = [key for key in keys if isinstance(at[key], (dict, list)) and at[key]]
        if not inner:
            break
        at = at[data.draw(st.sampled_from(inner))]
    keys = list(at) if isinstance(at, dict) else list(range(len(at)))
    at[data.draw(st.sampled_from(keys))] = data.draw(ANYTHING | NAMES)
    assert_is_a_row(row_of(content_of(notebook)))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_file_that_was_cut_and_changed(data: st.DataObject) -> None:
    content = bytearray(content_of(solved()))
    start = data.draw(st.integers(0, len(content) - 1))
    content[start : start + data.draw(st.integers(0, 20))] = data.draw(st.binary(max_size=20))
    assert_is_a_row(row_of(bytes(content)))


@given(
    st.text(alphabet="()[]{}:=+-*.,'\"#@\\\n abdefgilnrsuw01%!\x00é", max_size=200),
    st.sampled_from(["degrees", "transpose"]),
)
@settings(max_examples=150, deadline=None)
def test_any_text_in_a_cell(text: str, task: str) -> None:
    notebook = solved()
    heads = {"degrees": "degrees = ", "transpose": "def transpose(src, dst):\n    "}
    cell_of(notebook, task)["source"] = heads[task] + text
    result = row_of(content_of(notebook))
    assert isinstance(result, Marked)
    assert_is_a_row(result)
    assert result.score >= load(LAB).points - load(LAB).task(task).points


@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_any_path_has_a_student_and_a_safe_file_name(parts: list[str]) -> None:
    assert isinstance(who(parts).student, str)
    name = plain.file_name("/".join(parts))
    assert name
    assert not set(name) & set('/\\:*?"<>|\x00\n')
    assert not name.startswith(".")


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_no_cell_of_the_table_is_a_formula(text: str) -> None:
    cell = plain.cell(text)
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert "\n" not in cell
    cell.encode()
    row = dict.fromkeys(COLUMNS, text) | {"score": 0.0, "max_score": 0.0}
    assert len(as_csv([Marked(**row)]).splitlines()) == 2  # type: ignore[arg-type]
