// The bar above the audit's list: by article, topic, verdict and words. Entries are the articles that the page
// holds (book/_ext/claims_page.py); nothing is fetched. The choice stands in the address, so that it can be shared.

import { element, labelled } from "./filter_bar.js";

const VERDICTS = ["ok", "imprecise", "wrong", "hw", "nc"];  // the order in which they are told
const entries = [...document.querySelectorAll("article.lw-claim")];
const bar = document.querySelector(".lw-claims-filter");
if (bar && entries.length) start();

function start() {
  const controls = {
    article: choice("Article", "article", entry => entry.dataset.article, value => `Article ${value}`),
    topic: choice("Topic", "topic", entry => entry.dataset.topic, value => value.replaceAll("_", " ")),
    verdict: choice("Verdict", "verdict", entry => entry.dataset.verdict, wordsOf),
    words: labelled("Words", element("input", { type: "search", autocomplete: "off", spellcheck: false })),
  };
  const again = element("button", { type: "button", textContent: "Show all" });
  const status = element("p", { role: "status" });
  bar.append(...Object.values(controls).map(control => control.parentElement), again, status);

  const address = new URLSearchParams(location.search);
  for (const [name, control] of Object.entries(controls)) {
    const wanted = address.get(name) ?? "";
    control.value = wanted;
    if (control.value !== wanted) control.value = "";  // no such choice
    control.addEventListener("input", show);
  }
  again.addEventListener("click", showAll);
  addEventListener("hashchange", showTarget);

  show();
  showTarget();
  bar.hidden = false;

  function show() {
    const { article, topic, verdict } = controls;
    const words = controls.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const entry of entries) {
      const { dataset } = entry;
      const text = entry.textContent.toLowerCase();
      entry.hidden = !(
        ["", dataset.article].includes(article.value) &&
        ["", dataset.topic].includes(topic.value) &&
        ["", dataset.verdict].includes(verdict.value) &&
        words.every(word => text.includes(word))
      );
    }
    status.textContent = sentence(entries.filter(entry => !entry.hidden));
    groups().forEach(sayIfEmpty);
    remember();
  }

  function remember() {
    const chosen = Object.entries(controls).filter(([, control]) => control.value).map(([name, { value }]) => [name, value]);
    const query = new URLSearchParams(chosen).toString();
    history.replaceState(null, "", location.pathname + (query && `?${query}`) + location.hash);
  }

  function showAll() {
    for (const control of Object.values(controls)) control.value = "";
    show();
  }

  // A link to an entry that is filtered out shows all.
  function showTarget() {
    const target = entries.find(entry => `#${entry.id}` === location.hash);
    if (!target) return;
    if (target.hidden) showAll();
    target.scrollIntoView();
  }
}

/** "12 of 187 claims: right 8, wrong 4." */
function sentence(shown) {
  const parts = VERDICTS.flatMap(verdict => {
    const n = shown.filter(entry => entry.dataset.verdict === verdict).length;
    return n ? [`${wordsOf(verdict)} ${n}`] : [];
  });
  return `${shown.length} of ${entries.length} claims${parts.length ? `: ${parts.join(", ")}` : ""}.`;
}

function wordsOf(verdict) {
  return entries.find(entry => entry.dataset.verdict === verdict).dataset.verdictWords;
}

/** The boxes that hold entries, one for each listing of the page. */
function groups() {
  return new Set(entries.map(entry => entry.parentElement));
}

function sayIfEmpty(group) {
  const some = entries.some(entry => entry.parentElement === group && !entry.hidden);
  let note = group.querySelector(":scope > .lw-claims-none");
  if (!note && !some) {
    note = element("p", { className: "lw-claims-none", textContent: "None of these claims fits the choice above." });
    group.append(note);
  }
  if (note) note.hidden = some;
}

/** A list of the values that the entries have, in the order of the page, with "all" before them. */
function choice(label, name, valueOf, wordsFor) {
  const select = element("select", { name });
  const values = [...new Set(entries.map(valueOf))];
  if (name === "topic") values.sort();
  if (name === "verdict") values.sort((one, other) => VERDICTS.indexOf(one) - VERDICTS.indexOf(other));
  select.append(new Option("All", ""), ...values.map(value => new Option(wordsFor(value), value)));
  return labelled(label, select);
}
