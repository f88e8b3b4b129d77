// The fragment explorer: which lane holds which element of a Tensor Core operand, and who points at the rows.

import { box, label, s, sheet, tone } from "./draw.js";
import { M16N8K16, M16N8K8, MATRIX_ROWS, WARP_LANES, matrixMove } from "./model.js";

const MMAS = { m16n8k16: M16N8K16, m16n8k8: M16N8K8 };
const OPERANDS = { a: "a", b: "b", c: "c", c_f16: "cF16" };
const HALVES = ["lower half", "upper half"];

const isMove = (state) => state.what.endsWith("matrix");
const byElement = (state) => state.pick === "element";

const controls = [
  {
    name: "what",
    label: "Instruction",
    kind: "select",
    options: [
      ["m16n8k16", "mma.m16n8k16"],
      ["m16n8k8", "mma.m16n8k8"],
      ["ldmatrix", "ldmatrix"],
      ["stmatrix", "stmatrix"],
    ],
  },
  {
    name: "operand",
    label: "Operand",
    kind: "select",
    options: [["a", "A"], ["b", "B"], ["c", "C, D in float"], ["c_f16", "C, D in half"]],
    shown: (state) => !isMove(state),
  },
  {
    name: "matrices",
    label: "Matrices",
    kind: "select",
    options: [["1", ".x1"], ["2", ".x2"], ["4", ".x4"]],
    shown: isMove,
  },
  { name: "trans", label: "Transposed, .trans", kind: "checkbox", shown: isMove },
  {
    name: "pick",
    label: "Choose",
    kind: "select",
    options: [["lane", "a lane"], ["element", "an element"]],
  },
  { name: "lane", label: "Lane", kind: "range", min: 0, max: 31, shown: (state) => !byElement(state) },
  {
    name: "matrix",
    label: "Matrix",
    kind: "range",
    min: 0,
    max: 3,
    say: (_, state) => `${placeOf(state).matrix}`,
    shown: (state) => byElement(state) && isMove(state),
  },
  {
    name: "row",
    label: "Row",
    kind: "range",
    min: 0,
    max: 15,
    say: (_, state) => `${placeOf(state).row}`,
    shown: byElement,
  },
  {
    name: "col",
    label: "Column",
    kind: "range",
    min: 0,
    max: 15,
    say: (_, state) => `${placeOf(state).col}`,
    shown: byElement,
  },
];

// ----------------------------------------------------------------------------------------------- one form for both

/**
 * The blocks of 8 x 8 that a state shows, in one form for operands of mma and for matrices of ldmatrix:
 * element(lane, register, half) is [block, row, col] within its block; `numbered` gives row and column their names.
 */
function viewOf(state) {
  if (isMove(state)) {
    const move = matrixMove(`${state.what}.x${state.matrices}${state.trans ? ".trans" : ""}`);
    return {
      name: move.name,
      move,
      shape: [MATRIX_ROWS, MATRIX_ROWS],
      transposed: move.transposed,
      packed: 2,
      nRegisters: move.nMatrices,
      origins: Array.from({ length: move.nMatrices }, () => [0, 0]),
      nAddressLanes: move.nAddressLanes,
      element: (lane, register, half) => [register, ...move.element(lane, register, half)],
      owner: move.owner,
    };
  }
  const fragment = MMAS[state.what][OPERANDS[state.operand]];
  return {
    name: fragment.name,
    shape: fragment.shape,
    transposed: fragment.transposed,
    packed: fragment.packed,
    nRegisters: fragment.nRegisters,
    origins: fragment.origins,
    nAddressLanes: 0,
    element: (lane, register, position) => {
      const [row, col] = fragment.element(lane, register, position);
      const block = fragment.origins.findIndex(([top, left]) => top === row - (row % 8) && left === col - (col % 8));
      return [block, row % 8, col % 8];
    },
    owner: (block, row, col) => fragment.owner(fragment.origins[block][0] + row, fragment.origins[block][1] + col),
  };
}

/** Row and column of an element in the matrix that the reader sees. */
function seen(view, [block, row, col]) {
  return [view.origins[block][0] + row, view.origins[block][1] + col];
}

