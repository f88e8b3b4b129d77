"""What the four articles treat, and where the course treats it: the tables in book/coverage.

`items.csv` lists what the articles treat. A page's own table, `<slug>.csv`, says which of these items its
sections treat; a section is named by the label, `(label)=`, before its heading.
"""

import csv
import json
import re
from dataclasses import dataclass
from pathlib import Path

ITEMS = "items"
ITEM_COLUMNS = ["item", "article", "topic", "what"]
SECTION_COLUMNS = ["item", "section"]
MAX_WHAT_CHARACTERS = 110

_ITEM = re.compile(r"([A-D])-\d\d")
_LABEL_BEFORE_HEADING = re.compile(r"^\(([\w-]+)\)=\s*\n+#+ ", re.MULTILINE)


@dataclass(frozen=True)
class Item:
    """One idea, kernel, figure or claim of an article, in words of our own."""

    item: str
    article: str
    topic: str
    what: str


@dataclass(frozen=True)
class Treatment:
    """That a section of the page `slug` treats an item."""

    item: str
    section: str
    slug: str


def read_items(book: Path) -> list[Item]:
    """All items of the articles, in the order of the file."""
    return [Item(**row) for row in _rows(_table(book, ITEMS))]


def read_treatments(book: Path) -> list[Treatment]:
    """What the pages' tables say, page by page."""
    return [Treatment(**row, slug=slug) for slug in treated_slugs(book) for row in _rows(_table(book, slug))]


def treated_slugs(book: Path) -> list[str]:
    """The pages that have a table, sorted."""
    return sorted(path.stem for path in (book / "coverage").glob("*.csv") if path.stem != ITEMS)


def labels_of(page: Path) -> list[str]:
    """The labels that stand before a heading of a page, which is a notebook or a text in MyST."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return _LABEL_BEFORE_HEADING.findall(text)


def page_of(book: Path, slug: str) -> Path | None:
    """The file of a page."""
    found = (book / f"{slug}{suffix}" for suffix in (".ipynb", ".md"))
    return next((path for path in found if path.is_file()), None)


# What can be wrong with the tables. Each complaint is a sentence.


def malformed(book: Path) -> list[str]:
    """Tables with other columns, items that are not items, rows that stand twice."""
    complaints = []
    for name, columns in [(ITEMS, ITEM_COLUMNS), *((slug, SECTION_COLUMNS) for slug in treated_slugs(book))]:
        header, *rows = csv.reader(_table(book, name).read_text(encoding="utf-8").splitlines())
        if header != columns:
            complaints.append(f"{name}.csv has the columns {header}, expected {columns}.")
            continue
        complaints += [
            f"{name}.csv: {row} has an empty or a wrong number of cells."
            for row in rows
            if len(row) != len(columns) or not all(cell.strip() == cell != "" for cell in row)
        ]
        keys = [row[0] if name == ITEMS else tuple(row) for row in rows if row]
        complaints += [
            f"{name}.csv has {key} twice." for key in sorted(set(keys), key=str) if keys.count(key) > 1
        ]
    if complaints:
        return complaints
    items = read_items(book)
    complaints += [
        f"{item.item}: not an item of article {item.article}."
        for item in items
        if not (match := _ITEM.fullmatch(item.item)) or match[1] != item.article
    ]
    return complaints + [
        f"{item.item}: {len(item.what)} characters, at most {MAX_WHAT_CHARACTERS} are allowed."
        for item in items
        if len(item.what) > MAX_WHAT_CHARACTERS
    ]


def out_of_order(book: Path) -> list[str]:
    """Items of an article that are not numbered 01, 02, 03, ..."""
    complaints = []
    items = read_items(book)
    for article in sorted({item.article for item in items}):
        numbers = [int(item.item[2:]) for item in items if item.article == article]
        if numbers != list(range(1, len(numbers) + 1)):
            complaints.append(f"article {article}: the numbers {numbers} are not 1, 2, 3, ...")
    return complaints


def leading_nowhere(book: Path) -> list[str]:
    """Rows with an unknown item, and sections that their page does not have."""
    known = {item.item for item in read_items(book)}
    complaints = []
    for slug in treated_slugs(book):
        page = page_of(book, slug)
        if page is None:
            complaints.append(f"coverage/{slug}.csv is about a page that does not exist: {slug}.")
            continue
        labels = labels_of(page)
        for row in (row for row in read_treatments(book) if row.slug == slug):
            if row.item not in known:
                complaints.append(f"{slug}.csv: {row.item} is no item of items.csv.")
            if row.section not in labels:
                complaints.append(f"{slug}.csv: {page.name} has no label ({row.section})= before a heading.")
    return complaints


def untreated(book: Path) -> list[Item]:
    """The items that no section treats."""
    treated = {row.item for row in read_treatments(book)}
    return [item for item in read_items(book) if item.item not in treated]


def _table(book: Path, name: str) -> Path:
    return book / "coverage" / f"{name}.csv"


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
