"""Is a kernel's output the reference? Asked before anything is timed or profiled."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from lanewise.experiments import Case, Problem
from lanewise.measure.protocol import Held

CHUNK_ELEMS = 1 << 22  # compared at once; several threads compare chunks beside each other
SMALL_BYTES = 1 << 20  # inputs up to this size are checked to be left alone


class WrongResult(Exception):
    """A kernel's output is not the reference; the text says where."""


def check(held: Held, case: Case, launch: Callable[[], None]) -> None:
    """Launch once on poisoned outputs and compare with the reference. Raises `WrongResult`."""
    problem = held.values.problem
    held.reset()
    launch()
    held.gpu.wait()
    for name, expected in held.values.outputs.items():
        if name != case.reads and name in case.parameters and not held.is_right(name):
            compare(name, held.gpu.get(held.outputs[name]), expected, problem)
    for name, array in held.inputs.items():
        given = held.values.inputs[name]
        if given.nbytes <= SMALL_BYTES and held.gpu.get(array).tobytes() != given.tobytes():
            raise WrongResult(
                f"the launch changes its input {name}. If it should, name {name} among the problem's outputs"
                " too: it is then restored before each launch."
            )


def compare(name: str, got: np.ndarray, expected: np.ndarray, problem: Problem) -> None:
    """Raise `WrongResult` with the first place where two arrays differ by more than the tolerances."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise WrongResult(
            f"{name} is {got.dtype}{got.shape}, the reference {expected.dtype}{expected.shape}."
        )
    if got.dtype.names:  # a record: field by field
        for field in got.dtype.names:
            compare(f"{name}.{field}", got[field], expected[field], problem)
        return
    flat, reference = got.reshape(-1), expected.reshape(-1)
    starts = range(0, flat.size, CHUNK_ELEMS)

    def wrong_in(start: int) -> np.ndarray:
        part = slice(start, start + CHUNK_ELEMS)
        return start + np.flatnonzero(~_close(flat[part], reference[part], problem))

    with ThreadPoolExecutor(min(16, os.cpu_count() or 1)) as pool:
        wrong = np.concatenate([np.zeros(0, np.int64), *pool.map(wrong_in, starts)])
    if wrong.size:
        first = np.unravel_index(int(wrong[0]), got.shape)
        place = ", ".join(str(int(axis)) for axis in first)
        raise WrongResult(
            f"{name} differs from the reference in {wrong.size:,} of {flat.size:,} elements, first at"
            f" [{place}]: got {flat[wrong[0]]}, expected {reference[wrong[0]]}."
        )


def _close(got: np.ndarray, expected: np.ndarray, problem: Problem) -> np.ndarray:
    relative, absolute = problem.relative_tolerance, problem.absolute_tolerance
    if not (relative or absolute):
        return np.asarray((got == expected) | ((got != got) & (expected != expected)))
    wide = np.complex128 if np.iscomplexobj(got) else np.float64
    error = np.abs(got.astype(wide) - expected.astype(wide))
    return np.asarray(error <= absolute + relative * np.abs(expected.astype(wide)))  # NaN is not close
