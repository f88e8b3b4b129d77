"""What a rate is compared with: a copy by the driver, or a library's product on the same inputs.

`products(kind, arrays)` gives the products of one kind that are installed, each as a function to call. torch
and CuPy read the arrays where they lie, through the CUDA array interface.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

DEVICE_COPY = "device_copy"
Products = dict[str, Callable[[], Any]]


def products(kind: str, arrays: Sequence[Any]) -> Products:
    """The installed libraries' products of `kind` on the problem's input arrays, by name.

    `"matmul"` multiplies the first two (float32 without TF32, half with float32 accumulation), `"sum"` and
    `"cumsum"` take the first, `"fft"` transforms the rows of the first, `"attention"` takes the first three
    as queries, keys and values (..., length, head size).
    """
    found: Products = {}
    for library in (_torch, _cupy):
        try:
            found |= library(kind, arrays)
        except ImportError:
            continue
    return found


def load(kind: str) -> None:
    """Import the libraries and let them start on the GPU, if the kind needs any."""
    if kind in ("", DEVICE_COPY):
        return
    with suppress(ImportError):
        import torch

        torch.zeros(1, device="cuda")
    with suppress(ImportError):
        import cupy

        cupy.zeros(1)


def _torch(kind: str, arrays: Sequence[Any]) -> Products:
    import torch

    held = [torch.as_tensor(array, device="cuda") for array in arrays]
    if kind == "matmul":
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        a, b = _factors(held)
        return {f"torch.matmul ({_name(a)}, cuBLAS)": lambda: torch.matmul(a, b)}
    if kind == "sum":
        return {"torch.sum": lambda: torch.sum(held[0])}
    if kind == "cumsum":
        return {"torch.cumsum": lambda: torch.cumsum(held[0], -1)}
    if kind == "fft":
        return {"torch.fft.fft (cuFFT)": lambda: torch.fft.fft(held[0])}
    if kind == "attention":
        q, k, v = (tensor if tensor.ndim == 4 else tensor[None] for tensor in held[:3])
        attend = torch.nn.functional.scaled_dot_product_attention
        return {f"torch scaled_dot_product_attention ({_backend(q, k, v)})": lambda: attend(q, k, v)}
    return {}


def _name(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _factors(held: Sequence[Any]) -> tuple[Any, Any]:
    """Two matrices that can be multiplied; the second is taken as transposed if only that fits."""
    a, b = held[:2]
    return (a, b) if a.shape[-1] == b.shape[-2] else (a, b.mT)


def _backend(q: Any, k: Any, v: Any) -> str:
    """The name of the implementation that torch picks by default, if it says."""
    import torch
    from torch.nn.attention import SDPBackend

    try:
        return SDPBackend(torch._fused_sdp_choice(q, k, v)).name.lower().replace("_", " ")
    except Exception:  # a private function: it may go
        return "default backend"


def _cupy(kind: str, arrays: Sequence[Any]) -> Products:
    import cupy

    held = [cupy.asarray(array) for array in arrays]
    if kind == "matmul" and held[0].dtype == cupy.float32:
        a, b = held[:2]
        return {"cupy.matmul (float32, cuBLAS)": lambda: cupy.matmul(a, b)}
    if kind == "sum":
        return {"cupy.sum": lambda: cupy.sum(held[0])}
    if kind == "cumsum":
        return {"cupy.cumsum": lambda: cupy.cumsum(held[0])}
    if kind == "fft":
        return {"cupy.fft.fft (cuFFT)": lambda: cupy.fft.fft(held[0])}
    return {}


def free() -> None:
    """Give back the memory that the libraries cache."""
    import sys

    if torch := sys.modules.get("torch"):
        torch.cuda.empty_cache()
    if cupy := sys.modules.get("cupy"):
        cupy.get_default_memory_pool().free_all_blocks()
