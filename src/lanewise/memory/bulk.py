"""Counting many warp accesses at once.

Addresses come as `(n, 32)` integers, one row per warp instruction. A large batch goes to loops compiled by
numba if numba is installed; a small one (or any, without numba) goes to array operations. Both give the same
counts.
"""

from importlib.util import find_spec
from types import ModuleType
from typing import Any

import numpy as np

from lanewise.access import as_array, misaligned_message, out_of_range_message
from lanewise.errors import InvalidAccess, Misaligned, NotModelled
from lanewise.instructions import Instruction, instruction
from lanewise.integers import whole
from lanewise.machine import CHUNK_BYTES, LINE_BYTES, WARP_LANES
from lanewise.memory import arrays

# Loading numba and its compiled code takes about a second; fewer rows than this are done sooner without it.
COMPILE_FROM_ROWS = 20_000


def shared_wavefronts(
    instruction_name: str,
    byte_addresses: np.ndarray,
    active: np.ndarray | None = None,
    *,
    source_addresses: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Count the shared-memory wavefronts of `n` warp instructions, and the fewest their active lanes allow.

    `byte_addresses` is `(n, 32)` integers (bytes), `active` is `(n, 32)` bools (default: all lanes). For
    `cp.async` these are the destinations; the counts hold for a contiguous source, which for 16 bytes per
    lane must start on a 128-byte line, and `source_addresses`, if given, is checked for it. Returns
    `(wavefronts, ideal)`, two `(n,)` int64 arrays; their difference is what Nsight Compute calls bank
    conflicts. An instruction with no active lane costs 0.

    >>> shared_wavefronts("ld.shared.b32", 128 * np.arange(32)[None, :])
    (array([32]), array([1]))

    Raises `UnknownInstruction`, `InvalidAccess`, `Misaligned`, or `NotModelled` where no rule is known.
    """
    spec = instruction(instruction_name, space="shared")
    spec.require_modelled()
    addresses, mask = _checked(spec, byte_addresses, active)
    if source_addresses is not None:
        _require_contiguous_source(spec, source_addresses, mask, addresses.shape)
    return _implementation(len(addresses)).shared_wavefronts(spec, addresses, mask)


def global_sectors(
    instruction_name: str, byte_addresses: np.ndarray, active: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Count the requests and the distinct 32-byte sectors of `n` global-memory warp instructions.

    `byte_addresses` is `(n, 32)` integers (bytes), `active` is `(n, 32)` bools (default: all lanes). Returns
    `(requests, sectors)`, two `(n,)` int64 arrays; a request is one warp instruction with at least one active
    lane. For `cp.async.ca` these are the source addresses.

    >>> global_sectors("ld.global.b32", 4 + 4 * np.arange(32)[None, :])
    (array([1]), array([5]))

    Raises `UnknownInstruction`, `InvalidAccess`, `Misaligned`, or `NotModelled` (reductions and atomics).
    """
    spec = instruction(instruction_name, space="global")
    spec.require_modelled()
    addresses, mask = _checked(spec, byte_addresses, active)
    return _implementation(len(addresses)).global_sectors(addresses, mask)


def is_contiguous(
    byte_addresses: np.ndarray, bytes_per_lane: int, active: np.ndarray | None = None
) -> np.ndarray:
    """Tell for each row whether active lane `l` addresses `base + l * bytes_per_lane`: an `(n,)` bool array.

    `byte_addresses` is `(n, 32)` integers (bytes), `active` is `(n, 32)` bools (default: all lanes).

    >>> is_contiguous([range(0, 128, 4), range(0, 256, 8)], bytes_per_lane=4)
    array([ True, False])

    Raises `InvalidAccess` for anything else.
    """
    width = whole("is_contiguous: bytes_per_lane", bytes_per_lane, InvalidAccess, low=1)
    addresses = _as_addresses("is_contiguous", byte_addresses)
    offsets = addresses - width * np.arange(WARP_LANES)
    mask = (
        np.ones(offsets.shape, bool) if active is None else _as_mask("is_contiguous", active, offsets.shape)
    )
    first = np.take_along_axis(offsets, mask.argmax(axis=1)[:, None], axis=1)
    return ((offsets == first) | ~mask).all(axis=1)


def has_modelled_source(
    instruction_name: str, source_addresses: np.ndarray, active: np.ndarray | None = None
) -> np.ndarray:
    """Tell for each async copy whether its source is such that its shared wavefronts are known: `(n,)` bools.

    The source must be contiguous and, for 16 bytes per lane, start on a 128-byte line. Arguments as for
    `global_sectors`.
    """
    spec = instruction(instruction_name, space="shared")
    sources = _as_addresses(f"{spec.name} (source)", source_addresses)
    mask = None if active is None else _as_mask(spec.name, active, sources.shape)
    return is_contiguous(sources, spec.bytes_per_lane, mask) & _in_whole_lines(spec, sources, mask)


def _implementation(n_rows: int) -> ModuleType:
    if n_rows < COMPILE_FROM_ROWS or find_spec("numba") is None:
        return arrays
    from lanewise.memory import compiled

    return compiled


def _checked(
    spec: Instruction, byte_addresses: np.ndarray, active: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    addresses = _as_addresses(spec.name, byte_addresses)
    mask = None if active is None else _as_mask(spec.name, active, addresses.shape)
    _refuse_bad_addresses(spec, addresses, mask)
    if mask is not None and spec.is_matrix:
        _refuse_partial_matrix(spec, mask)
    return addresses, mask


def _as_addresses(who: str, byte_addresses: Any) -> np.ndarray:
    array = as_array(f"{who}: byte_addresses", byte_addresses)
    if array.ndim != 2 or array.shape[1] != WARP_LANES:
        raise InvalidAccess(
            f"{who}: got byte_addresses of shape {array.shape}; the shape is (n, {WARP_LANES}), one row"
            " per warp instruction and one column per lane. For one access use addresses[None, :]."
        )
    if array.dtype.kind not in "iu":
        raise InvalidAccess(f"{who}: got byte_addresses of dtype {array.dtype}; give integers (bytes).")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise InvalidAccess(f"{who}: byte address {array.max()} exceeds 63 bits. Subtract a base.")
    return np.ascontiguousarray(array, dtype=np.int64)


def _as_mask(who: str, active: Any, shape: tuple[int, ...]) -> np.ndarray:
    mask = as_array(f"{who}: active", active)
    if mask.dtype != bool or mask.shape != shape:
        raise InvalidAccess(
            f"{who}: got active of shape {mask.shape} and dtype {mask.dtype}; it must be bool of shape"
            f" {shape}, True where the lane takes part."
        )
    return np.ascontiguousarray(mask)


def _refuse_bad_addresses(
    spec: Instruction, addresses: np.ndarray, mask: np.ndarray | None, whose: str = ""
) -> None:
    """Name the first bad address of a lane that counts; addresses of other lanes may be anything."""
    combined = int(np.bitwise_or.reduce(addresses, axis=None)) if addresses.size else 0
    if combined >= 0 and combined % spec.bytes_per_lane == 0:
        return
    bad = (addresses < 0) | (addresses % spec.bytes_per_lane != 0)
    bad &= np.arange(WARP_LANES) < spec.address_lanes
    if mask is not None:
        bad &= mask
    if not bad.any():
        return
    row, lane = (int(position) for position in np.argwhere(bad)[0])
    address, who = int(addresses[row, lane]), f"{whose}row {row}, lane {lane}"
    if address < 0:
        raise InvalidAccess(out_of_range_message(spec, who, address))
    raise Misaligned(misaligned_message(spec, who, address))


def _refuse_partial_matrix(spec: Instruction, mask: np.ndarray) -> None:
    used = mask[:, : spec.address_lanes]
    partial = used.any(axis=1) & ~used.all(axis=1)
    if partial.any():
        row = int(partial.argmax())
        lane = int((~used[row]).argmax())
        raise InvalidAccess(
            f"{spec.name}: row {row}, lane {lane} is inactive, but the first {spec.address_lanes} lanes give"
            " the row addresses and the whole warp must execute the instruction together."
        )


def _require_contiguous_source(
    spec: Instruction, source_addresses: np.ndarray, mask: np.ndarray | None, shape: tuple[int, ...]
) -> None:
    if spec.op != "async_copy":
        raise InvalidAccess(
            f"{spec.name}: got source_addresses, but only cp.async has a source. Leave it out."
        )
    sources = _as_addresses(f"{spec.name} (source)", source_addresses)
    if sources.shape != shape:
        raise InvalidAccess(
            f"{spec.name}: got source_addresses of shape {sources.shape} for byte_addresses of shape {shape}."
            " Give one source for each destination."
        )
    _refuse_bad_addresses(spec, sources, mask, "source of ")
    scattered = ~is_contiguous(sources, spec.bytes_per_lane, mask)
    if scattered.any():
        raise NotModelled(
            f"{spec.name}: row {int(scattered.argmax())} copies from a scattered source, which multiplies the"
            " shared wavefronts in a way nobody has settled. The count holds for a contiguous source only."
        )
    split = ~_in_whole_lines(spec, sources, mask)
    if split.any():
        raise NotModelled(
            f"{spec.name}: the source of row {int(split.argmax())} does not start on a"
            f" {LINE_BYTES}-byte line, which costs more wavefronts by a rule nobody has settled. The count"
            " holds for one that does."
        )


def _in_whole_lines(spec: Instruction, sources: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
    """Tell for each row whether the source of each group of lanes is one line, where that matters.

    Measured on the H200: it matters for 16 bytes per lane, and not for 4 or 8.
    """
    if spec.bytes_per_lane < CHUNK_BYTES:
        return np.ones(len(sources), bool)
    whole_lines = (sources - spec.bytes_per_lane * np.arange(WARP_LANES)) % LINE_BYTES == 0
    return (whole_lines if mask is None else whole_lines | ~mask).all(axis=1)
