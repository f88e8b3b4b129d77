"""Every kernel of every experiment compiles for sm_75, sm_80, sm_89 and sm_90, or says which instruction is missing.

No GPU is needed. numba types and lowers a kernel once for all targets that get the same instructions; NVVM and
ptxas then run for each target.
"""

from __future__ import annotations

import inspect
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import groupby
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba.cuda")

from numba import void

from lanewise.experiments import Case, all_experiments
from lanewise.kernels import sgemm_fast, sgemm_registers
from lanewise.lowering import lower, why_unavailable
from lanewise.lowering.lowered import COMPILED_WITH
from lanewise.lowering.toolchain import _device_functions_for, find_tool, numba_types
from lanewise.ptx import UnsupportedCapability
from lanewise.ptx.declare import DECLARED
from lanewise.ptx.used import intrinsics_of

pytestmark = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "kernels compile here")

TARGETS = {"sm_75": (7, 5), "sm_80": (8, 0), "sm_89": (8, 9), "sm_90": (9, 0)}
cuda: Any = import_module("numba.cuda")
Library: Any = import_module("numba.cuda.codegen").CUDACodeLibrary


def cases_by_kernel() -> dict[Any, list[Case]]:
    found: dict[Any, list[Case]] = {}
    for experiments in all_experiments().values():
        for experiment in experiments:
            for case in experiment.counted:
                found.setdefault(case.kernel, []).append(case)
    return found


CASES = cases_by_kernel()
# Kernels that keep their part of the product in an array of registers.
REGISTER_TILES = (
    sgemm_registers.registers_8x8,
    sgemm_registers.fragments_132,
    sgemm_fast.warp_tiles,
    sgemm_fast.prefetched,
)


def signatures(cases: list[Case]) -> Iterator[tuple[Any, ...]]:
    """The distinct argument types of the cases; a problem's arrays are made once."""
    problems: dict[str, dict[str, Any]] = {}
    seen = set()
    for case in cases:
        problem = case.problem
        if problem.name not in problems:
            inputs = problem.inputs(np.random.default_rng(0))
            problems[problem.name] = {**inputs, **problem.outputs(inputs)}
        signature = numba_types(case.arguments(problems[problem.name]))
        if signature not in seen:
            seen.add(signature)
            yield signature


@contextmanager
def last_library() -> Iterator[list[Any]]:
    """The library that numba makes PTX from: LLVM code, from which NVVM can make it for other targets too."""
    found: list[Any] = []
    original = Library._ensure_cc

    def remember(self: Any, cc: Any) -> Any:
        found.append(self)
        return original(self, cc)

    Library._ensure_cc = remember
    try:
        yield found
    finally:
        Library._ensure_cc = original


def lowered(kernel: Any, signature: tuple[Any, ...], capability: tuple[int, int]) -> Any:
    given = getattr(kernel, "targetoptions", {})
    options = {key: given[key] for key in COMPILED_WITH if given.get(key) is not None}
    with last_library() as found, _device_functions_for(capability):
        cuda.compile_ptx(kernel.py_func, void(*signature), cc=capability, **options)
    return found[-1]


