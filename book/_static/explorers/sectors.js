// The sector explorer: one access of a warp to global memory, and the sectors and lines that it touches.

import { box, cellLines, label, laneCell, named, s, sheet, tone } from "./draw.js";
import {
  LINE_BYTES,
  SECTOR_BYTES,
  WARP_LANES,
  WORD_BYTES,
  count,
  explainGlobal,
  globalCost,
  instruction,
  threeDigits,
  warpAccess,
} from "./model.js";
import { LANE_CONTROLS, listing, maskInPython, maskOf } from "./warp.js";

const inStruct = (state) => state.pattern === "struct" || state.pattern === "fields";
const strided = (state) => state.pattern === "stride" || state.pattern === "reversed";
const fieldOf = (state) => Math.min(state.field, state.size - 1);

const controls = [
  { name: "op", label: "Instruction", kind: "select", options: [["ld", "load"], ["st", "store"]] },
  {
    name: "bytes",
    label: "Bytes per lane",
    kind: "select",
    options: [["1", "1"], ["2", "2 (half)"], ["4", "4 (float)"], ["8", "8 (float2)"], ["16", "16 (float4)"]],
  },
  {
    name: "pattern",
    label: "Lanes touch",
    kind: "select",
    options: [
      ["stride", "a[stride * lane]"],
      ["reversed", "the same, last lane first"],
      ["shuffled", "neighbours, shuffled"],
      ["same", "one address"],
      ["struct", "a field of structs"],
      ["fields", "all fields, one by one"],
    ],
  },
  ...LANE_CONTROLS,
  { name: "stride", label: "Stride, in elements", kind: "range", min: 0, max: 40, shown: strided },
  {
    name: "size",
    label: "Fields in a struct",
    kind: "range",
    min: 1,
    max: 8,
    say: (size, { bytes }) => `${size}: ${size * bytes} bytes`,
    shown: inStruct,
  },
  {
    name: "field",
    label: "Field",
    kind: "range",
    min: 0,
    max: 7,
    say: (_, state) => `${fieldOf(state)}`,
    shown: (state) => state.pattern === "struct",
  },
  { name: "start", label: "Start, bytes into a line", kind: "range", min: 0, max: 124, step: 2 },
];

// ----------------------------------------------------------------------------------------------------- the access

/** Index of each lane's element, as a function and as Python. */
function indexOf({ pattern, bytes, stride }) {
  if (pattern === "stride") return [(lane) => stride * lane, `(${stride} * lane)`];
  if (pattern === "reversed") return [(lane) => stride * (31 - lane), `(${stride} * (31 - lane))`];
  if (pattern === "same") return [() => 0, "0"];
  // Five is odd: within each n lanes, a power of two, 5 * lane takes every value once.
  const n = Math.min(WARP_LANES, LINE_BYTES / bytes);
  const python = n === WARP_LANES ? "(5 * lane % 32)" : `(lane // ${n} * ${n} + 5 * lane % ${n})`;
  return [(lane) => Math.floor(lane / n) * n + ((5 * lane) % n), python];
}

/** The accesses of a state, one for each request, and the Python that builds them. */
function accessesOf(state) {
  const name = `${state.op}.global.b${8 * state.bytes}`;
  const bytes = Number(state.bytes);
  const { start, size } = state;
  const mask = maskOf(state);
  const tail = maskInPython(mask);
  const begin = start ? `${start} + ` : "";
  if (!inStruct(state)) {
    const [index, python] = indexOf(state);
    return {
      accesses: [warpAccess(name, (lane) => start + bytes * index(lane), mask)],
      python: listing("global_cost", "from_formula", [`"${name}"`, `lambda lane: ${begin}${bytes} * ${python}`, ...tail]),
    };
  }
  const ofField = (field) => warpAccess(name, (lane) => start + bytes * (size * lane + field), mask);
  if (state.pattern === "struct") {
    const field = fieldOf(state);
    const formula = `lambda lane: ${begin}${bytes} * (${size} * lane + ${field})`;
    return {
      accesses: [ofField(field)],
      python: listing("global_cost", "from_formula", [`"${name}"`, formula, ...tail]),
    };
  }
  const given = [`"${name}"`, `lambda lane, field=field: ${begin}${bytes} * (${size} * lane + field)`, ...tail];
  return {
    accesses: Array.from({ length: size }, (_, field) => ofField(field)),
    python: [
      "import lanewise as lw",
      "",
      "accesses = [",
      `    lw.WarpAccess.from_formula(\n        ${given.join(",\n        ")},\n    )`,
      `    for field in range(${size})`,
      "]",
      "for access in accesses:",
      "    print(lw.global_cost(access))",
    ].join("\n"),
  };
}

// ------------------------------------------------------------------------------------------------------ the numbers

