// The swizzle explorer: Swizzle<B,M,S> on a tile, and who meets in a bank when the tile is filled and read.

import { box, label, named, s, sheet, tone } from "./draw.js";
import {
  BANKS,
  CHUNK_BYTES,
  LINE_BYTES,
  ModelError,
  WORD_BYTES,
  explainShared,
  replay,
  sharedCost,
  spans,
  swizzle,
  warpAccess,
  xorBits,
} from "./model.js";

const ACCESSES = {
  fill: { name: "row fill", instruction: "st.shared.b128", width: 16 },
  column4: { name: "column, 4 B", instruction: "ld.shared.b32", width: 4 },
  column8: { name: "column, 8 B", instruction: "ld.shared.b64", width: 8 },
  column16: { name: "column, 16 B", instruction: "ld.shared.b128", width: 16 },
  ldmatrix: { name: "ldmatrix.x4", instruction: "ldmatrix.x4", width: 16 },
};

const nPieces = (state) => Number(state.rowbytes) / ACCESSES[state.access].width;

const controls = [
  { name: "bits", label: "B, bits that move", kind: "range", min: 0, max: 5 },
  {
    name: "base",
    label: "M, low bits that stay",
    kind: "range",
    min: 0,
    max: 6,
    say: (base, { element }) => `${base}: ${element * 2 ** base} bytes`,
  },
  { name: "shift", label: "S, distance", kind: "range", min: -5, max: 7 },
  { name: "rows", label: "Rows", kind: "select", options: [["8", "8"], ["16", "16"], ["32", "32"]] },
  {
    name: "rowbytes",
    label: "Bytes in a row",
    kind: "select",
    options: [["32", "32"], ["64", "64"], ["128", "128"], ["256", "256"]],
  },
  {
    name: "element",
    label: "Element",
    kind: "select",
    options: [["1", "1 byte"], ["2", "2 bytes (half)"], ["4", "4 bytes (float)"]],
  },
  {
    name: "access",
    label: "Access",
    kind: "select",
    options: [
      ["fill", "fill rows, 16-byte stores"],
      ["column4", "read a column, 4 bytes"],
      ["column8", "read a column, 8 bytes"],
      ["column16", "read a column, 16 bytes"],
      ["ldmatrix", "ldmatrix.x4"],
    ],
  },
  {
    name: "at",
    label: "Which column",
    kind: "range",
    min: 0,
    max: 15,
    say: (at, state) => `piece ${at % nPieces(state)} of ${nPieces(state)}`,
    shown: (state) => state.access !== "fill",
  },
  {
    name: "show",
    label: "A cell shows",
    kind: "select",
    options: [["bank", "its first bank"], ["chunk", "its chunk of 128 bytes"], ["offset", "its offset"]],
  },
];

// ------------------------------------------------------------------------------------------------------- the tile

/** The tile of a state: its sizes, in elements, and where the XOR puts each of them. */
function tileOf(state) {
  const element = Number(state.element);
  const rows = Number(state.rows);
  const cols = Number(state.rowbytes) / element;
  const { bits, base, shift } = state;
  const place = (row, col) => xorBits(bits, base, shift, cols * row + col);
  const places = Array.from({ length: rows * cols }, (_, offset) => xorBits(bits, base, shift, offset));
  return { element, rows, cols, place, places, bits, base, shift };
}

const at = (tile, offset) => `(${Math.floor(offset / tile.cols)}, ${offset % tile.cols})`;

/** Why what is stored in the tile cannot be read back, in words; empty if it can. */
function defectOf(tile) {
  const seen = new Map();
  let twins = null;
  tile.places.forEach((place, offset) => {
    const first = seen.get(place);
    if (first === undefined) seen.set(place, offset);
    else if (!twins || place < twins[2]) twins = [first, offset, place];
  });
  if (twins) return `${at(tile, twins[0])} and ${at(tile, twins[1])} both land on element ${twins[2]}`;
  const furthest = Math.max(...tile.places);
  if (furthest < tile.places.length) return "";
  const where = at(tile, tile.places.indexOf(furthest));
  return `${where} lands on element ${furthest}, outside the ${tile.places.length} allocated`;
}

