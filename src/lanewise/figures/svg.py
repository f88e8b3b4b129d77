"""Make Matplotlib's SVG small: a page holds dozens of figures, and a notebook stores each of them as text.

What goes: document type and style sheet, wrapper groups with automatic ids (which would also repeat across a
page), rotations by zero, and digits beyond 0.01 pt; the commonest text style moves to the root.
Nothing that shows changes.
"""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_AUTOMATIC_ID = re.compile(
    r"(figure|axes|patch|text|line2d|matplotlib\.axis|xtick|ytick|[A-Za-z]*Collection)_\d+"
)
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_FONT_WEIGHT = re.compile(r"\s*font-weight: [^;]*;?")
_FONT_FAMILY = re.compile(r"\s*font-family: ([^;]*);?")
_SPACE_AROUND_LETTER = re.compile(r"\s*([A-Za-z])\s*")
_POINT = r"(-?[\d.]+) (-?[\d.]+)"
_RECTANGLE = re.compile(f"M{_POINT}L{_POINT}L{_POINT}L{_POINT}z")
_NUMERIC = ("d", "x", "y", "width", "height", "viewBox", "transform")


def compact(svg: str, label: str) -> str:
    """Return the SVG text without ballast and with `label` as its accessible name."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(svg)
    families = {family for node in root.iter() for family in _FONT_FAMILY.findall(node.get("style", ""))}
    one_family = families.pop() if len(families) == 1 else None
    for node in root.iter():
        _shorten(node, drop_family=one_family is not None)
    _unwrap(root)
    _inherit(root, one_family)
    root.set("role", "img")
    root.set("aria-label", label)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _inherit(root: ElementTree.Element, family: str | None) -> None:
    """Say once, on the root, what holds everywhere; a style sheet would leak into a page around it."""
    for defs in root.findall(f"{{{_SVG}}}defs"):
        for sheet in defs.findall(f"{{{_SVG}}}style"):
            defs.remove(sheet)
        if not len(defs):
            root.remove(defs)
    everywhere = ["stroke-linejoin: round; stroke-linecap: butt"]  # the style sheet that Matplotlib writes
    if family:
        everywhere.append(f"font-family: {family}")
    texts = [node for node in root.iter(f"{{{_SVG}}}text") if node.get("style")]
    if texts:
        # Shapes state their own fill, so that they do not take the text's.
        commonest = Counter(node.attrib["style"] for node in texts).most_common(1)[0][0]
        weight = _FONT_WEIGHT.search(commonest)
        # Matplotlib does not write a normal weight, so a bold root would make every text bold.
        everywhere.append(_FONT_WEIGHT.sub("", commonest))
        for node in texts:
            if node.get("style") == commonest:
                del node.attrib["style"]
                if weight:
                    node.set("style", weight.group().strip(" ;"))
    root.set("style", "; ".join(everywhere))


def _shorten(node: ElementTree.Element, drop_family: bool) -> None:
    node.text = node.text.strip() if node.text and node.tag != f"{{{_SVG}}}text" else node.text
    node.tail = "\n"
    for name in _NUMERIC:
        if value := node.get(name):
            rounded = _LONG_NUMBER.sub(
                lambda found: f"{float(found.group()):.2f}".rstrip("0").rstrip("."), value
            )
            node.set(name, rounded)
    if path := node.get("d"):
        node.set("d", _short_rectangle(_SPACE_AROUND_LETTER.sub(r"\1", path)))
    if node.get("transform", "").startswith("rotate(-0 "):
        del node.attrib["transform"]
    if drop_family and (css := node.get("style")):
        node.set("style", _FONT_FAMILY.sub("", css))


def _short_rectangle(path: str) -> str:
    """Write an axis-parallel rectangle with relative steps, which halves it."""
    found = _RECTANGLE.fullmatch(path)
    if not found:
        return path
    x, y, right, y_right, right_again, bottom, x_left, bottom_again = map(float, found.groups())
    if (y, right, bottom, x) != (y_right, right_again, bottom_again, x_left):
        return path
    width, height = (f"{round(size, 2):g}" for size in (right - x, bottom - y))
    return f"M{found[1]} {found[2]}h{width}v{height}h{-float(width):g}z"


def _unwrap(parent: ElementTree.Element) -> None:
    """Replace a group that holds one element by that element, and automatic ids by nothing.

    A name given on purpose stays, as `data-name`: an id may occur once in a page, a figure more often.
    """
    for position, node in enumerate(list(parent)):
        _unwrap(node)
        if node.tag != f"{{{_SVG}}}g":
            continue
        name = node.attrib.pop("id", None)
        if name and not _AUTOMATIC_ID.fullmatch(name):
            node.set("data-name", name)
        if len(node) == 1 and not set(node.attrib) & set(node[0].attrib):
            only = node[0]
            only.attrib.update(node.attrib)
            parent[position] = only
