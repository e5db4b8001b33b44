// Chooses model and form, sends requests, and keeps what is shown in the page's address.
let models = [];
let model = null;  // its name, task, examples and signatures
let sent = null;  // the fields of the request whose answer is shown, and the chosen answer
let asked = null;  // the fields of the request that runs, until its answer comes
let running = null;
const LONGEST_LOOK = 2000;  // characters of a text whose attention is requested without a click
const MOST_LOOKS = 500000;  // weights of an image that are requested without a click

const form = () => FORMS[byId("kind").value];
const fieldsOfForm = () => [...new FormData(byId("form"))];
const areSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// Runs one thing at a time; what comes later replaces it.
async function run(action) {
  running?.abort();
  const mine = running = new AbortController();
  asked = null;
  busy(true);
  try {
    await action(mine.signal);
  } catch (error) {
    if (running === mine) report(error);
  } finally {
    if (running === mine) {
      running = null;
      busy(false);
    }
  }
}

function busy(isBusy) {
  byId("ask").textContent = isBusy ? "Asking…" : "Ask";
  for (const id of ["results", "attention-shown"]) byId(id).setAttribute("aria-busy", isBusy);
  compareForm();
}

// Compares the form with the question that is asked and with the one that is answered.
function compareForm() {
  const fields = fieldsOfForm();
  const isAsked = running && (!model || areSame(asked, fields));
  byId("ask").setAttribute("aria-disabled", Boolean(isAsked));
  byId("stale").textContent = sent && !areSame(sent.fields, fields)
    ? "This is the answer to an earlier question; the form has changed since." : "";
  const isTooLong = fields.some(([, value]) => value === TOO_LONG);
  byId("copy-link").disabled = isTooLong;
  byId("no-link").textContent = isTooLong ? "The image is too large for a link." : "";
}

// Puts an error where it belongs: to a field, or to a place.
function report(error) {
  const name = error.field ?? (error.place && [400, 413].includes(error.status) && form().blames);
  const control = name && (byId("field-" + name) ?? byId("input-" + name));
  if (control) return showFieldError(control, error.message);
  byId(error.place ?? "page-error").textContent = error.message;
  if (error.place) byId("results").hidden = false;
}

function forget() {
  sent = null;
  byId("results").hidden = true;
  for (const id of ["answer-error", "status"]) byId(id).textContent = "";
  for (const id of ["answer", "request"]) byId(id).replaceChildren();
  for (const control of byId("form").querySelectorAll("[aria-invalid=true]"))
    showFieldError(control, "");
  hideAttention();
}

// === Choices ===

async function chooseModel(name, state, signal) {
  model = null;
  forget();
  byId("page-error").textContent = "";
  byId("model").value = name;
  const { metadata } = await fetched(modelPath(name) + "/metadata", { signal });
  const signatures = Object.fromEntries(Object.entries(metadata.signature_def.signature_def)
    .filter(([key]) => !key.startsWith("__")));
  model = { ...models.find((each) => each.name === name), signatures };
  const forms = Object.entries(FORMS).filter(([, { tasks, needs }]) =>
    !needs || tasks.includes(model.task) && needs in signatures);
  options(byId("kind"), forms.map(([key, { title }]) => [key, title]));
  byId("kind").value = forms.some(([key]) => key === state.get("form"))
    ? state.get("form") : forms[0][0];
  await chooseForm(state, signal);
}

async function chooseForm(state, signal) {
  forget();
  byId("inputs").replaceChildren(...form().build(model));
  for (const [name, value] of state) {
    const control = byId("form").elements.namedItem(name);
    if (control?.name !== name) continue;
    control.value = value;
    for (const kind of ["input", "change"]) control.dispatchEvent(new Event(kind));
  }
  const controls = [...byId("form").querySelectorAll("textarea, [data-input], [type=hidden]")];
  if (controls.every(({ name, value }) => value || (name && state.has(name))))
    await ask(signal, state);
}

// === Requests ===

const askAgain = () => run((signal) => ask(signal));

