"""What machine code does beyond arithmetic: memory accesses, exchange between lanes, values from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lanewise.lowering import atomics
from lanewise.lowering.blocks import Blocks
from lanewise.lowering.registers import Array, following
from lanewise.lowering.sass import MachineInstruction, Operand
from lanewise.lowering.storage import HEAP_BASE
from lanewise.lowering.traffic import Stopped
from lanewise.machine import WARP_LANES

Effect = Callable[[Blocks, MachineInstruction, Array], None]
EFFECTS: dict[str, Effect] = {}


def effect(*names: str) -> Callable[[Effect], Effect]:
    """Register what the opcodes `names` do."""

    def register(function: Effect) -> Effect:
        EFFECTS.update(dict.fromkeys(names, function))
        return function

    return register


@dataclass(frozen=True)
class _Access:
    """A guarded access of all lanes: addresses, which of them are unknown (or None), and the space they lie
    in."""

    addresses: Array
    unknown: Array | None
    space: str
    certain: bool


def _access(blocks: Blocks, ins: MachineInstruction, lanes: Array, operand: Operand | None = None) -> _Access:
    """Evaluate the address and count it. Lanes whose guard is unknown are in `registers.unknown`."""
    operand = operand or ins.address_operand
    assert operand is not None, ins.text
    addresses, unknown = blocks.addresses(ins, operand)
    unsure = blocks.registers.unknown
    if unsure is not None:
        unknown = unsure if unknown is None else unknown | unsure
    space: str = ins.space
    if space == "generic":
        if unknown is None and (addresses[lanes] < HEAP_BASE).any():
            raise Stopped(
                f"Line {ins.line}: a generic address outside global memory is not modelled: {ins.text}"
            )
        space = "global"
    blocks.count(ins, addresses, lanes, unknown, space)
    return _Access(addresses, unknown, space, unknown is None or not (unknown & lanes).any())


@effect("LDS", "LDG", "LDL", "LD")
def _load(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    access = _access(blocks, ins, lanes)
    memory, places = blocks.places(access.space, access.addresses)
    safe = np.where(lanes, places, 0)
    words, bad = memory.load(safe, ins.bytes_per_lane, signed=bool(ins.modifiers & {"S8", "S16"}))
    for doubt in (access.unknown, bad):
        if doubt is not None:
            blocks.registers.taint(doubt)
    dst = next(op for op in ins.operands if op.kind == "register")
    for i, word in enumerate(words):
        blocks.registers.write(following(dst.name, i), word, lanes)


@effect("STS", "STG", "STL", "ST")
def _store(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    access = _access(blocks, ins, lanes)
    memory, places = blocks.places(access.space, access.addresses)
    if not access.certain:
        memory.forget()
        return
    source = next(op for op in ins.operands if op.kind != "address")
    blocks.registers.begin()
    n_words = max(1, ins.bytes_per_lane // 4)
    words = [
        np.broadcast_to(blocks.registers.raw32(Operand("register", source.name), i), (blocks.n_lanes,))[lanes]
        for i in range(n_words)
    ]
    doubt = blocks.registers.unknown
    memory.store(places[lanes], words, ins.bytes_per_lane, None if doubt is None else doubt[lanes])


@effect("LDSM", "STSM")
def _matrix(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    """Count the rows; the fragments themselves go to Tensor Cores, so their values stay unknown."""
    _access(blocks, ins, lanes)
    if ins.base == "STSM":
        blocks.shared.forget()
        return
    blocks.registers.taint(lanes)
    for i in range(int(next((part for part in ins.parts[1:] if part in ("2", "4")), "1"))):
        blocks.registers.write(following(ins.operands[0].name, i), np.zeros(1, np.uint32), lanes)


@effect("LDGSTS")
def _async_copy(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    """Count the shared side; the copy is done at once, as if it had been waited for."""
    destination, source = (op for op in ins.operands if op.kind == "address")
    origin, doubt = blocks.addresses(ins, source)
    if doubt is not None:
        blocks.registers.taint(doubt)
    access = _access(blocks, ins, lanes, destination)
    memory, places = blocks.places("shared", access.addresses)
    if not access.certain:
        memory.forget()
        return
    heap, origins = blocks.places("global", origin)
    words, bad = heap.load(np.where(lanes, origins, 0), ins.bytes_per_lane)
    unknown = None if bad is None else bad[lanes]
    memory.store(places[lanes], [word[lanes] for word in words], ins.bytes_per_lane, unknown)


@effect("ATOMS", "ATOMG", "ATOM", "RED", "REDG")
def _atomic(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    access = _access(blocks, ins, lanes)
    memory, places = blocks.places(access.space, access.addresses)
    if not access.certain:
        memory.forget()
    atomics.apply(blocks.registers, ins, memory, places, lanes)


# Values that lanes exchange, and values from outside the registers


@effect("S2R", "S2UR", "CS2R")
def _special(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    dst, src = ins.operands[:2]
    if src.name not in blocks.special:
        blocks.registers.taint(lanes)
    value = blocks.special.get(src.name, np.zeros(1, np.uint32))
    blocks.registers.write(dst.name, value, lanes)
    if ins.base == "CS2R" and "32" not in ins.modifiers:
        blocks.registers.write(following(dst.name, 1), np.zeros(1, np.uint32), lanes)


@effect("LDC", "ULDC", "LDCU")
def _load_constant(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    dst, src = ins.operands[:2]
    r = blocks.registers
    n_words = next((int(part) // 32 for part in ins.parts[1:] if part in ("64", "128", "256")), 1)
    narrow = ins.modifiers & {"U8", "S8", "U16", "S16"}
    words = [r.raw32(src, i) for i in range(n_words)]
    if narrow:
        shift = np.uint32(8 * (int(src.value) % 4))
        words = [
            r.raw32(Operand("constant", src.name, value=int(src.value) // 4 * 4, bank=src.bank)) >> shift
        ]
        words = [words[0] & np.uint32(0xFF if narrow & {"U8", "S8"} else 0xFFFF)]
        if narrow & {"S8", "S16"} or src.name:
            r.taint(lanes)
    for i, word in enumerate(words):
        r.write(following(dst.name, i), word, lanes)


@effect("SHFL")
def _shuffle(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    r = blocks.registers
    outputs = [op for op in ins.operands if op.kind == "predicate"]
    dst, a, b, c = (op for op in ins.operands if op.kind != "predicate")
    shift = (r.u32(b) & np.uint32(31)).astype(np.int64)
    bounds = r.u32(c).astype(np.int64)
    segment, clamp = bounds >> 8 & 31, bounds & 31
    lane = blocks.lane
    first, last = lane & segment, (lane & segment) | (clamp & ~segment)
    if "UP" in ins.modifiers:
        wanted, ok = lane - shift, lane - shift >= last
    elif "DOWN" in ins.modifiers:
        wanted, ok = lane + shift, lane + shift <= last
    elif "BFLY" in ins.modifiers:
        wanted, ok = lane ^ shift, (lane ^ shift) <= last
    else:
        wanted = first | (shift & ~segment)
        ok = wanted <= last
    source = np.arange(blocks.n_lanes) - lane + np.where(ok, wanted, lane)
    outer, r.unknown = r.unknown, None
    value = np.broadcast_to(r.u32(a), (blocks.n_lanes,))[source]
    _spread_contested(blocks, lanes)
    doubt = ~lanes[source] if r.unknown is None else ~lanes[source] | r.unknown[source]
    r.unknown = outer
    if (doubt & lanes).any():
        r.taint(doubt)
    r.write(dst.name, value, lanes)
    r.write_predicate(outputs[0].name, np.broadcast_to(ok, (blocks.n_lanes,)), lanes)


def _by_warp(blocks: Blocks, value: Array, lanes: Array) -> Array:
    return (np.broadcast_to(value, (blocks.n_lanes,)) & lanes).reshape(-1, WARP_LANES)


def _spread_unknown(blocks: Blocks, lanes: Array) -> None:
    """A value gathered from a whole warp is unknown if any lane's part is."""
    r = blocks.registers
    if r.unknown is not None:
        r.unknown = blocks.whole_warps(r.unknown & lanes)
    _spread_contested(blocks, lanes)


