"""Arithmetic of the machine code: what each opcode computes from its operands.

The vendor publishes no semantics. The rules here are the usual reading of the opcodes, and three tests hold
them: every kernel's results equal the source run and NumPy, and counts equal hardware counters. Integer
opcodes are exact. Floating-point ones may differ from the GPU in the last bit, which matters only to a kernel
that computes addresses from floats.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lanewise.lowering.registers import Array, Registers, following
from lanewise.lowering.sass import MachineInstruction, Operand

Rule = Callable[[Registers, MachineInstruction, Array], None]
RULES: dict[str, Rule] = {}

# Results that no address should depend on: marked unknown. The number is how many registers are written.
UNKNOWN_RESULTS = {
    "HMMA": 4, "IMMA": 4, "DMMA": 4, "BMMA": 2, "QMMA": 4, "OMMA": 4, "HGMMA": 0,
    "F2FP": 1, "HADD2": 1, "HMUL2": 1, "HFMA2": 1, "HSET2": 1, "HSETP2": 0, "HMNMX2": 1, "MOVM": 1,
    "FSWZADD": 1, "DMNMX": 2, "I2I": 1, "TEX": 4, "TLD": 4, "QSPC": 1, "IDP": 1, "VABSDIFF": 1,
    "VABSDIFF4": 1, "CS2UR": 2, "GETLMEMBASE": 2,
}  # fmt: skip


def rules_into(table: dict[str, Rule]) -> Callable[..., Callable[[Rule], Rule]]:
    """A decorator that enters a rule in `table` under opcode names; a leading U names the uniform twin."""

    def rule(*names: str) -> Callable[[Rule], Rule]:
        def register(function: Rule) -> Rule:
            table.update(dict.fromkeys(names, function))
            return function

        return register

    return rule


rule = rules_into(RULES)


def cut(ins: MachineInstruction) -> tuple[list[Operand], list[Operand], list[Operand]]:
    """Split operands into predicates before the sources (outputs), values, and predicates after (inputs).

    The destination register, if there is one, is the first value.
    """
    values = [op for op in ins.operands if op.kind != "predicate"]
    place = {id(op): i for i, op in enumerate(ins.operands)}
    last_value = max((place[id(op)] for op in values), default=-1)
    first = [op for op in ins.operands[:last_value] if op.kind == "predicate"]
    return first, values, [op for op in ins.operands[last_value + 1 :] if op.kind == "predicate"]


def wide(value: Array) -> Array:
    """As uint64."""
    return value.astype(np.uint64)


def bits(value: Array) -> Array:
    """The bits of float32 values."""
    return np.asarray(value, np.float32).view(np.uint32)


@rule("MOV", "UMOV", "R2UR", "UR2R", "MOV32I")
def _mov(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    _, (dst, src, *_), _ = cut(ins)
    if "64" in ins.modifiers:
        r.write_pair(dst.name, r.u64(src), lanes)
    else:
        r.write(dst.name, r.u32(src), lanes)


@rule("IADD3", "UIADD3", "IADD", "UIADD", "VIADD", "UVIADD", "IADD32I")
def _add(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    carries_out, (dst, *sources), carries_in = cut(ins)
    if "64" in ins.modifiers:
        _add64(r, ins, lanes)
        return
    total = np.zeros(1, np.uint64)
    carried = []
    for source in sources:
        # A minus inverts and adds one, without wrapping: the carry of a - b tells a >= b.
        value = wide(r.raw32(source))
        if source.inverted or source.negated:
            value = value ^ np.uint64(0xFFFFFFFF)
        total = (total & np.uint64(0xFFFFFFFF)) + value + np.uint64(source.negated)
        carried.append(total >> np.uint64(32) != 0)
    if "X" in ins.modifiers:
        for carry in carries_in:
            total = (total & np.uint64(0xFFFFFFFF)) + r.predicate(carry)
            carried.append(total >> np.uint64(32) != 0)
    r.write(dst.name, total & np.uint64(0xFFFFFFFF), lanes)
    _write_carries(r, carries_out, carried, lanes)


def _write_carries(r: Registers, outputs: list[Operand], carried: list[Array], lanes: Array) -> None:
    """Give the carries out: two outputs share them, so that adding both continues the sum."""
    if not outputs:
        return
    count = np.add.reduce(np.broadcast_arrays(*(carry.astype(np.uint8) for carry in carried)))
    r.write_predicate(outputs[0].name, count >= 1, lanes)
    if len(outputs) > 1:
        r.write_predicate(outputs[1].name, count >= 2, lanes)


def _add64(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    _, (dst, *sources), _ = cut(ins)
    total = np.zeros(1, np.uint64)
    for source in sources:
        total = total + r.u64(source)
    r.write_pair(dst.name, total, lanes)


@rule("IMAD", "UIMAD")
def _multiply_add(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    carries_out, (dst, a, b, c), carries_in = cut(ins)
    if ins.modifiers & {"WIDE", "HI"}:
        product = _product64(r, a, b, unsigned="U32" in ins.modifiers)
        addend = r.u64(c)
        total = product + addend
        carried = [total < product]
        if "X" in ins.modifiers and carries_in:
            total = total + r.predicate(carries_in[0]).astype(np.uint64)
            carried.append((total == 0) & r.predicate(carries_in[0]))
        if "HI" in ins.modifiers:
            r.write(dst.name, total >> np.uint64(32), lanes)
        else:
            r.write_pair(dst.name, total, lanes)
        _write_carries(r, carries_out, carried, lanes)
        return
    addend = wide(r.raw32(c))
    if c.inverted or c.negated:
        addend = (addend ^ np.uint64(0xFFFFFFFF)) + np.uint64(c.negated)
    total = wide(r.u32(a) * r.u32(b)) + addend
    if "X" in ins.modifiers and carries_in:
        total = total + r.predicate(carries_in[0])
    r.write(dst.name, total & np.uint64(0xFFFFFFFF), lanes)
    _write_carries(r, carries_out, [total >> np.uint64(32) != 0], lanes)


def _product64(r: Registers, a: Operand, b: Operand, unsigned: bool) -> Array:
    if unsigned:
        factors = [wide(r.raw32(op)) for op in (a, b)]
        for i, op in enumerate((a, b)):
            if op.negated:
                factors[i] = ~factors[i] + np.uint64(1)
        return factors[0] * factors[1]
    signed = [r.raw32(op).view(np.int32).astype(np.int64) * (-1 if op.negated else 1) for op in (a, b)]
    return (signed[0] * signed[1]).view(np.uint64)


@rule("LEA", "ULEA")
def _scaled_add(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    carries_out, (dst, a, b, *rest), carries_in = cut(ins)
    shift = np.uint64(int(rest[-1].value) & 31)
    value = wide(r.raw32(a))
    if "SX32" in ins.modifiers:
        value = r.raw32(a).view(np.int32).astype(np.int64).view(np.uint64)
    elif "HI" in ins.modifiers:
        value = value | (wide(r.raw32(rest[0])) << np.uint64(32))
    if a.negated:
        value = ~value + np.uint64(1)
    scaled = value << shift
    scaled = scaled >> np.uint64(32) if "HI" in ins.modifiers else scaled & np.uint64(0xFFFFFFFF)
    addend = wide(r.raw32(b))
    if b.inverted or b.negated:
        addend = (addend ^ np.uint64(0xFFFFFFFF)) + np.uint64(b.negated)
    total = scaled + addend
    if "X" in ins.modifiers and carries_in:
        total = total + r.predicate(carries_in[0])
    r.write(dst.name, total & np.uint64(0xFFFFFFFF), lanes)
    _write_carries(r, carries_out, [total >> np.uint64(32) != 0], lanes)


@rule("SHF", "USHF")
def _funnel_shift(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, low, amount, high = ins.operands[:4]
    wide64 = bool(ins.modifiers & {"U64", "S64"})
    signed = bool(ins.modifiers & {"S32", "S64"})
    limit = 64 if wide64 else 32
    n = r.u32(amount).astype(np.int64)
    n = n & (limit - 1) if "W" in ins.modifiers else np.minimum(n, limit)
    pair = wide(r.u32(low)) | (wide(r.u32(high)) << np.uint64(32))
    at_most_63 = np.minimum(n, 63)
    if "L" in ins.modifiers:
        shifted = np.where(n > 63, np.uint64(0), pair << at_most_63.astype(np.uint64))
    elif signed:
        shifted = (pair.view(np.int64) >> at_most_63).view(np.uint64)
    else:
        shifted = np.where(n > 63, np.uint64(0), pair >> at_most_63.astype(np.uint64))
    r.write(
        dst.name,
        shifted >> np.uint64(32) if "HI" in ins.modifiers else shifted & np.uint64(0xFFFFFFFF),
        lanes,
    )


@rule("SHL", "USHL")
def _shift_left(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a, amount = ins.operands[:3]
    n = r.u32(amount)
    r.write(dst.name, np.where(n > 31, np.uint32(0), r.u32(a) << np.minimum(n, 31)), lanes)


@rule("SHR", "USHR")
def _shift_right(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a, amount = ins.operands[:3]
    n = np.minimum(r.u32(amount), 31)
    value = r.u32(a) >> n if "U32" in ins.modifiers else (r.s32(a) >> n.astype(np.int32)).view(np.uint32)
    r.write(dst.name, value, lanes)


def _lookup(a: Array, b: Array, c: Array, table: int) -> Array:
    """Apply a three-input truth table: bit `4 a + 2 b + c` of `table`."""
    result = np.zeros(1, a.dtype)
    for index in range(8):
        if table >> index & 1:
            term = (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
            result = result | term
    return result


@rule("LOP3", "ULOP3")
def _logic(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    outputs, (dst, a, b, c, table), inputs = cut(ins)
    value = _lookup(r.u32(a), r.u32(b), r.u32(c), int(table.value))
    r.write(dst.name, value, lanes)
    if outputs:
        nonzero, other = value != 0, r.predicate(inputs[0])
        r.write_predicate(
            outputs[0].name, nonzero & other if "PAND" in ins.modifiers else nonzero | other, lanes
        )


@rule("LOP", "LOP32I")
def _logic2(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    _, (dst, a, b, *_), _ = cut(ins)
    x, y = r.u32(a), r.u32(b)
    r.write(dst.name, x & y if "AND" in ins.modifiers else x | y if "OR" in ins.modifiers else x ^ y, lanes)


@rule("PLOP3", "UPLOP3")
def _predicate_logic(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    predicates = [op for op in ins.operands if op.kind == "predicate"]
    tables = [int(op.value) for op in ins.operands if op.kind == "integer"]
    a, b, c = (r.predicate(op) for op in predicates[2:5])
    results = [_lookup(a, b, c, table) for table in tables]
    for output, result in zip(predicates[:2], results, strict=False):
        r.write_predicate(output.name, result, lanes)


_COMPARE = {"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal, "EQ": np.equal}
_JOIN = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}


def _comparison(name: str, a: Array, b: Array) -> Array:
    if name == "NE":
        return a != b
    if name in _COMPARE:
        return np.asarray(_COMPARE[name](a, b))
    if name in ("F", "T"):
        return np.full(1, name == "T")
    unordered = np.isnan(a) | np.isnan(b)
    if name in ("NUM", "NAN"):
        return ~unordered if name == "NUM" else unordered
    return _comparison(name[:-1], a, b) | unordered  # GEU, NEU, ...: true for not-a-number as well


@rule("ISETP", "UISETP", "FSETP", "DSETP", "UFSETP", "UDSETP")
def _set_predicate(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    outputs, (a, b), inputs = cut(ins)
    if ins.parts[1] in ("MAX", "MIN"):  # part of a float minimum: no address depends on it
        r.taint(lanes)
        value = np.zeros(1, bool)
    elif ins.base.startswith(("F", "UF")):
        value = _comparison(ins.parts[1], r.f32(a), r.f32(b))
    elif ins.base.startswith("D"):
        value = _comparison(ins.parts[1], r.f64(a), r.f64(b))
    elif ins.modifiers & {"S64", "U64"}:
        kind = np.int64 if "S64" in ins.modifiers else np.uint64
        value = _comparison(ins.parts[1], r.u64(a).view(kind), r.u64(b).view(kind))
    elif "U32" in ins.modifiers:
        value = _comparison(ins.parts[1], r.u32(a), r.u32(b))
    else:
        value = _comparison(ins.parts[1], r.s32(a), r.s32(b))
    if "EX" in ins.modifiers:
        value = _extended(ins, value, r.u32(a) == r.u32(b), r.predicate(inputs[1]))
    joining = next((_JOIN[part] for part in ins.parts if part in _JOIN), np.logical_and)
    other = r.predicate(inputs[0]) if inputs else np.ones(1, bool)
    r.write_predicate(outputs[0].name, joining(value, other), lanes)
    if len(outputs) > 1:
        r.write_predicate(outputs[1].name, joining(~value, other), lanes)


def _extended(ins: MachineInstruction, high: Array, equal: Array, low: Array) -> Array:
    """Join the comparison of the high words with that of the low words."""
    name = ins.parts[1]
    if name == "NE":
        return high | low
    if name == "EQ":
        return high & low
    return (high & ~equal) | (equal & low)


@rule("SEL", "USEL", "FSEL", "UFSEL")
def _select(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    _, (dst, a, b), (chosen, *_) = cut(ins)
    condition = r.predicate(chosen)
    if "64" in ins.modifiers:
        r.write_pair(dst.name, np.where(condition, r.u64(a), r.u64(b)), lanes)
    elif ins.base.endswith("FSEL"):
        r.write(dst.name, np.where(condition, bits(r.f32(a)), bits(r.f32(b))), lanes)
    else:
        r.write(dst.name, np.where(condition, r.u32(a), r.u32(b)), lanes)


@rule("IMNMX", "UIMNMX", "VIMNMX", "UVIMNMX", "VIMNMX3")
def _min_max(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    _, (dst, a, b), (least, *_) = cut(ins)
    low = r.predicate(least)
    if ins.modifiers & {"S64", "U64"}:
        kind = np.int64 if "S64" in ins.modifiers else np.uint64
        x, y = r.u64(a).view(kind), r.u64(b).view(kind)
        r.write_pair(dst.name, np.where(low, np.minimum(x, y), np.maximum(x, y)).view(np.uint64), lanes)
    else:
        x, y = (r.u32(a), r.u32(b)) if "U32" in ins.modifiers else (r.s32(a), r.s32(b))
        r.write(dst.name, np.where(low, np.minimum(x, y), np.maximum(x, y)).view(np.uint32), lanes)


@rule("VIADDMNMX", "UVIADDMNMX")
def _add_min_max(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    _, (dst, a, b, c), (least, *_) = cut(ins)
    if ins.modifiers - {"U32"}:
        r.taint(lanes)
    kind = np.uint32 if "U32" in ins.modifiers else np.int32
    x, y = (r.u32(a) + r.u32(b)).view(kind), r.u32(c).view(kind)
    r.write(dst.name, np.where(r.predicate(least), np.minimum(x, y), np.maximum(x, y)).view(np.uint32), lanes)


@rule("IABS", "UIABS")
def _absolute(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a = ins.operands[:2]
    r.write(dst.name, np.abs(r.s32(a)).view(np.uint32), lanes)


@rule("PRMT", "UPRMT")
def _permute(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    _, (dst, a, selector, c), _ = cut(ins)
    if ins.modifiers:
        r.taint(lanes)
    pair = wide(r.u32(a)) | (wide(r.u32(c)) << np.uint64(32))
    chosen = wide(r.u32(selector))
    value = np.zeros(1, np.uint64)
    for byte in range(4):
        nibble = (chosen >> np.uint64(4 * byte)) & np.uint64(15)
        picked = (pair >> ((nibble & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
        sign = np.where(picked & np.uint64(128), np.uint64(255), np.uint64(0))
        value = value | (np.where(nibble & np.uint64(8), sign, picked) << np.uint64(8 * byte))
    r.write(dst.name, value, lanes)


@rule("POPC", "UPOPC")
def _popcount(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a = ins.operands[:2]
    r.write(dst.name, np.bitwise_count(r.u32(a)), lanes)


@rule("FLO", "UFLO")
def _leading_one(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    _, (dst, a), _ = cut(ins)
    value = r.u32(a)
    if "U32" not in ins.modifiers:
        value = np.where(value.view(np.int32) < 0, ~value, value)
    place = np.frexp(value.astype(np.float64))[1] - 1
    place = np.where(value == 0, -1, 31 - place if "SH" in ins.modifiers else place)
    r.write(dst.name, place.astype(np.int64).astype(np.uint32), lanes)


@rule("BREV", "UBREV")
def _reverse(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a = ins.operands[:2]
    value = r.u32(a)
    for shift, keep in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0xFFFF)):
        s, k = np.uint32(shift), np.uint32(keep)
        value = ((value >> s) & k) | ((value & k) << s)
    r.write(dst.name, value, lanes)


@rule("BMSK", "UBMSK")
def _bit_mask(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, start, width = ins.operands[:3]
    first, n = r.u32(start).astype(np.int64) & 31, np.minimum(r.u32(width).astype(np.int64), 32)
    r.write(dst.name, ((((1 << n) - 1) << first) & 0xFFFFFFFF).astype(np.uint32), lanes)


@rule("SGXT", "USGXT")
def _sign_extend(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a, width = ins.operands[:3]
    n = np.clip(r.u32(width).astype(np.int64), 1, 32)
    low = r.u32(a).astype(np.int64) & ((1 << n) - 1)
    if "U32" not in ins.modifiers:
        low = np.where(low >> (n - 1) & 1, low - (1 << n), low)
    r.write(dst.name, (low & 0xFFFFFFFF).astype(np.uint32), lanes)


@rule("P2R", "UP2UR")
def _predicates_to_register(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    """Pack P0..P6 into the bits of the mask; the other bits come from the register operand."""
    dst, _, kept, mask = ins.operands[:4]
    stem = "UP" if ins.base.startswith("U") else "P"
    value = np.zeros(1, np.uint32)
    for i in range(7):
        value = value | (r.guard(f"{stem}{i}", inverted=False).astype(np.uint32) << np.uint32(i))
    chosen = r.u32(mask)
    if ins.modifiers:
        r.taint(lanes)
    r.write(dst.name, (value & chosen) | (r.u32(kept) & ~chosen), lanes)


@rule("R2P", "UR2UP")
def _register_to_predicates(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    *_, src, keep = ins.operands
    value, mask = r.u32(src), int(keep.value)
    for i in range(7):
        if mask >> i & 1:
            r.write_predicate(f"P{i}", (value >> np.uint32(i) & np.uint32(1)) != 0, lanes)


def unknown_result(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    """Write nothing but "unknown" to the destination of an opcode whose values no address should need."""
    r.taint(lanes)
    for op in ins.operands[:1]:
        for word in range(UNKNOWN_RESULTS[ins.base]):
            r.write(following(op.name, word), np.zeros(1, np.uint32), lanes)
    for op in ins.operands[:2]:
        if op.kind == "predicate":
            r.write_predicate(op.name, np.zeros(1, bool), lanes)
