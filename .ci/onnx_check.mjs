// Holds the loop in JavaScript against what the library and the command write: `node onnx_check.mjs FOLDER`, beside generate.mjs.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { generate, load, read } from "./generate.mjs";

const folder = process.argv[2];
const names = (await readdir(folder)).filter((file) => file.endsWith(".onnx")).map((file) => file.slice(0, -5));
assert(names.length > 0, `no models in ${folder}`);
for (const name of names.sort()) {
  const vocabulary = await readFile(`${folder}/${name}.txt`, "utf8");
  const model = await load(await readFile(`${folder}/${name}.onnx`), vocabulary);
  const { prompts } = JSON.parse(await readFile(`${folder}/${name}.json`, "utf8"));
  const error = console.error;
  console.error = () => {};
  for (const { prompt, ids, unknown, count, text } of prompts) {
    const remarks = [];
    const found = read(model, prompt, (line) => remarks.push(line));
    if (ids) assert.deepEqual(found, ids, `${name}: ${prompt}`);
    for (const word of unknown ?? []) {
      assert(remarks.some((line) => line.includes(`\`${word}\` is not in the vocabulary`)), `${name}: ${word}`);
    }
    assert.equal(await generate(model, prompt, count, { temperature: 0 }), text, `${name}: ${prompt}`);
  }
  console.error = error;
  const drawn = [];
  for (const seed of [1, 1, 2]) drawn.push(await generate(model, "", 30, { seed }));
  assert.equal(drawn[0], drawn[1]);
  assert.notEqual(drawn[0], drawn[2]);
  console.log(`${name}: JavaScript goes on as the model does`);
}

// As a person would call it.
const { prompt, text } = JSON.parse(await readFile(`${folder}/trained-words.json`, "utf8")).prompts[0];
const loop = fileURLToPath(new URL("generate.mjs", import.meta.url));
const files = [`${folder}/trained-words.onnx`, `${folder}/trained-words.txt`];
const told = execFileSync(process.execPath, [loop, ...files, "--prompt", prompt, "--max-words", "20", "--temperature", "0"]);
assert.equal(told.toString(), `${text}\n`);
