"""Lanewise: what a GPU kernel's memory accesses cost, lane by lane.

The map, from data to verdict:

- `WarpAccess`: one memory instruction of one warp, as 32 byte addresses.
- `memory`: the model; `shared_cost` and `global_cost` explain one access, `memory.shared_wavefronts` and
  `memory.global_sectors` count many.
- `Layout`, `Swizzle`: where a tile's elements lie, in the field's notation; `fragments` for Tensor Core
  operands.
- `search_layouts`: the paddings and swizzles that serve given accesses without conflicts.
- `machine`: constants of each GPU generation, and occupancy.
- `figures`: drawings of all of these (loads matplotlib on first use).
"""

from lanewise import errors, memory
from lanewise.access import WarpAccess
from lanewise.errors import Error
from lanewise.memory import global_cost, shared_cost

__all__ = ["Error", "WarpAccess", "errors", "global_cost", "memory", "shared_cost"]
