"""The `numba.cuda` surface: coordinates, arrays in shared and local memory, barriers, warp operations,
atomics.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lanewise.machine import WARP_LANES
from lanewise.trace.arrays import ArrayRef
from lanewise.trace.lanes import BOOL, INT32, UINT32, binary, cast, choose, dtype_of, truth, whole
from lanewise.trace.registry import intrinsic, value
from lanewise.trace.source import Symbol
from lanewise.trace.synchronisation import Update

# -- where a lane is -------------------------------------------------------------------------------

_AXES = {"x": 0, "y": 1, "z": 2}


def _register_coordinates() -> None:
    for axis, number in _AXES.items():
        for name, coordinates in _COORDINATES.items():
            value(f"cuda.{name}.{axis}")(partial(_coordinate, coordinates, number))


def _coordinate(coordinates: Callable[[Any], Any], number: int, engine: Any) -> Any:
    return coordinates(engine)[number]


def _thread_index(engine: Any) -> Any:
    return (engine.dummy(INT32),) * 3 if engine.inferring else engine.launch.thread_index


def _block_index(engine: Any) -> Any:
    return (engine.dummy(INT32),) * 3 if engine.inferring else engine.block_index


_COORDINATES: dict[str, Callable[[Any], Any]] = {
    "threadIdx": _thread_index,
    "blockIdx": _block_index,
    "blockDim": lambda engine: tuple(np.int32(extent) for extent in engine.launch.block),
    "gridDim": lambda engine: tuple(np.int32(extent) for extent in engine.launch.grid),
}
_register_coordinates()
value("cuda.warpsize")(lambda engine: np.int32(WARP_LANES))


@value("cuda.laneid")
def _laneid(engine: Any) -> Any:
    if engine.inferring:
        return engine.dummy(INT32)
    return (engine.launch.lane_numbers % WARP_LANES).astype(np.int32)[None, :]


@intrinsic("cuda.grid")
def _grid(engine: Any, node: ast.Call, ndim: Any) -> Any:
    n = _dimensions(engine, node, ndim)
    if not engine.inferring and n > engine.launch.grid_ndim:
        engine.notes.setdefault(
            f"line {node.lineno}: grid({n}) in a launch of {engine.launch.grid_ndim} dimension(s): the"
            " further indices are always 0."
        )
    found = []
    for axis in range(n):
        engine.tick(node)
        start = binary("Mult", _block_index(engine)[axis], np.int32(engine.launch.block[axis]))
        found.append(binary("Add", start, _thread_index(engine)[axis]))
    return found[0] if n == 1 else tuple(found)


@intrinsic("cuda.gridsize")
def _gridsize(engine: Any, node: ast.Call, ndim: Any) -> Any:
    launch = engine.launch
    n = _dimensions(engine, node, ndim)
    sizes = tuple(np.int64(launch.grid[axis] * launch.block[axis]) for axis in range(n))
    return sizes[0] if n == 1 else sizes


def _dimensions(engine: Any, node: ast.Call, ndim: Any) -> int:
    if not isinstance(ndim, int) or not 1 <= ndim <= 3:
        engine.refuse(
            node, "grid dimensions other than a literal 1, 2 or 3", "Write cuda.grid(1), (2) or (3)."
        )
    return int(ndim)


# -- arrays that a kernel makes --------------------------------------------------------------------


def _constant_shape(engine: Any, node: ast.Call, shape: Any) -> tuple[int, ...]:
    parts = shape if isinstance(shape, tuple) else (shape,)
    for part in parts:
        if not isinstance(part, int) or isinstance(part, bool):
            engine.refuse(
                node,
                "an array shape that is not constant",
                "numba needs plain numbers or names of constants: PITCH = TILE + 1 outside the kernel, then"
                " (TILE, PITCH).",
            )
        if part < 0 or part > 1 << 24:
            engine.refuse(node, f"an array extent of {part}", "Use an extent that fits shared memory.")
    if not parts or len(parts) > 4:
        engine.refuse(node, "an array of no or more than four dimensions", "Use one to four.")
    return tuple(int(part) for part in parts)


def _data_type(engine: Any, node: ast.Call, dtype: Any) -> np.dtype:
    if isinstance(dtype, Symbol) and dtype.path in ("builtins.int", "builtins.float", "builtins.bool"):
        return np.dtype({"int": "int64", "float": "float64", "bool": "bool"}[dtype.path.partition(".")[2]])
    if not isinstance(dtype, np.dtype) or dtype.hasobject or dtype.kind not in "biufcV":
        engine.refuse(node, "this data type of an array", "Use numba or NumPy types such as float32.")
    return dtype


@intrinsic("cuda.shared.array")
def _shared_array(engine: Any, node: ast.Call, shape: Any, dtype: Any, alignment: Any = None) -> Any:
    extents, element = _constant_shape(engine, node, shape), _data_type(engine, node, dtype)
    natural = 1 << (max(1, element.alignment if element.names else element.itemsize) - 1).bit_length()
    if alignment is not None and not (
        isinstance(alignment, int) and alignment > 0 and alignment & (alignment - 1) == 0
    ):
        engine.refuse(node, "an alignment that is no power of two", "Use 4, 8, 16, ...")
    if 0 in extents and extents != (0,):
        engine.refuse(
            node, "a shared array with an extent of 0", "Use shape 0 alone for dynamic shared memory."
        )
    return engine.shared_array(node, extents, element, max(natural, alignment or 1))


@intrinsic("cuda.local.array")
def _local_array(engine: Any, node: ast.Call, shape: Any, dtype: Any, alignment: Any = None) -> Any:
    extents = _constant_shape(engine, node, shape)
    if int(np.prod(extents)) > 1 << 14 or 0 in extents:
        engine.refuse(node, f"a local array of shape {extents}", "Use at most 16,384 elements per thread.")
    return engine.local_array(node, extents, _data_type(engine, node, dtype))


@intrinsic("cuda.const.array_like")
def _const_array(engine: Any, node: ast.Call, array: Any) -> Any:
    if not isinstance(array, ArrayRef) or array.storage.space != "const":
        engine.refuse(node, "const.array_like of this", "Give it a NumPy array defined outside the kernel.")
    return array


# -- barriers --------------------------------------------------------------------------------------


@intrinsic("cuda.syncthreads")
def _syncthreads(engine: Any, node: ast.Call) -> None:
    engine.barrier(node)


def _voting_barrier(name: str, combine: Callable[[np.ndarray], Any]) -> None:
    @intrinsic(f"cuda.{name}")
    def _vote(engine: Any, node: ast.Call, predicate: Any) -> Any:
        engine.barrier(node, name)
        votes = np.broadcast_to(truth(engine.as_number(node, predicate)), engine.shape)
        votes = np.where(engine.active.array, votes, name == "syncthreads_and")
        return combine(votes).astype(np.int32)[:, None]


_voting_barrier("syncthreads_count", lambda votes: votes.sum(axis=1))
_voting_barrier("syncthreads_and", lambda votes: votes.all(axis=1))
_voting_barrier("syncthreads_or", lambda votes: votes.any(axis=1))


@intrinsic("cuda.syncwarp")
def _syncwarp(engine: Any, node: ast.Call, mask: Any = 0xFFFFFFFF) -> None:
    engine.warp_barrier(node, mask, "syncwarp")


@intrinsic("cuda.threadfence", "cuda.threadfence_block", "cuda.threadfence_system", "cuda.nanosleep")
def _threadfence(engine: Any, node: ast.Call, *ignored: Any) -> None:
    """A fence makes writes visible in order; it makes no thread wait, so it orders no two accesses by
    itself."""
    engine.tick(node)


@intrinsic("cuda.cg.this_grid", "cuda.this_grid")
def _this_grid(engine: Any, node: ast.Call) -> Any:
    return Symbol("cuda.grid_group")


@intrinsic("cuda.grid_group.sync")
def _grid_sync(engine: Any, node: ast.Call) -> None:
    engine.grid_barrier(node)


# -- warp operations -------------------------------------------------------------------------------


def _by_warp(engine: Any, number: Any) -> np.ndarray:
    """A value as `(b, warps, 32)`."""
    array = np.atleast_2d(whole(number))
    return np.broadcast_to(array, (array.shape[0], engine.shape[1])).reshape(array.shape[0], -1, WARP_LANES)


def _active_by_warp(engine: Any) -> np.ndarray:
    array = engine.active.array
    return np.broadcast_to(array, (array.shape[0], engine.shape[1])).reshape(array.shape[0], -1, WARP_LANES)


_LANE = np.arange(WARP_LANES)


def _shuffle(name: str, source_of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    @intrinsic(f"cuda.{name}")
    def _shfl(engine: Any, node: ast.Call, mask: Any, number: Any, lane: Any) -> Any:
        number = engine.as_number(node, number)
        engine.warp_barrier(node, mask, name)
        values, steps = _by_warp(engine, number), _by_warp(engine, lane).astype(np.int64)
        source = source_of(_LANE, steps)
        inside = (source >= 0) & (source < WARP_LANES)
        source = np.where(inside, source, _LANE)
        shape = np.broadcast_shapes(values.shape, source.shape)
        moved = np.take_along_axis(np.broadcast_to(values, shape), np.broadcast_to(source, shape), axis=2)
        return moved.reshape(shape[0], engine.shape[1])


_shuffle("shfl_sync", lambda lane, source: source % WARP_LANES)
_shuffle("shfl_up_sync", lambda lane, delta: lane - delta)
_shuffle("shfl_down_sync", lambda lane, delta: lane + delta)
_shuffle("shfl_xor_sync", lambda lane, bits: lane ^ bits)


def _vote(name: str, combine: Callable[[np.ndarray, np.ndarray], np.ndarray], dtype: np.dtype) -> None:
    @intrinsic(f"cuda.{name}")
    def _apply(engine: Any, node: ast.Call, mask: Any, predicate: Any) -> Any:
        engine.warp_barrier(node, mask, name)
        votes = _by_warp(engine, truth(engine.as_number(node, predicate)))
        voting = _active_by_warp(engine) & _by_warp(engine, engine.named_lanes(mask))
        result = combine(*np.broadcast_arrays(votes, voting)).astype(dtype)
        return np.repeat(result, WARP_LANES, axis=1)


_BITS = np.left_shift(np.uint32(1), _LANE.astype(np.uint32))

_vote("any_sync", lambda votes, voting: (votes & voting).any(axis=2), BOOL)
_vote("all_sync", lambda votes, voting: (votes | ~voting).all(axis=2), BOOL)
_vote("eq_sync", lambda votes, voting: (votes | ~voting).all(axis=2) | (~votes | ~voting).all(axis=2), BOOL)
_vote("ballot_sync", lambda votes, voting: ((votes & voting) * _BITS).sum(axis=2), UINT32)


@intrinsic("cuda.match_any_sync")
def _match_any(engine: Any, node: ast.Call, mask: Any, number: Any) -> Any:
    engine.warp_barrier(node, mask, "match_any_sync")
    values = _by_warp(engine, number)
    voting = _active_by_warp(engine)
    values, voting = np.broadcast_arrays(values, voting)
    equal = (values[..., :, None] == values[..., None, :]) & voting[..., None, :]
    return (equal * _BITS).sum(axis=3).astype(np.uint32).view(np.int32).reshape(values.shape[0], -1)


@intrinsic("cuda.match_all_sync")
def _match_all(engine: Any, node: ast.Call, mask: Any, number: Any) -> Any:
    engine.warp_barrier(node, mask, "match_all_sync")
    values, voting = np.broadcast_arrays(_by_warp(engine, number), _active_by_warp(engine))
    first = np.take_along_axis(values, voting.argmax(axis=2)[..., None], axis=2)
    same = ((values == first) | ~voting).all(axis=2)
    members = (voting * _BITS).sum(axis=2)
    return (
        np.repeat(np.where(same, members, 0).astype(np.uint32), WARP_LANES, axis=1),
        np.repeat(same, WARP_LANES, axis=1),
    )


@intrinsic("cuda.activemask")
def _activemask(engine: Any, node: ast.Call) -> Any:
    engine.tick(node)
    return np.repeat((_active_by_warp(engine) * _BITS).sum(axis=2).astype(np.uint32), WARP_LANES, axis=1)


@intrinsic("cuda.lanemask_lt")
def _lanemask_lt(engine: Any, node: ast.Call) -> Any:
    engine.tick(node)
    below = ((np.uint64(1) << _LANE.astype(np.uint64)) - np.uint64(1)).astype(np.uint32)
    return np.tile(below, engine.shape[1] // WARP_LANES)[None, :]


# -- bits ------------------------------------------------------------------------------------------


def _unsigned(number: Any) -> tuple[Any, int]:
    number = whole(number)
    bits = 8 * number.dtype.itemsize
    return number.astype(np.dtype(f"uint{bits}")), bits


def _integer(engine: Any, node: ast.Call, number: Any) -> Any:
    number = engine.as_number(node, number)
    if dtype_of(number).kind not in "iu":
        engine.refuse(node, "a bit operation on something that is no integer", "Convert with int().")
    engine.tick(node)
    return number


@intrinsic("cuda.popc")
def _popc(engine: Any, node: ast.Call, number: Any) -> Any:
    number = _integer(engine, node, number)
    return np.bitwise_count(_unsigned(number)[0]).astype(dtype_of(number))


@intrinsic("cuda.brev")
def _brev(engine: Any, node: ast.Call, number: Any) -> Any:
    number = _integer(engine, node, number)
    unsigned, bits = _unsigned(number)
    reverse = np.zeros_like(unsigned)
    one = unsigned.dtype.type(1)
    for bit in range(bits):
        reverse = (reverse << one) | ((unsigned >> unsigned.dtype.type(bit)) & one)
    return cast(reverse, dtype_of(number))


@intrinsic("cuda.clz")
def _clz(engine: Any, node: ast.Call, number: Any) -> Any:
    number = _integer(engine, node, number)
    unsigned, bits = _unsigned(number)
    smeared = unsigned
    shift = 1
    while shift < bits:
        smeared = smeared | (smeared >> smeared.dtype.type(shift))
        shift *= 2
    return (bits - np.bitwise_count(smeared).astype(np.int64)).astype(dtype_of(number))


@intrinsic("cuda.ffs")
def _ffs(engine: Any, node: ast.Call, number: Any) -> Any:
    """Position of the lowest set bit, counted from 1; 0 if none is set."""
    unsigned, _bits = _unsigned(_integer(engine, node, number))
    one = unsigned.dtype.type(1)
    below = np.bitwise_count((unsigned & (~unsigned + one)) - one).astype(np.uint32)
    return np.where(unsigned == 0, np.uint32(0), below + np.uint32(1))[()]


@intrinsic("cuda.selp")
def _selp(engine: Any, node: ast.Call, condition: Any, yes: Any, no: Any) -> Any:
    engine.tick(node)
    dtype = np.promote_types(dtype_of(yes), dtype_of(no))
    return choose(truth(condition), cast(yes, dtype), cast(no, dtype))


@intrinsic("cuda.cbrt")
def _cbrt(engine: Any, node: ast.Call, number: Any) -> Any:
    engine.tick(node)
    number = whole(engine.as_number(node, number))
    return np.cbrt(number if number.dtype.kind == "f" else number.astype(np.float64))


# -- atomics ---------------------------------------------------------------------------------------


def _wrap_up(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where(old >= limit, 0, old + 1)


def _wrap_down(old: np.ndarray, limit: np.ndarray) -> np.ndarray:
    return np.where((old == 0) | (old > limit), limit, old - 1)


_UPDATES = {
    "add": Update("add", np.add, np.add),
    "sub": Update("sub", np.subtract, np.subtract),
    "max": Update("max", np.maximum, np.maximum),
    "min": Update("min", np.minimum, np.minimum),
    "nanmax": Update("nanmax", np.fmax, np.fmax),
    "nanmin": Update("nanmin", np.fmin, np.fmin),
    "and_": Update("and", np.bitwise_and, np.bitwise_and),
    "or_": Update("or", np.bitwise_or, np.bitwise_or),
    "xor": Update("xor", np.bitwise_xor, np.bitwise_xor),
    "exch": Update("exch", lambda old, new: new),
    "inc": Update("inc", _wrap_up),
    "dec": Update("dec", _wrap_down),
}
_CAS = Update("cas", lambda old, expected, new: np.where(old == expected, new, old))


def _register_atomics() -> None:
    for name, update in _UPDATES.items():

        def apply(
            engine: Any, node: ast.Call, array: Any, index: Any, number: Any, update: Update = update
        ) -> Any:
            return _atomic(engine, node, array, index, (number,), update)

        intrinsic(f"cuda.atomic.{name}")(apply)


def element_named(engine: Any, node: ast.Call, array: ArrayRef, index: Any) -> Any:
    """The place of an element that an argument names: an integer, or a tuple with one per dimension."""
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) != array.ndim:
        engine.refuse(
            node,
            f"{len(indices)} indices into {array.name}, which has {array.ndim} dimensions",
            "Use one per dimension.",
        )
    return engine.element(node, array, indices)


def _atomic(
    engine: Any, node: ast.Call, array: Any, index: Any, values: tuple[Any, ...], update: Update
) -> Any:
    if not isinstance(array, ArrayRef) or array.storage.space not in ("global", "shared"):
        engine.refuse(
            node,
            f"atomic {update.name} on something that is no array in memory",
            "Give it an array and an index.",
        )
    if array.dtype.kind not in "iuf":
        engine.refuse(node, f"atomic {update.name} on {array.dtype}", "Use integers or floats.")
    if update.name in ("and", "or", "xor", "inc", "dec") and array.dtype.kind not in "iu":
        engine.refuse(node, f"atomic {update.name} on {array.dtype}", "Use an integer array.")
    place = element_named(engine, node, array, index)
    return engine.atomic(
        node, place, update, tuple(engine.as_number(node, number) for number in values), update.name
    )


_register_atomics()


@intrinsic("cuda.atomic.cas")
def _cas(engine: Any, node: ast.Call, array: Any, index: Any, expected: Any, new: Any) -> Any:
    return _atomic(engine, node, array, index, (expected, new), _CAS)


@intrinsic("cuda.atomic.compare_and_swap")
def _compare_and_swap(engine: Any, node: ast.Call, array: Any, expected: Any, new: Any) -> Any:
    return _atomic(engine, node, array, 0, (expected, new), _CAS)
