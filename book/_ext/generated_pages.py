"""Directives whose content is computed when the book is built, so that it cannot go stale.

- `{coverage} A`: where the course treats what article A treats
"""

from collections.abc import Sequence
from pathlib import Path

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import coverage_data
from page_tables import Cell, section_link, sentence, table


class Coverage(SphinxDirective):
    """The items of one article, and links to the sections that treat them."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """A sentence that counts, and a table."""
        book = _book(self)
        for path in sorted((book / "coverage").glob("*.csv")):
            self.env.note_dependency(str(path))
        article = self.arguments[0]
        items = [item for item in coverage_data.read_items(book) if item.article == article]
        if not items:
            raise self.error(f"coverage: {article!r} is not an article of items.csv.")
        where: dict[str, list[coverage_data.Treatment]] = {item.item: [] for item in items}
        for row in coverage_data.read_treatments(book):
            if row.item in where and f"book/{row.slug}" in self.env.found_docs:
                where[row.item].append(row)
        missing = [item for item, rows in where.items() if not rows]
        counted = f"{len(items) - len(missing)} of {len(items)} items are treated."
        if missing:
            counted += f" Missing: {', '.join(missing)}."
        rows = (
            (item.item, item.topic.replace("_", " "), item.what, self._links(where[item.item]))
            for item in items
        )
        return [sentence(counted), table(f"Article {article}", ["item", "topic", "what", "where"], rows)]

    def _links(self, treated: Sequence[coverage_data.Treatment]) -> Cell:
        if not treated:
            return [nodes.strong("", "missing")]
        links: list[nodes.Node] = []
        for row in treated:
            page = row.slug.replace("_", " ")
            links += [nodes.Text("; " if links else ""), nodes.Text(f"{page}: ")]
            links.append(section_link(row.section, self.env.docname))
        return links


def _book(directive: SphinxDirective) -> Path:
    """The folder of the pages."""
    return Path(str(directive.env.srcdir)) / "book"


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directives known."""
    app.add_directive("coverage", Coverage)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
