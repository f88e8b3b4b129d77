"""What a launch needs beyond numba.cuda's own options: dynamic shared memory above 48 KiB."""

from __future__ import annotations

from typing import Any

from lanewise.errors import Error
from lanewise.integers import whole


class CannotAllow(Error):
    """A kernel cannot be given that much dynamic shared memory."""


def allow_dynamic_shared(kernel: Any, n_bytes: int, *arguments: Any) -> None:
    """Let a `cuda.jit` kernel be launched with up to `n_bytes` of dynamic shared memory.

    Without it a launch gets 48 KiB at most. It holds for what is compiled, so give the launch's `arguments`
    to compile the kernel for them first, or call it after a launch. Raises `CannotAllow` if there is no GPU,
    if nothing is compiled, or if the block has less than that.
    """
    n = whole("n_bytes", n_bytes, CannotAllow, hint="It is a number of bytes.")
    try:
        from lanewise.ptx import numba_cuda
    except (ImportError, AttributeError) as missing:  # AttributeError: numba's simulator has no compiler
        raise CannotAllow(f"allow_dynamic_shared: numba-cuda is not installed ({missing}).") from missing
    problem = numba_cuda.allow_dynamic_shared(kernel, n, arguments)
    if problem:
        raise CannotAllow(f"allow_dynamic_shared: {problem}")
