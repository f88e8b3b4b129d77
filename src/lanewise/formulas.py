"""An access written as a formula of the lane, such as `lane*33 f32`, for the command line and in haste.

    from_text("lane*33 f32")              # lane l loads float 33 l of shared memory
    from_text("(lane//8)*64 + lane%8 f32x4", op="store", space="global")

The expression counts elements of the type; `f32x4` is one access of four floats, which begins at element
4 times the expression, as `float4` arrays are indexed. The text is parsed, never executed: it may hold whole
numbers, `lane`, parentheses and the operators + - * // % ^ & | << >>.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

from lanewise.access import WarpAccess
from lanewise.errors import InvalidAccess
from lanewise.instructions import INSTRUCTIONS
from lanewise.machine import FULL_MASK

LONGEST = 500  # characters
LARGEST = 2**62  # no number on the way may be larger
LANES = 32

ELEMENT_BYTES = {
    "f16": 2, "bf16": 2, "f32": 4, "f64": 8,
    "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "b8": 1, "b16": 2, "b32": 4, "b64": 8, "b128": 16,
}  # fmt: skip
_TYPE = re.compile(r"(?P<expression>.+?)\s+(?P<element>[a-z]+\d+)(?:x(?P<width>\d+))?\s*", re.DOTALL)
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


class InvalidFormula(InvalidAccess):
    """A text that is not a formula of the lane with a type."""


def from_text(
    text: str, *, op: str = "load", space: str = "shared", base_address: int = 0, active_mask: int = FULL_MASK
) -> WarpAccess:
    """One warp access from its text.

    `op` is load or store, `space` shared or global; `base_address` is in bytes, bit `l` of `active_mask` says
    whether lane `l` takes part. Raises `InvalidFormula` with what is allowed, and `InvalidAccess` for
    addresses that the instruction cannot have.

    >>> from_text("lane*2 f64").addresses[:3]
    (0, 16, 32)
    >>> from_text("lane f32x4", op="store", space="global").instruction
    'st.global.b128'
    """
    found = _TYPE.fullmatch(text.strip())
    if found is None or found["element"] not in ELEMENT_BYTES:
        raise InvalidFormula(
            f"{text!r}: write a formula of the lane, a space and a type, such as 'lane*33 f32'. Types:"
            f" {', '.join(ELEMENT_BYTES)}, and f32x4 for four at once."
        )
    width = int(found["width"] or 1)
    n_bytes = ELEMENT_BYTES[found["element"]] * width
    instruction = instruction_for(op, space, n_bytes)
    index = parsed(found["expression"])
    addresses = tuple(base_address + n_bytes * index(lane) for lane in range(LANES))
    return WarpAccess(instruction, addresses, active_mask)


def mask_from_text(text: str) -> int:
    """Active lanes from a number such as `0xffff`; bit `l` is lane `l`. Raises `InvalidFormula`."""
    try:
        return int(text, 0)
    except ValueError:
        raise InvalidFormula(f"mask {text!r}: write 32 bits as a number, such as 0xffff.") from None


def instruction_for(op: str, space: str, n_bytes: int) -> str:
    """The plain load or store of so many bytes for each lane. Raises `InvalidFormula` if there is none."""
    short = {"load": "ld", "store": "st"}
    if op not in short or space not in ("shared", "global"):
        raise InvalidFormula(f"got {op!r} of {space!r} memory; op is load or store, memory shared or global.")
    name = f"{short[op]}.{space}.b{8 * n_bytes}"
    if name not in INSTRUCTIONS:
        raise InvalidFormula(f"a lane cannot {op} {n_bytes} bytes at once; 1, 2, 4, 8 or 16 are possible.")
    return name


def parsed(expression: str) -> Callable[[int], int]:
    """A formula as a function of the lane. Raises `InvalidFormula`, now or when it is called.

    >>> parsed("lane ^ (lane >> 2)")(13)
    14
    """
    if len(expression) > LONGEST:
        raise InvalidFormula(f"the formula has {len(expression):,} characters; at most {LONGEST} are read.")
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidFormula(f"{expression!r} is no formula; write such as lane*33 + 1.") from None
    for node in ast.walk(tree):
        _require_known(node)
    return lambda lane: _value(tree, lane)


def _require_known(node: ast.AST) -> None:
    if isinstance(node, ast.Name) and node.id != "lane":
        raise InvalidFormula(f"{node.id!r} has no meaning here; the one name is lane.")
    if isinstance(node, ast.Constant) and type(node.value) is not int:
        raise InvalidFormula(f"{node.value!r} is no whole number.")
    known = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.expr_context, ast.USub, ast.UAdd)
    if not isinstance(node, (*known, *_OPERATORS)):
        raise InvalidFormula(
            f"{type(node).__name__} is not read in a formula; use + - * // % ^ & | << >> and parentheses."
        )


def _value(node: ast.expr, lane: int) -> int:
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, lane), _value(node.right, lane)
        if isinstance(node.op, (ast.LShift, ast.RShift)) and not 0 <= right < 64:
            raise InvalidFormula(f"lane {lane}: a shift by {right}; shift by 0 to 63.")
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and right == 0:
            raise InvalidFormula(f"lane {lane}: a division by zero.")
        result = _OPERATORS[type(node.op)](left, right)
        if abs(result) > LARGEST:
            raise InvalidFormula(f"lane {lane}: {result:.3g} is past every address. Check the formula.")
        return result
    if isinstance(node, ast.UnaryOp):
        operand = _value(node.operand, lane)
        return -operand if isinstance(node.op, ast.USub) else operand
    return lane if isinstance(node, ast.Name) else int(node.value)  # type: ignore[attr-defined]
