// Labels of a text, with bars.
FORMS.labels = {
  title: "Labels of a text",
  tasks: ["classification"],
  needs: "n_best",
  blames: "text",

  build(model) {
    return [textField("Text", exampleTexts(model))];
  },

  request() {
    return { signature: "n_best", instances: [{ text: textOf() }] };
  },

  show({ predictions }) {
    const rows = ranked(predictions);
    return [bestAnswer(rows[0], "label"),
      rankedAnswers(rows, { name: "label", others: "all other labels" })];
  },

  looks: ({ instances }) => instances,
};
