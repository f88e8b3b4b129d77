"""What a notebook of this course must look like, as rules: each takes a notebook and yields its complaints.

`RULES` lists them; tests/test_notebooks.py applies every rule to every notebook and shows that each can fail.
A complaint names the cell, what was found and what to do.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from nbformat import NotebookNode

from tools import setup_cell
from tools.notebooks import figures, is_lab, normalise, stored_alternative_text
from tools.prose import computed_numbers, myst_syntax

Rule = Callable[[NotebookNode, Path], Iterator[str]]

CODE_LINES_PER_CELL = 12
ALT_TEXT_CHARACTERS = 25

# Tags and comments that weaken the comparison of outputs; a live GPU's times are the one good reason.
UNCOMPARED_TAGS = {"nbval-ignore-output", "nbval-skip"}
UNCOMPARED_COMMENT = re.compile(r"#\s*(NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)")
TIMES_GPU_TAG = "times-gpu"

# Outputs that another machine or another run would not repeat.
VOLATILE_OUTPUT = re.compile(
    r"\bat 0x[0-9a-f]{6,}|(?<![\w.])/(?:home|root|tmp|work|Users|content|opt)/\S+|\b[A-Z]:\\\S+|site-packages"
)


def is_normal(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Ids count the cells; metadata and alternative texts are those that tools/notebooks.py writes."""
    if notebook != normalise(notebook, path):
        yield f"{path} is not in normal form. Run: python -m tools.notebooks --no-run {path}"


