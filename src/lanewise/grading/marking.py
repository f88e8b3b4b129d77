"""One submission, from its bytes to its marks. It is not executed: answers are read, kernels traced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lanewise.errors import Error
from lanewise.grading.limits import OutOfTime, within
from lanewise.grading.locate import Located, UnknownSubmission, found_elsewhere, lab_of, locate
from lanewise.grading.notebook import Cell, Notebook, parse
from lanewise.grading.plain import one_line
from lanewise.grading.reading import NoAnswer, Refused, Unparsable, parts_that_parse, read_answer
from lanewise.grading.status import (
    FAULTY,
    MEMORY,
    MISSING_ANSWER,
    NOT_GRADED,
    OK,
    REFUSED,
    SYNTAX,
    TIMEOUT,
    UNFINISHED,
    UNREADABLE,
    worst,
)
from lanewise.grading.submissions import Submission, Unreadable
from lanewise.labs import Judged, Lab, Verdict
from lanewise.labs.variant import PUBLIC
from lanewise.trace import UnsupportedConstruct

OF_STATE = {
    "passed": OK,
    "not yet": OK,
    "unfinished": UNFINISHED,
    "refused": REFUSED,
    "endless": TIMEOUT,
    "faulty": FAULTY,
}
LONGEST_REASON = 240  # characters of one task's reason in the table


@dataclass(frozen=True)
class Settings:
    """How to mark. `lab` and `seed` are what was assigned, `seeds` by student; None: what the notebook says.

    `hidden_seed` draws the sizes that no student has seen; `seconds` is what one submission may take, in
    equal parts for its tasks. `feedback` asks for a page for the student.
    """

    lab: str | None = None
    seed: int | None = None
    seeds: Mapping[str, int] = field(default_factory=dict)
    hidden_seed: int = 1
    seconds: float = 30.0
    feedback: bool = False


@dataclass(frozen=True)
class TaskMark:
    """The verdict on one task, the status that follows from it, and the cell that was marked, if any."""

    verdict: Verdict
    status: str
    cell: Cell | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Marked:
    """What one submission got: a row of the table, and the page for the student if it was asked for."""

    submission: str
    student: str
    lab: str
    score: float
    max_score: float
    status: str
    message: str
    page: str = field(default="", repr=False)


def mark(submission: Submission, settings: Settings) -> Marked:
    """Mark one submission; whatever it holds, the result is a row with a status."""
    try:
        if submission.problem:
            return empty(submission, submission.status, submission.problem)
        return mark_content(submission, submission.read(), settings)
    except Unreadable as error:
        return empty(submission, UNREADABLE, str(error))
    except UnknownSubmission as error:
        return empty(submission, error.status, str(error))


def empty(submission: Submission, status: str, message: str, lab: str = "") -> Marked:
    """A row without marks."""
    return Marked(submission.name, submission.who.student, lab, 0, 0, status, message)


def mark_content(submission: Submission, content: bytes, settings: Settings) -> Marked:
    """Mark the bytes of a notebook. Raises `Unreadable` and `UnknownSubmission`."""
    notebook = parse(content)
    seed = settings.seeds.get(submission.who.student.casefold(), settings.seed)
    lab, oddities = lab_of(notebook, settings.lab, seed)
    seconds = settings.seconds / len(lab.tasks)
    marks = tuple(_task(lab, task.name, notebook, settings.hidden_seed, seconds) for task in lab.tasks)
    marked = Marked(
        submission.name,
        submission.who.student,
        lab.name,
        sum(one.verdict.points for one in marks),
        lab.points,
        worst([status for status, _ in oddities] + [one.status for one in marks]),
        _message(lab, submission.who.late, [sentence for _, sentence in oddities], marks),
    )
    return _with_page(marked, lab, marks) if settings.feedback else marked


def _with_page(marked: Marked, lab: Lab, marks: tuple[TaskMark, ...]) -> Marked:
    from lanewise.grading.feedback import page

    return replace(marked, page=page(marked, lab, marks))


def _message(lab: Lab, late: bool, oddities: list[str], marks: tuple[TaskMark, ...]) -> str:
    parts = ["Handed in late."] if late else []
    parts += [f"Variant {lab.seed}."] if lab.seed != PUBLIC else []
    parts += oddities
    for one in marks:
        parts += one.notes
        parts.append(_of_task(one.verdict))
    return " ".join(parts)


def _of_task(verdict: Verdict) -> str:
    missed = [judged.sentence for judged in verdict.judged if not judged.holds and judged.sentence]
    reason = one_line((missed or list(verdict.notes) or [""])[0], LONGEST_REASON)
    head = f"{verdict.task} {verdict.points:g}/{verdict.max_points:g}"
    return f"{head}: {reason}" if reason and verdict.points < verdict.max_points else f"{head}."


# -- one task ---------------------------------------------------------------------------------------


def _task(lab: Lab, name: str, notebook: Notebook, hidden_seed: int, seconds: float) -> TaskMark:
    """The mark of one task, within its time."""
    located = locate(notebook, name)
    if not located.cells:
        return TaskMark(_nothing(lab, name, UNFINISHED, ""), located.status, None, (located.sentence,))
    try:
        with within(seconds):
            mark = _best(lab, name, notebook, hidden_seed, located)
    except OutOfTime:
        sentence = f"{name} was not marked within {seconds:.3g} seconds."
        mark = TaskMark(_nothing(lab, name, "endless", sentence), TIMEOUT, located.cells[0])
    notes = (located.sentence, *mark.notes) if located.sentence else mark.notes
    return TaskMark(mark.verdict, worst([located.status, mark.status]), mark.cell, notes)


def _best(lab: Lab, name: str, notebook: Notebook, hidden_seed: int, located: Located) -> TaskMark:
    """The first of a task's cells that holds an answer, else the spare one if that does."""
    marks = []
    for cell in (*located.cells, *located.spare):
        mark = _cell(lab, name, notebook, hidden_seed, cell)
        if mark.status not in (UNFINISHED, MISSING_ANSWER):
            if cell in located.spare:
                status, sentence = found_elsewhere(name, cell)
                return TaskMark(mark.verdict, worst([status, mark.status]), cell, (sentence,))
            return mark
        marks.append(mark)
    return marks[0]


