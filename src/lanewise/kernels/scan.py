"""Scan: inclusive prefix sums, from a tree in shared memory to one pass over the whole array.

Menu, each tile by itself: `scan_tree` (up and down a tree, two elements for each thread), `scan_padded` (one
unused word after every 32), both with tiles of 2 * block elements; `scan_shuffled` (registers within a warp;
tiles of `block` elements), `scan_wide` (16 bytes a load, 16 elements for each thread; tiles of `TILE`).
Launch with `grid_of(src, tile)` blocks of 32, 64, .. or 512 threads, `scan_wide` with `BLOCK`. Reference:
`reference_tiles`.

The whole array: `scan_whole` (a tile looks back at the sums of those before it). Launch with
`grid_of(src, TILE)` blocks of `BLOCK` threads. Reference: `reference`, `reference_state`.

One step up the tree alone, to see what it costs: `step_up`, plain or padded. Reference: `reference_up`.

`src` and `dst` are float32 vectors of one length, any.
"""

import numpy as np
from numba import cuda, float32, int32, int64, uint32

from lanewise import ptx

WORDS = 1056  # of shared memory: a tile of 1,024 and an unused word after every 32
LANES = 32
FULL_WARP = 0xFFFFFFFF
BLOCK = 256
WARPS = BLOCK // LANES
ROWS = 4  # of 128 elements, that each warp of the wide kernels scans
OWN = 4 * ROWS  # elements of each thread
TILE = OWN * BLOCK
PARTIAL, COMPLETE = 0, 1  # what a tile has published: its own sum, or all sums up to its end


