"""Labs: what they ask for, and how an answer is judged.

    lab = load("padding_transpose")
    lab.questions("degrees")                  # what to predict
    lab.check("degrees", degrees)             # a verdict in sentences, with a picture
    lab.check("transpose", transpose)         # traces the kernel on several sizes

The map, from data to verdict:

- `variant`: the numbers, sizes and planted faults of a seed; seed 0 is the public lab.
- `runs`: one run of a kernel, its inputs and what must come out; `goals`: what is claimed of the run,
  `goals_copies` of one with asynchronous copies, `goals_tiles` of one through tiles.
- `answers` and `kernels`: the two kinds of task. Each judges one answer, a live object in a notebook or what
  the grader has read from a submitted one, and gives a `Verdict`.
- `verdict`: state, points and sentences, as text, in a notebook, and for nbgrader.
- `lab`: a `Lab` is its tasks and the numbers that they share; `load` builds one, `names` lists them.
- `catalogue`: one module per lab. No solution is in this package: learners install it.
- `pictures`: the drawing that goes with a verdict; `gpu`: launch and time an answer where there is a GPU.
"""

from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import Goal
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab, UnknownLab, load, names
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.labs.verdict import STATES, Judged, Verdict

__all__ = [
    "STATES",
    "Answers",
    "Goal",
    "Judged",
    "KernelTask",
    "Lab",
    "Question",
    "Run",
    "UnknownLab",
    "Variant",
    "Verdict",
    "load",
    "names",
    "poisoned",
]
