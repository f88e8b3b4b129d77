"""Claims about Tensor Cores: what ldmatrix reads, which layouts serve it, where operands come from."""

import numpy as np

from lanewise.claims.claim import Trial, Verdict, at_least, claim
from lanewise.claims.documents import PTX_LDMATRIX, PTX_MMA, PTX_WGMMA
from lanewise.claims.evidence import lanes, or_misaligned, recorded
from lanewise.fragments import A_ROW_MAJOR, M16N8K16, MatrixMove
from lanewise.layouts import padded, row_major
from lanewise.machine import from_name, product
from lanewise.search import Candidate, TileAccess, TileShape, along_rows, matrix_loads, try_layout
from lanewise.swizzles import Swizzle

OK, WRONG, IMPRECISE = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE

PITCHES = range(32, 289, 16)  # bytes; those that an H200 was asked about


def rows_apart(pitch_bytes: int, n_matrices: int = 4) -> int:
    """Wavefronts of an ldmatrix whose lanes address rows of 16 bytes, one pitch after the other."""
    return lanes(f"ldmatrix.x{n_matrices}", lambda lane: pitch_bytes * lane).wavefronts


@claim("CA-30", "tensor_cores", WRONG, "tensor-cores-claim-padding")
def ca_30(trial: Trial) -> str:
    """Padding is not enough for Tensor Cores: it widens everything, and may stop ldmatrix from working."""
    free = [pitch for pitch in PITCHES if rows_apart(pitch) == 4]
    trial.stated(f"pitches of {PITCHES[0]} to {PITCHES[-1]} bytes that free ldmatrix.x4", 0, len(free))
    run = recorded("E-11")
    counted = sum(run.counter(f"x4 {pitch} B", "shared_load_conflicts") == 0 for pitch in PITCHES)
    trial.stated("the same, counted", 0, counted, "E-11")
    narrow, wide = (_best_pad(64, cols) for cols in (32, 64))
    tile = TileShape(64, 32, element_bytes=2)
    xor = try_layout("", Swizzle(2, 3, 3).compose(row_major((64, 32))), tile, _fill_and_fetch(tile))
    return (
        f"{len(free)} pitches free ldmatrix of conflicts, the odd multiples of 16 bytes. There is something"
        f" in it: for rows of 64 bytes no pad frees the fill as well. There the best pad loses"
        f" {narrow.excess} wavefronts, {Swizzle(2, 3, 3)} {xor.excess}; for rows of 128 bytes {wide.name}"
        f" loses {wide.excess}."
    )


def _fill_and_fetch(tile: TileShape) -> list[TileAccess]:
    return [along_rows("st.shared.b128")(tile), matrix_loads("ldmatrix.x4")(tile)]


def _best_pad(rows: int, cols: int) -> Candidate:
    """The pad, in steps of 16 bytes, with which filling and fetching a tile of halves lose least."""
    tile = TileShape(rows, cols, element_bytes=2)
    pads = range(8, 72, 8)
    tried = [
        try_layout(f"a pad of {pad} halves", padded(rows, cols, pad), tile, _fill_and_fetch(tile))
        for pad in pads
    ]
    return min(tried, key=lambda candidate: candidate.excess)


@claim("CA-31", "tensor_cores", IMPRECISE, "tensor-cores-claim-hopper")
def ca_31(trial: Trial) -> str:
    """A warp multiplies m16n8k16 on Ampere and Hopper."""
    both = tuple(from_name(name).supports("mma.m16n8k16") for name in ("sm_80", "sm_90"))
    trial.stated("sm_80 and sm_90 have it", (True, True), both, PTX_MMA)
    reached = recorded("E-14").row("registers")["tflop_per_s"]
    nominal = product("H200").tensor_tflop_per_s
    trial.wider("share of the H200's nominal rate that it reaches", at_least(0.9), reached / nominal, "E-14")
    trial.wider("instruction of Hopper's full rate", "mma.sync", "wgmma", PTX_WGMMA)
    return (
        "Both have it, but on Hopper it is not the way to full speed: from registers it reached"
        f" {reached:.0f} of {nominal:.0f} TFLOP/s on an H200. The rest takes wgmma, four"
        " warps at once."
    )


@claim("CA-32", "tensor_cores", WRONG, "tensor-cores-claim-lane")
def ca_32(trial: Trial) -> str:
    """With ldmatrix each lane reads an 8 x 8 matrix, from one shared address."""
    one, four = MatrixMove(1), MatrixMove(4)
    elements = one.within_matrix.row[0].size
    trial.stated("elements of the matrix that a lane receives", 64, elements, PTX_LDMATRIX)
    trial.stated("addresses that ldmatrix.x4 takes", 1, four.n_address_lanes, PTX_LDMATRIX)
    row = np.unique(one.within_matrix.row[4]).tolist()
    return (
        "The warp reads the matrices together. Lane 8 m + r gives the address of row r of matrix m,"
        f" {four.n_address_lanes} addresses for x4; a lane receives {elements} neighbours, lane 4 the first"
        f" of row {row[0]}."
    )


