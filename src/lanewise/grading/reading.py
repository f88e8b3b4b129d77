"""An answer as it stands in a cell: values and functions are read from its text; nothing is executed."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable
from typing import Any

from lanewise.errors import Error
from lanewise.labs import Answers, Lab
from lanewise.trace import functions_in

# What the first cells of every lab import, by the names that they give it; the lab's own numbers are added.
IMPORTS = """\
import math
import numpy as np
from numba import (
    boolean, cuda, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, void
)
from numba.types import float16
from lanewise import ptx
"""
LONGEST_CELL = 20_000  # characters; a solution has less than a tenth of that
LONGEST_CONTEXT = 5 * LONGEST_CELL  # characters of all other cells together
LARGEST_NUMBER = 2**63  # of an answer
LONGEST_WORD = 200  # characters of an answer
_COMMAND = re.compile(r"^[%!].*$", re.MULTILINE)  # a notebook's commands, which are no Python


class Refused(Error):
    """A cell holds something that is not read: too much of it, no literal, or no Python."""


class Unparsable(Refused):
    """A cell is no Python."""


class NoAnswer(Error):
    """A cell does not define what its task asks for."""


def read_answer(lab: Lab, task_name: str, text: str, context: str = "") -> Any:
    """The answer to a task in the text of its cell: a dictionary of literals, or a function to be traced.

    `...` among the values stays as it is. `context` is text of the notebook's other cells: a function may
    use the functions and constants defined there. Raises `NoAnswer` if the cell defines no such name,
    `Unparsable` for what is no Python, `Refused` for what is no literal or too much.
    """
    if len(text) > LONGEST_CELL:
        raise Refused(
            f"{task_name}: the cell has {len(text):,} characters; at most {LONGEST_CELL:,} are read."
        )
    text = _COMMAND.sub("pass", text)
    statements = _parsed(task_name, text)
    if isinstance(lab.task(task_name), Answers):
        return _dictionary(task_name, statements)
    given = "".join(f"{name} = {value!r}\n" for name, value in lab.given.items())
    functions = functions_in(text, f"<{task_name}>", IMPORTS + given + context + given)
    if not any(isinstance(one, ast.FunctionDef) and one.name == task_name for one in statements):
        raise NoAnswer(f"{task_name}: its cell defines no function of that name. Write: def {task_name}(...)")
    if task_name not in functions:
        raise Refused(f"{task_name}: the cell puts something else in the place of its function.")
    return functions[task_name]


def parts_that_parse(texts: Iterable[str]) -> str:
    """The texts of cells as one, without cells that are no Python, or too long."""
    parts: list[str] = []
    room = LONGEST_CONTEXT
    for text in texts:
        plain = _COMMAND.sub("pass", text)
        try:
            if len(plain) <= min(LONGEST_CELL, room):
                _parsed("", plain)
                parts.append(f"{plain}\n")
                room -= len(plain)
        except Unparsable:
            continue
    return "".join(parts)


def _parsed(name: str, text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except SyntaxError as error:
        raise Unparsable(f"{name}: line {error.lineno or 1} is no Python: {error.msg}.") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unparsable(f"{name}: the cell does not parse: {error or 'it is nested too deeply'}.") from None


def _dictionary(name: str, statements: list[ast.stmt]) -> Any:
    for statement in reversed(statements):
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in statement.targets
        ):
            return _literal(name, statement.value)
    raise NoAnswer(f"{name}: its cell does not assign that name. Write: {name} = {{...}}")


def _literal(name: str, node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Refused(
            f"{name}: answers are read, not executed. Write plain numbers or words in quotes, nothing that"
            " has to be calculated."
        ) from None
    for one in value.values() if isinstance(value, dict) else ():
        if isinstance(one, (int, float)) and LARGEST_NUMBER < abs(one) < math.inf:
            raise Refused(f"{name}: an answer is larger than {LARGEST_NUMBER:,}. No right answer is.")
        if isinstance(one, str) and len(one) > LONGEST_WORD:
            raise Refused(f"{name}: an answer has {len(one):,} characters; at most {LONGEST_WORD} are read.")
    return value
