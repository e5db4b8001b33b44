"""The command `visualize`."""

import pytest

pytestmark = pytest.mark.tensorflow


def test_a_page_and_a_picture(keras_attn, task_folder, tmp_path):
    page, picture = tmp_path / "a.html", tmp_path / "a.png"
    assert keras_attn("visualize", task_folder, "abc", "--out", page)[:2] == (0, f"{page}\n")
    assert page.read_text().startswith("<!DOCTYPE html>")
    options = ("--target", "cab", "--attention", "cross", "--head", 2)
    output = keras_attn.output("visualize", task_folder, "--out", picture, "abc", *options)
    assert output == f"{picture}\n"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("abc", "--out", "a.jpg"), "--out takes FILE.png or FILE.html. Received: a.jpg"),
        (("abc",), "--out"),
        (("abc", "--out", "a.html", "--layer", "1"), "are only for pictures"),
        (("abc", "--out", "a.png", "--layer", "7"), "This layer does not exist. Received: layer=7"),
        (("a" * 40, "--out", "a.png"), "source text must have at most 22 tokens"),
    ],
)
def test_mistakes_are_told_in_one_line(
    keras_attn, task_folder, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    error = keras_attn.refusal("visualize", task_folder, *arguments)
    assert message in error
    assert not list(tmp_path.iterdir())
