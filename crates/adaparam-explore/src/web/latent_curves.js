// Latent units as curves over the text.

const CURVES = ["--curve-0", "--curve-1", "--curve-2", "--curve-3", "--curve-4", "--curve-5"];

/** Curves of the chosen units; a click on the figure chooses a word. */
function latentCurves(run, state, chosen, choose) {
  const latent = run.layers[state.layer]?.latent;
  if (!latent) return element("p", { class: "note" }, "This layer has no latent variable.");
  const units = state.units;
  const words = run.words.length;
  const step = Math.max(14, Math.min(46, 1080 / Math.max(1, words - 1)));
  const [left, top, height] = [46, 12, 190];
  const width = left + step * (words - 1) + 70;
  const values = units.map((unit) => Array.from({ length: words }, (_, word) => rowOf(latent, word)[unit]));
  const size = Math.max(...extent(values).map(Math.abs)) || 1;
  const x = (word) => left + step * word;
  const y = (value) => top + height / 2 * (1 - value / size);
  const lines = values.map((row, at) => drawn("polyline", {
    class: "curve", points: row.map((value, word) => `${x(word).toFixed(1)},${y(value).toFixed(1)}`).join(" "),
    "data-unit": units[at], stroke: `var(${CURVES[at % CURVES.length]})`,
  }));
  const names = run.words.map((word, at) => (words <= 90 || at % 5 === 0)
    ? drawn("text", { class: "tick", x: x(at), y: top + height + 14, transform: `rotate(40 ${x(at)} ${top + height + 14})` }, shownWord(word.typed ?? word.text).slice(0, 12)) : null);
  const axis = [size, 0, -size].map((value) => [
    drawn("line", { class: "grid", x1: left, x2: x(words - 1), y1: y(value), y2: y(value) }),
    drawn("text", { class: "tick end", x: left - 6, y: y(value) + 4 }, shortNumber(value)),
  ]);
  const marks = chosen.filter((word) => word !== undefined).map((word) => drawn("line", { class: "chosen", x1: x(word), x2: x(word), y1: top, y2: top + height }));
  const figure = drawn("svg", {
    class: "curves", viewBox: `0 0 ${width} ${top + height + 74}`, width, height: top + height + 74, role: "img",
    "aria-label": `Latent units ${units.join(", ")} of layer ${state.layer + 1} over the text`,
    click: (event) => {
      const scale = width / figure.getBoundingClientRect().width;
      const word = Math.round((event.offsetX * scale - left) / step);
      if (word >= 0 && word < words) choose(word, event.shiftKey);
    },
  }, marks, axis.flat(), lines, names);
  return element("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Latent units over the text" }, figure);
}

/** The units of a layer as buttons that switch their curves on and off. */
function unitButtons(latent, state, change) {
  const buttons = Array.from({ length: latent.width }, (_, unit) => {
    const at = state.units.indexOf(unit);
    const button = element("button", {
      type: "button", class: "unit", id: `latent-unit-${unit}`, "aria-pressed": String(at >= 0), "data-unit": unit, click: () => change(unit),
    }, String(unit));
    if (at >= 0) button.style.borderColor = `var(${CURVES[at % CURVES.length]})`;
    return button;
  });
  return element("div", { class: "units", role: "group", "aria-label": "Latent units" }, buttons);
}
