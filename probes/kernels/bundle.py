"""Bundle kernels as machine code with their arguments: the machine with the GPU needs its driver alone.

    python bundle.py corpus OUT.zip     the kernels of tests/corpus, and what the compiled view claims
    python bundle.py faults OUT.zip     the faults and clean twins of cases.py

Run it from anywhere in an environment with lanewise[sass]; no GPU is needed. `launch.py` explains the format.
"""

import argparse
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from cases import Twin, all_twins  # noqa: E402

from lanewise.errors import Error  # noqa: E402
from lanewise.lowering import CompiledRun, lower  # noqa: E402
from lanewise.lowering.lowered import machine_words  # noqa: E402
from lanewise.lowering.storage import HEAP_BASE, Heap  # noqa: E402
from lanewise.lowering.toolchain import Compiled, compile_kernel, find_tool, numba_types  # noqa: E402
from tests.corpus import all_cases  # noqa: E402

TARGET = "sm_90"


class Bundle:
    """A zip of cubins, memory images and `launches.json`."""

    def __init__(self, path: Path) -> None:
        self._file = ZipFile(path, "w", ZIP_DEFLATED)
        self._launches: list[dict[str, Any]] = []

    def add(
        self,
        name: str,
        compiled: Compiled,
        shape: tuple[Any, Any],
        args: Sequence[Any],
        dynamic_shared_bytes: int = 0,
        optimised: bool = True,
        uninitialized: Sequence[np.ndarray] = (),
        **more: Any,
    ) -> None:
        """Add one launch; arrays among `uninitialized` get memory that nobody has written."""
        number = len(self._launches)
        heap = Heap()
        words = [word for arg in args for word in machine_words(heap, arg)]
        heap.fill()
        # Their places only: the launch leaves their memory as the driver hands it out.
        unwritten = {heap.address_of(array) - HEAP_BASE for array in uninitialized}
        allocations = []
        for i, held in enumerate(heap.allocations):
            content = None if held.place in unwritten else f"memory/{number}.{i}"
            if content:
                self._file.writestr(
                    content, heap.bytes.data[held.place : held.place + held.n_bytes].tobytes()
                )
            allocations.append({"bytes": held.n_bytes, "content": content})
        cubin = f"cubins/{number}.cubin"
        self._file.writestr(cubin, assemble(compiled.ptx, optimised))
        self._launches.append(
            {
                "name": name,
                "entry": compiled.name,
                "cubin": cubin,
                "grid": _three(shape[0]),
                "block": _three(shape[1]),
                "dynamic_shared_bytes": dynamic_shared_bytes,
                "allocations": allocations,
                "parameters": [
                    _parameter(heap, word[:n].ljust(n, b"\0"))
                    for word, n in zip(words, compiled.parameters, strict=True)
                ],
                **more,
            }
        )

    def add_array(self, name: str, array: np.ndarray) -> str:
        """Keep an array, and give the name of its file."""
        raw = io.BytesIO()
        np.save(raw, array)
        self._file.writestr(name, raw.getvalue())
        return name

    def close(self) -> None:
        self._file.writestr("launches.json", json.dumps(self._launches))
        self._file.close()

    def __len__(self) -> int:
        return len(self._launches)


