"""The directives `claim`, one entry of the audit, and `claims-filter`, the bar that narrows the list.

    :::{claim} CA-10
    :verdict: imprecise
    :article: A
    :topic: padding
    :section: padding-pitch

    What the claim says.

    Why the verdict.

    | case | ... |
    :::

`lanewise.claims.listing` writes them. Each entry becomes an article with an anchor, `claim-ca-10`, which
other pages reach by {ref}`CA-10 <claim-ca-10>`. The bar answers where scripts run
(`book/_static/claims.js`); where none do, all entries are shown and the bar is not.
"""

from collections.abc import Callable
from html import escape
from typing import Any, ClassVar

from docutils import nodes  # type: ignore[import-untyped]
from docutils.parsers.rst import directives  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from lanewise.claims import Verdict

# A sign besides the word, so that no verdict is told by its colour alone.
SIGNS = {
    Verdict.OK: "✓",
    Verdict.IMPRECISE: "≈",
    Verdict.WRONG: "✗",
    Verdict.HW: "◐",
    Verdict.NC: "?",
}
HOME = "claims"  # the page whose entries other pages link to


class claim_entry(nodes.General, nodes.Element):  # type: ignore[misc]
    """One claim; its children are what it says, why, and the cases."""


class claim_cases(nodes.General, nodes.Element):  # type: ignore[misc]
    """The table of cases, folded."""


class claims_filter(nodes.General, nodes.Element):  # type: ignore[misc]
    """The place of the bar."""


def _verdict(name: str) -> Verdict:
    return Verdict[directives.choice(name, [verdict.name.lower() for verdict in Verdict]).upper()]


class ClaimDirective(SphinxDirective):
    """One claim with its verdict."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {
        "verdict": _verdict,
        "article": directives.unchanged_required,
        "topic": directives.unchanged_required,
        "section": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        id = self.arguments[0]
        for name in ("verdict", "article", "topic"):
            if name not in self.options:
                raise self.error(f"claim {id}: no {name}. lanewise.claims.listing writes all options.")
        entry = claim_entry("", **{"claim": id, "section": "", **self.options})
        anchor = f"claim-{id.lower()}"
        entry["ids"].append(anchor)
        self.set_source_info(entry)
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        paragraphs = [node for node in body.children if isinstance(node, nodes.paragraph)]
        if not paragraphs:
            raise self.error(f"claim {id}: it says nothing. Begin with a paragraph: what the article claims.")
        paragraphs[0]["classes"].append("lw-claim-says")
        entry += paragraphs
        tables = [node for node in body.children if node not in paragraphs]
        if tables:
            entry += claim_cases("", *tables, n_cases=_rows(tables))
        if self.env.docname.rpartition("/")[2] == HOME:
            domain = self.env.get_domain("std")
            domain.note_hyperlink_target(anchor, self.env.docname, anchor, id)  # type: ignore[attr-defined]
        return [entry]


def _rows(tables: list[nodes.Node]) -> int:
    return sum(len(list(body.findall(nodes.row))) for table in tables for body in table.findall(nodes.tbody))


class FilterDirective(SphinxDirective):
    """The bar that narrows the list."""

    def run(self) -> list[nodes.Node]:
        return [claims_filter("")]


def link_to_pages(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Say below each claim where the course treats it, as a link once that page or section exists."""
    labels = app.env.get_domain("std").labels  # type: ignore[attr-defined]
    folder = docname.rpartition("/")[0]
    for entry in doctree.findall(claim_entry):
        page = f"{folder}/{entry['topic']}" if folder else entry["topic"]
        where, anchor, title = labels.get(entry["section"], (page, "", ""))
        if where not in app.env.found_docs:
            continue
        title = title or app.env.titles[where].astext()
        uri = app.builder.get_relative_uri(docname, where) + (f"#{anchor}" if anchor else "")
        link = nodes.reference("", title, refuri=uri, internal=True)
        line = nodes.paragraph("", "Treated in ", link, nodes.Text("."), classes=["lw-claim-where"])
        entry.insert(len(entry.children) - bool(entry.children and _is_cases(entry.children[-1])), line)


def _is_cases(node: nodes.Node) -> bool:
    return isinstance(node, claim_cases)


def visit_entry(translator: Any, node: claim_entry) -> None:
    verdict, id = node["verdict"], node["claim"]
    head = f"{node['ids'][0]}-head"
    opening = translator.starttag(
        node,
        "article",
        CLASS="lw-claim",
        **{
            "aria-labelledby": head,
            "data-verdict": verdict.name.lower(),
            "data-verdict-words": str(verdict),
            "data-article": node["article"],
            "data-topic": node["topic"],
        },
    )
    sign = f'<span aria-hidden="true">{SIGNS[verdict]}</span>'
    badge = f'<span class="lw-badge">{sign} {escape(str(verdict))}</span>'
    anchor = f'<a class="lw-claim-id" href="#{node["ids"][0]}">{escape(id)}</a>'
    translator.body.append(f'{opening}<p class="lw-claim-head" id="{head}">{anchor} {badge}</p>\n')


def depart_entry(translator: Any, node: claim_entry) -> None:
    translator.body.append("</article>\n")


def visit_cases(translator: Any, node: claim_cases) -> None:
    n = node["n_cases"]
    translator.body.append(
        f'<details class="lw-claim-cases"><summary>{n} case{"" if n == 1 else "s"}'
        f'<span class="lw-of"> of {node.parent["claim"]}</span></summary>\n'
    )


def depart_cases(translator: Any, node: claim_cases) -> None:
    translator.body.append("</details>\n")


def visit_filter(translator: Any, node: claims_filter) -> None:
    translator.body.append('<div class="lw-claims-filter" hidden></div>\n')


def depart_filter(translator: Any, node: claims_filter) -> None:
    """Nothing is left to close."""


def load_script(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Load script and style on pages that list claims, and on no other."""
    if doctree is not None and next(iter(doctree.findall(claim_entry)), None) is not None:
        app.add_css_file("claims.css")
        app.add_js_file("claims.js", type="module")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_node(claim_entry, html=(visit_entry, depart_entry))
    app.add_node(claim_cases, html=(visit_cases, depart_cases))
    app.add_node(claims_filter, html=(visit_filter, depart_filter))
    app.add_directive("claim", ClaimDirective)
    app.add_directive("claims-filter", FilterDirective)
    app.connect("doctree-resolved", link_to_pages)
    app.connect("html-page-context", load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
