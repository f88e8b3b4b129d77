"""A slow oracle for the tracer: each thread of a launch runs by itself, in real Python.

It shares nothing with the tracer's design. The tracer interprets the syntax tree once for all lanes on NumPy arrays;
the oracle compiles the kernel into a Python generator and runs it thread by thread, with stand-ins for `cuda`, arrays
and numbers. Barriers and warp operations are points where a thread yields until its partners have arrived. Types
come from numba's own typing rules, so the oracle does not repeat anybody's reading of them.

- `run(kernel, grid, block, *args)` changes the arrays and returns an `OracleRun`: every access of every thread.
- `count_by_line(run)` groups those accesses into warp accesses and counts them one at a time.

Limits: a variable has the type of the value last assigned to it, where numba gives it one type for the whole
function; floating-point multiply and add are never contracted into one rounding. Oracle code executes what it is
given: it is for this repository's own kernels, never for a stranger's.
"""

from tests.oracle.counts import LineCount, count_by_line, warp_accesses
from tests.oracle.launch import OracleError, OracleRun, run
from tests.oracle.record import Access

__all__ = ["Access", "LineCount", "OracleError", "OracleRun", "count_by_line", "run", "warp_accesses"]
