// Requests to the REST API, and the same requests as commands to copy.
const LONGEST_ARGUMENT = 100000;  // bytes; shells refuse arguments above 128 KiB

const modelPath = (name) => "/v1/models/" + encodeURIComponent(name);

async function fetched(path, settings) {
  const response = await fetch(path, settings).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The server does not answer.");
  });
  const content = await response.json();
  settings.signal.throwIfAborted();
  if (!response.ok) throw Object.assign(new Error(content.error), { status: response.status });
  return content;
}

// Sends rows to a signature, and returns the request with the answers.
async function predict(model, signature, instances, signal) {
  const path = modelPath(model.name) + ":predict";
  const body = JSON.stringify({ signature_name: signature, instances });
  const start = performance.now();
  const { predictions } = await fetched(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body, signal,
  });
  const milliseconds = performance.now() - start;
  return { url: location.origin + path, body, instances, predictions, milliseconds };
}

const shellQuoted = (text) => "'" + text.replaceAll("'", "'\\''") + "'";

function curlOf({ url, body }) {
  const command = `curl -H 'Content-Type: application/json' ${shellQuoted(url)} -d `;
  // A body is a single line.
  return new Blob([body]).size > LONGEST_ARGUMENT
    ? `${command}@- <<'END'\n${body}\nEND` : command + shellQuoted(body);
}

// Strings and numbers of JSON are those of Python.
function pythonLiteral(value) {
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, item]) =>
    `${JSON.stringify(key)}: ${pythonLiteral(item)}`).join(", ")}}`;
}

const pythonOf = ({ url, body }) => `import requests

answer = requests.post(
    ${JSON.stringify(url)},
    json=${pythonLiteral(JSON.parse(body))},
    timeout=60,
)
answer.raise_for_status()
print(answer.json()["predictions"])`;

async function copy(text, button) {
  const name = button.dataset.name ??= button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed by the browser";
  }
  setTimeout(() => { button.textContent = name; }, 1500);
}

// The request as commands, closed at first.
function snippets(request, title) {
  const snippet = (name, text) => {
    const button = make("button", { type: "button", onclick: () => copy(text, button),
      ariaLabel: `Copy ${name}` }, "Copy");
    return make("div", { className: "snippet" },
      make("div", { className: "row" }, make("h3", {}, name), button),
      make("pre", { tabIndex: 0, ariaLabel: name, className: name.toLowerCase() }, text));
  };
  return make("details", {}, make("summary", {}, title),
    snippet("curl", curlOf(request)), snippet("Python", pythonOf(request)));
}
