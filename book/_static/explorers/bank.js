// The bank explorer: one access of one warp to shared memory, and what the 32 banks make of it.

import { box, cellLines, label, laneCell, named, runs, s, sheet, tone } from "./draw.js";
import { BANKS, WARP_LANES, WORD_BYTES, explainShared, replay, sharedCost, warpAccess } from "./model.js";
import { LANE_CONTROLS, listing, maskInPython, maskOf } from "./warp.js";

const TILE = 32; // columns of the tile, without padding

const inTile = (state) => state.pattern !== "stride";

const controls = [
  { name: "op", label: "Instruction", kind: "select", options: [["ld", "load"], ["st", "store"]] },
  {
    name: "bytes",
    label: "Bytes per lane",
    kind: "select",
    options: [["1", "1"], ["2", "2"], ["4", "4 (float)"], ["8", "8 (double, float2)"], ["16", "16 (float4)"]],
  },
  {
    name: "pattern",
    label: "Lanes touch",
    kind: "select",
    options: [
      ["stride", "s[stride * lane]"],
      ["row", "a tile's row"],
      ["column", "a tile's column"],
      ["diagonal", "a tile's diagonal"],
    ],
  },
  ...LANE_CONTROLS,
  {
    name: "stride",
    label: "Stride, in elements",
    kind: "range",
    min: 0,
    max: 66,
    shown: (state) => !inTile(state),
  },
  {
    name: "at",
    label: "Row or column number",
    kind: "range",
    min: 0,
    max: TILE - 1,
    shown: inTile,
  },
  {
    name: "padding",
    label: "Padding, elements per row",
    kind: "range",
    min: 0,
    max: 8,
    say: (padding) => `${padding}: pitch ${TILE + padding}`,
    shown: inTile,
  },
  {
    name: "xor",
    label: "XOR the column with",
    kind: "range",
    min: 0,
    max: 5,
    say: (bits) => (bits ? `row % ${2 ** bits}` : "nothing"),
    shown: inTile,
  },
  { name: "start", label: "Start, in 4-byte words", kind: "range", min: 0, max: 31 },
];

// ----------------------------------------------------------------------------------------------------- the access

/** Row and column of a tile for each lane, as functions and as Python. */
function coordinates({ pattern, at, xor }) {
  const period = 2 ** xor;
  const moved = (row, col) => col ^ (row % period);
  if (pattern === "row") {
    const flip = at % period;
    return {
      row: () => at,
      col: (lane) => moved(at, lane),
      pythonRow: `${at}`,
      pythonCol: `lambda lane: lane${flip ? ` ^ ${flip}` : ""}`,
    };
  }
  const diagonal = pattern === "diagonal";
  const plain = diagonal ? (at ? `(lane + ${at}) % ${TILE}` : "lane") : `${at}`;
  const left = diagonal && at ? `(${plain})` : plain;
  return {
    row: (lane) => lane,
    col: (lane) => moved(lane, diagonal ? (lane + at) % TILE : at),
    pythonRow: "lambda lane: lane",
    pythonCol: xor ? `lambda lane: ${left} ^ (lane % ${period})` : diagonal ? `lambda lane: ${plain}` : plain,
  };
}

/** The access of a state, and the Python that builds it. */
function accessOf(state) {
  const name = `${state.op}.shared.b${8 * state.bytes}`;
  const bytes = Number(state.bytes);
  const base = WORD_BYTES * state.start;
  const mask = maskOf(state);
  const tail = maskInPython(mask);
  if (!inTile(state)) {
    const formula = `${base ? `${base} + ` : ""}${bytes} * (${state.stride} * lane)`;
    const python = listing("shared_cost", "from_formula", [`"${name}"`, `lambda lane: ${formula}`, ...tail]);
    return { make: () => warpAccess(name, (lane) => base + bytes * state.stride * lane, mask), python };
  }
  const pitch = TILE + state.padding;
  const { row, col, pythonRow, pythonCol } = coordinates(state);
  const python = listing("shared_cost", "from_tile", [
    `"${name}"`,
    `row=${pythonRow}`,
    `col=${pythonCol}`,
    `pitch=${pitch}`,
    ...(bytes === WORD_BYTES ? [] : [`element_bytes=${bytes}`]),
    ...(base ? [`base_address=${base}`] : []),
    ...tail,
  ]);
  const address = (lane) => base + bytes * (row(lane) * pitch + col(lane));
  return { make: () => warpAccess(name, address, mask), python };
}

