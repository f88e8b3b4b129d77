"""Claims about asynchronous copies and barriers: what they hide, from when, and what keeps them right."""

from functools import cache
from importlib.resources import files

import numpy as np

from lanewise.claims.claim import Run, Trial, Verdict, about, at_least, claim
from lanewise.claims.documents import PIPELINES, PTX_CP_ASYNC
from lanewise.claims.evidence import recorded
from lanewise.instructions import INSTRUCTIONS

WRONG, IMPRECISE, HW = Verdict.WRONG, Verdict.IMPRECISE, Verdict.HW

LARGE = "hgemm 8192x8192x8192"
RELEASE = "        cuda.syncthreads()  # all have read the tile before the next copy overwrites it\n"


@cache
def hazards_of_copies(without: str = "") -> str:
    """What the tracer finds in `copied`, a kernel with one stage, with some of its source left out."""
    from lanewise.trace import functions_in, trace

    text = files("lanewise.kernels").joinpath("async_pipelines.py").read_text("utf-8")
    assert without in text
    src = np.ones(4 * 1024, np.float32)
    kernel = functions_in(text.replace(without, "", 1) if without else text)["copied"]
    found = trace(kernel, 1, 256, src, np.zeros_like(src), np.float32(1), np.float32(0), 0)
    return ", ".join(dict.fromkeys(hazard.kind for hazard in found.hazards)) or "none"


@claim("CD-19", "async_pipelines", HW, "async-pipelines-claim-single-stage")
def cd_19(trial: Trial) -> str:
    """An asynchronous copy with one stage is as fast as a synchronous one: 898.00 against 901.43 GB/s."""
    trial.stated("share of the rate (RTX 4090)", about(1, 0.01), 898.00 / 901.43)
    run = recorded("E-33")
    gain = run.ratio("tiled, 268435456 elements", "copied, 268435456 elements")
    trial.here("times as fast (H200)", about(1, 0.02), gain, "E-33")
    return f"Waiting at once hides nothing: {gain:.3f} times as fast on an H200."


@claim("CD-20", "async_pipelines", HW, "async-pipelines-claim-three-stages")
def cd_20(trial: Trial) -> str:
    """Three stages make a kernel that only copies slower: 0.95x."""
    trial.stated("856.55 against 901.43 GB/s (RTX 4090)", about(0.95, 0.01), 856.55 / 901.43)
    here = recorded("E-33").ratio("tiled, 268435456 elements", "pipelined_3, 268435456 elements")
    trial.here("times as fast (H200), 8 blocks a multiprocessor", about(0.95, 0.02), here, "E-33")
    run = recorded("E-34")
    alone = run.ratio("tiled, 0 FMAs, 1 blocks per SM", "pipelined_3, 0 FMAs, 1 blocks per SM")
    trial.here("with 1 block a multiprocessor", about(0.95, 0.02), alone, "E-34")
    return (
        f"The same on an H200, {here:.2f}, if many blocks hide the latency already. With one block to a"
        f" multiprocessor three stages are {alone:.2f} times as fast, even in a kernel that only copies."
    )


@claim("CD-21", "async_pipelines", IMPRECISE, "async-pipelines-claim-serial")
def cd_21(trial: Trial) -> str:
    """In the synchronous kernel loads and arithmetic alternate; it is basically serial."""
    run = recorded("E-34")
    gain = {
        blocks: run.ratio(
            f"tiled, 64 FMAs, {blocks} blocks per SM", f"pipelined_4, 64 FMAs, {blocks} blocks per SM"
        )
        for blocks in (1, 8)
    }
    trial.stated("what four stages gain with 1 block (64 FMAs)", at_least(1.5), gain[1], "E-34")
    trial.wider("and with 8 blocks", at_least(1.5), gain[8], "E-34")
    rate = run.gb_per_s("tiled, 0 FMAs, 8 blocks per SM")
    return (
        f"Within one block, yes: four stages make it {gain[1]:.2f} times as fast. Several blocks overlap each"
        f" other's loads and arithmetic already: with eight the stages gain {gain[8]:.2f}, and a plain copy"
        f" runs at {rate:,.0f} GB/s on an H200."
    )


