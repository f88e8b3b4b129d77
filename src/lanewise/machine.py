"""What a GPU is, as data: limits and instructions of a compute capability, and how many blocks fit on an SM.

A `Machine` holds the numbers that the vendor documents for a compute capability. Every field carries its unit
and its source, so a page can print where a number comes from: `machine.facts()`.
`machine.supports("ldmatrix")` says whether an instruction exists. `occupancy` counts resident blocks as the
vendor's own calculator does.

"KB" in the vendor's tables is 1024 bytes; all sizes here are bytes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from lanewise.errors import InvalidLaunch, UnknownInstruction, UnknownMachine
from lanewise.integers import whole

# The same on every machine of the model; the fields of `Machine` say from which document.
WARP_LANES = 32
FULL_MASK = (1 << WARP_LANES) - 1  # every lane takes part
BANKS = 32
WORD_BYTES = 4  # what one bank serves in one wavefront
BANK_ROW_BYTES = BANKS * WORD_BYTES  # addresses that differ by a multiple of it lie in the same bank
SECTOR_BYTES = 32
LINE_BYTES = 128
# PTX ISA, ldmatrix: a matrix is 8 rows of 16 bytes, as wide as the widest shared-memory access of a lane.
MATRIX_ROWS = 8
CHUNK_BYTES = 16
KB = 1024

_GUIDE = "CUDA Programming Guide 13, 5.1.3 Features and Technical Specifications"
_SM_TABLE = f"{_GUIDE}, Device and Streaming Multiprocessor Information"
_MEMORY_TABLE = f"{_GUIDE}, Memory Information"
_BANK_TEXT = "CUDA C++ Best Practices Guide, Shared Memory and Memory Banks"
_NSIGHT = "Nsight Compute Profiling Guide, Memory Tables, L1/TEX Cache"
_TUNING = "Ampere, Ada and Hopper Tuning Guides, Unified Shared Memory/L1/Texture Cache; none before 8.0"
_CALCULATOR = "cuda_occupancy.h, CUDA 13.0"


def _fact(unit: str, source: str, **default: Any) -> Any:
    return field(metadata={"unit": unit, "source": source}, **default)


@dataclass(frozen=True, slots=True)
class Fact:
    """One number about a machine, with the unit it is in and the document that states it."""

    name: str
    value: int
    unit: str
    source: str

    def __str__(self) -> str:
        return f"{self.name} = {self.value:,} {self.unit} ({self.source})"


@dataclass(frozen=True, slots=True)
class Machine:
    """The documented limits of one compute capability.

    >>> from_name("sm_90").max_shared_bytes_per_block // 1024
    227

    `static_shared_bytes_per_block` is what a kernel may declare at compile time; beyond it, up to
    `max_shared_bytes_per_block`, shared memory must be dynamic and opted into per kernel.
    `reserved_shared_bytes_per_block` is what the driver takes for itself from the SM for each resident block.
    """

    capability: tuple[int, int]
    max_threads_per_sm: int = _fact("threads", _SM_TABLE)
    max_blocks_per_sm: int = _fact("blocks", _SM_TABLE)
    shared_bytes_per_sm: int = _fact("bytes", _MEMORY_TABLE)
    max_shared_bytes_per_block: int = _fact("bytes", _MEMORY_TABLE)
    reserved_shared_bytes_per_block: int = _fact("bytes", _TUNING)
    shared_allocation_bytes: int = _fact("bytes", f"{_CALCULATOR}, cudaOccSMemAllocationGranularity")

    warp_lanes: int = _fact("lanes", _SM_TABLE, default=WARP_LANES)
    banks: int = _fact("banks", _MEMORY_TABLE, default=BANKS)
    bank_bytes: int = _fact("bytes", _BANK_TEXT, default=WORD_BYTES)
    sector_bytes: int = _fact("bytes", _NSIGHT, default=SECTOR_BYTES)
    line_bytes: int = _fact("bytes", _NSIGHT, default=LINE_BYTES)
    max_threads_per_block: int = _fact("threads", _SM_TABLE, default=1024)
    static_shared_bytes_per_block: int = _fact("bytes", f"{_MEMORY_TABLE}, note on opt-in", default=48 * KB)
    registers_per_sm: int = _fact("32-bit registers", _MEMORY_TABLE, default=64 * 1024)
    registers_per_block: int = _fact("32-bit registers", _MEMORY_TABLE, default=64 * 1024)
    max_registers_per_thread: int = _fact("32-bit registers", _MEMORY_TABLE, default=255)
    register_allocation: int = _fact(
        "32-bit registers per warp", f"{_CALCULATOR}, cudaOccRegAllocationGranularity", default=256
    )
    partitions_per_sm: int = _fact(
        "partitions", f"{_CALCULATOR}, cudaOccSubPartitionsPerMultiprocessor", default=4
    )

    @property
    def name(self) -> str:
        """The compiler's name of the machine, such as `sm_90`."""
        major, minor = self.capability
        return f"sm_{major}{minor}"

    @property
    def max_warps_per_sm(self) -> int:
        """Warps that can be resident on one SM."""
        return self.max_threads_per_sm // self.warp_lanes

    def facts(self) -> tuple[Fact, ...]:
        """List every number of the machine with its unit and source, in the order of the fields."""
        return tuple(
            Fact(entry.name, getattr(self, entry.name), entry.metadata["unit"], entry.metadata["source"])
            for entry in fields(self)
            if entry.metadata
        )

    def supports(self, name: str) -> bool:
        """Say whether an instruction exists on this machine.

        Names are dotted and follow PTX. A name longer than the table's is looked up by its start
        (`ldmatrix.x4.trans` by `ldmatrix`); a shorter one asks whether any form exists (`mma.m16n8k16`).
        Some entries (`wgmma`, `tcgen05`) need the architecture-specific target, such as `sm_90a`.

        >>> from_name("sm_75").supports("ldmatrix"), from_name("sm_75").supports("mma.m16n8k16")
        (True, False)

        Raises `UnknownInstruction` for a name that no machine has. Source: PTX ISA 9.0, Target ISA Notes of
        each instruction; checked by assembling each one for each target with ptxas 13.0.
        """
        return any(self._has(entry) for entry in _matching(name))

    def _has(self, entry: str) -> bool:
        exists = AVAILABILITY[entry]
        return exists.since <= self.capability and (not exists.only or self.capability in exists.only)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Availability:
    """Where an instruction exists: from compute capability `since` on, or if `only` is given, there alone."""

    since: tuple[int, int]
    only: tuple[tuple[int, int], ...] = ()