// ---------------------------------------------------------------------------------------------------- the drawing

const CELL = 20;
const LOW_ROW = 16; // where there are many
const GAP = 1.5;
const LEFT = 44;
const WIDTH = LEFT + BANKS * CELL + 4;
const LANES_Y = 4;
const BEAMS = 46; // between the lanes and the banks
const BANKS_Y = LANES_Y + CELL + BEAMS;
const BODY_Y = BANKS_Y + CELL + 8;
const PHASE_LABEL = 22;

const columnX = (i) => LEFT + i * CELL;
const rowHeight = (pass, nRows) => {
  const most = Math.max(1, ...[...pass.lanesByWord.values()].map((lanes) => cellLines(lanes).length));
  if (most === 1) return nRows > 16 ? LOW_ROW : CELL;
  return 8 + 13 * most;
};

const served = (pass) => [...new Set([...pass.lanesByWord.values()].flat())].sort((a, b) => a - b);

/** The lanes above the banks, with a line from each lane served to its bank; all of them if `step` is null. */
function drawLanes(cost, passes, step) {
  const shown = step === null ? passes : [passes[step]];
  const now = new Set(shown.flatMap(served));
  const later = new Set(step === null ? [] : passes.slice(step + 1).flatMap(served));
  const parts = [label(LEFT - 8, LANES_Y + CELL / 2, "lane", "lw-small", "end")];
  for (let lane = 0; lane < WARP_LANES; lane++) {
    const x = columnX(lane);
    const active = cost.access.addressingLanes.includes(lane);
    if (now.has(lane)) parts.push(box(x + GAP / 2, LANES_Y, CELL - GAP, CELL, tone(lane)));
    else if (later.has(lane)) parts.push(box(x + GAP / 2, LANES_Y, CELL - GAP, CELL, "lw-waiting"));
    const look = now.has(lane) ? "lw-lane" : "lw-small";
    parts.push(label(x + CELL / 2, LANES_Y + CELL / 2, active ? `${lane}` : "–", look));
  }
  for (const pass of shown) {
    const words = new Map();
    for (const [word, lanes] of pass.lanesByWord) {
      for (const lane of lanes) words.set(lane, [...(words.get(lane) ?? []), word]);
    }
    for (const [lane, own] of words) parts.push(beam(lane, own, step === null));
  }
  return parts;
}

function beam(lane, words, faint) {
  const [top, bottom] = [LANES_Y + CELL + 1, BANKS_Y - 1];
  const x = columnX(lane) + CELL / 2;
  const first = columnX(Math.min(...words) % BANKS);
  const look = `lw-beam ${tone(lane)}${faint ? " lw-faint" : ""}`;
  if (words.length === 1 || faint) {
    return s("path", { d: `M${x} ${top}L${first + (words.length * CELL) / 2} ${bottom}`, class: look });
  }
  const right = first + words.length * CELL - 3;
  return s("path", { d: `M${x - 5} ${top}h10L${right} ${bottom}H${first + 3}z`, class: `${look} lw-wide` });
}

function drawBanks(cost) {
  const crowded = new Set();
  for (const phase of cost.phases) {
    for (const [bank, words] of phase.wordsByBank) if (words.length > 1) crowded.add(bank);
  }
  const parts = [label(LEFT - 8, BANKS_Y + CELL / 2, "bank", "lw-small", "end")];
  for (let bank = 0; bank < BANKS; bank++) {
    const bad = crowded.has(bank);
    if (bad) parts.push(box(columnX(bank) + GAP / 2, BANKS_Y, CELL - GAP, CELL, "lw-crowded"));
    else parts.push(box(columnX(bank) + GAP / 2, BANKS_Y, CELL - GAP, CELL, "lw-bank"));
    parts.push(label(columnX(bank) + CELL / 2, BANKS_Y + CELL / 2, `${bank}`, bad ? "lw-inverted" : "lw-small"));
  }
  return parts;
}

