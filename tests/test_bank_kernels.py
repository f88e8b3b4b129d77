"""The kernels of the chapter on banks: right results, the counts that their docstrings promise, fresh records."""

from typing import Any

import numpy as np
import pytest

from lanewise import records
from lanewise.kernels import banks
from lanewise.trace import Trace, trace

WHOLE = {"scale_by_rows": 1, "scale_by_columns": 32, "scale_padded": 1}  # wavefronts of a full warp's load


def traced(name: str, *arguments: Any) -> tuple[np.ndarray, Trace]:
    dst = np.full(32, np.nan, np.float32)
    return dst, trace(getattr(banks, name), 1, 32, dst, *arguments)


@pytest.mark.parametrize(
    ("name", "arguments", "expected", "wavefronts"),
    [
        ("read_own", (), banks.reference_stride(1), 1),
        ("read_stride", (2,), banks.reference_stride(2), 2),
        ("read_stride", (33,), banks.reference_stride(33), 1),
        ("read_first", (), banks.reference_stride(0), 1),
        ("read_pair", (), np.arange(32) % 2, 1),
        ("read_column", (), banks.reference_tile(1, 0), 32),
        ("read_diagonal", (), banks.reference_tile(1, 1), 1),
    ],
)
def test_a_read_gets_the_words_it_names(name: str, arguments: Any, expected: Any, wavefronts: int) -> None:
    dst, t = traced(name, *arguments)
    np.testing.assert_array_equal(dst, expected)
    assert t.shared.load.wavefronts == wavefronts
    assert not t.hazards


def test_stores_to_one_word_are_cheap_and_a_race() -> None:
    _, first = traced("store_first")
    assert (first.shared.store.wavefronts, [hazard.kind for hazard in first.hazards]) == (1, ["shared_race"])
    dst, apart = traced("store_stride", 32)
    np.testing.assert_array_equal(dst, np.arange(32))
    assert (apart.shared.store.wavefronts, apart.hazards) == (32, [])


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("n", [64, 70])
def test_whole_kernels_double_any_size(name: str, n: int) -> None:
    src = np.random.default_rng(n).standard_normal((n, n)).astype(np.float32)
    dst = np.full_like(src, np.nan)
    n_blocks = -(-n // 32)
    t = trace(getattr(banks, name), (n_blocks, n_blocks), banks.SCALE_BLOCK, src, dst)
    expected = banks.reference_scale(src)
    np.testing.assert_array_equal(dst, expected if name == "scale_by_rows" else expected.T)
    assert not t.hazards
    if n % 32 == 0:
        assert t.shared.load.wavefronts == WHOLE[name] * t.shared.load.requests


@pytest.mark.parametrize(
    "row", records.record("h200", "bank_times").rows("kernels"), ids=lambda row: row["kernel"]
)
def test_the_timed_kernel_is_the_kernel_of_today(row: Any) -> None:
    assert records.code_hash(getattr(banks, row["kernel"])) == row["code_hash"], (
        f"{row['kernel']} has changed since it was timed: time it again with probes/kernels/times.py"
    )


def test_the_hash_of_a_kernel_changes_with_its_code_alone() -> None:
    def one(x):  # type: ignore[no-untyped-def]
        """A docstring."""
        return x + 1  # a comment

    first = records.code_hash(one)

    def one(x):  # type: ignore[no-untyped-def,no-redef]
        return x + 1

    assert records.code_hash(one) == first

    def one(x):  # type: ignore[no-untyped-def,no-redef]
        return x + 2

    assert records.code_hash(one) != first
