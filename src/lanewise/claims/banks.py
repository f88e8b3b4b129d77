"""Claims about banks: which bank an address is in, what a conflict is, and what is none."""

from collections.abc import Callable

import numpy as np

from lanewise.claims.claim import Trial, Verdict, about, at_least, at_most, claim
from lanewise.claims.documents import BEST_PRACTICES, KEPLER
from lanewise.claims.evidence import GPU, Formula, column, counted, lanes, recorded, row
from lanewise.machine import BANKS, MACHINES, WARP_LANES, WORD_BYTES, product
from lanewise.records import Launch, counter_table

OK, WRONG, IMPRECISE, HW = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE, Verdict.HW


def bank(byte_address: int) -> int:
    """The bank of a byte, as the memory model sees it."""
    (only,) = lanes("ld.shared.b8", lambda lane: 0 * lane + byte_address).phases[0].words_by_bank
    return only


def by_pieces(bytes_per_lane: int, byte_address: Formula) -> int:
    """What a wide access would cost if it were cut into one 4-byte access after the other."""

    def piece(offset: int) -> Formula:
        return lambda lane: byte_address(lane) + offset

    starts = range(0, bytes_per_lane, WORD_BYTES)
    return sum(lanes("ld.shared.b32", piece(start)).wavefronts for start in starts)


@claim("CA-01", "banks", HW, "banks-matters")
def ca_01(trial: Trial) -> str:
    """A bad pattern in shared memory can cost an order of magnitude."""
    reads = recorded("E-01").ratio("stride 32, 1056 blocks", "stride 1, 1056 blocks")
    trial.here("only reads, stride 32 against 1: times as long", at_least(10), reads, "E-01")
    whole = recorded("E-05").ratio("columns 16384", "rows 16384")
    trial.here("a copy by way of a tile, columns against rows", at_least(10), whole, "E-05")
    tile = recorded("E-04").ratio("pad 0, 8192", "pad 1, 8192")
    trial.here("a transpose, pitch 32 against 33", at_least(10), tile, "E-04")
    return (
        f"A kernel that does nothing but read takes {reads:.0f} times as long. Whole kernels have other work,"
        f" too: on an H200 the same conflict makes a copy take {whole:.2f} and a transpose {tile:.2f} times"
        " as long."
    )


@claim("CA-03", "banks", OK, "banks-address")
def ca_03(trial: Trial) -> str:
    """Shared memory has 32 banks, one for each lane of a warp, and each serves one word per clock."""
    found = {(machine.banks, machine.warp_lanes) for machine in MACHINES.values()}
    trial.stated("banks and lanes, compute capability 7.5 to 12.0", ((32, 32),), tuple(found), BEST_PRACTICES)
    run = recorded("E-01")
    loads = 1056 * 8 * 1024 / product("H200").sms  # warp loads that one multiprocessor does
    clocks = run.us("stride 1, 1056 blocks") * run.row("stride 1, 1056 blocks")["clock_mhz"] / loads
    trial.stated("clocks a warp's load takes, all else included", about(1, 0.15), clocks, "E-01")
    return f"On a full H200 a load free of conflicts takes {clocks:.2f} clocks of its multiprocessor."


@claim("CA-04", "banks", OK, "banks-address")
def ca_04(trial: Trial) -> str:
    """The bank of a byte is (address / 4) mod 32: bytes 0 to 3, 4 to 7, 8 to 11 are in banks 0, 1, 2."""
    for first, last, number in ((0, 3, 0), (4, 7, 1), (8, 11, 2)):
        trial.stated(f"banks of bytes {first} and {last}", (number, number), (bank(first), bank(last)))
    return f"So it is, and byte {WORD_BYTES * BANKS} begins again with bank {bank(WORD_BYTES * BANKS)}."


