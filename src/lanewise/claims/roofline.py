"""Claims about arithmetic intensity, the balance of a GPU, and how fast its memories are."""

from lanewise.claims.claim import Trial, Verdict, about, at_least, at_most, claim
from lanewise.claims.documents import ADA
from lanewise.claims.evidence import recorded
from lanewise.machine import BANK_ROW_BYTES, product

OK, WRONG, IMPRECISE, HW = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE, Verdict.HW

A100, A100_80, H200, ADA_4090 = (product(name) for name in ("A100 40GB", "A100 80GB", "H200", "RTX 4090"))
VECTOR_ADD = 1 / (3 * 4)  # an addition, two numbers read, one written


def shared_ratio(name: str) -> float:
    """How many times the bandwidth of DRAM that of all shared memories is, at most, by data sheet."""
    return product(name).shared_gb_per_s / product(name).dram_gb_per_s


@claim("CC-01", "introduction", IMPRECISE, "introduction-claim-only-explanation")
def cc_01(trial: Trial) -> str:
    """If DRAM is 80 % busy and the float32 units less than 30 %, the only explanation is that warps wait for
    data."""
    run, label = recorded("E-22"), "stride 2, 67108864 elements"
    busy = run.counter(label, "dram_throughput", "double 1 of 2 of 67108864")
    share = run.tflop_per_s(label) if "tflop_per_s" in run.row(label) else 67108864 / 2 / run.us(label) / 1e6
    trial.stated("a kernel with float32 below 30 %: DRAM busy", at_least(0.8), busy, "E-22")
    tiled = recorded("E-45").counter("tiled 8192", "dram_throughput")
    trial.wider("another with float32 below 30 %: DRAM busy", at_least(0.8), tiled, "E-45")
    chain = recorded("E-44").tflop_per_s("registers, 65536 one after the other") / H200.fp32_tflop_per_s
    return (
        f"The DRAM is the evidence: {busy:.0%} busy in a doubling of every second number, which uses"
        f" {share / H200.fp32_tflop_per_s:.1%} of float32. Idle float32 units are none: a transpose leaves"
        f" them idle with DRAM at {tiled:.0%}, limited by shared memory, and one chain of multiply-adds"
        f" reaches {chain:.2%} without any memory."
    )


@claim("CC-02", "introduction", OK, "introduction-claim-balance")
def cc_02(trial: Trial) -> str:
    """An A100 does 312 TFLOP/s in half precision and reads 1.6 TB/s: it balances at 195 FLOP per byte."""
    trial.stated("312 / 1.6", about(195, 0.005), 312 / 1.6)
    trial.stated("TFLOP/s of dense half-precision products", 312.0, A100.tensor_tflop_per_s)
    trial.stated("FLOP per byte, A100 40 GB", about(195, 0.05), A100.ridge_tensor)
    return (
        f"Those are the Tensor Cores. The memory makes a difference: {A100.ridge_tensor:.0f} with 40 GB,"
        f" {A100_80.ridge_tensor:.0f} with 80 GB; an H200 has {H200.ridge_tensor:.0f}."
    )


@claim("CC-03", "introduction", OK, "introduction-intensity")
def cc_03(trial: Trial) -> str:
    """Adding two vectors has an intensity of about 0.08 FLOP per byte."""
    trial.stated("FLOP per byte", about(0.083, 0.01), VECTOR_ADD)
    rate = recorded("E-37-fusion").gb_per_s("add")
    reached = rate * VECTOR_ADD / 1e3
    trial.stated(
        "share of float32 that the bandwidth allows (H200)", at_most(0.01),
        reached / H200.fp32_tflop_per_s, "E-37-fusion",
    )  # fmt: skip
    return (
        f"One operation for 12 bytes. At {rate:,.0f} GB/s, measured on an H200, that makes {reached:.2f}"
        " TFLOP/s, and no vector instruction can change it."
    )


