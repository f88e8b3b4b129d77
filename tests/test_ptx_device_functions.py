"""A device function is compiled for the target of the kernel that calls it, whatever was compiled before."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba.cuda")

from lanewise import ptx
from lanewise.lowering import lower, why_unavailable

pytestmark = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "kernels compile here")

cuda: Any = import_module("numba.cuda")  # its modules are found at run time
ONE_INSTRUCTION = "cvt.rn.f16x2.f32"  # what two float32 are packed with from compute capability 8.0 on
ORDERS = pytest.mark.parametrize("targets", [("sm_75", "sm_90"), ("sm_90", "sm_75")], ids="-".join)
PAIRS = np.zeros((32, 2), np.float32), np.zeros(32, np.uint32)


def packing(inline: str) -> Any:
    """A kernel that packs in a function of a function; new ones at each call."""

    @cuda.jit(device=True, inline=inline)
    def packed(lo: Any, hi: Any) -> Any:
        return ptx.pack_half2(lo, hi)

    @cuda.jit(device=True, inline=inline)
    def packed_pair(src: Any, i: Any) -> Any:
        return packed(src[i, 0], src[i, 1])

    @cuda.jit
    def pack(src: Any, dst: Any) -> None:
        i = cuda.grid(1)
        dst[i] = packed_pair(src, i)

    return pack


def bfloats(inline: str) -> Any:
    """A kernel that packs in a function as compute capability 7.5 cannot."""

    @cuda.jit(device=True, inline=inline)
    def packed(lo: Any, hi: Any) -> Any:
        return ptx.pack_bf16x2(lo, hi)

    @cuda.jit
    def pack(src: Any, dst: Any) -> None:
        i = cuda.grid(1)
        dst[i] = packed(src[i, 0], src[i, 1])

    return pack


@pytest.mark.parametrize("inline", ["never", "always"])
@ORDERS
def test_a_target_gets_its_own_instructions(targets: tuple[str, ...], inline: str) -> None:
    kernel = packing(inline)
    held = {target: lower(kernel, PAIRS, target).compiled.ptx for target in targets}
    assert {target: ONE_INSTRUCTION in text for target, text in held.items()} == {
        "sm_75": False,
        "sm_90": True,
    }
    assert all("cvt.rn.f16" in text for text in held.values())


@pytest.mark.parametrize("inline", ["never", "always"])
@ORDERS
def test_a_target_that_lacks_an_instruction_is_refused(targets: tuple[str, ...], inline: str) -> None:
    kernel = bfloats(inline)
    for target in targets:
        if target == "sm_75":
            with pytest.raises(
                ptx.UnsupportedCapability, match=r"pack_bf16x2 needs .+ 8\.0 .+ compiled for 7\.5"
            ):
                lower(kernel, PAIRS, target)
        else:
            assert "cvt.rn.bf16x2.f32" in lower(kernel, PAIRS, target).compiled.ptx


def test_what_was_compiled_for_a_launch_stays() -> None:
    """A launch after `lower` must not get code for another GPU."""
    kernel = packing("never")
    (device_function,) = (cell.cell_contents for cell in kernel.py_func.__closure__ or ())
    launched = {("types of a launch",): SimpleNamespace(entry_point="as launched")}
    device_function.overloads.update(launched)
    assert ONE_INSTRUCTION in lower(kernel, PAIRS, "sm_90").compiled.ptx
    assert device_function.overloads == launched
