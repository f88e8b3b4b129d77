"""Tables and sentences as nodes of a page: what the generated pages are made of."""

from collections.abc import Iterable, Sequence

from docutils import nodes  # type: ignore[import-untyped]
from sphinx import addnodes

Cell = str | Sequence[nodes.Node]


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Cell]], kind: str = "") -> nodes.table:
    """A table with a caption and a head; the first column heads the rows. `kind` is one more class."""
    group = nodes.tgroup(cols=len(columns))
    group += [nodes.colspec(colwidth=1, stub=position == 0) for position in range(len(columns))]
    group += nodes.thead("", _row(columns))
    group += nodes.tbody("", *(_row(row) for row in rows))
    return nodes.table("", nodes.title("", title), group, classes=["lw-generated", *kind.split()])


def sentence(text: str) -> nodes.paragraph:
    """A paragraph; `code` in backquotes."""
    return nodes.paragraph("", "", *inline(text))


def inline(text: str) -> list[nodes.Node]:
    """Text with `code` in backquotes, as nodes."""
    parts = text.split("`")
    return [
        nodes.literal(part, part) if position % 2 else nodes.Text(part)
        for position, part in enumerate(parts)
        if part
    ]


def section_link(label: str, docname: str) -> addnodes.pending_xref:
    """A link to the section with that label, which shows the section's title."""
    return _link("ref", label, label, docname)


def page_link(target: str, docname: str) -> addnodes.pending_xref:
    """A link to a page, which shows the page's title."""
    return _link("doc", f"/{target}", target, docname)


def _link(kind: str, target: str, text: str, docname: str) -> addnodes.pending_xref:
    """A link on the page `docname`; the title that Sphinx finds at the target replaces the text."""
    return addnodes.pending_xref(
        "", nodes.inline("", text), refdomain="std", reftype=kind, reftarget=target, refdoc=docname,
        refexplicit=False, refwarn=True,
    )  # fmt: skip


def _row(cells: Sequence[Cell]) -> nodes.row:
    row = nodes.row()
    for cell in cells:
        content = inline(cell) if isinstance(cell, str) else list(cell)
        row += nodes.entry("", nodes.paragraph("", "", *content))
    return row
