"""Claims about swizzles: what the formulas do, and how many bits which access needs."""

import ctypes
from itertools import product

import numpy as np

from lanewise.claims.claim import Trial, Verdict, at_least, claim
from lanewise.claims.documents import CUTLASS_SWIZZLE
from lanewise.claims.evidence import lanes, recorded, row, tile
from lanewise.layouts import padded, row_major
from lanewise.swizzles import Swizzle, XorTile, rotation_tile, xor_tile

OK, WRONG, IMPRECISE = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE

LANE = np.arange(32)


def column_of(units: int, bits: int, unit_bytes: int) -> int:
    """Wavefronts of a column of 32 rows of `units`, the unit XORed with so many bits of the row."""
    layout = XorTile(32, units, (1 << bits) - 1)
    return tile(f"ld.shared.b{8 * unit_bytes}", layout, LANE, 0, unit_bytes).wavefronts


@claim("CA-28", "swizzle", OK, "swizzle-xor")
def ca_28(trial: Trial) -> str:
    """A swizzle changes the map of addresses and keeps the size of the array."""
    plain = row_major((32, 32)).n_bytes(4)
    for name, layout in (("XOR", xor_tile(32, 32)), ("rotation", rotation_tile(32, 32))):
        trial.stated(f"bytes of a 32 x 32 tile of floats, {name}", plain, layout.n_bytes(4))
        trial.stated(f"every element has its own place, {name}", True, layout.is_bijection)
    return f"{plain:,} bytes before and after; a pad of one column makes {padded(32, 32, 1).n_bytes(4):,}."


@claim("CA-37", "swizzle", WRONG, "swizzle-broken-halves")
def ca_37(trial: Trial) -> str:
    """A tile of 8 x 8 halves is swizzled by (row << 4) with ((col ^ ((row & 3) << 3)) << 1), in bytes; the
    copy we have lost the operator between the two."""
    row_, col = np.divmod(np.arange(64), 8)
    plain, moved = row_ << 4, (col ^ ((row_ & 3) << 3)) << 1
    readings = {"+": plain + moved, "|": plain | moved, "^": plain ^ moved}
    places = {sign: len(set(places.tolist())) for sign, places in readings.items()}
    for sign in ("+", "^"):
        trial.stated(f"places of 64 elements, operator {sign}", 64, places[sign])
    identity = int((readings["|"] != plain + 2 * col).sum())
    trial.stated("elements that operator | moves", at_least(1), identity)
    free = lanes("ldmatrix.x1", lambda lane: 16 * lane).wavefronts
    return (
        f"No operator makes it a swizzle: + has room for {places['+']} of 64 elements, ^ for {places['^']},"
        f" and | moves {identity}. None is needed: 8 dense rows of 16 bytes are 128 bytes in a row, {free}"
        " wavefront for ldmatrix."
    )


@claim("CA-38", "swizzle", WRONG, "swizzle-broken-halves")
def ca_38(trial: Trial) -> str:
    """The shift in that formula puts the row bits on byte bit 3, the middle of the 16 bytes."""
    flipped = int(np.bitwise_or.reduce(((np.arange(8) & 3) << 3) << 1))
    bits = tuple(bit for bit in range(8) if flipped >> bit & 1)
    trial.stated("byte bits that the row flips", (3,), bits)
    starts = [(r << 4) + (((r & 3) << 2) << 1) for r in range(4)]
    return (
        f"It flips byte bits {bits[0]} and {bits[1]}: the shift counts elements, and a half has two bytes."
        f" Bit 3 would be of no use anyway: rows would begin at bytes {_listed(starts)}, and ldmatrix wants"
        " multiples of 16."
    )


