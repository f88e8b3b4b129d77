"""The directives `field-case`, one question from the field with its answer, and `field-cases-filter`, a bar.

    :::{field-case} C07
    :title: Padding that was declared and not used
    :topic: padding
    :symptoms: padding no-gain

    What was asked. What is so. What to do. The numbers.
    :::

`lanewise.field_cases.listing` writes them. Each becomes an article with an anchor, `case-c07`. The bar works
where scripts run (`book/_static/field_cases.js`); where none do, all cases are shown and the bar is not.
"""

from collections.abc import Callable
from html import escape
from typing import Any, ClassVar

from docutils import nodes  # type: ignore[import-untyped]
from docutils.parsers.rst import directives  # type: ignore[import-untyped]
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from lanewise.field_cases import SYMPTOMS
from page_tables import page_link


class case_entry(nodes.General, nodes.Element):  # type: ignore[misc]
    """One case; its children are question, answer, advice, and the numbers."""


class case_numbers(nodes.General, nodes.Element):  # type: ignore[misc]
    """The table of numbers, folded."""


class cases_filter(nodes.General, nodes.Element):  # type: ignore[misc]
    """The place of the bar."""


class CaseDirective(SphinxDirective):
    """One case from the field."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {
        "title": directives.unchanged_required,
        "topic": directives.unchanged_required,
        "symptoms": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        id = self.arguments[0]
        for name in ("title", "topic", "symptoms"):
            if name not in self.options:
                raise self.error(
                    f"field-case {id}: no {name}. lanewise.field_cases.listing writes all options."
                )
        entry = case_entry("", case=id, **self.options)
        entry["ids"].append(f"case-{id.lower()}")
        self.set_source_info(entry)
        body = nodes.Element()
        self.state.nested_parse(self.content, self.content_offset, body)
        tables = [node for node in body.children if isinstance(node, nodes.table)]
        entry += [node for node in body.children if node not in tables]
        page = f"book/{self.options['topic']}"
        if page in self.env.found_docs:
            entry += nodes.paragraph(
                "", "", nodes.Text("More in "), page_link(page, self.env.docname), nodes.Text(".")
            )
        entry += case_numbers("", *tables)
        return [entry]


class FilterDirective(SphinxDirective):
    """The bar that narrows the list."""

    def run(self) -> list[nodes.Node]:
        return [cases_filter("")]


def visit_entry(translator: Any, node: case_entry) -> None:
    head = f"{node['ids'][0]}-head"
    symptoms = node["symptoms"].split()
    opening = translator.starttag(
        node,
        "article",
        CLASS="lw-claim lw-case",
        **{
            "aria-labelledby": head,
            "data-symptoms": " ".join(symptoms),
            "data-symptom-words": "|".join(SYMPTOMS[symptom] for symptom in symptoms),
        },
    )
    badges = "".join(f' <span class="lw-badge">{escape(SYMPTOMS[symptom])}</span>' for symptom in symptoms)
    anchor = f'<a class="lw-claim-id" href="#{node["ids"][0]}">{escape(node["case"])}</a>'
    title = f"<strong>{escape(node['title'])}</strong>"
    translator.body.append(f'{opening}<p class="lw-claim-head" id="{head}">{anchor} {title}{badges}</p>\n')


def depart_entry(translator: Any, node: case_entry) -> None:
    translator.body.append("</article>\n")


def visit_numbers(translator: Any, node: case_numbers) -> None:
    translator.body.append(
        '<details class="lw-claim-cases"><summary>The numbers'
        f'<span class="lw-of"> of {escape(node.parent["case"])}</span></summary>\n'
    )


def depart_numbers(translator: Any, node: case_numbers) -> None:
    translator.body.append("</details>\n")


def visit_filter(translator: Any, node: cases_filter) -> None:
    translator.body.append('<div class="lw-claims-filter" hidden></div>\n')


def depart_filter(translator: Any, node: cases_filter) -> None:
    """Nothing is left to close."""


def load_script(app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None) -> None:
    """Load script and style on pages that list cases, and on no other."""
    if doctree is not None and next(iter(doctree.findall(case_entry)), None) is not None:
        app.add_css_file("claims.css")
        app.add_js_file("field_cases.js", type="module")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directives."""
    app.add_node(case_entry, html=(visit_entry, depart_entry))
    app.add_node(case_numbers, html=(visit_numbers, depart_numbers))
    app.add_node(cases_filter, html=(visit_filter, depart_filter))
    app.add_directive("field-case", CaseDirective)
    app.add_directive("field-cases-filter", FilterDirective)
    app.connect("html-page-context", load_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
