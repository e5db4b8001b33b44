// Numbers of a text.
FORMS.numbers = {
  title: "Numbers of a text",
  tasks: ["regression"],
  needs: "serving_default",
  blames: "text",

  build(model) {
    return textFields(model);
  },

  request() {
    return { signature: "serving_default", instances: [{ text: textOrPair() }] };
  },

  show({ predictions: [numbers] }) {
    return [make("p", { className: "best" },
      numbers.map((number) => String(Number(number.toPrecision(6)))).join(", "))];
  },

  looks: ({ instances }) => instances,
};
