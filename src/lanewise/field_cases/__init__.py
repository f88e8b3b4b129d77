"""Cases from the field: questions that people asked in public, each answered by the model or by a trace.

    field_cases.find("C07").answer.says
    field_cases.listing("padding")          # for a page: the cases with that symptom

A case is a function in one of the modules here, cut by idea; its docstring is the question in our words:

    @case("C13", "Contiguous float4 stores", "banks", "wide", threads=("https://..",))
    def c13(trial: Trial) -> Answer:
        '''Thread t stores 16 bytes at byte 16 t. Lanes 0 and 8 share banks: is that a conflict?'''
        cost = shared_cost(WarpAccess.from_formula("st.shared.b128", lambda lane: 16 * lane))
        trial.compare("wavefronts", 4, cost.wavefronts)
        return Answer("..", do="..")

What should be found was measured or worked out in the thread; what we find comes from `lanewise`, never from
the keyboard. `tests/test_field_cases.py` runs every case. Kernels are ours, written for the case.
"""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from lanewise.field_cases.case import SYMPTOMS, Answer, Case, Finding, InvalidCase, Trial, case
from lanewise.field_cases.listing import Listing, findings_table

__all__ = [
    "SYMPTOMS",
    "Answer",
    "Case",
    "Finding",
    "InvalidCase",
    "Listing",
    "Trial",
    "all_cases",
    "case",
    "find",
    "findings_table",
    "listing",
]

_NO_CASES = ("case", "listing")


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, by id."""
    return tuple(sorted(_written_down(), key=lambda each: each.id))


def _written_down() -> Iterator[Case]:
    for module in iter_modules(__path__):
        if module.name not in _NO_CASES:
            contents = vars(import_module(f"{__name__}.{module.name}")).values()
            yield from (value for value in contents if isinstance(value, Case))


def find(id: str) -> Case:
    """One case. Raises `InvalidCase` if there is none of this name.

    >>> find("C02").is_decided
    True
    """
    for each in all_cases():
        if each.id == id:
            return each
    raise InvalidCase(f"{id!r} is no case. There are {len(all_cases())}, such as {all_cases()[0].id}.")


def listing(symptom: str | None = None) -> Listing:
    """The cases with a symptom (a key of `SYMPTOMS`), to be shown on a page; all by default."""
    if symptom is not None and symptom not in SYMPTOMS:
        raise InvalidCase(f"listing: no symptom {symptom!r}; they are {', '.join(SYMPTOMS)}.")
    return Listing(tuple(each for each in all_cases() if symptom is None or symptom in each.symptoms))
