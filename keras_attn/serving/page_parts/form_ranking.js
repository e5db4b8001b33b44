// Passages of a query, the best first.
FORMS.ranking = {
  title: "Rank passages",
  tasks: ["rank"],
  needs: "rank",
  blames: "text",

  build(model) {
    const [first] = model.examples.rank ?? [];
    const passages = (first?.passages ?? []).filter((passage) => !passage.includes("\n"));
    const control = make("textarea", { name: "passages", rows: 4, value: passages.join("\n") });
    return [textField("Query", [first?.query ?? ""]), field(control, "Passages, one in a line")];
  },

  request() {
    const query = textOf();
    const passages = valueOf("passages").split("\n").filter(canBeSeen);
    if (!passages.length) throw new FieldError("passages", "Write a passage in each line.");
    return { signature: "rank", instances: [{ query, passages }] };
  },

  show({ predictions: [{ passages, scores, places }] }) {
    const rows = passages.map((passage, row) =>
      [String(row + 1), passage, scores[row].toFixed(4), String(places[row] + 1)]);
    return [make("p", { className: "best" }, passages[0]),
      table("answers", ["#", "Passage", term("relevance"), "Line"], rows)];
  },

  looks: ({ instances: [{ query }], predictions: [{ passages }] }) =>
    [{ query, passage: passages[0] }],
};