/** The bits that are read above the tile, where all offsets have 0. */
function idleBits(tile, found) {
  const top = Math.log2(tile.places.length);
  return found.bitsRead.filter((bit) => bit >= top);
}

/** Row and first column of each lane, as functions and as Python. */
function coordinates(kind, state, tile) {
  const { width } = ACCESSES[kind];
  const [elems, pieces] = [width / tile.element, Number(state.rowbytes) / width];
  if (kind === "fill") {
    const wraps = 32 / pieces > tile.rows;
    return {
      row: (lane) => Math.floor(lane / pieces) % tile.rows,
      col: (lane) => elems * (lane % pieces),
      pythonRow: `lambda lane: lane // ${pieces}${wraps ? ` % ${tile.rows}` : ""}`,
      pythonCol: `lambda lane: ${elems} * (lane % ${pieces})`,
    };
  }
  const down = kind === "ldmatrix" ? Math.min(tile.rows, 16) : tile.rows;
  const first = state.at % pieces;
  const one = down >= 32;
  const begin = first ? `(${first} + lane // ${down})` : `lane // ${down}`;
  return {
    row: (lane) => lane % down,
    col: (lane) => elems * ((first + Math.floor(lane / down)) % pieces),
    pythonRow: `lambda lane: lane % ${down}`,
    pythonCol: one ? `${elems * first}` : `lambda lane: ${elems} * (${begin} % ${pieces})`,
  };
}

/** One access through the swizzle. A swizzle that tears its pieces apart is refused, as Python refuses it. */
function accessOf(kind, state, tile, found) {
  const { instruction, width } = ACCESSES[kind];
  found.inUnitsOf(width, tile.element);
  const { row, col } = coordinates(kind, state, tile);
  return warpAccess(instruction, (lane) => tile.element * tile.place(row(lane), col(lane)));
}

function costOrRefusal(kind, state, tile, found) {
  try {
    return { cost: sharedCost(accessOf(kind, state, tile, found)) };
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    return { refusal: error.message };
  }
}

// ------------------------------------------------------------------------------------------------------- the code

function pythonOf(state, tile) {
  const { pythonRow, pythonCol } = coordinates(state.access, state, tile);
  return [
    "import lanewise as lw",
    "from lanewise.layouts import row_major",
    "",
    `swizzle = lw.Swizzle(${tile.bits}, ${tile.base}, ${tile.shift})`,
    `tile = swizzle.compose(row_major((${tile.rows}, ${tile.cols})))`,
    "access = lw.WarpAccess.from_layout(",
    `    "${ACCESSES[state.access].instruction}",`,
    "    tile,",
    `    row=${pythonRow},`,
    `    col=${pythonCol},`,
    `    element_bytes=${tile.element},`,
    ")",
    "print(lw.shared_cost(access))",
  ].join("\n");
}

function cudaOf(tile, found) {
  const mask = found.bitsRead.reduce((sum, bit) => sum + 2 ** bit, 0);
  const towards = tile.shift >= 0 ? `>> ${tile.shift}` : `<< ${-tile.shift}`;
  const moved = tile.bits ? `offset ^ ((offset & 0x${mask.toString(16)}) ${towards})` : "offset";
  const [rows, cols] = [tile.rows, tile.cols];
  const bytes = tile.element === 1 ? "1 byte" : `${tile.element} bytes`;
  return [
    `// offsets in elements of ${bytes}; in bytes: ${found.inUnitsOf(1, tile.element).name}`,
    "__device__ int tile_index(int row, int col) {",
    `    int offset = ${cols} * row + col;`,
    `    return ${moved};`,
    "}",
    "",
    "// the same with CuTe",
    `auto tile = composition(${found.name}{},`,
    `                        Layout<Shape<_${rows}, _${cols}>, Stride<_${cols}, _1>>{});`,
  ].join("\n");
}

// ---------------------------------------------------------------------------------------------------- the bit picture

const WIDTH = 706;
const LEFT = 44;
const BIT = 44;
const BIT_HEIGHT = 22;

