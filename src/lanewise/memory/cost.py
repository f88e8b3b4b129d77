"""What one warp access costs, in enough detail to draw it and to say it in a sentence.

Written separately from the bulk counters, word by word and bank by bank, so that each checks the other.
"""

from dataclasses import dataclass
from functools import cached_property

from lanewise.access import WarpAccess
from lanewise.errors import InvalidAccess
from lanewise.instructions import instruction
from lanewise.machine import BANKS, LINE_BYTES, SECTOR_BYTES, WORD_BYTES
from lanewise.text import count, lanes, spans


@dataclass(frozen=True)
class Phase:
    """One group of lanes served together against the 32 banks.

    `lanes` are its active lanes; `lanes_by_word` maps each 32-bit word (byte address // 4) to the lanes that
    need it, in the order in which lanes first ask for it.
    """

    lanes: tuple[int, ...]
    lanes_by_word: dict[int, tuple[int, ...]]
    merges_equal_words: bool = True

    @cached_property
    def words_by_bank(self) -> dict[int, tuple[int, ...]]:
        """For each bank in use, the words it serves, one per wavefront; where equal words do not merge,
        repeated."""
        banks: dict[int, list[int]] = {}
        for word, sharers in self.lanes_by_word.items():
            times = 1 if self.merges_equal_words else len(sharers)
            banks.setdefault(word % BANKS, []).extend([word] * times)
        return {bank: tuple(words) for bank, words in sorted(banks.items())}

    @property
    def wavefronts(self) -> int:
        """Words in the fullest bank."""
        return max((len(words) for words in self.words_by_bank.values()), default=0)


@dataclass(frozen=True)
class Wavefront:
    """One pass over the banks: at most one word per bank, each word to the lanes listed with it."""

    phase: int
    lanes_by_word: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class SharedCost:
    """The shared-memory cost of one access: `wavefronts`, the `ideal` number, and the phases behind them.

    `fused` says that lanes shared addresses in pairs, so that neighbouring phases of a wide load joined.
    """

    access: WarpAccess
    phases: tuple[Phase, ...]
    fused: bool

    @property
    def wavefronts(self) -> int:
        """Passes over the banks that the access takes."""
        return sum(phase.wavefronts for phase in self.phases)

    @property
    def ideal(self) -> int:
        """Passes that would do if no phase had a bank conflict: one per phase."""
        return len(self.phases)

    @property
    def excess(self) -> int:
        """Passes lost to bank conflicts: what Nsight Compute counts as bank conflicts."""
        return self.wavefronts - self.ideal

    @property
    def degree(self) -> int:
        """The n of "n-way conflict": words in the fullest bank of the worst phase; 1 means free of
        conflicts."""
        return max((phase.wavefronts for phase in self.phases), default=0)

    @property
    def replay(self) -> tuple[Wavefront, ...]:
        """The access pass by pass. The hardware's own order is not known; here a bank serves words as lanes
        ask."""
        return tuple(
            Wavefront(index, dict(_served(phase, turn)))
            for index, phase in enumerate(self.phases)
            for turn in range(phase.wavefronts)
        )

    def __str__(self) -> str:
        if not self.phases:
            return f"{self.access.instruction}: no active lane, no wavefront."
        head = f"{self.access.instruction}: {count(self.wavefronts, 'wavefront')}"
        if self.excess == 0:
            return f"{head}, the fewest possible{_why_several(self)}. {_sharing(self)}".rstrip()
        phase = max(self.phases, key=lambda candidate: candidate.wavefronts)
        bank, words = max(phase.words_by_bank.items(), key=lambda item: len(item[1]))
        waiting = sorted(lane for word in set(words) for lane in phase.lanes_by_word[word])
        return (
            f"{head} where {self.ideal} would do{_why_several(self)}: {lanes(waiting)} need"
            f" {_demand(phase, words)} of bank {bank}."
        )


