"""Run kernels under numba's CUDA simulator, in a process of its own.

The simulator is chosen when numba is imported, so the process that runs the tests cannot use it. One subprocess runs
many launches and hands the arrays back: `python -m tests.simulator OUT corpus|generated ...` is that subprocess.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
Outcome = list[Any] | str
"""The arguments after the launch, or the traceback of what went wrong."""


def run_in_simulator(what: str, *arguments: str, timeout_s: int = 300) -> dict[str, Outcome]:
    """Run the corpus ("corpus", fill) or plain generated programs ("generated", first seed, last seed)."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "outcomes.pickle"
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-m", "tests.simulator", str(out), what, *arguments],
            env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": paths},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, f"the simulator process failed:\n{done.stdout}\n{done.stderr}"
        outcomes: dict[str, Outcome] = pickle.loads(out.read_bytes())
        return outcomes


def launch(
    kernel: Any, grid: Any, block: Any, arguments: tuple[Any, ...], dynamic_shared_bytes: int = 0
) -> Outcome:
    """Launch one kernel in the simulator; its error becomes text, so that the other launches still run."""
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    # Handed over as device arrays: host arrays would be copied, which the simulator cannot do with views.
    on_device = [FakeCUDAArray(given) if isinstance(given, np.ndarray) else given for given in arguments]
    try:
        with np.errstate(all="ignore"):
            kernel[grid, block, 0, dynamic_shared_bytes](*on_device)
    except Exception:
        return traceback.format_exc()
    return list(arguments)


def hand_back(out: str, launches: dict[str, Callable[[], Outcome]]) -> None:
    """Run the launches and write their outcomes for the parent process."""
    # A thread of the simulator that fails reports through the launch; its own traceback would only be noise.
    threading.excepthook = lambda _: None
    Path(out).write_bytes(pickle.dumps({name: launch_one() for name, launch_one in launches.items()}))


def run_corpus(out: str, fill: str) -> None:
    """Run every case of the corpus that the simulator can run."""
    from tests.corpus import all_cases

    def launcher(case: Any) -> Callable[[], Outcome]:
        return lambda: launch(
            case.kernel, case.grid, case.block, case.inputs(fill), case.dynamic_shared_bytes
        )

    hand_back(out, {case.name: launcher(case) for case in all_cases() if not case.simulator})


def run_generated(out: str, first: str, last: str) -> None:
    """Run the plain generated programs of some seeds."""
    from tests.generator import Program, generate, load

    def launcher(program: Program, folder: str) -> Callable[[], Outcome]:
        kernel = load(program.source, Path(folder), f"plain_{program.seed}")
        return lambda: launch(kernel, program.grid, program.block, program.arguments())

    with tempfile.TemporaryDirectory() as folder:
        programs = [generate(seed, plain=True) for seed in range(int(first), int(last))]
        hand_back(out, {str(program.seed): launcher(program, folder) for program in programs})


if __name__ == "__main__":
    runners: dict[str, Callable[..., None]] = {"corpus": run_corpus, "generated": run_generated}
    runners[sys.argv[2]](sys.argv[1], *sys.argv[3:])
