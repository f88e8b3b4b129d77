"""The kit that a teacher hands out holds the wheel and every lab, and no solution; a lab runs from it alone."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from lanewise.grading.student import BEGIN
from lanewise.labs import names
from tools.lab_kit import FOLDER, build_wheel, pack


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def kit(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(tmp_path_factory.mktemp("kit") / "kit.zip", wheel)


def test_the_kit_holds_every_lab_the_wheel_and_a_readme(kit: Path, wheel: Path) -> None:
    with zipfile.ZipFile(kit) as packed:
        found = {Path(name).name for name in packed.namelist()}
        text = packed.read(f"{FOLDER}/README.md").decode()
    assert found == {wheel.name, "README.md", *(f"{name}.ipynb" for name in names())}
    assert wheel.name in text
    assert all(f"`{name}.ipynb`" in text for name in names())


def test_the_kit_holds_no_solution(kit: Path, wheel: Path) -> None:
    for archive in (kit, wheel):
        with zipfile.ZipFile(archive) as packed:
            for name in packed.namelist():
                if name.endswith((".ipynb", ".py")) and "grading" not in name:
                    assert BEGIN not in packed.read(name).decode(), name
                assert "labs/source" not in name


def test_the_same_content_gives_the_same_zip(kit: Path, wheel: Path, tmp_path: Path) -> None:
    assert pack(tmp_path / "again.zip", wheel).read_bytes() == kit.read_bytes()


def test_labs_load_from_the_unpacked_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "package")
    program = (
        "import lanewise.labs as labs; print(labs.__file__);"
        "print([labs.load(name, seed).points > 0 for name in labs.names() for seed in (0, 1)])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        capture_output=True, text=True, check=True, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "package")},
    )  # fmt: skip
    assert str(tmp_path) in done.stdout
    assert done.stdout.count("True") == 2 * len(names())


def test_a_notebook_of_the_kit_sets_itself_up_from_the_wheel_beside_it(kit: Path) -> None:
    with zipfile.ZipFile(kit) as packed:
        for name in packed.namelist():
            if name.endswith(".ipynb"):
                cells = nbformat.reads(packed.read(name).decode(), as_version=4).cells
                first = next(cell for cell in cells if cell.cell_type == "code")
                assert 'glob("lanewise-*.whl")' in first.source
                assert "--no-deps" in first.source
