"""The directive `explorer`: an interactive figure.

    ```{explorer} bank
    :stride: 32
    Change the stride until every lane has a bank of its own.
    ```

The text is the caption. Options are the explorer's parameters; those left out have their defaults. A drawing
by the Python package stands in the figure's place until the script has taken over, and where no script runs.
How an explorer is written is said at the head of `book/_static/explorers/explorer.js`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from docutils import nodes  # type: ignore[import-untyped]
from docutils.parsers.rst import directives  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import lanewise as lw
from lanewise.figures import (
    Drawing,
    draw_bank_map,
    draw_fragment,
    draw_matrix_move,
    draw_sectors,
    draw_swizzle_bits,
    draw_timeline,
)
from lanewise.fragments import M16N8K8, M16N8K16, Fragment
from lanewise.layouts import row_major
from lanewise.machine import FULL_MASK, LINE_BYTES, WARP_LANES, WORD_BYTES
from lanewise.pipeline import Pipeline
from lanewise.swizzles import SwizzledTile

Parameters = Mapping[str, str]

NOTE = "This figure is interactive where scripts run and a web server delivers the page."


@dataclass(frozen=True)
class Explorer:
    """The parameters of an explorer with their defaults, and its static drawing for given ones."""

    defaults: Parameters
    draw: Callable[[Parameters], Drawing]

    def parameters(self, options: Parameters) -> dict[str, str]:
        """All parameters, those of `options` in place of their defaults; ValueError for one that is none."""
        unknown = sorted(options.keys() - self.defaults.keys())
        if unknown:
            raise ValueError(f"no parameter {', '.join(unknown)}; there are {', '.join(self.defaults)}")
        return {**self.defaults, **options}


_MASKS = {"all": FULL_MASK, "half": 0xFFFF, "even": 0x5555_5555, "one": 1}


def _mask_of(given: Parameters) -> int:
    return int(given["mask"], 16) if given["lanes"] == "hex" else _MASKS[given["lanes"]]


# The bank explorer: the same access as accessOf in book/_static/explorers/bank.js.

_TILE = 32


def bank_access(given: Parameters) -> lw.WarpAccess:
    """The access that the bank explorer shows for its parameters."""
    n_bytes = int(given["bytes"])
    name = f"{given['op']}.shared.b{8 * n_bytes}"
    start = WORD_BYTES * int(given["start"])
    mask = _mask_of(given)
    stride, at, period = int(given["stride"]), int(given["at"]), 2 ** int(given["xor"])
    if given["pattern"] == "stride":
        return lw.WarpAccess.from_formula(name, lambda lane: start + n_bytes * stride * lane, mask)
    lanes = range(_TILE)
    rows = [at] * _TILE if given["pattern"] == "row" else list(lanes)
    cols = {"row": list(lanes), "column": [at] * _TILE, "diagonal": [(lane + at) % _TILE for lane in lanes]}
    swizzled = [col ^ row % period for row, col in zip(rows, cols[given["pattern"]], strict=True)]
    pitch = _TILE + int(given["padding"])
    return lw.WarpAccess.from_tile(name, rows, swizzled, pitch, n_bytes, start, mask)


# The sector explorer: the same accesses as accessesOf in book/_static/explorers/sectors.js.


def sector_accesses(given: Parameters) -> list[lw.WarpAccess]:
    """The accesses that the sector explorer shows for its parameters, one for each request."""
    n_bytes, start = int(given["bytes"]), int(given["start"])
    name = f"{given['op']}.global.b{8 * n_bytes}"
    mask = _mask_of(given)
    lanes = np.arange(WARP_LANES)
    stride, size = int(given["stride"]), int(given["size"])
    field = min(int(given["field"]), size - 1)
    near = min(WARP_LANES, LINE_BYTES // n_bytes)
    indices = {
        "stride": [stride * lanes],
        "reversed": [stride * lanes[::-1]],
        "shuffled": [lanes // near * near + 5 * lanes % near],
        "same": [0 * lanes],
        "struct": [size * lanes + field],
        "fields": [size * lanes + each for each in range(size)],
    }
    return [
        lw.WarpAccess(name, tuple((start + n_bytes * index).tolist()), mask)
        for index in indices[given["pattern"]]
    ]


# The swizzle explorer: the same tile and accesses as in book/_static/explorers/swizzle.js.

SWIZZLE_ACCESSES = {
    "fill": ("row fill", "st.shared.b128", 16),
    "column4": ("column, 4 B", "ld.shared.b32", 4),
    "column8": ("column, 8 B", "ld.shared.b64", 8),
    "column16": ("column, 16 B", "ld.shared.b128", 16),
    "ldmatrix": ("ldmatrix.x4", "ldmatrix.x4", 16),
}


def swizzle_tile(given: Parameters) -> SwizzledTile:
    """The tile that the swizzle explorer shows for its parameters."""
    swizzle = lw.Swizzle(int(given["bits"]), int(given["base"]), int(given["shift"]))
    cols = int(given["rowbytes"]) // int(given["element"])
    return swizzle.compose(row_major((int(given["rows"]), cols)))


def swizzle_access(given: Parameters) -> lw.WarpAccess:
    """The access of that tile; raises `InvalidSwizzle` if the swizzle tears its pieces apart."""
    tile, element = swizzle_tile(given), int(given["element"])
    _, instruction, width = SWIZZLE_ACCESSES[given["access"]]
    tile.swizzle.in_units_of(width, element)
    rows, pieces = tile.extents[0], int(given["rowbytes"]) // width
    lanes = np.arange(WARP_LANES)
    if given["access"] == "fill":
        row, piece = lanes // pieces % rows, lanes % pieces
    else:
        down = min(rows, 16) if given["access"] == "ldmatrix" else rows
        row, piece = lanes % down, (int(given["at"]) + lanes // down) % pieces
    return lw.WarpAccess.from_layout(instruction, tile, row, width // element * piece, element)


# The fragment explorer: the same operands and matrices as in book/_static/explorers/fragment.js.


def fragment_move(given: Parameters) -> str:
    """The name of the ldmatrix or stmatrix that the fragment explorer shows, or nothing."""
    if not given["what"].endswith("matrix"):
        return ""
    return f"{given['what']}.x{given['matrices']}{'.trans' if given['trans'] == 'true' else ''}"


def fragment_operand(given: Parameters) -> Fragment:
    """The operand of mma that the fragment explorer shows."""
    operand: Fragment = getattr({"m16n8k16": M16N8K16, "m16n8k8": M16N8K8}[given["what"]], given["operand"])
    return operand


def _draw_fragment(given: Parameters) -> Drawing:
    lane = int(given["lane"])
    if move := fragment_move(given):
        return draw_matrix_move(move, lane=lane)
    return draw_fragment(fragment_operand(given), lane=lane)


# The pipeline explorer.


def pipeline_of(given: Parameters) -> Pipeline:
    """The pipeline that the pipeline explorer shows for its parameters."""
    return Pipeline(**{name: int(value) for name, value in given.items()})


EXPLORERS: dict[str, Explorer] = {
    "bank": Explorer(
        {
            "op": "ld",
            "bytes": "4",
            "pattern": "stride",
            "lanes": "all",
            "mask": "ffffffff",
            "stride": "1",
            "at": "0",
            "padding": "0",
            "xor": "0",
            "start": "0",
        },
        lambda given: draw_bank_map(bank_access(given)),
    ),
    "sectors": Explorer(
        {
            "op": "ld",
            "bytes": "4",
            "pattern": "stride",
            "lanes": "all",
            "mask": "ffffffff",
            "stride": "1",
            "size": "4",
            "field": "0",
            "start": "0",
        },
        lambda given: draw_sectors(sector_accesses(given)[0]),
    ),
    "swizzle": Explorer(
        {
            "bits": "3",
            "base": "3",
            "shift": "3",
            "rows": "16",
            "rowbytes": "128",
            "element": "2",
            "access": "ldmatrix",
            "at": "0",
            "show": "bank",
        },
        lambda given: draw_swizzle_bits(swizzle_tile(given).swizzle),
    ),
    "fragment": Explorer(
        {
            "what": "m16n8k16",
            "operand": "a",
            "matrices": "4",
            "trans": "false",
            "pick": "lane",
            "lane": "5",
            "matrix": "0",
            "row": "0",
            "col": "0",
        },
        _draw_fragment,
    ),
    "pipeline": Explorer(
        {"tiles": "6", "stages": "2", "blocks": "1", "copy": "3", "work": "3", "latency": "0"},
        lambda given: draw_timeline(pipeline_of(given)),
    ),
}


class explorer_figure(nodes.General, nodes.Element):  # type: ignore[misc]
    """The figure; its children are the caption."""


class ExplorerDirective(SphinxDirective):
    """An interactive figure."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = dict.fromkeys(
        sorted({"name"}.union(*(explorer.defaults for explorer in EXPLORERS.values()))),
        directives.unchanged_required,
    )

    def run(self) -> list[nodes.Node]:
        kind = self.arguments[0]
        if kind not in EXPLORERS:
            raise self.error(f"explorer: no explorer {kind!r}. There are {', '.join(sorted(EXPLORERS))}.")
        options = {name: value for name, value in self.options.items() if name != "name"}
        try:
            given = EXPLORERS[kind].parameters(options)
            drawing = EXPLORERS[kind].draw(given)
        except (ValueError, KeyError, lw.Error) as error:
            raise self.error(f"explorer {kind}: {error}") from None
        figure = explorer_figure("", kind=kind, parameters=given, drawing=drawing.svg())
        figure["ids"].append(self.options.get("name", self._free_id(f"explorer-{kind}")))
        self.set_source_info(figure)
        self.state.nested_parse(self.content, self.content_offset, figure)
        return [figure]

    def _free_id(self, stem: str) -> str:
        """`stem`, or `stem-2` for the second such figure of the page, and so on."""
        earlier = [node for node in self.state.document.findall(explorer_figure) if stem in node["ids"][0]]
        n_earlier = self.env.temp_data.get(stem, len(earlier))
        self.env.temp_data[stem] = n_earlier + 1
        return f"{stem}-{n_earlier + 1}" if n_earlier else stem


