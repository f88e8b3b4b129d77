"""Claims about the matrix product in float32: what the naive kernel reads, what tiles bring and cost."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from lanewise.claims.claim import Run, Trial, Verdict, about, at_least, at_most, claim
from lanewise.claims.evidence import MISALIGNED, column, lanes, or_misaligned, recorded, traced
from lanewise.claims.widths import wide_column
from lanewise.machine import KB, occupancy, product

if TYPE_CHECKING:
    from lanewise.trace import Trace

OK, WRONG, IMPRECISE, HW, NC = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE, Verdict.HW, Verdict.NC

LANE = np.arange(32)
X, Y = LANE % 16, LANE // 16  # of a warp in a block of 16 x 16 threads
MIDDLE, LARGE = "sgemm 2048x2048x2048", "sgemm 4096x4096x4096"
NAIVE, TILED = Run("trace of `naive`"), Run("trace of `tiled_16`")


def each(found: Trace, array: str, op: str = "load", unit: str = "sectors") -> float:
    """Sectors, wavefronts or others for each request to one array."""
    sites = [site for site in found.sites if (site.array, site.op) == (array, op)]
    return float(sum(getattr(site, unit) for site in sites) / sum(site.requests for site in sites))


def naive(label: str) -> Trace:
    """The naive product, `"16x16"` or `"32x32"`, or with `"exchanged, "` before it."""
    return traced("E-30", label, "sgemm 64x64x64")


def intensity(n: int, tile: int = 1) -> float:
    """FLOP per byte if a block of `tile` x `tile` threads reads each element once, and no cache helps."""
    return 2 * n**3 / (4 * (2 * n**3 / tile + n * n))


@cache
def times_read(tile: int, n: int = 64) -> float:
    """How often each element of A is read from global memory by the tiled kernel."""
    from lanewise.kernels import sgemm
    from lanewise.trace import trace

    kernel = {16: sgemm.tiled_16, 32: sgemm.tiled_32}[tile]
    A = np.ones((n, n), np.float32)
    C = np.zeros((n, n), np.float32)
    found = trace(kernel, sgemm.grid_of(C, tile), (tile, tile), A, A.copy(), C)
    loads = [site for site in found.global_.load.sites if site.array == "A"]
    return float(sum(site.bytes_requested for site in loads) / A.nbytes)


@claim("CB-17", "sgemm", OK, "sgemm-tiles")
def cb_17(trial: Trial) -> str:
    """In a product all lanes may read the same element of A's tile, a broadcast, or different rows of it, a
    conflict: one must know what each lane reads."""
    same = trial.stated(
        "one row for all lanes: wavefronts", 1, lanes("ld.shared.b32", lambda lane: 0 * lane + 40).wavefronts
    )
    rows = trial.stated("a row for each lane, pitch 32", 32, column(32))
    by_rows = each(traced("E-31", "16x16 tiles"), "a_tile", unit="wavefronts")
    by_columns = each(traced("E-31", "columns, pitch 16"), "a_tile", unit="wavefronts")
    trial.stated("our 16 x 16 tiles, two rows in a warp", 1.0, by_rows, TILED)
    trial.stated("the same tiles, x along the rows", 8.0, by_columns, Run("trace of `columns_16`"))
    run = recorded("E-31")
    slow = run.ratio("columns, pitch 16", "16x16 tiles")
    return (
        f"{same} wavefront or {rows}. Exchanging x and y in our product takes {by_rows:.0f} to"
        f" {by_columns:.0f}, and the whole to {slow:.1f} times the time on an H200."
    )


@claim("CC-16", "banks", WRONG, "banks-claim-doubles")
def cc_16(trial: Trial) -> str:
    """A bank conflict doubles the time of the warp's access."""
    two = lanes("ld.shared.b32", lambda lane: 8 * lane).wavefronts
    trial.stated("stride 2: times the wavefronts", 2, two)
    ways = {n: column(n) for n in (4, 8, 16, 32)}
    for n, found in ways.items():
        trial.stated(f"stride {n}: times the wavefronts", 2, found)
    run = recorded("E-01")
    slow = run.ratio("stride 32, 1056 blocks", "stride 1, 1056 blocks")
    trial.stated("stride 32, full H200: times the time", about(2, 0.1), slow, "E-01")
    return f"That is the mildest. An n-way conflict takes n wavefronts, up to {ways[32]}."


