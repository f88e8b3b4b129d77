"""For tests of your own kernels: a claim on every memory access, which fails with the line, warp and lanes.

    from lanewise.testing import assert_access

    def test_my_transpose() -> None:
        src, dst = np.ones((64, 64), np.float32), np.empty((64, 64), np.float32)
        assert_access(my_kernel, (2, 2), (32, 8), src, dst, max_excess=0, sectors_per_request=4)

The kernel is traced, not launched: such a test needs no GPU and gives the same answer everywhere.
"""

from __future__ import annotations

from typing import Any

from lanewise.checks import Check, check
from lanewise.trace import Trace, trace


def assert_access(
    kernel: Any,
    grid: Any,
    block: Any,
    *arguments: Any,
    max_excess: int | None = None,
    wavefronts_per_request: float | None = None,
    sectors_per_request: float | None = None,
    max_shared_bytes: int | None = None,
    hazards: bool = False,
    **options: Any,
) -> Trace:
    """Trace a kernel and raise an AssertionError that says which claim does not hold; returns the trace.

    `max_excess`: excess wavefronts of all shared loads and stores together; `wavefronts_per_request` and
    `sectors_per_request`: of every shared and every global access; `max_shared_bytes`: of a block. Races,
    accesses out of bounds and other hazards fail as well unless `hazards=True` allows them. `options` are
    those of `trace`. Arrays are changed as a launch would change them, so values can be compared afterwards.

    >>> import numpy as np
    >>> from lanewise.trace import functions_in
    >>> kernel = functions_in('''
    ... from numba import cuda
    ... def copy(src, dst):
    ...     i = cuda.grid(1)
    ...     dst[i] = src[2 * i]
    ... ''')["copy"]
    >>> src, dst = np.zeros(64, np.float32), np.zeros(32, np.float32)
    >>> assert_access(kernel, 1, 32, src, dst, sectors_per_request=8)
    <Trace of copy: 2 sites, 0 hazards>

    Raises `InvalidCheck` for a limit that is none, and what `trace` raises.
    """
    traced = trace(kernel, grid, block, *arguments, **options)
    verdict = _claims(
        check(traced), max_excess, wavefronts_per_request, sectors_per_request, max_shared_bytes
    )
    if not hazards:
        verdict.no_hazards()
    if not verdict:
        raise AssertionError(f"{traced.kernel}: " + " ".join(verdict.sentences))
    return traced


def _claims(
    verdict: Check,
    max_excess: int | None,
    wavefronts: float | None,
    sectors: float | None,
    shared_bytes: int | None,
) -> Check:
    if max_excess is not None:
        verdict.shared_excess(max=max_excess)
    if wavefronts is not None:
        verdict.shared_wavefronts_per_request(max=wavefronts)
    if sectors is not None:
        verdict.global_sectors_per_request(max=sectors)
    if shared_bytes is not None:
        verdict.shared_bytes(max=shared_bytes)
    return verdict
