"""Profiling, guided: find a counter by its name, work out what it will say, and what it does not say.

Variants change the names to translate, the launch to work out, and the recorded profiles to judge. The traps
are those of published advice: nvprof's names for a profiler that has none of them, a conflict counter that
contains other traffic, an efficiency that falls without conflicts, a hit rate that grows with waste.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda, float32

from lanewise import profiler, results
from lanewise.access import WarpAccess
from lanewise.labs.answers import Answers, Question
from lanewise.labs.lab import Lab
from lanewise.labs.runs import poisoned
from lanewise.labs.variant import Variant
from lanewise.memory import shared_cost
from lanewise.trace import Trace, trace
from lanewise.trace.sites import Site

LANES = 32
THREADS = 128
MOST_STEP = 8
ROOM = THREADS * MOST_STEP
SHARED_BYTES, SECTOR_BYTES = 128, 32  # of a wavefront, of a sector


def build(variant: Variant) -> Lab:
    """The lab of one variant."""
    stride, step, blocks = variant.choice(2, 3, 4), variant.choice(4, 2, 8), variant.choice(6, 5, 10)
    return Lab(
        name="profiling_counters",
        title="What will the counter say?",
        chapter="profiling",
        level="guided",
        kinds=("predict",),
        minutes=35,
        tasks=(_names(variant), _forecast(stride, step, blocks), _judgement(variant)),
        given={"THREADS": THREADS, "BLOCKS": blocks, "STRIDE": stride, "STEP": step},
        seed=variant.seed,
    )


# -- names ------------------------------------------------------------------------------------------


def _names(variant: Variant) -> Answers:
    sectors = variant.choice("gld_efficiency", "gst_efficiency", "gld_transactions_per_request")
    shared = variant.choice("shared_ld_bank_conflict", "shared_efficiency", "shared_load_transactions")
    stall = variant.choice("long_scoreboard", "short_scoreboard", "mio_throttle")
    family = variant.choice("shared_ld_bank_conflict", "shared_load_transactions")
    steady = variant.choice("gld_transactions", "gld_efficiency", "gld_request")
    return Answers(
        "names",
        (
            _old("sectors_now", sectors),
            _old("conflicts_now", shared),
            _situation(
                "ideal",
                "The source page shows wavefronts for each line. Which column do you subtract, to get the"
                " excess?",
                "memory_l1_wavefronts_shared_ideal",
            ),
            _situation(
                "waiting",
                f"{_stall(stall).says.capitalize()}. Which counter has them, for each instruction?",
                _stall(stall).name,
            ),
            _family("family", family),
            _family("family_too", steady),
        ),
    )


def _stall(reason: str) -> profiler.Metric:
    return profiler.find(f"smsp__average_warps_issue_stalled_{reason}_per_issue_active")


def _old(name: str, old: str) -> Question:
    return _situation(
        name,
        f"An old script for nvprof reads `{old}`. What do you ask Nsight Compute for?",
        profiler.find(old).name,
    )


def _situation(name: str, text: str, answer: str) -> Question:
    return Question(
        name,
        text,
        answer,
        "Copy one whole name out of the table above, with what stands behind the dot: without that it is a"
        " family. `ld` is loads, `st` stores, a ratio or pct is an average, a sum a total.",
        f"It means: {profiler.find(answer).says}.",
    )


def _family(name: str, old: str) -> Question:
    metric = profiler.find(old)
    return Question(
        name,
        f'Does `{metric.name}` follow the "addresses", so that it repeats exactly, or the "hardware", with'
        " other traffic in it?",
        metric.follows,
        "Sectors and requests are decided before anything moves. What a data pipe went through is not.",
        f"It means: {metric.says}.",
    )


# -- a launch to work out ---------------------------------------------------------------------------


@cuda.jit
def staged(src, dst, stride, step):
    """Through shared memory and back in reverse order; only every second thread stores."""
    tile = cuda.shared.array(ROOM, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    tile[step * t] = src[stride * i]
    cuda.syncthreads()  # every number is in the tile before another thread reads it
    if t % 2 == 0:
        dst[i] = tile[step * (THREADS - 1 - t)]


def _traced(stride: int, step: int, blocks: int) -> Trace:
    n = blocks * THREADS
    return trace(
        staged, blocks, THREADS, np.ones(stride * n, np.float32), poisoned(n), stride, step, machine="sm_90"
    )


def _forecast(stride: int, step: int, blocks: int) -> Answers:
    traced = _traced(stride, step, blocks)
    load, store = traced.global_.load, traced.global_.store
    put, get = _only(traced.shared.store.sites), _only(traced.shared.load.sites)
    asked, waves = put.bytes_requested + get.bytes_requested, put.wavefronts + get.wavefronts
    return Answers(
        "forecast",
        (
            _count(
                "requests",
                "gld_request",
                load.requests,
                "One request is one instruction of one warp. How many warps has the launch?",
            ),
            _count(
                "sectors",
                "gld_transactions",
                load.sectors,
                "Count the sectors of one request, by the stride of the load. Then take all requests.",
            ),
            _count(
                "used",
                "gld_efficiency",
                100 * load.bytes_requested / load.bytes_moved,
                "Requested bytes of the loads, over 32 bytes for each sector.",
            ),
            _count(
                "stored",
                "gst_efficiency",
                100 * store.bytes_requested / store.bytes_moved,
                "Which lanes store, and does a lane that is switched off spare a sector?",
            ),
            _site("put", "stores into", put, "memory_l1_wavefronts_shared", put.wavefronts),
            _site("get", "loads from", get, "memory_l1_wavefronts_shared", get.wavefronts),
            _site("get_ideal", "loads from", get, "memory_l1_wavefronts_shared_ideal", get.ideal),
            _count(
                "efficiency",
                "shared_efficiency",
                100 * asked / (SHARED_BYTES * waves),
                "It is an average over the whole kernel: add the bytes that stores and loads of the tile ask"
                " for, and divide by 128 bytes for each of their wavefronts.",
            ),
        ),
    )


def _only(sites: tuple[Site, ...]) -> Site:
    (site,) = sites
    return site


def _count(name: str, old: str, answer: float, nudge: str) -> Question:
    metric = profiler.find(old)
    unit = ", in per cent" if metric.name.endswith(".pct") else ""
    return Question(
        name,
        f"What does `{metric.name}` say{unit}?",
        answer,
        nudge,
        "The addresses decide it, so arithmetic and counter agree.",
        tolerance=0.005,
    )


def _site(name: str, does: str, site: Site, metric: str, answer: int) -> Question:
    return Question(
        name,
        f"`{metric}` of the instruction that {does} `tile`, over all warps: what does it say?",
        answer,
        "Take one warp. Which lanes take part, how far apart are they, and how many of them meet in a bank?"
        " The ideal is what these lanes would need if none met. Then take all warps.",
        "Wavefronts beyond the ideal are the excess, and they follow from the addresses.",
        access=site.example,
    )


# -- what it does not say ---------------------------------------------------------------------------


def _judgement(variant: Variant) -> Answers:
    case = variant.choice(("E-45", "padded 8192"), ("E-20", "tiled 4096"), ("E-45", "tiled 8192"))
    shared = variant.choice(("E-16", "0 bits"), ("E-15", "3 stages, row-major"), ("E-16", "1 bits"))
    memory = variant.choice(
        ("E-28", "NHWC by_pixel float32", "copy 32 images of 200704 float32"),
        ("E-25", "scale_fields", "double 16777216 records of 4"),
    )
    hits = variant.choice("8, 1 GiB", "32, 4 MiB")
    stride = variant.choice(2, 4, 8)
    product = "hgemm 4096x4096x4096"
    here, there = variant.shuffled([memory, (*shared, product)])
    half = LANES // stride
    return Answers(
        "judgement",
        (
            _excess_per_load(*case),
            _same_efficiency("strided", f"lanes 0 to 31, {stride} floats apart", stride, LANES),
            _same_efficiency("few_lanes", f"lanes 0 to {half - 1}, next to each other", 1, half),
            _wide(variant.choice(128, 64)),
            _waits("waits_here", *here),
            _waits("waits_there", *there),
            _scattered(hits, variant.choice("PQ", "QP")),
        ),
    )


def _excess_per_load(id: str, label: str) -> Question:
    run, pitch = results.experiment("h200", id), LANES + label.startswith("padded")
    loads, conflicts = (run.counter(label, f"shared_load_{what}") for what in ("instructions", "conflicts"))
    column = WarpAccess.from_tile("ld.shared.b32", range(LANES), 0, pitch=pitch)
    return Question(
        "excess",
        f"A transpose reads columns of a tile of floats, {pitch} from row to row. On a busy H200,"
        f" `{profiler.find('shared_ld_bank_conflict').name}` says {conflicts:,.0f}, for {loads:,.0f} loads."
        " How many excess wavefronts does the layout cost for each load?",
        shared_cost(column).excess,
        "To which family does this counter belong? Work the excess of one load out from the addresses.",
        f"The counter has {conflicts / loads:.2f} for each load: collisions with other traffic are in it."
        f" {run.counter_caption}",
        access=column,
    )


def _same_efficiency(name: str, lanes: str, stride: int, n_lanes: int) -> Question:
    access = WarpAccess.from_formula("ld.shared.b32", lambda lane: 4 * stride * lane, (1 << n_lanes) - 1)
    cost = shared_cost(access)
    used = 4 * n_lanes / (SHARED_BYTES * cost.wavefronts)
    return Question(
        name,
        f"All loads of a kernel are like this one: {lanes}, a float each. A profile shows a shared efficiency"
        f" of {100 * used:g} %. How many excess wavefronts has a load?",
        cost.excess,
        "Efficiency falls for two reasons: more wavefronts, or fewer bytes. Which of them is it here?",
        f"The efficiency of {100 * used:g} % says nothing about the reason; read the excess beside it.",
        access=access,
    )


def _wide(bits: int) -> Question:
    access = WarpAccess.from_formula(f"ld.shared.b{bits}", lambda lane: bits // 8 * lane)
    cost = shared_cost(access)
    return Question(
        "wide",
        f"A profile shows {cost.wavefronts} wavefronts for each load of shared memory: lanes on neighbours,"
        f" {bits // 8} bytes each. How many of them are excess?",
        cost.excess,
        "How many bytes does the warp ask for, and how many does a wavefront deliver at most?",
        "Wide loads take several wavefronts, and all of them are full.",
        access=access,
    )


def _waits(name: str, id: str, label: str, problem: str) -> Question:
    run = results.experiment("h200", id)
    reasons = ("short_scoreboard", "mio_throttle", "long_scoreboard", "lg_throttle")
    waits = {reason: run.counter(label, f"stall_{reason}", problem) for reason in reasons}
    here = waits["short_scoreboard"] + waits["mio_throttle"]
    there = waits["long_scoreboard"] + waits["lg_throttle"]
    shown = ", ".join(f"{reason.replace('_', ' ')} {value:.1f}" for reason, value in waits.items())
    return Question(
        name,
        f"Warps waiting, for each instruction: {shown}. For which memory does this kernel wait most,"
        ' "shared" or "global"?',
        "shared" if here > there else "global",
        "Which scoreboard is for values from which memory? MIO and LG are the queues in front of the two.",
        f"This is the case `{label}` of `{problem}`. {run.counter_caption}",
    )


def _scattered(size: str, letters: str) -> Question:
    run = results.experiment("h200", "E-43")
    kernels = dict(sorted(zip(letters, (f"sum_runs of {size}", f"sum_columns of {size}"), strict=True)))
    shown = "; ".join(_loads(letter, run, label) for letter, label in kernels.items())
    per = {letter: _per_request(run, label) for letter, label in kernels.items()}
    times = ", ".join(f"{letter} {run.us(label):,.1f} µs" for letter, label in kernels.items())
    return Question(
        "scattered",
        f'Two kernels add up the same array. {shown}. Whose lanes are scattered, "P" or "Q"?',
        max(per, key=lambda letter: per[letter]),
        "A hit rate says where a request was answered. How many sectors does a request have?",
        f"Its hits are sectors that it asks for again. And the clock? {times}: a counter is no time."
        f" {run.caption}",
    )


def _per_request(run: Any, label: str) -> float:
    return run.counter(label, "global_load_sectors") / run.counter(label, "global_load_requests")


def _loads(letter: str, run: Any, label: str) -> str:
    requests, sectors = (run.counter(label, f"global_load_{what}") for what in ("requests", "sectors"))
    hits = run.counter(label, "l1_hit_rate")
    return f"{letter} makes {requests:,.0f} requests of {sectors:,.0f} sectors, {hits:.0%} of them hits in L1"
