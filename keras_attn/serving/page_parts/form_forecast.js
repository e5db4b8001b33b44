// Forecasts of series: the history that was sent, the median, and bands of quantiles.
const GRAPH = { width: 720, height: 240, left: 56, right: 8, top: 10, bottom: 22 };

// Numbers of lines, one line a step and its channels separated by commas or spaces.
function stepsOf(name, columns) {
  const lines = valueOf(name).split("\n").filter(canBeSeen);
  const steps = lines.map((line) => line.trim().split(/[\s,;]+/).map(Number));
  if (!steps.length) throw new FieldError(name, "Write a step in each line.");
  const wrong = steps.findIndex((step) => step.length !== columns || step.some(Number.isNaN));
  if (wrong >= 0)
    throw new FieldError(name, `Line ${wrong + 1} must have ${columns} numbers.`);
  return steps;
}

const columnsOf = (model, name) =>
  Number(model.signatures.serving_default.inputs[name].tensor_shape.dim.at(-1).size);

function stepsField(model, name, label) {
  const steps = model.examples.serving_default?.[0]?.[name] ?? [];
  const value = steps.map((step) => step.join(", ")).join("\n");
  const columns = columnsOf(model, name), numbers = columns > 1 ? ` of ${columns} numbers` : "";
  return field(make("textarea", { name, rows: 6, value }), `${label}, one step${numbers} in a line`);
}

// A graph of one target. `quantiles` has a list for each step of the horizon, by level.
function drawForecast(past, quantiles, levels) {
  const { width, height, left, right, top, bottom } = GRAPH;
  const shown = past.slice(-3 * quantiles.length), steps = shown.length + quantiles.length;
  const values = [...shown, ...quantiles.flat()];
  const low = Math.min(...values), high = Math.max(...values), range = high - low || 1;
  const x = (step) => left + (width - left - right) * step / Math.max(1, steps - 1);
  const y = (value) => top + (height - top - bottom) * (high - value) / range;
  const line = (numbers, from) =>
    numbers.map((value, step) => `${x(from + step).toFixed(1)},${y(value).toFixed(1)}`);
  const at = (level) => quantiles.map((step) => step[level]);
  const bands = levels.slice(0, levels.length >> 1).map((_, level) => draw("polygon", {
    class: "band", points: [...line(at(level), shown.length),
      ...line(at(levels.length - 1 - level), shown.length).reverse()].join(" ") }));
  const ticks = [low, (low + high) / 2, high].map((value) => draw("text", {
    x: left - 6, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toPrecision(4)))));
  const names = [[0, 1 - shown.length], [shown.length - 1, 0], [steps - 1, quantiles.length]]
    .map(([step, name]) => draw("text", { x: x(step), y: height - 4,
      "text-anchor": step === steps - 1 ? "end" : "middle" }, name > 0 ? `+${name}` : String(name)));
  return draw("svg", { class: "graph", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `History of ${shown.length} steps and forecast of ${quantiles.length}` },
  ...bands, draw("polyline", { class: "past", points: line(shown, 0).join(" ") }),
  draw("polyline", { class: "median",
    points: line(at(levels.indexOf(0.5)), shown.length).join(" ") }), ...ticks, ...names);
}

FORMS.forecast = {
  title: "Forecast",
  tasks: ["forecast"],
  needs: "serving_default",
  blames: "past",

  build(model) {
    const fields = [stepsField(model, "past", "History")];
    if ("future" in model.signatures.serving_default.inputs)
      fields.push(stepsField(model, "future", "Known covariates of the horizon"));
    return fields;
  },

  request() {
    const names = Object.keys(model.signatures.serving_default.inputs);
    const instance = Object.fromEntries(
      names.map((name) => [name, stepsOf(name, columnsOf(model, name))]));
    return { signature: "serving_default", instances: [instance] };
  },

  show({ instances: [{ past }], predictions: [{ quantiles, levels }] }) {
    const rounded = levels.map((level) => Number(level.toFixed(6)));
    return quantiles[0].map((_, target) => {
      const steps = quantiles.map((step) => step[target]);
      const rows = steps.map((step, place) =>
        [`+${place + 1}`, ...step.map((value) => String(Number(value.toPrecision(6))))]);
      const name = quantiles[0].length > 1 ? [make("h3", {}, `Target ${target + 1}`)] : [];
      return make("div", {}, ...name,
        drawForecast(past.map((step) => step[target]), steps, rounded),
        make("details", {}, make("summary", {}, "Quantiles of each step"),
          make("div", { className: "wide", tabIndex: 0, role: "region", ariaLabel: "Quantiles" },
            table("quantiles", ["Step", ...rounded.map(String)], rows))));
    });
  },

  looks: ({ instances }) => instances,
};
