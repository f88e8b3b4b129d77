"""Experiments with asynchronous copies: when they pay, when they do not, barriers, and how a grid ends."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from lanewise.experiments.h200 import SMS
from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import async_pipelines as ap

Values = Mapping[str, Any]
Outputs = Mapping[str, np.ndarray]

COPY = Ceiling("device_copy")
FMAS = (0, 8, 16, 24, 32, 48, 64, 128, 256)
RUNGS = (
    ap.direct,
    ap.tiled,
    ap.prefetched,
    ap.copied,
    ap.pipelined_2,
    ap.pipelined_3,
    ap.pipelined_4,
    ap.pipelined_8,
)
SWEPT = (ap.direct, ap.tiled, ap.prefetched, ap.pipelined_2, ap.pipelined_3, ap.pipelined_4)
FEW = 16 * ap.TILE  # elements of a counted case


def _eighths(n: int, rng: np.random.Generator) -> Values:
    """Numbers, a factor of -1 and a shift: no rounding, and two steps give an element back."""
    src = rng.integers(-64, 64, n, np.int8).astype(np.float32)
    src /= 8
    return {"src": src, "factor": np.float32(-1), "shift": np.float32(3)}


def _worked(n_fmas: int, values: Values) -> Outputs:
    return {"dst": ap.reference(values["src"], values["factor"], values["shift"], n_fmas % 2)}


@cache
def working(n: int, n_fmas: int) -> Problem:
    """Apply x * -1 + 3 to n elements, an even or an odd number of times: what comes out is known by that."""
    parity = "odd" if n_fmas % 2 else "even"
    return Problem(f"{parity} steps on {n}", partial(_eighths, n), partial(_worked, n_fmas % 2))


def _case(kernel: Any, n: int, n_fmas: int, grid: int, label: str, profiled: bool = False) -> Case:
    """`grid` blocks. The copies are of 16 bytes; the model knows no cost of theirs."""
    name = kernel.py_func.__name__
    sectors, words = n // 8, n // 32  # sectors of all elements; wavefronts of one word per lane
    totals = {"global_.store.sectors": sectors}
    if kernel is not ap.direct:
        totals["shared.load.wavefronts"] = words
    if kernel in (ap.tiled, ap.prefetched):
        totals["shared.store.wavefronts"] = words  # 4 a request of 128 words
    if kernel in (ap.direct, ap.tiled):
        totals["global_.load.sectors"] = sectors
    if kernel is ap.prefetched:  # each block's last load finds no next tile, and takes the last one again
        totals["global_.load.sectors"] = sectors + grid * ap.TILE // 8
    return Case(
        f"{name}{label}",
        kernel,
        working(n, n_fmas),
        grid,
        ap.THREADS,
        scalars={"n_fmas": n_fmas},
        useful_bytes=8 * n,
        flops=2 * n * n_fmas,
        arithmetic=totals,
        profiled=profiled,
    )


def _copies() -> Experiment:
    return Experiment(
        "E-33",
        "What does an asynchronous copy save a kernel that only copies?",
        timed=tuple(
            _case(kernel, n, 0, SMS * 8, f", {n} elements") for n in (1 << 26, 1 << 28) for kernel in RUNGS
        ),
        counted=tuple(_case(kernel, FEW, 3, 5, "") for kernel in RUNGS),
        ceiling=COPY,
    )


def _work() -> Experiment:
    """Stalls are asked for where copy and work take as long as each other."""
    return Experiment(
        "E-34",
        "From how much work per element does an asynchronous copy pay, and with how many blocks per SM?",
        timed=tuple(
            _case(
                kernel,
                1 << 26,
                n_fmas,
                SMS * n_blocks,
                f", {n_fmas} FMAs, {n_blocks} blocks per SM",
                profiled=n_fmas == 64 and n_blocks in (1, 8) and kernel in (ap.tiled, ap.pipelined_4),
            )
            for n_fmas in FMAS
            for n_blocks in (1, 2, 4, 8)
            for kernel in SWEPT
        ),
        ceiling=COPY,
    )


def _places() -> Experiment:
    """The copies of one warp, at destinations `pitch` floats apart: eight between two waits, `gap` apart."""
    rows = (
        (ap.place_4, 1, "contiguous", 1, 32, 1),
        (ap.place_4, 1, "128 bytes per lane", 32, 1, 32),
        (ap.place_4, 1, "one address", 0, 1, 32),
        (ap.place_8, 2, "contiguous", 2, 64, 2),
        (ap.place_8, 2, "128 bytes per lane", 32, 2, 32),
        (ap.place_16, 4, "contiguous", 4, 128, 4),
        (ap.place_16, 4, "128 bytes per lane", 32, 4, 32),
        (ap.place_16_cg, 4, "contiguous", 4, 128, 0),
        (ap.place_16_cg, 4, "128 bytes per lane", 32, 4, 0),
    )

    def cases(n_warps: int, n_rounds: int) -> tuple[Case, ...]:
        found = []
        for kernel, elems, where, pitch, gap, wavefronts in rows:
            size = 4 * elems
            alike = pitch == 0  # all lanes copy one number, so that it does not matter who is last
            problem = Problem(
                f"place {32 * n_warps} of {size} bytes{', alike' if alike else ''}",
                partial(_placing, 32 * n_warps * elems, alike),
                partial(_placed, elems),
            )
            totals = {"shared.load.requests": n_warps, "global_.store.sectors": 4 * n_warps}
            if wavefronts:
                totals["shared.async_copy.wavefronts"] = 8 * n_rounds * n_warps * wavefronts
            found.append(
                Case(
                    f"{kernel.py_func.__name__}, {where}",
                    kernel,
                    problem,
                    n_warps,
                    32,
                    scalars={"pitch": pitch, "gap": gap, "n_rounds": n_rounds},
                    arithmetic=totals,
                    hazards=("shared_race",) if alike else (),
                )
            )
        return tuple(found)

    return Experiment(
        "E-33-place",
        "What does the place in shared memory cost that an asynchronous copy writes to?",
        timed=cases(SMS * 32, 128),
        counted=cases(8, 2),
    )


def _placing(n: int, alike: bool, rng: np.random.Generator) -> Values:
    return {"src": np.full(n, rng.random(), np.float32) if alike else rng.random(n, np.float32)}


def _placed(elems: int, values: Values) -> Outputs:
    return {"dst": values["src"][::elems].copy()}


def _surplus() -> Experiment:
    def cases(n: int, grids: Mapping[int, tuple[int, ...]]) -> tuple[Case, ...]:
        return tuple(
            Case(
                f"{1 + more} barriers, {threads} threads, {n_blocks} blocks" + (" per SM" if n > FEW else ""),
                ap.barriers,
                working(n, 0),
                n_blocks * (SMS if n > FEW else 1),
                threads,
                scalars={"n_fmas": 0, "n_barriers": more},
                useful_bytes=8 * n,
                arithmetic={
                    "global_.load.sectors": n // 8,
                    "global_.store.sectors": n // 8,
                    "shared.store.wavefronts": n // 32,
                    "shared.load.wavefronts": n // 32,
                },
                profiled=n > FEW and more in (0, 7) and n_blocks == grids[threads][-1],
            )
            for threads, blocks in grids.items()
            for n_blocks in blocks
            for more in (0, 1, 7)
        )

    return Experiment(
        "E-35",
        "What do barriers cost that nobody needs?",
        timed=cases(1 << 26, {128: (1, 8), 1024: (1, 2)}),
        counted=cases(FEW, {128: (5,), 1024: (3,)})[::2],
        ceiling=COPY,
    )


def _ends() -> Experiment:
    """A wave is all the blocks that the GPU holds at once: 8 per SM of 256 threads each."""
    wave, steps = SMS * 8, 1 << 16

    def case(label: str, n_blocks: int, n_fmas: int, last: int, profiled: bool = False) -> Case:
        n = n_blocks * ap.THREADS
        return Case(
            label,
            ap.spin,
            working(n, 0),
            n_blocks,
            ap.THREADS,
            scalars={"n_fmas": n_fmas, "n_fmas_last": last},
            flops=2 * ap.THREADS * (n_fmas * (n_blocks - 1) + last),
            arithmetic={"global_.load.sectors": n // 8, "global_.store.sectors": n // 8},
            profiled=profiled,
        )

    return Experiment(
        "E-42",
        "What does one block more than the GPU holds cost, and one block that works on?",
        timed=(
            case("one wave", wave, steps, steps, True),
            case("one wave and a block", wave + 1, steps, steps, True),
            case("two waves", 2 * wave, steps, steps),
            case("one wave, its last block ten times as long", wave, steps, 10 * steps, True),
        ),
        counted=(case("two blocks", 2, 4, 8),),
    )


def experiments() -> tuple[Experiment, ...]:
    """E-33, E-34, E-35 and E-42."""
    return (_copies(), _places(), _work(), _surplus(), _ends())
