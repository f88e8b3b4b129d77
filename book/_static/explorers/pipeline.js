// The pipeline explorer: when each buffer is filled and worked on, and from how many stages on more of them buy nothing.

import { box, label, s, sheet } from "./draw.js";
import { count, pipeline, pipelineBound, threeDigits } from "./model.js";

const controls = [
  { name: "tiles", label: "Tiles", kind: "range", min: 1, max: 16 },
  { name: "stages", label: "Stages of a block", kind: "range", min: 1, max: 8 },
  { name: "blocks", label: "Blocks", kind: "range", min: 1, max: 2 },
  { name: "copy", label: "Copy a tile", kind: "range", min: 0, max: 12 },
  { name: "work", label: "Work on a tile", kind: "range", min: 0, max: 12 },
  { name: "latency", label: "Latency, before the copy", kind: "range", min: 0, max: 24 },
];

// ------------------------------------------------------------------------------------------------------ the numbers

/** The fewest stages that end at the bound. With a stage more than tiles all are asked for at once, so there are some. */
function enoughStages(state) {
  const bound = pipelineBound(state);
  let stages = 1;
  while (pipeline({ ...state, stages }).total > bound) stages += 1;
  return stages;
}

/** What sets the pace once the pipeline has filled. */
function paceOf({ copy, work, stages, latency }, plan) {
  if (!plan.perTile) return "Nothing takes time.";
  const each = `A tile takes ${threeDigits(plan.perTile)} once it runs`;
  if (plan.perTile === copy && copy === work) return `${each}: copies and work are in balance.`;
  if (plan.perTile === work) return `${each}: the work sets the pace.`;
  if (plan.perTile === copy) return `${each}: the copies set the pace.`;
  const way = latency + copy + (stages === 1 ? work : 0);
  const under = plan.ahead === 1 ? "one tile at a time" : `shared by ${plan.ahead} tiles under way`;
  return `${each}: ${way} from question to ${stages === 1 ? "result" : "answer"}, ${under}.`;
}

function sentenceOf(state, plan, bound, enough) {
  const ends = `${count(state.stages, "stage")}: the last tile is done at ${plan.total}.`;
  const pace = state.tiles > 1 ? ` ${paceOf(state, plan)}` : "";
  if (plan.total > bound) {
    const rest = `Nothing ends before ${bound}, and it takes ${count(enough, "stage")} to get there.`;
    return `${ends}${pace} ${rest}`;
  }
  const spare = state.stages - enough;
  const advice = spare
    ? `${count(enough, "stage")} would do; the others only take memory.`
    : "Nothing can be faster, so a further stage would only take memory.";
  return `${ends}${pace} ${advice}`;
}

// ------------------------------------------------------------------------------------------------------ the drawing

const WIDTH = 706;
const LEFT = 104;
const RIGHT = 14;
const ROW = 34;
const KEY = 30;

/** A step of time ticks that leaves room for their numbers. */
function tickOf(end) {
  return [1, 2, 5, 10, 20, 50, 100].find((step) => end / step <= 16) ?? 200;
}

function bar(x, width, y, height, look, number, title) {
  const text = `${number}`;
  const parts = [box(x, y, Math.max(width, 0.5), height, look, title)];
  if (width > 6.6 * text.length + 3) parts.push(label(x + width / 2, y + height / 2, text, "lw-lane"));
  return parts;
}

/** Buffers as rows: under way, copied, kept, worked on. */
function drawBuffers(state, plan, x, top, step) {
  const rows = [];
  for (let block = 0; block < state.blocks; block++) {
    for (let stage = 0; stage < state.stages; stage++) rows.push([block, stage]);
  }
  const name = ([block, stage]) => (state.blocks > 1 ? `block ${block}, stage ${stage}` : `stage ${stage}`);
  const parts = rows.map((row, i) => [
    label(8, top + (i + 0.5) * ROW, name(row), "lw-text", "start"),
    box(x(0), top + i * ROW + 4, x(plan.total) - x(0), ROW - 8, "lw-idle"),
  ]);
  for (const each of plan.steps) {
    const y = top + rows.findIndex(([block, stage]) => block === each.block && stage === each.stage) * ROW;
    const group = s("g", { class: step === null || step === each.tile ? null : "lw-aside", "data-tile": each.tile });
    const { tile, asked, began, arrived, started, ended } = each;
    const title = captionOf(plan, tile);
    if (began > asked) group.append(box(x(asked), y + 11, x(began) - x(asked), ROW - 22, "lw-waiting", title));
    if (arrived > began) {
      group.append(...bar(x(began), x(arrived) - x(began), y + 8, ROW - 16, "lw-tone-0", tile, title));
    }
    if (started > arrived) group.append(box(x(arrived), y + ROW / 2 - 2, x(started) - x(arrived), 4, "lw-kept", title));
    if (ended > started) group.append(...bar(x(started), x(ended) - x(started), y + 4, ROW - 8, "lw-tone-1", tile, title));
    parts.push(group);
  }
  return { parts, bottom: top + rows.length * ROW };
}

