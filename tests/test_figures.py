"""Sector maps, bit pictures and charts: drawn to the byte, the bit and the value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.patches import Rectangle

from lanewise import memory
from lanewise.access import WarpAccess
from lanewise.figures import (
    InvalidDrawing,
    draw_comparison,
    draw_degree_curve,
    draw_sectors,
    draw_swizzle_bits,
    gcd_law,
)
from lanewise.instructions import INSTRUCTIONS, instruction
from lanewise.swizzles import Swizzle, xor_tile
from tests.drawings import boxes, hatched, is_dashed, texts_in
from tests.strategies import warp_accesses

F = WarpAccess.from_formula
GLOBAL = [name for name, spec in INSTRUCTIONS.items() if spec.space == "global" and not spec.not_modelled]
LANES = np.arange(32)
FEW = settings(max_examples=15, deadline=None)

# --- sectors ------------------------------------------------------------------------------------------------


@FEW
@given(warp_accesses(GLOBAL))
def test_sectors_and_bytes_are_drawn_to_the_byte(access: WarpAccess) -> None:
    cost = memory.global_cost(access)
    drawing = draw_sectors(access)
    assert {int(name.removeprefix("sector")) for name in boxes(drawing, r"sector\d+")} == set(
        cost.lanes_by_sector
    )
    used = sum(round(4 * box.get_width()) for box in boxes(drawing, r"byte\d+").values())
    width = instruction(access.instruction).bytes_per_lane
    assert used == len({access.addresses[lane] + byte for lane in access.lanes for byte in range(width)})


@pytest.mark.parametrize(
    ("access", "alt"),
    [
        (
            F("ld.global.b32", lambda n: 4 * n),
            "lanes 0..31: 4 sectors in 1 line; 128 of 128 bytes moved are used (100%).",
        ),
        (
            F("ld.global.b32", lambda n: 4 * n + 4),
            "lanes 0..31: 5 sectors in 2 lines; 128 of 160 bytes moved are used (80%).",
        ),
        (
            F("ld.global.b32", lambda n: 0 * n),
            "lanes 0..31: 1 sector in 1 line; 4 of 32 bytes moved are used (12.5%).",
        ),
        (
            F("ld.global.b32", lambda n: 128 * n),
            "lanes 0..31: 32 sectors in 32 lines; 128 of 1,024 bytes moved are used (12.5%).",
        ),
        (
            F("ld.global.b32", lambda n: 4 * n, 1),
            "lane 0: 1 sector in 1 line; 4 of 32 bytes moved are used (12.5%).",
        ),
        (F("ld.global.b32", lambda n: 4 * n, 0), "no active lane: no sector."),
    ],
)
def test_the_text_of_a_sector_map_counts_sectors_and_bytes(access: WarpAccess, alt: str) -> None:
    assert draw_sectors(access).alt == f"Sector map of ld.global.b32, {alt}"


def test_sectors_that_stay_behind_are_dashed_and_unused_bytes_hatched() -> None:
    drawing = draw_sectors(F("ld.global.b32", lambda n: 4 * n + 4))
    dashed = [
        p for p in drawing.ax.patches if isinstance(p, Rectangle) and p.get_width() == 8 and is_dashed(p)
    ]
    assert len(dashed) == 3
    assert len(hatched(drawing)) == 5 + 1  # sectors and the key


def test_a_sector_map_refuses_shared_memory() -> None:
    with pytest.raises(InvalidDrawing, match=r"got ld\.shared\.b32; .* For shared memory use draw_bank_map"):
        draw_sectors(F("ld.shared.b32", lambda n: 4 * n))


# --- swizzle bits -------------------------------------------------------------------------------------------


@FEW
@given(st.integers(0, 4), st.integers(0, 5), st.integers(0, 3), st.booleans())
def test_lines_join_the_bits_that_the_swizzle_couples(bits: int, base: int, extra: int, up: bool) -> None:
    swizzle = Swizzle(bits, base, -(bits + extra) if up else bits + extra)
    drawing = draw_swizzle_bits(swizzle)
    flips = {line.get_gid() for line in drawing.ax.lines} - {None}
    moved = {bit: swizzle(1 << bit) ^ 1 << bit for bit in range(20)}
    assert flips == {f"bit{bit}-flips-bit{flip.bit_length() - 1}" for bit, flip in moved.items() if flip}
    for bit, box in enumerate(boxes(drawing, r"after\d+").values()):
        readers = [f"^x{reader}" for reader, flip in moved.items() if flip == 1 << bit]
        assert texts_in(drawing, box) == [f"x{bit}", *readers]


@pytest.mark.parametrize(
    ("swizzle", "alt"),
    [
        (Swizzle(1, 0, 2), "bit 2 is read and stays; bit 2 flips bit 0."),
        (
            Swizzle(2, 1, -3),
            "bits 1, 2 are read and stay; bit 1 flips bit 4, 2 flips 5. The lowest bit stays, so runs of 2 offsets move together.",
        ),
        (Swizzle(0, 4, 3), "nothing moves, all bits stay."),
    ],
    ids=str,
)
def test_the_text_of_a_bit_picture_names_every_flip(swizzle: Swizzle, alt: str) -> None:
    assert draw_swizzle_bits(swizzle).alt == f"Bit picture of {swizzle}: {alt}"


def test_a_bit_picture_refuses_what_it_cannot_draw() -> None:
    with pytest.raises(InvalidDrawing, match=r"n_bits=9 leaves out bits of Swizzle<3,4,3>\. Use at least 10"):
        draw_swizzle_bits(Swizzle(3, 4, 3), n_bits=9)
    with pytest.raises(InvalidDrawing, match="got a XorTile; it draws a Swizzle"):
        draw_swizzle_bits(xor_tile(8, 8))  # type: ignore[arg-type]
    with pytest.raises(InvalidDrawing, match=r"n_bits: got 12\.0; give a whole number of 1 or more"):
        draw_swizzle_bits(Swizzle(3, 4, 3), n_bits=12.0)  # type: ignore[arg-type]


# --- charts -------------------------------------------------------------------------------------------------


def test_a_degree_curve_puts_a_ring_where_the_law_is() -> None:
    strides = list(range(1, 65))
    counts, _ = memory.shared_wavefronts("ld.shared.b32", np.outer(strides, 4 * LANES))
    drawing = draw_degree_curve(strides, counts)
    dots, rings = drawing.ax.lines
    np.testing.assert_array_equal(dots.get_ydata(), counts)
    np.testing.assert_array_equal(rings.get_ydata(), counts)
    assert drawing.alt.endswith("All points equal gcd(stride, 32).")


def test_a_degree_curve_says_where_the_law_fails() -> None:
    counts, _ = memory.shared_wavefronts("ld.shared.b64", np.outer([1, 2], 8 * LANES))
    assert draw_degree_curve([1, 2], counts, xlabel="stride in 64-bit words").alt == (
        "Wavefronts against stride in 64-bit words, 2 points: 2 at 1; 4 at 2. gcd(stride, 32) fails at 1, 2."
    )
    assert draw_degree_curve([1, 2], counts, law=None).alt.endswith("2 at 1; 4 at 2.")


def test_a_degree_curve_refuses_what_it_cannot_draw() -> None:
    with pytest.raises(InvalidDrawing, match="got 2 strides and 1 wavefronts"):
        draw_degree_curve([1, 2], [1])
    with pytest.raises(InvalidDrawing, match=r"0 wavefronts at stride 2; .* Leave the point out"):
        draw_degree_curve([1, 2], [1, 0])
    with pytest.raises(InvalidDrawing, match=r"wavefronts: got 1\.5; give a whole number"):
        draw_degree_curve([1, 2], [1, 1.5])  # type: ignore[list-item]
    with pytest.raises(InvalidDrawing, match="got None for strides; give a list of whole numbers"):
        draw_degree_curve(None, [1])  # type: ignore[arg-type]
    with pytest.raises(InvalidDrawing, match="got 3 for law; give a function of the stride"):
        draw_degree_curve([1, 2], [1, 2], law=3)  # type: ignore[arg-type]
    with pytest.raises(InvalidDrawing, match="gcd_law: stride: got 0; give a whole number of 1 or more"):
        gcd_law(0)  # a broadcast, which takes 1 wavefront and not gcd(0, 32)


def test_the_gcd_law_is_what_the_model_counts() -> None:
    strides = list(range(1, 200))
    counts, _ = memory.shared_wavefronts("ld.shared.b32", np.outer(strides, 4 * LANES))
    assert counts.tolist() == [gcd_law(stride) for stride in strides]


def test_bars_are_as_long_as_their_values() -> None:
    values: dict[str, list[float | None]] = {
        "wavefronts": [1048576, 32768, 32768],
        "conflicts": [1015808, 0, None],
    }
    drawing = draw_comparison(["unpadded", "padded", "xor"], values)
    widths = {name: box.get_width() for name, box in boxes(drawing, r"bar\d-\d").items()}
    scale = widths["bar0-0"] / 1048576
    expected = {f"bar{rung}-{row}": n for row, ns in enumerate(values.values()) for rung, n in enumerate(ns)}
    assert widths == pytest.approx({name: scale * n for name, n in expected.items() if n is not None})
    texts = [text.get_text() for text in drawing.ax.texts]
    assert {"1,048,576", "1,015,808", "32,768", "0", "no number"} <= set(texts)


def test_the_text_of_a_comparison_gives_every_value() -> None:
    drawing = draw_comparison(["naive", "tiled"], {"time": [1.25, None]}, unit="us", title="Transpose")
    assert drawing.alt == "Transpose. time: naive 1.25 us, tiled no number."


@pytest.mark.parametrize(
    ("labels", "values", "message"),
    [
        ([], {"a": []}, "got 0 labels and 1 series"),
        (["x"], {name: [1] for name in "abcde"}, "got 1 labels and 5 series; .* one to 4 series"),
        (["x", "y"], {"a": [1]}, r"'a' has values \[1\] for 2 labels"),
        (["x"], {"a": [-1]}, "'a' of 'x' is -1; bars start at 0"),
        (["x"], {"a": [float("nan")]}, "'a' of 'x' is nan"),
        (["x"], {"a": ["1"]}, "'a' of 'x' is '1'; bars start at 0"),
        (["x"], {"a": [True]}, "'a' of 'x' is True"),
        (["x"], {"a": 1}, "'a' has values 1 for 1 labels"),
        ("x", {"a": [1]}, "Give a list of labels"),
        (["x"], [1], r"values \[1\]\. Give a list of labels, and values as"),
    ],
)
def test_a_comparison_refuses_what_it_cannot_draw(labels: list[str], values: dict, message: str) -> None:
    with pytest.raises(InvalidDrawing, match=message):
        draw_comparison(labels, values)
