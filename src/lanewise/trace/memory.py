"""Memory accesses of the executing pass: bounds, addresses for the counters, shadow state for the hazards,
values."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lanewise.trace.arrays import (
    ArrayRef,
    LocalStorage,
    Place,
    SharedStorage,
    Storage,
    add,
    checked_index,
    scaled,
)
from lanewise.trace.hazards import Hazard, HazardLog, Severity
from lanewise.trace.infer import Facts
from lanewise.trace.lanes import INT64, cast, is_constant, limits, typed, whole
from lanewise.trace.launch import Launch
from lanewise.trace.masks import Mask
from lanewise.trace.refusals import KernelLimit
from lanewise.trace.shadow import Now, Shadow, thread_of, time_of
from lanewise.trace.sites import Site
from lanewise.trace.statements import Statements

_VERBS = {"load": "reads", "store": "writes", "atomic": "updates", "async_copy": "copies into"}
_PAST = {"load": "read", "store": "wrote", "atomic": "updated atomically", "async_copy": "copied into"}


class Memory(Statements):
    """The executing pass as far as memory goes; `control.Execution` adds control flow and barriers."""

    inferring = False

    def __init__(self, facts: Facts, launch: Launch, shared: SharedStorage, limits_: Any) -> None:
        super().__init__()
        self.facts, self.launch, self.shared_storage, self.limits = facts, launch, shared, limits_
        self.sites: dict[tuple[Any, ...], Site] = {}
        self._site_of_node: dict[tuple[int, str, str, str], Site] = {}
        self.events: list[Site | None] = [None]
        self.log = HazardLog()
        self.n_operations = 0
        self.n_steps = 0
        self.notes: dict[str, None] = {}
        self.deadline = time.monotonic() + limits_.seconds

    def start_batch(self, blocks: np.ndarray) -> None:
        """Set up the lanes of some blocks: coordinates, masks, fresh shared memory."""
        launch = self.launch
        self.blocks = blocks
        self.shape = len(blocks), launch.n_lanes
        self.base_mask = Mask.of(launch.exists, self.shape)
        assert self.base_mask is not None
        self.live: Mask | None = self.base_mask
        self.mask = self.base_mask
        self.block_index = launch.block_coordinates(blocks)
        self.since_block: Any = 0
        self.since_warp: Any = 0
        self._shared_refs: dict[Any, ArrayRef] = {}
        self._local_refs: dict[Any, ArrayRef] = {}
        self.shared_storage.start_batch(len(blocks))
        self.shared_shadow: Shadow | None = None
        self.start_ordering()

    since_grid = 0
    stands_for = 1  # blocks that the lanes of the last shared access speak for

    def start_ordering(self) -> None:
        """Accesses of earlier batches belong to other blocks, so nothing is ordered anew."""

    # -- limits ------------------------------------------------------------------------------------

    def step(self, statement: ast.stmt) -> None:
        self.n_steps += 1
        if self.n_steps & 255 == 0:
            self.check_limits(statement)

    def check_limits(self, node: ast.AST) -> None:
        """Stop a kernel that runs too long."""
        where = self.frame.function.where(node)
        if self.n_steps > self.limits.steps:
            raise KernelLimit(
                f"{where}: the kernel ran {self.n_steps:,} statements without coming to an end; the limit is"
                f" steps={self.limits.steps:,}. Check the loop here: a lane may wait for another that"
                " never comes."
            )
        if time.monotonic() > self.deadline:
            raise KernelLimit(
                f"{where}: the kernel ran for more than seconds={self.limits.seconds:g}. Trace fewer"
                " blocks with blocks=, use a smaller problem, or check that the loop here ends."
            )

    def tick(self, node: ast.AST) -> None:
        self.n_operations += self.active.n_warps

    # -- places ------------------------------------------------------------------------------------

    def place(self, node: ast.AST, array: ArrayRef, indices: tuple[Any, ...]) -> Place:
        mask = self.active
        inside: np.ndarray | None = None
        position: Any = array.start
        for index, extent, stride in zip(indices, array.shape, array.strides, strict=True):
            if is_constant(index):
                index = int(index)
            if isinstance(index, int) and isinstance(extent, int) and 0 <= index < extent:
                position = add(position, index * stride)
                continue
            given = typed(index)
            index, in_range = checked_index(given, extent, mask)
            if index is not given:
                self._note_wrap(node, array, given)
            if in_range is not None:
                inside = in_range if inside is None else inside & in_range
            position = add(position, scaled(cast(index, INT64), stride))
        position = typed(position)
        if inside is None:
            return Place(array, array.dtype, array.unit, array.phase, position, mask, indices)
        within, outside = mask.split(inside)
        if outside is not None or not mask.is_full:
            position = np.where(inside, whole(position), 0)
        return Place(array, array.dtype, array.unit, array.phase, position, within, indices, outside)

    def _note_wrap(self, node: ast.AST, array: ArrayRef, index: Any) -> None:
        """Mention negative indices: numba counts them from the end, which a kernel rarely means."""
        if isinstance(index, np.generic) or limits(index)[0] >= 0:
            return
        if (np.atleast_2d(whole(index) < 0) & self.active.array).any():
            self.notes.setdefault(
                f"line {getattr(node, 'lineno', 0)}: a negative index into {array.name} counts from its end."
            )

    def refreshed(self, place: Place) -> Place:
        if place.outside is None:
            return replace(place, mask=self.mask)
        within, outside = self.active.split(~place.outside.array)
        return replace(place, mask=within, outside=outside)

    def view_index(self, node: ast.AST, array: ArrayRef, value: Any, axis: int) -> Any:
        index = self.as_number(node, value)
        index, inside = checked_index(typed(index), array.shape[axis], self.active)
        if inside is not None:
            _, outside = self.active.split(inside)
            if outside is not None:
                first = replace(array, shape=(array.shape[axis],), strides=(array.strides[axis],))
                place = Place(first, array.dtype, array.unit, array.phase, index, None, (value,), outside)
                self.report_bounds(node, place, "load")
        return index

    # -- loads and stores --------------------------------------------------------------------------

    def load(self, node: ast.AST, place: Place) -> Any:
        if place.outside is not None:
            self.report_bounds(node, place, "load")
        if place.mask is None:
            return place.dtype.type(0)
        self.observe(node, "load", place)
        value = place.storage.gather(place, self.shape)
        return value if place.outside is None else np.where(place.outside.array, place.dtype.type(0), value)

    def store(self, node: ast.AST, place: Place, value: Any) -> None:
        if place.outside is not None:
            self.report_bounds(node, place, "store")
        if place.mask is None:
            return
        value = cast(value, place.dtype)
        self.observe(node, "store", place, value)
        place.storage.scatter(place, value, place.mask)

    def wide(self, node: ast.AST, place: Place, n: int, values: tuple[Any, ...] | None) -> Any:
        """A vector access: `n` neighbouring elements of each lane by one instruction."""
        op = "load" if values is None else "store"
        last = place.array.size if isinstance(place.array.size, int) else limits(place.array.size)[0]
        beyond = limits(place.index)[1] + n > last + (
            place.array.start if isinstance(place.array.start, int) else last
        )
        if beyond:
            place = self._keep_inside(place, n)
        if place.outside is not None:
            self.report_bounds(node, place, op, n)
        if place.mask is None:
            return None if values is not None else (place.dtype.type(0),) * n
        place = self._keep_aligned(node, place, n * place.dtype.itemsize, op)
        if place.mask is None:
            return None if values is not None else (place.dtype.type(0),) * n
        self.observe(node, op, place, None, n)
        parts = [place.at(k * place.dtype.itemsize, place.dtype) for k in range(n)]
        if values is None:
            return tuple(part.storage.gather(part, self.shape) for part in parts)
        for part, value in zip(parts, values, strict=True):
            part.storage.scatter(part, cast(value, part.dtype), place.mask)
        return None

    def _keep_inside(self, place: Place, n: int) -> Place:
        """Take out lanes whose vector ends behind the last element of the array."""
        array = place.array
        end = add(array.start, array.size)
        ok = np.atleast_2d(whole(place.index) + n <= whole(end))
        within, outside = (place.mask or self.active).split(ok)
        if outside is None:
            return place
        return replace(place, mask=within, outside=outside, index=np.where(ok, whole(place.index), 0))

    def _keep_aligned(self, node: ast.AST, place: Place, width: int, op: str) -> Place:
        storage, mask = place.storage, place.mask
        if storage.space not in ("global", "shared") or mask is None:
            return place
        if place.unit % width == 0 and (storage.base + place.phase) % width == 0:
            return place
        addresses = np.atleast_2d(whole(place.index)) * place.unit + (storage.base + place.phase)
        bad = addresses % width != 0
        misaligned, fine = mask.split(np.broadcast_to(bad, np.broadcast_shapes(bad.shape, (1, 1))))
        if misaligned is None:
            return place
        block, lane = first_lane(misaligned)
        address = int(np.broadcast_to(addresses, self.shape)[block, lane]) - storage.base
        element = self.element_text(place, block, lane)
        line = getattr(node, "lineno", 0)

        def build(count: int) -> Hazard:
            return self.hazard(
                "misaligned",
                line,
                block,
                lane,
                f"{_VERBS[op]} {width} bytes at {element} (line {line}), byte {address}, which is"
                f" {address % width} past a multiple of {width}. Keep rows a multiple of {width} bytes"
                " and start at an index that is one.",
                element=element,
                count=count,
            )

        self.log.add("misaligned", line, build, array=place.array.name, count=_n_lanes(misaligned))
        return replace(place, mask=fine)

    def observe(self, node: ast.AST, op: str, place: Place, value: Any = None, n: int = 1) -> None:
        """Count an access and check it against earlier ones."""
        storage = place.storage
        if storage.space not in ("global", "shared"):
            self.tick(node)
            return
        assert place.mask is not None
        width = place.dtype.itemsize * n
        prefix = {"load": "ld", "store": "st"}[op]
        site = self._count(node, op, f"{prefix}.{storage.space}.b{8 * width}", place, width)
        self.shade(site, op, place, place.dtype.itemsize * n, value)

    def _count(self, node: ast.AST, op: str, instruction: str, place: Place, width: int) -> Site:
        mask = place.mask
        assert mask is not None
        self.n_operations += mask.n_warps
        storage = place.storage
        if width and (place.unit % width or (storage.base + place.phase) % width):
            addresses = np.atleast_2d(whole(place.index)) * place.unit + (storage.base + place.phase)
            if (addresses % width).any():
                return self._count_bytes(node, op, place, width)
        site = self.site(node, op, instruction, place.array)
        site.record(place.index, place.unit, storage.base + place.phase, mask, self.blocks)
        return site

    def _count_bytes(self, node: ast.AST, op: str, place: Place, width: int) -> Site:
        """A scalar off its natural alignment, as in a packed record: the compiler moves it byte by byte."""
        prefix = {"load": "ld", "store": "st"}[op]
        site = self.site(node, op, f"{prefix}.{place.storage.space}.b8", place.array)
        assert place.mask is not None
        for byte in range(width):
            site.record(
                place.index, place.unit, place.storage.base + place.phase + byte, place.mask, self.blocks
            )
        return site

    def site(self, node: ast.AST, op: str, instruction: str, array: ArrayRef) -> Site:
        """The site of a node; nodes at one source position share it."""
        key = (id(node), op, instruction, array.name)
        site = self._site_of_node.get(key)
        if site is None:
            function = self.frame.function
            line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
            place = (function.filename, line, column, op, instruction)
            site = self.sites.get(place)
            if site is None:
                space = array.storage.space
                site = Site(
                    function.filename,
                    line,
                    column,
                    function.text_at(line),
                    op,
                    space,
                    instruction,
                    array.name,
                )
                self.sites[place] = site
            self._site_of_node[key] = site
        return site

    # -- hazards -----------------------------------------------------------------------------------

    def hazard(self, kind: str, line: int, block: int, lane: int, text: str, **more: Any) -> Hazard:
        """Build a hazard whose message starts with block and thread; `block` counts within the batch."""
        at_block = self.launch.block_of(int(self.blocks[block]))
        at_thread = self.launch.thread_of(lane)
        return Hazard(kind, line, f"block={at_block} thread={at_thread}: {text}", at_block, at_thread, **more)

    def element_text(self, place: Place, block: int, lane: int) -> str:
        """The element that one lane touches, in words."""
        found = []
        for index in place.indices:
            value = np.broadcast_to(np.atleast_2d(whole(index)), self.shape)[block, lane]
            found.append(int(value))
        return place.array.describe(tuple(found))

    def report_bounds(self, node: ast.AST, place: Place, op: str, n: int = 1) -> None:
        """Report the lanes outside the array."""
        assert place.outside is not None
        line = getattr(node, "lineno", 0)
        block, lane = first_lane(place.outside)
        element = self.element_text(place, block, lane)
        shape = tuple(int(limits(extent)[1]) for extent in place.array.shape)
        extent = f"its {shape[0]} elements" if len(shape) == 1 else f"its shape {shape}"
        wide = f" and {n - 1} more" if n > 1 else ""
        verb = _VERBS[op]

        def build(count: int) -> Hazard:
            return self_hazard(
                f"{verb} {element}{wide} past {extent} (line {line}). Guard the access with a test of the"
                f" index, such as: if i < {place.array.name}.shape[{max(0, len(shape) - 1)}].",
                count,
            )

        at = self.launch.block_of(int(self.blocks[block])), self.launch.thread_of(lane)

        def self_hazard(text: str, count: int) -> Hazard:
            return Hazard(
                "out_of_bounds",
                line,
                f"block={at[0]} thread={at[1]}: {text}",
                *at,
                element=element,
                count=count,
            )

        self.log.add("out_of_bounds", line, build, array=place.array.name, count=_n_lanes(place.outside))

    def shade(self, site: Site, op: str, place: Place, n_bytes: int, value: Any = None) -> None:
        """Check an access against the shadow memory and enter it there."""
        self.events.append(site)
        storage = place.storage
        kinds = storage.kinds
        if storage.space == "global" and not storage.starts_uninitialized and kinds in ({"read"}, {"atomic"}):
            return
        granule = storage.granule
        first = add(scaled(place.index, place.unit // granule), place.phase // granule)
        assert place.mask is not None
        if storage.space == "shared":
            lanes = self._shared_lanes(first, place.mask)
        else:
            lanes = self._global_lanes(storage, first, place.mask)
        shadow, index, now, select = lanes
        report = self._reporter(site, op, place, now, value, select)
        checks_writes = storage.space == "shared" or storage.starts_uninitialized
        for k in range(n_bytes // granule):
            here = index + k if k else index
            if op != "store" and checks_writes:
                missing = shadow.unwritten(here)
                if missing is not None:
                    self._report_unwritten(site, place, missing, select, op)
            {"load": shadow.read, "store": shadow.write, "atomic": shadow.atomic}[op](here, now, report)

    def _shared_lanes(
        self, first: Any, mask: Mask
    ) -> tuple[Shadow, np.ndarray, Now, Callable[[int], tuple[int, int]]]:
        """Granules and ordering of a shared access; one block stands for all while all do the same."""
        n_blocks, n_threads = self.shape
        storage = self.shared_storage
        n_granules = -(-storage.n_bytes // storage.granule)
        if self.shared_shadow is None:
            self.shared_shadow = Shadow(n_granules, storage.kinds)
        shadow = self.shared_shadow
        index = np.atleast_2d(whole(first))
        rows_of_time = max(np.atleast_2d(self.since_block).shape[0], np.atleast_2d(self.since_warp).shape[0])
        alike = index.shape[0] == mask.array.shape[0] == rows_of_time == 1 and shadow.n_granules == n_granules
        time_, since_block, since_warp = len(self.events) - 1, self.since_block, self.since_warp
        self.stands_for = n_blocks if alike else 1
        if alike:
            lanes = slice(None) if mask.is_full else np.flatnonzero(np.broadcast_to(mask.array[0], n_threads))
            who = self.launch.lane_numbers[lanes]
            if np.ndim(since_warp):
                since_warp = since_warp[0][lanes]
            index = np.broadcast_to(index[0], n_threads)[lanes]
            now = Now(time_, who, n_threads, 0, int(np.max(since_block)), since_warp, one_block=True)
            return shadow, index, now, lambda position: (0, int(who[position]))
        if shadow.n_granules == n_granules and n_blocks > 1:
            shadow.repeat(n_blocks)
        chosen = mask.full
        block = np.broadcast_to(np.arange(n_blocks)[:, None], self.shape)[chosen]
        who = np.broadcast_to(self.launch.lane_numbers, self.shape)[chosen]
        flat = np.broadcast_to(index, self.shape)[chosen] + block * n_granules
        since_block, since_warp = self._of_lanes(since_block, chosen), self._of_lanes(since_warp, chosen)
        now = Now(time_, who, n_threads, 0, since_block, since_warp, one_block=True)
        return shadow, flat, now, lambda position: (int(block[position]), int(who[position]))

    def _of_lanes(self, times: Any, chosen: np.ndarray) -> Any:
        return times if np.ndim(times) == 0 else np.broadcast_to(times, self.shape)[chosen]

    def _global_lanes(
        self, storage: Storage, first: Any, mask: Mask
    ) -> tuple[Shadow, np.ndarray, Now, Callable[[int], tuple[int, int]]]:
        n_threads = self.shape[1]
        if storage.shadow is None:
            storage.shadow = Shadow(-(-storage.n_bytes // storage.granule), storage.kinds)
        index = np.broadcast_to(np.atleast_2d(whole(first)), self.shape)
        who = self.blocks[:, None] * n_threads + self.launch.lane_numbers[None, :]
        chosen = None if mask.is_full else mask.full
        index, who = (index.reshape(-1), who.reshape(-1)) if chosen is None else (index[chosen], who[chosen])
        since_block, since_warp = self.since_block, self.since_warp
        if np.ndim(since_block) or np.ndim(since_warp):
            everyone = np.ones(self.shape, bool) if chosen is None else chosen
            since_block, since_warp = (
                self._of_lanes(since_block, everyone),
                self._of_lanes(since_warp, everyone),
            )
        now = Now(len(self.events) - 1, who, n_threads, self.since_grid, since_block, since_warp)
        start = self.blocks

        def locate(position: int) -> tuple[int, int]:
            number = int(who[position])
            return int(np.searchsorted(start, number // n_threads)), number % n_threads

        return storage.shadow, index, now, locate

    def _report_unwritten(
        self, site: Site, place: Place, missing: np.ndarray, locate: Callable[[int], tuple[int, int]], op: str
    ) -> None:
        block, lane = locate(int(np.argmax(missing)))
        element, line = self.element_text(place, block, lane), site.line
        at = self.launch.block_of(int(self.blocks[block])), self.launch.thread_of(lane)
        what = (
            "shared memory starts with whatever was there"
            if site.space == "shared"
            else "the array was marked so"
        )

        def build(count: int) -> Hazard:
            text = (
                f"block={at[0]} thread={at[1]}: {_VERBS[op]} {element} (line {line}), which no thread has"
                f" written; {what}. Write every element before it is read, with 0 where there is no data."
            )
            return Hazard("uninitialized_read", line, text, *at, element=element, count=count)

        repeats = self.stands_for if site.space == "shared" else 1
        n_lanes = int(np.count_nonzero(missing)) * repeats
        self.log.add("uninitialized_read", line, build, array=place.array.name, count=n_lanes)

    def _reporter(
        self,
        site: Site,
        op: str,
        place: Place,
        now: Now,
        value: Any,
        locate: Callable[[int], tuple[int, int]],
    ) -> Callable[[np.ndarray, np.ndarray], None]:
        """What to do with lanes that race: sort them by earlier line and severity, and log each sort."""

        def report(stamps: np.ndarray, racing: np.ndarray) -> None:
            lanes = np.flatnonzero(racing)
            earlier, times = thread_of(stamps[lanes]), time_of(stamps[lanes])
            # Lanes that write different values by one instruction: which one stays is undefined even in
            # lock-step.
            severity = np.where(now.same_warp_of(earlier, lanes) & (times != now.time), 1, 0)
            if op == "store" and self.updating:
                severity[self._is_own_update(site, times)] = 0
            elif op == "store":
                severity = np.where(self._same_value(place, value, now, lanes, earlier, times), 2, severity)
            sorts, first, counts = np.unique(times * 4 + severity, return_index=True, return_counts=True)
            for sort, position, count in zip(sorts, first, counts, strict=True):
                before = self.events[int(sort) // 4]
                assert before is not None
                names: tuple[Severity, ...] = ("error", "lock_step", "benign")
                lane = int(lanes[position])
                self._log_race(
                    site,
                    before,
                    op,
                    place,
                    names[int(sort) % 4],
                    locate(lane),
                    int(earlier[position]),
                    int(count),
                )

        return report

    def _is_own_update(self, site: Site, times: np.ndarray) -> np.ndarray:
        """Which earlier accesses are this augmented assignment's own read or write, made by other threads."""
        here = [
            event is not None and (event.line, event.column) == (site.line, site.column)
            for event in self.events
        ]
        return np.array(here)[times]

    def _same_value(
        self, place: Place, value: Any, now: Now, lanes: np.ndarray, earlier: np.ndarray, times: np.ndarray
    ) -> np.ndarray:
        """Which colliding stores write what the other thread wrote: benign as long as both go on doing so."""
        if value is None or place.mask is None:
            return np.zeros(len(lanes), bool)
        stores = np.array([event is not None and event.op == "store" for event in self.events])
        mine = np.broadcast_to(np.atleast_2d(value), self.shape)
        held = np.broadcast_to(np.atleast_2d(place.storage.gather(place, self.shape)), self.shape)
        chosen = place.mask.full
        same_instruction = times == now.time
        if len(now.who) < np.count_nonzero(chosen):  # one block stands for all
            row = np.flatnonzero(chosen[0])
            mine, held = mine[:, row], held[:, row]
        else:
            mine, held = mine[chosen][None], held[chosen][None]
        winner = np.searchsorted(now.who, earlier) if _ascending(now.who) else lanes
        other = np.where(same_instruction, mine[:, np.minimum(winner, mine.shape[1] - 1)], held[:, lanes])
        own = mine[:, lanes]
        equal = ((own == other) | ((own != own) & (other != other))).all(axis=0)
        return equal & stores[times]

    def _log_race(
        self,
        site: Site,
        before: Site,
        op: str,
        place: Place,
        severity: Severity,
        where: tuple[int, int],
        earlier: int,
        count: int,
    ) -> None:
        kind = f"{site.space}_race"
        block, lane = where
        n_threads = self.shape[1]
        other_number = earlier // n_threads if site.space == "global" else int(self.blocks[block])
        at = self.launch.block_of(int(self.blocks[block])), self.launch.thread_of(lane)
        other = self.launch.block_of(other_number), self.launch.thread_of(earlier % n_threads)
        element = self.element_text(place, block, lane)
        far = site.space == "global" and other[0] != at[0]
        who = f"thread {other[1]}" + (f" of block {other[0]}" if far else "")
        same = site is before
        lost = self.updating and op == "store" and (before.line, before.column) == (site.line, site.column)
        lines = f"line {site.line}" if before.line == site.line else f"lines {before.line} and {site.line}"
        if lost and severity == "error":
            deed = (
                f"updates {element} (line {site.line}) and so does {who}; each reads before the other"
                " has written, so an update is lost"
            )
        elif same and op == "store":
            deed = f"{_VERBS[op]} {element} (line {site.line}) and so does {who}; only one value stays"
        else:
            deed = (
                f"{_VERBS[op]} {element} (line {site.line}), which {who} {_PAST[before.op]} at line"
                f" {before.line}, and nothing orders the two"
            )
        advice = {
            "error": "No barrier reaches across blocks: split the kernel in two launches, or give each"
            " block its own elements."
            if far
            else f"Put cuda.syncthreads() between them ({lines}), or use cuda.atomic.",
            "lock_step": "Both are lanes of one warp, so it works only while they run in lock-step, which"
            f" nothing guarantees: put cuda.syncwarp() between them ({lines}).",
            "benign": "Both write the same value, so the result is right; let one thread write to say"
            " what you mean.",
        }[severity]
        if lost and severity == "error":
            advice = "Use cuda.atomic.add (or the atomic operation that you need)."
        elif same and op == "store" and severity != "benign":
            advice = "Let one thread write, give each its own element, or use cuda.atomic."

        def build(total: int) -> Hazard:
            text = f"block={at[0]} thread={at[1]}: {deed}. {advice}"
            return Hazard(
                kind, site.line, text, *at, severity, before.line, other[0], other[1], element, total
            )

        count *= self.stands_for if site.space == "shared" else 1
        self.log.add(
            kind,
            site.line,
            build,
            other_line=before.line,
            severity=severity,
            array=place.array.name,
            count=count,
        )

    # -- arrays that a kernel makes ----------------------------------------------------------------

    def shared_array(
        self, node: ast.AST, shape: tuple[int, ...], dtype: np.dtype, alignment: int
    ) -> ArrayRef:
        """The shared array that type inference laid out for this call."""
        from lanewise.trace.arrays import array_ref, contiguous_strides

        key = (*self.frame.path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        if key not in self._shared_refs:
            laid_out = self.facts.shared[key]
            offset, extents = laid_out.offset, laid_out.shape
            if offset is None:
                offset = self.launch.dynamic_offset(self.facts.static_bytes)
                extents = (self.launch.dynamic_bytes // dtype.itemsize,)
            strides = contiguous_strides(extents, dtype.itemsize)
            self._shared_refs[key] = array_ref(self.shared_storage, "shared", dtype, extents, strides, offset)
        return self._shared_refs[key]

    def local_array(self, node: ast.AST, shape: tuple[int, ...], dtype: np.dtype) -> ArrayRef:
        """A thread's own array: one storage per call in the source."""
        from lanewise.trace.arrays import array_ref, contiguous_strides

        key = (*self.frame.path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        if key not in self._local_refs:
            storage = LocalStorage("local", dtype, int(np.prod(shape)))
            self._local_refs[key] = array_ref(
                storage, "local", dtype, shape, contiguous_strides(shape, dtype.itemsize), 0
            )
        return self._local_refs[key]


def first_lane(mask: Mask) -> tuple[int, int]:
    """Block (within the batch) and lane of the first active lane."""
    block, lane = np.unravel_index(int(np.argmax(mask.full)), mask.shape)
    return int(block), int(lane)


def _n_lanes(mask: Mask) -> int:
    return int(np.count_nonzero(mask.full))


def _ascending(numbers: np.ndarray) -> bool:
    return bool((np.diff(numbers) > 0).all())
