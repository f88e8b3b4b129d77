"""A batch of blocks in flight: registers, memories, and where each lane stands.

Lanes run as on the hardware since Volta. A warp that splits at a branch is two groups from then on, even
where both stand at one place: only a meeting (BSSY opens it, BSYNC waits for it), WARPSYNC or a barrier of
the block joins them again. Groups of different warps at one place are executed together, which is a matter of
speed alone. Order between warps is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lanewise.lowering.registers import Array, Registers, following
from lanewise.lowering.sass import MachineCode, MachineInstruction, Operand
from lanewise.lowering.storage import HEAP_BASE, Bytes, Heap
from lanewise.lowering.traffic import Stopped, Traffic
from lanewise.machine import WARP_LANES


@dataclass(frozen=True)
class Launch:
    """Blocks of a launch and what the code may know of them; shapes are x, y, z."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    local_bytes: int
    constants: dict[int, bytes]
    cluster_shared_base: int


class Blocks:
    """A batch of blocks in flight: their registers, shared and local memory, and where each lane stands."""

    def __init__(
        self, code: MachineCode, launch: Launch, heap: Heap, traffic: dict[int, Traffic], ids: Array
    ) -> None:
        n_threads = int(np.prod(launch.block))
        self.warps_per_block = -(-n_threads // WARP_LANES)
        lanes_per_block = self.warps_per_block * WARP_LANES
        self.code, self.launch, self.heap, self.traffic = code, launch, heap, traffic
        self.n_lanes = len(ids) * lanes_per_block
        # Warps are numbered over the launch: block number times warps per block, plus the warp's own number.
        self.warps = (ids[:, None] * self.warps_per_block + np.arange(self.warps_per_block)).ravel()
        self.registers = Registers(self.n_lanes, launch.constants)
        thread = np.tile(np.arange(lanes_per_block), len(ids))
        self.block_of_lane = np.repeat(np.arange(len(ids)), lanes_per_block)
        self.lane = thread % WARP_LANES
        self.alive = thread < n_threads
        self.shared_stride = -(-max(launch.shared_bytes, 16) // 16) * 16
        self.shared = Bytes(self.shared_stride * len(ids))
        self.local_stride = -(-max(launch.local_bytes, 16) // 16) * 16
        self.local = Bytes(self.local_stride * self.n_lanes if launch.local_bytes else 0)
        self.special = self._special_registers(thread, ids[self.block_of_lane])
        # By place: layers of lanes, each with at most one group of any warp.
        self.groups: dict[int, list[Array]] = {code.instructions[0].address: [self.alive.copy()]}
        self.at_barrier: dict[int, Array] = {}
        # By barrier register, for each lane: the meeting it is in, and where it waits for it (0: nowhere).
        self.meetings: dict[str, Array] = {}
        self.at_meeting: dict[str, Array] = {}
        self.at_warp_barrier: Array = np.zeros(self.n_lanes, np.int64)
        self.n_meetings = 0
        # Lanes whose path so far depends on which of several atomics came first.
        self.contested: Array = np.zeros(self.n_lanes, bool)
        self.barrier_votes: Array = np.zeros(self.n_lanes, bool)

    def _special_registers(self, thread: Array, block_id: Array) -> dict[str, Array]:
        table = {}
        for prefix, index, shape in (
            ("SR_TID", thread, self.launch.block),
            ("SR_CTAID", block_id, self.launch.grid),
        ):
            x, y, _ = shape
            for axis, value in zip("XYZ", (index % x, index // x % y, index // (x * y)), strict=True):
                table[f"{prefix}.{axis}"] = value.astype(np.uint32)
        lane = self.lane.astype(np.uint64)
        one = np.uint64(1)
        below = (one << lane) - one
        full = np.uint64(0xFFFFFFFF)
        table |= {
            "SR_LANEID": self.lane.astype(np.uint32),
            "SR_CgaCtaId": np.zeros(1, np.uint32),
            "SR_CgaSize": np.ones(1, np.uint32),
            "SRZ": np.zeros(1, np.uint32),
            "SR_EQMASK": (one << lane).astype(np.uint32),
            "SR_LTMASK": below.astype(np.uint32),
            "SR_LEMASK": (below | (one << lane)).astype(np.uint32),
            "SR_GTMASK": (full ^ (below | (one << lane))).astype(np.uint32),
            "SR_GEMASK": (full ^ below).astype(np.uint32),
        }
        return table

    # Control

    def guarded(self, ins: MachineInstruction, lanes: Array) -> tuple[Array, Array | None]:
        """Lanes that take part, and those for which it cannot be told."""
        if not ins.predicate:
            return lanes, None
        name = ins.predicate.lstrip("@!")
        self.registers.depend_on(name)
        unsure = self.registers.unknown_in.get(name)
        unsure = unsure & lanes if unsure is not None else None
        if unsure is not None and not unsure.any():
            unsure = None
        value = self.registers.guard(name, "!" in ins.predicate)
        self.registers.begin()
        return lanes & value, unsure

    def certain(self, ins: MachineInstruction, lanes: Array) -> Array:
        """Lanes for which the guard holds; an unknown guard ends the run."""
        taking, unsure = self.guarded(ins, lanes)
        if unsure is not None:
            raise Stopped(
                f"Line {ins.line}: whether {ins.text} happens depends on a value that is not computed."
            )
        return taking

    def join(self, place: int, lanes: Array) -> None:
        """Let lanes continue at `place`, those of one warp as one group, apart from groups already there."""
        layers = self.groups.setdefault(place, [])
        for layer in layers:
            if not lanes.any():
                return
            fitting = lanes & ~self.whole_warps(layer)
            layer |= fitting
            lanes = lanes & ~fitting
        if lanes.any():
            layers.append(lanes.copy())
        if not layers:
            del self.groups[place]

    def take(self, place: int) -> Array:
        """Remove a layer of groups that stand at `place`, to run them."""
        layers = self.groups[place]
        lanes = layers.pop(0)
        if not layers:
            del self.groups[place]
        return lanes

    def whole_warps(self, lanes: Array) -> Array:
        """All lanes of the warps that have one in `lanes`."""
        return np.repeat(lanes.reshape(-1, WARP_LANES).any(axis=1), WARP_LANES)

    def release(self) -> bool:
        """Nobody can run: let lanes that met go on, then lanes whose whole block waits at a barrier."""
        nobody = np.zeros(self.n_lanes, bool)
        for name in self.meetings:
            self.meet(name, 0, nobody)
        self.synchronize(0, nobody)
        if self.groups:
            return True
        if any(places.any() for places in (*self.at_meeting.values(), self.at_warp_barrier)):
            raise Stopped("Lanes wait for others of their warp that never come.")
        waiting = np.logical_or.reduce([nobody, *self.at_barrier.values()])
        if (self.alive & ~waiting).any():
            raise Stopped("Some lanes wait at a barrier that the others of their block never reach.")
        for place, lanes in self.at_barrier.items():
            self.join(place, lanes & self.alive)
        self.at_barrier.clear()
        return bool(self.groups)

    def open_meeting(self, name: str, lanes: Array) -> None:
        """BSSY: each group of `lanes` starts a meeting of its own, known by a token.

        The lowest bit of a token keeps whether the group was contested before: it is again, once it has met.
        """
        warp = np.arange(self.n_lanes) // WARP_LANES
        self.n_meetings += 1
        token = self.n_meetings * (self.n_lanes // WARP_LANES) + warp
        contested = self.whole_warps(lanes & self.contested)
        np.copyto(self.tokens(name), 2 * token + contested, where=lanes)

    def tokens(self, name: str) -> Array:
        """Per lane: the token of the meeting that the barrier register `name` holds, 0 for none."""
        return self.meetings.setdefault(name, np.zeros(self.n_lanes, np.int64))

    def meet(self, name: str, place: int, arriving: Array) -> None:
        """BSYNC: hold lanes until all that opened the meeting are there, or gone; then join them at `place`.

        Lanes that are in no meeting pass as the group they are.
        """
        tokens, places = self.tokens(name), self._waiting_places(name)
        self.join(place, arriving & (tokens == 0))
        places[arriving & (tokens > 0)] = place
        unique, dense = np.unique(tokens, return_inverse=True)
        missing = np.bincount(dense[self.alive & (places == 0)], minlength=len(unique)) > 0
        ready = (places > 0) & ~missing[dense]
        self.contested[ready] = tokens[ready] & 1
        while ready.any():  # two meetings of one warp may end at once: their lanes stay apart
            last = np.where(ready, tokens, 0).reshape(-1, WARP_LANES).max(axis=1)
            group = ready & (tokens == np.repeat(last, WARP_LANES))
            self._go_on(places, group)
            tokens[group] = 0
            ready = ready & ~group

    def synchronize(self, place: int, arriving: Array) -> None:
        """WARPSYNC: hold lanes until all of their warp that have not exited wait so; then join them."""
        self.at_warp_barrier[arriving] = place
        waiting = self.at_warp_barrier > 0
        self._go_on(self.at_warp_barrier, waiting & ~self.whole_warps(self.alive & ~waiting))

    def _waiting_places(self, name: str) -> Array:
        return self.at_meeting.setdefault(name, np.zeros(self.n_lanes, np.int64))

    def _go_on(self, places: Array, lanes: Array) -> None:
        """Let waiting lanes continue where they wait."""
        for place in np.unique(places[lanes]):
            self.join(int(place), lanes & (places == place))
        places[lanes] = 0

    def contest(self, lanes: Array, condition: Array | None) -> None:
        """Note that where `lanes` go depends on the order of atomics, if it does for some of their warp."""
        if condition is not None:
            self.contested |= lanes & self.whole_warps(lanes & condition)

    def mark_retries(self, first: int, last: int) -> None:
        """Claim no counts of a loop that runs on until an atomic succeeds, even if all did at once here."""
        for address, record in self.traffic.items():
            record.contested |= first <= address <= last

    # Addresses

    def addresses(self, ins: MachineInstruction, operand: Operand) -> tuple[Array, Array | None]:
        """Byte addresses of all lanes (int64), and the lanes whose address is unknown."""
        r = self.registers
        outer, r.unknown = r.unknown, None
        offset = np.int64(int(operand.value))
        if "E" in ins.modifiers and "desc" not in operand.suffixes and operand.kind == "address":
            base = _pair(r, operand.name, "U32" in operand.suffixes) + _pair(r, operand.uniform, False)
            value = base.astype(np.uint64).view(np.int64) + offset
        else:
            base32 = r.register(operand.name) * np.uint32(operand.scale) + r.register(operand.uniform)
            value = ((base32.astype(np.int64) + offset) & 0xFFFFFFFF).astype(np.int64)
        unknown, r.unknown = r.unknown, outer
        return np.broadcast_to(value, (self.n_lanes,)), unknown

    def count(
        self, ins: MachineInstruction, addresses: Array, lanes: Array, unknown: Array | None, space: str
    ) -> None:
        """Add one execution by `lanes` to the traffic of an instruction."""
        record = self.traffic.setdefault(ins.address, Traffic(ins, space))
        doubtful = unknown is not None and bool((unknown & lanes).any())
        contested = self.registers.contested  # of the guard and the address alike
        record.contested |= contested is not None and bool((contested & lanes).any())
        shape = (-1, WARP_LANES)
        record.add(addresses.reshape(shape), lanes.reshape(shape), doubtful, self.warps)

    def places(self, space: str, addresses: Array) -> tuple[Bytes, Array]:
        """The memory and the positions in it that addresses of a space stand for."""
        if space == "shared":
            offset = addresses - self.launch.cluster_shared_base
            outside = (offset < 0) | (offset >= self.shared_stride)
            return self.shared, np.where(outside, -1, offset + self.block_of_lane * self.shared_stride)
        if space == "local":
            outside = (addresses < 0) | (addresses >= self.local_stride)
            return self.local, np.where(outside, -1, addresses + np.arange(self.n_lanes) * self.local_stride)
        return self.heap.bytes, addresses - HEAP_BASE


def _pair(r: Registers, name: str, low_only: bool) -> Array:
    low = r.register(name).astype(np.uint64)
    return (
        low
        if low_only or not name
        else low | (r.register(following(name, 1)).astype(np.uint64) << np.uint64(32))
    )
