"""From a Python kernel to machine code, with no GPU: numba to PTX, ptxas to a cubin, nvdisasm to text.

The tools come from wheels (`pip install 'lanewise[sass]'`) or from an installed CUDA toolkit. NVVM, which
writes the PTX, must not be newer than ptxas, which reads it; the versions are compared before anything runs.
"""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from lanewise.errors import Error, UnknownMachine
from lanewise.lowering import sass

TARGETS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
TOOLKITS = (Path("/usr/local/cuda/bin"),)  # where Linux toolkits, and Colab, keep theirs if not on the PATH
INSTALL = "pip install 'lanewise[sass]'"


class ToolMissing(Error):
    """A compiler tool is not installed."""


class ToolMismatch(Error):
    """The installed compiler tools do not fit each other."""


class DoesNotCompile(Error):
    """numba or ptxas refuses the kernel."""


@dataclass(frozen=True)
class Compiled:
    """What the compiler made of one kernel for one target: code, resources, and the constants it was given.

    `registers` per thread, `shared_bytes` static per block, `stack_bytes` and `spill_bytes` per thread.
    `constants` are the constant banks as the file holds them, `parameter_offset` is where the launch writes
    the arguments in bank 0, `parameters` their sizes in bytes in order.
    """

    name: str
    target: str
    code: sass.MachineCode
    ptx: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_bytes: int
    constants: dict[int, bytes]
    parameter_offset: int
    parameters: tuple[int, ...]
    tools: str


