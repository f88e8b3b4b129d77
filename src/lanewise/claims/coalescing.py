"""Claims about coalescing: which sectors a request to global memory touches, and what strides cost."""

from lanewise.claims.claim import Run, Trial, Verdict, about, at_least, at_most, claim
from lanewise.claims.documents import ALLOCATION_ALIGNMENT, GLOBAL_MEMORY, PASCAL
from lanewise.claims.evidence import recorded, sectors, traced
from lanewise.machine import LINE_BYTES, SECTOR_BYTES, SECTORS_PER_LINE, product
from lanewise.memory import GlobalCost

OK, WRONG, IMPRECISE = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE

LOAD = "ld.global.b32"
N = 16_777_216  # floats of an array in article D
RATE_1, RATE_2 = 925.31, 427.34  # GB/s as it prints them, strides 1 and 2
MS_1, MS_2 = 0.1451, 0.1570  # the times that its plots are made of


def floats(stride: int, start: int = 0) -> GlobalCost:
    """Lanes `stride` floats apart, the first at element `start`."""
    return sectors(LOAD, lambda lane: 4 * (start + stride * lane))


def per_request(label: str, op: str = "load", id: str = "E-21") -> float:
    """Sectors a request, as the H200 counted them."""
    run = recorded(id)
    return run.counter(label, f"global_{op}_sectors") / run.counter(label, f"global_{op}_requests")


def dram_reads() -> float:
    """Bytes that DRAM gave with stride 2, over those with stride 1, for arrays of one size (H200)."""
    profiles = (recorded("E-22").profile(f"stride {stride}, 67108864 elements") for stride in (2, 1))
    two, one = (float(profile["dram_read_bytes"]) for profile in profiles)
    return two / one


@claim("CC-07", "coalescing", IMPRECISE, "coalescing-claim-one-transaction")
def cc_07(trial: Trial) -> str:
    """32 lanes inside one contiguous 128 bytes are one transaction."""
    plain = floats(1)
    trial.stated("requests, lines", (1, 1), (plain.requests, plain.lines))
    order = sectors(LOAD, lambda lane: 4 * (lane ^ 21))
    trial.stated("lanes in another order: sectors", plain.sectors, order.sectors)
    trial.wider("the smallest unit is 128 bytes: units", 1, plain.sectors)
    shifted = floats(1, start=1)
    trial.wider("128 bytes that start one float later: lines", 1, shifted.lines)
    trial.wider("the same, counted: sectors", plain.sectors, per_request("start 1"), "E-21")
    return (
        f"It is one request, of {plain.sectors} sectors of 32 bytes. Shifted by one float it takes"
        f" {shifted.sectors} sectors in {shifted.lines} lines; the order of the lanes makes no difference."
    )


@claim("CC-08", "coalescing", OK, "coalescing-sectors")
def cc_08(trial: Trial) -> str:
    """Scattered lanes need dozens of transactions."""
    found = trial.stated("sectors, lanes 256 bytes apart", 32, floats(64).sectors)
    trial.stated("the same, counted", 32.0, per_request("stride 64"), "E-21")
    return f"Up to a sector for each lane: {found}, of which {floats(64).efficiency:.1%} is used."


@claim("CC-09", "coalescing", OK, "coalescing-claim-scattered")
def cc_09(trial: Trial) -> str:
    """A[base + i] is perfectly coalesced, A[base + 64 i] is bad: each lane pays for itself."""
    near, far = floats(1), floats(64)
    trial.stated("sectors, used: A[base + i]", (4, 1.0), (near.sectors, near.efficiency))
    trial.stated("sectors, used: A[base + 64 i]", (32, 0.125), (far.sectors, far.efficiency))
    law = [floats(stride).sectors for stride in range(1, 10)]
    counts = [per_request(f"stride {stride}") for stride in range(1, 9)]
    trial.stated("strides 1 to 8, counted as computed", [float(n) for n in law[:8]], counts, "E-21")
    return (
        f"The bad one moves {far.sectors // near.sectors} times as much. A stride of s floats takes 4 s"
        f" sectors up to s = 8, and {law[-1]} from there on."
    )


@claim("CC-10", "coalescing", WRONG, "coalescing-claim-ampere")
def cc_10(trial: Trial) -> str:
    """Since Ampere the granularity is the 32-byte sector."""
    trial.stated("first generation whose L1 moves 32 bytes", "Ampere (8.0)", "Pascal (6.0)", PASCAL)
    trial.stated("bytes of a sector", 32, SECTOR_BYTES, GLOBAL_MEMORY)
    return (
        f"Sectors of {SECTOR_BYTES} bytes are right, and older: NVIDIA describes them for Pascal, two"
        " generations earlier, and in L2 they are older still."
    )


