// The explorer: words, what they are coloured by, one or two cards, curves.

const data = JSON.parse(document.getElementById("data").textContent);

const explorer = {
  runs: [],
  state: { measure: "surprise", unit: 0, layer: 0, product: "W", gate: "i", units: [], beside: "none" },
  /** What the page adds behind the curves. */
  more: null,
  /** Whether the last word is looked at as the text grows. */
  follows: false,
  /** The words that are looked at: of the first run, beside it, and one that was chosen in another run. */
  chosen: { word: 1, second: null, elsewhere: null },
  parts: {},

  begin(runs) {
    this.take(runs);
    if (this.runs.length > 1 && this.state.beside === "none") this.state.beside = "1";
    if (this.state.units.length === 0) this.chooseUnits();
    this.build();
  },

  /** Other readings of the same runs, as a text is typed. */
  renew(runs) {
    this.take(runs);
    this.build();
  },

  take(runs) {
    this.runs = runs.map(readRun);
    const last = this.runs[0].words.length - 1;
    this.chosen.word = this.follows ? last : Math.min(this.chosen.word, last);
    this.chosen.elsewhere = null;
    if (this.chosen.second !== null) this.chosen.second = Math.min(this.chosen.second, last);
  },

  /** The first run with a latent variable in the layer that is looked at; none if there is no such run. */
  withLatent() { return this.runs.findIndex((run) => run.layers[this.state.layer]?.latent); },

  /** The units that vary most over the text. */
  chooseUnits() {
    this.state.units = (this.runs[this.withLatent()]?.layers[this.state.layer].latent.order ?? []).slice(0, 4);
  },

  set(name, value) {
    this.state[name] = value;
    if (name === "layer") this.chooseUnits();
    this.build();
  },

  /** Chooses a word of a run; in the first one it may be a second word beside the first. */
  choose(word, isSecond, run = 0) {
    const { runs, state, chosen } = this;
    if (run > 0) {
      state.beside = String(run);
      chosen.word = counterpart(runs[run], word, runs[0]);
      chosen.elsewhere = { run, word };
    } else if (isSecond) {
      state.beside = "word";
      chosen.second = word;
    } else {
      chosen.word = word;
      chosen.elsewhere = null;
    }
    this.parts.beside.querySelector("select").value = state.beside;
    this.draw();
  },

  /** The other pane: a run and a word of it, or nothing. */
  second() {
    const { beside } = this.state;
    if (beside === "none") return null;
    if (beside === "word") return { run: 0, word: this.chosen.second ?? Math.min(this.chosen.word + 1, this.runs[0].words.length - 1) };
    const run = Number(beside);
    const { word, elsewhere } = this.chosen;
    return { run, word: elsewhere?.run === run ? elsewhere.word : counterpart(this.runs[0], word, this.runs[run]) };
  },

  controls() {
    const { runs, state } = this;
    const groups = new Map();
    const known = new Set();
    for (const { id, group, name } of runs.flatMap((run) => run.measures)) {
      if (known.has(id)) continue;
      known.add(id);
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push([id, name]);
    }
    const choices = [...groups].map(([group, choices]) => ({ group, choices }));
    const latent = runs[this.withLatent()]?.layers[state.layer].latent;
    if (latent) choices.push({ group: "Latent unit", choices: [["latent", "a chosen latent unit"]] });
    const most = Math.max(...runs.map((run) => run.layers.length));
    const layers = Array.from({ length: most }, (_, at) => [at, `layer ${at + 1}`]);
    const besides = [["none", "nothing"], ["word", "another word (Shift and click)"],
      ...runs.slice(1).map((run, at) => [at + 1, `the same word in ${run.name}`])];
    const unit = state.measure === "latent" && latent
      ? element("label", { class: "choice" }, element("span", {}, "Unit"),
        element("input", { type: "number", id: "unit", min: 0, max: latent.width - 1, value: state.unit,
          change: (event) => this.set("unit", Math.min(latent.width - 1, Math.max(0, Number(event.target.value) || 0))) })) : null;
    const adapting = runs.map((run) => run.layers[state.layer]).filter((layer) => layer?.matrices.length > 0);
    const adapts = adapting.length > 0;
    // Each letter once, where runs have other gates.
    const gates = [...new Map(adapting.flatMap((layer) => layer.gate_names))].map(([letter, name]) => [letter, `${letter}, ${name}`]);
    const gate = gates.some(([letter]) => letter === state.gate) ? state.gate : gates[0]?.[0];
    this.parts.beside = choice("Beside it", besides, state.beside, (value) => this.set("beside", value));
    return element("div", { class: "controls" },
      choice("Colour words by", choices, state.measure, (value) => this.set("measure", value)), unit,
      layers.length > 1 ? choice("Layer", layers, state.layer, (value) => this.set("layer", Number(value))) : null,
      adapts ? choice("Matrix", [["W", "W, of the input"], ["V", "V, of the hidden state"]], state.product, (value) => this.set("product", value)) : null,
      gates.length > 1 ? choice("Gate", gates, gate, (value) => this.set("gate", value)) : null,
      this.parts.beside);
  },

  /** Makes everything anew. */
  build() {
    const { runs } = this;
    const focused = document.activeElement?.id;
    const lists = runs.map((run, index) => wordList(run, index, `Words, as ${run.name} reads them`, (word, isSecond) => this.choose(word, isSecond, index)));
    const named = lists.map((list, index) => element("div", {},
      element("p", { class: "eyebrow" }, `${runs[index].name} · ${runs[index].model} · ${runs[index].parameters.toLocaleString("en")} parameters`), list,
      runs[index].cut ? element("p", { class: "note" }, "The text goes on; only its beginning is read.") : null,
      runs[index].left_out > 0 ? element("p", { class: "note" }, `Left out, because this model has no way to read them: ${runs[index].left_out} ${runs[index].unit}s of the text.`) : null));
    const legendPlace = element("div");
    const cards = element("div", { class: "cards" });
    const curves = element("div");
    this.parts = { ...this.parts, lists, legendPlace, cards, curves };
    const app = document.getElementById("app");
    const compared = runs.map((run) => (run.corpus
      ? `Means and neighbours: the first ${run.corpus.words.toLocaleString("en")} ${run.unit}s of ${run.corpus.name}.`
      : "No text to compare with was found, so there are no means and no neighbours."));
    const note = new Set(compared).size === 1 ? `${compared[0]} ` : compared.map((text, at) => `${runs[at].name}: ${text} `);
    app.replaceChildren(
      element("section", { "aria-label": "Text" }, this.controls(), legendPlace, named),
      element("section", { "aria-label": "Words that are looked at" }, cards),
      curves,
      element("p", { class: "note" }, note, `Computed with ${runs[0].computed}. `, data.made ? `Made by adaparam ${data.made.version}, commit ${data.made.commit}: ${data.made.command}` : null));
    this.draw();
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  },

  /** Colours, cards and curves for what is chosen. */
  draw() {
    const { runs, state, chosen, parts } = this;
    const values = runs.map((run) => measured(run, state));
    const bounds = extent(values);
    const isSigned = state.measure === "latent";
    const second = this.second();
    parts.lists.forEach((list, index) => {
      const here = index === 0 ? [chosen.word, second?.run === 0 ? second.word : undefined] : [second?.run === index ? second.word : undefined];
      colourWords(list, runs[index], values[index], bounds, isSigned, here);
    });
    parts.legendPlace.replaceChildren(legend(bounds, isSigned));
    const panes = [{ run: 0, word: chosen.word }, second].filter(Boolean);
    parts.cards.replaceChildren(...panes.map(({ run, word }, index) => element("article", { class: "card", id: `card-${index}`, "data-run": run, "data-word": word },
      wordCard(runs[run], word, { ...state, layer: Math.min(state.layer, runs[run].layers.length - 1) }, `${runs[run].name}, ${runs[run].unit} ${word}`))));
    parts.cards.classList.toggle("two", panes.length > 1);
    const shown = this.withLatent();
    const latent = runs[shown]?.layers[state.layer].latent;
    const marked = [shown === 0 ? chosen.word : undefined, second?.run === shown ? second.word : undefined];
    parts.curves.replaceChildren(...(latent ? [element("section", { "aria-labelledby": "curves" },
      element("h2", { id: "curves" }, `Latent units of layer ${state.layer + 1} over the text${shown === 0 ? "" : `, ${runs[shown].name}`}`),
      latentCurves(runs[shown], state, marked, (word, isSecond) => this.choose(word, isSecond, shown)),
      unitButtons(latent, state, (unit) => {
        const { units } = state;
        this.set("units", units.includes(unit) ? units.filter((it) => it !== unit) : [...units, unit].slice(-6));
      }), this.more?.() ?? null)] : []));
  },
};

whenThemeChanges(() => explorer.runs.length && explorer.draw());
