"""Machine code read, executed and counted; and what that says of kernels compiled for GPUs that are not
there."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanewise.errors import Error, NotModelled, UnknownMachine
from lanewise.lowering import DoesNotCompile, ToolMissing, lower, why_unavailable
from lanewise.lowering.blocks import Blocks, Launch
from lanewise.lowering.execute import run
from lanewise.lowering.sass import operand, parse
from lanewise.lowering.storage import HEAP_BASE, Heap
from lanewise.lowering.toolchain import find_tool, numba_types
from lanewise.lowering.traffic import Stopped
from lanewise.records import record
from lanewise.trace import trace
from tests.corpus import all_cases

CORPUS = {case.name: case for case in all_cases()}
U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
MASK32, MASK64 = 2**32 - 1, 2**64 - 1


def blocks_of(code: str, n_threads: int = 32, n_blocks: int = 1, constants: dict[int, bytes] | None = None):
    """Blocks about to run machine code given as lines; a line that ends in a colon is a label."""
    listing, address = [".text.k:"], 0
    for line in code.strip().splitlines():
        text = line.strip()
        if text.endswith(":"):
            listing.append(text)
        elif text:
            listing.append(f"        /*{address:04x}*/  {text} ;")
            address += 16
    launch = Launch((n_blocks, 1, 1), (n_threads, 1, 1), 4096, 0, constants or {}, 0)
    heap = Heap()
    heap.fill()
    return Blocks(parse("\n".join(listing), "k"), launch, heap, {}, np.arange(n_blocks))


def result(code: str, **registers: int) -> Blocks:
    """Run straight-line code with registers set in every lane."""
    blocks = blocks_of(f"{code}\nEXIT")
    for name, value in registers.items():
        blocks.registers.write(name, np.full(32, value, np.uint32), np.ones(32, bool))
    run(blocks)
    return blocks


def word(blocks: Blocks, name: str) -> int:
    return int(blocks.registers.values[name][0])


def pair(blocks: Blocks, low: str, high: str) -> int:
    return word(blocks, low) | word(blocks, high) << 32


def halves(low: str, high: str, value: int) -> dict[str, int]:
    return {low: value & MASK32, high: value >> 32}


def signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


# Reading


def test_reading_the_parts_of_an_operand() -> None:
    assert operand("-R4.reuse").negated
    assert operand("~UR7").inverted
    place = operand("desc[UR16][R6.64+-0x10]")
    assert (place.kind, place.name, place.suffixes, place.value) == ("address", "R6", ("64",), -16)
    both = operand("[R9.X4+UR5+0x40]")
    assert (both.name, both.scale, both.uniform, both.value) == ("R9", 4, "UR5", 64)
    assert (operand("c[0x0][0x210]").bank, operand("c[0x0][0x210]").value) == (0, 0x210)
    assert operand("!P3").inverted
    assert operand("`(.L_x_4)").name == ".L_x_4"
    assert operand("0xfffffff0").value == 0xFFFFFFF0
    assert operand("-QNAN").value != operand("-QNAN").value


def test_lines_kinds_and_widths_come_from_the_listing() -> None:
    code = parse(
        ".text.other:\n /*0000*/ LDS R1, [R2] ;\n.text.k:\n"
        '\t//## File "/kernels/k.py", line 7\n /*0000*/ @!P0 LDS.U.128 R4, [R20+0x10] ;\n'
        '\t//## File "/kernels/k.py", line 9\n /*0010*/ LDGSTS.E.BYPASS.128 [R5], desc[UR4][R2.64] ;\n',
        "k",
    )
    load, copy = code.instructions
    assert (load.line, load.predicate, load.space, load.kind, load.bytes_per_lane) == (
        7,
        "@!P0",
        "shared",
        "load",
        16,
    )
    assert (load.address_register, load.offset, load.model_name) == ("R20", 16, "ld.shared.b128")
    assert (copy.line, copy.kind, copy.model_name) == (9, "async_copy", "cp.async.cg.16")


def test_a_remark_of_the_disassembler_is_no_operand() -> None:
    code = parse('.text.k:\n /*0000*/ STL.64 [R1+0x18], RZ      (*"SpillRefill"*) ;\n', "k")
    assert [(one.kind, one.name) for one in code.instructions[0].operands] == [
        ("address", "R1"),
        ("register", "RZ"),
    ]
    assert code.instructions[0].text == "STL.64 [R1+0x18], RZ"


def test_a_listing_without_the_kernel_is_refused() -> None:
    with pytest.raises(NotModelled, match="holds no code for k"):
        parse(".text.other:\n /*0000*/ EXIT ;\n", "k")


# Arithmetic: laws against Python's integers


@given(U64, U64)
def test_a_carry_joins_two_32_bit_sums(a: int, b: int) -> None:
    blocks = result(
        "IADD3 R4, P0, R0, R2, RZ\nIADD3.X R5, R1, R3, RZ, P0, !PT",
        **halves("R0", "R1", a),
        **halves("R2", "R3", b),
    )
    assert pair(blocks, "R4", "R5") == (a + b) & MASK64


@given(U64, U64)
def test_a_borrow_joins_two_differences_and_compares(a: int, b: int) -> None:
    blocks = result(
        "IADD3 R4, P0, R0, -R2, RZ\nIADD3.X R5, R1, ~R3, RZ, P0, !PT\n"
        "ISETP.GE.U32.AND P1, PT, R0, R2, PT\nISETP.GE.U32.AND.EX P1, PT, R1, R3, PT, P1\n"
        "ISETP.LT.U32.AND P2, PT, R0, R2, PT\nISETP.LT.AND.EX P2, PT, R1, R3, PT, P2\nSEL R6, RZ, 0x1, !P2",
        **halves("R0", "R1", a), **halves("R2", "R3", b),
    )  # fmt: skip
    assert pair(blocks, "R4", "R5") == (a - b) & MASK64
    assert bool(blocks.registers.values["P1"][0]) == (a >= b)
    assert word(blocks, "R6") == (signed(a, 64) < signed(b, 64))


@given(U32, U32, U64)
def test_products_are_signed_or_not_as_the_opcode_says(a: int, b: int, c: int) -> None:
    code = "IMAD.WIDE R4, R0, R1, R2\nIMAD.WIDE.U32 R6, R0, R1, R2\nIMAD R8, R0, R1, R2\nIMAD.HI.U32 R9, R0, R1, R2"
    blocks = result(code, R0=a, R1=b, **halves("R2", "R3", c))
    assert pair(blocks, "R4", "R5") == (signed(a) * signed(b) + c) & MASK64
    assert pair(blocks, "R6", "R7") == (a * b + c) & MASK64
    assert word(blocks, "R8") == (a * b + c) & MASK32
    assert word(blocks, "R9") == ((a * b + c) & MASK64) >> 32


@given(U64, U64, st.integers(0, 31))
def test_a_scaled_index_added_to_a_base(index: int, base: int, shift: int) -> None:
    code = f"LEA R4, P0, R0, R2, {shift:#x}\nLEA.HI.X R5, R0, R3, R1, {shift:#x}, P0"
    blocks = result(code, **halves("R0", "R1", index), **halves("R2", "R3", base))
    assert pair(blocks, "R4", "R5") == ((index << shift) + base) & MASK64


@given(U64, st.integers(0, 63))
def test_funnel_shifts_are_shifts_of_the_pair(value: int, n: int) -> None:
    code = (
        f"SHF.R.U64 R4, R0, {n:#x}, R1\nSHF.L.U64.HI R5, R0, {n:#x}, R1\nSHF.R.S64 R6, R0, {n:#x}, R1\n"
        f"SHF.R.S32.HI R7, RZ, {n % 32:#x}, R1\nSHF.L.U32 R8, R0, {n % 32:#x}, RZ"
    )
    blocks = result(code, **halves("R0", "R1", value))
    assert word(blocks, "R4") == value >> n & MASK32
    assert word(blocks, "R5") == (value << n & MASK64) >> 32
    assert word(blocks, "R6") == signed(value, 64) >> n & MASK32
    assert word(blocks, "R7") == signed(value >> 32) >> n % 32 & MASK32
    assert word(blocks, "R8") == value << n % 32 & MASK32


@given(U32, U32, U32, st.integers(0, 255))
def test_three_input_logic_follows_its_table(a: int, b: int, c: int, table: int) -> None:
    blocks = result(f"LOP3.LUT R4, R0, R1, R2, {table:#x}, !PT", R0=a, R1=b, R2=c)
    bits = (table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1 for i in range(32))
    assert word(blocks, "R4") == sum(bit << i for i, bit in enumerate(bits))


@given(U32, U32, st.lists(st.integers(0, 7), min_size=4, max_size=4))
def test_permute_picks_bytes(a: int, c: int, picks: list[int]) -> None:
    selector = sum(pick << 4 * i for i, pick in enumerate(picks))
    blocks = result(f"PRMT R4, R0, {selector:#x}, R1", R0=a, R1=c)
    source = (a | c << 32).to_bytes(8, "little")
    assert word(blocks, "R4") == int.from_bytes(bytes(source[pick] for pick in picks), "little")


@given(U32, st.integers(1, 32))
def test_bit_tricks(value: int, width: int) -> None:
    code = f"POPC R4, R0\nFLO.U32 R5, R0\nBREV R6, R0\nSGXT R7, R0, {width:#x}"
    blocks = result(code, R0=value)
    assert word(blocks, "R4") == value.bit_count()
    assert word(blocks, "R5") == (value.bit_length() - 1) & MASK32
    assert word(blocks, "R6") == int(f"{value:032b}"[::-1], 2)
    assert word(blocks, "R7") == signed(value & (1 << width) - 1, width) & MASK32


@given(U32, st.integers(0, 127))
def test_predicates_packed_and_unpacked_are_the_same(value: int, mask: int) -> None:
    blocks = result(f"R2P PR, R0, 0x7f\nP2R R1, PR, R2, {mask:#x}", R0=value, R2=MASK32)
    assert word(blocks, "R1") == (value & mask | MASK32 & ~mask)


@given(st.integers(0, 2**31 - 1), st.integers(1, 2**31 - 1))
def test_the_compilers_integer_division_comes_out_exact(a: int, b: int) -> None:
    """The sequence that ptxas writes for `a // b` of unsigned 32-bit numbers (R0 by R1, quotient in R5)."""
    code = """
        I2F.U32.RP R4, R1
        MUFU.RCP R4, R4
        VIADD R2, R4, 0xffffffe
        F2I.FTZ.U32.TRUNC.NTZ R3, R2
        IMAD.MOV.U32 R2, RZ, RZ, RZ
        IMAD.MOV R5, RZ, RZ, -R3
        IMAD R5, R5, R1, RZ
        IMAD.HI.U32 R3, R3, R5, R2
        IMAD.HI.U32 R5, R3, R0, RZ
        IMAD.MOV R3, RZ, RZ, -R5
        IMAD R0, R1, R3, R0
        ISETP.GE.U32.AND P0, PT, R0, R1, PT
        @P0 IMAD.IADD R0, R0, 0x1, -R1
        @P0 VIADD R5, R5, 0x1
        ISETP.GE.U32.AND P1, PT, R0, R1, PT
        @P1 VIADD R5, R5, 0x1
    """
    assert word(result(code, R0=a, R1=b), "R5") == a // b


# Lanes


def test_lanes_exchange_values_as_shuffles_say() -> None:
    blocks = blocks_of(
        "S2R R0, SR_LANEID\nSHFL.DOWN PT, R1, R0, 0x10, 0x1f\nSHFL.BFLY PT, R2, R0, 0x3, 0x1f\nEXIT"
    )
    run(blocks)
    lane = np.arange(32)
    np.testing.assert_array_equal(blocks.registers.values["R1"], np.where(lane < 16, lane + 16, lane))
    np.testing.assert_array_equal(blocks.registers.values["R2"], lane ^ 3)


DIVERGED = """
    S2R R0, SR_LANEID
    ISETP.GE.AND P0, PT, R0, 0x10, PT
    BSSY B0, `(.L_1)
    @P0 BRA `(.L_2)
    STS [R0.X4], R0
    BRA `(.L_3)
    .L_2:
    STS [R0.X4+0x80], R0
    .L_3:
    BSYNC B0
    .L_1:
    LDS R1, [R0.X4]
    EXIT
"""


def test_a_warp_that_split_up_meets_again() -> None:
    blocks = blocks_of(DIVERGED, n_threads=64)
    run(blocks)
    first, second, load = (blocks.traffic[address] for address in (0x40, 0x60, 0xA0 - 0x10 - 0x10))
    assert [t.instruction.base for t in (first, second, load)] == ["STS", "STS", "LDS"]
    assert [t.requests for t in (first, second, load)] == [2, 2, 2]
    assert [t.bytes_requested for t in (first, second, load)] == [128, 128, 256]
    np.testing.assert_array_equal(blocks.registers.values["R1"][:16], np.arange(16))


# Lane n leaves the loop in round n, by the way out that is put in.
LEAVING = """
    S2R R0, SR_LANEID
    MOV R2, RZ
    BSSY B0, `(.L_3)
    .L_1:
    ISETP.LT.AND P0, PT, R2, R0, PT
    VIADD R2, R2, 0x1
    @P0 BRA `(.L_1)
    {way_out}
    .L_3:
    LDS R1, [R0.X4]
    EXIT
"""


@pytest.mark.parametrize(
    ("way_out", "requests"),
    [
        ("BSYNC B0", 1),
        ("", 32),  # past the meeting, one by one
        ("BREAK B0\nBSYNC B0", 32),  # out of the meeting, so nobody waits for them
        ("BMOV.32.CLEAR R5, B0\nBMOV.32 B0, R5\nBSYNC B0", 1),
        ("WARPSYNC.ALL", 1),
        ("BAR.SYNC 0x0", 1),
    ],
)
def test_lanes_that_leave_a_loop_one_by_one_join_only_where_they_meet(way_out: str, requests: int) -> None:
    blocks = blocks_of(LEAVING.format(way_out=way_out), n_threads=64)
    run(blocks)
    (load,) = blocks.traffic.values()
    assert (load.requests, load.bytes_requested) == (2 * requests, 256)


def test_lanes_that_exit_are_not_waited_for() -> None:
    code = LEAVING.format(way_out="ISETP.GE.AND P1, PT, R0, 0x8, PT\n@P1 EXIT\nBSYNC B0")
    blocks = blocks_of(code)
    run(blocks)
    (load,) = blocks.traffic.values()
    assert (load.requests, load.bytes_requested) == (1, 32)


def test_a_predicated_off_access_is_no_request() -> None:
    blocks = blocks_of("ISETP.NE.AND P0, PT, RZ, RZ, PT\n@P0 LDS R1, [RZ]\nEXIT")
    run(blocks)
    assert [t.requests for t in blocks.traffic.values()] == [0]


def test_a_barrier_that_some_lanes_never_reach_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = blocks_of(
        "S2R R0, SR_TID.X\nISETP.GE.AND P0, PT, R0, 0x20, PT\n@P0 BRA `(.L_1)\nBAR.SYNC 0x0\n.L_1:\nEXIT", 64
    )
    run(blocks)  # lanes that have exited are not waited for
    loop = "S2R R0, SR_TID.X\nISETP.GE.AND P0, PT, R0, 0x20, PT\n@P0 BRA `(.L_1)\nBAR.SYNC 0x0\n.L_1:\nBRA `(.L_1)"
    monkeypatch.setattr("lanewise.lowering.execute.MAX_STEPS", 10_000)
    with pytest.raises(Stopped, match="after 10,000 machine instructions"):
        run(blocks_of(loop, 64))


