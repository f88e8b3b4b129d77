"""Asynchronous copies from global to shared memory (cp.async), in groups that a thread commits and waits for."""

from __future__ import annotations

from typing import Any

from lanewise.ptx.declare import Address, Assembly, Constant, intrinsic

_PLAIN = "Load into a register and store it to the tile instead."


def _copy(cache: str, n_bytes: int) -> Assembly:
    return Assembly(
        f"cp.async.{cache}.shared.global [<dst>], [<src>], {n_bytes};",
        (Address("dst", "shared"), Address("src", "global")),
        effects=True,
    )


@intrinsic(_copy("ca", 4), needs=(8, 0), instead=_PLAIN)
def cp_async_4(dst: Any, dst_index: Any, src: Any, src_index: Any) -> None:
    """Start to copy 4 bytes from global to shared memory, through L1."""


@intrinsic(_copy("ca", 8), needs=(8, 0), instead=_PLAIN)
def cp_async_8(dst: Any, dst_index: Any, src: Any, src_index: Any) -> None:
    """Start to copy 8 bytes from global to shared memory, through L1."""


@intrinsic(_copy("ca", 16), needs=(8, 0), instead=_PLAIN)
def cp_async_16(dst: Any, dst_index: Any, src: Any, src_index: Any) -> None:
    """Start to copy 16 bytes from global to shared memory, through L1."""


@intrinsic(_copy("cg", 16), needs=(8, 0), instead=_PLAIN)
def cp_async_cg_16(dst: Any, dst_index: Any, src: Any, src_index: Any) -> None:
    """Start to copy 16 bytes from global to shared memory, past L1."""


@intrinsic(Assembly("cp.async.commit_group;", effects=True), needs=(8, 0), instead=_PLAIN)
def cp_async_commit() -> None:
    """Close the group of copies that this thread has started."""


@intrinsic(Assembly("cp.async.wait_group <n>;", (Constant("n"),), effects=True), needs=(8, 0), instead=_PLAIN)
def cp_async_wait(n: Any) -> None:
    """Wait until at most the last `n` groups of this thread are under way; `n` is a literal."""


@intrinsic(Assembly("cp.async.wait_all;", effects=True), needs=(8, 0), instead=_PLAIN)
def cp_async_wait_all() -> None:
    """Wait for every copy of this thread, committed or not."""
