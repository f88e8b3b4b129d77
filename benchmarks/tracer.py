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
from typing import Any

import numpy as np

TRANSPOSE = """
from numba import cuda, float32

TILE = 32
PITCH = 33
ROWS = 8


@cuda.jit
def transpose_padded(dst, src):
    tile = cuda.shared.array((TILE, PITCH), float32)
    x = cuda.blockIdx.x * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.y * TILE + cuda.threadIdx.y
    for j in range(0, TILE, ROWS):
        if x < src.shape[1] and y + j < src.shape[0]:
            tile[cuda.threadIdx.y + j, cuda.threadIdx.x] = src[y + j, x]
    cuda.syncthreads()
    x = cuda.blockIdx.y * TILE + cuda.threadIdx.x
    y = cuda.blockIdx.x * TILE + cuda.threadIdx.y
    for j in range(0, TILE, ROWS):
        if x < dst.shape[1] and y + j < dst.shape[0]:
            dst[y + j, x] = tile[cuda.threadIdx.x, cuda.threadIdx.y + j]
"""

MATMUL = """
from numba import cuda, float32

SIDE = 16


def matmul(c, a, b):
    a_tile = cuda.shared.array((SIDE, SIDE), float32)
    b_tile = cuda.shared.array((SIDE, SIDE), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for first in range(0, a.shape[1], SIDE):
        a_tile[ty, tx] = a[row, first + tx]
        b_tile[ty, tx] = b[first + ty, col]
        cuda.syncthreads()
        for k in range(SIDE):
            acc += a_tile[ty, k] * b_tile[k, tx]
        cuda.syncthreads()
    c[row, col] = acc
"""

SIMULATED = (
    TRANSPOSE
    + """
import time
import numpy as np
n = 64
src, dst = np.zeros((n, n), np.float32), np.zeros((n, n), np.float32)
transpose_padded[(1, 1), (32, 8)](dst, src)
started = time.perf_counter()
transpose_padded[(n // 32, n // 32), (32, 8)](dst, src)
print((time.perf_counter() - started) / (n // 32) ** 2)
"""
)


def transposed(n: int) -> tuple[float, float, Any]:
    """Seconds, and seconds of processor time, for one trace of an n x n transpose, with counts and all
    hazards, and its trace."""
    from lanewise.trace import functions_in, trace

    kernel = functions_in(TRANSPOSE)["transpose_padded"]
    src = np.arange(n * n, dtype=np.float32).reshape(n, n)
    dst = np.ones((n, n), np.float32)
    blocks = -(-n // 32)
    started, cpu_started = time.perf_counter(), time.process_time()
    t = trace(kernel, (blocks, blocks), (32, 8), dst, src)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    assert (dst == src.T).all()
    assert not t.hazards
    return seconds, cpu_seconds, t


def matmul_seconds() -> float:
    """Median seconds for a 64 x 64 x 64 matmul of 16 blocks."""
    from lanewise.trace import functions_in, trace

    kernel = functions_in(MATMUL)["matmul"]
    a, b, c = (np.ones((64, 64), np.float32) for _ in range(3))
    samples = []
    for _ in range(7):
        started = time.perf_counter()
        trace(kernel, (4, 4), (16, 16), c, a, b)
        samples.append(time.perf_counter() - started)
    return statistics.median(samples)


def simulator_seconds_per_block() -> float | None:
    """Seconds per block of numba's simulator on the same kernel, or None without numba."""
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"lanewise_simulated_{os.getpid()}.py")
    with open(path, "w") as file:
        file.write(SIMULATED)
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", path],
            env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.unlink(path)
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
