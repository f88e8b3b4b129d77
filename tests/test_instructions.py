"""The instruction table: names of the contract, group sizes, and what is honestly not modelled."""

import pytest

from lanewise.errors import UnknownInstruction
from lanewise.instructions import INSTRUCTIONS, instruction

CONTRACT = [
    *(f"{op}.{space}.b{bits}" for op in ("ld", "st") for space in ("shared", "global") for bits in (8, 16, 32, 64, 128)),
    "red.shared.add.u32",
    *(f"ldmatrix.x{n}{trans}" for n in (1, 2, 4) for trans in ("", ".trans")),
    *(f"stmatrix.x{n}" for n in (1, 2, 4)),
    *(f"cp.async.ca.{n}" for n in (4, 8, 16)),
    "cp.async.cg.16",
]  # fmt: skip


@pytest.mark.parametrize("name", CONTRACT)
def test_contract_name_exists(name: str) -> None:
    assert instruction(name).name == str(instruction(name)) == name


@pytest.mark.parametrize(
    ("name", "lanes", "words"),
    [("ld.shared.b8", 32, 1), ("ld.shared.b32", 32, 1), ("ld.shared.b64", 16, 2), ("ld.shared.b128", 8, 4),
     ("ldmatrix.x4", 8, 4), ("cp.async.ca.8", 16, 2)],
)  # fmt: skip
def test_a_group_fills_the_banks_once(name: str, lanes: int, words: int) -> None:
    assert (instruction(name).lanes_per_group, instruction(name).words_per_lane) == (lanes, words)
    assert lanes * words == 32


def test_an_async_copy_has_an_address_in_each_space() -> None:
    assert instruction("cp.async.ca.16", space="global") is instruction("cp.async.ca.16", space="shared")
    with pytest.raises(UnknownInstruction, match="not a global-memory instruction"):
        instruction("ldmatrix.x4", space="global")


def test_only_wide_loads_fuse() -> None:
    assert {name for name, entry in INSTRUCTIONS.items() if entry.fuses} == {
        "ld.shared.b64",
        "ld.shared.b128",
    }


def test_every_entry_says_what_is_known_of_it() -> None:
    for entry in INSTRUCTIONS.values():
        assert bool(entry.not_modelled) == (entry.status == "unknown"), entry.name


def test_an_unknown_space_is_refused() -> None:
    with pytest.raises(
        UnknownInstruction, match=r"'local' is not a memory space of the model\. Use shared or global"
    ):
        instruction("ld.shared.b32", space="local")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "LD.SHARED.B32", "ldmatrix.x3", "ld.shared.b256", None, 32])
def test_unknown_names_are_refused_with_near_ones(name: object) -> None:
    with pytest.raises(UnknownInstruction, match="Did you mean"):
        instruction(name)  # type: ignore[arg-type]
