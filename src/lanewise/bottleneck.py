"""What limits a launch: the least time that each resource of a GPU needs for it, and which needs the most.

    work = Work.of_trace(trace, useful_bytes=2 * src.nbytes)
    bounds = lower_bounds(work, "H200")
    print(bounds.verdict(us=188.0))

No bound can be beaten, so the launch takes at least as long as the largest one. How close the measured time
comes to it says whether that resource is what the launch waits for. If the time is far above all of them,
something is at work that these counts do not show: latency with too few warps, barriers, a tail of blocks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from lanewise import records
from lanewise.display import Table, table
from lanewise.errors import Error
from lanewise.machine import SECTORS_PER_LINE, Product, product
from lanewise.text import significant

if TYPE_CHECKING:
    from lanewise.trace import Trace

CLOSE = 0.7  # of the time: from here on the largest bound is what the launch waits for
FAR = 0.45  # below it no resource is: latency, or something that was not counted
ROUNDING = 1.01  # a published peak is rounded

# What the profiler calls the same resources' busy fractions.
BUSY: Mapping[str, str] = {
    "DRAM": "dram_throughput",
    "L1 and shared": "l1_throughput",
    "issue": "sm_busy",
    "Tensor Cores": "tensor_busy",
}


class InvalidWork(Error):
    """A count or a time that cannot be."""


@dataclass(frozen=True)
class Work:
    """What one launch asks of a GPU. What is unknown stays 0 and gives no bound.

    `dram_bytes` is what must cross between DRAM and the chip: at least the bytes that any solution must move.
    `shared_wavefronts` and `global_lines`, the 128-byte lines that each request to global memory touches, are
    totals over all warps, `instructions` those that warps issued. `flops` are float32 operations of the
    ordinary units, `tensor_flops` those of the Tensor Cores; a multiply-add is two.
    """

    dram_bytes: float = 0
    shared_wavefronts: float = 0
    global_lines: float = 0
    instructions: float = 0
    flops: float = 0
    tensor_flops: float = 0

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if not getattr(self, name) >= 0:
                raise InvalidWork(f"Work: {name} is {getattr(self, name)!r}; give a count of 0 or more.")

    @classmethod
    def of_trace(
        cls,
        trace: Trace,
        useful_bytes: float = 0,
        flops: float = 0,
        tensor_flops: float = 0,
        instructions: float = 0,
    ) -> Work:
        """The work of a traced launch. If only some blocks were traced, the others are taken to be alike."""
        scale = trace.n_blocks_of_grid / trace.n_blocks
        shared, in_global = trace.shared.total, trace.global_.total
        return cls(
            dram_bytes=useful_bytes,
            shared_wavefronts=shared.wavefronts * scale,
            global_lines=in_global.lines * scale,
            instructions=instructions,
            flops=flops,
            tensor_flops=tensor_flops,
        )

    @classmethod
    def of_counters(
        cls, metrics: Mapping[str, Any], useful_bytes: float = 0, flops: float = 0, tensor_flops: float = 0
    ) -> Work:
        """The work of a profiled launch, from its recorded hardware counters (`Results.counters`).

        With counters of DRAM its bytes are those that it moved, otherwise the useful ones. No counter tells
        lines; there are at least as many as the requests, and as their sectors fill.
        """
        moved = (metrics.get("dram_read_bytes") or 0) + (metrics.get("dram_write_bytes") or 0)
        requests, sectors = (
            sum(metrics.get(f"global_{op}_{unit}") or 0 for op in ("load", "store"))
            for unit in ("requests", "sectors")
        )
        return cls(
            dram_bytes=moved or useful_bytes,
            shared_wavefronts=metrics.get("shared_wavefronts") or 0,
            global_lines=max(requests, sectors / SECTORS_PER_LINE),
            instructions=metrics.get("instructions") or 0,
            flops=flops,
            tensor_flops=tensor_flops,
        )


def busy(metrics: Mapping[str, Any]) -> dict[str, str]:
    """How busy the profiler found each resource, as fractions of what it can do: a row for `table`.

    >>> from lanewise import results
    >>> busy(results.experiment("h200", "E-45").profile("tiled 8192"))
    {'DRAM': '0.30', 'L1 and shared': '0.81', 'issue': '0.40', 'Tensor Cores': '0.00'}
    """
    return {name: f"{metrics[key]:.2f}" for name, key in BUSY.items()}


@dataclass(frozen=True)
class Bound:
    """The least time that one resource needs: `amount` of `unit`, at no more than `rate` of them in 1 us."""

    resource: str
    amount: float
    unit: str
    rate: float

    @property
    def us(self) -> float:
        """The least time in microseconds."""
        return self.amount / self.rate


@dataclass(frozen=True)
class Bounds:
    """The bounds of one launch on one product, the largest first."""

    product: Product
    bounds: tuple[Bound, ...]

    @property
    def largest(self) -> Bound:
        """The bound that no implementation of this work can beat."""
        return self.bounds[0]

    def share(self, us: float, resource: str | None = None) -> float:
        """Which fraction of a measured time the largest bound, or that of one resource, explains."""
        return self._of(resource).us / _time(us)

    def table(self, us: float | None = None, note: str = "") -> Table:
        """One row for each resource: what is asked of it, and how long that takes at least.

        With the measured time a last column says which fraction of it that is.
        """
        rows = []
        for bound in self.bounds:
            row = {
                "resource": bound.resource,
                "asked for": f"{significant(bound.amount)} {bound.unit}",
                "at least (µs)": significant(bound.us),
            }
            if us is not None:
                row["of the time"] = f"{bound.us / _time(us):.2f}"
            rows.append(row)
        return table(rows, note=note)

    def verdict(self, us: float) -> str:
        """What the measured time says, in a sentence."""
        share, name = self.share(us), self.largest.resource
        numbers = f"at least {significant(self.largest.us)} of {significant(us)} µs, {share:.2f} of the time"
        if share > ROUNDING:
            return f"Impossible: {name} needs {numbers}. A count, the time or the GPU's name is wrong."
        if share >= CLOSE:
            return f"Limited by {name}: {numbers}."
        if share >= FAR:
            return f"Not at a limit; {name} comes nearest: {numbers}."
        return f"Nothing counted here limits it; {name} comes nearest: {numbers}. Look for latency."

    def __repr__(self) -> str:
        return "\n".join(f"{bound.resource}: {significant(bound.us)} µs" for bound in self.bounds)

    def _of(self, resource: str | None) -> Bound:
        if resource is None:
            return self.largest
        for bound in self.bounds:
            if bound.resource == resource:
                return bound
        there_are = ", ".join(bound.resource for bound in self.bounds)
        raise InvalidWork(f"Bounds: no bound of {resource!r}; there are {there_are}.")


def lower_bounds(work: Work, gpu: str | Product) -> Bounds:
    """The least time of each resource that the work asks for, on a GPU at its published peaks.

    >>> work = Work(dram_bytes=2 * 4096**2 * 4, shared_wavefronts=33 * 524_288)
    >>> lower_bounds(work, "H200")
    shared memory: 66.2 µs
    DRAM: 28.0 µs
    >>> lower_bounds(work, "RTX 4090")
    DRAM: 133 µs
    shared memory: 53.6 µs

    The rates, in each clock of each multiprocessor: one wavefront of shared memory; one line of a request in
    the L1 cache; one instruction from each of its 4 schedulers. DRAM, float32 and Tensor Cores as published
    (`lanewise.machine.PRODUCTS`); for another GPU, or for rates that you measured, give a `Product`.
    Raises `InvalidWork` for work that asks for nothing.
    """
    at = product(gpu)
    cycles = at.cycles_per_us
    bounds = (
        Bound("DRAM", work.dram_bytes, "bytes", at.dram_gb_per_s * 1e3),
        Bound("shared memory", work.shared_wavefronts, "wavefronts", cycles),
        Bound("L1 cache", work.global_lines, "lines", cycles),
        Bound("issue", work.instructions, "instructions", cycles * at.machine.partitions_per_sm),
        Bound("float32 units", work.flops, "FLOP", at.fp32_tflop_per_s * 1e6),
        Bound("Tensor Cores", work.tensor_flops, "FLOP", at.tensor_tflop_per_s * 1e6),
    )
    asked = [bound for bound in bounds if bound.amount]
    if not asked:
        raise InvalidWork("lower_bounds: the work asks for nothing. Give bytes, wavefronts or operations.")
    return Bounds(at, tuple(sorted(asked, key=lambda bound: -bound.us)))


@dataclass(frozen=True)
class Recorded:
    """A launch that was both timed and profiled at its full size: its time, bounds and busy fractions."""

    experiment: str
    label: str
    us: float
    bounds: Bounds
    metrics: Mapping[str, Any]


# Topics whose operations are, most of them, those of the Tensor Cores.
_TENSOR_TOPICS = ("attention", "hgemm", "tensor_cores")


@cache
def recorded_bounds(gpu: str, peaks: str | Product) -> tuple[Recorded, ...]:
    """The bounds of every such launch in the records of `gpu`, from its counters and the product `peaks`.

    >>> max(case.bounds.share(case.us) for case in recorded_bounds("h200", "H200")) < 1
    True
    """
    found = []
    for topic in records.recorded_topics(gpu):
        timed = {_key(row): row for row in records.record(gpu, topic).tables.get("times", ()) if "us" in row}
        for row in records.record(gpu, f"{topic}.counters").rows("counters"):
            if row["profiled"] and _key(row) in timed:
                time = timed[_key(row)]
                flops = {"tensor_flops" if topic in _TENSOR_TOPICS else "flops": time["flops"]}
                bounds = lower_bounds(Work.of_counters(row["metrics"], **flops), peaks)
                case = row["experiment"], row["label"], time["us"][1]
                found.append(Recorded(*case, bounds, row["metrics"]))
    return tuple(found)


def _key(row: Mapping[str, Any]) -> tuple[str, str, str]:
    return row["experiment"], row["label"], row["problem"]


def _time(us: float) -> float:
    if not us > 0:
        raise InvalidWork(f"Bounds: the time is {us!r} µs; give the measured time, above 0.")
    return us
