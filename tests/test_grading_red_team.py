"""Submissions made to cheat, to break or to harm: none is executed, none earns more than it should, each is named.

The guard is `nothing_executed`, which watches the interpreter's own audit events; its test shows that it sees
what it should.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lanewise.grading.marking import Marked, Settings, mark
from lanewise.grading.status import STATUSES
from lanewise.grading.students import Who
from lanewise.grading.submissions import Submission
from lanewise.labs import load, names
from tests.handed_in import (
    DEGREES,
    LAB,
    TRANSPOSE,
    answered,
    cell_of,
    code_cell,
    content_of,
    mark_it,
    nothing_executed,
    solved,
    text_of,
    untouched,
    with_body,
    with_cells,
)

ALL = DEGREES + TRANSPOSE
NO_KINDS: tuple[Any, ...] = (None, 1, [], {}, "raw")
MARKER = "executed-marker"  # what hostile code would leave behind, in the working folder of the test
WRITE = f"open({MARKER!r}, 'w').write('x')"
RIGHT = text_of(solved(), "transpose")


def replaced(old: str, new: str) -> Any:
    assert old in RIGHT
    return answered("transpose", RIGHT.replace(old, new))


def checks_say(text: str) -> Any:
    notebook = untouched()
    for task in ("degrees", "transpose"):
        cell = cell_of(notebook, f"check_{task}")
        cell["source"] = text
        cell["outputs"] = [{"output_type": "execute_result", "data": {"text/plain": "12"}, "metadata": {}}]
    return notebook


def claimed(**metadata: Any) -> Any:
    notebook = solved()
    notebook["metadata"]["lanewise"] = metadata
    return notebook


def without(*tasks: str) -> Any:
    notebook = solved()
    notebook["cells"] = [
        cell for cell in notebook["cells"] if cell not in [cell_of(notebook, task) for task in tasks]
    ]
    return notebook


def as_markdown() -> Any:
    notebook = solved()
    cell_of(notebook, "transpose")["cell_type"] = "markdown"
    return notebook


def twice(text: str) -> Any:
    return with_cells(solved(), code_cell(text, "transpose"))


def format_3() -> Any:
    cells = solved()["cells"]
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source")
    metadata = {"name": "", "lanewise": {"lab": LAB, "seed": 0}}
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": metadata, "worksheets": [{"cells": cells}]}


def answers(**values: str) -> Any:
    right = {"dense": "32", "odd": "1", "even": "2", "wide": "4"} | values
    lines = "".join(f"    {name!r}: {value},\n" for name, value in right.items())
    return answered("degrees", f"degrees = {{\n{lines}}}\n")


# name: (what was handed in, its status, its points: those that it honestly earns)
CASES: dict[str, tuple[Callable[[], Any], str, float]] = {
    # -- fooling the checks
    "monkeypatched_checks": (
        lambda: with_cells(
            untouched(),
            code_cell("import lanewise.labs.lab as l\nl.Lab.judge = lambda *a, **k: 12\nlab.check = print"),
            first=True,
        ),
        "unfinished", 0,
    ),
    "prints_the_expected_text": (
        lambda: with_cells(untouched(), code_cell("print('Passed. transpose: 12 of 12 points.')")),
        "unfinished", 0,
    ),
    "edited_checks": (lambda: checks_say("12"), "unfinished", 0),
    "checks_that_run_something": (lambda: checks_say(WRITE), "unfinished", 0),
    "points_in_the_metadata": (
        lambda: {**untouched(), "score": 16, "metadata": {**untouched()["metadata"], "score": 16}},
        "unfinished", 0,
    ),
    "a_verdict_as_answer": (lambda: answered("degrees", "degrees = lab.judge"), "refused construct", TRANSPOSE),
    "hard_coded_for_the_sizes_shown": (
        lambda: replaced("    tile =", "    if src.shape[0] != 64 and src.shape[0] != 33:\n        return\n    tile ="),
        "ok", DEGREES,
    ),
    "writes_nothing": (lambda: with_body("x = 1"), "ok", DEGREES),
    "changes_its_input": (
        lambda: with_body("i, j = cuda.grid(2)", "if i < src.shape[0] and j < src.shape[1]:", "    src[i, j] = 0"),
        "ok", DEGREES,
    ),
    "copies_the_poison": (
        lambda: with_body("i, j = cuda.grid(2)", "if i < dst.shape[0] and j < dst.shape[1]:", "    dst[i, j] = dst[i, j]"),
        "ok", DEGREES,
    ),
    "no_padding": (lambda: replaced("TILE + 1", "TILE"), "ok", ALL - 3),
    "its_own_tile": (lambda: replaced("PITCH = TILE + 1", "TILE = 16\nPITCH = TILE + 1"), "ok", DEGREES),
    # -- reaching out
    "endless": (lambda: with_body("while True:", "    pass"), "timeout", DEGREES),
    "endless_recursion": (
        lambda: answered("transpose", "def f(x):\n    return f(x)\n\ndef transpose(src, dst):\n    f(1)\n"),
        "refused construct", DEGREES,
    ),
    "calls_itself": (lambda: with_body("transpose(src, dst)"), "refused construct", DEGREES),
    "fork_bomb": (lambda: with_body("import os", "while True:", "    os.fork()"), "refused construct", DEGREES),
    "reads_a_file": (lambda: with_body("x = open('/etc/passwd')"), "refused construct", DEGREES),
    "writes_a_file": (lambda: with_body(WRITE), "refused construct", DEGREES),
    "at_the_top_of_the_cell": (lambda: answered("transpose", f"{WRITE}\n{RIGHT}"), "ok", ALL),
    "in_another_cell": (lambda: with_cells(solved(), code_cell(WRITE), first=True), "ok", ALL),
    "in_a_decorator": (lambda: replaced("@cuda.jit", f"@{WRITE}"), "ok", ALL),
    "in_a_default": (lambda: replaced("(src, dst)", f"(src, dst=print({WRITE}))"), "ok", ALL),
    "in_an_annotation": (lambda: replaced("(src, dst)", f"(src: {WRITE}, dst)"), "ok", ALL),
    "in_a_constant": (lambda: replaced("TILE + 1", WRITE), "refused construct", DEGREES),
    "in_a_class": (
        lambda: with_cells(solved(), code_cell(f"class lab:\n    {WRITE}\n"), first=True), "ok", ALL,
    ),
    "in_an_answer": (lambda: answers(dense=f"{WRITE} and 32"), "refused construct", TRANSPOSE),
    "shell_lines": (lambda: answered("transpose", f"!touch {MARKER}\n%run x\n{RIGHT}"), "ok", ALL),
    "shell_cell": (lambda: answered("transpose", f"%%bash\ntouch {MARKER}\n"), "syntax error", DEGREES),
    "attributes_of_attributes": (
        lambda: with_body("x = ().__class__.__bases__[0].__subclasses__()"), "refused construct", DEGREES,
    ),
    "giant_shared_array": (
        lambda: with_body("t = cuda.shared.array(10 ** 12, float32)"), "refused construct", DEGREES,
    ),
    "giant_local_array": (
        lambda: with_body("t = cuda.local.array(10 ** 9, float32)"), "refused construct", DEGREES,
    ),
    "giant_tuple": (lambda: with_body("t = (1,) * 10 ** 9"), "refused construct", DEGREES),
    # -- unicode
    "homoglyph_name": (lambda: replaced("def transpose", "def tr\u0430nspose"), "missing answer", DEGREES),
    "fullwidth_name": (lambda: replaced("def transpose", "def \uff54ranspose"), "ok", ALL),
    "turned_around": (lambda: replaced("    tile =", "    # \u202e } evil \u2066\n    tile ="), "ok", ALL),
    "nul": (lambda: answered("transpose", f"\x00{RIGHT}"), "syntax error", DEGREES),
    "lone_surrogate": (lambda: answered("transpose", f"# \ud800\n{RIGHT}"), "syntax error", DEGREES),
    # -- answers
    "expressions": (lambda: answers(dense="2 ** 5"), "refused construct", TRANSPOSE),
    "huge_power": (lambda: answers(dense="10 ** 10 ** 10"), "refused construct", TRANSPOSE),
    "huge_power_in_a_kernel": (lambda: with_body("x = 10 ** 10 ** 10"), "ok", DEGREES),
    "huge_number": (lambda: answers(dense="9" * 400), "refused construct", TRANSPOSE),
    "too_many_digits": (lambda: answers(dense="9" * 9000), "syntax error", TRANSPOSE),
    "huge_hexadecimal": (lambda: answers(dense="0x" + "f" * 9000), "refused construct", TRANSPOSE),
    "negative": (lambda: answers(dense="-32"), "ok", ALL - 1),
    "infinite": (lambda: answers(dense="1e999"), "ok", ALL - 1),
    "not_a_number": (lambda: answers(dense="float('nan')"), "refused construct", TRANSPOSE),
    "truth_for_one": (lambda: answers(odd="True"), "ok", ALL - 1),
    "word_for_number": (lambda: answers(odd="'1'"), "ok", ALL - 1),
    "every_number_at_once": (lambda: answers(odd="[1, 2, 4, 32]"), "ok", ALL - 1),
    "complex_number": (lambda: answers(odd="1 + 0j"), "ok", ALL - 1),
    "nested_deeply": (lambda: answers(odd="(" * 150 + "1" + ")" * 150), "ok", ALL),
    "nested_too_deeply": (lambda: answers(odd="[" * 9000 + "]" * 9000), "syntax error", TRANSPOSE),
    "signs_without_end": (lambda: answers(odd="-" * 15_000 + "1"), "syntax error", TRANSPOSE),
    "questions_of_another_lab": (lambda: answers(evil="1"), "faulty", TRANSPOSE),
    "keys_that_are_no_keys": (lambda: answered("degrees", "degrees = {[]: 1}"), "refused construct", TRANSPOSE),
    "no_dictionary": (lambda: answered("degrees", "degrees = 16"), "faulty", TRANSPOSE),
    "too_long": (lambda: answered("transpose", RIGHT + "#" * 3_000_000), "refused construct", DEGREES),
    # -- functions that are none
    "lambda": (lambda: answered("transpose", "transpose = lambda src, dst: None"), "missing answer", DEGREES),
    "rebound": (lambda: answered("transpose", f"{RIGHT}\ntranspose = max"), "refused construct", DEGREES),
    "coroutine": (lambda: answered("transpose", "async def transpose(src, dst):\n    pass"), "missing answer", DEGREES),
    "one_parameter": (lambda: answered("transpose", "def transpose(src):\n    pass"), "faulty", DEGREES),
    "star_parameters": (lambda: answered("transpose", "def transpose(*a):\n    pass"), "faulty", DEGREES),
    "shadowed_cuda": (lambda: answered("transpose", f"import os as cuda\n{RIGHT}"), "refused construct", DEGREES),
    "no_python": (lambda: answered("transpose", "I did not manage this, sorry."), "syntax error", DEGREES),
    "empty_cell": (lambda: answered("transpose", ""), "missing answer", DEGREES),
    # -- cells
    "ten_thousand_cells": (lambda: with_cells(solved(), *[code_cell("transpose += 1")] * 10_000), "ok", ALL),
    "too_many_cells": (lambda: with_cells(solved(), *[code_cell("1")] * 30_000), "unreadable", 0),
    "same_cell_twice": (lambda: twice(RIGHT), "duplicated cell", ALL),
    "stub_behind_the_answer": (lambda: twice(text_of(untouched(), "transpose")), "duplicated cell", ALL),
    "wrong_behind_right": (lambda: twice("def transpose(src, dst):\n    x = 1\n"), "duplicated cell", DEGREES),
    "a_hundred_cells": (
        lambda: with_cells(solved(), *[code_cell(f"def transpose(src, dst):\n    x = {i}\n", "transpose") for i in range(100)]),
        "duplicated cell", DEGREES,
    ),
    "missing_cell": (lambda: without("transpose"), "missing cell", DEGREES),
    "no_task_left": (lambda: without("transpose", "degrees"), "missing cell", 0),
    "markdown_with_the_id": (as_markdown, "missing cell", DEGREES),
    "answer_in_another_cell": (lambda: with_cells(untouched(), code_cell(RIGHT)), "answer elsewhere", TRANSPOSE),
    "cell_without_its_id": (lambda: with_cells(without("transpose"), code_cell(RIGHT)), "missing cell", ALL),
    "two_cells_without_the_id": (
        lambda: with_cells(without("transpose"), code_cell(RIGHT), code_cell(RIGHT.replace("TILE + 1", "TILE"))),
        "missing cell", DEGREES,
    ),
    "helper_in_another_cell": (
        lambda: with_cells(replaced("PITCH = TILE + 1", ""), code_cell("PITCH = TILE + 1"), first=True), "ok", ALL,
    ),
    # -- metadata
    "metadata_of_another_lab": (lambda: claimed(lab="banks_strides", seed=0), "copied metadata", 0),
    "metadata_of_another_variant": (lambda: claimed(lab=LAB, seed=4), "copied metadata", ALL - 1),
    "unknown_lab": (lambda: claimed(lab="../../etc/passwd", seed=0), "wrong lab", 0),
    "lab_that_is_no_name": (lambda: claimed(lab=["a"], seed=0), "metadata lost", ALL),
    "impossible_seed": (lambda: claimed(lab=LAB, seed=-1), "metadata lost", ALL),
    "seed_that_is_true": (lambda: claimed(lab=LAB, seed=True), "metadata lost", ALL),
    "gigantic_seed": (lambda: claimed(lab=LAB, seed=10**400), "metadata lost", ALL),
    "no_metadata": (lambda: claimed(), "metadata lost", ALL),
    "no_id_anywhere": (
        lambda: {**solved(), "cells": [{**cell, "metadata": {}} for cell in solved()["cells"]]}, "metadata lost", ALL,
    ),
    "nothing_at_all": (
        lambda: {"cells": [code_cell("print('hello')")], "metadata": {}, "nbformat": 4}, "metadata lost", 0,
    ),
    # -- files
    "format_3": (format_3, "ok", ALL),
    "cut_off": (lambda: content_of(solved())[:-2000], "unreadable", 0),
    "empty_file": (lambda: b"", "unreadable", 0),
    "no_json": (lambda: b"PK\x03\x04 not a zip either", "unreadable", 0),
    "other_json": (lambda: b'{"cells": 12}', "unreadable", 0),
    "json_number": (lambda: b"9" * 100_000, "unreadable", 0),
    "json_nested_deeply": (lambda: b"[" * 200_000, "unreadable", 0),
    "byte_order_mark": (lambda: b"\xef\xbb\xbf" + content_of(solved()), "ok", ALL),
    "utf_16": (lambda: content_of(solved()).decode().encode("utf-16"), "ok", ALL),
    "latin_1": (lambda: content_of(solved()).replace(b"TILE", b"\xe9\xff"), "unreadable", 0),
    "windows_line_ends": (
        lambda: content_of(solved()).replace(b"\\n", b"\\r\\n"), "ok", ALL,
    ),
    "cells_of_all_kinds": (
        lambda: with_cells(solved(), *[{"cell_type": kind, "source": kind} for kind in NO_KINDS]),
        "ok", ALL,
    ),
    "source_that_is_no_text": (lambda: answered("transpose", 12), "missing answer", DEGREES),
    # -- html
    "script_in_the_code": (
        lambda: replaced("    tile =", "    # </code></pre><script>alert(1)</script>\n    tile ="), "ok", ALL,
    ),
    "script_in_an_answer": (lambda: answers(odd="'<img src=x onerror=alert(1)>'"), "ok", ALL - 1),
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Imports, compiled counting code and fonts: what marking loads on first use is loaded."""
    folder = tmp_path_factory.mktemp("warm")
    for notebook in (solved(), answered("transpose", RIGHT.replace("TILE + 1", "TILE"))):
        mark_it(folder / "warm.ipynb", notebook, Settings(feedback=True))
    for name in names():
        load(name)


