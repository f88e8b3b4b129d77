"""Turn a kernel's source into a Python generator that yields wherever a thread must wait for others.

    while i < n:                with _loop():
        cuda.syncthreads()          while i < _constant(n):
                                        _step()
                                        yield cuda.syncthreads()

Loops count their iterations, literals become typed numbers, and device functions become generators as well. Positions
of the original source survive, so a frame's current instruction says which expression is being executed.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from types import CodeType
from typing import Any

from tests.oracle.record import KERNEL_FILE_MARK

# Calls at which a thread waits for partners, by attribute name.
WAITS = frozenset(
    (
        "syncthreads",
        "syncthreads_count",
        "syncthreads_and",
        "syncthreads_or",
        "syncwarp",
        "sync",
        "shfl_sync",
        "shfl_up_sync",
        "shfl_down_sync",
        "shfl_xor_sync",
        "all_sync",
        "any_sync",
        "eq_sync",
        "ballot_sync",
        "match_any_sync",
    )
)


def compiled(function: Callable[..., Any], is_device: Callable[[str], bool]) -> CodeType:
    """Compile the rewritten source of a function; `is_device` says which names are device functions."""
    lines, first_line = inspect.getsourcelines(function)
    source = textwrap.dedent("".join(lines))
    tree = ast.parse(source)
    ast.increment_lineno(tree, first_line - 1)
    definition = tree.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    rewritten = _Rewriter(is_device).visit(definition)
    # The unreachable yield makes a generator even of a function that never waits.
    rewritten.body += ast.parse("if False:\n    yield").body
    module = ast.fix_missing_locations(ast.Module([rewritten], []))
    return compile(module, KERNEL_FILE_MARK + (inspect.getsourcefile(function) or "?"), "exec")


class _Rewriter(ast.NodeTransformer):
    def __init__(self, is_device: Callable[[str], bool]) -> None:
        self.is_device = is_device

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, int | float | complex) or isinstance(node.value, bool):
            return node
        return _at(node, ast.Call(ast.Name("_literal", ast.Load()), [node], []))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in WAITS:
            return _at(node, ast.Yield(node))
        if isinstance(node.func, ast.Name) and self.is_device(node.func.id):
            return _at(node, ast.YieldFrom(node))
        return node

    def visit_While(self, node: ast.While) -> ast.With:
        return self._counted(node)

    def visit_For(self, node: ast.For) -> ast.With:
        return self._counted(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.Assign([node.target], node.value or ast.Constant(None)), node)

    def _counted(self, node: ast.While | ast.For) -> ast.With:
        self.generic_visit(node)
        node.body.insert(0, ast.copy_location(ast.Expr(_call("_step")), node))
        return ast.copy_location(ast.With([ast.withitem(_call("_loop"))], [node]), node)


def _call(name: str) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [], [])


def _at(node: ast.expr, replacement: ast.expr) -> ast.expr:
    return ast.copy_location(replacement, node)
