"""Which lab a notebook is, and which cells hold the answers, also where an editor has lost that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from lanewise.errors import Error
from lanewise.grading.notebook import Cell, Notebook
from lanewise.grading.plain import one_line
from lanewise.grading.status import (
    COPIED,
    DUPLICATED,
    ELSEWHERE,
    METADATA_LOST,
    MISSING_CELL,
    OK,
    WRONG_LAB,
    WRONG_VARIANT,
)
from lanewise.grading.student import loads
from lanewise.labs import Lab, load, names
from lanewise.labs.variant import LARGEST_SEED, PUBLIC

MOST_TRIED = 3  # cells that claim to be one task
_Notes = tuple[tuple[str, str], ...]


class UnknownSubmission(Error):
    """Nothing says which lab a notebook is of."""

    def __init__(self, status: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Located:
    """Cells to mark for one task, the first to try first; `spare` if those hold no answer.

    `status` and `sentence` say what is odd about the place.
    """

    cells: tuple[Cell, ...]
    spare: tuple[Cell, ...] = ()
    status: str = OK
    sentence: str = ""


# -- which lab --------------------------------------------------------------------------------------


def lab_of(notebook: Notebook, lab: str | None, seed: int | None) -> tuple[Lab, _Notes]:
    """The lab to mark by, with (status, sentence) of each oddity. `lab` and `seed` are what was assigned.

    Raises `UnknownSubmission` if nothing says which lab it is.
    """
    claimed_lab, claimed_seed, notes = _claimed(notebook)
    if lab is not None:
        if claimed_lab not in (None, lab):
            notes = ((WRONG_LAB, f"It is {_named(claimed_lab)}; {lab} was assigned, and marked."),)
            claimed_seed = None
    elif claimed_lab is None:
        raise UnknownSubmission(METADATA_LOST, "Nothing says which lab it is. Give --lab LAB and --seed S.")
    elif claimed_lab not in names():
        raise UnknownSubmission(
            WRONG_LAB, f"It is {_named(claimed_lab)}; there is no such lab. There are {', '.join(names())}."
        )
    if seed is not None and claimed_seed not in (None, seed):
        sentence = f"It is variant {claimed_seed}; variant {seed} was assigned, and marked."
        notes = (*notes, (WRONG_VARIANT, sentence))
    chosen = seed if seed is not None else claimed_seed
    return load(lab or claimed_lab or "", PUBLIC if chosen is None else chosen), notes


def _named(lab: str) -> str:
    return f"of lab {one_line(lab, 60)!r}"


def _claimed(notebook: Notebook) -> tuple[str | None, int | None, _Notes]:
    """Lab and seed by the metadata, or without it by what the cells load."""
    loaded = next(
        (found for cell in notebook.code if (found := loads(cell.text)) and _is_seed(found[1])), None
    )
    if isinstance(notebook.lab, str):
        return _by_metadata(notebook.lab, notebook.seed, loaded)
    if loaded and loaded[0] in names():
        sentence = f"Its metadata is lost; it loads {loaded[0]}, variant {loaded[1]}."
        return loaded[0], loaded[1], ((METADATA_LOST, sentence),)
    fitting = _labs_with_these_cells(notebook)
    if len(fitting) == 1:
        sentence = f"Its metadata is lost; its cells are those of {fitting[0]}, taken for variant {PUBLIC}."
        return fitting[0], None, ((METADATA_LOST, sentence),)
    return None, None, ((METADATA_LOST, "Its metadata is lost."),)


def _by_metadata(lab: str, seed: Any, loaded: tuple[str, int] | None) -> tuple[str, int | None, _Notes]:
    if not _is_seed(seed):
        return lab, loaded[1] if loaded else None, ((METADATA_LOST, "Its metadata names no possible seed."),)
    if loaded and loaded != (lab, seed):
        sentence = f"Its metadata says {lab}, variant {seed}, but it loads {loaded[0]}, variant {loaded[1]}."
        return lab, seed, ((COPIED, one_line(sentence, 300)),)
    return lab, seed, ()


def _is_seed(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST_SEED


def _labs_with_these_cells(notebook: Notebook) -> list[str]:
    there = {cell.grade_id for cell in notebook.cells}
    return [name for name in names() if {task.name for task in load(name).tasks} <= there]


# -- which cells ------------------------------------------------------------------------------------


def locate(notebook: Notebook, task: str) -> Located:
    """The cells that may hold the answer to a task.

    The task's own cell counts. Of several, the last one does that is not as it was given, as when the
    notebook runs from top to bottom. One other cell that alone defines the name counts where the own cell is
    missing or holds no answer.
    """
    own = [cell for cell in notebook.code if cell.grade_id == task]
    others = [cell for cell in notebook.code if cell.grade_id != task and _defines(cell.text, task)]
    spare = tuple(others) if len({cell.text for cell in others}) == 1 else ()
    if len(own) > 1:
        sentence = f"{task} has {len(own)} cells ({_numbers(own)}); the last with an answer counts."
        return Located(tuple(reversed(own))[:MOST_TRIED], spare[:1], DUPLICATED, sentence)
    if own:
        return Located((own[0],), spare[:1])
    lost = not any(cell.grade_id for cell in notebook.cells)
    status = METADATA_LOST if lost else MISSING_CELL
    return Located(spare[:1], (), status, _about_missing(notebook, task, others, bool(spare)))


def _about_missing(notebook: Notebook, task: str, others: list[Cell], decided: bool) -> str:
    wrong = next((cell for cell in notebook.cells if cell.grade_id == task), None)
    gone = f"The cell of {task} is {'no code cell' if wrong else 'missing'}"
    if decided:
        return f"{gone}; cell {others[0].number} defines it, and was marked."
    if others:
        return f"{gone}; cells {_numbers(others)} define it differently. Mark it by hand."
    return f"{gone}, and no other cell defines it."


def found_elsewhere(task: str, cell: Cell) -> tuple[str, str]:
    """What to say of an answer that the task's own cell does not have."""
    return ELSEWHERE, f"The cell of {task} has no answer; cell {cell.number} has one, and was marked."


def _numbers(cells: list[Cell]) -> str:
    shown = ", ".join(str(cell.number) for cell in cells[:6])
    return shown if len(cells) <= 6 else f"{shown}, .."


def _defines(text: str, name: str) -> bool:
    return re.search(rf"^(?:def\s+{name}\s*\(|{name}\s*(?::[^=\n]*)?=(?!=))", text, re.MULTILINE) is not None
