"""Asynchronous copies: a tile's load behind the work on the tile before.

Menu: `direct` (no tile), `tiled` (load, barrier, work), `prefetched` (the next tile waits in registers),
`copied` (cp.async, waited for at once), `pipelined_2`, `pipelined_3`, `pipelined_4`, `pipelined_8` (that
many tiles in shared memory, cp.async running ahead), and `barriers` (`tiled` for any block, with barriers
that nobody needs).

Each applies x * factor + shift to every element of `src`, `n_fmas` times, and the blocks take tiles of
`TILE` elements in turn. `src` and `dst` are float32, a multiple of `TILE` elements and fewer than 2**32;
`factor` and `shift` are float32. Launch with `THREADS` threads (`barriers`: any number) and any number of
blocks: how many an SM holds is part of the question. A thread copies four neighbours and works on four
elements that others have copied, so every barrier is needed. An index made uint32 needs no test for being
negative. Reference: `reference`. `copied` and the pipelines need sm_80 (cp.async); on sm_75 `prefetched`
is the last rung.

Menu of the copy's destination: `place_4`, `place_8`, `place_16`, `place_16_cg` (cp.async of 4, 8 or 16
bytes with the lanes any distance apart in shared memory). Of blocks and their end: `spin`.
"""

import numpy as np
from numba import cuda, float32, uint32

from lanewise import ptx

THREADS = 256
TILE = 4 * THREADS
QUARTER = THREADS  # elements of a tile that lie between two of a thread's four
PLACES = 1024  # elements: 32 lanes, 128 bytes apart


def reference(src: np.ndarray, factor: float, shift: float, n_fmas: int) -> np.ndarray:
    """What every rung writes to `dst`, rounded once at the end: float32."""
    x = src.astype(np.float64)
    for _ in range(n_fmas):
        x = x * float(factor) + float(shift)
    return x.astype(np.float32)


def n_tiles(src: np.ndarray) -> int:
    """The tiles of `src`.

    >>> n_tiles(np.zeros(4096, np.float32))
    4
    """
    return src.size // TILE


