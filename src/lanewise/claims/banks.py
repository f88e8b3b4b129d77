"""Claims about banks: which bank an address is in, what a conflict is, and what is none."""

from lanewise.claims.claim import Trial, Verdict, claim
from lanewise.claims.evidence import column, counted, lanes
from lanewise.machine import BANKS, WARP_LANES, WORD_BYTES

OK, WRONG, IMPRECISE = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE


def bank(byte_address: int) -> int:
    """The bank of a byte, counted by the memory model."""
    (only,) = lanes("ld.shared.b8", lambda lane: 0 * lane + byte_address).phases[0].words_by_bank
    return only


@claim("CA-04", "banks", OK)
def ca_04(trial: Trial) -> str:
    """The bank of a byte is (address / 4) mod 32: bytes 0 to 3, 4 to 7, 8 to 11 are in banks 0, 1, 2."""
    for first, last, number in ((0, 3, 0), (4, 7, 1), (8, 11, 2)):
        trial.stated(f"banks of bytes {first} and {last}", (number, number), (bank(first), bank(last)))
    return f"So it is, and byte {WORD_BYTES * BANKS} begins again with bank {bank(WORD_BYTES * BANKS)}."


@claim("CA-07", "banks", OK)
def ca_07(trial: Trial) -> str:
    """In a float tile of 32 columns, reading `tile[tid][0]` is a 32-way conflict."""
    found = trial.stated("wavefronts, pitch 32", 32, column(32))
    on_gpu = counted("ld.shared.b32", lambda lane: 128 * lane)
    trial.stated("the same, counted", 32, on_gpu, "shared_wavefronts")
    return (
        f"All {WARP_LANES} lanes want a word of their own from bank 0: {found} wavefronts where 1 would do."
    )