def shared_cost(access: WarpAccess) -> SharedCost:
    """Explain the shared-memory cost of one access.

    >>> cost = shared_cost(WarpAccess.from_formula("ld.shared.b32", lambda lane: 128 * lane))
    >>> cost.wavefronts, cost.ideal
    (32, 1)
    >>> str(cost)
    'ld.shared.b32: 32 wavefronts where 1 would do: lanes 0..31 need 32 different words of bank 0.'

    Raises `InvalidAccess` for anything but a `WarpAccess`, `UnknownInstruction` for a global-memory
    instruction, and `NotModelled` where no rule is known. For
    `cp.async` the addresses are the destinations and the source is taken to be contiguous.
    """
    spec = instruction(_checked(access).instruction, space="shared")
    spec.require_modelled()
    fused = spec.fuses and (_partners_agree(access, 1) or _partners_agree(access, 2))
    lanes_per_group = spec.lanes_per_group * (2 if fused else 1)
    groups: dict[int, list[int]] = {}
    for lane in access.addressing_lanes:
        groups.setdefault(lane // lanes_per_group, []).append(lane)
    phases = tuple(
        Phase(tuple(members), _lanes_by_word(access, members, spec.words_per_lane), spec.merges_equal_words)
        for members in groups.values()
    )
    return SharedCost(access, phases, fused)


@dataclass(frozen=True)
class GlobalCost:
    """The global-memory cost of one access: distinct 32-byte sectors and 128-byte lines of one request.

    `lanes_by_sector` maps each sector (byte address // 32) to the lanes that touch it.
    """

    access: WarpAccess
    lanes_by_sector: dict[int, tuple[int, ...]]

    @property
    def requests(self) -> int:
        """1, or 0 if no lane is active."""
        return int(bool(self.lanes_by_sector))

    @property
    def sectors(self) -> int:
        """Distinct 32-byte sectors."""
        return len(self.lanes_by_sector)

    @property
    def lines(self) -> int:
        """Distinct 128-byte lines."""
        return len({sector * SECTOR_BYTES // LINE_BYTES for sector in self.lanes_by_sector})

    @property
    def bytes_requested(self) -> int:
        """Distinct bytes that the lanes asked for."""
        width = instruction(self.access.instruction).bytes_per_lane
        return width * len({self.access.addresses[lane] for lane in self.access.lanes})

    @property
    def bytes_moved(self) -> int:
        """Bytes of the sectors that carry them."""
        return self.sectors * SECTOR_BYTES

    @property
    def efficiency(self) -> float:
        """Requested over moved bytes, a fraction; 0 if no lane is active."""
        return self.bytes_requested / self.bytes_moved if self.sectors else 0.0

    def __str__(self) -> str:
        if not self.requests:
            return f"{self.access.instruction}: no active lane, no request."
        return (
            f"{self.access.instruction}: 1 request, {count(self.sectors, 'sector')} in"
            f" {count(self.lines, 'line')}; {self.bytes_requested} of {self.bytes_moved} bytes are used"
            f" ({100 * self.efficiency:.3g}%)."
        )


def global_cost(access: WarpAccess) -> GlobalCost:
    """Explain the global-memory cost of one access.

    >>> print(global_cost(WarpAccess.from_formula("ld.global.b32", lambda lane: 8 * lane)))
    ld.global.b32: 1 request, 8 sectors in 2 lines; 128 of 256 bytes are used (50%).

    Raises `InvalidAccess` for anything but a `WarpAccess`, `UnknownInstruction` for a shared-memory
    instruction, and `NotModelled` for reductions. For `cp.async` the addresses are the sources.
    """
    instruction(_checked(access).instruction, space="global").require_modelled()
    sectors: dict[int, list[int]] = {}
    for lane in access.lanes:
        sectors.setdefault(access.addresses[lane] // SECTOR_BYTES, []).append(lane)
    return GlobalCost(access, {sector: tuple(members) for sector, members in sorted(sectors.items())})


def _checked(access: object) -> WarpAccess:
    if not isinstance(access, WarpAccess):
        raise InvalidAccess(
            f"got {access!r}; a cost is that of one WarpAccess. Build one, for example with"
            " WarpAccess.from_formula, or count arrays of addresses with lanewise.memory."
        )
    return access


def _partners_agree(access: WarpAccess, distance: int) -> bool:
    """True if every active lane's partner `lane ^ distance` is inactive or has the same address."""
    partners = ((lane, lane ^ distance) for lane in access.lanes if lane ^ distance in access.lanes)
    return all(access.addresses[lane] == access.addresses[partner] for lane, partner in partners)


def _lanes_by_word(access: WarpAccess, members: list[int], words_per_lane: int) -> dict[int, tuple[int, ...]]:
    table: dict[int, list[int]] = {}
    for lane in members:
        first = access.addresses[lane] // WORD_BYTES
        for word in range(first, first + words_per_lane):
            table.setdefault(word, []).append(lane)
    return {word: tuple(sharers) for word, sharers in table.items()}


def _served(phase: Phase, turn: int) -> list[tuple[int, tuple[int, ...]]]:
    """The words that each bank of a phase serves in its `turn`-th wavefront."""
    served = []
    for words in phase.words_by_bank.values():
        if turn >= len(words):
            continue
        word = words[turn]
        sharers = phase.lanes_by_word[word]
        if not phase.merges_equal_words:
            sharers = (sharers[words[:turn].count(word)],)
        served.append((word, sharers))
    return served


def _demand(phase: Phase, words: tuple[int, ...]) -> str:
    if phase.merges_equal_words:
        return f"{len(words)} different words"
    return f"{len(words)} words, each lane's own even where words are equal,"


def _why_several(cost: SharedCost) -> str:
    """Say why the ideal is more than one wavefront, where it is."""
    if cost.ideal == 1:
        return " (lanes share addresses in pairs, so both halves are served together)" if cost.fused else ""
    joined = ", joined because lanes share addresses in pairs" if cost.fused else ""
    groups = [spans(phase.lanes) for phase in cost.phases]
    return f" ({len(groups)} groups of lanes: {'; '.join(groups)}{joined})"


def _sharing(cost: SharedCost) -> str:
    words = {word for phase in cost.phases for word, users in phase.lanes_by_word.items() if len(users) > 1}
    return f"{count(len(words), 'word')} served to several lanes at once, at no cost." if words else ""
