// Shows the answer of the signature "attention": weights (layers, heads, rows, columns) of each
// group, and the tokens at rows and columns, "" for none. Tokens of one side are colored by the
// weights of the token of the other side that is pointed at; the strongest color is the largest
// weight of all.
const GROUPS = {  // a title, and those of rows and columns
  cross: ["answer to input", "answer", "input"],
  encoder: ["input to itself", "from", "to"],
  decoder: ["answer to itself", "from", "to"],
};
const MEAN = "mean";
let attention = null;

function hideAttention() {
  attention = null;
  byId("attention").hidden = true;
  byId("attention-error").textContent = "";
  for (const id of ["attention-request", "attention-offer"]) byId(id).replaceChildren();
}

// Shows a button for weights that are many numbers. `reason` says of what.
function offerAttention(reason, show) {
  byId("attention").hidden = false;
  byId("attention-shown").hidden = true;
  byId("attention-offer").replaceChildren(
    make("button", { type: "button", onclick: show }, "Show the attention " + reason));
}

function failAttention(message) {
  hideAttention();
  byId("attention").hidden = false;
  byId("attention-shown").hidden = true;
  byId("attention-error").textContent = message;
}

function showAttention({ instances: [instance], predictions: [answer] }, state = NOTHING) {
  const groups = Object.keys(GROUPS).filter((name) => name in answer).map((name) => {
    const [rows, columns] = ["rows", "columns"].map((side) => answer[`${name}_${side}`]);
    const kept = (list, tokens) => list.filter((_, place) => tokens[place] !== "");
    const cut = (matrix) => kept(matrix, rows).map((row) => kept(row, columns));
    return { name, layers: answer[name].map((heads) => heads.map(cut)),
      rows: kept(rows, rows).map(readable), columns: kept(columns, columns).map(readable) };
  });
  attention = { groups, image: instance.image_bytes?.b64, row: null, column: null };
  byId("attention-offer").replaceChildren();
  const isLanguageModel = groups.length === 1 && groups[0].name === "decoder";
  options(byId("group"), groups.map(({ name }) =>
    [name, isLanguageModel ? "text to itself" : GROUPS[name][0]]));
  chooseIn("group", state);
  const views = attention.image && hasPatches(groups[0].rows)
    ? ["picture", "map", "lines"] : ["map", "lines"];
  const isOther = byId("view").options.length !== views.length;
  options(byId("view"), views.map((name) => [name, name]));
  if (isOther) byId("view").value = views[0];
  byId("patches-note").hidden = views[0] !== "picture";
  byId("patches-note").textContent = "The image is read in patches, named row,column from 0,0 at "
    + "the top left." + (groups[0].rows.includes(CLASS_TOKEN)
      ? ` ${CLASS_TOKEN} is the class token, which is not a part of the image.` : "");
  byId("attention").hidden = byId("attention-shown").hidden = false;
  chooseGroup(state);
  for (const side of ["row", "column"])
    if (state.get(side) in group()[side + "s"]) point({ [side]: Number(state.get(side)) });
}

const chooseIn = (id, state) => {
  if ([...byId(id).options].some(({ value }) => value === state.get(id)))
    byId(id).value = state.get(id);
};

// What a link needs to show the same.
function attentionState() {
  if (!attention) return [];
  const choices = ["group", "layer", "head", "view"].map((id) => [id, byId(id).value]);
  const pointed = ["row", "column"].map((side) => [side, attention[side]]);
  return [...choices, ...pointed.filter(([, place]) => place !== null)];
}

function chooseGroup(state = NOTHING) {
  const { name, layers } = group();
  const numbered = (list) => list.map((_, number) => [String(number), String(number + 1)]);
  options(byId("layer"), [[MEAN, "mean"], ...numbered(layers)]);
  options(byId("head"), [[MEAN, "mean"], ...numbered(layers[0])]);
  for (const id of ["layer", "head", "view"]) chooseIn(id, state);
  for (const [place, side] of ["rows", "columns"].entries())
    byId(side + "-title").textContent = GROUPS[name][place + 1];
  drawAttention();
}

const group = () => attention.groups.find(({ name }) => name === byId("group").value);

