// Labels of a text, with bars.
FORMS.labels = {
  title: "Labels of a text",
  tasks: ["classification"],
  needs: "n_best",
  blames: "text",

  build(model) {
    return textFields(model);
  },

  request() {
    return { signature: "n_best", instances: [{ text: textOrPair() }] };
  },

  show({ predictions }) {
    const rows = ranked(predictions);
    return [bestAnswer(rows[0], "label"),
      rankedAnswers(rows, { name: "label", others: "all other labels" })];
  },

  looks: ({ instances }) => instances,
};
