"""Version, changelog and citation agree (docs/RELEASING.md)."""

import re
from pathlib import Path

import pytest
import yaml

import keras_attn

PROJECT = Path(__file__).resolve().parent.parent
SECTION = re.compile(r"^## \[(.*?)\](?: - (\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)


def test_the_changelog_has_the_version_after_what_is_unreleased():
    sections = SECTION.findall((PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert sections[0] == ("Unreleased", "")
    assert sections[1][0] == keras_attn.__version__
    assert all(date for _, date in sections[1:])


def test_the_citation_is_of_the_latest_section():
    citation = yaml.safe_load((PROJECT / "CITATION.cff").read_text(encoding="utf-8"))
    sections = SECTION.findall((PROJECT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert (citation["version"], citation["date-released"]) == sections[1]


def test_ci_runs_every_supported_python():
    workflow = yaml.safe_load((PROJECT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    versions = workflow["jobs"]["ci"]["strategy"]["matrix"]["python"]
    classifiers = (PROJECT / "setup.cfg").read_text(encoding="utf-8")
    assert versions == re.findall(r"Python :: (3\.\d+)$", classifiers, re.MULTILINE)


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "tests/README.md", "docs/RELEASING.md"])
def test_files_named_in_pages_exist(name):
    text = (PROJECT / name).read_text(encoding="utf-8")
    named = re.findall(r"`((?:keras_attn|tests|docs|\.ci|\.github)/[\w./]+)`", text)
    made_up = ("distance", "echo", "rating", "bert.rate")
    missing = [
        path
        for path in named
        if not any(word in path for word in made_up) and not (PROJECT / path).exists()
    ]
    assert named
    assert not missing
