"""Line charts: what is drawn is what was given, and what cannot be drawn is refused in a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.figures import InvalidDrawing, draw_lines

LABELS: dict[str, Any] = {"xlabel": "size (MiB)", "ylabel": "GB/s"}


def test_points_are_where_the_data_are() -> None:
    drawing = draw_lines([1, 2, 8], {"copy": [3.0, 5.0, 7.0], "naive": [1.0, None, 2.0]}, **LABELS)
    copy, naive = drawing.ax.get_lines()
    np.testing.assert_array_equal(copy.get_xydata(), [[1, 3], [2, 5], [8, 7]])
    np.testing.assert_array_equal(naive.get_xydata(), [[1, 1], [8, 2]])
    assert (copy.get_marker(), copy.get_linestyle()) != (naive.get_marker(), naive.get_linestyle())


def test_the_text_says_every_number() -> None:
    drawing = draw_lines([1, 2048], {"copy": [3.25, None]}, level=("roof", 4305), title="Sizes", **LABELS)
    assert drawing.alt == (
        "Sizes: GB/s against size (MiB). copy: 3.25 at 1, no number at 2,048. roof: 4,305 everywhere."
    )


def test_axes_are_linear_from_zero_or_logarithmic() -> None:
    series = {"copy": [30.0, 500.0]}
    assert draw_lines([1, 2], series, **LABELS).ax.get_ylim()[0] == 0
    both = draw_lines([1, 1024], series, log_x=True, log_y=True, **LABELS).ax
    assert (both.get_xscale(), both.get_yscale()) == ("log", "log")
    assert both.get_ylim() == (16, 512)


def test_a_level_is_inside_the_chart() -> None:
    assert draw_lines([1, 2], {"copy": [1.0, 2.0]}, level=("roof", 9), **LABELS).ax.get_ylim()[1] > 9


@pytest.mark.parametrize(
    ("x", "series", "options", "words"),
    [
        ([], {"a": []}, {}, "at least one place"),
        ([1], {}, {}, "one to 4 series"),
        ([1], {name: [1] for name in "abcde"}, {}, "got 1 places and 5 series"),
        ([1, 2], {"a": [1]}, {}, "'a' has 1 numbers for 2"),
        ([2, 1], {"a": [1, 2]}, {}, "does not rise"),
        ([1, 1], {"a": [1, 2]}, {}, "does not rise"),
        ([1], {"a": [None]}, {}, "no number at all"),
        ([1], {"a": [float("nan")]}, {}, "'a' holds nan"),
        ([1], {"a": [-1]}, {}, "'a' holds -1"),
        ([1], {"a": ["1"]}, {}, "'a' holds '1'"),
        ([1], {"a": [0]}, {"log_y": True}, "more than 0"),
        ([0], {"a": [1]}, {"log_x": True}, "x holds 0"),
        ([1], {"a": [1]}, {"level": ("roof", float("inf"))}, "level 'roof' holds inf"),
    ],
)
def test_what_cannot_be_drawn_is_refused(x: Any, series: Any, options: Any, words: str) -> None:
    with pytest.raises(InvalidDrawing, match=words):
        draw_lines(x, series, **LABELS, **options)
