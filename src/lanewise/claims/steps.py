"""Claims about algorithms whose access pattern changes from step to step: sums, prefix sums, transforms."""

import numpy as np

from lanewise.claims.claim import Run, Trial, Verdict, at_least, claim
from lanewise.claims.evidence import lanes, recorded, traced
from lanewise.memory import SharedCost

OK = Verdict.OK

LANE = np.arange(32)
STEPS = (1, 2, 4, 8, 16, 32, 64, 128)
DISTANCES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def interleaved(step: int) -> SharedCost:
    """Warp 0 of a block of 256 that reads s[2 * step * tid], with the lanes that this step still has."""
    mask = (1 << min(32, 128 // step)) - 1
    return lanes("ld.shared.b32", lambda lane: 4 * 2 * step * lane, mask)


def sequential(half: int) -> SharedCost:
    """The same warp if tid adds s[tid + half]."""
    return lanes("ld.shared.b32", lambda lane: 4 * (lane + half), (1 << min(32, half)) - 1)


def butterfly(distance: int, word: int) -> int:
    """Wavefronts of the first reads of a butterfly of points of `word` bytes, `distance` apart."""
    low = LANE // distance * 2 * distance + LANE % distance
    return lanes(f"ld.shared.b{8 * word}", lambda _: word * low).wavefronts


def reversal(points: int, pad: bool = False) -> int:
    """Wavefronts of a read in bit-reversed order, without and with a word after every 32."""
    bits = points.bit_length() - 1
    place = np.array([int(f"{lane:0{bits}b}"[::-1], 2) for lane in LANE])
    return lanes("ld.shared.b32", lambda _: 4 * (place + pad * (place // 32))).wavefronts


@claim("CB-18", "reduction_scan_fft", OK, "reduction-scan-fft-claim-steps")
def cb_18(trial: Trial) -> str:
    """In a reduction over s[2 s tid] the conflict changes with the step and with the lanes that are left."""
    costs = {step: interleaved(step).wavefronts for step in STEPS}
    trial.stated("wavefronts of steps 1, 2, 4, .. 128", (2, 4, 8, 8, 8, 4, 2, 1), tuple(costs.values()))
    tidy = [sequential(half).wavefronts for half in STEPS]
    trial.stated("with sequential addresses", [1] * len(STEPS), tidy)
    run = Run("traces of `sum_interleaved`, `sum_sequential`")
    lost = [
        traced("E-36", f"{kind}, 256 threads").shared.total.excess for kind in ("interleaved", "sequential")
    ]
    trial.stated("wavefronts lost, interleaved", at_least(1), lost[0], run)
    trial.stated("wavefronts lost, sequential", 0, lost[1], run)
    times = recorded("E-36")
    gain = times.ratio("interleaved, 256 threads", "sequential, 256 threads")
    divergent = times.ratio("divergent, 256 threads", "sequential, 256 threads")
    return (
        f"It rises to {max(costs.values())} and falls as lanes drop out. Sequential addresses have none, and"
        f" are {gain:.2f} times as fast on an H200. tid % (2 s) == 0 has none either, and is {divergent:.1f}"
        " times as slow, for its divergence."
    )


@claim("CB-19", "reduction_scan_fft", OK, "reduction-scan-fft-claim-distances")
def cb_19(trial: Trial) -> str:
    """The butterflies of a Fourier transform have distances that are powers of two, so conflicts are likely;
    complex numbers make wide accesses."""
    found = {word: [butterfly(distance, word) for distance in DISTANCES] for word in (4, 8)}
    trial.stated("wavefronts, floats, distances 1 to 512", [2] * 5 + [1] * 5, found[4])
    trial.stated("wavefronts, pairs of floats", [4] * 4 + [2] * 6, found[8])
    run = recorded("E-36-fft")
    for word, kind in ((4, "split"), (8, "pairs")):
        counts = [run.counter(f"{kind}, distance {d}", "shared_load_conflicts") > 0 for d in DISTANCES]
        ideal = 1 if word == 4 else 2
        trial.stated(
            f"{kind}: conflicts where computed, counted", [n > ideal for n in found[word]], counts, "E-36-fft"
        )
    plain = trial.stated("bit-reversed order, 1,024 points", 32, reversal(1024))
    free = trial.stated("the same, padded", 1, reversal(1024, pad=True))
    slower = run.ratio("padded", "split")
    return (
        "Likely and mild: a factor of two at short distances, none at long ones. Bit reversal is the hard"
        f" part, {plain} wavefronts, {free} with a pad. Yet the padded transform takes {slower:.2f} times the"
        " time on an H200: its index arithmetic costs more."
    )
