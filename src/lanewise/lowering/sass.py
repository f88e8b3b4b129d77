"""Reading machine code: the text that nvdisasm prints, as data.

The vendor documents the opcodes in a list of names and nothing more, so this module keeps to what the text
shows: opcode, modifiers, operands, and the Python line that the line table gives.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from lanewise.errors import NotModelled

MemorySpace = Literal["shared", "global", "local", "generic"]
Kind = Literal["load", "store", "reduction", "atomic", "async_copy"]


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand as written: a register, a predicate, a number, a constant-bank entry, an address, a label.

    `name` is the register, predicate, special register or label. `negated` is a leading minus, `inverted` a
    leading `~` or `!`, `absolute` bars around it. `value` is an immediate, or the offset of an address or
    constant. `uniform` and `scale` belong to addresses: `[R9.X4+UR5+0x10]`.
    """

    kind: Literal["register", "predicate", "integer", "float", "constant", "address", "label", "other"]
    name: str = ""
    negated: bool = False
    inverted: bool = False
    absolute: bool = False
    value: float = 0
    suffixes: tuple[str, ...] = ()
    bank: int = 0
    uniform: str = ""
    scale: int = 1


@dataclass(frozen=True)
class MachineInstruction:
    """One instruction of the machine code, with the source line that the compiler's line table gives it.

    `opcode` is the name with its modifiers (`LDS.128`), `address` its byte position in the code, `predicate`
    the guard (`@!P0`) or empty, `line` and `file` are 0 and empty where the table has none. `space`, `kind`
    and `bytes_per_lane` describe memory instructions and are empty, empty and 0 for the others.
    """

    address: int
    opcode: str
    operands: tuple[Operand, ...]
    predicate: str
    line: int
    file: str
    text: str

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The opcode cut at its dots: `("LDS", "128")`."""
        return tuple(self.opcode.split("."))

    @property
    def base(self) -> str:
        """The opcode without modifiers."""
        return self.parts[0]

    @cached_property
    def modifiers(self) -> frozenset[str]:
        """The modifiers, as a set."""
        return frozenset(self.parts[1:])

    @property
    def space(self) -> MemorySpace | Literal[""]:
        """The memory it touches, or empty."""
        return _MEMORY[self.base][0] if self.base in _MEMORY else ""

    @property
    def kind(self) -> Kind | Literal[""]:
        """What it does to memory, or empty."""
        return _MEMORY[self.base][1] if self.base in _MEMORY else ""

    @cached_property
    def bytes_per_lane(self) -> int:
        """Bytes that one addressing lane moves; 0 for an instruction that touches no memory."""
        if not self.space:
            return 0
        if self.base in ("LDSM", "STSM"):
            return 16
        for part in self.parts[1:]:
            if part in _WIDTHS:
                return _WIDTHS[part]
        return 4

    @property
    def is_memory(self) -> bool:
        """Whether it reads or writes shared, global, local or generic memory."""
        return bool(self.space)

    @property
    def model_name(self) -> str:
        """The name of this access in `lanewise.instructions`, or empty where the model has none."""
        return _model_name(self)

    @property
    def address_operand(self) -> Operand | None:
        """The operand in square brackets that this instruction addresses memory with."""
        return next((operand for operand in self.operands if operand.kind == "address"), None)

    @property
    def address_register(self) -> str:
        """The register that holds the address, such as `R20`; empty for an absolute address."""
        operand = self.address_operand
        return (operand.name or operand.uniform) if operand else ""

    @property
    def offset(self) -> int:
        """The constant byte offset added to the address register."""
        return int(self.address_operand.value) if self.address_operand else 0

    def __str__(self) -> str:
        return self.text


_MEMORY: dict[str, tuple[MemorySpace, Kind]] = {
    "LDS": ("shared", "load"),
    "STS": ("shared", "store"),
    "LDSM": ("shared", "load"),
    "STSM": ("shared", "store"),
    "ATOMS": ("shared", "atomic"),
    "LDG": ("global", "load"),
    "STG": ("global", "store"),
    "ATOMG": ("global", "atomic"),
    "RED": ("global", "reduction"),
    "REDG": ("global", "reduction"),
    "LDGSTS": ("shared", "async_copy"),
    "LDL": ("local", "load"),
    "STL": ("local", "store"),
    "LD": ("generic", "load"),
    "ST": ("generic", "store"),
    "ATOM": ("generic", "atomic"),
}
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "32": 4, "64": 8, "128": 16, "256": 32}


def _model_name(ins: MachineInstruction) -> str:
    bits = 8 * ins.bytes_per_lane
    if ins.base in ("LDSM", "STSM"):
        n_matrices = next((part for part in ins.parts[1:] if part in ("2", "4")), "1")
        trans = ".trans" if any(part.startswith("MT") for part in ins.parts) else ""
        return f"{'ldmatrix' if ins.base == 'LDSM' else 'stmatrix'}.x{n_matrices}{trans}"
    if ins.base == "LDGSTS":
        return f"cp.async.{'cg' if 'BYPASS' in ins.modifiers else 'ca'}.{ins.bytes_per_lane}"
    if ins.base == "ATOMS":
        return "red.shared.add.u32" if ins.opcode == "ATOMS.ADD" else ""
    if ins.space in ("shared", "global") and ins.kind in ("load", "store") and bits <= 128:
        return f"{'ld' if ins.kind == 'load' else 'st'}.{ins.space}.b{bits}"
    return ""


@dataclass(frozen=True)
class MachineCode:
    """The instructions of one kernel in order, and the byte address of each label."""

    instructions: tuple[MachineInstruction, ...]
    labels: dict[str, int]

    @cached_property
    def at(self) -> dict[int, MachineInstruction]:
        """Look instructions up by byte address."""
        return {ins.address: ins for ins in self.instructions}

    @cached_property
    def bytes_per_instruction(self) -> int:
        """Distance between neighbouring instructions (bytes)."""
        return self.instructions[1].address - self.instructions[0].address


_LINE = re.compile(r'//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_CODE = re.compile(
    r"/\*(?P<address>[0-9a-f]{4,})\*/\s+(?P<guard>@!?U?P\w+\s+)?(?P<opcode>[A-Z0-9_.]+)(?P<rest>[^;]*);"
)
_LABEL = re.compile(r"^(?P<label>[.$\w]+):$")
_REMARK = re.compile(r"\(\*.*?\*\)")  # (*"SpillRefill"*), behind the operands


def parse(listing: str, kernel: str) -> MachineCode:
    """Read nvdisasm's text and keep the code section of `kernel` (its mangled name).

    >>> text = '.text.k:' + chr(10) + '        /*0000*/  @P0 LDS.128 R8, [R20+0x10] ;'
    >>> [(i.opcode, i.bytes_per_lane, i.offset) for i in parse(text, "k").instructions]
    [('LDS.128', 16, 16)]
    """
    instructions: list[MachineInstruction] = []
    labels: dict[str, int] = {}
    waiting: list[str] = []
    inside, line, file = False, 0, ""
    for text in listing.splitlines():
        if label := _LABEL.match(text):
            name = label["label"]
            if name.startswith(".text."):
                inside = name == f".text.{kernel}"
            waiting.append(name)
        elif not inside:
            continue
        elif (where := _LINE.search(text)) and text.lstrip().startswith("//##"):
            # With inlining, the first line of a run is the innermost place; "inlined at" lines follow.
            line, file = int(where["line"]), where["file"]
        elif code := _CODE.search(text):
            address = int(code["address"], 16)
            labels.update(dict.fromkeys(waiting, address))
            waiting.clear()
            instructions.append(_instruction(code, line, file))
    if not instructions:
        raise NotModelled(f"The disassembly holds no code for {kernel}: nvdisasm printed an unknown format.")
    return MachineCode(tuple(instructions), labels)


def _instruction(code: re.Match[str], line: int, file: str) -> MachineInstruction:
    guard = (code["guard"] or "").strip()
    rest = _REMARK.sub("", code["rest"])
    words = f"{code['opcode']}{rest}".strip()
    return MachineInstruction(
        address=int(code["address"], 16),
        opcode=code["opcode"],
        operands=tuple(operand(text) for text in _split(rest)),
        predicate=guard,
        line=line,
        file=file,
        text=f"{guard} {words}".strip(),
    )


def _split(rest: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for char in rest.strip():
        depth += (char in "[(") - (char in "])")
        if char == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += char
    parts.append(current.strip())
    # A branch writes its condition and target without a comma, and RET its register: `R6 `(name)`.
    return [piece for part in parts for piece in _cut_label(part) if piece]


def _cut_label(part: str) -> tuple[str, ...]:
    if "`(" in part and not part.startswith("`("):
        head, _, tail = part.partition("`(")
        return head.strip(), f"`({tail}"
    return (part,)


_REGISTER = re.compile(r"^(-)?(~)?(\|)?(U?R(?:\d+|Z))\|?((?:\.\w+)*)\|?$")
_PREDICATE = re.compile(r"^(!|~)?(U?P(?:\d|T))((?:\.\w+)*)$")
_CONSTANT = re.compile(r"^(-)?(~)?(\|)?c\[0x([0-9a-f]+)\]\s*\[([^\]]*)\]\|?((?:\.\w+)*)$")
_TERM = re.compile(r"^(U?R(?:\d+|Z))((?:\.\w+)*)$")


def operand(text: str) -> Operand:
    """Read one operand; `operand("-R4.reuse").negated` is True."""
    if match := _REGISTER.match(text):
        minus, tilde, bar, name, tail = match.groups()
        return Operand("register", name, bool(minus), bool(tilde), bool(bar), suffixes=_tail(tail))
    if match := _PREDICATE.match(text):
        inverted, name, tail = match.groups()
        return Operand("predicate", name, inverted=bool(inverted), suffixes=_tail(tail))
    if match := _CONSTANT.match(text):
        minus, tilde, bar, bank, inner, tail = match.groups()
        place = _address(inner)
        signs = bool(minus), bool(tilde), bool(bar)
        return Operand(
            "constant", place.name or place.uniform, *signs, place.value, _tail(tail), int(bank, 16)
        )
    if text.startswith("`("):
        return Operand("label", text[2:-1])
    if text.startswith("desc["):
        return operand(text[text.index("]") + 1 :].strip())
    if text.startswith("["):
        return _address(text[1 : text.index("]")])
    return _number(text)


def _tail(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(".") if part and part != "reuse")


def _address(inner: str) -> Operand:
    name, uniform, offset, scale = "", "", 0, 1
    suffixes: tuple[str, ...] = ()
    for term in inner.replace("+-", "+ -").replace(" ", "").replace("+-", "+~").split("+"):
        term = term.replace("~", "-")
        if match := _TERM.match(term):
            if match[1].startswith("U"):
                uniform = match[1]
            else:
                name, suffixes = match[1], _tail(match[2])
                scale = next((int(part[1:]) for part in suffixes if re.fullmatch(r"X\d+", part)), 1)
        elif term:
            offset += int(term, 16)
    return Operand("address", name, value=offset, suffixes=suffixes, uniform=uniform, scale=scale)


def _number(text: str) -> Operand:
    bare = text.strip()
    try:
        return Operand("integer", value=int(bare, 16 if "0x" in bare else 10))
    except ValueError:
        pass
    special = {"+INF": math.inf, "-INF": -math.inf, "INF": math.inf, "+QNAN": math.nan, "-QNAN": math.nan}
    try:
        return Operand("float", value=special[bare] if bare in special else float(bare))
    except ValueError:
        return Operand("other", bare)
