"""Claims about the price of a swizzle: what compilers do with it, and where it is not worth it."""

import numpy as np

from lanewise.claims.claim import Trial, Verdict, at_least, at_most, claim
from lanewise.claims.documents import PROGRAMMING_GUIDE, PTX_LDMATRIX
from lanewise.claims.evidence import lanes, recorded, row, rows, tile
from lanewise.layouts import row_major
from lanewise.swizzles import xor_tile

OK, WRONG, IMPRECISE, HW = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE, Verdict.HW

LANE = np.arange(32)


def reconciled(id: str, label: str, total: str) -> tuple[int, int, int]:
    """A total as traced, as compiled for the H200, and as counted there."""
    (case,) = (
        case for case in rows("reconciliation", "cases") if (case["experiment"], case["label"]) == (id, label)
    )
    _, traced, compiled, counted = case["totals"][total]
    return traced, compiled, counted


@claim("CA-63", "swizzle", WRONG, "swizzle-compiler")
def ca_63(trial: Trial) -> str:
    """The compiler may simplify the XOR away, back to the original pattern."""
    traced, compiled, counted = reconciled("E-04", "swizzled 1024", "shared.load.wavefronts")
    without = reconciled("E-04", "tiled 1024", "shared.load.wavefronts")[2]
    trial.stated("wavefronts of the swizzled loads in machine code", without, compiled, "reconciliation")
    trial.stated("the same, counted", without, counted, "reconciliation")
    return (
        f"A compiler may compute an address otherwise, never change which word it is: {traced:,} wavefronts"
        f" as written, {compiled:,} in the machine code, {counted:,} counted. Without the XOR there are"
        f" {without:,}."
    )


@claim("CA-64", "swizzle", WRONG, "swizzle-claim-volatile")
def ca_64(trial: Trial) -> str:
    """A volatile variable, or inline assembly, protects the swizzle from the compiler."""
    _, _, counted = reconciled("E-04", "swizzled 1024", "shared.load.wavefronts")
    fewest = reconciled("E-04", "swizzled 1024", "shared.load.ideal")[2]
    lost = counted - fewest
    trial.stated("wavefronts lost without protection", at_least(1), lost, "reconciliation")
    return (
        f"There is nothing to protect it from: compiled without any, the kernel loses {lost} of {counted:,}"
        " wavefronts."
    )


@claim("CA-65", "swizzle", OK, "swizzle-not")
def ca_65(trial: Trial) -> str:
    """A swizzle is not worth it where data is written once and then read by rows or contiguous ranges."""
    found = trial.stated("a row of floats: wavefronts lost", 0, row(32) - 1)
    trial.stated(
        "float4, side by side: wavefronts lost", 0, lanes("ld.shared.b128", lambda lane: 16 * lane).excess
    )
    time = recorded("E-17").ratio("swizzled 8192", "plain 8192")
    return (
        f"Such reads lose {found} wavefronts as they are. On an H200 a swizzle made a filter take {time:.2f}"
        " times the time."
    )


@claim("CA-66", "swizzle", OK, "swizzle-not")
def ca_66(trial: Trial) -> str:
    """A swizzle is not worth it for tiny tiles, such as 8 x 8: conflicts are mild."""
    floats = trial.stated("words in the fullest bank, 8 x 8 floats", at_most(2), _fullest(64 * 4))
    halves = trial.stated("the same, 8 x 8 halves", at_most(2), _fullest(64 * 2))
    return (
        f"64 floats put {floats} words into a bank, so at most a 2-way conflict; 64 halves {halves}, so none"
        " is possible."
    )


def _fullest(n_bytes: int) -> int:
    return int(np.bincount(np.arange(n_bytes // 4) % 32).max())


@claim("CA-67", "swizzle", IMPRECISE, "swizzle-claim-maxwell")
def ca_67(trial: Trial) -> str:
    """A swizzle matters little on old GPUs such as Maxwell, which have neither ldmatrix nor Tensor Cores."""
    trial.stated("compute capability 5.x has ldmatrix", False, False, PTX_LDMATRIX)
    xor = tile("ld.shared.b32", xor_tile(32, 32), LANE, 0).wavefronts
    plain = tile("ld.shared.b32", row_major((32, 32)), LANE, 0).wavefronts
    trial.wider(
        "times as many wavefronts without, a column of floats", at_most(2), plain / xor, PROGRAMMING_GUIDE
    )
    return (
        "Only the argument of the Tensor Cores falls away. The banks are the same: the column of a"
        f" transpose takes {plain} wavefronts without and {xor} with an XOR, on any of them."
    )


@claim("CA-68", "swizzle", HW, "swizzle-cost")
def ca_68(trial: Trial) -> str:
    """In a small image kernel a swizzle brought 12 % more address instructions and was 3 % slower."""
    run = recorded("E-17")
    more = run.counter("swizzled 128", "instructions") / run.counter("plain 128", "instructions") - 1
    trial.here("instructions more, % (our filter)", 12, round(100 * more), "E-17")
    slower = run.ratio("swizzled 8192", "plain 8192") - 1
    trial.here("time more, % (our filter, H200)", 3, round(100 * slower), "E-17")
    return (
        "The effect is real, its size depends. Our 3 x 3 filter has no conflict either way; the swizzle"
        f" gives it {more:.0%} more instructions, and on an H200 {slower:.0%} more time."
    )


@claim("CA-79", "swizzle", OK, "swizzle-claim-instructions")
def ca_79(trial: Trial) -> str:
    """A swizzle costs address instructions."""
    run = recorded("E-04")
    padded = run.counter("padded 1024", "instructions")
    more = run.counter("swizzled 1024", "instructions") / padded
    trial.stated("instructions of a transpose, XOR against pad: times as many", at_least(1.01), more, "E-04")
    filters = recorded("E-17")
    both = filters.counter("swizzled 128", "instructions") / filters.counter("plain 128", "instructions")
    trial.stated("of a filter, XOR against none", at_least(1.01), both, "E-17")
    return (
        f"The transpose executes {more - 1:.1%} more instructions with an XOR than with a pad, the filter"
        f" {both - 1:.1%}."
    )
