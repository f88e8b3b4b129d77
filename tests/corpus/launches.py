"""Launch shapes: every thread writes down who it is.

Menu: identities, block_orders, dynamic_halves, grid_barrier, column_blocks, warp_numbers.
"""

import numpy as np
from numba import cuda, float32, int32

from tests.corpus.case import Case, poisoned


@cuda.jit
def identities(dst):
    """The thread's place in the grid, from the four built-in triples."""
    x = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    y = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    z = cuda.blockIdx.z * cuda.blockDim.z + cuda.threadIdx.z
    n_x, n_y = cuda.gridDim.x * cuda.blockDim.x, cuda.gridDim.y * cuda.blockDim.y
    dst[z, y, x] = (z * n_y + y) * n_x + x


@cuda.jit
def sizes(dst):
    x, y = cuda.grid(2)
    n_x, n_y = cuda.gridsize(2)
    dst[y, x] = (n_x + y) * n_y + x


@cuda.jit
def warp_numbers(dst):
    """Lane and warp of each thread of a block: x runs fastest."""
    x, y, z = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    thread = (z * cuda.blockDim.y + y) * cuda.blockDim.x + x
    dst[z, y, x] = thread // cuda.warpsize * 100 + cuda.laneid


@cuda.jit
def dynamic_halves(src, dst):
    """One piece of dynamic shared memory, cut in two by slices."""
    pool = cuda.shared.array(0, float32)
    n = cuda.blockDim.x
    low, high = pool[:n], pool[n : 2 * n]
    thread = cuda.threadIdx.x
    low[thread] = src[thread]
    high[thread] = 2 * src[thread]
    # Both halves must be full before anyone reads another's place.
    cuda.syncthreads()
    dst[thread] = low[n - 1 - thread] + high[(thread + 1) % n]


@cuda.jit
def several_arrays(src, dst):
    """Shared arrays of different types, one of them three-dimensional."""
    flags = cuda.shared.array(48, np.int8)
    cube = cuda.shared.array((2, 3, 8), np.float64)
    codes = cuda.shared.array(48, int32)
    thread = cuda.threadIdx.x
    flags[thread] = 1 if src[thread] > 0 else -1
    cube[thread // 24, thread // 8 % 3, thread % 8] = src[thread]
    codes[47 - thread] = thread
    # All three must be full before anyone reads another's place.
    cuda.syncthreads()
    other = 47 - thread
    dst[thread] = flags[other] * cube[other // 24, other // 8 % 3, other % 8] + codes[thread] * 1000


@cuda.jit
def per_block_totals(src, dst):
    """Shared memory belongs to the block."""
    total = cuda.shared.array(1, np.int64)
    if cuda.threadIdx.x == 0:
        total[0] = cuda.blockIdx.x * 1000
    # The total must start before anyone adds.
    cuda.syncthreads()
    cuda.atomic.add(total, 0, src[cuda.grid(1)])
    # All must have added before the total is written.
    cuda.syncthreads()
    if cuda.threadIdx.x == cuda.blockDim.x - 1:
        dst[cuda.blockIdx.x] = total[0]


@cuda.jit
def grid_barrier(src, middle, dst):
    """All blocks meet between two passes over global memory."""
    everyone = cuda.cg.this_grid()
    i = cuda.grid(1)
    n = cuda.gridsize(1)
    middle[i] = 2 * src[i]
    # Every block must have written before any block reads across.
    everyone.sync()
    dst[i] = middle[n - 1 - i] + middle[(i + 40) % n]


def linear(dst):
    return {0: np.arange(dst.size).reshape(dst.shape)}


def grid_sizes(dst):
    y, x = np.indices(dst.shape)
    return {0: (dst.shape[1] + y) * dst.shape[0] + x}


def warps(dst):
    thread = np.arange(dst.size).reshape(dst.shape)
    return {0: thread // 32 * 100 + thread % 32}


def halves(src, dst):
    return {1: src[::-1] + 2 * np.roll(src, -1)}


def mirrored(src, dst):
    back = src[::-1].astype(np.float64)
    return {1: np.where(back > 0, back, -back) + np.arange(47, -1, -1) * 1000}


def totals(src, dst):
    return {1: src.reshape(dst.size, -1).sum(axis=1) + 1000 * np.arange(dst.size)}


def two_passes(src, middle, dst):
    doubled = 2 * src
    return {1: doubled, 2: doubled[::-1] + np.roll(doubled, -40)}


CASES = [
    *(
        Case(
            identities,
            grid,
            block,
            lambda fill, shape=shape: (poisoned(shape, np.int64),),
            linear,
            f"grid {grid}, block {block}",
        )
        for grid, block, shape in (
            (3, 40, (1, 1, 120)),
            ((2, 3), (16, 4), (1, 12, 32)),
            ((2, 1, 2), (5, 3, 7), (14, 3, 10)),
            ((1, 1, 4), (1, 33, 1), (4, 33, 1)),
        )
    ),
    Case(sizes, (2, 3), (7, 5), lambda fill: (poisoned((15, 14), np.int64),), grid_sizes),
    *(
        Case(
            warp_numbers,
            1,
            block,
            lambda fill, block=block: (poisoned((*block, 1, 1)[2::-1], np.int64),),
            warps,
            f"block {block}",
            simulator="the simulator has no lanes",
        )
        for block in ((70,), (16, 5), (4, 3, 7))
    ),
    Case(
        dynamic_halves,
        1,
        48,
        lambda fill: (fill(48, np.float32), poisoned(48, np.float32)),
        halves,
        dynamic_shared_bytes=2 * 48 * 4,
    ),
    Case(several_arrays, 1, 48, lambda fill: (fill(48, np.float64), poisoned(48, np.float64)), mirrored),
    Case(per_block_totals, 3, 40, lambda fill: (fill(120, np.int64), poisoned(3, np.int64)), totals),
    Case(
        grid_barrier,
        3,
        48,
        lambda fill: (fill(144, np.float32), *(poisoned(144, np.float32) for _ in range(2))),
        two_passes,
        simulator="the simulator's grid barrier holds for one block only",
    ),
]
