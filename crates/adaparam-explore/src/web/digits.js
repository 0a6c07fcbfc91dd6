// Digits: draw one, and see which singular directions are turned up.

const SHOWN_DIRECTIONS = 8;
const digits = {
  network: networks[0],
  /** Values of pixels from 0 to 1. */
  ink: null,
  /** Where the pen is, in pixels; the keys move it too. */
  pen: null,
  isDown: false,
  /** The digit that the sheet is taken for. */
  likeliest: null,

  begin() {
    const { width, height, largest, slope, offset } = this.network.pixels;
    this.ink = new Float64Array(width * height);
    this.pen = [width / 2, height / 2];
    this.canvas = element("canvas", {
      class: "plane pen", role: "application", tabindex: 0, "aria-describedby": "pen-help pen-place",
      "aria-label": `A sheet of ${width} by ${height} pixels to draw a digit on`,
      pointerdown: (event) => { this.canvas.setPointerCapture(event.pointerId); this.lift(); this.stroke(this.under(event), false); },
      pointermove: (event) => event.buttons && this.stroke(this.under(event), true),
      keydown: (event) => this.pressed(event),
      blur: () => this.lift(),
    });
    this.marker = element("span", { class: "marker", "aria-hidden": "true", hidden: true });
    this.place = element("p", { class: "note", role: "status", id: "pen-place" });
    this.shown = element("div", { class: "shown" });
    const examples = this.network.examples.map((example, at) => element("button", {
      type: "button", class: "unit", "data-example": at,
      click: () => { this.ink = Float64Array.from(example.input, (value) => (value - offset) / slope / largest); this.draw(); },
    }, `${example.label === 8 ? "an" : "a"} ${example.label}`));
    document.getElementById("app").replaceChildren(element("div", { class: "play" },
      element("figure", { class: "card" }, element("div", { class: "plane-frame" }, this.canvas, this.marker),
        element("div", { class: "units" }, element("button", { type: "button", class: "unit", id: "clear", click: () => this.clear() }, "Clear"), examples),
        element("figcaption", { id: "pen-help" }, "Draw a digit, large and in the middle, or take one of the test images. With keys: arrows move the pen, Space sets it down and lifts it, Delete clears the sheet."),
        this.place, element("p", { class: "note" }, data.credit)),
      this.shown));
    examples[3]?.click();
  },

  clear() {
    this.ink.fill(0);
    this.draw();
  },

  /** The place under a pointer, in pixels. */
  under(event) {
    const { width, height } = this.network.pixels;
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width * width, (event.clientY - box.top) / box.height * height];
  },

  /** Moves the pen; where it is drawn along, all on the way is touched, however far apart the two places are. */
  stroke(to, isAlong) {
    const from = isAlong ? this.pen : to;
    const steps = Math.max(1, Math.ceil(2 * Math.hypot(to[0] - from[0], to[1] - from[1])));
    for (let step = 1; step <= steps; step += 1) {
      this.touch(from.map((value, at) => value + (to[at] - value) * step / steps));
    }
    this.pen = to;
    this.draw();
  },

  /** A round pen, a ninth of the sheet wide. */
  touch([x, y]) {
    const { width, height } = this.network.pixels;
    const radius = Math.max(0.75, width / 18);
    for (let row = 0; row < height; row += 1) {
      for (let column = 0; column < width; column += 1) {
        const distance = Math.hypot(column + 0.5 - x, row + 0.5 - y);
        const touched = Math.min(1, Math.max(0, radius + 0.5 - distance));
        const at = row * width + column;
        this.ink[at] = Math.max(this.ink[at], touched);
      }
    }
  },

  pressed(event) {
    const { width, height } = this.network.pixels;
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (by) {
      const to = [Math.min(width, Math.max(0, this.pen[0] + by[0])), Math.min(height, Math.max(0, this.pen[1] + by[1]))];
      if (this.isDown) this.stroke(to, true);
      else this.pen = to;
    } else if (event.key === " ") {
      this.isDown = !this.isDown;
      if (this.isDown) this.stroke(this.pen, false);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.clear();
    } else {
      return;
    }
    event.preventDefault();
    this.showPen();
  },

  lift() {
    this.isDown = false;
    this.marker.hidden = true;
    this.place.textContent = "";
  },

  /** Where the pen is, for those who use keys. */
  showPen() {
    const { width, height } = this.network.pixels;
    const [x, y] = this.pen;
    this.marker.hidden = false;
    this.marker.classList.toggle("down", this.isDown);
    this.marker.style.left = `${100 * x / width}%`;
    this.marker.style.top = `${100 * y / height}%`;
    this.place.textContent = `Pen ${this.isDown ? "down" : "up"}, column ${Math.floor(x)}, row ${Math.floor(y)}; likeliest a ${this.likeliest}`;
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
    this.likeliest = output.indexOf(highest);
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
      return element("figure", {}, canvas, element("figcaption", {}, `${k}: ${shortNumber(singular[k])} ${change[k] > 0 ? "▲" : "▼"}`, element("br"), `mean ${shortNumber(mean[k])}`));
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

digits.begin();
whenThemeChanges(() => digits.draw());
