"""Finding what was handed in: the exports of learning platforms, and files that are traps."""

from __future__ import annotations

import io
import os
import struct
import warnings
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from lanewise.grading.marking import Settings, mark
from lanewise.grading.submissions import LARGEST, NoSubmissions, Submission, Unreadable, find
from tests.handed_in import LAB, content_of, solved

NOTEBOOK = b"{}"


def lay(root: Path, *names: str) -> Path:
    """Files of these names below a folder."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(NOTEBOOK)
    return root


def zipped(path: Path, contents: dict[str, bytes]) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def students(place: Path) -> dict[str, str]:
    return {one.name: one.who.student for one in find(place).submissions}


EXPORTS = {
    "moodle": ["Ada Lovelace_4711_assignsubmission_file_/lab.ipynb", "Bo Li_4712_assignsubmission_file_/x.ipynb"],
    "moodle flat": ["Ada Lovelace_4711_assignsubmission_file_lab.ipynb", "Bo Li_4712_assignsubmission_file_x.ipynb"],
    "canvas": ["Ada Lovelace_4711_815_lab-1.ipynb", "Bo Li_LATE_4712_816_lab.ipynb"],
    "blackboard": [
        "Lab 1_Ada Lovelace_attempt_2026-11-30-10-11-12_lab.ipynb",
        "Lab 1_Bo Li_attempt_2026-11-30-10-11-12_lab.ipynb",
    ],
    "brightspace": [
        "12345-67890 - Ada Lovelace - Nov 30, 2026 1011 PM/lab.ipynb", "Bo Li - 30 November 2026 10:11/lab.ipynb",
    ],
    "nbgrader": [f"Ada Lovelace/{LAB}/{LAB}.ipynb", f"Bo Li/{LAB}/{LAB}.ipynb"],
    "nbgrader course": [f"submitted/Ada Lovelace/{LAB}/{LAB}.ipynb", f"submitted/Bo Li/{LAB}/{LAB}.ipynb"],
    "folders": ["Ada Lovelace/hand-in/lab.ipynb", "Bo Li/lab.ipynb"],
    "folders in a folder": ["class/Ada Lovelace/lab.ipynb", "class/Bo Li/lab.ipynb"],
    "flat": ["Ada Lovelace.ipynb", f"Bo Li_{LAB}.ipynb"],
}  # fmt: skip


@pytest.mark.parametrize("name", EXPORTS)
def test_students_are_found_in_what_platforms_export(name: str, tmp_path: Path) -> None:
    assert list(students(lay(tmp_path, *EXPORTS[name])).values()) == ["Ada Lovelace", "Bo Li"]


@pytest.mark.parametrize("name", EXPORTS)
def test_and_in_a_zip_of_it(name: str, tmp_path: Path) -> None:
    place = zipped(tmp_path / "all.zip", dict.fromkeys(EXPORTS[name], NOTEBOOK))
    assert list(students(place).values()) == ["Ada Lovelace", "Bo Li"]


def test_late_ones_are_known_and_equal_names_told_apart(tmp_path: Path) -> None:
    lay(tmp_path, "li_LATE_1_5_lab.ipynb", "li_2_6_lab.ipynb", "li_2_7_other.ipynb")
    found = find(tmp_path).submissions
    assert [(one.who.student, one.who.late) for one in found] == [
        ("li (2)", False), ("li (2)", False), ("li (1)", True),
    ]  # fmt: skip


def test_what_is_no_notebook_is_left_alone_and_said(tmp_path: Path) -> None:
    lay(
        tmp_path, "ada/lab.ipynb", "ada/notes.txt", "__MACOSX/ada/._lab.ipynb", "ada/.ipynb_checkpoints/lab.ipynb",
        "ada/._lab.ipynb", ".DS_Store", "grades.csv",
    )  # fmt: skip
    found = find(tmp_path)
    assert [one.name for one in found.submissions] == ["ada/lab.ipynb"]
    assert found.ignored == ("ada/notes.txt", "grades.csv")


def test_who_handed_in_no_notebook_has_a_row(tmp_path: Path) -> None:
    lay(tmp_path, "ada/lab.ipynb", "bo/lab.py", "bo/report.pdf", "cy_1_2_lab.docx")
    rows = [mark(one, Settings()) for one in find(tmp_path).submissions]
    assert [(row.student, row.status) for row in rows] == [
        ("ada", "unreadable"), ("bo", "no notebook"), ("cy", "no notebook"),
    ]  # fmt: skip


def test_a_zip_of_a_student_is_opened(tmp_path: Path) -> None:
    (tmp_path / "Ada_1_assignsubmission_file_").mkdir()
    zipped(
        tmp_path / "Ada_1_assignsubmission_file_" / "mine.zip", {f"hand-in/{LAB}.ipynb": content_of(solved())}
    )
    (one,) = find(tmp_path).submissions
    assert (one.name, one.who.student) == (f"Ada_1_assignsubmission_file_/mine.zip/hand-in/{LAB}.ipynb", "Ada")
    row = mark(one, Settings())
    assert (row.status, row.score) == ("ok", 16)


def test_the_order_does_not_depend_on_the_file_system(tmp_path: Path) -> None:
    names = ["b.ipynb", "A.ipynb", "a/x.ipynb", "B/x.ipynb"]
    first = [one.name for one in find(lay(tmp_path / "1", *names)).submissions]
    assert first == [one.name for one in find(lay(tmp_path / "2", *reversed(names))).submissions]
    assert first == sorted(names, key=lambda name: (name.casefold(), name))


# -- traps ------------------------------------------------------------------------------------------


def only(place: Path) -> Submission:
    (one,) = find(place).submissions
    return one


def assert_unreadable(place: Path, sentence: str) -> None:
    row = mark(only(place), Settings())
    assert (row.status, row.score) == ("unreadable", 0)
    assert sentence in row.message


def test_links_are_not_followed(tmp_path: Path) -> None:
    lay(tmp_path / "outside", "secret.ipynb")
    handed = tmp_path / "handed"
    handed.mkdir()
    (handed / "x.ipynb").symlink_to(tmp_path / "outside" / "secret.ipynb")
    assert_unreadable(handed, "a symbolic link")
    (handed / "x.ipynb").unlink()
    (handed / "folder").symlink_to(tmp_path / "outside")
    (handed / "loop").symlink_to(handed)
    assert [mark(one, Settings()).status for one in find(handed).submissions] == ["unreadable"] * 2


def test_a_folder_named_like_a_notebook(tmp_path: Path) -> None:
    lay(tmp_path, "x.ipynb/lab.ipynb")
    assert_unreadable(tmp_path, "a folder, not a notebook")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.ipynb")
    assert_unreadable(tmp_path, "no ordinary file")


def test_a_file_of_200_megabytes(tmp_path: Path) -> None:
    with (tmp_path / "x.ipynb").open("wb") as file:
        file.truncate(200 * 2**20)
    assert_unreadable(tmp_path, "larger than 20 MiB")


def test_a_file_that_vanishes(tmp_path: Path) -> None:
    one = only(lay(tmp_path, "x.ipynb"))
    (tmp_path / "x.ipynb").unlink()
    row = mark(one, Settings())
    assert (row.status, row.message) == ("unreadable", "The file cannot be read: No such file or directory.")


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path) -> None:
    place = zipped(tmp_path / "bomb.zip", {"ada/x.ipynb": bytes(300 * 2**20)})
    assert place.stat().st_size < 2**20
    assert_unreadable(place, "larger than 20 MiB")


def test_a_zip_that_lies_about_its_size(tmp_path: Path) -> None:
    content = zlib.compressobj(wbits=-15)
    packed = content.compress(bytes(64 * 2**20)) + content.flush()
    name = b"ada/x.ipynb"
    head = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, zlib.crc32(b"{}"), len(packed), 2, len(name), 0)
    entry = struct.pack(
        "<HHHHHHIIIHHHHHII",
        20,
        20,
        0,
        8,
        0,
        33,
        zlib.crc32(b"{}"),
        len(packed),
        2,
        len(name),
        0,
        0,
        0,
        0,
        0,
        0,
    )
    local = b"PK\3\4" + head + name + packed
    central = b"PK\1\2" + entry + name
    end = b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)
    (tmp_path / "liar.zip").write_bytes(local + central + end)
    one = only(tmp_path / "liar.zip")
    with suppress(Unreadable):
        assert len(one.read()) <= LARGEST
    assert mark(one, Settings()).status == "unreadable"


def test_a_zip_that_leads_out(tmp_path: Path) -> None:
    names = ["../../evil.ipynb", "/etc/evil.ipynb", "C:/evil.ipynb", "a\\..\\..\\evil.ipynb"]
    place = zipped(tmp_path / "out.zip", dict.fromkeys(names, content_of(solved())))
    rows = [mark(one, Settings()) for one in find(place).submissions]
    assert [(row.status, row.score) for row in rows] == [("unreadable", 0)] * 4
    assert not any(".." in row.submission for row in rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.zip"]


def test_a_zip_in_a_zip(tmp_path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("x.ipynb", NOTEBOOK)
    assert_unreadable(zipped(tmp_path / "out.zip", {"ada/in.zip": inner.getvalue()}), "a zip inside a zip")


def test_a_link_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        link = zipfile.ZipInfo("ada/x.ipynb")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert_unreadable(tmp_path / "x.zip", "a symbolic link")


def test_an_encrypted_zip(tmp_path: Path) -> None:
    place = zipped(tmp_path / "x.zip", {"ada/x.ipynb": NOTEBOOK})
    content = bytearray(place.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\1\2") + 8] |= 1
    place.write_bytes(content)
    assert_unreadable(place, "encrypted")


@pytest.mark.parametrize("cut", [10, 40, 200])
def test_a_damaged_zip_costs_one_row(cut: int, tmp_path: Path) -> None:
    lay(tmp_path, "bo/lab.ipynb")
    path = zipped(tmp_path / "ada.zip", {"lab.ipynb": content_of(solved())})
    path.write_bytes(path.read_bytes()[:-cut])
    assert {mark(one, Settings()).status for one in find(tmp_path).submissions} == {"unreadable"}
    middle = zipped(tmp_path / "ada.zip", {"lab.ipynb": content_of(solved())})
    content = bytearray(middle.read_bytes())
    content[60:90] = bytes(30)
    middle.write_bytes(content)
    assert {mark(one, Settings()).status for one in find(tmp_path).submissions} == {"unreadable"}


def test_a_name_twice_in_a_zip_is_two_rows(tmp_path: Path) -> None:
    with warnings.catch_warnings(), zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("ada/x.ipynb", content_of(solved()))
        archive.writestr("ada/x.ipynb", b"{}")
    assert [mark(one, Settings()).status for one in find(tmp_path / "x.zip").submissions] == [
        "ok",
        "unreadable",
    ]


@pytest.mark.parametrize("name", ["nowhere", "empty", "text.txt", "no-notebook"])
def test_nothing_to_grade_is_a_sentence(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("x", encoding="utf-8")
    lay(tmp_path / "no-notebook", "readme.md")
    with pytest.raises(NoSubmissions, match=f"{name} .*Give "):
        find(tmp_path / name)
