"""The names by which Nsight Compute gives what this package counts, and the names that older texts use.

`METRICS` is what a reader of memory behaviour needs, one entry for each question; `find` takes a new name or
an old one. Source: Nsight Compute 2025.3, Profiling Guide, "Metrics Reference" and "nvprof Metric
Comparison"; each name was found in what the profiler offers on an H200 (`profiler.json`), or on its source
page.
"""

from dataclasses import dataclass
from difflib import get_close_matches

from lanewise.errors import Error

ADDRESSES = "addresses"  # decided by the addresses alone: repeats exactly, and equals the arithmetic
HARDWARE = "hardware"  # what the unit went through: contains what else happened there


class UnknownMetric(Error):
    """A name that is not in the table."""


@dataclass(frozen=True)
class Metric:
    """One metric: Nsight Compute's `name`, what it `says`, what it `follows`, and nvprof's name for it.

    `follows` is "addresses" or "hardware"; `nvprof` is empty where that profiler had none.
    """

    name: str
    says: str
    follows: str
    nvprof: str = ""

    @property
    def base(self) -> str:
        """The name without its roll-up, as `ncu --query-metrics` lists it."""
        return self.name.partition(".")[0]


_STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"

METRICS = (
    Metric(
        "memory_l1_wavefronts_shared",
        "wavefronts of each instruction, on the source page",
        ADDRESSES,
    ),
    Metric(
        "memory_l1_wavefronts_shared_ideal",
        "the fewest these could be; the difference is the excess",
        ADDRESSES,
    ),
    Metric(
        "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct",
        "requested bytes for each wavefront, of 128",
        ADDRESSES,
        "shared_efficiency",
    ),
    Metric(
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
        "wavefronts of all shared loads",
        HARDWARE,
        "shared_load_transactions",
    ),
    Metric(
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        "wavefronts of all shared stores",
        HARDWARE,
        "shared_store_transactions",
    ),
    Metric(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
        "excess wavefronts of loads, and what they lost to other traffic",
        HARDWARE,
        "shared_ld_bank_conflict",
    ),
    Metric(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        "the same for stores",
        HARDWARE,
        "shared_st_bank_conflict",
    ),
    Metric(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        "the same for all shared accesses",
        HARDWARE,
    ),
    Metric(
        "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ldsm.sum",
        "excess wavefronts of ldmatrix",
        ADDRESSES,
    ),
    Metric(
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
        "requests of global loads",
        ADDRESSES,
        "gld_request",
    ),
    Metric(
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
        "sectors of global loads",
        ADDRESSES,
        "gld_transactions",
    ),
    Metric(
        "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
        "sectors for each request",
        ADDRESSES,
        "gld_transactions_per_request",
    ),
    Metric(
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
        "requested bytes for each sector, of 32",
        ADDRESSES,
        "gld_efficiency",
    ),
    Metric(
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
        "the same for stores",
        ADDRESSES,
        "gst_efficiency",
    ),
    Metric(
        "l1tex__t_sector_hit_rate.pct",
        "sectors that L1 had",
        HARDWARE,
        "global_hit_rate",
    ),
    Metric("lts__t_sector_hit_rate.pct", "sectors that L2 had", HARDWARE, "l2_tex_hit_rate"),
    Metric(
        "dram__bytes_read.sum",
        "bytes read from DRAM",
        HARDWARE,
        "dram_read_bytes",
    ),
    Metric(
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "resident warps, of the most possible",
        HARDWARE,
        "achieved_occupancy",
    ),
    Metric(
        _STALLED.format("short_scoreboard"),
        "warps waiting for shared memory, or special functions",
        HARDWARE,
    ),
    Metric(
        _STALLED.format("long_scoreboard"),
        "warps waiting for global or local memory",
        HARDWARE,
        "stall_memory_dependency",
    ),
    Metric(
        _STALLED.format("mio_throttle"),
        "warps that cannot hand over a shared access: the queue is full",
        HARDWARE,
    ),
    Metric(
        _STALLED.format("lg_throttle"),
        "warps that cannot hand over a global access: the queue is full",
        HARDWARE,
    ),
    Metric(
        _STALLED.format("barrier"),
        "warps waiting at a barrier",
        HARDWARE,
        "stall_sync",
    ),
)


def find(name: str) -> Metric:
    """The metric of a name: Nsight Compute's, with or without roll-up, or nvprof's.

    >>> find("gld_efficiency").name
    'smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct'

    Raises `UnknownMetric` with the nearest name.
    """
    known = {key: metric for metric in METRICS for key in (metric.name, metric.base, metric.nvprof) if key}
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=3) or sorted(known)
    raise UnknownMetric(f"find: no metric {name!r} in the table. There are {', '.join(near)}.")
