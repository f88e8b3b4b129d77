"""Every claim that only a GPU decides has the record that decides it."""

from collections.abc import Mapping

import pytest

from lanewise.errors import UnknownRecord
from lanewise.experiments import all_experiments
from lanewise.experiments.claims import DECIDED_BY
from lanewise.records import counter_table, record

TOPIC_OF: Mapping[str, str] = {
    experiment.id: topic for topic, experiments in all_experiments().items() for experiment in experiments
}
# The claims of the articles' audit that are marked as needing a GPU.
NEED_A_GPU = {
    "CA": (1, 2, 7, 17, 56, 57, 68, 70, 73, 75),
    "CB": (3, 5, 10, 23, 25, 28),
    "CC": (1, 6, 15, 29, 31, 34, 41, 43, 44, 47, 48, 49, 50, 53),
    "CD": (9, 10, 13, 14, 15, 16, 19, 20, 21, 23, 24, 25),
}


def rows_of(source: str) -> int:
    """How many recorded rows an experiment or a record has, of whichever kind."""
    if source not in TOPIC_OF:
        try:
            return len(counter_table("h200", source).launches)
        except UnknownRecord:
            return sum(map(len, record("h200", source).tables.values()))
    n = 0
    for suffix, table in (("", "times"), (".counters", "counters")):
        try:
            rows = record("h200", TOPIC_OF[source] + suffix).rows(table)
        except UnknownRecord:
            continue
        n += sum(row["experiment"] == source and "error" not in row for row in rows)
    return n


def test_no_claim_is_left_out() -> None:
    assert sorted(DECIDED_BY) == [
        f"{article}-{n:02}" for article, numbers in NEED_A_GPU.items() for n in numbers
    ]


@pytest.mark.parametrize("source", sorted({source for sources in DECIDED_BY.values() for source in sources}))
def test_what_decides_is_recorded(source: str) -> None:
    assert rows_of(source) > 0, (
        f"{source} decides a claim and has no row. Run: lanewise measure --only {source}"
    )


def test_a_source_that_is_not_recorded_is_noticed() -> None:
    with pytest.raises(UnknownRecord):
        rows_of("E-99")