_TURING, _AMPERE, _ADA, _HOPPER, _BLACKWELL = (7, 5), (8, 0), (8, 9), (9, 0), (10, 0)
_CONSUMER_BLACKWELL = (12, 0)

AVAILABILITY: Mapping[str, Availability] = MappingProxyType(
    {
        "ld": Availability(_TURING),
        "ld.global.b256": Availability(_BLACKWELL),
        "st": Availability(_TURING),
        "st.global.b256": Availability(_BLACKWELL),
        "atom": Availability(_TURING),
        "red": Availability(_TURING),
        "shfl": Availability(_TURING),
        "ldmatrix": Availability(_TURING),
        "movmatrix": Availability(_TURING),
        "stmatrix": Availability(_HOPPER),
        "cp.async": Availability(_AMPERE),
        "cp.async.bulk": Availability(_HOPPER),
        "cp.async.bulk.tensor": Availability(_HOPPER),
        "tma": Availability(_HOPPER),  # the unit behind cp.async.bulk and cp.async.bulk.tensor
        "mbarrier": Availability(_AMPERE),
        "mbarrier.try_wait": Availability(_HOPPER),
        "mbarrier.expect_tx": Availability(_HOPPER),
        "barrier.cluster": Availability(_HOPPER),
        "elect": Availability(_HOPPER),
        "redux": Availability(_AMPERE),
        "setmaxnreg": Availability(_HOPPER),
        "mma.m16n8k8.f16": Availability(_TURING),
        "mma.m16n8k16.f16": Availability(_AMPERE),
        "mma.m16n8k8.bf16": Availability(_AMPERE),
        "mma.m16n8k16.bf16": Availability(_AMPERE),
        "mma.m16n8k4.tf32": Availability(_AMPERE),
        "mma.m16n8k8.tf32": Availability(_AMPERE),
        "mma.m8n8k16.s8": Availability(_TURING),
        "mma.m16n8k16.s8": Availability(_AMPERE),
        "mma.m16n8k32.s8": Availability(_AMPERE),
        "mma.m8n8k4.f64": Availability(_AMPERE),
        "mma.m16n8k8.f64": Availability(_HOPPER),
        "mma.m16n8k16.f64": Availability(_HOPPER),
        "mma.m16n8k32.e4m3": Availability(_ADA),
        "mma.m16n8k32.e5m2": Availability(_ADA),
        "mma.m16n8k32.e2m1": Availability(_CONSUMER_BLACKWELL, only=(_CONSUMER_BLACKWELL,)),
        "wgmma": Availability(_HOPPER, only=(_HOPPER,)),
        "tcgen05": Availability(_BLACKWELL, only=(_BLACKWELL,)),
    }
)


