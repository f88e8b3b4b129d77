"""Nominal rates of the GPUs that the articles name, from their data sheets.

Rates are dense, at boost clock, in TFLOP/s (10^12) and GB/s (10^9).
"""

from dataclasses import dataclass

from lanewise.claims.claim import Document


@dataclass(frozen=True)
class Chip:
    """One GPU: multiprocessors, boost clock, float32 rate, dense half-precision Tensor Core rate, DRAM
    bandwidth."""

    name: str
    sms: int
    boost_mhz: int
    fp32_tflop_per_s: float
    fp16_tensor_tflop_per_s: float
    dram_gb_per_s: float
    sheet: Document

    @property
    def fp32_ridge(self) -> float:
        """Operations per byte of DRAM from which float32 arithmetic is the limit."""
        return 1e3 * self.fp32_tflop_per_s / self.dram_gb_per_s

    @property
    def tensor_ridge(self) -> float:
        """The same for half-precision products on Tensor Cores."""
        return 1e3 * self.fp16_tensor_tflop_per_s / self.dram_gb_per_s


A100 = Chip(
    "A100 (40 GB)", 108, 1410, 19.5, 312, 1555,
    Document("NVIDIA A100 data sheet", "specifications", "https://www.nvidia.com/en-us/data-center/a100/"),
)  # fmt: skip
H200 = Chip(
    "H200", 132, 1980, 66.9, 989, 4800,
    Document("NVIDIA H200 data sheet", "specifications", "https://www.nvidia.com/en-us/data-center/h200/"),
)  # fmt: skip
