// A page that is alive: a text is read as it is typed, and goes on by itself.

/** Asks the server of this page, and nobody else. */
function ask(path, value, signal) {
  return fetch(path, { method: "POST", body: JSON.stringify(value), signal, headers: { "Content-Type": "application/json" } });
}

/** The events of an answer, one by one. */
async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const whole = rest.split("\n\n");
    rest = whole.pop();
    for (const event of whole) {
      if (event.startsWith("data: ")) yield JSON.parse(event.slice(6));
    }
  }
}

const typing = {
  text: element("textarea", { id: "text", rows: 3, maxlength: 8000, spellcheck: "false", "aria-describedby": "typing-help" }),
  status: element("p", { class: "note", role: "status", "aria-live": "polite", id: "status" }),
  guesses: element("div", { class: "units", role: "group", "aria-label": "Likeliest next words", id: "guesses" }),
  begun: false,
  wait: null,
  reading: null,
  drawing: null,

  say(text) { this.status.textContent = text; },

  /** Reads the text a moment after the last key. */
  typed() {
    clearTimeout(this.wait);
    this.wait = setTimeout(() => this.read(), 180);
  },

  /** Reads the text; `said` is what the person is told then. */
  async read(said = "") {
    this.reading?.abort();
    this.reading = new AbortController();
    try {
      const answer = await ask("explain", { text: this.text.value }, this.reading.signal);
      if (!answer.ok) return this.say(await answer.text());
      const { runs } = await answer.json();
      this.say(said);
      explorer.follows = this.text.selectionStart >= this.text.value.trimEnd().length;
      if (this.begun) explorer.renew(runs);
      else explorer.begin(runs);
      this.begun = true;
      this.showGuesses();
    } catch (error) {
      if (error.name !== "AbortError") this.say("The server does not answer: has the command ended?");
    }
  },

  showGuesses() {
    const run = explorer.runs[this.run()];
    const last = run.words.at(-1);
    this.guesses.replaceChildren(...last.predictions.slice(0, 9).map((it, at) => element("button", {
      type: "button", class: "guess-button", "data-p": it.p, accesskey: String(at + 1), title: `${(100 * it.p).toFixed(1)} %; Alt+${at + 1}`,
      click: () => this.add(it.text, run.joined),
    }, shownWord(it.text), element("span", { class: "number" }, ` ${(100 * it.p).toFixed(0)} %`))));
  },

  run() { return Number(this.runChoice?.querySelector("select").value ?? 0); },

  add(word, isJoined) {
    const before = this.text.value;
    const isEnd = word === "⏎";
    const blank = isJoined || before === "" || /\s$/.test(before) || isEnd ? "" : " ";
    this.text.value = before + blank + (isEnd ? "\n" : word);
    this.text.setSelectionRange(this.text.value.length, this.text.value.length);
    this.read();
  },

  stop() {
    this.drawing?.abort();
    this.drawing = null;
  },

  async goOn() {
    if (this.drawing) return this.stop();
    this.drawing = new AbortController();
    const value = (id) => Number(document.getElementById(id).value);
    const seed = Math.min(Number.MAX_SAFE_INTEGER - 1, Math.max(0, Math.floor(value("seed") || 0)));
    let problem = "";
    this.button.textContent = "Stop";
    try {
      const answer = await ask("generate", {
        text: this.text.value, run: this.run(), words: value("words-drawn"), temperature: value("temperature"), top_k: value("top-k"), seed,
      }, this.drawing.signal);
      if (!answer.ok) throw new Error(await answer.text());
      let seen = performance.now();
      for await (const event of eventsOf(answer)) {
        if (event.end) break;
        this.text.value += this.text.value === "" ? event.text.trimStart() : event.text;
        this.text.scrollTop = this.text.scrollHeight;
        if (performance.now() - seen > 400) {
          seen = performance.now();
          this.read();
        }
      }
      document.getElementById("seed").value = seed + 1;
    } catch (error) {
      if (error.name === "TypeError") problem = "The server does not answer: has the command ended?";
      else if (error.name !== "AbortError") problem = error.message;
    } finally {
      this.drawing = null;
      this.button.textContent = "Go on";
      this.text.setSelectionRange(this.text.value.length, this.text.value.length);
      this.read(problem);
    }
  },

  slider(id, label, least, greatest, step, value, told) {
    const output = element("output", { for: id, class: "number" }, told(value));
    const input = element("input", { type: "range", id, min: least, max: greatest, step, value, input: () => { output.textContent = told(Number(input.value)); } });
    return element("label", { class: "choice" }, element("span", {}, `${label} `, output), input);
  },

  begin() {
    this.text.value = data.text;
    this.text.addEventListener("input", () => this.typed());
    this.text.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        this.goOn();
      }
    });
    this.button = element("button", { type: "button", id: "go-on", click: () => this.goOn() }, "Go on");
    const names = data.models.map((model, at) => [at, model.name]);
    this.runChoice = names.length > 1 ? choice("Written by", names, 0, () => this.showGuesses()) : null;
    const units = `${data.models[0].unit}s`;
    document.getElementById("live").replaceChildren(element("section", { "aria-label": "Type" },
      element("label", { class: "choice" }, element("span", {}, "Text"), this.text),
      this.guesses,
      element("div", { class: "controls" }, this.runChoice,
        this.slider("temperature", "Temperature", 0, 2, 0.05, 0.8, (value) => value.toFixed(2)),
        this.slider("top-k", "Top-k", 0, 200, 1, 40, (value) => (value === 0 ? "all" : String(value))),
        this.slider("words-drawn", units[0].toUpperCase() + units.slice(1), 1, data.most_drawn, 1, 30, String),
        element("label", { class: "choice" }, element("span", {}, "Seed"), element("input", { type: "number", id: "seed", value: 1, min: 0, step: 1 })),
        this.button),
      element("p", { class: "note", id: "typing-help" }, "Everything below follows what you type. The buttons are the likeliest next words (Alt and a number); Ctrl and Enter lets the model go on."),
      this.status));
    this.read();
  },
};

