// The memory model of the Python package, for the browser: no dependency, no DOM, numbers in and numbers out.
//
// It mirrors lanewise.access, .instructions, .memory, .swizzles, .fragments and .pipeline, with
// the same refusals in the same words. tests/test_explorer_model.py compares the two on thousands of accesses, so a
// rule is changed there first, then here. Addresses are bytes, up to 2**53 (Python's limit is 2**63).
//
//   sharedCost(warpAccess("ld.shared.b32", lane => 128 * lane)).wavefronts     // 32
//   explainShared(..), globalCost(..), explainGlobal(..), swizzle(3, 4, 3).apply(128), M16N8K16.a.element(5, 0, 1)

export const WARP_LANES = 32;
export const FULL_MASK = 0xffffffff;
export const BANKS = 32;
export const WORD_BYTES = 4;
export const SECTOR_BYTES = 32;
export const LINE_BYTES = 128;
export const MATRIX_ROWS = 8;
export const CHUNK_BYTES = 16;

/** A refusal on purpose. `kind` is the name of the Python class, such as "Misaligned". */
export class ModelError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = this.kind = kind;
  }
}

// ---------------------------------------------------------------------------------------------- words for numbers

/** Sorted integers as runs: spans([0, 1, 2, 5]) is "0..2, 5". */
export function spans(numbers) {
  const runs = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs
    .map(([first, last]) => {
      if (first === last) return `${first}`;
      return last === first + 1 ? `${first}, ${last}` : `${first}..${last}`;
    })
    .join(", ");
}

/** As spans, but even steps as one: "0, 8, .. 24". */
export function series(numbers) {
  const members = [...numbers].sort((a, b) => a - b);
  const steps = new Set(members.slice(1).map((member, i) => member - members[i]));
  if (members.length > 3 && steps.size === 1 && !steps.has(1)) {
    return `${members[0]}, ${members[1]}, .. ${members.at(-1)}`;
  }
  return spans(members);
}

/** A count with its noun: count(1, "wavefront") is "1 wavefront". */
export function count(n, noun, plural = `${noun}s`) {
  return `${n.toLocaleString("en-US")} ${n === 1 ? noun : plural}`;
}

/** A set of lanes: "lane 4", "lanes 0..31". */
export function lanesInWords(numbers) {
  return `lane${numbers.length === 1 ? "" : "s"} ${spans(numbers)}`;
}

/** Three significant digits as Python's format ".3g" writes numbers from 0.1 to 999, ties to the even digit. */
export function threeDigits(value) {
  if (value === 0) return "0";
  const unit = 10 ** (2 - Math.floor(Math.log10(value)));
  const scaled = value * unit;
  let digits = Math.round(scaled);
  if (digits - scaled === 0.5 && digits % 2) digits -= 1;
  return `${digits / unit}`;
}

// ---------------------------------------------------------------------------------------------------- instructions

function entry(name, space, op, bytesPerLane, more = {}) {
  const words = Math.max(1, Math.floor(bytesPerLane / WORD_BYTES));
  return Object.freeze({
    name,
    space,
    op,
    bytesPerLane,
    addressLanes: WARP_LANES,
    fuses: false,
    mergesEqualWords: true,
    notModelled: "",
    wordsPerLane: words,
    lanesPerGroup: BANKS / words,
    isMatrix: /^(ld|st)matrix/.test(name),
    ...more,
  });
}

