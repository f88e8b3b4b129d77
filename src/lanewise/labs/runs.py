"""One run of a learner's kernel: the launch, its inputs, and what must come out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanewise.errors import Error


class InvalidLab(Error):
    """A lab's own definition does not hold together: its author must mend it."""


@dataclass(frozen=True)
class Run:
    """One run: `arguments` by name in the order of the kernel's parameters, `expected` by output name.

    `size` names the run in sentences ("a 33 x 65 matrix"). Outputs among the arguments are poisoned (see
    `poisoned`); every array that is not in `expected` is an input and must stay as it is. Tolerances are
    those of `Check.matches`; 0 asks for equal bits.
    """

    size: str
    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    arguments: Mapping[str, Any]
    expected: Mapping[str, Any]
    rtol: float = 0.0
    atol: float = 0.0
    dynamic_shared_bytes: int = 0
    kept: Mapping[str, np.ndarray] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.expected or not set(self.expected) <= set(self.arguments):
            raise InvalidLab(
                f"Run of {self.size}: expected names {sorted(self.expected)}, the arguments are"
                f" {list(self.arguments)}. Name one output or more, each an argument."
            )
        inputs = {
            name: value.copy()
            for name, value in self.arguments.items()
            if isinstance(value, np.ndarray) and name not in self.expected
        }
        object.__setattr__(self, "kept", inputs)


def poisoned(shape: int | tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """An output that no kernel has written: NaN for floats, the most negative or largest number for integers.

    >>> poisoned(2).tolist(), poisoned(1, "int32").tolist(), poisoned(1, "uint8").tolist()
    ([nan, nan], [-2147483648], [255])
    """
    kind = np.dtype(dtype)
    if kind.kind == "f":
        return np.full(shape, np.nan, kind)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return np.full(shape, info.min if kind.kind == "i" else info.max, kind)
    raise InvalidLab(f"poisoned: got {kind}; outputs are of floats or integers.")