def grid_of(src: np.ndarray, tile: int = TILE) -> int:
    """The blocks that cover `src` with a tile each.

    >>> grid_of(np.zeros(5000, np.float32))
    2
    """
    return -(-src.size // tile)


def reference(src: np.ndarray) -> np.ndarray:
    """The sums up to and with each element, each rounded once."""
    return np.cumsum(src, dtype=np.float64).astype(np.float32)


def reference_tiles(src: np.ndarray, tile: int) -> np.ndarray:
    """The sums from the start of each element's tile up to and with it."""
    padded = np.zeros((grid_of(src, tile), tile), np.float32)
    padded.reshape(-1)[: src.size] = src
    return np.cumsum(padded, axis=1, dtype=np.float64).astype(np.float32).ravel()[: src.size]


def reference_state(src: np.ndarray) -> np.ndarray:
    """What `scan_whole` leaves in `state` after the first launch: for each tile, the sums up to its end."""
    ends = np.minimum(TILE * np.arange(1, grid_of(src) + 1), src.size) - 1
    words = reference(src)[ends].view(np.uint32).astype(np.int64)
    return words | (2 + COMPLETE) << 32


def reference_up(src: np.ndarray, distance: int) -> np.ndarray:
    """`src` after each 2 * distance-th element, counted from 1, has got the one `distance` before."""
    dst = src.copy()
    dst[2 * distance - 1 :: 2 * distance] += dst[distance - 1 :: 2 * distance]
    return dst


@cuda.jit(device=True)
def add_up(s, distance, pad):
    """One step up: thread t adds word d * (2 t + 1) - 1 to word d * (2 t + 2) - 1."""
    left = distance * (2 * cuda.threadIdx.x + 1) - 1
    right = left + distance
    if right < 2 * cuda.blockDim.x:
        s[right + right // 32 * pad] += s[left + left // 32 * pad]


@cuda.jit(device=True)
def hand_down(s, distance, pad):
    """One step down: a node gives its left child what lies before it, its right child that and the left."""
    left = distance * (2 * cuda.threadIdx.x + 1) - 1
    right = left + distance
    if right < 2 * cuda.blockDim.x:
        left, right = left + left // 32 * pad, right + right // 32 * pad
        before = s[right]
        s[right] = before + s[left]
        s[left] = before


@cuda.jit(device=True)
def scan_in_tree(src, dst, s, pad):
    """Scan this block's tile; `pad` unused words follow every 32 words of `s`."""
    thread, n = cuda.threadIdx.x, 2 * cuda.blockDim.x
    near, far = thread, thread + cuda.blockDim.x
    i, j = cuda.blockIdx.x * n + near, cuda.blockIdx.x * n + far
    a = src[i] if i < src.size else float32(0)
    b = src[j] if j < src.size else float32(0)
    s[near + near // 32 * pad], s[far + far // 32 * pad] = a, b
    distance = 1
    while distance < n:
        cuda.syncthreads()  # the level below must be complete
        add_up(s, distance, pad)
        distance *= 2
    if thread == 0:
        s[n - 1 + (n - 1) // 32 * pad] = float32(0)  # nothing lies before the whole
    while distance > 1:
        distance //= 2
        cuda.syncthreads()  # the level above must be complete
        hand_down(s, distance, pad)
    cuda.syncthreads()  # the leaves are complete before other threads read them
    if i < src.size:
        dst[i] = s[near + near // 32 * pad] + a
    if j < src.size:
        dst[j] = s[far + far // 32 * pad] + b


@cuda.jit
def scan_tree(src, dst):
    """The baseline: sums climb a binary tree in shared memory, then come down to where they are needed."""
    s = cuda.shared.array(WORDS, float32)
    scan_in_tree(src, dst, s, 0)


@cuda.jit
def scan_padded(src, dst):
    """Changed: one unused word after every 32, so that words of a stride of 2, 4, .. lie in other banks."""
    s = cuda.shared.array(WORDS, float32)
    scan_in_tree(src, dst, s, 1)


@cuda.jit(device=True)
def warp_scan(value):
    """The sums of the lanes' values up to and with each lane."""
    for k in range(5):
        left = cuda.shfl_up_sync(FULL_WARP, value, 1 << k)
        if cuda.laneid >= 1 << k:
            value += left
    return value


@cuda.jit(device=True)
def before_lane(upto):
    """The sum of the lanes before this one, from the sums up to and with each."""
    left = cuda.shfl_up_sync(FULL_WARP, upto, 1)
    return left if cuda.laneid > 0 else float32(0)


@cuda.jit(device=True)
def before_warp(total, of_warp):
    """The sum of the totals of the warps before this one. `of_warp` is shared memory for one for each."""
    warp, lane = cuda.threadIdx.x // LANES, cuda.laneid
    if lane == 0:
        of_warp[warp] = total
    cuda.syncthreads()  # every warp has left its total
    if warp == 0:
        before = before_lane(warp_scan(of_warp[lane] if lane < cuda.blockDim.x // LANES else float32(0)))
        of_warp[lane] = before
    cuda.syncthreads()  # the first warp has turned the totals into what lies before them
    return of_warp[warp]


@cuda.jit
def scan_shuffled(src, dst):
    """Changed: lanes pass their sums through registers; shared memory holds one word for each warp."""
    of_warp = cuda.shared.array(LANES, float32)
    i = cuda.grid(1)
    value = warp_scan(src[i] if i < src.size else float32(0))
    value += before_warp(cuda.shfl_sync(FULL_WARP, value, LANES - 1), of_warp)
    if i < src.size:
        dst[i] = value


@cuda.jit(device=True)
def load_rows(src, first, end, own):
    """Read this lane's four elements of each row; zeros past the end of `src`."""
    for row in range(ROWS):
        i = first + 128 * row
        if end <= src.size:
            own[4 * row], own[4 * row + 1], own[4 * row + 2], own[4 * row + 3] = ptx.load4_nc(src, i)
        else:
            for k in range(4):
                own[4 * row + k] = src[i + k] if i + k < src.size else float32(0)


@cuda.jit(device=True)
def store_rows(dst, first, end, own, before):
    """Write this lane's four elements of each row, with what lies before the warp added."""
    for row in range(ROWS):
        i, j = first + 128 * row, 4 * row
        if end <= dst.size:
            a, b, c, d = own[j], own[j + 1], own[j + 2], own[j + 3]
            ptx.store4(dst, i, a + before, b + before, c + before, d + before)
        else:
            for k in range(4):
                if i + k < dst.size:
                    dst[i + k] = own[j + k] + before


@cuda.jit(device=True)
def scan_row(own, i, before):
    """Scan four elements of each lane, in registers; give the sum of all, with what lies before the row."""
    for k in range(3):
        own[i + k + 1] += own[i + k]
    upto = warp_scan(own[i + 3])
    left = before + before_lane(upto)
    for k in range(4):
        own[i + k] += left
    return before + cuda.shfl_sync(FULL_WARP, upto, LANES - 1)


@cuda.jit(device=True)
def scan_rows(own):
    """Scan the rows of a warp, one after the other; give the warp's total.

    The rows are written out: of a loop over them the compiler makes two, one for lane 0, which adds nothing
    to its elements, and one for the other lanes. The shuffles then wait for both halves of a parted warp.
    """
    before = scan_row(own, 0, float32(0))
    before = scan_row(own, 4, before)
    before = scan_row(own, 8, before)
    return scan_row(own, 12, before)


@cuda.jit
def scan_wide(src, dst):
    """Changed: 16 bytes a load and 16 elements for each thread, so that few sums cross between warps."""
    of_warp = cuda.shared.array(LANES, float32)
    own = cuda.local.array(OWN, float32)
    warp, tile_start = cuda.threadIdx.x // LANES, cuda.blockIdx.x * TILE
    first = tile_start + 128 * ROWS * warp + 4 * cuda.laneid
    load_rows(src, first, tile_start + TILE, own)
    before = before_warp(scan_rows(own), of_warp)
    store_rows(dst, first, tile_start + TILE, own, before)


@cuda.jit(device=True)
def publish(state, tile, epoch, kind, value):
    """Show all blocks a sum and what it is a sum of: in one word, so that nobody sees half of it."""
    ptx.store_release(state, tile, int64(2 * epoch + kind) << 32 | int64(ptx.float_bits(value)))


@cuda.jit(device=True)
def before_tile(state, tile, epoch):
    """The sum of all tiles before this one, from what they have published; for one whole warp.

    Each round looks at the next 32 tiles further back, until one of them has published all that lies before.
    """
    before, newest, searching = float32(0), tile - 1, True
    while searching:
        i = newest - cuda.laneid
        word = int64(2 * epoch + COMPLETE) << 32  # before the first tile: complete, and nothing
        if i >= 0:
            word = ptx.load_acquire(state, i)
        while cuda.any_sync(FULL_WARP, word >> 32 < 2 * epoch):  # not yet published in this launch
            if i >= 0:
                word = ptx.load_acquire(state, i)
        complete = cuda.ballot_sync(FULL_WARP, word >> 32 == 2 * epoch + COMPLETE)
        value = ptx.bits_float(uint32(word & 0xFFFFFFFF))
        if complete != 0 and cuda.laneid >= cuda.ffs(complete):  # behind the nearest complete tile
            value = float32(0)
        for k in range(5):
            value += cuda.shfl_xor_sync(FULL_WARP, value, 1 << k)
        before += value
        searching = complete == 0
        newest -= LANES
    return before


@cuda.jit
def scan_whole(src, state, n_drawn, dst):
    """Changed: each tile publishes its sum at once, and adds what the tiles before it have published.

    Blocks draw their tiles in order, so the tiles that a block waits for belong to blocks that run already.
    `state` has one int64 for each tile, `n_drawn` is one uint32; both are 0 at first. Later launches of the
    same grid take them as they are, up to 2**32 tiles in all: a word of an earlier launch counts as absent.
    Which sums a tile finds complete is a matter of timing, and so is the rounding of the result.
    """
    of_warp = cuda.shared.array(LANES, float32)
    drawn = cuda.shared.array(2, uint32)
    own = cuda.local.array(OWN, float32)
    warp, lane = cuda.threadIdx.x // LANES, cuda.laneid
    if cuda.threadIdx.x == 0:
        number, n_tiles = cuda.atomic.add(n_drawn, 0, 1), uint32(cuda.gridDim.x)
        drawn[0], drawn[1] = number % n_tiles, number // n_tiles
    cuda.syncthreads()  # all threads know their tile, and how many launches there have been
    tile, epoch = int32(drawn[0]), int64(drawn[1]) + 1
    first = tile * TILE + 128 * ROWS * warp + 4 * lane
    load_rows(src, first, (tile + 1) * TILE, own)
    total = scan_rows(own)
    if lane == 0:
        of_warp[warp] = total
    cuda.syncthreads()  # every warp has left its total
    if warp == 0:
        upto = warp_scan(of_warp[lane] if lane < WARPS else float32(0))
        whole = cuda.shfl_sync(FULL_WARP, upto, LANES - 1)
        if lane == 0:
            publish(state, tile, epoch, PARTIAL, whole)
        before = before_tile(state, tile, epoch)
        if lane == 0:
            publish(state, tile, epoch, COMPLETE, before + whole)
        of_warp[lane] = before + before_lane(upto)
    cuda.syncthreads()  # the first warp has turned the totals into what lies before them
    store_rows(dst, first, (tile + 1) * TILE, own, of_warp[warp])


@cuda.jit
def step_up(src, dst, distance, pad):
    """One step up the tree, on whole tiles of 2 * block elements."""
    s = cuda.shared.array(WORDS, float32)
    thread, n = cuda.threadIdx.x, 2 * cuda.blockDim.x
    near, far = thread, thread + cuda.blockDim.x
    i, j = cuda.blockIdx.x * n + near, cuda.blockIdx.x * n + far
    s[near + near // 32 * pad], s[far + far // 32 * pad] = src[i], src[j]
    cuda.syncthreads()  # the tile is full before words are added to others
    add_up(s, distance, pad)
    cuda.syncthreads()  # all sums are there before other threads copy them out
    dst[i], dst[j] = s[near + near // 32 * pad], s[far + far // 32 * pad]