@claim("CD-22", "async_pipelines", IMPRECISE, "async-pipelines-claim-release")
def cd_22(trial: Trial) -> str:
    """consumer_wait waits only for the stage that is to be consumed; then the stage may be used again."""
    run = Run("trace of `copied`, with lines left out")
    trial.stated("the wait is needed: hazards without it", "async_not_waited",
                 hazards_of_copies("        ptx.cp_async_wait(0)\n"), run)  # fmt: skip
    trial.stated("what it waits for", "the oldest stage", "the oldest stage", PIPELINES)
    trial.wider(
        "hazards if the stage is not released before it is filled again",
        "none",
        hazards_of_copies(RELEASE),
        run,
    )
    assert hazards_of_copies() == "none"
    return (
        "Right, and half of it. Without a release (producer_acquire and consumer_release, or a barrier) the"
        f" next copy overwrites what others still read: the tracer reports {hazards_of_copies(RELEASE)}."
    )


@claim("CD-23", "async_pipelines", HW, "async-pipelines-claim-product")
def cd_23(trial: Trial) -> str:
    """Matrix products profit from pipelines, since computing takes about as long as copying."""
    run = recorded("E-15")
    gain = run.ratio("swizzled", "3 stages", LARGE)
    trial.here("product, 3 stages against none: times as fast (H200)", at_least(1.1), gain, "E-15")
    work = recorded("E-34")
    by_work = {
        n: work.ratio(f"tiled, {n} FMAs, 8 blocks per SM", f"pipelined_3, {n} FMAs, 8 blocks per SM")
        for n in (0, 24, 64, 256)
    }
    trial.here("copy with 64 FMAs an element, 3 stages", at_least(1.1), by_work[64], "E-34")
    told = ", ".join(f"{factor:.2f} at {n}" for n, factor in by_work.items())
    return (
        f"Our half-precision product becomes {gain:.2f} times as fast on an H200 with three stages. By work"
        f" per element, with eight blocks: {told} multiply-adds."
    )


@claim("CD-27", "async_pipelines", IMPRECISE, "async-pipelines-claim-memcpy-async")
def cd_27(trial: Trial) -> str:
    """memcpy_async copies into shared memory asynchronously, past the registers."""
    widths = {name.rsplit(".", 1)[1] for name in INSTRUCTIONS if name.startswith("cp.async")}
    trial.stated("pieces of 16 aligned bytes: the hardware copies them", True, "16" in widths, PTX_CP_ASYNC)
    for n_bytes, what in ((2, "a half a thread"), (12, "a record of three floats")):
        trial.wider(
            f"{what}, {n_bytes} bytes: the hardware copies it", True, str(n_bytes) in widths, PTX_CP_ASYNC
        )
    pieces = ", ".join(sorted(widths, key=int))
    return (
        f"Only in aligned pieces of {pieces} bytes, and past L1 only by 16. Otherwise memcpy_async makes"
        " ordinary loads and stores of it, through registers, and says nothing."
    )


@claim("CC-49", "async_pipelines", IMPRECISE, "async-pipelines-claim-barriers")
def cc_49(trial: Trial) -> str:
    """Barriers that nobody needs cost time, and the more, the higher the occupancy."""
    run = recorded("E-35")

    def cost(threads: int, blocks: int) -> float:
        labels = [f"{n} barriers, {threads} threads, {blocks} blocks per SM" for n in (8, 1)]
        return run.ratio(labels[0], labels[1])

    trial.stated(
        "1,024 threads, 8 barriers a tile for 1: times as long", at_least(1.1), cost(1024, 2), "E-35"
    )
    few, many = cost(128, 1), cost(128, 8)
    trial.wider("128 threads: dearer with 8 blocks than with 1", True, many > few, "E-35")
    trial.wider(
        "as many threads at once: as dear in 8 blocks as in 1",
        about(round(cost(1024, 1), 2), 0.1),
        many,
        "E-35",
    )
    return (
        f"With seven more, two blocks of 1,024 threads take {cost(1024, 2):.2f} times as long; with blocks of"
        f" 128 threads one takes {few:.2f} and eight take {many:.2f} times as long. Warps of one block wait"
        " for each other, other blocks go on. What counts is warps per block."
    )
