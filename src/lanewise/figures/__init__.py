"""Drawings of accesses, layouts and counts: functions of data that return a `Drawing`.

Shared memory:

- `draw_bank_map(access)`: the words each of the 32 banks must serve, one row per wavefront.
- `draw_replay(access)`: the same wavefront by wavefront, with lines from lanes to banks.
- `draw_address_grid(layout, rows, cols)`: a tile with the bank, word, index or chunk of every element.
- `draw_swizzle_bits(swizzle)`: which bits of an offset flip which.

Tensor Cores:

- `draw_fragment(fragment)`: an operand, with the lane that holds each pair of its elements.
- `draw_matrix_move(instruction)`: an ldmatrix or stmatrix: who points at each row, and who gets its pairs.

Global memory:

- `draw_sectors(access)`: the bytes, sectors and lines that an access touches.

Kernels:

- `draw_trace(trace)`: the source of a traced kernel with the cost of every access under its line.

Pipelines:

- `draw_timeline(pipeline)`: when each buffer is filled and worked on.

Charts:

- `draw_degree_curve(strides, wavefronts)`: cost against stride, with the gcd law.
- `draw_comparison(labels, values)`: the rungs of a ladder as bars.
- `draw_roofline(points, ...)`: kernels under the memory and arithmetic roofs of a machine.
- `draw_lines(x, series)`: one quantity of several cases against a size or an amount of work.

Each takes `ax=None`: without axes it makes a figure of its own. A `Drawing` shows itself in a notebook,
carries its alternative text as `.alt`, and writes SVG or PNG with `.save(path)`. Nothing here runs a
kernel, keeps state, or changes a setting of Matplotlib.

Inside: `style` has colours, type sizes and settings, `drawing` the drawing and the sheet it is made on,
`words` the sentences, `svg` the compaction of what Matplotlib writes; each other module is one kind of
figure.
"""

from lanewise.figures.banks import draw_bank_map
from lanewise.figures.bars import draw_comparison
from lanewise.figures.bits import draw_swizzle_bits
from lanewise.figures.curve import draw_degree_curve, gcd_law
from lanewise.figures.drawing import Drawing, InvalidDrawing
from lanewise.figures.fragments import draw_fragment, draw_matrix_move
from lanewise.figures.grid import draw_address_grid
from lanewise.figures.lines import draw_lines
from lanewise.figures.listing import draw_trace
from lanewise.figures.replay import draw_replay
from lanewise.figures.roofline import draw_roofline
from lanewise.figures.sectors import draw_sectors
from lanewise.figures.timeline import draw_timeline

__all__ = [
    "Drawing",
    "InvalidDrawing",
    "draw_address_grid",
    "draw_bank_map",
    "draw_comparison",
    "draw_degree_curve",
    "draw_fragment",
    "draw_lines",
    "draw_matrix_move",
    "draw_replay",
    "draw_roofline",
    "draw_sectors",
    "draw_swizzle_bits",
    "draw_timeline",
    "draw_trace",
    "gcd_law",
]
