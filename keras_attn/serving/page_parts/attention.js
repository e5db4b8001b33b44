"use strict";
// Draws what the signature "attention" answers: weights (layers, heads, rows, columns) of each
// group, and the tokens at rows and columns, "" where there is none.
const GROUPS = { cross: "answer to text", encoder: "text to itself", decoder: "answer to itself" };
// Everything that comes from a model is put on the page as text, never as HTML.
const element = (id) => document.getElementById(id);
const made = (tag, text, properties = {}) =>
  Object.assign(document.createElement(tag), { textContent: text ?? "" }, properties);
const SVG = document.querySelector("#map svg").namespaceURI;
const CELL = 22;
const MEAN = "mean";
let attention = null;

function hideAttention() {
  attention = null;
  element("attention").hidden = true;
}

// The inputs of the signature: those of the question, and as target the answer in a row.
function attentionRequest(signature, instance, outputs, row) {
  if (!signature) return null;
  const { text } = outputs;
  const known = { target: Array.isArray(text) ? text[row] : text, ...instance };
  const names = Object.keys(signature.inputs);
  if (names.some((name) => typeof known[name] !== "string" && !known[name]?.b64)) return null;
  return Object.fromEntries(names.map((name) => [name, known[name]]));
}

function showAttention(answer) {
  const groups = Object.keys(GROUPS).filter((name) => name in answer).map((name) => {
    const [rows, columns] = ["rows", "columns"].map((side) => answer[name + "_" + side]);
    const cut = (matrix) => kept(matrix, rows).map((row) => kept(row, columns));
    const layers = answer[name].map((heads) => heads.map(cut));
    return { name, rows: kept(rows, rows).map(readable),
             columns: kept(columns, columns).map(readable), layers };
  });
  attention = { groups, row: null };
  options("group", groups.map(({ name }) => [name, GROUPS[name]]));
  chooseGroup();
  element("attention").hidden = false;
}

// What stands where there is a token.
const kept = (list, tokens) => list.filter((_, place) => tokens[place] !== "");

function options(id, pairs) {
  const before = element(id).value;
  element(id).replaceChildren(...pairs.map(([value, text]) => made("option", text, { value })));
  if (pairs.some(([value]) => value === before)) element(id).value = before;
}

function chooseGroup() {
  const { layers } = group();
  const numbered = (list) => list.map((_, number) => [String(number), String(number + 1)]);
  options("layer", [[MEAN, "mean"], ...numbered(layers)]);
  options("head", [[MEAN, "mean"], ...numbered(layers[0])]);
  draw();
}

const group = () => attention.groups.find(({ name }) => name === element("group").value);

// The weight at a place in the chosen layers and heads.
function weightAt(row, column) {
  const chosen = (list, id) =>
    element(id).value === MEAN ? list : [list[Number(element(id).value)]];
  const found = chosen(group().layers, "layer").flatMap((heads) => chosen(heads, "head"));
  return found.reduce((sum, matrix) => sum + matrix[row][column], 0) / found.length;
}

// Signs for what cannot be seen.
function readable(token) {
  return token.replace(/ /g, "␣").replace(/\n/g, "⏎").replace(/\t/g, "⇥")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu, (character) =>
      "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0"));
}

function drawn(tag, attributes, parent, text = "") {
  const shape = document.createElementNS(SVG, tag);
  for (const name in attributes) shape.setAttribute(name, attributes[name]);
  shape.textContent = text;
  parent.append(shape);
  return shape;
}

function draw() {
  const { rows, columns } = group();
  const room = (tokens) => 16 + 8 * Math.max(...tokens.map((token) => [...token].length));
  const left = room(rows), top = room(columns);
  const width = left + columns.length * CELL + 2, height = top + rows.length * CELL + 2;
  const map = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries({ width, height, role: "img" }))
    map.setAttribute(name, value);
  rows.forEach((token, row) => {
    const y = top + row * CELL;
    columns.forEach((_, column) => drawn("rect", {
      class: "cell", x: left + column * CELL, y, width: CELL, height: CELL,
      "fill-opacity": weightAt(row, column).toFixed(3),
    }, map));
    const label = drawn("text", {
      class: "looks", x: left - 7, y: y + 0.7 * CELL, "text-anchor": "end", tabindex: 0,
    }, map, token);
    label.onmouseenter = label.onfocus = () => point(row);
  });
  columns.forEach((token, column) => {
    const y = top - 7, isShort = [...token].length <= 2;
    const x = left + (column + (isShort ? 0.5 : 0.7)) * CELL;
    drawn("text", {
      class: "looked-at", x, y,
      ...(isShort ? { "text-anchor": "middle" } : { transform: `rotate(-90 ${x} ${y})` }),
    }, map, token);
  });
  const size = { width: columns.length * CELL, height: rows.length * CELL };
  drawn("rect", { class: "frame", x: left, y: top, ...size }, map);
  drawn("rect", { class: "cursor", x: left, y: top, width: size.width, height: 0 }, map);
  map.onmousemove = (event) => {
    const row = Math.floor((event.clientY - map.getBoundingClientRect().top - top) / CELL);
    if (row >= 0 && row < rows.length && row !== attention.row) point(row);
  };
  element("map").replaceChildren(map);
  point(null);
}

// Shows where the token of a row looks.
function point(row) {
  attention.row = row;
  const { rows, columns } = group();
  const cursor = element("map").querySelector(".cursor");
  const weights = columns.map((token, column) => [token, row === null ? 0 : weightAt(row, column)]);
  const most = [...weights].sort((a, b) => b[1] - a[1]).slice(0, 5)
    .filter(([, weight]) => weight >= 0.005)
    .map(([token, weight]) => `${token} ${(100 * weight).toFixed(0)}%`).join(", ");
  element("told").textContent = row === null ? "Point at a token to see where it looks."
    : `${rows[row]} looks at ${most || "nothing"}`;
  cursor.setAttribute("height", row === null ? 0 : CELL);
  if (row !== null) cursor.setAttribute("y", Number(cursor.getAttribute("height")) * row
    + Number(element("map").querySelector(".frame").getAttribute("y")));
  const largest = Math.max(...weights.map(([, weight]) => weight));
  element("map").querySelectorAll(".looks").forEach((label, place) =>
    label.classList.toggle("chosen", place === row));
  element("map").querySelectorAll(".looked-at").forEach((label, place) =>
    label.classList.toggle("chosen", row !== null && weights[place][1] > largest / 2));
}

element("group").addEventListener("change", chooseGroup);
for (const id of ["layer", "head"]) element(id).addEventListener("change", draw);