function* entries() {
  for (const bits of [8, 16, 32, 64, 128]) {
    const nBytes = bits / 8;
    yield entry(`ld.shared.b${bits}`, "shared", "load", nBytes, { fuses: bits > 32 });
    yield entry(`st.shared.b${bits}`, "shared", "store", nBytes);
    yield entry(`ld.global.b${bits}`, "global", "load", nBytes);
    yield entry(`st.global.b${bits}`, "global", "store", nBytes);
  }
  for (const [stem, op] of [["ldmatrix", "load"], ["stmatrix", "store"]]) {
    for (const n of [1, 2, 4]) {
      for (const trans of ["", ".trans"]) {
        yield entry(`${stem}.x${n}${trans}`, "shared", op, CHUNK_BYTES, { addressLanes: MATRIX_ROWS * n });
      }
    }
  }
  for (const n of [4, 8, 16]) {
    yield entry(`cp.async.ca.${n}`, "shared", "async_copy", n, { mergesEqualWords: false });
  }
  yield entry("cp.async.cg.16", "shared", "async_copy", 16, {
    notModelled:
      "the shared-memory counters show nothing for this copy, and no rule for its time is known, only that it is not" +
      " free (the record 'timing' has some cases). Use cp.async.ca if you need a count.",
  });
  yield entry("red.shared.add.u32", "shared", "reduction", 4);
  for (const name of ["red.shared.add.u32.reg", "atom.shared.add.u32", "atom.shared.exch.b32"]) {
    yield entry(name, "shared", "reduction", 4, { mergesEqualWords: false });
  }
  for (const name of ["atom.shared.cas.b32", "red.shared.add.f32"]) {
    yield entry(name, "shared", "reduction", 4, {
      notModelled:
        "the GPU repeats it until every lane has had its turn, and no rule for the count is settled.",
    });
  }
  for (const name of ["red.global.add.u32", "atom.global.add.u32"]) {
    yield entry(name, "global", "reduction", 4, {
      notModelled:
        "lanes on one address are counted separately, not by distinct sectors, and the rule that holds is not" +
        " settled. Count its addresses as st.global.b32 for a lower bound.",
    });
  }
}

/** Every instruction of the model, by its PTX-style name. */
export const INSTRUCTIONS = new Map([...entries()].map((spec) => [spec.name, spec]));

/** Look an instruction up; with `space`, refuse one of the other memory. */
export function instruction(name, space = null) {
  const spec = INSTRUCTIONS.get(name);
  if (!spec || (space && spec.space !== space && spec.op !== "async_copy")) {
    const what = space ? `a ${space}-memory instruction` : "an instruction";
    throw new ModelError("UnknownInstruction", `'${name}' is not ${what} of the model.`);
  }
  return spec;
}

function requireModelled(spec) {
  if (spec.notModelled) throw new ModelError("NotModelled", `${spec.name}: ${spec.notModelled}`);
  return spec;
}

// ---------------------------------------------------------------------------------------------------------- access

const isActive = (mask, lane) => ((mask >>> lane) & 1) === 1;

/**
 * One memory instruction of one warp: 32 byte addresses, as an array or a function of the lane, and a lane mask.
 * Throws a ModelError of kind InvalidAccess or Misaligned, in the words of Python.
 */
export function warpAccess(name, addresses, activeMask = FULL_MASK) {
  const spec = instruction(name);
  if (!Number.isInteger(activeMask) || activeMask < 0 || activeMask > FULL_MASK) {
    throw new ModelError(
      "InvalidAccess",
      `${name}: active_mask ${activeMask} is not a 32-bit mask. Set bit i for lane i; 0xffffffff is all.`,
    );
  }
  const warp = Array.from({ length: WARP_LANES }, (_, lane) => lane);
  const given = typeof addresses === "function" ? warp.map((lane) => addresses(lane)) : addresses;
  if (given.length !== WARP_LANES) {
    throw new ModelError("InvalidAccess", `${name}: got ${given.length} addresses; a warp has ${WARP_LANES} lanes.`);
  }
  const lanes = warp.filter((lane) => isActive(activeMask, lane));
  const addressingLanes = lanes.filter((lane) => lane < spec.addressLanes);
  if (spec.isMatrix && activeMask && addressingLanes.length < spec.addressLanes) {
    const missing = warp.filter((lane) => lane < spec.addressLanes && !isActive(activeMask, lane));
    throw new ModelError(
      "InvalidAccess",
      `${name}: ${lanesInWords(missing)} inactive, but the first ${spec.addressLanes} lanes give the row addresses` +
        " and the whole warp must execute the instruction together. Move it out of the branch.",
    );
  }
  for (const lane of addressingLanes) checkAddress(spec, lane, given[lane]);
  return {
    instruction: name,
    addresses: given.map((address, lane) => (isActive(activeMask, lane) ? address : 0)),
    activeMask,
    lanes,
    addressingLanes,
  };
}

