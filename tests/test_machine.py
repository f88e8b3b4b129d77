"""Machine constants, instruction availability and occupancy.

Occupancy is compared row by row with NVIDIA's own calculator (`tests/data/vendor_occupancy.csv`).
"""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanewise
from lanewise.errors import InvalidLaunch, UnknownInstruction, UnknownMachine
from lanewise.instructions import INSTRUCTIONS
from lanewise.machine import AVAILABILITY, MACHINES, Machine, from_name, occupancy

DATA = Path(__file__).with_name("data")
RECORDED = Path(lanewise.__file__).with_name("recorded")
VENDOR_ROWS = list(csv.DictReader((DATA / "vendor_occupancy.csv").read_text().splitlines()))
machines = st.sampled_from(list(MACHINES.values()))


def blocks_that_fit(machine: Machine, threads: int, registers: int, shared: int) -> int:
    """Resident blocks, and 0 where the launch is refused."""
    try:
        return occupancy(machine, threads, registers, shared).blocks_per_sm
    except InvalidLaunch:
        return 0


# --- names --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["sm_90", "sm_90a", "SM_90", "9.0", "90", "compute_90", "compute_90a", (9, 0), from_name("sm_90")]
)
def test_every_spelling_of_a_machine_is_one_object(name):
    assert from_name(name) is MACHINES["sm_90"]


@pytest.mark.parametrize("machine", MACHINES.values(), ids=str)
def test_a_machine_is_found_by_its_name_and_its_capability(machine):
    major, minor = machine.capability
    assert from_name(str(machine)) is machine
    assert from_name(machine.capability) is machine
    assert from_name(f"{major}.{minor}") is machine


@pytest.mark.parametrize("name", ["sm_91", "9.1", (9, 1)])
def test_a_near_miss_names_the_nearest_machine(name):
    with pytest.raises(UnknownMachine) as caught:
        from_name(name)
    assert str(caught.value) == (
        f"{name!r} is not a machine of the model. The nearest is sm_90. Use one of sm_75, sm_80, sm_86,"
        ' sm_89, sm_90, sm_100, sm_120, or a compute capability such as "9.0" or (9, 0).'
    )


@pytest.mark.parametrize("name", ["H100", "", None, 9, (9,), ("sm", 90), "sm_90x"])
def test_what_is_no_machine_is_refused(name):
    with pytest.raises(UnknownMachine, match="is not a machine of the model"):
        from_name(name)


# --- constants ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", MACHINES.values(), ids=str)
def test_every_number_has_a_unit_and_a_source(machine):
    facts = {fact.name: fact for fact in machine.facts()}
    numbers = {name for name in Machine.__slots__ if isinstance(getattr(machine, name), int)}
    assert set(facts) == numbers
    assert all(fact.unit and fact.source for fact in facts.values())
    assert str(facts["banks"]).startswith("banks = 32 banks (CUDA Programming Guide")


@pytest.mark.parametrize("machine", MACHINES.values(), ids=str)
def test_constants_of_one_machine_agree_with_each_other(machine):
    assert machine.max_warps_per_sm * machine.warp_lanes == machine.max_threads_per_sm
    assert machine.banks * machine.bank_bytes == machine.line_bytes == 4 * machine.sector_bytes
    assert machine.static_shared_bytes_per_block <= machine.max_shared_bytes_per_block
    # The largest block and what is reserved beside it fill the SM exactly.
    largest = machine.max_shared_bytes_per_block + machine.reserved_shared_bytes_per_block
    assert largest == machine.shared_bytes_per_sm
    assert machine.shared_bytes_per_sm % machine.shared_allocation_bytes == 0


def test_numbers_a_reader_would_look_up():
    table = {
        # CUDA Programming Guide 13, 5.1.3: threads and blocks per SM, shared KB per SM and per block.
        "sm_75": (1024, 16, 64, 64),
        "sm_80": (2048, 32, 164, 163),
        "sm_86": (1536, 16, 100, 99),
        "sm_89": (1536, 24, 100, 99),
        "sm_90": (2048, 32, 228, 227),
        "sm_100": (2048, 32, 228, 227),
        "sm_120": (1536, 24, 100, 99),
    }
    assert {
        name: (
            machine.max_threads_per_sm,
            machine.max_blocks_per_sm,
            machine.shared_bytes_per_sm // 1024,
            machine.max_shared_bytes_per_block // 1024,
        )
        for name, machine in MACHINES.items()
    } == table