@claim("CC-11", "coalescing", OK, "coalescing-sectors")
def cc_11(trial: Trial) -> str:
    """A line has 128 bytes, which are four sectors."""
    trial.stated("sectors of a line", 4, SECTORS_PER_LINE, GLOBAL_MEMORY)
    one = floats(1)
    trial.stated("sectors and lines of 128 bytes", (4, 1), (one.sectors, one.lines))
    return f"{LINE_BYTES} / {SECTOR_BYTES} = {one.sectors}. Only the sectors that are needed travel."


@claim("CC-12", "coalescing", OK, "coalescing-claim-scattered")
def cc_12(trial: Trial) -> str:
    """4-byte reads 128 bytes apart use 4 of 32 bytes of each sector."""
    found = floats(32)
    trial.stated("share used", 0.125, found.efficiency)
    trial.stated("sectors a request, counted", 32.0, per_request("stride 32"), "E-21")
    moved = recorded("E-27").profile("one of 32")["dram_read_bytes"]
    each = moved / (268_435_456 / 32)
    return (
        f"{found.bytes_requested} of {found.bytes_moved} bytes. From DRAM it is worse: an H200 read"
        f" {each:.0f} bytes for each such float, two sectors."
    )


@claim("CC-14", "coalescing", IMPRECISE, "coalescing-claim-vector")
def cc_14(trial: Trial) -> str:
    """Vector loads such as float4 improve coalescing and the efficiency of sectors."""
    field = sectors(LOAD, lambda lane: 16 * lane)
    whole = sectors("ld.global.b128", lambda lane: 16 * lane)
    trial.stated("records of four floats: share used, at once", 1.0, whole.efficiency)
    trial.stated("records of four floats: share used, field by field", at_most(0.5), field.efficiency)
    copies = {width: traced("E-24", f"{width}, 256 threads").global_.load for width in ("copy", "copy4")}
    run = Run("traces of `copy` and `copy4`")
    used = {width: load.bytes_requested / load.bytes_moved for width, load in copies.items()}
    trial.wider("contiguous data: float4 uses more of its sectors", True, used["copy4"] > used["copy"], run)
    fewer = copies["copy"].requests / copies["copy4"].requests
    faster = recorded("E-24").ratio("copy, 256 threads", "copy4, 256 threads")
    return (
        f"For records, yes: {field.efficiency:.0%} becomes {whole.efficiency:.0%}. Contiguous data is used to"
        f" {used['copy']:.0%} at any width. The gain there is {fewer:.0f} times fewer requests with more"
        f" bytes in flight: {faster:.2f} times as fast on an H200."
    )


@claim("CC-33", "coalescing", OK, "coalescing-claim-aligned")
def cc_33(trial: Trial) -> str:
    """cudaMalloc gives aligned memory; offsets into it may be misaligned."""
    trial.stated("bytes that cudaMalloc aligns to, at least", at_least(256), 256, ALLOCATION_ALIGNMENT)
    for start, needed in ((0, 4), (1, 5), (8, 4)):
        trial.stated(f"sectors from element {start}", needed, floats(1, start).sectors)
        trial.stated(f"from element {start}, counted", float(needed), per_request(f"start {start}"), "E-21")
    slower = recorded("E-21").ratio("start 1", "start 0") - 1
    return (
        f"One float off costs a fifth sector, {floats(1, 1).sectors} for {floats(1).sectors}, and on an H200"
        f" {slower:.0%} of the time: the next warp asks for that sector too."
    )


@claim("CD-04", "coalescing", IMPRECISE, "coalescing-claim-one-transaction")
def cd_04(trial: Trial) -> str:
    """With stride 1 a warp's access is one transaction of 128 bytes."""
    found = floats(1)
    trial.stated("requests and bytes", (1, 128), (found.requests, found.bytes_moved))
    trial.wider("units that it moves", 1, found.sectors, GLOBAL_MEMORY)
    return f"One request, and {found.sectors} sectors of 32 bytes: the unit that is counted and paid for."


@claim("CD-05", "coalescing", WRONG, "coalescing-claim-merge")
def cd_05(trial: Trial) -> str:
    """With stride 2 the accesses cannot be merged."""
    found = trial.stated("sectors; 32 if nothing were merged", 32, floats(2).sectors)
    trial.stated("the same, counted", 32.0, per_request("stride 2, 16384 elements", id="E-22"), "E-22")
    return (
        f"They are: {found} sectors, four lanes to each, in {floats(2).lines} lines. Half of what moves is"
        f" used ({floats(2).efficiency:.0%})."
    )