@claim("CC-17", "sgemm", WRONG, "sgemm-claim-scattered")
def cc_17(trial: Trial) -> str:
    """In the naive product with blocks of 16 x 16, the reads of A are completely scattered."""
    small, wide = naive("16x16"), naive("32x32")
    found = trial.stated("sectors a read of A", at_least(16), each(small, "A"), NAIVE)
    run = recorded("E-30")
    loads = run.counter("16x16", "global_load_requests", "sgemm 64x64x64")
    both = run.counter("16x16", "global_load_sectors", "sgemm 64x64x64") / loads
    assert both == (each(small, "A") + each(small, "B")) / 2
    swapped = each(naive("exchanged, 32x32"), "A")
    return (
        f"A warp reads {found:.0f} sectors of A, one for each of its two rows, and a broadcast of"
        f" {each(wide, 'A'):.0f} with blocks of 32 x 32. It is scattered if x runs down the rows:"
        f" {swapped:.0f} sectors."
    )


@claim("CC-18", "sgemm", WRONG, "sgemm-claim-reuse")
def cc_18(trial: Trial) -> str:
    """Nothing is reused in the naive product: each element is read by one thread, once."""
    found, n = naive("16x16"), 64
    requests = sum(site.requests for site in found.global_.load.sites if site.array == "A")
    readers = requests * 32 / (n * n)
    trial.stated(f"threads that read an element of A, N = {n}", 1.0, readers, NAIVE)
    run = recorded("E-30")
    hit = run.profile("16x16", MIDDLE)["l1_hit_rate"]
    trial.stated("hits in L1 (H200)", at_most(0.5), hit, "E-30")
    moved = run.profile("16x16", MIDDLE)["dram_read_bytes"] / (2 * 4 * 2048**2)
    return (
        f"N threads read it, {readers:.0f} here, 16 of them at once. On an H200 {hit:.0%} of the sectors are"
        f" hits in L1, and DRAM gives each matrix {moved:.2f} times."
    )


@claim("CC-19", "sgemm", WRONG, "sgemm-claim-intensity")
def cc_19(trial: Trial) -> str:
    """The naive product has an intensity of about 0.5 FLOP per byte."""
    for n in (256, 1024, 4096):
        trial.stated(f"FLOP per byte, N = {n}", about(0.5), intensity(n))
    return f"Two operations for two floats, which are 8 bytes: {intensity(4096):.2f}, half of that."


@claim("CC-20", "sgemm", WRONG, "sgemm-claim-intensity")
def cc_20(trial: Trial) -> str:
    """The naive product lies hundreds of times below the balance of the GPU."""
    low = {name: product(name).ridge_fp32 / intensity(4096) for name in ("A100 40GB", "H200")}
    for name, below in low.items():
        trial.stated(f"times below the float32 balance, {name}", at_least(200), below)
    roof = intensity(4096) * 616
    trial.stated("its own 350 GFLOP/s stay under the roof without reuse (RTX 2080 Ti)", at_most(154), 350)
    busy = recorded("E-30").profile("16x16", MIDDLE)
    return (
        f"{low['A100 40GB']:.0f} times on an A100, {low['H200']:.0f} on an H200. And caches lift it: without"
        f" reuse 616 GB/s would admit {roof:.0f} GFLOP/s, and the article measured 350. On an H200 DRAM is"
        f" {busy['dram_throughput']:.1%} busy, L1 {busy['l1_throughput']:.0%}, the schedulers of instructions"
        f" {busy['sm_busy']:.0%}: they come nearest to a limit."
    )


@claim("CC-21", "sgemm", OK, "sgemm-claim-scattered")
def cc_21(trial: Trial) -> str:
    """The naive product reads B coalesced."""
    wide, small = naive("32x32"), naive("16x16")
    trial.stated("sectors a read of B, 32 x 32", 4.0, each(wide, "B"), NAIVE)
    trial.stated("sectors a read of B, 16 x 16", 2.0, each(small, "B"), NAIVE)
    used = each(small, "B", unit="bytes_requested") / each(small, "B", unit="bytes_moved")
    trial.stated("share used", 1.0, used, NAIVE)
    return (
        f"{each(wide, 'B'):.0f} full sectors, or {each(small, 'B'):.0f} where two rows of threads read the"
        " same 16 columns."
    )


@claim("CC-22", "sgemm", WRONG, "sgemm-claim-once")
def cc_22(trial: Trial) -> str:
    """With tiles of 16 x 16 each element of global memory is read once."""
    n = 64
    found = trial.stated(f"times that an element of A is read, N = {n}", 1.0, times_read(16), TILED)
    return (
        f"Once by each block that needs it: N / 16 times, {found:.0f} here, and {times_read(32):.0f} with"
        f" tiles of 32. Without tiles it would be {n}."
    )