// The mean of the weights of the chosen layers and heads, as rows.
function chosenWeights() {
  const chosen = (list, id) => byId(id).value === MEAN ? list : [list[Number(byId(id).value)]];
  const { layers, rows, columns } = group();
  const found = chosen(layers, "layer").flatMap((heads) => chosen(heads, "head"));
  return rows.map((_, row) => columns.map((_, column) =>
    found.reduce((sum, matrix) => sum + matrix[row][column], 0) / found.length));
}

function drawAttention() {
  const { rows, columns } = group();
  attention.weights = chosenWeights();
  attention.most = attention.weights.flat().reduce((a, b) => Math.max(a, b), 0) || 1;
  attention.row = attention.column = null;
  const view = byId("view").value;
  byId("largest").textContent = `${percent(attention.most)}, the largest weight`;
  byId("legend").hidden = view === "lines";
  byId("legend").classList.toggle("over-picture", view === "picture");
  const scaled = attention.weights.map((line) => line.map((weight) => weight / attention.most));
  byId("drawing").replaceChildren(rows.length * columns.length > MOST_CELLS
    ? Object.assign(make("p", {}, "There are too many tokens for a drawing."), { mark() {} })
    : { map: drawMap, lines: drawLines, picture: drawPicture }[view](rows, columns, scaled, point));
  // The patches are in the picture.
  const isShown = (text) => view !== "picture" || !PATCH.test(text);
  fillStrip("row", rows, isShown);
  fillStrip("column", columns, isShown);
  point({});
}

// Tokens of a side; arrow keys move between them.
function fillStrip(side, texts, isShown) {
  const strip = byId(side + "s");
  const shown = texts.map((text, place) => [text, place]).filter(([text]) => isShown(text));
  strip.parentElement.hidden = !shown.length;
  strip.replaceChildren(...shown.map(([text, place], number) => {
    const choose = () => point({ [side]: place });
    const token = make("span", { className: "token", role: "option", tabIndex: number ? -1 : 0,
      "aria-selected": false, onmouseenter: choose, onfocus: choose, onclick: remember }, text);
    token.dataset.place = place;
    return token;
  }));
  strip.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const next = step && strip.children[[...strip.children].indexOf(event.target) + step];
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
}

// Shows where the token of a row looks, or from where that of a column is looked at.
function point({ row = null, column = null }) {
  Object.assign(attention, { row, column });
  byId("cell").textContent = "";
  const { rows, columns } = group();
  const from = row ?? column, side = row === null ? "columns" : "rows";
  const other = side === "rows" ? columns : rows;
  const weights = other.map((_, place) => from === null ? 0
    : side === "rows" ? attention.weights[row][place] : attention.weights[place][column]);
  const most = other.map((token, place) => [token, weights[place]])
    .sort((a, b) => b[1] - a[1]).slice(0, 5).filter(([, weight]) => weight >= 0.005)
    .map(([token, weight]) => `${token} ${(100 * weight).toFixed(0)}%`).join(", ");
  byId("pointed").textContent = from === null
    ? `Point at a ${byId("view").value === "picture" ? "patch" : "token"} to see where it looks.`
    : group()[side][from] + (row === null ? " is looked at by " : " looks at ")
      + (most || "nothing");
  for (const id of ["rows", "columns"]) {
    for (const token of byId(id).children) {
      const place = Number(token.dataset.place);
      const isChosen = id === side && place === from;
      token.classList.toggle("chosen", isChosen);
      token.setAttribute("aria-selected", isChosen);
      token.style.setProperty("--at",
        id === side ? 0 : (weights[place] / attention.most).toFixed(3));
    }
  }
  markDrawing(row, column);
}

byId("group").addEventListener("change", () => { chooseGroup(); remember(); });
for (const id of ["layer", "head", "view"])
  byId(id).addEventListener("change", () => { drawAttention(); remember(); });

// A map fits into the window.
let redrawing = null;
addEventListener("resize", () => {
  clearTimeout(redrawing);
  redrawing = setTimeout(() => {
    if (!attention) return;
    const { row, column } = attention;
    drawAttention();
    point({ row, column });
  }, 200);
});

// The weight of one cell of a map.
function showCell(row, column) {
  const { rows, columns } = group();
  byId("cell").textContent =
    `${rows[row]} → ${columns[column]}: ${percent(attention.weights[row][column])}`;
}