@claim("CD-06", "coalescing", WRONG, "coalescing-claim-halves")
def cd_06(trial: Trial) -> str:
    """Strides 1 and 2 move the same data, and the effective bandwidth is halved: 925 against 427 GB/s."""
    elements = RATE_2 * MS_2 * 1e6 / 8
    trial.stated("elements doubled with stride 2, from rate and time", about(N, 0.02), elements)
    both = [traced("E-22", "stride 2, 16384 elements"), traced("E-21", "neighbours")]
    moved = [found.global_.total.bytes_moved for found in both]
    trial.stated("bytes of sectors moved, 16,384 elements", moved[1], moved[0], Run("traces of both kernels"))
    run = recorded("E-22")
    once, twice = (run.us(f"stride {s}, 67108864 elements") for s in (1, 2))
    real = 2 * 4 * N / MS_2 / 1e6
    return (
        f"The second run doubles {elements / N:.0%} of the elements. It moves every sector of both arrays, at"
        f" {real:.0f} GB/s. On an H200 it takes {twice:.0f} instead of {once:.0f} µs, while DRAM reads"
        f" {dram_reads():.2f} times as much. Say which bytes are counted: useful ones, sectors, or DRAM."
    )


@claim("CD-07", "coalescing", IMPRECISE, "coalescing-claim-more")
def cd_07(trial: Trial) -> str:
    """With stride 2 the number of transactions clearly increases."""
    one, two = floats(1).sectors, floats(2).sectors
    trial.stated("a request: times as many sectors", 2.0, two / one)
    strided = traced("E-22", "stride 2, 16384 elements").global_.total
    plain = traced("E-21", "neighbours").global_.total
    assert strided.sectors == plain.sectors
    total = strided.sectors / plain.sectors
    trial.wider("the whole run: times as many sectors", at_least(1.5), total, Run("traces of both kernels"))
    return (
        f"A request takes {two} sectors instead of {one}. But the run makes half as many requests. For arrays"
        f" of the same size both take {strided.sectors:,} in all."
    )


@claim("CD-08", "coalescing", IMPRECISE, "coalescing-claim-halves")
def cd_08(trial: Trial) -> str:
    """0.46x shows what coalescing is worth."""
    trial.stated("427 / 925", about(0.46, 0.01), RATE_2 / RATE_1)
    slower = MS_2 / MS_1
    trial.wider("time of the strided run, for the same work", about(2.17, 0.05), slower)
    run = recorded("E-22")
    here = run.ratio("stride 2, 67108864 elements", "stride 1, 67108864 elements")
    trial.wider("the same on an H200", about(2.17, 0.05), here, "E-22")
    return (
        f"The time grew by {slower - 1:.1%}, for half the work: {2 * slower:.2f} times per useful element."
        f" Sectors explain {floats(2).sectors / floats(1).sectors:.1f}. Sectors written in half must be read"
        f" first: DRAM reads {dram_reads():.2f} times the bytes on an H200, where an element costs"
        f" {2 * here:.2f} times."
    )


@claim("CD-09", "coalescing", OK, "coalescing-claim-halves")
def cd_09(trial: Trial) -> str:
    """925 GB/s is close to the peak of an RTX 4090."""
    share = RATE_1 / product("RTX 4090").dram_gb_per_s
    trial.stated("share of 1,008 GB/s", at_least(0.9), share)
    best = recorded("E-24").gb_per_s("copy4, 256 threads") / product("H200").dram_gb_per_s
    trial.stated("our best copy on an H200, share of its peak", at_least(0.85), best, "E-24")
    return f"{share:.1%} of nominal. A copy gets no further: our best reaches {best:.1%} on an H200."


@claim("CD-12", "coalescing", IMPRECISE, "coalescing-claim-sizes")
def cd_12(trial: Trial) -> str:
    """Four arrays of 64 MB are of the order of L2, 72 MB, which hides differences."""
    l2 = 72 * 1e6
    trial.stated("one array of 64 MiB over L2", at_most(1), 4 * N / l2)
    moved = 2 * 4 * 4 * N
    times = trial.wider("all that is read and written over L2", at_most(2), moved / l2)
    return (
        f"{moved / 1e6:.0f} MB pass through, {times:.1f} times the cache, so it hides little. The warning is"
        f" right for the strides, where each array has {4 * N / 1e6:.0f} MB."
    )


@claim("CD-24", "coalescing", OK, "coalescing-l2")
def cd_24(trial: Trial) -> str:
    """Data that fit into L2 hide what a stride costs; enlarge them."""
    run = recorded("E-23")
    cost = {n: run.ratio(f"stride 8, 2^{n} elements", f"stride 1, 2^{n} elements") for n in (16, 22, 26)}
    trial.stated("stride 8, 64 MiB or more: times as long", at_least(5), cost[26], "E-23")
    trial.stated("stride 8, 16 MiB", at_most(4), cost[22], "E-23")
    trial.stated("stride 8, 256 KiB", at_most(1.2), cost[16], "E-23")
    return (
        f"On an H200, stride 8 costs {cost[16]:.1f} times the time at 2^16 elements,"
        f" {cost[22]:.1f} at 2^22 and {cost[26]:.1f} at 2^26. The count of sectors is 8 times throughout."
    )


