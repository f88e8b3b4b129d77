"""The corpus run by the oracle and by the tracer, once per case and fill however many tests look at it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from lanewise.trace import Trace, trace
from tests.corpus import Case, Prediction, all_cases
from tests.oracle import LineCount, OracleRun, count_by_line, run
from tests.oracle.counts import Place

PREDICTIONS = [(case, prediction) for case in all_cases() for prediction in case.predictions]


@cache
def oracle_run(case: Case, fill: str) -> tuple[OracleRun, tuple[Any, ...]]:
    """Every access of the case in the oracle, and its arguments afterwards."""
    arguments = case.inputs(fill)
    return run(
        case.kernel, case.grid, case.block, *arguments, dynamic_shared_bytes=case.dynamic_shared_bytes
    ), arguments


@cache
def oracle_counts(case: Case) -> Mapping[Place, LineCount]:
    """The costs of the case's lines, from the oracle's accesses on random inputs."""
    return count_by_line(oracle_run(case, "random")[0])


@cache
def traced(case: Case, fill: str) -> tuple[Trace, tuple[Any, ...]]:
    """The case in the tracer, and its arguments afterwards."""
    arguments = case.inputs(fill)
    dynamic = case.dynamic_shared_bytes
    return trace(case.kernel, case.grid, case.block, *arguments, dynamic_shared_bytes=dynamic), arguments


def prediction_id(value: object) -> str:
    return (
        f"{value.id or 'own'} {value.fragment}"
        if isinstance(value, Prediction)
        else getattr(value, "name", "")
    )


def assert_predicted(case: Case, prediction: Prediction, counts: Mapping[Place, LineCount]) -> None:
    """Compare the lines of a prediction with it, per request unless the prediction gives the requests."""
    lines, wanted = case.lines(prediction.fragment), (prediction.space, prediction.op)
    found = sum(
        (count for place, count in counts.items() if place[0] in lines and place[1:3] == wanted), LineCount()
    )
    assert found.requests, f"no {prediction.space} {prediction.op}; there are {sorted(counts)}"
    assert prediction.requests in (None, found.requests)
    divisor = 1 if prediction.requests is not None else found.requests
    for name in ("wavefronts", "ideal", "sectors"):
        if (expected := getattr(prediction, name)) is not None:
            assert getattr(found, name) == expected * divisor, f"{name} of {found}"