def compile_kernel(
    function: Callable[..., Any], signature: tuple[Any, ...], target: str, options: dict[str, Any]
) -> Compiled:
    """Compile `function` for the argument types `signature` (numba types) and `target` (`"sm_90"`)."""
    capability = capability_of(target)
    ptxas, nvdisasm = find_tool("ptxas"), find_tool("nvdisasm")
    ptx = _ptx(function, signature, capability, options)
    _require_fitting_versions(ptx, ptxas)
    name = _entry_name(ptx)
    with tempfile.TemporaryDirectory(prefix="lanewise-") as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        log = _run([ptxas, f"-arch={target}", "-v", "--generate-line-info", source, "-o", cubin], function)
        listing = _run([nvdisasm, "--print-line-info", "--print-code", cubin], function)
        image = cubin.read_bytes()
    sections = dict(_sections(image))
    bank_prefix = re.compile(rf"\.nv\.constant(\d+)(?:\.{re.escape(name)})?$")
    banks = {int(m[1]): data for key, data in sections.items() if (m := bank_prefix.match(key))}
    return Compiled(
        name=name,
        target=target,
        code=sass.parse(listing, name),
        ptx=ptx,
        registers=_logged(r"Used (\d+) registers", log),
        shared_bytes=_logged(r"(\d+) bytes smem", log),
        stack_bytes=_logged(r"(\d+) bytes stack frame", log),
        spill_bytes=_logged(r"(\d+) bytes spill stores", log) + _logged(r"(\d+) bytes spill loads", log),
        constants=banks,
        parameter_offset=_parameter_offset(sections[f".nv.info.{name}"]),
        parameters=tuple(int(bits) // 8 for bits in _entry_parameters(ptx)),
        tools=f"{_nvvm_version(ptx)}, ptxas {_dotted(ptxas)}",
    )


def capability_of(target: str) -> tuple[int, int]:
    """Turn `"sm_90"` into `(9, 0)`; refuse what the tools do not know with the list of what they do."""
    if target not in TARGETS:
        raise UnknownMachine(
            f"lowering={target!r} is no target. Use one of {', '.join(TARGETS)}, or 'source'."
        )
    digits = target.removeprefix("sm_")
    return int(digits[:-1]), int(digits[-1])


def find_tool(name: str) -> Path:
    """Find ptxas or nvdisasm: in the wheels of this environment, then in a CUDA toolkit."""
    site = Path(sysconfig.get_path("purelib"), "nvidia")
    suffix = ".exe" if sys.platform == "win32" else ""
    for place in (*sorted(site.glob("cu*/bin")), *TOOLKITS):
        if (tool := place / f"{name}{suffix}").is_file():
            return tool
    if found := shutil.which(name):
        return Path(found)
    raise ToolMissing(
        f"{name} is not installed, so the compiled view is not available. Install it: {INSTALL}."
    )


@cache
def why_unavailable() -> str:
    """Say why kernels cannot be lowered here; empty if they can. Tried once in a process."""
    try:
        compile_kernel(_nothing, (), "sm_90", {})
    except Error as error:
        return str(error)
    return ""


def _nothing() -> None:
    """The smallest kernel, to try the tools with."""
    return


def _ptx(
    function: Callable[..., Any],
    signature: tuple[Any, ...],
    capability: tuple[int, int],
    options: dict[str, Any],
) -> str:
    try:
        from numba import void
        from numba.core.errors import NumbaError
        from numba.cuda.cudadrv.error import NvvmSupportError
    except ImportError as missing:
        raise ToolMissing(f"numba-cuda is not installed ({missing}). Install it: {INSTALL}.") from missing
    cuda: Any = import_module("numba.cuda")
    try:
        with _device_functions_for(capability), warnings.catch_warnings():
            # numba warns where it finds no source (a kernel typed at a prompt); the lines are then missing.
            warnings.simplefilter("ignore")
            ptx, _ = cuda.compile_ptx(function, void(*signature), cc=capability, lineinfo=True, **options)
    except NumbaError as error:
        raise DoesNotCompile(_condensed(function, error)) from error
    except (NvvmSupportError, OSError, RuntimeError) as error:
        if not re.search(r"libnvvm|libnvrtc|libdevice|NVVM|nvrtc", str(error), re.IGNORECASE):
            raise
        first = str(error).strip().splitlines()[0]
        raise ToolMissing(f"numba-cuda cannot find its compiler ({first}). Install it: {INSTALL}.") from error
    return str(ptx)


@contextmanager
def _device_functions_for(capability: tuple[int, int]) -> Iterator[None]:
    """Let numba compile nested device functions for `capability`, then forget what it compiled.

    `compile_ptx` hands its capability to the kernel only (numba-cuda 0.22 to 0.30). A device function that
    the kernel calls asks for the current device, which does not exist here, and is compiled once: the code of
    the first target would serve all later ones, and launches.
    """
    dispatcher: Any = import_module("numba.cuda.dispatcher")
    device, compile_device = dispatcher.get_current_device, dispatcher.CUDADispatcher.compile_device
    set_aside: dict[Any, dict[Any, Any]] = {}

    def compile_afresh(function: Any, args: Any, return_type: Any = None) -> Any:
        if function not in set_aside:
            set_aside[function] = dict(function.overloads)
            function.overloads.clear()
        return compile_device(function, args, return_type)

    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    dispatcher.CUDADispatcher.compile_device = compile_afresh
    try:
        yield
    finally:
        dispatcher.get_current_device = device
        dispatcher.CUDADispatcher.compile_device = compile_device
        for function, before in set_aside.items():
            for compiled in function.overloads.values():
                compiled.target_context.remove_user_function(compiled.entry_point)
            function.overloads.clear()
            function.overloads.update(before)


def _condensed(function: Callable[..., Any], error: Exception) -> str:
    """numba's message without its template listings: what failed, and where."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    place = re.findall(r'File "([^"<>]+)", line (\d+)', plain) + re.findall(r"at (\S+) \((\d+)\)", plain)
    noise = ("File", "During", "<source", "Failed in", "-", "There", "Overload", "With arg", "Use of")
    lines = [line.strip() for line in plain.splitlines()]
    kept = [line for line in lines if line and not line.startswith(noise)]
    # The second line of an unmatched call is its signature, after an arrow or a prompt.
    what = " ".join(line.removeprefix(">>> ") for line in kept[:2]).rstrip(".")
    what = re.sub(r"<(?:built-in )?function (\S+?)(?: at 0x[0-9a-f]+)?>", r"\1", what)
    where = f"line {place[-1][1]}" if place else "its definition"
    name = getattr(function, "__name__", "kernel")
    return f"{name}, {where}: numba does not compile it. {what}. Change the line as for a GPU launch."


def _run(command: Sequence[str | Path], function: Callable[..., Any]) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        tool, name = Path(command[0]).name, getattr(function, "__name__", "kernel")
        raise DoesNotCompile(f"{name}: {tool} refuses it: {(done.stderr or done.stdout).strip()[:500]}")
    return done.stdout + done.stderr


def _logged(pattern: str, log: str) -> int:
    match = re.search(pattern, log)
    return int(match[1]) if match else 0


def _version(tool: Path) -> tuple[int, int]:
    text = subprocess.run([str(tool), "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"release (\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _dotted(tool: Path) -> str:
    return ".".join(map(str, _version(tool)))


def _nvvm_version(ptx: str) -> str:
    match = re.search(r"release (\d+\.\d+)", ptx)
    return f"NVVM {match[1]}" if match else "NVVM"


def _require_fitting_versions(ptx: str, ptxas: Path) -> None:
    written = re.search(r"release (\d+)\.(\d+)", ptx)
    reads = _version(ptxas)
    if written and (int(written[1]), int(written[2])) > reads:
        raise ToolMismatch(
            f"NVVM {written[1]}.{written[2]} wrote PTX that ptxas {reads[0]}.{reads[1]} cannot read. Install"
            f" nvidia-nvvm and nvidia-cuda-nvcc of one version: {INSTALL}."
        )


def _entry_name(ptx: str) -> str:
    match = re.search(r"\.visible \.entry ([\w$]+)\(", ptx)
    if not match:
        raise DoesNotCompile("The PTX holds no kernel. Lower a kernel, not a device function.")
    return match[1]


def _entry_parameters(ptx: str) -> list[str]:
    start = ptx.index(".visible .entry")
    head = ptx[start : ptx.index(")", start)]
    return re.findall(r"\.param \.[a-z](\d+)", head)


def _sections(image: bytes) -> Iterator[tuple[str, bytes]]:
    """Walk the sections of a 64-bit ELF file: name and content."""
    table, entry_bytes, n_entries, names_index = (
        struct.unpack_from(form, image, place)[0]
        for form, place in (("<Q", 40), ("<H", 58), ("<H", 60), ("<H", 62))
    )
    headers = [struct.unpack_from("<IIQQQQ", image, table + entry_bytes * i) for i in range(n_entries)]
    names = headers[names_index][4]
    for name, kind, _, _, offset, size in headers:
        end = image.index(b"\0", names + name)
        no_content = kind == 8  # SHT_NOBITS
        yield image[names + name : end].decode(), b"" if no_content else image[offset : offset + size]


def _parameter_offset(info: bytes) -> int:
    """Read where the arguments start in constant bank 0 (attribute EIATTR_PARAM_CBANK of the cubin)."""
    place = 0
    while place + 4 <= len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, place)
        if attribute == 0x0A:
            return int(struct.unpack_from("<IHH", info, place + 4)[1])
        place += 4 + (size if form == 4 else 0)
    return 0  # a kernel without arguments


def numba_types(args: Sequence[Any]) -> tuple[Any, ...]:
    """The numba types of launch arguments; numba types are passed through."""
    try:
        from numba import typeof, types
    except ImportError as missing:
        raise ToolMissing(f"numba is not installed ({missing}). Install it: {INSTALL}.") from missing
    return tuple(arg if isinstance(arg, types.Type) else typeof(arg) for arg in args)
