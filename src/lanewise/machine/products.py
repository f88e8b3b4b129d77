"""What single products reach at best: published peaks, each with its source.

A `Machine` belongs to a compute capability; how many multiprocessors there are, how fast they tick and how
fast the memory is differ from product to product. Nothing here was measured by us: records hold that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lanewise.errors import UnknownMachine
from lanewise.machine.constants import BANK_ROW_BYTES
from lanewise.machine.machines import Machine, from_name

_H100 = "https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper"
_AMPERE = (
    "https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf"
)
_ADA = "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf"


@dataclass(frozen=True, slots=True)
class Product:
    """The published peaks of one GPU that one can buy or rent.

    >>> print(product("H200"))
    H200: 132 multiprocessors at 1,980 MHz, DRAM 4,800 GB/s, float32 66.9 TFLOP/s, Tensor Cores 989.4 TFLOP/s

    `clock_mhz` is the boost clock, `fma_lanes_per_sm` the float32 multiply-adds of a multiprocessor in one
    clock. `tensor_tflop_per_s` is for dense half-precision products with float32 sums. Rates are in 10^9
    bytes and 10^12 operations a second; a multiply-add is two operations. `driver_name` is what the driver
    calls the product. A rate of a real kernel stays below these.
    """

    name: str
    driver_name: str
    capability: tuple[int, int]
    sms: int
    clock_mhz: int
    fma_lanes_per_sm: int
    dram_gb_per_s: float
    fp32_tflop_per_s: float
    tensor_tflop_per_s: float
    source: str

    @property
    def machine(self) -> Machine:
        """The limits of its compute capability."""
        return from_name(self.capability)

    @property
    def cycles_per_us(self) -> int:
        """Clock cycles of all multiprocessors together in one microsecond."""
        return self.sms * self.clock_mhz

    @property
    def shared_gb_per_s(self) -> float:
        """What shared memory delivers if every multiprocessor serves one full wavefront in each clock."""
        return BANK_ROW_BYTES * self.cycles_per_us / 1e3

    @property
    def ridge_fp32(self) -> float:
        """FLOP per byte of DRAM traffic from which float32 arithmetic, and not DRAM, is the lower roof."""
        return self.fp32_tflop_per_s * 1e3 / self.dram_gb_per_s

    @property
    def ridge_tensor(self) -> float:
        """The same for the Tensor Cores."""
        return self.tensor_tflop_per_s * 1e3 / self.dram_gb_per_s

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.sms} multiprocessors at {self.clock_mhz:,} MHz, DRAM"
            f" {self.dram_gb_per_s:,.0f} GB/s, float32 {self.fp32_tflop_per_s:.1f} TFLOP/s,"
            f" Tensor Cores {self.tensor_tflop_per_s:.1f} TFLOP/s"
        )


_ALL = (
    Product(
        "T4", "Tesla T4", (7, 5), 40, 1590, 64, 320, 8.1, 65.0,
        "https://www.nvidia.com/en-us/data-center/tesla-t4/",
    ),
    Product(
        "L4", "NVIDIA L4", (8, 9), 58, 2040, 128, 300, 30.3, 121.0,
        "https://www.nvidia.com/en-us/data-center/l4/",
    ),
    Product("A100 40GB", "NVIDIA A100-SXM4-40GB", (8, 0), 108, 1410, 64, 1555, 19.5, 312.0, _AMPERE),
    Product(
        "A100 80GB", "NVIDIA A100-SXM4-80GB", (8, 0), 108, 1410, 64, 2039, 19.5, 312.0,
        "https://www.nvidia.com/en-us/data-center/a100/",
    ),
    Product("RTX 4090", "NVIDIA GeForce RTX 4090", (8, 9), 128, 2520, 128, 1008, 82.6, 165.2, _ADA),
    Product("H100", "NVIDIA H100 80GB HBM3", (9, 0), 132, 1980, 128, 3350, 66.9, 989.4, _H100),
    # The processor of the H100 with more and faster memory.
    Product(
        "H200", "NVIDIA H200", (9, 0), 132, 1980, 128, 4800, 66.9, 989.4,
        "https://www.nvidia.com/en-us/data-center/h200/",
    ),
)  # fmt: skip

PRODUCTS: Mapping[str, Product] = MappingProxyType({entry.name: entry for entry in _ALL})


def product(name: str | Product) -> Product:
    """Look a product up by its short name (`"T4"`) or the driver's (`"Tesla T4"`).

    >>> product("NVIDIA A100-SXM4-40GB").name
    'A100 40GB'

    A `Product` is returned as it is. Raises `UnknownMachine` with the products there are.
    """
    if isinstance(name, Product):
        return name
    wanted = str(name).strip().lower()
    for entry in _ALL:
        if wanted in (entry.name.lower(), entry.driver_name.lower()):
            return entry
    raise UnknownMachine(
        f"{name!r} is no product that lanewise.machine knows. Use one of {', '.join(PRODUCTS)}, or make a"
        " Product from its data sheet."
    )