def test_what_is_not_computed_is_not_claimed() -> None:
    blocks = blocks_of("CS2R R2, SR_CLOCKLO\nLDS R1, [R2]\nLDS R3, [RZ]\nEXIT")
    run(blocks)
    doubtful, certain = blocks.traffic.values()
    assert doubtful.not_modelled == "its address depends on a value that is not computed"
    assert (certain.not_modelled, certain.wavefronts) == ("", 1)
    with pytest.raises(Stopped, match="depends on a value that is not computed"):
        run(blocks_of("CS2R R2, SR_CLOCKLO\nISETP.NE.AND P0, PT, R2, RZ, PT\n@P0 BRA `(.L_1)\n.L_1:\nEXIT"))


def test_an_unknown_opcode_stops_the_run_with_its_text() -> None:
    with pytest.raises(Stopped, match="UTMALDG is not modelled: UTMALDG"):
        run(blocks_of("UTMALDG.2D [UR4], [UR6]\nEXIT"))


def test_atomics_take_turns() -> None:
    blocks = blocks_of("MOV R1, 0x3\nATOMS.ADD R2, [RZ+0x10], R1\nLDS R3, [RZ+0x10]\nEXIT")
    run(blocks)
    np.testing.assert_array_equal(blocks.registers.values["R2"], 3 * np.arange(32))
    assert word(blocks, "R3") == 96