@claim("CA-39", "swizzle", WRONG, "swizzle-claim-parameters")
def ca_39(trial: Trial) -> str:
    """In `Swizzle<3,3,3>` the numbers are the width in elements, the bits of the row stride, and the bits of
    the column."""
    says = "width, bits of the stride, bits of the column"
    trial.stated(
        "the three numbers", says, "bits flipped, bits kept, distance of the source", CUTLASS_SWIZZLE
    )
    swizzle = Swizzle(3, 3, 3)
    r, c = np.divmod(np.arange(64 * 64), 64)
    as_said = int((swizzle(64 * r + c) == 64 * r + (c ^ ((r & 7) << 3))).sum())
    return (
        f"It flips bits {_span(swizzle.bits_changed)} of an offset by bits {_span(swizzle.bits_read)} and"
        f" keeps the lowest {swizzle.base}. For rows of 64 halves that is chunk ^= row & 7, at all"
        f" {as_said:,} offsets. In bytes the same movement is {swizzle.in_units_of(1, was=2)}."
    )


def _span(bits: tuple[int, ...]) -> str:
    return f"{bits[0]} to {bits[-1]}"


@claim("CA-40", "swizzle", IMPRECISE, "swizzle-broken-width")
def ca_40(trial: Trial) -> str:
    """The swizzle row * n + (col ^ ((row & mask) << shift)) can be undone."""
    trial.stated(
        "n = 32, mask 7, shift 2: every element has its own place", True, not XorTile(32, 32, 7, 2).defect()
    )
    broken = {}
    for n, mask, shift in ((24, 7, 2), (40, 7, 2), (33, 7, 2), (32, 7, 3), (16, 31, 0)):
        broken[n, mask] = XorTile(32, n, mask, shift).defect()
        trial.wider(f"n = {n}, mask {mask}, shift {shift}: the same", True, not broken[n, mask])
    return (
        "Only if the width is a multiple of the power of two above mask << shift. For n = 24, mask 7, shift"
        f" 2, {broken[24, 7]}."
    )


@claim("CA-41", "swizzle", WRONG, "swizzle-claim-row")
def ca_41(trial: Trial) -> str:
    """The XOR spreads different columns of the same row over the banks."""
    before = trial.stated("wavefronts of a row without the XOR", at_least(2), row(32))
    plain = tile("ld.shared.b32", row_major((32, 32)), LANE, 0).wavefronts
    after = tile("ld.shared.b32", xor_tile(32, 32), LANE, 0).wavefronts
    return (
        f"Within a row the XOR is one constant: it permutes the row, which was free already ({before}). The"
        f" gain is for the same column in different rows: {plain} wavefronts become {after}."
    )


@claim("CA-43", "swizzle", OK, "swizzle-claim-32")
def ca_43(trial: Trial) -> str:
    """For 32-bit accesses take (row + col) & 31 as column, or the XOR with the low 5 bits of the row."""
    for name, layout in (("rotation", rotation_tile(32, 32)), ("XOR", xor_tile(32, 32))):
        for walk, place in (("row", (3, LANE)), ("column", (LANE, 3))):
            trial.stated(f"{name}, {walk}: wavefronts", 1, tile("ld.shared.b32", layout, *place).wavefronts)
    ways = [column_of(32, bits, 4) for bits in range(6)]
    counted = recorded("E-10").counter("float, 5 bits, 128", "shared_load_conflicts")
    trial.stated("5 bits, conflicts counted", 0, counted, "E-10")
    return (
        f"Both free rows and columns. Fewer bits leave conflicts: 0 to 5 bits give {_listed(ways)}"
        " wavefronts."
    )


@claim("CA-44", "swizzle", WRONG, "swizzle-claim-64")
def ca_44(trial: Trial) -> str:
    """For 64-bit accesses swizzle the low 3 bits."""
    trial.stated("3 bits of the 8-byte unit: wavefronts of a column", 2, column_of(16, 3, 8))
    conflicts = recorded("E-10").counter("double, 3 bits", "shared_load_conflicts")
    trial.stated("the same, conflicts counted", 0, conflicts, "E-10")
    ways = [column_of(16, bits, 8) for bits in range(5)]
    return (
        f"A phase has 16 lanes, so it takes 4 bits: 0 to 4 bits give {_listed(ways)} wavefronts, and"
        f" {ways[-1]} is the fewest. Three leave every phase a 2-way conflict."
    )