def assemble(ptx: str, target: str, folder: Any, *options: str) -> str:
    """Have ptxas read it: NVVM copies inline PTX as it is. Returns what it says."""
    source = folder / f"{target}.ptx"
    source.write_text(ptx)
    command = [str(find_tool("ptxas")), f"-arch={target}", *options, str(source), "-o", str(folder / "cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ptxas for {target}: {done.stderr[:500]}"
    return done.stdout + done.stderr


def assert_tile_stays_in_registers(ptx: str, target: str, folder: Any) -> None:
    """An index that is not a constant would put the array into local memory. A few bytes may be spilled all the
    same: `prefetched` needs all 255 registers, and some versions of ptxas do not find room for the last."""
    said = assemble(ptx, target, folder, "-v")
    spilled = sum(int(n_bytes) for n_bytes in re.findall(r"(\d+) bytes spill (?:stores|loads)", said))
    (registers,) = re.findall(r"Used (\d+) registers", said)
    assert "__local_depot" not in ptx
    assert spilled < 4 * 64
    assert int(registers) >= 64


def missing_on(kernel: Any, capability: tuple[int, int]) -> frozenset[str]:
    """The intrinsics of a kernel that a GPU of this capability lacks."""
    return frozenset(name for name in intrinsics_of(kernel) if DECLARED[name].needs > capability)


def lines_of(kernel: Any) -> int:
    return len(inspect.getsourcelines(kernel.py_func)[0])


def refusals() -> dict[tuple[frozenset[str], tuple[int, int]], Any]:
    """The shortest kernel for each set of intrinsics that some target lacks."""
    found: dict[tuple[frozenset[str], tuple[int, int]], Any] = {}
    for kernel in sorted(CASES, key=lines_of):
        for capability in TARGETS.values():
            if missing := missing_on(kernel, capability):
                found.setdefault((missing, capability), kernel)
    return found


REFUSALS = refusals()


# The longest first, so that those that come last are short and workers end together.
@pytest.mark.parametrize(
    "kernel",
    sorted(CASES, key=lines_of, reverse=True),
    ids=lambda kernel: kernel.py_func.__name__,
)
def test_a_kernel_compiles_where_its_instructions_exist(kernel: Any, tmp_path: Any) -> None:
    steps = sorted({needs for name in intrinsics_of(kernel) for needs, _ in DECLARED[name].lowerings})
    for _, group in groupby(TARGETS.items(), key=lambda entry: [step <= entry[1] for step in steps]):
        targets = dict(group)
        oldest = min(targets.values())
        if missing_on(kernel, oldest):
            assert (missing_on(kernel, oldest), oldest) in REFUSALS
            continue
        for signature in signatures(CASES[kernel]):
            library = lowered(kernel, signature, oldest)
            for target, capability in targets.items():
                ptx = library.get_asm_str(cc=capability)
                assert f".target {target}" in ptx
                assemble(ptx, target, tmp_path, "-O0")  # unoptimised is fastest, and checks as much
                if kernel in REGISTER_TILES and target == "sm_90":
                    assert_tile_stays_in_registers(ptx, target, tmp_path)


@pytest.mark.parametrize(
    ("missing", "capability"),
    REFUSALS,
    ids=["+".join(sorted(missing)) + f" on {major}.{minor}" for missing, (major, minor) in REFUSALS],
)
def test_a_kernel_says_which_instruction_is_missing(
    missing: frozenset[str], capability: tuple[int, int]
) -> None:
    kernel = REFUSALS[missing, capability]
    with pytest.raises(UnsupportedCapability) as refused:
        lowered(kernel, next(signatures(CASES[kernel])), capability)
    assert re.fullmatch(
        rf"lanewise\.ptx\.({'|'.join(missing)}) needs compute capability \d\.\d or newer; this kernel"
        rf" is compiled for {capability[0]}\.{capability[1]}\. .+\.",
        str(refused.value),
    )


def test_every_register_tile_is_compiled() -> None:
    assert set(REGISTER_TILES) <= set(CASES)


def test_launch_bounds_reach_the_compiler() -> None:
    """The machine code that is read is the one that would be launched."""

    def greedy(src: Any, dst: Any) -> None:
        dst[0] = src[0]

    bound = cuda.jit(launch_bounds=(1024, 1))(greedy)
    arrays = np.zeros(1, np.float32), np.zeros(1, np.float32)
    assert ".maxntid 1024" in lower(bound, arrays).compiled.ptx
    assert ".maxntid" not in lower(cuda.jit(greedy), arrays).compiled.ptx


def test_the_oldest_target_has_kernels_of_its_own_where_an_instruction_is_missing() -> None:
    """Every topic that multiplies with Tensor Cores shows it on compute capability 7.5 too."""
    topics: dict[str, list[bool]] = {}
    for kernel in CASES:
        needs = [DECLARED[name].needs for name in intrinsics_of(kernel) if name.startswith("mma")]
        if needs:
            topics.setdefault(kernel.py_func.__module__.rpartition(".")[2].partition("_")[0], []).append(
                max(needs) <= (7, 5)
            )
    assert topics
    assert {topic for topic, old in topics.items() if not any(old)} <= {
        "attention"
    }  # of the flash kernels, none