/** The words of each wavefront under their banks, one row a wavefront; returns the parts and where they end. */
function drawWavefronts(cost, passes, step) {
  const parts = [];
  const outlines = [];
  let y = BODY_Y;
  cost.phases.forEach((phase, index) => {
    if (cost.phases.length > 1) {
      const fused = cost.fused ? ", two groups fused" : "";
      parts.push(label(LEFT, y + PHASE_LABEL / 2, `${named("lane", phase.lanes)}${fused}`, "lw-text", "start"));
      y += PHASE_LABEL;
    }
    const top = y;
    const bottoms = [];
    passes.forEach((pass, number) => {
      if (pass.phase !== index) return;
      const height = rowHeight(pass, passes.length);
      const aside = step !== null && step !== number;
      const row = s("g", { class: aside ? "lw-aside" : null, "data-wavefront": number });
      row.append(label(LEFT - 8, y + height / 2, `${number + 1}`, "lw-small", "end"));
      const busy = new Map([...pass.lanesByWord].map(([word, lanes]) => [word % BANKS, [word, lanes]]));
      const free = Array.from({ length: BANKS }, (_, bank) => bank).filter((bank) => !busy.has(bank));
      for (const [first, n] of runs(free)) {
        const look = bottoms.length ? "lw-lost" : "lw-idle";
        row.append(box(columnX(first) + GAP / 2, y + GAP / 2, n * CELL - GAP, height - GAP, look));
      }
      for (const [bank, [word, lanes]] of busy) {
        const title = `wavefront ${number + 1}, bank ${bank}: word ${word} for ${named("lane", lanes)}`;
        row.append(laneCell(columnX(bank) + GAP / 2, y + GAP / 2, CELL - GAP, height - GAP, lanes, title));
      }
      parts.push(row);
      y += height;
      bottoms.push(y);
    });
    for (const [bank, words] of phase.wordsByBank) {
      if (words.length < 2) continue;
      const height = bottoms[words.length - 1] - top;
      const look = step === null || passes[step].phase === index ? "lw-conflict" : "lw-conflict lw-aside";
      outlines.push(box(columnX(bank) + GAP / 2, top + GAP / 2, CELL - GAP, height - GAP, look));
    }
  });
  return { parts: [...parts, ...outlines], bottom: y };
}

function drawKey(y) {
  return [
    box(LEFT, y + 6, 32, 14, "lw-lost"),
    label(LEFT + 40, y + 13, "slots that stay empty while the outlined banks work off their queue", "lw-small", "start"),
  ];
}

function draw(cost, passes, step) {
  const { parts, bottom } = drawWavefronts(cost, passes, step);
  const key = cost.excess ? drawKey(bottom + 4) : [];
  const height = bottom + (cost.excess ? 32 : 6);
  const alt = `Bank map. ${explainShared(cost)}`;
  const lanes = passes.length ? drawLanes(cost, passes, step) : [];
  return sheet(WIDTH, height, alt, lanes, drawBanks(cost), parts, key);
}

function captionOf(cost, passes, number) {
  const pass = passes[number];
  const lanes = served(pass);
  const waiting = new Set(passes.slice(number + 1).flatMap(served));
  const wait = waiting.size ? ` ${waiting.size} ${waiting.size === 1 ? "lane waits" : "lanes wait"}.` : "";
  return `Wavefront ${number + 1} of ${passes.length} serves ${named("lane", lanes)}.${wait}`;
}

function show(state) {
  const { make, python } = accessOf(state);
  const cost = sharedCost(make());
  const passes = replay(cost);
  const sizes = [...new Set(cost.phases.map((phase) => phase.lanes.length))];
  const note = cost.fused ? "fused" : sizes.length === 1 ? `of ${sizes[0]} lane${sizes[0] === 1 ? "" : "s"}` : "";
  return {
    sentence: explainShared(cost),
    bad: cost.excess > 0,
    counts: [
      { label: "wavefronts", value: cost.wavefronts, bad: cost.excess > 0 },
      { label: "fewest possible", value: cost.ideal },
      { label: "excess", value: cost.excess, bad: cost.excess > 0 },
      { label: "groups of lanes", value: cost.phases.length, note },
    ],
    draw: (step) => draw(cost, passes, step),
    steps: passes.map((_, number) => captionOf(cost, passes, number)),
    python,
  };
}

export default { title: "Bank explorer", controls, show };
