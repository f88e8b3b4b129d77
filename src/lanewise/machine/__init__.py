"""What a GPU is, as data: limits and instructions of a compute capability, and how many blocks fit on an SM.

A `Machine` holds the numbers that the vendor documents for a compute capability. Every field carries its unit
and its source, so a page can print where a number comes from: `machine.facts()`.
`machine.supports("ldmatrix")` says whether an instruction exists. `occupancy` counts resident blocks as the
vendor's own calculator does. A `Product` holds the published peaks of one GPU: `product("T4")`.

"KB" in the vendor's tables is 1024 bytes; all sizes here are bytes.
"""

from lanewise.machine.availability import AVAILABILITY, Availability
from lanewise.machine.constants import (
    BANK_ROW_BYTES,
    BANKS,
    CHUNK_BYTES,
    FULL_MASK,
    KB,
    LINE_BYTES,
    MATRIX_ROWS,
    SECTOR_BYTES,
    SECTORS_PER_LINE,
    WARP_LANES,
    WORD_BYTES,
)
from lanewise.machine.machines import MACHINES, Fact, Machine, from_name
from lanewise.machine.products import PRODUCTS, Product, product
from lanewise.machine.residency import Occupancy, occupancy

__all__ = [
    "AVAILABILITY",
    "BANKS",
    "BANK_ROW_BYTES",
    "CHUNK_BYTES",
    "FULL_MASK",
    "KB",
    "LINE_BYTES",
    "MACHINES",
    "MATRIX_ROWS",
    "PRODUCTS",
    "SECTORS_PER_LINE",
    "SECTOR_BYTES",
    "WARP_LANES",
    "WORD_BYTES",
    "Availability",
    "Fact",
    "Machine",
    "Occupancy",
    "Product",
    "from_name",
    "occupancy",
    "product",
]
