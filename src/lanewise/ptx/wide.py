"""Wide accesses: 2, 4 or 8 neighbouring elements by one instruction of 8 or 16 bytes."""

from __future__ import annotations

from typing import Any

from lanewise.ptx.declare import SharedAddress, VectorLoad, VectorStore, intrinsic


@intrinsic(VectorLoad(2))
def load2(array: Any, index: Any) -> Any:
    """Read 2 neighbouring elements (8 or 16 bytes) as a tuple."""


@intrinsic(VectorLoad(4))
def load4(array: Any, index: Any) -> Any:
    """Read 4 neighbouring elements (8 or 16 bytes) as a tuple."""


@intrinsic(VectorLoad(8))
def load8(array: Any, index: Any) -> Any:
    """Read 8 neighbouring elements (8 or 16 bytes) as a tuple."""


@intrinsic(VectorLoad(1, constant=True))
def load_nc(array: Any, index: Any) -> Any:
    """Read one element of global memory that no thread writes while the kernel runs (ld.global.nc)."""


@intrinsic(VectorLoad(2, constant=True))
def load2_nc(array: Any, index: Any) -> Any:
    """Read 2 neighbouring elements that no thread writes while the kernel runs."""


@intrinsic(VectorLoad(4, constant=True))
def load4_nc(array: Any, index: Any) -> Any:
    """Read 4 neighbouring elements that no thread writes while the kernel runs."""


@intrinsic(VectorLoad(8, constant=True))
def load8_nc(array: Any, index: Any) -> Any:
    """Read 8 neighbouring elements that no thread writes while the kernel runs."""


@intrinsic(VectorStore(2))
def store2(array: Any, index: Any, *values: Any) -> None:
    """Write 2 values to neighbouring elements."""


@intrinsic(VectorStore(4))
def store4(array: Any, index: Any, *values: Any) -> None:
    """Write 4 values to neighbouring elements."""


@intrinsic(VectorStore(8))
def store8(array: Any, index: Any, *values: Any) -> None:
    """Write 8 values to neighbouring elements."""


@intrinsic(SharedAddress())
def shared_address(array: Any, index: Any) -> Any:
    """The byte address of an element of a shared array in the window of shared memory, uint32."""
