"""Experiments with the transpose ladder: what a tile's layout costs."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import padding


def _inputs(n: int, rng: np.random.Generator) -> Mapping[str, Any]:
    return {"src": rng.random((n, n), np.float32)}


def _outputs(values: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    return {"dst": padding.reference(values["src"])}


def transpose_of(n: int) -> Problem:
    """Transpose an n x n matrix of float32."""
    return Problem(f"transpose {n}x{n}", partial(_inputs, n), _outputs)


def experiments() -> tuple[Experiment, ...]:
    """E-04: the ladder."""
    rungs = {
        "naive": padding.transpose_naive,
        "tiled": padding.transpose_tiled,
        "padded": padding.transpose_padded,
        "swizzled": padding.transpose_swizzled,
    }

    def cases(n: int) -> tuple[Case, ...]:
        problem = transpose_of(n)
        return tuple(
            Case(label, kernel, problem, (n // 32, n // 32), padding.BLOCK, useful_bytes=8 * n * n)
            for label, kernel in rungs.items()
        )

    return (
        Experiment(
            "E-04",
            "What does each rung of the transpose ladder cost?",
            timed=tuple(case for n in (4096, 16384) for case in cases(n)),
            counted=cases(1024),
            ceiling=Ceiling("device_copy"),
            speed="speed:transpose",
        ),
    )