def _cell(lab: Lab, name: str, notebook: Notebook, hidden_seed: int, cell: Cell) -> TaskMark:
    """The mark of one cell, by itself, or with what other cells define if it needs that."""
    verdict, status = _judged(lab, name, cell.text, "", hidden_seed)
    if status == REFUSED:
        context = _context(notebook, cell)
        again, second = _judged(lab, name, cell.text, context, hidden_seed) if context else (verdict, status)
        if second != REFUSED:
            return TaskMark(again, second, cell, (f"{name} uses what other cells define.",))
    return TaskMark(verdict, status, cell)


def _context(notebook: Notebook, cell: Cell) -> str:
    """What the other cells define; those that hold a part in grading are left out."""
    return parts_that_parse(other.text for other in notebook.code if other is not cell and not other.grade_id)


def _judged(lab: Lab, name: str, text: str, context: str, hidden_seed: int) -> tuple[Verdict, str]:
    """The verdict on a cell's text. Never raises but `OutOfTime`."""
    try:
        verdict = lab.judge(name, read_answer(lab, name, text, context), hidden_seed=hidden_seed)
        return verdict, OF_STATE[verdict.state]
    except NoAnswer as error:
        return _nothing(lab, name, "faulty", str(error)), MISSING_ANSWER
    except Unparsable as error:
        return _nothing(lab, name, "faulty", str(error)), SYNTAX
    except (Refused, UnsupportedConstruct) as error:
        return _nothing(lab, name, "refused", str(error)), REFUSED
    except RecursionError:
        return _nothing(lab, name, "refused", f"{name}: the cell is nested too deeply."), REFUSED
    except MemoryError:
        sentence = f"{name} needs more memory than one submission may take."
        return _nothing(lab, name, "faulty", sentence), MEMORY
    except Exception as error:  # a fault of ours must not cost the class its marks
        kind = "" if isinstance(error, Error) else f"{type(error).__name__}: "
        return _nothing(lab, name, "faulty", f"{name}: the grader failed. {kind}{error}"), NOT_GRADED


def _nothing(lab: Lab, name: str, state: str, sentence: str) -> Verdict:
    """A verdict without points."""
    judged = (Judged(name, lab.task(name).points, 0, ""),)
    return Verdict(name, state, judged, notes=(sentence,) if sentence else ())
