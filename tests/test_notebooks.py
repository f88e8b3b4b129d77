"""Every notebook obeys every rule; every rule can fail; re-running a notebook changes nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import notebook_rules as rules
from tools import setup_cell
from tools.notebooks import (
    ROOT,
    find_notebooks,
    is_lab,
    main,
    normalise,
    read,
    refresh,
    text_of,
    with_setup_cell,
)
from tools.prose import computed_numbers, myst_syntax

NOTEBOOKS = find_notebooks()
CHAPTER = Path("book/trial.ipynb")
LAB = Path("labs/trial.ipynb")

ALT_TEXT = "Bank map: lanes 0 to 31 read 32 different banks."
DRAWING_SOURCE = f"""\
class Drawing:
    def _repr_mimebundle_(self, include=None, exclude=None):
        svg = '<svg xmlns="http://www.w3.org/2000/svg"><text>32</text></svg>'
        return {{"image/svg+xml": svg, "text/plain": {ALT_TEXT!r}}}"""


def drawn(alt: str = ALT_TEXT, kind: str = "image/svg+xml") -> NotebookNode:
    return new_output("display_data", {kind: "<svg><text>32</text></svg>", "text/plain": alt})


def printed(text: str) -> NotebookNode:
    return new_output("stream", name="stdout", text=text)


def code(source: str, *outputs: NotebookNode, count: int | None = 1, tag: str = "") -> NotebookNode:
    metadata = {"tags": tag.split()} if tag else {}
    return new_code_cell(source, outputs=list(outputs), execution_count=count, metadata=metadata)


def prose(source: str, tag: str = "") -> NotebookNode:
    return new_markdown_cell(source, metadata={"tags": [tag]} if tag else {})


def notebook(*cells: NotebookNode, path: Path = CHAPTER) -> NotebookNode:
    return normalise(new_notebook(cells=list(cells)), path)


def complaints(rule: rules.Rule, *cells: NotebookNode, path: Path = CHAPTER) -> str:
    """What a rule says of a notebook of these cells; '' where it is content."""
    return "\n".join(rule(notebook(*cells, path=path), path))


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_obeys(path: Path, rule: rules.Rule) -> None:
    found = list(rule(read(path), path.relative_to(ROOT)))
    assert not found, "\n".join([rule.__doc__ or rule.__name__, *found])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_file_is_in_normal_form(path: Path) -> None:
    assert not refresh(path, execute=False, write=False), "Run: python -m tools.notebooks --no-run"


# Each rule on a notebook that breaks it, and on one that keeps it.


def test_a_clean_notebook_passes_every_rule() -> None:
    clean = notebook(prose("# Banks"), code("drawing", drawn()), code("print(1)", printed("1\n"), count=2))
    assert [found for rule in rules.RULES for found in rule(clean, CHAPTER)] == []


@pytest.mark.parametrize("spoil", ["id", "metadata", "kernel", "output", "alt", "format"])
def test_normal_form_is_checked(spoil: str) -> None:
    spoilt = notebook(prose("# Banks"), code("drawing", drawn()))
    if spoil == "id":
        spoilt.cells[0].id = "b2a7c1d9"
    elif spoil == "metadata":
        spoilt.cells[-1].metadata["execution"] = {"iopub.execute_input": "2026-01-01T00:00:00Z"}
    elif spoil == "kernel":
        spoilt.metadata.kernelspec = {"display_name": "my-env", "language": "python", "name": "my-env"}
    elif spoil == "output":
        spoilt.cells[-1].outputs[0].metadata = {"needs_background": "light"}
    elif spoil == "alt":
        spoilt.cells[-1].metadata.mystnb.image.alt = "A bank map."
    else:
        spoilt.metadata.language_info = {"name": "python", "version": "3.11.7"}
    assert "not in normal form" in "".join(rules.is_normal(spoilt, CHAPTER))


def test_cell_ids_must_differ() -> None:
    twins = notebook(prose("# A"), prose("B"))
    twins.cells[1].id = twins.cells[0].id
    assert [*rules.is_normal(twins, CHAPTER)]


def test_labs_open_on_a_gpu_in_colab_and_chapters_do_not() -> None:
    assert notebook(prose("# Lab"), path=LAB).metadata.accelerator == "GPU"
    assert "accelerator" not in notebook(prose("# Chapter")).metadata
    assert [*rules.is_normal(notebook(prose("# Lab")), LAB)]


def test_a_lab_is_told_by_its_own_folder() -> None:
    assert is_lab(Path("labs/padding/padding.ipynb"))
    assert not is_lab(Path("/home/ada/labs/lanewise/book/banks.ipynb"))


@pytest.mark.parametrize("count", [None, 3])
def test_a_cell_that_was_not_run_in_order_is_found(count: int | None) -> None:
    found = complaints(rules.was_run_in_order, code("x = 1", count=count))
    assert f"('x = 1') has execution count {count}, expected 2" in found


@pytest.mark.parametrize("source", ["x", "print(x)", "x + 1", "access.lanes"])
def test_a_missing_output_is_found(source: str) -> None:
    assert "no output is stored" in complaints(rules.shows_its_values, code(source))
    assert not complaints(rules.shows_its_values, code(source, printed("1")))


@pytest.mark.parametrize("source", ["x = 1", "import lanewise", "assert x", "for x in y:\n    x", "f()"])
def test_a_silent_cell_needs_no_output(source: str) -> None:
    assert not complaints(rules.shows_its_values, code(source))


def test_a_stored_error_needs_its_tag_and_the_tag_its_error() -> None:
    error = new_output("error", ename="Error", evalue="no", traceback=["Error: no"])
    assert "stores an error" in complaints(rules.raises_only_on_purpose, code("f()", error))
    assert "stores no error" in complaints(rules.raises_only_on_purpose, code("f()", tag="raises-exception"))
    assert not complaints(rules.raises_only_on_purpose, code("f()", error, tag="raises-exception"))


def test_a_trailing_semicolon_is_found() -> None:
    assert "semicolon" in complaints(rules.ends_no_cell_with_a_semicolon, code("draw();"))
    assert not complaints(rules.ends_no_cell_with_a_semicolon, code("a = 1; b = 2"))


@pytest.mark.parametrize("alt", ["", "<Figure size 640x480 with 1 Axes>", "A map.", "x" * 40])
def test_a_figure_without_a_description_is_found(alt: str) -> None:
    assert "describes its figure as" in complaints(rules.describes_its_figures, code("draw()", drawn(alt)))


def test_a_figure_of_pixels_and_a_second_figure_are_found() -> None:
    assert "Draw SVG" in complaints(rules.describes_its_figures, code("draw()", drawn(kind="image/png")))
    assert "draws 2 figures" in complaints(rules.describes_its_figures, code("draw()", drawn(), drawn()))


def test_a_page_whose_alternative_text_is_stale_is_found() -> None:
    stale = notebook(code("drawing", drawn()))
    assert not [*rules.describes_its_figures(stale, CHAPTER)]
    stale.cells[-1].outputs[0].data["text/plain"] = ALT_TEXT.replace("32", "31")
    assert "not the figure's text" in "".join(rules.describes_its_figures(stale, CHAPTER))


def test_an_output_kept_from_comparison_is_found() -> None:
    rule = rules.compares_every_output
    assert "nbval-skip" in complaints(rule, code("f()", tag="nbval-skip"))
    assert "NBVAL_IGNORE_OUTPUT" in complaints(rule, code("# NBVAL_IGNORE_OUTPUT\nf()"))
    assert "nbval-ignore-output" in complaints(rule, code("f()", tag="nbval-ignore-output"))
    assert not complaints(rule, code("f()", tag="nbval-ignore-output times-gpu"))


@pytest.mark.parametrize("text", ["<A object at 0x7f31c2a9d0>", "/home/ada/x.py", "site-packages/numpy"])
def test_an_output_of_one_machine_is_found(text: str) -> None:
    assert "differs elsewhere" in complaints(rules.repeats_anywhere, code("f()", printed(text)))


def test_addresses_of_the_model_are_not_mistaken_for_a_machine() -> None:
    assert not complaints(rules.repeats_anywhere, code("f()", printed("lane 3 reads 0x10a8, row/tmp, 1/2")))


def test_a_long_cell_is_found_in_a_chapter_only() -> None:
    long = code("\n".join(f"x{i} = {i}" for i in range(13)))
    assert "has 13 lines, at most 12" in complaints(rules.keeps_cells_short, long)
    assert not complaints(rules.keeps_cells_short, long, path=LAB)


def test_a_number_typed_in_prose_is_found_unless_a_cell_beside_asserts_it() -> None:
    sentence = prose("The column read costs 32 wavefronts.")
    rule = rules.computes_its_numbers
    assert "types '32 wavefronts'" in complaints(rule, sentence)
    assert "types '32 wavefronts'" in complaints(rule, sentence, code("assert cost.wavefronts == 31"))
    assert "types '32 wavefronts'" in complaints(rule, sentence, code("n = 32"))
    assert not complaints(rule, sentence, code("assert cost.wavefronts == 32"))
    assert not complaints(rule, code("assert cost.wavefronts == 32"), sentence)
    assert not complaints(rule, prose("- 1 wavefront\n- 32 wavefronts", "predict"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A 32-way conflict.", ["32-way"]),
        ("It needs two wavefronts.", ["two wavefronts"]),
        ("A stride of 2 moves 8 distinct sectors.", ["8 distinct sectors"]),
        ("Padding is 2x faster, or 2 × faster.", ["2x", "2 ×"]),
        ("It reaches 3,271 GB/s, 78% of the copy.", ["3,271 GB/s", "78%"]),
        ("It took 12.5 us, 62 cycles more.", ["12.5 us", "62 cycles"]),
        ("## 1,048,576 load wavefronts", ["1,048,576 load wavefronts"]),
        ("| pitch | cost |\n|---|---|\n| 33 | 2 wavefronts |", ["2 wavefronts"]),
    ],
)
def test_numbers_with_computed_units_are_found(text: str, found: list[str]) -> None:
    assert [number.text for number in computed_numbers(text)] == found


@pytest.mark.parametrize(
    "text",
    [
        "A warp has 32 lanes; shared memory has 32 banks of 4 bytes each.",
        "A 32x32 tile, a block of 32 × 8 threads, m16n8k16 and sm_90.",
        "A bank serves one word per wavefront.",
        "Does it cost 1 wavefront, or 32 wavefronts?",
        'Some texts say "a 128-bit access takes 4 cycles".',
        "> Rule of thumb: 4 cycles.",
        "`cost.wavefronts == 32 wavefronts` and $32$ wavefronts",
        "```python\n# 32 wavefronts\n```",
        "See [the table](https://example.org/32-way).",
    ],
)
def test_other_numbers_are_left_alone(text: str) -> None:
    assert computed_numbers(text) == []


@pytest.mark.parametrize("text", ["{term}`bank`", ":::{note}", "```{note} Why", "(label)=", "{{ version }}"])
def test_myst_in_a_lab_is_found(text: str) -> None:
    assert "Write CommonMark" in complaints(rules.reads_in_colab, prose(text), path=LAB)
    assert not complaints(rules.reads_in_colab, prose(text))


def test_common_mark_and_mathematics_are_not_mistaken_for_myst() -> None:
    assert myst_syntax("# Title\n\n```python\nx = {1}\n```\n\n$x_{1}$, `{}`, **bold**, [link](x.md)") == []


# The set-up cell.

ADDRESS = "git+https://github.com/OWNER/lanewise@main"


def test_a_chapter_with_code_begins_with_the_set_up_cell() -> None:
    result = new_output("execute_result", {"text/plain": "1"}, execution_count=1)
    plain = new_notebook(cells=[prose("# A"), code("1", result), code("x = 2", count=2)])
    given = with_setup_cell(plain, CHAPTER, ADDRESS)
    title, setup, first, second = given.cells
    assert (title.source, first.source, second.source) == ("# A", "1", "x = 2")
    assert setup.source == setup_cell.source(ADDRESS)
    assert setup.metadata.tags == ["remove-cell"]
    assert [cell.execution_count for cell in (setup, first, second)] == [1, 2, 3]
    assert first.outputs[0].execution_count == 2
    assert with_setup_cell(given, CHAPTER, ADDRESS) == given
    moved = with_setup_cell(given, CHAPTER, "")
    assert 'address = ""' in moved.cells[1].source
    assert [cell.execution_count for cell in moved.cells[1:]] == [1, 2, 3]


def test_pages_without_code_need_no_set_up_cell() -> None:
    cells = [prose("# A")]
    for path in (CHAPTER, LAB):
        assert with_setup_cell(new_notebook(cells=cells), path, ADDRESS).cells == cells


def test_a_labs_set_up_cell_says_what_the_machine_is_and_stores_nothing() -> None:
    given = with_setup_cell(new_notebook(cells=[code("x = 1")]), LAB, ADDRESS).cells[0]
    assert given.source == setup_cell.source(ADDRESS, lab=True)
    assert "print(mode())" in given.source
    assert given.metadata.tags == ["remove-cell", "nbval-ignore-output"]
    assert not given.outputs


def test_a_notebook_that_was_not_run_stays_so() -> None:
    given = with_setup_cell(new_notebook(cells=[code("x = 1", count=None)]), CHAPTER, ADDRESS)
    assert [cell.execution_count for cell in given.cells] == [None, None]


def test_a_changed_or_second_set_up_cell_is_found() -> None:
    rule = rules.can_set_itself_up
    changed = notebook(code("x = 1"))
    assert not [*rule(changed, CHAPTER)]
    changed.cells[0].source += " "
    assert "is not the set-up cell" in "".join(rule(changed, CHAPTER))
    assert "not in normal form" in "".join(rules.is_normal(changed, CHAPTER))
    twice = notebook(code("x = 1"))
    twice.cells.append(twice.cells[0])
    assert "is a second set-up cell" in "".join(rule(twice, CHAPTER))
    twice.cells = twice.cells[1:2]
    assert "('x = 1') is not the set-up cell" in "".join(rule(twice, CHAPTER))


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_the_set_up_cell_is_short(address: str) -> None:
    lines = [line for line in setup_cell.source(address).splitlines() if line.strip()]
    assert len(lines) <= rules.CODE_LINES_PER_CELL
    assert max(map(len, lines)) <= 78


@pytest.mark.parametrize(
    ("repository", "address"),
    [
        ('{url: "", branch: main}', ""),
        ("{branch: main}", ""),
        ("{url: https://github.com/OWNER/lanewise, branch: main}", ADDRESS),
        ("{url: https://github.com/OWNER/lanewise.git}", ADDRESS),
        ("{url: https://github.com/OWNER/lanewise/, branch: next}", ADDRESS.replace("main", "next")),
    ],
)
def test_the_address_is_the_one_of_the_configuration(tmp_path: Path, repository: str, address: str) -> None:
    (tmp_path / "_config.yml").write_text(f"title: Trial\nrepository: {repository}\n")
    assert setup_cell.address(tmp_path / "_config.yml") == address


# A stand-in for pip: it notes what it was asked to do, and "installs" by a link to the package.
PIP = f"""\
import pathlib, sys
pathlib.Path("asked.txt").write_text(" ".join(sys.argv[1:]))
pathlib.Path("installed/lanewise").symlink_to({str(ROOT / "src" / "lanewise")!r})
"""
# A notebook's shell, in which Lanewise may be missing.
SHELL = f"""\
import sys
if sys.argv[1] == "missing":
    sys.path = [place for place in sys.path if place != {str(ROOT / "src")!r}] + ["installed"]
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance().run_cell(open("cell.txt").read()).raise_error()
"""


def run_setup(folder: Path, address: str, state: str) -> tuple[str, str]:
    """What the set-up cell prints, and what it asks of pip, in a notebook in `folder`."""
    (folder / "pip").mkdir()
    (folder / "installed").mkdir()
    (folder / "pip" / "__init__.py").touch()
    (folder / "pip" / "__main__.py").write_text(PIP)
    (folder / "cell.txt").write_text(setup_cell.source(address))
    path = [str(folder), *([str(ROOT / "src")] if state == "there" else [])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "IPYTHONDIR": str(folder / "ipython")}
    command = [sys.executable, "-c", SHELL, state]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    asked = folder / "asked.txt"
    return done.stdout.replace("\r", ""), asked.read_text() if asked.exists() else ""


def test_the_set_up_cell_does_nothing_where_lanewise_is(tmp_path: Path) -> None:
    assert run_setup(tmp_path, ADDRESS, "there") == ("", "")


def test_without_wheel_and_address_the_set_up_cell_says_what_to_do(tmp_path: Path) -> None:
    printed, asked = run_setup(tmp_path, "", "missing")
    assert printed == "Put Lanewise's wheel, lanewise-*.whl, beside this notebook.\n"
    assert asked == ""


@pytest.mark.parametrize(
    ("address", "wheel"), [(ADDRESS, ""), ("", "lanewise-0.1.0-py3-none-any.whl"), (ADDRESS, "lanewise-1.whl")]
)
def test_the_set_up_cell_installs_and_changes_nothing_else(tmp_path: Path, address: str, wheel: str) -> None:
    if wheel:
        (tmp_path / wheel).touch()
    printed, asked = run_setup(tmp_path, address, "missing")
    assert asked == f"install --quiet --no-deps {wheel or address}"
    last = printed.strip().splitlines()[-1]
    assert re.match(r"Lanewise .*python \d.*numpy \d.* Kernels (are traced, not launched|can be traced)", last)


# Running, normalising, comparing.


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook that was written by hand and then run by the tool."""
    path = tmp_path_factory.mktemp("course") / "book" / "trial.ipynb"
    path.parent.mkdir()
    sources = [DRAWING_SOURCE, "Drawing()", "print(31 + 1)"]
    cells = [prose("# Trial  "), *(code(source, count=7) for source in sources)]
    kernel = {"name": "my-env", "display_name": "my-env"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), str(path))
    assert refresh(path)
    return path


