"""Where figures come from: this machine's GPU, driver and tools; and why it cannot measure, in a sentence."""

from __future__ import annotations

import ctypes
import re
import sys
import time
import warnings
from importlib import import_module, metadata
from typing import Any

import numpy as np

from lanewise.errors import Unfit
from lanewise.records import Provenance
from lanewise.text import with_article

METHOD = (
    "Correctness first, on fresh random input with poisoned output; {warm_ups} warm-ups (3 for launches above"
    " 20 ms); then {samples} samples between CUDA events with a cold L2 cache, in turn with the ceilings;"
    " quartiles."
)
OLDEST = (7, 5)
INSTALL = "pip install 'lanewise[gpu]'"
WITHOUT = "Without a GPU, `lanewise measure --summary` shows what others recorded, and everything else works."
NO_DEVICE, DRIVER_MISMATCH, SYSTEM_NOT_READY = 100, 803, 802  # CUresult, cuda.h


def why_unfit() -> str:
    """Say why kernels cannot be launched here; empty if they can."""
    try:
        require_gpu()
    except Unfit as error:
        return str(error)
    return ""


def require_gpu() -> None:
    """Raise `Unfit` with the next step unless this machine can launch the course's kernels."""
    _require_numpy()
    _require_driver()
    cuda = _numba_cuda()
    try:
        device = cuda.get_current_device()
    except Exception as error:
        raise Unfit(f"numba sees no GPU: {_first_line(error)}. Run: lanewise doctor. {WITHOUT}") from error
    major, minor = device.compute_capability
    if (major, minor) < OLDEST:
        raise Unfit(
            f"{gpu_name(device)} has compute capability {major}.{minor}; the course's kernels need"
            f" {OLDEST[0]}.{OLDEST[1]} (a T4) or newer. {WITHOUT}"
        )
    _require_a_launch(cuda)


def _require_numpy() -> None:
    version = metadata.version("numpy")
    if tuple(int(part) for part in version.split(".")[:2]) >= (2, 5):
        raise Unfit(
            f"numpy {version} is installed; numba-cuda calls np.row_stack, which numpy 2.5 removed, so no"
            " kernel compiles. Run: pip install 'numpy<2.5'"
        )


def _require_driver() -> None:
    """Ask the driver itself, whose answers are clearer than what numba makes of them."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise Unfit(f"No NVIDIA driver is installed ({name} is missing). {WITHOUT}") from error
    status = library.cuInit(0)
    if status == NO_DEVICE:
        raise Unfit(f"The NVIDIA driver finds no GPU. {WITHOUT}")
    if status in (DRIVER_MISMATCH, SYSTEM_NOT_READY):
        raise Unfit(
            f"The NVIDIA driver does not start (status {status}): its kernel module and its libraries are of"
            " different versions, or it is still starting. Reboot, or install one driver version."
        )
    if status:
        raise Unfit(f"The NVIDIA driver does not start: cuInit gives {status}. Try nvidia-smi. {WITHOUT}")


def _numba_cuda() -> Any:
    try:
        metadata.version("numba-cuda")
        return import_module("numba.cuda")
    except (ImportError, metadata.PackageNotFoundError) as error:
        raise Unfit(f"numba-cuda is not installed. Run: {INSTALL}") from error


def _require_a_launch(cuda: Any) -> None:
    """Compile and run the smallest kernel."""

    def touch(out):  # type: ignore[no-untyped-def]
        out[0] = 1

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numba finds one block too few
            cuda.jit(touch)[1, 1](cuda.device_array(1, np.uint8))
        cuda.synchronize()
    except Exception as error:
        if re.search("UNSUPPORTED_PTX|unsupported toolchain|provided PTX", str(error)):
            raise Unfit(
                f"The CUDA toolkit that numba uses is newer than the driver ({driver_version()}) can run."
                " Install a toolkit of the driver's CUDA version or an older one, or a newer driver."
            ) from error
        raise Unfit(f"A kernel does not run here: {_first_line(error)}. Run: lanewise doctor") from error


def driver_version() -> str:
    """The driver's version, as its management library says it."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
        text = ctypes.create_string_buffer(96)
        library.nvmlInit_v2()
        library.nvmlSystemGetDriverVersion(text, len(text))
        return text.value.decode()
    except (OSError, AttributeError):
        return "unknown"


def provenance(samples: int, warm_ups: int) -> Provenance:
    """What this machine would write beside its figures."""
    cuda = import_module("numba.cuda")
    device = cuda.get_current_device()
    return Provenance(
        gpu=gpu_name(device),
        compute_capability=".".join(map(str, device.compute_capability)),
        driver=driver_version(),
        cuda=".".join(map(str, cuda.runtime.get_version())),
        tools=tools(),
        date=time.strftime("%Y-%m-%d"),
        method=METHOD.format(samples=samples, warm_ups=warm_ups),
    )


def gpu_name(device: Any = None) -> str:
    """What the driver calls a device of numba's; this machine's GPU if none is given."""
    name = (device or import_module("numba.cuda").get_current_device()).name
    return name.decode() if isinstance(name, bytes) else str(name)


def tools() -> str:
    """The versions of what took part, as far as they are installed."""
    packages = ("numba", "numba-cuda", "numpy", "torch")
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in packages:
        if version := version_of(package):
            versions[package] = version
    for package in ("cupy-cuda13x", "cupy-cuda12x", "cupy"):
        if version := version_of(package):
            versions["cupy"] = version
            break
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def mode() -> str:
    """Say in a line whether kernels can be launched here, and with which versions."""
    if why := why_unfit():
        can = f"Kernels are traced, not launched: {why.partition('. ')[0].rstrip('.')}."
    else:
        can = f"Kernels can be traced, and launched on {with_article(gpu_name())}."
    return f"Lanewise {version_of('lanewise')}, {tools()}. {can}"


def version_of(package: str) -> str:
    """A package's version; '' where it is missing."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def short_name(gpu: str) -> str:
    """The folder name for a GPU's records.

    >>> [short_name(name) for name in ("NVIDIA H200", "Tesla T4", "NVIDIA A100-SXM4-40GB")]
    ['h200', 't4', 'a100']
    >>> short_name("NVIDIA GeForce RTX 4090"), short_name("NVIDIA H100 80GB HBM3")
    ('rtx-4090', 'h100')
    """
    words = [word for word in gpu.split() if word.lower() not in ("nvidia", "tesla", "geforce", "quadro")]
    n_words = 2 if words and words[0].lower() in ("rtx", "gtx", "titan") else 1
    return "-".join(word.split("-")[0] for word in words[:n_words]).lower() or "gpu"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
