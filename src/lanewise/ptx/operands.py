"""Whether a call's arguments fit an intrinsic: one check for every compiler and for the tracer.

Each describes the arguments it has, numba's types or the tracer's values, as `Array`, `Number`, tuples of
these, or words for anything else; so a wrong call gets the same sentence from both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lanewise.errors import Error
from lanewise.ptx.declare import (
    VECTOR_BYTES,
    Address,
    Assembly,
    Constant,
    Element,
    Intrinsic,
    Loose,
    Registers,
    SharedAddress,
    VectorLoad,
    VectorStore,
)


class WrongOperand(Error):
    """An intrinsic was given an argument that its instruction cannot take."""


@dataclass(frozen=True)
class Array:
    """An array: type and size of its elements, dimensions, and the memory it lies in, empty if unknown."""

    dtype: str
    itemsize: int
    ndim: int
    space: str = ""

    def __str__(self) -> str:
        return f"an array of {self.dtype}"


@dataclass(frozen=True)
class Number:
    """A number of a type; `literal` is its value if the compiler knows it as an integer."""

    dtype: str
    literal: int | None = None

    @property
    def is_whole(self) -> bool:
        """True for integers and bools."""
        return self.dtype.startswith(("int", "uint", "bool"))

    @property
    def is_real(self) -> bool:
        """True for integers, bools and floats."""
        return self.is_whole or self.dtype.startswith("float")

    def __str__(self) -> str:
        return self.dtype


Given = Array | Number | tuple[Any, ...] | str


def check(declared: Intrinsic, given: tuple[Given, ...]) -> None:
    """Raise `WrongOperand`, naming the operand, what it is and what it must be, if a call does not fit."""
    arguments = _Arguments(declared.name, given)
    lowering = declared.lowering
    if isinstance(lowering, Assembly):
        for operand in lowering.operands:
            _OPERANDS[type(operand)](arguments, operand)
    else:
        _check_vector(arguments, lowering)
    arguments.end()


class _Arguments:
    """The arguments of a call, taken one after the other."""

    def __init__(self, name: str, given: tuple[Given, ...]) -> None:
        self.name, self.given, self.place = name, given, 0
        self.array = Array("nothing", 0, 0)

    def refuse(self, what: str) -> None:
        raise WrongOperand(f"lanewise.ptx.{self.name}: {what}.")

    def next(self, name: str) -> Given:
        if self.place >= len(self.given):
            self.refuse(f"{name} is missing: got {len(self.given)} arguments")
        self.place += 1
        return self.given[self.place - 1]

    def rest(self) -> Iterator[Given]:
        while self.place < len(self.given):
            yield self.next("a value")

    def end(self) -> None:
        if self.place < len(self.given):
            self.refuse(f"got {len(self.given)} arguments, takes {self.place}")

    def need_number(self, name: str, kind: str, given: Given) -> None:
        fits = isinstance(given, Number) and (given.is_whole if kind == "uint32" else given.is_real)
        if not fits:
            self.refuse(f"{name} must be {kind}, got {words(given)}")


def words(given: Given) -> str:
    """What an argument is, in words."""
    if isinstance(given, tuple):
        return f"({', '.join(map(words, given))}{',' if len(given) == 1 else ''})"
    return str(given)


def _check_address(arguments: _Arguments, operand: Address) -> None:
    array, index = arguments.next(operand.name), arguments.next("the index")
    name = operand.name
    if not isinstance(array, Array):
        arguments.refuse(f"{name} must be an array, got {words(array)}")
        return
    arguments.array = array
    if array.space not in ("", operand.space):
        arguments.refuse(f"{name} must lie in {operand.space} memory, got a {array.space} array")
    if array.itemsize not in operand.itemsizes:
        allowed = " or ".join(map(str, operand.itemsizes))
        arguments.refuse(f"{name} must have elements of {allowed} bytes, got {array.dtype}")
    _check_index(arguments, name, array, index)


def _check_index(arguments: _Arguments, name: str, array: Array, index: Given) -> None:
    indices = index if isinstance(index, tuple) else (index,)
    if not all(isinstance(one, Number) and one.is_whole for one in indices):
        arguments.refuse(
            f"the index into {name} must be an integer or a tuple of integers, got {words(index)}"
        )
    if len(indices) != array.ndim:
        arguments.refuse(f"{name} has {array.ndim} dimensions, its index has {len(indices)}")


def _check_registers(arguments: _Arguments, operand: Registers) -> None:
    given = arguments.next(operand.name)
    parts = given if isinstance(given, tuple) else (given,)
    if len(parts) != operand.n:
        arguments.refuse(f"{operand.name} must be {operand.n} x {operand.kind}, got {words(given)}")
    for part in parts:
        arguments.need_number(operand.name, operand.kind, part)


def _check_loose(arguments: _Arguments, operand: Loose) -> None:
    for i in range(operand.n):
        name = operand.name if operand.n == 1 else f"{operand.name}{i}"
        arguments.need_number(name, operand.kind, arguments.next(name))


def _check_element(arguments: _Arguments, operand: Element) -> None:
    given = arguments.next(operand.name)
    if not (isinstance(given, Number) and given.is_real):
        arguments.refuse(f"{operand.name} must be {arguments.array.dtype}, got {words(given)}")


def _check_constant(arguments: _Arguments, operand: Constant) -> None:
    given = arguments.next(operand.name)
    literal = given.literal if isinstance(given, Number) else None
    if literal is None or literal < 0:
        what = words(given) if literal is None else str(literal)
        arguments.refuse(f"{operand.name} must be a literal number from 0, got {what}")


_OPERANDS: dict[type, Any] = {
    Address: _check_address,
    Registers: _check_registers,
    Loose: _check_loose,
    Element: _check_element,
    Constant: _check_constant,
}


def _check_vector(arguments: _Arguments, lowering: VectorLoad | VectorStore | SharedAddress) -> None:
    array, index = arguments.next("array"), arguments.next("the index")
    if not isinstance(array, Array):
        arguments.refuse(f"array must be an array, got {words(array)}")
        return
    wanted = ""
    if isinstance(lowering, SharedAddress):
        wanted = "shared"
    elif isinstance(lowering, VectorLoad) and lowering.constant:
        wanted = "global"
    if array.space and (array.space not in ("shared", "global") or wanted not in ("", array.space)):
        allowed = wanted or "shared or global"
        arguments.refuse(f"array must lie in {allowed} memory, got a {array.space} array")
    _check_index(arguments, "array", array, index)
    if isinstance(lowering, SharedAddress):
        return
    n = lowering.n
    if not Number(array.dtype).is_real:
        arguments.refuse(f"array must hold numbers, got {array.dtype}")
    if n > 1 and n * array.itemsize not in VECTOR_BYTES:
        arguments.refuse(
            f"{n} x {array.dtype} are {n * array.itemsize} bytes; an access moves 8 or 16 at once"
        )
    if isinstance(lowering, VectorStore):
        values = list(arguments.rest())
        if len(values) == 1 and isinstance(values[0], tuple):
            values = list(values[0])
        if len(values) != n:
            arguments.refuse(f"{n} values are needed, got {len(values)}")
        for value in values:
            if not (isinstance(value, Number) and value.is_real):
                arguments.refuse(f"a value must be {array.dtype}, got {words(value)}")
