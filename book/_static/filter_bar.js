// What the bars above filtered lists are made of.

/** A control below its label, in a box of their own. */
export function labelled(text, control) {
  control.id = `filter-by-${text.toLowerCase()}`;
  const label = element("label", { htmlFor: control.id, textContent: text });
  element("div", { className: "lw-choice" }).append(label, control);
  return control;
}

/** An element with properties, or attributes where it has no such property. */
export function element(name, properties) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "role" || !(key in made)) made.setAttribute(key, value);
    else made[key] = value;
  }
  return made;
}
