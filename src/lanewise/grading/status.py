"""What the status column can say, the most serious first, and what a teacher does about it."""

from __future__ import annotations

from collections.abc import Iterable

OK, UNFINISHED = "ok", "unfinished"
NOT_GRADED, UNREADABLE, NO_NOTEBOOK = "not graded", "unreadable", "no notebook"
METADATA_LOST, COPIED = "metadata lost", "copied metadata"
WRONG_LAB, WRONG_VARIANT = "wrong lab", "wrong variant"
MISSING_CELL, DUPLICATED, ELSEWHERE = "missing cell", "duplicated cell", "answer elsewhere"
MISSING_ANSWER, SYNTAX, REFUSED = "missing answer", "syntax error", "refused construct"
TIMEOUT, MEMORY, FAULTY = "timeout", "out of memory", "faulty"

# status: (what it means, what to do)
STATUSES: dict[str, tuple[str, str]] = {
    NOT_GRADED: ("the grader itself failed on it", "mark it by hand, and report it"),
    UNREADABLE: ("no notebook can be read from the file", "ask for it again"),
    NO_NOTEBOOK: ("files were handed in, no notebook among them", "ask for the notebook"),
    WRONG_LAB: ("it is of another lab than was assigned, or of none that exists", "ask for the right one"),
    METADATA_LOST: (
        "an editor removed what says which lab or which cells these are; marked as far as that can be told",
        "read the message; give --lab and --seed if the lab was not found",
    ),
    WRONG_VARIANT: ("another variant than was assigned; marked as the assigned one", "talk to the student"),
    COPIED: (
        "its metadata says another lab or variant than it loads; marked by the metadata",
        "look at it",
    ),
    DUPLICATED: (
        "a task has several cells; the last one that is not as it was given was marked",
        "see whether that was meant",
    ),
    MISSING_CELL: (
        "a task's cell is gone; if one other cell alone defines the answer, that was marked",
        "see whether the answer is elsewhere",
    ),
    ELSEWHERE: ("the task's cell has no answer, one other cell has; that was marked", "nothing"),
    TIMEOUT: ("a kernel does not end, or the time was used up; that task has no points", "nothing"),
    MEMORY: ("an answer needs more memory than is allowed; that task has no points", "nothing"),
    REFUSED: ("an answer holds what is not read, such as open() or a value to calculate", "read the message"),
    SYNTAX: ("a cell is no Python; that task has no points", "read the message"),
    FAULTY: ("an answer cannot be run, or is of the wrong kind", "read the message"),
    MISSING_ANSWER: ("a task's cell does not define what it asks for", "read the message"),
    UNFINISHED: ("some answer is open, or as it was given; the rest was marked", "nothing"),
    OK: ("every answer was marked, whether right or wrong", "nothing"),
}


def worst(statuses: Iterable[str]) -> str:
    """The most serious of several; ok of none.

    >>> worst(["ok", "unfinished", "duplicated cell"])
    'duplicated cell'
    """
    order = list(STATUSES)
    return min(statuses, key=order.index, default=OK)
