"""Numbers that are the same on every machine of the model; the fields of `Machine` name their sources."""

WARP_LANES = 32
FULL_MASK = (1 << WARP_LANES) - 1  # every lane takes part
BANKS = 32
WORD_BYTES = 4  # what one bank serves in one wavefront
BANK_ROW_BYTES = BANKS * WORD_BYTES  # addresses that differ by a multiple of it lie in the same bank
SECTOR_BYTES = 32
LINE_BYTES = 128
SECTORS_PER_LINE = LINE_BYTES // SECTOR_BYTES
# PTX ISA, ldmatrix: a matrix is 8 rows of 16 bytes, as wide as the widest shared-memory access of a lane.
MATRIX_ROWS = 8
CHUNK_BYTES = 16
KB = 1024
