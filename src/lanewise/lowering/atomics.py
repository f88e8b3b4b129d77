"""Atomic operations of the machine code: read, combine, write; lanes that collide take turns."""

from __future__ import annotations

import numpy as np

from lanewise.lowering.registers import Array, Registers
from lanewise.lowering.sass import MachineInstruction, Operand
from lanewise.lowering.storage import Bytes

_TYPES = {
    "F32": np.float32,
    "F64": np.float64,
    "S32": np.int32,
    "U64": np.uint64,
    "64": np.uint64,
    "S64": np.int64,
}


def apply(r: Registers, ins: MachineInstruction, memory: Bytes, places: Array, lanes: Array) -> None:
    """Perform an atomic for `lanes` at byte `places` of `memory`, and give the old values where asked for."""
    kind = np.dtype(next((_TYPES[part] for part in ins.parts[1:] if part in _TYPES), np.uint32))
    doubt = r.unknown
    address_at = next(i for i, op in enumerate(ins.operands) if op.kind == "address")
    dst = next((op for op in ins.operands[:address_at] if op.kind == "register"), None)
    sources = [op for op in ins.operands[address_at + 1 :] if op.kind != "predicate"]
    values = [_typed(r, op, kind)[lanes] for op in sources]
    where = places[lanes]
    inside = (where >= 0) & (where + kind.itemsize <= memory.data.size)
    slots = np.where(inside, where, 0) // kind.itemsize
    view = memory.data.view(kind)
    old = np.zeros(len(slots), kind)
    for turn in _turns(slots):
        turn = turn[inside[turn]]
        before = view[slots[turn]]
        old[turn] = before
        view[slots[turn]] = _combined(ins, before, [value[turn] for value in values])
    if doubt is not None or r.unknown is not None or memory.unknown is not None:
        if memory.unknown is None:
            memory.unknown = np.zeros(memory.data.size, bool)
        spoilt = np.zeros(len(slots), bool) if r.unknown is None else r.unknown[lanes]
        for i in range(kind.itemsize):
            memory.unknown[slots[spoilt] * kind.itemsize + i] = True
        already = memory.unknown[slots * kind.itemsize]
        full = np.zeros(r.n_lanes, bool)
        full[lanes] = already
        r.taint(full)
    r.contest(lanes)
    if "CAST" in ins.modifiers:  # compare and swap that says whether it happened, not what was there
        success = np.zeros(r.n_lanes, bool)
        success[lanes] = old == values[0]
        for op in ins.operands[:address_at]:
            if op.kind == "predicate":
                r.write_predicate(op.name, success, lanes)
        old = (old == values[0]).astype(kind)
    if dst is not None:
        spread = np.zeros(r.n_lanes, kind)
        spread[lanes] = old
        if kind.itemsize == 8:
            r.write_pair(dst.name, spread.view(np.uint64), lanes)
        else:
            r.write(dst.name, spread.view(np.uint32), lanes)


def _turns(slots: Array) -> list[Array]:
    """Split lanes into turns in which every slot occurs once; lane order is kept for each slot."""
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(slots) else np.zeros(0, np.int64)
    lengths = np.diff(np.r_[starts, len(slots)])
    rank = np.arange(len(slots)) - np.repeat(starts, lengths)
    return [order[rank == turn] for turn in range(int(rank.max()) + 1 if len(rank) else 0)]


def _typed(r: Registers, op: Operand, kind: np.dtype) -> Array:
    value = r.u64(op) if kind.itemsize == 8 else r.u32(op)
    return np.broadcast_to(value, (r.n_lanes,)).view(kind)


def _combined(ins: MachineInstruction, old: Array, values: list[Array]) -> Array:
    parts = ins.modifiers
    if "POPC" in parts:
        return old + np.ones(1, old.dtype)
    if parts & {"CAS", "CAST"}:
        return np.where(old == values[0], values[1], old)
    if "EXCH" in parts:
        return values[0]
    if "ADD" in parts:
        return old + values[0]
    if "MIN" in parts:
        return np.minimum(old, values[0])
    if "MAX" in parts:
        return np.maximum(old, values[0])
    if "INC" in parts:
        return np.where(old >= values[0], np.zeros(1, old.dtype), old + np.ones(1, old.dtype))
    if "DEC" in parts:
        return np.where((old == 0) | (old > values[0]), values[0], old - np.ones(1, old.dtype))
    if "AND" in parts:
        return old & values[0]
    return old ^ values[0] if "XOR" in parts else old | values[0]