def test_the_reason_why_global_atomics_have_no_cost() -> None:
    blocks = blocks_of(f"MOV R2, {HEAP_BASE % 2**32:#x}\nMOV R3, {HEAP_BASE >> 32:#x}\n"
                       "REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], RZ\nEXIT")  # fmt: skip
    run(blocks)
    (reduction,) = blocks.traffic.values()
    assert reduction.requests == 1
    assert "distinct sectors on its source page" in reduction.not_modelled


def test_lanes_that_spin_on_a_lock_let_the_owner_go_on() -> None:
    """Each lane of a warp takes a lock, adds one, and gives it back; spinning lanes stand first in the code."""
    blocks = blocks_of("""
        MOV R1, 0x1
        .L_1:
        ATOMS.CAS R2, [RZ], RZ, R1
        ISETP.NE.AND P0, PT, R2, RZ, PT
        @P0 BRA `(.L_1)
        LDS R3, [RZ+0x8]
        VIADD R3, R3, 0x1
        STS [RZ+0x8], R3
        ATOMS.EXCH RZ, [RZ], RZ
        EXIT
    """, n_threads=4)  # fmt: skip
    run(blocks)
    assert int(blocks.shared.data.view(np.uint32)[2]) == 4


# Each lane takes its turn at a word; what follows the loop runs after the lanes met again.
TURNS = """
    S2R R0, SR_LANEID
    BSSY B0, `(.L_2)
    .L_1:
    LDS R3, [{address}]
    VIADD R4, R3, 0x1
    ATOMS.CAS R2, [{address}], R3, R4
    ISETP.NE.AND P0, PT, R2, R3, PT
    {turn}
    @P0 BRA `(.L_1)
    BSYNC B0
    .L_2:
    LDS R5, [R0.X4]
    {after}
    EXIT
"""
CONTESTED = "depends on the order of atomics"


