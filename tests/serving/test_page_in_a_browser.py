"""The demo page clicked through in headless Chromium, on a server of small models.

Between browser and server stands one that puts a script behind the page's and allows it in its
policy, which holds for all else as it is.
"""

import base64
import hashlib
import http.server
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

from keras_attn.export import export_saved_model
from keras_attn.visualization import text_attention
from tests.browser import WATCH, seen_in_browser
from tests.export.toy import ToyTask
from tests.serving.conftest import running
from tests.tasks.made import make_task

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

TEXT = "fedcba"
EVIL = "<img src=x onerror=\"document.title='broken'\">"
WALK = """
{
const seen = [];
const texts = (query) => [...document.querySelectorAll(query)].map((one) => one.textContent);
const note = (what) => seen.push({
  what,
  error: element("error").textContent,
  rows: [...document.querySelectorAll("#answer tr")].map((line) =>
    [...line.children].map((cell) => cell.textContent)),
  chosen: [...document.querySelectorAll("#answer tr.choosable")].map((line) =>
    line.classList.contains("chosen")),
  hidden: element("attention").hidden,
  told: element("told").textContent,
  looks: texts("#map .looks"), lookedAt: texts("#map .looked-at"),
  cells: [...document.querySelectorAll("#map .cell")].map((one) =>
    Number(one.getAttribute("fill-opacity"))),
  group: element("group").value, groups: texts("#group option"),
  layers: texts("#layer option"), heads: texts("#head option"),
  images: document.images.length,
});
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const until = async (test) => { while (!test()) await pause(20); };
const set = async (id, value) => {
  element(id).value = value;
  element(id).dispatchEvent(new Event("change"));
  await pause(20);
};
const model = async (name) => {
  await set("model", name);
  await until(() => !element("ask").disabled && element("signature").value !== "");
};
const ask = async (name, text) => {
  element("input-" + name).value = text;
  element("ask").click();
  await until(() => element("ask").disabled);
  await until(() => !element("ask").disabled);
};
(async () => {
  await until(() => !element("ask").disabled && element("signature").value !== "");
  await model("toy"); await ask("text", "abc"); note("without attention");
  await model("tiny"); await ask("text", "TEXT"); note("asked");
  const label = (row) => document.querySelectorAll("#map .looks")[row];
  label(1).dispatchEvent(new MouseEvent("mouseenter")); note("pointed");
  await set("head", "1"); note("head");
  await set("group", "encoder"); note("encoder");
  document.querySelectorAll("#answer tr.choosable")[1].click();
  await until(() => document.querySelectorAll("#answer tr.chosen")[0]?.rowIndex === 2);
  note("second");
  await ask("text", EVIL); note("too long");
  await set("signature", "token_ids"); await ask("source_ids", EVIL); note("no JSON");
  await set("signature", "attention");
  element("input-target").value = "AA"; await ask("text", "TEXT"); note("attention alone");
})().catch((error) => { window.failed = String(error); }).finally(() => {
  const told = document.createElement("pre");
  told.id = "seen";
  const error = window.failed || null;
  told.textContent = JSON.stringify({ seen, title: document.title, error });
  document.body.append(told);
});
}
"""


def between(served):
    """A server that adds the scripts to the page and hands all else on."""
    quoted = '"' + EVIL.replace('"', '\\"') + '"'
    walk = WALK.replace('"TEXT"', f'"{TEXT}"').replace("EVIL", quoted)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(None)

        def do_POST(self):
            self.answer(self.rfile.read(int(self.headers["content-length"])))

        def answer(self, body):
            address = f"http://127.0.0.1:{served.rest}{self.path}"
            headers = {"content-type": "application/json"} if body else {}
            try:
                answer = urllib.request.urlopen(urllib.request.Request(address, body, headers))
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                content, policy = answer.read(), answer.headers["content-security-policy"]
            if self.path == "/":
                content = content.replace(b"<body>", f"<body><script>{WATCH}</script>".encode())
                content = content.replace(b"</body>", f"<script>{walk}</script></body>".encode())
                hashes = " ".join(f"'sha256-{_digest(script)}'" for script in (WATCH, walk))
                policy = policy.replace("script-src ", f"script-src {hashes} ")
            self.send_response(answer.status)
            if policy:
                self.send_header("content-security-policy", policy)
            self.send_header("content-type", answer.headers["content-type"])
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def _digest(script):
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@pytest.fixture(scope="module")
def written():
    """A task whose answers are of some length."""
    return make_task(min_length=3)


