"""Adjust the built site: mathematics without a network, repository buttons only for a known repository,
figures that scroll on a narrow screen."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.util.fileutil import copy_asset

from lanewise.figures.style import NARROW

SVG_WIDTH = re.compile(r'<svg[^>]*\swidth="([\d.]+)pt"')


def follow_repository_address(app: Sphinx, config: Config) -> None:
    """Show Colab and repository buttons only if `repository: url` is set in _config.yml.

    The theme would fail on a launch button without an address, and jupyter-book on a source button.
    """
    options: dict[str, Any] = config.html_theme_options
    has_address = bool(options.get("repository_url"))
    options["use_repository_button"] = has_address
    options["use_issues_button"] = has_address
    if not has_address:
        options["launch_buttons"] = {}


def copy_mathjax(app: Sphinx, exception: Exception | None) -> None:
    """Put MathJax beside the pages: the one file that sets TeX as SVG, from the wheel that carries it."""
    if exception is not None or app.builder.format != "html":
        return
    package = find_spec("sphinx-mathjax-offline")
    if package is None or package.origin is None:
        raise ExtensionError("MathJax is not installed: run `pip install -r requirements.txt`.")
    source = Path(package.origin).parent / "static" / "mathjax" / app.config.mathjax_path
    copy_asset(str(source), str(Path(app.outdir) / "_static"))


def frame_figures(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put each figure of a cell into a box of its own, which scrolls where the figure would become too small.

    A narrow figure (`NARROW` of lanewise.figures.style) stays legible on a phone, and shrinks instead. The
    theme's script opens to the keyboard what overflows among the children of class `output`.
    """
    for image in list(doctree.findall(nodes.image)):
        if "cell_output" in image.parent.get("classes", ()):
            width_pt = _width_pt(Path(app.srcdir) / image["uri"])
            kind = ["lw-narrow"] if width_pt is not None and width_pt <= NARROW else []
            box = nodes.container("", image.deepcopy(), classes=["output", "lw-figure", *kind])
            image.replace_self(box)


def _width_pt(path: Path) -> float | None:
    """The width that an SVG file states, in points; None for other files."""
    if path.suffix != ".svg" or not path.is_file():
        return None
    found = SVG_WIDTH.search(path.read_text(encoding="utf-8"))
    return float(found[1]) if found else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the adjustments to the build."""
    app.connect("config-inited", follow_repository_address)
    app.connect("doctree-resolved", frame_figures)
    app.connect("build-finished", copy_mathjax)
    app.add_js_file("lanewise.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
