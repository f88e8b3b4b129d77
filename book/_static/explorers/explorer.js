// The interactive figures of the book. This script finds each <figure class="lw-explorer" data-explorer="KIND"> on the
// page, loads KIND.js, and puts the live figure in the place of the static one. Without scripts the static one stays.
//
// To add an explorer KIND:
//
//  1. KIND.js beside this file. Its default export is an object:
//
//       title       a few words for the head of the figure
//       controls    a list; each { name, label, kind, .. } with, by kind,
//                     range     min, max, step = 1, say(value, state) for the text beside it
//                     number    min, max, step = 1
//                     select    options: [[value, text], ..]
//                     checkbox
//                     text      pattern, hint
//                   and, for any, shown(state) if it is of use in some states only
//       show(state) what to show for a state, an object of the controls' names and values (numbers, strings, booleans):
//                     sentence  what happens and why, one sentence: the figure's result, read out when it changes
//                     bad       true if that is a loss
//                     counts    [{ label, value, bad, note }], the numbers
//                     alt       what the drawing shows, in words
//                     draw(i)   the drawing, made with draw.js: of step i, or of the whole if i is null; a click on
//                               an element with data-set='{"name": value}' sets these controls, which is for the
//                               mouse only what the controls do for everyone
//                     steps     a caption for each step; leave it out, or empty, for a figure without steps
//                     python    lines of Python that compute the same
//                     cuda      lines of CUDA C++, where the figure designs something
//                   A ModelError that it throws is shown as the sentence.
//
//     It computes with model.js and draws with draw.js: no colour, no rule of its own. No state lives outside `state`.
//
//  2. Its entry in EXPLORERS of book/_ext/explorers.py: the parameters with their defaults (the same names as the
//     controls', all of them), and the static drawing that lanewise.figures makes for the same parameters.
//
//  3. In a page: ```{explorer} KIND, options :parameter: value, and the caption as the directive's text.
//
//  4. Its test in tests/browser/test_explorers.py: set the controls, and compare the numbers with the Python package.
//
// A link to a figure in a certain state is PAGE#FIGURE-ID?name=value&name=value; the button "Copy link" makes one.

import { h, uniqueId } from "./draw.js";
import { ModelError } from "./model.js";

const STEP_MS = 900;
const COPIED_MS = 1600;
const lessMotion = window.matchMedia("(prefers-reduced-motion: reduce)");

// ------------------------------------------------------------------------------------------------------------ state

/** The value of a control from text, or undefined if the text is none. */
function parsed(control, text) {
  if (text === undefined || text === null) return undefined;
  if (control.kind === "checkbox") return text === "true";
  if (control.kind === "select") return control.options.some(([value]) => value === text) ? text : undefined;
  if (control.kind === "text") return text;
  const number = Number(text);
  if (text === "" || !Number.isFinite(number)) return undefined;
  return Math.min(control.max, Math.max(control.min, number));
}

function stateFrom(controls, texts, fallback) {
  return Object.fromEntries(
    controls.map((control) => [control.name, parsed(control, texts[control.name]) ?? fallback?.[control.name]]),
  );
}

/** The parameters that the address gives to a figure, or null. */
function linked(id) {
  const [target, query] = decodeURI(window.location.hash).slice(1).split("?");
  return target === id && query ? Object.fromEntries(new URLSearchParams(query)) : null;
}

// --------------------------------------------------------------------------------------------------------- controls

/** A labelled control: { row, read(), write(value), update(state) }. */
function makeControl(control, changed) {
  const id = uniqueId(control.name);
  const { input, beside } = inputFor(control, id);
  input.addEventListener(control.kind === "text" || control.kind === "range" ? "input" : "change", changed);
  const row = h(
    "div",
    { class: `lw-control lw-control-${control.kind}`, "data-control": control.name },
    h("label", { for: id }, control.label),
    h("span", { class: "lw-control-input" }, input, beside),
  );
  return {
    control,
    row,
    read() {
      if (control.kind === "checkbox") return input.checked;
      if (control.kind === "select" || control.kind === "text") return input.value;
      return parsed(control, input.value) ?? control.min;
    },
    write(value) {
      if (control.kind === "checkbox") input.checked = value;
      else input.value = value;
    },
    update(state) {
      row.hidden = Boolean(control.shown && !control.shown(state));
      if (control.kind === "range") {
        const said = control.say ? control.say(state[control.name], state) : `${state[control.name]}`;
        beside.textContent = said;
        input.setAttribute("aria-valuetext", said);
        const part = (state[control.name] - control.min) / (control.max - control.min);
        input.style.setProperty("--lw-part", `${100 * part}%`);
      }
    },
  };
}

