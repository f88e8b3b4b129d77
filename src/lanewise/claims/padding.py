"""Claims about padding: which pitch serves a column, and what a pad costs."""

from lanewise.claims.claim import Trial, Verdict, claim
from lanewise.claims.evidence import column

OK, WRONG, IMPRECISE = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE


@claim("CA-09", "padding", OK)
def ca_09(trial: Trial) -> str:
    """With `tile[32][33]`, one column more, reading `tile[tid][0]` is free of conflicts."""
    found = trial.stated("wavefronts, pitch 33", 1, column(33))
    return f"Row `tid` begins in bank `tid`: {found} wavefront instead of {column(32)}."


@claim("CA-10", "padding", IMPRECISE)
def ca_10(trial: Trial) -> str:
    """To free a column from conflicts the row width need only not be a multiple of 32."""
    trial.stated("wavefronts, width 33", 1, column(33))
    widths = (34, 35, 36, 40, 48, 66)
    found = {width: trial.wider(f"wavefronts, width {width}", 1, column(width)) for width in widths}
    degrees = ", ".join(f"{width} gives {ways}" for width, ways in found.items())
    return f"The degree is gcd(width, 32): {degrees}. Only odd widths are free."
