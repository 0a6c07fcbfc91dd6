"use strict";
// Figures answer whoever points at them: values under the mouse or the arrow keys, curves on and off by their names.
// Without this script a page reads and prints as it is. No sign in here needs escaping in a page: neither less-than nor
// ampersand.
(() => {
  const REACH = 24; // pixels of a drawing from the pointer to a mark
  const SAME = 4; // pixels between marks of different curves that stand at one place

  const make = (svg, name, attributes) => {
    const element = document.createElementNS(svg.namespaceURI, name);
    Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
    return element;
  };
  const numbers = (text) => text.split(" ").map(Number);
  const nearest = (all, distance) => all.reduce((best, one) => (distance(best) > distance(one) ? one : best));

  /** The marks of a curve or cloud. */
  const read = (element, index) => ({
    index,
    name: element.dataset.name,
    colour: element.dataset.colour,
    points: (element.dataset.points || "").split(";").filter(Boolean).map((point) => {
      const [x, y, atX, atY] = point.split("|");
      return { x: Number(x), y: Number(y), atX, atY };
    }),
  });

  /** The cells of a matrix as marks. */
  const cells = (element) => {
    const [left, top, size, rows, columns] = numbers(element.dataset.grid);
    const values = element.dataset.values.split(";");
    return values.map((value, at) => ({
      x: left + size * ((at % columns) + 0.5),
      y: top + size * (Math.floor(at / columns) + 0.5),
      head: `${element.dataset.name}, row ${Math.floor(at / columns) + 1} of ${rows}, column ${(at % columns) + 1} of ${columns}`,
      rows: [{ name: "", value }],
      marks: [],
      down: columns,
    }));
  };

  /** The places at which a figure has something to say, in the order in which arrow keys visit them. */
  const places = (told, series) => {
    const { mode, x: nameX, y: nameY } = told.dataset;
    const row = (one, point, value) => ({ name: one.name, colour: one.colour, value });
    if (mode === "cells") return [...told.children].flatMap(cells);
    const all = series.flatMap((one) => one.points.map((point) => ({ one, point }))).sort((a, b) => a.point.x - b.point.x);
    if (mode === "nearest") {
      return all.map(({ one, point }) => ({
        x: point.x,
        y: point.y,
        head: one.name,
        rows: [[nameX, point.atX], [nameY, point.atY]].filter(([, value]) => value).map(([name, value]) => ({ name, value })),
        marks: [{ point, colour: one.colour }],
      }));
    }
    const distinct = all.filter(({ point }, at) => at === 0 || point.x - all[at - 1].point.x > 0.05);
    return distinct.map(({ point: here }) => {
      const found = series.filter((one) => one.points.length).map((one) => ({ one, point: nearest(one.points, (point) => Math.abs(point.x - here.x)) }));
      const close = found.filter(({ point }) => SAME >= Math.abs(point.x - here.x)).sort((a, b) => a.point.y - b.point.y);
      return {
        x: here.x,
        head: `${nameX} ${here.atX}`.trim(),
        rows: close.map(({ one, point }) => row(one, point, point.atY)),
        marks: close.map(({ one, point }) => ({ point, colour: one.colour })),
      };
    });
  };

  /** Brings one drawing to life; `off` holds the curves that are switched off. */
  const live = (svg, off) => {
    const told = svg.querySelector(".apf-answers");
    if (!told) return () => {};
    const { mode } = told.dataset;
    const [left, top, right, bottom] = numbers(told.dataset.area);
    const series = mode === "cells" ? [] : [...told.children].map(read);
    const holder = svg.parentElement;
    let stops = [];
    let at = -1;

    holder.classList.add("apf-live");
    svg.setAttribute("role", "group");
    const marks = svg.appendChild(make(svg, "g", { class: "apf-marks", "aria-hidden": "true" }));
    const field = svg.appendChild(make(svg, "rect", {
      class: "apf-field", x: left, y: top, width: right - left, height: bottom - top, tabindex: 0, role: "slider",
      "aria-label": `Values of: ${svg.getAttribute("aria-label")}`, "aria-valuemin": 1, "aria-valuenow": 1,
    }));
    const tip = holder.appendChild(document.createElement("div"));
    tip.className = "apf-tip";
    tip.hidden = true;

    const hide = () => {
      at = -1;
      tip.hidden = true;
      marks.replaceChildren();
    };

    const show = (index) => {
      at = index;
      const stop = stops[at];
      const cross = mode === "along" ? [make(svg, "path", { class: "apf-rule", d: `M${stop.x} ${top}V${bottom}` })] : [];
      marks.replaceChildren(...cross, ...stop.marks.map(({ point, colour }) =>
        make(svg, "circle", { class: `apf-mark ${colour}`, cx: point.x, cy: point.y, r: 4.5 })));
      const head = document.createElement("strong");
      head.textContent = stop.head;
      const lines = stop.rows.map(({ name, colour, value }) => {
        const line = document.createElement("span");
        const swatch = document.createElement("i");
        swatch.className = colour || "";
        const number = document.createElement("b");
        number.textContent = value;
        line.append(...(colour ? [swatch] : []), ...(name ? [name, " "] : []), number);
        return line;
      });
      tip.replaceChildren(head, ...lines);
      tip.hidden = false;
      const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
      const high = stop.y === undefined ? top : stop.y;
      // Beside the place, on the side with more room, and inside the drawing.
      const wide = tip.offsetWidth;
      const beside = stop.x * 2 > svg.viewBox.baseVal.width ? stop.x * scale - wide - 12 : stop.x * scale + 12;
      tip.style.left = `${Math.max(0, Math.min(beside, holder.clientWidth - wide))}px`;
      tip.style.top = `${high * scale}px`;
      tip.style.transform = stop.y === undefined ? "" : "translateY(-50%)";
      const words = stop.rows.map(({ name, value }) => `${name} ${value}`.trim()).join(", ");
      field.setAttribute("aria-valuenow", at + 1);
      field.setAttribute("aria-valuetext", words ? `${stop.head}: ${words}` : stop.head);
    };

    const renew = () => {
      stops = places(told, series.filter((one) => !off.has(one.index)));
      field.setAttribute("aria-valuemax", stops.length);
      hide();
    };

    const point = (event) => {
      if (!stops.length) return;
      const here = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const distance = (stop) => (mode === "along" ? Math.abs(stop.x - here.x) : Math.hypot(stop.x - here.x, stop.y - here.y));
      const stop = nearest(stops, distance);
      if (mode === "along" || REACH >= distance(stop)) show(stops.indexOf(stop));
      else hide();
    };

    field.addEventListener("pointermove", point);
    field.addEventListener("pointerdown", point);
    field.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") hide();
    });
    field.addEventListener("blur", hide);
    field.addEventListener("keydown", (event) => {
      const last = stops.length - 1;
      const down = stops[Math.max(at, 0)]?.down || 1;
      const to = {
        ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + down, ArrowUp: at - down,
        PageDown: at + 10, PageUp: at - 10, Home: 0, End: last,
      }[event.key];
      if (event.key === "Escape") hide();
      if (to === undefined || !stops.length) return;
      event.preventDefault();
      show(Math.min(Math.max(to, 0), last));
    });
    renew();
    return renew;
  };

  document.querySelectorAll("figure").forEach((figure) => {
    const off = new Set();
    const drawings = [...figure.querySelectorAll("svg.apf")].filter((svg) => svg.querySelector(".apf-answers"));
    const renewals = drawings.map((svg) => live(svg, off));
    const keys = drawings.flatMap((svg) => [...svg.querySelectorAll(".apf-key")]);
    const turn = (index) => {
      if (!off.delete(index)) off.add(index);
      const of = (selector) => [...figure.querySelectorAll(selector)].filter((one) => Number(one.dataset.series) === index);
      of(".apf-series").forEach((one) => one.classList.toggle("apf-off", off.has(index)));
      of(".apf-key").forEach((one) => one.setAttribute("aria-checked", String(!off.has(index))));
      renewals.forEach((renew) => renew());
    };
    keys.forEach((key) => {
      const index = Number(key.dataset.series);
      const attributes = { tabindex: 0, role: "switch", "aria-checked": "true", "aria-label": key.textContent };
      Object.entries(attributes).forEach(([name, value]) => key.setAttribute(name, value));
      key.addEventListener("click", () => turn(index));
      key.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          turn(index);
        }
      });
    });
  });
})();