def contested(blocks: Blocks) -> dict[str, bool]:
    return {t.instruction.text: CONTESTED in t.not_modelled for t in blocks.traffic.values()}


@pytest.mark.parametrize("address", ["RZ", "R0.X4"])
def test_nothing_is_claimed_of_a_loop_that_retries(address: str) -> None:
    """Even where no lane failed in this run; what follows the meeting is claimed, for it no longer depends on it."""
    blocks = blocks_of(TURNS.format(address=address, turn="", after=""))
    run(blocks)
    assert contested(blocks) == {
        f"LDS R3, [{address}]": True, f"ATOMS.CAS R2, [{address}], R3, R4": True, "LDS R5, [R0.X4]": False,
    }  # fmt: skip
    assert blocks.traffic[0xA0 - 0x10 - 0x10].requests == 1


def test_after_a_loop_that_yields_lanes_go_on_alone() -> None:
    blocks = blocks_of(TURNS.format(address="RZ", turn="YIELD", after=""))
    run(blocks)
    assert contested(blocks)["LDS R5, [R0.X4]"]
    assert [t.requests for t in blocks.traffic.values()][-1] == 32


@pytest.mark.parametrize(
    "after",
    [
        "LDS R6, [R2.X4]",  # an address that tells who came when
        "ISETP.GT.AND P1, PT, R2, 0x7, PT\n@P1 LDS R6, [RZ]",
        "ISETP.GT.AND P1, PT, R2, 0x7, PT\n@P1 MOV R7, 0x4\nLDS R6, [R7]",  # kept or replaced, for that reason
        "SHFL.IDX PT, R7, R2, RZ, 0x1f\nLDS R6, [R7]",
        "ISETP.GT.AND P1, PT, R2, 0x7, PT\n@P1 EXIT\nLDS R6, [RZ]",
    ],
)
def test_what_an_atomic_answered_spreads_to_what_depends_on_it(after: str) -> None:
    blocks = blocks_of(TURNS.format(address="RZ", turn="", after=after))
    run(blocks)
    *_, (text, depends) = contested(blocks).items()
    assert "LDS R6" in text
    assert depends