def _matching(name: str) -> list[str]:
    """Entries that answer for a dotted name: the longest that starts it, or else all that it starts."""
    parts = str(name).lower().split(".")
    for length in range(len(parts), 0, -1):
        entry = ".".join(parts[:length])
        if entry in AVAILABILITY:
            return [entry]
    longer = [entry for entry in AVAILABILITY if entry.split(".")[: len(parts)] == parts]
    if not longer:
        near = difflib.get_close_matches(str(name), AVAILABILITY, n=3, cutoff=0.4)
        hint = f"Did you mean {', '.join(near)}?" if near else f"Known: {', '.join(AVAILABILITY)}."
        raise UnknownInstruction(f"{name!r} is not an instruction that lanewise.machine knows of. {hint}")
    return longer


def _hopper_like(capability: tuple[int, int]) -> Machine:
    return Machine(
        capability,
        max_threads_per_sm=2048,
        max_blocks_per_sm=32,
        shared_bytes_per_sm=228 * KB,
        max_shared_bytes_per_block=227 * KB,
        reserved_shared_bytes_per_block=KB,
        shared_allocation_bytes=128,
    )


def _small_sm(capability: tuple[int, int], max_blocks_per_sm: int) -> Machine:
    return Machine(
        capability,
        max_threads_per_sm=1536,
        max_blocks_per_sm=max_blocks_per_sm,
        shared_bytes_per_sm=100 * KB,
        max_shared_bytes_per_block=99 * KB,
        reserved_shared_bytes_per_block=KB,
        shared_allocation_bytes=128,
    )


_ALL = (
    Machine(
        (7, 5),  # T4
        max_threads_per_sm=1024,
        max_blocks_per_sm=16,
        shared_bytes_per_sm=64 * KB,
        max_shared_bytes_per_block=64 * KB,
        reserved_shared_bytes_per_block=0,
        shared_allocation_bytes=256,
    ),
    Machine(
        (8, 0),  # A100
        max_threads_per_sm=2048,
        max_blocks_per_sm=32,
        shared_bytes_per_sm=164 * KB,
        max_shared_bytes_per_block=163 * KB,
        reserved_shared_bytes_per_block=KB,
        shared_allocation_bytes=128,
    ),
    _small_sm((8, 6), max_blocks_per_sm=16),  # A10, RTX 30
    _small_sm((8, 9), max_blocks_per_sm=24),  # L4, RTX 40
    _hopper_like((9, 0)),  # H100, H200
    _hopper_like((10, 0)),  # B200
    _small_sm((12, 0), max_blocks_per_sm=24),  # RTX 50
)

MACHINES: Mapping[str, Machine] = MappingProxyType({machine.name: machine for machine in _ALL})

_TARGET = re.compile(r"(?:sm_|compute_)?(\d{2,3})[af]?")
_VERSION = re.compile(r"(\d{1,2})\.(\d)")


def from_name(name: str | tuple[int, int] | Machine) -> Machine:
    """Look a machine up by target (`"sm_90"`, `"sm_90a"`) or compute capability (`"9.0"`, `(9, 0)`).

    >>> from_name((8, 9)).name
    'sm_89'

    A `Machine` is returned as it is. Raises `UnknownMachine`.
    """
    if isinstance(name, Machine):
        return name
    machine = MACHINES.get(_canonical(name))
    if machine is None:
        near = difflib.get_close_matches(_canonical(name), MACHINES, n=1, cutoff=0.6)
        hint = f"The nearest is {near[0]}. " if near else ""
        raise UnknownMachine(
            f"{name!r} is not a machine of the model. {hint}"
            f'Use one of {", ".join(MACHINES)}, or a compute capability such as "9.0" or (9, 0).'
        )
    return machine


def _canonical(name: object) -> str:
    if isinstance(name, tuple):
        return "sm_" + "".join(map(str, name))
    text = str(name).strip().lower()
    if match := _VERSION.fullmatch(text) or _TARGET.fullmatch(text):
        return "sm_" + "".join(match.groups())
    return text


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
