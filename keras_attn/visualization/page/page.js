"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (name) => document.getElementById(name);
const SVG = "http://www.w3.org/2000/svg";
const CELL = 17;
const NAMES = {
  encoder: "Encoder", decoder: "Decoder", cross: "Cross-attention", alignment: "Alignment",
};

// === The numbers ===

function bytes(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

function matrices(packed) {
  const numbers = new Uint16Array(bytes(packed.numbers).buffer);
  const [count, rows, columns] = packed.shape;
  const size = rows * columns;
  return Array.from({ length: count }, (_, i) =>
    Float32Array.from(numbers.subarray(i * size, (i + 1) * size), (n) => n / 65535));
}

function mean(list) {
  return list[0].map((_, i) => list.reduce((sum, matrix) => sum + matrix[i], 0) / list.length);
}

for (const group of data.groups) {
  group.rolled = group.rollout ? matrices(group.rollout) : null;
  for (const layer of group.layers) {
    layer.heads = matrices(layer.weights);
    layer.mean = mean(layer.heads);
    layer.seen = layer.reach ? matrices(layer.reach) : null;
  }
}
const cross = data.groups.find((group) => group.name === "cross");
const tabs = data.groups.map((group) => group.name).concat(cross ? ["alignment"] : []);
const groupOf = (name) => data.groups.find((group) => group.name === name) || cross;

// === What is chosen ===

const state = { group: tabs[0], layer: 0, head: "mean", row: null, column: null, round: 0 };

function fits(chosen) {
  const group = groupOf(chosen.group);
  const layer = group.layers[chosen.layer];
  if (!tabs.includes(chosen.group)) return false;
  if (chosen.group === "alignment" && chosen.layer === "mean") return true;
  if (!layer) return false;
  if (chosen.head === "rollout") return Boolean(group.rolled) && chosen.group !== "alignment";
  return chosen.head === "mean" || chosen.head in layer.heads;
}

function choose(change) {
  const chosen = { ...state, ...change };
  if ("group" in change && change.group !== state.group) {
    chosen.row = chosen.column = null;
    if (!("layer" in change)) chosen.layer = change.group === "alignment" ? "mean" : 0;
    if (!("head" in change)) chosen.head = "mean";
  }
  if (!fits(chosen)) return;
  Object.assign(state, chosen);
  draw();
}

function look(change) {
  Object.assign(state, { row: null, column: null }, change);
  drawTokens();
  mark();
}

function fromAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const number = (text) => (/^\d+$/.test(text) ? Number(text) : text);
  const change = {};
  for (const [name, value] of given) if (name in state) change[name] = number(value);
  if (Object.keys(change).length) choose(change);
  const pointed = ["row", "column"].filter((name) => name in change);
  if (pointed.length) look(Object.fromEntries(pointed.map((name) => [name, change[name]])));
}

function shown() {
  const group = groupOf(state.group);
  if (state.layer === "mean") {
    const first = group.layers[0];
    return { ...first, matrix: mean(group.layers.map((layer) => layer.mean)), seen: null, note: "" };
  }
  const layer = group.layers[state.layer];
  if (state.head === "mean") return { ...layer, matrix: layer.mean };
  if (state.head === "rollout") return { ...layer, matrix: group.rolled[state.layer], seen: null };
  return { ...layer, matrix: layer.heads[state.head] };
}

function reaches(layer, row, column) {
  if (!layer.seen) return true;
  const at = row * layer.columns.length + column;
  if (state.head === "mean") return layer.seen.some((one) => one[at] > 0);
  return layer.seen[Math.min(state.head, layer.seen.length - 1)][at] > 0;
}

// === Parts of the page ===

function element(name, properties = {}, parent = null) {
  const made = Object.assign(document.createElement(name), properties);
  if (parent) parent.append(made);
  return made;
}