def test_device_memory_keeps_the_offset_of_a_view() -> None:
    heap, root = Heap(), np.arange(64, dtype=np.float32)
    view = root[3::5]
    assert (heap.address_of(root) - HEAP_BASE) % 256 == 0
    assert heap.address_of(view) - heap.address_of(root) == 12
    heap.fill()
    np.testing.assert_array_equal(heap.contents(view), view)


# Tools


def test_a_missing_tool_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lanewise.lowering.toolchain.sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setattr("lanewise.lowering.toolchain.shutil.which", lambda _: None)
    monkeypatch.setattr("lanewise.lowering.toolchain.TOOLKITS", ())
    with pytest.raises(ToolMissing, match=r"ptxas is not installed.*pip install 'lanewise\[sass\]'"):
        find_tool("ptxas")


def test_an_unknown_target_is_refused_with_the_list() -> None:
    with pytest.raises(UnknownMachine, match=r"lowering='sm_42' is no target. Use one of sm_75, sm_80"):
        lower(len, (), "sm_42")


# Kernels: these need the compiler


@pytest.fixture(scope="module")
def compiler() -> None:
    """Skip where kernels cannot be compiled, with the reason."""
    if reason := why_unavailable():
        pytest.skip(reason)


def traced(name: str, lowering: str):
    case = CORPUS[name]
    arguments = case.inputs("random")
    dynamic = case.dynamic_shared_bytes
    return trace(
        case.kernel, case.grid, case.block, *arguments, dynamic_shared_bytes=dynamic, lowering=lowering
    )


