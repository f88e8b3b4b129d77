"""The GPU of this machine, through numba: arrays, launches, and samples between CUDA events.

Between two samples a kernel reads twice as many bytes as the L2 cache holds, again and again for at least
`FLUSH_US`: the cache then holds nothing of the arrays and nothing that must still be written, and the
processor has the time to queue the events and the launch, so that its own slowness is not measured.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numba import cuda as _numba_cuda
from numba import float64

from lanewise.experiments import Case, Problem
from lanewise.measure import ceilings
from lanewise.measure.protocol import Work

cuda: Any = _numba_cuda  # numba carries no types

FLUSH_US = 250.0
ALWAYS_ALLOWED_SHARED_BYTES = 48 * 1024  # beyond it, dynamic shared memory needs permission
NVML_CLOCK_SM = 1


class GpuFault(Exception):
    """The GPU stopped a kernel, and this process can use it no more: an address or an instruction was
    illegal."""

    is_fatal = True


class NumbaGpu:
    """The first GPU that numba sees; `lanewise.measure.protocol.Gpu` says what each method means."""

    def __init__(self) -> None:
        self._driver: Any = import_module("numba.cuda.cudadrv.driver")
        self._device = cuda.get_current_device()
        self._context = cuda.current_context()
        self._clock = Clock(str(getattr(self._device, "uuid", "")))
        self._seen_mhz: int | None = None
        self._copies: tuple[Any, Any] | None = None
        self._flush = self._make_flush()

    def put(self, array: np.ndarray) -> Any:
        return cuda.to_device(np.asarray(array))

    def poisoned(self, array: np.ndarray) -> Any:
        held = cuda.device_array(array.shape, array.dtype)
        self.poison(held)
        return held

    def poison(self, held: Any) -> None:
        if held.size:
            self._driver.device_memset(held, 255, _bytes(held))

    def restore(self, held: Any, source: Any) -> None:
        if held.size:
            self._driver.device_to_device(held, source, _bytes(held))

    def get(self, held: Any) -> np.ndarray:
        return np.asarray(held.copy_to_host())

    def compile(self, case: Case, arguments: Sequence[Any]) -> Any:
        return compile_case(case, arguments)

    def n_far(self, held: Any, expected: Any, problem: Problem) -> int | None:
        exact = not (problem.relative_tolerance or problem.absolute_tolerance)
        if held.dtype.kind not in ("fiuc" if exact else "f") or _bytes(held) % 4:
            return None
        if not (held.is_c_contiguous() and expected.is_c_contiguous()):
            return None
        got, wanted = (array.reshape(array.size) for array in (held, expected))
        out = cuda.to_device(np.zeros(1, np.int64))
        shape = 8 * int(self._device.MULTIPROCESSOR_COUNT), 256
        if exact:
            _count_different[shape](got.view(np.uint32), wanted.view(np.uint32), out)
        else:
            tolerances = problem.relative_tolerance, problem.absolute_tolerance
            _count_far[shape](got, wanted, *map(float, tolerances), out)
        return int(out.copy_to_host()[0])

    def launcher(self, case: Case, arguments: Sequence[Any]) -> Callable[[], None]:
        compile_case(case, arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numba finds small grids too small
            configured = case.kernel[case.grid, case.block, 0, case.dynamic_shared_bytes]
        return lambda: configured(*arguments)

    def resources(self, case: Case, arguments: Sequence[Any]) -> dict[str, int]:
        compiled = compile_case(case, arguments)
        handle = compiled._codelibrary.get_cufunc()
        threads = int(np.prod(case.block))
        blocks = self._context.get_active_blocks_per_multiprocessor(
            handle, threads, case.dynamic_shared_bytes
        )
        return {
            "registers": int(compiled.regs_per_thread),
            "shared_bytes": int(compiled.shared_mem_per_block),
            "local_bytes": int(compiled.local_mem_per_thread),
            "blocks_per_sm": int(blocks),
        }

    def wait(self) -> None:
        try:
            cuda.synchronize()
        except Exception as error:
            raise GpuFault(str(error)) from error

    def copier(self, n_bytes: int) -> Callable[[], None]:
        half = max(1, n_bytes // 2)
        if self._copies is None or self._copies[0].size < half:
            self._copies = None
            self._copies = cuda.device_array(half, np.uint8), cuda.device_array(half, np.uint8)
        src, dst = self._copies
        return lambda: self._driver.device_to_device(dst, src, half)

    def load_library(self, kind: str) -> None:
        ceilings.load(kind)

    def library(self, kind: str, arrays: Sequence[Any]) -> ceilings.Products:
        return ceilings.products(kind, arrays)

    def sample(self, works: Sequence[Work], n: int) -> list[list[float]]:
        events = [(cuda.event(), cuda.event()) for _ in works]
        samples: list[list[float]] = [[] for _ in works]
        try:
            for i in range(n):
                for work, (start, stop) in zip(works, events, strict=True):
                    work.before()
                    self._flush()
                    start.record()
                    work.run()
                    stop.record()
                if i == n // 2:
                    self._seen_mhz = self._clock.sm_mhz()
                self.wait()
                for us, (start, stop) in zip(samples, events, strict=True):
                    us.append(1000 * cuda.event_elapsed_time(start, stop))
        except self._driver.CudaAPIError as error:
            raise GpuFault(str(error)) from error
        return samples

    def clock_mhz(self) -> int | None:
        return self._seen_mhz

    def free(self) -> None:
        self._copies = None
        self._context.deallocations.clear()
        ceilings.free()

    def _make_flush(self) -> Callable[[], None]:
        """A launch that reads twice the L2 cache for at least `FLUSH_US`."""
        l2_bytes = int(self._device.L2_CACHE_SIZE)
        junk = cuda.device_array(max(1 << 20, l2_bytes // 2), np.float32)
        self._driver.device_memset(junk, 0, _bytes(junk))
        out = cuda.device_array(1, np.float32)
        kernel = _read_all[8 * int(self._device.MULTIPROCESSOR_COUNT), 256]
        start, stop = cuda.event(), cuda.event()
        for _ in range(2):  # the first launch compiles
            start.record()
            kernel(junk, 8, out)
            stop.record()
            stop.synchronize()
        one_round_us = max(1.0, 1000 * cuda.event_elapsed_time(start, stop) / 8)
        rounds = max(1, round(0.5 + FLUSH_US / one_round_us))
        return lambda: kernel(junk, rounds, out)


def compile_case(case: Case, arguments: Sequence[Any]) -> Any:
    """Compile a case's kernel for these arguments and let it have its dynamic shared memory."""
    compiled = case.kernel.compile(tuple(case.kernel.typeof_pyval(argument) for argument in arguments))
    if case.dynamic_shared_bytes > ALWAYS_ALLOWED_SHARED_BYTES:
        from lanewise.ptx import allow_dynamic_shared

        allow_dynamic_shared(case.kernel, case.dynamic_shared_bytes)
    return compiled


