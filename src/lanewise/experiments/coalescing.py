"""Experiments with global memory: strides, offsets, widths, sizes, lone sectors, a cache that looks good."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from lanewise.experiments.plan import Case, Ceiling, Experiment, Problem
from lanewise.kernels import coalescing as co
from lanewise.kernels.coalescing import grid_of

Values = Mapping[str, Any]

SMALL = 1 << 14  # elements of a counted case
GIB = 1 << 28  # float32 elements of 1 GiB
STRIDES = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64)
STARTS = (0, 1, 4, 7, 8, 12, 16, 31)


def _random(shapes: Mapping[str, tuple[int, ...]], numbers: Values, rng: np.random.Generator) -> Values:
    return {**{name: rng.random(shape, np.float32) for name, shape in shapes.items()}, **numbers}


def _problem(
    name: str,
    outputs: Callable[[Values], Mapping[str, np.ndarray]],
    tolerance: float = 0.0,
    numbers: Values | None = None,
    **shapes: tuple[int, ...],
) -> Problem:
    return Problem(name, partial(_random, shapes, numbers or {}), outputs, relative_tolerance=tolerance)


def _doubled(values: Values) -> Mapping[str, np.ndarray]:
    return {"dst": co.reference(values["src"])}


def _copied(values: Values) -> Mapping[str, np.ndarray]:
    return {"dst": values["src"].copy()}


def _every(values: Values) -> Mapping[str, np.ndarray]:
    return {"dst": co.reference_every(values["src"], values["dst"], values["stride"])}


def _gathered(values: Values) -> Mapping[str, np.ndarray]:
    return {"dst": co.reference(values["src"][:: values["stride"]])}


def _from_start(values: Values) -> Mapping[str, np.ndarray]:
    start = values["start"]
    return {"dst": co.reference(values["src"][start : len(values["src"]) - 32 + start])}


def _repeated(values: Values) -> Mapping[str, np.ndarray]:
    return {"dst": co.reference(np.repeat(values["src"], 32))}


def _filled(n: int, values: Values) -> Mapping[str, np.ndarray]:
    return {"dst": np.full(n, values["number"], np.float32)}


def _triad(values: Values) -> Mapping[str, np.ndarray]:
    product = values["right"].astype(np.float64) * float(values["factor"])
    return {"dst": (values["left"] + product).astype(np.float32)}


def _strided_sums(n_sums: int, values: Values) -> Mapping[str, np.ndarray]:
    return {"dst": values["src"].reshape(-1, n_sums, 4).sum(axis=(0, 2), dtype=np.float64).astype(np.float32)}


def _run_sums(values: Values) -> Mapping[str, np.ndarray]:
    return {"dst": co.reference_runs(values["src"], values["run"])}


def _row_sums(n_rows: int, values: Values) -> Mapping[str, np.ndarray]:
    return {"dst": co.reference_columns(values["src"], n_rows)}


@cache
def scaling(*shape: int) -> Problem:
    """Double every element of an array."""
    return _problem(f"double {'x'.join(map(str, shape))}", _doubled, src=shape)


@cache
def copying(n: int) -> Problem:
    """Copy an array."""
    return _problem(f"copy {n}", _copied, src=(n,))


def _sectors(n: int, load: int, store: int = 4) -> Mapping[str, int]:
    """The totals of n one-element lanes in full warps, from the sectors of one request."""
    return {
        "global_.load.requests": n // 32,
        "global_.load.sectors": load * n // 32,
        "global_.store.requests": n // 32,
        "global_.store.sectors": store * n // 32,
    }


def passes_of(n: int, stride: int, label: str = "", counted: bool = False, profiled: bool = False) -> Case:
    """`scale_passes` over n elements, which `256 * stride` divides if it is counted."""
    per_request = min(4 * stride, 32)  # lanes `stride` floats apart
    return Case(
        label or f"stride {stride}",
        co.scale_passes,
        scaling(n),
        (grid_of(-(-n // stride)), stride),
        co.THREADS,
        scalars={"stride": stride},
        useful_bytes=8 * n,
        arithmetic=_sectors(n, per_request, per_request) if counted else {},
        profiled=profiled,
    )


def _start_of(n: int, start: int) -> Case:
    numbers = {"start": start}
    problem = _problem(f"double {n} from {start}", _from_start, numbers=numbers, src=(n + 32,))
    totals = _sectors(n, 4 if start % 8 == 0 else 5)
    return Case(
        f"start {start}",
        co.scale_from,
        problem,
        grid_of(n),
        co.THREADS,
        useful_bytes=8 * n,
        arithmetic=totals,
    )


def _plain_of(n: int, label: str = "stride 1", profiled: bool = False) -> Case:
    totals = _sectors(n, 4)
    return Case(
        label,
        co.scale,
        scaling(n),
        grid_of(n),
        co.THREADS,
        useful_bytes=8 * n,
        arithmetic=totals,
        profiled=profiled,
    )


@cache
def _every_problem(n: int, stride: int) -> Problem:
    return _problem(f"double 1 of {stride} of {n}", _every, numbers={"stride": stride}, src=(n,), dst=(n,))


def _every_of(n: int, stride: int = 2, profiled: bool = False) -> Case:
    n_used, per_request = n // stride, min(4 * stride, 32)
    return Case(
        f"stride {stride}, {n} elements",
        co.scale_every,
        _every_problem(n, stride),
        grid_of(n_used),
        co.THREADS,
        useful_bytes=8 * n_used,
        arithmetic=_sectors(n_used, per_request, per_request),
        profiled=profiled,
    )


def _strides() -> Experiment:
    side = 128
    orders = tuple(
        Case(
            f"lane ^ {mask}",
            co.scale_swapped,
            scaling(SMALL),
            grid_of(SMALL),
            co.THREADS,
            scalars={"mask": mask},
            arithmetic=_sectors(SMALL, 4),
        )
        for mask in (0, 21, 31)
    )
    one = _problem(f"double and repeat {SMALL // 32}", _repeated, src=(SMALL // 32,))
    columns = Case(
        "columns",
        co.scale_columns,
        scaling(side, side),
        (side // 32, side // 8),
        co.BLOCK_2D,
        arithmetic=_sectors(side * side, 32, 32),
    )
    return Experiment(
        "E-21",
        "What do a stride, an offset, and another order of the lanes cost?",
        timed=(
            *(passes_of(GIB, stride) for stride in STRIDES),
            *(_start_of(1 << 26, start) for start in STARTS),
        ),
        counted=(
            _plain_of(SMALL, "neighbours"),
            *(passes_of(512 * stride, stride, counted=True) for stride in STRIDES),
            *(_start_of(SMALL, start) for start in STARTS),
            *orders,
            Case("repeat", co.repeat, one, grid_of(SMALL), co.THREADS, arithmetic=_sectors(SMALL, 1)),
            columns,
        ),
        ceiling=Ceiling("device_copy"),
    )


def _half() -> Experiment:
    return Experiment(
        "E-22",
        "What does stride 2 cost at the same size, and what for the same useful work?",
        timed=(
            *(_plain_of(1 << k, f"stride 1, {1 << k} elements", profiled=k == 26) for k in (24, 26, 27, 28)),
            *(_every_of(1 << k, profiled=k in (26, 27)) for k in (24, 25, 26, 27, 28)),
        ),
        counted=(_every_of(SMALL), _every_of(SMALL, 8)),
        ceiling=Ceiling("device_copy"),
    )


def _sizes() -> Experiment:
    profiled = {(22, 8), (28, 1), (28, 8)}
    return Experiment(
        "E-23",
        "At what size does the L2 cease to hide a stride?",
        timed=tuple(
            passes_of(1 << k, stride, f"stride {stride}, 2^{k} elements", profiled=(k, stride) in profiled)
            for stride in (1, 2, 8)
            for k in (16, 18, 20, 21, 22, 23, 24, 25, 26, 28)
        ),
        ceiling=Ceiling("device_copy"),
    )


def _copy_of(kernel: Any, elems: int, n: int, threads: int) -> Case:
    """A copy that takes `elems` elements per thread, at most four by one instruction."""
    requests, sectors = n // (32 * min(elems, 4)), n // 8
    totals = {f"global_.{op}.requests": requests for op in ("load", "store")}
    return Case(
        f"{kernel.py_func.__name__}, {threads} threads",
        kernel,
        copying(n),
        n // elems // threads,
        threads,
        useful_bytes=8 * n,
        arithmetic={**totals, "global_.load.sectors": sectors, "global_.store.sectors": sectors},
    )


WIDTHS = ((co.copy, 1), (co.copy2, 2), (co.copy4, 4), (co.copy4_ahead, 16))


def _widths() -> tuple[Experiment, Experiment]:
    def cases(n: int) -> tuple[Case, ...]:
        return tuple(
            _copy_of(kernel, elems, n, threads)
            for kernel, elems in WIDTHS
            for threads in (128, 256, 512, 1024)
        )

    question = "What do 4, 8 and 16 bytes per lane reach, and several loads in flight?"
    return (
        Experiment("E-24", question, cases(GIB), cases(1 << 15), Ceiling("device_copy"), speed="speed:copy"),
        Experiment("E-24-small", question, cases(1 << 26), ceiling=Ceiling("device_copy")),
    )


def _gather_of(n_src: int, stride: int, profiled: bool = False) -> Case:
    n = n_src // stride
    problem = _problem(
        f"gather 1 of {stride} of {n_src}", _gathered, numbers={"stride": stride}, src=(n_src,)
    )
    return Case(
        f"one of {stride}",
        co.gather_every,
        problem,
        grid_of(n),
        co.THREADS,
        useful_bytes=8 * n,
        arithmetic=_sectors(n, min(4 * stride, 32)),
        profiled=profiled,
    )


def _lone_sectors() -> Experiment:
    return Experiment(
        "E-27",
        "How many bytes does the DRAM give for a sector that nobody else needs?",
        timed=tuple(_gather_of(GIB, stride, profiled=True) for stride in (8, 16, 32)),
        counted=tuple(_gather_of(SMALL, stride) for stride in (8, 32)),
        ceiling=Ceiling("device_copy"),
    )


def _streams() -> Experiment:
    def cases(n: int, n_sums: int) -> tuple[Case, ...]:
        number, factor = {"number": np.float32(3)}, {"factor": np.float32(2)}
        fill = _problem(f"fill {n}", partial(_filled, n), numbers=number)
        triad = _problem(f"triad {n}", _triad, numbers=factor, left=(n,), right=(n,))
        sums = _problem(f"{n_sums} sums of {n}", partial(_strided_sums, n_sums), 1e-5, src=(n,))
        per_array = n // 8  # sectors
        grid, sum_grid = n // 4 // co.THREADS, n_sums // co.THREADS
        return (
            _copy_of(co.copy4, 4, n, co.THREADS),
            Case(
                "fill4",
                co.fill4,
                fill,
                grid,
                co.THREADS,
                useful_bytes=4 * n,
                arithmetic={"global_.store.sectors": per_array},
            ),
            Case(
                "triad4",
                co.triad4,
                triad,
                grid,
                co.THREADS,
                useful_bytes=12 * n,
                arithmetic={"global_.load.sectors": 2 * per_array, "global_.store.sectors": per_array},
            ),
            Case(
                "sum4",
                co.sum4,
                sums,
                sum_grid,
                co.THREADS,
                useful_bytes=4 * n,
                arithmetic={"global_.load.sectors": per_array, "global_.store.sectors": n_sums // 8},
            ),
        )

    return Experiment(
        "E-41-stream",
        "What does the DRAM give to a copy, to writes, to two reads and a write, and to reads?",
        timed=cases(GIB, 1 << 18),
        counted=cases(SMALL, 1024),
        ceiling=Ceiling("device_copy"),
    )


def _hit_trap() -> Experiment:
    def cases(n: int, where: str) -> tuple[Case, ...]:
        found = []
        for run in (8, 32):
            n_sums = n // run
            warps, load = n_sums // 32, n // 32
            columns = _problem(f"{n_sums} sums of columns of {n}", partial(_row_sums, run), src=(n,))
            runs = _problem(f"{n_sums} sums of runs of {n}", _run_sums, numbers={"run": run}, src=(n,))
            for kernel, problem, per_request in ((co.sum_columns, columns, 4), (co.sum_runs, runs, 32)):
                name = kernel.py_func.__name__
                found.append(
                    Case(
                        f"{name} of {run}, {where}",
                        kernel,
                        problem,
                        grid_of(n_sums),
                        co.THREADS,
                        useful_bytes=4 * n,
                        arithmetic={
                            "global_.load.requests": load,
                            "global_.load.sectors": per_request * load,
                            "global_.store.sectors": 4 * warps,
                        },
                        profiled=run == 32 or n == GIB,
                    )
                )
        return tuple(found)

    return Experiment(
        "E-43",
        "Does a high hit rate in L1 mean that a kernel reads well?",
        timed=(*cases(1 << 20, "4 MiB"), *cases(GIB, "1 GiB")),
        counted=cases(SMALL, "64 KiB"),
        ceiling=Ceiling("device_copy"),
    )


def experiments() -> tuple[Experiment, ...]:
    """E-21 to E-24, E-27, the streams of E-41, and E-43."""
    return (_strides(), _half(), _sizes(), *_widths(), _lone_sectors(), _streams(), _hit_trap())
