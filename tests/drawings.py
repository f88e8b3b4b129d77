"""Looking into a `Drawing`: its named rectangles, its hatching, and the texts inside a rectangle."""

import re

from matplotlib.patches import Rectangle

from lanewise.figures import Drawing


def boxes(drawing: Drawing, name: str) -> dict[str, Rectangle]:
    """The rectangles whose name matches a pattern, by name; a name may occur once."""
    named = [(patch.get_gid(), patch) for patch in drawing.ax.patches if isinstance(patch, Rectangle)]
    found = [(gid, patch) for gid, patch in named if gid and re.fullmatch(name, gid)]
    assert len(dict(found)) == len(found)
    return dict(found)


def hatched(drawing: Drawing) -> list[Rectangle]:
    return [patch for patch in drawing.ax.patches if isinstance(patch, Rectangle) and patch.get_hatch()]


def is_dashed(box: Rectangle) -> bool:
    return box.get_linestyle() not in ("-", "solid")


def texts_in(drawing: Drawing, box: Rectangle) -> list[str]:
    """The texts that start their baseline inside a box."""
    low_x, low_y, width, height = box.get_x(), box.get_y(), box.get_width(), box.get_height()
    inside = [
        text
        for text in drawing.ax.texts
        if low_x <= text.get_position()[0] <= low_x + width
        and low_y <= text.get_position()[1] <= low_y + height
    ]
    return [text.get_text() for text in sorted(inside, key=lambda text: text.get_position()[1])]


def rgb(colour: str) -> tuple[float, ...]:
    """Red, green and blue, 0 to 1, of a colour written #RRGGBB."""
    return tuple(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
