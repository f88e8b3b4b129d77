"""The memory model against recorded counters, an independent oracle, its own two forms, and its laws."""

import re
from collections.abc import Callable
from math import gcd
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given

from lanewise.access import WarpAccess
from lanewise.errors import Error, InvalidAccess, Misaligned, NotModelled, UnknownInstruction
from lanewise.instructions import INSTRUCTIONS
from lanewise.memory import (
    arrays,
    bulk,
    compiled,
    global_cost,
    global_sectors,
    is_contiguous,
    shared_cost,
    shared_wavefronts,
)
from lanewise.records import counter_table
from tests.golden import GoldenTable, golden_table, golden_tables
from tests.strategies import warp_accesses

LANES = np.arange(32)
SHARED_TABLES = golden_tables("shared_wavefronts", "shared_recheck")
ATOMIC_TABLES = golden_tables("shared_atomics")
GLOBAL_TABLES = golden_tables("global_sectors", "global_recheck")
ASYNC_COPIES = counter_table("h200", "async_copies")


@pytest.fixture(params=[arrays, compiled], ids=["arrays", "compiled"])
def counters(request: pytest.FixtureRequest) -> ModuleType:
    """Each of the two modules that count in bulk; the public functions choose by the size of the batch."""
    module: ModuleType = request.param
    return module


# --- Golden rows: every recorded counter, by both bulk implementations and by the explained form.


def is_modelled(table: GoldenTable) -> bool:
    return not INSTRUCTIONS[table.instruction].not_modelled


MODELLED_TABLES = [table for table in (*SHARED_TABLES, *ATOMIC_TABLES) if is_modelled(table)]


@pytest.mark.parametrize("table", MODELLED_TABLES, ids=lambda table: table.instruction)
def test_bulk_equals_every_recorded_wavefront_and_conflict(table: GoldenTable, counters: ModuleType) -> None:
    spec = INSTRUCTIONS[table.instruction]
    wavefronts, ideal = counters.shared_wavefronts(spec, table.addresses, table.active)
    np.testing.assert_array_equal(wavefronts, table.counters["wavefronts"])
    np.testing.assert_array_equal(wavefronts - ideal, table.counters["conflicts"])


@pytest.mark.parametrize("table", MODELLED_TABLES, ids=lambda table: table.instruction)
def test_explained_cost_equals_every_recorded_wavefront_and_conflict(table: GoldenTable) -> None:
    counted = zip(table.counters["wavefronts"], table.counters["conflicts"], strict=True)
    for addresses, mask, (wavefronts, conflicts) in zip(table.addresses, table.masks, counted, strict=True):
        cost = shared_cost(WarpAccess(table.instruction, tuple(addresses.tolist()), mask))
        assert (cost.wavefronts, cost.excess) == (wavefronts, conflicts)


@pytest.mark.parametrize("table", GLOBAL_TABLES, ids=lambda table: table.instruction)
def test_every_recorded_request_and_sector(table: GoldenTable, counters: ModuleType) -> None:
    requests, sectors = counters.global_sectors(table.addresses, table.active)
    np.testing.assert_array_equal(requests, table.counters["requests"])
    np.testing.assert_array_equal(sectors, table.counters["sectors"])
    for row, mask in enumerate(table.masks):
        cost = global_cost(WarpAccess(table.instruction, tuple(table.addresses[row].tolist()), mask))
        assert (cost.requests, cost.sectors) == (requests[row], sectors[row])


@pytest.mark.parametrize("name", ["cp.async.ca.4", "cp.async.ca.8", "cp.async.ca.16"])
def test_async_copies_are_exact_for_contiguous_sources_and_refused_for_others(name: str) -> None:
    contiguous = [launch for launch in ASYNC_COPIES.of(name) if not launch.source_offsets]
    table = golden_table(tuple(contiguous))
    wavefronts, ideal = shared_wavefronts(name, table.addresses, table.active)
    np.testing.assert_array_equal(wavefronts, table.counters["wavefronts"])
    np.testing.assert_array_equal(wavefronts - ideal, table.counters["conflicts"])
    assert len(contiguous) > 90
    width = INSTRUCTIONS[name].bytes_per_lane
    for launch in ASYNC_COPIES.of(name):
        source = np.array([launch.source_offsets or width * LANES])
        active = np.array([[bool(launch.active_mask >> lane & 1) for lane in range(32)]])
        requests, sectors = global_sectors(name, source, active)
        assert (requests[0], sectors[0]) == (launch.counters["requests"], launch.counters["sectors"])
        destinations = np.array([launch.byte_offsets])
        try:
            counted, _ = shared_wavefronts(name, destinations, active, source_addresses=source)
        except NotModelled as error:
            reason = "does not start on a" if is_contiguous(source, width, active)[0] else "scattered source"
            assert reason in str(error)  # noqa: PT017
        else:
            assert counted[0] == launch.counters["wavefronts"]


