"""Neighbouring folded sources of a page are shown as one; nothing else is joined, and no code is lost."""

from docutils import nodes  # type: ignore[import-untyped]
from docutils.utils import new_document  # type: ignore[import-untyped]

from folded_sources import join_folded_sources


def cell(code: str, *, folded: bool = True, output: bool = False) -> nodes.container:
    """A cell as myst-nb builds it, its source in a box of its own."""
    block = nodes.literal_block(code, code, language="python")
    parts = [nodes.container("", nodes.container("", block, classes=["cell_input"]), classes=["hidden"])]
    if output:
        parts.append(nodes.container("", nodes.paragraph(text="shown"), classes=["cell_output"]))
    return nodes.container("", *parts, classes=["cell", *(["tag_hide-input"] if folded else [])])


def joined(*parts: nodes.Node) -> list[str]:
    """The sources that a page of these parts shows."""
    document = new_document("page")
    document += nodes.section("", *parts)
    join_folded_sources(None, document, "page")
    return [block.astext() for block in document.findall(nodes.literal_block)]


def test_neighbours_are_joined_up_to_the_output() -> None:
    parts = cell("a = 1"), cell("b = 2"), cell("a + b", output=True), cell("c = 3")
    assert joined(*parts) == ["a = 1\n\n\nb = 2\n\n\na + b", "c = 3"]


def test_text_and_open_cells_keep_sources_apart() -> None:
    apart = cell("a = 1"), nodes.paragraph(text="Now look."), cell("b = 2")
    assert joined(*apart) == ["a = 1", "b = 2"]
    assert joined(cell("a = 1"), cell("b = 2", folded=False)) == ["a = 1", "b = 2"]


def test_the_joined_source_keeps_its_language() -> None:
    document = new_document("page")
    document += nodes.section("", cell("a = 1"), cell("b = 2"))
    join_folded_sources(None, document, "page")
    (block,) = document.findall(nodes.literal_block)
    assert block["language"] == "python"
