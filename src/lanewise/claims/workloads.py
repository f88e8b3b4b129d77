"""Claims about the kernels of language models: attention, and layer norm with GELU."""

from functools import partial

from lanewise.claims.claim import Trial, Verdict, about, at_least, at_most, claim
from lanewise.claims.documents import FLASH_ATTENTION
from lanewise.claims.evidence import MISALIGNED, column, or_misaligned, recorded
from lanewise.claims.widths import wide_column

OK, NC = Verdict.OK, Verdict.NC

N, D = 4096, 128
SCORES = 4 * N * N * 2  # bytes: S and P of a head, in halves, each written and read
HEAD = 4 * N * D * 2  # bytes: Q, K, V and the output
FLOPS = 4 * N * N * D


def moved(id: str, *labels: str) -> float:
    """Bytes that DRAM gave and took, by its counters, over several kernels."""
    profiles = [recorded(id).profile(label) for label in labels]
    return float(sum(each["dram_read_bytes"] + each["dram_write_bytes"] for each in profiles))


@claim("CC-39", "attention", OK, "attention-claim-traffic")
def cc_39(trial: Trial) -> str:
    """In plain attention the traffic of the score matrix dominates."""
    trial.stated("MB of scores, a head of 4,096 x 128", about(134), SCORES / 1e6)
    trial.stated("times as many bytes as Q, K, V and output", at_least(10), SCORES / HEAD)
    kinds = [f"{kind} n=4096" for kind in ("scores mma", "softmax wide", "values mma")]
    kept, whole = moved("E-38", "flash, swizzled n=4096"), moved("E-38-unfused", *kinds)
    trial.stated(
        "three kernels against one: times the DRAM traffic (H200)", at_least(10), whole / kept, "E-38-unfused"
    )
    return (
        f"{SCORES / 1e6:.0f} MB against {HEAD / 1e6:.1f} MB for {FLOPS / 1e9:.1f} GFLOP: an intensity of"
        f" {FLOPS / (SCORES + HEAD):.0f}, or {FLOPS / HEAD:,.0f} if the scores stay on the chip. For four"
        f" heads an H200 moved {whole / 1e6:.0f} MB in three kernels and {kept / 1e6:.0f} MB in one."
    )


@claim("CC-40", "attention", OK, "attention-claim-flop")
def cc_40(trial: Trial) -> str:
    """FlashAttention saves traffic, not operations."""
    trial.stated("operations that it saves", "none", "none", FLASH_ATTENTION)
    kinds = [f"{kind} n=8192" for kind in ("scores mma", "softmax wide", "values mma")]
    whole, kept = moved("E-38-unfused", *kinds), moved("E-38", "flash, swizzled n=8192")
    trial.stated("times less DRAM traffic (H200)", at_least(10), whole / kept, "E-38")
    apart = sum(recorded("E-38-unfused").us(label) for label in kinds)
    gain = apart / recorded("E-38").us("flash, swizzled n=8192")
    trial.stated("times as fast", at_least(1.2), gain, "E-38")
    return (
        "Both products stay as they are; the backward pass even computes the scores again. On an H200 one"
        f" kernel moves {whole / kept:.0f} times fewer bytes than three, and is {gain:.1f} times as fast."
    )


@claim(
    "CC-47",
    "layernorm_gelu",
    NC,
    "layernorm-gelu-claim-eighteen",
    private="The kernel and its numbers are the author's.",
)
def cc_47(trial: Trial) -> str:
    """A fused GELU and layer norm had 18 % less latency with padding and float4 reads of its rows in shared
    memory."""
    pitches = (1024, 1025, 1028)
    scalar = [column(pitch) for pitch in pitches]
    wide = [or_misaligned(partial(wide_column, 4 * pitch)) for pitch in pitches]
    trial.stated("lane = row, pitch 1024: wavefronts of float, float4", (32, 32), (scalar[0], wide[0]))
    trial.stated("pitch 1025: float free, float4 illegal", (1, MISALIGNED), (scalar[1], wide[1]))
    trial.stated("pitch 1028: float4 free", 4, wide[2])
    run = recorded("E-37")
    both = run.ratio("lane = row, float4, pitch 1028, 65536 rows", "lane = row, pitch 1024, 65536 rows")
    trial.here("ours: share of the time (H200)", at_most(0.82), both, "E-37")
    along = run.ratio("lane = column, float4, 65536 rows", "lane = row, float4, pitch 1028, 65536 rows")
    return (
        f"Plausible: where each lane walks along its own row, a float4 takes {wide[0]} wavefronts at pitch"
        f" 1024 and {wide[2]} at 1028. Ours falls to {both:.0%} of its time on an H200. With lanes along the"
        f" row it needs no pad, and takes {along:.0%} of that."
    )
