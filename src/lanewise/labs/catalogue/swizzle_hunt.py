"""Swizzle, challenge: judge swizzles, choose some, and repair two kernels whose tile is swizzled wrongly.

Each fault happened in published code or in a question about it: a read that forgets the map of the write, a
bit too many for the row, units narrower than the access, an XOR that binds otherwise than it looks, a map
that takes the thread's row for the tile's, a rotation that turns back the wrong way, a pad under a swizzle.
Variants change the faults, the tiles, and what to judge and to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import ptx, results
from lanewise.errors import InvalidSwizzle
from lanewise.kernels import padding
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import global_sectors, no_hazards, shared_bytes
from lanewise.labs.goals_tiles import from_tile, in_rows, through_tile
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.layouts import row_major
from lanewise.search import TileShape, along_rows, down_columns, matrix_loads, try_layout
from lanewise.search.accesses import Pattern, resolve
from lanewise.swizzles import Swizzle, XorTile, xor_tile

TILE = 32
COLS, UNITS = 32, 8  # floats, and pieces of 16 bytes, in a row of the matrix
FLOAT_BYTES = 4
FLOATS_PER_SECTOR, FLOATS_PER_REQUEST = 8, 128

Accesses = tuple[Pattern, Pattern]
BY_4: Accesses = (along_rows("st.shared.b32", "the fill"), down_columns("ld.shared.b32", "the column"))
BY_8: Accesses = (along_rows("st.shared.b64", "the fill"), down_columns("ld.shared.b64", "the column"))
BY_16: Accesses = (along_rows("st.shared.b128", "the fill"), down_columns("ld.shared.b128", "the column"))
MATRICES: Accesses = (along_rows("st.shared.b128", "the fill"), matrix_loads("ldmatrix.x4", "the fetch"))


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    rows, deep = variant.choice(64, 32, 96), variant.choice(8, 4, 16)
    faulty = starters(rows, rows * COLS, deep)
    wide = variant.choice("four_bits", "unmapped", "half_units", "binds_otherwise")
    turned = variant.choice("thread_row", "wrong_row", "wrong_way", "padded_too")
    return Lab(
        name="swizzle_hunt",
        title="Swizzles that went wrong",
        chapter="swizzle",
        level="challenge",
        kinds=("predict", "layout", "hunt", "repair"),
        minutes=50,
        tasks=(
            _fates(variant),
            _choices(variant),
            _product(rows, faulty[wide]),
            _transpose(deep, faulty[turned]),
        ),
        given={
            "ROWS": rows,
            "COLS": COLS,
            "ROOM": rows * COLS,
            "UNITS": UNITS,
            "TILE": TILE,
            "DEEP": deep,
        },
        seed=variant.seed,
    )


# -- judge ------------------------------------------------------------------------------------------


def _fates(variant: Variant) -> Answers:
    floats = variant.choice(XorTile(32, 32, 15), XorTile(32, 32, 63), XorTile(32, 32, 31))
    short = variant.choice(XorTile(32, 16, 15, 0, 1), XorTile(32, 16, 31), XorTile(32, 16, 15))
    doubles = variant.choice(XorTile(32, 16, 31), XorTile(32, 16, 7), XorTile(32, 16, 15))
    quads = variant.choice(XorTile(32, 64, 7, 1), XorTile(32, 64, 7, 3), XorTile(32, 64, 7, 2))
    halves = variant.choice(XorTile(64, 128, 7, 3), XorTile(64, 128, 7, 4), XorTile(64, 128, 7, 2))
    return Answers(
        "fates",
        (
            _fate("floats", floats, 4, "floats", "float by float", BY_4),
            _fate("short_rows", short, 4, "floats", "float by float", BY_4),
            _fate("doubles", doubles, 8, "doubles", "double by double", BY_8),
            _fate("quads", quads, 4, "floats", "16 bytes at a time", BY_16),
            _fate("halves", halves, 2, "halves", "16 bytes at a time", MATRICES),
        ),
    )


def fate(layout: XorTile, element_bytes: int, accesses: Accesses) -> tuple[str, str]:
    """How a tile ends, "lost", "fault", "slow" or "free", and the sentence that says why."""
    tile = TileShape(layout.rows, layout.cols, element_bytes)
    resolved = [resolve(one, tile) for one in accesses]
    tried = try_layout("", layout, tile, resolved)
    if tried.problem:
        word = "lost" if tried.problem.startswith("not a permutation") else "fault"
        return word, f"It is {tried.problem}."
    costs = zip(resolved, tried.counts, strict=True)
    each = " and ".join(f"{cost} for {access.name}" for access, cost in costs)
    return "free" if tried.is_ideal else "slow", f"Wavefronts, and the fewest possible: {each}."


def _fate(name: str, layout: XorTile, n_bytes: int, unit: str, step: str, accesses: Accesses) -> Question:
    read = "fetched by ldmatrix" if accesses is MATRICES else "read down columns, lane by lane a row"
    word, why = fate(layout, n_bytes, accesses)
    return Question(
        name,
        f"{layout.rows} rows of {layout.cols} {unit}, filled along rows {step} and {read}; (row, col) lies at"
        f" `row * {layout.cols} + {layout.column_expression()}`. Is that"
        ' "lost", "fault", "slow" or "free"?',
        word,
        "In this order: does the XOR stay inside the row? Do the elements of one access stay together? In"
        " one group of lanes, which rows still start in the same bank?",
        why,
    )


# -- choose -----------------------------------------------------------------------------------------


def _choices(variant: Variant) -> Answers:
    doubles = variant.choice(xor_tile(32, 32, 15), xor_tile(32, 16, 15), xor_tile(32, 8, 7, 0, 1))
    halves = variant.choice(xor_tile(64, 256, 7, 3), xor_tile(64, 64, 7, 3), xor_tile(64, 16, 1, 3, 2))
    floats = variant.choice(xor_tile(32, 8, 7, 0, 2), xor_tile(32, 16, 15, 0, 1), xor_tile(32, 128, 31))
    return Answers(
        "choices",
        (
            _choice("doubles", doubles, 8, "doubles", "a double at a time", BY_8),
            _choice("halves", halves, 2, "halves", "16 bytes at a time", MATRICES),
            _choice("floats", floats, 4, "floats", "a float at a time", BY_4),
        ),
    )


def _choice(name: str, layout: XorTile, n_bytes: int, unit: str, step: str, accesses: Accesses) -> Question:
    read = "ldmatrix fetches it" if accesses is MATRICES else "columns are read, lane by lane a row"
    return Question(
        name,
        f"{layout.rows} rows of {layout.cols} {unit}, filled along rows {step}; {read}. Which swizzle of"
        f' offsets in {unit} makes both free? Write it as "Swizzle<B,M,S>".',
        str(layout.as_swizzle()),
        "M is the width of the access, M + S the first bit of the row that counts.",
        "Every element keeps a place of its own, and both accesses are free.",
        accepts=lambda text: objection(text, layout, n_bytes, accesses),
        points=2,
    )


def objection(text: str, layout: XorTile, element_bytes: int, accesses: Accesses) -> str:
    """Why a swizzle, as text, does not serve a tile; '' if it does."""
    try:
        swizzle = Swizzle.from_string(text.replace("swizzle", "Swizzle"))
    except InvalidSwizzle as error:
        return str(error)
    tile = TileShape(layout.rows, layout.cols, element_bytes)
    resolved = [resolve(one, tile) for one in accesses]
    tried = try_layout(str(swizzle), swizzle.compose(row_major((tile.rows, tile.cols))), tile, resolved)
    if tried.problem:
        return f"That is {tried.problem}."
    for access, cost in zip(resolved, tried.counts, strict=True):
        if cost is not None and cost.wavefronts > cost.ideal:
            return f"With it {access.name} takes {cost.worst} wavefronts where {cost.worst_ideal} would do."
    return ""


# -- a matrix times a vector, 16 bytes a lane -------------------------------------------------------


def _product(rows: int, starter: Callable) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        a, x = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((size, COLS), COLS))
        return Run(
            size=f"{size} rows",
            grid=-(-size // rows),
            block=rows,
            arguments={"a": a, "x": x, "y": poisoned(size)},
            expected={"y": a @ x},
        )

    def n_rows(run: Run) -> int:
        """Of whole tiles: a row past the edge may be moved to the edge."""
        return -(-run.arguments["y"].size // rows) * rows

    def sectors(run: Run) -> int:
        """Each warp reads `x` once and writes 32 of `y`, and each element of `a` is read once."""
        of_x = n_rows(run) // 32 * COLS
        return of_x + n_rows(run) * (COLS + 1) // FLOATS_PER_SECTOR

    return KernelTask(
        name="product",
        parameters=("a", "x", "y"),
        run=run,
        sizes=(2 * rows, rows + 21),
        hidden=lambda rng: (1, *(int(size) for size in rng.integers(2, 3 * rows, size=2))),
        right=2,
        goals=(
            from_tile(
                4,
                lambda run: run.arguments["a"].nbytes,
                lambda run: 2 * n_rows(run) * COLS // FLOATS_PER_REQUEST,
            ),
            global_sectors(1, sectors),
            shared_bytes(1, most=FLOAT_BYTES * rows * COLS),
            no_hazards(1),
        ),
        starter=starter,
        timed=1 << 20,
    )


# -- a transpose ------------------------------------------------------------------------------------


def _transpose(deep: int, starter: Callable) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        src = rng.random(size, dtype=np.float32)
        return Run(
            size=f"a {size[0]} x {size[1]} matrix",
            grid=padding.grid_of(src),
            block=(TILE, deep),
            arguments={"src": src, "dst": poisoned(size[::-1])},
            expected={"dst": padding.reference(src)},
        )

    def hidden(rng: np.random.Generator) -> tuple[Any, ...]:
        edge, *others = (int(extent) for extent in rng.integers(2, 80, size=3))
        return ((edge, 1), tuple(others))

    return KernelTask(
        name="transpose",
        parameters=("src", "dst"),
        run=run,
        sizes=((64, 64), (33, 65)),
        hidden=hidden,
        right=2,
        goals=(
            through_tile(4, TILE),
            in_rows(1, TILE),
            shared_bytes(1, most=FLOAT_BYTES * TILE * TILE),
            no_hazards(1),
        ),
        starter=starter,
        timed=(4096, 4096),
        before=padding.transpose_tiled if deep == padding.ROWS else None,
        worth=_worth,
    )


def _worth() -> str:
    bits = results.experiment("h200", "E-10")
    few, none = (bits.ratio(f"float, {n} bits, 8192", "float, 5 bits, 8192") for n in (3, 0))
    return (
        f"In a transpose of 8192 x 8192 floats, three bits of the row take {few:.2f} times as long as five,"
        f" and no swizzle at all {none:.2f} times. {bits.caption}"
    )


# -- kernels with a fault ---------------------------------------------------------------------------


def starters(ROWS: int, ROOM: int, DEEP: int) -> Mapping[str, Any]:
    """The kernels to repair, by fault."""
    return _products(ROWS, ROOM) | _transposes(DEEP)


def _products(ROWS: int, ROOM: int) -> dict[str, Any]:
    @cuda.jit
    def four_bits(a, x, y):
        """Fault: a row has eight units, so the fourth bit of the row leads into the next row."""
        tile = cuda.shared.array(ROOM, float32)
        thread, first = cuda.threadIdx.x, cuda.blockIdx.x * ROWS
        for number in range(thread, ROWS * UNITS, ROWS):
            row, unit = number // UNITS, number % UNITS
            if first + row < a.shape[0]:
                chunk = ptx.load4(a, (first + row, 4 * unit))
                ptx.store4(tile, row * COLS + 4 * (unit ^ (row & 15)), *chunk)
        cuda.syncthreads()  # the tile is full before a thread reads its row
        if first + thread < a.shape[0]:
            total = float32(0)
            for unit in range(UNITS):
                at = thread * COLS + 4 * (unit ^ (thread & 15))
                p, q, r, s = ptx.load4(tile, at)
                k = 4 * unit
                total += p * x[k] + q * x[k + 1] + r * x[k + 2] + s * x[k + 3]
            y[first + thread] = total

    @cuda.jit
    def unmapped(a, x, y):
        """Fault: the read does not use the map of the write."""
        tile = cuda.shared.array(ROOM, float32)
        thread, first = cuda.threadIdx.x, cuda.blockIdx.x * ROWS
        for number in range(thread, ROWS * UNITS, ROWS):
            row, unit = number // UNITS, number % UNITS
            if first + row < a.shape[0]:
                chunk = ptx.load4(a, (first + row, 4 * unit))
                ptx.store4(tile, row * COLS + 4 * (unit ^ (row & 7)), *chunk)
        cuda.syncthreads()  # the tile is full before a thread reads its row
        if first + thread < a.shape[0]:
            total = float32(0)
            for unit in range(UNITS):
                at = thread * COLS + 4 * unit
                p, q, r, s = ptx.load4(tile, at)
                k = 4 * unit
                total += p * x[k] + q * x[k + 1] + r * x[k + 2] + s * x[k + 3]
            y[first + thread] = total

    @cuda.jit
    def half_units(a, x, y):
        """Fault: the XOR moves pairs of floats, and an access takes four."""
        tile = cuda.shared.array(ROOM, float32)
        thread, first = cuda.threadIdx.x, cuda.blockIdx.x * ROWS
        for number in range(thread, ROWS * UNITS, ROWS):
            row, unit = number // UNITS, number % UNITS
            if first + row < a.shape[0]:
                chunk = ptx.load4(a, (first + row, 4 * unit))
                ptx.store4(tile, row * COLS + (4 * unit ^ 2 * (row & 7)), *chunk)
        cuda.syncthreads()  # the tile is full before a thread reads its row
        if first + thread < a.shape[0]:
            total = float32(0)
            for unit in range(UNITS):
                at = thread * COLS + (4 * unit ^ 2 * (thread & 7))
                p, q, r, s = ptx.load4(tile, at)
                k = 4 * unit
                total += p * x[k] + q * x[k + 1] + r * x[k + 2] + s * x[k + 3]
            y[first + thread] = total

    @cuda.jit
    def binds_otherwise(a, x, y):
        """Fault: `<<` binds tighter than `&`, so the mask is 28 and the row is not shifted."""
        tile = cuda.shared.array(ROOM, float32)
        thread, first = cuda.threadIdx.x, cuda.blockIdx.x * ROWS
        for number in range(thread, ROWS * UNITS, ROWS):
            row, unit = number // UNITS, number % UNITS
            if first + row < a.shape[0]:
                chunk = ptx.load4(a, (first + row, 4 * unit))
                ptx.store4(tile, row * COLS + (4 * unit ^ row & 7 << 2), *chunk)
        cuda.syncthreads()  # the tile is full before a thread reads its row
        if first + thread < a.shape[0]:
            total = float32(0)
            for unit in range(UNITS):
                at = thread * COLS + (4 * unit ^ thread & 7 << 2)
                p, q, r, s = ptx.load4(tile, at)
                k = 4 * unit
                total += p * x[k] + q * x[k + 1] + r * x[k + 2] + s * x[k + 3]
            y[first + thread] = total

    return {
        "four_bits": four_bits,
        "unmapped": unmapped,
        "half_units": half_units,
        "binds_otherwise": binds_otherwise,
    }


def _transposes(DEEP: int) -> dict[str, Any]:
    @cuda.jit
    def thread_row(src, dst):
        """Fault: the map takes the thread's row, which has fewer bits than the tile's."""
        tile = cuda.shared.array((TILE, TILE), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        for step in range(0, TILE, DEEP):
            if row + step < src.shape[0] and col < src.shape[1]:
                tile[y + step, x ^ y] = src[row + step, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        for step in range(0, TILE, DEEP):
            if row + step < dst.shape[0] and col < dst.shape[1]:
                dst[row + step, col] = tile[x, (y + step) ^ (x % DEEP)]

    @cuda.jit
    def wrong_row(src, dst):
        """Fault: the read lies in row x of the tile, and its map takes y."""
        tile = cuda.shared.array((TILE, TILE), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        for step in range(0, TILE, DEEP):
            if row + step < src.shape[0] and col < src.shape[1]:
                tile[y + step, x ^ (y + step)] = src[row + step, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        for step in range(0, TILE, DEEP):
            if row + step < dst.shape[0] and col < dst.shape[1]:
                dst[row + step, col] = tile[x, (y + step) ^ y]

    @cuda.jit
    def wrong_way(src, dst):
        """Fault: a rotation is no XOR: a read finds its column as the write did, by adding the row."""
        tile = cuda.shared.array((TILE, TILE), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        for step in range(0, TILE, DEEP):
            if row + step < src.shape[0] and col < src.shape[1]:
                tile[y + step, (x + y + step) % TILE] = src[row + step, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        for step in range(0, TILE, DEEP):
            if row + step < dst.shape[0] and col < dst.shape[1]:
                dst[row + step, col] = tile[x, (y + step - x) % TILE]

    @cuda.jit
    def padded_too(src, dst):
        """Fault: a pad under a swizzle: the row counts twice in the bank, and columns conflict again."""
        tile = cuda.shared.array((TILE, 33), float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        for step in range(0, TILE, DEEP):
            if row + step < src.shape[0] and col < src.shape[1]:
                tile[y + step, x ^ (y + step)] = src[row + step, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        for step in range(0, TILE, DEEP):
            if row + step < dst.shape[0] and col < dst.shape[1]:
                dst[row + step, col] = tile[x, (y + step) ^ x]

    return {
        "thread_row": thread_row,
        "wrong_row": wrong_row,
        "wrong_way": wrong_way,
        "padded_too": padded_too,
    }
