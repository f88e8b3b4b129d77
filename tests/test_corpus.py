"""The corpus: NumPy, numba's simulator, the per-thread oracle and the tracer agree on every kernel.

Values are compared exactly unless a case says that its arithmetic rounds. The oracle's accesses, grouped into warps
and costed one at a time, must equal the tracer's counts line by line. `test_golden_counts.py` compares both with what
the arithmetic of the memory model predicts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.corpus import Case, Prediction, all_cases
from tests.corpus_runs import PREDICTIONS, assert_predicted, oracle_counts, oracle_run, prediction_id, traced
from tests.differential import count_differences, traced_counts
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


@pytest.mark.parametrize("case", [case for case in CASES if not case.oracle], ids=lambda case: case.name)
def test_oracle_matches_numpy(case: Case) -> None:
    _, arguments = oracle_run(case, "random")
    assert_matches_reference(case, "random", arguments)


@pytest.mark.parametrize(("case", "prediction"), PREDICTIONS, ids=prediction_id)
def test_oracle_reproduces_prediction(case: Case, prediction: Prediction) -> None:
    assert_predicted(case, prediction, oracle_counts(case))


@pytest.fixture(scope="module")
def simulated() -> dict[str, Outcome]:
    return run_in_simulator("corpus", "random")


@pytest.mark.parametrize("case", [case for case in CASES if not case.simulator], ids=lambda case: case.name)
def test_simulator_matches_numpy(case: Case, simulated: dict[str, Outcome]) -> None:
    outcome = simulated[case.name]
    assert not isinstance(outcome, str), outcome
    assert_matches_reference(case, "random", outcome)


# --- the tracer agrees with all of them ---------------------------------------------------------------------------


@pytest.mark.parametrize("fill", ["arange", "random"])
@each_case
def test_tracer_matches_numpy(case: Case, fill: str) -> None:
    assert_matches_reference(case, fill, traced(case, fill)[1])


@pytest.mark.parametrize(
    "case", [case for case in CASES if not (case.order_decides or case.oracle)], ids=lambda case: case.name
)
def test_tracer_counts_match_oracle(case: Case) -> None:
    assert count_differences(traced_counts(traced(case, "random")[0]), oracle_counts(case)) == []


@each_case
def test_tracer_raises_no_false_alarm(case: Case) -> None:
    assert [str(hazard) for hazard in traced(case, "random")[0].hazards] == []
