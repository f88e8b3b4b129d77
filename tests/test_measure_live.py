"""Timing for a page: two works sampled in turn, and None where there is no GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lanewise.measure import live
from lanewise.measure.live import Timed


class FakeGpu:
    """Counts what it is asked to do; a launch takes 30 us and a copy 10."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def put(self, array: np.ndarray) -> Any:
        return f"held {array.size}"

    def copier(self, n_bytes: int) -> Any:
        return lambda: self.asked.append(f"copy {n_bytes}")

    def sample(self, works: list[Any], n: int) -> list[list[float]]:
        for work in works * n:
            work.run()
        return [[30.0] * n, [10.0] * n]


class FakeKernel:
    def __init__(self, gpu: FakeGpu) -> None:
        self.gpu = gpu

    def __getitem__(self, launch: Any) -> Any:
        return lambda *arguments: self.gpu.asked.append(f"{launch} {arguments}")


def test_kernel_and_copy_are_sampled_after_warm_ups() -> None:
    gpu: Any = FakeGpu()
    found = live.time_on(gpu, "Trial", FakeKernel(gpu), 2, 32, [np.zeros(5), 7], useful_bytes=64)
    assert found == Timed("Trial", 30.0, 10.0)
    assert gpu.asked.count("copy 64") == live.WARM_UPS + live.SAMPLES
    assert gpu.asked.count("(2, 32) ('held 5', 7)") == live.WARM_UPS + live.SAMPLES


def test_without_a_gpu_there_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "why_unfit", lambda: "The NVIDIA driver finds no GPU.")
    assert live.timed(None, 1, 32, [], useful_bytes=0) is None


@pytest.mark.gpu
def test_a_real_kernel_takes_longer_than_nothing_and_is_no_faster_than_a_copy_by_far() -> None:
    from lanewise.kernels import padding

    src = np.ones((2048, 2048), np.float32)
    launch = padding.transpose_padded, padding.grid_of(src), padding.BLOCK, [src, np.zeros_like(src)]
    found = live.timed(*launch, useful_bytes=2 * src.nbytes)
    assert found is not None
    assert found.us > 0.7 * found.copy_us > 0
    assert found.gpu
