"""Memory accesses of the executing pass: bounds, addresses for the counters, shadow state for the hazards,
values."""

from __future__ import annotations

import ast
import time
from dataclasses import replace
from typing import Any

import numpy as np

from lanewise.machine import WARP_LANES
from lanewise.trace.arrays import (
    ArrayRef,
    LocalStorage,
    Place,
    SharedStorage,
    add,
    array_ref,
    checked_index,
    contiguous_strides,
    scaled,
)
from lanewise.trace.hazards import HazardLog
from lanewise.trace.infer import Facts
from lanewise.trace.lanes import INT64, cast, is_constant, limits, typed, whole
from lanewise.trace.launch import Launch
from lanewise.trace.masks import Mask, union
from lanewise.trace.refusals import KernelLimit
from lanewise.trace.shadow import Shadow
from lanewise.trace.sites import Site
from lanewise.trace.tracking import VERBS, Tracking, first_lane, n_lanes


class Memory(Tracking):
    """The executing pass as far as memory goes; `control.Execution` adds control flow and barriers."""

    inferring = False

    def __init__(
        self, facts: Facts, launch: Launch, shared: SharedStorage, limits_: Any, numbers: np.ndarray
    ) -> None:
        super().__init__()
        self.facts, self.launch, self.shared_storage, self.limits = facts, launch, shared, limits_
        self.numbers = numbers
        self.sites: dict[tuple[Any, ...], Site] = {}
        self._site_of_node: dict[tuple[int, str, str, str], Site] = {}
        self.events: list[Site | None] = [None]
        self.log = HazardLog()
        self.n_operations = self.n_barriers = self.bytes_under_way = 0
        self.n_steps = 0
        self.notes: dict[str, None] = {}
        self.deadline = time.monotonic() + limits_.seconds

    def start_batch(self, blocks: np.ndarray) -> None:
        """Set up the lanes of some blocks: coordinates, masks, fresh shared memory."""
        launch = self.launch
        self.blocks = blocks
        self.ordinals = np.searchsorted(self.numbers, blocks)
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
                f"{where}: the kernel ran steps={self.limits.steps:,} statements, the limit, without coming"
                " to an end. Check the loop here: a lane may wait for another that never comes."
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
        place = self.span(node, place, n, op)
        if place.mask is None:
            return None if values is not None else (place.dtype.type(0),) * n
        self.observe(node, op, place, None, n)
        parts = [place.at(k * place.dtype.itemsize, place.dtype) for k in range(n)]
        if values is None:
            return tuple(part.storage.gather(part, self.shape) for part in parts)
        for part, value in zip(parts, values, strict=True):
            part.storage.scatter(part, cast(value, part.dtype), place.mask)
        return None

    def span(self, node: ast.AST, place: Place, n: int, op: str) -> Place:
        """The lanes whose `n` neighbouring elements lie in the array and are aligned to all of them.

        The others are reported; the mask of the result is None if none is left.
        """
        array = place.array
        last = array.size if isinstance(array.size, int) else limits(array.size)[0]
        beyond = limits(place.index)[1] + n > last + (array.start if isinstance(array.start, int) else last)
        if beyond:
            place = self._keep_inside(place, n)
        if place.outside is not None:
            self.report_bounds(node, place, op, n)
        return self._keep_aligned(node, place, n * place.dtype.itemsize, op)

    def access(
        self, node: ast.AST, op: str, instruction: str, place: Place, n_bytes: int, shaded: str = ""
    ) -> None:
        """Count an instruction that moves `n_bytes` at each place, and check it against earlier accesses.

        `shaded` says how it stands to them where that is not its `op`: "acquire" and "release" are atomic.
        """
        self.shade(self._count(node, op, instruction, place, n_bytes), shaded or op, place, n_bytes)

    def matrix_access(self, node: ast.AST, op: str, instruction: str, rows: Place, n_lanes: int) -> None:
        """The same for rows of matrices, to which the first `n_lanes` of each warp point.

        Warps that lack one of them have no cost that could be told; they were reported.
        """
        assert rows.mask is not None
        b = len(rows.mask.array)
        by_warp = np.broadcast_to(rows.mask.array, (b, self.shape[1])).reshape(b, -1, WARP_LANES)
        points = np.repeat(by_warp[:, :, :n_lanes].all(axis=2), WARP_LANES, axis=1)
        complete = Mask.of(points & rows.mask.array, self.shape)
        n_bytes = rows.dtype.itemsize
        if complete is None:
            site = self.site(node, op, instruction, rows.array)
        else:
            site = self._count(node, op, instruction, replace(rows, mask=complete), n_bytes)
        self.shade(site, op, rows, n_bytes)

    def _keep_inside(self, place: Place, n: int) -> Place:
        """Take out lanes whose vector ends behind the last element of the array."""
        if place.mask is None:
            return place
        array = place.array
        end = add(array.start, array.size)
        ok = np.atleast_2d(whole(place.index) + n <= whole(end))
        within, outside = place.mask.split(ok)
        if outside is None:
            return place
        outside = union(outside, place.outside)
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

        text = (
            f"{VERBS[op]} {width} bytes at {element} (line {line}), byte {address}, which is"
            f" {address % width} past a multiple of {width}. Keep rows a multiple of {width} bytes and start"
            " at an index that is one."
        )
        case = self.case("misaligned", line, block, lane, text, element=element)
        self.log.add("misaligned", line, case, array=place.array.name, count=n_lanes(misaligned))
        return replace(place, mask=fine)

    def observe(self, node: ast.AST, op: str, place: Place, value: Any = None, n: int = 1) -> None:
        """Count an access and check it against earlier ones."""
        storage = place.storage
        if storage.space not in ("global", "shared"):
            self.tick(node)
            if storage.space == "const":
                line = getattr(node, "lineno", 0)
                self.notes.setdefault(f"line {line}: reads of constant memory are not counted.")
            return
        assert place.mask is not None
        width = place.dtype.itemsize * n
        prefix = {"load": "ld", "store": "st"}[op]
        if place.dtype.kind == "c" and n == 1:
            # numba moves the two parts of a complex number by two instructions.
            width //= 2
            half = replace(place, phase=place.phase + width)
            self._count(node, op, f"{prefix}.{storage.space}.b{8 * width}", half, width)
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
            space = array.storage.space
            place = (function.filename, line, column, op, space, instruction)
            site = self.sites.get(place)
            if site is None:
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

    # -- arrays that a kernel makes ----------------------------------------------------------------

    def shared_array(
        self, node: ast.AST, shape: tuple[int, ...], dtype: np.dtype, alignment: int
    ) -> ArrayRef:
        """The shared array that type inference laid out for this place."""
        key = self.shared_key(node, shape, dtype)
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
        key = (*self.frame.path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
        if key not in self._local_refs:
            storage = LocalStorage("local", dtype, int(np.prod(shape)))
            self._local_refs[key] = array_ref(
                storage, "local", dtype, shape, contiguous_strides(shape, dtype.itemsize), 0
            )
        return self._local_refs[key]
