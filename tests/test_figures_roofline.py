"""The roofline: marks lie where the data are, and under the roofs that were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.figures import InvalidDrawing, draw_roofline

ROOFS: dict[str, Any] = {"gb_per_s": {"DRAM": 4000.0}, "tflop_per_s": {"float32": 60.0}}
BOTH: dict[str, Any] = {
    "gb_per_s": {"DRAM": 4000.0, "shared memory": 32000.0},
    "tflop_per_s": {"Tensor Cores": 600.0, "float32": 60.0},
}


def marks(drawing: Any) -> list[list[float]]:
    lines = [line for line in drawing.ax.get_lines() if line.get_marker() == "o"]
    return [line.get_xydata()[0].tolist() for line in lines]


def test_marks_are_where_the_data_are() -> None:
    drawing = draw_roofline({"add": (0.08, 0.3), "product": (100.0, 48.0)}, **ROOFS)
    assert marks(drawing) == [[0.08, 0.3], [100.0, 48.0]]
    assert (drawing.ax.get_xscale(), drawing.ax.get_yscale()) == ("log", "log")


@pytest.mark.parametrize(("intensity", "most"), [(0.1, 0.4), (15.0, 60.0), (1000.0, 60.0)])
def test_without_a_rate_the_mark_stands_on_the_roof(intensity: float, most: float) -> None:
    drawing = draw_roofline({"ideal": (intensity, None)}, **ROOFS)
    assert marks(drawing) == [pytest.approx([intensity, most])]
    assert "at most" in drawing.alt


def test_slopes_meet_the_highest_level() -> None:
    lines: list[Any] = [
        line for line in draw_roofline({"a": (1, 1)}, **BOTH).ax.get_lines() if line.get_marker() != "o"
    ]
    dram, shared, tensor, float32 = (line.get_xydata().tolist() for line in lines)
    assert dram[1] == pytest.approx([150.0, 600.0])
    assert shared[1] == pytest.approx([18.75, 600.0])
    assert [y for _, y in tensor] == [600.0, 600.0]
    assert float32[0] == pytest.approx([1.875, 60.0])


def test_the_text_says_every_number() -> None:
    drawing = draw_roofline({"add": (0.25, 1.5), "ideal": (683.0, None)}, title="Trial", **BOTH)
    assert drawing.alt == (
        "Roofline: Trial. Slopes: DRAM 4,000 GB/s, shared memory 32,000 GB/s. Levels: Tensor Cores 600 TFLOP/s,"
        " float32 60 TFLOP/s. DRAM meets Tensor Cores at 150, float32 at 15 FLOP per byte. Kernels: a, add,"
        " 0.25 FLOP per byte, 1.5 TFLOP/s; b, ideal, 683 FLOP per byte, 600 TFLOP/s at most."
    )


def test_the_name_of_a_slope_keeps_away_from_the_marks() -> None:
    """The text starts at another place when a mark lies where it would have been."""

    def start(intensity: float) -> float:
        points = {"a": (intensity, 4 * intensity), "b": (0.02, 0.01)}
        texts: list[Any] = list(draw_roofline(points, **ROOFS).ax.texts)
        return next(float(text.xy[0]) for text in texts if text.get_text().startswith("DRAM"))

    assert start(0.1) > 0.2
    assert start(4.0) < 0.2


@pytest.mark.parametrize(
    ("points", "roofs", "words"),
    [
        ({}, {}, "one to 12 kernels"),
        ({str(n): (1, 1) for n in range(13)}, {}, "one to 12 kernels"),
        ({"a": 1}, {}, "'a' is 1; give"),
        ({"a": (1,)}, {}, "'a' is (1,)"),
        ({"a": (0, 1)}, {}, "FLOP per byte of 'a' is 0"),
        ({"a": (1, -1)}, {}, "TFLOP/s of 'a' is -1"),
        ({"a": (1, float("nan"))}, {}, "TFLOP/s of 'a' is nan"),
        ({"a": (1, True)}, {}, "TFLOP/s of 'a' is True"),
        ({"a": (1, 1)}, {"gb_per_s": {}}, "for gb_per_s; give one to 3"),
        ({"a": (1, 1)}, {"tflop_per_s": dict.fromkeys("abcd", 1)}, "for tflop_per_s; give one to 3"),
        ({"a": (1, 1)}, {"gb_per_s": {"DRAM": "4000"}}, "gb_per_s of 'DRAM' is '4000'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(points: Any, roofs: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidDrawing) as error:
        draw_roofline(points, **(ROOFS | roofs))
    assert words in str(error.value)


def test_the_name_of_a_slope_runs_along_it() -> None:
    points = {"a": (63, 131.0), "b": (4096, 88.0)}
    ax = draw_roofline(points, gb_per_s={"DRAM": 4800}, tflop_per_s={"mma": 602}).ax
    (name,) = (text for text in ax.texts if text.get_text().startswith("DRAM"))
    line = ax.lines[0]
    (x, y), (right, top) = ax.transData.transform(np.column_stack(line.get_data()))
    assert name.get_rotation() == pytest.approx(np.degrees(np.arctan2(top - y, right - x)))