/** The bits of an offset before and after, which of them name row and column, and which the bank. */
function drawBits(tile, found, y) {
  const top = Math.log2(tile.places.length);
  const n = Math.max(top, ...found.bitsRead.map((bit) => bit + 1), ...found.bitsChanged.map((bit) => bit + 1));
  const size = Math.min(BIT, (WIDTH - LEFT - 8) / n);
  const x = (bit) => LEFT + (n - 1 - bit) * size;
  const [before, after] = [y + 24, y + 96];
  const parts = [];
  const bracket = (low, high, height, text, isUnder) => {
    if (high < low) return;
    const [left, right] = [x(high) + 3, x(low) + size - 3];
    const tick = isUnder ? -4 : 4;
    parts.push(s("path", { d: `M${left} ${height + tick}v${-tick}H${right}v${tick}`, class: "lw-bracket" }));
    if (right - left > 7 * text.length || !isUnder) {
      parts.push(label((left + right) / 2, height + (isUnder ? 10 : -9), text, "lw-small"));
    }
  };
  const colBits = Math.log2(tile.cols);
  bracket(colBits, top - 1, y + 18, "row", false);
  bracket(0, colBits - 1, y + 18, "column", false);
  parts.push(label(LEFT - 8, before + BIT_HEIGHT / 2, "offset", "lw-small", "end"));
  parts.push(label(LEFT - 8, after + BIT_HEIGHT / 2, "place", "lw-small", "end"));
  const flips = new Map(found.bitsChanged.map((bit, i) => [bit, found.bitsRead[i]]));
  for (let bit = 0; bit < n; bit++) {
    const look = found.bitsRead.includes(bit) ? "lw-tone-2" : flips.has(bit) ? "lw-tone-0" : "lw-grey";
    const beyond = bit >= top;
    parts.push(box(x(bit) + 1, before, size - 2, BIT_HEIGHT, beyond ? "lw-waiting" : look));
    parts.push(label(x(bit) + size / 2, before + BIT_HEIGHT / 2, beyond ? "0" : `${bit}`, "lw-lane"));
    parts.push(box(x(bit) + 1, after, size - 2, BIT_HEIGHT, flips.has(bit) ? "lw-tone-0" : beyond ? "lw-waiting" : "lw-grey"));
    const written = flips.has(bit) ? `${bit} ⊕ ${flips.get(bit)}` : `${bit}`;
    const room = size > 6.4 * written.length + 4;
    parts.push(label(x(bit) + size / 2, after + BIT_HEIGHT / 2, room ? written : `⊕${flips.get(bit) ?? ""}`, "lw-lane"));
  }
  for (const [changed, read] of flips) {
    const [from, to] = [x(read) + size / 2, x(changed) + size / 2];
    const d = `M${from} ${before + BIT_HEIGHT + 1}C${from} ${before + 44},${to} ${after - 24},${to} ${after - 5}`;
    parts.push(s("path", { d, class: "lw-beam lw-tone-2" }));
    parts.push(s("path", { d: `M${to - 3.5} ${after - 6}h7l-3.5 5z`, class: "lw-tone-2" }));
  }
  const small = Math.log2(tile.element);
  const low = Math.max(0, Math.log2(WORD_BYTES) - small);
  const line = Math.log2(LINE_BYTES) - small;
  const under = after + BIT_HEIGHT + 8;
  bracket(0, low - 1, under, "byte", true);
  bracket(low, Math.min(line, n) - 1, under, "bank", true);
  bracket(line, n - 1, under, "128-byte line", true);
  return { parts, bottom: under + 22 };
}

// -------------------------------------------------------------------------------------------------------- the grid

const MOST_COLS = 32;

/** Bytes of the cells of the grid: 16, or as little as the swizzle moves. */
function cellBytes(tile) {
  return tile.bits ? Math.max(tile.element, Math.min(CHUNK_BYTES, tile.element * 2 ** tile.base)) : CHUNK_BYTES;
}

/** For each word the lanes that touch it, and whether it must wait for its bank or make others wait. */
function touchedWords(cost) {
  const found = new Map();
  for (const phase of cost.phases) {
    for (const [word, lanes] of phase.lanesByWord) {
      const earlier = found.get(word) ?? { lanes: [], crowded: false };
      earlier.lanes.push(...lanes);
      earlier.crowded ||= phase.wordsByBank.get(word % BANKS).length > 1;
      found.set(word, earlier);
    }
  }
  return found;
}