@cuda.jit
def _count_different(got, expected, out):  # type: ignore[no-untyped-def]
    """Count the words that differ."""
    n_far = 0
    for i in range(cuda.grid(1), got.size, cuda.gridsize(1)):
        if got[i] != expected[i]:
            n_far += 1
    if n_far:
        cuda.atomic.add(out, 0, n_far)


@cuda.jit
def _count_far(got, expected, relative, absolute, out):  # type: ignore[no-untyped-def]
    """Count the elements that are not close; NaN is close to nothing."""
    n_far = 0
    for i in range(cuda.grid(1), got.size, cuda.gridsize(1)):
        wanted = float64(expected[i])
        if not abs(float64(got[i]) - wanted) <= absolute + relative * abs(wanted):
            n_far += 1
    if n_far:
        cuda.atomic.add(out, 0, n_far)


@cuda.jit
def _read_all(junk, n_rounds, out):  # type: ignore[no-untyped-def]
    """Read an array `n_rounds` times; `out` keeps the compiler from leaving that out."""
    total = junk[0]
    for _ in range(n_rounds):
        for i in range(cuda.grid(1), junk.size, cuda.gridsize(1)):
            total += junk[i]
    if total != 0:
        out[0] = total


def _bytes(held: Any) -> int:
    return int(held.size * held.dtype.itemsize)


class Clock:
    """The SM clock, from NVIDIA's management library if it is there (nvml.h, nvmlDeviceGetClockInfo)."""

    def __init__(self, uuid: str) -> None:
        self._device = ctypes.c_void_p()
        try:
            self._library: Any = ctypes.CDLL("libnvidia-ml.so.1")
            started = self._library.nvmlInit_v2()
            found = self._library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self._device))
        except (OSError, AttributeError):
            started = found = 1
        self._works = started == found == 0

    def sm_mhz(self) -> int | None:
        """The clock now, in MHz; None where it cannot be read."""
        mhz = ctypes.c_uint()
        if not self._works or self._library.nvmlDeviceGetClockInfo(
            self._device, NVML_CLOCK_SM, ctypes.byref(mhz)
        ):
            return None
        return mhz.value
