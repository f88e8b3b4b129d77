"""How many warp accesses the memory model counts per second, and how far ahead of plain NumPy that is.

Both implementations count the same random addresses in the same run; the figure that travels between machines is
their ratio.
"""

import statistics
import time
from collections.abc import Callable
from types import ModuleType

import numpy as np

from lanewise.memory import arrays, bulk, compiled

N_ACCESSES = 1_000_000
ROUNDS = 5


def main() -> None:
    """Print one line per kind of access."""
    rng = np.random.default_rng(0)
    words = rng.integers(0, 12 * 1024, (N_ACCESSES, 32))  # 48 KB of 32-bit words
    cases: dict[str, tuple[Callable, str, np.ndarray]] = {
        "shared, 32-bit, random": (bulk.shared_wavefronts, "ld.shared.b32", 4 * words),
        "shared, 128-bit, random": (bulk.shared_wavefronts, "ld.shared.b128", 16 * (words // 4)),
        "global, 32-bit, random": (bulk.global_sectors, "ld.global.b32", 4 * words),
    }
    print(f"{N_ACCESSES:,} warp accesses, median of {ROUNDS} rounds")
    for label, (count, name, addresses) in cases.items():
        fast, plain = (_rate(module, count, name, addresses) for module in (compiled, arrays))
        print(f"{label:<26} {fast / 1e6:6.2f} M/s compiled, {plain / 1e6:5.2f} M/s NumPy, ratio {fast / plain:.1f}")


def _rate(module: ModuleType, count: Callable, name: str, addresses: np.ndarray) -> float:
    chosen = bulk._implementation
    bulk._implementation = lambda n_rows: module
    try:
        count(name, addresses[:100])  # compile outside the timing
        seconds = [_seconds(count, name, addresses) for _ in range(ROUNDS)]
    finally:
        bulk._implementation = chosen
    return len(addresses) / statistics.median(seconds)


def _seconds(count: Callable, name: str, addresses: np.ndarray) -> float:
    start = time.perf_counter()
    count(name, addresses)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
