"""How many warp accesses the memory model counts per second, and how far ahead of plain NumPy that is.

The model is timed as a user calls it, checks of the addresses included; plain NumPy is the sorting of
`lanewise.memory.arrays`. Both count the same random addresses in the same run: what travels between machines
is their ratio.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np

from lanewise.instructions import instruction
from lanewise.memory import arrays, global_sectors, shared_wavefronts

N_ACCESSES = 1_000_000
ROUNDS = 5

Count = Callable[[np.ndarray], object]


def main() -> None:
    """Print one line per kind of access."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 12 * 1024, (N_ACCESSES, 32))  # 48 KB of 32-bit words
    b32, b128 = instruction("ld.shared.b32"), instruction("ld.shared.b128")
    cases: dict[str, tuple[np.ndarray, Count, Count]] = {
        "shared, 32-bit, random": (
            4 * words,
            lambda addresses: shared_wavefronts(b32.name, addresses),
            lambda addresses: arrays.shared_wavefronts(b32, addresses),
        ),
        "shared, 128-bit, random": (
            16 * (words // 4),
            lambda addresses: shared_wavefronts(b128.name, addresses),
            lambda addresses: arrays.shared_wavefronts(b128, addresses),
        ),
        "global, 32-bit, random": (
            4 * words,
            lambda addresses: global_sectors("ld.global.b32", addresses),
            arrays.global_sectors,
        ),
    }
    print(f"{N_ACCESSES:,} warp accesses, median of {ROUNDS} rounds")
    for label, (addresses, model, plain) in cases.items():
        fast, slow = rate(model, addresses), rate(plain, addresses)
        print(f"{label:<26} {fast / 1e6:6.2f} M/s, {slow / 1e6:5.2f} M/s NumPy, ratio {fast / slow:.1f}")


def rate(count: Count, addresses: np.ndarray) -> float:
    """Accesses per second; the first round, which may compile, is not timed."""
    count(addresses)
    return len(addresses) / statistics.median(_seconds(count, addresses) for _ in range(ROUNDS))


def _seconds(count: Count, addresses: np.ndarray) -> float:
    start = time.perf_counter()
    count(addresses)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
