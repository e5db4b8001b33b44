// Ranked answers: the best one, and a table of all with bars for their probabilities.
const FORMS = {};  // each is added by its own file
const NOTHING = new URLSearchParams();

const asItIs = (text) => [text === "" ? "(empty)" : text];

// Answers as rows. `predictions` has lists by output (n_best), or is a list of rows (samples).
function ranked(predictions) {
  const names = Object.keys(predictions[0]);
  return predictions.flatMap((one) => Array.isArray(one[names[0]])
    ? one[names[0]].map((_, row) => Object.fromEntries(names.map((name) => [name, one[name][row]])))
    : [one]);
}

const probabilityOf = (row) => row.probability ?? Math.exp(row.log_probability);

// `others` names all other answers, if they have a row. Rows can be chosen for their attention if
// `choose` is given. `written` makes the parts of an answer from its text.
function rankedAnswers(rows, { name, others, choose, written = asItIs }) {
  const extra = ["log_probability", "score"].filter((column) => column in rows[0]);
  const cell = (row, number) => choose
    ? make("button", { type: "button", className: "choice", "aria-pressed": false,
        title: "Show its attention", onclick: () => choose(number) }, ...written(row[name]))
    : make("span", {}, ...written(row[name]));
  const lines = rows.map((row, number) => [
    String(number + 1), cell(row, number), likely(probabilityOf(row)),
    ...extra.map((column) => row[column].toFixed(3)),
  ]);
  const rest = 1 - rows.reduce((sum, row) => sum + probabilityOf(row), 0);
  if (others && rest > 0.0005) lines.push(["", others, likely(rest), ...extra.map(() => "")]);
  const headings = ["#", name === "label" ? "Label" : "Text", term("probability"),
    ...extra.map((column) => term(column.replace("_", "-")))];
  return table("answers", headings, lines);
}

function bestAnswer(row, name, written = asItIs) {
  return make("p", { className: "best" }, ...written(row[name]));
}

function markAnswer(chosen) {
  document.querySelectorAll("#answer .choice").forEach((button, row) => {
    button.setAttribute("aria-pressed", row === chosen);
    button.closest("tr").classList.toggle("chosen", row === chosen);
  });
}
