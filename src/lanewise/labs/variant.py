"""What differs between two variants of a lab: numbers, sizes and the planted fault follow from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from lanewise.errors import Error

Option = TypeVar("Option")
PUBLIC = 0
LARGEST_SEED = 2**31 - 1


class InvalidSeed(Error):
    """A seed that is no whole number in range."""


class Variant:
    """The choices of one seed, in the order in which a lab asks for them.

    Seed 0 is the public variant: it takes the first option of every choice, so a lab reads as if there were
    no variants.

    >>> Variant(0).choice(32, 16, 64)
    32
    >>> [Variant(7).choice(32, 16, 64) == Variant(7).choice(32, 16, 64), Variant(7).seed]
    [True, 7]
    """

    def __init__(self, seed: int = PUBLIC) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= LARGEST_SEED:
            raise InvalidSeed(
                f"seed: got {seed!r}; give a whole number, 0 (the public lab) to {LARGEST_SEED:,}."
            )
        self.seed = seed
        self._random = random.Random(seed)

    def choice(self, first: Option, *others: Option) -> Option:
        """One of the options: the first for seed 0, any of them for another."""
        options = (first, *others)
        picked = options[self._random.randrange(len(options))]
        return first if self.seed == PUBLIC else picked

    def shuffled(self, options: Sequence[Option]) -> list[Option]:
        """The options in another order; for seed 0 as they are."""
        order = list(options)
        if self.seed != PUBLIC:
            self._random.shuffle(order)
        return order
