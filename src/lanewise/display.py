"""What a page shows besides figures: kernels, and tables and sentences whose numbers come from a computation.

A number that a cell has computed reaches the page through `table` or `say`, never through the author's
keyboard. All show as Markdown in a notebook and as plain text elsewhere.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Number

from lanewise.access import WarpAccess
from lanewise.errors import Error
from lanewise.instructions import instruction
from lanewise.memory import GlobalCost, SharedCost, global_cost, shared_cost


class InvalidTable(Error):
    """Rows that do not make a table, or columns that nothing has."""


class NoSource(Error):
    """A function whose source is in no file."""


@dataclass(frozen=True)
class Table:
    """Rows of text under headers; `numeric` says which columns are set to the right, `note` stands below."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    note: str = ""

    def _repr_markdown_(self) -> str:
        rule = ["---:" if number else ":---" for number in self.numeric]
        escaped = [[cell.replace("|", "\\|") for cell in row] for row in (self.headers, *self.rows)]
        lines = [escaped[0], rule, *escaped[1:]]
        below = f"\n\n*{self.note}*" if self.note else ""
        return "\n".join("| " + " | ".join(line) + " |" for line in lines) + below

    def __repr__(self) -> str:
        table = (self.headers, *self.rows)
        widths = [max(len(row[column]) for row in table) for column in range(len(self.headers))]
        below = f"\n{self.note}" if self.note else ""
        text = "\n".join(
            "  ".join(
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(row, widths, self.numeric, strict=True)
            ).rstrip()
            for row in table
        )
        return text + below


@dataclass(frozen=True)
class Sentence:
    """Markdown text that states what a cell has computed."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return self.markdown


def table(rows: Iterable[Mapping[str, object]], note: str = "") -> Table:
    """Make a table of rows that map each header to a value.

    Integers get thousands separators, True and False become yes and no, None an empty cell; give other
    numbers as text in the form they should have. `note` is a sentence below: where the numbers come from.

    >>> table([{"read": "`s[lane]`", "wavefronts": 1}, {"read": "`s[32 * lane]`", "wavefronts": 1024}])
    read             wavefronts
    `s[lane]`                 1
    `s[32 * lane]`        1,024

    Raises `InvalidTable` if there is no row, or rows differ in their headers.
    """
    records = list(rows) if isinstance(rows, Iterable) else [rows]
    for number, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise InvalidTable(f"table: row {number} is {record!r}. Give each row as {{header: value}}.")
    if not records:
        raise InvalidTable("table: got no rows. Give at least one, as {header: value}.")
    headers = tuple(records[0])
    for number, record in enumerate(records):
        if tuple(record) != headers:
            raise InvalidTable(
                f"table: row {number} has headers {tuple(record)}, row 0 has {headers}. Make them equal."
            )
    numeric = tuple(all(_is_number(record[header]) for record in records) for header in headers)
    cells = tuple(tuple(_cell(record[header]) for header in headers) for record in records)
    return Table(tuple(map(str, headers)), cells, numeric, note)


def compare(accesses: Mapping[str, WarpAccess], *columns: str, label: str = "access") -> Table:
    """Make a table of what accesses cost, one row each, under the header `label` and the names of `columns`.

    A column is an attribute of `SharedCost` or `GlobalCost`, such as wavefronts, ideal, excess, fused, or
    sectors, lines; by default wavefronts, ideal and excess. An async copy is counted in shared memory.

    >>> compare({"column": WarpAccess.from_formula("ld.shared.b32", lambda lane: 128 * lane)})
    access  wavefronts  ideal  excess
    column          32      1      31

    Raises `InvalidTable` for a column that an access does not have, and what the costs raise.
    """
    if not isinstance(accesses, Mapping):
        raise InvalidTable(f"compare: got {accesses!r}. Give the accesses by name, {{name: access}}.")
    names = columns or ("wavefronts", "ideal", "excess")
    costs = {text: _cost(text, access) for text, access in accesses.items()}
    return table(
        {label: text, **{name: _column(text, cost, name) for name in names}} for text, cost in costs.items()
    )


def _cost(text: str, access: object) -> SharedCost | GlobalCost:
    if not isinstance(access, WarpAccess):
        raise InvalidTable(f"compare: {text!r} is {access!r}. Give a WarpAccess.")
    return (shared_cost if instruction(access.instruction).space == "shared" else global_cost)(access)


def _column(text: str, cost: SharedCost | GlobalCost, name: str) -> object:
    there_are = [each for each in dir(type(cost)) if isinstance(getattr(type(cost), each), property)]
    counts = ["fused", *there_are] if isinstance(cost, SharedCost) else there_are
    if name not in counts:
        raise InvalidTable(
            f"compare: {cost.access.instruction} of {text!r} has no column {name!r}; it has"
            f" {', '.join(counts)}. Compare accesses of one memory space, and name columns that they have."
        )
    return getattr(cost, name)


def say(markdown: str) -> Sentence:
    """Show a sentence, usually an f-string around computed values, as Markdown.

    >>> say(f"The column costs **{16 + 16}** wavefronts.")
    The column costs **32** wavefronts.
    """
    return Sentence(str(markdown))


def source(kernel: Callable) -> Sentence:
    """Show the source of a kernel or function as it stands in its file.

    Raises `NoSource` for what was defined in none: a builtin, or a function typed at the prompt.
    """
    function = getattr(kernel, "py_func", kernel)
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        raise NoSource(
            f"source: {kernel!r} is in no file. Give a function defined in a module or cell."
        ) from None
    return Sentence(f"```python\n{textwrap.dedent(text).rstrip()}\n```")


_WRITTEN_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?%?")


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return bool(_WRITTEN_NUMBER.fullmatch(value))
    return value is None or (isinstance(value, Number) and not isinstance(value, bool))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Number) and hasattr(value, "__index__"):
        return f"{int(value.__index__()):,}"
    return str(value)
