// Numbers as the page carries them.

/** What the program packed: a list, or whole numbers in base 64 times their scale. */
function unpacked(packed) {
  if (packed === null || packed === undefined) return null;
  if (Array.isArray(packed)) return Float32Array.from(packed);
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const whole = packed.bytes === 1 ? new Int8Array(bytes.buffer) : new Int16Array(bytes.buffer);
  return Float32Array.from(whole, (number) => number * packed.scale);
}

/** Unpacks everything in a run, once. */
function readRun(run) {
  for (const layer of run.layers) {
    for (const rows of [...layer.parts, ...layer.matrices, layer.latent, layer.gates]) {
      if (!rows) continue;
      for (const name of ["values", "mean", "deviation"]) rows[name] = unpacked(rows[name]);
    }
  }
  return run;
}

/** The numbers of one word. */
function rowOf(rows, word) {
  return rows.values.subarray(word * rows.width, (word + 1) * rows.width);
}

/** Least and greatest of lists of numbers, without what is none. */
function extent(lists) {
  let [least, greatest] = [Infinity, -Infinity];
  for (const list of lists) {
    for (const value of list) {
      if (value === null || !Number.isFinite(value)) continue;
      least = Math.min(least, value);
      greatest = Math.max(greatest, value);
    }
  }
  return least <= greatest ? [least, greatest] : [0, 1];
}
