"""Every counted case of every experiment: traced, right, without hazards, and as pencil and paper say."""

import importlib
import pkgutil
import re
from typing import Any

import numpy as np
import pytest
from numba.cuda.dispatcher import CUDADispatcher

import lanewise as lw
from lanewise import kernels
from lanewise.experiments import Case, Experiment, all_experiments
from lanewise.measure.checking import compare
from lanewise.measure.protocol import Values
from lanewise.trace import Trace

EXPERIMENTS = all_experiments()
ELSEWHERE = {"tracer"}  # modules whose kernels have their counters in a record of their own: tracer.json
COUNTED = [
    pytest.param(case, id=f"{topic}-{experiment.id}-{case.label}-{case.problem.name}")
    for topic, experiments in EXPERIMENTS.items()
    for experiment in experiments
    for case in experiment.counted
]


def traced(case: Case) -> tuple[Trace, Values, dict[str, np.ndarray]]:
    """Trace a case on poisoned outputs; what it left in them."""
    values = Values.of(case.problem, seed=7)
    given = {name: _copied(value) for name, value in values.inputs.items()}
    outputs = {
        name: given[name] if name in given else _poisoned(array) for name, array in values.outputs.items()
    }
    arguments = case.arguments({**given, **outputs})
    trace = lw.trace(
        case.kernel, case.grid, case.block, *arguments, dynamic_shared_bytes=case.dynamic_shared_bytes
    )
    return trace, values, outputs


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _poisoned(array: np.ndarray) -> np.ndarray:
    held = np.empty(array.shape, array.dtype)
    held.view(np.uint8).reshape(-1)[:] = 255
    return held


@pytest.mark.parametrize("case", COUNTED)
def test_a_counted_case_is_right_clean_and_costs_what_arithmetic_says(case: Case) -> None:
    trace, values, outputs = traced(case)
    for name, expected in values.outputs.items():
        if name in case.parameters and name != case.reads:
            compare(name, outputs[name], expected, case.problem)
    kinds = {hazard.kind for hazard in trace.hazards}
    assert kinds == set(case.hazards), "\n".join(map(str, trace.hazards[:3]))
    totals = {key: total(trace, key) for key in case.arithmetic}
    assert totals == dict(case.arithmetic)
    assert totals, "write on paper what the case costs: Case.arithmetic"


def total(trace: Trace, key: str) -> int:
    """A total by its name in `Case.arithmetic`: `"shared.load.wavefronts"`."""
    found: Any = trace
    for name in key.split("."):
        found = getattr(found, name)
    return int(found)


def test_every_kernel_is_in_a_counted_case() -> None:
    counted = {
        getattr(case.kernel, "py_func", case.kernel)
        for experiments in EXPERIMENTS.values()
        for experiment in experiments
        for case in experiment.counted
    }
    missing = sorted(
        f"{module.name}.{name}"
        for module in pkgutil.iter_modules(kernels.__path__)
        if module.name not in ELSEWHERE
        for name, value in vars(importlib.import_module(f"lanewise.kernels.{module.name}")).items()
        if isinstance(value, CUDADispatcher) and not value.targetoptions.get("device")
        and not name.startswith("_") and value.py_func not in counted
    )  # fmt: skip
    assert not missing, f"no counted case has {', '.join(missing)}"


def test_the_map_of_the_kernels_names_every_file() -> None:
    named = set(re.findall(r"`(\w+)`", str(kernels.__doc__)))
    assert named == {module.name for module in pkgutil.iter_modules(kernels.__path__)}


@pytest.mark.parametrize("topic", EXPERIMENTS)
def test_labels_tell_the_cases_of_an_experiment_apart(topic: str) -> None:
    ids = [experiment.id for experiment in EXPERIMENTS[topic]]
    assert len(set(ids)) == len(ids)
    for experiment in EXPERIMENTS[topic]:
        assert_distinct(experiment, experiment.timed)
        assert_distinct(experiment, experiment.counted)


def assert_distinct(experiment: Experiment, cases: tuple[Case, ...]) -> None:
    keys = [(case.label, case.problem.name) for case in cases]
    assert sorted(set(keys)) == sorted(keys), f"{experiment.id}: two cases have one label and problem"


def test_experiment_ids_and_speeds_are_unique() -> None:
    everything = [one for experiments in EXPERIMENTS.values() for one in experiments]
    for names in ([one.id for one in everything], [one.speed for one in everything if one.speed]):
        assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("topic", EXPERIMENTS)
def test_one_name_means_one_problem(topic: str) -> None:
    """Cases of one problem name share arrays, so their problems must make the same ones."""
    found: dict[str, Any] = {}
    for experiment in EXPERIMENTS[topic]:
        for case in experiment.counted:
            inputs = case.problem.inputs(np.random.default_rng(1))
            shapes = {name: getattr(value, "shape", value) for name, value in inputs.items()}
            assert found.setdefault(case.problem.name, shapes) == shapes, case.problem.name
