"""Claims about measuring: how profilers are called, what their sections show and their numbers leave open."""

from functools import cache

from lanewise.claims.claim import Trial, Verdict, at_least, at_most, claim
from lanewise.claims.documents import NCU_CLI, NCU_METRICS, NCU_REPLAY, NCU_SECTIONS, NVPROF_RETIRED, TMA
from lanewise.claims.evidence import lanes, recorded, rows, sectors
from lanewise.claims.profiling import metrics
from lanewise.machine import MACHINES, from_name, occupancy, product
from lanewise.tma import TmaMode

OK, WRONG, IMPRECISE = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE

PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld"
PER_REQUEST = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld"


@cache
def sections() -> dict[str, str]:
    """The sections that Nsight Compute offers on an H200: identifier and title."""
    return {row["identifier"]: row["name"] for row in rows("profiler", "sections")}


@claim("CB-20", "profiling", OK, "profiling-names")
def cb_20(trial: Trial) -> str:
    """nvprof does not support compute capability 8.0 and later."""
    trial.stated("highest capability of nvprof is below", (8, 0), (8, 0), NVPROF_RETIRED)
    left = [machine.name for machine in MACHINES.values() if machine.capability < (8, 0)]
    without = len(MACHINES) - len(left)
    trial.stated("an H200 is one of those without it", True, product("H200").capability >= (8, 0))
    return (
        f"Of the {len(MACHINES)} generations in this course {without} are without it; {', '.join(left)} is"
        " left."
    )


@claim("CB-21", "profiling", OK, "profiling-no-counters")
def cb_21(trial: Trial) -> str:
    """Nsight Compute replays a kernel, so the run under it is no baseline for time."""
    trial.stated("passes over a kernel", "several", "several", NCU_REPLAY)
    run = recorded("E-22")
    label = "stride 1, 67108864 elements"
    profiled = run.profile(label)
    read = profiled["dram_read_bytes"] / (4 * 67_108_864)
    trial.stated("a kernel's own traffic is counted once", True, 0.9 < read < 1.1, "E-22")
    n_counters = len(profiled)
    trial.stated(
        "counters of one kernel in our record, more than fit one pass", at_least(10), n_counters, "E-22"
    )
    return (
        f"Our {n_counters} counters of a kernel took several passes, each from restored memory. Times in this"
        " course are from runs without a profiler."
    )


@claim("CB-22", "profiling", OK, "profiling-commands")
def cb_22(trial: Trial) -> str:
    """`ncu --kernel-name regex:.. --launch-skip 10 --launch-count 1` profiles one launch after ten."""
    for option, meaning in (
        ("--kernel-name regex:", "kernels whose name matches"),
        ("--launch-skip", "matching launches to skip"),
        ("--launch-count", "launches to profile"),
    ):
        trial.stated(option, meaning, meaning, NCU_CLI)
    return "As documented. Launches that do not match are not counted among the ten."


@claim("CB-23", "profiling", IMPRECISE, "profiling-commands")
def cb_23(trial: Trial) -> str:
    """The sections MemoryWorkloadAnalysis and SourceCounters are enough to see shared wavefronts and
    conflicts."""
    for name in ("MemoryWorkloadAnalysis", "SourceCounters"):
        trial.stated(f"{name} exists (H200)", True, name in sections(), "profiler")
    table = "MemoryWorkloadAnalysis_Tables"
    assert table in sections()
    trial.stated("SourceCounters has wavefronts, line by line", True, True, NCU_SECTIONS)
    trial.wider("section with the table of shared memory", "MemoryWorkloadAnalysis", table, NCU_SECTIONS)
    return f"Add `--section {table}`: the first of the two prints rates and hit rates only."


@claim("CB-25", "profiling", OK, "profiling-families")
def cb_25(trial: Trial) -> str:
    """Aggregate counters may contain contention of other kinds than bank conflicts."""
    run, problem = recorded("E-20"), "transpose 4096x4096"
    computed = lanes("ld.shared.b32", lambda lane: 4 * 33 * lane).excess
    trial.stated("padded transpose: conflicts by its addresses", 0, computed)
    counts = run.counter("padded 4096", "shared_conflicts", problem)
    trial.stated("padded transpose: conflicts counted in a busy kernel", at_least(1), counts, "E-20")
    quiet = run.counter("quiet, stride 1", "shared_conflicts")
    trial.stated("a quiet kernel without conflicts: counted", 0, quiet, "E-20")
    share = counts / run.counter("padded 4096", "shared_wavefronts", problem)
    return (
        f"{counts:,.0f} conflicts are counted where no address makes one, {share:.1%} of the wavefronts:"
        " presumably waits for other users of the same data path. Confirm at the line of the source."
    )


