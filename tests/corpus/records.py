"""Arrays of structures against structures of arrays.

Menu: sum_fields, sum_columns, scale_field, move_points.
"""

import numpy as np
from numba import cuda

from tests.corpus.case import Case, Prediction, poisoned

QUAD = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32), ("w", np.float32)], align=True)
TRIPLE = np.dtype([("x", np.float32), ("y", np.float32), ("z", np.float32)], align=True)
MIXED = np.dtype([("kind", np.int8), ("mass", np.float64), ("charge", np.int16)], align=True)


@cuda.jit
def sum_fields(quads, dst):
    i = cuda.grid(1)
    if i < quads.size:
        x = quads[i].x
        y = quads[i].y
        z = quads[i].z
        w = quads[i].w
        dst[i] = x + y + z + w


@cuda.jit
def sum_columns(xs, ys, zs, ws, dst):
    i = cuda.grid(1)
    if i < xs.size:
        x = xs[i]
        y = ys[i]
        z = zs[i]
        w = ws[i]
        dst[i] = x + y + z + w


@cuda.jit
def one_field(triples, dst):
    i = cuda.grid(1)
    if i < triples.size:
        dst[i] = triples[i].x


@cuda.jit
def scale_field(quads, factor):
    i = cuda.grid(1)
    if i < quads.size:
        quads[i].y = quads[i].y * factor


@cuda.jit
def kinetic(particles, dst):
    """Fields of different width in one record."""
    i = cuda.grid(1)
    if i < particles.size:
        particle = particles[i]
        if particle.kind > 0:
            dst[i] = particle.mass * particle.charge
        else:
            dst[i] = 0


def records(fill, n, dtype):
    array = np.zeros(n, dtype)
    for name in dtype.names:
        array[name] = fill(n, dtype[name])
    return array


def scaled(quads, factor):
    quads["y"] *= factor
    return {0: quads}


FIELDS = ("x = quads[i].x", "y = quads[i].y", "z = quads[i].z", "w = quads[i].w")
COLUMNS = ("x = xs[i]", "y = ys[i]", "z = zs[i]", "w = ws[i]")

CASES = [
    Case(
        sum_fields,
        2,
        32,
        lambda fill: (records(fill, 64, QUAD), poisoned(64, np.float32)),
        lambda quads, dst: {1: quads["x"] + quads["y"] + quads["z"] + quads["w"]},
        predictions=tuple(Prediction(line, "load", sectors=16, id="K-co-8") for line in FIELDS),
    ),
    Case(
        sum_columns,
        2,
        32,
        lambda fill: (*(fill(64, np.float32) for _ in range(4)), poisoned(64, np.float32)),
        lambda xs, ys, zs, ws, dst: {4: xs + ys + zs + ws},
        predictions=tuple(Prediction(line, "load", sectors=4, id="K-co-8") for line in COLUMNS),
    ),
    Case(
        one_field,
        1,
        64,
        lambda fill: (records(fill, 64, QUAD), poisoned(64, np.float32)),
        lambda quads, dst: {1: quads["x"]},
        "of 16 bytes",
        predictions=(Prediction("triples[i].x", "load", sectors=16, id="K-co-9"),),
    ),
    Case(
        one_field,
        1,
        64,
        lambda fill: (records(fill, 64, TRIPLE), poisoned(64, np.float32)),
        lambda triples, dst: {1: triples["x"]},
        "of 12 bytes",
        predictions=(Prediction("triples[i].x", "load", sectors=12, id="K-co-10"),),
    ),
    Case(
        scale_field,
        2,
        48,
        lambda fill: (records(fill, 70, QUAD), np.float32(3)),
        scaled,
    ),
    Case(
        kinetic,
        1,
        48,
        lambda fill: (records(fill, 40, MIXED), poisoned(40, np.float64)),
        lambda particles, dst: {
            1: np.where(particles["kind"] > 0, particles["mass"] * particles["charge"].astype(float), 0)
        },
    ),
]
