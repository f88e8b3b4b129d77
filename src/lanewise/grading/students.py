"""Whose submission a file is, from its path as learning platforms export it.

The first that fits decides:

1. Moodle: `NAME_NUMBER_assignsubmission_file_`, as a folder or as the beginning of a file's name.
2. Blackboard: `LAB_NAME_attempt_DATE_lab.ipynb`, as a file or a folder.
3. Brightspace: a folder `NUMBER-NUMBER - NAME - DATE`, or `NAME - DATE`.
4. Canvas: `name_12345_67890_lab.ipynb`, late ones with `_LATE_` behind the name.
5. nbgrader: the folder above one that is named like a lab, `STUDENT/LAB/LAB.ipynb`.
6. Otherwise the first folder. One that holds the whole class is skipped.
7. A file in no folder: its name without its ending and without the name of a lab.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lanewise.labs import names

_MOODLE = re.compile(r"(?P<student>.+?)_(?P<number>\d+)_assignsubmission_[a-z]+_?.*", re.DOTALL)
_BLACKBOARD = re.compile(r".+_(?P<student>[^_]+)_attempt_\d{4}(?:-\d\d){5}.*", re.DOTALL)
_BRIGHTSPACE = re.compile(
    r"(?:(?P<number>\d+-\d+) ?- ?)?(?P<student>.+?) ?- ?(?:[^-]*\b\d{4}\b.*|\d{4}-\d\d-\d\d.*)", re.DOTALL
)
_CANVAS = re.compile(r"(?P<student>[^_]+)_(?P<late>LATE_)?(?P<number>\d+)_\d+_.+", re.DOTALL)


@dataclass(frozen=True)
class Who:
    """A student as the path names them, with the platform's number if it has one.

    `sure` if a folder or a platform's pattern names them, not only a file of their own.
    """

    student: str
    number: str = ""
    late: bool = False
    sure: bool = True

    @property
    def key(self) -> tuple[str, str]:
        """What makes two submissions one student's."""
        return self.student, self.number


NOBODY = Who("")


def who(parts: Sequence[str], depth: int = 0) -> Who:
    """The student of a file. `depth` folders at the front hold the whole class.

    >>> who(["Ada Lovelace_4711_assignsubmission_file_", "lab.ipynb"]).student
    'Ada Lovelace'
    >>> who(["lovelaceada_LATE_4711_815_lab-1.ipynb"])
    Who(student='lovelaceada', number='4711', late=True, sure=True)
    >>> [who(path.split("/")).student for path in ("ada/padding_transpose/x.ipynb", "ada/hand-in/x.ipynb")]
    ['ada', 'ada']
    >>> who(["ada_padding_transpose.ipynb"]).student
    'ada'
    """
    *folders, file = parts
    for pattern, places in (
        (_MOODLE, parts),
        (_BLACKBOARD, parts),
        (_BRIGHTSPACE, folders),
        (_CANVAS, [file]),
    ):
        for place in places:
            if found := pattern.fullmatch(place):
                given = found.groupdict()
                return Who(given["student"].strip(), given.get("number") or "", late=bool(given.get("late")))
    if len(folders) >= 2 and folders[-1] in names():
        return Who(folders[-2])
    if len(folders) > depth:
        return Who(re.sub(r"\.zip$", "", folders[depth], flags=re.IGNORECASE))
    return Who(_of_file(file), sure=False)


def _of_file(file: str) -> str:
    stem = re.sub(r"\.ipynb$", "", file, flags=re.IGNORECASE)
    for name in names():
        if name in stem:
            rest = stem.replace(name, "").strip(" _-.")
            return rest or stem
    return stem


def common_depth(paths: Sequence[Sequence[str]]) -> int:
    """How many folders at the front are the class's and nobody's: all files are in each, and the last holds
    several folders.

    >>> common_depth([["class", "ada", "lab.ipynb"], ["class", "bob", "lab.ipynb"]])
    1
    >>> common_depth([["ada", "lab.ipynb"]])
    0
    """
    depth = 0
    while paths and all(len(path) > depth + 2 for path in paths):
        if len({path[depth] for path in paths}) > 1:
            return depth
        depth += 1
        if len({path[depth] for path in paths}) > 1:
            return depth
    return 0
