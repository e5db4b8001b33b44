const STRING = "DT_STRING";
let signatures = {};

async function fetched(path, options) {
  const response = await fetch(path, options);
  const content = await response.json();
  if (!response.ok) throw new Error(content.error);
  return content;
}

async function attempt(work) {
  element("error").textContent = "";
  element("ask").disabled = true;
  try {
    await work();
  } catch (error) {
    element("error").textContent = error.message;
  } finally {
    element("ask").disabled = false;
  }
}

const modelPath = () => "/v1/models/" + encodeURIComponent(element("model").value);

async function chooseModel() {
  const { metadata } = await fetched(modelPath() + "/metadata");
  signatures = metadata.signature_def.signature_def;
  const names = Object.keys(signatures).filter((name) => !name.startsWith("__")).sort();
  const select = element("signature");
  select.replaceChildren(...names.map((name) => made("option", name, { value: name })));
  select.value = ["n_best", "serving_default"].find((name) => names.includes(name)) ?? names[0];
  chooseSignature();
}

function forget() {
  element("answer").replaceChildren();
  hideAttention();
}

function chooseSignature() {
  forget();
  const inputs = Object.entries(signatures[element("signature").value].inputs).sort();
  element("inputs").replaceChildren(...inputs.map(([name, info]) => inputField(name, info)));
}

function inputField(name, info) {
  const isText = info.dtype === STRING;
  const isFile = isText && name.endsWith("_bytes");
  const field = isFile ? made("input", "", { type: "file" }) : made("textarea", "", { rows: 2 });
  field.id = "input-" + name;
  field.dataset.name = name;
  field.dataset.kind = isFile ? "file" : isText ? "text" : "json";
  if (!isText) field.placeholder = info.tensor_shape.dim.length > 1 ? "[4, 5, 6]" : "1";
  const label = made("label", isText ? name : name + " (JSON)", { htmlFor: field.id });
  const block = made("p");
  block.append(label, field);
  return block;
}

async function valueOf(field) {
  if (field.dataset.kind === "text") return field.value;
  if (field.dataset.kind === "json") return parsed(field);
  if (!field.files.length) throw new Error("Choose a file for " + field.dataset.name + ".");
  const bytes = new Uint8Array(await field.files[0].arrayBuffer());
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return { b64: btoa(binary) };
}

function parsed(field) {
  try {
    return JSON.parse(field.value);
  } catch (error) {
    const { name } = field.dataset;
    throw new Error(`${name} must be JSON, such as ${field.placeholder}: ${error.message}`);
  }
}

async function ask() {
  forget();
  const instance = {};
  for (const field of element("inputs").querySelectorAll("[data-name]"))
    instance[field.dataset.name] = await valueOf(field);
  const signature = element("signature").value;
  const start = performance.now();
  const { predictions } = await fetched(modelPath() + ":predict", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ signature_name: signature, instances: [instance] }),
  });
  const milliseconds = performance.now() - start;
  if (signature === "attention") {  // many numbers, to be looked at
    element("answer").replaceChildren(made("p", milliseconds.toFixed(0) + " ms"));
    showAttention(predictions[0]);
    return;
  }
  // A single output comes without its name.
  const names = Object.keys(signatures[signature].outputs);
  const outputs = names.length === 1 ? { [names[0]]: predictions[0] } : predictions[0];
  show(outputs, instance, milliseconds);
  await lookAt(instance, outputs, 0);
}

// Where the model looks when it gives the answer of a row, if it tells.
async function lookAt(instance, outputs, row) {
  hideAttention();
  const asked = attentionRequest(signatures.attention, instance, outputs, row);
  if (!asked) return;
  const { predictions } = await fetched(modelPath() + ":predict", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ signature_name: "attention", instances: [asked] }),
  });
  element("answer").querySelectorAll("tr.choosable").forEach((line, number) =>
    line.classList.toggle("chosen", number === row));
  showAttention(predictions[0]);
}

function show(outputs, instance, milliseconds) {
  const columns = Object.keys(outputs).sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  // Lists of one length, one for each output, are alternatives: a row each.
  const lengths = columns.map((name) => Array.isArray(outputs[name]) ? outputs[name].length : 0);
  const alternatives = columns.length > 1 && lengths.every((n) => n > 0 && n === lengths[0]);
  const count = alternatives ? lengths[0] : 1;
  const head = made("tr");
  head.append(made("th", "#"), ...columns.map((name) => made("th", name)));
  const table = made("table");
  table.append(head);
  for (let row = 0; row < count; row++) {
    const line = made("tr");
    line.append(made("td", row + 1));
    for (const name of columns)
      line.append(made("td", shown(alternatives ? outputs[name][row] : outputs[name])));
    if (alternatives && attentionRequest(signatures.attention, instance, outputs, row)) {
      line.className = "choosable";
      line.tabIndex = 0;
      line.onclick = () => attempt(() => lookAt(instance, outputs, row));
      line.onkeydown = (event) => { if (event.key === "Enter") line.click(); };
    }
    table.append(line);
  }
  element("answer").replaceChildren(table, made("p", milliseconds.toFixed(0) + " ms"));
}

const rank = (name) => name === "text" || name === "label" ? 0 : 1;

function shown(value) {
  if (typeof value === "number") return Number.isInteger(value) ? value : value.toFixed(4);
  if (Array.isArray(value)) {
    const rest = value.length > 32 ? ", … (" + value.length + ")" : "";
    return "[" + value.slice(0, 32).map(shown).join(", ") + rest + "]";
  }
  return typeof value === "string" ? value : JSON.stringify(value);
}

const names = JSON.parse(element("models").textContent);
element("model").replaceChildren(...names.map((name) => made("option", name, { value: name })));
element("model").addEventListener("change", () => attempt(chooseModel));
element("signature").addEventListener("change", chooseSignature);
element("form").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(ask);
});
attempt(chooseModel);
