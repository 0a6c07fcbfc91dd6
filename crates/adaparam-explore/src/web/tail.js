// Tail regression: move a point, and see what the network makes of its place.

const REACH = 3.5;
/** Powers of ten, on both sides of zero. */
const power = (value) => Math.sign(value) * Math.log10(1 + Math.abs(value));
const tail = {
  network: 0,
  point: [1, -0.5],
  /** Least and greatest singular value over the plane. */
  bounds: [0, 1],

  truth([a, b]) { return (2 * a) ** 2 - (3 * b) ** 4; },

  move(point) {
    this.point = point.map((value) => Math.max(-REACH, Math.min(REACH, value)));
    this.draw();
  },

  begin() {
    const names = networks.map((network, at) => [at, network.name]);
    const number = (at) => element("input", { type: "number", id: `x${at + 1}`, step: 0.1, min: -REACH, max: REACH, change: (event) => this.move(this.point.with(at, Number(event.target.value) || 0)) });
    this.inputs = [number(0), number(1)];
    this.plane = element("canvas", {
      class: "plane", role: "application", tabindex: 0, "aria-label": "The inputs x₁ and x₂: arrow keys move the point",
      keydown: (event) => {
        const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
        if (!by) return;
        event.preventDefault();
        const step = event.shiftKey ? 0.5 : 0.1;
        this.move(this.point.map((value, at) => Math.round((value + by[at] * step) * 100) / 100));
      },
      pointerdown: (event) => { this.plane.setPointerCapture(event.pointerId); this.drag(event); },
      pointermove: (event) => event.buttons && this.drag(event),
    });
    this.marker = element("span", { class: "marker", "aria-hidden": "true" });
    this.shown = element("div", { class: "shown" });
    document.getElementById("app").replaceChildren(
      element("div", { class: "controls" }, choice("Network", names, 0, (value) => { this.network = Number(value); this.paint(); this.draw(); }),
        element("label", { class: "choice" }, element("span", {}, "x₁"), this.inputs[0]), element("label", { class: "choice" }, element("span", {}, "x₂"), this.inputs[1])),
      element("div", { class: "play" },
        element("figure", { class: "card" }, element("div", { class: "plane-frame" }, this.plane, this.marker), element("figcaption", {}, "What the network predicts over the plane, on a scale of powers of ten: orange is above zero, blue below. Drag the point, or use the arrow keys.")),
        this.shown));
    this.paint();
    this.draw();
  },

  drag(event) {
    const box = this.plane.getBoundingClientRect();
    this.move([(event.clientX - box.left) / box.width, 1 - (event.clientY - box.top) / box.height].map((share) => Math.round((2 * share - 1) * REACH * 100) / 100));
  },

  paint() {
    const side = 61;
    const network = networks[this.network];
    const values = Float64Array.from({ length: side * side }, (_, at) => {
      const [x, y] = [at % side, Math.floor(at / side)];
      return networkOf(network, [(2 * x / (side - 1) - 1) * REACH, (1 - 2 * y / (side - 1)) * REACH])[0];
    });
    fill(this.plane, values, side, (value) => diverging(power(value) / 4.2));
    // One scale for all places, so that bars grow and shrink as the point moves.
    const along = Array.from({ length: 21 }, (_, at) => (at / 10 - 1) * REACH);
    const everywhere = along.flatMap((a) => along.map((b) => diagonalsOf(network.layers[0], [a, b])[2] ?? []));
    this.bounds = extent([...everywhere, [0]]);
  },

  draw() {
    const network = networks[this.network];
    const [layer] = network.layers;
    const prediction = networkOf(network, this.point)[0];
    const truth = this.truth(this.point);
    this.inputs.forEach((input, at) => { input.value = this.point[at]; });
    this.marker.style.left = `${50 * (1 + this.point[0] / REACH)}%`;
    this.marker.style.top = `${50 * (1 - this.point[1] / REACH)}%`;
    const d = diagonalsOf(layer, this.point);
    const singular = d.length === 4 ? d[2] : null;
    const effective = effectiveOf(layer, this.point);
    this.shown.replaceChildren(
      element("div", { class: "card" }, element("p", { class: "eyebrow" }, `${network.name} · ${network.params} parameters`),
        element("p", { class: "facts" }, "Prediction ", element("b", { id: "prediction", "data-value": prediction }, shortNumber(prediction)), ", truth ", element("b", { id: "truth", "data-value": truth }, shortNumber(truth))),
        singular ? [element("h4", {}, "Singular values"),
          element("ol", { class: "values", id: "singular" }, Array.from(singular, (value, at) => element("li", { "data-value": value }, element("span", { class: "number" }, `D${at + 1} ${shortNumber(value)}`)))),
          bars(singular, null, "Singular values at this point", (at) => `D${at + 1}`, this.bounds, power),
          element("p", { class: "note", id: "bounds", "data-least": this.bounds[0], "data-greatest": this.bounds[1] }, `The scale reaches from ${shortNumber(this.bounds[0])} to ${shortNumber(this.bounds[1])}, the least and the greatest over the plane, by powers of ten; the line is zero.`)]
          : element("p", { class: "note" }, "A static layer: its matrix is the same everywhere.")),
      effective.length === 2 ? element("div", { class: "card" }, element("h4", {}, "The map that stands in for the first layer's matrix"),
        element("table", { id: "effective" }, element("tbody", {}, effective.map((row) => element("tr", {}, Array.from(row, (value) => element("td", { class: "number", "data-value": value }, shortNumber(value))))))),
        this.map(effective), element("p", { class: "note" }, "What becomes of the unit circle, and of the two axes.")) : null);
  },

  /** The unit circle and what a 2 × 2 matrix makes of it. */
  map([[a, b], [c, e]]) {
    const around = Array.from({ length: 73 }, (_, at) => at * Math.PI / 36);
    const image = around.map((angle) => [a * Math.cos(angle) + b * Math.sin(angle), c * Math.cos(angle) + e * Math.sin(angle)]);
    const size = Math.max(1, ...image.flat().map(Math.abs)) * 1.15;
    const at = ([x, y]) => `${(110 + 100 * x / size).toFixed(2)},${(110 - 100 * y / size).toFixed(2)}`;
    const ray = (to, colour) => drawn("polyline", { class: "curve", stroke: `var(${colour})`, points: `${at([0, 0])} ${at(to)}` });
    return drawn("svg", { class: "map", viewBox: "0 0 220 220", role: "img", "aria-label": "The unit circle and its image" },
      drawn("polyline", { class: "grid unit-circle", points: around.map((angle) => at([Math.cos(angle), Math.sin(angle)])).join(" ") }),
      drawn("polyline", { class: "curve image", points: image.map(at).join(" ") }), ray([a, c], "--curve-1"), ray([b, e], "--curve-2"));
  },
};

tail.begin();
whenThemeChanges(() => { tail.paint(); tail.draw(); });
