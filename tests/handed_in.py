"""Notebooks as students hand them in, made from a lab's source, and a guard that sees anything executed."""

from __future__ import annotations

import builtins
import copy
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import nbformat

from lanewise.grading.marking import Marked, Settings, mark
from lanewise.grading.student import key_notebook, student_notebook
from lanewise.grading.students import Who
from lanewise.grading.submissions import Submission
from tools.labs import source_path
from tools.notebooks import ROOT, read

LAB = "padding_transpose"
DEGREES, TRANSPOSE = 4, 12  # points of its two tasks
Json = dict[str, Any]


@cache
def _made(lab: str, seed: int, solved: bool) -> str:
    make = key_notebook if solved else student_notebook
    return str(nbformat.writes(make(read(source_path(lab)), seed)))


def solved(lab: str = LAB, seed: int = 0) -> Json:
    """A notebook with every answer right."""
    notebook: Json = json.loads(_made(lab, seed, True))
    return notebook


def untouched(lab: str = LAB, seed: int = 0) -> Json:
    """A notebook as it was given."""
    notebook: Json = json.loads(_made(lab, seed, False))
    return notebook


def code_cell(text: str, grade_id: str = "") -> Json:
    """A code cell, with a part in grading if it is named."""
    metadata = {"nbgrader": {"grade_id": grade_id, "solution": True}} if grade_id else {}
    return {"cell_type": "code", "metadata": metadata, "source": text, "outputs": [], "execution_count": None}


def cell_of(notebook: Json, task: str) -> Json:
    """The cell of a task."""
    found: Json = next(
        cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") == task
    )
    return found


def text_of(notebook: Json, task: str) -> str:
    """The text of a task's cell."""
    source = cell_of(notebook, task)["source"]
    return source if isinstance(source, str) else "".join(source)


def answered(task: str, text: Any, base: Json | None = None) -> Json:
    """A solved notebook, or another, with another text in the cell of one task."""
    notebook = copy.deepcopy(base) if base else solved()
    cell_of(notebook, task)["source"] = text
    return notebook


def with_body(*lines: str) -> Json:
    """A solved notebook whose kernel is these lines instead."""
    body = "\n".join(f"    {line}" for line in lines)
    return answered("transpose", f"@cuda.jit\ndef transpose(src, dst):\n{body}\n")


def with_cells(notebook: Json, *cells: Json, first: bool = False) -> Json:
    """A notebook with more cells."""
    notebook = copy.deepcopy(notebook)
    notebook["cells"] = [*cells, *notebook["cells"]] if first else [*notebook["cells"], *cells]
    return notebook


def content_of(notebook: Any) -> bytes:
    """A notebook's file. Lone surrogates are escaped, as JSON can."""
    return json.dumps(notebook).encode("ascii")


def mark_it(path: Path, content: Any, settings: Settings | None = None, student: str = "ada") -> Marked:
    """Write a notebook, or bytes, to a file, and mark that."""
    path.write_bytes(content if isinstance(content, bytes) else content_of(content))
    return mark(Submission(path.name, path, who=Who(student)), settings or Settings(seconds=20))


# -- the guard --------------------------------------------------------------------------------------

# Things that only code can do which is executed.
_FORBIDDEN = (
    "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.remove", "os.rename",
    "os.mkdir", "subprocess.Popen", "socket.connect", "socket.bind", "shutil.rmtree", "pty.spawn",
)  # fmt: skip
_OURS = (str(ROOT / "src"), sys.prefix, sys.base_prefix, "<frozen", "<__array_function__")
_seen: list[str] = []
_watching = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    if event in _FORBIDDEN:
        _seen.append(f"{event} {arguments!r:.100}")
    elif event == "exec":
        place = getattr(arguments[0], "co_filename", "?")
        if not place.startswith(_OURS):
            _seen.append(f"exec of code from {place}")
    elif event == "open" and _writes(arguments):
        _seen.append(f"open {arguments!r:.100}")


def _writes(arguments: tuple[Any, ...]) -> bool:
    _, mode, flags = arguments
    for_writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    return any(letter in (mode or "") for letter in "wax+") or bool((flags or 0) & for_writing)


sys.addaudithook(_hook)


@contextmanager
def nothing_executed() -> Iterator[None]:
    """Fail if, in this block, code is compiled to run, executed, or reaches for files and processes.

    The interpreter's own audit events are watched, which no way of calling avoids; `compile` may only parse.
    """
    global _watching
    real = builtins.compile

    def only_parse(source: Any, filename: Any, mode: str, flags: int = 0, *rest: Any, **named: Any) -> Any:
        if not flags & 0x400:  # ast.PyCF_ONLY_AST
            _seen.append(f"compile of {filename}")
        return real(source, filename, mode, flags, *rest, **named)

    _seen.clear()
    builtins.compile = only_parse  # type: ignore[assignment]
    _watching = True
    try:
        yield
    finally:
        _watching = False
        builtins.compile = real
    assert not _seen, _seen
