// Text to text: translation, pronunciation, gaps of a text. The answer, and the n best with bars.
const MASK = "[MASK]", FIRST_GAP = "<extra_id_0>";

// A text with its gaps filled, with marks around the fillings; without marks if their places are
// not certain.
function filledText(text, filled) {
  const [first, ...others] = text.split(/(?:\[MASK\])+/);
  // The space before a gap is left out where the filling continues a word.
  const begin = filled.startsWith(first) ? first : first.trimEnd();
  const parts = [begin];
  let at = filled.startsWith(begin) ? begin.length : -1;
  others.forEach((part, number) => {
    const after = part.trimEnd() || part;
    const end = number === others.length - 1 ? filled.length - part.length
      : after ? filled.indexOf(after, at + 1) : -1;
    if (at < 0 || end <= at) return at = -1;
    const isWhole = filled.startsWith(part, end);
    parts.push(make("mark", {}, filled.slice(at, end)), isWhole ? part : after);
    at = end + (isWhole ? part : after).length;
  });
  return at === filled.length ? parts : [filled];
}

FORMS.text = {
  title: "Text to text",
  tasks: ["seq2seq", "span_corruption"],
  needs: "n_best",
  blames: "text",

  build(model) {
    const texts = exampleTexts(model);
    if (!texts.some((text) => text.includes(FIRST_GAP))) return [textField("Text", texts)];
    return [textField(`Text with ${FIRST_GAP}, <extra_id_1>, … for its gaps`, texts),
      make("p", { className: "faint" },
        "The answer has the name of each gap and the text that is missing there.")];
  },

  request() {
    return { signature: "n_best", instances: [{ text: textOf() }] };
  },

  show({ instances: [{ text }], predictions }, model, choose) {
    const rows = ranked(predictions);
    const hasTargets = "target" in (model.signatures.attention?.inputs ?? {});
    const written = this.written?.bind(this, text);
    return [bestAnswer(rows[0], "text", written), rankedAnswers(rows, { written,
      name: "text", others: "all other texts", choose: hasTargets ? choose : null })];
  },

  // The inputs of the attention of each answer.
  looks({ instances, predictions }, model) {
    const [{ text }] = instances;
    return "target" in model.signatures.attention.inputs
      ? ranked(predictions).map((row) => ({ text, target: row.text })) : [{ text }];
  },
};

FORMS.gaps = {
  ...FORMS.text,
  title: "Fill gaps",
  tasks: ["masked_lm"],

  build(model) {
    return [textField(`Text with ${MASK} for each gap`, exampleTexts(model))];
  },

  request() {
    const text = textOf();
    if (!text.includes(MASK))
      throw new FieldError("text", `The text has no ${MASK}. Write it where a word is missing.`);
    return { signature: "n_best", instances: [{ text }] };
  },

  written: filledText,
};
