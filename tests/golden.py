"""The recorded counter tables of the package, as arrays."""

from dataclasses import dataclass

import numpy as np

from lanewise.records import Launch, counter_table


@dataclass(frozen=True)
class GoldenTable:
    """Recorded rows of one instruction; `counters` maps a counter's name to `(n,)` counts."""

    instruction: str
    addresses: np.ndarray
    masks: tuple[int, ...]
    counters: dict[str, np.ndarray]

    @property
    def active(self) -> np.ndarray:
        """The masks as `(n, 32)` bools."""
        return np.array([[bool(mask >> lane & 1) for lane in range(32)] for mask in self.masks])


def golden_tables(*names: str) -> tuple[GoldenTable, ...]:
    """The counter tables of the H200 with these names, one `GoldenTable` for each table and instruction."""
    return tuple(
        golden_table(table.of(instruction))
        for table in (counter_table("h200", name) for name in names)
        for instruction in table.instructions
    )


def golden_table(launches: tuple[Launch, ...]) -> GoldenTable:
    """These launches of one instruction, as arrays."""
    return GoldenTable(
        instruction=launches[0].instruction,
        addresses=np.array([launch.byte_offsets for launch in launches]),
        masks=tuple(launch.active_mask for launch in launches),
        counters={
            name: np.array([launch.counters[name] for launch in launches]) for name in launches[0].counters
        },
    )