/** Select, then match: which places of the corpus are like a stretch of the text. */
const matching = {
  section() {
    const { state, chosen, runs } = explorer;
    if (!runs[0].corpus || !runs[0].layers[state.layer]?.latent) return null;
    const last = runs[0].words.length - 1;
    const first = Math.min(chosen.word, chosen.second ?? chosen.word);
    const end = Math.min(last, first + 7, Math.max(chosen.word, chosen.second ?? chosen.word));
    const results = element("div", { id: "matches", "aria-live": "polite" });
    const number = (id, label, value) => element("label", { class: "choice" }, element("span", {}, label), element("input", { type: "number", id, min: 0, max: last, value }));
    const say = (text) => results.replaceChildren(element("p", { class: "note" }, text));
    const match = async () => {
      const of = (id) => Math.min(last, Math.max(0, Math.floor(Number(document.getElementById(id).value) || 0)));
      const answer = await ask("alike", { text: typing.text.value, run: 0, layer: state.layer, from: of("from"), to: of("to") }).catch(() => null);
      if (!answer) return say("The server does not answer: has the command ended?");
      if (!answer.ok) return say(await answer.text());
      const found = await answer.json();
      if (!found?.units.length) return say("No latent unit is a standard deviation from its mean all along these words.");
      const named = found.units.map(([unit, isHigh]) => `${unit}${isHigh ? "↑" : "↓"}`).join(" ");
      results.replaceChildren(element("p", { class: "note" }, `On all along: units ${named}.`), places(found.places, (it) => `${it.on} of ${found.units.length}`));
    };
    return element("section", { "aria-labelledby": "match-heading" },
      element("h2", { id: "match-heading" }, "Select, then match"),
      element("p", { class: "note" }, "Finds the places of the corpus where the latent units that are on all along a stretch of the text are on just as long. The chosen word and the one beside it are its ends; it has up to eight words."),
      element("div", { class: "controls" }, number("from", "From word", first), number("to", "To word", end), element("button", { type: "button", id: "match", click: match }, "Match")),
      results);
  },
};
