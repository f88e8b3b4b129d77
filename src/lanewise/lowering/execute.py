"""Running machine code lane by lane, to see which addresses its memory instructions touch.

The code that ptxas wrote is executed for all lanes of many blocks at once. Nothing is inferred from the
source: a join of four loads into one, a hoisted load, an unrolled loop or a predicated tail is counted
because it is there. Lanes that stand earliest in the code go first.
"""

from __future__ import annotations

import numpy as np

from lanewise.lowering.alu import RULES, UNKNOWN_RESULTS, unknown_result
from lanewise.lowering.blocks import Blocks
from lanewise.lowering.control import STEPS
from lanewise.lowering.effects import EFFECTS
from lanewise.lowering.floats import FLOAT_RULES
from lanewise.lowering.registers import Array
from lanewise.lowering.sass import MachineInstruction
from lanewise.lowering.traffic import Stopped

MAX_STEPS = 1_000_000
# Lanes that spin (on a lock, say) stand early in the code and would keep the others from ever going on.
PATIENCE = 2_000

# Hints, fences and waits: they order accesses, which are done here in order anyway.
NO_EFFECT = frozenset(
    ("NOP", "MEMBAR", "ERRBAR", "CGAERRBAR", "CCTL", "CCTLL", "DEPBAR", "LDGDEPBAR",
     "NANOSLEEP", "FENCE", "PMTRIG")
)  # fmt: skip


def run(blocks: Blocks) -> None:
    """Execute until every lane has exited; raises `Stopped`."""
    n_steps = n_turns = 0
    with np.errstate(all="ignore"):
        while blocks.groups or blocks.release():
            n_turns = n_turns + 1 if len(blocks.groups) > 1 else 0
            place = max(blocks.groups) if n_turns % PATIENCE == PATIENCE - 1 else min(blocks.groups)
            n_steps = _run_group(blocks, place, n_steps)


def _run_group(blocks: Blocks, place: int, n_steps: int) -> int:
    """Run lanes that stand at one place until they part, wait or exit; returns the steps taken in all."""
    lanes = blocks.take(place)
    while lanes.any():
        ins = blocks.code.at[place]
        n_steps += 1
        if n_steps > MAX_STEPS:
            raise Stopped(
                f"Stopped after {MAX_STEPS:,} machine instructions at line {ins.line}: {ins.text}."
                " Trace fewer blocks, or look for a loop that waits for another warp."
            )
        blocks.registers.begin_instruction(blocks.contested & lanes)
        if step := STEPS.get(ins.base):
            if not step(blocks, ins, lanes):
                break
            lanes = lanes & blocks.alive
        else:
            _compute(blocks, ins, lanes)
        place += blocks.code.bytes_per_instruction
        if place in blocks.groups:
            blocks.join(place, lanes)
            lanes = blocks.take(place)
    return n_steps


def _compute(blocks: Blocks, ins: MachineInstruction, lanes: Array) -> None:
    registers = blocks.registers
    taking, unsure = blocks.guarded(ins, lanes)
    if unsure is not None:
        registers.taint(unsure)
        taking = lanes
    if effect := EFFECTS.get(ins.base):
        effect(blocks, ins, taking)
    elif rule := RULES.get(ins.base) or FLOAT_RULES.get(ins.base):
        rule(registers, ins, taking)
    elif ins.base in UNKNOWN_RESULTS:
        unknown_result(registers, ins, taking)
    elif ins.base not in NO_EFFECT:
        raise Stopped(f"Line {ins.line}: {ins.base} is not modelled: {ins.text}")
