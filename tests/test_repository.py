"""What a stranger finds: a tree that matches its README, one place per fact, a built book that is complete."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path

import pytest
import yaml

from tools.notebooks import FOLDERS, ROOT
from tools.prose import computed_numbers
from tools.site import BUILT, pages

BUILT_PAGES = [BUILT / page for page in pages()]
needs_book = pytest.mark.skipif(not BUILT_PAGES, reason="the book is not built: run make book")


def tracked_files() -> list[Path]:
    """Files under version control; all but hidden and generated ones where there is no git."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
        return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]
    everything = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in everything if path.relative_to(ROOT).parts[0][0] not in "._"]


def test_readme_names_what_is_at_the_top_of_the_tree() -> None:
    named = set(re.findall(r"^\| `([\w./]+?)/?`", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert named, "README.md has no table of places"
    folders = {path.relative_to(ROOT).parts[0] for path in tracked_files() if path.parent != ROOT}
    visible = {folder for folder in folders if not folder.startswith(".")}
    assert visible <= {name.split("/")[0] for name in named}, "add the new folder to README.md"
    assert all((ROOT / name).exists() for name in named)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "labs/README.md"])
def test_links_lead_somewhere(name: str) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", (ROOT / name).read_text())
    inner = [target for target in targets if "://" not in target]
    assert [target for target in inner if not (ROOT / name).parent.joinpath(target).exists()] == []


def test_make_help_names_every_target() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    described = set(re.findall(r'@echo "make (\w+)', makefile))
    assert described == set(phony[1].split()) - {"help", "lint"}


def test_every_pin_has_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = chain(project["dependencies"], *project["optional-dependencies"].values())
    in_project = [requirement_name(line) for line in declared]
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line and line[0] != "#"]
    assert lines[-1].startswith("-e ."), "requirements.txt ends with the package itself"
    names = [*in_project, *(requirement_name(line) for line in lines[:-1])]
    assert sorted(names) == sorted(set(names))


def requirement_name(line: str) -> str:
    """The distribution that a requirement is about."""
    return re.split(r"[^\w.-]", line, maxsplit=1)[0].lower()


def test_no_file_names_the_machine_it_was_made_on() -> None:
    suspects = re.compile(rb"/(?:home|Users)/\w+/|/work/|/root/|\.pyenv|site-packages/")
    allowed = {"tests/test_repository.py", "tests/test_notebooks.py", "tools/notebook_rules.py"}
    found = [
        f"{name}: {match.group().decode()}"
        for path in tracked_files()
        if (name := path.relative_to(ROOT).as_posix()) not in allowed
        if (match := suspects.search(path.read_bytes()))
    ]
    assert found == []


def test_ci_script_can_be_run() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert script.read_text().rstrip().endswith('make test PYTHON="$PYTHON" </dev/null')


# Pages and their order.


def listed_pages() -> list[str]:
    """Pages in the order of _toc.yml, without suffix."""

    def walk(node: object) -> Iterator[str]:
        if isinstance(node, dict):
            yield from (node[key] for key in ("root", "file") if key in node)
            for value in node.values():
                yield from walk(value)
        elif isinstance(node, list):
            for item in node:
                yield from walk(item)

    return list(walk(yaml.safe_load((ROOT / "_toc.yml").read_text())))


def test_contents_list_every_page_once() -> None:
    listed = listed_pages()
    found = [
        path.relative_to(ROOT).with_suffix("").as_posix()
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".md", ".ipynb"} and path.name != "README.md" and ".ipynb_check" not in str(path)
    ]
    assert sorted(listed) == sorted(found), "list each page of book/ and labs/ once in _toc.yml"


def test_file_names_carry_no_numbers() -> None:
    assert [page for page in listed_pages() if re.search(r"(^|[/_-])\d+[_-]", page)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "book").rglob("*.md")), ids=lambda path: path.stem)
def test_prose_of_plain_pages_types_no_computed_number(path: Path) -> None:
    assert [found.sentence for found in computed_numbers(path.read_text())] == []


# The built book.


