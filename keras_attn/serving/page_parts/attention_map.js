// Drawings of attention weights: a map of all, and lines between tokens. Their method `mark` shows
// which row or column is pointed at.
const CELL = 22;
const THINNEST = 0.04;  // of the lines
const MOST_CELLS = 40000;  // more would make the browser slow

const lengthOf = (token) => [...token].length;

function drawMap(rows, columns, weights, point) {
  const room = (tokens) => 16 + 8 * Math.max(...tokens.map(lengthOf));
  const left = room(rows), top = room(columns);
  const wide = columns.length * CELL, high = rows.length * CELL;
  const map = draw("svg", { width: left + wide + 2, height: top + high + 2, role: "img",
    "aria-label": `Map of ${rows.length} by ${columns.length} weights` });
  rows.forEach((token, row) => {
    const y = top + row * CELL;
    columns.forEach((_, column) => map.append(draw("rect", {
      class: "cell", x: left + column * CELL, y, width: CELL, height: CELL,
      "fill-opacity": weights[row][column].toFixed(3) })));
    map.append(draw("text", { class: "row-label", x: left - 7, y: y + 0.7 * CELL,
      "text-anchor": "end" }, token));
  });
  columns.forEach((token, column) => {
    const y = top - 7, isShort = lengthOf(token) <= 2;
    const x = left + (column + (isShort ? 0.5 : 0.7)) * CELL;
    map.append(draw("text", { class: "column-label", x, y, ...(isShort
      ? { "text-anchor": "middle" } : { transform: `rotate(-90 ${x} ${y})` }) }, token));
  });
  const frame = { x: left, y: top, width: wide, height: high };
  map.append(draw("rect", { class: "frame", ...frame }));
  const cursor = draw("rect", { class: "cursor", ...frame, width: 0, height: 0 });
  map.append(cursor);
  map.mark = (row, column) => {
    const place = row !== null ? { y: top + row * CELL, x: left, width: wide, height: CELL }
      : column !== null ? { x: left + column * CELL, y: top, width: CELL, height: high }
      : { width: 0, height: 0 };
    set(cursor, place, []);
  };
  map.onmousemove = ({ clientX, clientY }) => {
    const box = map.getBoundingClientRect();
    const row = Math.floor((clientY - box.top - top) / CELL);
    const column = Math.floor((clientX - box.left - left) / CELL);
    if (row >= 0 && row < rows.length) point({ row });
    else if (row < 0 && column >= 0 && column < columns.length) point({ column });
  };
  return map;
}

// The columns above, the rows below, and lines as thick as the weights between them.
function drawLines(rows, columns, weights, point) {
  const places = (tokens) => {
    let x = 10;
    return tokens.map((token) => {
      const width = 16 + 8 * lengthOf(token), middle = x + width / 2;
      x += width;
      return middle;
    });
  };
  const above = places(columns), below = places(rows);
  const width = Math.max(above.at(-1) ?? 0, below.at(-1) ?? 0) + 60;
  const lines = draw("svg", { width, height: 190, role: "img",
    "aria-label": "Lines from tokens to the tokens that they look at" });
  const ties = weights.flatMap((line, row) => line.flatMap((weight, column) => {
    if (weight < THINNEST) return [];
    const tie = draw("line", { class: "tie", x1: above[column], y1: 30, x2: below[row], y2: 160,
      "stroke-opacity": Math.min(1, weight + 0.1).toFixed(3),
      "stroke-width": (1 + 4 * weight).toFixed(2) });
    return [{ tie, row, column }];
  }));
  lines.append(...ties.map(({ tie }) => tie));
  const label = (name, places, y) => (token, place) => {
    const text = draw("text", { class: name + "-label", x: places[place], y,
      "text-anchor": "middle" }, token);
    text.onmouseenter = () => point({ [name]: place });
    lines.append(text);
  };
  columns.forEach(label("column", above, 22));
  rows.forEach(label("row", below, 178));
  lines.mark = (row, column) => {
    for (const each of ties) {
      const isShown = (row ?? each.row) === each.row && (column ?? each.column) === each.column;
      each.tie.setAttribute("visibility", isShown ? "visible" : "hidden");
    }
  };
  return lines;
}

function markDrawing(row, column) {
  const drawing = byId("drawing").firstChild;
  drawing.mark(row, column);
  for (const [name, chosen] of Object.entries({ row, column }))
    drawing.querySelectorAll(`.${name}-label`).forEach((label, place) =>
      label.classList.toggle("chosen", place === chosen));
}
