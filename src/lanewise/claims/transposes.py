"""Claims about tiles that are written by rows and read by columns: the transpose, and copies made like it."""

import numpy as np

from lanewise.claims.claim import Run, Trial, Verdict, about, at_least, at_most, claim
from lanewise.claims.documents import SHUFFLES
from lanewise.claims.evidence import MISALIGNED, column, lanes, or_misaligned, recorded, row, tile, traced
from lanewise.layouts import padded
from lanewise.machine import WARP_LANES, from_name, occupancy, product
from lanewise.swizzles import xor_tile

OK, WRONG, IMPRECISE, HW = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE, Verdict.HW

LANE = np.arange(WARP_LANES)
OF_16 = (LANE // 16, LANE % 16)  # the two rows of a block of 16 x 16 threads that make a warp
COPY = Run("traces of `scale_by_rows`, `scale_by_columns`, `scale_padded`")
TRANSPOSE = Run("trace of `transpose`")


def small(pad: int) -> tuple[int, int]:
    """Wavefronts of a warp of 16 x 16 threads that stores t[y][x], and that reads t[x][y]."""
    y, x = OF_16
    pitch = 16 + pad
    store = lanes("st.shared.b32", lambda _: 4 * (y * pitch + x)).wavefronts
    return store, lanes("ld.shared.b32", lambda _: 4 * (x * pitch + y)).wavefronts


@claim("CB-09", "padding", OK, "padding-why")
def cb_09(trial: Trial) -> str:
    """In tile[32][32] the bank is the column; in tile[32][33] it is (row + column) mod 32."""
    rows, cols = np.divmod(np.arange(32 * 32), 32)
    dense, wide = (np.asarray(padded(32, 32, pad)(rows, cols)) % 32 for pad in (0, 1))
    trial.stated("cells of [32][32] in the bank of their column", 32 * 32, int((dense == cols).sum()))
    trial.stated(
        "cells of [32][33] in bank (row + col) mod 32", 1024, int((wide == (rows + cols) % 32).sum())
    )
    return (
        f"So a column takes {column(32)} wavefronts at pitch 32 and {column(33)} at 33, a row {row(32)} and"
        f" {row(33)}."
    )


@claim("CB-10", "padding", OK, "padding-transpose")
def cb_10(trial: Trial) -> str:
    """A transpose through a tile, by blocks of 32 x 8 threads, is coalesced on both sides; with [32][32] its
    reads of the tile are 32-way conflicts, with [32][33] there are none."""
    for pad, ways in ((0, 32), (1, 1)):
        found = traced("E-04", f"pad {pad}, 128")
        for op in ("load", "store"):
            totals = getattr(found.global_, op)
            trial.stated(f"pad {pad}: sectors a global {op}", 4, totals.sectors // totals.requests, TRANSPOSE)
        store, load = found.shared.store, found.shared.load
        trial.stated(f"pad {pad}: wavefronts a store", 1, store.wavefronts // store.requests, TRANSPOSE)
        trial.stated(f"pad {pad}: wavefronts a load", ways, load.wavefronts // load.requests, TRANSPOSE)
    run = recorded("E-04")
    for pad, lost in ((0, 31), (1, 0)):
        conflicts = run.counter(f"pad {pad}, 128", "shared_load_conflicts")
        loads = run.counter(f"pad {pad}, 128", "shared_load_instructions")
        trial.stated(f"pad {pad}: conflicts a load, counted", float(lost), conflicts / loads, "E-04")
    return f"And the pad makes it {run.ratio('pad 0, 8192', 'pad 1, 8192'):.2f} times as fast on an H200."


@claim("CB-11", "padding", OK, "padding-correct")
def cb_11(trial: Trial) -> str:
    """The bound check before the output is enough: where it holds, the cell of the tile was written."""
    from lanewise.kernels.padding import BLOCK, grid_of, transpose_padded
    from lanewise.trace import trace

    shapes = ((33, 65), (32, 32), (1, 40), (70, 31))
    for shape in shapes:
        src = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        dst = np.zeros(shape[::-1], np.float32)
        found = trace(transpose_padded, grid_of(src), BLOCK, src, dst)
        name = f"{shape[0]} x {shape[1]}"
        trial.stated(f"{name}: hazards", 0, len(found.hazards), Run("trace of `transpose_padded`"))
        trial.stated(f"{name}: transposed", True, bool(np.array_equal(dst, src.T)), TRANSPOSE)
    return (
        f"Both checks compare the same pair of coordinates. The tracer finds no cell read before it was"
        f" written in any of {len(shapes)} shapes."
    )


@claim("CB-12", "padding", OK, "padding-blocks")
def cb_12(trial: Trial) -> str:
    """With blocks of 16 x 16 threads a warp covers two rows, so lane is no longer threadIdx.x."""
    y, x = OF_16
    trial.stated("rows of threads in a warp", 2, len(set(y.tolist())))
    trial.stated("lanes with x = 0", 2, int((x == 0).sum()))
    found = {pad: small(pad) for pad in range(33)}
    assert (1, 1) not in found.values()
    run = recorded("E-06")
    for pad in (0, 1, 2, 16):
        loads = run.counter(f"pad {pad}, 128", "shared_load_instructions")
        counts = tuple(
            int(run.counter(f"pad {pad}, 128", f"shared_{op}_wavefronts") / loads) for op in ("store", "load")
        )
        trial.stated(
            f"pad {pad}: wavefronts to store and load, counted as computed", found[pad], counts, "E-06"
        )
    xor = xor_tile(16, 16)
    both = (tile("st.shared.b32", xor, y, x).wavefronts, tile("ld.shared.b32", xor, x, y).wavefronts)
    return (
        f"It matters: a 16 x 16 tile, stored by rows and read by columns, takes {found[0][0]} and"
        f" {found[0][1]} wavefronts, with a pad of 1 {found[1][0]} and {found[1][1]}. No pad from 0 to"
        f" 32 frees both; an XOR does: {both[0]} and {both[1]}."
    )


@claim("CB-13", "padding", OK, "padding-bytes")
def cb_13(trial: Trial) -> str:
    """The pad takes a block from 4,096 to 4,224 bytes, 128 more."""
    bytes_ = {pad: padded(32, 32, pad).n_bytes(4) for pad in (0, 1)}
    trial.stated("bytes without and with the pad", (4096, 4224), tuple(bytes_.values()))
    on_h200 = [occupancy("sm_90", 256, shared_bytes=n) for n in bytes_.values()]
    limits = [fits.limits["shared"] for fits in on_h200]
    return (
        f"On an H200 shared memory would admit {limits[0]} blocks without and {limits[1]} with it; at 256"
        f" threads a block, threads admit {on_h200[1].blocks_per_sm}. So it costs nothing here."
    )


@claim("CB-14", "swizzle", OK, "swizzle-xor")
def cb_14(trial: Trial) -> str:
    """Storing (row, col) at tile[row][col ^ row] permutes each row and spreads each column over all banks."""
    layout = xor_tile(32, 32)
    rows = np.arange(32)
    whole = all(sorted(np.asarray(layout(r, rows)) % 32) == list(range(32)) for r in range(32))
    trial.stated("each row is a permutation", True, whole)
    for name, row_of, col_of in (("row", 5, LANE), ("column", LANE, 5)):
        found = tile("ld.shared.b32", layout, row_of, col_of).wavefronts
        trial.stated(f"wavefronts of a {name}", 1, found)
        on_gpu = recorded("E-07").counter(f"XOR, {name}", "shared_load_wavefronts")
        trial.stated(f"wavefronts of a {name}, counted", 1, on_gpu, "E-07")
    diagonals = [tile("ld.shared.b32", layout, LANE, c).wavefronts for c in (LANE, 31 - LANE)]
    return (
        "Rows and columns are free, without one byte more. Diagonals are not:"
        f" {diagonals[0]} and {diagonals[1]} wavefronts."
    )


@claim("CB-15", "padding", OK, "padding-claim-vector")
def cb_15(trial: Trial) -> str:
    """An extra column can make vector accesses illegal."""
    wide = or_misaligned(lambda: lanes("ld.shared.b128", lambda lane: 4 * 33 * lane).wavefronts)
    trial.stated("float4 at pitch 33", MISALIGNED, wide)
    off = int((4 * 33 * LANE % 16 != 0).sum())
    trial.stated("lanes off", at_least(1), off)
    legal = lanes("ld.shared.b128", lambda lane: 4 * 36 * lane).wavefronts
    return (
        f"{off} of 32 rows begin at no multiple of 16 bytes. Four columns are legal and free: {legal}"
        " wavefronts."
    )


@claim("CB-16", "padding", OK, "padding-alternatives")
def cb_16(trial: Trial) -> str:
    """Warp shuffles need no shared memory, but work inside one warp only; the mask must name the lanes that
    take part, and the source lane must be one of them."""
    rule = "undefined"
    trial.stated("value from a lane that does not take part", rule, "undefined", SHUFFLES)
    found = traced("E-36", "shuffled, 256 threads")
    tree = traced("E-36", "sequential, 256 threads")
    run = Run("traces of `sum_shuffled` and `sum_sequential`")
    fewer = tree.shared.total.requests / found.shared.total.requests
    trial.stated("times as few requests to shared memory, a sum", at_least(2), fewer, run)
    trial.stated("shared memory is still needed across warps", True, found.shared.total.requests > 0, run)
    gain = recorded("E-36").ratio("sequential, 256 threads", "shuffled, 256 threads")
    return (
        f"A sum with shuffles sends one request to shared memory where a tree sends {fewer:.0f}, and runs"
        f" {gain:.2f} times as fast on an H200; what crosses warps still needs it."
    )


@claim("CB-28", "padding", HW, "padding-occupancy")
def cb_28(trial: Trial) -> str:
    """Padding can lower the number of resident blocks."""
    run = recorded("E-18")
    labels = {128: "pitch 128, 114688 bytes", 129: "pitch 129, 115584 bytes", 132: "pitch 132, 118272 bytes"}
    blocks = {pitch: run.row(label)["blocks_per_sm"] for pitch, label in labels.items()}
    trial.here("blocks of [224][129] on a multiprocessor, of [224][128]: 2", at_most(1), blocks[129], "E-18")
    trial.here("blocks of [224][132]", at_most(1), blocks[132], "E-18")
    slower = run.ratio(labels[132], labels[128])
    ada = from_name("sm_89").shared_bytes_per_sm // 1024
    return (
        f"At a threshold only. On an H200 one column more leaves {blocks[129]} blocks, four leave"
        f" {blocks[132]}, and a copy takes {slower:.2f} times the time. Where the threshold lies depends on"
        f" the GPU: an RTX 4090 has {ada} KB for all blocks together."
    )


@claim("CD-14", "banks", OK, "banks-directions")
def cd_14(trial: Trial) -> str:
    """Reading tile[tx][ty] at pitch 32 is a 32-way conflict; a pitch of 33 frees it."""
    for label, ways in (("rows", 1), ("columns", 32), ("padded", 1)):
        load = traced("E-05", f"{label} 256").shared.load
        trial.stated(f"{label}: wavefronts a load", ways, load.wavefronts // load.requests, COPY)
        run = recorded("E-05")
        loads = run.counter(f"{label} 256", "shared_load_instructions")
        each = run.counter(f"{label} 256", "shared_load_wavefronts") / loads
        trial.stated(f"{label}: the same, counted", float(ways), each, "E-05")
    return f"Pitch 32 takes {column(32)} wavefronts, pitch 33 takes {column(33)}."


@claim("CD-15", "banks", HW, "banks-matters")
def cd_15(trial: Trial) -> str:
    """Full 32-way conflicts make a copy through shared memory 1.19 times as slow (RTX 4090)."""
    run = recorded("E-05")
    trial.stated("740.07 against 879.49 GB/s: times as long", about(1.19), 879.49 / 740.07)
    here = run.ratio("columns 4096", "rows 4096")
    trial.here("the same kernels on an H200", about(1.19, 0.05), here, "E-05")
    wavefronts = 4096 * 4096 // 32 * 33  # 32 to load and 1 to store, for each warp
    ada, h200 = product("RTX 4090"), product("H200")
    shared = {p.name: wavefronts / p.cycles_per_us for p in (ada, h200)}
    dram = {p.name: 2 * 4 * 4096 * 4096 / p.dram_gb_per_s / 1e3 for p in (ada, h200)}
    return (
        f"It depends on the balance. By data sheet the wavefronts take {shared['RTX 4090']:.0f} µs on an RTX"
        f" 4090, hidden behind {dram['RTX 4090']:.0f} µs of DRAM; on an H200 they take {shared['H200']:.0f}"
        f" µs, and DRAM only {dram['H200']:.0f}. There the factor is {here:.2f}, measured."
    )


@claim("CD-16", "banks", OK, "banks-matters")
def cd_16(trial: Trial) -> str:
    """Padding brings the kernel back to nearly the speed without conflicts: 826 of 879 GB/s (RTX 4090)."""
    trial.stated("share of the speed, as printed", about(0.94), 826.01 / 879.49)
    run = recorded("E-05")
    share = trial.stated(
        "share of the speed, H200", at_least(0.9), run.ratio("rows 4096", "padded 4096"), "E-05"
    )
    load = traced("E-05", "padded 256").shared.load
    each = load.wavefronts // load.requests
    xor = run.ratio("rows 4096", "swizzled 4096")
    return (
        f"{share:.0%} on an H200. What is missing is no conflict: a load takes {each} wavefront. An XOR in"
        f" place of the pad reaches {xor:.0%}; both read and write the matrix in another order than the copy"
        " by rows."
    )


@claim("CD-17", "padding", OK, "padding-why")
def cd_17(trial: Trial) -> str:
    """Rows 32 apart begin in the same bank, rows 33 apart one bank further."""
    trial.stated("33 mod 32", 1, 33 % 32)
    found = {
        pitch: {int(step) for step in np.diff(np.asarray(padded(32, 32, pitch - 32)(LANE, 0)) % 32) % 32}
        for pitch in (32, 33)
    }
    trial.stated("banks from one row to the next, pitch 32", (0,), tuple(found[32]))
    trial.stated("banks from one row to the next, pitch 33", (1,), tuple(found[33]))
    return f"A column takes {column(32)} wavefronts, and with the pad {column(33)}."


@claim("CD-18", "padding", WRONG, "padding-claim-16")
def cd_18(trial: Trial) -> str:
    """16 x 16 tiles, or odd ones, have no period of 32, so padding is useless there."""
    store, load = small(0)
    trial.stated("wavefronts to read a column of a 16 x 16 tile", 1, load)
    on_gpu = recorded("E-06")
    each = on_gpu.counter("pad 0, 128", "shared_load_wavefronts") / on_gpu.counter(
        "pad 0, 128", "shared_load_instructions"
    )
    trial.stated("the same, counted", 1.0, each, "E-06")
    odd = trial.stated("wavefronts of a column of 31 columns", 1, column(31))
    best = min(sum(small(pad)) for pad in range(17))
    gain = on_gpu.ratio("pad 0, 4096", "pad 2, 4096") - 1
    return (
        f"Odd pitches are free ({odd}). In a 16 x 16 tile two rows of threads make a warp, and a column takes"
        f" {load} wavefronts. A pad helps: store and load together from {store + load} to {best}."
        f" (In time it hardly shows: on an H200 a transpose with such tiles gains {gain:.0%}.)"
    )