def assemble(ptx: str, optimised: bool) -> bytes:
    """The cubin of a PTX text, with line numbers."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        options = [f"-arch={TARGET}", "--generate-line-info", *([] if optimised else ["-O0"])]
        subprocess.run([str(find_tool("ptxas")), *options, str(source), "-o", str(cubin)], check=True)
        return cubin.read_bytes()


def _parameter(heap: Heap, word: bytes) -> dict[str, Any]:
    """One machine parameter: its bytes, or the place in an allocation that it points to."""
    place = int.from_bytes(word, "little") - HEAP_BASE
    for number, held in enumerate(heap.allocations):
        if len(word) == 8 and held.place <= place <= held.place + held.n_bytes:
            return {"allocation": number, "offset": place - held.place}
    return {"hex": word.hex()}


def _three(shape: Any) -> list[int]:
    axes = [int(n) for n in (shape if isinstance(shape, Sequence) else (shape,))]
    return [*axes, 1, 1][:3]


def bundle_corpus(bundle: Bundle, only: str) -> None:
    """Every launch of the corpus that compiles, with the claims of the compiled view."""
    for case in all_cases():
        if only not in case.name:
            continue
        args = case.inputs("random")
        try:
            kernel = lower(case.kernel, args, TARGET)
            ran = kernel.run(case.grid, case.block, *args, dynamic_shared_bytes=case.dynamic_shared_bytes)
        except Error as error:
            say(f"left out {case.name}: {str(error)[:160]}")
            continue
        if ran.stopped:
            say(f"{case.name}: {ran.stopped[:160]}")
        bundle.add(
            case.name,
            kernel.compiled,
            (case.grid, case.block),
            args,
            case.dynamic_shared_bytes,
            stopped=ran.stopped,
            claims=claims(ran),
            arrays=expected_arrays(bundle, ran, args),
        )


def claims(ran: CompiledRun) -> list[dict[str, Any]]:
    """What is claimed of each memory instruction, in code order; no costs for one that never ran."""
    sites = {site.address: site for site in ran.sites}
    rows = []
    for instruction in ran.kernel.instructions:
        row: dict[str, Any] = {"opcode": instruction.opcode, "machine": instruction.text}
        if site := sites.get(instruction.address):
            row |= {"space": site.space, "requests": site.requests, "not_modelled": site.not_modelled}
            row |= {"wavefronts": site.wavefronts, "ideal": site.ideal, "sectors": site.sectors}
        rows.append(row)
    return rows


def expected_arrays(bundle: Bundle, ran: CompiledRun, args: Sequence[Any]) -> list[dict[str, Any]]:
    """The array arguments that were computed throughout: where they lie, and what they became."""
    heap = Heap()
    for arg in args:
        machine_words(heap, arg)
    found = []
    for i, (arg, known, result) in enumerate(zip(args, ran.known, ran.arrays, strict=True)):
        if not known or result is None:
            continue
        pointer = _parameter(heap, np.int64(heap.address_of(arg)).tobytes())
        name = bundle.add_array(f"expected/{len(bundle)}.{i}.npy", result)
        found.append({"file": name, "strides": list(arg.strides), **pointer})
    return found


def bundle_faults(bundle: Bundle, only: str) -> None:
    """Every fault and clean twin, compiled as written: an optimiser would drop the accesses nobody needs.

    What synccheck looks at is optimised code too, because there branches and barriers are other instructions.
    """
    for twin in all_twins():
        if only not in twin.name:
            continue
        for optimised in (False, True) if twin.tool == "synccheck" else (False,):
            add_twin(bundle, twin, optimised)


def add_twin(bundle: Bundle, twin: Twin, optimised: bool) -> None:
    """Add a probe, unless the optimiser removed its fault; unoptimised code must keep it."""
    compiled = compile_kernel(twin.function(), numba_types(twin.arguments), TARGET, {"opt": optimised})
    lines = {instruction.line for instruction in compiled.code.instructions}
    if gone := [line for line in twin.marked_lines if line not in lines]:
        if not optimised:
            raise RuntimeError(f"{twin.name}: no machine instruction is left of lines {gone}.")
        say(f"left out {twin.name} (optimised): nothing is left of lines {gone}")
        return
    bundle.add(
        twin.name + (" (optimised)" if optimised else ""),
        compiled,
        (twin.probe.grid, twin.probe.block),
        twin.arguments,
        twin.probe.dynamic,
        optimised=optimised,
        uninitialized=twin.uninitialized,
        tool=twin.tool,
    )


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description="Bundle kernels for a machine with a GPU.")
    parser.add_argument("what", choices=("corpus", "faults"))
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="", help="the launches whose name contains this")
    arguments = parser.parse_args()
    bundle = Bundle(arguments.out)
    {"corpus": bundle_corpus, "faults": bundle_faults}[arguments.what](bundle, arguments.only)
    bundle.close()
    say(f"{len(bundle)} launches, {arguments.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
