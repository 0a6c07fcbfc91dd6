// Curves of runs that train, as they grow.

const training = {
  place: null,
  /** What stays while curves grow, so that nothing is closed or told twice; made anew once all runs have ended. */
  frame: null,
  hidden: new Set(),

  begin(curves) {
    this.place = document.getElementById("training");
    this.show(curves);
    this.follow();
  },

  async follow() {
    for (;;) {
      try {
        const answer = await fetch("curves");
        for await (const event of eventsOf(answer)) this.show(event);
      } catch {
        // The command has ended, or will be there again.
      }
      await new Promise((later) => setTimeout(later, 3000));
    }
  },

  show(curves) {
    this.curves = curves;
    const { runs } = curves;
    if (runs.length === 0) {
      this.place.replaceChildren(element("p", { class: "note", role: "status" }, "No run has begun yet."));
      return;
    }
    const running = runs.filter((run) => run.running).length;
    const shown = runs.map((run, at) => ({ ...run, colour: `var(${CURVES[at % CURVES.length]})`, dash: at >= CURVES.length ? "5 3" : null }))
      .filter((run) => !this.hidden.has(run.name));
    const steps = shown.map((run) => ({ ...run, points: run.steps }));
    const epochs = shown.map((run) => ({ ...run, points: run.epochs.map(([epoch, , loss]) => [epoch, Math.exp(loss)]) }));
    const focused = document.activeElement?.dataset?.run;
    const charts = [
      chart("Training loss by step, in nats", "step", steps, false),
      chart("Validation perplexity by epoch", "epoch", epochs, true),
    ];
    const { status, legend, figures } = this.framed(data.models.length > 0 && running === 0);
    const told = `${runs.length} ${runs.length === 1 ? "run" : "runs"}, ${running} under way.`;
    if (status.textContent !== told) status.textContent = told;
    legend.replaceChildren(...this.legend(runs));
    figures.replaceChildren(...charts);
    if (focused) this.place.querySelector(`[data-run="${CSS.escape(focused)}"]`)?.focus();
  },

  /** Where curves are shown; behind what is explored once no run trains, open if they were in sight before. */
  framed(isBehind) {
    if (this.frame?.isBehind === isBehind) return this.frame;
    const status = element("p", { class: "note", role: "status", id: "training-status" });
    const legend = element("div", { class: "units", role: "group", "aria-label": "Runs" });
    const figures = element("div", { class: "charts" });
    const [name, heading, attributes] = isBehind
      ? ["details", "summary", { class: "alike", open: this.frame !== null }] : ["section", "h2", {}];
    this.place.replaceChildren(element(name, { ...attributes, id: "curves-of-runs" }, element(heading, {}, "Training"), status, legend, figures));
    this.frame = { isBehind, status, legend, figures };
    return this.frame;
  },

  /** Names that switch their curves on and off. */
  legend(runs) {
    return runs.map((run, at) => {
      const last = run.epochs.at(-1);
      const button = element("button", {
        type: "button", class: "unit", "data-run": run.name, "data-steps": run.steps.at(-1)?.[0] ?? 0, "data-valid": last?.[2] ?? "",
        "aria-pressed": String(!this.hidden.has(run.name)),
        click: () => {
          if (!this.hidden.delete(run.name)) this.hidden.add(run.name);
          this.show(this.curves);
        },
      }, `${run.name} · epoch ${last?.[0] ?? 0} of ${run.planned}${last ? ` · ${Math.exp(last[2]).toFixed(1)}` : ""}${run.running ? " · under way" : ""}`);
      button.style.borderLeft = `6px ${at < CURVES.length ? "solid" : "dashed"} var(${CURVES[at % CURVES.length]})`;
      return button;
    });
  },
};

/** Round numbers between two bounds. */
function ticks(least, greatest) {
  const raw = (greatest - least) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((by) => by * power).find((by) => by >= raw);
  const first = Math.ceil(least / step) * step;
  return Array.from({ length: Math.floor((greatest - first) / step + 1e-9) + 1 }, (_, at) => first + at * step);
}

/** Lines with axes; `series` have points, a name and a colour. */
function chart(title, xName, series, isWhole) {
  // A drawing is as wide as its place, and its letters must be read on a phone too.
  const [width, height] = matchMedia("(max-width: 760px)").matches ? [350, 260] : [560, 300];
  const [left, top, right, bottom] = [58, 14, 14, 40];
  const [x0, x1] = extent(series.map((one) => one.points.map(([x]) => x)));
  const [y0, y1] = extent(series.map((one) => one.points.map(([, y]) => y)));
  const pad = (y1 - y0) * 0.06 || 0.5;
  const x = (value) => left + (width - left - right) * (value - x0) / (x1 - x0 || 1);
  const y = (value) => height - bottom - (height - top - bottom) * (value - y0 + pad) / (y1 - y0 + 2 * pad);
  const xTicks = ticks(x0, x1 > x0 ? x1 : x0 + 1).filter((value) => (!isWhole || Number.isInteger(value)) && value <= x1);
  const yTicks = ticks(y0 - pad, y1 + pad);
  const lines = series.filter((one) => one.points.length > 0).map((one) => [
    drawn("polyline", { class: "curve", stroke: one.colour, "stroke-dasharray": one.dash, points: one.points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ") }, drawn("title", {}, one.name)),
    one.points.length < 40 ? one.points.map(([a, b]) => drawn("circle", { cx: x(a), cy: y(b), r: 3, fill: one.colour }, drawn("title", {}, `${one.name}: ${xName} ${a}, ${shortNumber(b)}`))) : [],
  ]);
  return element("figure", { class: "chart" },
    drawn("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title },
      yTicks.map((value) => [drawn("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }), drawn("text", { class: "tick end", x: left - 8, y: y(value) + 4 }, shortNumber(value))]).flat(),
      xTicks.map((value) => drawn("text", { class: "tick middle", x: x(value), y: height - bottom + 18 }, value.toLocaleString("en"))),
      drawn("text", { class: "tick middle", x: (left + width - right) / 2, y: height - 4 }, xName),
      lines.flat(2)),
    element("figcaption", {}, title));
}
