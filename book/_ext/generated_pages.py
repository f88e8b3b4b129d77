"""Directives whose content is computed when the book is built, so that it cannot go stale.

- `{coverage} A`: where the course treats what article A treats
- `{support-matrix} notebooks`: what of each notebook works on which GPU; `kernels`: which kernels cannot be
  launched everywhere; `gpus`: what the GPUs have; `recorded`: which GPU measured what
- `{status} notebooks`: what each notebook holds; `records`: the records, and which are stale; `versions`: of
  what the pages were built with, and the day
"""

from collections.abc import Sequence
from pathlib import Path

from docutils import nodes  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import coverage_data
import status_data
import support_data
from lanewise.machine import KB, from_name
from lanewise.text import count
from page_tables import Cell, page_link, section_link, sentence, table


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
        return [
            sentence(counted),
            table(f"Article {article}", ["item", "topic", "what", "where"], rows, "lw-items"),
        ]

    def _links(self, treated: Sequence[coverage_data.Treatment]) -> Cell:
        if not treated:
            return [nodes.strong("", "missing")]
        links: list[nodes.Node] = []
        for row in treated:
            page = row.slug.replace("_", " ")
            links += [nodes.Text("; " if links else ""), nodes.Text(f"{page}: ")]
            links.append(section_link(row.section, self.env.docname))
        return links


class SupportMatrix(SphinxDirective):
    """One of four tables about what needs which GPU."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table that the argument names."""
        tables = {
            "notebooks": self._notebooks,
            "kernels": self._kernels,
            "gpus": self._gpus,
            "recorded": self._recorded,
        }
        name = self.arguments[0]
        if name not in tables:
            raise self.error(f"support-matrix: {name!r} is not one of {', '.join(tables)}.")
        return [tables[name]()]

    def _notebooks(self) -> nodes.table:
        root = _book(self).parent
        self.env.note_dependency(str(root / support_data.TOC))
        alike: dict[support_data.Capability, list[str]] = {}
        for gpu, capability in support_data.GPUS.items():
            alike.setdefault(capability, []).append(gpu)
        machines = [from_name(capability) for capability in alike]
        rows: list[list[Cell]] = []
        for path in support_data.in_reading_order(root):
            self.env.note_dependency(str(path))
            use = support_data.use_of(path)
            rows.append(
                [_notebook_link(self, path), use.without_gpu(), *(use.on(machine) for machine in machines)]
            )
        return table("What works where", ["notebook", "no GPU", *map(", ".join, alike.values())], rows)

    def _kernels(self) -> nodes.table:
        rows = []
        for need in support_data.demanding():
            lacking = [gpu for gpu, sm in support_data.GPUS.items() if need.lacking_on(from_name(sm))]
            needs = (
                [f"{from_name(need.capability)} ({', '.join(need.instructions)})"]
                if need.instructions
                else []
            )
            needs += [f"{need.shared_bytes // KB} KB of shared memory"] if need.shared_bytes else []
            rows.append(
                [f"`{need.kernel}`", need.topic.replace("_", " "), ", ".join(needs), ", ".join(lacking)]
            )
        return table("Kernels with needs of their own", ["kernel", "topic", "needs", "not on"], rows)

    def _gpus(self) -> nodes.table:
        columns = ["GPU", "compute capability", "shared memory of a block", *support_data.SHOWN_INSTRUCTIONS]
        rows = []
        for gpu, capability in support_data.GPUS.items():
            machine = from_name(capability)
            has = ("yes" if machine.supports(name) else "no" for name in support_data.SHOWN_INSTRUCTIONS)
            limit = f"{machine.max_shared_bytes_per_block // KB} KB"
            rows.append([gpu, f"{'.'.join(map(str, capability))} (`{machine}`)", limit, *has])
        return table("What the GPUs have", columns, rows)

    def _recorded(self) -> nodes.table:
        recorded = support_data.recorded()
        topics = sorted(set().union(*recorded.values()))
        rows = (
            [topic.replace("_", " "), *(recorded[gpu].get(topic, "nothing yet") for gpu in recorded)]
            for topic in topics
        )
        return table("What is recorded", ["topic", *(gpu.upper() for gpu in recorded)], rows)


class Status(SphinxDirective):
    """One of three tables about the state of the course."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The table that the argument names, after a sentence that sums it up."""
        tables = {"notebooks": self._notebooks, "records": self._records, "versions": self._versions}
        name = self.arguments[0]
        if name not in tables:
            raise self.error(f"status: {name!r} is not one of {', '.join(tables)}.")
        return tables[name]()

    def _notebooks(self) -> list[nodes.Node]:
        root = _book(self).parent
        self.env.note_dependency(str(root / support_data.TOC))
        found = {path: status_data.notebook(path) for path in support_data.in_reading_order(root)}
        rows: list[list[Cell]] = []
        for path, one in found.items():
            self.env.note_dependency(str(path))
            not_compared = ", ".join(f"`{line}`" for line in one.uncompared) or "none"
            counts = (one.n_cells, one.n_code_cells, one.n_figures, one.n_compared)
            rows.append([_notebook_link(self, path), *map(str, counts), not_compared])
        total = sum(one.n_compared for one in found.values())
        n_uncompared = sum(len(one.uncompared) for one in found.values())
        uncompared = count(n_uncompared, "cell")
        summary = f"{len(found)} notebooks, {total:,} compared outputs, {uncompared} not compared."
        columns = ["notebook", "cells", "with code", "figures", "compared outputs", "not compared"]
        return [sentence(summary), table("Notebooks", columns, rows)]

    def _records(self) -> list[nodes.Node]:
        found = list(status_data.records())
        n_stale = sum(one.n_stale for one in found)
        summary = f"{sum(one.n_rows for one in found):,} rows, {n_stale or 'none'} of them stale."
        rows = (
            [one.topic.replace("_", " "), one.gpu.upper(), one.table, " and ".join(one.days), str(one.n_rows),
             f"{one.n_stale} stale" if one.n_stale else "current"]
            for one in found
        )  # fmt: skip
        columns = ["topic", "GPU", "what", "measured", "rows", "state"]
        return [sentence(summary), table("Records", columns, rows)]

    def _versions(self) -> list[nodes.Node]:
        rows = list(status_data.versions().items())
        summary = f"The pages were built on {status_data.build_day()} (UTC)."
        return [sentence(summary), table("Versions", ["package", "version"], rows)]


def _book(directive: SphinxDirective) -> Path:
    """The folder of the pages."""
    return Path(str(directive.env.srcdir)) / "book"


def _notebook_link(directive: SphinxDirective, path: Path) -> Cell:
    """A link to the page of a notebook, or its name where it is on no page."""
    page = path.relative_to(_book(directive).parent).with_suffix("").as_posix()
    env = directive.env
    return [page_link(page, env.docname) if page in env.found_docs else nodes.Text(page)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directives known."""
    app.add_directive("coverage", Coverage)
    app.add_directive("support-matrix", SupportMatrix)
    app.add_directive("status", Status)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
