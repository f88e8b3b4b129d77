"""The corpus: NumPy, numba's simulator, the per-thread oracle and the tracer agree on every kernel.

Values are compared exactly unless a case says that its arithmetic rounds. The oracle's accesses, grouped into warps
and costed one at a time, must equal the tracer's counts line by line, and both must equal the predictions.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.corpus import Case, Prediction, all_cases
from tests.oracle import LineCount, OracleRun, count_by_line, run
from tests.simulator import Outcome, run_in_simulator

CASES = all_cases()
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def assert_matches_reference(case: Case, fill: str, outcome: Any) -> None:
    """Compare each output array with the case's NumPy reference; arrays without one must not have changed."""
    expected = dict(enumerate(case.inputs(fill)))
    expected |= case.reference(*case.inputs(fill))
    for position, given in enumerate(outcome):
        if isinstance(given, np.ndarray):
            assert_arrays_match(given, expected[position], case.rtol, f"{case.name}, argument {position}")


def assert_arrays_match(given: np.ndarray, expected: np.ndarray, rtol: float, what: str) -> None:
    if given.dtype.fields:
        for name in given.dtype.fields:
            np.testing.assert_allclose(
                given[name], expected[name], rtol=rtol, atol=0, err_msg=f"{what}.{name}"
            )
    else:
        np.testing.assert_allclose(given, expected, rtol=rtol, atol=0, err_msg=what)


# --- the yardsticks agree with each other -----------------------------------------------------------------------


@cache
def oracle_run(case: Case, fill: str) -> tuple[OracleRun, tuple[Any, ...]]:
    arguments = case.inputs(fill)
    return run(
        case.kernel, case.grid, case.block, *arguments, dynamic_shared_bytes=case.dynamic_shared_bytes
    ), arguments


@each_case
def test_oracle_matches_numpy(case: Case) -> None:
    _, arguments = oracle_run(case, "random")
    assert_matches_reference(case, "random", arguments)


@each_case
def test_oracle_counts_match_predictions(case: Case) -> None:
    counts = count_by_line(oracle_run(case, "random")[0])
    for prediction in case.predictions:
        lines = case.lines(prediction.fragment)
        found = [
            count
            for (line, space, op, _), count in counts.items()
            if line in lines and (space, op) == (prediction.space, prediction.op)
        ]
        assert_predicted(prediction, sum(found, LineCount()), case.name)


def assert_predicted(prediction: Prediction, found: LineCount, where: str) -> None:
    """Compare a line's counts with its prediction, per request unless the prediction gives the requests."""
    assert found.requests, f"{where}: no {prediction.space} {prediction.op} at {prediction.fragment!r}"
    divisor = 1 if prediction.requests is not None else found.requests
    assert prediction.requests in (None, found.requests), f"{where}: {prediction}"
    for name in ("wavefronts", "ideal", "sectors"):
        expected = getattr(prediction, name)
        if expected is not None:
            assert getattr(found, name) / divisor == expected, f"{where}: {prediction} but {found}"


@pytest.fixture(scope="module")
def simulated() -> dict[str, Outcome]:
    return run_in_simulator("tests.simulator", "random")


@pytest.mark.parametrize("case", [case for case in CASES if not case.simulator], ids=lambda case: case.name)
def test_simulator_matches_numpy(case: Case, simulated: dict[str, Outcome]) -> None:
    outcome = simulated[case.name]
    assert not isinstance(outcome, str), outcome
    assert_matches_reference(case, "random", outcome)
