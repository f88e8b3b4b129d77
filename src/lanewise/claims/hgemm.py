"""Claims of one war story: a half-precision product on Tensor Cores, from a slow layout to a fast one."""

import numpy as np

from lanewise.claims.claim import Range, Trial, Verdict, about, at_least, claim
from lanewise.claims.documents import CUDA_SAMPLES
from lanewise.claims.evidence import lanes, or_misaligned, recorded
from lanewise.fragments import A_ROW_MAJOR, B_ROW_MAJOR
from lanewise.machine import product
from lanewise.swizzles import Swizzle

OK, WRONG, IMPRECISE, HW, NC = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE, Verdict.HW, Verdict.NC

LANE = np.arange(32)
# A warp stores rows of `n` 16-byte chunks, one lane each: the fill of a tile.
ROW_OF, CHUNK_OF = {4: LANE // 4, 8: LANE // 8}, {4: LANE % 4, 8: LANE % 8}
PRIVATE = "The kernel and its GPU are the author's."


def fetch(pitch_halves: int, xor: str = "", b: bool = False) -> int | str:
    """Wavefronts of an ldmatrix.x4 of A, or of B, from a tile with the column XORed as the formula says."""
    load = B_ROW_MAJOR if b else A_ROW_MAJOR
    name = load.instruction
    return or_misaligned(
        lambda: lanes(name, lambda _: 2 * _place(load.row, load.col, pitch_halves, xor)).wavefronts
    )


def fill(pitch_halves: int, xor: str = "", chunks: int = 4) -> int | str:
    """Wavefronts of 16-byte stores that fill rows of so many chunks."""
    places = _place(ROW_OF[chunks], 8 * CHUNK_OF[chunks], pitch_halves, xor)
    return or_misaligned(lambda: lanes("st.shared.b128", lambda _: 2 * places).wavefronts)


def _place(row: np.ndarray, col: np.ndarray, pitch: int, xor: str) -> np.ndarray:
    flips = {
        "": 0 * row,
        "(row & 3) << 2": (row & 3) << 2,
        "(row & 3) << 3": (row & 3) << 3,
        "((row >> 1) & 3) << 3": (row >> 1 & 3) << 3,
        "(row & 7) << 3": (row & 7) << 3,
    }
    return np.asarray(row * pitch + (col ^ flips[xor]))


def share(wavefronts: int | str, ideal: int = 4) -> float:
    """The share of wavefronts lost to conflicts."""
    return 1 - ideal / int(wavefronts)


def tile_share(b_pitch_halves: int, b_transposed: bool) -> float:
    """The share lost by a whole step of a 128 x 128 x 32 product: 64 loads of A, 32 of B, and the fill."""
    of_a, of_b = int(fetch(32)), int(fetch(b_pitch_halves, b=b_transposed))
    all_of_them = 64 * of_a + 32 * of_b + 128
    return 1 - (96 * 4 + 128) / all_of_them


@claim("CA-33", "hgemm", WRONG, "hgemm-claim-sample")
def ca_33(trial: Trial) -> str:
    """The reference, a product among NVIDIA's CUDA samples, differed only in its shared layout: it used an
    XOR swizzle where the author used padding."""
    trial.stated("shared layout of cudaTensorCoreGemm", "XOR swizzle", "padding, 16 halves", CUDA_SAMPLES)
    pitches = {halves: 2 * (halves + 16) for halves in (64, 128)}
    ways = {p: lanes("ldmatrix.x4", lambda lane, p=p: p * lane).degree for p in pitches.values()}  # type: ignore[misc]
    told = " and ".join(f"{pitch} bytes ({degree}-way)" for pitch, degree in ways.items())
    return (
        f"The sample pads, and says that it must. Its rows are {told}. The XOR swizzles are in CUTLASS, a"
        " library."
    )


@claim("CA-49", "tensor_cores", WRONG, "tensor-cores-story-pad")
def ca_49(trial: Trial) -> str:
    """Padding the rows of A from 32 to 34 halves lowered conflicts to 48 %."""
    trial.stated("ldmatrix.x4 with rows of 68 bytes: share lost", about(0.48), fetch(34))
    trial.stated("16-byte stores into such rows: share lost", about(0.48), fill(34))
    places = A_ROW_MAJOR.row * 34 + A_ROW_MAJOR.col
    off = int((2 * places % 16 != 0).sum())
    run = recorded("E-13")
    lost = run.counter("34 halves", "shared_load_conflicts") / run.counter(
        "34 halves", "shared_load_wavefronts"
    )
    trial.stated("4-byte loads from such rows: share lost, counted", about(0.48, 0.05), lost, "E-13")
    return (
        f"{off} of 32 row addresses are no multiple of 16, so neither ldmatrix nor float4 may use them. The"
        f" number fits loads of 4 bytes: {lost:.0%} counted. A legal pad is 40 halves: {fetch(40)}"
        " wavefronts, none lost."
    )


@claim("CA-50", "tensor_cores", WRONG, "tensor-cores-story-xor")
def ca_50(trial: Trial) -> str:
    """With col ^ ((row & 3) << 2) and rows of 32 halves about 4 % of conflicts are left."""
    xor = "(row & 3) << 2"
    trial.stated("ldmatrix.x4: share lost", about(0.04, 0.5), fetch(32, xor))
    trial.stated("16-byte stores: share lost", about(0.04, 0.5), fill(32, xor))
    run, label = recorded("E-13"), "Swizzle<2,2,3> of halves"
    words = run.counter(label, "shared_load_conflicts") / run.counter(label, "shared_load_wavefronts")
    trial.stated("4-byte loads instead: share lost, counted", about(0.04, 0.5), words, "E-13")
    almost, right = fetch(32, "(row & 3) << 3"), fetch(32, "((row >> 1) & 3) << 3")
    return (
        f"Steps of 4 halves tear the 16-byte chunks: {fetch(32, xor)}. Whole chunks, << 3, are legal and"
        f" still take {almost}, since rows 0 and 4 agree. Right is ((row >> 1) & 3) << 3 ="
        f" {Swizzle(2, 3, 3)}: {right} wavefronts, the fewest."
    )


@claim("CA-52", "hgemm", OK, "hgemm-claim-share")
def ca_52(trial: Trial) -> str:
    """Without a swizzle 70 % of the shared-memory cycles went to conflicts."""
    low, high = tile_share(32, False), tile_share(128, True)
    trial.stated(
        "share lost, from B stored [N][K] to B stored [K][N]: 70 % is between",
        True,
        low - 0.02 <= 0.7 <= high,
    )
    one = share(fetch(32))
    trial.stated("share lost by one load of A", about(0.7, 0.1), one)
    run = recorded("E-15")
    ours = [
        run.counter("row-major", f"shared_{what}", "hgemm 256x128x64") for what in ("conflicts", "wavefronts")
    ]
    return (
        f"Plausible: each load of A loses {one:.0%}, the whole step {low:.0%} or {high:.0%} as B is stored."
        f" Our own row-major product lost {ours[0] / ours[1]:.0%}, counted."
    )


@claim("CA-53", "tensor_cores", NC, "tensor-cores-story-ladder", private=PRIVATE)
def ca_53(trial: Trial) -> str:
    """The steps took conflicts from 70 % to 48 % (pad) and 4 % (XOR)."""
    run = recorded("E-12")
    shares = {}
    for label, told in (("A dense", "70%"), ("A pitch 40", "48%"), ("A Swizzle<2,3,3>", "4%")):
        lost = run.counter(label, "shared_load_conflicts") / run.counter(label, "shared_load_wavefronts")
        shares[label] = trial.here(f"{label}: share lost by its loads, counted", told, f"{lost:.0%}", "E-12")
    stores = share(fill(40))
    return (
        f"{PRIVATE} Steps that are legal go {shares['A dense']}, {shares['A pitch 40']} (a pad of 8 halves,"
        f" which costs the fill {stores:.0%}), {shares['A Swizzle<2,3,3>']}."
    )


@claim("CA-54", "tensor_cores", IMPRECISE, "tensor-cores-story-b")
def ca_54(trial: Trial) -> str:
    """The formula with row and column exchanged made matrix B worse; so B has to be stored transposed."""
    trial.stated("A's formula on row-major B", "of no use", _of_use(fetch(64, "(row & 3) << 2", b=True)))
    best = trial.wider(
        "row-major B, Swizzle<3,3,3>, ldmatrix.x4.trans: wavefronts", at_least(5), _b("(row & 7) << 3")
    )
    pad = trial.wider("row-major B, pad of 8 halves: the same", at_least(5), int(fetch(72, b=True)))
    counted = recorded("E-12").counter("B Swizzle<3,3,3>", "shared_load_conflicts")
    trial.wider("the swizzle, conflicts counted", at_least(1), counted, "E-12")
    return (
        f"It need not: ldmatrix.trans transposes on the way. Row-major B takes {_b('')} wavefronts as it is,"
        f" {best} with (row & 7) << 3, and {pad} with a pad of 8 halves; 4 is the fewest."
    )


def _b(xor: str) -> int:
    return int(fetch(64, xor, b=True))


def _of_use(wavefronts: int | str) -> str:
    return "of use" if wavefronts == 4 else "of no use"


@claim("CA-55", "tensor_cores", OK, "tensor-cores-storage")
def ca_55(trial: Trial) -> str:
    """The swizzle has to follow the order in which the matrix is stored."""
    tiles = {64: Swizzle(2, 3, 3), 128: Swizzle(3, 3, 3), 32: Swizzle(1, 3, 3), 256: Swizzle(3, 3, 4)}
    for row_bytes, swizzle in tiles.items():
        trial.stated(f"{row_bytes}-byte rows, {swizzle}: wavefronts", 4, _through(swizzle, row_bytes))
    wrong = trial.stated(
        "256-byte rows with the swizzle of 128: not free", at_least(5), _through(tiles[128], 256)
    )
    label = "A 256-byte rows Swizzle<3,3,3>"
    counted = recorded("E-12").counter(label, "shared_load_conflicts")
    trial.stated("the same, conflicts counted", at_least(1), counted, "E-12")
    return (
        f"Each row length has its own: {', '.join(map(str, tiles.values()))} are free; the wrong one takes"
        f" {wrong}."
    )


def _through(swizzle: Swizzle, row_bytes: int) -> int:
    offsets = A_ROW_MAJOR.row * (row_bytes // 2) + A_ROW_MAJOR.col
    return lanes("ldmatrix.x4", lambda _: 2 * swizzle(offsets)).wavefronts


@claim("CA-56", "hgemm", HW, "hgemm-claim-necessary")
def ca_56(trial: Trial) -> str:
    """To saturate Tensor Cores a swizzle is necessary."""
    run, size = recorded("E-15"), "hgemm 8192x8192x8192"
    rates = {label: run.tflop_per_s(label, size) for label in ("row-major", "padded", "swizzled")}
    gain = rates["swizzled"] / rates["row-major"]
    trial.here("swizzle against nothing: times as fast", at_least(1.1), gain, "E-15")
    over_pad = rates["swizzled"] / rates["padded"]
    trial.here("swizzle against a pad", at_least(1.1), over_pad, "E-15")
    stages = run.ratio("3 stages, padded", "3 stages", size)
    trial.here("the same with three stages", at_least(1.1), stages, "E-15")
    return (
        f"To be free of conflicts is necessary: {gain:.1f} times as fast on an H200. But a pad is free of"
        f" them too: the swizzle reaches {over_pad:.2f} times its rate, {stages:.2f} times with a pipeline"
        " of three stages."
    )


@claim("CA-57", "hgemm", NC, "hgemm-consistent", private=PRIVATE)
def ca_57(trial: Trial) -> str:
    """The product rose from 42 % of the GPU's peak to 78 % with the swizzle, and above 80 % with double
    buffering."""
    loads = (
        48 * 4
    )  # ldmatrix.x4 of a k16 step of a 128 x 128 tile by 8 warps of 64 x 32, four wavefronts each
    a100, h200 = product("A100 40GB"), product("H200")
    per_clock = a100.tensor_tflop_per_s * 1e6 / a100.cycles_per_us
    clocks = 128 * 128 * 16 * 2 / per_clock
    bound = clocks / (loads / (1 - 0.7))
    trial.stated("share of an A100's peak that 70 % conflicts leave", about(0.42, 0.1), bound)
    trial.stated("with 4 % shared memory is the limit", False, loads / 0.96 > clocks)
    run = recorded("E-16")
    lowest, highest = (run.tflop_per_s(f"{bits} bits") / h200.tensor_tflop_per_s for bits in (0, 3))
    trial.here(
        "our product on an H200, without and with the swizzle",
        ("42%", "78%"),
        _percent(lowest, highest),
        "E-16",
    )
    return (
        f"{PRIVATE} The numbers are consistent: {loads} wavefronts with 70 % conflicts bound an A100 at"
        f" {bound:.0%} of its peak. Our own product went from {lowest:.0%} to {highest:.0%} of an H200's,"
        " whose peak mma.sync cannot reach."
    )


def _percent(*shares: float) -> tuple[str, ...]:
    return tuple(f"{share:.0%}" for share in shares)


@claim("CA-71", "tensor_cores", IMPRECISE, "tensor-cores-claim-threads")
def ca_71(trial: Trial) -> str:
    """Blocks of 128 x 8 threads load tiles of 64 x 32 and 32 x 64 halves by float4."""
    threads = trial.stated("threads of a block, at most 1,024", Range(1, 1024, "at most 1,024"), 128 * 8)
    pieces = 2 * 64 * 32 * 2 // 16
    trial.wider("threads with something to load, both tiles", threads, pieces)
    return (
        f"The block is legal, but two tiles are {pieces} pieces of 16 bytes: of {threads:,} threads half"
        " have nothing to do."
    )


@claim("CA-72", "hgemm", IMPRECISE, "hgemm-story")
def ca_72(trial: Trial) -> str:
    """One and the same product has a plain row-major first version, tiles of 128 x 128 and 256 threads; told
    again, it has rows of width + pad, tiles of 64 x 32, and blocks of 128 x 8."""
    trial.stated(
        "threads, told first: warps of 64 x 32 in a tile of 128 x 128", 256, 128 * 128 // (64 * 32) * 32
    )
    trial.wider("threads, told again", 256, threads := 128 * 8)
    trial.wider("elements of the tile of A, told again", 128 * 32, 64 * 32)
    return (
        f"The two do not fit together: 128 x 8 are {threads:,} threads. Perhaps there were two kernels; the"
        " lesson stands."
    )
