"""The memory model: what a warp's addresses cost in shared-memory wavefronts and global-memory sectors.

Two ways to ask, which agree on every access (a test holds them together):

- `shared_cost(access)` and `global_cost(access)` explain one `WarpAccess`: who is served with whom, who
  waits.
- `shared_wavefronts(...)` and `global_sectors(...)` count many accesses at once, given as arrays.

The rules were measured on an NVIDIA H200; `lanewise/recorded` holds the tables and a test replays every row.
"""

from lanewise.memory.bulk import global_sectors, has_modelled_source, is_contiguous, shared_wavefronts
from lanewise.memory.cost import GlobalCost, Phase, SharedCost, Wavefront, global_cost, shared_cost

__all__ = [
    "GlobalCost",
    "Phase",
    "SharedCost",
    "Wavefront",
    "global_cost",
    "global_sectors",
    "has_modelled_source",
    "is_contiguous",
    "shared_cost",
    "shared_wavefronts",
]