function vector(name, attributes, parent, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// A color that the style sheet gives to an element, in the present color scheme.
function colorOf(variable) {
  const probe = element("span", {}, document.body);
  probe.style.color = `var(${variable})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function thumbnail(matrix, layer, color) {
  const canvas = element("canvas", { width: layer.columns.length, height: layer.rows.length });
  const context = canvas.getContext("2d");
  context.fillStyle = color;
  matrix.forEach((weight, i) => {
    context.globalAlpha = Math.max(0, Math.min(1, weight));
    context.fillRect(i % canvas.width, Math.floor(i / canvas.width), 1, 1);
  });
  return canvas;
}

function drawTabs() {
  byId("tabs").replaceChildren();
  for (const name of tabs) {
    const tab = element("button", { textContent: NAMES[name], id: `tab-${name}` }, byId("tabs"));
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-selected", name === state.group);
    tab.onclick = () => choose({ group: name });
  }
}

function drawOverview() {
  const group = groupOf(state.group);
  const table = element("table");
  const color = colorOf("--accent");
  const most = Math.max(...group.layers.map((layer) => layer.heads.length));
  const names = [...Array(most).keys(), "mean"].concat(
    group.rolled && state.group !== "alignment" ? ["rollout"] : []);
  const line = element("tr", {}, element("thead", {}, table));
  element("th", {}, line);
  names.forEach((name) =>
    element("th", { textContent: typeof name === "number" ? `head ${name + 1}` : name }, line));
  const body = element("tbody", {}, table);
  group.layers.forEach((layer, number) => {
    const row = element("tr", {}, body);
    element("th", { textContent: `layer ${number + 1}` }, row);
    for (const name of names) {
      const matrix = name === "mean" ? layer.mean
        : name === "rollout" ? group.rolled[number] : layer.heads[name];
      const cell = element("td", {}, row);
      if (!matrix) continue;
      const button = element("button", { title: `layer ${number + 1}, ${headName(name)}` }, cell);
      button.id = `cell-${number}-${name}`;
      button.append(thumbnail(matrix, layer, color));
      button.setAttribute("aria-pressed", state.layer === number && state.head === name);
      button.onclick = () => choose({ layer: number, head: name });
    }
  });
  byId("overview").replaceChildren(table);
}

function headName(head) {
  return head === "mean" ? "mean of the heads" : head === "rollout" ? "attention rollout"
    : `head ${head + 1}`;
}

function drawControls() {
  const controls = byId("controls");
  controls.replaceChildren();
  const layer = shown();
  if (layer.buckets && state.head !== "rollout") {
    layer.buckets[0].forEach((_, round) => {
      const button = element("button", { textContent: `round ${round + 1}` }, controls);
      button.id = `round-${round}`;
      button.setAttribute("aria-pressed", state.round === round);
      button.onclick = () => choose({ round });
    });
  }
  if (state.group === "alignment") {
    const button = element("button", { textContent: "all layers", id: "all-layers" }, controls);
    button.setAttribute("aria-pressed", state.layer === "mean");
    button.onclick = () => choose({ layer: "mean", head: "mean" });
  }
}

function bucketOf(layer, place) {
  if (!layer.buckets || state.head === "rollout") return null;
  const head = typeof state.head === "number" ? state.head : 0;
  return layer.buckets[head][Math.min(state.round, layer.buckets[head].length - 1)][place];
}

function strip(layer, side) {
  const isRow = side === "rows";
  const box = byId(side);
  box.replaceChildren();
  const count = layer.columns.length;
  layer[side].forEach((text, place) => {
    const token = element("span", { className: "token", textContent: text, tabIndex: 0 }, box);
    token.id = `${side.slice(0, -1)}-${place}`;
    if (place < layer.globals) token.classList.add("global");
    if (place < layer.before[side]) token.classList.add("before");
    const bucket = bucketOf(layer, place);
    if (bucket !== null) {
      token.classList.add("hashed");
      token.style.setProperty("--hue", (bucket * 137.5) % 360);
      token.title = `bucket ${bucket}`;
    }
    const point = () => look(isRow ? { row: place } : { column: place });
    token.onmouseenter = token.onfocus = token.onclick = point;
    const other = isRow ? state.column : state.row;
    const chosen = isRow ? state.row : state.column;
    if (place === chosen) token.classList.add("chosen");
    if (other === null) return;
    const weight = isRow ? layer.matrix[place * count + other] : layer.matrix[other * count + place];
    token.style.setProperty("--at", weight);
    token.dataset.weight = weight.toFixed(3);
    token.title = weight.toFixed(3);
  });
}

function told(layer) {
  const count = layer.columns.length;
  const isRow = state.row !== null;
  const chosen = isRow ? state.row : state.column;
  if (chosen === null) return "Point at a token to see where it looks.";
  const weights = isRow
    ? layer.columns.map((text, place) => [text, layer.matrix[chosen * count + place]])
    : layer.rows.map((text, place) => [text, layer.matrix[place * count + chosen]]);
  const most = weights.filter((pair) => pair[1] >= 0.005).sort((a, b) => b[1] - a[1]).slice(0, 5)
    .map(([text, weight]) => `${text} ${(100 * weight).toFixed(0)}%`).join(", ");
  const token = isRow ? layer.rows[chosen] : layer.columns[chosen];
  return `${token} ${isRow ? "looks at" : "is looked at by"} ${most || "nothing"}`;
}

function drawTokens() {
  const layer = shown();
  byId("rows-title").textContent = layer.titles[0];
  byId("columns-title").textContent = layer.titles[1];
  strip(layer, "rows");
  strip(layer, "columns");
  byId("told").textContent = told(layer);
}

// === Drawings ===

function longest(words) {
  return 14 + 7.5 * Math.max(...words.map((word) => [...word].length));
}

function drawMatrix(layer) {
  const left = longest(layer.rows), top = longest(layer.columns);
  const rows = layer.rows.length, columns = layer.columns.length;
  const width = left + columns * CELL + 2, height = top + rows * CELL + 2;
  const svg = vector("svg", { width, height, viewBox: `0 0 ${width} ${height}`, id: "matrix" },
    document.createDocumentFragment());
  const hatch = vector("pattern", { id: "hatch", width: 5, height: 5, patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)" }, vector("defs", {}, svg));
  vector("line", { x1: 0, y1: 0, x2: 0, y2: 5, class: "hatch" }, hatch);
  layer.matrix.forEach((weight, i) => {
    const row = Math.floor(i / columns), column = i % columns;
    const out = weight === 0 && !reaches(layer, row, column);
    if (weight < 0.002 && !out) return;
    vector("rect", { x: left + column * CELL, y: top + row * CELL, width: CELL, height: CELL,
      ...(out ? { fill: "url(#hatch)", class: "out" }
        : { "fill-opacity": weight, class: "cell" }) }, svg);
  });
  vector("rect", { x: left, y: top, width: columns * CELL, height: rows * CELL, class: "frame" }, svg);
  const marks = [["rows", 0], ["columns", 1]].map(([side]) =>
    Math.max(layer.before[side], layer.globals));
  if (marks[0]) vector("line", { x1: left, x2: left + columns * CELL, y1: top + marks[0] * CELL,
    y2: top + marks[0] * CELL, class: "mark" }, svg);
  if (marks[1]) vector("line", { y1: top, y2: top + rows * CELL, x1: left + marks[1] * CELL,
    x2: left + marks[1] * CELL, class: "mark" }, svg);
  layer.rows.forEach((word, row) => vector("text", { x: left - 5, y: top + (row + 0.75) * CELL,
    "text-anchor": "end", id: `label-row-${row}` }, svg, word));
  layer.columns.forEach((word, column) => {
    const x = left + (column + 0.75) * CELL;
    vector("text", { x, y: top - 5, transform: `rotate(-90 ${x} ${top - 5})`,
      id: `label-column-${column}` }, svg, word);
  });
  vector("rect", { class: "cursor", id: "cursor", width: 0, height: 0 }, svg);
  svg.onmousemove = (event) => {
    const box = svg.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - left) / CELL);
    const row = Math.floor((event.clientY - box.top - top) / CELL);
    if (row >= 0 && row < rows && column < columns && row !== state.row) look({ row });
  };
  svg.placed = { left, top };
  return svg;
}

function mark() {
  const cursor = byId("cursor");
  const layer = shown();
  for (const side of ["row", "column"]) {
    layer[`${side}s`].forEach((_, place) => {
      const label = byId(`label-${side}-${place}`);
      if (label) label.classList.toggle("chosen", state[side] === place);
    });
  }
  document.querySelectorAll(".tie").forEach((tie) => {
    const on = (state.row === null && state.column === null)
      || tie.dataset.row === String(state.row) || tie.dataset.column === String(state.column);
    tie.style.display = on ? "" : "none";
  });
  if (!cursor) return;
  const { left, top } = cursor.ownerSVGElement.placed;
  const wide = layer.columns.length * CELL, high = layer.rows.length * CELL;
  const box = state.row !== null ? [left, top + state.row * CELL, wide, CELL]
    : state.column !== null ? [left + state.column * CELL, top, CELL, high] : [0, 0, 0, 0];
  ["x", "y", "width", "height"].forEach((name, i) => cursor.setAttribute(name, box[i]));
}

function drawAlignment(layer) {
  const places = (words) => {
    let x = 10;
    return words.map((word) => {
      const wide = 14 + 8 * [...word].length, middle = x + wide / 2;
      x += wide;
      return middle;
    });
  };
  const above = places(layer.columns), below = places(layer.rows);
  const width = Math.max(above.at(-1), below.at(-1)) + 60, height = 190;
  const svg = vector("svg", { width, height, viewBox: `0 0 ${width} ${height}`, id: "alignment" },
    document.createDocumentFragment());
  layer.matrix.forEach((weight, i) => {
    const row = Math.floor(i / layer.columns.length), column = i % layer.columns.length;
    if (weight < 0.04) return;
    const tie = vector("line", { x1: above[column], y1: 30, x2: below[row], y2: 160, class: "tie",
      "stroke-opacity": Math.min(1, weight + 0.1).toFixed(3),
      "stroke-width": (1 + 4 * weight).toFixed(2) }, svg);
    tie.dataset.row = row;
    tie.dataset.column = column;
  });
  const word = (text, x, y, name, point) => {
    const made = vector("text", { x, y, "text-anchor": "middle", id: name }, svg, text);
    made.onmouseenter = point;
  };
  layer.columns.forEach((text, i) =>
    word(text, above[i], 22, `label-column-${i}`, () => look({ column: i })));
  layer.rows.forEach((text, i) =>
    word(text, below[i], 178, `label-row-${i}`, () => look({ row: i })));
  return svg;
}

function draw() {
  const layer = shown();
  drawTabs();
  drawOverview();
  const where = state.layer === "mean" ? "mean of all layers and heads"
    : `layer ${state.layer + 1}, ${headName(state.head)}`;
  byId("caption").textContent = `${NAMES[state.group]}: ${where}`;
  const kind = state.layer === "mean" ? "" : `${layer.mechanism} (${layer.name})`;
  byId("note").textContent = state.head === "rollout"
    ? "How much of each input is left in each vector, residual connections counted as half."
    : [kind, layer.note].filter(Boolean).join(" · ");
  drawControls();
  byId("drawing").replaceChildren(
    ...(state.group === "alignment" ? [drawAlignment(layer)] : []), drawMatrix(layer));
  drawTokens();
  mark();
}

byId("text").textContent = data.text;
byId("target").textContent = data.target === null ? "" : `→ ${data.target}`;
window.addEventListener("hashchange", fromAddress);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
draw();
fromAddress();