def test_the_driver_of_an_h200_states_the_same_limits():
    limits = json.loads((RECORDED / "h200" / "machine.json").read_text())["limits"]
    machine = from_name(tuple(limits["capability"]))
    stated = {fact.name: fact.value for fact in machine.facts()}
    both = stated.keys() & limits.keys()
    assert len(both) == 10
    assert {name: stated[name] for name in both} == {name: limits[name] for name in both}
    for launch in limits["blocks_per_sm"]:
        ours = occupancy(machine, launch["threads"], limits["registers_per_thread"], launch["shared_bytes"])
        assert (launch, ours.blocks_per_sm) == (launch, launch["blocks"])


def test_a_machine_cannot_be_changed():
    with pytest.raises(AttributeError):
        from_name("sm_90").banks = 16  # type: ignore[misc]
    with pytest.raises(TypeError):
        MACHINES["sm_90"] = None  # type: ignore[index]


# --- instructions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "having"),
    [
        ("ld.shared.b128", "75 80 86 89 90 100 120"),
        ("ldmatrix.x4.trans", "75 80 86 89 90 100 120"),
        ("stmatrix.x1", "90 100 120"),
        ("cp.async.cg.16", "80 86 89 90 100 120"),
        ("cp.async.bulk.tensor.2d", "90 100 120"),
        ("TMA", "90 100 120"),
        ("mbarrier", "80 86 89 90 100 120"),
        ("mbarrier.try_wait.parity", "90 100 120"),
        ("mma.m16n8k8", "75 80 86 89 90 100 120"),
        ("mma.m16n8k8.bf16", "80 86 89 90 100 120"),
        ("mma.m16n8k16", "80 86 89 90 100 120"),
        ("mma.m16n8k32.e4m3", "89 90 100 120"),
        ("mma", "75 80 86 89 90 100 120"),
        ("wgmma.mma_async", "90"),
        ("tcgen05.mma", "100"),
        ("ld.global.b256", "100 120"),
    ],
)
def test_where_an_instruction_exists(name, having):
    assert [m.name for m in MACHINES.values() if m.supports(name)] == [f"sm_{n}" for n in having.split()]


def test_every_instruction_of_the_model_is_answered_for():
    turing, hopper = from_name("sm_75"), from_name("sm_90")
    assert all(hopper.supports(name) for name in INSTRUCTIONS)
    missing = {name.split(".x")[0] for name in INSTRUCTIONS if not turing.supports(name)}
    assert missing == {"stmatrix", *(name for name in INSTRUCTIONS if name.startswith("cp.async"))}


@given(st.sampled_from(list(AVAILABILITY)), machines)
def test_a_form_exists_only_where_its_stem_does(name, machine):
    stems = [name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1)]
    if machine.supports(name):
        assert all(machine.supports(stem) for stem in stems)


def test_an_unknown_instruction_is_an_error_not_a_no():
    with pytest.raises(UnknownInstruction) as caught:
        from_name("sm_90").supports("ldmatrx.x4")
    assert str(caught.value).startswith("'ldmatrx.x4' is not an instruction that lanewise.machine knows of.")
    assert "Did you mean ldmatrix" in str(caught.value)
    with pytest.raises(UnknownInstruction, match="Known: ld, "):
        from_name("sm_90").supports("")


# --- occupancy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pitch", "blocks"), [(128, 2), (129, 2), (132, 1)])
def test_three_floats_of_padding_cost_a_block(pitch, blocks):
    tile_bytes = 224 * pitch * 4
    assert occupancy("sm_90", 256, shared_bytes=tile_bytes).limits["shared"] == blocks
    assert occupancy("sm_90", 256, shared_bytes=tile_bytes).blocks_per_sm == blocks


def test_padding_a_small_tile_costs_no_block():
    plain = occupancy("sm_90", threads_per_block=256, shared_bytes=32 * 32 * 4)
    padded = occupancy("sm_90", threads_per_block=256, shared_bytes=32 * 33 * 4)
    assert (plain.limits["shared"], padded.limits["shared"]) == (45, 44)
    assert plain.blocks_per_sm == padded.blocks_per_sm == 8
    assert plain.limited_by == padded.limited_by == ("threads", "registers")


def test_blocks_of_1024_threads_hide_how_many_tiles_would_fit():
    two_tiles = occupancy("sm_80", threads_per_block=1024, shared_bytes=2 * 32 * 32 * 4)
    assert two_tiles.limits["shared"] == 18
    assert (two_tiles.blocks_per_sm, two_tiles.warps_per_sm, two_tiles.fraction) == (2, 64, 1.0)


RESOURCES = ("threads", "blocks", "registers", "shared")


def vendor_answer(row: dict[str, str]) -> dict[str, int | None] | str:
    if row["blocks_per_sm"] == "0":
        return "does not fit"
    limits = {name: int(row[f"limit_{name}"]) if row[f"limit_{name}"] else None for name in RESOURCES}
    return {"blocks_per_sm": int(row["blocks_per_sm"])} | limits


