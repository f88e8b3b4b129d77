"""Claims about strides and widths: what an access to shared memory costs, and what has no part in it."""

from math import gcd

from lanewise.claims.claim import Run, Trial, Verdict, at_most, claim
from lanewise.claims.documents import SHARED_WRITES, SYNCHRONISATION
from lanewise.claims.evidence import counted, lanes, recorded, sectors, traced
from lanewise.machine import BANKS, WARP_LANES

OK = Verdict.OK

Cost = tuple[int, int, int]


def strided(stride: int, base_bytes: int = 0, active_mask: int = 0xFFFFFFFF, word: int = 4) -> Cost:
    """Wavefronts, the fewest possible, and the excess of lanes `stride` elements of `word` bytes apart."""
    name = f"ld.shared.b{8 * word}"
    found = lanes(name, lambda lane: base_bytes + word * stride * lane, active_mask)
    return found.wavefronts, found.ideal, found.excess


@claim("CB-01", "banks", OK, "banks-address")
def cb_01(trial: Trial) -> str:
    """The bank is (byte address / 4) mod 32: s[0], s[1], s[31] and s[32] are in banks 0, 1, 31 and 0; a warp
    that reads with stride 32 needs 993 floats at least."""
    for element, number in ((0, 0), (1, 1), (31, 31), (32, 0)):
        (bank,) = lanes("ld.shared.b32", lambda lane, e=element: 0 * lane + 4 * e).phases[0].words_by_bank  # type: ignore[misc]
        trial.stated(f"bank of s[{element}]", number, bank)
    last = lanes("ld.shared.b32", lambda lane: 4 * 32 * lane).phases[0].words_by_bank[0][-1]
    n_floats = trial.stated("floats that stride 32 reaches", 993, last + 1)
    return f"Lane 31 reads element {last}, the last of {n_floats}."


@claim("CB-02", "banks", OK, "banks-address")
def cb_02(trial: Trial) -> str:
    """Another start address only turns the banks; it does not change the conflicts."""
    same = sum(strided(stride, 4 * 7) == strided(stride) for stride in range(1, 65))
    trial.stated("strides 1 to 64: as costly from word 7 as from word 0", 64, same)
    run = recorded("E-01")
    for stride in (2, 16, 32):
        shifted = run.counter(f"stride {stride} from word 1", "shared_load_wavefronts")
        plain = run.counter(f"stride {stride}", "shared_load_wavefronts")
        trial.stated(f"stride {stride} from word 1, counted", plain, shifted, "E-01")
    wide = lanes("ld.shared.b128", lambda lane: 16 * lane + 128).wavefronts
    return (
        f"All {same} strides agree. It holds for 8 and 16 bytes a lane too ({wide} wavefronts) if the"
        " start is aligned to them."
    )


@claim("CB-03", "banks", OK, "banks-four")
def cb_03(trial: Trial) -> str:
    """A full warp reads s[lane] and s[0] in one round, s[2 lane] in two, s[32 lane] in 32."""
    for stride, rounds in ((1, 1), (2, 2), (32, 32), (0, 1)):
        trial.stated(f"stride {stride}: wavefronts, fewest, excess", (rounds, 1, rounds - 1), strided(stride))
        on_gpu = counted("ld.shared.b32", lambda lane, s=stride: 4 * s * lane)  # type: ignore[misc]
        trial.stated(f"stride {stride}, counted", rounds, on_gpu, "shared_wavefronts")
    run = recorded("E-01")
    times = {s: run.ratio(f"stride {s}, 1056 blocks", "stride 1, 1056 blocks") for s in (2, 32)}
    return (
        f"On a full H200 stride 2 takes {times[2]:.1f} and stride 32 {times[32]:.1f} times the time of stride"
        " 1, if a kernel does nothing else."
    )


