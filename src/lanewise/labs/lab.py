"""`Lab`: the tasks of one notebook and the numbers that they share; `load` builds one by name."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from lanewise.display import Sentence, Table
from lanewise.errors import Error
from lanewise.labs.answers import Answers
from lanewise.labs.gpu import measured
from lanewise.labs.kernels import KernelTask
from lanewise.labs.pictures import show
from lanewise.labs.runs import InvalidLab
from lanewise.labs.variant import PUBLIC, Variant
from lanewise.labs.verdict import Verdict

_CATALOGUE = "lanewise.labs.catalogue"
KINDS = ("predict", "write", "repair", "layout", "hunt", "golf")

Task = Answers | KernelTask


class UnknownLab(Error):
    """A lab, or a task of one, that does not exist."""


@dataclass(frozen=True)
class Lab:
    """One lab. `given` are the numbers that its text, starters and solutions use by name (`TILE`).

    `chapter` is the slug of the chapter that it belongs to, `level` is "guided" or "challenge", `kinds` are
    among `KINDS`, `minutes` is how long a learner takes. `seed` says which variant this is; 0 is the public
    one.
    """

    name: str
    title: str
    chapter: str
    level: str
    kinds: tuple[str, ...]
    minutes: int
    tasks: tuple[Task, ...]
    given: Mapping[str, int] = field(default_factory=dict)
    seed: int = PUBLIC

    def __post_init__(self) -> None:
        if not self.name.startswith(f"{self.chapter}_") or self.level not in ("guided", "challenge"):
            raise InvalidLab(
                f"Lab {self.name}: the name starts with its chapter's slug, and the level is guided or"
                " challenge."
            )
        if not set(self.kinds) <= set(KINDS) or not self.kinds:
            raise InvalidLab(f"Lab {self.name}: kinds {self.kinds}; choose among {', '.join(KINDS)}.")
        if len({task.name for task in self.tasks}) != len(self.tasks) or not self.tasks:
            raise InvalidLab(f"Lab {self.name}: give one task or more, each with its own name.")

    @property
    def points(self) -> float:
        """What the whole lab is worth."""
        return sum(task.points for task in self.tasks)

    def task(self, name: str) -> Task:
        """One task by name. Raises `UnknownLab` with the names there are."""
        for task in self.tasks:
            if task.name == name:
                return task
        names = ", ".join(task.name for task in self.tasks)
        raise UnknownLab(f"{self.name}: no task {name!r}; its tasks are {names}.")

    def questions(self, name: str) -> Table:
        """The questions of a task that is answered by a dictionary, as a table."""
        task = self.task(name)
        if not isinstance(task, Answers):
            raise UnknownLab(f"{self.name}: {name} asks for a kernel, not for answers.")
        return task.questions()

    def check(self, name: str, answer: Any) -> Verdict:
        """Judge one answer, and draw the access that the verdict is about.

        A kernel is traced, not launched: this works, and says the same, with and without a GPU.
        """
        verdict = self.judge(name, answer)
        show(verdict)
        return verdict

    def measure(self, name: str, kernel: Any) -> Sentence:
        """Launch and time a kernel where there is a GPU; elsewhere say that there is none. Never graded."""
        task = self.task(name)
        if not isinstance(task, KernelTask):
            raise UnknownLab(f"{self.name}: {name} asks for answers; there is nothing to launch.")
        return measured(task, kernel)

    def judge(self, name: str, answer: Any, *, hidden_seed: int | None = None) -> Verdict:
        """The verdict on one answer; `hidden_seed` adds the sizes that it draws, as grading does."""
        task = self.task(name)
        if isinstance(task, Answers):
            return task.judge(answer)
        rng = np.random.default_rng(self.seed if hidden_seed is None else (self.seed, hidden_seed))
        return task.judge(answer, rng, hidden=hidden_seed is not None)


@cache
def names() -> tuple[str, ...]:
    """The names of all labs, in the order of the alphabet."""
    catalogue = import_module(_CATALOGUE)
    return tuple(sorted(module.name for module in pkgutil.iter_modules(catalogue.__path__)))


def load(name: str, seed: int = PUBLIC) -> Lab:
    """Build a lab; `seed` chooses the variant, 0 the public one.

    >>> load("padding_transpose").chapter
    'padding'

    Raises `UnknownLab` with the names there are, `InvalidSeed` for a seed that is none.
    """
    if name not in names():
        raise UnknownLab(f"load: no lab {name!r}; there are {', '.join(names())}.")
    lab: Lab = import_module(f"{_CATALOGUE}.{name}").build(Variant(seed))
    if (lab.name, lab.seed) != (name, seed):
        raise InvalidLab(f"{_CATALOGUE}.{name} builds {lab.name!r} of seed {lab.seed}. Pass both on.")
    return lab
