"""Run kernels under numba's CUDA simulator, in a process of its own.

The simulator is chosen when numba is imported, so the process that runs the tests cannot use it. One subprocess runs
many launches and hands the arrays back. `python -m tests.simulator OUT FILL` is that subprocess for the corpus.
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


def run_in_simulator(module: str, *arguments: str, timeout_s: int = 300) -> dict[str, Outcome]:
    """Run `python -m module OUT *arguments` with the simulator on; the module calls `hand_back`."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "outcomes.pickle"
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        done = subprocess.run(
            [sys.executable, "-m", module, str(out), *arguments],
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


def main(out: str, fill: str) -> None:
    """Run every case of the corpus that the simulator can run."""
    from tests.corpus import all_cases

    def launcher(case: Any) -> Callable[[], Outcome]:
        return lambda: launch(
            case.kernel, case.grid, case.block, case.inputs(fill), case.dynamic_shared_bytes
        )

    hand_back(out, {case.name: launcher(case) for case in all_cases() if not case.simulator})


if __name__ == "__main__":
    main(*sys.argv[1:])
