"""How many blocks fit on an SM at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from lanewise.errors import InvalidLaunch
from lanewise.integers import whole
from lanewise.machine.machines import Machine, from_name


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many blocks of one launch are resident on an SM at once, and which resource sets that number.

    `limits` maps `"threads"`, `"blocks"`, `"registers"` and `"shared"` to the blocks that this resource alone
    would allow, or None where the launch uses none of it; `limited_by` names those that allow the fewest.
    `fraction` is resident warps over the most that the machine holds.
    """

    blocks_per_sm: int
    warps_per_sm: int
    fraction: float
    limits: Mapping[str, int | None] = field(hash=False)
    limited_by: tuple[str, ...]

    def __str__(self) -> str:
        blocks = "1 block" if self.blocks_per_sm == 1 else f"{self.blocks_per_sm} blocks"
        limits = " and ".join(self.limited_by).replace("shared", "shared memory")
        return (
            f"{blocks} per SM, {self.warps_per_sm} warps ({100 * self.fraction:.3g}% of the most),"
            f" limited by {limits}"
        )


def occupancy(
    machine: str | tuple[int, int] | Machine,
    threads_per_block: int,
    registers_per_thread: int = 32,
    shared_bytes: int = 0,
) -> Occupancy:
    """Count the blocks that fit on one SM, as the vendor's calculator does (cuda_occupancy.h, CUDA 13.0).

    `shared_bytes` is static and dynamic shared memory of one block together; what exceeds
    `static_shared_bytes_per_block` must be dynamic, and opted into. The SM is taken to be configured
    for the most shared memory it has; a smaller carveout can only lower the count.

    >>> print(occupancy("sm_90", threads_per_block=256, shared_bytes=224 * 132 * 4))
    1 block per SM, 8 warps (12.5% of the most), limited by shared memory

    Raises `UnknownMachine`, or `InvalidLaunch` if not even one block fits.
    """
    machine = from_name(machine)
    threads_per_block, registers_per_thread, shared_bytes = _checked_request(
        machine, threads_per_block, registers_per_thread, shared_bytes
    )
    warps_per_block = -(-threads_per_block // machine.warp_lanes)
    limits = {
        "threads": machine.max_warps_per_sm // warps_per_block,
        "blocks": machine.max_blocks_per_sm,
        "registers": _blocks_by_registers(machine, warps_per_block, registers_per_thread),
        "shared": _blocks_by_shared(machine, shared_bytes),
    }
    blocks = min(limit for limit in limits.values() if limit is not None)
    return Occupancy(
        blocks_per_sm=blocks,
        warps_per_sm=blocks * warps_per_block,
        fraction=blocks * warps_per_block / machine.max_warps_per_sm,
        limits=MappingProxyType(limits),
        limited_by=tuple(resource for resource, limit in limits.items() if limit == blocks),
    )


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def _registers_per_warp(machine: Machine, registers_per_thread: int) -> int:
    return _round_up(registers_per_thread * machine.warp_lanes, machine.register_allocation)


def _blocks_by_registers(machine: Machine, warps_per_block: int, registers_per_thread: int) -> int:
    # Each partition has its own share of the register file, and a warp's registers lie in one partition.
    share = machine.registers_per_sm // machine.partitions_per_sm
    warps = share // _registers_per_warp(machine, registers_per_thread) * machine.partitions_per_sm
    return warps // warps_per_block


def _blocks_by_shared(machine: Machine, shared_bytes: int) -> int | None:
    taken = _round_up(shared_bytes + machine.reserved_shared_bytes_per_block, machine.shared_allocation_bytes)
    return machine.shared_bytes_per_sm // taken if taken else None


def _checked_request(
    machine: Machine, threads_per_block: int, registers_per_thread: int, shared_bytes: int
) -> tuple[int, int, int]:
    hint = f"So much {machine} allows: change the launch, or ask another machine."
    threads_per_block = whole(
        "threads_per_block", threads_per_block, InvalidLaunch, 1, machine.max_threads_per_block, hint
    )
    registers_per_thread = whole(
        "registers_per_thread", registers_per_thread, InvalidLaunch, 1, machine.max_registers_per_thread, hint
    )
    shared_bytes = whole(
        "shared_bytes", shared_bytes, InvalidLaunch, 0, machine.max_shared_bytes_per_block, hint
    )
    # The launch check rounds a block's warps up to whole partitions, although they need not be spread so.
    warps = _round_up(-(-threads_per_block // machine.warp_lanes), machine.partitions_per_sm)
    needed = warps * _registers_per_warp(machine, registers_per_thread)
    if needed > machine.registers_per_block:
        raise InvalidLaunch(
            f"registers: {threads_per_block} threads of {registers_per_thread} registers take {needed} as"
            f" allocated; a block on {machine} has {machine.registers_per_block}. Use fewer threads, or cap"
            " the registers with cuda.jit(max_registers=...)."
        )
    return threads_per_block, registers_per_thread, shared_bytes
