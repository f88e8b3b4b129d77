"""Where a kernel touches memory: one `Site` per source position and instruction, with what it costs.

Executing a kernel only collects address patterns; they are counted in bulk at the end. Costs repeat when all
addresses of a warp move by a multiple of a 128-byte line (banks, sectors and words move along), so a pattern
is kept once with the number of warps that showed it. Three forms of an event are told apart by how much work
they are:

1. addresses that no block changes: W rows, counted B times;
2. a block part plus a thread part: W rows per residue of the block part modulo 128;
3. anything else: B * W rows, equal ones found by a 64-bit hash.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lanewise.access import WarpAccess
from lanewise.instructions import INSTRUCTIONS, Instruction
from lanewise.machine import LINE_BYTES, SECTOR_BYTES, WARP_LANES, WORD_BYTES
from lanewise.memory import global_sectors, shared_wavefronts
from lanewise.trace.lanes import Split, whole
from lanewise.trace.masks import Mask

BANK_ROW_BYTES = 32 * WORD_BYTES
_FEW = 256  # distinct rows of one event that are still worth a look-up each
_BUFFER_ROWS = 1 << 16
_HASH = np.random.default_rng(0x5EED).integers(-(2**62), 2**62, WARP_LANES) | 1


@dataclass(frozen=True)
class Patterns:
    """Warp accesses with multiplicity: `addresses` and `active` are `(n, 32)`, `counts` is `(n,)`.

    `warps` numbers the first warp of the launch that showed each, `(n,)`.
    """

    addresses: np.ndarray
    active: np.ndarray
    counts: np.ndarray
    warps: np.ndarray


@dataclass(frozen=True)
class Cost:
    """What a number of warp accesses cost together.

    `fewest_sectors` could hold the bytes of each request, summed. `worst` is the row that costs most, of the
    lowest warp among equals, and `weight` orders the worst rows of several costs.
    """

    requests: int = 0
    wavefronts: int = 0
    ideal: int = 0
    sectors: int = 0
    fewest_sectors: int = 0
    lines: int = 0
    bytes_requested: int = 0
    worst: int = -1
    weight: int = 0
    worst_wavefronts: int = 0
    worst_sectors: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, name) + getattr(other, name) for name in self.__dataclass_fields__))


def rule_of(instruction: str, space: str) -> Instruction | None:
    """The rule for an instruction in one memory, or None: of a copy the model knows the shared side alone."""
    spec = INSTRUCTIONS.get(instruction)
    return spec if spec and spec.space == space and not spec.not_modelled else None


def cost_of(instruction: str, space: str, patterns: Patterns) -> Cost:
    """Count patterns under an instruction; one that has no model gets requests and bytes alone."""
    active, counts = patterns.active, patterns.counts
    if len(counts) == 0:
        return Cost()
    spec, rule = INSTRUCTIONS.get(instruction), rule_of(instruction, space)
    some = active.any(axis=1)
    width = spec.bytes_per_lane if spec else WORD_BYTES
    useful = _distinct(patterns.addresses, active) * width
    wavefronts = ideal = sectors = fewest = lines = np.zeros(len(counts), np.int64)
    if rule:
        if space == "shared":
            wavefronts, ideal = shared_wavefronts(instruction, patterns.addresses, active)
        else:
            _, sectors = global_sectors(instruction, patterns.addresses, active)
            # Misaligned lanes may overlap, so that fewer sectors hold what is counted lane by lane.
            fewest = np.minimum(-(-useful // SECTOR_BYTES), sectors)
            lines = _distinct(patterns.addresses // LINE_BYTES, active)
    weights = np.where(some, (wavefronts - ideal) * 64 + wavefronts + sectors, -1)
    equals = np.flatnonzero(weights == weights.max())
    worst = int(equals[np.argmin(patterns.warps[equals])])
    return Cost(
        int(counts @ some.astype(np.int64)),
        int(counts @ wavefronts),
        int(counts @ ideal),
        int(counts @ sectors),
        int(counts @ fewest),
        int(counts @ lines),
        int(counts @ useful),
        worst,
        int(weights[worst]),
        int(wavefronts[worst]),
        int(sectors[worst]),
    )


def _distinct(addresses: np.ndarray, active: np.ndarray) -> np.ndarray:
    ordered = np.sort(np.where(active, addresses, np.iinfo(np.int64).max), axis=1)
    first = ordered != np.iinfo(np.int64).max
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return first.sum(axis=1)


@dataclass
class _Progression:
    """One thread part seen with many block parts: a histogram of residues, and of each residue the lowest
    block with where it starts."""

    addresses: np.ndarray
    active: np.ndarray
    by_residue: np.ndarray = field(default_factory=lambda: np.zeros(LINE_BYTES, np.int64))
    blocks: np.ndarray = field(default_factory=lambda: np.full(LINE_BYTES, np.iinfo(np.int64).max))
    origins: np.ndarray = field(default_factory=lambda: np.zeros(LINE_BYTES, np.int64))


@dataclass(frozen=True)
class Example:
    """A warp access of a site and where it happened: linear block number and warp of the block."""

    access: WarpAccess | None
    block: int
    warp: int


@dataclass(eq=False)
class Site:
    """One memory instruction in the source: where it stands, and what all its executions cost together.

    `column` counts characters from 0. `op` is load, store, atomic or async_copy; `instruction` is the name in
    `lanewise.instructions`, or a PTX-like name where the model has no rule (then `modelled` is False and the
    cost fields are 0). `wavefronts` and `ideal` belong to shared memory, `sectors`, `fewest_sectors` and
    `lines` (128-byte lines that each request touches, summed) to global memory. `excess` is what lies above
    the least: wavefronts lost to bank conflicts in shared memory, sectors beyond the fewest in global memory,
    so excesses of the two memories are never added up.
    `bytes_requested` counts the distinct bytes that the lanes of each request asked for, `bytes_moved` those
    of the sectors (global) or of the wavefronts at 128 bytes each (shared) that carried them. `example` is
    the worst request, of the lowest block and warp among equals.
    """

    filename: str
    line: int
    column: int
    source: str
    op: str
    space: str
    instruction: str
    array: str
    cost: Cost = Cost()
    example: WarpAccess | None = None
    example_block: tuple[int, int, int] | None = None
    example_warp: int = 0
    _progressions: dict[bytes, _Progression] = field(default_factory=dict, repr=False)
    _rows: dict[bytes, list[int]] = field(default_factory=dict, repr=False)
    _buffers: list[tuple[np.ndarray, np.ndarray, int, np.ndarray]] = field(default_factory=list, repr=False)
    _buffered: int = field(default=0, repr=False)
    _counted: Cost = field(default=Cost(), repr=False)
    _worst: tuple[tuple[int, int, int], Example] | None = field(default=None, repr=False)

    @property
    def modelled(self) -> bool:
        """False where the model has no rule for the instruction."""
        return rule_of(self.instruction, self.space) is not None

    requests = property(lambda self: self.cost.requests)
    wavefronts = property(lambda self: self.cost.wavefronts)
    ideal = property(lambda self: self.cost.ideal)
    sectors = property(lambda self: self.cost.sectors)
    fewest_sectors = property(lambda self: self.cost.fewest_sectors)
    lines = property(lambda self: self.cost.lines)
    bytes_requested = property(lambda self: self.cost.bytes_requested)

    @property
    def excess(self) -> int:
        """Wavefronts lost to bank conflicts (shared), or sectors beyond those that the bytes of each request
        could fill (global)."""
        if self.space == "shared":
            return self.cost.wavefronts - self.cost.ideal
        return self.cost.sectors - self.cost.fewest_sectors

    @property
    def bytes_moved(self) -> int:
        """Bytes of the sectors or wavefronts that carried the request."""
        return self.sectors * SECTOR_BYTES if self.space == "global" else self.wavefronts * BANK_ROW_BYTES

    @property
    def degree(self) -> int:
        """The n of the worst n-way conflict: words in the fullest bank of the example's worst phase."""
        if self.example is None or self.space != "shared" or not self.modelled:
            return 0
        from lanewise.memory import shared_cost

        return shared_cost(self.example).degree

    @property
    def worst_sectors(self) -> int:
        """Sectors of the worst request."""
        return self._counted.worst_sectors

    @property
    def worst_wavefronts(self) -> int:
        """Wavefronts of the worst request."""
        return self._counted.worst_wavefronts

    # -- collecting --------------------------------------------------------------------------------

    def record(self, index: Any, unit: int, base: int, mask: Mask, first_block: np.ndarray) -> None:
        """Note one execution by a batch: lane addresses are `base + index * unit`; `first_block` numbers its
        blocks."""
        blocks = mask.array.shape[0]
        if isinstance(index, Split):
            block_part, thread_part = index.block, index.thread
        else:
            index = np.atleast_2d(np.asarray(whole(index), np.int64))
            if index.shape[1] == 1:
                block_part, thread_part = index, np.zeros((1, 1), np.int64)
            elif index.shape[0] == 1:
                block_part, thread_part = np.zeros((1, 1), np.int64), index
            else:
                self._record_any(index * unit + base, mask, first_block)
                return
        if blocks > 1 and mask.array.shape[1] > 1:
            full = block_part * unit + base + thread_part * unit
            self._record_any(np.broadcast_to(full, mask.shape), mask, first_block)
            return
        self._record_sum(block_part * unit + base, thread_part * unit, mask, first_block)

    def _record_sum(
        self, block_part: np.ndarray, thread_part: np.ndarray, mask: Mask, numbers: np.ndarray
    ) -> None:
        n_blocks, n_threads = mask.shape
        mask_row = mask.array[:1]
        if mask.array.shape[0] > 1:
            chosen = mask.array[:, 0]
            mask_row = np.ones((1, 1), bool)
            numbers = numbers[chosen]
            block_part = block_part[chosen] if len(block_part) > 1 else block_part
            n_blocks = len(numbers)
        key = thread_part.tobytes() + mask_row.tobytes()
        progression = self._progressions.get(key)
        if progression is None:
            shape = (-1, WARP_LANES)
            rows = np.broadcast_to(thread_part, (1, n_threads)).reshape(shape).astype(np.int64)
            active = np.broadcast_to(mask_row, (1, n_threads)).reshape(shape)
            progression = self._progressions[key] = _Progression(rows, active)
        starts = block_part[:, 0]
        by_residue = np.bincount(starts % LINE_BYTES, minlength=LINE_BYTES)
        progression.by_residue += by_residue * (n_blocks // len(starts))  # one start may be of all blocks
        first = np.zeros(LINE_BYTES, np.int64)
        first[starts[::-1] % LINE_BYTES] = np.arange(len(starts))[::-1]  # the last to be written stays
        better = (by_residue > 0) & (numbers[first] < progression.blocks)
        first = first[better]
        progression.blocks[better] = numbers[first]
        progression.origins[better] = starts[first] & -LINE_BYTES

    def _record_any(self, addresses: np.ndarray, mask: Mask, numbers: np.ndarray) -> None:
        active = mask.full.reshape(-1, WARP_LANES)
        addresses = np.broadcast_to(addresses, mask.shape).reshape(-1, WARP_LANES)
        n_warps = mask.shape[1] // WARP_LANES
        position = np.arange(len(addresses))
        if not mask.is_full:
            some = active.any(axis=1)
            active, addresses, position = active[some], addresses[some], position[some]
            lowest = np.where(active, addresses, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
        else:
            lowest = addresses.min(axis=1, keepdims=True)
        origin = lowest & -LINE_BYTES
        rows = addresses - origin
        if not mask.is_full:
            rows = np.where(active, rows, -1)
        hashes = rows @ _HASH
        _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        if len(first) > _FEW:
            where = numbers[position // n_warps] * n_warps + position % n_warps
            self._buffers.append((rows, origin[:, 0], n_warps, where))
            self._buffered += len(rows)
            if self._buffered >= _BUFFER_ROWS:
                self._flush()
            return
        for row, times in zip(first, counts, strict=True):
            entry = self._rows.setdefault(rows[row].tobytes(), [])
            at = int(position[row])
            place = [int(numbers[at // n_warps]), at % n_warps, int(origin[row, 0])]
            if not entry:
                entry += [int(times), *place]
                continue
            entry[0] += int(times)
            if place < entry[1:]:
                entry[1:] = place

    # -- counting ----------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Count what lies in the buffer, in one call for all of it."""
        if not self._buffers:
            return
        rows = np.concatenate([entry[0] for entry in self._buffers])
        origins = np.concatenate([entry[1] for entry in self._buffers])
        where = np.concatenate([entry[3] for entry in self._buffers])
        n_warps = self._buffers[0][2]
        active = rows >= 0
        self._take(
            Patterns(np.where(active, rows, 0), active, np.ones(len(rows), np.int64), where),
            lambda row: (int(where[row]) // n_warps, int(where[row]) % n_warps, int(origins[row])),
        )
        self._buffers, self._buffered = [], 0

    def _take(self, patterns: Patterns, locate: Any) -> None:
        cost = cost_of(self.instruction, self.space, patterns)
        if cost.requests:
            block, warp, origin = locate(cost.worst)
            rank = (cost.weight, -block, -warp)
            if self._worst is None or rank > self._worst[0]:
                access = _access(self.instruction, patterns, cost.worst, origin)
                self._worst = rank, Example(access, block, warp)
        self._counted = replace(
            self._counted + cost,
            worst_wavefronts=max(cost.worst_wavefronts, self._counted.worst_wavefronts),
            worst_sectors=max(cost.worst_sectors, self._counted.worst_sectors),
        )

    def _kept(self) -> tuple[Patterns, list[tuple[int, int, int]]]:
        addresses, active, counts, places = [], [], [], []
        for progression in self._progressions.values():
            low = int(progression.addresses[progression.active].min()) & -LINE_BYTES
            for residue in progression.by_residue.nonzero()[0]:
                block, origin = int(progression.blocks[residue]), int(progression.origins[residue])
                n_warps = len(progression.addresses)
                addresses.append(np.where(progression.active, progression.addresses - low + residue, 0))
                active.append(progression.active)
                counts.append(np.full(n_warps, progression.by_residue[residue]))
                places += [(block, warp, origin + low) for warp in range(n_warps)]
        if self._rows:
            rows = np.frombuffer(b"".join(self._rows), np.int64).reshape(-1, WARP_LANES)
            addresses.append(np.where(rows >= 0, rows, 0))
            active.append(rows >= 0)
            counts.append(np.array([entry[0] for entry in self._rows.values()]))
            places += [(entry[1], entry[2], entry[3]) for entry in self._rows.values()]
        if not addresses:
            empty = np.zeros((0, WARP_LANES), np.int64)
            none = np.zeros(0, np.int64)
            return Patterns(empty, empty.astype(bool), none, none), []
        blocks, warps, _ = np.array(places, np.int64).T
        patterns = Patterns(
            np.concatenate(addresses),
            np.concatenate(active),
            np.concatenate(counts),
            blocks * (warps.max() + 1) + warps,
        )
        return patterns, places

    def count(self, block_of: Any) -> None:
        """Count everything collected; `block_of` turns a linear block number into coordinates."""
        self._flush()
        patterns, places = self._kept()
        if places:
            self._take(patterns, lambda row: places[row])
        self.cost = self._counted
        if self._worst:
            example = self._worst[1]
            self.example, self.example_warp = example.access, example.warp
            self.example_block = block_of(example.block)


def _access(instruction: str, patterns: Patterns, row: int, origin: int) -> WarpAccess | None:
    if instruction not in INSTRUCTIONS:
        return None
    active = patterns.active[row]
    addresses = np.where(active, patterns.addresses[row] + origin, 0)
    mask = sum(1 << lane for lane in range(WARP_LANES) if active[lane])
    return WarpAccess(instruction, tuple(addresses.tolist()), mask)
