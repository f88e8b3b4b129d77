// What explorers draw with: HTML and SVG elements, and the marks that all drawings of lanes and banks share.
//
// Colours are classes, never values: explorers.css gives each class its colour in the light and the dark theme. No
// colour is the only sign of anything: a lane carries its number, a lost slot is hatched, a conflict has an outline.

import { series } from "./model.js";

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: h("p", { class: "note" }, "text", child). Attributes that are false or null are left out. */
export function h(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An SVG element, made the same way. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

let nIds = 0;

/** An id that occurs once in the page. */
export function uniqueId(stem) {
  nIds += 1;
  return `lw-${stem}-${nIds}`;
}

/**
 * A drawing of `width` x `height` units with its description; a unit is about a CSS pixel on a wide screen.
 * `sheet.hatch` is the fill of a lost slot.
 */
export function sheet(width, height, alt, ...children) {
  const id = uniqueId("hatch");
  const stripes = s(
    "pattern",
    { id, width: 6.5, height: 6.5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    s("path", { d: "M0 0v6.5", class: "lw-stripe" }),
  );
  const frame = { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": alt };
  const drawing = s("svg", frame, s("defs", {}, stripes));
  drawing.style.setProperty("--lw-hatch", `url(#${id})`);
  drawing.append(...children.flat(Infinity));
  return drawing;
}

/** A box with its top left corner at (x, y); `look` is one or more classes of explorers.css. */
export function box(x, y, width, height, look, title = null) {
  const label = title ? s("title", {}, title) : null;
  return s("rect", { x, y, width, height, rx: 1.5, class: look }, label);
}

/** Text with its middle at height y; `anchor` is start, middle or end. */
export function label(x, y, text, look = "lw-text", anchor = "middle") {
  return s("text", { x, y, class: look, "text-anchor": anchor, dy: "0.36em" }, text);
}

/** The class of a lane's tone: one for each eight lanes, as in the figures of the pages. */
export function tone(lane) {
  return `lw-tone-${Math.floor(lane / 8) % 4}`;
}

/** The lanes of a cell as short lines: each lane, the ends of a series, or their number. */
export function cellLines(lanes) {
  const steps = new Set(lanes.slice(1).map((lane, i) => lane - lanes[i]));
  if (lanes.length > 3 && steps.size === 1 && steps.has(1)) return [`${lanes[0]}`, "⋮", `${lanes.at(-1)}`];
  if (lanes.length > 4 && steps.size === 1) return [`${lanes[0]}`, `${lanes[1]}`, "⋮", `${lanes.at(-1)}`];
  return lanes.length <= 6 ? lanes.map(String) : [`${lanes.length}`, "of", "32"];
}

/** A cell that carries the numbers of its lanes, banded in the tones of their groups. */
export function laneCell(x, y, width, height, lanes, title) {
  const tones = [...new Set(lanes.map(tone))];
  const band = height / tones.length;
  const lines = cellLines(lanes);
  const step = height / (lines.length + 0.4);
  return s(
    "g",
    {},
    s("title", {}, title),
    tones.map((look, i) => box(x, y + i * band, width, band, tones.length > 1 ? `${look} lw-band` : look)),
    tones.length > 1 ? box(x, y, width, height, "lw-outline") : null,
    lines.map((line, i) =>
      label(x + width / 2, y + height / 2 + (i - (lines.length - 1) / 2) * step, line, "lw-lane"),
    ),
  );
}

/** Name some of 32 lanes or banks, or count them where the list would be long. */
export function named(noun, numbers) {
  const listed = series(numbers);
  if (listed.length > 36) return `${numbers.length} of 32 ${noun}s`;
  return `${noun}${numbers.length === 1 ? "" : "s"} ${listed}`;
}

/** Runs of consecutive numbers as [first, length]. */
export function runs(numbers) {
  const found = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = found.at(-1);
    if (last && last[0] + last[1] === number) last[1] += 1;
    else found.push([number, 1]);
  }
  return found;
}
