"""What the compiler made of a kernel, counted without a GPU.

The source says `tile[row, k]`; the machine code may load four of them at once, load one byte by byte, hoist
it out of the loop or drop it. This package answers "why does the profiler disagree with my arithmetic" from
the machine code itself:

1. `lower(kernel, args, target)` compiles for a GPU that need not be there (`toolchain`) and reads the
disassembly
   (`sass`): memory instructions with width and Python line, registers, spills.
2. `LoweredKernel.run(grid, block, *args)` executes that code for all lanes (`execute`, `alu`, `registers`,
`storage`,
   `atomics`) and counts the addresses of every memory instruction under the model. Nothing is guessed from
   the source: what cannot be computed is marked unknown, and an access that depends on it is listed in
   `unmodelled`.
3. `CompiledRun.beside(sites)` sets the counts next to those of the source, line by line, with the machine
code that
   proves each difference (`report`).
"""

from lanewise.lowering.lowered import CompiledRun, LoweredKernel, lower
from lanewise.lowering.report import Comparison, CompiledSite, Counts, LineComparison, OpcodeCounts
from lanewise.lowering.sass import MachineInstruction
from lanewise.lowering.toolchain import TARGETS, DoesNotCompile, ToolMismatch, ToolMissing, why_unavailable
from lanewise.lowering.view import as_compiled, run_compiled

__all__ = [
    "TARGETS",
    "Comparison",
    "CompiledRun",
    "CompiledSite",
    "Counts",
    "DoesNotCompile",
    "LineComparison",
    "LoweredKernel",
    "MachineInstruction",
    "OpcodeCounts",
    "ToolMismatch",
    "ToolMissing",
    "as_compiled",
    "lower",
    "run_compiled",
    "why_unavailable",
]