@claim("CA-05", "banks", IMPRECISE, "banks-claim-always")
def ca_05(trial: Trial) -> str:
    """Banks are 4 bytes wide, on older architectures too."""
    found = {machine.bank_bytes for machine in MACHINES.values()}
    trial.stated("bytes a bank is wide, compute capability 7.5 to 12.0", (4,), tuple(found), BEST_PRACTICES)
    kepler = "4 or 8, as the program chooses"
    trial.wider("bytes a bank is wide, compute capability 3.x (Kepler)", "4", kepler, KEPLER)
    return f"One generation is the exception: Kepler's banks are {kepler}. All others have 4 bytes."


@claim("CA-06", "banks", WRONG, "banks-wide")
def ca_06(trial: Trial) -> str:
    """The hardware splits accesses of 64 and 128 bits into several accesses of 4 bytes."""
    patterns: tuple[tuple[str, str, int, Formula], ...] = (
        ("float2, side by side", "ld.shared.b64", 8, lambda lane: 8 * lane),
        ("float4, side by side", "ld.shared.b128", 16, lambda lane: 16 * lane),
        ("float4, 128 bytes apart", "ld.shared.b128", 16, lambda lane: 128 * lane),
    )
    found = {}
    for name, instruction, width, place in patterns:
        split = by_pieces(width, place)
        found[name] = (split, trial.stated(name, split, lanes(instruction, place).wavefronts))
    side_by_side = counted("ld.shared.b128", lambda lane: 16 * lane)
    trial.stated(
        "float4, side by side, counted", found["float4, side by side"][0], side_by_side, "shared_wavefronts"
    )
    pieces, real = found["float4, side by side"]
    return (
        "They are split by lanes: half a warp at a time for 64 bits, a quarter for 128. Pieces of 4 bytes"
        f" would make {pieces} wavefronts of a float4 load side by side; it takes {real}, the fewest"
        " possible."
    )


@claim("CA-07", "banks", OK, "banks-directions")
def ca_07(trial: Trial) -> str:
    """In a float tile of 32 columns, reading `tile[tid][0]` is a 32-way conflict."""
    found = trial.stated("wavefronts, pitch 32", 32, column(32))
    on_gpu = counted("ld.shared.b32", lambda lane: 128 * lane)
    trial.stated("the same, counted", 32, on_gpu, "shared_wavefronts")
    return (
        f"All {WARP_LANES} lanes want a word of their own from bank 0: {found} wavefronts where 1 would do."
    )


@claim("CA-08", "banks", OK, "banks-directions")
def ca_08(trial: Trial) -> str:
    """Reading the diagonal `tile[tid][tid]` of a tile of 32 columns has no conflict."""
    found = trial.stated("wavefronts", 1, lanes("ld.shared.b32", lambda lane: 4 * 33 * lane).wavefronts)
    on_gpu = recorded("E-07").counter("pitch 32, diagonal", "shared_load_wavefronts")
    trial.stated("the same, counted", 1, on_gpu, "E-07")
    return f"Lane `tid` reads word 33 tid, which lies in bank `tid`: {found} wavefront."


@claim("CA-12", "banks", OK, "banks-four")
def ca_12(trial: Trial) -> str:
    """Lanes that read the same address share one broadcast, without a conflict."""
    found = trial.stated("all lanes read word 0", 1, lanes("ld.shared.b32", lambda lane: 0 * lane).wavefronts)
    two = trial.stated(
        "two words in two banks", 1, lanes("ld.shared.b32", lambda lane: 4 * (lane & 1)).wavefronts
    )
    on_gpu = recorded("E-01").counter("two words, two banks", "shared_load_wavefronts")
    trial.stated("the same, counted", 1, on_gpu, "E-01")
    odd_one = lanes("ld.shared.b32", lambda lane: 128 * (lane == 31)).wavefronts
    return (
        f"{found} wavefront; several words from different banks may even share it ({two}). Only another word"
        f" of the same bank costs more: {odd_one} wavefronts if one lane reads word 32 and the others word 0."
    )


