"""The demo page clicked through in headless Chromium, on a server of small models of every kind.

A server between browser and server puts `page_walk.js` behind the page's script and keeps the
requests. It allows this script, and frames of the page itself, in the page's policy, which is
otherwise unchanged.
"""

import ast
import base64
import collections
import hashlib
import http.server
import json
import re
import shlex
import threading
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pytest

from keras_attn.export import export_saved_model
from keras_attn.visualization import text_attention
from tests.browser import WATCH, seen_in_browser
from tests.export.test_matrix import MATRIX
from tests.export.toy import ToyTask
from tests.serving.conftest import running
from tests.tasks.made import make_task

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

TEXT = "fedcba"
QUOTES = "'a\"\n\\$`b"
EVIL = "<img src=x onerror=\"document.title='broken'\">"
KINDS = {
    "classification": "Bert",
    "multi_label_classification": "Bert",
    "regression": "Bert",
    "rank": "Bert",
    "question_answering": "Bert",
    "image_classification": "PatchEncoder",
    "masked_lm": "Bert",
    "token_classification": "Bert",
    "embedding": "Bert",
    "causal_lm": "GPT2",
}


def between(served, walk, requests):
    """A server that adds the scripts to the page, hands on all else, and keeps the requests."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.answer(None)

        def do_POST(self):
            self.answer(self.rfile.read(int(self.headers["content-length"])))

        def answer(self, body):
            requests.append((self.path, body and body.decode()))
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
                policy = policy.replace("ancestors 'none'", "ancestors 'self'; frame-src 'self'")
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
def tasks():
    """Tasks by name; the answers of the first one have some length."""
    tasks = {"tiny": make_task(min_length=3), "toy": ToyTask()}
    tasks |= {name: MATRIX[f"{name} {family}"]() for name, family in KINDS.items()}
    tasks["classification"].labels[:] = [EVIL, "good"]
    tasks["regression"].read_pairs(True)  # of two fields
    return tasks


@pytest.fixture(scope="module")
def seen(tasks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for name, task in tasks.items():
        export_saved_model(task, folder / name, n_best=2)
    walk = Path(__file__).with_name("page_walk.js").read_text("utf-8")
    png = base64.b64encode(_png(tasks)).decode()
    known = {"TEXT": TEXT, "QUOTES": QUOTES, "EVIL": EVIL, "PNG": png, "KINDS": list(KINDS)}
    for word, value in known.items():
        script = json.dumps(value).replace("<", "\\u003c")
        walk = re.sub(rf'"{word}"|\b{word}\b', lambda _, script=script: script, walk)
    requests = []
    folders = {name: folder / name for name in tasks}
    with running(folders) as served, between(served, walk, requests) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        found = seen_in_browser(address, tmp_path_factory.mktemp("browser"))
        server.shutdown()
    steps = {step["what"]: step for step in found.pop("seen")}
    return steps | found | {"requests": requests}


def _png(tasks):
    return tasks["image_classification"].example_texts()[1]


@pytest.fixture(scope="module")
def hypotheses(tasks):
    return tasks["tiny"].predict_n_best([TEXT], 2)[0]


def weights(task, target, group, head=None):
    """The attention of the only layer, and its tokens, from Python."""
    return _attention(text_attention(task, TEXT, target), group, head)


def _attention(found, group, head=None):
    (layer,) = found.groups[group]
    chosen = layer.weights.mean(axis=0) if head is None else layer.weights[head]
    return chosen, layer.rows, layer.columns


def test_the_example_is_there_and_answered(seen, tasks):
    step = seen["start"]
    example = tasks["tiny"].example_texts()[0]
    assert step["forms"] == ["Text to text", "All signatures"]
    assert step["fields"] == {"text": example}
    assert step["best"] == tasks["tiny"].predict([example])[0]


def test_a_second_click_sends_nothing(seen):
    instances = [seen["start"]["fields"]]
    body = {"signature_name": "n_best", "instances": instances}
    sent = [json.loads(body) for _, body in seen["requests"] if body]
    others = [each["instances"][0].get("text") == TEXT for each in sent].index(True)
    assert sent[:others].count(body) == 2  # at the start, and for three clicks
    assert seen["asked twice"]["rows"] == seen["start"]["rows"]


def test_the_answer_and_the_best_with_bars(seen, hypotheses):
    step = seen["asked"]
    rest = 1 - sum(np.exp(each.log_probability) for each in hypotheses)
    *rows, others = step["rows"]
    assert step["best"] == hypotheses[0].text
    assert [(row[0], row[1], row[3], row[4]) for row in rows] == [
        (str(place + 1), each.text, f"{each.log_probability:.3f}", f"{each.score:.3f}")
        for place, each in enumerate(hypotheses)
    ]
    assert others[1] == "all other texts"
    expected = [*(np.exp(each.log_probability) for each in hypotheses), rest]
    np.testing.assert_allclose(step["bars"], 100 * np.array(expected), atol=0.02)
    assert "The natural logarithm" in step["head"][3]  # on hover


def test_the_attention_of_the_best_is_drawn(seen, tasks, hypotheses):
    step = seen["asked"]
    expected, rows, columns = weights(tasks["tiny"], hypotheses[0].text, "cross")
    assert step["groups"] == ["answer to input", "input to itself", "answer to itself"]
    assert (step["layers"], step["heads"]) == (["mean", "1"], ["mean", "1", "2"])
    assert (step["looking"], step["lookedAt"]) == (rows, columns)
    np.testing.assert_allclose(step["cells"], expected.ravel() / expected.max(), atol=6e-4)
    assert step["largest"] == f"{100 * expected.max():.0f}%, the largest weight"
    assert step["pressed"] == [True, False]
    assert step["pointed"] == "Point at a token to see where it looks."


def test_the_text_is_colored_by_the_weights_of_a_token(seen, tasks, hypotheses):
    expected, rows, columns = weights(tasks["tiny"], hypotheses[0].text, "cross")
    most = np.argsort(-expected[1], kind="stable")[:5]
    percent = ", ".join(
        f"{columns[at]} {100 * expected[1, at]:.0f}%" for at in most if expected[1, at] >= 0.005
    )
    assert seen["pointed"]["pointed"] == f"{rows[1]} looks at {percent}"
    scaled = expected / expected.max()
    np.testing.assert_allclose(seen["pointed"]["weights"], scaled[1], atol=6e-4)
    np.testing.assert_allclose(seen["moved by key"]["weights"], scaled[2], atol=6e-4)


def test_the_value_of_a_cell_of_the_map_is_shown(seen, tasks, hypotheses):
    expected, rows, columns = weights(tasks["tiny"], hypotheses[0].text, "cross")
    row, column = (0, 2) if seen["cell"]["cell"].startswith(rows[0] + " ") else (1, 2)
    shown = f"{rows[row]} → {columns[column]}: "
    assert seen["cell"]["cell"].startswith(shown)
    percent = float(seen["cell"]["cell"].removeprefix(shown).rstrip("%"))
    assert percent == pytest.approx(100 * expected[row, column], abs=0.51)


def test_heads_groups_and_other_answers_are_chosen(seen, tasks, hypotheses):
    expected, *_ = weights(tasks["tiny"], hypotheses[0].text, "cross", head=1)
    np.testing.assert_allclose(seen["head"]["cells"], expected.ravel() / expected.max(), atol=6e-4)
    # The head stays chosen.
    expected, rows, columns = weights(tasks["tiny"], hypotheses[0].text, "encoder", head=1)
    assert (seen["encoder"]["looking"], seen["encoder"]["lookedAt"]) == (rows, columns)
    np.testing.assert_allclose(
        seen["encoder"]["cells"], expected.ravel() / expected.max(), atol=6e-4
    )
    assert seen["second"]["pressed"] == [False, True]
    assert seen["lines"]["lines"] > 0


def test_a_link_restores_what_was_shown(seen):
    assert seen["link"]["copied"].endswith("/" + seen["restored"]["hash"])
    for part in ("fields", "best", "rows", "pressed", "group", "weights", "pointed", "lines"):
        assert seen["restored"][part] == seen["lines"][part], part
    assert seen["frames"]["tiny"][1] == seen["lines"]["best"]


def test_a_link_has_the_form_as_it_is(seen, tasks):
    assert "text=fed&" in seen["edited"]["copied"] + "&"
    assert (seen["asked"]["stale"], seen["edited"]["stale"][:34]) == (
        "",
        "This is the answer to an earlier q",
    )
    assert seen["edit restored"]["best"] == tasks["tiny"].predict(["fed"])[0]
    assert seen["edit restored"]["stale"] == ""


def test_the_last_question_wins(seen, tasks):
    assert seen["overtaken"]["fields"] == {"text": "fe"}
    assert (seen["overtaken"]["best"], seen["overtaken"]["stale"]) == (
        tasks["tiny"].predict(["fe"])[0],
        "",
    )
    step = seen["typed while asking"]
    assert (step["best"], step["fields"]) == (seen["overtaken"]["best"], {"text": "f"})
    assert "earlier question" in step["stale"]


def test_an_empty_text_is_an_error_of_the_field_and_of_its_link(seen):
    for what in ("empty", "empty again"):
        assert seen[what]["errors"] == {"field-text-error": "Write a text."}
        assert (seen[what]["best"], seen[what]["fields"]) == (None, {"text": ""})
    first, again = seen["nothing to continue"], seen["nothing to continue again"]
    assert first["errors"] == {}  # a language model begins by itself
    assert (again["rows"], again["fields"]["text"]) == (first["rows"], "")


def test_escape_closes_an_explanation_and_keeps_the_focus(seen):
    assert seen["closed"] == ["none", True]


def test_snippets_are_the_request(seen):
    assert seen["asked"]["summaries"] == [
        "This request as curl and Python",
        "The request of the attention as curl and Python",
    ]
    step = seen["quotes"]
    sent = [body for _, body in seen["requests"] if body and json.dumps(QUOTES) in body]
    *_, address, _, body = shlex.split(step["curl"])
    assert address.endswith("/v1/models/tiny:predict")
    assert body == sent[0]
    call = ast.parse(step["python"]).body[1].value
    assert ast.literal_eval(call.args[0]) == address
    [content] = [word.value for word in call.keywords if word.arg == "json"]
    assert ast.literal_eval(content) == json.loads(body)
    assert json.loads(body)["instances"] == [{"text": QUOTES}]
    assert seen["curl copied"]["copied"] == seen["link"]["curl"]


def test_errors_are_where_they_belong(seen):
    [(place, message)] = seen["too long"]["errors"].items()
    assert place == "field-text-error"
    assert "The source text must have at most 10 tokens" in message
    [(place, message)] = seen["no JSON"]["errors"].items()
    assert place == "input-source_ids-error"
    assert message.startswith("source_ids must be JSON, such as [4, 5, 6]: ")
    assert list(seen["no probability"]["errors"]) == ["field-top_p-error"]
    assert list(seen["no image"]["errors"]) == ["field-image-error"]
    assert seen["no image"]["preview"] == 0
    [(place, message)] = seen["unknown id"]["errors"].items()
    assert re.fullmatch(r"Token ids must be below \d+\. Received: 999999\.", message)
    [(place, message)] = seen["no gap"]["errors"].items()
    assert (place, message[:23]) == ("field-text-error", "The text has no [MASK].")
    assert EVIL in seen["unknown model"]["errors"]["page-error"]
    for what in ("too long", "no gap", "no JSON", "no probability", "no image"):
        assert (seen[what]["hidden"], seen[what]["rows"]) == (True, [])


def test_attention_that_is_asked_for_is_drawn_and_not_written(seen, tasks):
    step = seen["attention alone"]
    _, rows, columns = weights(tasks["tiny"], "AA", step["group"])
    assert (step["rows"], step["hidden"]) == ([], False)
    assert (step["looking"], step["lookedAt"]) == (rows, columns)


def test_labels(seen, tasks):
    step, task = seen["classification"], tasks["classification"]
    [best] = task.predict(task.example_texts()[:1])
    assert (step["form"], step["best"]) == ("labels", best)
    assert {row[1] for row in step["rows"]} == {EVIL, "good"}
    assert sum(step["bars"]) == pytest.approx(100, abs=0.02)


def test_label_sets(seen, tasks):
    step, task = seen["multi_label_classification"], tasks["multi_label_classification"]
    [found] = task.label_sets(task.example_texts()[:1])
    assert step["form"] == "label_sets"
    assert step["best"] == (", ".join(found.labels) or "(no label)")
    assert [row[1] for row in step["rows"]] == list(found.probabilities)
    assert [bool(row[0]) for row in step["rows"]] == [
        label in found.labels for label in found.probabilities
    ]


def test_numbers(seen, tasks):
    step, task = seen["regression"], tasks["regression"]
    assert step["form"] == "numbers"
    requests = [json.loads(body) for path, body in seen["requests"] if "/regression:" in path]
    assert requests[0]["instances"] == [{"text": task.example_texts()[0]}]
    assert float(step["best"]) == pytest.approx(task.predict(task.example_texts()[:1])[0], rel=1e-4)


def test_ranked_passages(seen, tasks):
    step, task = seen["rank"], tasks["rank"]
    query, _ = task.example_texts()[0].split("\t")
    passages = [text.split("\t")[1] for text in task.example_texts()]
    assert step["form"] == "ranking"
    assert step["best"] == task.rank(query, [text for text in passages if text])[0].passage


def test_answers(seen, tasks):
    step, task = seen["question_answering"], tasks["question_answering"]
    assert step["form"] == "answers"
    assert step["best"] == (task.predict(task.example_texts()[:1])[0] or "No answer")


def test_gaps(seen, tasks):
    step, task = seen["masked_lm"], tasks["masked_lm"]
    assert step["best"] == task.predict(task.example_texts()[:1])[0]
    assert (step["form"], len(step["bars"])) == ("gaps", 3)
    two = seen["two gaps"]
    assert two["best"] == task.predict(["the [MASK] sat [MASK]"])[0]
    assert len(two["marks"]) in (0, 2)  # tokens that continue a word have no certain place


def test_fillings_are_marked_where_their_places_are_certain(seen):
    assert seen["small"]["filled"] == [
        ["a ", "x", " b ", "yz", "."],
        ["", "x", ""],
        ["play", "ing", " now ", "x", ""],
        ["xy"],
        ["a ", "xy", " b"],
        ["c"],
    ]


def test_how_gaps_are_written_is_said(seen):
    [label, remark] = seen["small"]["gaps"]
    assert label.startswith("Text with <extra_id_0>, <extra_id_1>, … for its gaps")
    assert "the text that is missing" in remark
    assert seen["small"]["plain"] == ["Text"]


def test_blank_examples_have_no_button_and_spaces_are_seen(seen):
    assert (seen["small"]["examples"], seen["small"]["readable"]) == (["a"], "␣a␣b")


def test_tags_are_colored(seen, tasks):
    step, task = seen["token_classification"], tasks["token_classification"]
    [text] = task.example_texts()[:1]
    names = task.predict([text])[0].split()
    assert step["tags"] == [word + tag for word, tag in zip(text.split(), names, strict=True)]
    colors = collections.defaultdict(set)
    for name, hue in zip(names, step["hues"], strict=True):
        colors[name].add(hue)
    assert all(len(hues) == 1 for hues in colors.values())
    assert len(step["bars"]) == len(names)


def test_cosines_of_lines(seen, tasks):
    texts = ["the cat sat", "the mat", EVIL]
    vectors = tasks["embedding"].predict(texts)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = [[float(cell) for cell in row[1:]] for row in seen["compared"]["rows"]]
    np.testing.assert_allclose(rows, vectors @ vectors.T, atol=6e-4)
    np.testing.assert_allclose(seen["compared"]["cosines"], np.abs(rows).ravel())
    assert [row[0] for row in seen["compared"]["rows"]] == [
        f"{place + 1} {text}" for place, text in enumerate(texts)
    ]
    assert seen["compared"]["pressed"] == [True, False, False]
    assert seen["alone"]["pressed"] == [True]


def test_samples(seen, tasks):
    text = seen["sampled"]["fields"]["text"]
    settings = {"temperature": 0.5, "top_k": 40, "top_p": 0.95}
    expected = [
        tasks["causal_lm"].sample([text], seed=7, first_number=number, **settings)[0][0].text
        for number in range(2)
    ]
    assert [row[1] for row in seen["sampled"]["rows"]] == [text or "(empty)" for text in expected]
    assert seen["sampled again"]["rows"] == seen["sampled"]["rows"]
    [best] = tasks["causal_lm"].predict_n_best(["ab"], 2)
    assert [row[1] for row in seen["most probable"]["rows"]][:2] == [
        each.text or "(empty)" for each in best
    ]


def test_an_image_is_dropped(seen, tasks):
    sent = [body for path, body in seen["requests"] if body and "image_classification" in path]
    images = [json.loads(body)["instances"][0]["image_bytes"]["b64"] for body in sent]
    assert base64.b64encode(_png(tasks)).decode() in images
    assert seen["dropped"]["best"] == tasks["image_classification"].predict([_png(tasks)])[0]
    assert all(base64.b64decode(image).startswith(b"\x89PNG") for image in images)
    assert seen["converted"]["fields"]["image"] in images


def test_the_name_and_the_error_are_of_the_last_image(seen):
    assert seen["dropped"]["file"] == "dropped.png"
    size, most = 0.01, 0.075
    for what, limit in (("too large", size), ("much too large", most)):
        [(place, message)] = seen[what]["errors"].items()
        assert place == "field-image-error"
        assert re.fullmatch(
            rf"The image is too large: 0\.\d+ MB as PNG. .* up to {limit} MB\.", message
        )


def test_a_large_image_is_not_in_the_link(seen):
    assert (seen["large"]["best"] is None, seen["large"]["hidden"]) == (False, False)
    assert seen["large"]["unlinked"] == "The image is too large for a link."
    assert list(seen["large again"]["errors"]) == ["field-image-error"]


def test_attention_is_offered_where_an_image_has_many_patches(seen):
    assert [seen[what]["offered"] for what in ("large", "many weights", "looked")] == [
        False,
        True,
        False,
    ]


def test_the_attention_of_an_image_is_drawn_over_it(seen, tasks, tmp_path):
    (tmp_path / "image.png").write_bytes(_png(tasks))
    task, step = tasks["image_classification"], seen["patch"]
    found = text_attention(task, str(tmp_path / "image.png"))
    expected, rows, _ = _attention(found, "encoder", head=1)  # which stays chosen
    scaled = expected / expected.max()
    assert (step["views"], step["view"]) == (["picture", "map", "lines"], "picture")
    assert rows == ["[class]", "0,0", "0,1", "1,0", "1,1"]
    assert (step["looking"], step["lookedAt"]) == (["[class]"], ["[class]"])
    np.testing.assert_allclose(step["patches"], scaled[2, 1:], atol=6e-4)
    np.testing.assert_allclose(step["weights"], scaled[2, :1], atol=6e-4)
    np.testing.assert_allclose(seen["patch below"]["patches"], scaled[4, 1:], atol=6e-4)
    assert (seen["map of patches"]["looking"], seen["map of patches"]["names"]) == (rows, rows)
    assert seen["map of patches"]["mapWidth"] <= 0


def test_a_model_of_unknown_kind_has_the_form_of_its_signatures(seen):
    step = seen["toy"]
    assert (step["forms"], step["hidden"]) == (["All signatures"], True)
    assert [row[0] for row in step["rows"]] == ["score", "text"]


def test_hostile_texts_stay_texts(seen):
    assert seen["evil words"]["tags"][1].startswith("<b>")
    steps = [step for step in seen.values() if isinstance(step, dict) and "what" in step]
    assert all(step["images"] == 0 for step in steps)
    assert all(step["unnamed"] == [] for step in steps)
    assert seen["title"] == "keras-attn serve"


def test_nothing_is_loaded_from_elsewhere(seen):
    assert (seen["outside"], seen["violations"]) == ([], [])
    assert {path.split("/")[1] for path, _ in seen["requests"]} <= {"", "v1", "page", "favicon.ico"}


def test_nothing_is_wider_than_a_narrow_window(seen):
    overflow = {name: pixels for name, (pixels, _) in seen["frames"].items()}
    assert overflow == dict.fromkeys(["tiny", *KINDS], 0)
