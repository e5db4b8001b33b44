"""The page lets a browser run exactly its own script and style."""

import base64
import hashlib
import re

import pytest

from keras_attn.serving.page import page

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("element", ["script", "style"])
def test_the_policy_names_what_stands_in_the_page(element):
    made = page(["g2p"])
    [block] = re.findall(rf"<{element}>(.*?)</{element}>", made.html.decode(), re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
    policy = made.headers["content-security-policy"]
    assert f"{element}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy


def test_names_cannot_leave_their_place():
    html = page(["</script><b>"]).html.decode()
    assert "</script><b>" not in html
    assert '["\\u003c/script>\\u003cb>"]' in html
