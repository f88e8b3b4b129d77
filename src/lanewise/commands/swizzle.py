"""`lanewise find` and `lanewise swizzle`: a layout for given accesses, and what a given one does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lanewise.errors import InvalidLayout
from lanewise.search import LayoutSearch, along_rows, down_columns, matrix_loads, search_layouts
from lanewise.swizzles import Swizzle

PATTERNS = {"rows": along_rows, "columns": down_columns}
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i16": 2, "i32": 4, "u32": 4, "i64": 8}
_STATEMENT = re.compile(r"(return|\w+ =) [\w\s()+*/%^&|<>-]+")
_TILE = re.compile(r"(\d+)x(\d+):([a-z]+\d+)")


def found(tile: str, accesses: Sequence[str]) -> LayoutSearch:
    """Search layouts for a tile `64x32:f16` and accesses: `st.shared.b128:rows`, `ldmatrix.x4:matrices`.

    Raises `InvalidLayout` for another form, and what `search_layouts` raises.
    """
    parts = _TILE.fullmatch(tile.strip())
    if parts is None or parts[3] not in BYTES:
        raise InvalidLayout(
            f"tile {tile!r}: write ROWSxCOLUMNS:TYPE, such as 64x32:f16. Types: {', '.join(BYTES)}."
        )
    rows, cols = int(parts[1]), int(parts[2])
    return search_layouts(list(map(_pattern, accesses)), rows, cols, BYTES[parts[3]])


def _pattern(text: str) -> Any:
    instruction, _, how = text.partition(":")
    if how == "matrices" or (not how and instruction.startswith("ldmatrix")):
        return matrix_loads(instruction)
    if how not in PATTERNS:
        raise InvalidLayout(
            f"access {text!r}: write INSTRUCTION:HOW, such as st.shared.b128:rows, ld.shared.b32:columns or"
            " ldmatrix.x4:matrices."
        )
    return PATTERNS[how](instruction, name=text)


def code(search: LayoutSearch) -> str:
    """The best layout as Python to copy into a kernel, and the same line for CUDA C++."""
    python = search.best.python()
    return f"{python}\n\n{cuda(python)}"


def cuda(python: str) -> str:
    """The Python function of a layout as a CUDA C++ device function.

    >>> print(cuda("def tile_index(row, col):\\n    return 33 * row + (col ^ row)"))
    __device__ int tile_index(int row, int col) {
        return 33 * row + (col ^ row);
    }

    Operators bind alike in both languages; `//` of numbers that are not negative is `/`. Raises
    `InvalidLayout` for a function that is more than assignments and a return.
    """
    head, *body = (line.strip() for line in python.splitlines() if line.strip())
    named = re.fullmatch(r"def (\w+)\(([\w, ]+)\):", head)
    if named is None or not body or not all(map(_STATEMENT.fullmatch, body)):
        raise InvalidLayout("this layout has no short form in CUDA C++; use its Python form.")
    names = ", ".join(f"int {name.strip()}" for name in named[2].split(","))
    lines = (line.replace("//", "/") for line in body)
    inner = "\n".join(f"    {'' if line.startswith('return') else 'int '}{line};" for line in lines)
    return f"__device__ int {named[1]}({names}) {{\n{inner}\n}}"


def explained(text: str) -> Swizzle:
    """The swizzle of `3,3,3`, `<3,3,3>` or `Swizzle<3,3,3>`. Raises `InvalidSwizzle`."""
    inner = text.strip().removeprefix("Swizzle").strip("<>() ")
    return Swizzle.from_string(f"Swizzle<{inner}>")
