"""The swizzle modes of TMA, and what a misaligned tile does to their readers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from lanewise.errors import InvalidLayout, InvalidSwizzle
from lanewise.memory import shared_wavefronts
from lanewise.swizzles import Swizzle
from lanewise.tma import TMA_32B, TMA_64B, TMA_128B, TmaMode

LANE = np.arange(32)


@pytest.mark.parametrize(
    ("mode", "swizzle", "alignment"),
    [(TMA_32B, Swizzle(1, 4, 3), 256), (TMA_64B, Swizzle(2, 4, 3), 512), (TMA_128B, Swizzle(3, 4, 3), 1024)],
    ids=str,
)
def test_K_tc_14_the_modes_are_swizzles_of_the_byte_address(
    mode: TmaMode, swizzle: Swizzle, alignment: int
) -> None:
    assert (mode.swizzle, mode.alignment_bytes) == (swizzle, alignment)
    # A tile read back from an aligned base shows the XOR.
    row, byte = np.ix_(np.arange(8), np.arange(mode.row_bytes))
    moved = mode.address(5 * alignment, row, byte) - 5 * alignment
    assert Swizzle.from_map(moved.ravel()) == swizzle
    # And a kernel may index it in halves.
    tile = mode.tile(8, element_bytes=2)
    halves = np.ix_(np.arange(8), np.arange(mode.row_bytes // 2))
    assert (tile(*halves) * 2 == moved[:, ::2]).all()


@pytest.mark.parametrize("mode", [TMA_32B, TMA_64B, TMA_128B], ids=str)
def test_K_tc_14_ldmatrix_reads_every_mode_without_conflicts(mode: TmaMode) -> None:
    tile = mode.tile(32)
    for chunk in range(mode.row_bytes // 16):
        count, ideal = shared_wavefronts("ldmatrix.x4", 2 * tile(LANE, 8 * chunk)[None, :])
        assert (count[0], ideal[0]) == (4, 4)


@pytest.mark.parametrize(
    ("base", "wrong"), [(0, 0), (128, 64), (256, 64), (512, 64), (1024, 0), (1024 + 128, 64), (7 * 1024, 0)]
)
def test_C20_a_reader_that_counts_from_a_misaligned_tile_reads_the_wrong_chunks(
    base: int, wrong: int
) -> None:
    assert TMA_128B.misread_chunks(base).sum() == wrong
    # Slow count: write every chunk with its own number at the absolute XOR, read with the relative one.
    memory = {}
    for row in range(8):
        for chunk in range(8):
            address = base + 128 * row + 16 * chunk
            memory[address ^ (address >> 7 & 7) << 4] = (row, chunk)
    misread = [
        (row, chunk)
        for row in range(8)
        for chunk in range(8)
        if memory.get(base + 128 * row + 16 * (chunk ^ row)) != (row, chunk)
    ]
    assert len(misread) == wrong


@pytest.mark.parametrize("mode", [TMA_32B, TMA_64B, TMA_128B], ids=str)
def test_C20_aligned_means_nothing_is_misread(mode: TmaMode) -> None:
    for base in range(0, 4096, 128):
        aligned = base % mode.alignment_bytes == 0
        assert mode.misread_chunks(base).any() != aligned
        if aligned:
            mode.require_aligned(base)
        else:
            with pytest.raises(InvalidSwizzle, match="in the wrong place"):
                mode.require_aligned(base)


def test_C20_the_message_says_what_goes_wrong() -> None:
    with pytest.raises(InvalidSwizzle) as caught:
        TMA_128B.require_aligned(128)
    assert str(caught.value) == (
        "TMA 128B: base address 128 is not a multiple of 1024: a reader that counts from the tile's start finds"
        " 64 of 64 chunks in the wrong place. Align the tile to 1024 bytes, or XOR the absolute address."
    )
    with pytest.raises(InvalidSwizzle, match="base address 16 is not a multiple of 128, as every mode needs"):
        TMA_128B.misread_chunks(16)
    for row_bytes in (48, 128.0, "128", None, True):
        with pytest.raises(
            InvalidSwizzle, match=rf"no mode swizzles rows of {row_bytes!r} bytes\. Use 32, 64 or 128"
        ):
            TmaMode(row_bytes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: TMA_128B.address(-128, 0), InvalidSwizzle, "TMA 128B: base address: got -128; give a whole number of 0 or more."),
        (lambda: TMA_128B.require_aligned(1024.0), InvalidSwizzle, "TMA 128B: base address: got 1024.0;"),  # type: ignore[arg-type]
        (lambda: TMA_128B.address(0, 1.5), InvalidLayout, "TMA 128B: coordinate 1.5 is not an integer."),
        (lambda: TMA_64B.address(0, 0, byte=64), InvalidLayout, "TMA 64B: coordinate 64 is outside 0..63."),
        (lambda: TMA_64B.address(0, -1), InvalidLayout, "TMA 64B: coordinate -1 is outside"),
        (lambda: TMA_64B.tile(0), InvalidLayout, "TMA 64B: rows: got 0; give a whole number of 1 or more."),
        (lambda: TMA_64B.tile(8, element_bytes=0), InvalidSwizzle, "Swizzle: unit_bytes is 0 bytes."),
        (lambda: TMA_64B.tile(8, element_bytes=32), InvalidSwizzle, "Swizzle<2,4,3> moves pieces of 16 bytes, which tears units of 32 bytes."),
    ],
)  # fmt: skip
def test_bad_input(call: Callable, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_numpy_integers_of_few_bits_do_not_wrap_around() -> None:
    assert TMA_128B.address(np.int64(1024), np.int8(100), np.uint8(100)) == TMA_128B.address(1024, 100, 100)  # type: ignore[arg-type]