function drawGrid(tile, state, cost, passes, step, y) {
  const bytes = cellBytes(tile);
  const elems = bytes / tile.element;
  const nCols = Math.min(MOST_COLS, tile.cols / elems);
  const cellWidth = Math.min(80, (WIDTH - LEFT - 4) / nCols);
  const height = tile.rows > 16 ? 17 : 22;
  const wide = cellWidth >= 46;
  const words = cost ? touchedWords(cost) : new Map();
  const now = step === null ? null : passes[step].lanesByWord;
  const counted = new Map();
  for (const place of tile.places) counted.set(place, (counted.get(place) ?? 0) + 1);
  const parts = [label(LEFT - 8, y + 9, "row", "lw-small", "end")];
  for (let i = 0; i < nCols; i++) {
    const first = i * elems;
    const text = elems > 1 && wide ? `${first}..${first + elems - 1}` : `${first}`;
    parts.push(label(LEFT + (i + 0.5) * cellWidth, y + 9, text, "lw-small"));
  }
  const outlines = [];
  for (let row = 0; row < tile.rows; row++) {
    const top = y + 20 + row * height;
    parts.push(label(LEFT - 8, top + height / 2, `${row}`, "lw-small", "end"));
    for (let i = 0; i < nCols; i++) {
      const place = tile.place(row, i * elems);
      const address = place * tile.element;
      const bank = Math.floor(address / WORD_BYTES) % BANKS;
      const chunk = Math.floor((address % LINE_BYTES) / CHUNK_BYTES);
      const own = ownWords(address, bytes);
      const lanes = [...new Set(own.flatMap((word) => words.get(word)?.lanes ?? []))].sort((a, b) => a - b);
      const served = now ? [...new Set(own.flatMap((word) => now.get(word) ?? []))].sort((a, b) => a - b) : [];
      const crowded = own.some((word) => words.get(word)?.crowded);
      const twins = counted.get(place) > 1 || place >= tile.places.length;
      const text = `${{ bank, chunk, offset: place }[state.show]}`;
      const x = LEFT + i * cellWidth;
      const area = [x + 0.5, top + 0.5, cellWidth - 1, height - 1];
      const look = served.length ? tone(served[0]) : twins ? "lw-danger" : `lw-shade-${chunk}`;
      const about = lanes.length ? `; ${named("lane", lanes)}` : "";
      const title = `row ${row}, column ${i * elems}: offset ${place}, bank ${bank}, chunk ${chunk}${about}`;
      const cell = s("g", { class: now && lanes.length && !served.length ? "lw-aside" : null, "data-place": place });
      cell.append(box(...area, look, title));
      if (wide && lanes.length) {
        const who = lanes.length > 2 ? `${lanes.length} lanes` : `lane ${lanes.join(", ")}`;
        cell.append(label(x + 5, top + height / 2, text, "lw-lane", "start"));
        cell.append(label(x + cellWidth - 5, top + height / 2, cellWidth >= 70 ? who : `L${lanes[0]}`, "lw-who", "end"));
      } else if (6.4 * text.length < cellWidth) {
        cell.append(label(x + cellWidth / 2, top + height / 2, text, "lw-lane"));
      }
      parts.push(cell);
      if (lanes.length && (!now || served.length)) outlines.push(box(...area, crowded ? "lw-conflict" : "lw-touched"));
    }
  }
  const bottom = y + 20 + tile.rows * height;
  const rest = tile.cols / elems - nCols;
  if (rest) parts.push(label(LEFT, bottom + 12, `columns from ${nCols * elems} on are not drawn`, "lw-small", "start"));
  return { parts: [...parts, ...outlines], bottom: bottom + (rest ? 24 : 4) };
}

