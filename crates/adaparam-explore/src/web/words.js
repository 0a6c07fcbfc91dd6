// The words of a text, coloured, as a list in which one can be chosen.

/** What the words of a run are coloured by: numbers, one for each word. */
function measured(run, state) {
  if (state.measure !== "latent") {
    return run.measures.find((measure) => measure.id === state.measure)?.values ?? [];
  }
  const latent = run.layers[state.layer]?.latent;
  if (!latent) return [];
  return run.words.map((_, word) => rowOf(latent, word)[state.unit] ?? null);
}

/** The word of another run that stands at the same place of the text, or the one that reaches over it. */
function counterpart(run, word, other) {
  const place = run.words[word].at ?? -1;
  const behind = other.words.findIndex((it) => (it.at ?? -1) > place);
  return Math.max(0, (behind < 0 ? other.words.length : behind) - 1);
}

/** A list of words. `choose(word, isSecond)` is called when one is chosen. */
function wordList(run, index, label, choose) {
  const words = run.words.map((word, at) => element("span", {
    class: run.joined ? "word joined" : "word", role: "option", id: `word-${index}-${at}`,
    "data-word": at,
  }, shownWord(word.typed ?? word.text), word.typed ? element("span", { class: "unknown", title: "not in the vocabulary: read as <unk>" }, "?") : null));
  const list = element("div", {
    class: "words", role: "listbox", "aria-multiselectable": "true", "aria-label": label, id: `words-${index}`,
    click: (event) => {
      const word = event.target.closest(".word");
      if (word) choose(Number(word.dataset.word), event.shiftKey);
    },
    keydown: (event) => {
      const at = words.indexOf(document.activeElement);
      const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: words.length - 1 }[event.key];
      if (to !== undefined && words[to]) {
        event.preventDefault();
        words[to].focus();
        choose(to, event.shiftKey);
      } else if ((event.key === "Enter" || event.key === " ") && at >= 0) {
        event.preventDefault();
        choose(at, event.shiftKey);
      }
    },
  }, words);
  return list;
}

/** Colours a list of words by numbers between two bounds and marks those that are chosen. */
function colourWords(list, run, values, [least, greatest], isSigned, chosen) {
  const size = Math.max(Math.abs(least), Math.abs(greatest)) || 1;
  const first = Math.min(1, run.words.length - 1);
  for (const [at, word] of [...list.children].entries()) {
    const value = values[at] ?? null;
    const share = isSigned ? value / size : (value - least) / (greatest - least || 1);
    const colour = value === null ? colours.none : isSigned ? diverging(share) : sequential(share);
    word.style.backgroundColor = css(colour);
    word.style.color = readableOn(colour);
    word.dataset.value = value ?? "";
    word.title = `${run.words[at].typed ?? run.words[at].text}: ${shortNumber(value)}`;
    word.setAttribute("aria-selected", String(chosen.includes(at)));
    word.classList.toggle("second", chosen[1] === at && chosen[0] !== at);
    word.tabIndex = at === (chosen[0] ?? first) ? 0 : -1;
    word.setAttribute("aria-label", `${shownWord(run.words[at].typed ?? run.words[at].text)}, ${shortNumber(value)}`);
  }
}

/** What the colours mean. */
function legend([least, greatest], isSigned) {
  const size = Math.max(Math.abs(least), Math.abs(greatest)) || 1;
  const [from, to] = isSigned ? [-size, size] : [least, greatest];
  const canvas = element("canvas", { "aria-hidden": "true" });
  const shares = Float32Array.from({ length: 64 }, (_, at) => at / 63);
  fill(canvas, shares, 64, (share) => (isSigned ? diverging(2 * share - 1) : sequential(share)));
  return element("div", { class: "legend" }, element("span", {}, shortNumber(from)), canvas, element("span", {}, shortNumber(to)));
}
