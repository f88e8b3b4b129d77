"""Address patterns for `access`: structured ones that kernels use, and random ones that nobody would.

A pattern is a line of text: instruction, active mask in hexadecimal, 32 byte offsets, and for cp.async 32
more for the global source (see `access.cu`).
"""

import random
from collections.abc import Iterator
from typing import Literal

FULL_MASK = 0xFFFFFFFF
SHARED_BYTES = 32 * 1024
GLOBAL_BYTES = 256 * 1024

Offsets = list[int]
Side = Literal["shared", "global", "both"]


def width_bytes(instruction: str) -> int:
    """Bytes that one lane's address must be aligned to."""
    if instruction.startswith(("ldmatrix", "stmatrix")):
        return 16
    parts = instruction.split(".")
    if instruction.startswith("cp.async"):
        return int(parts[3])
    size = parts[-1]
    return 4 if size == "one" else int(size.lstrip("bfus")) // 8


def takes_mask(instruction: str) -> bool:
    """Whether lanes can sit the instruction out; a matrix instruction needs the whole warp."""
    return not instruction.startswith(("ldmatrix", "stmatrix"))


def structured(width: int, in_global: bool) -> Iterator[Offsets]:
    """Strides, tile rows and columns, broadcasts, sharing lanes, swizzled columns, shifted starts."""
    lanes = range(32)
    for stride in (0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 24, 31, 32, 33, 34, 36, 48, 64):
        yield [width * stride * lane for lane in lanes]
    for sharing in (2, 4, 8, 16):
        yield [width * (lane // sharing) for lane in lanes]
        yield [width * (lane % sharing) for lane in lanes]
        yield [4096 // sharing * (lane // sharing) + width * (lane % sharing) for lane in lanes]
        yield [(128 + width) * (lane % (32 // sharing)) for lane in lanes]
    for flip in (1, 2, 3, 4, 16):
        yield [width * (lane ^ flip) for lane in lanes]
        yield [width * (lane & ~flip) for lane in lanes]
    for pitch in (64, 80, 128, 144, 256, 272):
        yield [pitch * (lane % 16) + 16 * (lane // 16) for lane in lanes]
        yield [pitch * (lane % 8) + 16 * (lane // 8) for lane in lanes]
        yield [pitch * lane + 16 * (lane % 8) for lane in lanes]
    if in_global:
        for shift in (1, 2, 3, 4, 8, 16, 31):
            yield [width * (lane + shift) for lane in lanes]
            yield [width * (2 * lane + shift) for lane in lanes]


def scattered(width: int, span: int, rng: random.Random) -> Offsets:
    """Random offsets of one of several kinds, from crowded (many equal words) to spread out."""
    slots = span // width
    kind = rng.randrange(5)
    if kind == 0:  # a window of random size: small ones make lanes share words
        window = min(slots, 1 << rng.randrange(1, 12))
        start = rng.randrange(slots - window + 1)
        return [width * (start + rng.randrange(window)) for _ in range(32)]
    if kind == 1:  # neighbours 1 or 2 apart share an address, perhaps not everywhere
        apart = rng.choice((1, 2, 3))
        base = [width * rng.randrange(min(slots, 64)) for _ in range(32)]
        return [base[lane & ~apart] if rng.random() < 0.97 else base[lane] for lane in range(32)]
    if kind == 2:  # a shuffled contiguous run
        start = width * rng.randrange(slots - 32)
        return [start + width * slot for slot in rng.sample(range(32), 32)]
    if kind == 3:  # affine in the lane, wrapped
        step, start, window = rng.randrange(1, 70), rng.randrange(64), rng.choice((32, 48, 64, 256, slots))
        return [width * ((start + step * lane) % window) for lane in range(32)]
    rows, pitch = rng.choice((2, 4, 8, 16, 32)), 16 * rng.randrange(1, 20)
    turn = rng.randrange(8)
    return [pitch * (lane % rows) + 16 * ((lane // rows) ^ (lane % rows & turn)) for lane in range(32)]


def random_mask(rng: random.Random) -> int:
    """Half of the time every lane; otherwise a few, most, one half, or runs of lanes."""
    kind = rng.randrange(8)
    if kind < 4:
        return FULL_MASK
    if kind == 4:
        return sum(1 << lane for lane in range(32) if rng.random() < 0.2)
    if kind == 5:
        return sum(1 << lane for lane in range(32) if rng.random() < 0.8)
    if kind == 6:
        return rng.choice((0xFFFF, 0xFFFF0000, 0x55555555, 0xAAAAAAAA, 0x33333333, 0x0F0F0F0F, 0xFF00FF00))
    start = rng.randrange(32)
    return (FULL_MASK << start) & FULL_MASK if rng.random() < 0.5 else 1 << start


def patterns(instruction: str, count: int, seed: int, side: Side = "shared") -> list[str]:
    """`count` patterns: about half of them structured, the rest random, one with an empty mask.

    For cp.async, `side` says which of its two addresses has the pattern; the other is contiguous.
    """
    rng = random.Random(f"{instruction} {seed} {side}")
    width = width_bytes(instruction)

    def mask() -> int:
        return random_mask(rng) if takes_mask(instruction) else FULL_MASK

    def offsets(in_global: bool) -> list[Offsets]:
        span = GLOBAL_BYTES if in_global else SHARED_BYTES
        regular = [one for one in structured(width, in_global) if max(one) + width <= span]
        rng.shuffle(regular)
        return [*regular[: count // 2], *(scattered(width, span, rng) for _ in range(count))][:count]

    masks = [FULL_MASK if rng.random() < 0.5 else mask() for _ in range(count)]
    if takes_mask(instruction):
        masks[-1] = 0
    here = offsets(in_global=".global" in instruction)
    if not instruction.startswith("cp.async"):
        return [line(instruction, width, *one) for one in zip(masks, here, strict=True)]
    run = [[width * lane for lane in range(32)]] * count
    there = offsets(in_global=True)
    if side == "both":
        rng.shuffle(there)
    sides = {"shared": (here, run), "global": (run, there), "both": (here, there)}[side]
    return [line(instruction, width, *one) for one in zip(masks, *sides, strict=True)]


def tile_fills(instruction: str) -> list[str]:
    """What a warp of a tiled kernel copies: rows of a matrix into a plain, padded or swizzled tile."""
    width = width_bytes(instruction)
    lines = []
    for row_bytes in (32, 64, 128, 256):
        if row_bytes < 2 * width:
            continue
        chunks = row_bytes // width
        places = [divmod(lane, chunks) for lane in range(32)]
        for pitch in (row_bytes, 1024, 4096, 8192 + 128, 16384):
            source = [pitch * row + width * chunk for row, chunk in places]
            for padding, turn in ((0, 0), (16, 0), (0, chunks - 1)):
                tile = [(row_bytes + padding) * row + width * (chunk ^ row & turn) for row, chunk in places]
                lines.append(line(instruction, width, FULL_MASK, tile, source))
    return lines


def line(instruction: str, width: int, mask: int, *sides: Offsets) -> str:
    """One pattern as `access` reads it; offsets are brought down to the width's alignment."""
    numbers = " ".join(str(offset - offset % width) for offsets in sides for offset in offsets)
    return f"{instruction} {mask:08x} {numbers}"
