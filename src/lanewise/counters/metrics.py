"""What is read, by our name and Nsight Compute's (2025.3; all exist on compute capability 9.0)."""

from __future__ import annotations

_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
_BUSY = "pct_of_peak_sustained_active"
STALLS = ("short_scoreboard", "long_scoreboard", "mio_throttle", "lg_throttle", "barrier", "wait",
          "math_pipe_throttle", "not_selected", "selected")  # fmt: skip

# Exact by address: the profiler patches the machine code and counts, instruction by instruction.
SOURCE = {
    "wavefronts": ("memory_l1_wavefronts_shared", "L1 Wavefronts Shared"),
    "ideal": ("memory_l1_wavefronts_shared_ideal", "L1 Wavefronts Shared Ideal"),
    "sectors": ("memory_l2_theoretical_sectors_global", "L2 Theoretical Sectors Global"),
}
EXECUTED = ("inst_executed", "Instructions Executed")

# Read from the hardware, for a whole kernel. The first family counts lost arbitration too.
HARDWARE = {
    "shared_wavefronts": f"{_WAVEFRONTS}.sum",
    "shared_load_wavefronts": f"{_WAVEFRONTS}_op_ld.sum",
    "shared_store_wavefronts": f"{_WAVEFRONTS}_op_st.sum",
    "shared_conflicts": f"{_CONFLICTS}.sum",
    "shared_load_conflicts": f"{_CONFLICTS}_op_ld.sum",
    "shared_store_conflicts": f"{_CONFLICTS}_op_st.sum",
    "async_copy_conflicts": f"{_CONFLICTS}_op_ldgsts.sum",
    "shared_load_instructions": "smsp__inst_executed_op_shared_ld.sum",
    "shared_store_instructions": "smsp__inst_executed_op_shared_st.sum",
    "ldmatrix_instructions": "smsp__inst_executed_op_ldsm.sum",
    "instructions": "smsp__inst_executed.sum",
    "bytes_per_wavefront_fraction": "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct",
    "global_load_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "global_store_requests": "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "global_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
}

# What decides the time of a launch that fills the GPU; read for cases that are `profiled`.
PROFILE = {
    "l2_read_sectors": "lts__t_sectors_op_read.sum",
    "l2_write_sectors": "lts__t_sectors_op_write.sum",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_write_bytes": "dram__bytes_write.sum",
    "l1_hit_rate": "l1tex__t_sector_hit_rate.pct",
    "l2_hit_rate": "lts__t_sector_hit_rate.pct",
    "duration_ns": "gpu__time_duration.sum",
    "achieved_occupancy": f"sm__warps_active.avg.{_BUSY}",
    "sm_busy": f"sm__instruction_throughput.avg.{_BUSY}",
    "tensor_busy": f"sm__pipe_tensor_cycles_active.avg.{_BUSY}",
    "l1_throughput": f"l1tex__throughput.avg.{_BUSY}",
    "memory_busy": "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed",
    "memory_pipes_busy": "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_throughput": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
} | {
    f"stall_{name}": f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio" for name in STALLS
}  # fmt: skip


def names(by_opcode: bool, profiled: bool) -> tuple[str, ...]:
    """Nsight Compute's names of what is read: always the hardware's counters, and those asked for."""
    source = [EXECUTED[0], *(name for name, _ in SOURCE.values())] if by_opcode else []
    return (*HARDWARE.values(), *source, *(PROFILE.values() if profiled else ()))


def value(name: str, text: str) -> float | int | None:
    """A number as the profiler writes it; percentages become fractions. None where it gives none."""
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None
    if name.rpartition(".")[2].startswith("pct"):
        return round(number / 100, 6)
    return int(number) if number.is_integer() else round(number, 6)
