"""One tile's fragments: which lane gets what, which layouts are free, and which are illegal."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

from lanewise.fragments import M16N8K16
from lanewise.kernels import tensor_cores
from lanewise.trace import Trace, trace
from tests.kernels.launches import assert_clean, name_of, poisoned

A = tensor_cores.a_matrices
A_SWIZZLED = tensor_cores.a_matrices_swizzled


def halves(*shape: int) -> np.ndarray:
    """Every value names its place: bit patterns counted up, none of them NaN."""
    return np.arange(prod(shape), dtype=np.uint16).reshape(shape).view(np.float16)


def launch(kernel: Any, src: np.ndarray, dst: np.ndarray, **how: int) -> Trace:
    row_length = (how["pitch"] if "pitch" in how else src.shape[1]) * src.itemsize
    return trace(
        kernel, 1, tensor_cores.BLOCK, src, dst, *how.values(), dynamic_shared_bytes=len(src) * row_length
    )


def fetch(kernel: Any, src: np.ndarray, expected: np.ndarray, **how: int) -> Trace:
    """Trace a legal layout: the right fragments, and nothing to complain of."""
    dst = poisoned(*expected.shape, dtype=expected.dtype)
    t = assert_clean(launch(kernel, src, dst, **how))
    np.testing.assert_array_equal(dst, expected)
    return t


def per_request(counts: Any) -> float:
    return float(counts.wavefronts / counts.requests)


def test_the_references_are_the_fragment_maps_of_the_instruction() -> None:
    a, b = halves(16, 16), halves(16, 16)
    given_a = tensor_cores.a_fragments(a).view(np.float16).reshape(32, 4, 2)
    np.testing.assert_array_equal(given_a, a[M16N8K16.a.row, M16N8K16.a.col])
    given_b = tensor_cores.b_fragments(b).view(np.float16).reshape(32, 4, 2)
    np.testing.assert_array_equal(given_b[:, :2], b[M16N8K16.b.row, M16N8K16.b.col])
    np.testing.assert_array_equal(given_b[:, 2:], b[M16N8K16.b.row, M16N8K16.b.col + 8])


@pytest.mark.parametrize("n_cols", [16, 48, 80])
def test_fragments_of_tiles_of_other_widths(n_cols: int) -> None:
    src = halves(64, n_cols)
    expected = tensor_cores.a_fragments(src)
    fetch(A, src, expected, pitch=n_cols + 8)
    words = src.view(np.uint32)
    fetch(tensor_cores.a_words, words, expected, pitch=n_cols // 2 + 4)
    b = np.ascontiguousarray(src.T)
    fetch(tensor_cores.b_matrices, b, tensor_cores.b_fragments(b), pitch=72)


def test_no_pad_of_64_byte_rows_is_free_for_fill_and_fetch_but_a_swizzle_is() -> None:
    src = halves(64, 32)
    expected = tensor_cores.a_fragments(src)
    costs = {}
    for pad in range(0, 72, 8):
        t = fetch(A, src, expected, pitch=32 + pad)
        costs[pad] = per_request(t.shared.load), per_request(t.shared.store)
    assert (4, 4) not in costs.values()
    assert costs[0] == (16, 4)
    assert costs[8] == (4, 8)
    t = fetch(A_SWIZZLED, src, expected, bits=2, base=3, shift=3)
    assert (per_request(t.shared.load), per_request(t.shared.store)) == (4, 4)


def test_rows_of_eight_halves_need_a_pitch_of_an_odd_number_of_chunks() -> None:
    src = halves(128, 8)
    expected = tensor_cores.row_fragments(src)
    kernel = tensor_cores.rows_x4
    free = {
        pitch
        for pitch in range(8, 144, 8)
        if per_request(fetch(kernel, src, expected, pitch=pitch).shared.load) == 4
    }
    assert free == {pitch for pitch in range(8, 144, 8) if pitch // 8 % 2 == 1}


@pytest.mark.parametrize(
    ("kernel", "how"),
    [(A, {"pitch": 34}), (A_SWIZZLED, {"bits": 2, "base": 2, "shift": 3})],
    ids=["pad of 2 halves", "XOR by half a chunk"],
)
def test_layouts_that_break_chunks_are_misaligned_for_fill_and_fetch(
    kernel: Any, how: dict[str, int]
) -> None:
    src = halves(64, 32)
    t = launch(kernel, src, np.zeros_like(tensor_cores.a_fragments(src)), **how)
    assert {hazard.kind for hazard in t.hazards} >= {"misaligned"}
    assert len({hazard.line for hazard in t.hazards if hazard.kind == "misaligned"}) == 2


def test_four_byte_loads_bear_what_ldmatrix_does_not() -> None:
    words = halves(64, 32).view(np.uint32)
    expected = tensor_cores.a_fragments(words.view(np.float16))
    t = fetch(tensor_cores.a_words, words, expected, pitch=17)
    assert per_request(t.shared.load) == 2
    t = fetch(tensor_cores.a_words_swizzled, words, expected, bits=2, base=1, shift=3)
    assert per_request(t.shared.load) == 2


@pytest.mark.parametrize(
    ("kernel", "requests"),
    [
        (tensor_cores.product_by_words, 40),
        (tensor_cores.product_by_matrices, 10),
        (tensor_cores.product_by_matrices_sm75, 10),
    ],
    ids=name_of,
)
def test_products_move_the_same_bytes_with_a_quarter_of_the_loads(kernel: Any, requests: int) -> None:
    rng = np.random.default_rng(7)
    shape = tensor_cores.SIDE, tensor_cores.DEPTH
    a, bt = ((rng.integers(-8, 9, shape) / 4).astype(np.float16) for _ in range(2))
    c = poisoned(3, tensor_cores.SIDE, tensor_cores.SIDE)
    given = (a.view(np.uint32), bt.view(np.uint32)) if requests == 40 else (a, bt)
    t = assert_clean(trace(kernel, 3, tensor_cores.BLOCK, *given, c, 2))
    for block in c:
        np.testing.assert_array_equal(block, tensor_cores.product(a, bt, 2))
    n_warps = 3 * tensor_cores.WARPS * 2
    assert t.shared.load.requests == n_warps * requests
    assert t.shared.load.wavefronts == n_warps * 40
