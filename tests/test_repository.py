"""What a stranger finds: a tree that matches its README, one place per fact, contents that list every page."""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
import yaml

from tools.notebooks import FOLDERS, ROOT
from tools.prose import computed_numbers


def tracked_files() -> list[Path]:
    """Files under version control; all but hidden and generated ones where there is no git."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
        return [path for line in listed.stdout.splitlines() if (path := ROOT / line).is_file()]
    everything = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in everything if path.relative_to(ROOT).parts[0][0] not in "._"]


def test_a_file_of_tests_may_have_the_name_of_another() -> None:
    """Every folder is a package, so that a module is known by its path. Elsewhere a second `conftest` or
    `test_x` stands for the first, and pytest refuses it."""
    folders = {path.parent for folder in ("tests", "tools") for path in (ROOT / folder).rglob("*.py")}
    assert {ROOT / "tests", ROOT / "tools"} <= folders
    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


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
    described = set(re.findall(r'@echo "make ([\w-]+)', makefile))
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
        for path in (ROOT / folder).glob("*")
        if path.suffix in {".md", ".ipynb"} and path.name != "README.md"
    ]
    assert sorted(listed) == sorted(found), "list each page of book/ and labs/ once in _toc.yml"


def test_file_names_carry_no_numbers() -> None:
    assert [page for page in listed_pages() if re.search(r"(^|[/_-])\d+[_-]", page)] == []


@pytest.mark.parametrize("path", sorted((ROOT / "book").rglob("*.md")), ids=lambda path: path.stem)
def test_prose_of_plain_pages_types_no_computed_number(path: Path) -> None:
    assert [found.sentence for found in computed_numbers(path.read_text())] == []
