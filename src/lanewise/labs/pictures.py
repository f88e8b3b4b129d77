"""The drawing that goes with a verdict, shown where there is a notebook to show it in."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from lanewise.access import WarpAccess
from lanewise.instructions import instruction
from lanewise.labs.verdict import Verdict

if TYPE_CHECKING:
    from lanewise.figures import Drawing


def picture(access: WarpAccess) -> Drawing:
    """The drawing of one access: its banks if it is of shared memory, its sectors if of global memory."""
    from lanewise import figures

    if instruction(access.instruction).space == "shared":
        return figures.draw_bank_map(access)
    return figures.draw_sectors(access)


def show(verdict: Verdict) -> None:
    """Display the drawing of a verdict, if it has one and this is a notebook."""
    if verdict.access is None or not _in_notebook():
        return
    from IPython.display import display

    display(picture(verdict.access))


def _in_notebook() -> bool:
    """Whether IPython runs this code; it is not imported to find out."""
    shell = sys.modules.get("IPython")
    return shell is not None and shell.get_ipython() is not None
