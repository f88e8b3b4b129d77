"""Claims about padding by elements: which pitch serves a column, and what a pad costs."""

import numpy as np

from lanewise.claims.claim import Run, Trial, Verdict, about, at_least, claim
from lanewise.claims.documents import PROGRAMMING_GUIDE
from lanewise.claims.evidence import column, lanes, recorded, row, traced
from lanewise.layouts import padded
from lanewise.machine import KB, MACHINES, from_name, occupancy
from lanewise.swizzles import rotation_tile, xor_tile

OK, WRONG, IMPRECISE = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE

LANE = np.arange(32)


@claim("CA-09", "padding", OK, "padding-why")
def ca_09(trial: Trial) -> str:
    """With `tile[32][33]`, one column more, reading `tile[tid][0]` is free of conflicts."""
    found = trial.stated("wavefronts, pitch 33", 1, column(33))
    on_gpu = recorded("E-07").counter("pitch 33, column", "shared_load_wavefronts")
    trial.stated("the same, counted", 1, on_gpu, "E-07")
    return f"Row `tid` begins in bank `tid`: {found} wavefront instead of {column(32)}."


@claim("CA-10", "padding", IMPRECISE, "padding-claim-multiple")
def ca_10(trial: Trial) -> str:
    """To free a column from conflicts the row width need only not be a multiple of 32."""
    trial.stated("wavefronts, width 33", 1, column(33))
    widths = (34, 35, 36, 40, 48, 66)
    found = {width: trial.wider(f"wavefronts, width {width}", 1, column(width)) for width in widths}
    degrees = ", ".join(f"{width} gives {ways}" for width, ways in found.items())
    return f"The degree is gcd(width, 32): {degrees}. Only odd widths are free."


@claim("CA-11", "padding", WRONG, "padding-why")
def ca_11(trial: Trial) -> str:
    """Padding works because it staggers the addresses inside one row."""
    before = trial.stated("wavefronts to read a row without a pad", at_least(2), row(32))
    trial.stated("distance of neighbours in a row, with a pad (floats)", at_least(2), padded(32, 32, 1)(0, 1))
    return (
        f"A row never was the problem: {before} wavefront, with a pad or without, and neighbours stay"
        f" neighbours. Padding staggers the same column of different rows: {column(32)} wavefronts become"
        f" {column(33)}."
    )


@claim("CA-18", "padding", WRONG, "padding-claim-transposed")
def ca_18(trial: Trial) -> str:
    """Padding is weak for transposed access."""
    for op in ("store", "load"):
        totals = getattr(traced("E-04", "pad 1, 128").shared, op)
        each = totals.wavefronts // totals.requests
        trial.stated(
            f"wavefronts a {op} in a transpose, pitch 33", at_least(2), each, Run("trace of `transpose`")
        )
    gain = recorded("E-04").ratio("pad 0, 8192", "pad 1, 8192")
    return (
        f"Transposed access is what a pad of 1 cures: {column(32)} wavefronts become {column(33)}, and on an"
        f" H200 the transpose becomes {gain:.2f} times as fast."
    )


@claim("CA-19", "padding", OK, "padding-diagonals")
def ca_19(trial: Trial) -> str:
    """Padding is weak for diagonal access."""
    diagonal = trial.stated(
        "wavefronts of the diagonal, pitch 33", at_least(2), _along(padded(32, 32, 1), LANE)
    )
    anti = trial.stated("of the anti-diagonal, pitch 33", at_least(2), _along(padded(32, 32, 1), 31 - LANE))
    for name in ("diagonal", "anti-diagonal"):
        on_gpu = recorded("E-07").counter(f"pitch 33, {name}", "shared_load_wavefronts")
        trial.stated(f"the {name}, counted", at_least(2), on_gpu, "E-07")
    xor, rotation = xor_tile(32, 32), rotation_tile(32, 32)
    return (
        f"Diagonal {diagonal}, anti-diagonal {anti}; without a pad both take"
        f" {_along(padded(32, 32, 0), LANE)}. The XOR layout has the same weakness: {_along(xor, LANE)} and"
        f" {_along(xor, 31 - LANE)}; a rotation {_along(rotation, LANE)} and {_along(rotation, 31 - LANE)}."
        " No simple rule frees every direction."
    )


