"""Find the layouts of a shared-memory tile that serve all its accesses without bank conflicts.

Say how the tile is filled and how it is read, and get every padding, swizzle and rotation, the best first:

>>> found = search_layouts(
...     [along_rows("st.shared.b128", name="fill"), matrix_loads("ldmatrix.x4", name="read")],
...     rows=64, cols=32, element_bytes=2)
>>> found.best.name, found.best.n_bytes
('Swizzle<2,3,3>', 4096)
>>> print(found.verdict)
No padding serves both accesses without conflicts. Swizzle<2,3,3> does, in 4,096 bytes.
"""

from lanewise.search.accesses import TileAccess, TileShape, along_rows, down_columns, matrix_loads
from lanewise.search.candidates import Candidate, Count, try_layout
from lanewise.search.result import LayoutSearch, search_layouts

__all__ = [
    "Candidate",
    "Count",
    "LayoutSearch",
    "TileAccess",
    "TileShape",
    "along_rows",
    "down_columns",
    "matrix_loads",
    "search_layouts",
    "try_layout",
]
