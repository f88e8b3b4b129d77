"""The experiments behind the course's numbers: one module per topic, named like its kernels.

Each topic's module has a function `experiments()` that gives its experiments; `all_experiments` collects
them. `h200` is the GPU that the timed ones are sized for; what they decide is in `lanewise.claims`.
"""

from importlib import import_module
from pkgutil import iter_modules

from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem

__all__ = ["Case", "Ceiling", "Experiment", "Problem", "all_experiments", "experiments_of", "topics"]

_NO_TOPICS = ("plan", "h200")


def topics() -> tuple[str, ...]:
    """The slugs of all topics, sorted."""
    return tuple(sorted(module.name for module in iter_modules(__path__) if module.name not in _NO_TOPICS))


def experiments_of(topic: str) -> tuple[Experiment, ...]:
    """The experiments of one topic. Needs numba, for the kernels."""
    return tuple(import_module(f"{__name__}.{topic}").experiments())


def all_experiments() -> dict[str, tuple[Experiment, ...]]:
    """The experiments of each topic. Needs numba, for the kernels."""
    return {topic: experiments_of(topic) for topic in topics()}
