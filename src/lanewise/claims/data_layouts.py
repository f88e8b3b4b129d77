"""Claims about data layouts: structures, permuted tensors, image formats, key-value caches."""

import numpy as np

from lanewise.claims.claim import Run, Trial, Verdict, about, at_least, at_most, claim
from lanewise.claims.documents import PAGED_ATTENTION, PYTORCH_FORMATS, TENSOR_FORMATS, TENSORFLOW_CONV
from lanewise.claims.evidence import recorded, sectors, traced
from lanewise.memory import GlobalCost

OK, WRONG, IMPRECISE, HW = Verdict.OK, Verdict.WRONG, Verdict.IMPRECISE, Verdict.HW

LOAD = "ld.global.b32"
CHANNELS, PIXELS = 64, 56 * 56
RECORDS = "double 16777216 records of 4"
ARRAYS = "double 4 arrays of 16777216"


def apart(n_bytes: int, start: int = 0) -> GlobalCost:
    """Lanes that read 4 bytes each, so many bytes apart."""
    return sectors(LOAD, lambda lane: start + n_bytes * lane)


def each(id: str, label: str, op: str = "load") -> float:
    """Sectors a request in a traced case."""
    totals = getattr(traced(id, label).global_, op)
    return float(totals.sectors / totals.requests)