@cuda.jit
def direct(src, dst, factor, shift, n_fmas):
    """The baseline: from global memory to registers and back, four neighbours a thread."""
    for tile in range(cuda.blockIdx.x, src.size // TILE, cuda.gridDim.x):
        i = tile * TILE + 4 * cuda.threadIdx.x
        a, b, c, d = ptx.load4(src, i)
        k = n_fmas
        while k > 0:
            a, b = a * factor + shift, b * factor + shift
            c, d = c * factor + shift, d * factor + shift
            k -= 1
        ptx.store4(dst, i, a, b, c, d)


@cuda.jit
def tiled(src, dst, factor, shift, n_fmas):
    """Changed: through a tile in shared memory, from which a thread takes what others loaded."""
    stage = cuda.shared.array(TILE, float32)
    t = cuda.threadIdx.x
    for tile in range(cuda.blockIdx.x, src.size // TILE, cuda.gridDim.x):
        i = uint32(tile * TILE + t)
        a, b, c, d = ptx.load4(src, tile * TILE + 4 * t)
        ptx.store4(stage, 4 * t, a, b, c, d)
        cuda.syncthreads()  # the tile is full before anyone reads what others wrote
        a, b, c, d = stage[t], stage[t + QUARTER], stage[t + 2 * QUARTER], stage[t + 3 * QUARTER]
        k = n_fmas
        while k > 0:
            a, b = a * factor + shift, b * factor + shift
            c, d = c * factor + shift, d * factor + shift
            k -= 1
        dst[i], dst[i + QUARTER], dst[i + 2 * QUARTER], dst[i + 3 * QUARTER] = a, b, c, d
        cuda.syncthreads()  # all have read the tile before the next one overwrites it


@cuda.jit
def prefetched(src, dst, factor, shift, n_fmas):
    """Changed: the next tile is loaded into registers before the work on this one starts."""
    stage = cuda.shared.array(TILE, float32)
    t, n = cuda.threadIdx.x, src.size // TILE
    a, b, c, d = ptx.load4(src, min(cuda.blockIdx.x, n - 1) * TILE + 4 * t)
    for tile in range(cuda.blockIdx.x, n, cuda.gridDim.x):
        i = uint32(tile * TILE + t)
        ptx.store4(stage, 4 * t, a, b, c, d)
        cuda.syncthreads()  # the tile is full before anyone reads what others wrote
        a, b, c, d = ptx.load4(src, min(tile + cuda.gridDim.x, n - 1) * TILE + 4 * t)
        p, q, r, s = stage[t], stage[t + QUARTER], stage[t + 2 * QUARTER], stage[t + 3 * QUARTER]
        k = n_fmas
        while k > 0:
            p, q = p * factor + shift, q * factor + shift
            r, s = r * factor + shift, s * factor + shift
            k -= 1
        dst[i], dst[i + QUARTER], dst[i + 2 * QUARTER], dst[i + 3 * QUARTER] = p, q, r, s
        cuda.syncthreads()  # all have read the tile before the next one overwrites it


@cuda.jit
def copied(src, dst, factor, shift, n_fmas):
    """Changed from `tiled`: the copy is asynchronous, past the registers, and waited for at once."""
    stage = cuda.shared.array(TILE, float32)
    t = cuda.threadIdx.x
    for tile in range(cuda.blockIdx.x, src.size // TILE, cuda.gridDim.x):
        i = uint32(tile * TILE + t)
        ptx.cp_async_cg_16(stage, 4 * t, src, tile * TILE + 4 * t)
        ptx.cp_async_commit()
        ptx.cp_async_wait(0)
        cuda.syncthreads()  # every thread's copies have arrived, not only mine
        a, b, c, d = stage[t], stage[t + QUARTER], stage[t + 2 * QUARTER], stage[t + 3 * QUARTER]
        k = n_fmas
        while k > 0:
            a, b = a * factor + shift, b * factor + shift
            c, d = c * factor + shift, d * factor + shift
            k -= 1
        dst[i], dst[i + QUARTER], dst[i + 2 * QUARTER], dst[i + 3 * QUARTER] = a, b, c, d
        cuda.syncthreads()  # all have read the tile before the next copy overwrites it


def pipelined(stages):
    """A kernel that keeps `stages` tiles in shared memory: one is worked on, the others are under way."""
    elems = stages * TILE
    ahead = stages - 1
    pending = stages - 2

    def pipelined_n(src, dst, factor, shift, n_fmas):
        """Changed: the copy runs `stages` - 1 tiles ahead; one barrier a tile is enough."""
        stage = cuda.shared.array(elems, float32)
        t, n, step = cuda.threadIdx.x, src.size // TILE, cuda.gridDim.x
        for s in range(ahead):
            if cuda.blockIdx.x + s * step < n:
                ptx.cp_async_cg_16(stage, s * TILE + 4 * t, src, (cuda.blockIdx.x + s * step) * TILE + 4 * t)
            ptx.cp_async_commit()
        full, free = 0, ahead * TILE
        for tile in range(cuda.blockIdx.x, n, step):
            ptx.cp_async_wait(pending)
            # This tile has arrived for all threads, and all have read the one before: its stage is free.
            cuda.syncthreads()
            if tile + ahead * step < n:
                ptx.cp_async_cg_16(stage, free + 4 * t, src, (tile + ahead * step) * TILE + 4 * t)
            ptx.cp_async_commit()  # an empty group too, so that counting groups counts tiles
            j = uint32(full + t)
            a, b, c, d = stage[j], stage[j + QUARTER], stage[j + 2 * QUARTER], stage[j + 3 * QUARTER]
            k = n_fmas
            while k > 0:
                a, b = a * factor + shift, b * factor + shift
                c, d = c * factor + shift, d * factor + shift
                k -= 1
            i = uint32(tile * TILE + t)
            dst[i], dst[i + QUARTER], dst[i + 2 * QUARTER], dst[i + 3 * QUARTER] = a, b, c, d
            free = full
            full = full + TILE if full + TILE < elems else 0

    pipelined_n.__name__ = f"pipelined_{stages}"
    return cuda.jit(pipelined_n)


pipelined_2 = pipelined(2)
pipelined_3 = pipelined(3)
pipelined_4 = pipelined(4)
pipelined_8 = pipelined(8)


@cuda.jit
def barriers(src, dst, factor, shift, n_fmas, n_barriers):
    """Changed from `tiled`: `n_barriers` further barriers after the first, and any number of threads."""
    stage = cuda.shared.array(TILE, float32)
    for tile in range(cuda.blockIdx.x, src.size // TILE, cuda.gridDim.x):
        first = tile * TILE
        k = cuda.threadIdx.x
        while k < TILE:
            stage[k] = src[uint32(first + k)]
            k += cuda.blockDim.x
        cuda.syncthreads()  # the tile is full before anyone reads what others wrote
        n = n_barriers
        while n > 0:
            cuda.syncthreads()  # protects nothing
            n -= 1
        k = cuda.threadIdx.x
        while k < TILE:
            x, n = stage[TILE - 1 - k], n_fmas
            while n > 0:
                x = x * factor + shift
                n -= 1
            dst[uint32(first + TILE - 1 - k)] = x
            k += cuda.blockDim.x
        cuda.syncthreads()  # all have read the tile before the next one overwrites it


# -- where the copy lands: blocks of one warp ------------------------------------------------------


def placed(name, copy, elems):
    """A kernel that copies `elems` floats per lane by `copy`, eight times between two waits."""

    def place(src, dst, pitch, gap, n_rounds):
        """Lanes lie `pitch` floats apart, copies `gap`; `dst` gets the first float of each lane's last."""
        tile = cuda.shared.array(PLACES, float32)
        thread, lane = cuda.grid(1), cuda.threadIdx.x
        for _ in range(n_rounds):
            for k in range(8):
                copy(tile, pitch * lane + gap * k, src, elems * thread)
            ptx.cp_async_commit()
            ptx.cp_async_wait(0)
            cuda.syncwarp()  # the copies of all lanes have arrived before the next ones overwrite them
        dst[thread] = tile[pitch * lane + gap * 7]

    place.__name__ = name
    return cuda.jit(place)


place_4 = placed("place_4", ptx.cp_async_4, 1)
place_8 = placed("place_8", ptx.cp_async_8, 2)
place_16 = placed("place_16", ptx.cp_async_16, 4)
place_16_cg = placed("place_16_cg", ptx.cp_async_cg_16, 4)


# -- how a grid ends -------------------------------------------------------------------------------


@cuda.jit
def spin(src, dst, factor, shift, n_fmas, n_fmas_last):
    """Each block works for a while on its elements; the last one may have more to do. src.size threads."""
    i, n = cuda.grid(1), n_fmas
    if cuda.blockIdx.x == cuda.gridDim.x - 1:
        n = n_fmas_last
    if i < src.size:
        x = src[i]
        while n > 0:
            x = x * factor + shift
            n -= 1
        dst[i] = x
