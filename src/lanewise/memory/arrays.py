"""The counting rules as NumPy array operations: no dependency, the same counts as `compiled`.

An access of `w` words per lane is aligned to `w` words, so it covers `w` neighbouring banks entirely.
Counting *units* of `4 w` bytes on `32 / w` unit-wide banks therefore gives the same maximum as counting words
on 32 banks.
"""

import numpy as np

from lanewise.instructions import Instruction
from lanewise.machine import BANKS, SECTOR_BYTES, WORD_BYTES

_CHUNK_ROWS = 16_384  # bounds the temporary arrays to a few megabytes
_INACTIVE = -1  # sorts below every unit and every sector


def shared_wavefronts(
    spec: Instruction, addresses: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What `lanewise.memory.shared_wavefronts` returns, of checked `(n, 32)` int64 and bool."""
    wavefronts = np.zeros(len(addresses), np.int64)
    ideal = np.zeros(len(addresses), np.int64)
    n_lanes = spec.address_lanes
    for start in range(0, len(addresses), _CHUNK_ROWS):
        chunk = slice(start, start + _CHUNK_ROWS)
        active = None if mask is None else mask[chunk, :n_lanes]
        units = _visible(addresses[chunk, :n_lanes] // spec.unit_bytes, active)
        fused = _lanes_pair_up(units) if spec.fuses else np.zeros(len(units), bool)
        for joined, lanes in ((False, spec.lanes_per_group), (True, 2 * spec.lanes_per_group)):
            rows = np.flatnonzero(fused == joined)
            groups = units[rows].reshape(len(rows), n_lanes // lanes, lanes)
            wavefronts[start + rows] = _most_units_in_a_bank(spec, groups).sum(axis=1)
            ideal[start + rows] = (groups != _INACTIVE).any(axis=2).sum(axis=1)
    return wavefronts, ideal


def global_sectors(addresses: np.ndarray, mask: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """What `lanewise.memory.global_sectors` returns, of checked `(n, 32)` int64 and bool."""
    sectors = _visible(addresses // SECTOR_BYTES, mask)
    requests = (sectors != _INACTIVE).any(axis=1).astype(np.int64)
    return requests, _first_of_its_kind(np.sort(sectors, axis=1)).sum(axis=1)


def _visible(values: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    return values if mask is None else np.where(mask, values, _INACTIVE)


def _lanes_pair_up(units: np.ndarray) -> np.ndarray:
    """Rows in which lanes `i` and `i ^ 1` (or `i` and `i ^ 2`) agree wherever both are active."""

    def agree(distance: int) -> np.ndarray:
        partner = units[:, np.arange(units.shape[1]) ^ distance]
        return ((units == partner) | (units == _INACTIVE) | (partner == _INACTIVE)).all(axis=1)

    return agree(1) | agree(2)


def _most_units_in_a_bank(spec: Instruction, groups: np.ndarray) -> np.ndarray:
    """The wavefronts of each group, `(rows, groups)`: units in its fullest bank, equal units once if they
    merge."""
    n_rows, n_groups, _ = groups.shape
    n_banks = BANKS * WORD_BYTES // spec.unit_bytes
    if spec.merges_equal_words:
        groups = np.sort(groups, axis=2)
        counted = _first_of_its_kind(groups)
    else:
        counted = groups != _INACTIVE
    bank = np.arange(n_rows * n_groups).reshape(n_rows, n_groups, 1) * n_banks + groups % n_banks
    units_in_bank = np.bincount(bank[counted], minlength=n_rows * n_groups * n_banks)
    return units_in_bank.reshape(n_rows, n_groups, n_banks).max(axis=2)


def _first_of_its_kind(ordered: np.ndarray) -> np.ndarray:
    """Mark the first of each run of equal values along the last axis, inactive lanes excepted."""
    first = ordered != _INACTIVE
    first[..., 1:] &= ordered[..., 1:] != ordered[..., :-1]
    return first
