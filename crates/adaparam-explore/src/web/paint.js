// Colours for numbers, in light and dark.

/** The colours of the theme, as numbers. */
function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => {
    const hex = style.getPropertyValue(name).trim().slice(1);
    return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
  };
  return { none: colour("--none"), low: colour("--low"), high: colour("--high"), much: colour("--much") };
}

let colours = themeColours();

const between = (from, to, share) => from.map((value, at) => Math.round(value + (to[at] - value) * share));

/** From nothing to much. */
function sequential(share) {
  return between(colours.none, colours.much, Math.min(1, Math.max(0, share)));
}

/** From below zero through nothing to above, for shares between −1 and 1. */
function diverging(share) {
  const to = share < 0 ? colours.low : colours.high;
  return between(colours.none, to, Math.min(1, Math.abs(share)));
}

const css = (colour) => `rgb(${colour.join(" ")})`;

/** What can be read on a colour: black or white, whichever stands out more. */
function readableOn(colour) {
  const linear = (value) => (value <= 10.3 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const [red, green, blue] = colour.map(linear);
  const light = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (light + 0.05) ** 2 > 0.05 * 1.05 ? "#000000" : "#ffffff";
}

/** Fills a canvas with `columns` × rows of coloured cells. */
function fill(canvas, values, columns, colour) {
  const rows = values.length / columns;
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  values.forEach((value, at) => image.data.set([...colour(value), 255], 4 * at));
  context.putImageData(image, 0, 0);
}

/** Calls `redraw` when the reader's theme changes. */
function whenThemeChanges(redraw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    colours = themeColours();
    redraw();
  });
}
