"""`trace`: run a kernel for all lanes of a grid without a GPU, and report every access and every hazard."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.errors import InvalidLaunch
from lanewise.machine import Machine, from_name
from lanewise.trace import device, functions
from lanewise.trace.arguments import Arguments
from lanewise.trace.arrays import SharedStorage
from lanewise.trace.control import Execution
from lanewise.trace.infer import Facts, Inference
from lanewise.trace.launch import Launch, chosen_blocks, make_launch
from lanewise.trace.refusals import UnsupportedConstruct
from lanewise.trace.report import Trace
from lanewise.trace.source import function_of

# Temporaries of a batch should stay in the second-level cache: 128 Ki lanes of 8 bytes are 1 MiB each.
BATCH_LANES = 1 << 17
BATCH_SHARED_BYTES = 1 << 28
GRID_BARRIER_LANES = 1 << 24

_ = device, functions  # imported for the intrinsics that they register


@dataclass(frozen=True)
class Limits:
    """When to give up: statements executed, and seconds."""

    steps: int
    seconds: float


def trace(
    kernel: Any,
    grid: Any,
    block: Any,
    *arguments: Any,
    dynamic_shared_bytes: int = 0,
    blocks: Any = None,
    machine: str | tuple[int, int] | Machine = "sm_90",
    lowering: str = "source",
    steps: int = 5_000_000,
    seconds: float = 300.0,
) -> Trace:
    """Run a kernel on NumPy arrays as a GPU would, and report what each source line does to memory.

    `kernel` is a `cuda.jit` kernel or a plain function; its source is interpreted, no part of it is executed.
    `grid` and `block` are an int or a tuple of up to three, x first, as in a launch. Arrays are changed in
    place. `blocks` restricts the run to some blocks, given by number or coordinates; counts are then of those
    alone. `lowering="source"` counts accesses as written, one instruction each; a target such as `"sm_90"`
    counts them as compiled for it, by running the machine code (needs the CUDA wheels, and numba compiles the
    kernel: for your own kernels, not a stranger's). `steps` and `seconds` end a kernel that does not end by
    itself.

    >>> import numpy as np
    >>> from lanewise.trace import functions_in
    >>> kernel = functions_in('''
    ... from numba import cuda
    ... def copy(src, dst):
    ...     i = cuda.grid(1)
    ...     dst[i] = src[i]
    ... ''')["copy"]
    >>> t = trace(kernel, 2, 64, np.arange(128, dtype=np.float32), np.zeros(128, np.float32))
    >>> t.global_.load.sectors, t.global_.load.requests, t.hazards
    (16, 4, [])

    Raises `UnsupportedConstruct` (with file, line and a way out), `InvalidLaunch`, or `KernelLimit`.
    """
    try:
        return _trace(
            kernel,
            grid,
            block,
            arguments,
            dynamic_shared_bytes,
            blocks,
            machine,
            lowering,
            Limits(steps, seconds),
        )
    except RecursionError:
        raise UnsupportedConstruct(
            "trace: an expression or block of the kernel is nested too deeply to be read. Split it over"
            " several lines."
        ) from None


def _trace(
    kernel: Any,
    grid: Any,
    block: Any,
    arguments: tuple[Any, ...],
    dynamic_shared_bytes: int,
    blocks: Any,
    machine: str | tuple[int, int] | Machine,
    lowering: str,
    limits: Limits,
) -> Trace:
    target = from_name(machine)
    launch = make_launch(grid, block, dynamic_shared_bytes, target)
    function = function_of(kernel)
    numbers = chosen_blocks(launch, blocks)
    given = Arguments(function, arguments)
    shared = SharedStorage(0)
    compiled = None if lowering == "source" else _run_compiled(kernel, launch, arguments, numbers, lowering)
    facts = Inference(function, launch, shared).run(function, dict(given.env))
    launch.check_shared(facts.static_bytes)
    _lay_out_shared(shared, launch, facts)
    engine = Execution(facts, launch, shared, limits, numbers)
    atomics = any("atomic" in storage.kinds for storage in given.storages)
    for batch in _batches(launch, facts, numbers, atomics):
        engine.run_batch(function, given.env, batch)
    report = Trace(function, launch, facts, engine, given, numbers)
    return report if compiled is None else compiled(report)


def _lay_out_shared(shared: SharedStorage, launch: Launch, facts: Facts) -> None:
    n_bytes = launch.shared_bytes(facts.static_bytes)
    shared.n_bytes = -(-n_bytes // 16) * 16
    for array in facts.shared.values():
        if array.offset is None and array.dtype.names:
            shared.note_element(
                launch.dynamic_offset(facts.static_bytes), array.dtype.itemsize, array.dtype.itemsize
            )


def _batches(launch: Launch, facts: Facts, numbers: np.ndarray, atomics: bool) -> list[np.ndarray]:
    per_batch = max(1, BATCH_LANES // launch.n_lanes)
    per_batch = max(1, min(per_batch, BATCH_SHARED_BYTES // max(1, launch.shared_bytes(facts.static_bytes))))
    if facts.grid_barrier:
        if launch.n_blocks * launch.n_lanes > GRID_BARRIER_LANES:
            raise InvalidLaunch(
                f"grid: {launch.n_blocks:,} blocks with a grid barrier must run at once,"
                f" {GRID_BARRIER_LANES:,} threads at most in the tracer. Use a smaller grid."
            )
        per_batch = len(numbers)
    groups = [numbers] if atomics or facts.grid_barrier else _inner_first(launch, numbers)
    return [group[start : start + per_batch] for group in groups for start in range(0, len(group), per_batch)]


def _inner_first(launch: Launch, numbers: np.ndarray) -> list[np.ndarray]:
    """Blocks inside the grid, then those at its edges.

    Bounds tests hold for every lane of an inner block, so these batches run with full masks. A GPU promises
    no order of blocks; only the old values of atomics could tell the difference, so kernels with atomics run
    in order.
    """
    edge = np.zeros(len(numbers), bool)
    step = 1
    for extent in launch.grid:
        position = numbers // step % extent
        if extent > 2:
            edge |= (position == 0) | (position == extent - 1)
        step *= extent
    return [group for group in (numbers[~edge], numbers[edge]) if len(group)]


def _run_compiled(
    kernel: Any, launch: Launch, arguments: tuple[Any, ...], numbers: np.ndarray, target: str
) -> Callable[[Trace], Trace]:
    """Run the machine code on copies of the arguments, before the source changes them.

    Returns what turns the report of the source into that of the machine code.

    The only way from here to `lanewise.lowering`, which compiles with numba: imported when asked for.
    """
    from lanewise.lowering import as_compiled, run_compiled

    run = run_compiled(
        kernel,
        launch.grid,
        launch.block,
        arguments,
        target,
        dynamic_shared_bytes=launch.dynamic_bytes,
        blocks=numbers,
    )
    return lambda report: as_compiled(report, run, arguments)
