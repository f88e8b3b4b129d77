"""Interactive figures: what they compute, the directive that embeds them, and their colours."""

import json
import re
import subprocess
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

import lanewise as lw
from explorers import (
    EXPLORERS,
    SWIZZLE_ACCESSES,
    bank_access,
    fragment_move,
    fragment_operand,
    pipeline_of,
    sector_accesses,
    swizzle_access,
    swizzle_tile,
)
from lanewise.figures import style
from lanewise.fragments import Fragment, MatrixMove
from lanewise.swizzles import SwizzledTile
from tests.test_explorer_model import NODE
from tools.notebooks import ROOT

SCRIPTS = ROOT / "book" / "_static" / "explorers"

# Controls, and what each explorer shows for states: neither needs a browser.
RUNNER = """
let text = "";
for await (const chunk of process.stdin) text += chunk;
const { folder, states } = JSON.parse(text);
const { ModelError } = await import(`${folder}/model.js`);
const found = {};
for (const [kind, given] of Object.entries(states)) {
  const { default: explorer } = await import(`${folder}/${kind}.js`);
  const look = state => {
    try {
      const { sentence, bad, counts, steps, python, cuda } = explorer.show(state);
      const notes = counts.map(count => count.note);
      return { sentence, bad, notes, counts: counts.map(count => [count.label, count.value]), steps, python, cuda };
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      return { sentence: error.message, refused: true };
    }
  };
  found[kind] = { controls: explorer.controls, shown: given.map(look) };
}
console.log(JSON.stringify(found));
"""


