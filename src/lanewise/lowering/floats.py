"""Floating-point arithmetic of the machine code.

Results can differ from the GPU's in the last bit (approximate reciprocals, fused products rounded twice).
That matters only to a kernel that computes addresses from floats; integer division, which the compiler builds
from float reciprocals and then corrects, comes out exact.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lanewise.lowering.alu import Rule, bits, cut, rules_into, wide
from lanewise.lowering.registers import Array, Registers
from lanewise.lowering.sass import MachineInstruction

FLOAT_RULES: dict[str, Rule] = {}
rule = rules_into(FLOAT_RULES)


@rule("FADD", "FMUL", "FFMA", "FMNMX", "UFADD", "UFMUL", "UFFMA", "FADD32I", "FMUL32I", "FFMA32I")
def _float32(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    _, (dst, *sources), inputs = cut(ins)
    values = [r.f32(op) for op in sources]
    base = ins.base.removeprefix("U").removesuffix("32I")
    if base == "FADD":
        result = values[0] + values[1]
    elif base == "FMUL":
        result = values[0] * values[1]
    elif base == "FMNMX":
        low = r.predicate(inputs[0])
        result = np.where(low, np.fmin(values[0], values[1]), np.fmax(values[0], values[1]))
    else:
        # The product is exact in float64; rounding twice can differ from the fused result in the last bit.
        result = (values[0].astype(np.float64) * values[1] + values[2]).astype(np.float32)
    r.write(dst.name, bits(np.clip(result, 0, 1) if "SAT" in ins.modifiers else result), lanes)


@rule("DADD", "DMUL", "DFMA")
def _float64(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    _, (dst, *sources), _ = cut(ins)
    values = [r.f64(op) for op in sources]
    if ins.base == "DADD":
        result = values[0] + values[1]
    elif ins.base == "DMUL":
        result = values[0] * values[1]
    else:
        extended = values[0].astype(np.longdouble) * values[1] + values[2]
        result = extended.astype(np.float64)
    r.write_pair(dst.name, np.asarray(result), lanes)


@rule("HFMA2")
def _half_constant(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    """The compiler also uses this to load a constant: zero times zero plus two half-precision numbers."""
    _, (dst, a, b, *rest), _ = cut(ins)
    if len(rest) == 2 and {a.name, b.name} == {"RZ"}:
        high, low = (int(np.float16(op.value).view(np.uint16)) for op in rest)
        r.write(dst.name, np.array([high << 16 | low], np.uint32), lanes)
    else:
        r.taint(lanes)
        r.write(dst.name, np.zeros(1, np.uint32), lanes)


_UNARY: dict[str, Callable[[Array], Array]] = {
    "RCP": lambda x: 1 / x,
    "RSQ": lambda x: 1 / np.sqrt(x),
    "SQRT": np.sqrt,
    "EX2": np.exp2,
    "LG2": np.log2,
    "SIN": lambda x: np.sin(x),
    "COS": lambda x: np.cos(x),
    "TANH": np.tanh,
}


@rule("MUFU")
def _special_function(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a = ins.operands[:2]
    name = ins.parts[1]
    if name in ("RCP64H", "RSQ64H"):
        high = wide(r.raw32(a)) << np.uint64(32)
        value = high.view(np.float64) * (-1.0 if a.negated else 1.0)
        result = 1 / value if name == "RCP64H" else 1 / np.sqrt(value)
        r.write(dst.name, result.view(np.uint64) >> np.uint64(32), lanes)
    elif name in _UNARY and "F16" not in ins.modifiers:
        r.write(dst.name, bits(_UNARY[name](r.f32(a).astype(np.float64)).astype(np.float32)), lanes)
    else:
        r.taint(lanes)
        r.write(dst.name, np.zeros(1, np.uint32), lanes)


@rule("FCHK")
def _division_check(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    outputs, (a, b), _ = cut(ins)
    x, y = np.abs(r.f32(a)), np.abs(r.f32(b))
    with np.errstate(all="ignore"):
        quotient = np.abs(x / y)
    usual = (
        (y > 2.0**-125) & (y < 2.0**125) & (quotient > 2.0**-125) & (quotient < 2.0**125) & (x > 2.0**-100)
    )
    r.write_predicate((outputs or [ins.operands[0]])[0].name, ~usual, lanes)


_INTEGERS: dict[str, type[np.integer]] = {
    "U8": np.uint8, "S8": np.int8, "U16": np.uint16, "S16": np.int16,
    "U32": np.uint32, "S32": np.int32, "U64": np.uint64, "S64": np.int64,
}  # fmt: skip


def _integer_type(ins: MachineInstruction) -> type[np.integer]:
    return next((_INTEGERS[part] for part in ins.parts[1:] if part in _INTEGERS), np.int32)


@rule("I2F", "UI2F", "I2FP", "UI2FP")
def _to_float(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a = ins.operands[:2]
    kind = _integer_type(ins)
    if kind in (np.int64, np.uint64):
        value = r.u64(a).view(kind)
    else:
        value = r.u32(a).astype(kind) if np.dtype(kind).itemsize < 4 else r.u32(a).view(kind)
    if "F64" in ins.modifiers:
        r.write_pair(dst.name, value.astype(np.float64), lanes)
        return
    if "F16" in ins.modifiers:
        r.write(dst.name, value.astype(np.float16).view(np.uint16).astype(np.uint32), lanes)
        return
    result = value.astype(np.float32)
    if "RP" in ins.modifiers:  # round towards plus infinity, which the integer division sequence relies on
        low = result.astype(np.longdouble) < value.astype(np.longdouble)
        result = np.where(low, np.nextafter(result, np.float32(np.inf)), result)
    r.write(dst.name, bits(result), lanes)


@rule("F2I", "UF2I")
def _to_integer(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a = ins.operands[:2]
    kind = _integer_type(ins)
    if "F16" in ins.modifiers:
        r.taint(lanes)
    value = (r.f64(a) if "F64" in ins.modifiers else r.f32(a)).astype(np.float64)
    modes = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil}
    whole = next((modes[part] for part in ins.parts if part in modes), np.rint)(value)
    info = np.iinfo(kind)
    whole = np.where(np.isnan(whole), 0, whole)
    inside = (whole > info.min) & (whole < info.max)
    limit = np.where(whole >= info.max, np.array([info.max], kind), np.array([info.min], kind))
    result: Array = np.where(inside, np.where(inside, whole, 0).astype(kind), limit)
    if kind in (np.int64, np.uint64):
        r.write_pair(dst.name, result.view(np.uint64), lanes)
    else:
        r.write(dst.name, result.astype(np.int64).astype(np.uint32), lanes)


@rule("F2F")
def _convert(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a = ins.operands[:2]
    to, source = (*ins.parts[1:], "", "")[:2]
    if (to, source) == ("F64", "F32"):
        r.write_pair(dst.name, r.f32(a).astype(np.float64), lanes)
    elif (to, source) == ("F32", "F64"):
        r.write(dst.name, bits(r.f64(a).astype(np.float32)), lanes)
    else:
        r.taint(lanes)
        r.write(dst.name, np.zeros(1, np.uint32), lanes)


@rule("FRND", "UFRND")
def _round(r: Registers, ins: MachineInstruction, lanes: Array) -> None:
    dst, a = ins.operands[:2]
    modes = {"TRUNC": np.trunc, "FLOOR": np.floor, "CEIL": np.ceil}
    function = next((modes[part] for part in ins.parts if part in modes), np.rint)
    if "F64" in ins.modifiers:
        r.write_pair(dst.name, function(r.f64(a)), lanes)
    elif "F16" in ins.modifiers:
        r.taint(lanes)
        r.write(dst.name, np.zeros(1, np.uint32), lanes)
    else:
        r.write(dst.name, bits(function(r.f32(a))), lanes)