function ownWords(address, bytes) {
  const first = Math.floor(address / WORD_BYTES);
  const last = Math.floor((address + bytes - 1) / WORD_BYTES);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

function drawKey(y, cost) {
  const parts = [box(LEFT, y + 6, 26, 14, "lw-touched"), label(LEFT + 34, y + 13, "touched", "lw-small", "start")];
  if (cost.excess) {
    parts.push(box(LEFT + 110, y + 6, 26, 14, "lw-conflict"));
    parts.push(label(LEFT + 144, y + 13, "touched, and another of its group needs the same bank", "lw-small", "start"));
  }
  return parts;
}

function draw(tile, found, state, cost, passes, step, sentence) {
  const bits = drawBits(tile, found, 4);
  const grid = drawGrid(tile, state, cost, passes, step, bits.bottom + 8);
  const key = cost ? drawKey(grid.bottom, cost) : [];
  const alt = `${found.name} on a tile of ${tile.rows} x ${tile.cols}: ${movement(found)}. ${sentence}`;
  return sheet(WIDTH, grid.bottom + (key.length ? 28 : 6), alt, bits.parts, grid.parts, key);
}

function movement(found) {
  if (!found.bitsRead.length) return "nothing moves";
  const pairs = found.bitsChanged.map((bit, i) => `bit ${found.bitsRead[i]} flips bit ${bit}`);
  return pairs.join(", ");
}

// -------------------------------------------------------------------------------------------------------- the whole

/** What to show of a swizzle that none is, because it changes bits that it reads. */
function showBroken(state, tile, refusal) {
  const defect = defectOf(tile);
  const numbers = (first) => Array.from({ length: tile.bits }, (_, i) => first + i);
  const found = {
    name: `Swizzle<${tile.bits},${tile.base},${tile.shift}>`,
    bitsRead: numbers(tile.base + Math.max(tile.shift, 0)),
    bitsChanged: numbers(tile.base + Math.max(-tile.shift, 0)),
  };
  const outcome = defect ? `In this tile ${defect}.` : "In this tile no two elements meet, but a second XOR does not lead back.";
  const sentence = `${refusal} ${outcome}`;
  return { sentence, bad: true, counts: [], draw: () => draw(tile, found, state, null, [], null, sentence) };
}

function show(state) {
  const tile = tileOf(state);
  let found;
  try {
    found = swizzle(state.bits, state.base, state.shift);
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    return showBroken(state, tile, error.message);
  }
  const cuda = cudaOf(tile, found);
  const python = pythonOf(state, tile);
  const defect = defectOf(tile);
  if (defect) {
    const sentence = `${found.name} does not fit this tile: ${defect}.`;
    const drawing = () => draw(tile, found, state, null, [], null, sentence);
    return { sentence, bad: true, counts: [], draw: drawing, python, cuda };
  }
  const all = Object.entries(ACCESSES).map(([kind, { name }]) => [name, costOrRefusal(kind, state, tile, found)]);
  const { cost, refusal } = costOrRefusal(state.access, state, tile, found);
  const idle = idleBits(tile, found);
  const wasted = idle.length
    ? ` Bit${idle.length === 1 ? "" : "s"} ${spans(idle)} of an offset ${idle.length === 1 ? "is" : "are"} always 0` +
      " in this tile: nothing is moved there."
    : "";
  const sentence = `${cost ? explainShared(cost) : refusal}${wasted}`;
  const passes = cost ? replay(cost) : [];
  return {
    sentence,
    bad: !cost || cost.excess > 0,
    counts: all.map(([name, each]) => ({
      label: name,
      value: each.cost ? each.cost.wavefronts : "torn",
      bad: !each.cost || each.cost.excess > 0,
      note: each.cost ? `fewest: ${each.cost.ideal}` : "",
    })),
    draw: (step) => draw(tile, found, state, cost, passes, step, sentence),
    steps: passes.map((pass, i) => {
      const lanes = [...new Set([...pass.lanesByWord.values()].flat())].sort((a, b) => a - b);
      return `Wavefront ${i + 1} of ${passes.length} serves ${named("lane", lanes)}.`;
    }),
    python: cost ? python : `${python.split("access =")[0]}swizzle.in_units_of(${ACCESSES[state.access].width}, ${tile.element})`,
    cuda,
  };
}

export default { title: "Swizzle explorer", controls, show };