async function ask(signal, state = NOTHING) {
  for (const control of byId("form").querySelectorAll("[aria-invalid=true]"))
    showFieldError(control, "");
  const shown = form();
  try {
    const before = asked = fieldsOfForm();
    const { signature, instances, fields = before } = await shown.request();
    signal.throwIfAborted();
    asked = fields;
    compareForm();
    const answer = await predict(model, signature, instances, signal);
    asked = null;
    forget();
    sent = { fields, answer, row: null };
    show(signature, state);
  } catch (error) {
    if (signal.aborted) throw error;
    asked = null;
    forget();
    remember();
    const message = shown.explain?.(error) ?? error.message;
    throw Object.assign(error, { message, place: "answer-error" });
  }
  if (shown.looks && model.signatures.attention) {
    const reason = reasonToWait(sent.answer.instances[0], model.signatures.attention.outputs);
    if (reason) offerAttention(reason, () => run((later) => lookAt(0, later)));
    else await lookAt(Number(state.get("answer")), signal, state);
  }
  remember();
}

// Says what would be requested, if it is much: the weights of a long text are many numbers, and
// those of an image depend on its patches, whose number the export says.
function reasonToWait(instance, outputs) {
  if (!("image_bytes" in instance))
    return JSON.stringify(instance).length > LONGEST_LOOK ? "of this long text" : "";
  const sizes = (outputs.encoder?.tensor_shape.dim ?? []).slice(1).map(({ size }) => Number(size));
  const weights = sizes.reduce((product, size) => product * Math.max(1, size), 1);
  return weights > MOST_LOOKS ? `of this image, ${(weights / 1e6).toFixed(1)} million weights` : "";
}

function show(signature, state) {
  const { answer } = sent;
  const choose = (row) => asked || run((signal) => lookAt(row, signal));
  byId("results").hidden = false;
  byId("answer").replaceChildren(...form().show(answer, model, choose, signature));
  byId("request").replaceChildren(snippets(answer, "This request as curl and Python"));
  byId("status").textContent = `Answered in ${answer.milliseconds.toFixed(0)} ms`;
  if (signature === "attention") showAttention(answer, state);
}

// Shows the attention of the answer of a row.
async function lookAt(row, signal, state = NOTHING) {
  const looks = form().looks(sent.answer, model);
  if (!(row in looks)) row = 0;
  try {
    const answer = await predict(model, "attention", [looks[row]], signal);
    sent.row = looks.length > 1 ? row : null;
    markAnswer(row);
    showAttention(answer, state);
    byId("attention-request").replaceChildren(
      snippets(answer, "The request of the attention as curl and Python"));
    remember();
  } catch (error) {
    if (signal.aborted) throw error;
    failAttention(error.message);
  }
}

// === The address ===

// Puts the form into the page's address, and what is shown of its answer.
function remember() {
  if (!model) return;
  const fields = fieldsOfForm(), isAnswered = sent && areSame(sent.fields, fields);
  const answer = isAnswered && sent.row !== null ? [["answer", sent.row]] : [];
  const state = new URLSearchParams([["model", model.name], ["form", byId("kind").value],
    ...fields, ...answer, ...(isAnswered ? attentionState() : [])]);
  history.replaceState(null, "", "#" + state);
}

function restore() {
  const state = new URLSearchParams(location.hash.slice(1));
  const name = state.get("model") ?? models[0].name;
  const isHere = models.some((each) => each.name === name);
  run(async (signal) => {
    await chooseModel(isHere ? name : models[0].name, isHere ? state : NOTHING, signal);
    if (!isHere) throw new Error(`The model of the link is not served here: ${name}`);
  });
}

byId("model").addEventListener("change", () =>
  run((signal) => chooseModel(byId("model").value, NOTHING, signal)));
byId("kind").addEventListener("change", () =>
  run((signal) => chooseForm(NOTHING, signal)));
byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (byId("ask").getAttribute("aria-disabled") !== "true") askAgain();
});
for (const kind of ["input", "change"]) byId("form").addEventListener(kind, compareForm);
byId("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
byId("copy-link").addEventListener("click", () => {
  remember();
  copy(location.href, byId("copy-link"));
});
addEventListener("hashchange", restore);
run(async (signal) => {
  models = await fetched("/page/models.json", { signal });
  options(byId("model"), models.map(({ name }) => [name, name]));
  restore();
});
