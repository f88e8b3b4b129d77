"""Published peaks of products: they follow from multiprocessors, lanes and clock, and can be looked up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lanewise import results
from lanewise.errors import UnknownMachine
from lanewise.machine import PRODUCTS, Product, product

ALL = pytest.mark.parametrize("gpu", PRODUCTS.values(), ids=str)
# Half-precision multiply-adds of the Tensor Cores of one multiprocessor in a clock, float32 sums (white papers).
TENSOR_FMA = {(7, 5): 512, (8, 0): 1024, (8, 9): 512, (9, 0): 2048}


@ALL
def test_float32_peak_follows_from_lanes_and_clock(gpu: Product) -> None:
    tflop_per_s = 2 * gpu.fma_lanes_per_sm * gpu.cycles_per_us / 1e6
    assert tflop_per_s == pytest.approx(gpu.fp32_tflop_per_s, rel=0.01)


@ALL
def test_tensor_peak_follows_from_the_cores(gpu: Product) -> None:
    fma = TENSOR_FMA[gpu.capability] // (2 if gpu.name == "RTX 4090" else 1)  # half rate with float32 sums
    tflop_per_s = 2 * fma * gpu.cycles_per_us / 1e6
    # Hopper's Tensor Cores are specified at 1,830 MHz, below the boost clock.
    assert 0.92 * tflop_per_s <= gpu.tensor_tflop_per_s <= 1.01 * tflop_per_s


@ALL
def test_shared_memory_is_faster_than_dram_and_slower_than_registers(gpu: Product) -> None:
    assert gpu.shared_gb_per_s == 128 * gpu.sms * gpu.clock_mhz / 1e3
    assert 5 < gpu.shared_gb_per_s / gpu.dram_gb_per_s < 60
    register_gb_per_s = 12 * gpu.fp32_tflop_per_s / 2 * 1e3  # a multiply-add reads three
    assert register_gb_per_s > 5 * gpu.shared_gb_per_s


@ALL
def test_a_product_has_a_machine_and_a_source(gpu: Product) -> None:
    assert gpu.machine.capability == gpu.capability
    assert gpu.source.startswith("https://")
    assert product(gpu.driver_name) is product(gpu.name.lower()) is product(gpu) is gpu
    assert gpu.ridge_fp32 < gpu.ridge_tensor


def test_articles_figures() -> None:
    """The ridge that an article gives for its GPU, and the one that another gives for an A100."""
    assert product("RTX 4090").ridge_fp32 == pytest.approx(81.9, abs=0.05)
    assert product("A100 40GB").ridge_tensor == pytest.approx(200.6, abs=0.1)


def test_nothing_recorded_beats_what_is_published() -> None:
    h200 = product("H200")
    stream = results.experiment("h200", "E-41-stream")
    assert max(stream.gb_per_s(label) for label in stream.labels) < h200.dram_gb_per_s
    assert results.experiment("h200", "E-41-fma").tflop_per_s("float32 FMA") < h200.fp32_tflop_per_s
    assert results.experiment("h200", "E-44").gb_per_s("shared, 1056 blocks") < h200.shared_gb_per_s
    assert results.experiment("h200", "E-14").tflop_per_s("registers") < h200.tensor_tflop_per_s


def test_an_unknown_product_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownMachine) as error:
        product("NVIDIA L40S")
    assert "'NVIDIA L40S'" in str(error.value)
    assert "T4, L4, A100 40GB" in str(error.value)


def test_measured_rates_make_a_product_of_ones_own() -> None:
    mine = replace(product("T4"), dram_gb_per_s=240.0)
    assert mine.ridge_fp32 > product("T4").ridge_fp32