/** What memory and arithmetic do meanwhile, with the gaps in which they stand still. */
function drawUse(plan, x, top, step) {
  const parts = [];
  const rows = [
    ["memory", "began", "arrived", "lw-tone-0"],
    ["arithmetic", "started", "ended", "lw-tone-1"],
  ];
  rows.forEach(([name, from, to, look], i) => {
    const y = top + i * 26;
    parts.push(label(8, y + 11, name, "lw-text", "start"));
    parts.push(box(x(0), y + 2, x(plan.total) - x(0), 18, "lw-lost"));
    for (const each of plan.steps) {
      if (each[to] === each[from]) continue;
      const group = s("g", { class: step === null || step === each.tile ? null : "lw-aside" });
      const width = x(each[to]) - x(each[from]);
      group.append(box(x(each[from]), y + 2, width, 18, "lw-ground"));
      group.append(...bar(x(each[from]), width, y + 2, 18, look, each.tile, captionOf(plan, each.tile)));
      parts.push(group);
    }
  });
  return { parts, bottom: top + 2 * 26 };
}

function drawAxis(x, top, bottom, end, plan, bound) {
  const tick = tickOf(end);
  const parts = [];
  for (let time = 0; time <= end; time += tick) {
    parts.push(s("path", { d: `M${x(time)} ${bottom}v4`, class: "lw-bracket" }));
    parts.push(label(x(time), bottom + 12, `${time}`, "lw-small"));
  }
  const line = (time, look) => s("path", { d: `M${x(time)} ${top}V${bottom}`, class: look });
  if (bound < plan.total) parts.push(line(bound, "lw-bound"));
  parts.push(line(plan.total, "lw-end"));
  parts.push(label(8, bottom + 12, "time", "lw-small", "start"));
  return parts;
}

function drawKey(y, steps, hasBound) {
  const [asks, waits] = [steps.some(({ asked, began }) => began > asked), steps.some((each) => each.started > each.arrived)];
  const entries = [
    ["lw-tone-0", "copied", 78],
    ["lw-tone-1", "worked on", 96],
    ...(asks ? [["lw-waiting", "asked for", 92]] : []),
    ...(waits ? [["lw-kept lw-thin", "waits its turn", 112]] : []),
    ["lw-lost", "stands still", 96],
  ];
  let x = LEFT;
  const parts = entries.map(([look, text, room]) => {
    const isThin = look.includes("lw-thin");
    const entry = [isThin ? box(x, y + 4, 22, 4, look) : box(x, y, 22, 12, look), label(x + 28, y + 6, text, "lw-small", "start")];
    x += room;
    return entry;
  });
  if (hasBound) {
    parts.push(s("path", { d: `M${x + 10} ${y - 1}v14`, class: "lw-bound" }));
    parts.push(label(x + 18, y + 6, "least possible end", "lw-small", "start"));
  }
  return parts;
}

function draw(state, plan, bound, step, sentence) {
  const end = Math.max(pipeline({ ...state, stages: 1 }).total, plan.total, 1);
  const left = state.blocks > 1 ? LEFT + 14 : LEFT;
  const x = (time) => left + (time / end) * (WIDTH - left - RIGHT);
  const buffers = drawBuffers(state, plan, x, KEY, step);
  const use = drawUse(plan, x, buffers.bottom + 12, step);
  const axis = drawAxis(x, KEY, use.bottom, end, plan, bound);
  const key = drawKey(8, plan.steps, bound < plan.total);
  const alt = `Timeline of ${count(state.tiles, "tile")}. ${sentence}`;
  return sheet(WIDTH, use.bottom + 24, alt, key, buffers.parts, use.parts, axis);
}

function captionOf(plan, tile) {
  const { block, stage, asked, began, arrived, started, ended } = plan.steps[tile];
  const isShared = plan.steps.some((each) => each.block);
  const where = `stage ${stage}${isShared ? ` of block ${block}` : ""}`;
  const question = began > asked ? `asked for at ${asked}, ` : "";
  return `Tile ${tile}: ${question}copied into ${where} from ${began} to ${arrived}, worked on from ${started} to ${ended}.`;
}

function pythonOf({ tiles, stages, copy, work, latency, blocks }) {
  return [
    "from lanewise.pipeline import Pipeline",
    "",
    "pipeline = Pipeline(",
    `    tiles=${tiles}, stages=${stages}, copy=${copy}, work=${work}, latency=${latency}, blocks=${blocks}`,
    ")",
    "print(pipeline.total, pipeline.per_tile)",
    "print(*pipeline.steps, sep=\"\\n\")",
  ].join("\n");
}

function show(state) {
  const plan = pipeline(state);
  const bound = pipelineBound(state);
  const enough = enoughStages(state);
  const sentence = sentenceOf(state, plan, bound, enough);
  const bad = plan.total > bound;
  return {
    sentence,
    bad,
    counts: [
      { label: "end", value: plan.total, bad },
      { label: "least possible", value: bound },
      { label: "end with 1 stage", value: pipeline({ ...state, stages: 1 }).total },
      { label: "time per tile", value: threeDigits(plan.perTile) },
      { label: "enough stages", value: enough },
      { label: "buffers", value: state.stages * state.blocks },
    ],
    draw: (step) => draw(state, plan, bound, step, sentence),
    steps: plan.steps.map(({ tile }) => captionOf(plan, tile)),
    python: pythonOf(state),
  };
}

export default { title: "Pipeline explorer", controls, show };
