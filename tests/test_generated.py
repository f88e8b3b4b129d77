"""Random kernels: the tracer, the per-thread oracle and, for some, numba's simulator agree in every bit and every count.

The programs of fixed seeds run here. `python -m tests.campaign` runs as many as there is time for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lanewise.trace import trace
from tests import differential
from tests.campaign import shrink
from tests.differential import differences, traced_counts
from tests.generator import Program, generate, load
from tests.oracle import LineCount, run
from tests.simulator import Outcome, run_in_simulator

N_TYPED = 40
N_PLAIN = 10
TYPED_SEEDS = range(N_TYPED)
PLAIN_SEEDS = range(N_PLAIN)


def assert_agrees(program: Program, folder: Path) -> None:
    kernel = load(program.source, folder, f"generated_{program.seed}_{program.plain}")
    found = differences(kernel, program.grid, program.block, program.arguments())
    assert not found, "\n".join([*found, "", program.source])


@pytest.mark.parametrize("seed", TYPED_SEEDS)
def test_tracer_agrees_with_oracle(seed: int, tmp_path: Path) -> None:
    assert_agrees(generate(seed), tmp_path)


@pytest.mark.parametrize("seed", PLAIN_SEEDS)
def test_tracer_agrees_with_oracle_on_plain_programs(seed: int, tmp_path: Path) -> None:
    assert_agrees(generate(seed, plain=True), tmp_path)


@pytest.fixture(scope="module")
def simulated() -> dict[str, Outcome]:
    return run_in_simulator("generated", str(PLAIN_SEEDS.start), str(PLAIN_SEEDS.stop))


@pytest.mark.parametrize("seed", PLAIN_SEEDS)
def test_oracle_agrees_with_simulator(seed: int, simulated: dict[str, Outcome], tmp_path: Path) -> None:
    program = generate(seed, plain=True)
    arguments = program.arguments()
    run(load(program.source, tmp_path, f"plain_{seed}"), program.grid, program.block, *arguments)
    outcome = simulated[str(seed)]
    assert not isinstance(outcome, str), outcome
    for given, wanted in zip(outcome, arguments, strict=True):
        if isinstance(wanted, np.ndarray):
            np.testing.assert_array_equal(given, wanted, err_msg=program.source)


def test_a_seed_names_one_program() -> None:
    assert generate(7).source == generate(7).source
    assert generate(7).source != generate(8).source
    for given, again in zip(generate(7).arguments(), generate(7).arguments(), strict=True):
        np.testing.assert_array_equal(given, again)


def test_generated_programs_use_the_whole_grammar() -> None:
    """Each construct that the generator promises appears in some program of the fixed seeds."""
    text = "\n".join(generate(seed).source for seed in TYPED_SEEDS)
    promised = (
        "while True",
        "break",
        "continue",
        "elif",
        "else:",
        "return",
        " and ",
        " or ",
        "not ",
        "shfl_",
        "atomic",
    )
    missing = [
        construct
        for construct in (*promised, "ballot_sync", "syncthreads", "device=True")
        if construct not in text
    ]
    assert missing == []


# --- the comparison itself can fail -------------------------------------------------------------------------------


def test_a_wrong_value_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(kernel: Any, grid: Any, block: Any, *arguments: Any, **options: Any) -> Any:
        seen = trace(kernel, grid, block, *arguments, **options)
        arguments[-3].flat[5] += 1
        return seen

    monkeypatch.setattr(differential, "trace", spoiled)
    with pytest.raises(AssertionError, match="argument 9 differs"):
        assert_agrees(generate(3), tmp_path)


def test_a_wrong_count_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def one_more(seen: Any) -> Any:
        counts = traced_counts(seen)
        place = min(counts)
        return counts | {place: counts[place] + LineCount(requests=1)}

    monkeypatch.setattr(differential, "traced_counts", one_more)
    with pytest.raises(AssertionError, match=r"line \d+, .* LineCount"):
        assert_agrees(generate(3), tmp_path)


LONG_WAY_TO_A_DIVISION = """from numba import cuda

@cuda.jit
def kernel(longs, doubles, out_i, out_f, out_d, sums, n):
    i = cuda.threadIdx.x
    a = longs[i % 41]
    if a > 0:
        a = a * 2
        out_i[i, 1] = a
    else:
        out_i[i, 1] = -a
    for k in range(3):
        a += k
    if i < 100:
        out_i[i, 0] = i // (n - n)
    out_i[i, 2] = a
"""


def test_shrinking_keeps_the_failure() -> None:
    """A program that divides by zero shrinks to the division and what it needs."""
    small = shrink(Program(3, True, LONG_WAY_TO_A_DIVISION, (1,), (4,)))
    body = small.source.split("sums, n):\n")[1].splitlines()
    assert [line.strip() for line in body] == ["i = cuda.threadIdx.x", "out_i[i, 0] = i // (n - n)"]
