// The answer to a question, marked in its context.
FORMS.answers = {
  title: "Answer a question",
  tasks: ["question_answering"],
  needs: "serving_default",
  blames: "text",

  build(model) {
    const [first] = model.examples.serving_default ?? [];
    const control = make("textarea", { name: "context", rows: 4, value: first?.context ?? "" });
    return [textField("Question", [first?.question ?? ""]), field(control, "Context")];
  },

  request() {
    const question = textOf(), context = valueOf("context");
    if (!canBeSeen(context)) throw new FieldError("context", "Write a context.");
    return { signature: "serving_default", instances: [{ question, context }] };
  },

  show({ instances: [{ context }], predictions: [{ answer, score, start, end }] }) {
    const characters = [...context];  // places count code points
    const part = (from, to) => characters.slice(from, to).join("");
    const marked = make("p", { className: "tagged" }, part(0, start),
      make("mark", { className: "tag" }, part(start, end)), part(end));
    return [make("p", { className: "best" }, answer || "No answer"), marked,
      make("p", {}, term("probability"), " ", likely(score))];
  },

  looks: ({ instances }) => instances,
};