function inputFor(control, id) {
  const { kind, min, max, step = 1 } = control;
  if (kind === "select") {
    const options = control.options.map(([value, text]) => h("option", { value }, text));
    return { input: h("select", { id }, options), beside: null };
  }
  if (kind === "checkbox") return { input: h("input", { id, type: "checkbox" }), beside: null };
  if (kind === "text") {
    const look = { id, type: "text", pattern: control.pattern, spellcheck: "false", autocomplete: "off" };
    return { input: h("input", look), beside: control.hint ? h("span", { class: "lw-hint" }, control.hint) : null };
  }
  const input = h("input", { id, type: kind, min, max, step });
  return { input, beside: kind === "range" ? h("output", { for: id, class: "lw-value" }) : null };
}

/** A button that copies what `text()` gives, and says so. */
function copyButton(name, text) {
  const button = h("button", { type: "button", class: "lw-button" }, name);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed to copy";
    }
    window.setTimeout(() => { button.textContent = name; }, COPIED_MS);
  });
  return button;
}

// ------------------------------------------------------------------------------------------------------------- steps

/** Buttons to go through the steps of a drawing: { bar, start(captions) }; `turn(i)` is called with null for all. */
function makePlayer(turn) {
  let captions = [];
  let at = null;
  let timer = null;
  const button = (name, act) => h("button", { type: "button", class: "lw-button", onclick: act }, name);
  const all = button("Show all", () => go(null));
  const back = button("Back", () => go(at === null ? captions.length - 1 : at - 1));
  const next = button("Step", () => go(at === null ? 0 : at + 1));
  const play = button("Play", () => (timer === null ? run() : pause()));
  const caption = h("p", { class: "lw-caption", role: "status" });
  const bar = h("div", { class: "lw-player", role: "group", "aria-label": "Steps" }, next, back, play, all, caption);

  function go(step) {
    pause();
    show(step);
  }
  function show(step) {
    at = step !== null && captions[step] === undefined ? null : step;
    caption.textContent = at === null ? `${captions.length} steps` : captions[at];
    // No button is ever disabled, or a keyboard would lose its place: both ends lead to the whole.
    turn(at);
  }
  function run() {
    play.textContent = "Pause";
    caption.setAttribute("aria-live", "off");
    show(at === null || at === captions.length - 1 ? 0 : at);
    timer = window.setInterval(() => (at === captions.length - 1 ? pause() : show(at + 1)), STEP_MS);
  }
  function pause() {
    window.clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    caption.removeAttribute("aria-live");
  }
  function allowMotion() {
    play.hidden = lessMotion.matches;
    if (lessMotion.matches) pause();
  }
  lessMotion.addEventListener("change", allowMotion);
  allowMotion();
  return {
    bar,
    start(newCaptions) {
      pause();
      captions = newCaptions;
      bar.hidden = captions.length < 2;
      show(null);
    },
  };
}

// ------------------------------------------------------------------------------------------------------------ figure

/** What an explorer shows for a state; a refusal of the model in the same form. */
function viewOf(explorer, state) {
  try {
    return explorer.show(state);
  } catch (error) {
    if (!(error instanceof ModelError)) throw error;
    return { sentence: error.message, bad: true, counts: [], refused: true };
  }
}

function countItem({ label, value, bad, note }) {
  return h(
    "div",
    { class: bad ? "lw-count lw-bad" : "lw-count", "data-count": label },
    h("dt", {}, label),
    h("dd", {}, `${value}`, note ? h("span", { class: "lw-note" }, ` ${note}`) : null),
  );
}