/** The chosen element, within the shape: its block, the row and column there, and those that the reader sees. */
function placeOf(state) {
  const view = viewOf(state);
  const [row, col] = [state.row % view.shape[0], state.col % view.shape[1]];
  if (view.move) {
    const matrix = state.matrix % view.move.nMatrices;
    return { matrix, row, col, element: [matrix, row, col] };
  }
  const block = view.origins.findIndex(([top, left]) => top === row - (row % 8) && left === col - (col % 8));
  return { matrix: 0, row, col, element: [block, row % 8, col % 8] };
}

/** What is chosen: a lane with all it holds, or with one element. */
function choiceOf(state, view) {
  if (!byElement(state)) return { lane: state.lane, register: null, half: null };
  const [lane, register, half] = view.owner(...placeOf(state).element);
  return { lane, register, half };
}

// ------------------------------------------------------------------------------------------------------- the words

const pair = ([row, col]) => `(${row}, ${col})`;

function heldIn(view, lane, register) {
  return Array.from({ length: view.packed }, (_, half) => seen(view, view.element(lane, register, half)));
}

function registersOf(view, lane) {
  return Array.from({ length: view.nRegisters }, (_, register) => heldIn(view, lane, register));
}

function giverSentence(view, lane) {
  const gives = lane < view.nAddressLanes;
  if (!gives) return `lane ${lane} points at nothing, as only lanes 0..${view.nAddressLanes - 1} give addresses;`;
  return `lane ${lane} points at row ${lane % MATRIX_ROWS} of matrix ${Math.floor(lane / MATRIX_ROWS)};`;
}

function sentenceOf(state, view) {
  const { lane, register, half } = choiceOf(state, view);
  if (view.move) {
    const isLoad = state.what === "ldmatrix";
    if (byElement(state)) {
      const { matrix, row, col } = placeOf(state);
      const verb = isLoad ? "lands in" : "comes from";
      return (
        `${view.name}: lane ${MATRIX_ROWS * matrix + row} points at row ${row} of matrix ${matrix}; its element` +
        ` ${pair([row, col])} ${verb} lane ${lane}, register ${register}, ${HALVES[half]}.`
      );
    }
    const held = heldIn(view, lane, 0).map(pair).join(" and ");
    const each = view.move.nMatrices > 1 ? "each matrix, matrix m in register m" : "the matrix, in register 0";
    return `${view.name}: ${giverSentence(view, lane)} it ${isLoad ? "gets" : "gives"} ${held} of ${each}.`;
  }
  if (byElement(state)) {
    const where = view.packed === 2 ? `register ${register}, ${HALVES[half]}` : `register ${register}`;
    return `${view.name}: element ${pair([placeOf(state).row, placeOf(state).col])} is in lane ${lane}, ${where}.`;
  }
  const n = view.nRegisters * view.packed;
  const held = registersOf(view, lane).map((elements, i) => `${elements.map(pair).join(" and ")} in register ${i}`);
  const total = view.shape[0] * view.shape[1];
  return `${view.name}: lane ${lane} holds ${n} of ${total} elements: ${held.join("; ")}.`;
}

// ----------------------------------------------------------------------------------------------------- the drawing

const CELL = 22;
const LEFT = 30;
const BLOCK_GAP = 10;
const GIVER = 44;
const LABEL = 20;
const TOP = 4;
const WIDTH = 706;
const PANEL = 224;

/** Where each block stands: matrices of a move one below the other, then side by side, as in an operand A. */
function placesOf(view) {
  return view.origins.map(([top, left], block) => {
    if (!view.move) {
      const [down, across] = [top / MATRIX_ROWS, left / MATRIX_ROWS];
      return {
        x: LEFT + across * (MATRIX_ROWS * CELL + BLOCK_GAP),
        y: TOP + 16 + down * (MATRIX_ROWS * CELL + LABEL + 4) + LABEL,
        title: view.packed === 2 ? `register ${block}` : `registers ${2 * block}, ${2 * block + 1}`,
      };
    }
    const [across, down] = [Math.floor(block / 2), block % 2];
    return {
      x: 8 + GIVER + across * (GIVER + MATRIX_ROWS * CELL + 14),
      y: TOP + down * (MATRIX_ROWS * CELL + LABEL + 8) + LABEL,
      title: `matrix ${block}, register ${block}`,
    };
  });
}

