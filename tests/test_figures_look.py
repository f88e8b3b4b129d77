"""The look of figures and their files: contrast, legible text, deterministic SVG, and no trace left behind."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from lanewise.access import WarpAccess
from lanewise.figures import (
    Drawing,
    InvalidDrawing,
    draw_address_grid,
    draw_bank_map,
    draw_comparison,
    draw_degree_curve,
    draw_fragment,
    draw_lines,
    draw_matrix_move,
    draw_replay,
    draw_roofline,
    draw_sectors,
    draw_swizzle_bits,
    draw_timeline,
    gcd_law,
    style,
    svg,
)
from lanewise.figures.grid import shade
from lanewise.fragments import M16N8K16
from lanewise.pipeline import Pipeline
from lanewise.swizzles import Swizzle, xor_tile

SOURCE = Path(__file__).resolve().parent.parent / "src"
SVG = "{http://www.w3.org/2000/svg}"
F = WarpAccess.from_formula

EXAMPLES: dict[str, Callable[..., Drawing]] = {
    "bank map": lambda **k: draw_bank_map(F("ld.shared.b32", lambda n: 8 * n), **k),
    "bank map, 32-way": lambda **k: draw_bank_map(F("ld.shared.b32", lambda n: 128 * n), **k),
    "bank map, broadcast": lambda **k: draw_bank_map(F("ld.shared.b32", lambda n: 0 * n), **k),
    "bank map, fused": lambda **k: draw_bank_map(F("ld.shared.b128", lambda n: 16 * (n // 2)), **k),
    "bank map, ldmatrix": lambda **k: draw_bank_map(F("ldmatrix.x4.trans", lambda n: 64 * n), **k),
    "bank map, scattered lanes": lambda **k: draw_bank_map(F("ld.shared.b8", lambda n: n * n % 9), **k),
    "bank map, no lane": lambda **k: draw_bank_map(F("ld.shared.b32", lambda n: 4 * n, 0), **k),
    "replay": lambda **k: draw_replay(F("ld.shared.b32", lambda n: 128 * n), **k),
    "replay, wide": lambda **k: draw_replay(F("ld.shared.b128", lambda n: 16 * n, 0xFFFF00FF), **k),
    "grid": lambda **k: draw_address_grid(33, 10, 32, **k),
    "grid, access": lambda **k: draw_address_grid(
        32, 8, 32, access=WarpAccess.from_tile("ld.shared.b32", lambda n: n, 0, 32), **k
    ),
    "grid, elided": lambda **k: draw_address_grid(33, (0, 1, 31), (0, 1, 31, 32), padding_from=32, **k),
    "grid, large words": lambda **k: draw_address_grid(
        1001, 4, range(8), label="word", base_address=9000, **k
    ),
    "grid, chunks": lambda **k: draw_address_grid(
        xor_tile(8, 8), 8, 8, element_bytes=16, label="chunk", title="XOR", **k
    ),
    "swizzle": lambda **k: draw_swizzle_bits(Swizzle(3, 4, 3), **k),
    "swizzle, wide": lambda **k: draw_swizzle_bits(Swizzle(5, 7, 6), **k),
    "fragment": lambda **k: draw_fragment(M16N8K16.a, lane=5, **k),
    "fragment, by columns": lambda **k: draw_fragment(M16N8K16.b, **k),
    "matrix move": lambda **k: draw_matrix_move("ldmatrix.x4", lane=9, **k),
    "matrix move, by columns": lambda **k: draw_matrix_move("stmatrix.x1.trans", **k),
    "sectors": lambda **k: draw_sectors(F("ld.global.b32", lambda n: 8 * n + 4), **k),
    "sectors, halves": lambda **k: draw_sectors(F("st.global.b16", lambda n: 6 * n), **k),
    "sectors, far": lambda **k: draw_sectors(F("ld.global.b128", lambda n: 12800 * n), **k),
    "curve": lambda **k: draw_degree_curve(
        range(1, 34), [gcd_law(s) for s in range(1, 34)], title="Full warp", **k
    ),
    "comparison": lambda **k: draw_comparison(
        ["a", "b"], {"wavefronts": [1048576, 32768], "excess": [1e6, None]}, **k
    ),
    "curve, roofline": lambda **k: draw_roofline(
        {"vector add": (0.08, 0.3), "product": (1365, 449), "fused": (2048, None)},
        gb_per_s={"DRAM": 4401, "shared memory": 31586},
        tflop_per_s={"Tensor Cores": 602, "float32": 63.7},
        title="Measured",
        **k,
    ),
    "timeline": lambda **k: draw_timeline(Pipeline(9, 2, 2, 1, latency=5, blocks=2), title="Blocks", **k),
    "timeline, narrow boxes": lambda **k: draw_timeline(Pipeline(24, 3, 0.1, 4), **k),
    "curve, lines": lambda **k: draw_lines(
        [1, 2, 4, 64],
        {"copy": [7.5, 9, 20, 512], "stride 8": [0.5, None, 3, 4]},
        xlabel="size (MiB)",
        ylabel="GB/s",
        log_x=True,
        log_y=True,
        level=("roof", 600),
        title="Roofs",
        **k,
    ),
}


@cache
def drawn(name: str) -> Drawing:
    return EXAMPLES[name]()


@cache
def svg_of(name: str) -> str:
    return drawn(name).svg()


# --- palette ------------------------------------------------------------------------------------------------


def test_contrast_is_the_formula_of_wcag() -> None:
    assert style.contrast("#FFFFFF", "#000000") == pytest.approx(21)
    assert style.contrast("#777777", "#FFFFFF") == pytest.approx(4.478, abs=1e-3)  # the guideline's near miss
    assert style.contrast("#767676", "#FFFFFF") == pytest.approx(4.542, abs=1e-3)


@pytest.mark.parametrize(("foreground", "background"), style.MARKS.values(), ids=style.MARKS)
def test_marks_stand_out(foreground: str, background: str) -> None:
    assert style.contrast(foreground, background) >= 3


@pytest.mark.parametrize(("foreground", "background"), style.TEXTS.values(), ids=style.TEXTS)
def test_text_reads(foreground: str, background: str) -> None:
    assert style.contrast(foreground, background) >= 4.5


def test_text_reads_on_every_shade_of_a_grid() -> None:
    shades = [shade(bank / 31) for bank in range(32)]
    assert min(style.contrast(style.INK, fill) for fill in shades) >= 4.5
    assert len(set(shades)) == 32


@pytest.mark.parametrize("name", EXAMPLES)
def test_figures_use_no_pair_of_colours_but_the_checked_ones(name: str) -> None:
    checked = {foreground for foreground, _ in style.TEXTS.values()}
    assert {text.get_color() for text in drawn(name).ax.texts} <= checked


def bold(style: str) -> bool:
    return "font-weight: 700" in style


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_text_is_bold_in_the_svg_where_it_was_drawn_bold(name: str) -> None:
    root = ElementTree.fromstring(svg_of(name))
    assert not bold(root.attrib["style"])
    written: dict[str, list[bool]] = {}
    for node in root.iter(f"{SVG}text"):
        written.setdefault("".join(node.itertext()).strip(), []).append(bold(node.get("style", "")))
    for text in drawn(name).ax.texts:
        if text.get_text() in written:
            assert (text.get_fontweight() == "bold") in written[text.get_text()], text.get_text()


# --- legible text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_text_is_large_enough_and_inside_the_figure(name: str) -> None:
    figure = drawn(name).figure
    with style.settings():
        FigureCanvasAgg(figure).draw()
        page = figure.bbox.padded(1)
        texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
        assert texts
        for text in texts:
            assert float(text.get_fontsize()) >= style.SMALLEST, text
            box = text.get_window_extent()
            assert page.x0 <= box.x0 <= box.x1 <= page.x1, text
            assert page.y0 <= box.y0 <= box.y1 <= page.y1, text


@pytest.mark.parametrize("name", [name for name in EXAMPLES if not name.startswith("curve")])
def test_texts_do_not_overlap(name: str) -> None:
    figure = drawn(name).figure
    with style.settings():
        FigureCanvasAgg(figure).draw()
        # The line box of a text is higher than its letters; the middle half is surely ink.
        boxes = [text.get_window_extent() for text in drawn(name).ax.texts if text.get_text()]
        strips = sorted((box.y0 + box.height / 4, box.y1 - box.height / 4, box.x0, box.x1) for box in boxes)
    for position, (low, high, left, right) in enumerate(strips):
        for other_low, _, other_left, other_right in strips[position + 1 :]:
            if other_low >= high:
                break
            assert other_left >= right or other_right <= left, (low, left)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_figure_fits_a_page_and_has_its_own_ground(name: str) -> None:
    figure = drawn(name).figure
    assert figure.get_figwidth() * 96 <= 720.01
    assert to_hex(figure.get_facecolor(), keep_alpha=True) == f"{style.PAPER.lower()}ff"


# --- files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_same_data_gives_the_same_bytes_whatever_the_reader_has_set(name: str) -> None:
    hostile: dict[Any, Any] = {
        "font.size": 30, "font.family": "serif", "text.color": "red", "svg.fonttype": "path", "axes.grid": True,
        "axes.facecolor": "black", "savefig.facecolor": "green", "hatch.linewidth": 5, "text.usetex": True,
    }  # fmt: skip
    with matplotlib.rc_context(hostile):
        assert EXAMPLES[name]().svg() == svg_of(name)


def test_drawing_twice_gives_the_same_bytes() -> None:
    for name in ("curve", "bank map"):
        assert drawn(name).svg() == svg_of(name)


def test_another_process_writes_the_same_bytes() -> None:
    script = (
        "import hashlib\n"
        "from lanewise import WarpAccess, figures\n"
        "access = WarpAccess.from_formula('ld.shared.b32', lambda n: 8 * n)\n"
        "print(hashlib.sha256(figures.draw_bank_map(access).svg().encode()).hexdigest())\n"
    )
    expected = hashlib.sha256(EXAMPLES["bank map"]().svg().encode()).hexdigest()
    assert [_run(script, seed) for seed in ("1", "2")] == [expected, expected]


def test_figures_leave_pyplot_alone() -> None:
    script = (
        "import sys, lanewise as lw\n"
        "before = 'matplotlib' in sys.modules\n"
        "drawing = lw.figures.draw_bank_map(lw.WarpAccess.from_formula('ld.shared.b32', lambda n: 8 * n))\n"
        "drawing.svg()\n"
        "print(before, 'matplotlib' in sys.modules, 'matplotlib.pyplot' in sys.modules)\n"
    )
    assert _run(script, "0") == "False True False"


def _run(script: str, hash_seed: str) -> str:
    environment = {"PYTHONPATH": str(SOURCE), "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return result.stdout.strip()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_svg_is_small_named_and_keeps_its_text(name: str) -> None:
    drawing = drawn(name)
    text = svg_of(name)
    root = ElementTree.fromstring(text)
    assert (root.get("role"), root.get("aria-label")) == ("img", drawing.alt)
    assert [node.text for node in root.iter(f"{SVG}text")].count(None) == 0
    written = {node.text for node in root.iter(f"{SVG}text")}
    assert {artist.get_text() for artist in drawing.ax.texts} <= written
    assert not list(root.iter(f"{SVG}style")), "a style sheet would reach the page around the figure"
    # Hatchings, markers and clips are named by their content, so that a repeated id is a repeated thing.
    ids = [node.get("id") for node in root.iter() if node.get("id")]
    assert all(re.fullmatch(r"[hmp][0-9a-f]{10}", str(name)) for name in ids), ids


def test_a_full_grid_stays_small_enough_for_a_notebook() -> None:
    assert len(draw_address_grid(33, 32, 32).svg()) < 130_000


def test_compaction_changes_no_shape() -> None:
    raw = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="9pt"><defs><style>*{stroke-linejoin: round}</style></defs>'
        '<g id="figure_1"><g id="patch_1"><path d="M 1.23456 2 \nL 4.5 2 \nL 4.5 8.25 \nL 1.23456 8.25 \nz\n" style="fill: none"/></g>'
        '<g id="word3"><path d="M 1 2 \nL 4 3 \nz\n"/></g>'
        '<g id="text_1"><text style="font-size: 9px; font-family: \'A\', sans-serif" x="1" transform="rotate(-0 1 2)">a b</text></g>'
        '<g id="text_2"><text style="font-size: 9px; font-family: \'A\', sans-serif" x="1" transform="rotate(-90 1 2)">c</text></g>'
        "</g></svg>"
    )
    root = ElementTree.fromstring(svg.compact(raw, label='5 < 6 & "so"'))
    rectangle, triangle = root.iter(f"{SVG}path")
    assert rectangle.get("d") == "M1.23 2h3.27v6.25h-3.27z"
    assert (triangle.get("d"), triangle.get("data-name")) == ("M1 2L4 3z", "word3")
    first, second = root.iter(f"{SVG}text")
    assert (first.text, first.get("transform"), first.get("style")) == ("a b", None, None)
    assert (second.text, second.get("transform")) == ("c", "rotate(-90 1 2)")
    assert "font-family: 'A', sans-serif; font-size: 9px" in root.attrib["style"]
    assert root.get("aria-label") == '5 < 6 & "so"'


def test_a_notebook_gets_svg_and_the_description() -> None:
    drawing = drawn("bank map")
    assert drawing._repr_mimebundle_() == {"image/svg+xml": drawing.svg(), "text/plain": drawing.alt}
    assert repr(drawing) == drawing.alt


def test_save_writes_svg_and_png_of_the_width_asked_for(tmp_path: Path) -> None:
    drawing = drawn("swizzle")
    assert drawing.save(tmp_path / "a.svg").read_text() == drawing.svg()
    png = drawing.save(tmp_path / "a.png", width_px=390).read_bytes()
    assert (png[:4], int.from_bytes(png[16:20])) == (b"\x89PNG", 390)
    with pytest.raises(
        InvalidDrawing, match=r"cannot write 'a\.pdf'\. Give a name that ends in \.svg or \.png"
    ):
        drawing.save(tmp_path / "a.pdf")
    for width_px in (0, 1.5, "390", 10**6):
        with pytest.raises(
            InvalidDrawing, match=f"width_px: got {width_px!r}; give a whole number from 1 to 20,000"
        ):
            drawing.save(tmp_path / "b.png", width_px=width_px)  # type: ignore[arg-type]


def test_axes_are_matplotlibs() -> None:
    access = WarpAccess.from_formula("ld.shared.b32", lambda lane: 4 * lane)
    for ax in ("ax", np.array([1, 2])):
        with pytest.raises(InvalidDrawing, match=r"ax: got .*; a figure is drawn in Axes\. Take them from"):
            draw_bank_map(access, ax=ax)  # type: ignore[arg-type]
        with pytest.raises(InvalidDrawing, match=r"ax: got .*; a figure is drawn in Axes"):
            draw_degree_curve([1], [1], ax=ax)  # type: ignore[arg-type]


# --- axes that are given ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["bank map, fused", "replay", "grid, elided", "swizzle", "sectors", "curve", "comparison"]
)
def test_drawing_into_given_axes_leaves_the_rest_alone(name: str) -> None:
    figure = Figure(figsize=(10, 4))
    other, ax = figure.subplots(1, 2)
    other.plot([1, 2, 3])
    before = (other.get_xlim(), other.get_ylim(), len(other.get_children()), other.get_position().bounds)
    settings = dict(matplotlib.rcParams)
    drawing = EXAMPLES[name](ax=ax)
    assert (drawing.ax, drawing.figure) == (ax, figure)
    assert drawing.alt == drawn(name).alt
    assert before == (
        other.get_xlim(),
        other.get_ylim(),
        len(other.get_children()),
        other.get_position().bounds,
    )
    assert figure.axes == [other, ax]
    assert dict(matplotlib.rcParams) == settings


def test_type_and_lines_shrink_with_the_axes() -> None:
    figure = Figure(figsize=(7.5, 20))
    half = figure.add_axes((0, 0, 0.5, 1))
    small, full = EXAMPLES["bank map"](ax=half), drawn("bank map")
    for text, large in zip(small.ax.texts, full.ax.texts, strict=True):
        assert float(text.get_fontsize()) == pytest.approx(float(large.get_fontsize()) / 2)
    for patch, large_patch in zip(small.ax.patches, full.ax.patches, strict=True):
        assert patch.get_linewidth() == pytest.approx(large_patch.get_linewidth() / 2)