@claim("CB-04", "banks", OK, "banks-strides")
def cb_04(trial: Trial) -> str:
    """A stride s of 32-bit words is a gcd(s, 32)-way conflict, over 32 / gcd(s, 32) banks; this needs a full
    warp, distinct addresses and 32 bits."""
    ways = [lanes("ld.shared.b32", lambda lane, s=s: 4 * s * lane) for s in range(1, 65)]  # type: ignore[misc]
    degrees = sum(cost.degree == gcd(s, BANKS) for s, cost in enumerate(ways, 1))
    banks = sum(len(cost.phases[0].words_by_bank) == BANKS // gcd(s, BANKS) for s, cost in enumerate(ways, 1))
    trial.stated("strides 1 to 64 with this degree", 64, degrees)
    trial.stated("strides 1 to 64 on this many banks", 64, banks)
    half = trial.stated("stride 2, 16 lanes", 1, strided(2, active_mask=0xFFFF)[0])
    four = trial.stated("stride 32, 4 lanes", 4, strided(32, active_mask=0xF)[0])
    bytes_ = trial.stated("bytes, stride 4", 1, strided(4, word=1)[0])
    run = recorded("E-03")
    for label, here in (("16 lanes, stride 2", half), ("4 lanes, stride 32", four)):
        trial.stated(f"{label}, counted", here, run.counter(label, "shared_load_wavefronts"), "E-03")
    return (
        f"The law holds for all strides, and its limits are real: stride 2 takes {half} wavefront with 16"
        f" lanes, stride 32 takes {four} with 4, and bytes with stride 4 are as good as words ({bytes_})."
    )


@claim("CB-05", "when_it_does_not_matter", OK, "when-it-does-not-matter-claim-proportional")
def cb_05(trial: Trial) -> str:
    """An n-way conflict does not make the kernel n times slower."""
    run = traced("E-05", "columns 256").shared.load
    ways = run.wavefronts // run.requests
    assert ways == WARP_LANES
    copy = recorded("E-05").ratio("columns 16384", "rows 16384")
    trial.stated("32-way: times as long, a copy through shared memory", at_most(31), copy, "E-05")
    tile = recorded("E-04").ratio("tiled 8192", "padded 8192")
    trial.stated("32-way: times as long, a transpose", at_most(31), tile, "E-04")
    light = recorded("E-04").ratio("pad 0, 8192", "pad 1, 8192")
    trial.stated("32-way: the same, with less index arithmetic", at_most(31), light, "E-04")
    bare = recorded("E-01").ratio("stride 32, 1056 blocks", "stride 1, 1056 blocks")
    return (
        f"On an H200 a {ways}-way conflict makes a copy take {copy:.2f} times as long, and a transpose"
        f" {tile:.2f} or {light:.2f} times, by how much arithmetic its indices need: whatever else a kernel"
        f" waits for hides a part. Only one that does nothing but read comes near, {bare:.0f} times."
    )


@claim("CB-06", "banks", OK, "banks-stores")
def cb_06(trial: Trial) -> str:
    """All lanes may store to s[0] without a bank conflict, but only one value survives, and nobody says
    whose: that is no reduction."""
    stored = lanes("st.shared.b32", lambda lane: 0 * lane)
    trial.stated("wavefronts, excess", (1, 0), (stored.wavefronts, stored.excess))
    on_gpu = recorded("E-01").counter("store, one word", "shared_store_conflicts")
    trial.stated("conflicts, counted", 0, on_gpu, "E-01")
    trial.stated("values that survive", "one, unspecified", "one, unspecified", SHARED_WRITES)
    kinds = tuple(sorted({hazard.kind for hazard in traced("E-01", "store, one word").hazards}))
    trial.stated("the tracer reports", ("shared_race",), kinds, Run("trace of `store_first`"))
    return f"{stored.wavefronts} wavefront, and a data race: a bank conflict costs time, a race the result."


@claim("CB-07", "banks", OK, "banks-not")
def cb_07(trial: Trial) -> str:
    """Cache misses, coalescing and synchronisation are matters of their own: a transpose can be coalesced and
    conflict all the same, and a barrier changes no bank."""
    tiled = traced("E-04", "pad 0, 128")
    run = Run("trace of `transpose`")
    for op in ("load", "store"):
        totals = getattr(tiled.global_, op)
        trial.stated(f"sectors a global {op}, no pad", 4, totals.sectors // totals.requests, run)
    ways = trial.stated(
        "wavefronts a shared load, no pad",
        32,
        tiled.shared.load.wavefronts // tiled.shared.load.requests,
        run,
    )
    more = [traced("E-35", f"{n} barriers, 128 threads, 5 blocks").shared.total.wavefronts for n in (1, 8)]
    trial.stated(
        "wavefronts with 1 barrier a tile and with 8 are equal", True, more[0] == more[1], SYNCHRONISATION
    )
    return f"The transpose without a pad is coalesced on both sides and {ways}-way in shared memory."


@claim("CB-08", "banks", OK, "banks-wide")
def cb_08(trial: Trial) -> str:
    """Wide elements are judged by instruction and group of lanes: more than one round may be needed without
    any conflict."""
    cases = (
        ("double, side by side", (2, 2, 0), strided(1, word=8)),
        ("double, stride 2", (4, 2, 2), strided(2, word=8)),
        ("double, column of [32][32]", (32, 2, 30), strided(32, word=8)),
        ("double, column of [32][33]", (2, 2, 0), strided(33, word=8)),
        ("float4, side by side", (4, 4, 0), strided(1, word=16)),
        ("float4, 32 bytes apart", (8, 4, 4), strided(2, word=16)),
    )
    for case, costs, found in cases:
        trial.stated(f"{case}: wavefronts, fewest, excess", costs, found)
    run = recorded("E-02")
    for label, says in (
        ("double, stride 32", 32),
        ("double, stride 33", 2),
        ("four floats, 32 bytes apart", 8),
    ):
        on_gpu = run.counter(label, "shared_load_wavefronts")
        trial.stated(f"{label}, counted", says, on_gpu, "E-02")
    return (
        f"Doubles need {cases[0][2][1]} rounds and float4 {cases[4][2][1]} at best. The excess over these is"
        " the conflict."
    )


@claim("CB-24", "profiling", OK, "profiling-families")
def cb_24(trial: Trial) -> str:
    """More than one wavefront is no conflict by itself."""
    wide = lanes("ld.shared.b128", lambda lane: 16 * lane)
    trial.stated("float4, side by side: wavefronts, excess", (4, 0), (wide.wavefronts, wide.excess))
    run = recorded("E-02")
    label = "four floats, side by side"
    waves = run.counter(label, "shared_load_wavefronts")
    trial.stated("the same, counted: wavefronts", 4, waves, "E-02")
    lost = run.counter(label, "shared_load_conflicts")
    trial.stated("the same, counted: conflicts", 0, lost, "E-02")
    return (
        f"A warp that reads float4 wants {16 * WARP_LANES} bytes, and a wavefront brings {4 * BANKS}: so"
        f" it needs {waves}. Lost to conflicts: {lost}."
    )


@claim("CB-26", "banks", OK, "banks-not")
def cb_26(trial: Trial) -> str:
    """DRAM and L2 have banks of their own, with other rules."""
    shared = {s: lanes("ld.shared.b32", lambda lane, s=s: 4 * s * lane).wavefronts for s in (32, 33)}  # type: ignore[misc]
    trial.stated("shared memory, lanes 32 and 33 words apart: wavefronts", (32, 1), tuple(shared.values()))
    in_global = {s: sectors("ld.global.b32", lambda lane, s=s: 4 * s * lane).sectors for s in (32, 33)}  # type: ignore[misc]
    trial.stated("global memory, the same: sectors", (32, 32), tuple(in_global.values()))
    on_gpu = recorded("E-21")
    per = on_gpu.counter("stride 32", "global_load_sectors") / on_gpu.counter(
        "stride 32", "global_load_requests"
    )
    trial.stated("global memory, 32 words apart, counted: sectors a request", 32.0, per, "E-21")
    return (
        f"In shared memory a pitch of 33 words mends what 32 breaks: {shared[32]} wavefronts become"
        f" {shared[33]}. To global memory it makes no difference: {in_global[32]} sectors either way."
    )
