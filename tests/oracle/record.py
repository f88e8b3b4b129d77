"""What the oracle writes down: one entry per memory access of one thread, and where in the run it happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FrameType
from typing import Any

import numpy as np

Position = tuple[int, int]
"""Line and column of an expression in the kernel's file, 1-based and 0-based."""

KERNEL_FILE_MARK = "<oracle> "
"""Prefix of the file name of compiled kernels: frames that carry it belong to a kernel."""


class OracleError(Exception):
    """The kernel did something that a GPU would not forgive, or that the oracle does not know."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Which execution of which expression this is: equal for the lanes that execute it together.

    `path` holds the positions of the calls that lead here, outermost first, this expression last. `iterations` holds
    the iteration number of every loop around it. Lanes of a warp that agree on both are in lock step here.
    """

    path: tuple[Position, ...]
    iterations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """One access of one thread: `address` and `n_bytes` in bytes, `space` shared or global, `op` load, store, atomic.

    `part` is 1 for the imaginary part of a complex number: numba reads and writes the parts one after the other.
    """

    block: tuple[int, int, int]
    thread: int
    space: str
    op: str
    address: int
    n_bytes: int
    moment: Moment
    part: int = 0

    @property
    def line(self) -> int:
        """Source line of the access."""
        return self.moment.path[-1][0]


@dataclass
class Thread:
    """A thread that runs: who it is, the loops it is in, and what it has accessed."""

    block: tuple[int, int, int]
    index: tuple[int, int, int]
    linear: int
    loops: list[int] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)

    @property
    def warp(self) -> int:
        """Warp within the block."""
        return self.linear // 32

    @property
    def lane(self) -> int:
        """Lane within the warp."""
        return self.linear % 32

    def moment(self, frame: FrameType | None) -> Moment:
        """Where the kernel is, seen from a frame at or below its innermost function."""
        while frame is not None and not _is_kernel(frame.f_code):
            frame = frame.f_back
        path: list[Position] = []
        while frame is not None and _is_kernel(frame.f_code):
            path.append(_positions(frame.f_code)[frame.f_lasti // 2])
            frame = frame.f_back
        return Moment(tuple(reversed(path)), tuple(self.loops))

    def note(self, space: str, op: str, address: int, dtype: np.dtype, frame: FrameType) -> None:
        """Write an access down; private and constant memory leave no trace."""
        if space in ("shared", "global"):
            parts = 2 if dtype.kind == "c" else 1
            n_bytes = dtype.itemsize // parts
            moment = self.moment(frame)
            for part in range(parts):
                place = address + part * n_bytes
                self.accesses.append(Access(self.block, self.linear, space, op, place, n_bytes, moment, part))


@cache
def _is_kernel(code: CodeType) -> bool:
    return code.co_filename.startswith(KERNEL_FILE_MARK)


@cache
def _positions(code: CodeType) -> list[Position]:
    return [(line or 0, column or 0) for line, _, column, _ in code.co_positions()]


class Stage:
    """The one thread that runs at a moment; the stand-ins ask it who is speaking."""

    thread: Thread
    launch: Any