def our_answer(row: dict[str, str]) -> dict[str, int | None] | str:
    request = (int(row[key]) for key in ("threads_per_block", "registers_per_thread", "shared_bytes"))
    try:
        result = occupancy(row["machine"], *request)
    except InvalidLaunch:
        return "does not fit"
    return {"blocks_per_sm": result.blocks_per_sm} | dict(result.limits)


@pytest.mark.parametrize("machine", MACHINES)
def test_the_vendor_calculator_agrees(machine):
    rows = [row for row in VENDOR_ROWS if row["machine"] == machine]
    assert len(rows) == 80
    assert [(row, our_answer(row)) for row in rows] == [(row, vendor_answer(row)) for row in rows]


@given(machines, st.integers(1, 1024), st.integers(1, 255), st.integers(0, 99 * 1024), st.data())
def test_asking_for_more_never_fits_more_blocks(machine, threads, registers, shared, data):
    shared = min(shared, machine.max_shared_bytes_per_block)
    before = blocks_that_fit(machine, threads, registers, shared)
    more_threads = data.draw(st.integers(threads, 1024))
    more_registers = data.draw(st.integers(registers, 255))
    more_shared = data.draw(st.integers(shared, machine.max_shared_bytes_per_block))
    assert blocks_that_fit(machine, more_threads, registers, shared) <= before
    assert blocks_that_fit(machine, threads, more_registers, shared) <= before
    assert blocks_that_fit(machine, threads, registers, more_shared) <= before


@given(machines, st.integers(1, 1024), st.integers(1, 64), st.integers(0, 48 * 1024))
def test_what_is_resident_fits_and_one_more_block_does_not(machine, threads, registers, shared):
    result = occupancy(machine, threads, registers, shared)
    assert result.blocks_per_sm * threads <= machine.max_threads_per_sm
    assert result.blocks_per_sm * threads * registers <= machine.registers_per_sm
    assert result.blocks_per_sm * (shared + machine.reserved_shared_bytes_per_block) <= (
        machine.shared_bytes_per_sm
    )
    assert result.fraction == result.warps_per_sm / machine.max_warps_per_sm
    assert result.limited_by
    assert all(result.limits[resource] == result.blocks_per_sm for resource in result.limited_by)


def test_a_launch_that_uses_no_shared_memory_is_not_limited_by_it():
    assert occupancy("sm_75", 64).limits["shared"] is None
    assert occupancy("sm_80", 64).limits["shared"] == 164  # the reserved KB of each block


def test_numpy_integers_are_counted_as_ints():
    request = {
        "threads_per_block": np.int8(96),
        "registers_per_thread": np.uint8(32),
        "shared_bytes": np.int16(4096),
    }
    assert occupancy("sm_90", **request) == occupancy("sm_90", 96, 32, 4096)  # type: ignore[arg-type]


def test_occupancy_reads_as_a_sentence():
    assert (
        str(occupancy("sm_80", 1024))
        == "2 blocks per SM, 64 warps (100% of the most), limited by threads and registers"
    )
    assert str(occupancy("sm_90", 96, shared_bytes=100_000)) == (
        "2 blocks per SM, 6 warps (9.38% of the most), limited by shared memory"
    )


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (
            {"threads_per_block": 2048},
            "threads_per_block: got 2048; give a whole number from 1 to 1,024. So much sm_90 allows: change the"
            " launch, or ask another machine.",
        ),
        ({"threads_per_block": 0}, "threads_per_block: got 0; give a whole number from 1 to 1,024."),
        ({"threads_per_block": 32.0}, "threads_per_block: got 32.0; give a whole number from 1 to 1,024."),
        ({"threads_per_block": True}, "threads_per_block: got True;"),
        ({"registers_per_thread": 256}, "registers_per_thread: got 256; give a whole number from 1 to 255."),
        ({"shared_bytes": 228 * 1024}, "shared_bytes: got 233472; give a whole number from 0 to 232,448."),
        ({"shared_bytes": -4}, "shared_bytes: got -4; give a whole number from 0 to 232,448."),
        ({"shared_bytes": "48 KB"}, "shared_bytes: got '48 KB'; give a whole number from 0 to 232,448."),
        (
            {"threads_per_block": 1024, "registers_per_thread": 65},
            "registers: 1024 threads of 65 registers take 73728 as allocated; a block on sm_90 has 65536."
            " Use fewer threads, or cap the registers with cuda.jit(max_registers=...).",
        ),
    ],
)
def test_a_launch_that_cannot_run_says_why(request_, message):
    with pytest.raises(InvalidLaunch) as caught:
        occupancy("sm_90", **{"threads_per_block": 256} | request_)
    assert str(caught.value).startswith(message)
