"""The PTX intrinsics: what they compute, what they cost, where they exist and what they compile to."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba.cuda")

from numba import cuda

from lanewise import ptx
from lanewise.errors import Error
from lanewise.fragments import M16N8K8, M16N8K16, MatrixMove
from lanewise.lowering import why_unavailable
from lanewise.lowering.toolchain import compile_kernel, numba_types
from lanewise.machine import AVAILABILITY
from lanewise.ptx import numba_cuda
from lanewise.ptx.declare import DECLARED
from lanewise.trace import Trace, functions_in, trace
from tests.ptx_kernels import LAUNCHES, THREADS, WARPS, squared

SASS = pytest.mark.skipif(bool(why_unavailable()), reason=why_unavailable() or "kernels compile here")
TARGETS = ("sm_75", "sm_80", "sm_89", "sm_90")
HALF, BRAIN = np.float16, "bfloat16"


def capability(target: str) -> tuple[int, int]:
    return int(target[3:-1]), int(target[-1])


def traced(name: str, seed: int = 0) -> tuple[Trace, tuple[Any, ...], tuple[Any, ...]]:
    """Trace a launch: the report, the inputs as they were, the outputs."""
    launch = LAUNCHES[name]
    arguments = launch.arguments(np.random.default_rng(seed))
    before = tuple(np.copy(argument) for argument in arguments)
    t = trace(launch.kernel, launch.grid, launch.block, *arguments)
    assert t.hazards == [], t.hazards
    return t, before, arguments[-launch.n_outputs :]


# -- values ----------------------------------------------------------------------------------------


def test_wide_accesses() -> None:
    _, (src, _), (dst,) = traced("wide")
    q = src.reshape(-1, 4)
    q = np.stack([q[:, 1], q[:, 0], q[:, 3], q[:, 2]], axis=1)  # as the tile holds them
    want = np.concatenate(
        [
            q[:THREADS][::-1].reshape(-1),
            np.stack([*src[512:1024].reshape(-1, 4).T[:0:-1], src[:THREADS]], axis=1).reshape(-1),
            src[1024:1536],
            src[512:1024],
        ]
    )
    np.testing.assert_array_equal(dst, want)


@pytest.mark.parametrize("name", ["eights", "eights of uint16"])
def test_eight_halves_at_once(name: str) -> None:
    t, (src, _), (dst,) = traced(name)
    bits, found = src.view(np.uint16), dst.view(np.uint16)
    np.testing.assert_array_equal(found[:, :8], bits[:, 7::-1])
    np.testing.assert_array_equal(found[:, 8:], bits.reshape(-1, 2, 16)[:, ::-1, 8:].reshape(-1, 8))
    assert {site.instruction for site in t.sites} == {
        f"{op}.{space}.b128" for op in ("ld", "st") for space in ("global", "shared")
    }


def halves(words: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(words)[..., None].view(np.uint16)


def test_matrix_loads_follow_the_fragment_maps() -> None:
    t, (src, _), (dst,) = traced("matrix_loads")
    tile, lane = src.view(np.uint16), np.arange(32)
    for warp in range(WARPS):
        row = (lane + 8 * warp) % 64
        found = halves(dst[32 * warp : 32 * warp + 32])
        for move, columns, registers in (
            (MatrixMove(1), 8, slice(0, 1)),
            (MatrixMove(1, True), 16, slice(1, 2)),
            (MatrixMove(2), 0, slice(2, 4)),
            (MatrixMove(2, True), 8, slice(4, 6)),
            (MatrixMove(4), 8 * (lane % 3), slice(6, 10)),
            (MatrixMove(4, True), 8 * (lane % 3), slice(10, 14)),
        ):
            first = np.broadcast_to(columns, 32)
            rows = tile[row[:, None], first[:, None] + np.arange(8)]
            matrices = rows[: move.n_address_lanes].reshape(move.n_matrices, 8, 8)
            np.testing.assert_array_equal(found[:, registers], move.distribute(matrices), err_msg=str(move))
    assert {site.instruction for site in t.shared.load.sites} == {
        f"ldmatrix.x{n}{trans}" for n in (1, 2, 4) for trans in ("", ".trans")
    }


def test_matrix_stores_follow_the_fragment_maps() -> None:
    t, (src, _), (dst,) = traced("matrix_stores")
    registers = halves(src).reshape(WARPS, 32, 4, 2)
    found = dst.view(np.uint16).reshape(WARPS, 112, 8)
    start = 0
    for move, order in (
        (MatrixMove(1), [0]),
        (MatrixMove(1, True), [1]),
        (MatrixMove(2), [2, 3]),
        (MatrixMove(2, True), [0, 1]),
        (MatrixMove(4), [0, 1, 2, 3]),
        (MatrixMove(4, True), [3, 2, 1, 0]),
    ):
        rows = slice(start, start + move.n_address_lanes)
        want = move.collect(registers[:, :, order])
        np.testing.assert_array_equal(found[:, rows], want.reshape(WARPS, -1, 8), err_msg=str(move))
        start += move.n_address_lanes
    names = [site.instruction for site in t.shared.store.sites]
    assert names == [
        "stmatrix.x1",
        "stmatrix.x1.trans",
        "stmatrix.x2",
        "stmatrix.x2.trans",
        "stmatrix.x4",
        "stmatrix.x4.trans",
    ]


@pytest.mark.parametrize("trans", ["", "_trans"])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_a_stored_matrix_is_loaded_as_it_was(n: int, trans: str) -> None:
    names = ", ".join(f"r{k}" for k in range(n))
    given = ", ".join(f"src[i, {k}]" for k in range(n))
    kept = "".join(f"    dst[i, {k}] = r{k}\n" for k in range(n))
    kernel = functions_in(
        "from numba import cuda, float32\nimport numpy as np\nfrom lanewise import ptx\n"
        "def round_trip(src, dst):\n"
        "    i = cuda.threadIdx.x\n"
        "    tile = cuda.shared.array((64, 24), np.float16)\n"
        f"    at = (i % 32 + 32 * (i // 32), 8)\n    ptx.stmatrix_x{n}{trans}(tile, at, {given})\n"
        f"    cuda.syncwarp()\n    {names} = ptx.ldmatrix_x{n}{trans}(tile, at)\n{kept}"
    )["round_trip"]
    src = np.random.default_rng(n).integers(0, 2**32, (64, n), dtype=np.uint32)
    dst = np.zeros_like(src)
    assert trace(kernel, 1, 64, src, dst).hazards == []
    np.testing.assert_array_equal(dst, src)


def as_bf16(words: np.ndarray) -> np.ndarray:
    return (halves(words).astype(np.uint32) << np.uint32(16)).view(np.float32)


@pytest.mark.parametrize("whole", [False, True], ids=["random", "arange"])
def test_products(whole: bool) -> None:
    launch = LAUNCHES["products"]
    a, b, c, *outputs = launch.arguments(np.random.default_rng(3))
    if whole:
        a = M16N8K16.a.split(np.arange(256).reshape(16, 16) % 17).astype(HALF).view(np.uint32)[..., 0]
        b = M16N8K16.b.split(np.arange(128).reshape(16, 8) % 13).astype(HALF).view(np.uint32)[..., 0]
        c = np.arange(128, dtype=np.float32).reshape(32, 4)
    trace(launch.kernel, 1, 32, a, b, c, *outputs)
    half, brain, short = outputs
    fa, fb = halves(a).view(HALF), halves(b).view(HALF)
    fc = c[..., None]
    np.testing.assert_allclose(
        half, M16N8K16.multiply(fa, fb, fc)[..., 0], rtol=0 if whole else 1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        brain, M16N8K16.multiply(as_bf16(a), as_bf16(b), fc)[..., 0], rtol=1e-5, atol=1e-5
    )
    np.testing.assert_allclose(
        short, M16N8K8.multiply(fa[:, :2], fb[:, :1], fc)[..., 0], rtol=1e-5, atol=1e-5
    )
    _, (a, b, c, _), (found,) = traced("short_product")
    want = M16N8K8.multiply(halves(a).view(HALF)[:, :2], halves(b).view(HALF)[:, :1], c[..., None])
    np.testing.assert_allclose(found, want[..., 0], rtol=1e-5, atol=1e-5)


def test_asynchronous_copies_and_what_is_not_claimed_of_them() -> None:
    t, (src, _), (dst,) = traced("copies")
    want = np.concatenate([src[383::-1], src[639:383:-1], src[1279:767:-1]])
    np.testing.assert_array_equal(dst, want)
    inside = list(t.shared.async_copy.sites)
    assert [(site.instruction, site.modelled) for site in inside] == [
        ("cp.async.ca.4", True),
        ("cp.async.ca.8", True),
        ("cp.async.ca.16", True),
        ("cp.async.cg.16", False),
    ]
    assert [site.wavefronts for site in inside] == [4, 8, 8, 0]
    assert sum("its global side is not claimed" in line for line in t.unmodelled) == 4


def nearest_bf16(value: float) -> int:
    """By trying the two neighbours, in float64."""
    bits = int(np.float32(value).view(np.uint32))
    if np.isnan(value):
        return 0x7FFF
    low = bits >> 16
    if bits & 0xFFFF == 0 or np.isinf(value):
        return low
    below, above = (float(np.uint32(k << 16).view(np.float32)) for k in (low, low + 1))
    above = np.copysign(2.0**128, value) if np.isinf(above) else above
    to_low, to_high = abs(value - below), abs(above - value)
    if to_low == to_high:
        return low if low % 2 == 0 else low + 1
    return low if to_low < to_high else low + 1


def test_packing_rounds_to_nearest_even_and_overflows_to_infinity() -> None:
    _, (lo, hi, *_), (words, low, high) = traced("packed")
    with np.errstate(over="ignore", invalid="ignore"):
        want_low, want_high = (part.astype(HALF) for part in (lo, hi))
        exact = lo.astype(np.float64), hi.astype(np.float64)
    found = halves(words)
    for k, want in enumerate((want_low, want_high)):
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(found[numbers, 0, k], want.view(np.uint16)[numbers])
        assert set(found[~numbers, 0, k]) == {0x7FFF}
        np.testing.assert_array_equal(found[:, 1, k], [nearest_bf16(v) for v in exact[k]])
    np.testing.assert_array_equal(low[:, 0], want_low.astype(np.float32))
    np.testing.assert_array_equal(high[:, 0], want_high.astype(np.float32))
    np.testing.assert_array_equal(low[:, 1], as_bf16(words[:, 1])[:, 0])
    np.testing.assert_array_equal(high[:, 1], as_bf16(words[:, 1])[:, 1])
    _, _, (alone, _, _) = traced("packed_half")
    np.testing.assert_array_equal(alone, words[:, 0] ^ hi.view(np.uint32))


def test_powers_of_two() -> None:
    _, (src, _), (dst,) = traced("powers")
    with np.errstate(over="ignore"):
        want = np.exp2(src.astype(np.float64)).astype(np.float32)
    want[want < np.finfo(np.float32).tiny] = 0
    np.testing.assert_allclose(dst, want, rtol=3e-7)


def test_shared_addresses_are_bytes() -> None:
    _, _, (dst,) = traced("addresses")
    i = np.arange(THREADS) % 64
    np.testing.assert_array_equal(dst, np.stack([20 * i + 12, 2 * i], axis=1))


def test_blocks_that_look_back_find_what_earlier_blocks_published() -> None:
    t, (src, *_), (dst, _) = traced("look_back")
    np.testing.assert_array_equal(dst, np.cumsum(src))
    assert (
        sum("also orders other accesses, which the tracer does not follow" in note for note in t.notes) == 2
    )


# -- where an instruction exists -----------------------------------------------------------------------


def availability_of(name: str) -> tuple[int, int]:
    """What `lanewise.machine` says of the instruction behind a name."""
    product = re.fullmatch(r"mma_(m\d+n\d+k\d+)_(\w+)", name)
    if product:
        return AVAILABILITY[f"mma.{product[1]}.{product[2]}"].since
    stem = (
        name.partition("_x")[0] if "matrix" in name else "cp.async" if name.startswith("cp_async") else "ld"
    )
    return (8, 0) if name == "pack_bf16x2" else AVAILABILITY[stem].since


def test_what_a_declaration_needs_is_what_the_machine_knows() -> None:
    assert {name: entry.needs for name, entry in DECLARED.items()} == {
        name: availability_of(name) for name in DECLARED
    }


def test_every_name_is_public_documented_and_only_for_kernels() -> None:
    assert set(DECLARED) <= set(ptx.__all__)
    for name in DECLARED:
        function = getattr(ptx, name)
        assert function.__doc__
        n = len(
            [
                one
                for one in inspect.signature(function).parameters.values()
                if one.kind is one.POSITIONAL_OR_KEYWORD
            ]
        )
        with pytest.raises(ptx.OnlyInKernels, match=rf"lanewise\.ptx\.{name} is for kernels"):
            function(*range(n))


OLD_GPU = (
    "lanewise.ptx.mma_m16n8k16_f16 needs compute capability 8.0 or newer; this kernel is {} for 7.5. Use"
    " mma_m16n8k8_f16 twice: with (a[0], a[1]) and b[0], then with (a[2], a[3]) and b[1]."
)


@SASS
def test_a_kernel_for_an_older_gpu_is_refused_before_the_compiler_fails() -> None:
    launch = LAUNCHES["products"]
    signature = numba_types(launch.arguments(np.random.default_rng(0)))
    compile_kernel(
        launch.kernel.py_func, signature, "sm_80", {}
    )  # what numba has typed already is checked again
    with pytest.raises(ptx.UnsupportedCapability) as refused:
        compile_kernel(launch.kernel.py_func, signature, "sm_75", {})
    assert str(refused.value) == OLD_GPU.format("compiled")
    assert isinstance(refused.value, Error)


def test_a_kernel_for_an_older_gpu_is_not_traced() -> None:
    launch = LAUNCHES["products"]
    with pytest.raises(ptx.UnsupportedCapability) as refused:
        trace(launch.kernel, 1, 32, *launch.arguments(np.random.default_rng(0)), machine="sm_75")
    assert re.fullmatch(r"ptx_kernels\.py:\d+: " + re.escape(OLD_GPU.format("traced")), str(refused.value))


# -- machine code ----------------------------------------------------------------------------------

OPCODES = {
    "wide": "LDG.E.64.CONSTANT LDG.E.128.CONSTANT LDS.128 STG.E.128 STS.128",
    "eights": "LDG.E.128 LDG.E.128.CONSTANT LDS.128 STS.128 STG.E.128",
    "matrix_loads": "LDSM.16.M88 LDSM.16.M88.2 LDSM.16.M88.4 LDSM.16.MT88 LDSM.16.MT88.2 LDSM.16.MT88.4",
    "matrix_stores": "STSM.16.M88 STSM.16.M88.2 STSM.16.M88.4 STSM.16.MT88 STSM.16.MT88.2 STSM.16.MT88.4",
    "products": "HMMA.16816.F32 HMMA.16816.F32.BF16 HMMA.1688.F32",
    "short_product": "HMMA.1688.F32",
    "copies": "LDGSTS.E LDGSTS.E.64 LDGSTS.E.128 LDGSTS.E.BYPASS.128 LDGDEPBAR",
    "packed_half": "HADD2.F32",
    "powers": "MUFU.EX2",
    "look_back": "LDG.E.64.STRONG.GPU STG.E.64.STRONG.GPU",
}


@SASS
@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
@pytest.mark.parametrize("name", OPCODES)
def test_machine_code_holds_the_instructions(name: str, target: str) -> None:
    launch = LAUNCHES[name]
    signature = numba_types(launch.arguments(np.random.default_rng(0)))
    if capability(target) < launch.needs:
        with pytest.raises(
            ptx.UnsupportedCapability,
            match=rf"or newer; this kernel is compiled for {target[3]}\.{target[4]}\. \w+",
        ):
            compile_kernel(launch.kernel.py_func, signature, target, {})
        return
    compiled = compile_kernel(launch.kernel.py_func, signature, target, {})
    opcodes = [ins.opcode.replace(".SYS", "").replace(".U.", ".") for ins in compiled.code.instructions]
    assert set(OPCODES[name].split()) <= set(opcodes)
    assert compiled.spill_bytes == 0
    assert "__local_depot" not in compiled.ptx


@SASS
def test_halves_that_are_calculated_with_still_move_16_bytes_at_once() -> None:
    """LLVM would load a vector of 8 halves in two pieces."""

    halves = np.zeros(256, np.float16)
    compiled = compile_kernel(squared.py_func, numba_types((halves, halves)), "sm_90", {})
    opcodes = [ins.opcode for ins in compiled.code.instructions if ins.opcode.startswith(("LDG", "STG"))]
    assert opcodes == ["LDG.E.128", "STG.E.128"]


# -- on a GPU --------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("name", LAUNCHES)
def test_the_gpu_gives_the_same_bits(name: str) -> None:
    launch = LAUNCHES[name]
    if cuda.get_current_device().compute_capability < launch.needs:
        pytest.skip(f"needs compute capability {launch.needs}")
    arguments = launch.arguments(np.random.default_rng())
    there = [cuda.to_device(argument) for argument in arguments]
    trace(launch.kernel, launch.grid, launch.block, *arguments)
    launch.kernel[launch.grid, launch.block](*there)
    for here, found in zip(arguments[-launch.n_outputs :], there[-launch.n_outputs :], strict=True):
        result = found.copy_to_host()
        if launch.tolerance:
            largest = np.abs(here[np.isfinite(here)]).max() if launch.of_largest else 0
            np.testing.assert_allclose(result, here, rtol=launch.tolerance, atol=launch.tolerance * largest)
        else:
            np.testing.assert_array_equal(result.view(np.uint8), here.view(np.uint8))


# -- without numba, without a GPU ----------------------------------------------------------------------


def test_importing_lanewise_loads_neither_ptx_nor_numba() -> None:
    script = (
        "import sys, lanewise, numpy as np\n"
        "assert 'lanewise.ptx' not in sys.modules and 'numba' not in sys.modules\n"
        "sys.modules['numba'] = sys.modules['numba_cuda'] = sys.modules['llvmlite'] = None\n"
        "import importlib.util as util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name.startswith('numba') else found(name, *rest)\n"
        "from lanewise.trace import functions_in, trace\n"
        "k = functions_in('from lanewise import ptx\\ndef k(a):\\n    ptx.store2(a, 0, 1, 2)\\n')['k']\n"
        "a = np.zeros(2, np.float32)\n"
        "trace(k, 1, 32, a)\n"
        "print(a, 'lanewise.ptx' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[1. 2.] True", "")


def test_numbas_simulator_still_imports_kernels_that_use_ptx() -> None:
    script = "from lanewise import ptx; from lanewise.kernels import tensor_cores; print(ptx.load4.__name__)"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.stdout.strip(), done.stderr) == ("load4", "")


@pytest.mark.skipif(cuda.is_available(), reason="a GPU is here")
def test_dynamic_shared_memory_without_a_gpu() -> None:
    with pytest.raises(
        ptx.CannotAllow, match=r"there is no GPU here\. Trace the kernel with dynamic_shared_bytes"
    ):
        ptx.allow_dynamic_shared(LAUNCHES["wide"].kernel, 100_000)
    with pytest.raises(ptx.CannotAllow, match=r"got a int; it takes a cuda\.jit kernel"):
        ptx.allow_dynamic_shared(3, 100_000)
    with pytest.raises(ptx.CannotAllow, match="n_bytes: got -1"):
        ptx.allow_dynamic_shared(LAUNCHES["wide"].kernel, -1)


class MadeUpGpu:
    """What numba-cuda shows of a GPU and of a kernel compiled for it; notes the driver's calls."""

    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, id, name = 101_376, 3, b"Toy GPU"

    def __init__(self, function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.overloads: dict[Any, Any] = {}
        self._codelibrary, self._function = self, function
        monkeypatch.setattr(numba_cuda.cuda, "is_available", lambda: True)
        monkeypatch.setattr(numba_cuda.cuda, "get_current_device", lambda: self)
        attribute = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="limit")
        binding = SimpleNamespace(CUfunction_attribute=attribute)
        monkeypatch.setattr(numba_cuda, "driver", SimpleNamespace(binding=binding, driver=self))

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        return lambda *arguments: self.calls.append((name, *arguments))

    def compile(self, signature: Any) -> None:
        self.overloads[signature] = self

    def typeof_pyval(self, value: Any) -> str:
        return type(value).__name__

    def get_cufunc(self) -> Any:
        return self._function