/** What all requests ask for together: sums, and what is different among it. */
function totalOf(costs) {
  const sum = (name) => costs.reduce((total, cost) => total + cost[name], 0);
  const sectors = new Set(costs.flatMap((cost) => [...cost.lanesBySector.keys()]));
  const lines = new Set([...sectors].map((sector) => Math.floor((sector * SECTOR_BYTES) / LINE_BYTES)));
  const [asked, moved] = [sum("bytesRequested"), sum("bytesMoved")];
  return {
    requests: sum("requests"),
    sectors: sum("sectors"),
    distinct: sectors.size,
    lines: lines.size,
    asked,
    moved,
    fewest: costs.reduce((total, cost) => total + Math.ceil(cost.bytesRequested / SECTOR_BYTES), 0),
    used: moved ? `${threeDigits((100 * asked) / moved)}%` : "–",
    usedIfKept: sectors.size ? `${threeDigits((100 * asked) / (sectors.size * SECTOR_BYTES))}%` : "–",
  };
}

function sentenceOf(costs, total) {
  if (costs.length === 1 || !total.requests) return explainGlobal(costs[0]);
  const name = costs[0].access.instruction;
  const each =
    `${name}: ${count(total.requests, "request")}, one for each field, ${count(total.sectors, "sector")} in all;` +
    ` ${total.used} of what they move is used.`;
  if (total.distinct === total.sectors) return `${each} No two of them share a sector.`;
  return (
    `${each} Only ${total.distinct} of the sectors are different: if a cache keeps them, ${total.usedIfKept} of` +
    " what moves into it is used."
  );
}

// ------------------------------------------------------------------------------------------------------ the drawing

const CELL = 20;
const GAP = 1.5;
const SECTOR_GAP = 7;
const LEFT = 52;
const WORDS_PER_SECTOR = SECTOR_BYTES / WORD_BYTES;
const SECTORS_PER_LINE = LINE_BYTES / SECTOR_BYTES;
const SECTOR_WIDTH = WORDS_PER_SECTOR * CELL;
const WIDTH = LEFT + SECTORS_PER_LINE * (SECTOR_WIDTH + SECTOR_GAP) - SECTOR_GAP + 4;
const TOP = 22;
const MANY_LINES = 12;
const LOW_ROW = 15;
const BYTE_BAR = 9;

const sectorX = (sector) => LEFT + (sector % SECTORS_PER_LINE) * (SECTOR_WIDTH + SECTOR_GAP);

/** For each word the lanes that want a part of it, and for each byte the first lane that wants it. */
function wanted(cost) {
  const width = instruction(cost.access.instruction).bytesPerLane;
  const lanesByWord = new Map();
  const laneOfByte = new Map();
  for (const lane of cost.access.lanes) {
    const start = cost.access.addresses[lane];
    for (let byte = start; byte < start + width; byte++) {
      const word = Math.floor(byte / WORD_BYTES);
      const lanes = lanesByWord.get(word) ?? [];
      if (lanes.at(-1) !== lane) lanesByWord.set(word, [...lanes, lane]);
      if (!laneOfByte.has(byte)) laneOfByte.set(byte, lane);
    }
  }
  return { width, lanesByWord, laneOfByte };
}

/** What several requests of one width want, as if it were one. */
function together(views) {
  const lanesByWord = new Map();
  for (const [word, lanes] of views.flatMap((view) => [...view.lanesByWord])) {
    lanesByWord.set(word, [...new Set([...(lanesByWord.get(word) ?? []), ...lanes])].sort((a, b) => a - b));
  }
  const laneOfByte = new Map(views.flatMap((view) => [...view.laneOfByte]));
  return { width: views[0].width, lanesByWord, laneOfByte };
}

function drawHeader() {
  const parts = [label(LEFT - 10, 10, "line", "lw-small", "end")];
  for (let sector = 0; sector < SECTORS_PER_LINE; sector++) {
    const first = sector * SECTOR_BYTES;
    const text = `bytes ${first}..${first + SECTOR_BYTES - 1}`;
    parts.push(label(sectorX(sector) + SECTOR_WIDTH / 2, 10, text, "lw-small"));
  }
  return parts;
}

/** One word of a sector: the bytes that lanes want, to scale, under the lanes' numbers where they are narrower. */
function drawWord(word, x, y, height, { width, lanesByWord, laneOfByte }) {
  const lanes = lanesByWord.get(word);
  if (!lanes) return null;
  const title = `bytes ${word * WORD_BYTES}..${word * WORD_BYTES + WORD_BYTES - 1}: ${named("lane", lanes)}`;
  if (width >= WORD_BYTES) return laneCell(x + GAP / 2, y + GAP / 2, CELL - GAP, height - GAP, lanes, title);
  const above = height - BYTE_BAR;
  const lines = cellLines(lanes);
  const step = above / (lines.length + 0.3);
  const parts = lines.map((line, i) =>
    label(x + CELL / 2, y + above / 2 + (i - (lines.length - 1) / 2) * step, line, "lw-lane"),
  );
  for (let byte = word * WORD_BYTES; byte < (word + 1) * WORD_BYTES; byte += width) {
    const lane = laneOfByte.get(byte);
    if (lane === undefined) continue;
    const size = (width / WORD_BYTES) * CELL;
    const left = x + ((byte % WORD_BYTES) / WORD_BYTES) * CELL;
    parts.push(box(left + 0.5, y + above, size - 1, BYTE_BAR - GAP / 2, tone(lane)));
  }
  return s("g", {}, s("title", {}, title), box(x + GAP / 2, y + 1, CELL - GAP, above - 1, "lw-paper"), parts);
}

