// Runs in a page after its own script and does what a reader would do; what came of it becomes the element #outcome.
(() => {
  const outcome = { failures: [], facts: {} };
  const check = (what, holds) => {
    if (!holds) outcome.failures.push(what);
  };
  const shown = (element) => element.getClientRects().length > 0;
  const press = (element, key) => element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  try {
    const drawings = [...document.querySelectorAll("svg.apf")].filter((svg) => svg.querySelector(".apf-answers") && shown(svg));
    check("a drawing answers", drawings.length > 0);
    outcome.facts.drawings = drawings.length;
    for (const svg of drawings) {
      const name = svg.getAttribute("aria-label");
      const told = svg.querySelector(".apf-answers");
      const field = svg.querySelector(".apf-field");
      const tip = svg.parentElement.querySelector(".apf-tip");
      check(`${name}: hidden before`, tip.hidden && !shown(tip));
      check(`${name}: can be reached by keys`, field.tabIndex === 0 && field.getAttribute("role") === "slider");
      // By keys: the first place, then the last.
      field.focus();
      press(field, "Home");
      check(`${name}: tells its first value`, !tip.hidden && tip.textContent.length > 0);
      check(`${name}: says it aloud`, (field.getAttribute("aria-valuetext") || "").length > 0);
      const first = field.getAttribute("aria-valuetext");
      press(field, "End");
      const many = Number(field.getAttribute("aria-valuemax")) > 1;
      check(`${name}: the last is another place`, !many || field.getAttribute("aria-valuenow") === field.getAttribute("aria-valuemax"));
      press(field, "Escape");
      check(`${name}: goes away`, tip.hidden);
      // By the mouse: at the first mark of the first series.
      const series = [...told.children];
      if (told.dataset.mode !== "cells" && series[0].dataset.points) {
        const [x, y, atX, atY] = series[0].dataset.points.split(";")[0].split("|");
        const here = new DOMPoint(Number(x), Number(y)).matrixTransform(svg.getScreenCTM());
        field.dispatchEvent(new PointerEvent("pointermove", { clientX: here.x, clientY: here.y, pointerType: "mouse", bubbles: true }));
        check(`${name}: tells what is pointed at`, !tip.hidden && tip.textContent.includes(atY || atX));
        check(`${name}: stays inside the page`, tip.getBoundingClientRect().right <= innerWidth && tip.getBoundingClientRect().left >= 0);
        field.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse" }));
        check(`${name}: goes when the mouse goes`, tip.hidden);
      }
      // Names switch curves.
      const keys = [...svg.querySelectorAll(".apf-key")];
      if (keys.length > 0) {
        const key = keys[0];
        const curves = [...svg.querySelectorAll(".apf-series")].filter((one) => one.dataset.series === key.dataset.series);
        const isOff = () => curves.every((one) => getComputedStyle(one).display === "none");
        check(`${name}: a name is a switch`, key.getAttribute("role") === "switch" && key.tabIndex === 0);
        check(`${name}: a curve is there`, curves.length > 0 && !isOff());
        key.dispatchEvent(new MouseEvent("click", { bubbles: true }));
        check(`${name}: a click switches it off`, isOff() && key.getAttribute("aria-checked") === "false");
        field.focus();
        press(field, "Home");
        const label = key.textContent;
        const rows = [...tip.querySelectorAll("span")].map((row) => [...row.childNodes].slice(0, -1).map((part) => part.textContent).join("").trim());
        check(`${name}: it tells no value any more`, tip.hidden || told.dataset.mode !== "along" || !rows.includes(label));
        press(key, "Enter");
        check(`${name}: a key switches it on`, !isOff() && key.getAttribute("aria-checked") === "true");
        field.focus();
        press(field, "Home");
        check(`${name}: and it tells again`, field.getAttribute("aria-valuetext") === first);
        press(field, "Escape");
      }
    }
    check("the page is no wider than the screen", document.documentElement.scrollWidth <= innerWidth);
  } catch (error) {
    outcome.failures.push(String(error.stack || error));
  }
  const element = document.createElement("pre");
  element.id = "outcome";
  element.textContent = JSON.stringify(outcome);
  document.body.append(element);
})();
