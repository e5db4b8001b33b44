"""The page: its policy, and the facts about models that it shows."""

import base64
import hashlib
import re

import pytest

from keras_attn.serving.page import page
from keras_attn.serving.page_models import model_facts
from tests.serving.http import ask

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("element", ["script", "style"])
def test_the_policy_lets_a_browser_run_exactly_the_page(element):
    [block] = re.findall(rf"<{element}>(.*?)</{element}>", page().html.decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
    policy = page().headers["content-security-policy"]
    assert f"{element}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_models_come_with_their_task_and_examples(served):
    status, models = ask(served, "/page/models.json")
    assert status == 200
    toy, tiny, odd = models
    assert (toy["name"], toy["task"]) == ("toy", "toy")
    assert toy["examples"]["serving_default"] == [{"text": text} for text in ("abc", "e", "aéb")]
    assert (tiny["name"], tiny["task"]) == ("tiny", "seq2seq")
    assert set(tiny["examples"]["score"][0]) == {"text", "target"}
    assert all(len(rows) <= 4 for rows in tiny["examples"].values())
    assert odd == {"name": "odd", "task": None, "examples": {}}


@pytest.mark.parametrize("content", ["[]", "{", "{}", '{"format_version": 1}'])
def test_a_damaged_manifest_is_none(tmp_path, content):
    (tmp_path / "assets.extra").mkdir()
    (tmp_path / "assets.extra" / "keras_attn.json").write_text(content)
    assert model_facts(tmp_path) == {"task": None, "examples": {}}
