// All labels of a text with bars, those that are predicted above them.
FORMS.label_sets = {
  title: "Labels of a text",
  tasks: ["multi_label_classification"],
  needs: "serving_default",
  blames: "text",

  build(model) {
    return [textField("Text", exampleTexts(model))];
  },

  request() {
    return { signature: "serving_default", instances: [{ text: textOf() }] };
  },

  show({ predictions: [{ labels, probabilities, predicted }] }) {
    const chosen = labels.filter((_, place) => predicted[place]);
    const lines = labels.map((label, place) =>
      [predicted[place] ? "✓" : "", ...asItIs(label), likely(probabilities[place])]);
    return [make("p", { className: "best" }, chosen.length ? chosen.join(", ") : "(no label)"),
      table("answers", ["Predicted", "Label", term("probability")], lines)];
  },

  looks: ({ instances }) => instances,
};