MACHINES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def products():
    numba = pytest.importorskip("numba")
    cuda = pytest.importorskip("numba.cuda")

    def product(a, b, c):
        a_tile = cuda.shared.array((16, 16), numba.float32)
        b_tile = cuda.shared.array((16, 16), numba.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = numba.float32(0)
        for k in range(a.shape[1] // 16):
            a_tile[y, x] = a[row, 16 * k + x]
            b_tile[y, x] = b[16 * k + y, col]
            cuda.syncthreads()
            for i in range(16):
                acc += a_tile[y, i] * b_tile[i, x]
            cuda.syncthreads()
        c[row, col] = acc

    return product


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("target", MACHINES)
def test_a_tiled_product_loads_its_row_operand_four_at_a_time(target: str) -> None:
    """10,240 loads and 12,288 wavefronts are what Nsight Compute counted on an H200 (64x64x64, 16 blocks)."""
    generator = np.random.default_rng(1)
    a, b = (generator.integers(-8, 8, (64, 64)).astype(np.float32) for _ in range(2))
    arguments = (a, b, np.full((64, 64), np.nan, np.float32))
    ran = lower(products(), arguments, target).run((4, 4), (16, 16), *arguments)
    assert not ran.unmodelled
    np.testing.assert_array_equal(ran.arrays[2], a @ b)
    loads = ran.counts("shared", "load")
    assert (loads.requests, loads.wavefronts, loads.ideal) == (10_240, 12_288, 12_288)
    assert (ran.counts("global", "load").sectors, ran.counts("global", "store").sectors) == (4_096, 512)


@pytest.mark.usefixtures("compiler")
def test_the_report_sets_both_counts_side_by_side_with_the_proof() -> None:
    generator = np.random.default_rng(1)
    a, b = (generator.integers(-8, 8, (64, 64)).astype(np.float32) for _ in range(2))
    view = trace(products(), (4, 4), (16, 16), a, b, np.zeros((64, 64), np.float32), lowering="sm_90")
    assert (view.shared.load.requests, view.shared.load.wavefronts) == (10_240, 12_288)
    assert view.comparison is not None
    (line,) = view.comparison.different
    assert (line.written.requests, line.written.wavefronts) == (16_384, 16_384)
    assert (line.compiled.requests, line.compiled.wavefronts) == (10_240, 12_288)
    singles, joined = line.evidence
    assert singles.startswith("16 x LDS: 8,192 requests, 8,192 wavefronts")
    assert joined.startswith("4 x LDS.128: 2,048 requests, 4,096 wavefronts")
    assert "16,384 -> 10,240      16,384 -> 12,288 wavefronts" in str(view)
    assert "as compiled for sm_90" in str(view)
    assert "LDS.128" in view._repr_html_()
    shared = [row for row in view.comparison.by_opcode() if row.space == "shared"]
    assert [(row.opcode, row.instructions, row.requests, row.wavefronts) for row in shared] == [
        ("LDS", 16, 8_192, 8_192), ("LDS.128", 4, 2_048, 4_096), ("STS", 2, 1_024, 1_024),
    ]  # fmt: skip
    assert {(row.opcode, row.sectors) for row in view.comparison.by_opcode() if row.space == "global"} == {
        ("LDG.E", 4_096), ("STG.E", 512),
    }  # fmt: skip
    page = view.comparison._repr_html_()
    assert "<td>16,384 wavefronts</td><td>12,288 wavefronts</td>" in page
    assert "<td>LDS.128</td><td>4</td><td>2,048</td><td>4,096 wavefronts</td>" in page
    assert not re.search(r"\bU?R\d+\b", page)
    assert repr(view.comparison) == "<Comparison of 6 accesses, 1 changed>"


@pytest.mark.usefixtures("compiler")
def test_a_packed_record_is_loaded_byte_by_byte() -> None:
    cuda = pytest.importorskip("numba.cuda")

    def first_field(points, dst):
        i = cuda.grid(1)
        dst[i] = points[i].x

    def loads(align: bool):
        points = np.zeros(256, np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4"), ("w", "f4")], align=align))
        points["x"] = np.arange(256)
        dst = np.full(256, np.nan, np.float32)
        ran = lower(first_field, (points, dst), "sm_90").run(2, 128, points, dst)
        np.testing.assert_array_equal(ran.arrays[1], np.arange(256))
        return ran.counts("global", "load")

    packed, aligned = loads(False), loads(True)
    assert (packed.requests, packed.sectors) == (4 * 8, 4 * 8 * 16)
    assert (aligned.requests, aligned.sectors) == (8, 8 * 16)


@pytest.mark.usefixtures("compiler")
def test_a_transposed_tile_read_by_rows_pays_a_quarter() -> None:
    """Rows of 32 floats, one per lane, read along: 32-way as written, 32 wavefronts per four values as
    compiled."""
    numba = pytest.importorskip("numba")
    cuda = pytest.importorskip("numba.cuda")

    def row_sums(src, dst):
        tile = cuda.shared.array((32, 32), numba.float32)
        lane = cuda.threadIdx.x
        for row in range(32):
            tile[row, lane] = src[row, lane]
        cuda.syncthreads()
        acc = numba.float32(0)
        for k in range(32):
            acc += tile[lane, k]
        dst[lane] = acc

    src = np.arange(1024, dtype=np.float32).reshape(32, 32)
    view = trace(row_sums, 1, 32, src, np.zeros(32, np.float32), lowering="sm_90")
    assert view.comparison is not None
    (line,) = view.comparison.different
    assert (line.written.wavefronts, line.compiled.wavefronts) == (1024, 256)
    assert (line.written.requests, line.compiled.requests) == (32, 8)


@pytest.mark.usefixtures("compiler")
def test_a_device_function_is_compiled_without_a_gpu() -> None:
    numba = pytest.importorskip("numba")
    cuda = pytest.importorskip("numba.cuda")

    @cuda.jit(device=True)
    def mirrored(i, n):
        return n - 1 - i

    def reverse(src, dst):
        i = cuda.grid(1)
        dst[i] = src[mirrored(i, src.size)]

    src = np.arange(64, dtype=np.int32)
    for target in ("sm_75", "sm_90"):
        ran = lower(reverse, (src, np.zeros_like(src)), target).run(2, 32, src, np.zeros_like(src))
        np.testing.assert_array_equal(ran.arrays[1], src[::-1])
    assert numba.__version__


@pytest.mark.usefixtures("compiler")
def test_a_kernel_that_numba_refuses_is_named_with_its_line() -> None:
    def broken(src, dst):
        dst[0] = src[0].missing

    with pytest.raises(Error, match=r"broken, line \d+: numba does not compile it.*missing"):
        lower(broken, (np.zeros(2, np.float32), np.zeros(2, np.float32)))


@pytest.mark.usefixtures("compiler")
def test_what_a_lowered_kernel_shows() -> None:
    arguments = tuple(np.zeros((64, 64), np.float32) for _ in range(3))
    kernel = lower(products(), arguments)
    assert (kernel.shared_bytes, kernel.spill_bytes, kernel.stack_bytes) == (2048, 0, 0)
    assert 16 <= kernel.registers <= 64
    widths = sorted(ins.bytes_per_lane for ins in kernel.instructions if ins.opcode.startswith("LDS"))
    assert widths == [4] * 16 + [16] * 4
    assert any("LDS.128" in line for line in str(kernel).splitlines())


# A sample of every construct; `slow` runs the whole corpus.
SAMPLE = ("histogram_shared", "scan_tree[padded]", "dynamic_halves")


LOWERED: dict[Any, Any] = {}  # by kernel, types and target: many launches share their machine code


def lowered_once(kernel: Any, arguments: Any, target: str) -> Any:
    key = kernel, numba_types(arguments), target
    if key not in LOWERED:
        LOWERED[key] = lower(kernel, arguments, target)
    return LOWERED[key]


def run_as_machine_code(case, target: str) -> Any:
    arguments = case.inputs("random")
    kernel = lowered_once(case.kernel, arguments, target)
    return kernel.run(case.grid, case.block, *arguments, dynamic_shared_bytes=case.dynamic_shared_bytes)


def assert_machine_code_agrees(case, ran) -> None:
    """What the machine code computes equals the NumPy reference, so its addresses were those of a true
    run."""
    if ran.stopped:
        assert "not computed" in ran.stopped or "not modelled" in ran.stopped
        return
    for place, expected in case.reference(*case.inputs("random")).items():
        if not ran.known[place]:
            continue
        if expected.dtype.names:  # records have no tolerance
            np.testing.assert_array_equal(ran.arrays[place], expected, err_msg=case.name)
        else:
            rtol = max(case.rtol, 1e-6)
            np.testing.assert_allclose(ran.arrays[place], expected, rtol=rtol, atol=1e-6, err_msg=case.name)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("target", ["sm_75", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", SAMPLE)
def test_machine_code_computes_what_numpy_does(name: str, target: str) -> None:
    case = CORPUS[name]
    assert_machine_code_agrees(case, run_as_machine_code(case, target))


RECORDED = {row["name"]: row["instructions"] for row in record("h200", "machine_code").rows("kernels")}


def test_the_recorded_counters_say_where_they_come_from() -> None:
    assert "ptxas 13.0" in str(record("h200", "machine_code").provenance)
    assert len(RECORDED.keys() & CORPUS.keys()) > 250


def assert_counts_equal_the_hardware(name: str, ran: Any) -> None:
    """Every modelled access of a kernel costs what the profiler read for that machine instruction."""
    kernel, rows = ran.kernel, RECORDED[name]
    if [ins.opcode for ins in kernel.instructions] != [row[0] for row in rows]:
        pytest.skip(f"{name}: another ptxas, or an edited kernel: its machine code is not the recorded one")
    sites = {site.address: site for site in ran.sites}
    for ins, (_, executed, *recorded) in zip(kernel.instructions, rows, strict=True):
        site = sites.get(ins.address)
        if site is None:
            assert executed == 0 or ran.stopped, f"{name}: {ins.text} ran on the GPU, not here"
        elif site.modelled and not ran.stopped and site.space in ("shared", "global"):
            assert [site.wavefronts, site.ideal, site.sectors] == recorded, f"{name}: {ins.text}"
            # The profiler also counts executions that a predicate turns off in every lane.
            assert site.requests == executed or ins.predicate, f"{name}: {ins.text}"


@pytest.fixture(scope="module", params=[name for name in CORPUS if name != "grid_barrier"])
def corpus_run(request: pytest.FixtureRequest, compiler: None) -> tuple[str, Any]:
    """A name and its launch as machine code: all tests of one launch come before the next."""
    return request.param, run_as_machine_code(CORPUS[request.param], "sm_90")


@pytest.mark.slow
def test_the_whole_corpus_as_machine_code(corpus_run: tuple[str, Any]) -> None:
    name, ran = corpus_run
    assert_machine_code_agrees(CORPUS[name], ran)


@pytest.mark.slow
def test_counts_equal_the_hardware_for_every_instruction(corpus_run: tuple[str, Any]) -> None:
    name, ran = corpus_run
    if name not in RECORDED:
        pytest.skip(f"{name} has not been profiled")
    assert_counts_equal_the_hardware(name, ran)


@pytest.mark.usefixtures("compiler")
def test_what_needs_the_device_runtime_is_refused() -> None:
    with pytest.raises(DoesNotCompile, match=r"ptxas refuses it.*cudaCGGetIntrinsicHandle"):
        run_as_machine_code(CORPUS["grid_barrier"], "sm_90")


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    "name", ["barrier_in_loop", "single_steps", "early_returns", "sums_and_extremes[float64]"]
)
def test_counts_equal_the_hardware_for_a_few_kernels(name: str) -> None:
    assert_counts_equal_the_hardware(name, run_as_machine_code(CORPUS[name], "sm_90"))
