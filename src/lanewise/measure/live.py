"""A kernel timed here and now, for a page: no reference, no record, and nothing at all without a GPU."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from lanewise.measure.here import gpu_name, why_unfit
from lanewise.measure.protocol import Gpu, Work

WARM_UPS, SAMPLES = 3, 20


@dataclass(frozen=True)
class Timed:
    """Medians in microseconds: the kernel, and a copy by the driver that moves as many bytes as were stated.

    `gpu` is the driver's name of the GPU.
    """

    gpu: str
    us: float
    copy_us: float


def timed(
    kernel: Any,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    arguments: Sequence[Any],
    useful_bytes: int,
    dynamic_shared_bytes: int = 0,
) -> Timed | None:
    """Time launches of a kernel on this machine's GPU, each with a cold L2 cache; None where there is none.

    `arguments` are as for a launch; arrays are copied to the GPU first. `useful_bytes` are what the kernel
    must move at least, which the driver's copy moves as well. Check the kernel's results elsewhere.
    """
    if why_unfit():
        return None
    gpu = import_module("lanewise.measure.gpu").NumbaGpu()
    return time_on(gpu, gpu_name(), kernel, grid, block, arguments, useful_bytes, dynamic_shared_bytes)


def time_on(
    gpu: Gpu,
    name: str,
    kernel: Any,
    grid: int | tuple[int, ...],
    block: int | tuple[int, ...],
    arguments: Sequence[Any],
    useful_bytes: int,
    dynamic_shared_bytes: int = 0,
) -> Timed:
    """The same on a given GPU."""
    held = [gpu.put(value) if isinstance(value, np.ndarray) else value for value in arguments]
    launch = (grid, block, 0, dynamic_shared_bytes) if dynamic_shared_bytes else (grid, block)
    works = [Work(lambda: kernel[launch](*held)), Work(gpu.copier(useful_bytes))]
    gpu.sample(works, WARM_UPS)
    us, copy_us = (statistics.median(samples) for samples in gpu.sample(works, SAMPLES))
    return Timed(name, us, copy_us)
