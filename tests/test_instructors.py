"""The answers to the checkpoint questions of the instructors' page are what the model says."""

from __future__ import annotations

import pytest

import lanewise as lw
from tools.notebooks import ROOT

PAGE = (ROOT / "book" / "instructors.md").read_text(encoding="utf-8")
LANES = range(32)


def wavefronts(words: list[int]) -> int:
    return lw.shared_cost(lw.WarpAccess("ld.shared.b32", tuple(4 * word for word in words))).wavefronts


def narrow_block(lane: int) -> int:
    """The word of a lane in a block of 8 x 32 threads, in a tile 32 words wide."""
    row, col = divmod(lane, 8)
    return 32 * row + col


def odd_floats() -> lw.memory.GlobalCost:
    return lw.global_cost(lw.WarpAccess.from_formula("ld.global.b32", lambda lane: 4 * (2 * lane + 1)))


def ldmatrix_excess(pitch_halves: int) -> int:
    rows = lw.WarpAccess.from_formula(
        "ldmatrix.x4", lambda lane: 2 * (pitch_halves * (lane % 8) + 8 * (lane // 8))
    )
    return lw.shared_cost(rows).excess


@pytest.mark.parametrize(
    ("answer", "computed", "expected"),
    [
        (
            "$\\gcd(48, 32) = 16$ wavefronts. 49,",
            [wavefronts([p * n + 5 for n in LANES]) for p in (48, 49)],
            [16, 1],
        ),
        ("meet: `4` wavefronts, where one would do.", wavefronts([narrow_block(n) for n in LANES]), 4),
        ("Two words in bank 0: two.", wavefronts([32 * (n // 16) for n in LANES]), 2),
        ("the second word is in bank 1: one.", wavefronts([33 * (n // 16) for n in LANES]), 1),
        ("from byte 4 to byte 255: `8` sectors", odd_floats().sectors, 8),
        ("128 of 256 bytes: half.", 128 / (32 * odd_floats().sectors), 0.5),
        (
            "one unit more: 8 halves.",
            next(pad for pad in range(8, 64, 8) if ldmatrix_excess(64 + pad) == 0),
            8,
        ),
    ],
)
def test_an_answer_is_what_the_model_says(answer: str, computed: object, expected: object) -> None:
    assert answer in PAGE
    assert computed == expected


def test_the_swizzle_of_the_answer_serves_ldmatrix() -> None:
    assert "`Swizzle<3,3,3>` on halves" in PAGE
    swizzle = lw.Swizzle(3, 3, 3)
    rows = lw.WarpAccess.from_formula(
        "ldmatrix.x4", lambda lane: 2 * swizzle(64 * (lane % 8) + 8 * (lane // 8))
    )
    assert lw.shared_cost(rows).excess == 0
    assert ldmatrix_excess(64) > 0
