"""Claims about padding for wide accesses: alignment, and pads that suit one width and not another."""

import ctypes

from lanewise.claims.claim import Trial, Verdict, at_least, claim
from lanewise.claims.documents import PTX_ALIGNMENT, SIZEOF, VECTOR_TYPES
from lanewise.claims.evidence import MISALIGNED, column, lanes, or_misaligned, recorded, rows

OK, WRONG, IMPRECISE = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE


def wide_column(pitch_bytes: int, bits: int = 128) -> int:
    """Wavefronts of a column of wide accesses, rows `pitch_bytes` apart."""
    return lanes(f"ld.shared.b{bits}", lambda lane: pitch_bytes * lane).wavefronts


def faults(instruction: str, shift_bytes: int) -> bool:
    """Whether the H200 stopped at an address that is off by so many bytes."""
    return any(
        case["error"]
        for case in rows("misaligned", "cases")
        if (case["instruction"], case["shift_bytes"]) == (instruction, shift_bytes)
    )


@claim("CA-24", "padding", IMPRECISE, "padding-claim-larger")
def ca_24(trial: Trial) -> str:
    """For wide accesses the pad must be larger than the banks that one access spans."""
    trial.stated("128-byte rows, float4, pad 16: wavefronts (4 is free)", 4, wide_column(144))
    larger = {pad: trial.wider(f"the same, pad {pad}", 4, wide_column(128 + pad)) for pad in (32, 48, 64)}
    return (
        f"Size is not the point: a pad of 32 bytes is larger and costs {larger[32]}, one of 64 even"
        f" {larger[64]}. The pitch must be an odd multiple of the access width."
    )


@claim("CA-25", "padding", WRONG, "padding-widths")
def ca_25(trial: Trial) -> str:
    """double4 and float4 are 16 bytes."""
    trial.stated("bytes of float4", 16, 4 * ctypes.sizeof(ctypes.c_float))
    double4 = trial.stated("bytes of double4", 16, 4 * ctypes.sizeof(ctypes.c_double), VECTOR_TYPES)
    return f"A double4 has {double4} bytes, and takes two accesses of 16; float4 and double2 fit into one."


@claim("CA-26", "padding", WRONG, "padding-claim-float4")
def ca_26(trial: Trial) -> str:
    """With float4 accesses a pad of one column may not help fully."""
    found = or_misaligned(lambda: wide_column(4 * 33))
    trial.stated("a float4 column at pitch 33", "slower at worst", found)
    trial.stated(
        "an H200 reads at an address that is off by 4 bytes",
        True,
        not faults("ld.shared.b128", 4),
        "misaligned",
    )
    off = sum(4 * 33 * lane % 16 != 0 for lane in range(32))
    return (
        f"It is not slow, it is illegal: {off} of 32 addresses are no multiple of 16, and the GPU stops with"
        " an error."
    )


@claim("CA-59", "padding", IMPRECISE, "padding-structs")
def ca_59(trial: Trial) -> str:
    """The compiler may pad structures with `__align__(16)` unexpectedly."""
    sizes = {"three floats": 12, "five floats": 20}
    rounded = {name: -(-size // 16) * 16 for name, size in sizes.items()}
    for name, size in sizes.items():
        trial.stated(f"{name} grow when aligned to 16", True, rounded[name] > size)
    rule = "the next multiple of the alignment"
    trial.wider("size that the C++ standard gives them", "unexpected", rule, SIZEOF)
    return (
        f"They grow, from {sizes['three floats']} to {rounded['three floats']} and from"
        f" {sizes['five floats']} to {rounded['five floats']} bytes, but by a fixed rule: {rule}. `sizeof`"
        " tells."
    )


@claim("CA-60", "padding", WRONG, "padding-alignment")
def ca_60(trial: Trial) -> str:
    """Declare shared memory as an array of size_t or int4, and alignment is safe."""
    trial.stated(
        "int4 is aligned for 16-byte accesses", True, 4 * ctypes.sizeof(ctypes.c_int32) >= 16, VECTOR_TYPES
    )
    size_t = ctypes.alignment(ctypes.c_size_t)
    trial.stated("size_t is aligned for 16-byte accesses", True, size_t >= 16, PTX_ALIGNMENT)
    return (
        f"int4 is, size_t is not: it is aligned to {size_t} bytes only. Ask for the alignment itself: 16"
        " bytes for vectors and ldmatrix, 1,024 for tiles that TMA swizzles."
    )


@claim("CA-61", "padding", IMPRECISE, "padding-claim-16")
def ca_61(trial: Trial) -> str:
    """For 16-byte loads the pad must be a multiple of 16 bytes to be effective."""
    trial.stated(
        "128-byte rows + 8: may be issued", False, or_misaligned(lambda: wide_column(136)) != MISALIGNED
    )
    trial.stated("128-byte rows + 16: wavefronts (4 is free)", 4, wide_column(144))
    two = trial.wider("128-byte rows + 32", 4, wide_column(160))
    worse = trial.wider("112-byte rows + 16", 4, wide_column(128))
    return (
        f"That makes it legal, not free: 32 bytes more cost {two}, and 112-byte rows were free"
        f" ({wide_column(112)}) until a pad of 16 made it {worse}. Pitch / 16 must be odd."
    )


@claim("CA-77", "padding", OK, "padding-widths")
def ca_77(trial: Trial) -> str:
    """The pad must be worked out anew for the width of the real accesses."""
    free = trial.stated("pitch 36, float4: wavefronts (4 is free)", 4, wide_column(144))
    scalar = trial.stated("pitch 36, float: not free", at_least(2), column(36))
    pairs = trial.stated("pitch 36, float2: not free (2 is)", at_least(3), wide_column(144, bits=64))
    on_gpu = recorded("E-08").counter("float4, pitch 36", "shared_load_conflicts")
    trial.stated("pitch 36, float4, counted: conflicts", 0, on_gpu, "E-08")
    return (
        f"A column at pitch 36 takes {free} wavefronts as float4, the fewest; {scalar} as float, where 1"
        f" would do; {pairs} as float2, where 2 would."
    )
