"""Nested tuples of ints (CuTe's `IntTuple`): shapes and strides of hierarchical layouts."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from lanewise.errors import InvalidLayout
from lanewise.integers import as_int

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"


def canonical(what: str, tree: Any) -> IntTuple:
    """One spelling for each value: lists become tuples, NumPy integers become int, and `(n,)` becomes `n`.

    Raises `InvalidLayout` that names `what` for anything but ints and non-empty tuples or lists of them.

    >>> canonical("shape", [[2, 4], (8,)])
    ((2, 4), 8)
    """
    if isinstance(tree, list | tuple):
        members = tuple(canonical(what, member) for member in tree)
        if not members:
            raise InvalidLayout(
                f"Layout: {what} has an empty tuple. Give each mode an int or a tuple of ints."
            )
        return members[0] if len(members) == 1 else members
    number = as_int(tree)
    if number is None:
        raise InvalidLayout(f"Layout: {what} holds {tree!r}. Use ints and tuples of ints.")
    return number


def leaves(tree: IntTuple) -> Iterator[int]:
    """The ints from left to right, nesting removed."""
    if isinstance(tree, int):
        yield tree
    else:
        for member in tree:
            yield from leaves(member)


def nested_like(tree: IntTuple, numbers: Iterable[int]) -> IntTuple:
    """Put numbers into the nesting of `tree`, from left to right.

    >>> nested_like(((2, 4), 8), [1, 2, 3])
    ((1, 2), 3)
    """
    supply = iter(numbers)

    def fill(node: IntTuple) -> IntTuple:
        return next(supply) if isinstance(node, int) else tuple(fill(member) for member in node)

    return fill(tree)


def congruent(a: IntTuple, b: IntTuple) -> bool:
    """True if both have the same nesting."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int)
    return len(a) == len(b) and all(map(congruent, a, b))


def notation(tree: IntTuple) -> str:
    """Write without spaces, as CuTe prints it: `"((2,4),8)"`."""
    return str(tree) if isinstance(tree, int) else f"({','.join(map(notation, tree))})"
