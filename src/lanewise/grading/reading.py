"""An answer as it stands in a cell: values and functions are read from its text; nothing is executed."""

from __future__ import annotations

import ast
from typing import Any

from lanewise.errors import Error
from lanewise.labs import Answers, Lab
from lanewise.trace import functions_in

# What the first cells of every lab import, by the names that they give it; the lab's own numbers are added.
IMPORTS = """\
import math
import numpy as np
from numba import (
    boolean, cuda, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64, void
)
from lanewise import ptx
"""
LONGEST_CELL = 20_000  # characters; a solution has less than a tenth of that


class Refused(Error):
    """A cell holds something that is not read: too much of it, no literal, or no Python."""


class NoAnswer(Error):
    """A cell does not define what its task asks for."""


def read_answer(lab: Lab, task_name: str, text: str) -> Any:
    """The answer to a task in the text of its cell: a dictionary of literals, or a function to be traced.

    `...` among the values stays as it is. Raises `NoAnswer` if the cell defines no such name, `Refused` for
    what is no literal or does not parse, and `UnsupportedConstruct` for source that is no Python.
    """
    if len(text) > LONGEST_CELL:
        raise Refused(
            f"{task_name}: the cell has {len(text):,} characters; at most {LONGEST_CELL:,} are read."
        )
    if isinstance(lab.task(task_name), Answers):
        return _dictionary(task_name, text)
    prelude = IMPORTS + "".join(f"{name} = {value!r}\n" for name, value in lab.given.items())
    functions = functions_in(text, f"<{task_name}>", prelude)
    if task_name not in functions:
        raise NoAnswer(f"{task_name}: its cell defines no function of that name. Write: def {task_name}(...)")
    return functions[task_name]


def _dictionary(name: str, text: str) -> Any:
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refused(f"{name}: the cell does not parse: {error}.") from None
    for statement in reversed(statements):
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in statement.targets
        ):
            return _literal(name, statement.value)
    raise NoAnswer(f"{name}: its cell does not assign that name. Write: {name} = {{...}}")


def _literal(name: str, node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Refused(
            f"{name}: answers are read, not executed. Write plain numbers or words in quotes, nothing that"
            " has to be calculated."
        ) from None
