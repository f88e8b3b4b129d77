"""How fast the tracer is: `python benchmarks/tracer.py` prints its figures and the ratio to numba's
simulator.

Everything is measured in one run on one machine, so the ratios mean something where the times alone do not. A
warp instruction is one operation of one warp with an active lane: arithmetic, comparison, conversion, memory
access, barrier, branch or loop round (`Trace.warp_instructions`).
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

from lanewise.kernels import padding, tracer
from lanewise.trace import Trace, trace

SIMULATED = """
import time
import numpy as np
from lanewise.kernels import padding
src, dst = np.zeros((64, 64), np.float32), np.zeros((64, 64), np.float32)
padding.transpose_padded[(1, 1), padding.BLOCK](src, dst)
started = time.perf_counter()
padding.transpose_padded[padding.grid_of(src), padding.BLOCK](src, dst)
print((time.perf_counter() - started) / 4)
"""


def transposed(n: int) -> tuple[float, float, Trace]:
    """Seconds, and seconds of processor time, for one trace of an n x n transpose, with counts and all
    hazards, and its trace."""
    src = np.arange(n * n, dtype=np.float32).reshape(n, n)
    dst = np.full((n, n), np.nan, np.float32)
    started, cpu_started = time.perf_counter(), time.process_time()
    t = trace(padding.transpose_padded, padding.grid_of(src), padding.BLOCK, src, dst)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    np.testing.assert_array_equal(dst, padding.reference(src))
    if t.hazards or t.shared.total.excess:
        raise RuntimeError(f"The padded transpose is clean, yet the trace says:\n{t}")
    return seconds, cpu_seconds, t


def matmul_seconds() -> float:
    """Median seconds for a 64 x 64 x 64 matrix product of 16 blocks."""
    a, b, c = (np.ones((64, 64), np.float32) for _ in range(3))
    samples = []
    for _ in range(7):
        started = time.perf_counter()
        trace(tracer.matmul_tiled, tracer.grid_of(c), tracer.BLOCK, a, b, c)
        samples.append(time.perf_counter() - started)
    return statistics.median(samples)


def simulator_seconds_per_block() -> float | None:
    """Seconds per block of numba's simulator on the same kernel, or None where it cannot run."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SIMULATED],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return float(done.stdout) if done.returncode == 0 else None


def main() -> None:
    """Measure and print."""
    transposed(64)
    print("transpose, float32, padded tile, 32x8 threads; counts and all hazards on")
    per_block = {}
    for n in (512, 1024, 2048, 4096, 4097):
        seconds, cpu_seconds, t = min((transposed(n) for _ in range(2)), key=lambda sample: sample[0])
        per_block[n] = seconds / t.n_blocks
        rate = t.warp_instructions / seconds / 1e6
        print(
            f"  {n:5} x {n:<5} {t.n_blocks:7,} blocks  {seconds:7.3f} s (processor {cpu_seconds:.3f} s) "
            f" {1e6 * per_block[n]:8.1f} us/block"
            f"  {rate:6.1f} M warp instructions/s"
        )
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  peak memory of the process: {peak_gib:.2f} GiB")
    print(f"tiled matmul 64 x 64, 16x16 threads: {1e3 * matmul_seconds():.1f} ms")
    simulator = simulator_seconds_per_block()
    if simulator is None:
        print("numba's simulator could not be run here")
    else:
        print(
            f"numba's simulator: {1e3 * simulator:.1f} ms per block of the transpose: the tracer is"
            f" {simulator / per_block[4096]:,.0f} times as fast"
        )


if __name__ == "__main__":
    main()