def _along(layout: object, col: np.ndarray) -> int:
    place = np.asarray(layout(LANE, col))  # type: ignore[operator]
    return lanes("ld.shared.b32", lambda _: 4 * place).wavefronts


@claim("CA-21", "padding", WRONG, "padding-claim-66")
def ca_21(trial: Trial) -> str:
    """A padding column makes float [128][128], 64 KB, about 66 KB large."""
    plain, one, four = (padded(128, 128, pad).n_bytes(4) / KB for pad in (0, 1, 4))
    trial.stated("KB without a pad", 64.0, plain)
    trial.stated("KB with one column more", about(66, 0.01), one)
    return (
        f"One column of 128 floats adds {one - plain:.1f} KB. Four columns, the pad for float4, make"
        f" {four:.0f} KB."
    )


@claim("CA-22", "padding", WRONG, "padding-claim-occupancy")
def ca_22(trial: Trial) -> str:
    """Under the limit of 48 KB the larger tile lowers occupancy."""
    bytes_ = padded(128, 128, 0).n_bytes(4)
    fits = sum(bytes_ <= machine.static_shared_bytes_per_block for machine in MACHINES.values())
    case = f"of {len(MACHINES)} generations of GPUs, how many let a kernel declare the tile"
    trial.stated(case, at_least(1), fits, PROGRAMMING_GUIDE)
    sm_90 = from_name("sm_90")
    blocks = {
        pad: occupancy(sm_90, 256, shared_bytes=padded(224, 128, pad).n_bytes(4)).blocks_per_sm
        for pad in (0, 1, 4)
    }
    return (
        f"A static tile of {bytes_ // KB} KB does not compile, padded or not; beyond 48 KB shared memory is"
        " dynamic. There is a real threshold, elsewhere: float [224][128] with pads of 0, 1 and 4 columns"
        f" lets {blocks[0]}, {blocks[1]} and {blocks[4]} blocks onto a multiprocessor of an H200."
    )


@claim("CA-23", "padding", WRONG, "padding-claim-bandwidth")
def ca_23(trial: Trial) -> str:
    """Padding wastes memory bandwidth."""
    with_pad, without = traced("E-04", "pad 1, 128"), traced("E-04", "pad 0, 128")
    run = Run("traces of `transpose`")
    more = with_pad.global_.total.sectors - without.global_.total.sectors
    trial.stated("more sectors of global memory, for a pad", at_least(1), more, run)
    requests = with_pad.shared.total.requests - without.shared.total.requests
    trial.stated("more requests to shared memory, for a pad", at_least(1), requests, run)
    extra = padded(32, 32, 1).n_bytes(4) - padded(32, 32, 0).n_bytes(4)
    return (
        f"Nobody ever touches the pad: {more} sectors and {requests} requests more. It costs space, {extra}"
        " bytes a tile."
    )


@claim("CA-27", "padding", WRONG)
def ca_27(trial: Trial) -> str:
    """With padding the bank is (address / 4) mod 32, where address = row x (width + pad) + col."""
    elements = LANE * 32
    predicted = int(np.bincount(elements // 4 % 32).max())
    truth = trial.stated("degree of a column at pitch 32, by this formula", predicted, column(32))
    return (
        f"The address counts elements, the formula divides as if it counted bytes: it predicts {predicted}"
        f" wavefronts, and there are {truth}. For floats the bank is (row x pitch + col) mod 32."
    )


@claim("CA-62", "padding", IMPRECISE, "padding-claim-scalar")
def ca_62(trial: Trial) -> str:
    """For accesses of 4 bytes a pad of 4 bytes is enough."""
    trial.stated("32 floats + 1: wavefronts of a column", 1, column(33))
    worse = trial.wider("31 floats + 1", 1, column(32))
    trial.wider("33 floats + 1", 1, column(34))
    return (
        f"Enough if the pitch becomes odd. A tile of 31 columns was free ({column(31)}); the pad gives it"
        f" {worse}."
    )
