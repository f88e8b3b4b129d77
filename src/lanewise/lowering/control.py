"""Control flow of the machine code: branches, calls, exits, meeting points and barriers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lanewise.lowering.blocks import Blocks
from lanewise.lowering.registers import Array
from lanewise.lowering.sass import MachineInstruction
from lanewise.lowering.traffic import Stopped
from lanewise.machine import WARP_LANES

# A step moves lanes on itself and returns False, or returns True to let them fall through.
Step = Callable[[Blocks, MachineInstruction, Array], bool]
STEPS: dict[str, Step] = {}


def control(*names: str) -> Callable[[Step], Step]:
    """Register what the opcodes `names` do."""

    def register(step: Step) -> Step:
        STEPS.update(dict.fromkeys(names, step))
        return step

    return register


def _target(blocks: Blocks, ins: MachineInstruction) -> int:
    label = ins.operands[-1]
    if label.kind == "label" and label.name in blocks.code.labels:
        return blocks.code.labels[label.name]
    if label.kind == "integer":
        return int(label.value)
    raise Stopped(f"Line {ins.line}: a jump to a computed place is not modelled: {ins.text}")


@control("BRA", "CALL", "JMP")
def _branch(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    if ins.modifiers & {"DIV", "CONV"}:  # taken only by a warp that has split up, which meets again before
        return True
    taking = blocks.certain(ins, lanes)
    for condition in ins.operands[:-1]:
        if condition.kind == "predicate":
            blocks.registers.begin()
            taking = taking & blocks.registers.predicate(condition)
            if blocks.registers.unknown is not None and (blocks.registers.unknown & lanes).any():
                raise Stopped(f"Line {ins.line}: {ins.text} depends on a value that is not computed.")
    blocks.join(_target(blocks, ins), taking)
    return _rest_goes_on(blocks, ins, lanes, taking)


def _rest_goes_on(blocks: Blocks, ins: MachineInstruction, lanes: Array, gone: Array) -> bool:
    blocks.join(ins.address + blocks.code.bytes_per_instruction, lanes & ~gone)
    return False


@control("RET")
def _return(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    taking = blocks.certain(ins, lanes)
    register = next(op for op in ins.operands if op.kind == "register")
    blocks.registers.begin()
    place = np.broadcast_to(blocks.registers.register(register.name), (blocks.n_lanes,))
    if blocks.registers.unknown is not None and (blocks.registers.unknown & taking).any():
        raise Stopped(f"Line {ins.line}: the place {ins.text} returns to is not known.")
    for target in np.unique(place[taking]):
        blocks.join(int(target), taking & (place == target))
    return _rest_goes_on(blocks, ins, lanes, taking)


@control("EXIT")
def _exit(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    taking = blocks.certain(ins, lanes)
    for condition in ins.operands:
        taking = taking & blocks.registers.predicate(condition)
    blocks.alive &= ~taking
    return True


@control("BSSY")
def _open_meeting(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    taking = blocks.certain(ins, lanes)
    name = ins.operands[0].name
    tokens = blocks.meetings.setdefault(name, np.zeros(blocks.n_lanes, np.int64))
    n_warps = blocks.n_lanes // WARP_LANES
    blocks.n_meetings += 1
    warp = np.arange(blocks.n_lanes) // WARP_LANES
    np.copyto(tokens, blocks.n_meetings * n_warps + warp, where=taking)
    return True


@control("BSYNC")
def _meet(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    taking = blocks.certain(ins, lanes)
    blocks.meet(ins.operands[-1].name, ins.address + blocks.code.bytes_per_instruction, taking)
    return _rest_goes_on(blocks, ins, lanes, taking)


@control("BREAK")
def _leave_meeting(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    taking = blocks.certain(ins, lanes)
    if (tokens := blocks.meetings.get(ins.operands[-1].name)) is not None:
        tokens[taking] = 0
    return True


@control("BMOV")
def _move_meeting(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    """Save a meeting in a register or restore it, as the compiler does around nested ones."""
    taking = blocks.certain(ins, lanes)
    dst, src = ins.operands[:2]
    blocks.registers.begin()
    if dst.kind == "register":
        tokens = blocks.meetings.get(src.name, np.zeros(blocks.n_lanes, np.int64))
        blocks.registers.write(dst.name, tokens.astype(np.uint32), taking)
    elif src.kind == "register":
        tokens = blocks.meetings.setdefault(dst.name, np.zeros(blocks.n_lanes, np.int64))
        np.copyto(tokens, blocks.registers.register(src.name).astype(np.int64), where=taking)
    return True


@control("BAR")
def _barrier(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    taking = blocks.certain(ins, lanes)
    if "ARV" in ins.modifiers:
        return True
    if "RED" in ins.modifiers:
        blocks.registers.begin()
        np.copyto(blocks.barrier_votes, blocks.registers.predicate(ins.operands[-1]), where=taking)
    place = ins.address + blocks.code.bytes_per_instruction
    waiting = blocks.at_barrier.get(place)
    blocks.at_barrier[place] = taking.copy() if waiting is None else waiting | taking
    return _rest_goes_on(blocks, ins, lanes, taking)
