// Text by a model that `adaparam export RUN --onnx model.onnx --hub DIR` wrote, in Node or a browser:
//
//     npm install onnxruntime-web
//     node generate.mjs model.onnx DIR/vocabulary.txt 50
//
// The vocabulary is read from the folder, because not every build of onnxruntime gives the metadata of a model.

import * as ort from "onnxruntime-web";

const batch = 1;

export async function load(bytes, vocabulary) {
  const session = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });
  const lines = vocabulary.trimEnd().split("\n");
  const words = lines[0].startsWith("# tokens: ") ? lines.slice(1) : lines;
  // A text begins where a line has ended: `<eos>` of words, a newline of characters.
  const lineEnd = Math.max(words.indexOf("<eos>"), words.indexOf("\\n"), 0);
  return { session, words, lineEnd };
}

/** States of zeros, whose widths the caller reads from the model. */
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

/** The likeliest word at every step; draw from exp(logits) for another text each time. */
export async function generate({ session, words, lineEnd }, count) {
  let state = zeroState(session);
  let word = lineEnd;
  const text = [];
  for (let place = 0; place < count; place += 1) {
    const after = await step(session, word, state);
    state = after.state;
    word = after.logits.reduce((best, score, id) => (score > after.logits[best] ? id : best), 0);
    text.push(words[word]);
  }
  return text.join(" ");
}

if (typeof process !== "undefined" && process.argv[1]?.endsWith("generate.mjs")) {
  const { readFile } = await import("node:fs/promises");
  const [model, vocabulary, count] = process.argv.slice(2);
  const loaded = await load(await readFile(model), await readFile(vocabulary, "utf8"));
  console.log(await generate(loaded, Number(count ?? 50)));
}