@claim("CD-25", "coalescing", OK, "coalescing-claim-cache")
def cd_25(trial: Trial) -> str:
    """Caches do not turn a scattered pattern into a coalesced one."""
    scattered, near = (
        traced("E-43", f"sum_{name} of 8, 64 KiB").global_.load for name in ("runs", "columns")
    )
    more = scattered.sectors / near.sectors
    trial.stated("runs of 8: times the sectors of requests", at_least(4), more, Run("traces of `sum_runs`"))
    run = recorded("E-43")
    slow = run.ratio("sum_runs of 32, 1 GiB", "sum_columns of 32, 1 GiB")
    trial.stated("runs of 32, a gibibyte: times as long", at_least(2), slow, "E-43")
    hit = run.profile("sum_runs of 32, 1 GiB")["l1_hit_rate"]
    fast = run.ratio("sum_runs of 8, 1 GiB", "sum_columns of 8, 1 GiB")
    return (
        f"The requests stay {more:.0f} times as heavy, and with {hit:.0%} hits in L1 runs of 32 are"
        f" {slow:.1f} times as slow on an H200. But caches can save the DRAM traffic: runs of 8 take"
        f" {fast:.2f} of the time of coalesced reads."
    )


@claim("CD-26", "coalescing", OK, "coalescing-claim-halves")
def cd_26(trial: Trial) -> str:
    """The times and bandwidths that article D prints belong together."""
    printed = (  # GB/s, ms as printed, bytes
        ("stride 1", 925.31, 0.15, 8 * N),
        ("stride 2, half of the elements", 427.34, 0.16, 4 * N),
        ("array of structures", 922.31, 0.58, 32 * N),
        ("structure of arrays", 912.82, 0.59, 32 * N),
        ("no conflict", 879.49, 0.15, 8 * N),
        ("32-way", 740.07, 0.18, 8 * N),
        ("padded", 826.01, 0.16, 8 * N),
        ("one stage", 898.00, 0.60, 32 * N),
        ("three stages", 856.55, 0.63, 32 * N),
    )
    for name, rate, ms, bytes_ in printed:
        trial.stated(f"{name}: ms", ms, round(bytes_ / rate / 1e6, 2))
    return f"All {len(printed)} agree, once the bytes are known: two of each array's, and half for stride 2."


@claim("CC-48", "profiling", OK, "profiling-hit-rate")
def cc_48(trial: Trial) -> str:
    """A hit rate of 95 % in L1 proves nothing."""
    run = recorded("E-43")
    label = "sum_runs of 32, 1 GiB"
    hit = trial.stated("hit rate of a slow kernel", at_least(0.75), run.profile(label)["l1_hit_rate"], "E-43")
    slow = run.ratio(label, "sum_columns of 32, 1 GiB")
    trial.stated("times as long as one with no hits", at_least(2), slow, "E-43")
    none = trial.stated(
        "hit rate of the fast one",
        at_most(0.05),
        run.profile("sum_columns of 32, 1 GiB")["l1_hit_rate"],
        "E-43",
    )
    return (
        f"With {hit:.0%} hits a sum of runs takes {slow:.1f} times as long on an H200 as with {none:.0%}: it"
        " reads one float of each sector at a time and comes back for the others. A rate says nothing about"
        " how many requests there need be."
    )


@claim("CC-44", "profiling", IMPRECISE, "profiling-hit-rate")
def cc_44(trial: Trial) -> str:
    """A low hit rate in L2 means that accesses are scattered."""
    run = recorded("E-23")
    scattered = run.profile("stride 8, 2^28 elements")["l2_hit_rate"]
    near = run.profile("stride 1, 2^28 elements")["l2_hit_rate"]
    trial.stated("stride 8 has fewer hits than stride 1", True, scattered < near, "E-23")
    stream = recorded("E-43").profile("sum_columns of 32, 1 GiB")["l2_hit_rate"]
    trial.wider("a coalesced stream of a gibibyte: hit rate", at_least(0.3), stream, "E-43")
    gather = recorded("E-39")
    lone = gather.profile("lanes, 4096 tokens")["l2_hit_rate"]
    trial.wider("a scattered gather: hit rate", at_most(0.3), lone, "E-39")
    return (
        f"A stream that is read once hits nothing, however well it is coalesced: {stream:.0%} on an H200. A"
        f" scattered gather hits {lone:.0%}. Ask for sectors per request instead."
    )
