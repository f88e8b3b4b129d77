"""The profiler's names: each is one that the profiler offers, and the same that this package reads."""

import pytest

from lanewise import profiler, records
from lanewise.counters import metrics
from lanewise.profiler import ADDRESSES, HARDWARE, METRICS, UnknownMetric, find

SOURCE_PAGE = {name for name, _ in metrics.SOURCE.values()}


def offered() -> set[str]:
    """Every metric that Nsight Compute listed on the H200."""
    parts = records.record("h200", "profiler").rows("metrics")
    return {f"{part['part']}__{name}" for part in parts for name in part["names"]}


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_profiler_offers_each_name(metric: profiler.Metric) -> None:
    assert metric.base in offered() | SOURCE_PAGE
    assert metric.base not in {"", metric.nvprof}
    assert metric.follows in (ADDRESSES, HARDWARE)


def test_names_are_told_apart() -> None:
    for names in ([m.base for m in METRICS], [m.nvprof for m in METRICS if m.nvprof]):
        assert len(set(names)) == len(names)


def test_the_names_that_this_package_reads_are_spelled_alike() -> None:
    read = {**metrics.HARDWARE, **metrics.PROFILE}.values()
    for metric in METRICS:
        same = [name for name in read if name.partition(".")[0] == metric.base]
        assert same in ([], [metric.name])


def test_what_follows_addresses_equals_the_arithmetic() -> None:
    """The family that follows addresses repeats the arithmetic in a busy kernel, the other does not."""
    cases = records.record("h200", "padding.counters").rows("counters")
    busy = next(row for row in cases if row["experiment"] == "E-20" and row["label"] == "padded 4096")
    requests = 4096 * 4096 // 32
    assert busy["metrics"]["global_load_sectors"] == 4 * requests
    assert busy["metrics"]["shared_load_wavefronts"] > requests
    assert find(metrics.HARDWARE["global_load_sectors"]).follows == ADDRESSES
    assert find(metrics.HARDWARE["shared_load_wavefronts"]).follows == HARDWARE


def test_a_metric_is_found_by_each_of_its_names() -> None:
    metric = find("shared_efficiency")
    assert metric.name == "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct"
    assert find(metric.name) == find(metric.base) == metric


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownMetric, match="no metric 'gld_eficiency' in the table"):
        find("gld_eficiency")
