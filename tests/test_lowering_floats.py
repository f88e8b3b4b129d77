"""Float conversions of the machine code, where their width decides which bits are written."""
# mypy: allow-untyped-defs, disable-error-code="attr-defined"

import numpy as np
import pytest
from numba import cuda

from lanewise.lowering import lower, why_unavailable


@cuda.jit
def number_elements(dst):
    dst[cuda.grid(1)] = cuda.grid(1)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_integers_become_floats_of_any_width(dtype: type) -> None:
    """I2F.F16 writes 16 bits, where I2F writes 32 and I2F.F64 a pair of registers."""
    if reason := why_unavailable():
        pytest.skip(reason)
    run = lower(number_elements, [np.zeros(32, dtype)], "sm_90").run(1, 32, np.full(32, 77, dtype))
    np.testing.assert_array_equal(run.arrays[0], np.arange(32))
