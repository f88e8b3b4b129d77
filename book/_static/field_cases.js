// The bar above the cases from the field: by symptom and by words. Entries are the articles that the page holds
// (book/_ext/field_cases_page.py); nothing is fetched. The choice stands in the address, so that it can be shared.

import { element, labelled } from "./filter_bar.js";

const entries = [...document.querySelectorAll("article.lw-case")];
const bar = document.querySelector(".lw-claims-filter");
if (bar && entries.length) start();

function start() {
  const symptom = labelled("Symptom", element("select", { name: "symptom" }));
  const words = labelled("Words", element("input", { type: "search", autocomplete: "off", spellcheck: false }));
  const again = element("button", { type: "button", textContent: "Show all" });
  const status = element("p", { role: "status" });
  symptom.append(new Option("All", ""), ...[...symptoms()].map(([value, text]) => new Option(text, value)));
  bar.append(symptom.parentElement, words.parentElement, again, status);

  const wanted = new URLSearchParams(location.search).get("symptom") ?? "";
  if (symptoms().has(wanted)) symptom.value = wanted;
  symptom.addEventListener("input", show);
  words.addEventListener("input", show);
  again.addEventListener("click", showAll);
  addEventListener("hashchange", showTarget);
  show();
  showTarget();
  bar.hidden = false;

  function show() {
    const asked = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const entry of entries) {
      const text = entry.textContent.toLowerCase();
      const fits = !symptom.value || entry.dataset.symptoms.split(" ").includes(symptom.value);
      entry.hidden = !(fits && asked.every(word => text.includes(word)));
    }
    const n = entries.filter(entry => !entry.hidden).length;
    status.textContent = `${n} of ${entries.length} cases.`;
    const query = symptom.value ? `?symptom=${symptom.value}` : "";
    history.replaceState(null, "", location.pathname + query + location.hash);
  }

  function showAll() {
    symptom.value = words.value = "";
    show();
  }

  // A link to a case that is filtered out shows all.
  function showTarget() {
    const target = entries.find(entry => `#${entry.id}` === location.hash);
    if (!target) return;
    if (target.hidden) showAll();
    target.scrollIntoView();
  }
}

/** Symptom and its words, in the order of the page. */
function symptoms() {
  const found = new Map();
  for (const { dataset } of entries) {
    const texts = dataset.symptomWords.split("|");
    dataset.symptoms.split(" ").forEach((value, place) => found.set(value, texts[place]));
  }
  return found;
}
