"""Which records decide the claims that only a GPU can decide.

The articles that the course grew from make claims, numbered `CA-` to `CD-` by article. Most are settled by
arithmetic or by a trace; those here need a time or a counter. A source is an experiment (`"E-05"`), or the
name of another record (`"timing"`).
"""

from collections.abc import Mapping
from types import MappingProxyType

# Claim -> the experiments and records that decide it.
DECIDED_BY: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "CA-01": ("E-01", "E-05", "timing"),  # how bad a bad pattern gets: one instruction, a whole kernel
        "CA-02": ("E-45",),  # what "SM Busy" shows
        "CA-07": ("E-01", "shared_wavefronts"),  # stride and conflict degree
        "CA-17": ("E-20",),  # counters in busy kernels
        "CA-56": ("E-15",),  # whether a swizzle is necessary
        "CA-57": ("E-15", "E-16"),  # share of the Tensor Cores' peak, by layout
        "CA-68": ("E-17",),  # what a swizzle costs where it gains nothing
        "CA-70": ("E-19",),  # traps of the efficiency metric
        "CA-73": ("E-38-heads", "E-38"),  # attention: conflicts and stalls
        "CA-75": ("E-04", "E-27"),  # no conflict, and slow all the same
        "CB-03": ("E-01", "shared_wavefronts"),  # even strides conflict
        "CB-05": ("E-04", "E-05"),  # an n-way conflict is not n times slower
        "CB-10": ("E-04",),  # padding the transpose
        "CB-23": ("profiler",),  # which metrics a chip has
        "CB-25": ("E-20",),  # why counters exceed arithmetic
        "CB-28": ("E-18",),  # padding that drives a block from the multiprocessor
        "CC-01": ("E-22", "E-41-stream", "E-41-fma"),  # DRAM busy, arithmetic idle
        "CC-06": ("E-24", "E-41-stream"),  # requests in flight
        "CC-15": ("E-44", "timing"),  # shared memory against DRAM
        "CC-29": ("E-31",),  # the whole SGEMM ladder
        "CC-31": ("E-31",),  # memory work against instruction tuning
        "CC-34": ("E-29",),  # permute, then copy
        "CC-41": ("E-39",),  # a fragmented KV cache
        "CC-43": ("E-45", "E-37"),  # DRAM idle and memory busy
        "CC-44": ("E-22", "E-23"),  # a low hit rate in L2
        "CC-47": ("E-37",),  # LayerNorm and GELU by pitch
        "CC-48": ("E-43",),  # a high hit rate in L1 proves nothing
        "CC-49": ("E-35",),  # surplus barriers
        "CC-50": ("E-21", "E-30"),  # order of loops
        "CC-53": ("E-24", "E-41-stream"),  # how much of the peak is all there is
        "CD-09": ("E-24", "E-41-stream"),  # share of the nominal bandwidth
        "CD-10": ("E-25",),  # structures read whole
        "CD-13": ("E-25",),  # structures read in part
        "CD-14": ("E-05",),  # counts of the three bank kernels
        "CD-15": ("E-05",),  # what a 32-way conflict costs a kernel
        "CD-16": ("E-05",),  # what padding leaves
        "CD-19": ("E-33",),  # one asynchronous stage
        "CD-20": ("E-33", "E-34"),  # three stages with no work to overlap
        "CD-21": ("E-34",),  # overlap between blocks
        "CD-23": ("E-15", "E-34"),  # who profits from a pipeline
        "CD-24": ("E-23",),  # what L2 hides
        "CD-25": ("E-25", "E-43"),  # what caches do not mend
    }
)
