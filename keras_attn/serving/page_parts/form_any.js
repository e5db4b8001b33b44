// All signatures of any model, with a field for each input and a table of the outputs.
const EXAMPLE_JSON = ["1", "1", "[4, 5, 6]"];  // by number of dimensions

function inputField(name, { dtype, tensor_shape }, example) {
  const isText = dtype === "DT_STRING", isFile = isText && name.endsWith("_bytes");
  const control = isFile ? make("input", { type: "file" })
    : make("textarea", { name: "input." + name, rows: 2 });
  control.id = "input-" + name;
  Object.assign(control.dataset, { input: name, kind: isFile ? "file" : isText ? "text" : "json" });
  if (!isText) control.placeholder = EXAMPLE_JSON[tensor_shape.dim?.length] ?? "[[4, 5], [6, 7]]";
  if (!isFile && example !== undefined)
    control.value = isText ? example : JSON.stringify(example);
  return field(control, isText ? name : name + " (JSON)");
}

async function inputOf(control) {
  const { input, kind } = control.dataset;
  if (kind === "text") return control.value;
  if (kind === "file") {
    if (!control.files.length) throw new FieldError(input, "Choose a file.");
    return { b64: await base64Of(control.files[0]) };
  }
  try {
    return JSON.parse(control.value);
  } catch (error) {
    throw new FieldError(input,
      `${input} must be JSON, such as ${control.placeholder}: ${error.message}`);
  }
}

function shownValue(value) {
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : value.toFixed(4);
  if (Array.isArray(value)) {
    const rest = value.length > 32 ? `, … (${value.length})` : "";
    return `[${value.slice(0, 32).map(shownValue).join(", ")}${rest}]`;
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}

FORMS.any = {
  title: "All signatures",
  tasks: [],

  build(model) {
    const names = Object.keys(model.signatures).sort();
    const select = make("select", { name: "signature" });
    options(select, names.map((name) => [name, name]));
    if (names.includes("serving_default")) select.value = "serving_default";
    const inputs = make("div");
    select.onchange = () => {
      const example = model.examples[select.value]?.[0] ?? {};
      inputs.replaceChildren(...Object.entries(model.signatures[select.value].inputs).sort()
        .map(([name, info]) => inputField(name, info, example[name])));
    };
    select.onchange();
    return [field(select, "Signature"), inputs];
  },

  async request() {
    const instance = {};
    for (const control of byId("form").querySelectorAll("[data-input]"))
      instance[control.dataset.input] = await inputOf(control);
    return { signature: valueOf("signature"), instances: [instance] };
  },

  show({ predictions: [answer] }, model, choose, signature) {
    if (signature === "attention") return [];  // it is drawn
    // A single output comes without its name.
    const names = Object.keys(model.signatures[signature].outputs).sort();
    const outputs = names.length === 1 ? { [names[0]]: answer } : answer;
    const rows = names.map((name) => [name, shownValue(outputs[name])]);
    return [table("answers", ["Output", "Value"], rows)];
  },
};
