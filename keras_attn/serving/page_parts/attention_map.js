// Drawings of attention weights, scaled to the largest one: a map of all, and lines between tokens.
// Their method `mark` shows which row or column is pointed at.
const CELL = 22, SMALLEST_CELL = 12, LABEL = 13;
const THINNEST = 0.04;  // of the lines
const MOST_CELLS = 40000;  // more would make the browser slow

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

const lengthOf = (token) => [...token].length;

function drawMap(rows, columns, weights, point) {
  const room = (tokens) => 16 + 8 * Math.max(...tokens.map(lengthOf));
  const left = room(rows), top = room(columns);
  // Only the names of an image's patches may be left out, so its map fits into the window.
  const fitting = (byId("drawing").clientWidth - left - 10) / columns.length;
  const cell = Math.min(CELL, Math.max(fitting, hasPatches(columns) ? 1 : SMALLEST_CELL));
  const isNamed = (place) => place % Math.ceil(LABEL / cell) === 0;
  const wide = columns.length * cell, high = rows.length * cell;
  const map = draw("svg", { width: left + wide + 2, height: top + high + 2, role: "application",
    tabindex: 0, "aria-label": `Map of ${rows.length} by ${columns.length} weights. `
      + "Arrow keys move between the cells.", "aria-describedby": "cell" });
  rows.forEach((token, row) => {
    const y = top + row * cell;
    columns.forEach((_, column) => map.append(draw("rect", {
      class: "cell", x: left + column * cell, y, width: cell, height: cell,
      "fill-opacity": weights[row][column].toFixed(3) })));
    if (isNamed(row)) map.append(draw("text", { class: "row-label", x: left - 7,
      y: y + cell / 2 + 4, "text-anchor": "end", "data-place": row }, token));
  });
  columns.forEach((token, column) => {
    if (!isNamed(column)) return;
    const y = top - 7, isShort = lengthOf(token) <= 2 && cell === CELL;
    const x = left + (column + 0.5) * cell + (isShort ? 0 : 4);
    map.append(draw("text", { class: "column-label", x, y, "data-place": column, ...(isShort
      ? { "text-anchor": "middle" } : { transform: `rotate(-90 ${x} ${y})` }) }, token));
  });
  const frame = { x: left, y: top, width: wide, height: high };
  map.append(draw("rect", { class: "frame", ...frame }));
  const cursor = draw("rect", { class: "cursor", ...frame, width: 0, height: 0 });
  map.append(cursor);
  map.mark = (row, column) => {
    const place = row !== null ? { y: top + row * cell, x: left, width: wide, height: cell }
      : column !== null ? { x: left + column * cell, y: top, width: cell, height: high }
      : { width: 0, height: 0 };
    set(cursor, place, []);
    set(one, { width: 0, height: 0 }, []);
  };
  const one = draw("rect", { class: "cursor", width: 0, height: 0 });
  map.append(one);
  let at = null;  // row and column of the cell that is pointed at
  const choose = (row, column) => {
    at = [row, column];
    point({ row });
    showCell(row, column);
    set(one, { x: left + column * cell, y: top + row * cell, width: cell, height: cell }, []);
  };
  map.onmousemove = ({ clientX, clientY }) => {
    const box = map.getBoundingClientRect();
    const row = Math.floor((clientY - box.top - top) / cell);
    const column = Math.floor((clientX - box.left - left) / cell);
    const isIn = column >= 0 && column < columns.length;
    if (row >= 0 && row < rows.length) isIn ? choose(row, column) : point({ row });
    else if (row < 0 && isIn) point({ column });
  };
  map.onclick = () => remember();
  map.onfocus = () => map.matches(":focus-visible") && !at && choose(0, 0);
  map.onkeydown = (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    if (!at) return choose(0, 0);
    const [row, column] = [at[0] + step[0], at[1] + step[1]];
    if (row in rows && column in columns) choose(row, column);
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
      "text-anchor": "middle", "data-place": place }, token);
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
    for (const label of drawing.querySelectorAll(`.${name}-label`))
      label.classList.toggle("chosen", Number(label.dataset.place) === chosen);
}
