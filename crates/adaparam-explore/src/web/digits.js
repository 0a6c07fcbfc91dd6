// Digits: draw one, and see which singular directions are turned up.

const SHOWN_DIRECTIONS = 8;
const digits = {
  network: networks[0],
  /** Values of pixels from 0 to 1. */
  ink: null,

  begin() {
    const { width, height, largest, slope, offset } = this.network.pixels;
    this.ink = new Float64Array(width * height);
    this.canvas = element("canvas", {
      class: "plane pen", role: "application", tabindex: 0, "aria-label": `A sheet of ${width} by ${height} pixels: draw a digit with the pointer, or choose an example`,
      pointerdown: (event) => { this.canvas.setPointerCapture(event.pointerId); this.stroke(event); },
      pointermove: (event) => event.buttons && this.stroke(event),
    });
    this.shown = element("div", { class: "shown" });
    const examples = this.network.examples.map((example, at) => element("button", {
      type: "button", class: "unit", "data-example": at,
      click: () => { this.ink = Float64Array.from(example.input, (value) => (value - offset) / slope / largest); this.draw(); },
    }, `a ${example.label}`));
    document.getElementById("app").replaceChildren(element("div", { class: "play" },
      element("figure", { class: "card" }, element("div", { class: "plane-frame" }, this.canvas),
        element("div", { class: "units" }, element("button", { type: "button", class: "unit", id: "clear", click: () => { this.ink.fill(0); this.draw(); } }, "Clear"), examples),
        element("figcaption", {}, "Draw a digit, large and in the middle, or take one of the test images.")),
      this.shown));
    this.canvas.width = width;
    examples[3]?.click();
  },

  /** A round pen, a tenth of the sheet wide. */
  stroke(event) {
    const { width, height } = this.network.pixels;
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [(event.clientX - box.left) / box.width * width, (event.clientY - box.top) / box.height * height];
    const radius = Math.max(0.75, width / 18);
    for (let row = 0; row < height; row += 1) {
      for (let column = 0; column < width; column += 1) {
        const distance = Math.hypot(column + 0.5 - x, row + 0.5 - y);
        const touched = Math.min(1, Math.max(0, radius + 0.5 - distance));
        const at = row * width + column;
        this.ink[at] = Math.max(this.ink[at], touched);
      }
    }
    this.draw();
  },

  draw() {
    const { network } = this;
    const { width, largest, slope, offset, mean_diagonals: mean } = network.pixels;
    const [layer] = network.layers;
    fill(this.canvas, this.ink, width, sequential);
    const x = Float64Array.from(this.ink, (value) => value * largest * slope + offset);
    const output = networkOf(network, x);
    const highest = Math.max(...output);
    const powers = output.map((value) => Math.exp(value - highest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    const d = diagonalsOf(layer, x);
    const singular = d[2];
    const change = singular.map((value, at) => value - mean[at]);
    const order = Array.from(change.keys()).sort((a, b) => Math.abs(change[b]) - Math.abs(change[a]));
    const [first] = layer.weights;
    const direction = (k) => {
      const canvas = element("canvas", { class: "matrix", role: "img", "aria-label": `Direction ${k}: ${shortNumber(singular[k])}, mean ${shortNumber(mean[k])}` });
      const values = Float32Array.from({ length: first.rows }, (_, row) => first.values[row * first.columns + k]);
      const size = Math.max(...extent([values]).map(Math.abs)) || 1;
      fill(canvas, values, width, (value) => diverging(value / size));
      return element("figure", {}, canvas, element("figcaption", {}, `${k}: ${shortNumber(singular[k])}, mean ${shortNumber(mean[k])} ${change[k] > 0 ? "▲" : "▼"}`));
    };
    this.shown.replaceChildren(
      element("div", { class: "card" }, element("p", { class: "eyebrow" }, `${network.name} · ${network.params.toLocaleString("en")} parameters`),
        element("h4", {}, "What it takes the digit for"),
        element("ol", { class: "predictions", id: "classes", start: 0 }, Array.from(powers, (power, digit) => element("li", { "data-p": power / total, "data-output": output[digit] },
          element("span", { class: "guess" }, String(digit)), element("span", { class: "bar", "aria-hidden": "true" }, filledBar(power / total)), element("span", { class: "number" }, `${(100 * power / total).toFixed(1)} %`))))),
      element("div", { class: "card" }, element("h4", {}, `All ${singular.length} singular values`), bars(singular, mean, "Singular values, and their means over the test images as strokes", (k) => `direction ${k}`),
        element("ol", { class: "values visually-hidden", id: "singular" }, Array.from(singular, (value) => element("li", { "data-value": value }, shortNumber(value)))),
        element("p", { class: "note" }, "Bars: at this image. Strokes: their means over the test images."),
        element("h4", {}, "Directions that are turned most"), element("div", { class: "directions" }, order.slice(0, SHOWN_DIRECTIONS).map(direction)),
        element("p", { class: "note" }, "Each picture is what a direction looks for in an image: a column of W(1), blue against orange.")));
  },
};

function filledBar(share) {
  const bar = element("span");
  bar.style.width = `${100 * share}%`;
  return bar;
}

digits.begin();
whenThemeChanges(() => digits.draw());