function heightOf(views, nLines) {
  const all = views.flatMap((view) => [...view.lanesByWord.values()]);
  const most = Math.max(1, ...all.map((lanes) => cellLines(lanes).length));
  const bar = views[0].width < WORD_BYTES ? BYTE_BAR : 0;
  if (most === 1) return bar + (nLines > MANY_LINES ? LOW_ROW : CELL);
  return bar + 8 + 12 * most;
}

/** Each line as four sectors of eight words: of one request, or of all of them one upon the other. */
function drawLines(costs, step) {
  const shown = step === null ? costs : [costs[step]];
  const all = costs.map(wanted);
  const merged = together(all);
  const view = step === null ? merged : all[step];
  const sectorsOf = (some) => new Set(some.flatMap((cost) => [...cost.lanesBySector.keys()]));
  const [touched, now] = [sectorsOf(costs), sectorsOf(shown)];
  const earlier = step === null ? new Set() : sectorsOf(costs.slice(0, step));
  const lines = [...new Set([...touched].map((sector) => Math.floor(sector / SECTORS_PER_LINE)))].sort((a, b) => a - b);
  const height = heightOf([...all, merged], lines.length);
  const parts = [];
  let y = TOP;
  lines.forEach((line, i) => {
    if (i) y += line === lines[i - 1] + 1 ? 4 : 11;
    parts.push(label(LEFT - 10, y + height / 2, `${line}`, "lw-small", "end"));
    for (let sector = line * SECTORS_PER_LINE; sector < (line + 1) * SECTORS_PER_LINE; sector++) {
      const x = sectorX(sector);
      const group = s("g", { "data-sector": touched.has(sector) ? sector : null });
      if (!now.has(sector)) {
        const look = earlier.has(sector) ? "lw-idle" : "lw-waiting";
        group.append(box(x, y, SECTOR_WIDTH, height, look));
        if (earlier.has(sector)) {
          group.append(label(x + SECTOR_WIDTH / 2, y + height / 2, "came earlier", "lw-small"));
        }
        parts.push(group);
        continue;
      }
      group.append(box(x, y, SECTOR_WIDTH, height, "lw-lost"));
      for (let i = 0; i < WORDS_PER_SECTOR; i++) {
        const cell = drawWord(sector * WORDS_PER_SECTOR + i, x + i * CELL, y, height, view);
        if (cell) group.append(cell);
      }
      group.append(box(x, y, SECTOR_WIDTH, height, "lw-outline"));
      parts.push(group);
    }
    y += height;
  });
  const isLossy = view.laneOfByte.size < now.size * SECTOR_BYTES;
  return { parts, bottom: y, isLossy, nIdle: lines.length * SECTORS_PER_LINE - touched.size };
}

function drawKey(y, isLossy, nIdle) {
  const parts = [];
  let x = LEFT;
  const entry = (look, text, room) => {
    parts.push(box(x, y + 6, 32, 14, look), label(x + 40, y + 13, text, "lw-small", "start"));
    x += room;
  };
  if (isLossy) entry("lw-lost", "moved, but asked for by no lane", 230);
  if (nIdle) entry("lw-waiting", "not moved", 120);
  return parts;
}

function draw(costs, step, sentence) {
  const { parts, bottom, isLossy, nIdle } = drawLines(costs, step);
  const key = drawKey(bottom + 4, isLossy, nIdle);
  return sheet(WIDTH, bottom + (key.length ? 32 : 6), `Sector map. ${sentence}`, drawHeader(), parts, key);
}

function captionOf(costs, number) {
  const cost = costs[number];
  const before = new Set(costs.slice(0, number).flatMap((earlier) => [...earlier.lanesBySector.keys()]));
  const again = [...cost.lanesBySector.keys()].filter((sector) => before.has(sector)).length;
  const rest = again ? `, ${again === cost.sectors ? "all" : again} of them a second time or more` : "";
  return `Request ${number + 1} of ${costs.length}, field ${number}: ${count(cost.sectors, "sector")}${rest}.`;
}

function show(state) {
  const { accesses, python } = accessesOf(state);
  const costs = accesses.map(globalCost);
  const total = totalOf(costs);
  const sentence = sentenceOf(costs, total);
  const bad = total.sectors > total.fewest;
  const several = costs.length > 1 && total.requests;
  return {
    sentence,
    bad,
    counts: [
      { label: "requests", value: total.requests },
      { label: "sectors", value: total.sectors, bad, note: `fewest: ${total.fewest}` },
      { label: "lines", value: total.lines },
      { label: "bytes asked", value: total.asked },
      { label: "bytes moved", value: total.moved, bad },
      { label: "used", value: total.used, bad, note: several ? `${total.usedIfKept} if kept` : "" },
    ],
    draw: total.requests ? (step) => draw(costs, step, sentence) : null,
    steps: several ? costs.map((_, number) => captionOf(costs, number)) : [],
    python,
  };
}

export default { title: "Sector explorer", controls, show };
