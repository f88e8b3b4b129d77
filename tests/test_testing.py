"""`assert_access` guards a kernel in somebody's own tests: it passes, or fails with the line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.checks import InvalidCheck
from lanewise.kernels import banks, padding
from lanewise.testing import assert_access


def transposed(kernel: Any, **limits: Any) -> Any:
    src = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    dst = np.full((64, 64), np.nan, np.float32)
    t = assert_access(kernel, padding.grid_of(src), padding.BLOCK, src, dst, **limits)
    np.testing.assert_array_equal(dst, src.T)
    return t


def test_a_good_kernel_passes_and_gives_its_trace() -> None:
    t = transposed(
        padding.transpose_padded,
        max_excess=0,
        wavefronts_per_request=1,
        sectors_per_request=4,
        max_shared_bytes=4224,
    )
    assert t.shared.load.excess == 0


@pytest.mark.parametrize(
    ("kernel", "limits", "message"),
    [
        (padding.transpose_tiled, {"max_excess": 0}, "3,968 excess wavefronts, goal 0"),
        (padding.transpose_tiled, {"wavefronts_per_request": 1}, "needs 32 wavefronts at line"),
        (padding.transpose_naive, {"sectors_per_request": 4}, "touches 32 sectors per request, goal 4"),
        (padding.transpose_padded, {"max_shared_bytes": 4096}, "takes 4,224 bytes"),
    ],
)
def test_a_claim_that_does_not_hold_fails_with_a_sentence(
    kernel: Any, limits: dict[str, Any], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        transposed(kernel, **limits)


def test_hazards_fail_unless_they_are_allowed() -> None:
    with pytest.raises(AssertionError, match="read_too_early"):
        assert_access(banks.read_too_early, 1, 32, np.zeros(32, np.float32))
    t = assert_access(banks.read_too_early, 1, 32, np.zeros(32, np.float32), hazards=True)
    assert t.hazards


@pytest.mark.parametrize("limit", [-1, True, "much"])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(InvalidCheck):
        transposed(padding.transpose_padded, max_shared_bytes=limit)
