"""The listing of a trace: every access under its line, heat as long as its excess, words from the data."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from lanewise.figures import Drawing, InvalidDrawing, draw_trace, style
from lanewise.figures.listing import BAR_WIDTH, MOST_CHARACTERS, tint
from lanewise.kernels import padding
from lanewise.trace import Trace, functions_in, trace
from tests.drawings import boxes, rgb

HEAD = "from numba import cuda, float32\n"


def traced(body: str, *arrays: Any, block: int = 64, name: str = "kernel.py") -> Trace:
    """The trace of `def k(a, b)` with a body; its source can be found as a file's or a notebook cell's can."""
    text = HEAD + body
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    a, b = arrays or (np.zeros(4096, np.float32), np.zeros(4096, np.float32))
    return trace(functions_in(text, name)["k"], 1, block, a, b)


def transposed(rung: str) -> Trace:
    src = np.arange(64 * 96, dtype=np.float32).reshape(64, 96)
    kernel = getattr(padding, f"transpose_{rung}")
    return trace(kernel, padding.grid_of(src), padding.BLOCK, src, np.zeros((96, 64), np.float32))


def texts(drawing: Drawing) -> list[str]:
    return [text.get_text() for text in drawing.ax.texts]


@pytest.mark.parametrize("rung", ["naive", "tiled", "padded", "swizzled"])
def test_bars_are_as_long_as_the_excess_is_of_its_memorys_traffic(rung: str) -> None:
    t = transposed(rung)
    shares = []
    for site in t.sites:
        if site.space == "shared":
            shares.append(site.excess / t.shared.total.wavefronts)
        else:
            shares.append(site.excess / t.global_.total.sectors)
    drawing = draw_trace(t)
    drawn = [box.get_width() / BAR_WIDTH for box in boxes(drawing, r"excess.*").values()]
    assert drawn == pytest.approx([share for share in shares if share])
    assert {name.removeprefix("heat") for name in boxes(drawing, r"heat\d+")} == {
        str(site.line) for site, share in zip(t.sites, shares, strict=True) if share
    }


def test_the_whole_function_is_listed_from_its_def_on() -> None:
    shown = texts(draw_trace(transposed("tiled")))
    assert shown[2:4] == [
        str(padding.transpose_tiled.py_func.__code__.co_firstlineno + 1),
        "def transpose_tiled(src, dst):",
    ]
    assert "cuda.syncthreads()  # the tile is full before anyone reads a column of it" in shown
    assert not any("def transpose_padded" in text for text in shown)


def test_the_text_gives_every_access_with_its_cost() -> None:
    body = "def k(a, b):\n    t = cuda.threadIdx.x\n    b[t] = a[32 * t]\n"
    assert draw_trace(traced(body)).alt == (
        "Listing of k, 1 block of 64 threads, as written, 3 lines."
        " Line 4: st.global.b32 of b: 8 sectors, the fewest possible."
        " Line 4: ld.global.b32 of a: 64 sectors, 8 would do (78% of the kernel's sectors are this excess)."
    )


def test_the_verdict_names_the_worst_line_or_the_hazard_or_nothing() -> None:
    worst = "def k(a, b):\n    t = cuda.threadIdx.x\n    b[t] = a[2 * t]\n    b[t + 64] = a[32 * t]\n"
    clean = "def k(a, b):\n    t = cuda.threadIdx.x\n    b[t] = a[t]\n"
    race = "def k(a, b):\n    b[0] = cuda.threadIdx.x\n"
    found = {
        name: texts(draw_trace(traced(body)))[0]
        for name, body in (("worst", worst), ("clean", clean), ("race", race))
    }
    assert found == {
        "worst": "line 5: 56 sectors in excess",
        "clean": "no excess",
        "race": "1 hazard to mend before any count matters",
    }
    assert "hazard: global race" in texts(draw_trace(traced("def k(a, b):\n    b[0] = cuda.threadIdx.x\n")))


def test_a_broadcast_is_no_excess() -> None:
    body = "def k(a, b):\n    b[cuda.threadIdx.x] = a[0]\n"
    assert "ld.global.b32 of a: 2 sectors, the fewest possible" in texts(draw_trace(traced(body)))


def test_an_access_without_a_model_claims_no_cost() -> None:
    body = "def k(a, b):\n    cuda.atomic.add(b, 0, a[cuda.threadIdx.x])\n"
    assert "red.global.add.f32 of b: 2 requests, cost not modelled" in texts(draw_trace(traced(body)))


def test_source_that_changed_since_is_not_shown() -> None:
    t = traced("def k(a, b):\n    b[cuda.threadIdx.x] = a[0]\n", name="changed.py")
    linecache.cache["changed.py"] = (1, None, ["# another file\n"] * 9, "changed.py")
    shown = texts(draw_trace(t))
    assert "b[cuda.threadIdx.x] = a[0]" in shown
    assert "# another file" not in shown


def test_a_called_function_is_listed_too() -> None:
    body = "def put(a, i):\n    a[i] = 1\n\n\ndef k(a, b):\n    put(a, cuda.threadIdx.x)\n    b[cuda.threadIdx.x] = 2\n"
    shown = texts(draw_trace(traced(body)))
    assert {"def put(a, i):", "a[i] = 1", "def k(a, b):"} <= set(shown)


def test_long_lines_are_wrapped_and_all_text_is_inside_and_apart() -> None:
    long = " + ".join(f"a[{n} * t]" for n in range(14))
    body = f"def k(a, b):\n    t = cuda.threadIdx.x\n    b[t] = {long}\n"
    drawing = draw_trace(traced(body))
    assert max(map(len, texts(drawing))) <= MOST_CHARACTERS
    with style.settings():
        FigureCanvasAgg(drawing.figure).draw()
        page = drawing.figure.bbox.padded(1)
        found = [text for text in drawing.figure.findobj(Text) if text.get_text()]
        spots = [text.get_window_extent() for text in found]
    assert all(page.x0 <= spot.x0 and spot.x1 <= page.x1 for spot in spots)
    assert all(float(text.get_fontsize()) >= style.SMALLEST for text in found)
    percents = [spot.x1 for spot, text in zip(spots, found, strict=True) if text.get_text().endswith("%")]
    words = [spot.x0 for spot, text in zip(spots, found, strict=True) if "would do" in text.get_text()]
    assert len(percents) == len(words) == 12
    assert max(percents) < min(words)


def test_every_tint_lets_text_be_read() -> None:
    shades = [tint(share / 20) for share in range(1, 21)]
    assert min(style.contrast(style.INK, shade) for shade in shades) >= 4.5
    assert len(set(shades)) > 15
    assert rgb(tint(1.0).upper()) == pytest.approx(rgb(style.DANGER.fill))


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidDrawing, match=r"got a int; give it the result of lanewise\.trace"):
        draw_trace(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidDrawing, match="k accesses neither shared nor global memory"):
        draw_trace(traced("def k(a, b):\n    t = cuda.threadIdx.x\n"))
