"""What the tests of kernels share: inputs that name their places, poisoned outputs, what a trace must not have."""

from typing import Any

import numpy as np

from lanewise.trace import Trace


def numbered(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Each value names its place."""
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def normal(*shape: int) -> np.ndarray:
    """Random numbers, the same at every call."""
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def poisoned(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """An output that nobody has written: NaN, or -1 in every element of whole numbers."""
    held = np.empty(shape, dtype)
    held.reshape(-1).view(np.uint8)[:] = 255
    return held


def assert_clean(t: Trace) -> Trace:
    """No hazard and no warning; the trace, to go on with."""
    assert (t.hazards, t.warnings) == ([], [])
    return t


def name_of(kernel: Any) -> str:
    """A kernel's name; a test's id."""
    return str(getattr(getattr(kernel, "py_func", kernel), "__name__", kernel))


def sectors_per_request(t: Trace, op: str) -> set[float]:
    """Sectors per request of the global sites of one kind, `"load"` or `"store"`."""
    return {s.sectors / s.requests for s in t.sites if (s.space, s.op) == ("global", op)}
