"""The program under the profiler: launches each case once, between marks that tell the profiler to look.

    python -m lanewise.counters.child JOB.json DONE.jsonl

One line of DONE for each launch that the profiler saw, in order, and for each case that failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from lanewise.experiments import Case
from lanewise.measure.checking import check
from lanewise.measure.gpu import NumbaGpu
from lanewise.measure.protocol import Held, Values
from lanewise.measure.worker import gpu_alone, load


def run(job: dict[str, Any], done: Path) -> None:
    """Launch a job's cases, problem by problem."""
    experiments = load(job["source"])()
    gpu = NumbaGpu()
    with done.open("w", encoding="utf-8") as lines:

        def say(place: list[Any], **what: Any) -> None:
            lines.write(json.dumps({"place": place, **what}) + "\n")
            lines.flush()

        problems: dict[str, list[tuple[list[Any], Case]]] = {}
        for place in job["places"]:
            number, table, index = place
            case = getattr(experiments[number], table)[index]
            problems.setdefault(case.problem.name, []).append((place, case))
        for cases in problems.values():
            launch_all(gpu, cases, say)


def launch_all(gpu: NumbaGpu, cases: Sequence[tuple[list[Any], Case]], say: Callable[..., None]) -> None:
    """Launch the cases of one problem; `say` is told of each launch before it is made, and of errors."""

    def failed(place: list[Any], error: Exception) -> None:
        say(place, error=f"{type(error).__name__}: {error}")

    try:
        values = Values.of(cases[0][1].problem, seed=0)
    except Exception as error:
        for place, _ in cases:
            failed(place, error)
        return
    for _, case in cases:  # ahead, while others may use the GPU
        with suppress(Exception):
            gpu.compile(case, case.arguments({**values.inputs, **values.outputs}))
    with gpu_alone():
        held = Held(gpu, values)
        for place, case in cases:
            try:
                launch = gpu.launcher(case, held.arguments(case))
                check(held, case, _seen(launch, partial(say, place)))
            except Exception as error:
                failed(place, error)
                if getattr(error, "is_fatal", False):
                    raise
        del held
        gpu.free()


def _seen(launch: Callable[[], None], mark: Callable[[], None]) -> Callable[[], None]:
    """The launch, seen by the profiler."""

    cuda: Any = import_module("numba.cuda")

    def seen() -> None:
        mark()
        cuda.profile_start()
        launch()
        cuda.synchronize()
        cuda.profile_stop()

    return seen


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
