"""The program under the profiler: launches each case once, between marks that tell the profiler to look.

    python -m lanewise.counters.child JOB.json DONE.jsonl

One line of DONE for each launch that the profiler saw, in order, and for each case that failed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from lanewise.measure.gpu import NumbaGpu
from lanewise.measure.protocol import Held, Values, check
from lanewise.measure.worker import gpu_alone, load


def run(job: dict[str, Any], done: Path) -> None:
    """Prepare every case, then launch all of them."""
    experiments = load(job["source"])()
    gpu = NumbaGpu()
    cuda: Any = import_module("numba.cuda")
    prepared = []
    with done.open("w", encoding="utf-8") as lines:

        def say(place: list[Any], **what: Any) -> None:
            lines.write(json.dumps({"place": place, **what}) + "\n")
            lines.flush()

        known: dict[str, Values] = {}
        for place in job["places"]:
            number, table, index = place
            case = getattr(experiments[number], table)[index]
            try:
                values = known.get(case.problem.name) or Values.of(case.problem, seed=0)
                known = (
                    {case.problem.name: values} if table == "timed" else {**known, case.problem.name: values}
                )
                gpu.compile(case, case.arguments({**values.inputs, **values.outputs}))
                prepared.append((place, case, values))
            except Exception as error:
                say(place, error=f"{type(error).__name__}: {error}")
        with gpu_alone():
            for place, case, values in prepared:
                try:
                    held = Held(gpu, values)
                    launch = gpu.launcher(case, held.arguments(case))
                    check(held, case, _seen(cuda, launch, partial(say, place)))
                except Exception as error:
                    say(place, error=f"{type(error).__name__}: {error}")
                    if getattr(error, "is_fatal", False):
                        return
                finally:
                    held = None  # type: ignore[assignment]
                    gpu.free()


def _seen(cuda: Any, launch: Callable[[], None], mark: Callable[[], None]) -> Callable[[], None]:
    """The launch, seen by the profiler."""

    def seen() -> None:
        mark()
        cuda.profile_start()
        launch()
        cuda.synchronize()
        cuda.profile_stop()

    return seen


if __name__ == "__main__":
    run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), Path(sys.argv[2]))