function checkAddress(spec, lane, address) {
  const who = `${spec.name}: lane ${lane} has byte address ${address}`;
  if (!Number.isInteger(address)) throw new ModelError("InvalidAccess", `${who}; addresses are integers.`);
  if (address < 0) throw new ModelError("InvalidAccess", `${who}; addresses start at 0.`);
  if (address > Number.MAX_SAFE_INTEGER) {
    throw new ModelError("InvalidAccess", `${who}; it exceeds 53 bits. Subtract a base.`);
  }
  const width = spec.bytesPerLane;
  if (address % width) {
    throw new ModelError(
      "Misaligned",
      `${who}, ${address % width} past a multiple of ${width}. The hardware refuses it; this is an error, not a` +
        ` slower access. Keep every row pitch and offset a multiple of ${width} bytes, or use a narrower access.`,
    );
  }
}

// --------------------------------------------------------------------------------------------------- shared memory

/**
 * The shared-memory cost of one access: wavefronts, ideal, excess, degree, fused, and the phases behind them.
 *
 * A phase is a group of lanes served together: its `lanes`, `lanesByWord` (Map: word -> lanes, in the order of
 * asking), `wordsByBank` (Map: bank -> words, one per wavefront) and its `wavefronts`.
 */
export function sharedCost(access) {
  const spec = requireModelled(instruction(access.instruction, "shared"));
  const fused = spec.fuses && (partnersAgree(access, 1) || partnersAgree(access, 2));
  const lanesPerGroup = spec.lanesPerGroup * (fused ? 2 : 1);
  const groups = new Map();
  for (const lane of access.addressingLanes) push(groups, Math.floor(lane / lanesPerGroup), lane);
  const phases = [...groups.values()].map((lanes) => phaseOf(spec, access, lanes));
  const costs = phases.map((phase) => phase.wavefronts);
  const wavefronts = costs.reduce((sum, cost) => sum + cost, 0);
  return {
    access,
    phases,
    fused,
    wavefronts,
    ideal: phases.length,
    excess: wavefronts - phases.length,
    degree: Math.max(0, ...costs),
  };
}

function partnersAgree(access, distance) {
  return access.lanes.every((lane) => {
    const partner = lane ^ distance;
    return !isActive(access.activeMask, partner) || access.addresses[lane] === access.addresses[partner];
  });
}

function phaseOf(spec, access, lanes) {
  const lanesByWord = new Map();
  for (const lane of lanes) {
    const first = Math.floor(access.addresses[lane] / WORD_BYTES);
    for (let word = first; word < first + spec.wordsPerLane; word++) push(lanesByWord, word, lane);
  }
  const banks = new Map();
  for (const [word, sharers] of lanesByWord) {
    const times = spec.mergesEqualWords ? 1 : sharers.length;
    for (let i = 0; i < times; i++) push(banks, word % BANKS, word);
  }
  const wordsByBank = new Map([...banks].sort(([a], [b]) => a - b));
  const wavefronts = Math.max(0, ...[...wordsByBank.values()].map((words) => words.length));
  return { lanes, lanesByWord, wordsByBank, wavefronts, mergesEqualWords: spec.mergesEqualWords };
}

