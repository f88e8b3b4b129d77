"""A generated kernel as data, and the arrays that it is launched with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.generator.grammar import ACCUMULATORS, PLAIN_SOURCES, SLOTS, SOURCES


@dataclass(frozen=True)
class Program:
    """A generated kernel: its source and its launch. `arguments()` builds fresh arrays, the same every time."""

    seed: int
    plain: bool
    source: str
    grid: tuple[int, ...]
    block: tuple[int, ...]

    def arguments(self) -> tuple[Any, ...]:
        """Sources in various layouts, then outputs full of a poison value, then accumulators of zeros."""
        rng = np.random.default_rng(self.seed)
        n_threads = int(np.prod(self.grid) * np.prod(self.block))
        names = PLAIN_SOURCES if self.plain else tuple(SOURCES)
        sources = [_source_array(rng, *SOURCES[name]) for name in names]
        outputs = [
            np.full((n_threads, SLOTS), 77, np.int64),
            np.full((n_threads, SLOTS), 77, np.float64 if self.plain else np.float32),
            np.full((SLOTS, n_threads), 77, np.float64),
        ]
        return (*sources, *outputs, np.zeros(ACCUMULATORS, np.int64), int(rng.integers(2, 6)))


def _source_array(rng: np.random.Generator, dtype: type, shape: tuple[int, ...]) -> np.ndarray:
    """Random values, as a plain array or as a view with strides, an offset or another order of its axes."""
    wide = tuple(2 * n + 3 for n in shape)
    whole = rng.integers(0 if np.dtype(dtype).kind == "u" else -100, 100, wide)
    if dtype is np.int64:
        whole[whole % 3 == 0] *= 10**9 + 7  # beyond int32, so that a type that is too narrow shows
    array: np.ndarray = (whole / 8).astype(dtype) if np.dtype(dtype).kind == "f" else whole.astype(dtype)
    match rng.integers(4):
        case 0:
            return array[tuple(slice(0, 2 * n, 2) for n in shape)]
        case 1:
            return array[tuple(slice(n, 0, -1) for n in shape)]
        case 2:
            return np.asfortranarray(array[tuple(slice(3, 3 + n) for n in shape)])
        case _:
            return np.ascontiguousarray(array[tuple(slice(n) for n in shape)])