@claim("CC-23", "sgemm", OK, "sgemm-claim-once")
def cc_23(trial: Trial) -> str:
    """Tiles bring global traffic from O(N^3) down to O(N^3 / tile)."""
    for tile in (16, 32):
        trial.stated(f"times an element is read, N = 64, tile {tile}", 64 / tile, times_read(tile), TILED)
    n = 1024
    up = {tile: intensity(n, tile) for tile in (1, 16, 32)}
    gain = recorded("E-31").ratio("16x16", "16x16 tiles")
    trial.stated("times as fast as naive (H200)", at_least(2), gain, "E-31")
    return (
        f"The intensity rises from {up[1]:.2f} to {up[16]:.2f} and {up[32]:.2f} at N = {n:,}: still below the"
        f" {product('H200').ridge_fp32:.1f} of an H200, where L2 must help. Tiles make it {gain:.1f} times as"
        " fast there."
    )


@claim("CC-24", "sgemm", WRONG, "sgemm-claim-conflict")
def cc_24(trial: Trial) -> str:
    """In that product, reading As[i][k] of a tile [16][16] conflicts badly."""
    tiles = traced("E-31", "16x16 tiles")
    found = trial.stated(
        "wavefronts a read of A's tile", at_least(2), each(tiles, "a_tile", unit="wavefronts"), TILED
    )
    counts = recorded("E-31").counter("16x16 tiles", "shared_load_conflicts")
    trial.stated("conflicts of all reads, counted", at_least(1), counts, "E-31")
    other = lanes("ld.shared.b32", lambda _: 4 * 16 * X).wavefronts
    return (
        f"i is the row of the thread, so a warp reads two words, from banks k and k + 16: {found:.0f}"
        f" wavefront. If i were its column, the 16 rows would take {other}."
    )


@claim("CC-25", "sgemm", WRONG, "sgemm-claim-conflict")
def cc_25(trial: Trial) -> str:
    """A tile [16][17] removes that conflict."""
    before = traced("E-31", "16x16 tiles").shared.total.excess
    after = traced("E-31", "pitch 17").shared.total.excess
    trial.stated("wavefronts lost before", at_least(1), before, TILED)
    trial.stated("and with the pad", 0, after, Run("trace of `padded_16`"))
    run = recorded("E-31")
    store = run.counter("pitch 17", "shared_store_wavefronts") / run.counter(
        "pitch 17", "shared_store_instructions"
    )
    slow = run.ratio("pitch 17", "16x16 tiles")
    return (
        "It adds one: two rows of 16, now 17 words apart, overlap in a bank, and each store takes"
        f" {store:.0f} wavefronts. On an H200 the product takes {slow:.2f} times the time, also because rows"
        " of 17 floats cannot be read by 16 bytes."
    )