@pytest.fixture(scope="module")
def seen(written, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, task in (("toy", ToyTask()), ("tiny", written)):
        export_saved_model(task, folder / name, n_best=2)
    folders = {name: folder / name for name in ("toy", "tiny")}
    with running(folders) as served, between(served) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        found = seen_in_browser(address, tmp_path_factory.mktemp("browser"))
        server.shutdown()
    return {step["what"]: step for step in found["seen"]} | {"title": found["title"]}


@pytest.fixture(scope="module")
def hypotheses(written):
    return written.predict_n_best([TEXT], 2)[0]


def weights(task, target, group, head=None):
    """The attention of the only layer, and its tokens, from Python."""
    (layer,) = text_attention(task, TEXT, target).groups[group]
    chosen = layer.weights.mean(axis=0) if head is None else layer.weights[head]
    return chosen, layer.rows, layer.columns


def test_a_model_without_the_signature_has_no_attention(seen):
    assert [cell for cell in seen["without attention"]["rows"][1] if "aaabbbccc" in cell]
    assert seen["without attention"]["hidden"]


def test_the_answer_and_the_best_with_their_scores(seen, hypotheses):
    head, *rows = seen["asked"]["rows"]
    assert head == ["#", "text", "log_probability", "score"]
    assert rows == [
        [str(place + 1), each.text, f"{each.log_probability:.4f}", f"{each.score:.4f}"]
        for place, each in enumerate(hypotheses)
    ]


def test_the_attention_of_the_best_is_drawn(seen, written, hypotheses):
    step = seen["asked"]
    expected, rows, columns = weights(written, hypotheses[0].text, "cross")
    assert not step["hidden"]
    assert step["groups"] == ["answer to text", "text to itself", "answer to itself"]
    assert (step["layers"], step["heads"]) == (["mean", "1"], ["mean", "1", "2"])
    assert (step["looks"], step["lookedAt"]) == (rows, columns)
    np.testing.assert_allclose(step["cells"], expected.ravel(), atol=6e-4)
    assert step["chosen"] == [True, False]
    assert step["told"] == "Point at a token to see where it looks."


def test_a_token_that_is_pointed_at_tells_where_it_looks(seen, written, hypotheses):
    expected, rows, columns = weights(written, hypotheses[0].text, "cross")
    most = np.argsort(-expected[1], kind="stable")[:5]
    percent = ", ".join(
        f"{columns[at]} {100 * expected[1, at]:.0f}%" for at in most if expected[1, at] >= 0.005
    )
    assert seen["pointed"]["told"] == f"{rows[1]} looks at {percent}"


def test_heads_groups_and_other_answers_are_chosen(seen, written, hypotheses):
    expected, *_ = weights(written, hypotheses[0].text, "cross", head=1)
    np.testing.assert_allclose(seen["head"]["cells"], expected.ravel(), atol=6e-4)
    # The head stays chosen.
    expected, rows, columns = weights(written, hypotheses[0].text, "encoder", head=1)
    assert (seen["encoder"]["looks"], seen["encoder"]["lookedAt"]) == (rows, columns)
    np.testing.assert_allclose(seen["encoder"]["cells"], expected.ravel(), atol=6e-4)
    assert seen["second"]["chosen"] == [False, True]


def test_attention_that_is_asked_for_is_drawn_and_not_written(seen, written):
    step = seen["attention alone"]
    _, rows, columns = weights(written, "AA", step["group"])
    assert (step["rows"], step["hidden"]) == ([], False)
    assert (step["looks"], step["lookedAt"]) == (rows, columns)


def test_errors_and_hostile_texts_stay_texts(seen):
    assert "The source text must have at most 10 tokens" in seen["too long"]["error"]
    assert "<img" in seen["no JSON"]["error"]
    assert seen["no JSON"]["error"].startswith("source_ids must be JSON, such as [4, 5, 6]: ")
    for what in ("too long", "no JSON"):
        assert seen[what]["hidden"]
        assert seen[what]["images"] == 0
    assert seen["title"] == "keras-attn serve"