def test_a_16_byte_copy_from_the_middle_of_a_line_is_refused() -> None:
    destinations = 16 * LANES[None, :]
    assert shared_wavefronts("cp.async.ca.16", destinations, source_addresses=128 + destinations)[0][0] == 4
    with pytest.raises(NotModelled, match="the source of row 0 does not start on a 128-byte line"):
        shared_wavefronts("cp.async.ca.16", destinations, source_addresses=16 + destinations)
    half_lines = 4 * LANES[None, :]
    assert shared_wavefronts("cp.async.ca.4", half_lines, source_addresses=64 + half_lines)[0][0] == 1


def test_golden_tables_are_all_there() -> None:
    """No table may shrink unnoticed: 2,932 + 1,190 shared rows, 4 of 6 atomics, 153 + 430 global rows."""
    assert sum(len(table.masks) for table in SHARED_TABLES) == 2932 + 1190
    assert sum(len(table.masks) for table in ATOMIC_TABLES if is_modelled(table)) == 4 * 69
    assert sum(len(table.masks) for table in GLOBAL_TABLES) == 153 + 430


def test_what_is_not_modelled_is_refused_with_its_counters_at_hand() -> None:
    refused = [table.instruction for table in ATOMIC_TABLES if not is_modelled(table)]
    assert refused == ["atom.shared.cas.b32", "red.shared.add.f32"]
    for table in ATOMIC_TABLES:
        if not is_modelled(table):
            with pytest.raises(NotModelled, match="no rule for the count"):
                shared_wavefronts(table.instruction, table.addresses, table.active)


# --- Differential: a slow oracle written from the rule's text, and the two bulk implementations against it.


def oracle_width(name: str) -> int:
    if "matrix" in name:
        return 16
    if name.startswith("cp.async"):
        return int(name.rsplit(".", 1)[-1])
    return int(re.search(r"\.[bu](\d+)", name)[1]) // 8  # type: ignore[index]


