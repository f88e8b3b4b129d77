"""Claims about profilers: which metrics there are, what they count, and what they do not say."""

from functools import cache

from lanewise.claims.claim import Trial, Verdict, at_least, claim
from lanewise.claims.documents import NCU_STALLS, NVPROF
from lanewise.claims.evidence import lanes, recorded, rows

OK, WRONG, IMPRECISE, NC = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE, Verdict.NC

CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld"
EFFICIENCY = "smsp__sass_average_data_bytes_per_wavefront_mem_shared"


@cache
def metrics() -> frozenset[str]:
    """The full names of the metrics that Nsight Compute has on an H200, without suffixes."""
    return frozenset(
        f"{part['part']}__{name}" for part in rows("profiler", "metrics") for name in part["names"]
    )


@claim("CA-02", "profiling", IMPRECISE, "profiling-busy")
def ca_02(trial: Trial) -> str:
    """A value of "SM Busy" near 90 % and a huge number of bank conflicts, while arithmetic has headroom, are
    signs of trouble with shared memory."""
    run = recorded("E-45")
    lost = run.counter("tiled 8192", "shared_conflicts") / run.counter("tiled 8192", "shared_wavefronts")
    trial.stated("share of wavefronts lost in the slow transpose", at_least(0.5), lost, "E-45")
    busy = {label: run.counter(f"{label} 8192", "sm_busy") for label in ("tiled", "padded")}
    trial.wider("SM Busy of the transpose with conflicts", at_least(0.9), busy["tiled"], "E-45")
    memory = run.counter("tiled 8192", "memory_busy")
    return (
        "The conflicts are one, SM Busy is none: it counts issued instructions, and falls where warps wait,"
        f" {busy['tiled']:.0%} with conflicts, {busy['padded']:.0%} without, on an H200. Look at Mem Busy"
        f" ({memory:.0%}) and at the stalls."
    )


@claim("CA-16", "profiling", WRONG, "profiling-names")
def ca_16(trial: Trial) -> str:
    """`shared_efficiency` is a metric of Nsight Compute."""
    named = any(name.endswith("shared_efficiency") for name in metrics())
    trial.stated("Nsight Compute offers it (H200)", True, named, "profiler")
    trial.stated("profiler that has it", "Nsight Compute", "nvprof", NVPROF)
    assert EFFICIENCY in metrics()
    return (
        "It is a metric of nvprof, which does not profile compute capability 8.0 and later. Its heir is"
        f" `{EFFICIENCY}.pct`."
    )


@claim("CA-17", "profiling", IMPRECISE, "profiling-families")
def ca_17(trial: Trial) -> str:
    """`l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld` gives the number of bank conflicts."""
    trial.stated("Nsight Compute offers it (H200)", True, CONFLICTS in metrics(), "profiler")
    quiet = recorded("E-04").counter("tiled 1024", "shared_load_conflicts")
    trial.stated(
        "a transpose with conflicts, small: the same as arithmetic", 31 * 1024 * 1024 // 32, quiet, "E-04"
    )
    busy = recorded("E-20").counter("padded 4096", "shared_load_conflicts")
    trial.wider("a transpose free of conflicts, large", 0, busy, "E-20")
    matrix = recorded("E-11").counter("x4 128 B", "shared_load_conflicts")
    return (
        "It counts wavefronts beyond the fewest, exact in a quiet kernel. In a busy one it counts other"
        f" delays as well: {busy:,} where no address conflicts. Add a suffix, `.sum`; on an H200 it includes"
        f" ldmatrix ({matrix} counted)."
    )


