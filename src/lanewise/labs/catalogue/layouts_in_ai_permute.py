"""Data layouts in AI, challenge: images from channels first to channels last, in full sectors on both sides.

Variants change the threads of a block, the pixels that it takes, and the shapes to predict. The case is that
of every vision model whose input comes in one order and whose kernels want the other; an image has three
channels, for which the usual tile of 32 x 32 is mostly empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import cuda

from lanewise import results
from lanewise.access import WarpAccess
from lanewise.labs.answers import Answers, Question
from lanewise.labs.goals import global_sectors, no_conflicts, no_hazards, shared_bytes
from lanewise.labs.kernels import KernelTask
from lanewise.labs.lab import Lab
from lanewise.labs.runs import Run, poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import global_cost, shared_cost

LANES = 32
PER_SECTOR = 8  # floats
FLOAT_BYTES = 4
MOST = 17  # channels


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    threads, pixels = variant.choice(128, 64, 96), variant.choice(64, 32, 96)
    return Lab(
        name="layouts_in_ai_permute",
        title="Channels last",
        chapter="layouts_in_ai",
        level="challenge",
        kinds=("predict", "write"),
        minutes=45,
        tasks=(_shapes(variant), _to_nhwc(threads, pixels)),
        given={"THREADS": threads, "PIXELS": pixels, "MOST": MOST},
        seed=variant.seed,
    )


# -- shapes and strides -----------------------------------------------------------------------------


def _shapes(variant: Variant) -> Answers:
    channels, height, width = variant.choice(5, 7, 9), variant.choice(18, 20, 30), variant.choice(24, 32, 40)
    few = variant.choice(3, 5)
    even = variant.choice(8, 4, 12)
    size = height * width
    shape = f"{channels} channels, {height} x {width} pixels"
    nchw, nhwc = channels * size, channels
    return Answers(
        "shapes",
        (
            _stride("image_stride", f"Images of {shape}, NCHW, as a permuted view NHWC", nchw, "image"),
            _stride("channel_stride", "The same view", size, "channel"),
            _sectors(
                "store_across",
                f"A kernel reads NCHW with lane = pixel, and stores to NHWC memory, {nhwc} channels. How many"
                " sectors does a store touch?",
                lambda lane: nhwc * lane,
                "From lane to lane, how far does the store move on?",
            ),
            _sectors(
                "load_across",
                f"Lane `i` is to store `dst[i]`, into NHWC memory of {few} channels. So it loads"
                f" `src[i % {few} * {size} + i // {few}]`, from NCHW memory of {size} pixels. How many"
                " sectors does the load touch?",
                lambda lane: lane % few * size + lane // few,
                "Which channels do the lanes want, and which pixels of each? A channel is a run of its own.",
            ),
            Question(
                "usual_tile",
                f"The transpose of the padding chapter stores rows of `dst`: here the {few} channels of a"
                f" pixel with each request. How many requests does it make to store {LANES} pixels?",
                LANES,
                "How many lanes of such a request have something to store, and how many pixels are these?",
                f"Requests of all {LANES} lanes would be {few}: most of that tile is empty.",
            ),
            _wavefronts("tile_odd", few, few),
            _wavefronts("tile_even", even, even),
            _wavefronts("tile_even_padded", even, even + 1),
        ),
    )


def _stride(name: str, view: str, answer: int, axis: str) -> Question:
    return Question(
        name,
        f"{view}: how many floats further is the next {axis}?",
        answer,
        "A view moves no number. In the memory as it is, what lies between the two?",
        "A permuted view has the strides of the memory as it is, in another order.",
    )


def _sectors(name: str, text: str, of_lane: Callable[[Any], Any], nudge: str) -> Question:
    access = WarpAccess.from_formula("ld.global.b32", lambda lane: FLOAT_BYTES * of_lane(lane))
    return Question(
        name,
        text,
        global_cost(access).sectors,
        nudge,
        f"Of {global_cost(access).bytes_moved} bytes that move, {global_cost(access).bytes_requested} are"
        " asked for.",
        access=access,
    )


def _wavefronts(name: str, channels: int, pitch: int) -> Question:
    access = WarpAccess.from_formula("st.shared.b32", lambda lane: FLOAT_BYTES * pitch * lane)
    return Question(
        name,
        f"A tile in shared memory holds {channels} channels, then the next pixel; from pixel to pixel it is"
        f" {pitch} floats. Lane `i` stores channel 0 of pixel `i`. How many wavefronts?",
        shared_cost(access).wavefronts,
        "What has the distance in common with the number of banks?",
        "Lanes meet as often as the distance and the number of banks have a common factor.",
        access=access,
    )


# -- the kernel -------------------------------------------------------------------------------------


@cuda.jit
def to_nhwc_by_pixel(src, dst):
    """The kernel to compare with: lanes on neighbouring pixels, every channel in turn, no tile."""
    image = cuda.blockIdx.y
    for pixel in range(cuda.grid(1), src.shape[2], cuda.gridDim.x * cuda.blockDim.x):
        for channel in range(src.shape[1]):
            dst[image, pixel, channel] = src[image, channel, pixel]


def _to_nhwc(threads: int, pixels: int) -> KernelTask:
    def run(rng: np.random.Generator, size: Any) -> Run:
        n_images, n_channels, height, width = size
        n_pixels = height * width
        src = rng.random((n_images, n_channels, n_pixels), dtype=np.float32)
        return Run(
            size=f"{n_images} x {n_channels} x {height} x {width}",
            grid=(-(-n_pixels // pixels), n_images),
            block=threads,
            arguments={"src": src, "dst": poisoned((n_images, n_pixels, n_channels))},
            expected={"dst": np.ascontiguousarray(src.transpose(0, 2, 1))},
        )

    return KernelTask(
        name="to_nhwc",
        parameters=("src", "dst"),
        run=run,
        sizes=((1, 3, 8, 16), (2, 5, 7, 9)),
        hidden=_hidden,
        right=4,
        goals=(
            global_sectors(5, _enough_sectors),
            no_conflicts(4),
            shared_bytes(1, most=MOST * pixels * FLOAT_BYTES, least=1),
            no_hazards(2),
        ),
        timed=(32, 3, 512, 512),
        before=to_nhwc_by_pixel,
        worth=_worth,
    )


def _hidden(rng: np.random.Generator) -> tuple[Any, ...]:
    odd = [int(rng.choice((7, 9, 11, 13, 17))), *(int(extent) for extent in rng.integers(3, 16, size=2))]
    return ((2, 1, 1, 1), (1, *odd), (2, 3, int(rng.integers(5, 20)), 7))


def _enough_sectors(run: Run) -> int:
    """What one load and one store of each float need, and a sector more for a request that is torn."""
    n_images, n_channels, n_pixels = run.arguments["src"].shape
    return n_images * (n_channels * _torn(n_pixels) + _torn(n_pixels * n_channels))


def _torn(n_floats: int) -> int:
    """The sectors of a run, in requests of a warp, wherever it starts."""
    extra = -(-n_floats // LANES) if n_floats % PER_SECTOR else 0
    return -(-n_floats // PER_SECTOR) + extra


def _worth() -> str:
    measured = results.experiment("h200", "E-28")
    good, worst = "NCHW by_pixel float32", "NHWC by_pixel float32"
    return (
        f"A kernel that copies pixel by pixel takes {measured.ratio(worst, good):.1f} times as long with NHWC"
        f" as with NCHW: that is what lanes across the layout cost. {measured.caption}"
    )