function drawBlock(view, block, place, isChosen) {
  const parts = [label(place.x, place.y - LABEL / 2, place.title, "lw-text", "start")];
  for (let lane = 0; lane < WARP_LANES; lane++) {
    const [along, across] = [Math.floor(lane / 4), (lane % 4) * 2];
    const [col, row, width, height] = view.transposed ? [along, across, 1, 2] : [across, along, 2, 1];
    const area = [place.x + col * CELL + 1, place.y + row * CELL + 1, width * CELL - 2, height * CELL - 2];
    const group = s("g", { "data-set": JSON.stringify({ pick: "lane", lane }), "data-lane": lane });
    const halves = [0, 1].filter((i) => isChosen(block, row + (height > 1 ? i : 0), col + (width > 1 ? i : 0)));
    group.append(box(...area, tone(lane), titleOf(view, block, row, col, lane)));
    if (halves.length === 1) {
      const [w, h] = [width > 1 ? area[2] / 2 : area[2], height > 1 ? area[3] / 2 : area[3]];
      const [dx, dy] = [width > 1 ? halves[0] * w : 0, height > 1 ? halves[0] * h : 0];
      group.append(box(area[0] + dx, area[1] + dy, w, h, "lw-chosen"));
      group.append(box(...area, "lw-outline"));
      const [tx, ty] = [area[0] + dx + w / 2, area[1] + dy + h / 2];
      group.append(label(tx, ty, `${lane}`, "lw-inverted"));
    } else {
      if (halves.length) group.append(box(...area, "lw-chosen"));
      const middle = [area[0] + area[2] / 2, area[1] + area[3] / 2];
      group.append(label(...middle, `${lane}`, halves.length ? "lw-inverted" : "lw-lane"));
    }
    parts.push(group);
  }
  return parts;
}

function titleOf(view, block, row, col, lane) {
  const next = view.transposed ? [block, row + 1, col] : [block, row, col + 1];
  const elements = [seen(view, [block, row, col]), seen(view, next)].map(pair).join(" and ");
  return `lane ${lane}: ${elements}${view.move ? ` of matrix ${block}` : ""}`;
}

/** Numbers of rows and columns for an operand; the lanes that point at the rows of a matrix. */
function drawSides(view, places, lane) {
  const parts = [];
  view.origins.forEach(([top, left], block) => {
    const { x, y } = places[block];
    for (let i = 0; i < MATRIX_ROWS; i++) {
      if (view.move) {
        const giver = MATRIX_ROWS * block + i;
        const chosen = giver === lane;
        const group = s("g", { "data-set": JSON.stringify({ pick: "lane", lane: giver }), "data-giver": giver });
        group.append(s("title", {}, `lane ${giver} points at row ${i} of matrix ${block}`));
        group.append(box(x - GIVER, y + i * CELL + 3, 28, CELL - 6, chosen ? "lw-chosen" : tone(giver)));
        group.append(label(x - GIVER + 14, y + (i + 0.5) * CELL, `${giver}`, chosen ? "lw-inverted" : "lw-lane"));
        const middle = y + (i + 0.5) * CELL;
        group.append(s("path", { d: `M${x - 15} ${middle}h9m-3.5 -3l3.5 3l-3.5 3`, class: "lw-bracket" }));
        parts.push(group);
        continue;
      }
      if (left === 0) parts.push(label(x - 8, y + (i + 0.5) * CELL, `${top + i}`, "lw-small", "end"));
      if (top === 0) parts.push(label(x + (i + 0.5) * CELL, TOP + 8, `${left + i}`, "lw-small"));
    }
  });
  return parts;
}

/** The registers of the chosen lane, with the elements in their halves. */
function drawRegisters(view, x, lane, isNow, isLoad) {
  const verb = view.move ? (isLoad ? "gets" : "gives") : "holds";
  const parts = [label(x, TOP + 8, `lane ${lane} ${verb}`, "lw-text", "start")];
  registersOf(view, lane).forEach((elements, register) => {
    const y = TOP + 24 + register * 34;
    parts.push(label(x, y + 13, `register ${register}`, "lw-small", "start"));
    const width = (PANEL - 76) / 2;
    elements.forEach((element, half) => {
      const [left, size] = [x + 72 + (view.packed === 2 ? half * width : 0), view.packed === 2 ? width : 2 * width];
      const now = isNow(register, half);
      parts.push(box(left, y, size - 2, 26, now ? "lw-chosen" : tone(lane)));
      const of = view.move ? `m${register} ` : "";
      parts.push(label(left + size / 2, y + 13, `${of}${pair(element)}`, now ? "lw-inverted" : "lw-lane"));
    });
  });
  if (view.packed === 2) {
    const y = TOP + 24 + view.nRegisters * 34 + 4;
    parts.push(label(x + 72, y, "lower half", "lw-small", "start"));
    parts.push(label(x + 72 + (PANEL - 76) / 2, y, "upper half", "lw-small", "start"));
  }
  return parts;
}