def shown_by_scripts(states: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Controls of each explorer, and what it shows in given states."""
    done = subprocess.run(
        [str(NODE), "--input-type=module", "--eval", RUNNER],
        input=json.dumps({"folder": SCRIPTS.as_uri(), "states": states}),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


@pytest.fixture(scope="module")
def controls() -> dict[str, list[dict[str, Any]]]:
    found = shown_by_scripts({kind: [] for kind in EXPLORERS})
    return {kind: explorer["controls"] for kind, explorer in found.items()}


def random_states(controls: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    """States that the controls allow."""
    rng = np.random.default_rng(len(controls))

    def pick(control: dict[str, Any]) -> Any:
        if control["kind"] == "select":
            return str(rng.choice([value for value, _ in control["options"]]))
        if control["kind"] == "checkbox":
            return bool(rng.integers(2))
        if control["kind"] == "text":
            return f"{rng.integers(2**32):x}"
        low, high = control["min"], control["max"]
        return int(
            rng.choice([low, min(high, max(low, int(rng.integers(0, 8)))), rng.integers(low, high + 1)])
        )

    return [{control["name"]: pick(control) for control in controls} for _ in range(n)]


@pytest.mark.parametrize("kind", EXPLORERS)
def test_parameters_are_the_controls(kind: str, controls: dict[str, Any]) -> None:
    assert EXPLORERS[kind].defaults.keys() == {control["name"] for control in controls[kind]}
    for control in controls[kind]:
        default = EXPLORERS[kind].defaults[control["name"]]
        if control["kind"] == "select":
            assert default in [value for value, _ in control["options"]]
        elif control["kind"] in ("range", "number"):
            assert control["min"] <= float(default) <= control["max"]


@pytest.mark.parametrize("kind", EXPLORERS)
def test_every_script_has_an_explorer_and_draws_something(kind: str) -> None:
    helpers = {"model", "draw", "explorer", "warp"}
    assert {path.stem for path in SCRIPTS.glob("*.js")} - helpers == EXPLORERS.keys()
    drawing = EXPLORERS[kind].draw(EXPLORERS[kind].defaults)
    assert len(drawing.alt) > 25
    assert drawing.svg() == EXPLORERS[kind].draw(EXPLORERS[kind].defaults).svg()


def as_parameters(state: dict[str, Any]) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in state.items()
    }


def test_the_bank_explorer_shows_what_python_computes(controls: dict[str, Any]) -> None:
    states = random_states(controls["bank"], 500)
    n_refused = 0
    for state, shown in zip(states, shown_by_scripts({"bank": states})["bank"]["shown"], strict=True):
        if shown.get("refused"):
            n_refused += 1
            with pytest.raises(lw.Error) as refusal:
                bank_access(as_parameters(state))
            assert str(refusal.value) == shown["sentence"]
            continue
        cost = lw.shared_cost(bank_access(as_parameters(state)))
        assert shown["sentence"] == str(cost)
        assert shown["bad"] == (cost.excess > 0)
        expected = [cost.wavefronts, cost.ideal, cost.excess, len(cost.phases)]
        assert [value for _, value in shown["counts"]] == expected
        assert len(shown["steps"]) == cost.wavefronts
        assert run_listing(shown["python"])["access"] == cost.access
    assert 20 < n_refused < 200


def test_the_sector_explorer_shows_what_python_computes(controls: dict[str, Any]) -> None:
    states = random_states(controls["sectors"], 400)
    n_refused = n_several = 0
    for state, shown in zip(states, shown_by_scripts({"sectors": states})["sectors"]["shown"], strict=True):
        if shown.get("refused"):
            n_refused += 1
            with pytest.raises(lw.Error) as refusal:
                sector_accesses(as_parameters(state))
            assert str(refusal.value) == shown["sentence"]
            continue
        accesses = sector_accesses(as_parameters(state))
        costs = [lw.global_cost(access) for access in accesses]
        sectors = sum(cost.sectors for cost in costs)
        distinct = set().union(*(cost.lanes_by_sector for cost in costs))
        fewest = sum(-(-cost.bytes_requested // 32) for cost in costs)
        asked, moved = sum(cost.bytes_requested for cost in costs), sum(cost.bytes_moved for cost in costs)
        used = f"{100 * asked / moved:.3g}%" if moved else "–"
        requests = sum(cost.requests for cost in costs)
        lines = len({sector // 4 for sector in distinct})
        expected = [requests, sectors, lines, asked, moved, used]
        assert [value for _, value in shown["counts"]] == expected
        assert shown["bad"] == (sectors > fewest)
        assert shown["notes"][1] == f"fewest: {fewest}"
        if len(costs) == 1 or not requests:
            assert shown["sentence"] == str(costs[0])
            assert shown["steps"] == []
        else:
            n_several += 1
            assert f"{requests} requests, one for each field" in shown["sentence"]
            assert ("No two of them share" in shown["sentence"]) == (len(distinct) == sectors)
            if len(distinct) < sectors:
                kept = f"{100 * asked / (32 * len(distinct)):.3g}% of what moves into it"
                assert f"Only {len(distinct)} of the sectors are different" in shown["sentence"]
                assert kept in shown["sentence"]
            assert len(shown["steps"]) == requests
        names = run_listing(shown["python"])
        assert names.get("accesses", [names.get("access")]) == accesses
    assert 10 < n_refused < 200
    assert n_several > 20


def test_the_swizzle_explorer_shows_what_python_computes(controls: dict[str, Any]) -> None:
    states = random_states(controls["swizzle"], 400)
    seen = Counter[str]()
    for state, shown in zip(states, shown_by_scripts({"swizzle": states})["swizzle"]["shown"], strict=True):
        given = as_parameters(state)
        if abs(state["shift"]) < state["bits"]:
            seen["no swizzle"] += 1
            with pytest.raises(lw.Error) as refused:
                swizzle_tile(given)
            assert shown["sentence"].startswith(f"{refused.value} In this tile ")
            offsets = np.arange(int(state["rows"]) * int(state["rowbytes"]) // int(state["element"]))
            read = offsets & ((1 << state["bits"]) - 1 << state["base"] + max(state["shift"], 0))
            moved = offsets ^ np.right_shift(read << 8, 8 + state["shift"])
            assert ("no two elements meet" in shown["sentence"]) == np.array_equal(np.sort(moved), offsets)
            assert "python" not in shown
            continue
        tile = swizzle_tile(given)
        assert_tile_in_cuda(shown["cuda"], tile)
        if defect := tile.defect():
            seen["defect"] += 1
            assert shown["sentence"] == f"{tile.swizzle} does not fit this tile: {defect}."
            continue
        counts = dict(zip((label for label, _ in shown["counts"]), shown["counts"], strict=True))
        for kind, (label, *_) in SWIZZLE_ACCESSES.items():
            note = shown["notes"][list(counts).index(label)]
            if counts[label][1] == "torn":
                with pytest.raises(lw.Error) as refused:
                    swizzle_access({**given, "access": kind})
                if kind == state["access"]:
                    seen["torn"] += 1
                    assert shown["sentence"].startswith(str(refused.value))
                    with pytest.raises(lw.Error, match=re.escape(str(refused.value))):
                        run_listing(shown["python"])
                continue
            cost = lw.shared_cost(swizzle_access({**given, "access": kind}))
            assert counts[label][1] == cost.wavefronts
            assert note == f"fewest: {cost.ideal}"
            if kind == state["access"]:
                seen["conflict" if cost.excess else "free"] += 1
                assert shown["sentence"].startswith(str(cost))
                assert shown["bad"] == (cost.excess > 0)
                assert run_listing(shown["python"])["access"] == cost.access
                assert len(shown["steps"]) == cost.wavefronts
        beyond = tile.swizzle.mask_read >= tile.allocated_elems
        assert ("always 0" in shown["sentence"]) == beyond
        assert f"in bytes: {tile.swizzle.in_units_of(1, int(given['element']))}" in shown["cuda"]
    assert min(seen[kind] for kind in ("no swizzle", "defect", "torn", "conflict", "free")) > 10, seen


def assert_tile_in_cuda(cuda: str, tile: SwizzledTile) -> None:
    """The expressions of a listing mean the same in Python."""
    offset, moved = re.findall(r"(?:int offset =|return) (.*);", cuda)
    row, col = np.indices(tile.extents)
    names = {"row": row, "col": col, "offset": eval(offset, {"row": row, "col": col})}
    np.testing.assert_array_equal(eval(moved, names), tile.table())
    assert f"composition({tile.swizzle}{{}}" in cuda


def test_the_fragment_explorer_shows_what_python_computes(controls: dict[str, Any]) -> None:
    states = random_states(controls["fragment"], 400)
    for state, shown in zip(states, shown_by_scripts({"fragment": states})["fragment"]["shown"], strict=True):
        given = as_parameters(state)
        name = fragment_move(given)
        if name:
            move = MatrixMove.from_name(name)
            assert_matrices(state, shown, name, move)
        else:
            assert_operand(state, shown, fragment_operand(given))


def assert_operand(state: dict[str, Any], shown: dict[str, Any], fragment: Fragment) -> None:
    names = run_listing(shown["python"])
    rows, cols = fragment.shape
    if state["pick"] == "element":
        row, col = state["row"] % rows, state["col"] % cols
        lane, register, half = fragment.owner(row, col)
        found = [lane, register, *([["lower", "upper"][half]] if fragment.packed == 2 else [])]
        assert [value for _, value in shown["counts"]] == found
        assert f"element ({row}, {col}) is in lane {lane}, register {register}" in shown["sentence"]
        assert names["owner"] == (lane, register, half)
        return
    lane = state["lane"]
    held = np.stack([fragment.row[lane], fragment.col[lane]], -1)
    words = [" and ".join(f"({row}, {col})" for row, col in register) for register in held.tolist()]
    assert shown["sentence"] == (
        f"{fragment}: lane {lane} holds {len(held) * fragment.packed} of {rows * cols} elements: "
        + "; ".join(f"{each} in register {i}" for i, each in enumerate(words))
        + "."
    )
    assert [value for _, value in shown["counts"]] == [rows * cols, len(held) * fragment.packed, len(held)]
    assert shown["steps"] == [f"Register {i} of lane {lane}: {each}." for i, each in enumerate(words)]
    assert names["held"] == [tuple(element) for element in held.reshape(-1, 2).tolist()]


def assert_matrices(state: dict[str, Any], shown: dict[str, Any], name: str, move: MatrixMove) -> None:
    names = run_listing(shown["python"])
    within = move.within_matrix
    if state["pick"] == "element":
        matrix, row, col = state["matrix"] % move.n_matrices, state["row"] % 8, state["col"] % 8
        lane, _, half = within.owner(row, col)
        found = [lane, matrix, ["lower", "upper"][half], 8 * matrix + row]
        assert [value for _, value in shown["counts"]] == found
        assert f"lane {8 * matrix + row} points at row {row} of matrix {matrix}" in shown["sentence"]
        assert f"lane {lane}, register {matrix}, {found[2]} half." in shown["sentence"]
        assert names["owner"] == (lane, 0, half)
        return
    lane = state["lane"]
    held = list(zip(within.row[lane].ravel().tolist(), within.col[lane].ravel().tolist(), strict=True))
    assert f"{held[0]} and {held[1]} of" in shown["sentence"]
    pointing = f"{name}: lane {lane} points at row {lane % 8} of matrix {lane // 8}; it g"
    assert shown["sentence"].startswith(pointing) == (lane < move.n_address_lanes)
    elements = 64 * move.n_matrices
    expected = [elements, elements // 32, move.n_matrices, move.n_address_lanes]
    assert [value for _, value in shown["counts"]] == expected
    assert names["held"] == held


def test_the_pipeline_explorer_shows_what_python_computes(controls: dict[str, Any]) -> None:
    states = random_states(controls["pipeline"], 300)
    kinds = Counter[str]()
    for state, shown in zip(states, shown_by_scripts({"pipeline": states})["pipeline"]["shown"], strict=True):
        pipeline = pipeline_of(as_parameters(state))
        totals = [replace(pipeline, stages=n).total for n in range(1, pipeline.tiles + 2)]
        bound = totals[-1]  # all copies asked for at once: memory and work never wait for a buffer
        enough = totals.index(bound) + 1
        per_tile = "0" if not pipeline.per_tile else f"{pipeline.per_tile:.3g}"
        buffers = pipeline.stages * pipeline.blocks
        values = [value for _, value in shown["counts"]]
        assert values == [pipeline.total, bound, totals[0], per_tile, enough, buffers]
        assert shown["bad"] == (pipeline.total > bound)
        assert f"the last tile is done at {pipeline.total:g}." in shown["sentence"]
        late, spare = pipeline.total > bound, pipeline.stages > enough
        kinds["late" if late else "spare" if spare else "right"] += 1
        stages = "1 stage" if enough == 1 else f"{enough} stages"
        assert (f"it takes {stages} to get there" in shown["sentence"]) == late
        assert (f"{stages} would do" in shown["sentence"]) == (spare and not late)
        for step, caption in zip(pipeline.steps, shown["steps"], strict=True):
            assert caption.startswith(f"Tile {step.tile}: ")
            assert f" to {step.arrived:g}, worked on from {step.started:g} to {step.ended:g}." in caption
            assert f"into stage {step.stage}" in caption
        assert run_listing(shown["python"])["pipeline"] == pipeline
    assert min(kinds[kind] for kind in ("late", "spare", "right")) > 20, kinds


def run_listing(python: str) -> dict[str, Any]:
    """The names that a listing of an explorer defines; what it prints is dropped."""
    names: dict[str, Any] = {"print": lambda *_, **__: None}
    exec(python, names)
    return names


# The directive.

PAGE = """\
# Page

```{explorer} bank
:stride: 32
The *caption*.
```

```{explorer} bank
:pattern: column
:padding: 1
```

```{explorer} bank
:name: mine
```
"""


def build(folder: Path, page: str) -> tuple[Path, str]:
    """Build a page with the directive beside one without; returns the output folder and the warnings."""
    source = folder / "source"
    source.mkdir()
    source.joinpath("index.md").write_text(page + "\n```{toctree}\nplain\n```\n")
    source.joinpath("plain.md").write_text("# Plain\n")
    source.joinpath("conf.py").write_text("extensions = ['myst_parser', 'explorers']\n")
    warnings = StringIO()
    out = folder / "out"
    with patch_docutils(str(source)), docutils_namespace():
        app = Sphinx(
            str(source),
            str(source),
            str(out),
            str(folder / "doctrees"),
            "html",
            status=None,
            warning=warnings,
        )
        app.build()
    return out, warnings.getvalue()


@pytest.mark.filterwarnings("ignore")
def test_the_directive_embeds_the_static_drawing(tmp_path: Path) -> None:
    out, warnings = build(tmp_path, PAGE)
    assert warnings == ""
    html = (out / "index.html").read_text()
    figures = re.findall(r'<figure class="lw-explorer".*?</figure>', html, re.DOTALL)
    assert [re.search(r'id="([^"]+)">', figure)[1] for figure in figures] == [  # type: ignore[index]
        "explorer-bank",
        "explorer-bank-2",
        "mine",
    ]
    assert 'data-stride="32"' in figures[0]
    assert "<em>caption</em>" in figures[0]
    access = lw.WarpAccess.from_formula("ld.shared.b32", lambda lane: 128 * lane)
    assert f'aria-label="{lw.figures.draw_bank_map(access).alt}"' in figures[0]
    assert 'data-padding="1"' in figures[1]
    ids = re.findall(r'\bid="([^"]+)"', "".join(figures))
    assert len(ids) == len(set(ids))
    for reference in re.findall(r"url\(#([^)]+)\)", "".join(figures)):
        assert reference in ids
    assert re.search(r'<script type="module" src="_static/explorers/explorer.js', html)
    assert "explorers/" not in (out / "plain.html").read_text()


@pytest.mark.parametrize(
    ("directive", "complaint"),
    [
        ("```{explorer} bnak\n```", "no explorer 'bnak'. There are bank"),
        ("```{explorer} bank\n:stride: much\n```", "explorer bank: invalid literal"),
        ("```{explorer} bank\n:op: jump\n```", "explorer bank: 'jump.shared.b32' is not an instruction"),
        ("```{explorer} bank\n:bytes: 16\n:start: 1\n```", "explorer bank: ld.shared.b128: lane 0 has byte"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_slip_in_the_directive_breaks_the_strict_build(
    directive: str, complaint: str, tmp_path: Path
) -> None:
    _, warnings = build(tmp_path, f"# Page\n\n{directive}\n")
    assert complaint in warnings


# Colours.


def palette(selector: str) -> dict[str, str]:
    """The colours that the style sheet sets for a selector."""
    sheet = (SCRIPTS / "explorers.css").read_text()
    rules = re.search(rf"^{re.escape(selector)} {{(.*?)}}", sheet, re.MULTILINE | re.DOTALL)
    assert rules
    return dict(re.findall(r"--lw-([\w-]+): (#\w{6});", rules[1]))


THEMES = {"light": palette(".lw-explorer"), "dark": palette('html[data-theme="dark"] .lw-explorer')}
TONES = {
    "blue": style.BLUE,
    "green": style.GREEN,
    "amber": style.AMBER,
    "purple": style.PURPLE,
    "grey": style.GREY,
    "danger": style.DANGER,
}


def test_light_colours_are_those_of_the_figures() -> None:
    expected = {
        name: getattr(style, name.upper()) for name in ("paper", "ink", "muted", "rule", "idle", "lost")
    }
    for name, tone in TONES.items():
        expected |= {f"{name}-fill": tone.fill, f"{name}-edge": tone.edge}
    assert THEMES["light"] == expected
    assert THEMES["dark"].keys() == expected.keys()


@pytest.mark.parametrize("theme", THEMES)
def test_colours_can_be_told_apart(theme: str) -> None:
    colour = THEMES[theme]
    for name in TONES:
        for ground in (colour["paper"], colour[f"{name}-fill"]):
            assert style.contrast(colour[f"{name}-edge"], ground) >= 3, (name, ground)
        assert style.contrast(colour["ink"], colour[f"{name}-fill"]) >= 4.5, name
    texts = [("ink", "paper"), ("muted", "paper"), ("lost", "paper"), ("muted", "idle"), ("paper", "lost")]
    for text, ground in texts:
        assert style.contrast(colour[text], colour[ground]) >= 4.5, (text, ground)


def test_scripts_load_nothing_from_elsewhere() -> None:
    for path in SCRIPTS.iterdir():
        text = path.read_text().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//cdn", text), path
        assert all(name.startswith("./") for name in re.findall(r'from "([^"]+)"', text)), path
