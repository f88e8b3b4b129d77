"""Experiments with shared-memory banks: what one warp's pattern costs, and what it costs a whole GPU."""

from collections.abc import Mapping
from functools import cache, partial
from math import gcd
from typing import Any

import numpy as np

from lanewise.experiments.h200 import SMS
from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import banks, banks_repeated, banks_widths, swizzle

STRIDES = range(34)
FILL = banks.WORDS // 32  # stores, one wavefront each, that fill the array
WIDE_FILL = banks_widths.N_ELEMS // 32
FULL = SMS * 8  # blocks: eight on each multiprocessor
REPETITIONS = 1024


def experiments() -> tuple[Experiment, ...]:
    """E-01 to E-03, E-05, E-19, E-44 and the race."""
    return (
        Experiment(
            "E-01",
            "What does a stride cost, one warp and a full GPU?",
            timed=tuple(
                repeated_reads(stride, FULL, REPETITIONS // banks_repeated.UNROLL) for stride in STRIDES
            ),
            counted=(
                *(_stride(stride) for stride in STRIDES),
                *(_shifted(stride) for stride in (0, 1, 2, 16, 32, 33)),
                *_words(),
                *(repeated_reads(stride, 2, 4) for stride in (0, 1, 2, 32, 33)),
            ),
        ),
        Experiment("E-02", "What do narrow and wide elements cost?", counted=_widths()),
        Experiment(
            "E-03",
            "What do lanes cost that do not take part?",
            counted=tuple(_partly(*case) for case in ((2, 16, 1), (2, 32, 2), (32, 4, 4), (32, 1, 1))),
        ),
        Experiment("E-03-race", "Does a missing barrier show?", counted=(_too_early(),)),
        Experiment(
            "E-05",
            "What do the conflicts of a whole kernel cost where DRAM has a say?",
            timed=tuple(case for n in (4096, 16384) for case in _scales(n)),
            counted=_scales(256),
            ceiling=Ceiling("device_copy"),
        ),
        Experiment("E-19", "When does the efficiency of shared memory mislead?", counted=_traps()),
        Experiment(
            "E-44",
            "How fast are registers, shared memory and DRAM?",
            timed=_speeds(FULL, n_rounds=256, n_steps=2**16, n_words=2**26),
            counted=_speeds(2, n_rounds=4, n_steps=64, n_words=2**16),
        ),
    )


# --- One warp: the inputs are numbers, the expected values follow from them.


def _given(numbers: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
    return numbers


def _gives(dst: np.ndarray, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": dst}


def _warp(label: str, kernel: Any, dst: np.ndarray, load: int, store: int = FILL, **numbers: Any) -> Case:
    """One warp that fills an array in `store` wavefronts and reads it by one request in `load`."""
    name = getattr(kernel, "py_func", kernel).__name__
    return Case(
        label,
        kernel,
        Problem(f"{name} {numbers}", partial(_given, numbers), partial(_gives, dst)),
        grid=1,
        block=32,
        arithmetic={"shared.load.wavefronts": load, "shared.store.wavefronts": store},
    )


def _stride(stride: int) -> Case:
    load = gcd(stride, 32) if stride else 1  # all lanes on one word is a broadcast
    return _warp(f"stride {stride}", banks.read_stride, banks.reference_stride(stride), load, stride=stride)


def _shifted(stride: int) -> Case:
    load = gcd(stride, 32) if stride else 1
    dst = banks.reference_stride(stride) + np.float32(1)
    return _warp(f"stride {stride} from word 1", banks.read_shifted, dst, load, stride=stride, base=1)


def _words() -> tuple[Case, ...]:
    own, tile = banks.reference_stride(1), banks.reference_tile
    apart = np.where(np.arange(32) == 31, np.float32(32), np.float32(0))
    return (
        _warp("own word", banks.read_own, own, 1),
        _warp("one word", banks.read_first, banks.reference_stride(0), 1),
        _warp("two words, two banks", banks.read_pair, own % 2, 1),
        _warp("two words, one bank", banks.read_pair_in_bank, apart, 2),
        _warp("column", banks.read_column, tile(1, 0), 32, store=32),
        _warp("diagonal", banks.read_diagonal, tile(1, 1), 1, store=32),
        _warp("store, 32 apart", banks.store_stride, own, 32, store=32, stride=32),
        _store_first(),
    )


def _store_first() -> Case:
    """All lanes store to one word. Which value survives is not defined, so it is not compared."""
    problem = Problem(
        "store_first", partial(_given, {}), partial(_gives, banks.reference_stride(0)), 0.0, 31.0
    )
    return Case(
        "store, one word",
        banks.store_first,
        problem,
        grid=1,
        block=32,
        arithmetic={"shared.load.wavefronts": 1, "shared.store.wavefronts": 1},
        hazards=("shared_race",),
    )


def _partly(stride: int, n_lanes: int, load: int) -> Case:
    dst = banks.reference_partly(stride, n_lanes)
    return _warp(
        f"{n_lanes} lanes, stride {stride}", banks.read_partly, dst, load, stride=stride, n_lanes=n_lanes
    )


def _too_early() -> Case:
    return Case(
        "no barrier",
        banks.read_too_early,
        Problem("read_too_early", partial(_given, {}), partial(_gives, banks.reference_tile(1, 0))),
        grid=1,
        block=32,
        arithmetic={"shared.load.wavefronts": 32, "shared.store.wavefronts": 32},
        hazards=("shared_race",),
    )


# --- Widths: an array of 4,096 elements is filled by rows of 32.


def _elements(dtype: Any, numbers: Mapping[str, Any], rng: np.random.Generator) -> Mapping[str, Any]:
    return {"src": rng.integers(0, 100, banks_widths.N_ELEMS).astype(dtype), **numbers}


def _strided(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": banks_widths.reference_stride(values["src"], values["stride"])}


def _vectors(width: int, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": banks_widths.reference_vectors(values["src"], width, values["stride"], values["sharing"])}


def _stored(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": banks_widths.reference_stored(values["src"], values["stride"])}


def _typed(label: str, kernel: Any, dtype: Any, stride: int, load: int, ideal: int = 1) -> Case:
    fill = WIDE_FILL * (2 if dtype is np.float64 else 1)
    inputs = partial(_elements, dtype, {"stride": stride})
    return Case(
        label,
        kernel,
        Problem(f"stride {stride} of {np.dtype(dtype)}", inputs, _strided),
        grid=1,
        block=32,
        arithmetic={
            "shared.load.wavefronts": load,
            "shared.load.ideal": ideal,
            "shared.load.bytes_requested": 32 * np.dtype(dtype).itemsize,
            "shared.store.wavefronts": fill,
        },
    )


def _wide(label: str, kernel: Any, width: int, stride: int, sharing: int, load: int, ideal: int) -> Case:
    inputs = partial(_elements, np.float32, {"stride": stride, "sharing": sharing})
    return Case(
        label,
        kernel,
        Problem(f"{width} floats, {stride} apart, shared by {sharing}", inputs, partial(_vectors, width)),
        grid=1,
        block=32,
        arithmetic={
            "shared.load.wavefronts": load,
            "shared.load.ideal": ideal,
            "shared.load.bytes_requested": 128 * width // sharing,
            "shared.store.wavefronts": WIDE_FILL,
        },
    )


def _store_wide(label: str, stride: int, wavefronts: int) -> Case:
    return Case(
        label,
        banks_widths.store_fours,
        Problem(
            f"store 4 floats, {stride} apart", partial(_elements, np.float32, {"stride": stride}), _stored
        ),
        grid=1,
        block=32,
        arithmetic={
            "shared.store.wavefronts": WIDE_FILL + wavefronts,
            "shared.store.ideal": WIDE_FILL + 4,
            "shared.load.wavefronts": WIDE_FILL,
        },
        hazards=() if stride else ("shared_race",),
    )


def _widths() -> tuple[Case, ...]:
    w = banks_widths
    return (
        *(
            _typed(f"half, stride {s}", w.read_halves, np.float16, s, n)
            for s, n in ((1, 1), (2, 1), (4, 2), (64, 32))
        ),
        *(_typed(f"byte, stride {s}", w.read_bytes, np.int8, s, n) for s, n in ((1, 1), (4, 1), (128, 32))),
        *(
            _typed(f"double, stride {s}", w.read_doubles, np.float64, s, n, ideal=2)
            for s, n in ((1, 2), (2, 4), (32, 32), (33, 2))
        ),
        _wide("two floats, side by side", w.read_twos, 2, 2, 1, 2, 2),
        _wide("two floats, by pairs of lanes", w.read_twos, 2, 2, 2, 1, 1),
        _wide("four floats, side by side", w.read_fours, 4, 4, 1, 4, 4),
        _wide("four floats, 32 bytes apart", w.read_fours, 4, 8, 1, 8, 4),
        _wide("four floats, 128 bytes apart", w.read_fours, 4, 32, 1, 32, 4),
        _wide("four floats, by pairs of lanes", w.read_fours, 4, 4, 2, 2, 2),
        _wide("four floats, one place", w.read_fours, 4, 4, 32, 2, 2),
        _store_wide("store four floats, side by side", 4, 4),
        _store_wide("store four floats, one place", 0, 4),
    )


def _traps() -> tuple[Case, ...]:
    """No conflict in any of them, and bytes per wavefront of 100, 25, 50, 50 and 200 percent of 128."""
    return (
        _warp("own word", banks.read_own, banks.reference_stride(1), 1),
        _typed("bytes", banks_widths.read_bytes, np.int8, 1, 1),
        _typed("halves", banks_widths.read_halves, np.float16, 1, 1),
        _partly(1, 16, 1),
        _wide("four floats, one place", banks_widths.read_fours, 4, 4, 32, 2, 2),
    )


# --- Full GPU.


def _starts(stride: int, n_rounds: int, rng: np.random.Generator) -> Mapping[str, Any]:
    return {"starts": (stride * np.arange(32)).astype(np.int32), "n_rounds": n_rounds}


def _sums(n_blocks: int, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    lanes = banks_repeated.reference_repeat_stride(values["starts"], values["n_rounds"])
    return {"dst": np.tile(lanes, n_blocks * banks_repeated.BLOCK // 32)}


def repeated_reads(stride: int, n_blocks: int, n_rounds: int) -> Case:
    """Blocks of eight warps that read words `stride` apart, again and again."""
    n_warps = n_blocks * banks_repeated.BLOCK // 32
    loads = n_warps * n_rounds * banks_repeated.UNROLL
    ways = gcd(stride, 32) if stride else 1
    return Case(
        f"stride {stride}, {n_blocks} blocks",
        banks_repeated.repeat_stride,
        Problem(
            f"repeated stride {stride}, {n_blocks} blocks",
            partial(_starts, stride, n_rounds),
            partial(_sums, n_blocks),
        ),
        grid=n_blocks,
        block=banks_repeated.BLOCK,
        useful_bytes=128 * loads,
        arithmetic={"shared.load.wavefronts": ways * loads, "shared.load.ideal": loads},
    )


@cache
def _matrix(n: int, transposed: bool) -> Problem:
    def inputs(rng: np.random.Generator) -> Mapping[str, Any]:
        return {"src": rng.random((n, n), np.float32)}

    def outputs(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
        doubled = banks.reference_scale(values["src"])
        return {"dst": np.ascontiguousarray(doubled.T) if transposed else doubled}

    return Problem(f"{'doubled transpose' if transposed else 'doubled'} {n}x{n}", inputs, outputs)


def _scales(n: int) -> tuple[Case, ...]:
    requests = n * n // 32
    rungs = (
        ("rows", banks.scale_by_rows, 1),
        ("columns", banks.scale_by_columns, 32),
        ("padded", banks.scale_padded, 1),
        ("swizzled", swizzle.scale_swizzled, 1),
    )
    return tuple(
        Case(
            f"{label} {n}",
            kernel,
            _matrix(n, label != "rows"),
            (n // 32, n // 32),
            banks.SCALE_BLOCK,
            useful_bytes=8 * n * n,
            arithmetic={
                "shared.store.wavefronts": requests,
                "shared.load.wavefronts": ways * requests,
                "global_.load.sectors": 4 * requests,
                "global_.store.sectors": 4 * requests,
            },
        )
        for label, kernel, ways in rungs
    )


# --- Registers, shared memory, DRAM: one access after the other (latency), and all at once.


def _rounds(n_rounds: int, rng: np.random.Generator) -> Mapping[str, Any]:
    return {"n_rounds": n_rounds, "factor": np.float32(1), "term": np.float32(1)}


def _counts(n: int, chains: int, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": banks_repeated.reference_multiply_add(n, chains, values["n_rounds"])}


def _fours(n_blocks: int, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": np.tile(banks_repeated.reference_repeat_fours(values["n_rounds"]), n_blocks)}


def _chain(n_words: int, n_steps: int, rng: np.random.Generator) -> Mapping[str, Any]:
    """Every word is visited, in an order with no pattern: a congruential generator of full period."""
    i = np.arange(n_words, dtype=np.uint32)
    return {
        "nexts": (i * np.uint32(1664525) + np.uint32(1013904223)) & np.uint32(n_words - 1),
        "n_steps": n_steps,
    }


def _ring(n_steps: int, rng: np.random.Generator) -> Mapping[str, Any]:
    """All lanes move on by 33 words, so they stay in 32 banks."""
    i = np.arange(banks_repeated.CHAIN, dtype=np.uint32)
    return {"nexts": (i + np.uint32(33)) % np.uint32(banks_repeated.CHAIN), "n_steps": n_steps}


def _ends(n_lanes: int, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": banks_repeated.reference_chase(values["nexts"], values["n_steps"], n_lanes)}


def _small(n: int, rng: np.random.Generator) -> Mapping[str, Any]:
    return {"src": rng.integers(0, 8, n).astype(np.float32)}


def _read(n_threads: int, values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": banks_repeated.reference_read_global(values["src"], n_threads)}


def _speeds(n_blocks: int, n_rounds: int, n_steps: int, n_words: int) -> tuple[Case, ...]:
    r = banks_repeated
    n_threads = n_blocks * r.BLOCK
    n_floats = n_threads * 4 * max(1, 2 * n_words // (n_threads * 4))
    adds = n_threads * n_rounds * r.UNROLL * 4
    rounds = partial(_rounds, n_rounds)
    alone = n_steps // r.UNROLL
    return (
        Case(
            f"registers, {n_steps} one after the other",
            r.multiply_add_chain,
            Problem(f"chain of {n_steps}", partial(_rounds, alone), partial(_counts, 32, 1)),
            grid=1,
            block=32,
            flops=2 * 32 * n_steps,
            arithmetic={"global_.store.sectors": 4},
        ),
        Case(
            f"shared, {n_steps} one after the other",
            r.chase_shared,
            Problem(f"ring of {n_steps}", partial(_ring, n_steps), partial(_ends, 32)),
            grid=1,
            block=32,
            arithmetic={"shared.load.wavefronts": n_steps, "shared.store.wavefronts": r.CHAIN // 32},
        ),
        Case(
            f"DRAM, {n_steps // 4} one after the other",
            r.chase_global,
            Problem(
                f"chase through {4 * n_words} bytes",
                partial(_chain, n_words, n_steps // 4),
                partial(_ends, 1),
            ),
            grid=1,
            block=1,
            arithmetic={"global_.load.sectors": n_steps // 4},
        ),
        Case(
            f"registers, {n_blocks} blocks",
            r.multiply_add,
            Problem(f"multiply-add, {n_blocks} blocks", rounds, partial(_counts, n_threads, 4)),
            grid=n_blocks,
            block=r.BLOCK,
            useful_bytes=16 * adds,  # three operands and a result of 4 bytes
            flops=2 * adds,
            arithmetic={"global_.store.sectors": n_threads // 8},
        ),
        Case(
            f"shared, {n_blocks} blocks",
            r.repeat_fours,
            Problem(f"repeated four floats, {n_blocks} blocks", rounds, partial(_fours, n_blocks)),
            grid=n_blocks,
            block=r.BLOCK,
            useful_bytes=64 * n_threads * n_rounds,
            arithmetic={"shared.load.wavefronts": n_threads // 32 * n_rounds * 4 * 4},
        ),
        Case(
            f"DRAM, {n_blocks} blocks",
            r.read_global,
            Problem(f"read {4 * n_floats} bytes", partial(_small, n_floats), partial(_read, n_threads)),
            grid=n_blocks,
            block=r.BLOCK,
            useful_bytes=4 * n_floats,
            arithmetic={"global_.load.sectors": n_floats // 8},
        ),
    )
