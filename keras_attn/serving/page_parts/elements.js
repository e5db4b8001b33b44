"use strict";
// Elements, numbers and explained words. Everything that comes from a model is put on the page as
// text, never as HTML.
const byId = (id) => document.getElementById(id);

function set(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name in element && !(element instanceof SVGElement)) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// An element with properties or attributes. Children are elements or texts.
const make = (tag, properties = {}, ...children) =>
  set(document.createElement(tag), properties, children);

const draw = (tag, attributes = {}, ...children) =>
  set(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

function options(select, pairs) {
  const before = select.value;
  select.replaceChildren(...pairs.map(([value, text]) => make("option", { value }, text)));
  if (pairs.some(([value]) => value === before)) select.value = before;
}

const WORDS = {
  "probability": "How probable the model considers this answer, of all possible answers.",
  "log-probability": "The natural logarithm of the probability. 0 is certain; each unit below it "
    + "divides the probability by 2.7.",
  "score": "The number that ranks the answers: the log-probability, corrected for the length so "
    + "that long answers have a chance.",
  "relevance": "The number that orders the passages: how well each answers the query, higher is "
    + "better.",
  "cosine": "The similarity of two vectors: 1 for the same direction, 0 for unrelated ones, "
    + "-1 for opposite ones.",
  "temperature": "Divides the model's logits. Below 1 the text becomes more predictable, above 1 "
    + "more varied.",
  "top-k": "Samples only from the k most probable tokens. 0 is no limit.",
  "top-p": "Samples only from the most probable tokens that together have this probability. 1 is "
    + "no limit.",
  "seed": "The start of the random numbers: the same seed gives the same texts.",
};

// A word that is explained when it is pointed at or focused.
function term(word) {
  const id = `hint-${term.count = (term.count ?? 0) + 1}`;
  const hint = make("span", { id, className: "hint", role: "tooltip" }, WORDS[word]);
  const text = word[0].toUpperCase() + word.slice(1);
  const open = ({ currentTarget }) => currentTarget.classList.remove("closed");
  return make("dfn", { className: "term", tabIndex: 0, "aria-describedby": id, onblur: open,
    onmouseleave: open }, text, hint);
}

// Escape closes the explanation; the word keeps the focus.
document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape") return;
  for (const word of document.querySelectorAll(".term:hover, .term:focus"))
    word.classList.add("closed");
});

function percent(fraction) {
  const number = 100 * fraction;
  if (number > 0 && number < 0.05) return "< 0.1%";
  return number.toFixed(number < 9.95 ? 1 : 0) + "%";
}

// A probability as a bar and a number.
function likely(fraction) {
  const width = (100 * Math.min(1, Math.max(0, fraction))).toFixed(2);
  const bar = draw("svg", { class: "bar", "aria-hidden": true, viewBox: "0 0 100 10",
    preserveAspectRatio: "none" }, draw("rect", { width, height: 10 }));
  return make("div", { className: "likely" }, bar, percent(fraction));
}

// Signs for characters that cannot be seen, and for the space of SentencePiece.
function readable(token) {
  return token.replace(/[ ▁]/g, "␣").replace(/\n/g, "⏎").replace(/\t/g, "⇥")
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu, (character) =>
      "U+" + character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0"));
}

// A table with headings of columns; the first cell of each row is its heading.
function table(className, headings, rows) {
  const heading = (content) => make("th", { scope: "col" }, content);
  const line = ([first, ...cells]) =>
    make("tr", {}, make("th", { scope: "row" }, first), ...cells.map((cell) =>
      make("td", { className: /^-?[\d.]+$/.test(cell) ? "number" : "" }, cell)));
  return make("table", { className }, make("thead", {}, make("tr", {}, ...headings.map(heading))),
    make("tbody", {}, ...rows.map(line)));
}

// === Fields of forms ===

// An error that belongs to a field.
class FieldError extends Error {
  constructor(name, message) {
    super(message);
    this.field = name;
  }
}

// A control with its label and a place for errors. Only controls with a name are part of links.
function field(control, label, ...after) {
  control.id ||= "field-" + control.name;
  const error = make("p", { id: control.id + "-error", className: "error" });
  control.setAttribute("aria-describedby", error.id);
  return make("div", { className: "field" }, make("label", { htmlFor: control.id }, label), control,
    error, ...after);
}

function showFieldError(control, message) {
  control.setAttribute("aria-invalid", Boolean(message));
  byId(control.id + "-error").textContent = message;
  if (message) control.focus();
}

const canBeSeen = (text) => /[^\p{Z}\p{C}]/u.test(text);

const valueOf = (name) => byId("form").elements.namedItem(name).value;

// The text of the form, if there is any.
function textOf() {
  const text = valueOf("text");
  if (!canBeSeen(text)) throw new FieldError("text", "Write a text.");
  return text;
}

// A field for a text, with example texts to choose from.
function textField(label, texts, rows = 2) {
  const control = make("textarea", { name: "text", rows, value: texts[0] ?? "" });
  const choose = (text) => make("button", { type: "button", onclick() {
    control.value = text;
    askAgain();
  } }, text);
  const examples = texts.length > 1 && rows < 4
    ? [make("div", { className: "examples" }, "Examples:", ...texts.map(choose))] : [];
  return field(control, label, ...examples);
}

// The example texts of a model, without those that a button could not show.
const exampleTexts = (model) => [...new Set(
  (model.examples.serving_default ?? []).map(({ text }) => text ?? "").filter(canBeSeen))];

// Fields for a text, or for two where the model reads pairs, with a tab between them.
function textFields(model) {
  const texts = exampleTexts(model);
  if (!texts.length || texts.some((text) => !text.includes("\t"))) return [textField("Text", texts)];
  const [first, second] = texts[0].split("\t");
  const control = make("textarea", { name: "second", rows: 2, value: second });
  return [textField("First text", [first]), field(control, "Second text")];
}

function textOrPair() {
  const text = textOf();
  if (!byId("form").elements.second) return text;
  const second = valueOf("second");
  if (!canBeSeen(second)) throw new FieldError("second", "Write a second text.");
  return `${text}\t${second}`;
}
