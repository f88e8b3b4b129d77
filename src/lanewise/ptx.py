"""Device intrinsics that numba.cuda lacks, for kernels that the tracer runs.

`load2`, `load4` and `load8` read that many neighbouring elements of an array's last dimension by one
instruction of 8 or 16 bytes and give them as a tuple; `store2`, `store4` and `store8` write them. `index` is
an integer, or a tuple with one integer per dimension; the element there must be aligned to the whole access.

    a, b, c, d = ptx.load4(tile, (row, 4 * chunk))
    ptx.store4(dst, 4 * i, a, b, c, d)

Their meaning for the tracer is in `lanewise.trace.device`. They have no lowering to PTX here: called from
Python, they say so.
"""

from typing import Any, NoReturn

from lanewise.errors import Error


class OnlyInKernels(Error):
    """A device intrinsic was called outside a traced kernel."""


def _refuse(name: str) -> NoReturn:
    raise OnlyInKernels(
        f"lanewise.ptx.{name} is for kernels that lanewise.trace runs; trace the kernel that calls it."
    )


def load2(array: Any, index: Any) -> Any:
    """Read 2 neighbouring elements (8 or 16 bytes) as a tuple."""
    _refuse("load2")


def load4(array: Any, index: Any) -> Any:
    """Read 4 neighbouring elements (8 or 16 bytes) as a tuple."""
    _refuse("load4")


def load8(array: Any, index: Any) -> Any:
    """Read 8 neighbouring elements (8 or 16 bytes) as a tuple."""
    _refuse("load8")


def store2(array: Any, index: Any, *values: Any) -> None:
    """Write 2 values to neighbouring elements."""
    _refuse("store2")


def store4(array: Any, index: Any, *values: Any) -> None:
    """Write 4 values to neighbouring elements."""
    _refuse("store4")


def store8(array: Any, index: Any, *values: Any) -> None:
    """Write 8 values to neighbouring elements."""
    _refuse("store8")
