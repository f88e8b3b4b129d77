"""Which lanes of a batch are active: the mask that control flow narrows and widens again."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from lanewise.machine import WARP_LANES


class Mask:
    """A non-empty set of lanes of B blocks of T threads, stored as bools of the smallest shape that says it.

    `array` has shape `(b, t)`, b in {1, B}, t in {1, T}; all lanes together are `(1, 1)`. No lane at all is
    None, never a `Mask`: code that runs has lanes to run for.
    """

    def __init__(self, array: np.ndarray, shape: tuple[int, int]) -> None:
        self.array, self.shape = array, shape

    @classmethod
    def of(cls, array: Any, shape: tuple[int, int]) -> Mask | None:
        """Build from bools that broadcast to `shape`, in their smallest form; None if none is set."""
        array = np.atleast_2d(np.asarray(array, bool))
        n_set = np.count_nonzero(array)
        if n_set == 0:
            return None
        if n_set == array.size:
            return cls(np.ones((1, 1), bool), shape)
        if array.shape[0] > 1 and (array == array[:1]).all():
            array = array[:1]
        if array.shape[1] > 1 and (array == array[:, :1]).all():
            array = array[:, :1]
        return cls(array, shape)

    @property
    def is_full(self) -> bool:
        """True if every lane of the batch is active."""
        return self.array.size == 1

    @cached_property
    def full(self) -> np.ndarray:
        """The mask as a `(B, T)` view."""
        return np.broadcast_to(self.array, self.shape)

    @cached_property
    def n_warps(self) -> int:
        """Warps with at least one active lane."""
        blocks, threads = self.shape
        warps = -(-threads // WARP_LANES)
        b, t = self.array.shape
        if t == 1:
            return int(np.count_nonzero(self.array)) * (blocks if b == 1 else 1) * warps
        by_warp = self.array.reshape(b, -1, WARP_LANES).any(axis=2)
        return int(np.count_nonzero(by_warp)) * (blocks if b == 1 else 1)

    def split(self, condition: Any) -> tuple[Mask | None, Mask | None]:
        """The lanes where `condition` holds, and the others."""
        if isinstance(condition, np.generic):
            return (self, None) if condition else (None, self)
        if self.is_full:
            return Mask.of(condition, self.shape), Mask.of(~condition, self.shape)
        return Mask.of(self.array & condition, self.shape), Mask.of(self.array & ~condition, self.shape)

    def without(self, other: Mask | None) -> Mask | None:
        """These lanes less those of `other`."""
        if other is None:
            return self
        if other is self or other.is_full:
            return None
        return Mask.of(self.array & ~other.array, self.shape)

    def holds(self, other: Mask) -> bool:
        """True if every lane of `other` is one of these."""
        return self is other or self.is_full or not (other.array & ~self.array).any()


def union(first: Mask | None, second: Mask | None) -> Mask | None:
    """The lanes of either mask."""
    if first is None or second is None or first is second:
        return first or second
    if first.is_full or second.is_full:
        return first if first.is_full else second
    return Mask.of(first.array | second.array, first.shape)