@claim("CC-04", "introduction", IMPRECISE, "introduction-claim-balance")
def cc_04(trial: Trial) -> str:
    """The 0.08 FLOP per byte of an addition lie several thousand times below the balance of an A100."""
    trial.stated("195 / 0.083", at_least(2000), 195 / VECTOR_ADD)
    fp32 = A100.ridge_fp32 / VECTOR_ADD
    trial.wider("against the float32 units, which do the adding", at_least(1000), fp32)
    return (
        "The division is right, the comparison is with Tensor Cores, which add no vectors. The float32 units"
        f" balance at {A100.ridge_fp32:.1f}: {fp32:.0f} times more, and still far."
    )


@claim("CC-05", "introduction", IMPRECISE, "introduction-claim-hundreds")
def cc_05(trial: Trial) -> str:
    """A well-tiled matrix product has an intensity of hundreds to thousands of FLOP per byte."""
    n = 4096
    whole = {bytes_: 2 * n**3 / (3 * n * n * bytes_) for bytes_ in (2, 4)}
    for bytes_, intensity in whole.items():
        trial.stated(f"N = {n}, {bytes_} bytes, each matrix moved once", at_least(200), intensity)
    tiles = {(m, k): m * k / (m + k) for m, k in ((128, 128), (256, 128))}
    for (m, k), intensity in tiles.items():
        trial.wider(f"one block with a tile of {m} x {k} halves", at_least(200), intensity)
    return (
        f"The whole product has {whole[2]:,.0f} in half precision and {whole[4]:,.0f} in float32. A block"
        f" alone has {tiles[128, 128]:.0f} to {tiles[256, 128]:.0f} by its tile; blocks that find each"
        " other's tiles in L2 close the gap."
    )


@claim("CC-06", "async_pipelines", OK, "async-pipelines-in-flight")
def cc_06(trial: Trial) -> str:
    """To hide the latency of memory a GPU needs enough independent requests in flight."""
    run = recorded("E-24")
    few, many = (run.gb_per_s(label) for label in ("copy, 1024 threads", "copy4, 1024 threads"))
    trial.stated(
        "copy: 16 bytes a thread in flight against 4, times as fast", at_least(1.2), many / few, "E-24"
    )
    steps = recorded("E-34")
    blocks = [steps.gb_per_s(f"tiled, 0 FMAs, {n} blocks per SM") for n in (1, 2, 4, 8)]
    trial.stated("tiles: more blocks at once are faster", sorted(blocks), blocks, "E-34")
    ahead = [steps.gb_per_s(f"pipelined_{n}, 0 FMAs, 1 blocks per SM") for n in (2, 3, 4)]
    trial.stated("tiles: more copies ahead are faster, 1 block", sorted(ahead), ahead, "E-34")
    return (
        f"On an H200 a copy reaches {few:,.0f} GB/s with 4 bytes a thread under way and {many:,.0f} with 16;"
        f" copies of tiles {blocks[0]:,.0f} with one block a multiprocessor and {blocks[-1]:,.0f} with eight,"
        f" or {ahead[-1]:,.0f} with one block that copies three tiles ahead."
    )


@claim("CC-53", "introduction", HW, "introduction-claim-ninety")
def cc_53(trial: Trial) -> str:
    """At 90 % of its peak a memory is saturated."""
    run = recorded("E-41-stream")
    shares = {
        label: run.gb_per_s(label) / H200.dram_gb_per_s for label in ("copy4, 256 threads", "triad4", "sum4")
    }
    for label, share in shares.items():
        trial.here(
            f"{label.split(',')[0]}, share of the nominal rate (H200)", about(0.9, 0.05), share, "E-41-stream"
        )
    fill = run.gb_per_s("fill4") / H200.dram_gb_per_s
    trial.here("fill4, which only writes", at_most(0.95), fill, "E-41-stream")
    return (
        f"On an H200 copies and sums end at {min(shares.values()):.0%} to {max(shares.values()):.0%} of the"
        f" data sheet; only a kernel that never reads gets {fill:.0%}. Measure the roof of your machine, and"
        " compare with that."
    )


