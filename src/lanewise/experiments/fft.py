"""Experiments with Fourier transforms: what each stage costs in shared memory, and how fast a batch goes."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import fft, fft_fast

SMALL = {  # 1,024 points
    "split": (fft.fft_split, fft.BLOCK),
    "padded": (fft.fft_padded, fft.BLOCK),
    "pairs": (fft.fft_pairs, fft.BLOCK),
    "sorted": (fft.fft_sorted, fft.BLOCK),
    "radix 4": (fft.fft_radix4, fft.BLOCK_4),
}
FAST = {  # 4,096 points
    "radix 8": (fft_fast.fft_radix8, fft_fast.BLOCK_8),
    "radix 16": (fft_fast.fft_radix16, fft_fast.BLOCK_16),
}
STAGES = tuple(1 << k for k in range(fft.BITS))
ROWS = 3  # of the counted cases


def _inputs(batch: int, points: int, rng: np.random.Generator) -> Mapping[str, Any]:
    """Normal numbers. `signal` holds the same bytes as `src`, for libraries that know complex numbers."""
    src = rng.standard_normal((batch, 2 * points), np.float32)
    return {"signal": src.view(np.complex64), "src": src, "roots": fft.roots_of_unity(points)}


def _with_tolerance(
    name: str, batch: int, points: int, outputs: Callable[[np.ndarray], np.ndarray], rounds: int
) -> Problem:
    """A problem whose results grow by sqrt(2) in each of `rounds`."""
    return Problem(
        name,
        partial(_inputs, batch, points),
        lambda values: {"dst": outputs(values["src"])},
        absolute_tolerance=3e-6 * 2 ** (rounds / 2),
    )


def transform_of(batch: int, points: int) -> Problem:
    """Transform each row of a batch."""
    name = f"transforms of {batch} x {points} points"
    return _with_tolerance(name, batch, points, fft.reference, points.bit_length())


def stage_of(distance: int) -> Problem:
    """One stage of radix 2."""
    name = f"one stage at distance {distance}"
    return _with_tolerance(name, ROWS, fft.POINTS, lambda src: fft.reference_stage(src, distance), 1)


REVERSED = _with_tolerance("bit-reversed order", ROWS, fft.POINTS, fft.reference_reversed, 0)


def split_degree(distance: int, padded: bool = False) -> int:
    """Wavefronts of one access of a stage, parts in arrays of their own: 32 lanes at 4 bytes.

    Up to distance 16, a warp's lower points spread over 64 words. With an unused word after 32 the second
    half moves by one bank: it fills the gaps at distance 1, and overlaps most of the first half beyond.
    """
    return 2 if distance <= 16 and not (padded and distance == 1) else 1


def pairs_degree(distance: int) -> int:
    """Wavefronts of one access of a stage, parts side by side: 16 lanes at 8 bytes, twice.

    Up to distance 8, a half-warp's lower points spread over 32 places of 8 bytes.
    """
    return 4 if distance <= 8 else 2


def _shared(label: str) -> Mapping[str, int]:
    """Shared wavefronts of one block, loads and stores; `copy` moves one part of each point."""
    copy = fft.POINTS // 32
    split = sum(split_degree(distance) for distance in STAGES)
    padded = sum(split_degree(distance, padded=True) for distance in STAGES)
    pairs = sum(pairs_degree(distance) for distance in STAGES)
    radix_4 = sum((8, 8, 2, 2, 2))  # 4 points from lane to lane, then runs of 4 that are 16 apart; then dense
    loads, stores = {
        "split": (2 * copy * (split + 1), 2 * copy * (split + 32)),
        "padded": (2 * copy * (padded + 1), 2 * copy * (padded + 1)),
        # A half-warp's bit-reversed places are 66 words of 8 bytes apart: two of them share each bank.
        "pairs": (copy * (pairs + 2), copy * (pairs + 4)),
        "sorted": (copy * 2 * len(STAGES), copy * pairs),
        "radix 4": (copy * 2 * 5, copy * radix_4),
        "radix 8": (4 * copy * 2 * 3, 4 * copy * 2 * 3),
        "radix 16": (4 * copy * 2 * 2, 4 * copy * 2 * 2),
    }[label]
    return {"shared.load.wavefronts": loads, "shared.store.wavefronts": stores}


def _transforms(batch: int, points: int, counted: bool) -> tuple[Case, ...]:
    problem = transform_of(batch, points)
    n = batch * points
    operations = 5 * n * (points.bit_length() - 1)  # the usual count, of radix 2
    found = []
    for label, (kernel, block) in (SMALL if points == fft.POINTS else FAST).items():
        arithmetic = {}
        if counted:
            arithmetic = {name: batch * wavefronts for name, wavefronts in _shared(label).items()}
            arithmetic |= {"global_.store.sectors": n // 4}
        work: dict[str, Any] = {"useful_bytes": 16 * n, "flops": operations, "arithmetic": arithmetic}
        found.append(Case(label, kernel, problem, batch, block, **work))
    return tuple(found)


def _pieces() -> tuple[Case, ...]:
    """Each stage of radix 2 alone, and the bit-reversed order."""
    copy, found = fft.POINTS // 32, []
    for distance in STAGES:
        for label, kernel, cost in (
            ("split", fft.stage_split, 2 * split_degree(distance)),
            ("pairs", fft.stage_pairs, pairs_degree(distance)),
        ):
            arithmetic = dict.fromkeys(
                ("shared.load.wavefronts", "shared.store.wavefronts"), ROWS * copy * (cost + 2)
            )
            work: dict[str, Any] = {"scalars": {"distance": distance}, "arithmetic": arithmetic}
            label = f"{label}, distance {distance}"
            found.append(Case(label, kernel, stage_of(distance), ROWS, fft.BLOCK, **work))
    for label, pad, degree in (("plain", 0, 32), ("padded", 1, 1)):
        arithmetic = {
            "shared.load.wavefronts": ROWS * copy * 2,
            "shared.store.wavefronts": ROWS * copy * 2 * degree,
            "shared.store.ideal": ROWS * copy * 2,
        }
        work = {"scalars": {"pad": pad}, "arithmetic": arithmetic}
        label = f"bit-reversed, {label}"
        found.append(Case(label, fft.reverse_split, REVERSED, ROWS, fft.BLOCK, **work))
    return tuple(found)


def experiments() -> tuple[Experiment, ...]:
    """E-36, the part on Fourier transforms: the ladder stage by stage, and the fastest batch."""
    return (
        Experiment(
            "E-36-fft",
            "What does each stage of a Fourier transform cost in shared memory, and the whole in time?",
            timed=(
                *_transforms((1 << 24) // fft.POINTS, fft.POINTS, counted=False),
                *_transforms((1 << 24) // fft_fast.POINTS, fft_fast.POINTS, counted=False),
            ),
            counted=(
                *_pieces(),
                *_transforms(ROWS, fft.POINTS, counted=True),
                *_transforms(ROWS, fft_fast.POINTS, counted=True),
            ),
            ceiling=Ceiling("fft"),
        ),
        Experiment(
            "E-36-batch",
            "How near does a batch of 4,096-point transforms come to the speed of memory?",
            timed=_transforms(8192, fft_fast.POINTS, counted=False),
            ceiling=Ceiling("fft"),
            speed="speed:fft",
        ),
    )
