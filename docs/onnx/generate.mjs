// Text by a model that `adaparam export RUN --onnx model.onnx --hub DIR` wrote, in Node or a browser; at temperature 0 the text of
// `adaparam generate`:
//
//     npm install onnxruntime-web
//     node generate.mjs model.onnx DIR/vocabulary.txt --prompt "call me" --max-words 50 --temperature 0.8 --seed 3
//
// The vocabulary is read from the folder, because not every build of onnxruntime gives the metadata of a model.

import * as ort from "onnxruntime-web";

const batch = 1;
const unknown = "<unk>";
// Those of Unicode; `\s` has others.
const whiteSpace = /\p{White_Space}/u;
const special = /[\p{White_Space}\p{Cc}\\]/gu;
const escapes = { " ": "\\s", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\" };
const letters = Object.fromEntries(Object.entries(escapes).map(([letter, escape]) => [escape, letter]));
const vowels = "aeiouyhàáâäæèéêëìíîïòóôöœùúûüÿ";
const elision = new RegExp(`(?<=\\p{Alphabetic}['’])(?=[${vowels}])`, "iu");
const utf8 = new TextEncoder();

/** The name of a token that may hold white space: `\s` for a space, `\u{a0}` for what has no letter. */
const escaped = (text) =>
  text.replace(special, (it) => escapes[it] ?? `\\u{${it.codePointAt(0).toString(16)}}`);

const unescaped = (name) =>
  name.replace(/\\(?:u\{([0-9a-f]+)\}|.)/gu, (escape, code) =>
    code ? String.fromCodePoint(parseInt(code, 16)) : letters[escape]);

function cutBy(granularity, text) {
  const segmenter = new Intl.Segmenter("en", { granularity });
  return [...segmenter.segment(text)].map((part) => part.segment);
}

function cutWords(text) {
  const lines = text.split("\n");
  return lines.flatMap((line, place) => {
    const words = line.split(/\p{White_Space}+/u).filter((word) => word !== "");
    return place + 1 < lines.length ? [...words, "<eos>"] : words;
  });
}

/** Pieces of languages without spaces may be larger here, where a dictionary finds their words. */
function cutUnicodeWords(text) {
  const pieces = cutBy("word", text).flatMap((piece) => piece.split(elision));
  const names = [];
  for (let place = 0; place < pieces.length; place += 1) {
    const goesOn = pieces[place] === " " && place + 1 < pieces.length && !whiteSpace.test(pieces[place + 1][0]);
    names.push(escaped(goesOn ? pieces[place] + pieces[(place += 1)] : pieces[place]));
  }
  return names;
}

/** The name of a token at the beginning of a text behind another word, if it has another one there. */
function withinALine(name) {
  const text = unescaped(name);
  return whiteSpace.test(text[0]) ? undefined : escaped(` ${text}`);
}

const spellEscaped = (name) => utf8.encode(name === unknown ? name : unescaped(name));

/** How a text is cut into tokens, and what a token adds to a text behind another. */
const kinds = {
  words: {
    lineEnd: "<eos>",
    cut: cutWords,
    spelling: (name, before) =>
      utf8.encode(name === "<eos>" ? "\n" : before === undefined || before === "<eos>" ? name : ` ${name}`),
  },
  characters: {
    lineEnd: "\\n",
    cut: (text) => cutBy("grapheme", text).map(escaped),
    spelling: spellEscaped,
  },
  "unicode-words": { lineEnd: "\\n", cut: cutUnicodeWords, spelling: spellEscaped, withinALine },
  bytes: {
    lineEnd: "0a",
    cut: (text) => [...utf8.encode(text)].map((byte) => byte.toString(16).padStart(2, "0")),
    spelling: (name) => [parseInt(name, 16)],
  },
};

export async function load(bytes, vocabulary) {
  const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });
  const words = vocabulary.replace(/\n$/, "").split("\n");
  const header = words[0].match(/^# tokens: (.*)$/);
  if (header) words.shift();
  const tokens = kinds[header ? header[1] : "words"];
  const ids = new Map(words.map((word, id) => [word, id]));
  // A text begins where a line has ended.
  return { session, words, ids, tokens, lineEnd: ids.get(tokens.lineEnd), unk: ids.get(unknown) };
}

