"""Device instructions that numba.cuda lacks, for kernels that a GPU or the tracer runs.

- wide accesses: `load2`, `load4`, `load8`, `store2`, ..., and `load_nc`, `load2_nc`, ... for read-only data
- matrices: `ldmatrix_x4`, `stmatrix_x4`, ..., `mma_m16n8k16_f16`, `mma_m16n8k16_bf16`, `mma_m16n8k8_f16`
- asynchronous copies: `cp_async_4`, ..., `cp_async_cg_16`, `cp_async_commit`, `cp_async_wait`
- conversions: `pack_half2`, `unpack_half2`, `pack_bf16x2`, `unpack_bf16x2`, `float_bits`,
  `bits_float`, `exp2_approx`
- ordered accesses: `load_acquire`, `store_release`
- before a launch: `allow_dynamic_shared`

`index` is an integer, or a tuple with one integer per dimension, in elements; the element there must be
aligned to the whole access.

    a, b, c, d = ptx.load4(tile, (row, 4 * chunk))
    ptx.store4(dst, 4 * i, a, b, c, d)

Each is declared once, its PTX beside its meaning for the tracer. Called from Python, they say that they are
for kernels. Numba learns them when this package is imported, if numba-cuda is installed.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from lanewise.ptx.conversions import (
    bits_float,
    exp2_approx,
    float_bits,
    pack_bf16x2,
    pack_half2,
    unpack_bf16x2,
    unpack_half2,
)
from lanewise.ptx.copies import (
    cp_async_4,
    cp_async_8,
    cp_async_16,
    cp_async_cg_16,
    cp_async_commit,
    cp_async_wait,
    cp_async_wait_all,
)
from lanewise.ptx.declare import OnlyInKernels, UnsupportedCapability
from lanewise.ptx.launching import CannotAllow, allow_dynamic_shared
from lanewise.ptx.matrices import (
    ldmatrix_x1,
    ldmatrix_x1_trans,
    ldmatrix_x2,
    ldmatrix_x2_trans,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    mma_m16n8k8_f16,
    mma_m16n8k16_bf16,
    mma_m16n8k16_f16,
    stmatrix_x1,
    stmatrix_x1_trans,
    stmatrix_x2,
    stmatrix_x2_trans,
    stmatrix_x4,
    stmatrix_x4_trans,
)
from lanewise.ptx.operands import WrongOperand
from lanewise.ptx.ordered import load_acquire, store_release
from lanewise.ptx.traced import meanings
from lanewise.ptx.wide import (
    load2,
    load2_nc,
    load4,
    load4_nc,
    load8,
    load8_nc,
    load_nc,
    shared_address,
    store2,
    store4,
    store8,
)

__all__ = [
    "CannotAllow",
    "OnlyInKernels",
    "UnsupportedCapability",
    "WrongOperand",
    "allow_dynamic_shared",
    "bits_float",
    "cp_async_4",
    "cp_async_8",
    "cp_async_16",
    "cp_async_cg_16",
    "cp_async_commit",
    "cp_async_wait",
    "cp_async_wait_all",
    "exp2_approx",
    "float_bits",
    "ldmatrix_x1",
    "ldmatrix_x1_trans",
    "ldmatrix_x2",
    "ldmatrix_x2_trans",
    "ldmatrix_x4",
    "ldmatrix_x4_trans",
    "load2",
    "load2_nc",
    "load4",
    "load4_nc",
    "load8",
    "load8_nc",
    "load_acquire",
    "load_nc",
    "meanings",
    "mma_m16n8k8_f16",
    "mma_m16n8k16_bf16",
    "mma_m16n8k16_f16",
    "pack_bf16x2",
    "pack_half2",
    "shared_address",
    "stmatrix_x1",
    "stmatrix_x1_trans",
    "stmatrix_x2",
    "stmatrix_x2_trans",
    "stmatrix_x4",
    "stmatrix_x4_trans",
    "store2",
    "store4",
    "store8",
    "store_release",
    "unpack_bf16x2",
    "unpack_half2",
]


def _has_numba_cuda() -> bool:
    """Whether numba compiles here; its simulator runs kernels as Python, which has no such instructions."""
    if find_spec("numba") is None or find_spec("numba_cuda") is None:
        return False
    config: Any = import_module("numba.core.config")
    return not config.ENABLE_CUDASIM


if _has_numba_cuda():
    from lanewise.ptx import numba_cuda

    numba_cuda.register()
