"""Labs on the site: a table of all, and their solutions, folded, at the end of each lab's page.

`lanewise_show_solutions` (in _config.yml) is the one switch: an instructor who sets it to false builds a book
that holds no solution. The notebooks that learners open never hold one.

- `{labs}`: the labs with chapter, level, kinds, minutes and points
- `{grading-statuses}`: what the status column of `lanewise grade` says, and what to do
"""

import json
from collections.abc import Iterator
from pathlib import Path

import nbformat
from docutils import nodes  # type: ignore[import-untyped]
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import support_data
from lanewise.grading.status import STATUSES
from lanewise.grading.student import BEGIN, END
from lanewise.labs import Lab, load
from lanewise.text import count
from page_tables import Cell, page_link, sentence, table

FOLDER = "labs/"


class Labs(SphinxDirective):
    """A table of all labs."""

    def run(self) -> list[nodes.Node]:
        """A sentence that counts, and the table, in the order of the contents."""
        pages = (
            path.stem for path in support_data.in_reading_order(self._root) if path.parent.name == "labs"
        )
        labs = [load(name) for name in pages if FOLDER + name in self.env.found_docs]
        minutes = sum(lab.minutes for lab in labs)
        summary = f"{count(len(labs), 'lab')}, {minutes / 60:.0f} hours in all."
        columns = ["lab", "chapter", "level", "kinds", "minutes", "points"]
        return [sentence(summary), table("Labs", columns, map(self._row, labs))]

    @property
    def _root(self) -> Path:
        return Path(str(self.env.srcdir))

    def _row(self, lab: Lab) -> list[Cell]:
        self.env.note_dependency(str(source_of(self._root, lab.name)))
        return [
            [page_link(FOLDER + lab.name, self.env.docname)],
            [page_link(f"book/{lab.chapter}", self.env.docname)],
            lab.level,
            ", ".join(lab.kinds),
            str(lab.minutes),
            f"{lab.points:g}",
        ]


class Statuses(SphinxDirective):
    """A table of the statuses."""

    def run(self) -> list[nodes.Node]:
        """The most serious first, as the grader has them."""
        rows = ([f"`{name}`", means, do] for name, (means, do) in STATUSES.items())
        return [table("Statuses", ["status", "it means", "what to do"], rows)]


def source_of(root: Path, name: str) -> Path:
    """The source notebook of a lab."""
    return root / "labs" / "source" / name / f"{name}.ipynb"


def add_solutions(app: Sphinx, docname: str, content: list[str]) -> None:
    """Append the solutions to the text of a lab's notebook, unless they are withheld."""
    path = source_of(Path(str(app.srcdir)), docname.removeprefix(FOLDER))
    if not docname.startswith(FOLDER) or not app.config.lanewise_show_solutions or not path.is_file():
        return
    app.env.note_dependency(str(path))
    notebook = json.loads(content[0])
    notebook["cells"] += [
        dict(nbformat.v4.new_markdown_cell(text, id=f"solution-{number}"))
        for number, text in enumerate(solutions(nbformat.read(path, as_version=4)))
    ]
    content[0] = json.dumps(notebook)


def solutions(source: NotebookNode) -> Iterator[str]:
    """A heading, and each solution of a source notebook, with what the check says of it, as a folded note."""
    yield "## Solutions\n\nTry first. Another solution may be as good: the check is what counts."
    parts = {part.grade_id: cell for cell in source.cells if (part := cell.metadata.get("nbgrader"))}
    for name, cell in parts.items():
        if not cell.metadata.nbgrader.solution:
            continue
        lines = (line for line in cell.source.splitlines() if line.strip() not in (BEGIN, END))
        code = "\n".join(lines).strip("\n")
        verdict = _html(parts[f"check_{name}"])
        yield (
            f":::{{admonition}} Solution: `{name}`\n:class: dropdown\n```python\n{code}\n```\n\n"
            f"What the check says of it:\n\n```{{raw}} html\n{verdict}\n```\n:::"
        )


def _html(check: NotebookNode) -> str:
    """The verdict that is stored in a check cell."""
    found = (output.get("data", {}).get("text/html", "") for output in check.outputs)
    return next(filter(None, found), "")


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive and the switch known."""
    app.add_config_value("lanewise_show_solutions", True, "env", bool)
    app.add_directive("labs", Labs)
    app.add_directive("grading-statuses", Statuses)
    app.connect("source-read", add_solutions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