def _spread_contested(blocks: Blocks, lanes: Array) -> None:
    r = blocks.registers
    if r.contested is not None:
        r.contested = blocks.whole_warps(r.contested & lanes)


@effect("VOTE", "VOTEU")
def _vote(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    r = blocks.registers
    *outputs, source = (op for op in ins.operands if op.kind == "predicate")
    yes = _by_warp(blocks, r.predicate(source), lanes)
    _spread_unknown(blocks, lanes)
    ballot = np.packbits(yes, axis=1, bitorder="little").view("<u4").reshape(-1)
    present = lanes.reshape(-1, WARP_LANES)
    every = (yes | ~present).all(axis=1)
    verdict = {"ALL": every, "EQ": every | ~yes.any(axis=1)}.get(ins.parts[1], yes.any(axis=1))
    for dst in (op for op in ins.operands if op.kind == "register"):
        r.write(dst.name, np.repeat(ballot, WARP_LANES), lanes)
    for output in outputs:
        r.write_predicate(output.name, np.repeat(verdict, WARP_LANES), lanes)


@effect("MATCH")
def _match(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    r = blocks.registers
    registers = [op for op in ins.operands if op.kind == "register"]
    value = np.broadcast_to(r.u32(registers[-1]), (blocks.n_lanes,)).reshape(-1, WARP_LANES)
    if "64" in "".join(ins.parts[1:]) or "ALL" in ins.modifiers:
        r.taint(lanes)
    _spread_unknown(blocks, lanes)
    present = lanes.reshape(-1, 1, WARP_LANES)
    same = (value[:, :, None] == value[:, None, :]) & present
    masks = np.packbits(same, axis=2, bitorder="little").view("<u4").reshape(-1)
    r.write(registers[0].name, masks, lanes)


@effect("REDUX", "CREDUX")
def _warp_reduce(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    r = blocks.registers
    dst, src = ins.operands[:2]
    unsigned = "S32" not in ins.modifiers
    value = np.broadcast_to(r.u32(src), (blocks.n_lanes,)).astype(np.int64)
    if not unsigned:
        value = value.astype(np.uint32).view(np.int32).astype(np.int64)
    _spread_unknown(blocks, lanes)
    operations: dict[str, tuple[np.ufunc, int]] = {
        "SUM": (np.add, 0), "OR": (np.bitwise_or, 0), "XOR": (np.bitwise_xor, 0), "AND": (np.bitwise_and, -1),
        "MIN": (np.minimum, 1 << 40), "MAX": (np.maximum, -(1 << 40)),
    }  # fmt: skip
    function, neutral = next(
        (operations[part] for part in ins.parts if part in operations), operations["AND"]
    )
    rows = np.where(lanes, value, neutral).reshape(-1, WARP_LANES)
    result = function.reduce(rows, axis=1).astype(np.uint32)
    r.write(dst.name, np.repeat(result, WARP_LANES), lanes)


@effect("B2R")
def _barrier_result(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    """The vote of the last barrier: every lane of the block has arrived, so all votes are in."""
    n_blocks = int(blocks.block_of_lane[-1]) + 1
    votes = blocks.barrier_votes & blocks.alive
    count = np.bincount(blocks.block_of_lane[votes], minlength=n_blocks)
    alive = np.bincount(blocks.block_of_lane[blocks.alive], minlength=n_blocks)
    outputs = [op for op in ins.operands if op.kind == "predicate"]
    mode = _last_reduction(blocks, ins)
    verdict = count == alive if mode == "AND" else count > 0
    for op in ins.operands:
        if op.kind == "register":
            blocks.registers.write(op.name, count[blocks.block_of_lane].astype(np.uint32), lanes)
    for op in outputs:
        blocks.registers.write_predicate(op.name, verdict[blocks.block_of_lane], lanes)


def _last_reduction(blocks: Blocks, ins: MachineInstruction) -> str:
    before = [
        i for i in blocks.code.instructions if i.address < ins.address and i.opcode.startswith("BAR.RED")
    ]
    return "AND" if before and "AND" in before[-1].modifiers else "OR"