def oracle_wavefronts(access: WarpAccess) -> tuple[int, int]:
    """The phase rule by enumeration of (group, bank, word) triples, sharing no code with the package."""
    name = access.instruction
    n_bytes = oracle_width(name)
    words = max(1, n_bytes // 4)
    address_lanes = 8 * int(name.split(".x")[1][0]) if "matrix" in name else 32
    lanes = [lane for lane in range(address_lanes) if access.active_mask >> lane & 1]
    size = 32 // words
    if name.startswith("ld.shared") and words > 1:
        for flip in (1, 2):
            if all(access.addresses[i] == access.addresses[i ^ flip] for i in lanes if i ^ flip in lanes):
                size = 2 * 32 // words
                break
    total = 0
    groups = sorted({lane // size for lane in lanes})
    for group in groups:
        triples = [
            (access.addresses[lane] // 4 + k, lane)
            for lane in lanes
            if lane // size == group
            for k in range(words)
        ]
        counted = [word for word, _ in triples]
        if not name.startswith(("cp.async", "atom")) and not name.endswith(".reg"):
            counted = list(set(counted))
        total += max(sum(1 for word in counted if word % 32 == bank) for bank in range(32))
    return total, len(groups)


MODELLED_SHARED = sorted(
    name for name, entry in INSTRUCTIONS.items() if entry.space == "shared" and not entry.not_modelled
)
MODELLED_GLOBAL = sorted(
    name for name, entry in INSTRUCTIONS.items() if entry.touches("global") and not entry.not_modelled
)


@given(access=warp_accesses(MODELLED_SHARED))
def test_shared_implementations_agree_with_the_oracle(access: WarpAccess) -> None:
    expected = oracle_wavefronts(access)
    cost = shared_cost(access)
    assert (cost.wavefronts, cost.ideal) == expected
    spec = INSTRUCTIONS[access.instruction]
    for module in (arrays, compiled):
        counted = module.shared_wavefronts(spec, access.byte_addresses[None, :], access.active[None, :])
        assert _only_row(counted) == expected, module.__name__


@given(access=warp_accesses(MODELLED_GLOBAL))
def test_global_implementations_agree_with_the_set_of_sectors(access: WarpAccess) -> None:
    sectors = {access.addresses[lane] // 32 for lane in access.lanes}
    expected = (int(bool(sectors)), len(sectors))
    cost = global_cost(access)
    assert (cost.requests, cost.sectors) == expected
    assert cost.lines == len({access.addresses[lane] // 128 for lane in access.lanes})
    for module in (arrays, compiled):
        counted = module.global_sectors(access.byte_addresses[None, :], access.active[None, :])
        assert _only_row(counted) == expected, module.__name__


def _only_row(counted: tuple[np.ndarray, np.ndarray]) -> tuple[int, int]:
    first, second = counted
    return first.item(), second.item()


def test_large_batches_equal_small_ones() -> None:
    """The batch that is large enough for compiled loops gives what its rows give one by one."""
    rng = np.random.default_rng(7)
    addresses = 8 * rng.integers(0, 512, (bulk.COMPILE_FROM_ROWS, 32))
    active = rng.random(addresses.shape) < 0.8
    for start in range(0, len(addresses), 2000):
        rows = slice(start, start + 2000)
        for whole, part in zip(
            shared_wavefronts("ld.shared.b64", addresses, active),
            shared_wavefronts("ld.shared.b64", addresses[rows], active[rows]),
            strict=True,
        ):
            np.testing.assert_array_equal(whole[rows], part)


# --- Laws.


@pytest.mark.parametrize("stride", range(1, 65))
def test_gcd_law(stride: int) -> None:
    """A full warp of 32-bit accesses with a word stride takes gcd(stride, 32) wavefronts (claim CB-04)."""
    wavefronts, _ = shared_wavefronts("ld.shared.b32", 4 * stride * LANES[None, :])
    assert wavefronts[0] == gcd(stride, 32)


@given(access=warp_accesses(MODELLED_SHARED))
def test_moving_the_base_by_whole_rows_of_banks_changes_nothing(access: WarpAccess) -> None:
    moved = tuple(address + 128 for address in access.addresses)
    assert shared_cost(WarpAccess(access.instruction, moved, access.active_mask)).wavefronts == (
        shared_cost(access).wavefronts
    )


@given(access=warp_accesses(MODELLED_SHARED))
def test_replay_serves_every_lane_once_per_word_and_no_bank_twice_in_a_wavefront(access: WarpAccess) -> None:
    cost = shared_cost(access)
    assert len(cost.replay) == cost.wavefronts
    served = []
    for wavefront in cost.replay:
        banks = [word % 32 for word in wavefront.lanes_by_word]
        assert len(banks) == len(set(banks)) > 0
        served += [(word, lane) for word, lanes in wavefront.lanes_by_word.items() for lane in lanes]
    needed = [
        (word, lane) for phase in cost.phases for word, lanes in phase.lanes_by_word.items() for lane in lanes
    ]
    assert sorted(served) == sorted(needed)


@given(access=warp_accesses(MODELLED_SHARED))
def test_cost_lies_between_ideal_and_one_wavefront_per_lane_and_phase(access: WarpAccess) -> None:
    cost = shared_cost(access)
    assert cost.ideal <= cost.wavefronts <= sum(len(phase.lanes) for phase in cost.phases)
    assert cost.excess == cost.wavefronts - cost.ideal


@given(access=warp_accesses(MODELLED_GLOBAL))
def test_moved_bytes_cover_requested_bytes(access: WarpAccess) -> None:
    cost = global_cost(access)
    assert cost.bytes_requested <= cost.bytes_moved
    assert 0 <= cost.efficiency <= 1


def test_no_active_lane_costs_nothing() -> None:
    nobody = np.zeros((1, 32), bool)
    addresses: np.ndarray = 128 * LANES[None, :]
    assert [int(count[0]) for count in shared_wavefronts("ld.shared.b32", addresses, nobody)] == [0, 0]
    assert [int(count[0]) for count in global_sectors("ld.global.b32", addresses, nobody)] == [0, 0]
    assert shared_cost(WarpAccess("ld.shared.b128", (0,) * 32, 0)).wavefronts == 0
    assert global_cost(WarpAccess("st.global.b32", (0,) * 32, 0)).requests == 0


def test_no_access_at_all_gives_empty_counts(counters: ModuleType) -> None:
    nothing = np.zeros((0, 32), int)
    for count in (
        *shared_wavefronts("ld.shared.b32", nothing),
        *counters.shared_wavefronts(INSTRUCTIONS["ld.shared.b32"], nothing),
        *global_sectors("ld.global.b32", nothing),
        *counters.global_sectors(nothing),
    ):
        assert count.shape == (0,)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.int16])
def test_any_integer_type_and_memory_order_will_do(dtype: type) -> None:
    addresses: np.ndarray = np.asfortranarray(np.stack([4 * LANES, 128 * LANES]).astype(dtype))
    np.testing.assert_array_equal(shared_wavefronts("ld.shared.b32", addresses)[0], [1, 32])


# --- Worked cases from the field and the articles (wavefronts, ideal).

WORKED = {
    "contiguous float4 (CA-06)": ("ld.shared.b128", 16 * LANES, 4, 4),
    "float4, all lanes on the same four banks (CA-06)": ("ld.shared.b128", 128 * LANES, 32, 4),
    "float4 broadcast load fuses (K-bk-9)": ("ld.shared.b128", 0 * LANES, 2, 2),
    "float4 broadcast store does not (K-bk-9)": ("st.shared.b128", 0 * LANES, 4, 4),
    "float4 in lane pairs fuses (K-bk-10)": ("ld.shared.b128", 16 * (LANES // 2), 2, 2),
    "float2 in lane pairs fuses (K-bk-10)": ("ld.shared.b64", 8 * (LANES // 2), 1, 1),
    "float4, four addresses in turn (C12)": ("ld.shared.b128", 16 * (LANES % 4), 4, 4),
    "float4, re-paired lanes (C12)": ("ld.shared.b128", 16 * (LANES // 2 % 4), 2, 2),
    "float64 column of an unpadded tile (C04)": ("st.shared.b64", 256 * LANES, 32, 2),
    "float64 column with one column of padding (C04)": ("st.shared.b64", 264 * LANES, 2, 2),
    "one word and its neighbour, s[lane & 1] (CA-12)": ("ld.shared.b32", 4 * (LANES & 1), 1, 1),
    "31 lanes on word 0, one on word 32 (CA-12)": ("ld.shared.b32", np.where(LANES == 31, 128, 0), 2, 1),
    "bytes at stride 4 (CB-04)": ("ld.shared.b8", 4 * LANES, 1, 1),
    "halves at stride 4 (CA-14)": ("ld.shared.b16", 8 * LANES, 2, 1),
    "ldmatrix.x4, rows of 64 bytes (K-tc-2)": ("ldmatrix.x4", 64 * (LANES % 16) + 16 * (LANES // 16), 16, 4),
    "ldmatrix.x1 of a 128-byte pitch (CA-35)": ("ldmatrix.x1", 128 * (LANES % 8), 8, 1),
    "4-byte async copy, one word for all lanes (K-as-8)": ("cp.async.ca.4", 0 * LANES, 32, 1),
    "8-byte async copy, contiguous (K-as-8)": ("cp.async.ca.8", 8 * LANES, 2, 2),
}


@pytest.mark.parametrize("case", WORKED)
def test_worked_case(case: str, counters: ModuleType) -> None:
    name, addresses, wavefronts, ideal = WORKED[case]
    assert _only_row(shared_wavefronts(name, addresses[None, :])) == (wavefronts, ideal)
    assert _only_row(counters.shared_wavefronts(INSTRUCTIONS[name], addresses[None, :])) == (
        wavefronts,
        ideal,
    )
    cost = shared_cost(WarpAccess(name, tuple(addresses.tolist())))
    assert (cost.wavefronts, cost.ideal) == (wavefronts, ideal)


@pytest.mark.parametrize(
    ("name", "addresses", "sectors"),
    [
        ("ld.global.b32", 4 * LANES, 4),
        ("ld.global.b64", 8 * LANES, 8),
        ("ld.global.b128", 16 * LANES, 16),
        ("ld.global.b32", 4 + 4 * LANES, 5),
        ("ld.global.b64", 8 + 8 * LANES, 9),
        ("ld.global.b128", 16 + 16 * LANES, 17),
        ("ld.global.b32", 256 * LANES, 32),
        ("st.global.b32", 12 * LANES, 12),
        ("ld.global.b32", 4 * LANES[::-1], 4),
        ("ld.global.b32", 0 * LANES, 1),
    ],
)
def test_worked_sectors(name: str, addresses: np.ndarray, sectors: int, counters: ModuleType) -> None:
    assert _only_row(global_sectors(name, addresses[None, :])) == (1, sectors)
    assert _only_row(counters.global_sectors(addresses[None, :])) == (1, sectors)


# --- The sentences.


@pytest.mark.parametrize(
    ("name", "addresses", "sentence"),
    [
        (
            "ld.shared.b32",
            128 * LANES,
            "ld.shared.b32: 32 wavefronts where 1 would do: lanes 0..31 need 32 different words of bank 0.",
        ),
        ("ld.shared.b32", 4 * LANES, "ld.shared.b32: 1 wavefront, the fewest possible."),
        (
            "ld.shared.b32",
            0 * LANES,
            "ld.shared.b32: 1 wavefront, the fewest possible. 1 word served to several lanes at once, at no cost.",
        ),
        (
            "st.shared.b128",
            16 * LANES,
            "st.shared.b128: 4 wavefronts, the fewest possible (4 groups of lanes: 0..7; 8..15; 16..23; 24..31).",
        ),
        (
            "ld.shared.b64",
            8 * (LANES // 2),
            "ld.shared.b64: 1 wavefront, the fewest possible (lanes share addresses in pairs, so both halves are"
            " served together). 32 words served to several lanes at once, at no cost.",
        ),
        (
            "cp.async.ca.4",
            4 * (LANES // 2),
            "cp.async.ca.4: 2 wavefronts where 1 would do: lanes 0, 1 need 2 words, each lane's own even where"
            " words are equal, of bank 0.",
        ),
    ],
)
def test_sentence(name: str, addresses: np.ndarray, sentence: str) -> None:
    assert str(shared_cost(WarpAccess(name, tuple(addresses.tolist())))) == sentence


def test_sentence_of_an_idle_instruction() -> None:
    assert str(shared_cost(WarpAccess("ld.shared.b32", (0,) * 32, 0))) == (
        "ld.shared.b32: no active lane, no wavefront."
    )
    assert str(global_cost(WarpAccess("ld.global.b32", (0,) * 32, 0))) == (
        "ld.global.b32: no active lane, no request."
    )


# --- Bad input: what came in, what is allowed, the next step.


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [
        (InvalidAccess, lambda: shared_wavefronts("ld.shared.b32", LANES * 4), r"shape \(32,\).*addresses\[None, :\]"),
        (InvalidAccess, lambda: shared_wavefronts("ld.shared.b32", np.zeros((2, 31), int)), r"shape \(2, 31\)"),
        (InvalidAccess, lambda: shared_wavefronts("ld.shared.b32", LANES[None, :] * 4.0), "dtype float64; give integers"),
        (InvalidAccess, lambda: shared_wavefronts("ld.shared.b32", LANES[None, :] > 3), "dtype bool"),
        (InvalidAccess, lambda: shared_wavefronts("ld.shared.b32", 4 * LANES[None, :] - 8), "row 0, lane 0 has byte address -8"),
        (Misaligned, lambda: shared_wavefronts("ld.shared.b128", 132 * LANES[None, :]), r"row 0, lane 1 has byte address 132, 4 past a multiple of 16"),
        (Misaligned, lambda: shared_wavefronts("ldmatrix.x4", 68 * LANES[None, :]), "row 0, lane 1 has byte address 68, 4 past a multiple of 16"),
        (InvalidAccess, lambda: shared_wavefronts("ld.shared.b32", 4 * LANES[None, :], np.ones((1, 32))), "dtype float64; it must be bool"),
        (InvalidAccess, lambda: shared_wavefronts("ld.shared.b32", 4 * LANES[None, :], np.ones((2, 32), bool)), r"shape \(2, 32\)"),
        (InvalidAccess, lambda: shared_wavefronts("ldmatrix.x2", 16 * LANES[None, :], LANES[None, :] != 9), "row 0, lane 9 is inactive"),
        (InvalidAccess, lambda: shared_wavefronts("ld.shared.b32", [[0] * 32, [0] * 31]), "byte_addresses: got rows of different lengths"),  # type: ignore[arg-type]
        (InvalidAccess, lambda: shared_wavefronts("cp.async.ca.4", 4 * LANES[None, :], source_addresses=4 * LANES[None, :][[0, 0]]), r"source_addresses of shape \(2, 32\) for byte_addresses of shape \(1, 32\)"),
        (Misaligned, lambda: shared_wavefronts("cp.async.ca.4", 4 * LANES[None, :], source_addresses=1 + 4 * LANES[None, :]), "source of row 0, lane 0 has byte address 1, 1 past a multiple of 4"),
        (InvalidAccess, lambda: is_contiguous(4.0 * LANES[None, :], 4), "is_contiguous: got byte_addresses of dtype float64"),
        (InvalidAccess, lambda: is_contiguous(np.zeros((2, 2, 32), int), 4), r"shape \(2, 2, 32\)"),
        (InvalidAccess, lambda: is_contiguous(4 * LANES[None, :], 0), "bytes_per_lane: got 0; give a whole number of 1 or more"),
        (InvalidAccess, lambda: is_contiguous(4 * LANES[None, :], 4, np.ones((1, 32))), "it must be bool"),
        (InvalidAccess, lambda: shared_cost(4 * LANES), "a cost is that of one WarpAccess. Build one"),  # type: ignore[arg-type]
        (InvalidAccess, lambda: global_cost(None), "got None; a cost is that of one WarpAccess"),  # type: ignore[arg-type]
        (InvalidAccess, lambda: global_sectors("ld.global.b32", np.full((1, 32), 2**64 - 4, np.uint64)), "exceeds 63 bits"),
        (UnknownInstruction, lambda: shared_wavefronts("lds.32", 4 * LANES[None, :]), r"'lds\.32' is not a shared-memory instruction.*Did you mean"),
        (UnknownInstruction, lambda: shared_wavefronts("ld.global.b32", 4 * LANES[None, :]), "not a shared-memory instruction"),
        (UnknownInstruction, lambda: global_sectors("ld.shared.b32", 4 * LANES[None, :]), "not a global-memory instruction"),
        (NotModelled, lambda: shared_wavefronts("cp.async.cg.16", 16 * LANES[None, :]), "counters show nothing"),
        (NotModelled, lambda: shared_cost(WarpAccess("cp.async.cg.16", tuple((16 * LANES).tolist()))), "counters show nothing"),
        (NotModelled, lambda: global_sectors("red.global.add.u32", 4 * LANES[None, :]), "counted separately"),
        (NotModelled, lambda: shared_wavefronts("cp.async.ca.4", 4 * LANES[None, :], source_addresses=8 * LANES[None, :]), "row 0 copies from a scattered source"),
        (InvalidAccess, lambda: shared_wavefronts("ld.shared.b32", 4 * LANES[None, :], source_addresses=4 * LANES[None, :]), "only cp.async has a source"),
    ],
)  # fmt: skip
def test_bad_input(error: type[Error], call: Callable, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_addresses_that_do_not_count_may_be_anything() -> None:
    """Inactive lanes, and the lanes beyond ldmatrix's row addresses, carry leftovers on real hardware too (C16)."""
    leftovers = np.where(LANES < 16, 16 * LANES, -3)[None, :]
    assert shared_wavefronts("ldmatrix.x2", leftovers)[0][0] == 2
    assert shared_wavefronts("ld.shared.b128", leftovers, LANES[None, :] < 16)[0][0] == 2


def test_async_copy_from_a_contiguous_source_is_counted() -> None:
    destinations = 4 * LANES[None, :]
    wavefronts, _ = shared_wavefronts("cp.async.ca.4", destinations, source_addresses=4096 + destinations)
    assert wavefronts[0] == 1


def test_contiguity_ignores_inactive_lanes_and_any_base() -> None:
    rows = np.stack([4 * LANES, 512 + 4 * LANES, 8 * LANES, np.where(LANES == 5, 0, 4 * LANES)])
    np.testing.assert_array_equal(is_contiguous(rows, 4), [True, True, False, False])
    without_lane_5 = np.broadcast_to(LANES != 5, rows.shape)
    np.testing.assert_array_equal(is_contiguous(rows, 4, without_lane_5), [True, True, False, True])
    nobody = np.zeros(rows.shape, bool)
    assert is_contiguous(rows, 4, nobody).all()


def test_counting_does_not_change_its_input() -> None:
    addresses = np.stack([128 * LANES[::-1], 4 * LANES])
    before = addresses.copy()
    shared_wavefronts("ld.shared.b32", addresses)
    global_sectors("ld.global.b32", addresses)
    np.testing.assert_array_equal(addresses, before)


def test_efficiency_is_not_rounded_away() -> None:
    access = WarpAccess.from_formula("ld.global.b32", lambda lane: 256 * lane)
    assert "128 of 1024 bytes are used (12.5%)" in str(global_cost(access))
