// Vectors of several texts, compared by their cosines.
const dot = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);
const cosine = (a, b) => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));

FORMS.vectors = {
  title: "Compare texts",
  tasks: ["embedding"],
  needs: "serving_default",
  blames: "text",

  build(model) {
    const texts = exampleTexts(model).filter((text) => !text.includes("\n"));
    return [textField("Texts to compare, one in a line", [texts.join("\n")], 4)];
  },

  request() {
    const lines = valueOf("text").split("\n").filter(canBeSeen);
    if (!lines.length) throw new FieldError("text", "Write a text in each line.");
    return { signature: "serving_default", instances: lines.map((text) => ({ text })) };
  },

  show({ instances, predictions }, model, choose) {
    const isShown = "attention" in model.signatures;
    const name = ({ text }, row) => isShown
      ? make("button", { type: "button", className: "choice", "aria-pressed": false,
          title: "Show its attention", onclick: () => choose(row) }, `${row + 1} ${text}`)
      : `${row + 1} ${text}`;
    const cosines = table("cosines", ["Text", ...instances.map((_, row) => String(row + 1))],
      instances.map((instance, row) => [name(instance, row), ...predictions.map((other) => {
        const value = cosine(predictions[row], other);
        return Number.isNaN(value) ? "–" : value.toFixed(3);
      })]));
    for (const cell of cosines.querySelectorAll("td")) {
      const value = Number(cell.textContent) || 0;
      cell.style.setProperty("--at", Math.abs(value));
      cell.classList.toggle("negative", value < 0);
    }
    return [
      make("p", {}, term("cosine"), ` of vectors of ${predictions[0].length} numbers`),
      make("div", { className: "wide", tabIndex: 0, role: "region", ariaLabel: "Cosines" },
        cosines),
    ];
  },

  looks: ({ instances }) => instances,
};
