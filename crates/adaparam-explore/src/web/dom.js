// Elements of the page. Text is always set as text, never as markup.

/** Makes an element; `attributes` that are functions are listeners, children that are no elements are text. */
function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for drawings. */
function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** A choice with a label; `choices` are `[value, text]` or `{group, choices}`. */
function choice(label, choices, chosen, change) {
  const option = ([value, text]) => element("option", { value, selected: String(value) === String(chosen) }, text);
  const options = choices.map((it) =>
    Array.isArray(it) ? option(it) : element("optgroup", { label: it.group }, it.choices.map(option)));
  // A page that is made anew finds the one in use again by its name.
  const id = `choose-${label.toLowerCase().replaceAll(" ", "-")}`;
  const select = element("select", { id, change: () => change(select.value) }, options);
  return element("label", { class: "choice" }, element("span", {}, label), select);
}

/** The filled part of a bar. */
function filledBar(share) {
  const bar = element("span");
  bar.style.width = `${100 * share}%`;
  return bar;
}

/** A number as short as it can be read: three digits that count. */
function shortNumber(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(2);
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

/** A word as it is shown: blanks and ends of lines are marks. */
function shownWord(text) {
  if (text === " ") return "␣";
  if (text === "\n") return "⏎";
  return text === "" ? "∅" : text;
}
