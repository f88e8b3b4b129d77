"""The documented limits of each compute capability, each with its unit and source, and looking one up."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from lanewise.errors import UnknownMachine
from lanewise.machine.availability import AVAILABILITY, matching
from lanewise.machine.constants import BANKS, KB, LINE_BYTES, SECTOR_BYTES, WARP_LANES, WORD_BYTES

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
        return any(self._has(entry) for entry in matching(name))

    def _has(self, entry: str) -> bool:
        exists = AVAILABILITY[entry]
        return exists.since <= self.capability and (not exists.only or self.capability in exists.only)

    def __str__(self) -> str:
        return self.name


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
