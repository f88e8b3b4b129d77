"""Time whole kernels against a device copy of the same bytes, in one run.

    python times.py bundle OUT.zip          here, with lanewise[sass]: compile, no GPU needed
    python times.py run OUT.zip RAW.json    there: needs NumPy and the driver
    python times.py record RAW.json GPU     here: write recorded/GPU/bank_times.json

Protocol: random input, output poisoned with NaN and compared with the reference first; 10 warm-up launches;
then 60 samples between CUDA events, each on the next of several pairs of arrays, together far larger
than the L2 cache. The ceiling, a copy by the driver, is sampled in turn with the kernel.
"""

import ctypes
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1]), str(HERE.parents[1] / "src")]

from launch import Driver  # noqa: E402

SIZES = (4096, 8192)
KERNELS = {"scale_by_rows": False, "scale_by_columns": True, "scale_padded": True}  # name -> transposes
WARM_UP, SAMPLES = 10, 60
ROTATED_BYTES = 1 << 30


def bundle(out: Path) -> None:
    """One cubin per kernel, and how to launch it for each size."""
    from bundle import TARGET, assemble

    from lanewise.kernels import banks
    from lanewise.lowering.toolchain import compile_kernel, numba_types
    from lanewise.records import code_hash

    with ZipFile(out, "w") as file:
        for name in KERNELS:
            kernel = getattr(banks, name).py_func
            small = np.zeros((32, 32), np.float32)
            compiled = compile_kernel(kernel, numba_types((small, small)), TARGET, {})
            file.writestr(f"{name}.cubin", assemble(compiled.ptx, optimised=True))
            about = {
                "entry": compiled.name,
                "parameters": list(compiled.parameters),
                "code_hash": code_hash(kernel),
            }
            file.writestr(f"{name}.json", json.dumps(about))


def run(path: Path, raw: Path) -> None:
    """Check and time every kernel at every size."""
    driver, rows = Driver(), []
    with ZipFile(path) as file:
        for n in SIZES:
            rows += time_size(driver, file, n)
    gpu = subprocess.run(
        ["nvidia-smi", "--query-gpu=name,driver_version,clocks.sm,clocks.mem", "--format=csv,noheader"],
        capture_output=True,
        text=True,
        check=True,
    )
    raw.write_text(json.dumps({"gpu": gpu.stdout.strip(), "rows": rows}, indent=1))


def time_size(driver: Driver, file: ZipFile, n: int) -> list[dict[str, Any]]:
    """The rows of one matrix size; every kernel uses the same arrays."""
    n_bytes = 4 * n * n
    src = np.random.default_rng(n).standard_normal((n, n), np.float32)
    pairs = [
        (driver.allocate(n_bytes), driver.allocate(n_bytes)) for _ in range(ROTATED_BYTES // (2 * n_bytes))
    ]
    for source, _ in pairs:
        driver.write(source, src.tobytes())
    rows = [{"n": n, "kernel": name, **time_kernel(driver, file, name, n, src, pairs)} for name in KERNELS]
    for pointer in (pointer for pair in pairs for pointer in pair):
        driver.free(pointer)
    return rows


def time_kernel(
    driver: Driver, file: ZipFile, name: str, n: int, src: np.ndarray, pairs: list
) -> dict[str, Any]:
    """Check one kernel, then sample it and the copy in turn."""
    about = json.loads(file.read(f"{name}.json"))
    launch = launcher(driver, file.read(f"{name}.cubin"), about, n)
    source, target = pairs[0]
    driver.write(target, np.full_like(src, np.nan).tobytes())
    launch(source, target)
    driver.call("cuCtxSynchronize")
    got = np.frombuffer(driver.read(target, src.nbytes), np.float32).reshape(src.shape)
    expected = 2 * (src.T if KERNELS[name] else src)
    np.testing.assert_array_equal(got, expected)

    def copy(source: ctypes.c_uint64, target: ctypes.c_uint64) -> None:
        driver.call("cuMemcpyDtoDAsync_v2", target, source, ctypes.c_size_t(src.nbytes), None)

    samples: dict[str, list[float]] = {"kernel": [], "copy": []}
    for i in range(WARM_UP + SAMPLES):
        for what, work in (("kernel", launch), ("copy", copy)):
            elapsed = microseconds(driver, work, *pairs[i % len(pairs)])
            samples[what] += [elapsed] if i >= WARM_UP else []
    return {
        "code_hash": about["code_hash"],
        "bytes_moved": 2 * src.nbytes,
        "kernel_us": quartiles(samples["kernel"]),
        "copy_us": quartiles(samples["copy"]),
    }


def launcher(driver: Driver, image: bytes, about: dict[str, Any], n: int) -> Any:
    """A function that launches the kernel from one array to another: numba passes an array as seven words."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuModuleLoadData", ctypes.byref(module), image)
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, about["entry"].encode())
    blocks = n // 32

    def words(pointer: ctypes.c_uint64) -> list[ctypes.c_uint64]:
        # meminfo, parent, elements, bytes per element, data, shape, strides
        values = (0, 0, n * n, 4, pointer.value, n, n, 4 * n, 4)
        return [ctypes.c_uint64(value) for value in values]

    def launch(source: ctypes.c_uint64, target: ctypes.c_uint64) -> None:
        held = [*words(source), *words(target)]
        if len(held) != len(about["parameters"]):
            raise RuntimeError(f"expected {len(held)} parameters, the kernel has {about['parameters']}")
        places = [ctypes.cast(ctypes.byref(word), ctypes.c_void_p) for word in held]
        array = (ctypes.c_void_p * len(places))(*places)
        driver.call("cuLaunchKernel", function, blocks, blocks, 1, 32, 32, 1, 0, None, array, None)

    return launch


def microseconds(driver: Driver, work: Any, source: ctypes.c_uint64, target: ctypes.c_uint64) -> float:
    """One sample between two events."""
    start, stop, elapsed = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_float()
    for event in (start, stop):
        driver.call("cuEventCreate", ctypes.byref(event), 0)
    driver.call("cuEventRecord", start, None)
    work(source, target)
    driver.call("cuEventRecord", stop, None)
    driver.call("cuEventSynchronize", stop)
    driver.call("cuEventElapsedTime", ctypes.byref(elapsed), start, stop)
    for event in (start, stop):
        driver.call("cuEventDestroy_v2", event)
    return 1000 * elapsed.value


def quartiles(samples: list[float]) -> list[float]:
    """Lower quartile, median, upper quartile, in microseconds."""
    return [round(value, 3) for value in statistics.quantiles(samples, n=4)]


def record(raw: Path, gpu: str) -> None:
    """Write the rows into the package."""
    home = HERE.parents[1] / "src" / "lanewise" / "recorded" / gpu
    measured = json.loads(raw.read_text())
    clock_mhz = int(measured["gpu"].split(", ")[2].removesuffix(" MHz"))
    sms = json.loads((home / "machine.json").read_text())["limits"]["sms"]
    rows = [{**row, "clock_mhz": clock_mhz, "sms": sms} for row in measured["rows"]]
    body = ",\n".join(json.dumps(row) for row in rows)
    (home / "bank_times.json").write_text(f'{{"kernels": [\n{body}\n]}}\n')


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    if what == "bundle":
        bundle(Path(rest[0]))
    elif what == "run":
        run(Path(rest[0]), Path(rest[1]))
    elif what == "record":
        record(Path(rest[0]), rest[1])
    else:
        raise SystemExit(__doc__)