function push(map, key, value) {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

/** The access pass by pass: {phase, lanesByWord}. The hardware's order is not known; words are served as asked for. */
export function replay(cost) {
  return cost.phases.flatMap((phase, index) =>
    Array.from({ length: phase.wavefronts }, (_, turn) => ({ phase: index, lanesByWord: servedIn(phase, turn) })),
  );
}

function servedIn(phase, turn) {
  const served = new Map();
  for (const words of phase.wordsByBank.values()) {
    if (turn >= words.length) continue;
    const word = words[turn];
    const sharers = phase.lanesByWord.get(word);
    const before = words.slice(0, turn).filter((earlier) => earlier === word).length;
    served.set(word, phase.mergesEqualWords ? sharers : [sharers[before]]);
  }
  return served;
}

/** The sentence that explains a shared cost: Python's str(shared_cost(access)). */
export function explainShared(cost) {
  const name = cost.access.instruction;
  if (!cost.phases.length) return `${name}: no active lane, no wavefront.`;
  const head = `${name}: ${count(cost.wavefronts, "wavefront")}`;
  if (cost.excess === 0) return `${head}, the fewest possible${whySeveral(cost)}. ${sharing(cost)}`.trimEnd();
  const phase = cost.phases.reduce((worst, next) => (next.wavefronts > worst.wavefronts ? next : worst));
  const [bank, words] = [...phase.wordsByBank].reduce((most, next) => (next[1].length > most[1].length ? next : most));
  const waiting = [...new Set(words)].flatMap((word) => phase.lanesByWord.get(word)).sort((a, b) => a - b);
  const demand = phase.mergesEqualWords
    ? `${words.length} different words`
    : `${words.length} words, each lane's own even where words are equal,`;
  return (
    `${head} where ${cost.ideal} would do${whySeveral(cost)}: ${lanesInWords(waiting)} need ${demand}` +
    ` of bank ${bank}.`
  );
}

function whySeveral(cost) {
  if (cost.ideal === 1) {
    return cost.fused ? " (lanes share addresses in pairs, so both halves are served together)" : "";
  }
  const joined = cost.fused ? ", joined because lanes share addresses in pairs" : "";
  const groups = cost.phases.map((phase) => spans(phase.lanes));
  return ` (${groups.length} groups of lanes: ${groups.join("; ")}${joined})`;
}

function sharing(cost) {
  const shared = new Set();
  for (const phase of cost.phases) {
    for (const [word, users] of phase.lanesByWord) if (users.length > 1) shared.add(word);
  }
  return shared.size ? `${count(shared.size, "word")} served to several lanes at once, at no cost.` : "";
}

// --------------------------------------------------------------------------------------------------- global memory

/** The global-memory cost of one access: requests, sectors, lines, bytes and which lanes touch which sector. */
export function globalCost(access) {
  const spec = requireModelled(instruction(access.instruction, "global"));
  const found = new Map();
  for (const lane of access.lanes) push(found, Math.floor(access.addresses[lane] / SECTOR_BYTES), lane);
  const lanesBySector = new Map([...found].sort(([a], [b]) => a - b));
  const lines = new Set([...lanesBySector.keys()].map((s) => Math.floor((s * SECTOR_BYTES) / LINE_BYTES)));
  const bytesRequested = spec.bytesPerLane * new Set(access.lanes.map((lane) => access.addresses[lane])).size;
  const bytesMoved = lanesBySector.size * SECTOR_BYTES;
  return {
    access,
    lanesBySector,
    requests: lanesBySector.size ? 1 : 0,
    sectors: lanesBySector.size,
    lines: lines.size,
    bytesRequested,
    bytesMoved,
    efficiency: bytesMoved ? bytesRequested / bytesMoved : 0,
  };
}

/** The sentence that explains a global cost: Python's str(global_cost(access)). */
export function explainGlobal(cost) {
  const name = cost.access.instruction;
  if (!cost.requests) return `${name}: no active lane, no request.`;
  return (
    `${name}: 1 request, ${count(cost.sectors, "sector")} in ${count(cost.lines, "line")};` +
    ` ${cost.bytesRequested} of ${cost.bytesMoved} bytes are used (${threeDigits(100 * cost.efficiency)}%).`
  );
}

// -------------------------------------------------------------------------------------------------------- swizzles

const OFFSET_BITS = 53;

/**
 * XOR `bits` bits of `offset` into the bits `shift` places lower (higher if negative), above the lowest `base` bits,
 * whether or not that can be undone: what `swizzle` does, without its refusal.
 */
export function xorBits(bits, base, shift, offset) {
  const x = BigInt(offset);
  const read = x & (((1n << BigInt(bits)) - 1n) << BigInt(base + Math.max(shift, 0)));
  return Number(x ^ (shift >= 0 ? read >> BigInt(shift) : read << BigInt(-shift)));
}

/** CuTe's Swizzle<bits, base, shift>. It is its own inverse; parameters that are none throw InvalidSwizzle. */
export function swizzle(bits, base, shift) {
  const name = `Swizzle<${bits},${base},${shift}>`;
  if (bits < 0 || base < 0) {
    throw new ModelError(
      "InvalidSwizzle",
      `${name}: bits and base count bits. Use 0 or more; only shift may be negative.`,
    );
  }
  if (Math.abs(shift) < bits) {
    throw new ModelError(
      "InvalidSwizzle",
      `${name}: with |shift| < bits it would change bits that it reads, and would not undo itself. Use a shift of at` +
        ` least ${bits}, or fewer bits.`,
    );
  }
  if (base + bits + Math.abs(shift) > OFFSET_BITS) {
    throw new ModelError(
      "InvalidSwizzle",
      `${name}: reaches beyond bit ${OFFSET_BITS - 1}, the last of an offset. Use a smaller base or shift.`,
    );
  }
  const numbers = (first) => Array.from({ length: bits }, (_, i) => first + i);
  const bitsRead = numbers(base + Math.max(shift, 0));
  const bitsChanged = numbers(base + Math.max(-shift, 0));
  const apply = (offset) => xorBits(bits, base, shift, offset);
  return {
    name,
    bits,
    base,
    shift,
    apply,
    inverse: apply,
    /** The same movement of data with offsets counted in units of `unitBytes` instead of `was` bytes. */
    inUnitsOf(unitBytes, was = 1) {
      const moved = base + Math.log2(was) - Math.log2(unitBytes);
      if (moved < 0 && bits) {
        throw new ModelError(
          "InvalidSwizzle",
          `${name} moves pieces of ${was * 2 ** base} bytes, which tears units of ${unitBytes} bytes.` +
            ` Use a base of at least ${base - moved}, or smaller units.`,
        );
      }
      return swizzle(bits, Math.max(moved, 0), shift);
    },
    bitsRead,
    bitsChanged,
    period: 2 ** (Math.max(-1, ...bitsRead, ...bitsChanged) + 1),
  };
}

/** True if the values are 0 .. n - 1 in some order. */
export function isPermutation(values) {
  return new Set(values).size === values.length && values.every((value) => value >= 0 && value < values.length);
}

/** Where each value of a permutation came from. */
export function inverse(values) {
  if (!isPermutation(values)) throw new ModelError("InvalidSwizzle", "two offsets meet, so the map has no inverse.");
  const back = Array(values.length);
  values.forEach((value, index) => { back[value] = index; });
  return back;
}

// ------------------------------------------------------------------------------------------------------- fragments

/**
 * How a matrix is spread over the registers of a warp, as 8x8 blocks in register order: see lanewise.fragments.
 * element(lane, register, position) is [row, col]; owner(row, col) is [lane, register, position].
 */
export function fragment(name, shape, origins, { transposed = false, packed = 2 } = {}) {
  const nRegisters = (origins.length * 2) / packed;
  const element = (lane, register, position) => {
    const flat = register * packed + position;
    const [row, col] = origins[Math.floor(flat / 2)];
    const along = Math.floor(lane / 4);
    const across = (lane % 4) * 2 + (flat % 2);
    return transposed ? [row + across, col + along] : [row + along, col + across];
  };
  const owner = (row, col) => {
    const block = origins.findIndex(([top, left]) => top === row - (row % 8) && left === col - (col % 8));
    const [along, across] = transposed ? [col % 8, row % 8] : [row % 8, col % 8];
    const flat = block * 2 + (across % 2);
    return [along * 4 + Math.floor(across / 2), Math.floor(flat / packed), flat % packed];
  };
  return { name, shape, origins, transposed, packed, nRegisters, element, owner };
}

function mma(k) {
  const name = `m16n8k${k}`;
  const steps = Array.from({ length: k / MATRIX_ROWS }, (_, i) => i * MATRIX_ROWS);
  const halves = [[0, 0], [8, 0]];
  return {
    name,
    a: fragment(`${name} A`, [16, k], steps.flatMap((step) => [[0, step], [8, step]])),
    b: fragment(`${name} B`, [k, 8], steps.map((step) => [step, 0]), { transposed: true }),
    c: fragment(`${name} C`, [16, 8], halves, { packed: 1 }),
    cF16: fragment(`${name} C (f16)`, [16, 8], halves),
  };
}

export const M16N8K8 = mma(8);
export const M16N8K16 = mma(16);

/**
 * ldmatrix or stmatrix as a map. Lane 8 m + r points at row r of matrix m, which is in register m of every lane:
 * element(lane, register, half) is [row, col] of that matrix.
 */
export function matrixMove(name) {
  const found = /^(?:ldmatrix|stmatrix)\.x([124])(\.trans)?$/.exec(name);
  if (!found) {
    throw new ModelError(
      "UnknownInstruction",
      `'${name}' moves no matrices. Use ldmatrix or stmatrix with .x1, .x2 or .x4, perhaps .trans.`,
    );
  }
  const within = fragment("8x8 matrix", [8, 8], [[0, 0]], { transposed: Boolean(found[2]) });
  return {
    name,
    nMatrices: Number(found[1]),
    transposed: Boolean(found[2]),
    nAddressLanes: MATRIX_ROWS * Number(found[1]),
    element: (lane, register, half) => within.element(lane, 0, half),
    owner: (matrix, row, col) => {
      const [lane, , half] = within.owner(row, col);
      return [lane, matrix, half];
    },
  };
}

const DOWN_FIRST = [[0, 0], [8, 0], [0, 8], [8, 8]];
const ACROSS_FIRST = [[0, 0], [0, 8], [8, 0], [8, 8]];

function operandLoad(name, instructionName, origins) {
  const move = matrixMove(instructionName);
  return {
    name,
    instruction: instructionName,
    origins,
    /** The tile's [row, chunk of 8 columns] that a lane points at. */
    pointsAt: (lane) => {
      const [row, col] = origins[Math.floor(lane / MATRIX_ROWS)];
      return [row + (lane % MATRIX_ROWS), col / MATRIX_ROWS];
    },
    /** The tile's [row, col] that lands in a register's half. */
    element: (lane, register, half) => {
      const [row, col] = move.element(lane, register, half);
      return [origins[register][0] + row, origins[register][1] + col];
    },
  };
}

/** Where the lanes of one ldmatrix.x4 point, so that its registers are operands of mma. */
export const OPERAND_LOADS = {
  aRowMajor: operandLoad("A stored [M][K]", "ldmatrix.x4", DOWN_FIRST),
  aColumnMajor: operandLoad("A stored [K][M]", "ldmatrix.x4.trans", ACROSS_FIRST),
  bRowMajor: operandLoad("B stored [K][N]", "ldmatrix.x4.trans", DOWN_FIRST),
  bColumnMajor: operandLoad("B stored [N][K]", "ldmatrix.x4", ACROSS_FIRST),
};

// ------------------------------------------------------------------------------------------------------- pipelines

/**
 * Tiles through buffers, as lanewise.pipeline: { steps, total, perTile, ahead }. A step has `tile`, `block`, `stage`,
 * and the times `asked`, `began` (the memory turns to it), `arrived`, `started`, `ended`.
 */
export function pipeline({ tiles, stages, copy, work, latency = 0, blocks = 1 }) {
  const ahead = blocks * Math.max(1, stages - 1);
  const steps = [];
  for (let tile = 0; tile < tiles; tile++) {
    const before = steps[tile - ahead];
    const last = steps.at(-1);
    const asked = before ? (stages === 1 ? before.ended : before.started) : 0;
    const began = Math.max(asked + latency, last ? last.arrived : 0);
    const arrived = began + copy;
    const started = Math.max(arrived, last ? last.ended : 0);
    const turn = Math.floor(tile / blocks);
    const where = { tile, block: tile % blocks, stage: turn % stages };
    steps.push({ ...where, asked, began, arrived, started, ended: started + work });
  }
  const way = latency + copy + (stages === 1 ? work : 0);
  return { steps, total: steps.at(-1).ended, perTile: Math.max(copy, work, way / ahead), ahead };
}

/** No number of stages or blocks ends before: the first tile must come, then the slower of memory and work goes on. */
export function pipelineBound({ tiles, copy, work, latency = 0 }) {
  return latency + copy + work + (tiles - 1) * Math.max(copy, work);
}
