"""Times on a GPU: every case of every experiment, checked, timed beside its ceilings, and recorded.

- `protocol`: what is asked of a `Gpu`; `checking`, `group`: one problem's cases, checked and sampled on any
- `gpu`: the real one, through numba; `ceilings`: what libraries do with the same inputs
- `worker`, `runner`: a process for each topic, and what is due, written and kept
- `store`: record files; `here`: where figures come from, and why a machine is unfit
- `summary`: one row for each recorded figure

The protocol: correctness first, on fresh random input with poisoned outputs, so that a wrong result becomes
an error and never a time; then warm-ups; then samples between CUDA events, each with a cold L2 cache, in turn
with those of the ceilings; medians and quartiles. `Case.reads` asks for what the kernel itself measured
instead.
"""

from lanewise.measure.here import provenance, require_gpu, short_name, tools, why_unfit
from lanewise.measure.protocol import Settings
from lanewise.measure.runner import Outcome, Plan, measure, n_due
from lanewise.measure.summary import Figure, summarise

__all__ = [
    "Figure",
    "Outcome",
    "Plan",
    "Settings",
    "measure",
    "n_due",
    "provenance",
    "require_gpu",
    "short_name",
    "summarise",
    "tools",
    "why_unfit",
]
