"""Control flow of the machine code: branches, calls, exits, meeting points and barriers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lanewise.lowering.blocks import Blocks
from lanewise.lowering.registers import Array
from lanewise.lowering.sass import MachineInstruction
from lanewise.lowering.traffic import Stopped

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
    blocks.contest(lanes, blocks.registers.contested)
    for condition in ins.operands[:-1]:
        if condition.kind == "predicate":
            blocks.registers.begin()
            taking = taking & blocks.registers.predicate(condition)
            if blocks.registers.unknown is not None and (blocks.registers.unknown & lanes).any():
                raise Stopped(f"Line {ins.line}: {ins.text} depends on a value that is not computed.")
            blocks.contest(lanes, blocks.registers.contested)
    target = _target(blocks, ins)
    if target <= ins.address and (blocks.contested & lanes).any():
        blocks.mark_retries(target, ins.address)
    blocks.join(target, taking)
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
    blocks.contest(lanes, blocks.registers.contested)
    blocks.alive &= ~taking
    return True


@control("BSSY")
def _open_meeting(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    blocks.open_meeting(ins.operands[0].name, blocks.certain(ins, lanes))
    return True


@control("BSYNC")
def _meet(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    taking = blocks.certain(ins, lanes)
    blocks.meet(ins.operands[-1].name, ins.address + blocks.code.bytes_per_instruction, taking)
    return _rest_goes_on(blocks, ins, lanes, taking)


@control("WARPSYNC")
def _meet_as_a_warp(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    taking = blocks.certain(ins, lanes)
    blocks.synchronize(ins.address + blocks.code.bytes_per_instruction, taking)
    return _rest_goes_on(blocks, ins, lanes, taking)


@control("BREAK")
def _leave_meeting(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    blocks.tokens(ins.operands[-1].name)[blocks.certain(ins, lanes)] = 0
    return True


@control("YIELD")
def _yield(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    """Lanes that yield, in a loop that spins, are not waited for: those that leave the loop go on alone.

    The vendor does not say so, but a recorded kernel (`sums_and_extremes` on float64) runs what follows its
    loop, BSYNC or not, once for each of 80 lanes.
    """
    taking = blocks.certain(ins, lanes)
    for tokens in blocks.meetings.values():
        tokens[taking] = 0
    return True


@control("BMOV")
def _move_meeting(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> bool:
    """Save a meeting in a register or restore it, as the compiler does around nested ones."""
    taking = blocks.certain(ins, lanes)
    dst, src = ins.operands[:2]
    blocks.registers.begin()
    if dst.kind == "register":
        tokens = blocks.tokens(src.name)
        blocks.registers.write(dst.name, tokens.astype(np.uint32), taking)
        if "CLEAR" in ins.modifiers:
            tokens[taking] = 0
    elif src.kind == "register":
        tokens = blocks.tokens(dst.name)
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
