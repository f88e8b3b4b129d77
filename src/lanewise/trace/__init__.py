"""The tracer: run a kernel with no GPU and see every warp access.

`trace(kernel, grid, block, *arguments)` interprets the syntax tree of a numba.cuda kernel once for all lanes
of many blocks at once and returns a `Trace`. The way of a kernel through the modules:

- `source`: the syntax tree, and the closed set of names that it can see
- `infer`: numba's types at every meeting of paths, the shared arrays, the refusals; `lanes` has the
  arithmetic
- execution under a mask of active lanes, one class in layers, each of which adds one idea: `expressions`,
  `elements` (subscripts and calls), `statements`, `tracking` (hazards), `memory`, `synchronisation`,
  `asynchronous` (copies in flight), `control` (branches and loops); inference shares the first three
- `functions`, `device`: what may be called, through the `registry` (the door for `lanewise.ptx`)
- `arrays`: indices as addresses; `shadow`: who touched what, and in which order; `sites`: addresses as costs
- `report`, `hazards`: what comes out

**Threat model.** A kernel may come from a stranger, a student or a model, and may be written to harm the
machine that traces it. The tracer therefore never compiles, executes or calls any of it: it walks the tree,
and every node type, name, attribute and call that it does not know is refused before the first lane runs,
also on paths that would never be taken. Names lead to a closed set: numbers, tuples of numbers, data types,
dotted names that have an entry in `registry`, arrays that the caller passed, and other functions, which are
interpreted alike. Attributes that begin with an underscore do not exist. No file, module, object or Python
function is reachable. Integers have 64 bits, so no number grows without end; arrays that a kernel makes have
constant and bounded shapes; calls nest up to a limit; statements and seconds are counted and end a loop that
does not end. A kernel can write to the arrays that the caller passed, within their bounds, and to nothing
else. To trace a function without even importing its module, take it from `functions_in(text)`, which parses
and runs nothing. Not defended against: memory or time within the limits that the caller has set, and a caller
who executes the stranger's module to get at the function.
"""

from lanewise.trace.arguments import uninitialized
from lanewise.trace.hazards import Hazard
from lanewise.trace.refusals import KernelFault, KernelLimit, UnsupportedConstruct
from lanewise.trace.registry import intrinsic
from lanewise.trace.report import Trace
from lanewise.trace.sites import Site
from lanewise.trace.source import functions_in
from lanewise.trace.tracer import trace

__all__ = [
    "Hazard",
    "KernelFault",
    "KernelLimit",
    "Site",
    "Trace",
    "UnsupportedConstruct",
    "functions_in",
    "intrinsic",
    "trace",
    "uninitialized",
]
