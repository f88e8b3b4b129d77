"""What generated kernels are made of: launch shapes, sources, and the forms that expressions take."""

from __future__ import annotations

import re

import numpy as np

HEADER = """import math

import numpy as np
from numba import cuda

CODES = (3, -1, 41, 5, -9)
TABLE = np.array([7, 0, -3, 12, 5, 1, 99])


@cuda.jit(device=True)
def pick(array, place):
    if place < 0:
        place = -place
    return array[place % array.size]

"""
LARGE = (2**31 - 1, 10**12 + 7, -(2**40) - 3, 2**62 + 1)  # numbers that show a type that is too narrow
SLOTS = 4
ACCUMULATORS = 8
BLOCKS = ((32,), (33,), (64,), (8, 4), (16, 3), (4, 3, 2), (5, 7), (7,), (40,))
GRIDS = ((1,), (1,), (2,), (1, 2))
SOURCES: dict[str, tuple[type, tuple[int, ...]]] = {
    "longs": (np.int64, (41,)),
    "doubles": (np.float64, (5, 7)),
    "ints": (np.int32, (37,)),
    "shorts": (np.int16, (3, 11)),
    "bytes_": (np.uint8, (29,)),
    "words": (np.uint32, (31,)),
    "singles": (np.float32, (6, 8)),
}
PLAIN_SOURCES = ("longs", "doubles")
FLOAT_SOURCES = ("doubles", "singles")
UNSIGNED_SOURCES = ("bytes_", "words")

# The grammar. I, F, B and C stand for smaller expressions (see `Expressions.expand`).
COMPARISONS = (
    *(f"{kind} {comparison} {kind}" for kind in "IF" for comparison in ("<", "<=", ">", ">=", "==", "!=")),
    "(I) % {2..5} == {0..2}",
    "0 <= I < {1..40}",
)
FORMS = {
    "I": (
        *(f"(I {operator} I)" for operator in "+-&|^"),
        *("(I % {1..50})", "(I // {1..9})", "-I", "~I", "(I >> {0..8})", "min(I, I)", "max(I, I)", "abs(I)"),
        *("(np.int64(I) if C else np.int64(I))", "int(B)"),
    ),
    "F": (
        *(f"(F {operator} F)" for operator in "+-*"),
        *("(F / (abs(F) + 1.0))", "-F", "min(F, F)", "max(F, F)", "abs(F)", "math.sqrt(abs(F))", "F ** 2"),
        *("(F + (I) % 1000)", "(F * ((I) % 1000))", "float((I) % 1000)"),
        "(np.float64(F) if C else np.float64(F))",
    ),
    "C": (
        *COMPARISONS,
        "(C and C)",
        "(C or C)",
        "not C",
        "(C and C and C)",
        "(C or C or C)",
        "(C and C or not C)",
    ),
}
PLAIN_FORMS: dict[str, tuple[str, ...]] = {"I": ("((I) % 100 * {0..9})",), "F": (), "C": ()}
TYPED_FORMS: dict[str, tuple[str, ...]] = {
    "I": (
        *("(I * I)", "(I << {0..8})", "(I << ((I) & 7))", "(I ** 2)", "cuda.popc(np.int32(I))"),
        *("np.int32(I)", "np.int16(I)", "np.int64(np.uint8(I))", "np.int64(np.uint32(I))"),
    ),
    "F": (
        *("np.float32(F)", "np.float32((I) % 1000)", "(np.float32(F) * np.float32(0.5))"),
        *("math.floor(F)", "((I) % 1000 / {1..9})", "np.float32(1) / (abs(np.float32(F)) + np.float32(1))"),
    ),
    "C": (),
}
PLACE = re.compile(r"\b[IFBC]\b|\{(?P<low>\d+)\.\.(?P<high>\d+)\}")
