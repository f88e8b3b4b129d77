"""Show neighbouring folded sources as one.

Cells that only prepare a table are split to stay short; a reader who opens its source wants all of it.
"""

from itertools import pairwise

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx


def join_folded_sources(app: Sphinx | None, doctree: nodes.document, docname: str) -> None:
    """Move the code of each folded cell without output into the folded cell that follows it."""
    folded = [
        cell for cell in doctree.findall(nodes.container) if "tag_hide-input" in cell.get("classes", ())
    ]
    for first, second in pairwise(folded):
        if first.next_node(descend=False, siblings=True) is second and not _parts(first, "cell_output"):
            (mine,), (other,) = (_code(cell) for cell in (first, second))
            text = f"{mine.astext()}\n\n\n{other.astext()}"
            joined = nodes.literal_block(text, text, **other.attributes)
            other.replace_self(joined)
            first.parent.remove(first)


def _code(cell: nodes.container) -> list[nodes.literal_block]:
    return [block for part in _parts(cell, "cell_input") for block in part.findall(nodes.literal_block)]


def _parts(cell: nodes.container, kind: str) -> list[nodes.container]:
    return [part for part in cell.findall(nodes.container) if kind in part.get("classes", ())]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the joining to the build."""
    app.connect("doctree-resolved", join_folded_sources)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
