"""Experiments with data layouts: records, permuted matrices, images, and a key-value cache."""

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import data_layouts as dl
from lanewise.kernels import padding

Values = Mapping[str, Any]
Outputs = Mapping[str, np.ndarray]

COPY = Ceiling("device_copy")


def _random(shape: tuple[int, ...], dtype: Any, rng: np.random.Generator) -> Values:
    return {"src": rng.random(shape, np.float32).astype(dtype, copy=False)}


# -- records ---------------------------------------------------------------------------------------


def _doubled(values: Values) -> Outputs:
    return {"dst": dl.reference(values["src"])}


def _first_field(values: Values) -> Outputs:
    return {"dst": dl.reference(values["src"][:, 0])}


def _first_array(values: Values) -> Outputs:
    return {"dst": dl.reference(values["src"][0])}


@cache
def records_of(n: int, n_fields: int) -> Problem:
    """Double all fields of n records."""
    return Problem(f"double {n} records of {n_fields}", partial(_random, (n, n_fields), np.float32), _doubled)


def _record(kernel: Any, n: int, problem: Problem, n_fields: int, sectors: int, requests: int = 0) -> Case:
    """`sectors` are those of one request; as many requests to store as to load, `n_fields` a record if 0."""
    total = n // 32 * (requests or n_fields)
    totals = {
        "global_.load.requests": total,
        "global_.load.sectors": total * sectors,
        "global_.store.sectors": total * sectors,
    }
    return Case(
        kernel.py_func.__name__,
        kernel,
        problem,
        -(-n // dl.THREADS),
        dl.THREADS,
        useful_bytes=8 * n * n_fields,
        arithmetic=totals,
        profiled=n == 1 << 24,
    )


def _one_field(kernel: Any, label: str, n: int, shape: tuple[int, int], sectors: int) -> Case:
    fields = n != shape[1]  # a row per record, rather than a row per field
    problem = Problem(
        f"double one field of {shape[0]}x{shape[1]}",
        partial(_random, shape, np.float32),
        _first_field if fields else _first_array,
    )
    return Case(
        label,
        kernel,
        problem,
        -(-n // dl.THREADS),
        dl.THREADS,
        useful_bytes=8 * n,
        arithmetic={
            "global_.load.requests": n // 32,
            "global_.load.sectors": n // 32 * sectors,
            "global_.store.sectors": n // 32 * 4,
        },
        profiled=n == 1 << 24,
    )


def _records(n: int) -> tuple[Case, ...]:
    arrays = Problem(f"double 4 arrays of {n}", partial(_random, (4, n), np.float32), _doubled)
    return (
        _record(dl.scale_fields, n, records_of(n, 4), 4, 16),
        _record(dl.scale_vectors, n, records_of(n, 4), 4, 16, requests=1),
        _record(dl.scale_arrays, n, arrays, 4, 4),
        _one_field(dl.scale_one_field, "scale_one_field", n, (n, 4), 16),
        _one_field(dl.scale_one_array, "scale_one_array", n, (4, n), 4),
    )


def _triples(n: int) -> tuple[Case, ...]:
    return (
        _record(dl.scale_triples, n, records_of(n, 3), 3, 12),
        _one_field(dl.scale_one_field, "scale_one_field of 3", n, (n, 3), 12),
    )


# -- permuted matrices -----------------------------------------------------------------------------


def _contiguous(values: Values) -> Outputs:
    return {"dst": dl.reference(values["src"].reshape(-1, values["row_stride"]))}


def _permuted(values: Values) -> Outputs:
    return {"dst": np.ascontiguousarray(dl.reference(values["src"].reshape(-1, values["col_stride"])).T)}


def _transposed(values: Values) -> Outputs:
    return {"dst": np.ascontiguousarray(dl.reference(values["src"]).T)}


def _copied(values: Values) -> Outputs:
    return {"dst": padding.reference(values["src"])}


def _strided(n: int, row: int, col: int, rng: np.random.Generator) -> Values:
    return {"src": rng.random(n * n, np.float32), "row_stride": row, "col_stride": col}


def _matrices(n: int) -> tuple[Case, ...]:
    """The strided kernel on a matrix and on its transposed view; the copy, and both in one."""
    grid, useful, sectors = (n // 32, n // 32), 8 * n * n, n * n // 8
    plain = Problem(f"double {n}x{n}", partial(_strided, n, n, 1), _contiguous)
    view = Problem(f"double a view of {n}x{n}", partial(_strided, n, 1, n), _permuted)
    shape = partial(_random, (n, n), np.float32)
    both = Problem(f"double and transpose {n}x{n}", shape, _transposed)
    copy = Problem(f"transpose {n}x{n}", shape, _copied)
    tiled = {
        "global_.load.sectors": sectors,
        "global_.store.sectors": sectors,
        "shared.store.wavefronts": n * n // 32,
        "shared.load.wavefronts": n * n // 32,
    }
    rows = (
        ("contiguous", dl.scale_view, plain, dict.fromkeys(list(tiled)[:2], sectors)),
        ("view", dl.scale_view, view, {"global_.load.sectors": n * n, "global_.store.sectors": sectors}),
        ("copy of the view", padding.transpose_padded, copy, tiled),
        ("view through a tile", dl.scale_transposed, both, tiled),
    )
    return tuple(
        Case(label, kernel, problem, grid, dl.BLOCK_2D, useful_bytes=useful, arithmetic=totals)
        for label, kernel, problem, totals in rows
    )


# -- images ----------------------------------------------------------------------------------------


def _same(values: Values) -> Outputs:
    return {"dst": values["src"].copy()}


def _images(n: int, n_channels: int, n_pixels: int, dtype: Any, profiled: bool = False) -> tuple[Case, ...]:
    """Lanes along pixels or channels, over NCHW and NHWC: on neighbours, or each on a sector of its own."""
    size, kind = n * n_channels * n_pixels, np.dtype(dtype)
    problem = Problem(f"copy {n} images of {size // n} {kind}", partial(_random, (size,), kind), _same)
    near = kind.itemsize  # sectors of 32 neighbours
    layouts = {"NCHW": (1, n_pixels), "NHWC": (n_channels, 1)}  # strides of a pixel and of a channel
    cases = []
    for name, strides in layouts.items():
        for kernel, grid, stride in (
            (dl.by_pixel, dl.grid_by_pixel(n, n_channels, n_pixels), strides[0]),
            (dl.by_channel, dl.grid_by_channel(n, n_channels, n_pixels), strides[1]),
        ):
            sectors = size // 32 * (near if stride == 1 else 32)
            cases.append(
                Case(
                    f"{name} {kernel.py_func.__name__} {kind}",
                    kernel,
                    problem,
                    grid,
                    dl.THREADS,
                    scalars={
                        "n_pixels": n_pixels,
                        "n_channels": n_channels,
                        "pixel_stride": strides[0],
                        "channel_stride": strides[1],
                    },
                    useful_bytes=2 * size * kind.itemsize,
                    arithmetic={"global_.load.sectors": sectors, "global_.store.sectors": sectors},
                    profiled=profiled,
                )
            )
    return tuple(cases)


# -- a key-value cache -----------------------------------------------------------------------------


def _cache(n_tokens: int, n_heads: int, shuffled: bool, rng: np.random.Generator) -> Values:
    pages = np.arange(n_tokens // dl.PAGE, dtype=np.int32)
    if shuffled:
        rng.shuffle(pages)
    held = rng.random((n_tokens, n_heads, dl.HALVES), np.float32).astype(np.float16)
    return {"cache": held, "pages": pages}


def _rows(values: Values) -> Outputs:
    return {"dst": dl.reference_rows(values["cache"], values["pages"])}


def _columns(values: Values) -> Outputs:
    rows = dl.reference_rows(values["cache"], values["pages"])
    return {"dst": np.ascontiguousarray(rows.transpose(0, 2, 1))}


def _gathers(n_tokens: int, n_heads: int) -> tuple[Case, ...]:
    n_rows = n_tokens * n_heads
    by_row, by_lane = (n_tokens // 8, n_heads), (-(-n_tokens // dl.THREADS), n_heads)
    size = f"{n_tokens} tokens, {n_heads} heads"

    def problem(shuffled: bool, outputs: Any) -> Problem:
        kind = f"{'shuffled' if shuffled else 'ordered'}{' by lane' if outputs is _columns else ''}"
        return Problem(f"gather {size}, {kind}", partial(_cache, n_tokens, n_heads, shuffled), outputs)

    ordered, shuffled = problem(False, _rows), problem(True, _rows)
    row = {"global_.store.sectors": 8 * n_rows}  # 256 bytes, and one sector of the page table
    lane = {
        "global_.load.sectors": n_rows // 32 * (32 * dl.HALVES + 1),
        "global_.store.sectors": n_rows // 32 * 2 * dl.HALVES,
    }
    rows: tuple[tuple[str, Any, Problem, Any, Any, dict[str, int]], ...] = (
        ("rows", dl.gather_rows, ordered, by_row, dl.BLOCK_2D, {"global_.load.sectors": 8 * n_rows, **row}),
        ("pages", dl.gather_pages, ordered, by_row, dl.BLOCK_2D, {"global_.load.sectors": 9 * n_rows, **row}),
        (
            "shuffled pages",
            dl.gather_pages,
            shuffled,
            by_row,
            dl.BLOCK_2D,
            {"global_.load.sectors": 9 * n_rows, **row},
        ),
        ("lanes", dl.gather_lanes, problem(False, _columns), by_lane, dl.THREADS, lane),
        ("lanes, shuffled pages", dl.gather_lanes, problem(True, _columns), by_lane, dl.THREADS, lane),
    )
    return tuple(
        Case(
            f"{label}, {n_tokens} tokens",
            kernel,
            given,
            grid,
            block,
            useful_bytes=2 * 2 * dl.HALVES * n_rows,
            arithmetic=totals,
            profiled=n_tokens == 4096,
        )
        for label, kernel, given, grid, block, totals in rows
    )


def experiments() -> tuple[Experiment, ...]:
    """E-25, E-26, E-28, E-29 and E-39."""
    return (
        Experiment(
            "E-25",
            "Array of structures or structure of arrays: all fields, and one?",
            timed=(*_records(1 << 24), *_records(1 << 26)),
            counted=_records(1 << 12),
            ceiling=COPY,
        ),
        Experiment(
            "E-26",
            "What do records of 12 bytes cost?",
            timed=_triples(1 << 26),
            counted=_triples(1 << 12),
            ceiling=COPY,
        ),
        Experiment(
            "E-28",
            "NCHW or NHWC: which neighbours do neighbouring lanes take?",
            timed=(
                *_images(32, 64, 56 * 56, np.float32, profiled=True),
                *_images(32, 64, 56 * 56, np.float16),
            ),
            counted=(*_images(2, 64, 256, np.float32), *_images(2, 64, 256, np.float16)),
            ceiling=COPY,
        ),
        Experiment(
            "E-29",
            "A permuted view: read it with its strides, copy it first, or permute it on the way?",
            timed=_matrices(8192),
            counted=_matrices(128),
            ceiling=COPY,
        ),
        Experiment(
            "E-39",
            "What does gathering a key-value cache cost, in pages and not, row by row and lane by token?",
            timed=(*_gathers(4096, 32), *_gathers(65536, 32)),
            counted=_gathers(256, 2),
            ceiling=COPY,
        ),
    )
