"""The tracer and compute-sanitizer on the same kernels: the recorded comparison still holds, and is complete."""

import pytest

from lanewise.records import record
from probes.kernels.cases import REASONS, all_twins

ROWS = record("h200", "sanitizer").rows("cases")
TWINS = {(twin.kind, twin.case, twin.planted): twin for twin in all_twins()}
RECORDED = {(row["kind"], row["case"], row["planted"]): row["tracer"] for row in ROWS}


def test_every_probe_with_a_counterpart_was_run() -> None:
    unoptimised = [(row["kind"], row["case"], row["planted"]) for row in ROWS if not row["optimised"]]
    assert sorted(unoptimised) == sorted(TWINS), "bundle and run the new probes: see probes/README.md"


@pytest.mark.parametrize("key", RECORDED, ids=lambda key: f"{key[0]}: {key[1]}")
def test_the_tracer_still_says_what_was_recorded(key: tuple[str, str, bool]) -> None:
    assert TWINS[key].verdict() == RECORDED[key]


def test_the_tracer_finds_every_planted_fault_and_no_other() -> None:
    wrong = [row for row in ROWS if (row["tracer"] != "silent") != row["planted"]]
    assert wrong == []


def test_the_sanitizer_finds_nothing_in_clean_twins_and_they_finish() -> None:
    found = [row for row in ROWS if not row["planted"] and row["sanitizer"] != "silent"]
    assert found == []
    assert {row["alone"] for row in ROWS if not row["planted"]} == {"finishes"}


def test_lock_step_races_are_warnings_there_too() -> None:
    """Where the lanes of one warp communicate without syncwarp, both say so and call it less than an error."""
    severities = {row["case"]: row["sanitizer"] for row in ROWS if row["tracer"] == "lock_step"}
    assert len(severities) >= 3
    assert set(severities.values()) == {"warning"}


def test_each_disagreement_and_nothing_else_has_a_reason() -> None:
    for row in ROWS:
        agree = (row["tracer"] == "silent") == (row["sanitizer"] == "silent")
        assert row["agree"] == agree, row
        reason = "" if agree else REASONS[row["kind"], row["case"]]
        assert row["reason"] == reason, row
