// Text to text: translation, pronunciation. The answer, and the n best with bars.
FORMS.text = {
  title: "Text to text",
  tasks: ["seq2seq", "span_corruption"],
  needs: "n_best",
  blames: "text",

  build(model) {
    return [textField("Text", exampleTexts(model))];
  },

  request() {
    return { signature: "n_best", instances: [{ text: valueOf("text") }] };
  },

  show({ predictions }, model, choose) {
    const rows = ranked(predictions);
    const hasTargets = "target" in (model.signatures.attention?.inputs ?? {});
    return [bestAnswer(rows[0], "text"), rankedAnswers(rows, {
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
    return [textField("Text with [MASK] for each gap", exampleTexts(model))];
  },
};
