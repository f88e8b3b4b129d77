"""The memory instructions of a warp: what one lane moves, and how the hardware cuts the warp into groups.

Names follow PTX. The rules are those that launches on an NVIDIA H200 (sm_90) showed, whose counters lie in
`lanewise/recorded`. On which GPUs an instruction exists is said in `lanewise.machine`.
"""

import difflib
from dataclasses import dataclass
from typing import Literal, get_args

from lanewise.errors import NotModelled, UnknownInstruction
from lanewise.machine import BANKS, CHUNK_BYTES, MATRIX_ROWS, WARP_LANES, WORD_BYTES

Space = Literal["shared", "global"]
Op = Literal["load", "store", "reduction", "async_copy"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One memory instruction as executed by a warp.

    `bytes_per_lane` is what one addressing lane moves (bytes); its address must be a multiple of it.
    `address_lanes` is how many lanes supply an address that counts: 32, or 8 per matrix for ldmatrix and
    stmatrix. `lanes_per_group` consecutive lanes are served together against the banks; a group costs at
    least one wavefront. `fuses` says that neighbouring groups of a load join when lanes share addresses in
    pairs. `merges_equal_words` is False where the hardware serves each lane's word by itself, even the same
    word twice. `status` says how the cost is known; `not_modelled` is empty, or the reason why none is given.
    """

    name: str
    space: Space
    op: Op
    bytes_per_lane: int
    status: str
    address_lanes: int = WARP_LANES
    fuses: bool = False
    merges_equal_words: bool = True
    not_modelled: str = ""

    @property
    def words_per_lane(self) -> int:
        """32-bit words that one lane touches; 8- and 16-bit accesses touch one."""
        return max(1, self.bytes_per_lane // WORD_BYTES)

    @property
    def unit_bytes(self) -> int:
        """Bytes that one lane takes up in the banks: its words, whole."""
        return WORD_BYTES * self.words_per_lane

    @property
    def lanes_per_group(self) -> int:
        """Consecutive lanes that fill the 32 banks once: 32, 16 or 8."""
        return BANKS // self.words_per_lane

    def touches(self, space: Space) -> bool:
        """True if the instruction has an address in this memory space; cp.async has one in each."""
        return self.space == space or self.op == "async_copy"

    @property
    def is_matrix(self) -> bool:
        """True for ldmatrix and stmatrix, whose lanes address rows for the whole warp."""
        return self.name.startswith(("ldmatrix", "stmatrix"))

    def require_modelled(self) -> None:
        """Raise `NotModelled` with the reason if no cost is known for this instruction."""
        if self.not_modelled:
            raise NotModelled(f"{self.name}: {self.not_modelled}")

    def __str__(self) -> str:
        return self.name


_MEASURED = "measured on an NVIDIA H200 (sm_90) with Nsight Compute"
_UNKNOWN = "unknown"


def _scalar_and_vector() -> list[Instruction]:
    table = []
    for bits in (8, 16, 32, 64, 128):
        wide = bits > 32
        n_bytes = bits // 8
        table += [
            Instruction(f"ld.shared.b{bits}", "shared", "load", n_bytes, _MEASURED, fuses=wide),
            Instruction(f"st.shared.b{bits}", "shared", "store", n_bytes, _MEASURED),
            Instruction(f"ld.global.b{bits}", "global", "load", n_bytes, _MEASURED),
            Instruction(f"st.global.b{bits}", "global", "store", n_bytes, _MEASURED),
        ]
    return table


def _matrix() -> list[Instruction]:
    stems: tuple[tuple[str, Op], ...] = (("ldmatrix", "load"), ("stmatrix", "store"))
    return [
        Instruction(
            f"{stem}.x{n}{trans}", "shared", op, CHUNK_BYTES, _MEASURED, address_lanes=MATRIX_ROWS * n
        )
        for stem, op in stems
        for n in (1, 2, 4)
        for trans in ("", ".trans")
    ]


def _async_copies() -> list[Instruction]:
    uncounted = (
        "the shared-memory counters show nothing for this copy, and no rule for its time is known, only that"
        " it is not free (the record 'timing' has some cases). Use cp.async.ca if you need a count."
    )
    return [
        *(
            Instruction(f"cp.async.ca.{n}", "shared", "async_copy", n, _MEASURED, merges_equal_words=False)
            for n in (4, 8, 16)
        ),
        Instruction("cp.async.cg.16", "shared", "async_copy", 16, _UNKNOWN, not_modelled=uncounted),
    ]


def _atomics() -> list[Instruction]:
    """Adding the constant 1 is an instruction of its own (ATOMS.POPC.INC, from sm_80) and merges equal words.

    Any other integer atomic serves each lane by itself.
    """
    retried = "the GPU repeats it until every lane has had its turn, and no rule for the count is settled"
    by_lane = (
        "lanes on one address are counted separately, not by distinct sectors, and the rule that holds is not"
        " settled. Count its addresses as st.global.b32 for a lower bound."
    )
    return [
        Instruction("red.shared.add.u32", "shared", "reduction", 4, f"{_MEASURED}, adding the constant 1"),
        *(
            Instruction(name, "shared", "reduction", 4, _MEASURED, merges_equal_words=False)
            for name in ("red.shared.add.u32.reg", "atom.shared.add.u32", "atom.shared.exch.b32")
        ),
        *(
            Instruction(name, "shared", "reduction", 4, _UNKNOWN, not_modelled=f"{retried}.")
            for name in ("atom.shared.cas.b32", "red.shared.add.f32")
        ),
        *(
            Instruction(name, "global", "reduction", 4, _UNKNOWN, not_modelled=by_lane)
            for name in ("red.global.add.u32", "atom.global.add.u32")
        ),
    ]


INSTRUCTIONS: dict[str, Instruction] = {
    entry.name: entry for entry in (*_scalar_and_vector(), *_matrix(), *_async_copies(), *_atomics())
}


def instruction(name: str, space: Space | None = None) -> Instruction:
    """Look an instruction up by its PTX-style name.

    >>> instruction("ld.shared.b128").lanes_per_group
    8

    With `space`, an instruction of the other memory space is refused. Raises `UnknownInstruction`.
    """
    if space not in (None, *get_args(Space)):
        raise UnknownInstruction(f"{space!r} is not a memory space of the model. Use shared or global.")
    allowed = [key for key, entry in INSTRUCTIONS.items() if space is None or entry.touches(space)]
    if not isinstance(name, str) or name not in allowed:
        near = difflib.get_close_matches(str(name), allowed, n=3, cutoff=0.3) or allowed[:3]
        what = f"a {space}-memory instruction" if space else "an instruction"
        raise UnknownInstruction(
            f"{name!r} is not {what} of the model. Did you mean {', '.join(near)}? "
            f"All {len(allowed)} names: lanewise.instructions.INSTRUCTIONS."
        )
    return INSTRUCTIONS[name]
