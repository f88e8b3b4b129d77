"""LayerNorm over rows held in shared memory: who walks what.

Menu: layer_norm_of (lane = row, any pitch), layer_norm_columns, gelu.
"""

import math

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction, poisoned

ROWS = 32
# The course's rows have 1,024 columns. 32 and 1,024 words are the same number of banks, and 32 fit into a test.
COLUMNS = 32


def layer_norm_of(pitch):
    """Lane = row: each lane walks along its own row, so the lanes read a column of the tile."""

    @cuda.jit
    def layer_norm(src, dst):
        tile = cuda.shared.array((ROWS, pitch), np.float32)
        lane = cuda.threadIdx.x
        for row in range(ROWS):
            tile[row, lane] = src[row, lane]
        # All rows must be in before a lane walks along one.
        cuda.syncthreads()
        total = np.float32(0)
        for col in range(COLUMNS):
            total += tile[lane, col]
        mean = total / np.float32(COLUMNS)
        spread = np.float32(0)
        for col in range(COLUMNS):
            spread += (tile[lane, col] - mean) ** 2
        scale = np.float32(1) / math.sqrt(spread / np.float32(COLUMNS) + np.float32(1))
        for col in range(COLUMNS):
            tile[lane, col] = (tile[lane, col] - mean) * scale
        # All rows must be normalised before other lanes carry them out.
        cuda.syncthreads()
        for row in range(ROWS):
            dst[row, lane] = tile[row, lane]

    return layer_norm


@cuda.jit
def layer_norm_columns(src, dst):
    """Lane = column: the lanes read a row of the tile and add it up through shared memory."""
    tile = cuda.shared.array((ROWS, COLUMNS), np.float32)
    sums = cuda.shared.array(COLUMNS, np.float32)
    lane = cuda.threadIdx.x
    for row in range(ROWS):
        tile[row, lane] = src[row, lane]
    for row in range(ROWS):
        sums[lane] = tile[row, lane]
        # Every lane's value must be in before they are added.
        cuda.syncthreads()
        total = np.float32(0)
        for col in range(COLUMNS):
            total += sums[col]
        # All must have added before the next row overwrites the values.
        cuda.syncthreads()
        dst[row, lane] = tile[row, lane] - total / np.float32(COLUMNS)


@cuda.jit
def gelu(src, dst):
    """The tanh form; the constants are rounded to float32 first, so that all stays float32."""
    i = cuda.grid(1)
    if i < src.size:
        x = src[i]
        inner = np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)
        dst[i] = np.float32(0.5) * x * (np.float32(1) + math.tanh(inner))


def normalised(src, dst):
    rows = src.astype(np.float64)
    centred = rows - rows.mean(axis=1, keepdims=True)
    return {1: centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1)}


def activated(src, dst):
    x = src.astype(np.float64)
    return {1: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))}


CASES = [
    *(
        Case(
            layer_norm_of(pitch),
            1,
            ROWS,
            lambda fill: (fill((ROWS, COLUMNS), np.float32), poisoned((ROWS, COLUMNS), np.float32)),
            normalised,
            f"pitch {pitch}",
            rtol=2e-5,
            predictions=(
                Prediction("total += tile[lane, col]", "load", wavefronts=degree, ideal=1, id="K-cs-9"),
            ),
        )
        for pitch, degree in ((32, 32), (33, 1), (36, 4))
    ),
    Case(
        layer_norm_columns,
        1,
        ROWS,
        lambda fill: (fill((ROWS, COLUMNS), np.float32), poisoned((ROWS, COLUMNS), np.float32)),
        lambda src, dst: {1: src - src.mean(axis=1, keepdims=True)},
        predictions=(
            Prediction("sums[lane] = tile[row, lane]", "load", wavefronts=1, ideal=1, id="K-cs-9"),
            Prediction("total += sums[col]", "load", wavefronts=1, ideal=1, id="K-cs-9"),
        ),
    ),
    Case(
        gelu,
        1,
        64,
        lambda fill: (fill(50, np.float32) / 16, poisoned(50, np.float32)),
        activated,
        rtol=2e-5,
    ),
]