class References(HTMLParser):
    """What a page loads by itself, its links, and its images with their alternative texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.images: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "a":
            self.links.append(values.get("href", ""))
        elif tag != "link" or values.get("rel") not in {"index", "search", "next", "prev", "canonical"}:
            self.loaded += [values[name] for name in ("src", "href", "data", "poster") if name in values]
        if tag == "img":
            self.images.append((values.get("src", ""), values.get("alt", "MISSING")))


def foreign(address: str) -> bool:
    """Whether an address leads off the site."""
    return bool(re.match(r"(?:\w+:)?//|http", address))


def junk_alternative_text(source: str, alt: str) -> bool:
    """Whether an image of the page's content has no alternative text, or a file name for one."""
    return "_images/" in source and (len(alt) < 15 or "_images/" in alt or alt == "MISSING")


@needs_book
@pytest.mark.parametrize("page", BUILT_PAGES, ids=lambda page: page.stem)
def test_built_page_loads_nothing_from_elsewhere(page: Path) -> None:
    html = page.read_text()
    assert [address for address in References(html).loaded if foreign(address)] == []
    assert re.findall(r"https?://[\w.]*(?:cdn|unpkg|jsdelivr|googleapis|cloudflare)[\w./]*", html) == []


@needs_book
@pytest.mark.parametrize("page", BUILT_PAGES, ids=lambda page: page.stem)
def test_built_images_have_alternative_texts(page: Path) -> None:
    assert [image for image in References(page.read_text()).images if junk_alternative_text(*image)] == []


@needs_book
@pytest.mark.parametrize("page", BUILT_PAGES, ids=lambda page: page.stem)
def test_built_links_lead_somewhere(page: Path) -> None:
    links = References(page.read_text()).links
    inner = {link.split("#")[0].split("?")[0] for link in links if not foreign(link)} - {""}
    assert [link for link in inner if not page.parent.joinpath(link).exists()] == []


@needs_book
def test_style_sheets_load_nothing_from_elsewhere() -> None:
    loads = re.compile(r"(?:url\(|@import )[\"']?(?:\w+:)?//")
    assert [sheet.name for sheet in BUILT.rglob("*.css") if loads.search(sheet.read_text())] == []


@needs_book
def test_without_a_repository_address_no_button_leads_nowhere() -> None:
    html = "".join(page.read_text() for page in BUILT_PAGES)
    if not yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["url"]:
        assert "colab.research.google.com" not in html
        assert "source-repository-button" not in html


def test_the_checks_of_pages_can_fail() -> None:
    image = '<img src="../_images/a.svg" alt="_images/a.svg">'
    page = References(f'<script src="https://cdn.invalid/x.js"></script>{image}')
    assert [address for address in page.loaded if foreign(address)] == ["https://cdn.invalid/x.js"]
    assert [junk_alternative_text(*image) for image in page.images] == [True]
    assert junk_alternative_text("../_images/a.svg", "MISSING")
    assert not junk_alternative_text("../_images/a.svg", "Bank map: each of the 32 banks holds one word.")
    assert not foreign("../_static/lanewise.css")
    assert foreign("//cdn.invalid/x.css")


@pytest.fixture(scope="module")
def book_with_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The book as someone builds it who has set the repository's address in _config.yml, and nothing else."""
    copy = tmp_path_factory.mktemp("with-repository")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder)
    shutil.copy(ROOT / "_toc.yml", copy)
    config = (ROOT / "_config.yml").read_text()
    address_line = re.compile(r"^  url: .*$", re.MULTILINE)
    assert len(address_line.findall(config)) == 1
    (copy / "_config.yml").write_text(address_line.sub("  url: https://github.com/OWNER/NAME", config))
    jupyter_book = Path(sys.executable).with_name("jupyter-book")
    command = [str(jupyter_book), "build", ".", "-W", "-n", "--keep-going", "--quiet"]
    result = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return copy / "_build" / "html"


def test_with_a_repository_address_notebooks_open_in_colab(book_with_repository: Path) -> None:
    html = (book_with_repository / "book" / "index.html").read_text()
    assert "https://colab.research.google.com/github/OWNER/NAME/blob/main/book/index.ipynb" in html
    assert 'href="https://github.com/OWNER/NAME"' in html
    assert "https://github.com/OWNER/NAME/issues/new" in html


def test_with_a_repository_address_the_sidebar_still_opens_on_a_phone(book_with_repository: Path) -> None:
    """Options of _config.yml must be merged with the theme's, not replace them: recursive_update."""
    html = (book_with_repository / "book" / "index.html").read_text()
    assert "primary-toggle" in html
    assert "navbar-persistent--container" not in html
