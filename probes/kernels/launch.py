"""Launch the kernels of a bundle through the CUDA driver; needs Python's standard library and an NVIDIA GPU.

    python launch.py BUNDLE.zip [--only NAME] [--part I/N] [--memory OUT.zip]

A bundle is a zip with `launches.json`, a list of launches:

    name
    cubin, entry                       the file with the machine code, and the kernel's name in it
    grid, block, dynamic_shared_bytes
    allocations                        each with `bytes`, and the file of its `content` (null: unwritten)
    parameters                         each the `hex` of its bytes, or an `allocation` and an `offset` into it

Every allocation is one of the driver's own, of exactly its size, so that a memory checker sees where it ends.
`--memory` keeps what the kernels left in them.

The exit status is 0, or 1 after an error of the driver, which is the last line on the standard output.
"""

import argparse
import ctypes
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

MAX_DYNAMIC_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
ALWAYS_ALLOWED = 48 * 1024  # bytes of shared memory that need no permission


class DriverError(RuntimeError):
    """The driver refuses a call, or a kernel has failed."""


class Driver:
    """The few calls of the driver that a launch needs, on the first GPU."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a driver function; raise `DriverError` with its name and the driver's text."""
        status = getattr(self._library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(status, ctypes.byref(text))
            raise DriverError(f"{name}: {(text.value or b'unknown error').decode()}")

    def allocate(self, n_bytes: int) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(1, n_bytes)))
        return pointer

    def write(self, pointer: ctypes.c_uint64, content: bytes) -> None:
        if content:
            self.call("cuMemcpyHtoD_v2", pointer, content, ctypes.c_size_t(len(content)))

    def read(self, pointer: ctypes.c_uint64, n_bytes: int) -> bytes:
        content = ctypes.create_string_buffer(max(1, n_bytes))
        if n_bytes:
            self.call("cuMemcpyDtoH_v2", content, pointer, ctypes.c_size_t(n_bytes))
        return content.raw[:n_bytes]

    def free(self, pointer: ctypes.c_uint64) -> None:
        self.call("cuMemFree_v2", pointer)

    def run(self, image: bytes, launch: dict[str, Any], parameters: list[Any]) -> None:
        """Load a cubin, launch its kernel, and wait for its end."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, launch["entry"].encode())
        dynamic = launch["dynamic_shared_bytes"]
        if dynamic > ALWAYS_ALLOWED:
            self.call("cuFuncSetAttribute", function, MAX_DYNAMIC_SHARED_BYTES, dynamic)
        places = [ctypes.cast(ctypes.byref(held), ctypes.c_void_p) for held in parameters]
        array = (ctypes.c_void_p * max(1, len(places)))(*places)
        self.call("cuLaunchKernel", function, *launch["grid"], *launch["block"], dynamic, None, array, None)
        self.call("cuCtxSynchronize")
        self.call("cuModuleUnload", module)


def launches(bundle: ZipFile, only: str = "", part: str = "0/1") -> Iterator[tuple[int, dict[str, Any]]]:
    """The launches of a bundle with their numbers; `only` is a whole name, part I/N every N-th from I on."""
    first, step = map(int, part.split("/"))
    for number, launch in enumerate(json.loads(bundle.read("launches.json"))):
        if only in ("", launch["name"]) and number % step == first:
            yield number, launch


def perform(driver: Driver, bundle: ZipFile, launch: dict[str, Any], keep: bool) -> list[bytes]:
    """Make one launch with memory of its own; what is in that memory afterwards, if `keep`."""
    pointers = [driver.allocate(held["bytes"]) for held in launch["allocations"]]
    for pointer, held in zip(pointers, launch["allocations"], strict=True):
        if held["content"]:
            driver.write(pointer, bundle.read(held["content"]))
    driver.run(bundle.read(launch["cubin"]), launch, [_held(pointers, item) for item in launch["parameters"]])
    left = []
    if keep:
        left = [driver.read(*pair) for pair in zip(pointers, _sizes(launch), strict=True)]
    for pointer in pointers:
        driver.free(pointer)
    return left


def _held(pointers: list[ctypes.c_uint64], parameter: dict[str, Any]) -> Any:
    """One parameter as ctypes holds it."""
    if "hex" in parameter:
        return ctypes.create_string_buffer(bytes.fromhex(parameter["hex"]))
    return ctypes.c_uint64(pointers[parameter["allocation"]].value + parameter["offset"])


def _sizes(launch: dict[str, Any]) -> list[int]:
    return [held["bytes"] for held in launch["allocations"]]


def main() -> int:
    parser = argparse.ArgumentParser(description="Launch the kernels of a bundle.")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--only", default="", help="one launch, by its whole name")
    parser.add_argument("--part", default="0/1", help="every N-th launch from the I-th on: I/N")
    parser.add_argument("--memory", type=Path, help="keep here what the kernels left in memory")
    arguments = parser.parse_args()
    memory = ZipFile(arguments.memory, "w", ZIP_DEFLATED) if arguments.memory else None
    driver = Driver()
    with ZipFile(arguments.bundle) as bundle:
        for number, launch in launches(bundle, arguments.only, arguments.part):
            try:
                left = perform(driver, bundle, launch, keep=memory is not None)
            except DriverError as error:
                sys.stdout.write(f"{launch['name']}: {error}\n")
                return 1
            for i, content in enumerate(left):
                assert memory is not None
                memory.writestr(f"{number}.{i}", content)
    if memory:
        memory.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