@pytest.mark.parametrize(
    ("more", "call"),
    [
        ({"kernel": None}, ("cuKernelSetAttribute", "limit", 100_000, "handle", 3)),
        ({}, ("cuFuncSetAttribute", "handle", "limit", 100_000)),  # Colab's numba-cuda
    ],
)
def test_dynamic_shared_memory_is_allowed_to_what_is_compiled(
    more: dict[str, None], call: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    function = SimpleNamespace(handle="handle", attrs=SimpleNamespace(shared=1024), **more)
    gpu = MadeUpGpu(function, monkeypatch)
    with pytest.raises(ptx.CannotAllow, match=r"not compiled yet\. Give the arguments of the launch too"):
        ptx.allow_dynamic_shared(gpu, 100_000)
    ptx.allow_dynamic_shared(gpu, 100_000, 1.0, 2)
    assert list(gpu.overloads) == [("float", "int")]
    assert gpu.calls == [call]
    with pytest.raises(ptx.CannotAllow) as refused:
        ptx.allow_dynamic_shared(gpu, 100_353)
    assert str(refused.value) == (
        "allow_dynamic_shared: 100,353 bytes; a block on this Toy GPU has 100,352 bytes of dynamic shared memory"
        " beside 1,024 static ones. Use smaller tiles or fewer stages."
    )
    assert len(gpu.calls) == 1
