// One word: what it cost, what comes next, its policies, its adapted matrices, its neighbours.

/** A strip of numbers between −`size` and `size`; arrow keys and the pointer read single ones. */
function strip(values, size, label, tell) {
  const canvas = element("canvas", { class: "strip", role: "img", tabindex: 0, "aria-label": label });
  fill(canvas, values, values.length, (value) => diverging(value / size));
  let at = 0;
  const show = (to) => {
    at = Math.min(values.length - 1, Math.max(0, to));
    tell(at);
  };
  canvas.addEventListener("pointermove", (event) => show(Math.floor(event.offsetX / canvas.clientWidth * values.length)));
  canvas.addEventListener("focus", () => show(at));
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 10, PageUp: -10 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    show(at + step);
  });
  return canvas;
}

function predictions(word) {
  const greatest = word.predictions[0]?.p || 1;
  const bar = (it) => element("li", { "data-p": it.p },
    element("span", { class: "guess" }, shownWord(it.text)),
    element("span", { class: "bar", "aria-hidden": "true" }, filledBar(it.p / greatest)),
    element("span", { class: "number" }, `${(100 * it.p).toFixed(it.p < 0.0995 ? 1 : 0)} %`));
  return element("ol", { class: "predictions" }, word.predictions.map(bar));
}

/** Strips of a word and of the corpus' mean, one under the other. */
function pair(name, values, mean, size, reading, data) {
  const tell = (at) => {
    const beside = mean ? `, mean ${shortNumber(mean[at])}` : "";
    reading.textContent = `${name}, unit ${at}: ${shortNumber(values[at])}${beside}`;
  };
  const own = strip(values, size, `${name} at this word, ${values.length} units`, tell);
  Object.assign(own.dataset, data);
  const strips = [own];
  if (mean) {
    const canvas = element("canvas", { class: "strip mean", "aria-hidden": "true" });
    fill(canvas, mean, mean.length, (value) => diverging(value / size));
    strips.push(canvas);
  }
  return element("div", { class: "pair" }, element("span", { class: "gate" }, data.gate ?? ""), element("div", {}, strips));
}

/** The diagonals of a layer. */
function policies(run, at, layerIndex) {
  const layer = run.layers[layerIndex];
  const order = ["D(1)", "D(2)", "D(3)", "D(4)", "D(0)"];
  const parts = [...layer.parts].sort((a, b) => order.indexOf(a.symbol) - order.indexOf(b.symbol));
  const reading = element("output", { class: "reading" }, "Point at a strip, or move along it with the arrow keys, to read single units.");
  const rows = parts.map((part) => {
    const values = rowOf(part, at);
    const units = part.width / part.gates;
    const size = Math.max(1, ...extent([part.values]).map(Math.abs));
    const change = run.measures.find((measure) => measure.id === `change.${layerIndex}.${part.name}`)?.values[at];
    const strips = Array.from({ length: part.gates }, (_, gate) => {
      const range = [gate * units, (gate + 1) * units];
      const letter = part.gates > 1 ? layer.gate_names[gate]?.[0] ?? String(gate + 1) : "";
      return pair(`${part.symbol}${letter && `, gate ${letter}`}`, values.subarray(...range), part.mean?.subarray(...range) ?? null, size, reading,
        { part: part.name, layer: layerIndex, gate: letter });
    });
    return element("div", { class: "part" },
      element("h5", {}, element("span", { class: "symbol" }, part.symbol), ` ${part.about} `,
        change === undefined ? null : element("span", { class: "number", "data-change": change, "data-part": part.name }, `changed by ${shortNumber(change)}`)),
      strips);
  });
  return element("div", { class: "policies" }, rows, reading);
}

/** The gates of a layer, from 0 to 1; the candidate from −1 to 1. */
function gateStrips(run, at, layerIndex) {
  const gates = run.layers[layerIndex].gates;
  const reading = element("output", { class: "reading" });
  const values = rowOf(gates, at);
  const units = gates.width / gates.names.length;
  const rows = gates.letters.map((letter, gate) => {
    const range = [gate * units, (gate + 1) * units];
    return pair(gates.names[gate], values.subarray(...range), gates.mean?.subarray(...range) ?? null, 1, reading, { gate: letter, layer: layerIndex });
  });
  return element("div", { class: "policies" }, rows, reading);
}