def marked(name: str, tmp_path: Path) -> Marked:
    given = CASES[name][0]()
    path = tmp_path / "lab.ipynb"
    path.write_bytes(given if isinstance(given, bytes) else content_of(given))
    content = path.read_bytes()
    with nothing_executed():
        result = mark(Submission("lab.ipynb", path, who=Who("ada")), Settings(seconds=8, feedback=True))
    assert path.read_bytes() == content
    return result


@pytest.mark.parametrize("name", CASES)
def test_is_not_executed_and_earns_what_it_should(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, status, points = CASES[name]
    started = time.monotonic()
    row = marked(name, tmp_path)
    assert time.monotonic() - started < 10
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lab.ipynb"]
    assert row.status == status, row
    assert row.status in STATUSES
    assert row.score == points, row
    assert row.message
    assert "<script" not in row.page
    assert "<img" not in row.page
    assert "\u202e" not in row.page + row.message


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 30


def test_the_guard_sees_what_is_executed(tmp_path: Path) -> None:
    for deed in (
        lambda: exec("1"),
        lambda: eval("1"),
        lambda: compile("1", "<x>", "exec"),
        lambda: (tmp_path / "x").write_text("x"),
        lambda: os.system("true"),
    ):
        with pytest.raises(AssertionError), nothing_executed():
            deed()
    with nothing_executed():
        import ast

        ast.parse("1")