@claim("CC-32", "coalescing", WRONG, "coalescing-triples")
def cc_32(trial: Trial) -> str:
    """Records of 12 bytes are slow because their fields are aligned to 12 bytes, so that reads cross
    sectors."""
    fields = [12 * record + 4 * field for record in range(64) for field in range(3)]
    trial.stated("all fields lie at multiples of 12", True, all(place % 12 == 0 for place in fields))
    crossing = sum(place // 32 != (place + 3) // 32 for place in fields)
    trial.stated("fields, of 192, that cross a sector", at_least(1), crossing)
    one = recorded("E-26")
    label = "scale_one_field of 3"
    counts = one.counter(label, "global_load_sectors") / one.counter(label, "global_load_requests")
    assert apart(12).sectors == counts
    late = apart(12, start=12).sectors
    return (
        f"Fields are aligned to 4 bytes, and no aligned read of 4 bytes ever crosses a sector ({crossing} of"
        f" {len(fields)}). The stride is what costs: {apart(12).sectors} sectors for one field"
        f" ({apart(12).efficiency:.0%} used), {late} if the first record starts late in a sector."
    )


@claim("CC-34", "layouts_in_ai", OK, "layouts-in-ai-claim-contiguous")
def cc_34(trial: Trial) -> str:
    """permute() changes strides only; a forgotten contiguous() made a kernel 3 times slower."""
    array = np.zeros((8, 32), np.float32)
    trial.stated("a transposed view shares its memory", True, np.shares_memory(array, array.T))
    trial.stated(
        "sectors a load through the view", at_least(5), each("E-29", "view"), Run("trace of `scale_view`")
    )
    trial.stated(
        "and through a contiguous array", 4.0, each("E-29", "contiguous"), Run("trace of `scale_view`")
    )
    run = recorded("E-29")
    slow = trial.stated(
        "view against contiguous: times as long", at_least(1.2), run.ratio("view", "contiguous"), "E-29"
    )
    stored = recorded("E-04").ratio("naive 8192", "copy 8192")
    copied = (run.us("copy of the view") + run.us("contiguous")) / run.us("view")
    return (
        f"The factor is that kernel's. On an H200 a permuted source costs ours {slow:.2f} times the time, a"
        f" permuted destination {stored:.1f} times. A copy pays from the second"
        f" reading on: copy and one reading take {copied:.1f} times as long as one reading of the view."
    )


@claim("CC-35", "layouts_in_ai", WRONG, "layouts-in-ai-claim-nhwc")
def cc_35(trial: Trial) -> str:
    """In NHWC adjacent pixels are adjacent in memory, which is better for kernels."""
    image = np.zeros((2, 56, 56, CHANNELS), np.float32)
    trial.stated("NHWC: bytes from a pixel to the next", 4, image.strides[2])
    better = each("E-28", "NHWC by_pixel float32") < each("E-28", "NCHW by_pixel float32")
    trial.stated("lane = pixel: NHWC needs fewer sectors", True, better, Run("traces of `by_pixel`"))
    run = recorded("E-28")
    cells = {
        (layout, lane): each("E-28", f"{layout} {lane} float32")
        for layout in ("NCHW", "NHWC")
        for lane in ("by_pixel", "by_channel")
    }
    slow = run.ratio("NHWC by_pixel float32", "NHWC by_channel float32")
    return (
        f"Adjacent channels are adjacent there; the next pixel lies {image.strides[2]} bytes on. Lane = pixel"
        f" takes {cells['NCHW', 'by_pixel']:.0f} sectors in NCHW and {cells['NHWC', 'by_pixel']:.0f} in NHWC,"
        f" lane = channel {cells['NCHW', 'by_channel']:.0f} and {cells['NHWC', 'by_channel']:.0f}. Neither is"
        f" better; the wrong pair takes {slow:.1f} times the time on an H200."
    )


@claim("CC-36", "layouts_in_ai", OK, "layouts-in-ai-claim-defaults")
def cc_36(trial: Trial) -> str:
    """PyTorch uses NCHW by default, TensorFlow NHWC."""
    trial.stated("default of PyTorch", "NCHW", "NCHW", PYTORCH_FORMATS)
    trial.stated("default of TensorFlow", "NHWC", "NHWC", TENSORFLOW_CONV)
    first, last = (np.zeros(shape, np.float32).strides for shape in ((2, 64, 56, 56), (2, 56, 56, 64)))
    return (
        "So their documentation says. From a pixel to the next it is"
        f" {first[3]} bytes in one and {last[2]} in the other, with {CHANNELS} channels."
    )


@claim("CC-37", "layouts_in_ai", IMPRECISE, "layouts-in-ai-claim-defaults")
def cc_37(trial: Trial) -> str:
    """Inference engines convert layouts, to formats such as NHWC1."""
    trial.stated("engines convert layouts", True, True, TENSOR_FORMATS)
    names = ("NHWC", "NHWC8", "NCHW32", "NC/32HW32", "NC1HWC0")
    trial.wider("NHWC1 is among the blocked formats in use", True, "NHWC1" in names, TENSOR_FORMATS)
    return "They do. But no common format has that name; perhaps NC1HWC0 was meant, or NC/32HW32."


@claim("CC-38", "layouts_in_ai", OK, "layouts-in-ai-claim-channels")
def cc_38(trial: Trial) -> str:
    """In NCHW, several channels of one pixel lie height x width apart."""
    image = np.zeros((2, CHANNELS, 56, 56), np.float32)
    trial.stated("elements from a channel to the next", PIXELS, image.strides[1] // 4)
    found = trial.stated("sectors, lane = channel", 32, apart(image.strides[1]).sectors)
    trial.stated(
        "the same, traced", 32.0, each("E-28", "NCHW by_channel float32"), Run("trace of `by_channel`")
    )
    return f"{image.strides[1]:,} bytes for 56 x 56 pixels, so a sector for each lane: {found}."


@claim("CC-51", "coalescing", OK, "coalescing-claim-channel")
def cc_51(trial: Trial) -> str:
    """Walking a [batch, channel, height, width] tensor by channel is scattered, like a column of a matrix."""
    walk = apart(4 * PIXELS)
    trial.stated("sectors, lanes along the channels", 32, walk.sectors)
    trial.stated(
        "sectors, lanes down a column", 32.0, each("E-21", "columns"), Run("trace of `scale_columns`")
    )
    run = recorded("E-28")
    slow = run.ratio("NCHW by_channel float32", "NCHW by_pixel float32")
    trial.stated("times as long as along the pixels", at_least(2), slow, "E-28")
    return (
        f"Lanes are {4 * PIXELS:,} bytes apart: {walk.sectors} sectors, and {slow:.1f} times the time on an"
        " H200."
    )


@claim("CC-50", "coalescing", HW, "coalescing-columns")
def cc_50(trial: Trial) -> str:
    """Putting the loops of a fused operator into the order of memory nearly halved its latency."""
    run = recorded("E-30")
    for label in ("16x16", "32x32"):
        gain = run.ratio(f"exchanged, {label}", label, "sgemm 2048x2048x2048")
        trial.here(f"a product, indices exchanged, {label}: times as long", about(2, 0.2), gain, "E-30")
    halved = recorded("E-21").ratio("stride 2", "stride 1")
    trial.here("half of each sector used: times as long", about(2, 0.2), halved, "E-21")
    view = recorded("E-29").ratio("view", "contiguous")
    return (
        f"The operator is the author's. Ours gain {halved:.2f} times by strides of 1 for 2, {view:.2f} by a"
        " view made contiguous, and a naive product"
        f" {run.ratio('exchanged, 16x16', '16x16', 'sgemm 2048x2048x2048'):.2f} to"
        f" {run.ratio('exchanged, 32x32', '32x32', 'sgemm 2048x2048x2048'):.2f} by its indices, on an H200."
    )


@claim("CC-41", "layouts_in_ai", IMPRECISE, "layouts-in-ai-claim-fragmented")
def cc_41(trial: Trial) -> str:
    """A key-value cache that grows by allocation is slow to allocate, and its scattered pieces lower the hit
    rates of L2 and TLB."""
    trial.stated("growing piece by piece wastes memory", True, True, PAGED_ATTENTION)
    run = recorded("E-39")
    rates = {kind: run.profile(f"{kind}, 4096 tokens")["l2_hit_rate"] for kind in ("pages", "shuffled pages")}
    lower = rates["pages"] - rates["shuffled pages"]
    trial.wider("hit rate of L2 lost by shuffling the pages", at_least(0.01), lower, "E-39")
    slower = run.ratio("shuffled pages, 65536 tokens", "pages, 65536 tokens")
    trial.wider("times as long, 65,536 tokens, shuffled", at_least(1.05), slower, "E-39")
    return (
        f"Allocation is a real cost. But pages of whole sectors may lie anywhere: {rates['pages']:.1%} and"
        f" {rates['shuffled pages']:.1%} hits in L2 on an H200, ordered and shuffled, and {slower:.3f} times"
        " the time. A TLB can suffer when pages are far apart in a larger memory than ours."
    )


@claim("CC-42", "layouts_in_ai", OK, "layouts-in-ai-claim-paging")
def cc_42(trial: Trial) -> str:
    """Fixed pages and a page table solve the growth of the cache: token t is at table[t / 16] * 16 +
    t % 16."""
    table = np.random.default_rng(0).permutation(64)
    tokens = np.arange(64 * 16)
    places = table[tokens // 16] * 16 + tokens % 16
    trial.stated("places, each used once", 64 * 16, len(set(places.tolist())), PAGED_ATTENTION)
    rows = traced("E-39", "rows, 256 tokens").global_
    paged = traced("E-39", "shuffled pages, 256 tokens").global_
    run = Run("traces of `gather_rows`, `gather_pages`")
    cache = [sum(s.sectors for s in found.load.sites if s.array == "cache") for found in (rows, paged)]
    trial.stated("sectors of the cache read through shuffled pages", cache[0], cache[1], run)
    cost = recorded("E-39").ratio("shuffled pages, 65536 tokens", "rows, 65536 tokens")
    trial.stated("times as long as contiguous rows", at_most(1.1), cost, "E-39")
    lanes = recorded("E-39").ratio("lanes, 65536 tokens", "rows, 65536 tokens")
    return (
        f"The table costs {cost - 1:.0%} of the time on an H200, and not a sector of the cache: a token's"
        f" row is 256 bytes in one piece. What does cost is a lane for each token, {lanes:.1f} times the"
        " time, paged or not."
    )


@claim("CD-10", "coalescing", IMPRECISE, "coalescing-claim-aos")
def cd_10(trial: Trial) -> str:
    """An array of structures is as fast as a structure of arrays if all fields are used, because accesses are
    still coalesced."""
    trial.stated("922.31 against 912.82 GB/s (RTX 4090)", about(1, 0.02), 922.31 / 912.82)
    run = Run("traces of `scale_fields`, `scale_arrays`")
    load = trial.wider(
        "sectors a load of a field", each("E-25", "scale_arrays"), each("E-25", "scale_fields"), run
    )
    records = recorded("E-25")
    fields, vectors, arrays = (
        records.us(f"scale_{kind}", problem)
        for kind, problem in (("fields", RECORDS), ("vectors", RECORDS), ("arrays", ARRAYS))
    )
    trial.here("times as long as a structure of arrays (H200)", about(1, 0.05), fields / arrays, "E-25")
    moved = {
        kind: records.profile(f"scale_{kind}", problem)["dram_read_bytes"]
        for kind, problem in (("fields", RECORDS), ("arrays", ARRAYS))
    }
    assert about(1, 0.01).admits(moved["fields"] / moved["arrays"])
    return (
        f"Each field is a load of its own, of {load:.0f} sectors, a quarter used. L1 keeps the rest, so DRAM"
        " moves the same bytes; if DRAM is the limit the times are equal. On an H200 it is not: field by"
        f" field takes {fields / arrays:.2f} times as long. A float4 per record beats both: it takes"
        f" {vectors / arrays:.2f} of that time."
    )


@claim("CD-11", "coalescing", IMPRECISE, "coalescing-claim-sizes")
def cd_11(trial: Trial) -> str:
    """The experiment with structures moves 256 MB in total."""
    mib = 4 * 4 * 16_777_216 / 2**20
    trial.stated("MiB of four arrays", 256.0, mib)
    moved = trial.wider(
        "MiB read and written, from rate and time", about(256, 0.02), 922.31 * 0.582e6 / 2**20
    )
    return f"{mib:.0f} MiB in each direction: rate times time makes {moved:.0f}."


@claim("CD-13", "coalescing", OK, "coalescing-structures")
def cd_13(trial: Trial) -> str:
    """An array of structures is slow if only some fields are used."""
    run = Run("traces of `scale_one_field`, `scale_one_array`")
    trial.stated("sectors a load, one field of records", 16.0, each("E-25", "scale_one_field"), run)
    trial.stated("sectors a load, one array", 4.0, each("E-25", "scale_one_array"), run)
    records = recorded("E-25")
    problems = ("double one field of 67108864x4", "double one field of 4x67108864")
    slow = records.us("scale_one_field", problems[0]) / records.us("scale_one_array", problems[1])
    trial.stated("times as long (H200)", at_least(1.2), slow, "E-25")
    return f"Three quarters of each sector are for nothing. On an H200 it takes {slow:.2f} times the time."