/** The matrix of a product and gate at a word, its mean, and what is between them. */
function matrices(run, at, state) {
  const all = run.layers[state.layer].matrices;
  const ofProduct = all.filter((it) => it.symbol === state.product);
  const matrix = ofProduct.find((it) => it.gate === state.gate) ?? ofProduct[0];
  if (!matrix) return null;
  const [rows, columns] = [matrix.rows.length, matrix.columns.length];
  const values = matrix.values.subarray(at * rows * columns, (at + 1) * rows * columns);
  const size = Math.max(...extent([matrix.values, matrix.mean ?? []]).map(Math.abs)) || 1;
  const picture = (title, numbers) => {
    const canvas = element("canvas", { class: "matrix", role: "img", "aria-label": `${title}: ${rows} units by ${columns} inputs` });
    fill(canvas, numbers, columns, (value) => diverging(value / size));
    return element("figure", {}, canvas, element("figcaption", {}, title));
  };
  const [units, inputs] = matrix.of;
  return element("div", {},
    element("div", { class: "matrices" },
      matrix.mean ? picture("mean over the corpus", matrix.mean) : null,
      picture("at this word", values)),
    element("p", { class: "note" }, `${matrix.formula}${ofProduct.length > 1 ? ` of gate ${matrix.gate}` : ""}: an even choice of ${rows} of ${units} units (rows) and ${columns} of ${inputs} inputs (columns); one scale of colours, ±${shortNumber(size)}.`));
}

/** Places of the corpus, each with the words around it. */
function places(list, told) {
  return element("ol", { class: "places" }, list.map((it) => element("li", { "data-distance": it.distance },
    element("span", { class: "around" }, it.before, " ", element("b", {}, it.words), " ", it.behind),
    element("span", { class: "number" }, told(it)))));
}

function neighbours(run, at, layer) {
  const word = run.words[at];
  const [nearest, alike] = [word.nearest[layer], word.alike[layer]];
  if (!nearest) return null;
  const units = alike?.units ?? [];
  const named = units.map(([unit, isHigh]) => `${unit}${isHigh ? "↑" : "↓"}`).join(" ");
  return [
    element("h4", {}, "Words with the nearest policy"),
    element("p", { class: "note" }, `By the latent z of layer ${layer + 1}, in the first ${run.corpus.words.toLocaleString("en")} ${run.unit}s of ${run.corpus.name}; distances in standard deviations.`),
    places(nearest, (it) => shortNumber(it.distance)),
    units.length === 0
      ? element("p", { class: "note" }, "No latent unit is a standard deviation from its mean at this word, so there is no pattern to match.")
      : element("details", { class: "alike" },
        element("summary", {}, units.length === 1 ? "Where the same latent unit is on" : `Where the same ${units.length} latent units are on`),
        element("p", { class: "note" }, `Units at least a standard deviation from their mean here: ${named}.`),
        places(alike.places, (it) => `${it.on} of ${units.length}`)),
  ];
}

/** Everything about one word of one run: what it means on one side, how it is computed on the other. */
function wordCard(run, at, state, heading) {
  const word = run.words[at];
  const layer = run.layers[state.layer];
  const adapts = layer?.parts.length > 0;
  const told = [
    element("h4", {}, "What comes next"), predictions(word),
    ...(adapts ? [element("h4", {}, "The adapted matrix"), matrices(run, at, state)] : []),
    ...(neighbours(run, at, state.layer) ?? []),
  ];
  const computed = adapts
    ? [element("h4", {}, `Policies of layer ${state.layer + 1}`),
      run.corpus ? element("p", { class: "note" }, "Each pair: this word above, the corpus' mean below. Blue is below zero, orange above.") : null,
      policies(run, at, state.layer)]
    : [element("p", { class: "note" }, "No policies are shown: this cell has none, or tells of none.")];
  if (layer?.gates) computed.push(element("h4", {}, `Gates of layer ${state.layer + 1}`), gateStrips(run, at, state.layer));
  return [
    element("p", { class: "eyebrow" }, heading),
    element("h3", {}, shownWord(word.typed ?? word.text)),
    element("p", { class: "facts" },
      word.typed ? "Not in the vocabulary: read as <unk>. " : null,
      word.surprise === null ? "The text begins behind it."
        : ["Surprise ", element("b", { "data-surprise": word.surprise }, `${word.surprise.toFixed(2)} nats`), `, a probability of ${shortNumber(100 * Math.exp(-word.surprise))} %.`]),
    element("div", { class: "card-parts" }, element("div", {}, told), element("div", {}, computed)),
  ];
}