@claim("CA-69", "profiling", WRONG, "profiling-stalls")
def ca_69(trial: Trial) -> str:
    """High `stall_long_sb` and `stall_short_sb` mean that warps wait for shared memory."""
    run = recorded("E-20")
    stalls = {
        kind: run.counter("quiet, stride 32", f"stall_{kind}")
        for kind in ("short_scoreboard", "long_scoreboard")
    }
    trial.stated(
        "short scoreboard, reads of shared memory only, 32-way",
        at_least(10),
        stalls["short_scoreboard"],
        "E-20",
    )
    trial.stated("long scoreboard, the same kernel", at_least(10), stalls["long_scoreboard"], "E-20")
    trial.stated(
        "long scoreboard waits for", "shared memory", "global and local memory, textures", NCU_STALLS
    )
    throttle = run.counter("quiet, stride 32", "stall_mio_throttle")
    return (
        f"Half of it is right: the short one does, {stalls['short_scoreboard']:.0f} cycles an instruction in"
        f" a kernel that only reads shared memory; the long one, {stalls['long_scoreboard']:.1f} there,"
        f" waits for global memory. Conflicts show as MIO throttle as well: {throttle:.0f}."
    )


@claim("CA-70", "profiling", IMPRECISE, "profiling-efficiency")
def ca_70(trial: Trial) -> str:
    """A shared efficiency above 70 % means few conflicts, a low one means many."""
    run = recorded("E-19")
    own = run.counter("own word", "bytes_per_wavefront_fraction")
    trial.stated("floats, no conflict: above 70 %", at_least(0.7), own, "E-19")
    low = {}
    for label in ("bytes", "halves"):
        assert run.counter(label, "shared_load_conflicts") == 0
        low[label] = run.counter(label, "bytes_per_wavefront_fraction")
        trial.wider(f"{label}, no conflict: above 70 %", at_least(0.7), low[label], "E-19")
    fused = lanes("ld.shared.b128", lambda lane: 0 * lane)
    above = 32 * 16 / fused.wavefronts / 128
    return (
        f"It is bytes asked for, per wavefront. Loads of bytes reach {low['bytes']:.0%} and of halves"
        f" {low['halves']:.0%} without a conflict; a broadcast of float4 gets {above:.0%}. Read it together"
        " with the conflicts."
    )


@claim("CA-73", "attention", NC, "attention-claim-stall", private="The kernel is the author's.")
def ca_73(trial: Trial) -> str:
    """In a forward pass of FlashAttention conflicts were only 12 % of the cycles, but made warps idle."""
    more = 1 / (1 - 0.12)
    ratio = recorded("E-38-heads").ratio("flash, row-major n=8192", "flash, swizzled n=8192")
    trial.here(
        "our attention on an H200, without the swizzle: times as long", at_least(1.1), ratio, "E-38-heads"
    )
    return (
        f"The kernel is the author's. 12 % lost are {more:.2f} times the wavefronts, little by themselves."
        f" Our own attention has many more conflicts, and takes {ratio:.1f} times as long with"
        " them as without."
    )


@claim("CA-74", "profiling", OK, "profiling-steps")
def ca_74(trial: Trial) -> str:
    """Six steps: confirm by the profiler, isolate in a micro-benchmark, simulate the addresses, try padding,
    swizzle one matrix first, compare the machine code."""
    cases = rows("reconciliation", "cases")
    total = sum(len(case["totals"]) for case in cases)
    agree = total - sum(len({*case["reasons"], *case["open"]}) for case in cases)
    trial.stated(
        "totals simulated, then counted: share that agrees", at_least(0.95), agree / total, "reconciliation"
    )
    pad = recorded("E-04").ratio("pad 0, 8192", "pad 1, 8192")
    trial.stated(
        "padding shows whether conflicts matter (transpose, times as fast)", at_least(1.2), pad, "E-04"
    )
    return (
        f"A sound list. Simulation is worth its place: of {total:,} totals that we simulated,"
        f" {agree / total:.1%} were counted exactly so on an H200. In the last step look for the instruction"
        " that you meant, such as LDSM."
    )


@claim("CA-75", "profiling", OK, "profiling-claims")
def ca_75(trial: Trial) -> str:
    """If conflicts are few and the kernel is still slow, look elsewhere."""
    run = recorded("E-04")
    trial.stated("conflicts of the naive transpose", 0, run.counter("naive 1024", "shared_conflicts"), "E-04")
    slow = trial.stated("times as long as a copy", at_least(2), run.ratio("naive 8192", "copy 8192"), "E-04")
    return (
        f"The naive transpose has none, and takes {slow:.1f} times as long as a copy on an H200: its stores"
        " are scattered."
    )
