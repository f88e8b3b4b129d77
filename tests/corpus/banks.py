"""One-warp probes of shared memory: which word each lane asks for, and nothing else.

Menu: strided_of (stride in elements of any type), few_words, tile_walks_of, xor_walks_of, rotated_walks, partial_warps,
column_store, paired_lanes, half_unit_swizzle_of.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction, poisoned

LANES = 32
WORDS = 1089


def strided_of(dtype, n_elements):
    """Lane `l` reads element base + l * stride."""

    @cuda.jit
    def strided(words, dst, base, stride):
        s = cuda.shared.array(n_elements, dtype)
        lane = cuda.threadIdx.x
        for i in range(lane, n_elements, LANES):
            s[i] = words[i]
        # Every word must be written before a lane reads its neighbour's.
        cuda.syncthreads()
        dst[lane] = s[base + lane * stride]

    return strided


@cuda.jit
def few_words(words, dst):
    """Lanes that share words: one word for all, two words, and one lane apart from the rest."""
    s = cuda.shared.array(64, np.float32)
    lane = cuda.threadIdx.x
    s[lane] = words[lane]
    s[lane + 32] = words[lane + 32]
    # Every word must be written before a lane reads its neighbour's.
    cuda.syncthreads()
    broadcast = s[0]
    pair = s[lane & 1]
    apart = s[32 if lane == 5 else 0]
    dst[lane] = broadcast + pair + apart


def tile_walks_of(pitch, dtype):
    """Row, column, diagonal and anti-diagonal of a 32x32 tile."""

    @cuda.jit
    def tile_walks(src, dst):
        tile = cuda.shared.array((LANES, pitch), dtype)
        lane = cuda.threadIdx.x
        for row in range(LANES):
            tile[row, lane] = src[row, lane]
        # Every row must be written before a lane reads across rows.
        cuda.syncthreads()
        dst[0, lane] = tile[7, lane]
        dst[1, lane] = tile[lane, 7]
        dst[2, lane] = tile[lane, lane]
        dst[3, lane] = tile[lane, 31 - lane]

    return tile_walks


def xor_walks_of(mask):
    """The same walks where the column is XORed with those bits of the row that `mask` keeps."""

    @cuda.jit
    def xor_walks(src, dst):
        tile = cuda.shared.array((LANES, LANES), np.float32)
        lane = cuda.threadIdx.x
        for row in range(LANES):
            tile[row, lane ^ (row & mask)] = src[row, lane]
        # Every row must be written before a lane reads across rows.
        cuda.syncthreads()
        dst[0, lane] = tile[7, lane ^ (7 & mask)]
        dst[1, lane] = tile[lane, 7 ^ (lane & mask)]
        dst[2, lane] = tile[lane, lane ^ (lane & mask)]
        dst[3, lane] = tile[lane, (31 - lane) ^ (lane & mask)]

    return xor_walks


@cuda.jit
def rotated_walks(src, dst):
    """The same walks where each row is rotated by its number."""
    tile = cuda.shared.array((LANES, LANES), np.float32)
    lane = cuda.threadIdx.x
    for row in range(LANES):
        tile[row, (row + lane) & 31] = src[row, lane]
    # Every row must be written before a lane reads across rows.
    cuda.syncthreads()
    dst[0, lane] = tile[7, (7 + lane) & 31]
    dst[1, lane] = tile[lane, (lane + 7) & 31]
    dst[2, lane] = tile[lane, (lane + lane) & 31]
    dst[3, lane] = tile[lane, (lane + 31 - lane) & 31]


@cuda.jit
def partial_warps(words, dst):
    """Conflicts count only among the lanes that take part."""
    s = cuda.shared.array(WORDS, np.float32)
    lane = cuda.threadIdx.x
    for i in range(lane, WORDS, LANES):
        s[i] = words[i]
    # Every word must be written before a lane reads its neighbour's.
    cuda.syncthreads()
    dst[lane] = 0
    if lane < 16:
        dst[lane] = s[2 * lane]
    if lane >= 28:
        dst[lane] = s[32 * lane]


@cuda.jit
def column_store(src, dst):
    """Each lane writes the first word of its own row, then all read the column back."""
    s = cuda.shared.array(WORDS, np.float32)
    lane = cuda.threadIdx.x
    s[32 * lane] = src[lane]
    dst[lane] = s[32 * lane]


@cuda.jit
def paired_lanes(words, dst):
    """8-byte words shared by neighbouring lanes, by the two halves of the warp, and by all lanes."""
    s = cuda.shared.array(LANES, np.float64)
    lane = cuda.threadIdx.x
    s[lane] = words[lane]
    # Every word must be written before a lane reads its neighbour's.
    cuda.syncthreads()
    words_of_pairs = s[lane // 2]
    words_of_halves = s[lane % 16]
    word_of_all = s[3]
    dst[0, lane] = words_of_pairs
    dst[1, lane] = words_of_halves
    dst[2, lane] = word_of_all


def half_unit_swizzle_of(bits):
    """A 32x16 tile of 8-byte elements; the unit number is XORed with the low `bits` bits of the row."""
    mask = (1 << bits) - 1

    @cuda.jit
    def half_unit_swizzle(src, dst):
        tile = cuda.shared.array((32, 16), np.float64)
        lane = cuda.threadIdx.x
        for pair in range(0, 32, 2):
            row, col = pair + lane // 16, lane % 16
            tile[row, col ^ (row & mask)] = src[row, col]
        # Every row must be written before a lane reads across rows.
        cuda.syncthreads()
        dst[lane] = tile[lane, 3 ^ (lane & mask)]

    return half_unit_swizzle


def _one_warp(kernel, arguments, reference, predictions, variant="", simulator=""):
    return Case(
        kernel, 1, LANES, arguments, reference, variant, predictions=tuple(predictions), simulator=simulator
    )


def _strided(dtype, base, stride, wavefronts, ideal, id_, size=WORDS):
    return _one_warp(
        strided_of(dtype, size),
        lambda fill: (fill(size, dtype), poisoned(LANES, dtype), base, stride),
        lambda words, dst, base, stride: {1: words[base : base + LANES * stride : stride]},
        [Prediction("s[base + lane * stride]", "load", wavefronts=wavefronts, ideal=ideal, id=id_)],
        f"{np.dtype(dtype)}, base {base}, stride {stride}",
        simulator="no float16 arithmetic in shared arrays" if np.dtype(dtype) == np.float16 else "",
    )


def _walks(kernel, pitch, dtype, degrees, ideal, id_, variant):
    def reference(src, dst):
        lanes = np.arange(LANES)
        return {1: np.stack([src[7], src[:, 7], src[lanes, lanes], src[lanes, 31 - lanes]])}

    fragments = ("dst[0, lane]", "dst[1, lane]", "dst[2, lane]", "dst[3, lane]")
    return _one_warp(
        kernel,
        lambda fill: (fill((LANES, LANES), dtype), poisoned((4, LANES), dtype)),
        reference,
        [
            Prediction(fragment, "load", wavefronts=degree, ideal=ideal, id=id_)
            for fragment, degree in zip(fragments, degrees, strict=True)
        ],
        variant,
    )


def _gcd(stride):
    return int(np.gcd(stride, 32))


CASES = [
    _strided(np.float32, 0, 1, 1, 1, "K-bk-1"),
    *(
        _strided(np.float32, 0, stride, _gcd(stride), 1, "K-bk-2")
        for stride in (2, 3, 4, 5, 8, 12, 16, 24, 31, 32, 33)
    ),
    *(_strided(np.float32, 1, stride, _gcd(stride), 1, "K-bk-11") for stride in (1, 2, 16, 32, 33)),
    _one_warp(
        few_words,
        lambda fill: (fill(64, np.float32), poisoned(LANES, np.float32)),
        lambda words, dst: {
            1: words[0] + words[np.arange(LANES) % 2] + words[np.where(np.arange(LANES) == 5, 32, 0)]
        },
        [
            Prediction("broadcast = s[0]", "load", wavefronts=1, ideal=1, id="K-bk-3"),
            Prediction("pair = s[", "load", wavefronts=1, ideal=1, id="K-bk-3"),
            Prediction("apart = s[", "load", wavefronts=2, ideal=1, id="K-bk-3"),
        ],
    ),
    _walks(tile_walks_of(32, np.float32), 32, np.float32, (1, 32, 1, 1), 1, "K-bk-4", "float32, pitch 32"),
    _walks(tile_walks_of(33, np.float32), 33, np.float32, (1, 1, 2, 32), 1, "K-pd-10", "float32, pitch 33"),
    _walks(tile_walks_of(32, np.float64), 32, np.float64, (2, 32, 2, 2), 2, "K-bk-8", "float64, pitch 32"),
    _walks(tile_walks_of(33, np.float64), 33, np.float64, (2, 2, 4, 32), 2, "", "float64, pitch 33"),
    _walks(xor_walks_of(31), 32, np.float32, (1, 1, 32, 32), 1, "K-sw-1", "5 bits"),
    _walks(rotated_walks, 32, np.float32, (1, 1, 2, 32), 1, "K-sw-2", ""),
    _one_warp(
        partial_warps,
        lambda fill: (fill(WORDS, np.float32), poisoned(LANES, np.float32)),
        lambda words, dst: {1: np.concatenate([words[0:32:2], np.zeros(12), words[32 * 28 : 1024 : 32]])},
        [
            Prediction("s[2 * lane]", "load", wavefronts=1, ideal=1, id="K-bk-5"),
            Prediction("s[32 * lane]", "load", wavefronts=4, ideal=1, id="K-bk-5"),
        ],
    ),
    _one_warp(
        column_store,
        lambda fill: (fill(LANES, np.float32), poisoned(LANES, np.float32)),
        lambda src, dst: {1: src},
        [
            Prediction("s[32 * lane] = src", "store", wavefronts=32, ideal=1, id="K-bk-6"),
            Prediction("dst[lane] = s[", "load", wavefronts=32, ideal=1, id="K-bk-6"),
        ],
    ),
    *(
        _strided(np.float16, 0, stride, wavefronts, 1, "K-bk-7", size=2048)
        for stride, wavefronts in ((1, 1), (2, 1), (4, 2), (64, 32))
    ),
    *(
        _strided(np.int8, 0, stride, wavefronts, 1, "K-bk-7", size=4096)
        for stride, wavefronts in ((1, 1), (4, 1), (128, 32))
    ),
    *(_strided(np.float64, 0, stride, wavefronts, 2, "K-bk-8") for stride, wavefronts in ((1, 2), (2, 4))),
    _one_warp(
        paired_lanes,
        lambda fill: (fill(LANES, np.float64), poisoned((3, LANES), np.float64)),
        lambda words, dst: {
            1: np.stack(
                [words[np.arange(LANES) // 2], words[np.arange(LANES) % 16], np.full(LANES, words[3])]
            )
        },
        [
            Prediction("words_of_pairs = s[", "load", wavefronts=1, ideal=1, id="K-bk-10"),
            # Lanes 0 and 16 share a word, but no lane shares with the lane 1 or 2 places on: nothing is fused.
            Prediction("words_of_halves = s[", "load", wavefronts=2, ideal=2),
            Prediction("word_of_all = s[", "load", wavefronts=1, ideal=1),
        ],
    ),
    *(
        _walks(
            xor_walks_of((1 << bits) - 1), 32, np.float32, (1, 32 >> bits, *rest), 1, "K-sw-3", f"{bits} bits"
        )
        for bits, rest in ((0, (1, 1)), (1, (2, 2)), (2, (4, 4)), (3, (8, 8)), (4, (16, 16)))
    ),
    *(
        _one_warp(
            half_unit_swizzle_of(bits),
            lambda fill: (fill((32, 16), np.float64), poisoned(LANES, np.float64)),
            lambda src, dst: {1: src[:, 3]},
            [
                Prediction("tile[row, col ^", "store", wavefronts=2, ideal=2, id="K-sw-5"),
                Prediction("dst[lane] = tile", "load", wavefronts=32 >> bits, ideal=2, id="K-sw-5"),
            ],
            f"{bits} bits",
        )
        for bits in range(5)
    ),
]
