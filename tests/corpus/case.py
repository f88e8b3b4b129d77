"""`Case`: a kernel, how to launch it, what must come out, and what its lines must cost."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Fill = Callable[..., np.ndarray]
"""`fill(shape, dtype)`: an input array."""

Dim = int | tuple[int, ...]
RANDOM_SEED = 20


@dataclass(frozen=True)
class Prediction:
    """What the lines that contain `fragment` must cost, per warp request, or in all if `requests` is given.

    `id` names the row of the course's kernel list that predicts it, or is empty for our own arithmetic. `op` is load,
    store or atomic. Shared lines have `wavefronts` and `ideal`, global lines `sectors`. A line that has shared and
    global accesses of one op needs `wavefronts` or `sectors` alone to say which is meant.
    """

    fragment: str
    op: str
    wavefronts: int | None = None
    ideal: int | None = None
    sectors: float | None = None
    requests: int | None = None
    id: str = ""

    @property
    def space(self) -> str:
        """The memory space that the prediction is about."""
        return "global" if self.wavefronts is None else "shared"


@dataclass(frozen=True)
class Case:
    """One launch of one kernel.

    `arguments(fill)` builds fresh arguments; `reference(*arguments)` gives the expected arrays by argument position,
    from arguments it may change. `rtol` is 0 where every step is exact in any order. `simulator` is empty, or the
    reason why numba's simulator cannot run the kernel as a GPU would. `order_decides` is empty, or the reason why the
    counts depend on the order in which threads run, so that they are not compared. `oracle` is empty, or the reason why
    the per-thread oracle cannot run the kernel.
    """

    kernel: Any
    grid: Dim
    block: Dim
    arguments: Callable[[Fill], tuple[Any, ...]]
    reference: Callable[..., Mapping[int, np.ndarray]]
    variant: str = ""
    dynamic_shared_bytes: int = 0
    simulator: str = ""
    order_decides: str = ""
    oracle: str = ""
    rtol: float = 0.0
    predictions: tuple[Prediction, ...] = field(default=())

    @property
    def name(self) -> str:
        """Kernel name, and what tells this launch from the kernel's other launches."""
        return self.function.__name__ + (f"[{self.variant}]" if self.variant else "")

    @property
    def function(self) -> Callable[..., Any]:
        """The plain Python function."""
        return getattr(self.kernel, "py_func", None) or getattr(self.kernel, "fn", self.kernel)

    def inputs(self, fill: str) -> tuple[Any, ...]:
        """Fresh arguments, the same at every call: `fill` is "arange" or "random"."""
        return self.arguments({"arange": lambda: arange, "random": lambda: dyadic(RANDOM_SEED)}[fill]())

    def lines(self, fragment: str) -> frozenset[int]:
        """Line numbers of the kernel's source that contain a fragment; at least one does."""
        source, first = inspect.getsourcelines(self.function)
        found = frozenset(first + offset for offset, text in enumerate(source) if fragment in text)
        assert found, f"{self.name} has no line with {fragment!r}"
        return found


def arange(shape: Dim, dtype: Any) -> np.ndarray:
    """Values that name their own place: 0, 1, 2, ... in memory order, wrapped where the type is too small."""
    return np.arange(np.prod(shape)).astype(dtype).reshape(shape)


@dataclass
class _Dyadic:
    generator: np.random.Generator

    def __call__(self, shape: Dim, dtype: Any) -> np.ndarray:
        kind = np.dtype(dtype)
        if kind.kind == "c":
            return (self(shape, np.float64) + 1j * self(shape, np.float64)).astype(kind)
        eighths = self.generator.integers(-64, 64, shape)
        if kind.kind == "f":
            return (eighths / 8).astype(kind)
        return np.abs(eighths).astype(kind) if kind.kind == "u" else eighths.astype(kind)


def dyadic(seed: int) -> Fill:
    """Random multiples of 1/8 between -8 and 8: their sums and products are exact in float32, in any order."""
    return _Dyadic(np.random.default_rng(seed))


def poisoned(shape: Dim, dtype: Any) -> np.ndarray:
    """An output array of NaN, or of the largest value: what the kernel does not write shows."""
    kind = np.dtype(dtype)
    return np.full(shape, np.nan if kind.kind in "fc" else np.iinfo(kind).max, kind)


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case of every module in this folder, in the order of their names."""
    folder = Path(__file__).parent
    names = sorted(
        info.name for info in pkgutil.iter_modules([str(folder)]) if info.name not in ("case", "conftest")
    )
    cases = [case for name in names for case in importlib.import_module(f"tests.corpus.{name}").CASES]
    repeated = {case.name for case in cases if sum(case.name == other.name for other in cases) > 1}
    assert not repeated, f"cases need distinct names: {sorted(repeated)}"
    return tuple(cases)
