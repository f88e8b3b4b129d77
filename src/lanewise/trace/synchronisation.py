"""Barriers, atomics and the order that they make among accesses."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.machine import WARP_LANES
from lanewise.text import count, lanes
from lanewise.trace.arrays import GlobalStorage, Place, SharedStorage
from lanewise.trace.lanes import cast, whole
from lanewise.trace.masks import Mask
from lanewise.trace.memory import Memory
from lanewise.trace.refusals import KernelFault
from lanewise.trace.shadow import Meeting
from lanewise.trace.tracking import first_lane


@dataclass(frozen=True)
class Update:
    """An atomic operation: the new value from the old one and the operands, and NumPy's ufunc for it if there
    is one."""

    name: str
    apply: Callable[..., Any]
    ufunc: np.ufunc | None = None


MAX_MEETINGS = 64  # barriers of part of a warp that are remembered; a block barrier settles them all


class Synchronisation(Memory):
    """Memory accesses plus what orders them."""

    exited_at = 0

    def start_ordering(self) -> None:
        self.meetings = ()

    # -- barriers ----------------------------------------------------------------------------------

    def barrier(self, node: ast.AST, name: str = "syncthreads") -> None:
        """A block barrier: orders what its threads did before it before what they do after it."""
        self.tick(node)
        line = getattr(node, "lineno", 0)
        self._check_everyone_arrives(node, name, line)
        self.events.append(None)
        now = len(self.events) - 1
        arrived = self.active.array.any(axis=1, keepdims=True)
        self.n_barriers += int(np.count_nonzero(np.broadcast_to(arrived, (self.shape[0], 1))))
        if arrived.all():
            self.since_block = self.since_warp = now
            self.meetings = ()
        else:
            self.since_block = np.where(arrived, now, np.broadcast_to(self.since_block, (self.shape[0], 1)))
            self.since_warp = np.maximum(self.since_warp, self.since_block)

    def _check_everyone_arrives(self, node: ast.AST, name: str, line: int) -> None:
        active, live = self.active, self.live
        assert live is not None
        if self.base_mask is not live and self.base_mask is not None:
            gone = self.base_mask.without(live)
            if gone is not None and (gone.array & active.array.any(axis=1, keepdims=True)).any():
                self.notes.setdefault(
                    f"line {line}: some threads had returned (line {self.exited_at}) before this {name}."
                    " Since sm_70 they count as arrived; keep them alive if the code must run on older"
                    " GPUs."
                )
        missing = live.without(active)
        if missing is None:
            return
        here = active.array.any(axis=1, keepdims=True)
        absent = Mask.of(missing.array & here, self.shape)
        if absent is None:
            return
        block, lane = first_lane(absent)
        n_live = int(np.count_nonzero(live.full[block]))
        n_here = int(np.count_nonzero(active.full[block]))
        waiting = self.launch.thread_of(int(np.argmax(active.full[block])))
        text = (
            f"does not reach the {name} at line {line}, where {n_here} of {count(n_live, 'live thread')}"
            f" wait, thread {waiting} among them. Move the barrier out of the branch or loop, so that every"
            " thread of the block passes the same call."
        )
        case = self.case("divergent_barrier", line, block, lane, text, other_thread=waiting)
        self.log.add(
            "divergent_barrier",
            line,
            case,
            count=int(np.count_nonzero(absent.full.any(axis=1))),
        )

    def warp_barrier(self, node: ast.AST, members: Any, name: str) -> None:
        """A warp barrier (or a warp operation, which contains one) among the lanes that `members` names."""
        self.tick(node)
        named = self.named_lanes(members)
        self._check_warp_arrives(node, named, name)
        self.events.append(None)
        now = len(self.events) - 1
        assert self.live is not None
        active, live = self.active.array, self.live.array
        joined = named & active
        b, _t = np.broadcast_shapes(joined.shape, live.shape)
        joined, live = (np.broadcast_to(part, (b, self.shape[1])) for part in (joined, live))
        by_warp = (b, self.shape[1] // WARP_LANES, WARP_LANES)
        whole_warp = (joined | ~live).reshape(by_warp).all(axis=2) & joined.reshape(by_warp).any(axis=2)
        ordered = np.repeat(whole_warp, WARP_LANES, axis=1)
        self.since_warp = np.where(ordered, now, self.since_warp)
        if (self.since_warp == now).all():
            self.since_warp = now
        in_part = np.repeat(joined.reshape(by_warp).any(axis=2) & ~whole_warp, WARP_LANES, axis=1)
        if in_part.any():
            self.meetings = (*self.meetings[-MAX_MEETINGS + 1 :], Meeting(now, joined & in_part))

    def _check_warp_arrives(self, node: ast.AST, named: np.ndarray, name: str) -> None:
        active, live = self.active, self.live
        assert live is not None
        line = getattr(node, "lineno", 0)
        absent = None
        if not active.holds(live):
            by_warp = active.full.reshape(self.shape[0], -1, WARP_LANES)
            running = np.repeat(np.asarray(by_warp.any(axis=2)), WARP_LANES, axis=1)
            absent = Mask.of(named & live.array & ~active.array & running, self.shape)
        if absent is not None:
            self._report_warp_op(
                absent, line, f"is named in the mask of {name} at line {line}, but does not execute it"
            )
        unnamed = (
            Mask.of(np.broadcast_to(active.array & ~named, self.shape), self.shape)
            if not named.all()
            else None
        )
        if unnamed is not None:
            self._report_warp_op(
                unnamed, line, f"executes {name} at line {line}, but the mask does not name its lane"
            )

    def require_whole_warps(self, node: ast.AST, name: str) -> None:
        """Report warps that run `name` with some of their lanes: it takes all 32 together."""
        active = self.active.array
        if active.shape[1] == 1:
            return
        by_warp = active.reshape(len(active), -1, WARP_LANES)
        partial = by_warp.any(axis=2) & ~by_warp.all(axis=2)
        if not partial.any():
            return
        line = getattr(node, "lineno", 0)
        absent = Mask.of(np.repeat(partial, WARP_LANES, axis=1) & ~active, self.shape)
        here = Mask.of(np.repeat(partial, WARP_LANES, axis=1) & active, self.shape)
        assert absent is not None
        assert here is not None
        block, lane = first_lane(here)
        warp = lane // WARP_LANES
        present = np.flatnonzero(here.full[block, warp * WARP_LANES : (warp + 1) * WARP_LANES])
        text = (
            f"runs {name} at line {line} with {lanes(present)} of warp {warp} only; it takes all 32 lanes"
            " together, and the result is undefined. Call it where the whole warp goes, in blocks of a"
            " multiple of 32 threads."
        )
        case = self.case("divergent_warp_op", line, block, lane, text)
        self.log.add("divergent_warp_op", line, case, count=int(np.count_nonzero(absent.full)))

    def _report_warp_op(self, mask: Mask, line: int, deed: str) -> None:
        block, lane = first_lane(mask)
        warp = slice(lane // WARP_LANES * WARP_LANES, lane // WARP_LANES * WARP_LANES + WARP_LANES)
        present = np.flatnonzero(self.active.full[block, warp])
        text = (
            f"lane {lane % WARP_LANES} of warp {lane // WARP_LANES} {deed} (active: {lanes(present)}). The"
            " result is undefined. Call it where the whole warp goes, or compute the mask with"
            " cuda.ballot_sync before the branch."
        )
        case = self.case("divergent_warp_op", line, block, lane, text)
        self.log.add("divergent_warp_op", line, case, count=int(np.count_nonzero(mask.full)))

    def grid_barrier(self, node: ast.AST) -> None:
        """A barrier of the whole grid; all its blocks are in this batch."""
        if len(self.blocks) != self.launch.n_blocks:
            raise KernelFault(
                f"{self.frame.function.where(node)}: a grid barrier needs every block; trace without blocks=."
            )
        self.tick(node)
        self._check_everyone_arrives(node, "grid barrier", getattr(node, "lineno", 0))
        self.events.append(None)
        self.since_grid = self.since_block = self.since_warp = len(self.events) - 1

    # -- atomics -----------------------------------------------------------------------------------

    def atomic(self, node: ast.Call, place: Place, update: Update, values: tuple[Any, ...], name: str) -> Any:
        """Update one element per lane, one lane after the other in thread order; gives the old values."""
        if place.outside is not None:
            self.report_bounds(node, place, "atomic")
        if place.mask is None:
            return place.dtype.type(0)
        place = self._keep_aligned(node, place, place.dtype.itemsize, "atomic")
        if place.mask is None:
            return place.dtype.type(0)
        self._count_atomic(node, place, name, values)
        mask = place.mask
        memory, index = _flat(place, mask)
        operands = [
            np.broadcast_to(np.atleast_2d(whole(cast(value, place.dtype))), self.shape)[mask.full]
            for value in values
        ]
        if node is self.result_unused and update.ufunc is not None:
            update.ufunc.at(memory, index, *operands)
            return place.dtype.type(0)
        old = _one_after_the_other(memory, index, update, operands)
        result = np.zeros(self.shape, place.dtype)
        result[mask.full] = old
        return result

    def _count_atomic(self, node: ast.Call, place: Place, name: str, values: tuple[Any, ...]) -> None:
        unused = node is self.result_unused
        instruction = _atomic_name(place, name, unused, values)
        site = self._count(node, "atomic", instruction, place, 0)
        self.shade(site, "atomic", place, place.dtype.itemsize)


def _atomic_name(place: Place, name: str, unused: bool, values: tuple[Any, ...]) -> str:
    """The name of an atomic in `lanewise.instructions`, or a PTX-like name for one without a rule."""
    space, bits, kind = place.storage.space, 8 * place.dtype.itemsize, place.dtype.kind
    verb = "red" if unused else "atom"
    if kind in "iu" and bits == 32 and name in ("add", "sub"):
        # Adding the constant 1 in shared memory is an instruction of its own.
        counts = unused and space == "shared" and name == "add"
        by_register = ".reg" if unused and space == "shared" else ""
        literal_one = isinstance(values[0], int) and values[0] == 1
        return f"{verb}.{space}.add.u32{'' if counts and literal_one else by_register}"
    if name in ("exch", "cas") and bits == 32:
        return f"atom.{space}.{name}.b32"
    letter = {"f": "f", "i": "s", "u": "u"}.get(kind, "b")
    return f"{verb}.{space}.{name}.{letter}{bits}"


def _flat(place: Place, mask: Mask) -> tuple[np.ndarray, np.ndarray]:
    """The memory of a place as a flat array, and the index into it for each active lane in thread order."""
    storage, itemsize = place.storage, place.dtype.itemsize
    assert isinstance(storage, (GlobalStorage, SharedStorage))
    index = np.broadcast_to(np.atleast_2d(whole(place.index)), mask.shape)
    # Lanes off the natural alignment are gone, so the rest lies on the grid of whole elements.
    index = (index * place.unit + place.phase) // itemsize
    view = storage.view(place.dtype, 0)
    if isinstance(storage, SharedStorage):
        index = index + np.arange(mask.shape[0])[:, None] * view.shape[1]
    return view.reshape(-1), index[mask.full]


def _one_after_the_other(
    memory: np.ndarray, index: np.ndarray, update: Update, operands: list[np.ndarray]
) -> np.ndarray:
    """Apply an update lane by lane where lanes meet on one element, and all at once where they do not."""
    old = np.empty(len(index), memory.dtype)
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    if update.name in ("add", "sub") and memory.dtype.kind in "iu" and len(turn) and turn.max() > 8:
        return _running_sums(memory, ordered, order, starts, operands[0], update)
    by_turn = np.argsort(turn, kind="stable")
    ends = np.cumsum(np.bincount(turn))
    begin = 0
    for end in ends:
        chosen = order[by_turn[begin:end]]
        here = index[chosen]
        old[chosen] = memory[here]
        memory[here] = update.apply(memory[here], *(operand[chosen] for operand in operands)).astype(
            memory.dtype
        )
        begin = end
    return old


def _running_sums(
    memory: np.ndarray,
    ordered: np.ndarray,
    order: np.ndarray,
    starts: np.ndarray,
    operand: np.ndarray,
    update: Update,
) -> np.ndarray:
    """Integer sums wrap the same in any order, so one cumulative sum per element does."""
    amount = operand[order] if update.name == "add" else np.zeros_like(operand) - operand[order]
    total = np.cumsum(amount, dtype=memory.dtype)
    before = total - amount
    lengths = np.diff(np.r_[starts, len(order)])
    first = memory[ordered[starts]]
    running = (np.repeat(first - before[starts], lengths) + before).astype(memory.dtype)
    old = np.empty(len(order), memory.dtype)
    old[order] = running
    ends = starts + lengths - 1
    memory[ordered[starts]] = (running[ends] + amount[ends]).astype(memory.dtype)
    return old
