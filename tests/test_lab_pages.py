"""Labs on the site: solutions are there unless they are withheld, and every lab is listed."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

import lab_pages
from lanewise.grading.student import BEGIN
from lanewise.labs import load, names
from tools.notebooks import ROOT
from tools.site import BUILT

PAGE = BUILT / "book" / "labs.html"


def page_text(name: str, *, show: bool, folder: str = "labs") -> str:
    """The text of a notebook as it is read for the site."""
    env = SimpleNamespace(note_dependency=lambda path: None)
    app: Any = SimpleNamespace(srcdir=ROOT, config=SimpleNamespace(lanewise_show_solutions=show), env=env)
    content = [(ROOT / folder / f"{name}.ipynb").read_text(encoding="utf-8")]
    lab_pages.add_solutions(app, f"{folder}/{name}", content)
    return content[0]


@pytest.mark.parametrize("name", names())
def test_solutions_are_shown_folded_with_their_verdict(name: str) -> None:
    cells = json.loads(page_text(name, show=True))["cells"]
    added = [cell["source"] for cell in cells if "Solution: `" in cell["source"]]
    assert len(added) == len(load(name).tasks)
    for text, task in zip(added, load(name).tasks, strict=True):
        assert f"Solution: `{task.name}`\n:class: dropdown" in text
        assert "<strong>Passed.</strong>" in text
        assert BEGIN not in text


@pytest.mark.parametrize("name", names())
def test_one_switch_withholds_them(name: str) -> None:
    plain = (ROOT / "labs" / f"{name}.ipynb").read_text(encoding="utf-8")
    assert page_text(name, show=False) == plain
    assert "Solution: `" not in plain


def test_chapters_are_left_as_they_are() -> None:
    plain = (ROOT / "book" / "padding.ipynb").read_text(encoding="utf-8")
    assert page_text("padding", show=True, folder="book") == plain


@pytest.mark.skipif(not PAGE.exists(), reason="the page is not built: run make book")
def test_the_table_of_labs_names_every_lab() -> None:
    text = PAGE.read_text()
    assert [name for name in names() if f"/labs/{name}.html" not in text] == []


@pytest.mark.parametrize("name", names())
def test_the_chapter_of_a_lab_leads_to_it(name: str) -> None:
    text = (ROOT / "book" / f"{load(name).chapter}.ipynb").read_text(encoding="utf-8")
    assert f"[{load(name).title}](../labs/{name}.ipynb)" in text


def test_every_chapter_on_access_patterns_has_a_guided_lab_and_a_challenge() -> None:
    labs = [load(name) for name in names()]
    for chapter in ("banks", "padding", "swizzle", "tensor_cores", "coalescing", "async_pipelines"):
        assert {lab.level for lab in labs if lab.chapter == chapter} == {"guided", "challenge"}
    for study in ("sgemm", "hgemm", "reduction_scan_fft", "layouts_in_ai", "layernorm_gelu", "attention"):
        assert any(lab.chapter == study for lab in labs)
