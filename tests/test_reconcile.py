"""Arithmetic, trace, machine code and counters side by side: what is exact, explained and open."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from lanewise.errors import UnknownRecord
from lanewise.experiments import Case, Experiment, experiments_of
from lanewise.lowering import why_unavailable
from lanewise.measure import store
from lanewise.reconcile import as_content, judge, provenance, reconcile, reconcile_case
from lanewise.records import Provenance
from lanewise.trace import Trace, trace

HERE = Provenance("Fake GPU", "9.0", "1.2", "13.0", "tools", "2026-01-02", "made up")
TOTAL = "shared.load.wavefronts"
needs_compiler = pytest.mark.skipif(why_unavailable() != "", reason="needs lanewise[sass]")


def case_of(experiment: str, label: str) -> Case:
    """A counted case of the padding experiments."""
    (found,) = [one for one in experiments_of("padding") if one.id == experiment]
    return next(case for case in found.counted if case.label.startswith(label))


def joined() -> tuple[Experiment, ...]:
    """Columns of pairs of floats, whose loads the compiler joins to twice the width."""
    return (Experiment("E-08", "Which pitch?", counted=(case_of("E-08", "float2, pitch 32"),)),)


def test_four_equal_numbers_are_exact_and_a_counter_that_differs_is_open() -> None:
    case = case_of("E-04", "pad 1")
    n = case.arithmetic[TOTAL]
    stores, loads = {"STS": [4, n, n, n, 0]}, {"LDS": [4, n, n, n, 0]}
    moved = {"LDG.E": [4, n, 0, 0, 4 * n], "STG.E": [4, n, 0, 0, 4 * n]}
    rows = reconcile_case(
        "padding", "E-04", case, {"opcodes": {**stores, **loads, **moved}}, compile_it=False
    )
    assert {row.verdict for row in rows} == {"exact"}
    (load,) = [row for row in rows if row.total == TOTAL]
    assert (load.arithmetic, load.traced, load.compiled, load.counted) == (n, n, None, n)

    wrong = {**stores, "LDS": [4, n, n + 1, n, 0], **moved}
    rows = reconcile_case("padding", "E-04", case, {"opcodes": wrong}, compile_it=False)
    (row,) = [row for row in rows if row.verdict == "open"]
    assert row.reason == f"it should cost {n:,}, the profiler counted {n + 1:,} (not compiled)"
    (line,) = as_content(rows, {}, HERE)["cases"]
    assert line["totals"][TOTAL] == [n, n, None, n + 1]
    assert line["open"] == [f"{TOTAL}: {row.reason}"]

    wrong_paper = replace(case, arithmetic={TOTAL: n + 5})
    (row,) = [
        row for row in reconcile_case("padding", "E-04", wrong_paper, None, compile_it=False) if row.reason
    ]
    assert (row.verdict, row.reason) == ("open", f"arithmetic says {n + 5:,}, the trace {n:,}")


def test_without_machine_code_the_profilers_opcodes_may_say_what_the_compiler_made() -> None:
    case = case_of("E-04", "pad 1")
    n = case.arithmetic[TOTAL]
    report = traced(case)
    fewer = {"LDS.128": [1, n // 4, n // 2, n, 0]}
    verdict, reason = judge(TOTAL, n, n, None, n // 2, (report, report), "stopped", fewer)
    assert verdict == "explained"
    assert reason == (
        f"the compiler: {n:,} requests became 1 x LDS.128: {n // 4:,} executed, {n // 2:,} wavefronts,"
        " as the profiler saw"
    )
    # As many requests at another cost: not the compiler's doing.
    same = {"LDS": [4, n, n // 2, n, 0]}
    assert judge(TOTAL, n, n, None, n // 2, (report, report), "stopped", same)[0] == "open"


def traced(case: Case) -> Trace:
    from lanewise.measure.protocol import Values

    values = Values.of(case.problem, 0)
    return trace(case.kernel, case.grid, case.block, *case.arguments({**values.inputs, **values.outputs}))


@needs_compiler
def test_what_the_compiler_joins_is_explained_by_its_instructions(tmp_path: Path) -> None:
    (experiment,) = joined()
    (case,) = experiment.counted
    recorded = {"opcodes": {"LDS.128": [8, 8, 256, 32, 0]}, "profiled": False}
    content = store.merged({}, experiment, [{**store.identity(case), **recorded}], HERE, "counters")
    store.write(tmp_path / "padding.counters.json", content)
    rows = reconcile({"padding": joined()}, tmp_path, source=lambda topic: "tests.test_reconcile:joined")
    (load,) = [row for row in rows if row.total == TOTAL]
    assert (load.arithmetic, load.traced, load.compiled, load.counted) == (512, 512, 256, 256)
    assert load.verdict == "explained"
    assert "16 -> 8 requests: 8 x LDS.128: 8 requests, 256 wavefronts" in load.reason
    stated = provenance(tmp_path, {"padding": joined()})
    assert "; traced and compiled with NVVM" in stated.tools
    with pytest.raises(UnknownRecord, match="Run: lanewise counters --all"):
        provenance(tmp_path / "empty", {"padding": joined()})


def test_topics_that_were_not_asked_for_keep_their_rows() -> None:
    case = case_of("E-04", "pad 1")
    rows = reconcile_case("padding", "E-04", case, None, compile_it=False)
    old = {"cases": [{"topic": "banks", "label": "kept"}, {"topic": "padding", "label": "replaced"}]}
    content = as_content(rows, old, HERE)
    assert [(line["topic"], line["label"]) for line in content["cases"]] == [
        ("banks", "kept"),
        ("padding", case.label),
    ]
    assert content["provenance"] == asdict(HERE)