@claim("CA-34", "tensor_cores", IMPRECISE, "tensor-cores-claim-registers")
def ca_34(trial: Trial) -> str:
    """Tensor Cores want their operands as fragments spread over a warp; they do not take them from registers,
    as FMA units do."""
    holders = np.unique(M16N8K16.a.owners[0, :, 0])
    trial.stated("lanes that share row 0 of A", at_least(2), len(holders))
    trial.wider("operands of mma.sync come from", "elsewhere", "registers", PTX_MMA)
    each = M16N8K16.a.n_registers
    return (
        f"The fragment is a layout of registers: {len(holders)} lanes share row 0 of A, each gives {each}"
        " registers. Only wgmma, on Hopper, reads operands from shared memory."
    )


@claim("CA-35", "tensor_cores", IMPRECISE, "tensor-cores-claim-x4")
def ca_35(trial: Trial) -> str:
    """With ldmatrix.x4 conflicts are worse than with x1."""
    x1, x4 = (lanes(f"ldmatrix.x{n}", lambda lane: 128 * lane) for n in (1, 4))
    trial.stated("wavefronts at 128-byte pitch, x4", at_least(x1.wavefronts + 1), x4.wavefronts)
    trial.wider("degree of the conflict, x4", at_least(x1.degree + 1), x4.degree)
    run = recorded("E-11")
    conflicts = {n: run.counter(f"x{n} 128 B", "shared_load_conflicts") for n in (1, 4)}
    trial.wider("conflicts for the same 16 matrices, x4", at_least(conflicts[1] + 1), conflicts[4], "E-11")
    return (
        f"x4 is four phases one after the other, each as bad as that of x1: {x4.degree}-way. For the same"
        f" matrices both lose the same: {conflicts[1]} and {conflicts[4]} wavefronts counted."
    )


@claim("CA-36", "tensor_cores", OK, "tensor-cores-claim-pitch")
def ca_36(trial: Trial) -> str:
    """A row-major tile with rows of 128 bytes is dangerous for ldmatrix."""
    found = trial.stated("wavefronts of x4 (4 is free)", at_least(5), rows_apart(128))
    counted = recorded("E-11").counter("x4 128 B", "shared_load_wavefronts") / 4
    trial.stated("the same, counted", at_least(5), counted, "E-11")
    degree = lanes("ldmatrix.x4", lambda lane: 128 * lane).degree
    return f"All 8 rows of a matrix begin in bank 0: {degree}-way in each of 4 phases, {found} wavefronts."


@claim("CA-42", "tensor_cores", WRONG, "tensor-cores-claim-bytes")
def ca_42(trial: Trial) -> str:
    """In ldmatrix each lane accesses 8 or 16 bytes."""
    trial.stated("bytes of a row that a lane points at", "8 or 16", "16", PTX_LDMATRIX)
    found = or_misaligned(lambda: rows_apart(8))
    trial.stated("rows of 8 bytes, one after the other, are", "legal", found)
    return (
        "A row is always 16 bytes and begins at a multiple of 16. With rows of 8 bytes every second one is"
        f" {found}."
    )


@claim("CA-47", "tensor_cores", WRONG, "tensor-cores-claim-sixteen")
def ca_47(trial: Trial) -> str:
    """In a swizzled ldmatrix lane 0 reads row 0 and lane 16 reads row 1."""
    move = MatrixMove(4)
    row, matrix = int(move.address_row[16]), int(move.address_matrix[16])
    trial.stated("row that lane 16 addresses", 1, row, PTX_LDMATRIX)
    tile_row = trial.stated("the same in a tile of A", 1, int(A_ROW_MAJOR.row[16]))
    phases = lanes("ldmatrix.x4", lambda lane: 128 * lane).phases
    apart = next(number for number, phase in enumerate(phases) if 16 in phase.lanes)
    return (
        f"Lane 16 addresses row {row} of matrix {matrix}, row {tile_row} of the tile; row 1 is lane 1's."
        f" Lanes 0 and 16 can never conflict: they are in phases 0 and {apart}."
    )


@claim("CA-48", "tensor_cores", WRONG, "tensor-cores-claim-one")
def ca_48(trial: Trial) -> str:
    """A swizzle takes ldmatrix.x4 from 4 cycles to about 1."""
    fewest = lanes("ldmatrix.x4", lambda lane: 16 * lane).wavefronts
    trial.stated("wavefronts of x4 with a perfect layout", 1, fewest)
    counted = recorded("E-12").counter("A Swizzle<2,3,3>", "shared_load_wavefronts") / 8
    trial.stated("wavefronts of x4 with a swizzle, counted", 1, counted, "E-12")
    return (
        f"x4 moves 512 bytes and shared memory gives 128 per clock, so {fewest} is the floor. A swizzle"
        f" takes it there from {rows_apart(32)} to {rows_apart(128)}, as the pitch may be."
    )
