"""How an intrinsic is declared: its PTX, its operands, the GPUs that have it, and what it means.

A declaration is data and knows no compiler. `lanewise.ptx.numba_cuda` reads the table `DECLARED` and teaches
numba-cuda; another compiler (numba-cuda-mlir, say) needs one more module like that, and nothing else changes.
The tracer gets the meaning through `lanewise.trace.registry`.

In PTX text, `<name>` stands for the registers of the operand of that name, separated by commas, and
`<name.0>` for the first of them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from lanewise.errors import Error

Body = TypeVar("Body", bound=Callable[..., Any])
Capability = tuple[int, int]

VECTOR_BYTES = (8, 16)  # what vector accesses move; single registers need no intrinsic


class OnlyInKernels(Error):
    """A device intrinsic was called outside a kernel."""


class UnsupportedCapability(Error):
    """A kernel uses an instruction that the GPU it is compiled or traced for does not have."""


# -- operands --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Address:
    """Two parameters, an array and an index: the address of an element, 32 bits wide if shared, else 64.

    `itemsizes` are the sizes of element that the instruction takes, in bytes.
    """

    name: str
    space: Literal["shared", "global"]
    itemsizes: tuple[int, ...] = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Registers:
    """One parameter: a tuple of `n` numbers of a type, in a register each; a plain number if `n` is 1."""

    name: str
    kind: Literal["uint32", "float32"]
    n: int = 1


@dataclass(frozen=True)
class Loose:
    """`n` parameters: numbers of a type, in a register each."""

    name: str
    kind: Literal["uint32", "float32"]
    n: int = 1


@dataclass(frozen=True)
class Element:
    """A value of the addressed array's own type; `<name.type>` in the text is its PTX type, such as b32."""

    name: str


@dataclass(frozen=True)
class Constant:
    """One parameter: a literal integer from 0, written into the text."""

    name: str


Operand = Address | Registers | Loose | Element | Constant


# -- lowerings -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Assembly:
    """A PTX instruction, or a few that belong together.

    `results` says what it gives. `effects` is True for what reads or writes memory or waits: the compiler
    then keeps its place among barriers and other accesses. Without effects, equal results may be shared and
    unused ones dropped. `together` marks what all lanes of a warp must run together.
    """

    text: str
    operands: tuple[Operand, ...] = ()
    results: Registers | Element | None = None
    effects: bool = False
    together: bool = False


@dataclass(frozen=True)
class VectorLoad:
    """One load of `n` neighbouring elements; `constant` through the path for read-only data, ld.global.nc."""

    n: int
    constant: bool = False


@dataclass(frozen=True)
class VectorStore:
    """One store of `n` neighbouring elements."""

    n: int


@dataclass(frozen=True)
class SharedAddress:
    """The byte address of an element in the window of shared memory."""


Lowering = Assembly | VectorLoad | VectorStore | SharedAddress


# -- intrinsics ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Intrinsic:
    """One name of `lanewise.ptx`.

    `lowerings` are (first compute capability, lowering), oldest first. `instead` is a sentence for GPUs
    before the first. `meaning(engine, node, *arguments)` is what the tracer runs, as in
    `lanewise.trace.registry`.
    """

    name: str
    function: Callable[..., Any]
    lowerings: tuple[tuple[Capability, Lowering], ...]
    instead: str
    meaning: Callable[..., Any]

    @property
    def needs(self) -> Capability:
        """The first compute capability that has it."""
        return self.lowerings[0][0]

    @property
    def lowering(self) -> Lowering:
        """The oldest lowering; all of an intrinsic take the same operands."""
        return self.lowerings[0][1]

    def lowering_for(self, capability: Capability) -> Lowering:
        """The newest lowering that a GPU of this compute capability can run."""
        return [lowering for needs, lowering in self.lowerings if needs <= capability][-1]

    def require(self, capability: Capability, deed: str = "compiled") -> None:
        """Raise `UnsupportedCapability` if a GPU of this compute capability lacks the instruction."""
        if capability < self.needs:
            raise UnsupportedCapability(
                f"lanewise.ptx.{self.name} needs compute capability {_dotted(self.needs)} or newer; this"
                f" kernel is {deed} for {_dotted(capability)}. {self.instead}"
            )


def _dotted(capability: Capability) -> str:
    return ".".join(map(str, capability))


DECLARED: dict[str, Intrinsic] = {}


def intrinsic(
    *lowerings: Lowering | tuple[Capability, Lowering],
    meaning: Callable[..., Any],
    needs: Capability = (7, 5),
    instead: str = "",
) -> Callable[[Body], Body]:
    """Declare the decorated function's name as an intrinsic. From Python, the function refuses to run.

    A lowering alone holds from `needs` on; a pair also names the first compute capability it holds for.
    """
    dated = sorted(
        (one if isinstance(one, tuple) else (needs, one) for one in lowerings), key=lambda pair: pair[0]
    )

    def declare(function: Body) -> Body:
        name = function.__name__

        @functools.wraps(function)
        def refuse(*args: Any, **kwargs: Any) -> Any:
            raise OnlyInKernels(
                f"lanewise.ptx.{name} is for kernels that lanewise.trace runs or numba.cuda compiles; call it"
                " in one."
            )

        refuse.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
        DECLARED[name] = Intrinsic(name, refuse, tuple(dated), instead, meaning)
        return refuse  # type: ignore[return-value]

    return declare
