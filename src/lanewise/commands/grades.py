"""`grade`, `grade-status` and `variant`; `add_to(app)` puts them on a command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from lanewise.errors import Error

if TYPE_CHECKING:
    from lanewise.grading.marking import Marked, Settings

Handed = Annotated[Path, typer.Argument(help="Folder or zip of what was handed in; or one notebook.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="The table to write.")]
Feedback = Annotated[Path | None, typer.Option(help="Folder for a page for each submission.")]
AssignedLab = Annotated[str, typer.Option("--lab", help="The lab that was assigned. Default: what each is.")]
Seed = Annotated[int | None, typer.Option(min=0, help="The variant; 0 is the public lab.")]
Roster = Annotated[Path | None, typer.Option(help="CSV with the columns student, seed: a variant for each.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there.")]


class WrongCall(Error):
    """Options that say too little, or what cannot be."""


def grade(
    submissions: Handed,
    output: Output = Path("grades.csv"),
    feedback: Feedback = None,
    lab: AssignedLab = "",
    seed: Seed = None,
    roster: Roster = None,
    hidden_seed: Annotated[int, typer.Option(min=0, help="Draws the sizes that no student has seen.")] = 1,
    jobs: Annotated[int, typer.Option(help="Processes; -1: one for each core.")] = -1,
    seconds: Annotated[float, typer.Option(min=1, help="The most that one submission may take.")] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON, too.")] = False,
    overwrite: Overwrite = False,
) -> None:
    """Mark the labs that a class has handed in; no submission is executed.

    Answers are read, kernels are traced, on the sizes of the lab and on hidden ones. Files may lie as Moodle,
    Canvas, Blackboard, Brightspace or nbgrader export them, in folders, flat, or in a zip.

    The table has a row for each submission: submission, student, lab, score, max_score, status, message.
    `lanewise grade-status` says what each status means and what to do.

    Examples:

      lanewise grade submissions.zip -o grades.csv --feedback pages

      lanewise grade submitted --lab padding_transpose --seed 7

    Exit status: 0 if the table was written; 1 if it was, and the grader itself failed on a row ("not
    graded"); 2 if nothing was written, with the reason.
    """
    from lanewise.grading.classroom import grade as grade_all
    from lanewise.grading.submissions import find

    if jobs == 0 or jobs < -1:
        raise WrongCall(f"--jobs: got {jobs}; give 1 or more, or -1 for one process for each core.")
    settings = _settings(lab, seed, roster, hidden_seed, seconds, feedback is not None)
    _require_outputs(output, feedback, overwrite=overwrite)
    found = find(submissions)
    with _bar(len(found.submissions)) as report:
        rows = grade_all(found.submissions, settings, jobs, report)
    _write(rows, output, feedback, as_json)
    _tell(rows, found.ignored, sys.stderr if as_json else sys.stdout)


def _settings(
    lab: str, seed: int | None, roster: Path | None, hidden_seed: int, seconds: float, feedback: bool
) -> Settings:
    from lanewise.grading.marking import Settings
    from lanewise.grading.variants import read_roster
    from lanewise.labs import Variant, load

    if seed is not None:
        Variant(seed)  # raises with the seeds that there are
    if lab:
        load(lab)
    seeds = {one.student.casefold(): one.seed for one in read_roster(roster)} if roster else {}
    return Settings(lab or None, seed, seeds, hidden_seed, seconds, feedback)


def _require_outputs(output: Path, feedback: Path | None, *, overwrite: bool) -> None:
    from lanewise.grading.table import require_feedback_folder, require_writable

    require_writable(output, overwrite=overwrite)
    if feedback is not None:
        require_feedback_folder(feedback, overwrite=overwrite)


@contextmanager
def _bar(total: int) -> Iterator[Callable[[Marked], None]]:
    """A progress bar on standard error; gives what moves it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("submissions"), BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        task = bars.add_task("", total=total)
        yield lambda marked: bars.update(task, advance=1)


def _write(rows: list[Marked], output: Path, feedback: Path | None, as_json: bool) -> None:
    from lanewise.grading import table

    table.write(output, table.as_csv(rows))
    where = sys.stderr if as_json else sys.stdout
    where.write(f"Table: {output}\n")
    if feedback is not None:
        where.write(f"Pages: {len(table.write_pages(feedback, rows))} in {feedback}\n")
    if as_json:
        sys.stdout.write(json.dumps([table.as_row(row) for row in rows], indent=1) + "\n")


def _tell(rows: list[Marked], ignored: tuple[str, ...], where: TextIO) -> None:
    """Say how many rows have which status; status 1 if the grader failed on one."""
    from lanewise.grading.plain import one_line
    from lanewise.grading.status import NOT_GRADED, STATUSES
    from lanewise.text import count

    n_of = {name: sum(row.status == name for row in rows) for name in reversed(STATUSES)}
    told = ", ".join(f"{n} {name}" for name, n in n_of.items() if n)
    where.write(f"{count(len(rows), 'submission')}: {told}\n")
    if ignored:
        shown = ", ".join(one_line(name, 60) for name in ignored[:5]) + (", .." if len(ignored) > 5 else "")
        sys.stderr.write(f"Left alone, {count(len(ignored), 'file')} that are no notebooks: {shown}\n")
    if n_of[NOT_GRADED]:
        raise typer.Exit(1)


def grade_status() -> None:
    """Say what each status in the table of marks means, and what to do about it."""
    from rich.console import Console
    from rich.table import Table

    from lanewise.grading.status import STATUSES

    table = Table("status", "means", "what to do", box=None)
    for name, (meaning, deed) in STATUSES.items():
        table.add_row(name, meaning, deed)
    Console().print(table)


def variant(
    lab: Annotated[str, typer.Argument(help="The lab, such as padding_transpose.")],
    seed: Seed = None,
    folder: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path("variants"),
    number: Annotated[int, typer.Option("--count", min=1, max=10_000, help="So many, from --seed on.")] = 1,
    roster: Annotated[Path | None, typer.Option(help="CSV with a column student: one for each.")] = None,
    source: Annotated[Path | None, typer.Option(help="Folder of the sources with solutions.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write a variant of a lab: the notebook for students, and its key in the folder keys/.

    Numbers, sizes and planted faults follow from the seed. Both are made of the lab's source with its
    solution, which only the repository has (labs/source): an installed lanewise alone cannot write them.

    Examples:

      lanewise variant padding_transpose --seed 7

      lanewise variant padding_transpose --seed 100 --roster class.csv -o homework

    With a roster each student has a folder, and variants.csv says who has which seed: give it to `lanewise
    grade --roster`. A column seed in the roster counts where it is filled in.

    Exit status: 0; 2 if nothing was written, with the reason.
    """
    from lanewise.grading.variants import Assigned, find_source, read_roster, write_variants

    if roster is not None:
        assigned = read_roster(roster, seed)
    elif seed is not None:
        assigned = [Assigned("", seed + i) for i in range(number)]
    else:
        raise WrongCall("Say which variant: --seed S, or --roster CSV with a seed for each student.")
    for path in write_variants(find_source(lab, source), assigned, folder, overwrite=overwrite):
        sys.stdout.write(f"{path}\n")


def add_to(app: typer.Typer) -> None:
    """Put the commands on a command line."""
    for command in (grade, grade_status, variant):
        app.command()(command)