def can_set_itself_up(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """The first code cell, and no other, is the set-up cell that tools/setup_cell.py writes."""
    expected = setup_cell.source(setup_cell.address(), lab=is_lab(path))
    cells = list(_code_cells(notebook))
    if cells and cells[0][1].source != expected:
        yield f"{cells[0][0]} is not the set-up cell. Run: python -m tools.notebooks --no-run {path}"
    for name, cell in cells[1:]:
        if setup_cell.is_setup(cell):
            yield f"{name} is a second set-up cell. Run: python -m tools.notebooks --no-run {path}"


def was_run_in_order(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Execution counts are 1, 2, 3, ...: nbval compares nothing in a cell that has no count."""
    for expected, (name, cell) in enumerate(_code_cells(notebook), start=1):
        if (count := cell.execution_count) != expected:
            yield f"{name} has execution count {count}, expected {expected}. Run: make notebooks"


def shows_its_values(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A cell that ends in a value, or prints, has an output stored."""
    for name, cell in _code_cells(notebook):
        shown = cell.outputs or setup_cell.is_setup(cell)
        if _must_show_something(cell.source) and not shown:
            yield f"{name} shows a value, but no output is stored. Run: make notebooks"


def raises_only_on_purpose(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """An error is stored exactly where the tag `raises-exception` says so."""
    for name, cell in _code_cells(notebook):
        stored = any(output.output_type == "error" for output in cell.outputs)
        tagged = "raises-exception" in _tags(cell)
        if stored and not tagged:
            yield f"{name} stores an error. Mend it, or tag the cell raises-exception."
        if tagged and not stored:
            yield f"{name} is tagged raises-exception but stores no error. Remove the tag."


def ends_no_cell_with_a_semicolon(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A trailing semicolon hides the output on the page but not from nbval."""
    for name, cell in _code_cells(notebook):
        if cell.source.rstrip().endswith(";"):
            yield f"{name} ends with a semicolon. Assign the value, or let the figure show."


def describes_its_figures(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Each figure is SVG, alone in its cell, and its text is a description that reaches the page."""
    for name, cell in _code_cells(notebook):
        drawn = figures(cell)
        if len(drawn) > 1:
            yield f"{name} draws {len(drawn)} figures; a page describes one per cell. Split the cell."
        for figure in drawn:
            alt = figure.data.get("text/plain", "")
            if "image/svg+xml" not in figure.data:
                yield f"{name} draws pixels, which nbval does not compare. Draw SVG."
            if len(alt) < ALT_TEXT_CHARACTERS or " " not in alt or alt.startswith(("<", "Figure(")):
                yield (
                    f"{name} describes its figure as {alt!r}. Show a Drawing of lanewise.figures, whose text "
                    f"says what the data shows in at least {ALT_TEXT_CHARACTERS} characters."
                )
            elif stored_alternative_text(cell) != alt:
                yield f"{name}: the page's alternative text is not the figure's text. Run: make notebooks"


def compares_every_output(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Only a cell that times a live GPU may keep its output from being compared."""
    for name, cell in _code_cells(notebook):
        weak = sorted(UNCOMPARED_TAGS & _tags(cell)) + UNCOMPARED_COMMENT.findall(cell.source)
        if setup_cell.is_setup(cell):
            continue  # it says what this machine is
        if weak and not (weak == ["nbval-ignore-output"] and TIMES_GPU_TAG in _tags(cell)):
            yield (
                f"{name} has {', '.join(weak)}. Make the output repeatable; only a cell tagged "
                f"{TIMES_GPU_TAG} may carry the tag nbval-ignore-output."
            )


def repeats_anywhere(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """No output holds a memory address or a path of the machine it was run on."""
    for name, cell in _code_cells(notebook):
        for text in _texts(cell):
            if match := VOLATILE_OUTPUT.search(text):
                yield f"{name} prints {match.group()!r}, which differs elsewhere. Print less."


def keeps_cells_short(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """A cell of a chapter is an import, a call or a figure; longer code has its place in src."""
    for name, cell in _code_cells(notebook):
        n_lines = sum(1 for line in cell.source.splitlines() if line.strip())
        if n_lines > CODE_LINES_PER_CELL and not is_lab(path):
            yield f"{name} has {n_lines} lines, at most {CODE_LINES_PER_CELL} are allowed. Move code to src."


def computes_its_numbers(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """No computed or measured number is typed in prose unless a cell beside it asserts that number.

    See tools/prose.py for what counts as such a number. A markdown cell with the tag `predict` asks the
    reader for a guess and is exempt.
    """
    for position, cell in enumerate(notebook.cells):
        if cell.cell_type != "markdown" or "predict" in _tags(cell):
            continue
        asserted = _numbers_asserted_beside(notebook, position)
        for found in computed_numbers(cell.source):
            if found.value not in asserted:
                yield (
                    f"{_name(position, cell)} types {found.text!r} in {found.sentence!r}. Print the number "
                    f"from a code cell, or assert {found.value:g} in the code cell just before or after."
                )


def reads_in_colab(notebook: NotebookNode, path: Path) -> Iterator[str]:
    """Labs use CommonMark and $mathematics$ only: Colab shows MyST syntax raw."""
    for position, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown" and is_lab(path):
            for found in myst_syntax(cell.source):
                yield f"{_name(position, cell)} uses {found!r}, which Colab shows raw. Write CommonMark."


RULES: tuple[Rule, ...] = (
    is_normal,
    can_set_itself_up,
    was_run_in_order,
    shows_its_values,
    raises_only_on_purpose,
    ends_no_cell_with_a_semicolon,
    describes_its_figures,
    compares_every_output,
    repeats_anywhere,
    keeps_cells_short,
    computes_its_numbers,
    reads_in_colab,
)


def _code_cells(notebook: NotebookNode) -> Iterator[tuple[str, NotebookNode]]:
    """The code cells that hold code, each with the name that complaints use."""
    for position, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and cell.source.strip():
            yield _name(position, cell), cell


def _name(position: int, cell: NotebookNode) -> str:
    first_line = cell.source.strip().partition("\n")[0]
    return f"cell {position} ({first_line[:50]!r})"


def _tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def _texts(cell: NotebookNode) -> Iterator[str]:
    """The texts among a cell's outputs; drawings apart."""
    for output in cell.outputs:
        yield output.get("text", "")
        yield from output.get("traceback", [])
        yield from (content for kind, content in output.get("data", {}).items() if kind.startswith("text/"))


def _must_show_something(source: str) -> bool:
    statements = _statements(source)
    if not statements or not isinstance(statements[-1], ast.Expr):
        return False
    value = statements[-1].value
    prints = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "print"
    return prints or not isinstance(value, ast.Call | ast.Constant)


def _numbers_asserted_beside(notebook: NotebookNode, position: int) -> set[float]:
    """The numbers in assertions of the nearest code cell before a position and of the nearest after it."""

    def asserts(cell: NotebookNode) -> bool:
        return cell.cell_type == "code" and not setup_cell.is_setup(cell)

    before = next(filter(asserts, reversed(notebook.cells[:position])), None)
    after = next(filter(asserts, notebook.cells[position + 1 :]), None)
    return {
        float(node.value)
        for cell in (before, after)
        for statement in (_statements(cell.source) if cell else [])
        for assertion in ast.walk(statement)
        if _asserts(assertion)
        for node in ast.walk(assertion)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    }


def _asserts(node: ast.AST) -> bool:
    """An assert statement, or a call such as np.testing.assert_array_equal(...)."""
    if isinstance(node, ast.Call):
        return ast.unparse(node.func).rpartition(".")[2].startswith("assert_")
    return isinstance(node, ast.Assert)


def _statements(source: str) -> list[ast.stmt]:
    try:
        return ast.parse(source).body
    except SyntaxError:  # a shell or magic line: these rules have nothing to say about it
        return []