/**
 * The numbers of a text's tokens. What the model does not know is read as `<unk>`, or left out where it has none; it may know the
 * first word within a line only.
 */
export function read({ ids, tokens, unk }, text, remark = console.error) {
  return tokens.cut(text).flatMap((name, place) => {
    const known = ids.get(name) ?? (place === 0 ? ids.get(tokens.withinALine?.(name)) : undefined);
    if (known !== undefined) return [known];
    const instead = unk === undefined ? "left out" : `read as ${unknown}`;
    remark(`--prompt: \`${name}\` is not in the vocabulary: ${instead}`);
    return unk === undefined ? [] : [unk];
  });
}

/** What tokens spell, the first one as the prompt has it; bytes that are no UTF-8 are shown as U+FFFD. */
export function spell({ words, tokens }, ids, prompt = "") {
  const names = ids.map((id) => words[id]);
  const [typed] = tokens.cut(prompt);
  if (names.length > 0 && typed && names[0] === tokens.withinALine?.(typed)) names[0] = typed;
  const bytes = names.flatMap((name, place) => [...tokens.spelling(name, names[place - 1])]);
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

/** States of zeros, whose widths the model says. */
export function zeroState(session) {
  const state = {};
  for (const input of session.inputMetadata ?? []) {
    if (input.name === "ids") continue;
    const width = Number(input.shape[1]);
    state[input.name] = new ort.Tensor("float32", new Float32Array(batch * width), [batch, width]);
  }
  return state;
}

/** The scores of every word as the next one, and the state to go on from. */
export async function step(session, id, state) {
  const ids = new ort.Tensor("int64", BigInt64Array.from([BigInt(id)]), [batch]);
  const found = await session.run({ ids, ...state });
  const next = {};
  for (const name of Object.keys(state)) next[name] = found[`next.${name}`];
  return { logits: found.logits.data, state: next };
}

/** Numbers in [0, 1) that a seed decides (mulberry32). */
function uniforms(seed) {
  let at = seed >>> 0;
  return () => {
    at = (at + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(at ^ (at >>> 15), at | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** The likeliest token, or one that `uniform` falls on. */
function draw(scores, temperature, uniform) {
  const likeliest = scores.reduce((best, score, id) => (score > scores[best] ? id : best), 0);
  if (temperature === 0) return likeliest;
  const weights = Array.from(scores, (score) => Math.exp((score - scores[likeliest]) / temperature));
  let left = uniform() * weights.reduce((sum, weight) => sum + weight, 0);
  const drawn = weights.findIndex((weight) => (left -= weight) < 0);
  return drawn < 0 ? likeliest : drawn;
}

/** The prompt with `count` more tokens behind it. */
export async function generate(model, prompt, count, { temperature = 1, seed = 1, unk = false } = {}) {
  const uniform = uniforms(seed);
  const ids = read(model, prompt);
  const given = ids.length;
  let state = zeroState(model.session);
  let word = model.lineEnd;
  for (let place = 0; place < given + count; place += 1) {
    const after = await step(model.session, word, state);
    state = after.state;
    const scores = Float32Array.from(after.logits);
    if (!unk && model.unk !== undefined) scores[model.unk] = -Infinity;
    if (place >= given) ids.push(draw(scores, temperature, uniform));
    word = ids[place];
  }
  return spell(model, ids, prompt);
}

/** The text without what a terminal would obey. */
const visible = (text) =>
  text
    .replaceAll("\r", "\\r")
    .replace(/[^\P{Cc}\n\t]/gu, (it) => `\\u${it.charCodeAt(0).toString(16).padStart(4, "0")}`);

if (typeof process !== "undefined" && process.argv[1]?.endsWith("generate.mjs")) {
  const [{ readFile }, { parseArgs }] = await Promise.all([import("node:fs/promises"), import("node:util")]);
  const { values: told, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      prompt: { type: "string", default: "" },
      "max-words": { type: "string", default: "50" },
      temperature: { type: "string", default: "1" },
      seed: { type: "string", default: "1" },
      unk: { type: "boolean", default: false },
    },
  });
  const [model, vocabulary] = positionals;
  const loaded = await load(await readFile(model), await readFile(vocabulary, "utf8"));
  const how = { temperature: Number(told.temperature), seed: Number(told.seed), unk: told.unk };
  console.log(visible(await generate(loaded, told.prompt, Number(told["max-words"]), how)));
}
