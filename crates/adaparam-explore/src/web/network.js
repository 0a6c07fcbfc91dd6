// A small network, computed in the page: the one place where a page computes what the library does, tested against it.

/** Numbers of 32 bits in base 64. */
function floats(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

const ACTIVATIONS = {
  identity: (x) => x,
  relu: (x) => Math.max(0, x),
  tanh: Math.tanh,
  sigmoid: (x) => 1 / (1 + Math.exp(-x)),
};

/** Unpacks a network, once. */
function readNetwork(network) {
  const matrix = (it) => ({ ...it, values: floats(it.values) });
  const affine = (it) => it && { weight: matrix(it.weight), bias: floats(it.bias) };
  return {
    ...network,
    layers: network.layers.map((layer) => ({
      ...layer, weights: layer.weights.map(matrix), bias: floats(layer.bias),
      policy: layer.policy.map((dense) => ({ ...dense, value: affine(dense.value), gate: affine(dense.gate) })),
    })),
    examples: network.examples.map((it) => ({ ...it, input: floats(it.input), output: floats(it.output), diagonals: floats(it.diagonals), effective: floats(it.effective) })),
    pixels: network.pixels && { ...network.pixels, mean_diagonals: floats(network.pixels.mean_diagonals) },
  };
}

/** x W, for W by rows. */
function product(x, { rows, columns, values }) {
  const out = new Float64Array(columns);
  for (let row = 0; row < rows; row += 1) {
    if (x[row] === 0) continue;
    for (let column = 0; column < columns; column += 1) out[column] += x[row] * values[row * columns + column];
  }
  return out;
}

function affineOf(x, { weight, bias }) {
  const out = product(x, weight);
  bias.forEach((value, at) => { out[at] += value; });
  return out;
}

/** π(x): all adapted diagonals of a layer, side by side. */
function policyOf(layer, x) {
  return layer.policy.reduce((context, { value, activation, gate }) => {
    const out = affineOf(context, value).map(ACTIVATIONS[activation]);
    if (!gate) return out;
    const open = affineOf(context, gate).map(ACTIVATIONS.sigmoid);
    return out.map((number, at) => number * open[at]);
  }, Float64Array.from(x));
}

/** D(0), …, D(q); nothing where one is the identity. */
function diagonalsOf(layer, x) {
  const all = policyOf(layer, x);
  let at = 0;
  return layer.diagonals.map((width) => {
    at += width;
    return width === 0 ? null : all.subarray(at - width, at);
  });
}

const scaled = (x, diagonal) => (diagonal ? x.map((value, at) => value * diagonal[at]) : x);

/** φ( D(q) W(q-1) … W(1) D(1) x + D(0) b ). */
function layerOf(layer, x, d = diagonalsOf(layer, x)) {
  let out = scaled(Float64Array.from(x), d[1]);
  layer.weights.forEach((weight, j) => { out = scaled(product(out, weight), d[j + 2]); });
  const bias = scaled(Float64Array.from(layer.bias), d[0]);
  bias.forEach((value, at) => { out[at] += value; });
  return out.map(ACTIVATIONS[layer.activation]);
}

function networkOf(network, x) {
  return network.layers.reduce((input, layer) => layerOf(layer, input), Float64Array.from(x));
}

/** The matrix that stands in for a layer's own at an input, a row for each output: `effective[out][in]`. */
function effectiveOf(layer, x) {
  const d = diagonalsOf(layer, x);
  const columns = Array.from(x, (_, at) => {
    let out = scaled(Float64Array.from(x, (__, other) => (other === at ? 1 : 0)), d[1]);
    layer.weights.forEach((weight, j) => { out = scaled(product(out, weight), d[j + 2]); });
    return out;
  });
  return Array.from(columns[0], (_, row) => columns.map((column) => column[row]));
}

/** Bars for numbers, with a stroke at each of `marks`; between `bounds`, which zero is within, if there are any. */
function bars(values, marks, label, name, bounds = extent([values, marks ?? [], [0]]), scale = (value) => value) {
  const [width, height] = [values.length * 10, 100];
  const [least, greatest] = bounds.map(scale);
  const y = (value) => 2 + (height - 4) * (greatest - scale(value)) / (greatest - least || 1);
  const bar = (value, at) => drawn("rect", {
    class: value < 0 ? "down" : "up", x: at * 10 + 1.2, width: 7.6, y: Math.min(y(0), y(value)), height: Math.max(0.5, Math.abs(y(value) - y(0))), "data-value": value,
  }, drawn("title", {}, `${name(at)}: ${shortNumber(value)}`));
  const figure = drawn("svg", { class: "bars", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label },
    drawn("line", { class: "grid", x1: 0, x2: width, y1: y(0), y2: y(0) }), Array.from(values, bar),
    marks ? Array.from(marks, (value, at) => drawn("line", { class: "mark", x1: at * 10, x2: (at + 1) * 10, y1: y(value), y2: y(value) })) : null);
  figure.style.maxWidth = `${Math.min(44, 6 + values.length)}rem`;
  return figure;
}

const data = JSON.parse(document.getElementById("data").textContent);
const networks = data.networks.map(readNetwork);
