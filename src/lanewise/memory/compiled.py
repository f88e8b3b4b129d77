"""The counting rules as loops compiled by numba, for large batches: the same counts as `arrays`, many times
faster.

Imported only when a large batch arrives, so that `import lanewise` needs no numba.
"""

import numba
import numpy as np

from lanewise.instructions import Instruction
from lanewise.machine import BANKS, SECTOR_BYTES, WARP_LANES, WORD_BYTES

_ROWS_PER_TASK = 1024


def shared_wavefronts(
    spec: Instruction, addresses: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """What `lanewise.memory.shared_wavefronts` returns, of checked `(n, 32)` int64 and bool."""
    wavefronts = np.zeros(len(addresses), np.int64)
    ideal = np.zeros(len(addresses), np.int64)
    unit_shift = spec.unit_bytes.bit_length() - 1
    rule = (spec.address_lanes, spec.lanes_per_group, unit_shift, spec.fuses, spec.merges_equal_words)
    _all_wavefronts(addresses, *_mask_or_all(mask), *rule, wavefronts, ideal)
    return wavefronts, ideal


def global_sectors(addresses: np.ndarray, mask: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """What `lanewise.memory.global_sectors` returns, of checked `(n, 32)` int64 and bool."""
    requests = np.zeros(len(addresses), np.int64)
    sectors = np.zeros(len(addresses), np.int64)
    _all_sectors(addresses, *_mask_or_all(mask), requests, sectors)
    return requests, sectors


def _mask_or_all(mask: np.ndarray | None) -> tuple[np.ndarray, bool]:
    return (np.ones((1, WARP_LANES), np.bool_), True) if mask is None else (mask, False)


@numba.njit(parallel=True, cache=True)
def _all_wavefronts(  # type: ignore[no-untyped-def]
    addresses, mask, every_lane, n_lanes, lanes_per_group, unit_shift, fuses, merges, wavefronts, ideal
):
    n_rows = len(addresses)
    bank_mask = (BANKS * WORD_BYTES >> unit_shift) - 1
    for task in numba.prange((n_rows + _ROWS_PER_TASK - 1) // _ROWS_PER_TASK):
        units = np.empty(WARP_LANES, np.int64)
        active = np.ones(WARP_LANES, np.bool_)
        group = np.empty(WARP_LANES, np.int64)
        filled = np.empty(BANKS, np.int64)
        for row in range(task * _ROWS_PER_TASK, min(n_rows, (task + 1) * _ROWS_PER_TASK)):
            for lane in range(n_lanes):
                units[lane] = addresses[row, lane] >> unit_shift
                if not every_lane:
                    active[lane] = mask[row, lane]
            lanes = lanes_per_group
            if fuses and (_partners_agree(units, active, 1) or _partners_agree(units, active, 2)):
                lanes *= 2
            for start in range(0, n_lanes, lanes):
                if every_lane:
                    cost = _fullest_bank(units[start : start + lanes], bank_mask, merges, filled)
                else:
                    n_active = _gather(units, active, start, start + lanes, group)
                    cost = _fullest_bank(group[:n_active], bank_mask, merges, filled)
                wavefronts[row] += cost
                ideal[row] += cost > 0


@numba.njit(cache=True)
def _gather(units, active, start, stop, group):  # type: ignore[no-untyped-def]
    n_active = 0
    for lane in range(start, stop):
        if active[lane]:
            group[n_active] = units[lane]
            n_active += 1
    return n_active


@numba.njit(cache=True)
def _partners_agree(units, active, distance):  # type: ignore[no-untyped-def]
    for lane in range(WARP_LANES):
        partner = lane ^ distance
        if active[lane] and active[partner] and units[lane] != units[partner]:
            return False
    return True


@numba.njit(cache=True)
def _fullest_bank(group, bank_mask, merges, filled):  # type: ignore[no-untyped-def]
    """Count units per bank, take off repeated ones if equal units merge, and return the highest count.

    Comparing each unit with all before it, without leaving the loop early, is twice as fast as searching a
    list for each bank: random addresses make every early exit a branch that the processor guesses wrong.
    """
    filled[: bank_mask + 1] = 0
    most = 0
    for i in range(len(group)):
        bank = group[i] & bank_mask
        n_units = filled[bank] + 1
        filled[bank] = n_units
        most = max(most, n_units)
    if most <= 1 or not merges:
        return most
    for i in range(1, len(group)):
        unit = group[i]
        repeated = False
        for k in range(i):
            repeated |= group[k] == unit
        filled[unit & bank_mask] -= repeated
    most = 0
    for bank in range(bank_mask + 1):
        most = max(most, filled[bank])
    return most


@numba.njit(parallel=True, cache=True)
def _all_sectors(addresses, mask, every_lane, requests, sectors):  # type: ignore[no-untyped-def]
    n_rows = len(addresses)
    for task in numba.prange((n_rows + _ROWS_PER_TASK - 1) // _ROWS_PER_TASK):
        seen = np.empty(WARP_LANES, np.int64)
        for row in range(task * _ROWS_PER_TASK, min(n_rows, (task + 1) * _ROWS_PER_TASK)):
            n_seen = 0
            for lane in range(WARP_LANES):
                if not every_lane and not mask[row, lane]:
                    continue
                sector = addresses[row, lane] // SECTOR_BYTES
                known = False
                # Backwards: neighbours in lane order are mostly neighbours in memory.
                for k in range(n_seen - 1, -1, -1):
                    if seen[k] == sector:
                        known = True
                        break
                if not known:
                    seen[n_seen] = sector
                    n_seen += 1
            sectors[row] = n_seen
            requests[row] = n_seen > 0