def visit_figure(translator: Any, node: explorer_figure) -> None:
    """Open the figure, with the static drawing, and the caption."""
    data = {f"data-{name}": value for name, value in node["parameters"].items()}
    translator.body.append(
        translator.starttag(node, "figure", CLASS="lw-explorer", **{"data-explorer": node["kind"]}, **data)
    )
    translator.body.append(
        '<div class="lw-explorer-static"><div class="output lw-explorer-drawing">'
        f"{without_shared_ids(node['drawing'], node['ids'][0])}</div><p>{NOTE}</p></div>\n<figcaption>"
    )


def depart_figure(translator: Any, node: explorer_figure) -> None:
    """Close both."""
    translator.body.append("</figcaption></figure>\n")


def without_shared_ids(svg: str, prefix: str) -> str:
    """The SVG with ids of its own, since it stands in a page with others."""
    names = re.findall(r'\bid="([^"]+)"', svg)
    for name in sorted(set(names), key=len, reverse=True):
        svg = re.sub(rf'(\bid="|url\(#|href="#){re.escape(name)}(?=["\)])', rf"\g<1>{prefix}-{name}", svg)
    return svg


def load_scripts(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Load script and style on pages that hold an explorer, and on no other."""
    if doctree is not None and next(iter(doctree.findall(explorer_figure)), None) is not None:
        app.add_css_file("explorers/explorers.css")
        app.add_js_file("explorers/explorer.js", type="module")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_node(explorer_figure, html=(visit_figure, depart_figure))
    app.add_directive("explorer", ExplorerDirective)
    app.connect("html-page-context", load_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