@claim("CA-13", "banks", WRONG, "banks-claim-bytes")
def ca_13(trial: Trial) -> str:
    """Addresses 4 and 8 are both in bank 1, so they conflict."""
    trial.stated("banks of bytes 4 and 8", (1, 1), (bank(4), bank(8)))
    trial.stated("banks of words 4 and 8", (1, 1), (bank(16), bank(32)))
    right = (bank(4), bank(132))
    cost = lanes("ld.shared.b32", lambda lane: 4 + 128 * (lane % 2)).wavefronts
    return (
        f"Bytes 4 and 8 are in banks {bank(4)} and {bank(8)}. An example that works is bytes 4 and 132: both"
        f" in bank {right[1]}, {cost} wavefronts."
    )


@claim("CA-14", "banks", IMPRECISE, "banks-claim-addresses")
def ca_14(trial: Trial) -> str:
    """A conflict means: same bank, different address."""
    trial.stated(
        "bytes 4 and 132: wavefronts", 2, lanes("ld.shared.b32", lambda lane: 4 + 128 * (lane % 2)).wavefronts
    )
    four = lanes("ld.shared.b8", lambda lane: 4 + lane % 4).wavefronts
    trial.wider("bytes 4, 5, 6, 7, all in bank 1: wavefronts", at_least(2), four)
    halves = lanes("ld.shared.b16", lambda lane: 2 * lane).wavefronts
    trial.wider("32 neighbouring halves, two in each bank: wavefronts", at_least(2), halves)
    return (
        f"Different 32-bit words are what counts. Different bytes of one word are served together: {four}"
        " wavefront."
    )


@claim("CA-15", "banks", IMPRECISE, "banks-claim-grouped")
def ca_15(trial: Trial) -> str:
    """A subset of lanes on one address is merged too; this multicast needs a second grouping, which depends
    on how the addresses are distributed."""
    merged = lanes("ld.shared.b32", lambda lane: 4 * (lane // 8)).wavefronts
    trial.stated("four words, each for 8 lanes: wavefronts", 1, merged)
    launches = counter_table(GPU, "shared_wavefronts").of("ld.shared.b32")
    second_rule = sum(_needs_second_rule(launch) for launch in launches)
    trial.wider(
        f"loads counted on an H200, of {len(launches)}, that need a second rule",
        at_least(1),
        second_rule,
        "shared_wavefronts",
    )
    return (
        "One rule is enough: a wavefront serves one word of each bank to as many lanes as want it. It gives"
        f" the count of an H200 for all of {len(launches)} loads; {second_rule} need another."
    )


def _needs_second_rule(launch: Launch) -> bool:
    """Whether the counted wavefronts differ from the most distinct words that any bank holds."""
    active = [lane for lane in range(WARP_LANES) if launch.active_mask >> lane & 1]
    words = np.unique(np.array(launch.byte_offsets)[active] // 4)
    return launch.counters["wavefronts"] != int(np.bincount(words % BANKS).max())


@claim("CA-20", "banks", WRONG, "banks-claim-row")
def ca_20(trial: Trial) -> str:
    """Banks are buckets and the modulo is their hash, which keeps regularity: data of the same row falls into
    the same buckets."""
    whole_row = trial.stated("wavefronts to read a row, pitch 32", at_least(2), row(32))
    return (
        f"The picture of buckets is a good one, but a row is spread perfectly: {whole_row} wavefront. It is"
        f" the same column of different rows that meets in one bank: {column(32)} wavefronts."
    )


@claim("CA-29", "banks", IMPRECISE, "banks-directions")
def ca_29(trial: Trial) -> str:
    """Bank conflicts are much like way conflicts in the L1 cache of a CPU."""
    same: Callable[[int], bool] = lambda pitch: column(pitch) > column(pitch + 1)  # noqa: E731
    trial.stated("a power of two as pitch is bad, one more is good", True, all(map(same, (32, 64, 128))))
    again = lanes("ld.shared.b32", lambda lane: 128 * lane).wavefronts
    trial.wider("wavefronts of a column read a second time", at_most(1), again)
    trial.wider("what a conflict leaves behind", "evicted lines", "nothing", BEST_PRACTICES)
    return (
        f"Both come from a modulo. But a bank has no memory: the same access costs {again} wavefronts again"
        " and again, and never throws anything out. A cache conflict evicts lines, and the price is a miss"
        " later."
    )