@claim("CC-15", "introduction", HW, "introduction-claim-order")
def cc_15(trial: Trial) -> str:
    """Shared memory is an order of magnitude faster than DRAM."""
    run = recorded("E-44")
    faster = run.gb_per_s("shared, 1056 blocks") / run.gb_per_s("DRAM, 1056 blocks")
    trial.here("bandwidth: times that of DRAM (H200)", at_least(10), faster, "E-44")
    steps = {"shared": 65536, "DRAM": 16384}
    latency = {name: 1e3 * run.us(f"{name}, {n} one after the other") / n for name, n in steps.items()}
    sooner = latency["DRAM"] / latency["shared"]
    trial.here("latency: times shorter than that of DRAM (H200)", at_least(10), sooner, "E-44")
    ratios = {name: shared_ratio(name) for name in ("A100 40GB", "RTX 4090", "H200")}
    return (
        f"Bandwidth {faster:.1f} times and latency {sooner:.0f} times better on an H200. By data sheet the"
        f" bandwidth is {ratios['H200']:.0f} times that of DRAM there, {ratios['A100 40GB']:.0f} times on an"
        f" A100, {ratios['RTX 4090']:.0f} times on an RTX 4090."
    )


@claim("CD-01", "introduction", WRONG, "introduction-claim-ridge")
def cd_01(trial: Trial) -> str:
    """An RTX 4090 has HBM, of 1008 GB/s."""
    trial.stated("GB/s", 1008, ADA_4090.dram_gb_per_s, ADA)
    trial.stated("memory", "HBM", "GDDR6X", ADA)
    return (
        f"The {ADA_4090.dram_gb_per_s:,.0f} GB/s are right. They come from GDDR6X; HBM is in A100 and H200."
    )


@claim("CD-02", "introduction", OK, "introduction-claim-ridge")
def cd_02(trial: Trial) -> str:
    """An RTX 4090 balances at 82.6 TFLOP/s / 1008 GB/s = 81.9 FLOP per byte."""
    trial.stated("82.6 / 1.008", about(81.9, 0.002), 82.6 / 1.008)
    trial.stated("float32 balance, by data sheet", about(81.9, 0.002), ADA_4090.ridge_fp32, ADA)
    return (
        f"In float32, at nominal clocks. An H200 has {H200.ridge_fp32:.1f}: its memory is that much faster."
    )


@claim("CD-03", "introduction", OK, "introduction-claim-ridge")
def cd_03(trial: Trial) -> str:
    """An RTX 4090 has 128 multiprocessors and 72 MB of L2."""
    trial.stated("multiprocessors", 128, ADA_4090.sms, ADA)
    trial.stated("L2 (MB)", 72, 72, ADA)
    peak = ADA_4090.sms * ADA_4090.clock_mhz * ADA_4090.fma_lanes_per_sm * 2 / 1e6
    trial.stated("float32 TFLOP/s that follow from so many", about(82.6, 0.01), peak)
    return f"{ADA_4090.sms} of them at {ADA_4090.clock_mhz:,} MHz make the {peak:.1f} TFLOP/s of the article."


@claim("CD-28", "introduction", IMPRECISE, "introduction-claim-order")
def cd_28(trial: Trial) -> str:
    """Shared memory looks almost like registers."""
    run = recorded("E-44")
    rates = {name: run.gb_per_s(f"{name}, 1056 blocks") for name in ("registers", "shared", "DRAM")}
    trial.stated("times the bandwidth of DRAM (H200)", at_least(5), rates["shared"] / rates["DRAM"], "E-44")
    more = trial.wider(
        "registers: times its bandwidth", at_most(2), rates["registers"] / rates["shared"], "E-44"
    )
    steps = 65536
    chain, ring = (run.us(f"{name}, {steps} one after the other") for name in ("registers", "shared"))
    trial.wider("registers: times its latency shorter", at_most(2), ring / chain, "E-44")
    return (
        f"It brings {BANK_ROW_BYTES} bytes a clock to a multiprocessor. Registers feed {more:.0f} times as"
        f" much on an H200, and {ring / chain:.0f} times sooner: the reason why matrix products keep tiles in"
        " registers too."
    )
