// Continuations of a text by a language model: the most probable ones, or samples.
const SETTINGS = {  // of a sample, with the limits of their fields
  temperature: { min: 0.01, max: 10, step: 0.01, value: 0.8 },
  top_k: { min: 0, max: 1000000, step: 1, value: 40 },
  top_p: { min: 0.01, max: 1, step: 0.01, value: 0.95 },
  seed: { min: 0, max: 4294967295, step: 1, value: 0 },
  samples: { min: 1, max: 16, step: 1, value: 3 },
};
const SECOND_HALF = 2 ** 32;  // the upper half of a seed is the number of the sample

function settingField([name, limits]) {
  const word = name.replace("_", "-");
  const label = word in WORDS ? term(word) : "Samples";
  return field(make("input", { type: "number", name, ...limits, required: true }), label);
}

function settingOf(name) {
  const control = byId("form").elements.namedItem(name);
  if (!control.checkValidity()) throw new FieldError(name, control.validationMessage);
  return Number(control.value);
}

FORMS.sampling = {
  title: "Continue a text",
  tasks: ["causal_lm"],
  needs: "sample",
  blames: "text",

  build(model) {
    const method = make("select", { name: "method" });
    options(method, [["sample", "samples"], ["n_best", "the most probable"]]);
    const settings = make("fieldset", {}, make("legend", {}, "Sampling"),
      make("div", { className: "row" }, ...Object.entries(SETTINGS).map(settingField)));
    method.onchange = () => { settings.disabled = method.value !== "sample"; };
    return [textField("Text to continue", exampleTexts(model)),
      field(method, "Continuations"), settings];
  },

  request() {
    const text = valueOf("text"), signature = valueOf("method");
    if (signature !== "sample") return { signature, instances: [{ text }] };
    const [temperature, top_k, top_p, seed, samples] = Object.keys(SETTINGS).map(settingOf);
    const instances = Array.from({ length: samples }, (_, number) =>
      ({ text, seed: seed + number * SECOND_HALF, temperature, top_k, top_p }));
    return { signature, instances };
  },

  show({ instances, predictions }, model, choose) {
    const rows = ranked(predictions);
    const best = bestAnswer(rows[0], "text");
    best.prepend(make("span", { className: "faint" }, instances[0].text));
    const isSample = "seed" in instances[0];
    return [best, rankedAnswers(rows, { name: "text", others: isSample ? "" : "all other texts",
      choose: "attention" in model.signatures ? choose : null })];
  },

  looks: ({ instances, predictions }) =>
    ranked(predictions).map(({ text }) => ({ text: instances[0].text, target: text })),
};