@claim("CA-45", "swizzle", WRONG, "swizzle-broken-four")
def ca_45(trial: Trial) -> str:
    """For 128-bit accesses and ldmatrix.x4 swizzle the low 4 bits."""
    defect = XorTile(32, 8, 15).defect()
    trial.stated("4 bits, rows of 128 bytes: data can be read back", True, not defect)
    lost = defect.replace("element", "unit")
    ways = [column_of(8, bits, 16) for bits in range(4)]
    conflicts = recorded("E-10").counter("float4, 3 bits", "shared_load_conflicts")
    return (
        f"A phase has 8 lanes, so 3 bits do: 0 to 3 bits give {_listed(ways)} wavefronts ({conflicts}"
        f" conflicts counted). A row of 128 bytes has only 8 units; with 4 bits the units {lost}, and data"
        " is lost."
    )


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


@claim("CA-46", "swizzle", IMPRECISE, "swizzle-claim-wide-row")
def ca_46(trial: Trial) -> str:
    """Where a tile is 32 elements wide, one row occupies all banks, an extreme case; there XOR is the better
    cure, since it does not widen the row."""
    swizzled, plain = xor_tile(32, 32).n_bytes(4), row_major((32, 32)).n_bytes(4)
    trial.stated("bytes that the XOR adds", 0, swizzled - plain)
    found = trial.wider("wavefronts of a row that occupies all banks", at_least(2), row(32))
    return (
        f"The XOR adds no byte. But a row on all banks is the ideal, {found} wavefront; what collides is the"
        " column."
    )


@claim("CA-51", "swizzle", WRONG, "swizzle-check")
def ca_51(trial: Trial) -> str:
    """To check a layout, divide the 32 addresses by 4, take them modulo 32: without conflicts they cover 0 to
    31."""
    swizzled = Swizzle(3, 4, 3)
    patterns = {
        "own words": ("ld.shared.b32", 4 * LANE),
        "all lanes one word": ("ld.shared.b32", 0 * LANE),
        "float4, side by side": ("ld.shared.b128", 16 * LANE),
        "ldmatrix.x4, best swizzle of 128-byte rows": (
            "ldmatrix.x4",
            swizzled(128 * (LANE % 8) + 16 * (LANE // 8)),
        ),
    }
    free = {}
    for name, (instruction, places) in patterns.items():
        covers = len(set((places // 4 % 32).tolist())) == 32
        cost = lanes(instruction, lambda _, places=places: places)  # type: ignore[misc]
        free[name] = trial.stated(f"{name}: free of conflicts", covers, cost.excess == 0)
    return (
        f"{sum(free.values())} of these {len(free)} accesses are free of conflicts, and the test finds only"
        " the first. The habit is excellent; ask of each phase how many different words a bank has to"
        " serve, at most one."
    )


@claim("CA-58", "swizzle", OK, "swizzle-claim-cutlass")
def ca_58(trial: Trial) -> str:
    """All swizzles of CUTLASS are one form: an XOR of shifted bits, only which bits differs."""
    offsets = np.arange(4096)
    all_of_them = [(b, m, s) for b, m, s in product(range(4), range(5), range(5)) if s >= b]
    same = sum(
        bool((Swizzle(b, m, s)(offsets) == offsets ^ ((offsets >> s) & (((1 << b) - 1) << m))).all())
        for b, m, s in all_of_them
    )
    trial.stated("swizzles of this form, of those tried", len(all_of_them), same, CUTLASS_SWIZZLE)
    return (
        f"So are all {same} that we tried. They act on the bits of an offset; rows and columns are what we"
        " read into it."
    )


@claim("CA-76", "swizzle", OK)
def ca_76(trial: Trial) -> str:
    """A 128-bit access covers 4 banks."""
    one = lanes("ld.shared.b128", lambda lane: 16 * lane, active_mask=1)
    found = trial.stated("banks that one lane uses", 4, len(one.phases[0].words_by_bank))
    return f"{found} neighbouring banks, so 8 lanes fill all 32."


@claim("CA-78", "swizzle", WRONG)
def ca_78(trial: Trial) -> str:
    """The 64-bit row of the table is for FP32 double reads."""
    bits = trial.stated("bits of a double", 32, 8 * ctypes.sizeof(ctypes.c_double))
    return f"A double is FP64, {bits} bits. The row fits doubles, and pairs of floats read as float2."