/** A listing with a button that copies it: { name, title, row, pre, code, write(text) }. */
function listingBox(name, title) {
  const code = h("code");
  const pre = h("pre", {}, code);
  const row = h("div", { class: `lw-code lw-${name}` }, pre, copyButton(`Copy ${title}`, () => code.textContent));
  const write = (text) => {
    row.hidden = !text;
    code.textContent = text ?? "";
  };
  return { name, title, row, pre, code, write };
}

/** Put the live figure in the place of the static one. */
function mount(figure, explorer) {
  const initial = stateFrom(explorer.controls, figure.dataset);
  const controls = explorer.controls.map((control) => makeControl(control, changed));
  const counts = h("dl", { class: "lw-counts" });
  const sentence = h("p", { class: "lw-sentence", role: "status" });
  const stage = h("div", { class: "lw-stage" });
  const listings = [listingBox("python", "Python"), listingBox("cuda", "CUDA C++")];
  const player = makePlayer((step) => view.draw && stage.replaceChildren(view.draw(step)));
  let state = initial;
  let view = {};

  function address() {
    const query = new URLSearchParams(Object.entries(state).map(([name, value]) => [name, `${value}`]));
    return `${window.location.href.split("#")[0]}#${figure.id}?${query}`;
  }
  function changed() {
    use(Object.fromEntries(controls.map((each) => [each.control.name, each.read()])));
  }
  function set(values) {
    for (const each of controls) each.write(values[each.control.name]);
    use(values);
  }
  function use(values) {
    state = values;
    for (const each of controls) each.update(state);
    view = viewOf(explorer, state);
    sentence.textContent = view.sentence;
    sentence.classList.toggle("lw-bad", Boolean(view.bad));
    counts.replaceChildren(...view.counts.map(countItem));
    counts.hidden = !view.counts.length;
    stage.hidden = !view.draw;
    for (const listing of listings) listing.write(view[listing.name]);
    player.start(view.steps ?? []);
  }
  function follow() {
    const values = linked(figure.id);
    if (!values) return;
    set(stateFrom(explorer.controls, values, initial));
    figure.scrollIntoView({ block: "start" });
  }
  /** Open what is wider than its box to the keyboard, as the theme does with outputs. */
  function openToKeyboard() {
    for (const [scrolls, name] of [[stage, "Drawing"], ...listings.map(({ pre, title }) => [pre, title])]) {
      const wide = scrolls.scrollWidth > scrolls.clientWidth + 1;
      for (const [key, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", `${name}, scrolls sideways`]]) {
        if (wide) scrolls.setAttribute(key, value);
        else scrolls.removeAttribute(key);
      }
    }
  }

  const head = h(
    "div",
    { class: "lw-head" },
    h("p", { class: "lw-title" }, explorer.title),
    h("button", { type: "button", class: "lw-button", onclick: () => set(initial) }, "Start again"),
    copyButton("Copy link", address),
  );
  const form = h("form", { class: "lw-controls", "aria-label": `${explorer.title}: controls` });
  form.append(...controls.map((each) => each.row));
  form.addEventListener("submit", (event) => event.preventDefault());
  stage.addEventListener("click", ({ target }) => {
    const chosen = target.closest("[data-set]");
    if (chosen) set({ ...state, ...JSON.parse(chosen.dataset.set) });
  });
  figure
    .querySelector(".lw-explorer-static")
    .replaceWith(h("div", { class: "lw-live" }, head, form, counts, sentence, player.bar, stage, listings.map(({ row }) => row)));
  set(initial);
  follow();
  window.addEventListener("hashchange", follow);
  const sizes = new ResizeObserver(openToKeyboard);
  for (const watched of [stage, ...listings.map(({ code }) => code)]) sizes.observe(watched);
  figure.dataset.live = "";
}

async function load(figure) {
  const { default: explorer } = await import(`./${figure.dataset.explorer}.js`);
  mount(figure, explorer);
}

document.querySelectorAll("figure.lw-explorer[data-explorer]").forEach(load);
