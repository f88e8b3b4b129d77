"""Errors of the tracer: a construct that it does not interpret, and a kernel that does not come to an end."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from lanewise.errors import Error

if TYPE_CHECKING:
    from lanewise.trace.source import Function


class UnsupportedConstruct(Error):
    """A kernel uses something outside the interpreted subset; the message names file, line, construct and way
    out."""


class KernelLimit(Error):
    """A kernel ran past the step, time or memory limit of the tracer."""


class KernelFault(Error):
    """A kernel cannot be traced on: it has no value to go on with, as after reading an unassigned
    variable."""


def refuse(function: Function, node: ast.AST, construct: str, instead: str) -> UnsupportedConstruct:
    """Build the refusal of a construct; `instead` names the nearest supported form, as a sentence."""
    where = function.where(node)
    text = function.text_at(getattr(node, "lineno", 0))
    return UnsupportedConstruct(
        f"{where}: {construct} is not supported in a traced kernel. {instead}\n    {text}"
    )
