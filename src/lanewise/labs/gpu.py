"""Launch a learner's kernel on this machine's GPU, compare it with the reference, time it; never graded."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import numpy as np

from lanewise.display import Sentence, say
from lanewise.errors import Error
from lanewise.labs.kernels import KernelTask
from lanewise.labs.runs import Run
from lanewise.text import count, significant
from lanewise.trace.source import function_of

# What float32 sums may differ by where a GPU fuses multiply and add, or adds in another order.
RTOL = 1e-5


class WrongOnGpu(Error):
    """A kernel gives another result on the GPU than the reference."""


def measured(task: KernelTask, answer: Any) -> Sentence:
    """Say how an answer did on the GPU, or why it was not launched: no GPU, nothing written, an instruction
    that this GPU lacks.
    """
    from lanewise.measure.here import why_unfit
    from lanewise.ptx import UnsupportedCapability

    if why := why_unfit():
        return say(f"Not launched, so there is no time to show. {why}")
    if answer is ... or answer is None or task.is_untouched(function_of(answer)):
        return say(f"`{task.name}` is not written yet, so it was not launched.")
    try:
        return _timed(task, launchable(task, answer))
    except UnsupportedCapability as error:
        return say(f"Not launched here. {error} The counts above are those of `{task.machine}`.")
    except WrongOnGpu as error:
        return say(f"Launched, but not timed: a wrong result has no time. {error}")


def launchable(task: KernelTask, answer: Any) -> Any:
    """The kernel to launch for an answer: the answer, or what calls it, compiled for a GPU."""
    from numba import cuda

    kernel = task.wrap(answer) if task.wrap else answer
    return cuda.jit(kernel) if isinstance(kernel, FunctionType) else kernel


def launched(kernel: Any, run: Run) -> dict[str, np.ndarray]:
    """Launch one run on the GPU: the outputs by name. The run's own arrays stay as they are."""
    from numba import cuda

    held = {
        name: cuda.to_device(value) if isinstance(value, np.ndarray) else value
        for name, value in run.arguments.items()
    }
    kernel[run.grid, run.block, 0, run.dynamic_shared_bytes](*held.values())
    cuda.synchronize()
    return {name: held[name].copy_to_host() for name in run.expected}


def require_right(run: Run, outputs: dict[str, np.ndarray]) -> None:
    """Raise `WrongOnGpu` where an output differs from the reference."""
    for name, expected in run.expected.items():
        close = np.isclose(outputs[name], expected, max(run.rtol, RTOL), run.atol)
        if not close.all():
            raise WrongOnGpu(
                f"{name} differs in {count(int((~close).sum()), 'element')} of {close.size:,} for {run.size}."
            )


def _timed(task: KernelTask, kernel: Any) -> Sentence:
    from lanewise.measure.live import timed

    run = task.run(np.random.default_rng(0), task.sizes[0] if task.timed is None else task.timed)
    require_right(run, launched(kernel, run))
    arrays = [value for value in run.arguments.values() if isinstance(value, np.ndarray)]
    n_bytes = sum(array.nbytes for array in arrays)
    given = list(run.arguments.values())
    result = timed(kernel, run.grid, run.block, given, n_bytes, run.dynamic_shared_bytes)
    if result is None:
        return say("No GPU, so there is no time to show.")
    return say(
        f"{result.gpu}, {run.size}: {significant(result.us)} µs; the driver copies as many bytes in"
        f" {significant(result.copy_us)} µs. Right result. Times are not marked."
    )
