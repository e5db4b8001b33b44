// The attention between the patches of an image, drawn over the image.
const PATCH = /^(\d+),(\d+)$/;
const CLASS_TOKEN = "[class]";
const hasPatches = (tokens) => tokens.some((token) => PATCH.test(token));

function drawPicture(rows, columns, weights, point) {
  const canvas = make("canvas", { width: 0, role: "img", ariaLabel: "The image" });
  const grid = make("div", { className: "patches", role: "listbox",
    ariaLabel: "Patches of the image" });
  const picture = make("div", { className: "picture" }, canvas, grid);
  const patches = new Map();  // elements by place among the tokens
  rows.forEach((token, place) => {
    if (!PATCH.test(token)) return;
    const choose = () => point({ row: place });
    patches.set(place, make("span", { className: "patch", role: "option", title: token,
      ariaLabel: token, tabIndex: patches.size ? -1 : 0, "aria-selected": false,
      onmouseenter: choose, onfocus: choose, onclick: remember }));
  });
  grid.append(...patches.values());
  const [, lastRow, lastColumn] = PATCH.exec(rows[[...patches.keys()].at(-1)]).map(Number);
  grid.style.setProperty("--columns", lastColumn + 1);
  grid.style.setProperty("--rows", lastRow + 1);
  grid.onkeydown = (event) => {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const all = [...grid.children], at = all.indexOf(event.target);
    const column = at % (lastColumn + 1) + step[1];
    const next = all[at + step[0] * (lastColumn + 1) + step[1]];
    if (!next || column < 0 || column > lastColumn) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
  createImageBitmap(pngOf(attention.image)).then((bitmap) => {
    paint(canvas, bitmap);
    picture.style.setProperty("--ratio", bitmap.width / bitmap.height);
  }, () => {});
  picture.mark = (row, column) => {
    picture.classList.toggle("pointed", (row ?? column) !== null);
    for (const [place, patch] of patches) {
      const at = row !== null ? weights[row][place] : column !== null ? weights[place][column] : 0;
      const isChosen = place === (row ?? column);
      patch.style.setProperty("--at", at.toFixed(3));
      patch.classList.toggle("chosen", isChosen);
      patch.setAttribute("aria-selected", isChosen);
    }
  };
  return picture;
}