@claim("CB-27", "swizzle", OK, "swizzle-tma")
def cb_27(trial: Trial) -> str:
    """The swizzle modes of TMA, with rules of their own for rows and alignment, exist only on GPUs that have
    TMA."""
    having = [machine.capability for machine in MACHINES.values() if machine.supports("tma")]
    trial.stated("lowest compute capability with TMA", (9, 0), min(having), TMA)
    trial.stated("an A100 has it", False, from_name("sm_80").supports("tma"), TMA)
    alignments = {size: TmaMode(size).alignment_bytes for size in (32, 64, 128)}
    trial.stated(
        "alignment of tiles with rows of 32, 64, 128 bytes", (256, 512, 1024), tuple(alignments.values())
    )
    return (
        f"From compute capability 9.0 on. Tiles must then start at multiples of {alignments[32]},"
        f" {alignments[64]} or {alignments[128]} bytes, by mode."
    )


@claim("CC-13", "profiling", IMPRECISE, "profiling-top")
def cc_13(trial: Trial) -> str:
    """In the section Memory Workload Analysis, "Memory Throughput" is the distance to the peak."""
    trial.stated(
        "the section exists (H200)", True, "Memory Workload Analysis" in sections().values(), "profiler"
    )
    trial.wider("unit of Memory Throughput there", "% of peak", "GB/s", NCU_SECTIONS)
    light = sections()["SpeedOfLight"]
    return (
        f'There it is a rate, in GB/s. The share of the peak is in "{light}"; the section itself has Mem'
        " Busy, Max Bandwidth and Mem Pipes Busy as shares."
    )


@claim("CC-43", "profiling", OK, "profiling-order")
def cc_43(trial: Trial) -> str:
    """If DRAM throughput is low and memory throughput high, the limit is L1, L2 or shared memory."""
    run = recorded("E-45")
    dram, busy = (run.counter("tiled 8192", name) for name in ("dram_throughput", "memory_busy"))
    trial.stated("transpose with conflicts: DRAM busy", at_most(0.5), dram, "E-45")
    trial.stated("memory busy", at_least(0.7), busy, "E-45")
    gain = run.ratio("tiled 8192", "padded 8192")
    trial.stated("it gains from padding, so shared memory was the limit", at_least(1.2), gain, "E-45")
    swapped = recorded("E-30").profile("exchanged, 32x32", "sgemm 2048x2048x2048")
    return (
        f"DRAM {dram:.0%}, memory {busy:.0%}: this transpose, the tiled one of our ladder, becomes"
        f" {gain:.2f} times as fast without its conflicts on an H200. A naive product with exchanged indices"
        f" has {swapped['dram_throughput']:.0%} and {swapped['memory_busy']:.0%}: there it is L1."
    )


@claim("CC-45", "profiling", WRONG, "profiling-occupancy")
def cc_45(trial: Trial) -> str:
    """If achieved occupancy is below the theoretical one, look for limits by registers or shared memory."""
    run = recorded("E-42")
    held = run.row("one wave")["blocks_per_sm"]
    full = occupancy("sm_90", 256).blocks_per_sm
    achieved = run.profile("one wave")["achieved_occupancy"]
    assert achieved < 0.9
    trial.stated("blocks that registers or shared memory keep out of a kernel with such a gap", at_least(1),
                 full - held, "E-42")  # fmt: skip
    slow = run.ratio("one wave, its last block ten times as long", "one wave")
    return (
        f"Those set the theoretical value: here {held} blocks of 256 threads, all that fit. Still"
        f" {achieved:.0%} is achieved: warps begin and end at different times. A gap means tails and"
        f" imbalance: one block that works ten times as long makes the kernel {slow:.1f} times as long."
    )


@claim("CC-46", "profiling", IMPRECISE, "profiling-names")
def cc_46(trial: Trial) -> str:
    """A low "sector efficiency" shows that accesses are not coalesced."""
    near, far = (sectors("ld.global.b32", lambda lane, s=s: 4 * s * lane).efficiency for s in (1, 8))  # type: ignore[misc]
    trial.stated("share of sectors used, strides 1 and 8", (1.0, 0.125), (near, far))
    named = any("sector_efficiency" in name for name in metrics())
    trial.wider("Nsight Compute has a metric of this name (H200)", True, named, "profiler")
    for name in (PER_SECTOR, PER_REQUEST):
        assert name in metrics(), NCU_METRICS
    return (
        f"The idea is right, {near:.0%} against {far:.1%}. Ask for `{PER_SECTOR}.pct` or"
        f" `{PER_REQUEST}.ratio`."
    )
