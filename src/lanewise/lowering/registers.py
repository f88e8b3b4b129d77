"""The registers and predicates of many lanes at once, each value known or unknown.

Every register is a `uint32` array over lanes. What cannot be computed (a Tensor Core product, a clock) is
marked *unknown*, and whatever depends on it becomes unknown too. An address or a branch that depends on an
unknown value is then reported, never guessed. In the same way, values that depend on which of several atomics
came first are marked *contested*: they are those of one possible run. Uniform registers are kept per lane
like the others: a warp's lanes then hold equal values.
"""

from __future__ import annotations

import struct

import numpy as np

from lanewise.lowering.sass import Operand

Array = np.ndarray
_ZERO32 = np.zeros(1, np.uint32)
_TRUE = np.ones(1, bool)


class Registers:
    """Register file of `n_lanes` lanes, with the constant banks that operands may name.

    Reading gathers in `unknown` (None, or a bool array over lanes) whether any operand read since `begin` was
    unknown; writing passes it on to the destination. `contested` does so for values that depend on the order
    of atomics. `control` holds the lanes (or None) for which that order decides whether they execute the
    present instruction at all.
    """

    def __init__(self, n_lanes: int, constants: dict[int, bytes]) -> None:
        self.n_lanes = n_lanes
        self.values: dict[str, Array] = {}
        self.unknown_in: dict[str, Array] = {}
        self.unknown: Array | None = None
        self.contested_in: dict[str, Array] = {}
        self.contested: Array | None = None
        self.control: Array | None = None
        self._constants = constants
        self._words: dict[tuple[int, int], Array] = {}

    def begin(self) -> None:
        """Forget what was read before."""
        self.unknown, self.contested = None, self.control

    def begin_instruction(self, contested: Array) -> None:
        """Start an instruction of which the lanes `contested` got here by the order of atomics."""
        self.control = contested if contested.any() else None
        self.begin()

    def depend_on(self, guard: str) -> None:
        """Whether lanes execute the instruction depends on the predicate `guard` as well."""
        if guard in self.contested_in:
            mine = self.contested_in[guard]
            self.control = mine if self.control is None else self.control | mine

    def taint(self, lanes: Array) -> None:
        """Mark what is being computed as unknown in `lanes` (bools)."""
        self.unknown = lanes if self.unknown is None else self.unknown | lanes

    def contest(self, lanes: Array) -> None:
        """Mark what is being computed as contested in `lanes` (bools)."""
        self.contested = lanes if self.contested is None else self.contested | lanes

    # Reading

    def register(self, name: str) -> Array:
        """The value of one 32-bit register."""
        if name in ("RZ", "URZ", ""):
            return _ZERO32
        self._note(name)
        value = self.values.get(name)
        return _ZERO32 if value is None else value

    def predicate(self, operand: Operand) -> Array:
        """The value of a predicate, inverted if the operand says so."""
        return self.guard(operand.name, operand.inverted)

    def guard(self, name: str, inverted: bool) -> Array:
        """The value of the predicate `name`: bools over lanes, or one bool for all."""
        if name in ("PT", "UPT"):
            value = _TRUE
        else:
            self._note(name)
            value = self.values.get(name, ~_TRUE)
        return ~value if inverted else value

    def _note(self, name: str) -> None:
        if name in self.unknown_in:
            self.taint(self.unknown_in[name])
        if name in self.contested_in:
            self.contest(self.contested_in[name])

    def raw32(self, operand: Operand, word: int = 0) -> Array:
        """The 32 bits of an operand, before any sign: word 0 is the low one of a pair or quad."""
        if operand.kind == "register":
            return self.register(following(operand.name, word))
        if operand.kind == "constant":
            return self.constant(operand.bank, operand.name, int(operand.value) + 4 * word)
        if operand.kind == "integer":
            return np.array([(int(operand.value) >> (32 * word)) & 0xFFFFFFFF], np.uint32)
        if operand.kind == "float":
            return np.array([struct.unpack("<I", struct.pack("<f", operand.value))[0]], np.uint32)
        raise KeyError(operand.kind)

    def u32(self, operand: Operand) -> Array:
        """A 32-bit integer operand, with its minus or inversion applied."""
        value = self.raw32(operand)
        if operand.inverted:
            value = ~value
        return (~value + np.uint32(1)) if operand.negated else value

    def s32(self, operand: Operand) -> Array:
        """The same, read as signed."""
        return self.u32(operand).view(np.int32)

    def u64(self, operand: Operand) -> Array:
        """A 64-bit integer operand: a register pair, two constants, or an immediate."""
        if operand.kind == "integer":
            value = np.array([int(operand.value) & 0xFFFFFFFFFFFFFFFF], np.uint64)
        else:
            low, high = self.raw32(operand).astype(np.uint64), self.raw32(operand, 1).astype(np.uint64)
            value = low | (high << np.uint64(32))
        if operand.inverted:
            value = ~value
        return (~value + np.uint64(1)) if operand.negated else value

    def f32(self, operand: Operand) -> Array:
        """A float32 operand; an integer immediate is the number it writes, as `FADD R0, R1, 1` does."""
        if operand.kind == "integer":
            return np.array([operand.value], np.float32)
        return _signed(self.raw32(operand).view(np.float32), operand)

    def f64(self, operand: Operand) -> Array:
        """A float64 operand, from a register pair or an immediate."""
        if operand.kind in ("integer", "float"):
            return np.array([operand.value], np.float64)
        low, high = self.raw32(operand).astype(np.uint64), self.raw32(operand, 1).astype(np.uint64)
        return _signed((low | (high << np.uint64(32))).view(np.float64), operand)

    def constant(self, bank: int, index: str, offset: int) -> Array:
        """A word of a constant bank; unknown where the file and the launch do not say it."""
        data = self._constants.get(bank, b"")
        if index not in ("", "RZ", "URZ"):
            places = (self.register(index).astype(np.int64) + offset) & 0xFFFFFFFF
            inside = (places >= 0) & (places + 4 <= len(data))
            self.taint(np.broadcast_to(~inside, (self.n_lanes,)))
            words = np.frombuffer(data[: len(data) // 4 * 4] or b"\0\0\0\0", np.uint32)
            return words[np.where(inside, places, 0) // 4]
        if offset + 4 > len(data):
            self.taint(np.ones(self.n_lanes, bool))
            return _ZERO32
        key = (bank, offset)
        if key not in self._words:
            self._words[key] = np.frombuffer(data, np.uint32, 1, offset).copy()
        return self._words[key]

    # Writing

    def write(self, name: str, value: Array, lanes: Array) -> None:
        """Set a 32-bit register in `lanes`; unknown where anything read was."""
        if name in ("RZ", "URZ"):
            return
        self._store(name, np.asarray(value).astype(np.uint32, copy=False), lanes, np.uint32)

    def write_pair(self, name: str, value: Array, lanes: Array) -> None:
        """Set a register pair from 64-bit integers or floats."""
        bits = value.view(np.uint64) if value.dtype == np.float64 else value.astype(np.uint64, copy=False)
        if name not in ("RZ", "URZ"):
            self.write(name, bits.astype(np.uint32), lanes)
            self.write(following(name, 1), (bits >> np.uint64(32)).astype(np.uint32), lanes)

    def write_predicate(self, name: str, value: Array, lanes: Array) -> None:
        """Set a predicate in `lanes`."""
        if name not in ("PT", "UPT"):
            self._store(name, value, lanes, np.bool_)

    def _store(self, name: str, value: Array, lanes: Array, dtype: type) -> None:
        target = self.values.get(name)
        if target is None:
            target = self.values[name] = np.zeros(self.n_lanes, dtype)
        np.copyto(target, value, where=lanes)
        self._pass_on(self.unknown_in, name, self.unknown, lanes)
        self._pass_on(self.contested_in, name, self.contested, lanes)
        if self.control is not None:  # a lane that keeps its old value does so for the same reason
            self.contested_in[name] = self.contested_in.get(name, self.control) | self.control

    def _pass_on(self, marks: dict[str, Array], name: str, mark: Array | None, lanes: Array) -> None:
        if mark is not None or name in marks:
            held = marks.setdefault(name, np.zeros(self.n_lanes, bool))
            np.copyto(held, False if mark is None else mark, where=lanes)
            if not held.any():
                del marks[name]


def following(name: str, n: int) -> str:
    """The register `n` places after `name`; after RZ comes RZ."""
    if n == 0 or name.endswith("Z"):
        return name
    stem = "UR" if name.startswith("U") else "R"
    return f"{stem}{int(name[len(stem) :]) + n}"


def _signed(value: Array, operand: Operand) -> Array:
    if operand.absolute:
        value = np.abs(value)
    return -value if operand.negated else value
