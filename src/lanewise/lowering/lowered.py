"""`lower` a kernel for a GPU, read its memory instructions, and run its machine code without one."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lanewise.errors import InvalidLaunch, NotModelled
from lanewise.lowering.blocks import Blocks, Launch
from lanewise.lowering.execute import run
from lanewise.lowering.report import Comparison, CompiledSite, CountedSite, Counts, compare
from lanewise.lowering.sass import MachineInstruction
from lanewise.lowering.storage import Heap
from lanewise.lowering.toolchain import Compiled, capability_of, compile_kernel, numba_types
from lanewise.lowering.traffic import Stopped, Traffic
from lanewise.machine import WARP_LANES

# Batches of about this many lanes keep NumPy busy and memory small.
LANES_PER_BATCH = 65_536
# Shared memory that the hardware generations from 9.0 on reserve at the start of a block's window.
RESERVED_SHARED_BYTES = 1024
# A reduction is an atomic whose old value nobody reads; the source does not tell them apart.
_OPS = {"reduction": "atomic"}


@dataclass(frozen=True)
class LoweredKernel:
    """A kernel as the compiler made it for `target`: its memory instructions by line, and its resources.

    `registers` are 32-bit registers per thread; `shared_bytes` is static shared memory per block,
    `stack_bytes` local memory per thread, `spill_bytes` register spills per thread, loads and stores together
    (bytes).
    """

    name: str
    file: str
    target: str
    compiled: Compiled

    @property
    def instructions(self) -> tuple[MachineInstruction, ...]:
        """All memory instructions, in code order."""
        return tuple(ins for ins in self.compiled.code.instructions if ins.is_memory)

    @property
    def registers(self) -> int:
        """32-bit registers per thread."""
        return self.compiled.registers

    @property
    def shared_bytes(self) -> int:
        """Static shared memory per block (bytes)."""
        return self.compiled.shared_bytes

    @property
    def stack_bytes(self) -> int:
        """Local memory per thread (bytes)."""
        return self.compiled.stack_bytes

    @property
    def spill_bytes(self) -> int:
        """Bytes per thread that register spills store and load."""
        return self.compiled.spill_bytes

    @cached_property
    def by_line(self) -> dict[int, tuple[MachineInstruction, ...]]:
        """The memory instructions of each line of the kernel's file."""
        lines: dict[int, list[MachineInstruction]] = {}
        for ins in self.instructions:
            lines.setdefault(ins.line, []).append(ins)
        return {line: tuple(lines[line]) for line in sorted(lines)}

    def run(
        self,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        *args: Any,
        dynamic_shared_bytes: int = 0,
        blocks: Sequence[int] | None = None,
    ) -> CompiledRun:
        """Execute the machine code on copies of `args` and count what its memory instructions touch.

        `blocks` are block numbers, x fastest; by default all. The arrays given are not changed: the results
        are in `CompiledRun.arrays`.
        """
        grid_dim, block_dim = _shape("grid", grid), _shape("block", block)
        heap = Heap()
        constants = self._constants(heap, args, grid_dim, block_dim, dynamic_shared_bytes)
        heap.fill()
        base = RESERVED_SHARED_BYTES if capability_of(self.target) >= (9, 0) else 0
        launch = Launch(
            grid_dim,
            block_dim,
            base + self.shared_bytes + dynamic_shared_bytes,
            self._local_bytes,
            constants,
            0,
        )
        ids = np.arange(int(np.prod(grid_dim))) if blocks is None else np.asarray(blocks, np.int64)
        per_batch = max(1, LANES_PER_BATCH // (-(-int(np.prod(block_dim)) // WARP_LANES) * WARP_LANES))
        traffic: dict[int, Traffic] = {}
        stopped = ""
        try:
            for start in range(0, len(ids), per_batch):
                run(Blocks(self.compiled.code, launch, heap, traffic, ids[start : start + per_batch]))
        except Stopped as reason:
            stopped = str(reason)
        arrays = tuple(heap.contents(arg) if isinstance(arg, np.ndarray) else None for arg in args)
        known = tuple(isinstance(arg, np.ndarray) and heap.is_known(arg) for arg in args)
        warps = -(-int(np.prod(block_dim)) // WARP_LANES)
        sites = tuple(_site(traffic[address], grid_dim, warps) for address in sorted(traffic))
        return CompiledRun(self, sites, stopped, arrays, known)

    @property
    def _local_bytes(self) -> int:
        return -(-self.stack_bytes // 16) * 16 + 16 if self.stack_bytes else 0

    def _constants(
        self,
        heap: Heap,
        args: Sequence[Any],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        dynamic_shared_bytes: int,
    ) -> dict[int, bytes]:
        """Fill constant bank 0 as a launch does: shapes, stack top, arguments.

        Bank 4 is left out: it holds addresses that only a loader knows.
        """
        compiled = self.compiled
        size = compiled.parameter_offset + 8 * len(compiled.parameters) + 64
        bank = bytearray(max(size, len(compiled.constants.get(0, b""))))
        blackwell = capability_of(self.target) >= (10, 0)
        # Where the hardware generations keep block shape, grid shape, stack top and dynamic shared bytes.
        block_at, grid_at, stack_at, dynamic_at = (
            (0x360, 0x370, 0x37C, 0x20C) if blackwell else (0x0, 0xC, 0x28, 0x2C)
        )
        bank[block_at : block_at + 12] = np.array(block, np.uint32).tobytes()
        bank[grid_at : grid_at + 12] = np.array(grid, np.uint32).tobytes()
        bank[stack_at : stack_at + 4] = np.uint32(self._local_bytes).tobytes()
        bank[dynamic_at : dynamic_at + 4] = np.uint32(dynamic_shared_bytes).tobytes()
        place = compiled.parameter_offset
        words = [word for arg in args for word in machine_words(heap, arg)]
        if len(words) != len(compiled.parameters):
            raise InvalidLaunch(
                f"{self.name}: the arguments make {len(words)} machine parameters, the code takes"
                f" {len(compiled.parameters)}. Lower it for these arguments."
            )
        for word, n_bytes in zip(words, compiled.parameters, strict=True):
            place = -(-place // n_bytes) * n_bytes
            bank[place : place + n_bytes] = word[:n_bytes].ljust(n_bytes, b"\0")
            place += n_bytes
        others = {number: data for number, data in compiled.constants.items() if number not in (0, 4)}
        return {0: bytes(bank), **others}

    @property
    def summary(self) -> str:
        """Name, target, resources and tools in one sentence."""
        return (
            f"{self.name} for {self.target}: {self.registers} registers, {self.shared_bytes:,} bytes of"
            f" shared memory, {self.spill_bytes} bytes spilled ({self.compiled.tools})."
        )

    def __str__(self) -> str:
        lines = [self.summary]
        for line, instructions in self.by_line.items():
            lines += [f"{line:>6}  {ins.text}" for ins in instructions]
        return "\n".join(lines)


@dataclass(frozen=True)
class CompiledRun:
    """What the machine code did in one launch.

    `sites` has one entry per memory instruction that was executed, in code order. `arrays` holds what each
    array argument became (None for other arguments), and `known` says which of them were computed throughout.
    `stopped` is empty, or why the run ended early: the counts then cover what came before.
    """

    kernel: LoweredKernel
    sites: tuple[CompiledSite, ...]
    stopped: str
    arrays: tuple[np.ndarray | None, ...]
    known: tuple[bool, ...]

    @property
    def unmodelled(self) -> tuple[str, ...]:
        """What is not claimed, each with the machine instruction that it concerns."""
        missing = [
            f"line {site.line}: {site.machine}: {site.not_modelled}"
            for site in self.sites
            if site.not_modelled
        ]
        return (*((self.stopped,) if self.stopped else ()), *missing)

    def counts(self, space: str, op: str) -> Counts:
        """Sum the counters of a space and operation: `run.counts("shared", "load").wavefronts`."""
        return Counts.of(site for site in self.sites if (site.space, site.op) == (space, op))

    def differing_arrays(self, expected: Sequence[Any]) -> tuple[int, ...]:
        """Positions of the arrays that the machine code computed throughout and that differ from `expected`.

        Floating-point results may round differently; integers must be equal.
        """
        pairs = enumerate(zip(self.arrays, self.known, expected, strict=True))
        return tuple(i for i, (mine, known, other) in pairs if known and not _close(mine, other))

    def beside(self, written: Sequence[CountedSite]) -> Comparison:
        """Compare with the sites of the same launch traced as written."""
        return compare(
            f"As written and as compiled. {self.kernel.summary}", written, self.sites, self.unmodelled
        )


def _close(mine: np.ndarray | None, other: np.ndarray) -> bool:
    if mine is None:
        return True
    if mine.dtype.names:
        return all(_close(mine[name], other[name]) for name in mine.dtype.names)
    if mine.dtype.kind not in "fc":
        return bool(np.array_equal(mine, other))
    tolerance = float(np.sqrt(np.finfo(mine.dtype).eps))
    return bool(np.allclose(mine, other, rtol=tolerance, atol=tolerance, equal_nan=True))


# The options of cuda.jit that change the machine code.
COMPILED_WITH = ("fastmath", "opt", "launch_bounds")


def lower(kernel: Callable[..., Any], args: Sequence[Any], target: str = "sm_90") -> LoweredKernel:
    """Compile `kernel` for `target` without a GPU and read the machine code.

    `args` are the arguments of a launch (arrays and numbers), or numba types. `kernel` is a `@cuda.jit`
    kernel or the plain function. Raises `ToolMissing`, `ToolMismatch`, `DoesNotCompile` or `UnknownMachine`.
    """
    capability_of(target)
    function = getattr(kernel, "py_func", kernel)
    options = {
        key: value
        for key in COMPILED_WITH
        if (value := getattr(kernel, "targetoptions", {}).get(key)) is not None
    }
    compiled = compile_kernel(function, numba_types(args), target, options)
    return LoweredKernel(function.__name__, function.__code__.co_filename, target, compiled)


def _shape(what: str, value: int | Sequence[int]) -> tuple[int, int, int]:
    axes = [int(n) for n in (value if isinstance(value, Sequence) else (value,))]
    if not 1 <= len(axes) <= 3 or min(axes) < 1:
        raise InvalidLaunch(f"{what}: got {value!r}; give 1 to 3 positive numbers, x first.")
    x, y, z = (*axes, 1, 1)[:3]
    return x, y, z


def machine_words(heap: Heap, arg: Any) -> list[bytes]:
    """Cut an argument into the machine parameters that numba makes of it."""
    if isinstance(arg, np.ndarray):
        numbers = (0, 0, arg.size, arg.itemsize, heap.address_of(arg), *arg.shape, *arg.strides)
        return [np.int64(n).tobytes() for n in numbers]
    if isinstance(arg, tuple):
        return [word for item in arg for word in machine_words(heap, item)]
    if isinstance(arg, complex | np.complexfloating):
        return [part.tobytes() for part in (np.asarray(arg).real[()], np.asarray(arg).imag[()])]
    if isinstance(arg, bool | np.bool_):
        return [bytes([int(arg)])]
    if isinstance(arg, int):
        return [np.int64(arg).tobytes()]
    if isinstance(arg, float | np.number):
        return [np.asarray(arg).tobytes()]
    raise NotModelled(
        f"An argument of type {type(arg).__name__} is not modelled in the compiled view. Pass arrays and"
        " numbers."
    )


def _site(traffic: Traffic, grid: tuple[int, int, int], warps_per_block: int) -> CompiledSite:
    ins = traffic.instruction
    block, warp = divmod(traffic.worst_warp, warps_per_block)
    at = (block % grid[0], block // grid[0] % grid[1], block // (grid[0] * grid[1]))
    return CompiledSite(
        filename=ins.file,
        line=ins.line,
        source=linecache.getline(ins.file, ins.line).strip(),
        op=_OPS.get(ins.kind, ins.kind),
        space=traffic.space,
        instruction=traffic.example.instruction if traffic.example else ins.model_name or ins.opcode,
        machine=ins.text,
        address=ins.address,
        requests=traffic.requests,
        wavefronts=traffic.wavefronts,
        ideal=traffic.ideal,
        sectors=traffic.sectors,
        fewest_sectors=traffic.fewest_sectors,
        lines=traffic.lines,
        bytes_requested=traffic.bytes_requested,
        example=traffic.example,
        example_block=at if traffic.example else None,
        example_warp=warp,
        not_modelled=traffic.not_modelled,
    )