def test_a_second_run_changes_nothing(trial: Path) -> None:
    before = trial.read_bytes()
    assert not refresh(trial)
    assert trial.read_bytes() == before


def test_the_run_stores_outputs_and_alternative_text(trial: Path) -> None:
    result = read(trial)
    assert [rule.__name__ for rule in rules.RULES if [*rule(result, CHAPTER)]] == []
    assert [cell.id for cell in result.cells] == ["trial-000", "trial-001", "trial-002", "trial-003", "trial-004"]
    assert result.cells[3].metadata.mystnb.image.alt == ALT_TEXT
    assert result.cells[4].outputs[0].text == "32\n"


def test_an_error_keeps_its_message_and_loses_its_traceback() -> None:
    raised = new_output("error", ename="Error", evalue="no", traceback=["File /home/ada/x.py", "Error: no"])
    assert notebook(code("f()", raised, tag="raises-exception")).cells[-1].outputs[0].traceback == ["Error: no"]


def test_check_reports_without_writing(
    trial: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--check", str(trial)]) == 0
    stale = tmp_path / "trial.ipynb"
    stale.write_text(trial.read_text().replace("trial-000", "other-000"))
    before = stale.read_text()
    assert main(["--check", str(stale)]) == 1
    assert "not in normal form" in capsys.readouterr().out
    assert stale.read_text() == before
    assert main(["--no-run", str(stale)]) == 0
    assert stale.read_text() == trial.read_text()


def test_a_notebook_that_does_not_exist_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["book/nowhere.ipynb"])
    assert "book/nowhere.ipynb: no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("position", "where", "old", "new", "passes"),
    [
        pytest.param(3, "image/svg+xml", ">32<", ">33<", True, id="bytes of a drawing"),
        pytest.param(3, "text/plain", "to 31", "to 30", False, id="text of a drawing"),
        pytest.param(4, "text", "32", "33", False, id="printed number"),
    ],
)
def test_strict_comparison_sees_numbers_and_not_the_bytes_of_a_drawing(
    trial: Path, tmp_path: Path, position: int, where: str, old: str, new: str, passes: bool
) -> None:
    """What `make test` passes to nbval lets a drawing's bytes differ and nothing else."""
    changed = read(trial)
    output = changed.cells[position].outputs[0]
    texts = output if where == "text" else output.data
    assert old in texts[where]
    texts[where] = texts[where].replace(old, new)
    (tmp_path / "trial.ipynb").write_text(text_of(changed))
    assert run_nbval(tmp_path) == (0 if passes else 1)


def run_nbval(folder: Path) -> int:
    """The exit status of a comparison of the notebooks in `folder`, with the options of the Makefile."""
    options = re.search(r"^NBVAL := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert options, "the Makefile has no line NBVAL := ..."
    words = options[1].replace("tools/", f"{ROOT}/tools/").split()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", *words, "."]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=False).returncode