function draw(state, view, step, sentence) {
  const choice = choiceOf(state, view);
  const register = step === null ? choice.register : step;
  const isNow = (r, half) => (register === null || r === register) && (choice.half === null || step !== null || half === choice.half);
  const chosen = new Set();
  registersOf(view, choice.lane).forEach((elements, r) =>
    elements.forEach((_, half) => {
      if (isNow(r, half)) chosen.add(view.element(choice.lane, r, half).join());
    }),
  );
  const places = placesOf(view);
  const blocks = places.map((place, block) => drawBlock(view, block, place, (...element) => chosen.has(element.join())));
  const giver = byElement(state) && view.move ? MATRIX_ROWS * placeOf(state).matrix + placeOf(state).row : choice.lane;
  const sides = drawSides(view, places, giver);
  const right = Math.max(...places.map(({ x }) => x)) + MATRIX_ROWS * CELL;
  const registers = drawRegisters(view, Math.min(right + 56, WIDTH - PANEL), choice.lane, isNow, state.what === "ldmatrix");
  const bottom = Math.max(...places.map(({ y }) => y + MATRIX_ROWS * CELL), TOP + 24 + view.nRegisters * 34 + 14);
  const pointed = view.move ? label(8, bottom + 16, "left of a row: the lane that points at it", "lw-small", "start") : null;
  const height = bottom + (view.move ? 30 : 8);
  return sheet(WIDTH, height, `Elements by lane. ${sentence}`, sides, blocks, registers, pointed ? [pointed] : []);
}

// -------------------------------------------------------------------------------------------------------- the code

function pythonOf(state, view) {
  const { lane } = choiceOf(state, view);
  const lines = view.move
    ? [
        "from lanewise.fragments import MatrixMove",
        "",
        `move = MatrixMove.from_name("${view.name}")`,
        "fragment = move.within_matrix  # alike in each",
      ]
    : [
        `from lanewise.fragments import ${state.what.toUpperCase()}`,
        "",
        `fragment = ${state.what.toUpperCase()}.${state.operand}`,
      ];
  if (byElement(state)) {
    const { row, col } = placeOf(state);
    lines.push(`owner = fragment.owner(${row}, ${col})  # lane, register, half`, "print(owner)");
  } else {
    lines.push(
      `rows, cols = fragment.row[${lane}], fragment.col[${lane}]`,
      "held = list(zip(rows.ravel().tolist(), cols.ravel().tolist()))",
      "print(held)",
    );
  }
  return lines.join("\n");
}

function show(state) {
  const view = viewOf(state);
  const { lane, register, half } = choiceOf(state, view);
  const sentence = sentenceOf(state, view);
  const own = [
    { label: "elements in all", value: view.shape[0] * view.shape[1] * (view.move ? view.move.nMatrices : 1) },
    { label: "elements of a lane", value: view.nRegisters * view.packed },
    { label: "registers of a lane", value: view.nRegisters },
    ...(view.move ? [{ label: "lanes that point", value: view.nAddressLanes }] : []),
  ];
  const found = [
    { label: "lane", value: lane },
    { label: "register", value: register },
    ...(view.packed === 2 ? [{ label: "half", value: ["lower", "upper"][half] }] : []),
    ...(view.move ? [{ label: "row from lane", value: MATRIX_ROWS * placeOf(state).matrix + placeOf(state).row }] : []),
  ];
  const steps = byElement(state) ? [] : registersOf(view, lane).map(
    (elements, i) => `Register ${i} of lane ${lane}: ${elements.map(pair).join(" and ")}${view.move ? ` of matrix ${i}` : ""}.`,
  );
  return {
    sentence,
    bad: false,
    counts: byElement(state) ? found : own,
    draw: (step) => draw(state, view, step, sentence),
    steps,
    python: pythonOf(state, view),
  };
}

export default { title: "Fragment explorer", controls, show };