@claim("CC-26", "sgemm", OK, "sgemm-claim-tile-size")
def cc_26(trial: Trial) -> str:
    """An A100 has 164 KB of shared memory per multiprocessor; tiles of 32 x 32 take 8 KB, so several blocks
    fit."""
    from_sheet = occupancy("sm_80", 1024, shared_bytes=2 * 32 * 32 * 4)
    trial.stated("KB of two tiles of floats", 8, 2 * 32 * 32 * 4 // KB)
    blocks = trial.stated("blocks of 1,024 threads that fit", at_least(2), from_sheet.blocks_per_sm)
    limits = from_sheet.limits
    return (
        f"Shared memory would admit {limits['shared']} blocks. Threads are scarcer: a block of 32 x 32 has"
        f" 1,024, and {blocks} fit."
    )


@claim("CC-27", "sgemm", IMPRECISE, "sgemm-claim-tile-size")
def cc_27(trial: Trial) -> str:
    """Tiles of 128 x 128 need 128 KB, so one block fits."""
    size = {depth: 2 * 128 * depth * 4 for depth in (128, 16, 8)}
    trial.stated("KB of two tiles of 128 x 128 floats", 128, size[128] // KB)
    trial.stated("blocks that fit (A100)", 1, occupancy("sm_80", 256, shared_bytes=size[128]).blocks_per_sm)
    for depth in (16, 8):
        trial.wider(f"a 128 x 128 tile of C, at depth {depth}: KB", 128, size[depth] // KB)
    blocks = occupancy("sm_80", 256, 128, size[8]).blocks_per_sm
    return (
        f"Only at depth 128. The tile of C is in registers; A and B need {size[8] // KB} KB at depth 8 and"
        f" {size[16] // KB} at 16. With 128 registers a thread {blocks} blocks of 256 threads fit."
    )


@claim("CC-28", "sgemm", OK, "sgemm-claim-coarsening")
def cc_28(trial: Trial) -> str:
    """A thread should compute 4 x 4 or 8 x 8 results, for reuse in registers and loads of float4."""
    run = recorded("E-31")
    gain = trial.stated("4 x 4: times as fast (H200)", at_least(1.5), run.ratio("32x32 tiles", "4x4"), "E-31")
    more = trial.stated("8 x 8 with float4", at_least(1.5), run.ratio("32x32 tiles", "fragments"), "E-31")
    adjacent = lanes("ld.shared.b128", lambda _: 32 * X).wavefronts
    split = lanes("ld.shared.b128", lambda _: 16 * X).wavefronts
    a = lanes("ld.shared.b128", lambda _: 32 * Y).wavefronts
    trial.stated("wavefronts, columns 4 x and 64 + 4 x", 4, split)
    trial.stated("wavefronts of A, shared by 16 lanes", 2, a)
    return (
        f"The largest step of our ladder: {gain:.1f} and {more:.1f} times as fast on an H200. Place the"
        f" columns with care: 8 neighbours a thread take {adjacent} wavefronts a load, two groups of 4 take"
        f" {split}."
    )


@claim("CC-29", "sgemm", NC, "sgemm-claim-speed", private="The kernels and the measurement are the author's.")
def cc_29(trial: Trial) -> str:
    """From 350 to 1,800 GFLOP/s by tiles of 32 x 16, padding and float4 (RTX 2080 Ti)."""
    told = 1800 / 350
    trial.stated("of 13.45 TFLOP/s, in percent", (2.6, 13.4), (round(350 / 134.5, 1), round(1800 / 134.5, 1)))
    roof = 616 * 2 * 32 * 16 / (4 * (32 + 16))
    trial.stated("GFLOP/s that such tiles admit without L2", at_least(1800), roof)
    ours = recorded("E-31").ratio("16x16", "16 bytes a load")
    trial.here("ours, tiles and 16-byte loads (H200): times as fast", about(told, 0.3), ours, "E-31")
    return (
        f"Plausible: the second stays under the {roof:,.0f} GFLOP/s that 616 GB/s admit for such tiles, and"
        f" the factor of {told:.2f} is near ours, {ours:.1f} on an H200. Ours came without padding."
    )


@claim("CC-30", "sgemm", IMPRECISE, "sgemm-claim-padded-vectors")
def cc_30(trial: Trial) -> str:
    """Use padding, one element, together with float4 accesses to shared memory."""
    trial.stated("padding alone: wavefronts of a column", 1, column(33))
    trial.stated("float4 alone, side by side", 4, lanes("ld.shared.b128", lambda lane: 16 * lane).wavefronts)
    for pitch in (17, 33):
        wide = or_misaligned(partial(wide_column, 4 * pitch))
        trial.wider(f"together, pitch {pitch}: may be issued", True, wide != MISALIGNED)
    four = {pitch: wide_column(4 * pitch) for pitch in (20, 36)}
    return (
        "Each is good, together they fault. Pad by four floats, and keep pitch / 4 odd: pitch 20 takes"
        f" {four[20]} wavefronts and 36 takes {four[36]}, the fewest."
    )


@claim("CC-31", "when_it_does_not_matter", HW, "when-it-does-not-matter-claim-memory")
def cc_31(trial: Trial) -> str:
    """Work on memory pays more than tuning instructions."""
    run = recorded("E-31")
    layout, schedule = run.ratio("16x16", "split"), run.ratio("split", "prefetched")
    trial.here("product: where data lies against when it is fetched", at_least(schedule), layout, "E-31")
    scan = recorded("E-36-scan")
    free = scan.ratio("tree of 512", "padded of 512")
    trial.here("scan: no conflicts, more index arithmetic: times as fast", at_least(1), free, "E-36-scan")
    dram = recorded("E-30").profile("16x16", MIDDLE)["dram_throughput"]
    return (
        f"On an H200 tiles in shared memory and registers make a product {layout:.0f} times as fast,"
        f" buffering and scheduling {schedule:.2f} times more. But the naive one left DRAM idle ({dram:.1%}):"
        f" what tiles save is instructions. And a scan that padding frees of conflicts runs at {free:.2f} of"
        " its speed."
    )
