"""Padding, challenge: two transposes that were padded, and conflict or fail all the same.

The first kernel has a pad that is in the wrong place. Each fault happened in published code: a row more
instead of a column more, a pad that only the store knows, an index with a pad more than the array has, and
an offset that shifts by the number of banks where its logarithm belongs, so that it adds nothing. The second
is a classic: small tiles with one column more were free of conflicts on GPUs that served half a warp at a
time, and are not today. Variants change the faults, the threads of a block, the tile, and what to predict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import results
from lanewise.access import WarpAccess
from lanewise.errors import Misaligned
from lanewise.kernels import padding
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import no_hazards, shared_bytes
from lanewise.labs.goals_tiles import in_rows, through_tile
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost

LANES = 32
TILE = 32
PITCH = TILE + 1
FLOAT_BYTES, DOUBLE_BYTES = 4, 8


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    rows, side, pad = variant.choice(8, 4, 16), variant.choice(16, 8), variant.choice(1, 2)
    faulty = starters(TILE, rows, PITCH, TILE * PITCH, side, side + pad)
    fault = variant.choice("row_too_many", "shift_by_banks", "store_alone", "pad_twice")
    small_fault = variant.choice("columns_out", "columns_in")
    return Lab(
        name="padding_hunt",
        title="The pads that did not help",
        chapter="padding",
        level="challenge",
        kinds=("predict", "hunt", "repair"),
        minutes=45,
        tasks=(
            _pads(variant),
            _transpose(rows, faulty[fault]),
            _counts(side),
            _small(side, faulty[small_fault]),
        ),
        given={
            "TILE": TILE,
            "ROWS": rows,
            "PITCH": PITCH,
            "ROOM": TILE * PITCH,
            "SIDE": side,
            "WIDE": side + pad,
        },
        seed=variant.seed,
    )


# -- the smallest pad -------------------------------------------------------------------------------


def _pads(variant: Variant) -> Answers:
    return Answers(
        "pads",
        (
            _pad("float_pad", variant.choice(48, 40, 45), "float", 32, FLOAT_BYTES),
            _pad("float2_pad", variant.choice(34, 36, 44), "float2", 64, FLOAT_BYTES),
            _pad("float4_pad", variant.choice(30, 40, 26), "float4", 128, FLOAT_BYTES),
            _pad("double_pad", variant.choice(24, 20, 33), "double", 64, DOUBLE_BYTES),
            _misaligned(variant.choice(42, 35, 38)),
        ),
    )


def _column(bits: int, pitch: int, element_bytes: int = FLOAT_BYTES) -> WarpAccess:
    return WarpAccess.from_tile(f"ld.shared.b{bits}", range(LANES), 0, pitch, element_bytes)


def _is_free(bits: int, pitch: int, element_bytes: int) -> bool:
    try:
        return not shared_cost(_column(bits, pitch, element_bytes)).excess
    except Misaligned:
        return False


def _pad(name: str, width: int, kind: str, bits: int, element_bytes: int) -> Question:
    unit = "doubles" if element_bytes == DOUBLE_BYTES else "floats"
    pad = next(pad for pad in range(LANES) if _is_free(bits, width + pad, element_bytes))
    each = bits // (8 * element_bytes)
    return Question(
        name,
        f"A row has {width} {unit}. A warp reads a column of {kind} values, lane by lane a row. What is the"
        f" smallest pad, in {unit}, with which the load is legal and free of conflicts; 0, if it is already?",
        pad,
        "First make every row start where the access may start. Then divide the pitch by the width of the"
        " access: odd or even?",
        f"The pitch is now {(width + pad) // each} accesses wide, an odd number.",
        access=_column(bits, width + pad, element_bytes),
    )


def _misaligned(pitch: int) -> Question:
    return Question(
        "misaligned",
        f"Somebody padded for floats, and now reads a column of float4 values from rows {pitch} floats apart."
        " How many of the 32 lanes start at an address that is no multiple of 16 bytes?",
        sum(FLOAT_BYTES * pitch * lane % 16 != 0 for lane in range(LANES)),
        "At which byte does the row of lane 1 start, of lane 2, of lane 3? Which remainder by 16?",
        "One such lane is enough, and the launch fails.",
    )


# -- the pad that is in the wrong place -------------------------------------------------------------


def _transpose(rows: int, starter: Callable) -> KernelTask:
    return KernelTask(
        name="transpose",
        parameters=("src", "dst"),
        run=lambda rng, size: _run(rng, size, TILE, (TILE, rows)),
        sizes=((64, 64), (33, 65)),
        hidden=_hidden,
        right=2,
        goals=(
            through_tile(4, TILE),
            in_rows(1, TILE),
            shared_bytes(1, most=FLOAT_BYTES * TILE * PITCH),
            no_hazards(1),
        ),
        starter=starter,
        timed=(4096, 4096),
        before=padding.transpose_tiled if rows == padding.ROWS else None,
        worth=_worth,
    )


def _run(rng: np.random.Generator, size: Any, tile: int, block: tuple[int, int]) -> Run:
    src = rng.random(size, dtype=np.float32)
    return Run(
        size=f"a {size[0]} x {size[1]} matrix",
        grid=padding.grid_of(src, tile),
        block=block,
        arguments={"src": src, "dst": poisoned(size[::-1])},
        expected={"dst": padding.reference(src)},
    )


def _hidden(rng: np.random.Generator) -> tuple[Any, ...]:
    edge, *others = (int(extent) for extent in rng.integers(2, 80, size=3))
    return ((1, edge), tuple(others))


def _worth() -> str:
    measured = results.experiment("h200", "E-04")
    return (
        f"On 8192 x 8192 floats the dense tile takes {measured.ratio('tiled 8192', 'padded 8192'):.2f} times"
        f" as long as the padded one. {measured.caption}"
    )


# -- the pad that was right once --------------------------------------------------------------------


def _counts(side: int) -> Answers:
    y, x = np.divmod(np.arange(LANES), side)

    def asked(name: str, row: Any, col: Any, op: str, bits: int, pitch: int) -> Question:
        n_bytes = bits // 8
        kind = "floats" if bits == 32 else "doubles"
        access = WarpAccess.from_tile(
            f"{'ld' if op == 'load' else 'st'}.shared.b{bits}", row, col, pitch, n_bytes
        )
        place = "tile[y, x]" if op == "store" else "tile[x, y]"
        cost = shared_cost(access)
        return Question(
            name,
            f"A block has {side} x {side} threads, thread (x, y) {op}s `{place}`, and rows of the tile start"
            f" {pitch} {kind} apart. How many wavefronts does the {op} of the first warp take?",
            cost.wavefronts,
            "Which y and which x do lanes 0 to 31 have? How many lanes are served together? Write down the"
            " bank of the first and of the last of each y.",
            f"{cost.ideal} would be the fewest.",
            access=access,
        )

    return Answers(
        "counts",
        (
            asked("dense_load", x, y, "load", 32, side),
            asked("padded_store", y, x, "store", 32, side + 1),
            asked("padded_load", x, y, "load", 32, side + 1),
            asked("double_store", y, x, "store", 64, side + 1),
            asked("double_load", x, y, "load", 64, side + 1),
        ),
    )


def _small(side: int, starter: Callable) -> KernelTask:
    return KernelTask(
        name="small",
        parameters=("src", "dst"),
        run=lambda rng, size: _run(rng, size, side, (side, side)),
        sizes=((48, 48), (33, 50)),
        hidden=_hidden,
        right=2,
        goals=(
            through_tile(6, side),
            in_rows(1, side),
            shared_bytes(2, most=FLOAT_BYTES * side * (side + 1)),
            no_hazards(1),
        ),
        starter=starter,
        timed=(4096, 4096),
        before=padding.transpose_small(1) if side == padding.SMALL else None,
        worth=_small_worth if side == padding.SMALL else None,
    )


def _small_worth() -> str:
    measured = results.experiment("h200", "E-06")
    padded, free = (measured.us(f"{name}, 4096") for name in ("pad 1", "swizzled"))
    return (
        "Is it worth it? This kernel waits for other things: 4096 x 4096 floats take"
        f" {padded:.1f} µs with one column more, and {free:.1f} µs with a tile that has no conflict (a"
        f" swizzled one). {measured.caption}"
    )


# -- kernels with a fault ---------------------------------------------------------------------------


def starters(TILE: int, ROWS: int, PITCH: int, ROOM: int, SIDE: int, WIDE: int) -> Mapping[str, Any]:
    """The kernels to repair, by fault."""
    return _misplaced(TILE, ROWS, PITCH, ROOM) | _outdated(SIDE, WIDE)


def _misplaced(TILE: int, ROWS: int, PITCH: int, ROOM: int) -> dict[str, Any]:
    @cuda.jit
    def row_too_many(src, dst):
        """Fault: the pad is a row more; the rows are as far apart as before."""
        tile = cuda.shared.array((PITCH, TILE), float32)  # padded: no bank conflicts
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        for step in range(0, TILE, ROWS):
            if row + step < src.shape[0] and col < src.shape[1]:
                tile[y + step, x] = src[row + step, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        for step in range(0, TILE, ROWS):
            if row + step < dst.shape[0] and col < dst.shape[1]:
                dst[row + step, col] = tile[x, y + step]

    @cuda.jit
    def shift_by_banks(src, dst):
        """Fault: a word of padding after every 32 takes a shift by 5, the logarithm; 32 shifts all away."""
        tile = cuda.shared.array(ROOM, float32)  # padded: no bank conflicts
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        for step in range(0, TILE, ROWS):
            if row + step < src.shape[0] and col < src.shape[1]:
                at = (y + step) * TILE + x
                tile[at + (at >> TILE)] = src[row + step, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        for step in range(0, TILE, ROWS):
            if row + step < dst.shape[0] and col < dst.shape[1]:
                at = x * TILE + y + step
                dst[row + step, col] = tile[at + (at >> TILE)]

    @cuda.jit
    def store_alone(src, dst):
        """Fault: the store knows the pad, the load does not."""
        tile = cuda.shared.array(ROOM, float32)  # padded: no bank conflicts
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        for step in range(0, TILE, ROWS):
            if row + step < src.shape[0] and col < src.shape[1]:
                tile[(y + step) * PITCH + x] = src[row + step, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        for step in range(0, TILE, ROWS):
            if row + step < dst.shape[0] and col < dst.shape[1]:
                dst[row + step, col] = tile[x * TILE + y + step]

    @cuda.jit
    def pad_twice(src, dst):
        """Fault: the index has a pad more than the array has room for, and the pitch is even again."""
        tile = cuda.shared.array(ROOM, float32)  # padded: no bank conflicts
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * TILE + x, cuda.blockIdx.y * TILE + y
        for step in range(0, TILE, ROWS):
            if row + step < src.shape[0] and col < src.shape[1]:
                tile[(y + step) * (PITCH + 1) + x] = src[row + step, col]
        cuda.syncthreads()  # the tile is full before anyone reads a column of it
        col, row = cuda.blockIdx.y * TILE + x, cuda.blockIdx.x * TILE + y
        for step in range(0, TILE, ROWS):
            if row + step < dst.shape[0] and col < dst.shape[1]:
                dst[row + step, col] = tile[x * (PITCH + 1) + y + step]

    return {
        "row_too_many": row_too_many,
        "shift_by_banks": shift_by_banks,
        "store_alone": store_alone,
        "pad_twice": pad_twice,
    }


def _outdated(SIDE: int, WIDE: int) -> dict[str, Any]:
    @cuda.jit
    def columns_out(src, dst):
        """Fault: a warp is more than one row, and a pad between its rows moves them onto each other."""
        tile = cuda.shared.array((SIDE, WIDE), float32)  # padded: no bank conflicts
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * SIDE + x, cuda.blockIdx.y * SIDE + y
        if row < src.shape[0] and col < src.shape[1]:
            tile[y, x] = src[row, col]
        cuda.syncthreads()  # the tile is full before anyone reads it
        col, row = cuda.blockIdx.y * SIDE + x, cuda.blockIdx.x * SIDE + y
        if row < dst.shape[0] and col < dst.shape[1]:
            dst[row, col] = tile[x, y]

    @cuda.jit
    def columns_in(src, dst):
        """Fault: the same the other way round: the store turns the tile, and the load reads its rows."""
        tile = cuda.shared.array((SIDE, WIDE), float32)  # padded: no bank conflicts
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.blockIdx.x * SIDE + x, cuda.blockIdx.y * SIDE + y
        if row < src.shape[0] and col < src.shape[1]:
            tile[x, y] = src[row, col]
        cuda.syncthreads()  # the tile is full before anyone reads it
        col, row = cuda.blockIdx.y * SIDE + x, cuda.blockIdx.x * SIDE + y
        if row < dst.shape[0] and col < dst.shape[1]:
            dst[row, col] = tile[y, x]

    return {"columns_out": columns_out, "columns_in": columns_in}
