"""Lanewise: what a GPU kernel's memory accesses cost, lane by lane.

The map, from data to verdict:

- `WarpAccess`: one memory instruction of one warp, as 32 byte addresses; `instructions` lists their names.
- `memory`: the model; `shared_cost` and `global_cost` explain one access, `memory.shared_wavefronts` and
  `memory.global_sectors` count many.
- `Layout`, `Swizzle`: where a tile's elements lie, in the field's notation; `layouts` and `swizzles` build
  the usual ones, `fragments` is about Tensor Core operands, `tma` the fixed swizzles of bulk tensor copies.
- `search_layouts`: the paddings and swizzles that serve given accesses without conflicts; `search` has words
  for the accesses.
- `machine`: constants of each GPU generation, and occupancy.
- `trace`: runs a numba.cuda kernel with no GPU and counts every access of every line; `check` turns the
  result into verdicts in sentences.
- `bottleneck`: the least time that each resource of a GPU needs for a traced or profiled launch.
- `records`: what was measured, with its provenance; `results` reads an experiment's figures from them,
  `validation` replays the counters through the model.
- `kernels`, `ptx`, `experiments`, `measure`, `counters` and `reconcile` are not loaded here: they need numba
  or a GPU. `python -m lanewise --help` shows what one can do with them.
- `pipeline`: when tiles are copied and worked on, as arithmetic.
- `figures`, `display`: drawings, tables and sentences for pages (`figures` loads matplotlib on first use).

Every error raised on purpose is an `Error`.
"""

from importlib import import_module
from types import ModuleType

from lanewise import (
    bottleneck,
    display,
    errors,
    fragments,
    instructions,
    layouts,
    machine,
    memory,
    pipeline,
    records,
    results,
    search,
    swizzles,
    tma,
    validation,
)
from lanewise.access import WarpAccess
from lanewise.checks import check
from lanewise.errors import Error
from lanewise.layouts import Layout
from lanewise.memory import global_cost, shared_cost
from lanewise.search import search_layouts
from lanewise.swizzles import Swizzle
from lanewise.trace import trace, uninitialized

__all__ = [
    "Error",
    "Layout",
    "Swizzle",
    "WarpAccess",
    "bottleneck",
    "check",
    "display",
    "errors",
    "figures",
    "fragments",
    "global_cost",
    "instructions",
    "layouts",
    "machine",
    "memory",
    "pipeline",
    "records",
    "results",
    "search",
    "search_layouts",
    "shared_cost",
    "swizzles",
    "tma",
    "trace",
    "uninitialized",
    "validation",
]

_ON_FIRST_USE = ("figures",)


def __getattr__(name: str) -> ModuleType:
    if name in _ON_FIRST_USE:
        try:
            return import_module(f"lanewise.{name}")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != "matplotlib":
                raise
            raise Error(
                f"lanewise.{name} needs Matplotlib, which is missing. Run: pip install matplotlib"
            ) from error
    raise AttributeError(f"module 'lanewise' has no attribute {name!r}")
