"""Many submissions at once, each in a process of its own kind: one that dies costs its own row, no other."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import replace
from pathlib import Path

from lanewise.errors import Error
from lanewise.grading.limits import GRACE_S, limit_memory, watched
from lanewise.grading.marking import Marked, Settings, empty, mark
from lanewise.grading.status import MEMORY, NOT_GRADED, TIMEOUT
from lanewise.grading.submissions import Submission
from lanewise.text import count

MEMORY_BYTES = 2 * 2**30  # what marking may take on top of the interpreter with its libraries
Report = Callable[[Marked], None]
_Waiting = dict[int, Submission]


class NoJoblib(Error):
    """The package that spreads the work over processes is missing."""


def grade(
    submissions: Sequence[Submission],
    settings: Settings,
    jobs: int = -1,
    report: Report = lambda marked: None,
) -> list[Marked]:
    """Mark all, over `jobs` processes (-1: one for each core), in the order in which they are given.

    A process that dies takes what it was marking along. Those in question are then marked again, one at a
    time, and the one that did it gets a row which says so. `report` is told of each row as it is ready.
    """
    waiting: _Waiting = dict(enumerate(submissions))
    done: dict[int, Marked] = {}
    with tempfile.TemporaryDirectory() as folder:
        while waiting:
            try:
                _collect(_run(waiting, settings, jobs, folder), waiting, done, report)
            except BrokenExecutor:
                begun = [number for number in waiting if (Path(folder) / str(number)).exists()]
                for number in begun or [min(waiting)]:
                    one = {number: waiting[number]}
                    _collect(_alone(one, settings, folder), waiting, done, report)
    _dismiss()
    return _with_attempts([done[number] for number in sorted(done)])


def _collect(
    results: Iterator[tuple[int, Marked]], waiting: _Waiting, done: dict[int, Marked], report: Report
) -> None:
    for number, marked in results:
        done[number] = marked
        del waiting[number]
        report(marked)


def _run(waiting: _Waiting, settings: Settings, jobs: int, folder: str) -> Iterator[tuple[int, Marked]]:
    try:
        from joblib import Parallel, delayed
    except ModuleNotFoundError as error:
        raise NoJoblib("Grading needs joblib. Run: pip install 'lanewise[grade]'") from error
    # With one process joblib would work in this one, which must not die; two of which one idles do instead.
    n_jobs, ahead = (2, 1) if jobs == 1 else (jobs, "all")
    work = [delayed(_marked)(number, one, settings, folder) for number, one in list(waiting.items())]
    parallel = Parallel(
        n_jobs=n_jobs, backend="loky", batch_size=1, pre_dispatch=ahead, return_as="generator_unordered"
    )
    yield from parallel(work)


def _alone(one: _Waiting, settings: Settings, folder: str) -> Iterator[tuple[int, Marked]]:
    """The same of one submission, which may end its process."""
    ((number, submission),) = one.items()
    started = time.monotonic()
    try:
        yield from list(_run(one, settings, 1, folder))
    except BrokenExecutor:
        late = time.monotonic() - started >= settings.seconds
        sentence = f"It was not marked within {settings.seconds + GRACE_S:g} seconds; its process was ended."
        if not late:
            sentence = "The process that marked it died. No other submission is affected."
        yield number, empty(submission, TIMEOUT if late else NOT_GRADED, sentence)


def _marked(number: int, submission: Submission, settings: Settings, folder: str) -> tuple[int, Marked]:
    """What a process does for one submission: leave a sign that it has begun, and mark within limits."""
    (Path(folder) / str(number)).touch()
    limit_memory(MEMORY_BYTES)
    with watched(settings.seconds):
        try:
            return number, mark(submission, settings)
        except MemoryError:
            return number, empty(submission, MEMORY, "It needs more memory than one submission may take.")
        except Exception as error:  # a fault of ours must not cost the class its marks
            sentence = f"The grader failed on it. {type(error).__name__}: {error}"
            return number, empty(submission, NOT_GRADED, sentence)


def _dismiss() -> None:
    """End the processes, which joblib would keep for a while."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


def _with_attempts(rows: list[Marked]) -> list[Marked]:
    """Rows of one student for one lab each say how many there are."""
    attempts = Counter((row.student, row.lab) for row in rows if row.lab)
    return [
        replace(
            row, message=f"{count(attempts[row.student, row.lab], 'submission')} of this lab. {row.message}"
        )
        if attempts[row.student, row.lab] > 1
        else row
        for row in rows
    ]
